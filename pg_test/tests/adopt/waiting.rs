//! How long a move waits for its locks, and what it says of who has them.

use snowflake_test::check::refused;
use snowflake_test::{Cluster, value};
use std::time::{Duration, Instant};

/// Without a `lock_timeout`, and with one; whatever lock is held, and on which table.
#[test]
fn who_holds_the_lock_is_named() {
    let cluster = Cluster::options().set("max_prepared_transactions = 5").start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE orders (id serial PRIMARY KEY); CREATE TABLE lines (order_id integer REFERENCES orders);
             CREATE TABLE done (id bigint PRIMARY KEY DEFAULT snowflake_next())",
        )
        .unwrap();
    let mut holder = cluster.client();
    let pid: i32 = value(&mut holder, "SELECT pg_backend_pid()");
    for (held, table, calls) in [
        ("SELECT count(*) FROM lines", "lines", &["snowflake_adopt('orders')", "snowflake_adopt_all('{orders}')"][..]),
        ("LOCK TABLE lines IN ACCESS EXCLUSIVE MODE", "lines", &["snowflake_adopt('orders')"][..]),
        ("SELECT nextval('orders_id_seq')", "orders_id_seq", &["snowflake_adopt('orders')"][..]),
        ("SELECT count(*) FROM done", "done", &["snowflake_release('done')"][..]),
    ] {
        let mut holding = holder.transaction().unwrap();
        holding.batch_execute(held).unwrap();
        for call in calls {
            client.batch_execute("SET lock_timeout = '300ms'").unwrap();
            let error = refused(&mut client, &format!("SELECT * FROM {call}"), "55P03");
            assert_eq!(
                error.message(),
                format!("the lock of public.{table} was not granted in time"),
                "{held}: {error:?}"
            );
            let detail = error.detail().unwrap();
            let expected = format!("It is held by process {pid} of role postgres, since 20");
            assert!(detail.starts_with(&expected) && detail.contains(held), "{held}: {detail}");
        }
        holding.rollback().unwrap();
    }
    // By itself.
    client.batch_execute("RESET lock_timeout").unwrap();
    let mut holding = holder.transaction().unwrap();
    holding.batch_execute("SELECT count(*) FROM orders").unwrap();
    let start = Instant::now();
    refused(&mut client, "SELECT * FROM snowflake_adopt('orders')", "55P03");
    let waited = start.elapsed();
    assert!((Duration::from_secs(4)..Duration::from_secs(30)).contains(&waited), "{waited:?}");
    assert_eq!(value::<String>(&mut client, "SHOW lock_timeout"), "0");
    holding.rollback().unwrap();
    // One who is not to see the session is told who it is, and no more; a prepared transaction has a name.
    client
        .batch_execute("CREATE ROLE owner LOGIN; ALTER TABLE orders OWNER TO owner; ALTER TABLE lines OWNER TO owner")
        .unwrap();
    let mut owner = cluster.client_of("owner", "postgres");
    owner.batch_execute("SET lock_timeout = '300ms'").unwrap();
    let mut holding = holder.transaction().unwrap();
    holding.batch_execute("SELECT count(*) FROM lines").unwrap();
    let error = refused(&mut owner, "SELECT * FROM snowflake_adopt('orders')", "55P03");
    assert_eq!(error.detail().unwrap(), format!("It is held by process {pid} of role postgres."));
    holding.batch_execute("PREPARE TRANSACTION 'left'").unwrap();
    drop(holding);
    let error = refused(&mut owner, "SELECT * FROM snowflake_adopt('orders')", "55P03");
    assert!(
        error.detail().unwrap().starts_with("It is held by the prepared transaction 'left', since 20"),
        "{error:?}"
    );
    client.batch_execute("ROLLBACK PREPARED 'left'").unwrap();
    owner.batch_execute("SELECT * FROM snowflake_adopt('orders')").unwrap();
}
