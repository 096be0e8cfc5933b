//! Costs that are paid once: a session's first call, and the renewal of a reservation.

use crate::plan::Plan;
use crate::results::Group;
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, time};
use std::cell::RefCell;
use std::thread;
use std::time::Duration;

const NEXT: &str = "SELECT snowflake_next()";

/// The latency of single statements, as the client sees it.
pub fn once(servers: &Servers, plan: &Plan) -> Group {
    let server = &servers.wide;
    server.reload(&[("pg_snowflake.reserve_ahead", "100")]);
    let session = || RefCell::new(server.client());
    let (renews, adopts, commits) = (session(), session(), session());
    commits.borrow_mut().batch_execute("CREATE TABLE flushed (n integer)").unwrap();
    // Longer than a reservation lasts.
    let pause = || thread::sleep(Duration::from_millis(120));
    let renew = || micros(&mut renews.borrow_mut(), NEXT);
    let renewal = || {
        pause();
        vec![("first µs", renew()), ("second µs", renew())]
    };
    let adoption = || {
        pause();
        renew();
        let mut client = adopts.borrow_mut();
        vec![("first µs", micros(&mut client, NEXT)), ("second µs", micros(&mut client, NEXT))]
    };
    let renew = &renew;
    let new_session = |name: &'static str, statement: &'static str| {
        Trial::new(name, move || {
            let mut client = server.client();
            renew();
            let first = micros(&mut client, statement);
            vec![("first µs", first), ("second µs", micros(&mut client, statement))]
        })
    };
    let commit = || {
        pause();
        let mut client = commits.borrow_mut();
        let first = micros(&mut client, "INSERT INTO flushed VALUES (1)");
        client.batch_execute("SET synchronous_commit = off").unwrap();
        let second = micros(&mut client, "INSERT INTO flushed VALUES (1)");
        client.batch_execute("SET synchronous_commit = on").unwrap();
        vec![("first µs", first), ("second µs", second)]
    };
    let trials = vec![
        Trial::new("snowflake_next() that renews the reservation", renewal),
        Trial::new("snowflake_next() of a session that finds it renewed", adoption),
        new_session("snowflake_next() in a new session", NEXT),
        new_session("nextval in a new session", "SELECT nextval('plain')"),
        new_session("clock_timestamp() in a new session", "SELECT clock_timestamp()"),
        Trial::new("INSERT of a row with a flush, then without", commit),
    ];
    let about = "Microseconds of a statement, and of the same one right after it, round trip included. A renewal writes one WAL \
                 record and flushes it, once in three quarters of `reserve_ahead` (here set to 100 ms) for all sessions of a \
                 database together; the others find it renewed. `fsync` is on. The INSERT shows what a flush costs here.";
    let rows = interleave(plan.once, trials);
    server.reload(&[("pg_snowflake.reserve_ahead", "1000")]);
    Group::new("What is paid once", about, rows)
}

fn micros(client: &mut postgres::Client, statement: &str) -> f64 {
    time(client, statement).as_nanos() as f64 / 1000.0
}
