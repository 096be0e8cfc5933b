//! Tables too big to be rewritten at once: `examples/moving-in/staged.sql`, with clients that write, and a server that is
//! killed in the middle.

use super::schema::{difference, schema};
use postgres::Client;
use postgres::error::SqlState;
use snowflake_test::check::wait_for;
use snowflake_test::load::End;
use snowflake_test::{Cluster, Stop, run, value};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TABLES: &str = "
    CREATE TABLE orders (id serial PRIMARY KEY, parent_id integer REFERENCES orders, note text DEFAULT 'n');
    CREATE TABLE lines (order_id integer DEFAULT 1 REFERENCES orders ON DELETE CASCADE,
        line integer CHECK (order_id > 0),
        PRIMARY KEY (order_id, line) INCLUDE (extra), extra integer);
    CREATE INDEX ON orders (parent_id);
    COMMENT ON COLUMN orders.id IS 'which order';
    COMMENT ON CONSTRAINT lines_order_id_fkey ON lines IS 'of which order';
    COMMENT ON INDEX orders_pkey IS 'the key';
    INSERT INTO orders (parent_id) SELECT nullif(n / 2, 0) FROM generate_series(1, 20000) n;
    INSERT INTO lines SELECT n, 1 FROM generate_series(1, 20000) n;";

const COLUMNS: [(&str, &str); 3] = [("lines", "order_id"), ("orders", "parent_id"), ("orders", "id")];

fn server() -> Cluster {
    let cluster = Cluster::options().set("autovacuum = off").start();
    cluster.client().batch_execute(TABLES).unwrap();
    load_staged(&cluster);
    cluster
}

/// Loads the script as psql does.
pub fn load_staged(cluster: &Cluster) {
    load_staged_in(cluster, "postgres");
}

/// The same in another database.
pub fn load_staged_in(cluster: &Cluster, database: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/moving-in/staged.sql");
    // The server's user may not be able to read the checkout; and psql's own commands are not for the server.
    let script = std::fs::read_to_string(script).unwrap();
    let statements: Vec<&str> = script.lines().filter(|line| !line.starts_with('\\')).collect();
    cluster.client_of("postgres", database).batch_execute(&statements.join("\n")).unwrap();
}

pub fn call(client: &mut Client, call: &str) {
    client.batch_execute(call).unwrap_or_else(|error| panic!("{call}: {error:?}"));
}

fn prepare(cluster: &Cluster) {
    let mut client = cluster.client();
    for (table, column) in COLUMNS {
        call(&mut client, &format!("CALL moving.prepare('{table}', '{column}')"));
    }
}

/// As psql's \gexec does.
pub fn make_indexes(cluster: &Cluster) {
    make_indexes_in(cluster, "postgres");
}

/// The same in another database.
pub fn make_indexes_in(cluster: &Cluster, database: &str) {
    let mut client = cluster.client_of("postgres", database);
    for row in client.query("SELECT moving.index_statements()", &[]).unwrap() {
        call(&mut client, row.get(0));
    }
}

const LEFT: &str = "SELECT (SELECT count(*) FROM orders WHERE id_moving IS DISTINCT FROM id \
                    OR parent_id_moving IS DISTINCT FROM parent_id) + (SELECT count(*) \
                    FROM lines WHERE order_id_moving IS DISTINCT FROM order_id)";

