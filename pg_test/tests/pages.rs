//! What docs/upgrades.md and docs/uninstalling.md say, step by step, with the statements that stand there.

use postgres::Client;
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::programs::output;
use snowflake_test::{Cluster, Stop, ids, value};
use std::path::Path;

/// The block of a page that begins with these words.
pub fn block(page: &str, start: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(str::trim_start).skip_while(|line| !line.starts_with(start));
    let block: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    assert!(!block.is_empty(), "{page} has no {start}");
    block.join("\n")
}

/// Makes rows, and returns their IDs.
fn insert(client: &mut Client) -> Vec<i64> {
    ids(&client.query("INSERT INTO orders SELECT FROM generate_series(1, 1000) RETURNING id", &[]).unwrap())
}

fn version(client: &mut Client) -> String {
    value(client, "SELECT extversion FROM pg_extension WHERE extname = 'pg_snowflake'")
}

/// To each earlier version. IDs rise all the while, and a standby follows.
#[test]
fn an_update_is_taken_back_by_the_statements_of_the_page() {
    const ON_THE_PAGE: &str = "VERSION '0.2.0'";
    let cluster = Cluster::options().start();
    let standby = cluster.standby();
    let mut client = cluster.client();
    let update = block("upgrades.md", "ALTER EXTENSION pg_snowflake UPDATE;");
    let back = block("upgrades.md", "BEGIN;");
    assert!(back.contains(ON_THE_PAGE), "{back}");
    let newest = version(&mut client);
    let mut list = Vec::new();
    for earlier in ["0.1.0", "0.2.0"] {
        let mut client = cluster.client();
        client
            .batch_execute(&format!(
                "DROP EXTENSION pg_snowflake;
                 CREATE EXTENSION pg_snowflake VERSION '{earlier}';
                 CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next())"
            ))
            .unwrap();
        list.extend(insert(&mut client));
        client.batch_execute(&update).unwrap();
        assert_eq!(version(&mut client), newest);
        list.extend(insert(&mut client));

        refused(&mut client, &format!("ALTER EXTENSION pg_snowflake UPDATE TO '{earlier}'"), "22023");
        client.batch_execute(&back.replace(ON_THE_PAGE, &format!("VERSION '{earlier}'"))).unwrap();
        assert_eq!(version(&mut client), earlier);
        list.extend(insert(&mut client));
        cluster.restart(Stop::Fast);
        let mut client = cluster.client();
        list.extend(insert(&mut client));
        check::rising(&list);

        standby.catch_up_with(&cluster);
        let mut other = standby.client();
        assert_eq!(version(&mut other), earlier);
        let read: i64 =
            value(&mut other, "SELECT count(*) FROM orders WHERE snowflake_timestamp(id) > now() - interval '1 hour'");
        assert_eq!(read, 4000);
        client.batch_execute("DROP TABLE orders").unwrap();
    }
}

/// What a database has on record stays: its layout, and that it has IDs far ahead of the clock.
#[test]
fn a_database_that_waits_for_the_clock_still_does_when_an_update_is_taken_back() {
    let cluster = Cluster::options().set("pg_snowflake.max_wait = '100ms'").start();
    let mut client = cluster.client();
    let layout: String = value(&mut client, "SELECT snowflake_database_layout()");
    let day_ahead = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next());
        SELECT setval('_snowflake.reservation', (extract(epoch FROM now() + interval '1 day') * 1000)::bigint)";
    client.batch_execute(day_ahead).unwrap();
    let message = |client: &mut Client| refused(client, "SELECT snowflake_next()", "55000").message()[..35].to_owned();
    let before = message(&mut client);
    client.batch_execute(&block("upgrades.md", "BEGIN;")).unwrap();
    assert_eq!(message(&mut client), before);
    assert_eq!(value::<String>(&mut client, "SELECT snowflake_database_layout()"), layout);
    // Of another layout than the server's.
    client.batch_execute("DROP TABLE orders; DROP EXTENSION pg_snowflake; CREATE EXTENSION pg_snowflake").unwrap();
    client.batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next())").unwrap();
    client.batch_execute("ALTER SYSTEM SET pg_snowflake.layout = 'timestamp=41 worker=9 sequence=13'").unwrap();
    cluster.restart(Stop::Fast);
    let mut client = cluster.client();
    let before = message(&mut client);
    client.batch_execute(&block("upgrades.md", "BEGIN;")).unwrap();
    assert_eq!(message(&mut client), before);
    assert_eq!(value::<String>(&mut client, "SELECT snowflake_database_layout()"), layout);
}

