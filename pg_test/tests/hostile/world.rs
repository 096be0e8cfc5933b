//! In a hostile world ([`snowflake_test::hostile`]), what the extension's scripts make, and what its functions run, is PostgreSQL's own.

use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::hosted::create_database;
use snowflake_test::{Cluster, hostile, value};

/// A hostile server with a database of the role `owner`, who is no superuser; sessions there find hostile names first.
fn server() -> Cluster {
    let cluster = Cluster::options().hostile().create();
    cluster.start();
    database(&cluster, "shop");
    cluster
}

fn database(cluster: &Cluster, name: &str) {
    create_database(cluster, name);
    hostile::put_first(cluster, name);
}

fn sprung(cluster: &Cluster) -> Vec<String> {
    hostile::sprung(cluster).into_iter().collect()
}

/// The world is one: what is written without care runs mallory's code, with pg_catalog last on the path and even first.
#[test]
fn careless_statements_run_code_of_others() {
    let cluster = server();
    let springs = |client: &mut Client, statement: &str, what: &str| {
        // Some fail by it.
        let _ = client.batch_execute(statement);
        let found = hostile::sprung(&cluster);
        assert!(found.contains(&format!("{what}: {statement}")), "{found:#?}");
    };
    let mut last = cluster.client_of("owner", "shop");
    last.batch_execute("SET search_path = pg_catalog, \"$user\", public").unwrap();
    for (statement, what) in [
        ("SELECT 1.5 * 2", "operator * as owner"),
        ("SELECT count(1)", "aggregate count as owner"),
        ("SELECT format('%s', 'x'::name)", "function format as owner"),
        ("SELECT quote_literal(5)", "function quote_literal as owner"),
        ("SELECT 1.5::float8 / 2", "operator / as owner"),
        ("SELECT 'nothing'::mallory_code.anything::bigint", "cast to int8 as owner"),
        ("SELECT mallory_code.int8(5::bigint)", "cast from int8 as owner"),
    ] {
        springs(&mut last, statement, what);
    }
    let mut first = cluster.client_of("owner", "shop");
    for (statement, what) in [
        ("SELECT 1 = 1", "operator = as owner"),
        ("SELECT 1 IN (2, 3) OR 1 < 2", "operator < as owner"),
        ("SELECT clock_timestamp()", "function clock_timestamp as owner"),
        ("SELECT 'a'::text", "type text as owner"),
        ("SELECT FROM pg_class", "relation as owner"),
    ] {
        springs(&mut first, statement, what);
    }
}

