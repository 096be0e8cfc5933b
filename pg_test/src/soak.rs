//! Faults at random on a primary with a standby under load. The same seed gives the same faults in the same order.

use crate::load::{self, TABLE};
use crate::{Cluster, Stop, kill};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The postmaster and all its processes get SIGKILL; the clock is set to anything when it starts again.
    PostmasterKilled,
    /// A session gets SIGKILL, and shared memory is made anew.
    SessionKilled,
    /// Stopped without a checkpoint; the clock as above.
    StoppedImmediately,
    /// Stopped with one; the clock as above.
    StoppedFast,
    /// The clock is set to anything while the server runs.
    ClockStepped,
    /// The primary is killed, the standby promoted with its clock set to anything, the old primary rewound to follow.
    FailedOver,
    /// A checkpoint is made.
    Checkpoint,
    /// The worker ID is changed by a reload.
    WorkerChanged,
}

const FAULTS: [Fault; 8] = [
    Fault::PostmasterKilled,
    Fault::SessionKilled,
    Fault::StoppedImmediately,
    Fault::StoppedFast,
    Fault::ClockStepped,
    Fault::FailedOver,
    Fault::Checkpoint,
    Fault::WorkerChanged,
];

/// Random enough to choose faults: a linear congruential generator (Knuth, MMIX).
struct Random(Cell<u64>);

impl Random {
    fn below(&self, bound: u64) -> u64 {
        let next = self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.set(next);
        (next >> 33) % bound
    }

    /// An offset of the clock of up to an hour either way.
    fn offset(&self) -> String {
        format!("{:+}s", i64::try_from(self.below(7201)).unwrap() - 3600)
    }
}

struct Soak {
    random: Random,
    servers: [Cluster; 2],
    primary: AtomicUsize,
}

impl Soak {
    fn primary(&self) -> &Cluster {
        &self.servers[self.primary.load(Ordering::Relaxed)]
    }

    fn cause(&self, fault: Fault) {
        let primary = self.primary();
        match fault {
            Fault::PostmasterKilled => self.restart(Stop::Kill),
            Fault::StoppedImmediately => self.restart(Stop::Immediate),
            Fault::StoppedFast => self.restart(Stop::Fast),
            Fault::ClockStepped => primary.step_clock(&self.random.offset()),
            Fault::Checkpoint => primary.client().batch_execute("CHECKPOINT").unwrap(),
            Fault::SessionKilled => {
                let pid: i32 = primary.retry(|client| {
                    let others = "SELECT pid FROM pg_stat_activity \
                                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1";
                    Ok(client.query_one(others, &[])?.get(0))
                });
                kill(pid.unsigned_abs());
            }
            Fault::WorkerChanged => {
                primary.reload(&[("pg_snowflake.worker_id", &self.random.below(1024).to_string())]);
            }
            Fault::FailedOver => self.fail_over(),
        }
        // The load goes on before the next fault.
        thread::sleep(Duration::from_millis(200 + self.random.below(800)));
        self.primary().retry(|client| client.query_one("SELECT snowflake_next()", &[]));
    }

    fn restart(&self, how: Stop) {
        self.primary().stop(how);
        self.primary().step_clock(&self.random.offset());
        self.primary().start().unwrap();
    }

    /// The primary dies, its standby takes over; then it follows.
    fn fail_over(&self) {
        let old = self.primary.load(Ordering::Relaxed);
        let (primary, standby) = (&self.servers[old], &self.servers[1 - old]);
        standby.catch_up_with(primary); // after a restart, streaming takes a while to begin again
        primary.stop(Stop::Kill);
        standby.step_clock(&self.random.offset());
        standby.promote();
        self.primary.store(1 - old, Ordering::Relaxed);
        standby.retry(|client| client.query_one("SELECT snowflake_next()", &[]));
        primary.rewind_to(standby);
        primary.start().unwrap();
        primary.catch_up_with(standby);
    }
}

/// What a soak has seen.
#[derive(Debug)]
pub struct Report {
    /// How often each fault was survived.
    pub survived: BTreeMap<Fault, usize>,
    /// How many IDs were given or stored, all distinct.
    pub made: usize,
}

/// Causes faults for so long.
///
/// # Panics
/// With the first duplicate; or where a server does not survive.
pub fn run(seed: u64, length: Duration) -> Report {
    let options = Cluster::options().with_clock().set("pg_snowflake.max_lead = '6h'");
    let first = options.set("pg_snowflake.max_wait = '20s'").start();
    first.client().batch_execute(TABLE).unwrap();
    let second = first.standby();
    let soak = Soak { random: Random(Cell::new(seed)), servers: [first, second], primary: AtomicUsize::new(0) };

    let end = Instant::now() + length;
    let mut survived = BTreeMap::new();
    let (servers, primary) = (&soak.servers, &soak.primary);
    let ((), record) = load::run_during(
        8,
        || &servers[primary.load(Ordering::Relaxed)],
        || {
            while Instant::now() < end {
                let fault = FAULTS[soak.random.below(FAULTS.len() as u64) as usize];
                soak.cause(fault);
                *survived.entry(fault).or_default() += 1;
            }
        },
    );
    Report { survived, made: record.check(&[soak.primary()]) }
}
