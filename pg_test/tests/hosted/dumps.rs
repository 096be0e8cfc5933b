//! Over to the library and back: a dump of either is restored into the other, and IDs go on above.

use snowflake_test::dump::{pg_restore, psql};
use snowflake_test::hosted::{self, DATABASE, create_database, run_script};
use snowflake_test::programs::{output, run};
use snowflake_test::{Cluster, Options, check, ids, value};
use std::path::{Path, PathBuf};

/// The commands of docs/reference/hosted.md by which a list is made of what is to be restored: of a dump of an extension, and of the script,
/// without and with privileges on its functions.
fn commands() -> [String; 3] {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/hosted.md")).unwrap();
    let steps = page.split("## To the library, and back").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let blocks: Vec<String> = steps
        .split("\n\n")
        .filter(|block| block.starts_with("       "))
        .map(|block| block.lines().map(|line| line.trim_start().to_owned() + "\n").collect())
        .collect();
    let [extension, script, privileges, restore] = <[String; 4]>::try_from(blocks).unwrap();
    assert_eq!(restore, "pg_restore --exit-on-error --use-list list --dbname shop shop.dump\n");
    let with_privileges = format!("{script}{privileges}");
    [extension, script, with_privileges]
}

/// What a dump has, besides the rows.
#[derive(Clone, Copy)]
enum Has {
    Extension,
    Script,
    ScriptForScript,
}

/// Rows, defaults, views, partitions, indexes.
const OBJECTS: &str = "
    CREATE TABLE stored (id bigint PRIMARY KEY DEFAULT snowflake_next(), note text);
    CREATE TABLE events (id bigint DEFAULT snowflake_next(), at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED,
        CHECK (snowflake_worker(id) >= 0)) PARTITION BY RANGE (id);
    SELECT snowflake_create_partitions('events', '1 year', '2026-01-01', '2036-01-01');
    CREATE VIEW decoded AS SELECT id, (snowflake_decode(id)).*, snowflake_to_text(id, 'base62') AS short
        FROM stored WHERE snowflake_between(id, '2025-01-01', '2100-01-01');
    CREATE INDEX by_time ON stored (snowflake_timestamp(id));
    CREATE FUNCTION snowflake_of_mine() RETURNS integer LANGUAGE sql RETURN 1;
    COMMENT ON FUNCTION snowflake_of_mine() IS 'mine';
    CREATE FUNCTION snowflake_next(note text) RETURNS text LANGUAGE sql RETURN note;
    CREATE TYPE snowflake_kind AS ENUM ('mine');
    CREATE TABLE snowflake_table (kind snowflake_kind);
    CREATE TABLE of_others (snowflake_id bigint DEFAULT 7, by_snowflake bigint DEFAULT 8, typed snowflake_id DEFAULT 9);
    CREATE TABLE by_snowflake (snowflake_parts integer DEFAULT 5);
    COMMENT ON COLUMN of_others.snowflake_id IS 'mine';
    CREATE FUNCTION my_snowflake_next() RETURNS integer LANGUAGE sql RETURN 3;";

const FILL: &str = "INSERT INTO stored (note) SELECT 'n' FROM generate_series(1, 500); INSERT INTO events SELECT FROM generate_series(1, 500)";

fn library(clock: &str) -> Cluster {
    let cluster = Cluster::options().patient().create();
    cluster.step_clock(clock);
    cluster.start();
    create_database(&cluster, DATABASE);
    cluster
}

fn hosted_in(options: Options, clock: &str) -> Cluster {
    let cluster = options.create();
    cluster.step_clock(clock);
    cluster.start();
    create_database(&cluster, DATABASE);
    cluster
}

/// A server where the extension in SQL is an ordinary extension.
fn extension(clock: &str) -> Cluster {
    hosted_in(hosted::options().on(hosted::installation()), clock)
}

fn script(clock: &str) -> Cluster {
    hosted_in(hosted::options(), clock)
}

fn owner(cluster: &Cluster, statements: &str) {
    cluster.client_of("owner", DATABASE).batch_execute(statements).unwrap();
}

