//! How long single calls wait while others use all IDs that the layout has.

use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, rows};
use postgres::Client;
use snowflake_test::Cluster;
use statrs::statistics::{Data, OrderStatistics};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Numbers of sessions, of each kind.
const SESSIONS: [usize; 3] = [1, 8, 64];

/// How long a session pauses between two single calls, so that they do not wait for a processor.
const PAUSE: Duration = Duration::from_millis(10);

/// What uses all IDs up.
#[derive(Clone, Copy)]
enum Load {
    Batches,
    Rows,
}

impl Load {
    fn name(self) -> &'static str {
        match self {
            Self::Batches => "a batch",
            Self::Rows => "one ID a row",
        }
    }

    /// More IDs than can be made before it is canceled.
    fn statement(self) -> String {
        const COUNT: u32 = 2_000_000_000;
        match self {
            Self::Batches => format!("SELECT count(*) FROM (SELECT snowflake_next({COUNT}) OFFSET 0) AS s"),
            Self::Rows => format!("SELECT count(snowflake_next()) FROM {}", rows(COUNT)),
        }
    }
}

/// The latencies of single calls, with so many sessions of each kind.
pub fn beside(servers: &Servers, plan: &Plan) -> Group {
    let server = &servers.default;
    let mut trials = Vec::new();
    for callers in SESSIONS {
        let nobody = [(Load::Batches, 0)];
        let batches = SESSIONS.map(|count| (Load::Batches, count));
        let by_row = [(Load::Rows, callers)];
        for (load, others) in nobody.into_iter().chain(batches).chain(by_row) {
            trials.push(Trial::new(name(callers, others, load), move || measure(server, callers, others, load, plan)));
        }
    }
    let about = "`SELECT snowflake_next()`, 10 ms after the one before, in sessions beside others that make as many IDs as the \
                 default layout has, in one statement each.";
    let mut group = Group::new("Single calls beside all that use IDs up", about, interleave(plan.long_rounds, trials));
    for callers in SESSIONS {
        let name = name(callers, callers, Load::Batches);
        let wait = group.row(&name).unwrap().figure("p99 ms").median;
        group.state(format!("{name}, p99 in ms"), wait, Goal::AtMost(5.0));
    }
    group
}

fn name(callers: usize, others: usize, load: Load) -> String {
    match others {
        0 => format!("{callers} alone"),
        _ => format!("{callers} beside {others} with {}", load.name()),
    }
}

fn measure(server: &Cluster, callers: usize, others: usize, load: Load, plan: &Plan) -> Vec<(&'static str, f64)> {
    let connect = |count: usize| -> Vec<Client> {
        (0..count)
            .map(|_| {
                let mut client = server.client();
                client.batch_execute("SELECT snowflake_next()").unwrap();
                client
            })
            .collect()
    };
    let (mut busy, mut calling) = (connect(others), connect(callers));
    let cancels: Vec<_> = busy.iter().map(Client::cancel_token).collect();
    let is_over = AtomicBool::new(false);
    let mut waits: Vec<f64> = thread::scope(|scope| {
        for client in &mut busy {
            // Ends by the cancel.
            scope.spawn(move || client.batch_execute(&load.statement()).unwrap_err());
        }
        // The burst is used up first.
        thread::sleep(Duration::from_millis(300));
        let is_over = &is_over;
        let call = move |client: &mut Client, place: u32| {
            let statement = client.prepare("SELECT snowflake_next()").unwrap();
            thread::sleep(PAUSE * place / 64);
            let mut waits = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let start = Instant::now();
                client.query_one(&statement, &[]).unwrap();
                waits.push(start.elapsed().as_secs_f64() * 1000.0);
                thread::sleep(PAUSE);
            }
            waits
        };
        let threads: Vec<_> =
            calling.iter_mut().zip(0..).map(|(client, at)| scope.spawn(move || call(client, at))).collect();
        thread::sleep(Duration::from_secs(plan.load.into()));
        is_over.store(true, Ordering::Relaxed);
        let waits = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        for cancel in cancels {
            cancel.cancel_query(postgres::NoTls).unwrap();
        }
        waits
    });
    waits.sort_by(f64::total_cmp);
    let longest = waits.last().copied().unwrap_or(f64::NAN);
    let mut waits = Data::new(waits);
    vec![("p50 ms", waits.percentile(50)), ("p99 ms", waits.percentile(99)), ("longest ms", longest)]
}