/// In the order of the page: while a default or a view uses it, the extension is not dropped.
/// Each message of the quick start's table that this server can be brought to.
#[test]
fn messages_of_an_installation_have_a_row() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/quick-start.md")).unwrap();
    let rows: Vec<&str> = page.lines().skip_while(|line| *line != "## If it does not work").collect();
    let is_there = |error: postgres::Error| {
        let error = error.as_db_error().unwrap().message().to_owned();
        assert!(rows.iter().any(|row| row.contains(&format!("`{error}`"))), "{error}");
    };
    let other = Cluster::options().not_preloaded().start();
    let mut client = other.client();
    client.batch_execute("CREATE ROLE clerk").unwrap();
    client.batch_execute("CREATE DATABASE of_nobody").unwrap();
    let next = "SELECT snowflake_next()";
    is_there(client.batch_execute(next).unwrap_err());
    is_there(other.client_of("postgres", "of_nobody").batch_execute(next).unwrap_err());
    client.batch_execute("DROP EXTENSION pg_snowflake; SET ROLE clerk").unwrap();
    is_there(client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap_err());
    let without_worker = Cluster::options().set("pg_snowflake.worker_id = -1").start();
    is_there(without_worker.client().batch_execute(next).unwrap_err());
}

#[test]
fn it_is_uninstalled_by_the_steps_of_the_page() {
    let cluster = Cluster::options().start();
    let standby = cluster.standby();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next());
             CREATE TABLE events (id bigint DEFAULT snowflake_next()) PARTITION BY RANGE (id);
             SELECT snowflake_create_partitions('events', '1 month', '2026-01-01 00:00+00', '2026-02-01 00:00+00');
             CREATE VIEW orders_by_time AS SELECT snowflake_timestamp(id) AS created_at FROM orders;
             CREATE TABLE tickets (id snowflake_id PRIMARY KEY, parent snowflake_id REFERENCES tickets);
             INSERT INTO tickets VALUES (5, 5);
             CREATE TABLE numbers (number integer DEFAULT snowflake_segment_next('orders')); CREATE DOMAIN ids AS bigint DEFAULT snowflake_next();
             CREATE FUNCTION next() RETURNS bigint LANGUAGE sql AS 'SELECT snowflake_next()'; CREATE INDEX ON orders (snowflake_timestamp(id))",
        )
        .unwrap();
    let made = insert(&mut client);

    // Columns of the type.
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/uninstalling.md")).unwrap();
    let statement = "ALTER TABLE tickets ALTER id TYPE bigint";
    assert!(page.contains(statement));
    client.batch_execute(statement).unwrap();
    let error = refused(&mut client, "DROP EXTENSION pg_snowflake", "2BP01");
    assert!(
        error.detail().unwrap().contains("column parent of table tickets depends on type snowflake_id"),
        "{error:?}"
    );
    client.batch_execute(&statement.replace("ALTER id", "ALTER parent")).unwrap();

    // The defaults.
    let error = refused(&mut client, "DROP EXTENSION pg_snowflake", "2BP01");
    assert!(error.detail().unwrap().contains("default value for column id of table orders"), "{error:?}");
    let list = block("uninstalling.md", "WITH ours AS");
    let objects = |client: &mut Client| -> Vec<String> {
        client.query(&list, &[]).unwrap().iter().map(|row| row.get("object")).collect()
    };
    assert_eq!(
        objects(&mut client),
        [
            "default value for column id of table events",
            "default value for column id of table events_20260101",
            "default value for column id of table orders",
            "default value for column number of table numbers",
            "index orders_snowflake_timestamp_idx",
            "rule _RETURN on view orders_by_time",
            "text of function next()",
            "type ids",
        ]
    );
    for statement in [
        "ALTER TABLE orders ADD created_at timestamptz; UPDATE orders SET created_at = snowflake_timestamp(id);",
        "ALTER DOMAIN ids DROP DEFAULT",
    ] {
        assert!(page.contains(statement));
        client.batch_execute(statement).unwrap();
    }
    client.batch_execute("ALTER TABLE numbers ALTER number DROP DEFAULT; DROP FUNCTION next()").unwrap();
    client.batch_execute("SELECT snowflake_release('orders'), snowflake_release('events')").unwrap();

    // The extension, but for what uses its functions.
    let error = refused(&mut client, "DROP EXTENSION pg_snowflake", "2BP01");
    assert!(error.detail().unwrap().contains("view orders_by_time"), "{error:?}");
    client.batch_execute("DROP VIEW orders_by_time; DROP INDEX orders_snowflake_timestamp_idx").unwrap();
    assert!(objects(&mut client).is_empty());
    client.batch_execute("DROP EXTENSION pg_snowflake").unwrap();

    // The library.
    drop(client);
    for server in [&standby, &cluster] {
        let file = server.data().join("postgresql.conf");
        let lines = std::fs::read_to_string(&file).unwrap();
        let kept: Vec<&str> = lines.lines().filter(|line| !line.contains("pg_snowflake")).collect();
        std::fs::write(&file, kept.join("\n") + "\n").unwrap();
        server.restart(Stop::Fast);
    }
    let mut client = cluster.client();
    assert_eq!(value::<String>(&mut client, "SHOW shared_preload_libraries"), "");

    // The origin, whose slot is free then, on the standby, too.
    client.batch_execute("SELECT pg_replication_origin_drop('snowflake')").unwrap();
    client.batch_execute("INSERT INTO orders DEFAULT VALUES").unwrap();
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM orders WHERE id >= 0"), 1001);
    assert_eq!(value::<i64>(&mut client, "SELECT min(id) FROM orders"), made[0]);
    assert_eq!(value::<i64>(&mut client, "SELECT id + parent FROM tickets"), 10);
    let mut other = standby.client();
    wait_for("the standby has no origin", || {
        value::<i64>(&mut other, "SELECT count(*) FROM pg_replication_origin_status") == 0
    });
}