fn stored(cluster: &Cluster) -> Vec<i64> {
    let query = "SELECT id FROM stored UNION ALL SELECT id FROM events ORDER BY id";
    ids(&cluster.client_of("owner", DATABASE).query(query, &[]).unwrap())
}

fn dump(cluster: &Cluster) -> PathBuf {
    let file = cluster.new_file("dump");
    run(cluster
        .program("pg_dump")
        .args(["--username=owner", "--format=custom", "--dbname", DATABASE, "--file"])
        .arg(&file));
    file
}

/// Restores what the page's commands leave of the table of contents, as the owner of the database.
fn restore(cluster: &Cluster, file: &Path, has: Has) {
    let folder = snowflake_test::directories::server_directory("list");
    let path = |name: &str| folder.path().join(name);
    std::fs::copy(file, path("shop.dump")).unwrap();
    std::fs::write(path("pg_snowflake--hosted--0.3.0.sql"), hosted::script()).unwrap();
    let commands = &commands()[has as usize];
    // The program is the first word of a line.
    let listed = run(cluster.program("pg_restore").arg("--list").arg(file));
    std::fs::write(path("all the lines"), listed).unwrap();
    let commands = commands.replace("pg_restore --list shop.dump", "cat 'all the lines'");
    run(std::process::Command::new("sh").current_dir(folder.path()).arg("-ec").arg(commands));
    let list = cluster.new_file("list");
    std::fs::copy(path("list"), &list).unwrap();
    run(pg_restore(cluster, "owner", DATABASE).arg("--exit-on-error").arg("--use-list").arg(&list).arg(file));
    let mine = "SELECT snowflake_of_mine() = 1 AND snowflake_next('a') = 'a' AND to_regclass('snowflake_table') IS NOT NULL \
                AND obj_description('snowflake_of_mine()'::regprocedure, 'pg_proc') = 'mine' AND my_snowflake_next() = 3 \
                AND col_description('of_others'::regclass, 1) = 'mine'";
    let mut client = cluster.client_of("owner", DATABASE);
    assert!(value::<bool>(&mut client, mine));
    client.batch_execute("TRUNCATE of_others, by_snowflake; INSERT INTO of_others DEFAULT VALUES; INSERT INTO by_snowflake DEFAULT VALUES").unwrap();
    let defaults = "SELECT snowflake_id = 7 AND by_snowflake = 8 AND typed = 9 AND snowflake_parts = 5 FROM of_others, by_snowflake";
    assert!(value::<bool>(&mut client, defaults));
}