#[test]
fn a_table_moves_while_clients_write_and_the_server_is_killed() {
    let cluster = server();
    let before = schema(&cluster, "postgres");
    prepare(&cluster);
    let stop = AtomicBool::new(false);
    let written: Vec<i64> = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written: Vec<i64> = Vec::new();
            while !stop.load(Ordering::SeqCst) {
                // Until the server is up again.
                let mut client = cluster.client_once_up("postgres");
                let insert = "WITH o AS (INSERT INTO orders (parent_id) VALUES (7) RETURNING id), u AS (UPDATE orders \
                              SET parent_id = 8 WHERE id = (SELECT 1 + (random() * 19999)::integer)) \
                              INSERT INTO lines (order_id, line) SELECT id, 1 FROM o RETURNING order_id::bigint";
                while !stop.load(Ordering::SeqCst) {
                    match client.query(insert, &[]) {
                        Ok(rows) => written.push(rows[0].get(0)),
                        // The server was killed; or the swap took the tables in another order.
                        Err(_) => break,
                    }
                }
            }
            written
        });
        let stops = End(&stop);
        // Killed again and again, after some batches.
        for _ in 0..3 {
            let done: i64 = value(&mut cluster.client(), "SELECT sum(next_block)::bigint FROM moving.columns");
            let mut client = cluster.client();
            let backfill = scope.spawn(move || client.batch_execute("CALL moving.backfill(1, '100 ms')"));
            let further = format!("SELECT sum(next_block) > {done} + 10 FROM moving.columns");
            wait_for("some batches are done", || value(&mut cluster.client(), &further));
            cluster.restart(Stop::Kill);
            assert!(backfill.join().unwrap().is_err());
        }
        let mut client = cluster.client();
        assert!(value::<i64>(&mut client, LEFT) > 0, "killed in the middle");
        call(&mut client, "CALL moving.backfill(1000, '0')");
        assert_eq!(value::<i64>(&mut client, LEFT), 0);
        make_indexes(&cluster);
        call(&mut client, "CALL moving.check()");
        // A deadlock with a writer, or a lock that is not granted in time: once more.
        let swap = "CALL moving.swap('orders', 'id')";
        cluster.retry(|client| client.batch_execute(swap));
        // Writers go on with IDs of the new kind.
        wait_for("new orders", || {
            value(
                &mut cluster.client(),
                "SELECT count(*) > 100 FROM orders WHERE id >= (SELECT first_id FROM moving.result)",
            )
        });
        call(&mut client, "CALL moving.validate()");
        call(&mut client, "CALL moving.finish()");
        drop(stops);
        writer.join().unwrap()
    });
    let mut client = cluster.client();
    for id in &written {
        let found = format!("SELECT count(*) FROM orders JOIN lines ON order_id = id WHERE id = {id}");
        assert_eq!(value::<i64>(&mut client, &found), 1, "{id}");
    }
    call(&mut client, "CALL moving.remove()");
    // What differs from before is what should.
    let (gone, new) = difference(&before, &schema(&cluster, "postgres"));
    let is_about_columns =
        |line: &String| line.contains("integer") || line.contains("bigint") || line.contains("DEFAULT");
    let [gone, new] =
        [gone, new].map(|lines| lines.into_iter().filter(|line| !line.starts_with("--")).collect::<Vec<_>>());
    assert!(new.iter().all(is_about_columns) && !new.iter().any(|line| line.contains("moving")), "{gone:#?} {new:#?}");
    let has = |text: &str| new.iter().any(|line| line.starts_with(text));
    assert!(has("id bigint DEFAULT public.snowflake_next() NOT NULL"), "{new:#?}");
    assert!(!gone.iter().any(|line| line.contains("COMMENT") || line.contains("CONSTRAINT")), "{gone:#?}");
    // The sequence is there for the way back.
    assert!(!gone.iter().any(|line| line.contains("CREATE SEQUENCE")), "{gone:#?}");
    let valid: bool =
        value(&mut client, "SELECT bool_and(convalidated) FROM pg_constraint WHERE contype IN ('f', 'c')");
    assert!(valid);
}

/// Each step says what is missing.
#[test]
fn the_swap_waits_for_all_that_comes_before_it() {
    let cluster = server();
    let mut client = cluster.client();
    call(&mut client, "CALL moving.prepare('orders', 'id')");
    let mut missing = |texts: &[&str]| {
        let error = client.batch_execute("CALL moving.swap('orders', 'id')").unwrap_err();
        let detail = error.as_db_error().and_then(|error| error.detail()).unwrap_or_default().to_owned();
        for text in texts {
            assert!(detail.contains(text), "{detail}");
        }
    };
    missing(&["lines.order_id has not been prepared", "orders.parent_id has not been prepared", "has not proved"]);
    prepare(&cluster);
    cluster.client().batch_execute("CALL moving.backfill(1000, '0')").unwrap();
    missing(&["has not proved column public.orders.id_moving", "the index for public.orders_pkey is missing"]);
    make_indexes(&cluster);
    cluster.client().batch_execute("CALL moving.check()").unwrap();
    cluster.client().batch_execute("CREATE VIEW v AS SELECT id FROM orders").unwrap();
    missing(&["view public.v"]);
    cluster.client().batch_execute("DROP VIEW v; CALL moving.swap('orders', 'id')").unwrap();
}

#[test]
fn it_can_be_abandoned() {
    let cluster = server();
    let before = schema(&cluster, "postgres");
    prepare(&cluster);
    cluster.client().batch_execute("CALL moving.backfill(10, '0')").unwrap();
    make_indexes(&cluster);
    cluster.client().batch_execute("CALL moving.check()").unwrap();
    cluster.client().batch_execute("CALL moving.abandon()").unwrap();
    assert_eq!(schema(&cluster, "postgres"), before);
}

