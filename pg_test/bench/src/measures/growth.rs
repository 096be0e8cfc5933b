//! Whether the price of an ID grows with the number of databases and connections.

use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, cpu_of_ended, pgbench, rows};
use snowflake_test::Cluster;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// IDs in a statement: so many that the other costs of a statement, such as a switch to another process, hardly count.
const IDS: u32 = 10_000;

fn statement() -> String {
    format!("SELECT count(snowflake_next()) FROM {}", rows(IDS))
}

/// The same number of sessions in more and more databases.
pub fn databases(servers: &Servers, plan: &Plan) -> Group {
    let server = &servers.wide;
    let most = plan.databases.iter().copied().max().unwrap_or(1);
    let mut client = server.client();
    for number in 0..most {
        client.batch_execute(&format!("CREATE DATABASE db{number}")).unwrap();
        server.client_of("postgres", &format!("db{number}")).batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    }
    let name = |count: usize| format!("{most} sessions, databases: {count}");
    let trial = |&count: &usize| Trial::new(name(count), move || in_databases(server, most, count, plan));
    let trials = plan.databases.iter().map(trial).collect();
    let about = format!(
        "{most} sessions, each of which makes {IDS} IDs a statement, spread over more and more databases of the wide layout. \
         `reservations` are those written a second for each database: one in three quarters of `reserve_ahead` while IDs are \
         made."
    );
    let mut group = Group::new("More databases", about, interleave(plan.long_rounds, trials));
    let [first, .., last] = plan.databases else { return group };
    group.compare(&name(*last), &name(*first), "million IDs/s", Goal::AtLeast(0.9));
    group.compare(&name(*last), &name(*first), "reservations", Goal::AtMost(1.1));
    group
}

fn in_databases(server: &Cluster, sessions: usize, databases: usize, plan: &Plan) -> Vec<(&'static str, f64)> {
    // Each session makes an ID before, so that only renewals of the reservation are counted.
    let mut clients: Vec<_> =
        (0..sessions).map(|number| server.client_of("postgres", &format!("db{}", number % databases))).collect();
    clients.iter_mut().for_each(|client| client.batch_execute("SELECT snowflake_next()").unwrap());
    let reservations =
        || -> i64 { server.client().query_one("SELECT reservations FROM snowflake_status()", &[]).unwrap().get(0) };
    // Long enough for several renewals.
    let length = Duration::from_secs(u64::from(plan.load.max(2)));
    let statement = statement();
    let (made, before, start) = (AtomicU64::new(0), reservations(), Instant::now());
    thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                while start.elapsed() < length {
                    client.batch_execute(&statement).unwrap();
                    made.fetch_add(u64::from(IDS), Relaxed);
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let written = (reservations() - before) as f64;
    vec![
        ("million IDs/s", made.into_inner() as f64 / seconds / 1e6),
        ("reservations", written / seconds / databases as f64),
    ]
}

/// More and more connections.
pub fn connections(servers: &Servers, plan: &Plan) -> Group {
    const PAUSE: Duration = Duration::from_millis(200);
    let name = |count: usize| format!("connections: {count}");
    let trial = |&count: &usize| {
        Trial::new(name(count), move || {
            let cpu = || cpu_of_ended(servers.wide.postmaster());
            // Sessions may still be ending, here and below.
            thread::sleep(PAUSE);
            let before = cpu();
            let load = pgbench(&servers.wide, &statement(), count, plan.load, "");
            thread::sleep(PAUSE);
            let per_second = load.per_second * f64::from(IDS);
            let ids = per_second * f64::from(plan.load);
            vec![("million IDs/s", per_second / 1e6), ("CPU ns", (cpu() - before) * 1e9 / ids)]
        })
    };
    let trials = plan.connections.iter().map(trial).collect();
    let about = "pgbench, with as many IDs a statement, in one database. `CPU` is the processor time of all sessions for an ID \
                 and its row: more when two cores pass the word's cache line to and fro, then the same for any number of \
                 sessions.";
    let mut group = Group::new("More connections", about, interleave(plan.long_rounds, trials));
    let last = plan.connections.last().map_or(0, |&last| last);
    group.compare(&name(last), &name(2), "million IDs/s", Goal::AtLeast(0.9));
    group.compare(&name(last), &name(2), "CPU ns", Goal::AtMost(1.1));
    group
}
