//! What a primary gave out, its promoted standby does not give out again, though its clock is behind.

use snowflake_test::check::{self, refused};
use snowflake_test::load::{self, TABLE};
use snowflake_test::query::{NEXT, batch, next};
use snowflake_test::{Cluster, Options, Stop, millis, value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn options() -> Options {
    Cluster::options().patient()
}

/// The primary is killed under load, the standby promoted with its clock 100 s back; then the old primary is rewound,
/// follows, and takes over again, with its clock 150 s back.
fn fail_over_and_back(synchronous: bool) {
    // An asynchronous standby has a second for what was reserved, also on a busy machine.
    let first = options().set("pg_snowflake.reserve_ahead = '4s'").start();
    first.client().batch_execute(TABLE).unwrap();
    let second = first.standby();
    if synchronous {
        first.reload(&[("synchronous_standby_names", "*")]);
    }
    let servers = [&first, &second];
    let primary = AtomicUsize::new(0);
    let ((), record) = load::run_during(
        8,
        || servers[primary.load(Ordering::Relaxed)],
        || {
            thread::sleep(millis(2500));
            first.stop(Stop::Kill);
            second.step_clock("-100s");
            // The new primary has no standby yet to wait for.
            second.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
            second.promote();
            primary.store(1, Ordering::Relaxed);
            second.next_once_up();
            thread::sleep(millis(1500));

            first.rewind_to(&second);
            first.step_clock("-150s");
            first.start();
            first.catch_up_with(&second);
            if synchronous {
                second.reload(&[("synchronous_standby_names", "*")]);
            }
            thread::sleep(millis(1000));
            second.stop(Stop::Kill);
            first.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
            first.promote();
            primary.store(0, Ordering::Relaxed);
            first.next_once_up();
            thread::sleep(millis(500));
        },
    );
    let count = record.check(&[&first]);
    assert!(count > 10_000, "{count}");
    assert!(second.log().contains("The server was a standby before."), "{}", second.log());
}

#[test]
fn asynchronous() {
    fail_over_and_back(false);
}

#[test]
fn synchronous() {
    fail_over_and_back(true);
}

/// An ID that a client got by SELECT, without any row, is not given again by the synchronous standby either: where the
/// standby does not answer, no ID is given from a reservation that it does not have.
#[test]
fn a_synchronous_standby_that_lags_holds_ids_back() {
    let first = options().start();
    let second = first.standby();
    first.reload(&[("synchronous_standby_names", "*")]);
    let mut client = first.client();
    let mut ids = vec![next(&mut client)];
    second.stop(Stop::Fast);
    client.batch_execute("SET statement_timeout = '4s'").unwrap();
    // What is reserved already can be used up; then nothing comes.
    let error = loop {
        match client.query_one(NEXT, &[]) {
            Ok(row) => ids.push(row.get(0)),
            Err(error) => break error,
        }
        assert!(ids.len() < 10_000_000);
    };
    assert_eq!(error.code().unwrap().code(), "57014", "{error}");
    first.stop(Stop::Kill);
    second.step_clock("-100s");
    second.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
    second.start();
    second.promote();
    ids.extend(batch(&mut second.client(), 50000));
    check::rising(&ids);
}

/// A server in recovery reads IDs, and makes none.
#[test]
fn sessions_of_the_standby_make_ids_after_the_promotion_only() {
    let first = options().start();
    first.client().batch_execute(TABLE).unwrap();
    let second = first.standby();
    first.next_once_up();
    let last: i64 = value(&mut first.client(), "INSERT INTO stored (session) VALUES (0) RETURNING id");
    second.catch_up_with(&first);
    let mut client = second.client();
    for (query, function) in [
        (NEXT, "snowflake_next"),
        ("SELECT snowflake_next(2)", "snowflake_next"),
        ("SELECT snowflake_rewind(1)", "snowflake_rewind"),
    ] {
        let error = refused(&mut client, query, "25006");
        assert_eq!(error.message(), format!("cannot execute {function}() during recovery"));
    }
    let read = "SELECT count(*) FROM stored WHERE snowflake_between(id, now() - interval '1 hour', 'infinity') \
                AND (snowflake_decode(id)).worker_id = 1";
    assert_eq!(value::<i64>(&mut client, read), 1);
    let started: String = value(&mut client, "SELECT started_after FROM snowflake_status()");
    assert_eq!(started, "standby");
    first.stop(Stop::Immediate);
    second.step_clock("-100s");
    second.promote();
    let id: i64 = value(&mut client, "INSERT INTO stored (session) VALUES (0) RETURNING id");
    assert!(id > last);
}