/// docs/upgrades.md lists all databases, whatever their names; and docs/before-the-first-id.md restores all but the record.
#[test]
fn commands_of_the_pages_run() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    for name in ["a  b ", "c=d", "it's \\"] {
        client.batch_execute(&format!("CREATE DATABASE \"{name}\" TEMPLATE postgres")).unwrap();
    }
    let psql = cluster.program("psql").get_program().to_string_lossy().into_owned();
    // With PostgreSQL's programs, in a folder of its own.
    let shell = |script: &str| {
        let script = format!("export PATH={}:$PATH; cd \"$(mktemp -d)\"; {script}", psql.trim_end_matches("/psql"));
        output(cluster.program("/bin/bash").args(["-ec", &script]))
    };
    let listed = shell(&block("upgrades.md", "psql -XAtc"));
    let mut names: Vec<&str> = listed.output.lines().filter_map(|line| Some(line.rsplit_once('|')?.0)).collect();
    names.sort_unstable();
    assert_eq!(names, ["a  b ", "c=d", "it's \\", "postgres"], "{} {}", listed.output, listed.errors);
    client.batch_execute("CREATE DATABASE database TEMPLATE template0").unwrap();
    client
        .batch_execute("CREATE TABLE orders (id bigint DEFAULT snowflake_next()); INSERT INTO orders DEFAULT VALUES")
        .unwrap();
    let of_record = "SELECT is_called FROM _snowflake.layout";
    assert!(value::<bool>(&mut client, of_record));
    let restored =
        shell(&format!("pg_dump -Fc postgres > dump; {}", block("before-the-first-id.md", "pg_restore --list")));
    assert_eq!(restored.errors, "");
    let mut client = cluster.client_of("postgres", "database");
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM orders"), 1);
}