/// Calls of the library's functions. What they name themselves is qualified; what they run is ours.
const CALLS: [&str; 34] = [
    "SELECT public.snowflake_next(), public.snowflake_next(3)",
    "SELECT public.snowflake_timestamp(5), public.snowflake_timestamp(5, 'discord')",
    "SELECT public.snowflake_datacenter(5), public.snowflake_datacenter(5, 'discord')",
    "SELECT public.snowflake_worker(5), public.snowflake_worker(5, 'discord')",
    "SELECT public.snowflake_sequence(5), public.snowflake_sequence(5, 'discord')",
    "SELECT public.snowflake_decode(5), public.snowflake_decode(5, 'discord')",
    "SELECT public.snowflake_encode(pg_catalog.now(), 1), public.snowflake_encode(pg_catalog.now(), 1, 0, 0, 'discord')",
    "SELECT public.snowflake_age(5), public.snowflake_age(5, 'discord')",
    "SELECT public.snowflake_min_id(pg_catalog.now()), public.snowflake_min_id(pg_catalog.now(), 'discord')",
    "SELECT public.snowflake_max_id(pg_catalog.now()), public.snowflake_max_id(pg_catalog.now(), 'discord')",
    "SELECT public.snowflake_max_id_before(pg_catalog.now()), public.snowflake_max_id_before(pg_catalog.now(), 'discord')",
    "SELECT public.snowflake_between(5, pg_catalog.now(), pg_catalog.now()), \
     public.snowflake_between(5, pg_catalog.now(), pg_catalog.now(), 'discord')",
    "SELECT public.snowflake_to_text(5, 'base62'), public.snowflake_from_text('00000000005', 'base62')",
    "SELECT public.snowflake_layouts()",
    "SELECT public.snowflake_server_layout(), public.snowflake_database_layout()",
    "CREATE TABLE public.orders (id serial PRIMARY KEY, day pg_catalog.date)",
    "CREATE VIEW public.days AS SELECT id, day FROM public.orders",
    "INSERT INTO public.orders SELECT FROM pg_catalog.generate_series(1, 3)",
    "SELECT public.snowflake_adopt_plan('public.orders'), public.snowflake_adopt_all_plan('{public.orders}', 'recreate')",
    "SELECT public.snowflake_adopt('public.orders', views => 'recreate')",
    "INSERT INTO public.orders DEFAULT VALUES",
    "SELECT public.snowflake_preflight(keys => '{public.orders}')",
    "SELECT public.snowflake_release_plan('public.orders', start => 1000000)",
    "CREATE TABLE public.events (id bigint PRIMARY KEY DEFAULT public.snowflake_next()) PARTITION BY RANGE (id)",
    "CREATE TABLE public.later PARTITION OF public.events DEFAULT",
    "INSERT INTO public.events VALUES (600000000000000000), (700000000000000000)",
    "SELECT public.snowflake_declare_keys('public.events', '-infinity')",
    "CALL public.snowflake_partition_default_rows('public.events', '1 day', true)",
    "SELECT public.snowflake_maintain_partitions('public.events', '1 day', '1 day', '1 day', 'drop', dry_run => true, default_rows => 'move')",
    "CALL public.snowflake_partition_default_rows('public.events', '1 day')",
    "SELECT public.snowflake_create_partitions('public.events', '1 day', '2026-01-01', '2026-01-04')",
    "SELECT public.snowflake_maintain_partitions('public.events', '1 day', '1 day', '1 day', 'drop')",
    "SELECT public.snowflake_maintain_partitions('public.events', '1 day', '1 day', '1 day', 'detach', dry_run => true)",
    "DROP TABLE public.orders, public.events CASCADE",
];

/// Calls that end in an error, which is made of look-ups, too: a row is in the way of partitions that are to be made.
const REFUSED: [&str; 7] = [
    "SELECT public.snowflake_create_partitions('public.full_rest', '1 day', pg_catalog.now(), pg_catalog.now())",
    "SELECT public.snowflake_maintain_partitions('public.full_rest', '1 day', '1 day')",
    "SELECT public.snowflake_maintain_partitions('public.full_rest', '1 day', '1 day', dry_run => true)",
    "SELECT public.snowflake_maintain_partitions('public.full_rest', '1 day', '1 day', '1 day', 'detach concurrently')",
    "SELECT public.snowflake_maintain_partitions('public.by_name', '1 day', '1 day')",
    "SELECT public.snowflake_adopt('public.by_name')",
    "SELECT public.snowflake_release('public.by_name')",
];

const REFUSING: &str = "
    CREATE TABLE public.full_rest (id bigint PRIMARY KEY DEFAULT public.snowflake_next()) PARTITION BY RANGE (id);
    CREATE TABLE public.full_rest_0 PARTITION OF public.full_rest DEFAULT; INSERT INTO public.full_rest DEFAULT VALUES;
    CREATE TABLE public.by_name (id integer, name pg_catalog.text) PARTITION BY LIST (name)";