/// All that is there is read by the same layout, and what is made is above it.
fn goes_on(cluster: &Cluster, before: &[i64], worker: i32) {
    assert_eq!(stored(cluster), before);
    owner(cluster, FILL);
    let mut client = cluster.client_of("owner", DATABASE);
    let all = stored(cluster);
    assert_eq!(all.len(), before.len() + 1000);
    check::distinct(std::slice::from_ref(&all));
    assert_eq!(&all[..before.len()], before, "new IDs are above");
    let is_new = format!("id > {}", before[before.len() - 1]);
    assert_eq!(
        value::<i64>(&mut client, &format!("SELECT count(*) FROM decoded WHERE worker_id = {worker} AND {is_new}")),
        500
    );
    for query in [
        "SELECT count(*) = (SELECT count(*) FROM stored) AND min(timestamp) > now() - interval '1 hour' \
         AND max(timestamp) < now() + interval '1 hour' FROM decoded",
        "SELECT bool_and(at = snowflake_timestamp(id) AND tableoid::regclass::text LIKE 'events\\_20%') FROM events",
        "SELECT bool_and(snowflake_from_text(short, 'base62') = id) FROM decoded",
    ] {
        assert!(value::<bool>(&mut client, query), "{query}");
    }
    let plan = "EXPLAIN SELECT * FROM events WHERE snowflake_between(id, '2026-01-01', '2026-02-01')";
    let plan: Vec<String> = client.query(plan, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    assert!(plan.concat().contains("events_20260101") && !plan.concat().contains("events_20270101"), "{plan:?}");
}

fn there_and_back(layout: &str) {
    let (settings, epoch) = match layout {
        "default" => ("default", "2024-01-01T00:00:00Z"),
        _ => ("timestamp=39 sequence=8 worker=16 tick=10ms", "2014-09-01T00:00:00Z"),
    };
    for is_extension in [true, false] {
        let make = if is_extension { extension } else { script };
        let first = make("+0s");
        if is_extension {
            owner(&first, "CREATE EXTENSION pg_snowflake")
        } else {
            run_script(&first, DATABASE)
        }
        owner(&first, &format!("SELECT snowflake_configure(3, layout => '{layout}')"));
        owner(&first, OBJECTS);
        owner(&first, FILL);
        let before = stored(&first);

        // A clock that is behind: the reservation is what keeps IDs above.
        let second = Cluster::options()
            .patient()
            .set(&format!("pg_snowflake.layout = '{settings}'"))
            .set(&format!("pg_snowflake.epoch = '{epoch}'"))
            .create();
        second.step_clock("-20s");
        second.start();
        create_database(&second, DATABASE);
        owner(&second, "CREATE EXTENSION pg_snowflake");
        restore(&second, &dump(&first), if is_extension { Has::Extension } else { Has::Script });
        second.step_clock("-0.5s");
        goes_on(&second, &before, 1);

        let before = stored(&second);
        let third = make("-30s");
        // Before the rows, as generated columns and constraints need the layout.
        if is_extension {
            owner(&third, "CREATE EXTENSION pg_snowflake")
        } else {
            run_script(&third, DATABASE)
        }
        owner(&third, &format!("SELECT snowflake_configure(4, layout => '{layout}')"));
        restore(&third, &dump(&second), Has::Extension);
        goes_on(&third, &before, 4);
    }
}

#[test]
fn to_the_library_and_back() {
    there_and_back("default");
}

#[test]
fn to_the_library_and_back_in_another_layout() {
    there_and_back("sonyflake");
}

/// A dump sets the layout after the rows. Rows of tables that need it before are refused, and not misread.
#[test]
fn a_restore_before_the_layout_is_known() {
    let first = extension("+0s");
    owner(&first, "CREATE EXTENSION pg_snowflake");
    owner(&first, "SELECT snowflake_configure(3, layout => 'sonyflake')");
    owner(&first, OBJECTS);
    owner(&first, FILL);
    let second = extension("+0s");
    let mut command = pg_restore(&second, "owner", DATABASE);
    let said = output(command.arg(dump(&first)));
    assert!(said.errors.contains("the layout of this database is not on record"), "{said:?}");
    let mut client = second.client_of("owner", DATABASE);
    // PostgreSQL 14 creates the table, whose rows are refused.
    if value(&mut client, "SELECT to_regclass('events') IS NOT NULL") {
        assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM events"), 0);
    }
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM stored"), 500);
    assert!(value::<bool>(&mut client, "SELECT snowflake_database_layout() LIKE '% tick=10ms %'"));
}

/// Privileges on the functions that were granted or revoked are in a dump. They come along within the edition; in the library, the functions
/// belong to a superuser.
#[test]
fn what_was_revoked_stays_revoked() {
    for is_extension in [true, false] {
        let make = |clock: &str, worker: i32| {
            let cluster = if is_extension { extension(clock) } else { script(clock) };
            match is_extension {
                true => owner(&cluster, "CREATE EXTENSION pg_snowflake"),
                false => run_script(&cluster, DATABASE),
            }
            owner(&cluster, &format!("SELECT snowflake_configure({worker})"));
            cluster.client().batch_execute("CREATE ROLE clerk LOGIN; CREATE ROLE loader LOGIN").unwrap();
            cluster
        };
        let first = make("+0s", 3);
        owner(&first, OBJECTS);
        owner(&first, FILL);
        let restrict = "
            REVOKE EXECUTE ON FUNCTION snowflake_next(), snowflake_next(integer), snowflake_to_text(bigint, text) FROM PUBLIC;
            REVOKE EXECUTE ON PROCEDURE snowflake_partition_default_rows(regclass, interval, boolean, text) FROM PUBLIC;
            REVOKE USAGE ON TYPE snowflake_parts FROM PUBLIC; GRANT USAGE ON TYPE snowflake_parts TO loader;
            GRANT EXECUTE ON FUNCTION snowflake_next(), snowflake_next(integer) TO loader; GRANT EXECUTE ON FUNCTION snowflake_status() TO clerk";
        owner(&first, restrict);
        let before = stored(&first);
        let second = make("-5s", 4);
        restore(&second, &dump(&first), if is_extension { Has::Extension } else { Has::ScriptForScript });
        goes_on(&second, &before, 4);
        let may = |role: &str, function: &str| -> bool {
            let may = format!("SELECT has_function_privilege('{role}', '{function}', 'EXECUTE')");
            value(&mut second.client_of("owner", DATABASE), &may)
        };
        for function in ["snowflake_next()", "snowflake_next(integer)"] {
            assert!(!may("clerk", function) && may("loader", function), "{is_extension}: {function}");
        }
        assert!(!may("loader", "snowflake_to_text(bigint, text)"), "{is_extension}");
        assert!(
            !may("loader", "snowflake_partition_default_rows(regclass, interval, boolean, text)"),
            "{is_extension}"
        );
        assert!(may("clerk", "snowflake_status()") && !may("loader", "snowflake_status()"), "{is_extension}");
        assert!(may("clerk", "snowflake_timestamp(bigint)"), "{is_extension}");
        let types = "SELECT has_type_privilege('loader', 'snowflake_parts', 'USAGE') AND NOT has_type_privilege('clerk', 'snowflake_parts', 'USAGE')";
        assert!(value::<bool>(&mut second.client_of("owner", DATABASE), types), "{is_extension}");
    }
}

/// Within the edition: the whole dump of a database with the script, in plain SQL.
#[test]
fn a_dump_of_a_script_has_all_of_it() {
    let first = script("+0s");
    run_script(&first, DATABASE);
    owner(&first, "SELECT snowflake_configure(3)");
    owner(&first, OBJECTS);
    owner(&first, FILL);
    let before = stored(&first);
    let file = first.new_file("sql");
    run(first.program("pg_dump").args(["--username=owner", "--dbname", DATABASE, "--file"]).arg(&file));
    let second = hosted::options().create();
    second.step_clock("-30s");
    second.start();
    // So that the database has another OID.
    second.client().batch_execute("CREATE DATABASE before").unwrap();
    create_database(&second, DATABASE);
    let mut command = psql(&second, "owner", DATABASE);
    run(command.args(["--set=ON_ERROR_STOP=1", "--file"]).arg(&file));
    let error = check::refused(&mut second.client_of("owner", DATABASE), "SELECT snowflake_next()", "55000");
    assert_eq!(error.message(), "this database has no worker ID");
    owner(&second, "SELECT snowflake_configure(4)");
    goes_on(&second, &before, 4);
}

/// The reservation of a dump that is further ahead than the clock may be behind.
#[test]
fn a_dump_of_an_hour_ahead() {
    let first = script("+3600s");
    run_script(&first, DATABASE);
    owner(&first, "SELECT snowflake_configure(3)");
    owner(&first, OBJECTS);
    owner(&first, FILL);
    let second = library("+0s");
    owner(&second, "CREATE EXTENSION pg_snowflake");
    restore(&second, &dump(&first), Has::Script);
    let third = script("+0s");
    run_script(&third, DATABASE);
    owner(&third, "SELECT snowflake_configure(4)");
    restore(&third, &dump(&second), Has::Extension);
    let error = check::refused(&mut third.client_of("owner", DATABASE), "SELECT snowflake_next()", "55000");
    assert!(
        error.message().starts_with("the clock is 3") && error.message().ends_with(" s behind the last ID"),
        "{error:?}"
    );
    third.step_clock("+3300s");
    owner(&third, FILL);
    check::distinct(&[stored(&third)]);
}
