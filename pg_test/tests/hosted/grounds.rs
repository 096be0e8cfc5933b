//! The same work on every ground that a hosted user may stand on: settings of the session, roles, a pooler, a replica. What both editions have
//! is compared with the library's answers without settings, over random layouts and rows, with arguments from columns.

use super::differences::{draw_instant, draw_layout};
use postgres::{Client, NoTls, SimpleQueryMessage};
use snowflake_test::check::{self, wait_for};
use snowflake_test::hosted::{self, DATABASE, create_database, run_script};
use snowflake_test::pgbouncer::{PgBouncer, Pool};
use snowflake_test::{Cluster, value};

/// Where the same work is done. `{force}` is the setting that has every query use parallel workers.
const GROUNDS: [(&str, &str); 9] = [
    ("nothing is set", ""),
    (
        "parallel plans",
        "SET {force} = on; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0",
    ),
    ("generic plans", "SET plan_cache_mode = force_generic_plan"),
    (
        "strings with escapes",
        "SET standard_conforming_strings = off; SET escape_string_warning = off; SET backslash_quote = on",
    ),
    ("an empty search_path", "SELECT set_config('search_path', '', false)"),
    ("no row security", "SET row_security = off"),
    ("JIT", "SET jit = on; SET jit_above_cost = 100"),
    (
        "foreign texts",
        "SET datestyle = 'German'; SET intervalstyle = 'sql_standard'; SET timezone = 'Asia/Kathmandu'; SET extra_float_digits = 0",
    ),
    ("read-only transactions", "SET default_transaction_read_only = on"),
];

/// A statement for a session on a ground; from 19 on, strings are read in one way only.
fn set(client: &mut Client, settings: &str) {
    let major: i32 = value(client, "SELECT current_setting('server_version_num')::integer / 10000");
    let force = if major < 16 { "force_parallel_mode" } else { "debug_parallel_query" };
    for setting in settings.split("; ").filter(|setting| !setting.is_empty()) {
        let done = client.batch_execute(&setting.replace("{force}", force));
        let is_of_strings =
            setting.contains("standard_conforming_strings") || setting.contains("escape_string_warning");
        assert!(done.is_ok() || is_of_strings && major >= 19, "{setting}: {done:?}");
    }
}

/// What the functions say of the rows, in one text.
const QUERY: &str = "
    SELECT count(*)::text || ' ' || md5(string_agg(concat_ws(' ', layout, id, extract(epoch FROM public.snowflake_timestamp(id, layout)),
        public.snowflake_worker(id, layout), public.snowflake_datacenter(id, layout), public.snowflake_sequence(id, layout),
        (public.snowflake_decode(id, layout)).worker_id, public.snowflake_min_id(at, layout), public.snowflake_max_id(at, layout),
        public.snowflake_max_id_before(at, layout), public.snowflake_between(id, at, at + interval '9 days', layout),
        public.snowflake_to_text(id, form), public.snowflake_from_text(public.snowflake_to_text(id, form), form),
        public.snowflake_encode(public.snowflake_timestamp(id, layout), public.snowflake_worker(id, layout),
            public.snowflake_sequence(id, layout), public.snowflake_datacenter(id, layout), layout),
        public.snowflake_min_id(at), public.snowflake_max_id_before(at), public.snowflake_between(id, at, at + interval '9 days'),
        public.snowflake_worker(id), extract(epoch FROM public.snowflake_timestamp(id))), ',' ORDER BY layout, id, at, form))
    FROM public.asked";

/// Fills a table with the same random rows wherever it is called.
fn ask(client: &mut Client) {
    let mut draw = fastrand::Rng::with_seed(47);
    client.batch_execute("CREATE TABLE public.asked (layout text, id bigint, at timestamptz, form text)").unwrap();
    let mut layouts = 0;
    while layouts < 8 {
        let layout = draw_layout(&mut draw);
        if client.query(&format!("SELECT snowflake_min_id(now(), '{layout}')"), &[]).is_err() {
            continue;
        }
        layouts += 1;
        let highest: i64 = value(client, &format!("SELECT snowflake_max_id('infinity', '{layout}')"));
        for _ in 0..6 {
            let form = ["decimal", "hex", "base32", "base36", "base58", "base62", "base64url"][draw.usize(0..7)];
            let (id, at) = (draw.i64(0..i64::MAX) & highest, draw_instant(&mut draw));
            let at = if at.contains("294276") { "timestamptz '2031-01-01'".to_owned() } else { at };
            let insert = format!("INSERT INTO public.asked VALUES ('{layout}', {id}, {at}, '{form}')");
            client.batch_execute(&insert).unwrap();
        }
    }
    client.batch_execute("ANALYZE public.asked").unwrap();
}

