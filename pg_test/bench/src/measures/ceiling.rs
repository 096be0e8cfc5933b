//! The default layout, whose sequence is the limit: 4,096 IDs a millisecond.

use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, cpu, process, rows};
use snowflake_test::Cluster;
use std::thread;
use std::time::{Duration, Instant};

/// How many IDs a second the layout has.
const CEILING: f64 = 4_096_000.0;

const ONE_A_ROW: &str = "1 session, one ID a row";
const BATCH: &str = "1 session, a batch";
const EIGHT: &str = "8 sessions, one ID a row";
const BURST: &str = "1 session, 300,000 IDs after a pause";

/// How fast IDs come, and what processor time that takes.
pub fn ceiling(servers: &Servers, plan: &Plan) -> Group {
    let count = plan.sustained * 4_096_000;
    let (server, rounds) = (&servers.default, plan.long_rounds);
    let one_a_row = |count: u32| format!("SELECT count(snowflake_next()) FROM {}", rows(count));
    let batch = |count: u32| format!("SELECT count(*) FROM (SELECT snowflake_next({count}) OFFSET 0) AS s");
    let sustained = |name: &'static str, sessions: u32, statement: String| {
        // The burst is used up first.
        let first = batch(1_000_000);
        Trial::new(name, move || measure(server, sessions, count, &first, &statement))
    };
    let trials = vec![
        sustained(ONE_A_ROW, 1, one_a_row(count)),
        sustained(BATCH, 1, batch(count)),
        sustained(EIGHT, 8, one_a_row(count / 8)),
        Trial::new(BURST, move || {
            measure(server, 1, 300_000, "SELECT snowflake_next(), pg_sleep(0.3)", &one_a_row(300_000))
        }),
    ];
    let about = format!(
        "The default layout: its ceiling is 4,096,000 IDs a second, after a burst of `max_burst` (100 ms of them). Sustained: \
         {count} IDs with the burst used up before. `CPU` is the processor time of the sessions per second that passed, most of \
         it the loop's: a session that waits sleeps.",
    );
    let mut group = Group::new("At the ceiling of the default layout", about, interleave(rounds, trials));
    for name in [ONE_A_ROW, BATCH, EIGHT] {
        let rate = group.row(name).unwrap().figure("IDs/s").median;
        group.state(format!("{name} / ceiling"), rate / CEILING, Goal::AtLeast(0.99));
    }
    group
}

fn measure(server: &Cluster, sessions: u32, count: u32, first: &str, statement: &str) -> Vec<(&'static str, f64)> {
    let mut clients: Vec<_> = (0..sessions).map(|_| server.client()).collect();
    for client in &mut clients {
        client.batch_execute("SELECT snowflake_next()").unwrap();
    }
    clients[0].batch_execute(first).unwrap();
    let start = Instant::now();
    let cpu: f64 = thread::scope(|scope| {
        let run = |client: &mut postgres::Client| {
            let pid = process(client);
            let before = cpu(pid);
            client.batch_execute(statement).unwrap();
            cpu(pid) - before
        };
        let threads: Vec<_> = clients.iter_mut().map(|client| scope.spawn(move || run(client))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let seconds = start.elapsed().max(Duration::from_micros(1)).as_secs_f64();
    vec![("IDs/s", f64::from(count) / seconds), ("CPU", cpu / seconds)]
}
