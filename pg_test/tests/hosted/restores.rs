//! Dumps that are restored where the extension in SQL is in use: PostgreSQL itself refuses to set another layout, and IDs go on from the
//! clock.

use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::dump::{pg_restore, psql};
use snowflake_test::hosted::{self, DATABASE, create_database, run_script};
use snowflake_test::programs::{Output, output, run};
use snowflake_test::query::next;
use snowflake_test::{Cluster, ids, value};
use std::fs;
use std::path::PathBuf;

const OUT_OF_BOUNDS: &str = "is out of bounds for sequence";

/// A server of the extension in SQL as an extension or by the script, which is configured for this layout.
fn start(is_extension: bool, layout: &str, clock: &str) -> Cluster {
    let options = if is_extension { hosted::options().on(hosted::installation()) } else { hosted::options() };
    let cluster = options.create();
    cluster.step_clock(clock);
    cluster.start();
    create_database(&cluster, DATABASE);
    if is_extension {
        owner(&cluster).batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    } else {
        run_script(&cluster, DATABASE);
    }
    owner(&cluster).batch_execute(&format!("SELECT snowflake_configure(3, layout => '{layout}')")).unwrap();
    cluster
}

fn owner(cluster: &Cluster) -> Client {
    cluster.client_of("owner", DATABASE)
}

fn fill(client: &mut Client, table: &str) {
    let table_of =
        format!("CREATE TABLE IF NOT EXISTS {table} (id bigint PRIMARY KEY DEFAULT snowflake_next(), note text)");
    client.batch_execute(&table_of).unwrap();
    client.batch_execute(&format!("INSERT INTO {table} (note) SELECT 'n' FROM generate_series(1, 100)")).unwrap();
}

/// All IDs of `sales`, and their times.
fn read(client: &mut Client) -> (Vec<i64>, String) {
    let all = ids(&client.query("SELECT id FROM sales ORDER BY id", &[]).unwrap());
    (all, value(client, "SELECT md5(string_agg(snowflake_timestamp(id)::text, ' ' ORDER BY id)) FROM sales"))
}

fn goes_on(client: &mut Client, before: &[i64]) {
    fill(client, "sales");
    let all = read(client).0;
    assert_eq!(&all[..before.len()], before, "new IDs are above");
    assert_eq!(all.len(), before.len() + 100);
    let off = "SELECT extract(epoch FROM snowflake_timestamp(max(id)) - clock_timestamp())::float8 FROM sales";
    let off: f64 = value(client, off);
    assert!(off.abs() < 5.0, "IDs are {off} s off the clock");
}

fn dump(cluster: &Cluster, options: &[&str]) -> PathBuf {
    let file = cluster.new_file("dump");
    let dump = ["--username=owner", "--format=custom", "--dbname", DATABASE, "--file"];
    run(cluster.program("pg_dump").args(dump).arg(&file).args(options));
    file
}

fn restore(cluster: &Cluster, file: &PathBuf) -> Output {
    output(pg_restore(cluster, "owner", DATABASE).arg(file))
}

const EPOCH: &str = "timestamp=41 worker=10 sequence=12 epoch=2015-01-01T00:00:00Z";
const OTHER: &str = "timestamp=41 worker=9 sequence=13 epoch=2015-01-01T00:00:00Z";