/// A server of both editions: what the library says, and a database of the extension in SQL, whose owner has what an administrator of a
/// hosted service has: roles and databases, and no superuser.
fn with_both() -> (Cluster, String) {
    let cluster = Cluster::options().listening().set("max_prepared_transactions = 5").start();
    create_database(&cluster, DATABASE);
    cluster
        .client()
        .batch_execute(
            "ALTER ROLE owner CREATEROLE CREATEDB; \
             GRANT pg_monitor, pg_signal_backend, pg_read_all_settings, pg_read_all_stats TO owner WITH ADMIN OPTION",
        )
        .unwrap();
    run_script(&cluster, DATABASE);
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute("SELECT snowflake_configure(1)").unwrap();
    let mut library = cluster.client();
    ask(&mut library);
    ask(&mut owner);
    let said: String = value(&mut library, QUERY);
    assert!(said.starts_with("48 "), "{said}");
    (cluster, said)
}

/// Makes IDs, partitions, and moves a key there and back.
fn works(client: &mut Client, ground: usize) {
    client
        .batch_execute(&format!(
            "CREATE TABLE public.made_{ground} (id bigint PRIMARY KEY DEFAULT public.snowflake_next(), n integer);
             INSERT INTO public.made_{ground} (n) SELECT n FROM generate_series(1, 500) AS n;
             INSERT INTO public.made_{ground} SELECT id, 1 FROM public.snowflake_next(500) AS id;
             CREATE TABLE public.parts_{ground} (id bigint PRIMARY KEY DEFAULT public.snowflake_next()) PARTITION BY RANGE (id);
             CREATE TABLE public.keys_{ground} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n integer);
             INSERT INTO public.keys_{ground} (n) VALUES (1)"
        ))
        .unwrap();
    let is_new = format!(
        "SELECT count(DISTINCT id) = 1000 AND min(public.snowflake_timestamp(id)) > now() - interval '5 minutes' FROM public.made_{ground}"
    );
    assert!(value::<bool>(client, &is_new));
    let keep = format!(
        "SELECT count(*) FROM public.snowflake_maintain_partitions('public.parts_{ground}', '1 day', '3 days', '30 days', 'drop')"
    );
    assert_eq!(value::<i64>(client, &keep), 4);
    assert_eq!(value::<i64>(client, &keep), 0);
    for statement in [
        format!("INSERT INTO public.parts_{ground} SELECT FROM generate_series(1, 10)"),
        format!("SELECT public.snowflake_adopt('public.keys_{ground}')"),
        format!("INSERT INTO public.keys_{ground} (n) VALUES (2)"),
        format!("SELECT public.snowflake_release('public.keys_{ground}', start => 2)"),
        format!("INSERT INTO public.keys_{ground} (n) VALUES (3)"),
        format!("CALL public.snowflake_partition_default_rows('public.parts_{ground}', '1 day')"),
        "SELECT * FROM public.snowflake_status()".to_owned(),
        "SELECT * FROM public.snowflake_layouts()".to_owned(),
    ] {
        client.batch_execute(&statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    let keys = format!("SELECT string_agg(n::text, ' ' ORDER BY id) FROM public.keys_{ground}");
    assert_eq!(value::<String>(client, &keys), "1 3 2");
    let plan = format!(
        "SELECT count(*) FROM public.snowflake_preflight(keys => '{{public.made_{ground},public.keys_{ground}}}')"
    );
    assert!(value::<i64>(client, &plan) >= 11);
}

#[test]
fn the_same_work_everywhere() {
    let (cluster, said) = with_both();
    for (number, (ground, settings)) in GROUNDS.into_iter().enumerate() {
        let mut client = cluster.client_of("owner", DATABASE);
        set(&mut client, settings);
        assert_eq!(value::<String>(&mut client, QUERY), said, "{ground}");
        let mut library = cluster.client();
        set(&mut library, settings);
        assert_eq!(value::<String>(&mut library, QUERY), said, "the library, {ground}");
        if ground == "parallel plans" {
            let plan = client.query(&format!("EXPLAIN {QUERY}"), &[]).unwrap();
            let plan: String = plan.iter().map(|row| row.get::<_, String>(0)).collect();
            assert!(plan.contains("Gather"), "{plan}");
        }
        if ground == "read-only transactions" {
            check::refused(&mut client, "SELECT public.snowflake_next()", "25006");
            check::refused(&mut client, "SELECT public.snowflake_configure(1)", "25006");
            let plan = "SELECT count(*) FROM public.snowflake_maintain_partitions('public.parts_0', '1 day', '9 days', dry_run => true)";
            assert_eq!(value::<i64>(&mut client, plan), 6);
        } else {
            works(&mut client, number);
        }
        client.batch_execute("SELECT * FROM public.snowflake_preflight(servers => 3)").unwrap();
    }
    nothing_failed_in_a_worker(&cluster);
}

fn nothing_failed_in_a_worker(cluster: &Cluster) {
    assert!(!cluster.log().contains("during a parallel operation"), "{}", cluster.log());
}

/// In Cloud SQL, users are members of `cloudsqlsuperuser`, which has no login, and may own the database. In RDS, the master user is a member of
/// `rds_superuser`, and owns it. Neither is a superuser.
#[test]
fn administrators_of_services() {
    for (service, owner) in [("cloudsqlsuperuser", "cloudsqlsuperuser"), ("rds_superuser", "master")] {
        let cluster = hosted::options().create();
        cluster.start();
        for statement in [
            &format!("CREATE ROLE {service} NOLOGIN CREATEROLE CREATEDB"),
            &format!("GRANT pg_monitor, pg_signal_backend TO {service} WITH ADMIN OPTION"),
            &format!("CREATE ROLE master LOGIN CREATEROLE CREATEDB IN ROLE {service}"),
            &format!("CREATE DATABASE {DATABASE} OWNER {owner}"),
        ] {
            cluster.client().batch_execute(statement).unwrap();
        }
        let mut master = cluster.client_of("master", DATABASE);
        master.batch_execute(hosted::script()).unwrap();
        master.batch_execute("SELECT snowflake_configure(1)").unwrap();
        works(&mut master, 0);
        // An application's role, which the administrator makes.
        master.batch_execute("CREATE ROLE app LOGIN; GRANT INSERT, SELECT ON made_0 TO app").unwrap();
        let mut app = cluster.client_of("app", DATABASE);
        app.batch_execute("INSERT INTO made_0 (n) VALUES (1)").unwrap();
        check::refused(&mut app, "SELECT snowflake_configure(2)", "42501");
        // And the file is run again.
        master.batch_execute(hosted::script()).unwrap();
        works(&mut master, 1);
    }
}

/// Statements without a session of one's own.
#[test]
fn behind_pgbouncer() {
    let (cluster, said) = with_both();
    let bouncer = PgBouncer::before(&cluster, Pool::Transaction, 2);
    let url = format!("host=127.0.0.1 port={} user=postgres dbname={DATABASE}", bouncer.port());
    let mut client = Client::connect(&url, NoTls).unwrap();
    let major: i32 = value(&mut cluster.client(), "SELECT current_setting('server_version_num')::integer / 10000");
    let mut first = |query: &str| -> String {
        let rows = client.simple_query(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        rows.iter()
            .find_map(|row| if let SimpleQueryMessage::Row(row) = row { row.get(0).map(str::to_owned) } else { None })
            .unwrap_or_default()
    };
    assert_eq!(first(QUERY), said);
    if major < 19 {
        first("SET standard_conforming_strings = off");
    }
    first(
        "CREATE TABLE parts (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id); CREATE TABLE keys (id bigserial PRIMARY KEY)",
    );
    assert_eq!(first("SELECT count(*) FROM snowflake_maintain_partitions('parts', '1 day', '3 days')"), "4");
    assert_eq!(first("INSERT INTO parts DEFAULT VALUES RETURNING snowflake_worker(id)"), "1");
    assert_eq!(first("SELECT first_id > 0 FROM snowflake_adopt('keys')"), "t");
    assert_eq!(first("INSERT INTO keys DEFAULT VALUES RETURNING snowflake_worker(id)"), "1");
    assert_eq!(first("SELECT snowflake_release('keys', start => 1)"), "1");
}

/// A subscriber has rows with IDs of the publisher, and makes its own.
#[test]
fn a_logical_replica() {
    let publisher = hosted::options().set("wal_level = logical").create();
    publisher.start();
    let subscriber = hosted::options().create();
    subscriber.start();
    let table = "CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT snowflake_next(), n integer)";
    for (number, server) in [&publisher, &subscriber].into_iter().enumerate() {
        create_database(server, DATABASE);
        run_script(server, DATABASE);
        let mut owner = server.client_of("owner", DATABASE);
        owner.batch_execute(&format!("SELECT snowflake_configure({}); {table}", number + 1)).unwrap();
    }
    let mut source = publisher.client_of("postgres", DATABASE);
    source
        .batch_execute(
            "INSERT INTO rows (n) SELECT 1 FROM generate_series(1, 500); CREATE PUBLICATION p FOR ALL TABLES",
        )
        .unwrap();
    let mut client = subscriber.client_of("postgres", DATABASE);
    client
        .batch_execute(&format!(
            "CREATE SUBSCRIPTION s CONNECTION 'host={} port={} user=postgres dbname={DATABASE}' PUBLICATION p",
            publisher.socket().display(),
            publisher.port()
        ))
        .unwrap();
    client.batch_execute("INSERT INTO rows (n) SELECT 2 FROM generate_series(1, 500)").unwrap();
    source.batch_execute("INSERT INTO rows (n) SELECT 1 FROM generate_series(1, 500)").unwrap();
    wait_for("the rows are there", || value::<i64>(&mut client, "SELECT count(*) FROM rows") == 1500);
    let workers = "SELECT count(DISTINCT id) = 1500 AND bool_and(snowflake_worker(id) = n) FROM rows";
    assert!(value::<bool>(&mut client, workers));
    // The record is not published: each has its own.
    assert_eq!(value::<i32>(&mut client, "SELECT worker_id FROM snowflake_status()"), 2);
    client.batch_execute("DROP SUBSCRIPTION s").unwrap();
}
