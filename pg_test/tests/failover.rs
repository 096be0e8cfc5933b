//! Two servers and one promise: what the primary gave out, the promoted standby does not give out again, though its
//! clock is behind.

use snowflake_test::load::{self, TABLE};
use snowflake_test::{Cluster, Options, Stop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

fn options() -> Options {
    Cluster::options().with_clock().set("pg_snowflake.max_wait = '20s'")
}

fn next(cluster: &Cluster) -> i64 {
    cluster.retry(|client| Ok(client.query_one("SELECT snowflake_next()", &[])?.get(0)))
}

/// The primary is killed under load, the standby promoted with its clock 100 s back; then the old primary is rewound,
/// follows, and takes over again, with its clock 150 s back.
fn fail_over_and_back(synchronous: bool) {
    let first = options().start();
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
            thread::sleep(Duration::from_millis(2500));
            first.stop(Stop::Kill);
            second.step_clock("-100s");
            // The new primary has no standby yet to wait for.
            second.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
            second.promote();
            primary.store(1, Ordering::Relaxed);
            next(&second);
            thread::sleep(Duration::from_millis(1500));

            first.rewind_to(&second);
            first.step_clock("-150s");
            first.start().unwrap();
            first.catch_up_with(&second);
            if synchronous {
                second.reload(&[("synchronous_standby_names", "*")]);
            }
            thread::sleep(Duration::from_millis(1000));
            second.stop(Stop::Kill);
            first.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
            first.promote();
            primary.store(0, Ordering::Relaxed);
            next(&first);
            thread::sleep(Duration::from_millis(500));
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

/// An ID that a client got by SELECT, without any row, is safe on the synchronous standby, too: where the standby does
/// not answer, no ID is given from a reservation that it does not have.
#[test]
fn a_synchronous_standby_that_lags_holds_ids_back() {
    let first = options().start();
    let second = first.standby();
    first.reload(&[("synchronous_standby_names", "*")]);
    let mut client = first.client();
    client.batch_execute("SET statement_timeout = '4s'").unwrap();
    let next = |client: &mut postgres::Client| client.query_one("SELECT snowflake_next()", &[]);
    let mut ids: Vec<i64> = vec![next(&mut client).unwrap().get(0)];
    second.stop(Stop::Fast);
    // What is reserved already can be used up; then nothing comes.
    let error = loop {
        match next(&mut client) {
            Ok(row) => ids.push(row.get(0)),
            Err(error) => break error,
        }
        assert!(ids.len() < 10_000_000);
    };
    assert_eq!(error.code().unwrap().code(), "57014", "{error}");
    first.stop(Stop::Kill);
    second.step_clock("-100s");
    second.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
    second.start().unwrap();
    second.promote();
    let mut client = second.client();
    ids.extend(snowflake_test::ids(&client.query("SELECT snowflake_next(50000)", &[]).unwrap()));
    snowflake_test::check::rising(&ids);
}

#[test]
fn sessions_of_the_standby_go_on_after_the_promotion() {
    let first = options().start();
    first.client().batch_execute(TABLE).unwrap();
    let second = first.standby();
    let last = next(&first);
    let mut client = second.client();
    let error = client.query_one("SELECT snowflake_next()", &[]).unwrap_err();
    assert_eq!(error.code().unwrap().code(), "25006");
    let started: String = client.query_one("SELECT started_after FROM snowflake_status()", &[]).unwrap().get(0);
    assert_eq!(started, "standby");
    second.catch_up_with(&first);
    first.stop(Stop::Immediate);
    second.step_clock("-100s");
    second.promote();
    let id: i64 = client.query_one("INSERT INTO stored (session) VALUES (0) RETURNING id", &[]).unwrap().get(0);
    assert!(id > last);
}
