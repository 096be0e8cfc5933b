//! What docs/upgrades.md and docs/uninstalling.md say, step by step, with the statements that stand there.

use postgres::Client;
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::{Cluster, Stop, ids, value};
use std::path::Path;

/// The block of a page that begins with these words.
fn block(page: &str, start: &str) -> String {
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

/// IDs rise all the while, and a standby follows.
#[test]
fn an_update_is_taken_back_by_the_statements_of_the_page() {
    let cluster = Cluster::options().start();
    let standby = cluster.standby();
    let mut client = cluster.client();
    let update = block("upgrades.md", "ALTER EXTENSION pg_snowflake UPDATE;");
    client
        .batch_execute(
            "DROP EXTENSION pg_snowflake;
             CREATE EXTENSION pg_snowflake VERSION '0.1.0';
             CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next())",
        )
        .unwrap();
    let mut list = insert(&mut client);
    client.batch_execute(&update).unwrap();
    assert_ne!(version(&mut client), "0.1.0");
    list.extend(insert(&mut client));

    refused(&mut client, "ALTER EXTENSION pg_snowflake UPDATE TO '0.1.0'", "22023");
    client.batch_execute(&block("upgrades.md", "BEGIN;")).unwrap();
    assert_eq!(version(&mut client), "0.1.0");
    list.extend(insert(&mut client));
    cluster.restart(Stop::Fast);
    let mut client = cluster.client();
    list.extend(insert(&mut client));
    check::rising(&list);

    standby.catch_up_with(&cluster);
    let mut other = standby.client();
    assert_eq!(version(&mut other), "0.1.0");
    let read: i64 =
        value(&mut other, "SELECT count(*) FROM orders WHERE snowflake_timestamp(id) > now() - interval '1 hour'");
    assert_eq!(read, 4000);
}

/// In the order of the page: while a default or a view uses it, the extension is not dropped.
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
             INSERT INTO tickets VALUES (5, 5)",
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
    let columns = client
        .query(&block("uninstalling.md", "SELECT adrelid::regclass").replace("regclass AS", "regclass::text AS"), &[]);
    let columns: Vec<String> = columns.unwrap().iter().map(|row| row.get("table")).collect();
    assert_eq!(columns, ["orders", "events", "events_20260101"]);
    client.batch_execute("SELECT snowflake_release('orders'), snowflake_release('events')").unwrap();

    // The extension, but for what uses its functions.
    let error = refused(&mut client, "DROP EXTENSION pg_snowflake", "2BP01");
    assert!(error.detail().unwrap().contains("view orders_by_time"), "{error:?}");
    client.batch_execute("DROP VIEW orders_by_time; DROP EXTENSION pg_snowflake").unwrap();

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

/// The numbers of a text, without the commas between thousands.
fn numbers(text: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == ',' || letter == '.';
    let numbers = text.split(|letter| !is_part(letter)).map(|number| number.trim_matches([',', '.']).replace(',', ""));
    numbers.filter(|number| !number.is_empty()).collect()
}

/// docs/evidence.md: the numbers of a line that links to files are in one of them.
#[test]
fn the_figures_of_the_evidence_are_those_of_its_files() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = std::fs::read_to_string(docs.join("evidence.md")).unwrap();
    let (mut compared, mut linked) = (0, Vec::new());
    for line in page.lines() {
        let links: Vec<&str> = line.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        let files: Vec<&str> = links.into_iter().filter(|link| link.starts_with("evidence/")).collect();
        if files.is_empty() {
            continue;
        }
        let known: Vec<String> =
            files.iter().flat_map(|file| numbers(&std::fs::read_to_string(docs.join(file)).unwrap())).collect();
        // Not those in the names of the files.
        let text = files.iter().fold(line.to_owned(), |text, file| {
            text.replace(&format!("[{}]({file})", file.trim_start_matches("evidence/")), "")
        });
        for number in numbers(&text) {
            assert!(known.contains(&number), "{number} is not in {files:?}: {line}");
            compared += 1;
        }
        linked.extend(files.into_iter().map(str::to_owned));
    }
    assert!(compared > 20, "{compared}");
    for entry in std::fs::read_dir(docs.join("evidence")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(linked.contains(&format!("evidence/{name}")), "no line tells of {name}");
    }
}
