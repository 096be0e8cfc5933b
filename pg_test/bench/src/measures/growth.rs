//! Whether the price of an ID grows with what there is.

use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, pgbench, rows};
use pg_test::Cluster;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

fn statement() -> String {
    format!("SELECT count(snowflake_next()) FROM {}", rows(1000))
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
    let trial = |&count: &usize| {
        Trial::new(format!("{most} sessions in {count} databases"), move || in_databases(server, most, count, plan))
    };
    let trials = plan.databases.iter().map(trial).collect();
    let about = format!(
        "{most} sessions, each of which makes 1,000 IDs a statement, spread over more and more databases of the wide layout. \
         `reservations` are those written a second for each database: one in three quarters of `reserve_ahead` while IDs are \
         made."
    );
    let mut group = Group::new("More databases", about, interleave(plan.long_rounds, trials));
    let [first, .., last] = plan.databases else { return group };
    let name = |count| format!("{most} sessions in {count} databases");
    group.compare(&name(*last), &name(*first), "million IDs/s", Goal::AtLeast(0.9));
    group.compare(&name(*last), &name(*first), "reservations", Goal::AtMost(1.1));
    group
}

fn in_databases(server: &Cluster, sessions: usize, databases: usize, plan: &Plan) -> Vec<(&'static str, f64)> {
    // Each database's run began with a call before, so that only renewals are counted.
    let mut clients: Vec<_> =
        (0..sessions).map(|number| server.client_of("postgres", &format!("db{}", number % databases))).collect();
    clients.iter_mut().for_each(|client| client.batch_execute("SELECT snowflake_next()").unwrap());
    let reservations =
        || -> i64 { server.client().query_one("SELECT reservations FROM snowflake_status", &[]).unwrap().get(0) };
    // The renewals come in steps: several of them must fit.
    let length = Duration::from_secs(u64::from(plan.load.max(2)));
    let statement = statement();
    let (made, before, start) = (AtomicU64::new(0), reservations(), Instant::now());
    thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                while start.elapsed() < length {
                    client.batch_execute(&statement).unwrap();
                    made.fetch_add(1000, Relaxed);
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
    let trial = |&count: &usize| {
        Trial::new(format!("{count} connections"), move || {
            let load = pgbench(&servers.wide, &statement(), count, plan.load, "");
            vec![("million IDs/s", load.per_second / 1000.0)]
        })
    };
    let trials = plan.connections.iter().map(trial).collect();
    let about = "pgbench as above, in one database.";
    let mut group = Group::new("More connections", about, interleave(plan.long_rounds, trials));
    let name = |count: usize| format!("{count} connections");
    if let [first, .., last] = plan.connections {
        group.compare(&name(*last), &name(*first), "million IDs/s", Goal::AtLeast(0.9));
    }
    group
}
