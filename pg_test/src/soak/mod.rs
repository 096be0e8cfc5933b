//! Random faults of three servers under load: a primary, its standby, and an independent server. The same seed gives
//! the same faults in the same order.
//!
//! The faults stay within the promise: a standby is only promoted while it is a synchronous one, no server is started
//! from an old state of its data, and a worker ID changes hands only when its new owner is past all IDs of the old one.
//!
//! Where worker IDs are leased, they change hands by themselves, and servers may be copied and frozen.

mod databases;
mod faults;
mod leases;
mod servers;
mod workers;

pub use faults::Fault;

use crate::load::{Gate, LOOSE_TABLE, TABLE, run_gated};
use crate::registries::{Kind, Server, Setup};
use crate::{Cluster, Options, check, millis};
use fastrand::Rng;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The databases of the primary that are under load; in the last, the extension is dropped and created.
const DATABASES: [&str; 3] = ["app0", "app1", LOOSE];
const LOOSE: &str = "loose";
/// The database of the other server.
const OTHER: &str = "other0";
/// How many sessions each database has.
const SESSIONS: i32 = 3;
/// How long a session rests between two calls.
const REST: Duration = Duration::from_millis(1);
/// A year, in seconds.
const YEAR: f64 = 31_536_000.0;
/// No ID may be further ahead of the true time, in seconds.
const LONGEST_LEAD: f64 = 3600.0;

/// The two worker IDs that are swapped. Of all others, the primary has the even ones, and the other server the odd
/// ones.
const SWAPPED: [u32; 2] = [1, 2];

/// A server in the soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Primary,
    Other,
}

/// A database that a fault created. It makes IDs after each further fault, until it is dropped.
struct Extra {
    server: Which,
    name: String,
}

/// The servers, and what was done to them.
struct Soak<'a> {
    random: Rng,
    began: Instant,
    gate: &'a Gate,
    /// The primary and its standby, and the other server.
    servers: &'a [Cluster; 3],
    primary: &'a AtomicUsize,
    /// What worker IDs are leased from, if they are.
    registry: Option<Server>,
    /// Of each server's clock, in seconds.
    offsets: [Cell<f64>; 3],
    synchronous: bool,
    /// Which server has the first of the two worker IDs that are swapped; the other has the second.
    owner_of_first: Which,
    extras: Vec<Extra>,
    /// How many there ever were.
    created: usize,
    /// IDs of the extra databases, and those that were taken between the faults.
    given: Vec<i64>,
    /// Which fault was caused when.
    history: Vec<(Duration, Fault)>,
}

/// Says what led to a failure.
impl Drop for Soak<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let last = |count: usize, all: usize| all.saturating_sub(count);
            for (at, fault) in &self.history[last(20, self.history.len())..] {
                eprintln!("{:8.1} s {fault:?}", at.as_secs_f64());
            }
            for (number, server) in self.servers.iter().enumerate() {
                let log = server.log();
                let lines: Vec<&str> = log.lines().collect();
                eprintln!("-- the log of server {number} ends with\n{}", lines[last(40, lines.len())..].join("\n"));
            }
        }
    }
}

fn true_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

impl Soak<'_> {
    fn index(&self, which: Which) -> usize {
        match which {
            Which::Primary => self.primary.load(Ordering::Relaxed),
            Which::Other => 2,
        }
    }

    fn server(&self, which: Which) -> &Cluster {
        &self.servers[self.index(which)]
    }

    fn standby(&self) -> &Cluster {
        &self.servers[1 - self.index(Which::Primary)]
    }

    fn any_server(&mut self) -> Which {
        if self.random.u32(..4) == 0 { Which::Other } else { Which::Primary }
    }

    fn pause(&mut self, from: u64, to: u64) {
        thread::sleep(millis(self.random.u64(from..to)));
    }

    /// Takes an ID, once the server makes them.
    fn retry_id(&mut self, which: Which) {
        let id = self.server(which).next_once_up();
        self.given.push(id);
    }
}

/// What a soak has seen.
#[derive(Debug)]
pub struct Report {
    /// How often each fault was survived.
    pub survived: BTreeMap<Fault, usize>,
    /// How many IDs were given or stored, all distinct.
    pub made: usize,
    /// How many databases came and went.
    pub databases: usize,
    /// Calls that ended with an error, by SQLSTATE and message.
    pub refused: BTreeMap<String, usize>,
}

