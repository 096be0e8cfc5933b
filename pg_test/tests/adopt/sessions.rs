//! Several sessions at once.

use snowflake_test::check::{distinct, refused, wait_for};
use snowflake_test::load::End;
use snowflake_test::{Cluster, ids, value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const TABLES: &str = "
    CREATE TABLE orders (id serial PRIMARY KEY, parent_id integer REFERENCES orders);
    CREATE TABLE lines (id bigserial PRIMARY KEY, order_id integer NOT NULL REFERENCES orders);
    INSERT INTO orders SELECT FROM generate_series(1, 1000)";

const TYPES: &str = "SELECT string_agg(format_type(atttypid, NULL), ' ' ORDER BY attrelid, attnum) FROM pg_attribute \
                     WHERE attrelid IN ('orders'::regclass, 'lines'::regclass) AND attnum > 0";

fn server() -> Cluster {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute(TABLES).unwrap();
    cluster
}

fn wait_until_it_waits(cluster: &Cluster, call: &str) {
    let query = format!(
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{call}%' \
         AND pid <> pg_backend_pid()"
    );
    wait_for(&format!("{call} waits"), || value(&mut cluster.client(), &query));
}

/// Writers that run all the time wait, go on, and lose nothing. They lock the tables in another order than the adoption,
/// so some may end with a deadlock, as with any ALTER TABLE.
#[test]
fn writers_go_on() {
    let cluster = server();
    let done = AtomicBool::new(false);
    let written: Vec<Vec<i64>> = thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = cluster.client();
                    let mut written = Vec::new();
                    let mut after = 0;
                    while after < 50 {
                        after += i32::from(done.load(Ordering::SeqCst));
                        // Written by clients that know of bigint; the plan of the statement is made anew.
                        let insert = "WITH o AS (INSERT INTO orders DEFAULT VALUES RETURNING id) \
                                      INSERT INTO lines (order_id) SELECT id FROM o RETURNING order_id::bigint";
                        match client.query(insert, &[]) {
                            Ok(rows) => written.extend(ids(&rows)),
                            Err(error) => {
                                let code = error.code().map(|code| code.code().to_owned());
                                assert_eq!(code.as_deref(), Some("40P01"), "{error:?}");
                            }
                        }
                    }
                    written
                })
            })
            .collect();
        let stops = End(&done);
        let enough = "SELECT count(*) > 1200 FROM orders";
        wait_for("some are written", || value(&mut cluster.client(), enough));
        let first =
            cluster.retry(|client| Ok(client.query_one("SELECT first_id FROM snowflake_adopt('orders')", &[])?.get(0)));
        let first: i64 = first;
        drop(stops);
        let written: Vec<Vec<i64>> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        assert!(written.iter().flatten().all(|&id| id >= first || id < 1_000_000_000));
        assert!(written.iter().flatten().any(|&id| id >= first) && written.iter().flatten().any(|&id| id < first));
        written
    });
    let count = distinct(&written);
    let mut client = cluster.client();
    let rows: i64 = value(&mut client, "SELECT count(*) FROM lines JOIN orders ON order_id = orders.id");
    assert_eq!(rows, i64::try_from(count).unwrap());
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM orders"), rows + 1000);
}

#[test]
fn a_timeout_leaves_all_as_it_was() {
    let cluster = server();
    let mut holder = cluster.client();
    let mut holding = holder.transaction().unwrap();
    holding.batch_execute("INSERT INTO lines (order_id) VALUES (1)").unwrap();
    for (setting, code) in [("lock_timeout", "55P03"), ("statement_timeout", "57014")] {
        let mut client = cluster.client();
        client.batch_execute(&format!("SET {setting} = '200ms'")).unwrap();
        refused(&mut client, "SELECT * FROM snowflake_adopt('orders')", code);
        assert_eq!(value::<String>(&mut client, TYPES), "integer integer bigint integer");
        let locks = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock' \
                     AND locktype = 'relation'";
        assert_eq!(value::<i64>(&mut client, locks), 0);
    }
    holding.commit().unwrap();
    cluster.client().batch_execute("SELECT snowflake_adopt('orders')").unwrap();
}