/// A statement that waits for an ACCESS EXCLUSIVE lock keeps all others waiting, too. So each step gives up after a while, and can be called again.
#[test]
fn no_step_keeps_others_waiting_for_long() {
    let cluster = server();
    let mut reader = cluster.client();
    let steps = |steps: &[&str]| {
        let waits: Vec<_> = steps
            .iter()
            .map(|step| {
                let mut client = cluster.client();
                // What a session has set itself holds.
                client.batch_execute("SET lock_timeout = '100ms'; SET statement_timeout = '1min'").unwrap();
                assert_eq!(
                    client.batch_execute(step).unwrap_err().code(),
                    Some(&SqlState::LOCK_NOT_AVAILABLE),
                    "{step}"
                );
                client.batch_execute("RESET lock_timeout").unwrap();
                let begun = Instant::now();
                assert_eq!(
                    client.batch_execute(step).unwrap_err().code(),
                    Some(&SqlState::LOCK_NOT_AVAILABLE),
                    "{step}"
                );
                begun.elapsed()
            })
            .collect();
        assert!(
            waits.iter().all(|wait| *wait > Duration::from_secs(4) && *wait < Duration::from_secs(60)),
            "{waits:?}"
        );
    };
    let read = "BEGIN; SELECT count(*) FROM orders";
    call(&mut reader, read);
    steps(&["CALL moving.prepare('orders', 'id')"]);
    call(&mut reader, "COMMIT");
    prepare(&cluster);
    call(&mut reader, read);
    steps(&["CALL moving.abandon()"]);
    call(&mut reader, "COMMIT");
    cluster.client().batch_execute("CALL moving.abandon()").unwrap();
    prepare(&cluster);
    cluster.client().batch_execute("CALL moving.backfill(1000, '0')").unwrap();
    make_indexes(&cluster);
    call(&mut reader, read);
    steps(&["CALL moving.check()", "CALL moving.swap('orders', 'id')"]);
    call(&mut reader, "COMMIT");
    cluster.client().batch_execute("CALL moving.check()").unwrap();
    cluster.client().batch_execute("CALL moving.swap('orders', 'id')").unwrap();
    cluster.client().batch_execute("CALL moving.validate()").unwrap();
    call(&mut reader, read);
    steps(&["CALL moving.finish()"]);
    call(&mut reader, "COMMIT");
    cluster.client().batch_execute("CALL moving.finish()").unwrap();
    cluster.client().batch_execute("CALL moving.remove()").unwrap();
}

/// Rows that VACUUM FULL has moved are visited again.
#[test]
fn a_rewrite_in_the_middle_is_noticed() {
    let cluster = server();
    prepare(&cluster);
    let mut client = cluster.client();
    call(&mut client, "UPDATE moving.columns SET next_block = blocks / 2");
    call(&mut client, "VACUUM FULL orders");
    call(&mut client, "VACUUM FULL lines");
    call(&mut client, "CALL moving.backfill(10, '0')");
    assert_eq!(value::<i64>(&mut client, LEFT), 0);
}