fn options(registry: Option<&Server>) -> Options {
    let options = Cluster::options().patient();
    let options = match registry {
        // Eight workers, so that servers that crash take over from each other.
        Some(registry) => options
            .own_identifier()
            .set("pg_snowflake.layout = 'timestamp=41 worker=3 sequence=6'")
            .set("pg_snowflake.worker_id = -1")
            .set(&format!("pg_snowflake.registry = '{}'", registry.url()))
            .set("pg_snowflake.registry_window = '5s'"),
        None => options.narrow(),
    };
    options
        .set("pg_snowflake.max_lead = '6h'")
        .set("wal_retrieve_retry_interval = '200ms'")
        // A clock that leaps forward looks to these timeouts as if the time had passed.
        .set("wal_sender_timeout = 0")
        .set("wal_receiver_timeout = 0")
}

/// Errors that a fault explains: the server ends sessions, or is starting; the extension is not there; there is no
/// worker.
const EXPLAINED: [&str; 10] = [
    "57P0",
    "25006",
    "42883 function snowflake_next",
    "42883 function public.snowflake_next",
    "XX000 cache lookup failed for function",
    "55000 extension pg_snowflake is not created in this database",
    "55000 pg_snowflake.worker_id is not set",
    "55000 no worker ID is leased",
    "40P01",
    "40001",
];

/// Causes faults for so long, and until there were so many, to servers whose worker IDs are set by hand, or leased.
///
/// # Panics
/// With the first duplicate; or where a server does not survive a fault, or a call ends with an error that no fault
/// explains.
pub fn run(seed: u64, length: Duration, least: usize, registry: Option<Kind>) -> Report {
    let registry = registry.map(|kind| Setup::of(kind).start());
    let options = options(registry.as_ref());
    let first = options.clone().start();
    for database in DATABASES {
        first.database(database);
        let table = if database == LOOSE { LOOSE_TABLE } else { TABLE };
        first.client_of("postgres", database).batch_execute(table).unwrap();
    }
    let second = first.standby();
    let other = match registry {
        Some(_) => options.start(),
        None => options.set(&format!("pg_snowflake.worker_id = {}", SWAPPED[1])).start(),
    };
    other.database(OTHER);
    other.client_of("postgres", OTHER).batch_execute(TABLE).unwrap();

    let (servers, primary, gate) = ([first, second, other], AtomicUsize::new(0), Gate::default());
    let mut soak = Soak {
        random: Rng::with_seed(seed),
        began: Instant::now(),
        gate: &gate,
        servers: &servers,
        primary: &primary,
        registry,
        offsets: Default::default(),
        synchronous: false,
        owner_of_first: Which::Primary,
        extras: Vec::new(),
        created: 0,
        given: Vec::new(),
        history: Vec::new(),
    };
    let end = Instant::now() + length;
    let at_primary = || &servers[primary.load(Ordering::Relaxed)];
    let ((survived, others), record) = run_gated(&DATABASES, SESSIONS, REST, &gate, at_primary, || {
        run_gated(&[OTHER], SESSIONS, REST, &gate, || &servers[2], || soak.go_on_until(end, least))
    });

    for server in &servers {
        let log = server.log();
        for sign in ["PANIC:", "signal 6", "signal 11", "panicked", "TRAP:"] {
            assert!(!log.contains(sign), "{sign} in the log:\n{log}");
        }
    }
    let mut refused = record.messages.clone();
    for (message, count) in &others.messages {
        *refused.entry(message.clone()).or_default() += count;
    }
    for message in refused.keys() {
        assert!(EXPLAINED.iter().any(|explained| message.starts_with(explained)), "{refused:#?}");
    }
    let mut lists = record.lists(&[at_primary()]);
    lists.extend(others.lists(&[&servers[2]]));
    lists.push(std::mem::take(&mut soak.given));
    let made = check::distinct(&lists);
    let highest = lists.iter().flatten().max().unwrap();
    let time: f64 = servers[2].retry(|client| {
        let query = "SELECT extract(epoch FROM snowflake_timestamp($1))::float8";
        Ok(client.query_one(query, &[highest])?.get(0))
    });
    assert!(time - true_time() < LONGEST_LEAD, "an ID is ahead by {} s", time - true_time());
    Report { survived, made, databases: soak.created, refused }
}