#[test]
fn an_extension_in_use_keeps_its_layout_and_time() {
    let target = start(true, "default", "+0s");
    fill(&mut owner(&target), "sales");
    for (layout, clock) in [
        ("default", "+0s"),
        (EPOCH, "+0s"),
        (OTHER, "+0s"),
        ("default", "+7200s"),
        ("default", "+60s"),
        (OTHER, "+7200s"),
        ("default", "-60s"),
    ] {
        let source = start(true, layout, clock);
        fill(&mut owner(&source), "orders");
        for form in [&["--table=orders", "--extension=pg_snowflake"][..], &["--data-only"], &[]] {
            let case = format!("{layout}, {clock}, {form:?}");
            let mut client = owner(&target);
            client.batch_execute("DROP TABLE IF EXISTS orders").unwrap();
            if form == ["--data-only"] {
                client.batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY, note text)").unwrap();
            }
            let before = read(&mut client);
            let log = target.log_length();
            let said = restore(&target, &dump(&source, form));
            assert_eq!(said.errors.contains(OUT_OF_BOUNDS), layout != "default", "{case}: {said:?}");
            assert_eq!(said.success, layout == "default", "{case}: {said:?}");
            for client in [&mut client, &mut owner(&target)] {
                assert_eq!(read(client), before, "{case}");
            }
            // Until the reservation from before is used up, nobody looks at the new one.
            std::thread::sleep(snowflake_test::millis(1500));
            goes_on(&mut client, &before.0);
            let is_left = target.log_since(log).contains("ahead of the clock was not taken over");
            assert_eq!(is_left, ["+7200s", "+60s"].contains(&clock), "{case}");
            assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM orders"), 100, "{case}");
        }
    }
}

/// Of a script, a dump has all sequences. That the others were set is noticed; the layout is not replaced.
#[test]
fn a_script_in_use_keeps_its_layout() {
    let (source, target) = (start(false, OTHER, "+0s"), start(false, "default", "+0s"));
    let mut client = owner(&target);
    fill(&mut client, "sales");
    next(&mut owner(&source));
    let before = read(&mut client);
    let said = restore(&target, &dump(&source, &["--data-only", "--schema=_snowflake"]));
    assert!(!said.success && said.errors.matches(OUT_OF_BOUNDS).count() == 2, "{said:?}");
    assert_eq!(read(&mut client), before);
    refused(&mut client, "SELECT snowflake_next()", "55000");
    client.batch_execute("SELECT snowflake_configure(3)").unwrap();
    goes_on(&mut client, &before.0);
}

/// As long as no ID was made, the layout can be chosen again, also where that is rolled back.
#[test]
fn a_layout_is_chosen_again_before_the_first_id() {
    let cluster = start(false, "default", "+0s");
    let mut client = owner(&cluster);
    client.batch_execute("BEGIN; SELECT snowflake_configure(3, layout => 'sonyflake'); ROLLBACK").unwrap();
    client.batch_execute("SELECT snowflake_configure(3, layout => 'sonyflake')").unwrap();
    client.batch_execute(&format!("BEGIN; SELECT snowflake_configure(4, layout => '{OTHER}'); ROLLBACK")).unwrap();
    client.batch_execute("SELECT snowflake_configure(4)").unwrap();
    assert!(value::<String>(&mut client, "SELECT snowflake_database_layout()").contains("tick=10ms"));
    fill(&mut client, "sales");
    let before = read(&mut client);
    goes_on(&mut client, &before.0);
    refused(&mut client, &format!("SELECT snowflake_configure(4, layout => '{OTHER}')"), "55000");
}

/// The script of 0.4.0 bounds the layout of a database that an earlier one has made IDs in.
#[test]
fn an_update_protects_the_layout_in_use() {
    for (version, script) in hosted::released() {
        let cluster = hosted::options().create();
        cluster.start();
        create_database(&cluster, DATABASE);
        let file = cluster.new_file("earlier.sql");
        fs::write(&file, script).unwrap();
        run(psql(&cluster, "owner", DATABASE).args(["--set=ON_ERROR_STOP=1", "--file"]).arg(&file));
        let mut client = owner(&cluster);
        client.batch_execute("SELECT snowflake_configure(3)").unwrap();
        fill(&mut client, "sales");
        let set = "SELECT setval('_snowflake.epoch', 1420070400000000)";
        let before = read(&mut client);
        run_script(&cluster, DATABASE);
        let error = refused(&mut client, set, "22003");
        assert!(error.message().contains(OUT_OF_BOUNDS), "{version}: {error:?}");
        assert_eq!(read(&mut client), before, "{version}");
        goes_on(&mut client, &before.0);
    }
}