/// The script runs in psql as it stands.
#[test]
fn psql_reads_it() {
    let cluster = server();
    cluster.client().batch_execute("DROP SCHEMA moving CASCADE").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/moving-in/staged.sql");
    let copy = cluster.new_file("staged.sql");
    std::fs::copy(script, &copy).unwrap();
    run(cluster.program("psql").args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file"]).arg(copy));
    prepare(&cluster);
}

/// Whatever is left out, and whatever is called then, clients write.
#[test]
fn it_never_ends_half_way() {
    let cluster = server();
    let mut client = cluster.client();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/moving-in/staged.sql");
    let copy = cluster.new_file("staged.sql");
    std::fs::copy(script, &copy).unwrap();
    call(&mut client, "DROP SCHEMA moving CASCADE");
    // As somebody pastes it, who forgets one of the columns; psql goes on after errors.
    let steps = format!(
        "\\i {}\n\\set ON_ERROR_STOP off\nCALL moving.prepare('orders', 'parent_id');\nCALL moving.prepare('orders', 'id');\n\
         CALL moving.backfill(1000, '0');\nSELECT moving.index_statements() \\gexec\nCALL moving.check();\n\
         CALL moving.swap('orders', 'id');\nCALL moving.validate();\nCALL moving.finish();\nCALL moving.remove();\n",
        copy.display()
    );
    let pasted = cluster.new_file("pasted.sql");
    std::fs::write(&pasted, steps).unwrap();
    let mut psql = cluster.program("psql");
    let output = snowflake_test::programs::output(psql.args(["--no-psqlrc", "--quiet", "--file"]).arg(&pasted));
    let errors = output.errors;
    assert!(
        errors.contains("lines.order_id has not been prepared") && errors.contains("the move is not finished"),
        "{errors}"
    );
    let write = "INSERT INTO orders (parent_id) VALUES (1); UPDATE orders SET parent_id = 2 WHERE id = 3;
                 INSERT INTO lines VALUES (3, 77); UPDATE lines SET extra = 1, order_id = 4 WHERE line = 77;
                 DELETE FROM lines WHERE line = 77";
    call(&mut client, write);
    call(&mut client, "DROP SCHEMA moving CASCADE");
    call(&mut client, write);
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM pg_constraint WHERE conname LIKE '%moving'"), 0);
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE '%moving%'"), 0);
}

/// The same after each of the steps.
#[test]
fn the_schema_can_be_dropped_at_any_time() {
    const STEPS: [&str; 8] = [
        "CALL moving.prepare('lines', 'order_id')",
        "CALL moving.prepare('orders', 'parent_id'); CALL moving.prepare('orders', 'id')",
        "CALL moving.backfill(1000, '0')",
        "indexes",
        "CALL moving.check()",
        "CALL moving.swap('orders', 'id')",
        "CALL moving.validate()",
        "CALL moving.finish()",
    ];
    let cluster = server();
    let mut admin = cluster.client();
    for last in 0..STEPS.len() {
        let database = format!("after_{last}");
        call(&mut admin, &format!("CREATE DATABASE {database} TEMPLATE postgres"));
        let mut client = cluster.client_of("postgres", &database);
        for step in &STEPS[..=last] {
            if *step == "indexes" {
                for row in client.query("SELECT moving.index_statements()", &[]).unwrap() {
                    call(&mut client, row.get(0));
                }
            } else {
                step.split("; ").for_each(|step| call(&mut client, step));
            }
        }
        if last + 1 < STEPS.len() {
            snowflake_test::check::refused(&mut client, "CALL moving.remove()", "P0001");
        }
        let write = "INSERT INTO orders (parent_id) VALUES (1); UPDATE orders SET parent_id = 2 WHERE id = 3;
                     UPDATE lines SET extra = 1, order_id = (SELECT max(id) FROM orders) WHERE order_id = 7";
        call(&mut client, write);
        call(&mut client, "DROP SCHEMA moving CASCADE");
        call(&mut client, write);
    }
}

/// An identity, of the key and of another column, with all that belongs to it; and the way back.
#[test]
fn identities_are_made_again_and_come_back() {
    let cluster = server();
    let mut client = cluster.client();
    call(
        &mut client,
        "DROP TABLE lines, orders; CREATE ROLE reader;
         CREATE TABLE orders (id integer GENERATED ALWAYS AS IDENTITY (INCREMENT 2 MAXVALUE 90000 CACHE 7) PRIMARY KEY,
             parent_id integer NOT NULL GENERATED BY DEFAULT AS IDENTITY REFERENCES orders);
         GRANT USAGE ON SEQUENCE orders_id_seq TO reader; COMMENT ON SEQUENCE orders_id_seq IS 'of orders';
         INSERT INTO orders SELECT FROM generate_series(1, 1) n; INSERT INTO orders (parent_id) VALUES (1);
         ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO reader",
    );
    let before = schema(&cluster, "postgres");
    for step in [
        "CALL moving.prepare('orders', 'id')",
        "CALL moving.prepare('orders', 'parent_id')",
        "CALL moving.backfill(1000, '0')",
    ] {
        call(&mut client, step);
    }
    make_indexes(&cluster);
    for step in ["check()", "swap('orders', 'id')", "validate()", "finish()", "remove()"] {
        call(&mut client, &format!("CALL moving.{step}"));
    }
    call(&mut client, "INSERT INTO orders (parent_id) VALUES (1)");
    assert_eq!(value::<i64>(&mut client, "SELECT snowflake_release('orders', 'id', start => 1000)"), 1000);
    let (gone, new) = difference(&before, &schema(&cluster, "postgres"));
    // The columns have changed their places, and with them the comma.
    let of_columns =
        |lines: &[String]| lines.iter().map(|line| line.trim_end_matches(',').to_owned()).collect::<Vec<_>>();
    assert_eq!(of_columns(&gone), ["id integer NOT NULL", "parent_id integer NOT NULL"]);
    assert_eq!(of_columns(&new), ["id bigint NOT NULL", "parent_id bigint NOT NULL"]);
    let insert = "INSERT INTO orders VALUES (DEFAULT, DEFAULT) RETURNING id";
    assert!(client.query(insert, &[]).is_err(), "there is no order 2");
    assert_eq!(value::<i64>(&mut client, "INSERT INTO orders (parent_id) VALUES (1) RETURNING id"), 1002);
}