/// What our objects are made of that is neither ours nor PostgreSQL's own, as far as the catalog knows it; and functions whose body is a
/// text that PostgreSQL reads at each call, by the path of whoever calls it. The text of the procedure, which cannot have a path of its own, is
/// the same in the extension in SQL, where `hosted::world` reads it.
const OF_OTHERS: &str = "
    WITH RECURSIVE ours (classid, objid) AS (
        SELECT classid, objid FROM pg_catalog.pg_depend JOIN pg_catalog.pg_extension AS e ON refobjid = e.oid
        WHERE refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND extname = 'pg_snowflake'
        -- Array types, row types, defaults.
        UNION SELECT d.classid, d.objid FROM ours JOIN pg_catalog.pg_depend AS d ON (refclassid, refobjid) = (ours.classid, ours.objid)
        WHERE deptype = 'i'
    )
    SELECT pg_describe_object(d.classid, d.objid, d.objsubid) || ' depends on ' || pg_describe_object(refclassid, refobjid, refobjsubid)
    FROM ours JOIN pg_catalog.pg_depend AS d USING (classid, objid)
    WHERE refobjid >= 16384 AND (refclassid, refobjid) NOT IN (SELECT classid, objid FROM ours) AND deptype = 'n'
        AND (refclassid <> 'pg_catalog.pg_namespace'::regclass OR refobjid <> 'public'::regnamespace)
    UNION ALL
    SELECT p.oid::regprocedure || ' has a text as its body, and no search_path' FROM ours JOIN pg_proc AS p ON p.oid = objid
    JOIN pg_language AS l ON l.oid = prolang
    WHERE classid = 'pg_proc'::regclass AND lanname NOT IN ('c', 'internal') AND prosqlbody IS NULL AND proconfig IS NULL AND prokind <> 'p'";

fn call_all(cluster: &Cluster, database: &str, caller: &str) {
    let mut client = cluster.client_of(caller, database);
    let path: String = value(&mut client, "SELECT pg_catalog.current_setting('search_path')");
    assert_eq!(path, "\"$user\", public, pg_catalog");
    for call in CALLS {
        client.batch_execute(call).unwrap_or_else(|error| panic!("{caller} in {database}: {call}: {error:?}"));
        assert_eq!(sprung(cluster), [""; 0], "{caller} in {database}: {call}");
    }
    client.batch_execute(REFUSING).unwrap();
    // Others are not in the way of a job.
    client.batch_execute("SELECT public.snowflake_declare_keys('public.full_rest')").unwrap();
    for call in REFUSED {
        client.batch_execute(call).unwrap_err();
        assert_eq!(sprung(cluster), [""; 0], "{caller} in {database}: {call}");
    }
    client.batch_execute("DROP TABLE public.full_rest, public.by_name").unwrap();
}

/// The scripts are run as PostgreSQL's superuser, whoever creates the extension, with the schema that it goes to on the path.
#[test]
fn scripts_and_functions_of_the_library_run_nothing_of_others() {
    let cluster = server();
    database(&cluster, "old");
    let create = |database: &str, statements: &[&str]| {
        let mut owner = cluster.client_of("owner", database);
        for statement in statements {
            owner.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
            assert_eq!(sprung(&cluster), [""; 0], "{statement}");
        }
    };
    create("shop", &["CREATE EXTENSION pg_snowflake SCHEMA public"]);
    create(
        "old",
        &[
            "CREATE EXTENSION pg_snowflake SCHEMA public VERSION '0.1.0'",
            "ALTER EXTENSION pg_snowflake UPDATE TO '0.2.0'",
            "ALTER EXTENSION pg_snowflake UPDATE",
        ],
    );
    for database in ["shop", "old"] {
        for caller in ["owner", "postgres"] {
            call_all(&cluster, database, caller);
        }
        let mut client = cluster.client_of("postgres", database);
        client.batch_execute("SET search_path = pg_catalog, pg_temp").unwrap();
        let found: Vec<String> = client.query(OF_OTHERS, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        assert_eq!(found, [""; 0], "{database}");
        // There is nothing to take back: that is found out last.
        let kept = "CREATE TABLE public.kept (id bigint PRIMARY KEY DEFAULT public.snowflake_next()); INSERT INTO public.kept DEFAULT VALUES; \
            ALTER DATABASE {database} RESET search_path; RESET search_path";
        client.batch_execute(&kept.replace("{database}", database)).unwrap();
        refused(&mut client, "SELECT public.snowflake_rewind(id) FROM public.kept", "55000");
        assert_eq!(sprung(&cluster), [""; 0], "{database}");
        // What it looks for, it would find.
        client
            .batch_execute(
                "CREATE FUNCTION public.planted() RETURNS numeric LANGUAGE sql RETURN 1.5 * 2; \
                 ALTER EXTENSION pg_snowflake ADD FUNCTION public.planted(); SET search_path = pg_catalog, pg_temp",
            )
            .unwrap();
        assert_eq!(client.query(OF_OTHERS, &[]).unwrap().len(), 1, "{database}");
    }
}