/// What is committed while the adoption waits for its locks, it sees: a view that stands in the way, a table that refers to
/// the key, and a higher value.
#[test]
fn what_others_commit_meanwhile_counts() {
    for (change, seen) in [
        ("CREATE VIEW v AS SELECT id FROM orders", false),
        ("CREATE TABLE late (order_id integer REFERENCES orders)", true),
        ("ALTER TABLE orders RENAME TO renamed", true),
        ("ALTER TABLE orders ADD COLUMN more integer REFERENCES orders", true),
    ] {
        let cluster = server();
        let mut other = cluster.client();
        let mut changing = other.transaction().unwrap();
        changing.batch_execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE").unwrap();
        changing.batch_execute(change).unwrap();
        changing.batch_execute("INSERT INTO lines (order_id) VALUES (7)").unwrap();
        thread::scope(|scope| {
            let adoption =
                scope.spawn(|| cluster.client().query("SELECT highest_before FROM snowflake_adopt('orders')", &[]));
            wait_until_it_waits(&cluster, "FROM snowflake_adopt");
            changing.commit().unwrap();
            match adoption.join().unwrap() {
                Ok(rows) => {
                    assert!(seen, "{change}");
                    assert_eq!(rows[0].get::<_, i64>(0), 1000);
                }
                Err(error) => {
                    let error = error.as_db_error().unwrap();
                    assert!(!seen && error.detail().unwrap().contains("view public.v"), "{change}: {error:?}");
                }
            }
        });
        let narrow = "SELECT count(*) FROM pg_constraint f JOIN pg_attribute ON attrelid = conrelid \
                      AND attnum = conkey[1] WHERE contype = 'f' AND atttypid <> 'int8'::regtype";
        assert_eq!(value::<i64>(&mut cluster.client(), narrow), if seen { 0 } else { 2 }, "{change}");
    }
}

/// Two adoptions of tables that refer to each other, at the same time: the locks have one order.
#[test]
fn two_adoptions_do_not_deadlock() {
    let cluster = Cluster::options().start();
    for round in 0..10 {
        let tables = format!(
            "CREATE TABLE a{round} (id serial PRIMARY KEY, b integer); CREATE TABLE b{round} (id serial PRIMARY KEY, \
             a integer REFERENCES a{round}); ALTER TABLE a{round} ADD FOREIGN KEY (b) REFERENCES b{round}"
        );
        cluster.client().batch_execute(&tables).unwrap();
        cluster.sessions(2, |session, client| {
            let name = ["a", "b"][session];
            client.batch_execute(&format!("SELECT snowflake_adopt('{name}{round}')")).unwrap();
        });
    }
}

/// A crash in the middle: all as it was.
#[test]
fn a_crash_undoes_it() {
    let cluster = server();
    let mut client = cluster.client();
    let mut transaction = client.transaction().unwrap();
    transaction.batch_execute("SELECT snowflake_adopt('orders')").unwrap();
    let pid: i32 = transaction.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    assert!(cluster.crash(pid));
    drop(transaction);
    let types: String = cluster.retry(|client| Ok(client.query_one(TYPES, &[])?.get(0)));
    assert_eq!(types, "integer integer bigint integer");
    cluster.client().batch_execute("INSERT INTO orders DEFAULT VALUES").unwrap();
}

/// On a standby and without the library, a plan can be made; nothing can be done.
#[test]
fn a_standby_shows_the_plan() {
    let cluster = server();
    let standby = cluster.standby();
    standby.catch_up_with(&cluster);
    let statements: i64 =
        value(&mut standby.client(), "SELECT count(*) FROM snowflake_adopt_plan('orders') WHERE kind = 'statement'");
    assert_eq!(statements, 6);
    refused(&mut standby.client(), "SELECT * FROM snowflake_adopt('orders')", "25006");
}

/// Where the server cannot make IDs, no table is made to need them.
#[test]
fn a_server_without_a_worker_adopts_nothing() {
    let cluster = Cluster::options().set("pg_snowflake.worker_id = -1").start();
    cluster.client().batch_execute(TABLES).unwrap();
    refused(&mut cluster.client(), "SELECT * FROM snowflake_adopt('orders')", "55000");
    assert_eq!(value::<String>(&mut cluster.client(), TYPES), "integer integer bigint integer");
}

/// The locks that the plan says are all that are taken on tables.
#[test]
fn the_plan_names_all_locks() {
    let cluster = server();
    let mut client = cluster.client();
    client.batch_execute("CREATE TABLE others (id integer PRIMARY KEY)").unwrap();
    client.batch_execute("ALTER TABLE lines ADD FOREIGN KEY (order_id) REFERENCES others NOT VALID").unwrap();
    let planned: String = value(
        &mut client,
        "SELECT string_agg(DISTINCT t, ' ' ORDER BY t) FROM snowflake_adopt_plan('orders'), \
         regexp_split_to_table(locks, ', ') t WHERE t NOT LIKE '%seq'",
    );
    let mut transaction = client.transaction().unwrap();
    transaction.batch_execute("SELECT snowflake_adopt('orders')").unwrap();
    let taken = super::locked(&mut transaction);
    assert_eq!(planned, taken);
    assert_eq!(planned, "public.lines public.orders public.others");
}