/// Who may insert by the privileges of docs/tables.md gets the ID back; and the function of docs/segments.md works for whoever may make it.
#[test]
fn privileges_of_the_pages_are_enough() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tables.md")).unwrap();
    let grant = page.split('`').find(|text| text.starts_with("GRANT INSERT")).unwrap();
    client
        .batch_execute(&format!(
            "CREATE ROLE app LOGIN; CREATE ROLE clerk LOGIN; CREATE ROLE landlord LOGIN; GRANT CREATE ON SCHEMA public TO landlord;
             CREATE TABLE novels (id bigint PRIMARY KEY DEFAULT snowflake_next(), author_id bigint, title text); {grant}"
        ))
        .unwrap();
    let mut app = cluster.client_of("app", "postgres");
    let id: i64 = value(&mut app, "INSERT INTO novels (author_id, title) VALUES (1, 't') RETURNING id");
    assert!(id > 1_000_000_000_000);
    refused(&mut app, "INSERT INTO novels (id, title) VALUES (1, 't')", "42501");
    let mut landlord = cluster.client_of("landlord", "postgres");
    landlord.batch_execute(&block("segments.md", "CREATE FUNCTION order_number()").replace("```", "")).unwrap();
    let mut clerk = cluster.client_of("clerk", "postgres");
    refused(&mut clerk, "SELECT order_number()", "42501");
    client.batch_execute("GRANT EXECUTE ON FUNCTION snowflake_segment_next(text) TO landlord").unwrap();
    // There is no registry.
    refused(&mut clerk, "SELECT order_number()", "55000");
}

/// docs/evidence.md: each line of a table can be repeated. It has a command that exists, figures, a commit and a day.
#[test]
fn each_line_of_the_evidence_can_be_repeated() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
    let page = std::fs::read_to_string(root.join("docs/evidence.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| commit | date |"));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [.., commit, date] = cells[..] else { panic!("no commit and no day: {row}") };
        assert!(commit.len() == 12 && commit.bytes().all(|digit| digit.is_ascii_hexdigit()), "no commit: {row}");
        let day: Vec<u32> = date.split('-').filter_map(|part| part.parse().ok()).collect();
        assert!(matches!(day[..], [2026..=2100, 1..=12, 1..=31]), "no day: {row}");
        let (command, figures) =
            cells[..cells.len() - 2].iter().partition::<Vec<&str>, _>(|cell| cell.starts_with('`'));
        let [command] = command[..] else { panic!("not one command: {row}") };
        if let Some((_, target)) = command.split_once("make ") {
            let target = target.trim_matches('`').split(' ').next().unwrap();
            assert!(makefile.contains(&format!("\n{target}:")), "make has no {target}: {row}");
        } else if let Some((_, script)) = command.split_once("scripts/") {
            let script = script.trim_matches('`').split(' ').next().unwrap();
            assert!(root.join("scripts").join(script).is_file(), "there is no scripts/{script}: {row}");
        } else {
            assert!(command.contains("cargo test "), "{row}");
        }
        assert!(
            figures.last().is_some_and(|figure| figure.contains(|c: char| c.is_ascii_digit())),
            "no figures: {row}"
        );
        count += 1;
    }
    assert!(count > 10, "{count}");
}
