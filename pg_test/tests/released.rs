//! What is locked and pinned while an ID is made is released, by a call that succeeds and by each kind of failure: in a transaction that
//! goes on, the session holds nothing of it. A pin that is kept is a warning of PostgreSQL's at the end of the transaction, or, with
//! assertions, the end of the server.

use postgres::Client;
use snowflake_test::check::{self, refused};
use snowflake_test::query::{NEXT, batch, next};
use snowflake_test::{Cluster, Installation, millis, value};
use std::thread;

/// How many locks a session ($1) has on what holds the reservation: the sequence, the catalog of origins, the origin.
const HELD: &str = "SELECT count(*) FROM pg_locks WHERE granted AND pid = $1
    AND ('_snowflake.reservation'::regclass IN (relation, classid) OR 'pg_replication_origin'::regclass IN (relation, classid))";

fn pid(client: &mut Client) -> i32 {
    value(client, "SELECT pg_backend_pid()")
}

fn held(client: &mut Client, pid: i32) -> i64 {
    client.query_one(HELD, &[&pid]).unwrap().get(0)
}

/// Calls this in a transaction, which must go on after the error and hold nothing.
fn fails_and_holds_nothing(client: &mut Client, query: &str, code: &str) {
    let pid = pid(client);
    client.batch_execute("BEGIN; SAVEPOINT before").unwrap();
    refused(client, query, code);
    client.batch_execute("ROLLBACK TO before").unwrap();
    assert_eq!(held(client, pid), 0, "after {query}: {code}");
    // Takes the lock in shared memory, which a call may have held.
    client.query("SELECT * FROM snowflake_status()", &[]).unwrap();
    client.batch_execute("COMMIT").unwrap();
}

/// Waits for longer than a session's limit lasts, so that the next claim needs a reservation.
fn until_the_limit_is_over() {
    thread::sleep(millis(1100));
}

/// What PostgreSQL says of pins, relations and locks that outlive their transaction.
fn check_log(cluster: &Cluster) {
    let log = cluster.log();
    for complaint in
        ["leak", "was not closed", "still referenced", "you don't own a lock", "TRAP", "terminated by signal"]
    {
        assert!(!log.contains(complaint), "{complaint}: {log}");
    }
}

#[test]
fn by_calls_that_succeed() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let pid = pid(&mut client);
    client.batch_execute("BEGIN").unwrap();
    let last = *batch(&mut client, 1000).last().unwrap();
    assert_eq!(held(&mut client, pid), 0, "after the first claim");
    until_the_limit_is_over();
    batch(&mut client, 1000);
    assert_eq!(held(&mut client, pid), 0, "after another reservation");
    client.batch_execute("COMMIT; BEGIN").unwrap();
    client.query_one("SELECT snowflake_rewind($1)", &[&last]).unwrap();
    assert_eq!(held(&mut client, pid), 0, "after a rewind");
    client.batch_execute("COMMIT").unwrap();
    client.batch_execute("SELECT pg_replication_origin_drop('snowflake')").unwrap();
    until_the_limit_is_over();
    client.batch_execute("BEGIN").unwrap();
    next(&mut client);
    assert_eq!(held(&mut client, pid), 0, "after the origin was created again");
    client.batch_execute("COMMIT").unwrap();
    check_log(&cluster);
}

/// The error is PostgreSQL's, and is raised while all of it is held.
#[test]
fn by_an_error_of_postgresql_in_the_midst() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    next(&mut client);
    let mut other = cluster.client();
    other.batch_execute("SELECT pg_replication_origin_session_setup('snowflake')").unwrap();
    for _ in 0..3 {
        until_the_limit_is_over();
        fails_and_holds_nothing(&mut client, NEXT, "55006");
    }
    drop(other);
    check::wait_for("IDs are made again", || client.query_one(NEXT, &[]).is_ok());
    check_log(&cluster);
}

/// From PostgreSQL 16 on, the session waits for the origin with its sequence open, until PostgreSQL raises an error. Before, the
/// extension gives up.
#[test]
fn by_a_call_that_waits_in_vain_for_the_origin() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    next(&mut client);
    let pid = pid(&mut client);
    let mut other = cluster.client();
    other.batch_execute("BEGIN; SELECT pg_replication_origin_drop('snowflake')").unwrap();
    until_the_limit_is_over();
    client.batch_execute("SET lock_timeout = '1s'").unwrap();
    let code = if Installation::under_test().major() < 16 { "55006" } else { "55P03" };
    thread::scope(|scope| {
        scope.spawn(|| fails_and_holds_nothing(&mut client, NEXT, code));
        if Installation::under_test().major() >= 16 {
            check::wait_for("the session has its sequence open", || held(&mut other, pid) > 0);
        }
    });
    other.batch_execute("ROLLBACK").unwrap();
    next(&mut client);
    check_log(&cluster);
}

/// The extension raises these.
#[test]
fn by_errors_of_the_extension() {
    let cluster = Cluster::options().set("pg_snowflake.max_wait = '300ms'").start();
    let mut client = cluster.client();
    let last = next(&mut client);
    fails_and_holds_nothing(&mut client, &format!("SELECT snowflake_rewind({})", last + (1 << 40)), "55000");
    let copy: i64 = value(&mut client, "SELECT last_value FROM _snowflake.reservation");
    let form: i64 = value(&mut client, "SELECT last_value FROM _snowflake.layout");
    // Of a database that is in use no more, as ALTER SEQUENCE has it.
    let set = |to: i64| {
        let restart = format!(
            "ALTER SEQUENCE _snowflake.layout RESTART WITH {form}; ALTER SEQUENCE _snowflake.reservation RESTART WITH {to}"
        );
        cluster.client().batch_execute(&restart).unwrap();
    };
    set(copy + 3_600_000 * 24 * 365);
    until_the_limit_is_over();
    // Once in a session that has claimed before, once in a new one.
    fails_and_holds_nothing(&mut client, NEXT, "55000");
    fails_and_holds_nothing(&mut cluster.client(), NEXT, "55000");
    set(copy);
    check::wait_for("IDs are made again", || client.query_one(NEXT, &[]).is_ok());
    check_log(&cluster);
}

/// What a session waits for while it has the sequence of its database open can be cancelled.
#[test]
fn by_a_call_that_is_cancelled() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    next(&mut client);
    let mut other = cluster.client();
    for _ in 0..2 {
        other.batch_execute("BEGIN; ALTER SEQUENCE _snowflake.reservation NO CYCLE").unwrap();
        let others = self::pid(&mut other);
        assert!(held(&mut other, others) > 0, "the query does not see locks");
        until_the_limit_is_over();
        let pid = pid(&mut client);
        thread::scope(|scope| {
            scope.spawn(|| fails_and_holds_nothing(&mut client, NEXT, "57014"));
            let waits = format!("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {pid} AND NOT granted)");
            check::wait_for("the session waits", || value(&mut other, &waits));
            other.query_one("SELECT pg_cancel_backend($1)", &[&pid]).unwrap();
        });
        other.batch_execute("ROLLBACK").unwrap();
    }
    next(&mut client);
    check_log(&cluster);
}
