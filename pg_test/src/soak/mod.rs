//! Random faults of servers under load: groups of a primary, its standby, and an independent server. The same seed gives each group the
//! same faults in the same order. All calls and faults are written down, in a [record](crate::history) that is checked afterwards.
//!
//! The faults stay within the promise: a standby is only promoted while it is a synchronous one, no server is started
//! from an old state of its data, and a worker ID changes hands only when its new owner is past all IDs of the old one.
//!
//! Where worker IDs are leased, they change hands by themselves, and servers may be copied, frozen, and promoted beside their primaries. All
//! groups lease from one registry, which has faults of its own.

mod databases;
mod faults;
mod leases;
mod load;
mod registry;
mod scenarios;
mod servers;
mod witness;
mod workers;

pub use scenarios::{Scenario, run_scenario};

use crate::history::{About, Calls, Event, Place, Trouble, Writer};
use crate::load::{End, Gate, LOOSE_TABLE, Pause, TABLE, stored};
use crate::proxy::Proxy;
use crate::registries::Kind;
use crate::{Cluster, Options, millis};
use fastrand::Rng;
use load::{Making, Site, Tags, Taking};
use std::cell::Cell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The databases of a primary that are under load; in the last, the extension is dropped and created.
const DATABASES: [&str; 3] = ["app0", "app1", LOOSE];
const LOOSE: &str = "loose";
/// The database of the other server of a group.
const OTHER: &str = "other0";
/// How many sessions each database has.
const SESSIONS: i32 = 3;
/// A year, in seconds.
const YEAR: f64 = 31_536_000.0;
/// No ID may be further ahead of the true time, in seconds.
const LONGEST_LEAD: f64 = 3600.0;
/// How long a server that is to make IDs again is asked for them.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often is told how far it is.
const TOLD: Duration = Duration::from_secs(30);
/// How far leases reach, in seconds.
const WINDOW: u64 = 5;

/// The two worker IDs that are swapped. Of all others, the primary has the even ones, and the other server the odd
/// ones.
const SWAPPED: [u32; 2] = [1, 2];

/// What a soak is to be.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Which faults there are, and when.
    pub seed: u64,
    /// How long it lasts at least.
    pub length: Duration,
    /// How many faults there are at least.
    pub faults: usize,
    /// How many IDs are made at least.
    pub ids: u64,
    /// How many groups of servers there are; one, where worker IDs are set by hand.
    pub groups: usize,
    /// From what worker IDs are leased, if not set by hand.
    pub registry: Option<Kind>,
    /// Where the record is written.
    pub record: PathBuf,
}

/// How far the soak is.
struct Progress {
    wanted: Wanted,
    began: Instant,
    faults: AtomicUsize,
    failed: AtomicBool,
}

impl Progress {
    fn of(wanted: &Wanted) -> Self {
        let (faults, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { wanted: wanted.clone(), began: Instant::now(), faults, failed }
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// How far it is, in words.
    fn said(&self, ids: u64) -> String {
        let (at, faults) = (self.began.elapsed().as_secs(), self.faults.load(Relaxed));
        format!("{at} s: {faults} faults, {ids} IDs")
    }

    /// Whether it is, with so many IDs.
    fn is_over(&self, ids: u64) -> bool {
        let is_enough = self.began.elapsed() >= self.wanted.length
            && self.faults.load(Relaxed) >= self.wanted.faults
            && ids >= self.wanted.ids;
        is_enough || self.failed.load(Relaxed)
    }

    /// Sleeps, unless the soak is over.
    fn sleep(&self, history: &Writer, length: Duration) {
        let start = Instant::now();
        while start.elapsed() < length && !self.is_over(history.ids()) {
            thread::sleep(millis(20));
        }
    }
}

/// Ends the soak where a thread panics.
struct Watch<'a>(&'a Progress);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.store(true, Relaxed);
        }
    }
}

/// A server in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Primary,
    Other,
}

impl Which {
    const ALL: [Self; 2] = [Self::Primary, Self::Other];
}

/// A database that a fault created. It makes IDs after each further fault, until it is dropped.
struct Extra {
    server: Which,
    name: String,
    /// From when on.
    since: u64,
}

/// A group of servers, and what was done to them.
struct Soak<'a> {
    random: Rng,
    progress: &'a Progress,
    history: &'a Writer,
    gate: &'a Gate,
    /// The primary and its standby, and the other server.
    servers: &'a [Cluster; 3],
    nodes: [u32; 3],
    /// Where the primary is, and the other server.
    sites: [&'a Site<'a>; 2],
    about: About,
    /// What stands between the servers and the registry that worker IDs are leased from, if they are.
    proxies: Option<&'a [Proxy; 2]>,
    /// Of each server's clock, in seconds.
    offsets: [Cell<f64>; 3],
    synchronous: bool,
    /// Which server has the first of the two worker IDs that are swapped; the other has the second.
    owner_of_first: Which,
    extras: Vec<Extra>,
    /// How many there ever were.
    created: usize,
    /// IDs of the extra databases, and those that are taken between the faults.
    calls: Calls<'a>,
    /// Which fault was caused when.
    done: Vec<(Duration, faults::Fault)>,
}

/// Says what led to a failure.
impl Drop for Soak<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let last = |count: usize, all: usize| all.saturating_sub(count);
            for (at, fault) in &self.done[last(20, self.done.len())..] {
                eprintln!("{:8.1} s {fault:?}", at.as_secs_f64());
            }
            for (node, server) in self.nodes.iter().zip(self.servers) {
                let log = server.log();
                let lines: Vec<&str> = log.lines().collect();
                eprintln!("-- the log of server {node} ends with\n{}", lines[last(40, lines.len())..].join("\n"));
            }
        }
    }
}

/// No session passes the gate meanwhile; and the record says so.
struct Paused<'a> {
    history: &'a Writer,
    lines: [u32; 2],
    begin: u64,
    _pause: Pause<'a>,
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        for line in self.lines {
            self.history.trouble(Trouble::Paused, Some(line), self.begin);
        }
    }
}

fn true_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

impl<'a> Soak<'a> {
    fn site(&self, which: Which) -> &'a Site<'a> {
        self.sites[which as usize]
    }

    fn place(&self, which: Which) -> Place {
        *self.site(which).place.lock().unwrap()
    }

    fn index(&self, which: Which) -> usize {
        self.place(which).index
    }

    fn line(&self, which: Which) -> Option<u32> {
        Some(self.place(which).line)
    }

    fn server(&self, which: Which) -> &'a Cluster {
        &self.servers[self.index(which)]
    }

    fn standby(&self) -> &'a Cluster {
        &self.servers[1 - self.index(Which::Primary)]
    }

    fn any_server(&mut self) -> Which {
        if self.random.u32(..4) == 0 { Which::Other } else { Which::Primary }
    }

    fn sleep(&mut self, from: u64, to: u64) {
        thread::sleep(millis(self.random.u64(from..to)));
    }

    /// Holds all sessions of the load.
    fn pause(&self) -> Paused<'a> {
        let lines = Which::ALL.map(|which| self.place(which).line);
        let begin = self.history.now();
        Paused { history: self.history, lines, begin, _pause: self.gate.pause() }
    }

    /// Takes an ID, once the server makes them.
    fn take_id(&mut self, which: Which) -> i64 {
        load::take(self.site(which), &mut self.calls, 1)[0]
    }

    /// The time of the next ID, in microseconds since 1970.
    fn time_of_next(&mut self, which: Which) -> i64 {
        let id = self.take_id(which);
        self.about.tick_of(id) * self.about.tick + self.about.epoch
    }
}

fn options(registry: Option<(&str, u32)>) -> Options {
    let options = Cluster::options().patient();
    let options = match registry {
        // Not many more workers than servers, so that servers that crash take over from each other.
        Some((url, worker_bits)) => options
            .own_identifier()
            .set(&format!("pg_snowflake.layout = 'timestamp=41 worker={worker_bits} sequence=6'"))
            .set("pg_snowflake.worker_id = -1")
            .set(&format!("pg_snowflake.registry = '{url}'"))
            .set(&format!("pg_snowflake.registry_window = '{WINDOW}s'")),
        None => options.narrow(),
    };
    with_stepped_clocks(options.set("pg_snowflake.max_lead = '6h'"))
}

/// For a primary and a standby whose clocks are set.
fn with_stepped_clocks(options: Options) -> Options {
    options
        .set("wal_retrieve_retry_interval = '200ms'")
        // A clock that leaps forward looks to these timeouts as if the time had passed.
        .set("wal_sender_timeout = 0")
        .set("wal_receiver_timeout = 0")
        // After an hour, the WAL of many servers would fill the memory that their files are in.
        .set("wal_keep_size = '64MB'")
        .set("max_wal_size = '128MB'")
}

/// A primary, its standby, and another server, which have their databases. With leases, each of the two is behind a proxy.
fn servers(registry: Option<(&[Proxy; 2], Kind)>, worker_bits: u32) -> [Cluster; 3] {
    let of = |number: usize| match registry {
        Some((proxies, kind)) => {
            let url = kind.url(false, "", &format!("127.0.0.1:{}", proxies[number].port()));
            options(Some((&url, worker_bits)))
        }
        None => options(None).set(&format!("pg_snowflake.worker_id = {}", SWAPPED[number])),
    };
    let first = of(0).start();
    for database in DATABASES {
        first.database(database);
        let table = if database == LOOSE { LOOSE_TABLE } else { TABLE };
        first.client_of("postgres", database).batch_execute(table).unwrap();
    }
    let second = first.standby();
    let other = of(1).start();
    other.database(OTHER);
    other.client_of("postgres", OTHER).batch_execute(TABLE).unwrap();
    [first, second, other]
}

/// Causes faults to servers whose worker IDs are set by hand, or leased, and writes the record.
///
/// # Panics
/// Where a server does not survive a fault.
pub fn run(wanted: &Wanted) {
    let with_leases = wanted.registry.is_some();
    // From the servers' options. With leases, three times as many workers as servers that make IDs and their copies, or nearly: a server
    // that was stopped leaves its worker to others once its grant is over by their clocks, which may be minutes behind.
    let worker_bits = match (with_leases, wanted.groups) {
        (false, _) => 16,
        (true, 1) => 3,
        (true, 2) => 4,
        (true, 3..=5) => 5,
        (true, _) => 6,
    };
    let window = if with_leases { WINDOW * 1_000_000_000 } else { 0 };
    let about = About { worker_bits, sequence_bits: 6, tick: 1000, epoch: 1_704_067_200_000_000, window };

    let mut registry = wanted.registry.map(|kind| witness::setup(kind).start());
    let groups = if with_leases { wanted.groups } else { 1 };
    let groups: Vec<(Option<[Proxy; 2]>, [Cluster; 3])> = thread::scope(|scope| {
        let registry = registry.as_ref();
        let make = move || {
            let proxies = registry.map(|server| [(); 2].map(|()| Proxy::before(server.port())));
            let servers = servers(proxies.as_ref().zip(wanted.registry), worker_bits);
            (proxies, servers)
        };
        let made: Vec<_> = (0..groups).map(|_| scope.spawn(make)).collect();
        made.into_iter().map(|group| group.join().unwrap()).collect()
    });
    registry.as_ref().into_iter().for_each(witness::begin);
    if with_leases {
        let create = format!("SELECT snowflake_segment_create('{}')", load::SEGMENT);
        groups[0].1[0].retry(|client| client.query(&create, &[]));
    }

    let history = Writer::new(&wanted.record, &about);
    let progress = Progress::of(wanted);
    thread::scope(|scope| {
        let (history, progress, about) = (&history, &progress, &about);
        for (number, (proxies, servers)) in groups.iter().enumerate() {
            let seed = wanted.seed.wrapping_mul(31).wrapping_add(number as u64);
            scope.spawn(move || {
                let _watch = Watch(progress);
                group(seed, progress, history, about, proxies.as_ref(), servers);
            });
        }
        if let Some(server) = &mut registry {
            scope.spawn(|| {
                let _watch = Watch(progress);
                registry::disturb(server, progress, history);
            });
        }
        while !progress.is_over(history.ids()) {
            progress.sleep(history, TOLD);
            println!("{}", progress.said(history.ids()));
        }
    });

    if let Some(server) = &registry {
        history.grants(&witness::grants(server, "default"));
    }
    let highest = about.tick_of(history.highest()) as f64 * 1e-3 + about.epoch as f64 * 1e-6;
    assert!(highest - true_time() < LONGEST_LEAD, "an ID is ahead by {} s", highest - true_time());
}

/// Has a load on the servers of a group, and causes faults, until the soak is over.
fn group(
    seed: u64,
    progress: &Progress,
    history: &Writer,
    about: &About,
    proxies: Option<&[Proxy; 2]>,
    servers: &[Cluster; 3],
) {
    let (gate, done) = (Gate::default(), AtomicBool::new(false));
    let nodes = [0, 1, 2].map(|index| history.node(&servers[index].data()));
    let place = |index: usize| Mutex::new(Place { index, node: nodes[index], line: history.line() });
    let places = [place(0), place(2)];
    let sites = [0, 1].map(|number| Site { history, gate: &gate, servers, place: &places[number] });
    if proxies.is_none() {
        for (node, worker) in [(nodes[0], SWAPPED[0]), (nodes[1], SWAPPED[0]), (nodes[2], SWAPPED[1])] {
            history.event(&Event::Worker(node, worker.into()));
        }
    }
    let tags = &Tags::of(&[load::SEGMENT]);
    let loads = DATABASES.map(|database| (&sites[0], database)).into_iter().chain([(&sites[1], OTHER)]);
    let mut soak = Soak {
        random: Rng::with_seed(seed),
        progress,
        history,
        gate: &gate,
        servers,
        nodes,
        sites: [&sites[0], &sites[1]],
        about: *about,
        proxies,
        offsets: Default::default(),
        synchronous: false,
        owner_of_first: Which::Primary,
        extras: Vec::new(),
        created: 0,
        calls: history.session(),
        done: Vec::new(),
    };
    let inserted = thread::scope(|scope| {
        let (done, _end) = (&done, End(&done));
        let sessions: Vec<_> = loads
            .flat_map(|(site, database)| (0..SESSIONS).map(move |number| (site, database, number)))
            .enumerate()
            .map(|(session, (site, database, number))| {
                let seed = seed.wrapping_mul(1000).wrapping_add(session as u64);
                let spawned = scope.spawn(move || {
                    let _watch = Watch(progress);
                    load::session(site, database, (number, Making::Any), seed, done)
                });
                (database, spawned)
            })
            .collect();
        // Numbers of a segment come from the registry.
        for (number, (site, database)) in
            [(&sites[0], DATABASES[0]), (&sites[1], OTHER)].repeat(2).into_iter().enumerate()
        {
            let seed = seed.wrapping_mul(2000).wrapping_add(number as u64);
            if proxies.is_some() {
                scope.spawn(move || {
                    let _watch = Watch(progress);
                    load::number_session(site, database, tags, Taking::USUAL, seed, done);
                });
            }
        }
        soak.go_on();
        for place in &places {
            history.event(&Event::Ends(place.lock().unwrap().line, history.now()));
        }
        done.store(true, Relaxed);
        sessions.into_iter().map(|(database, session)| (database, session.join().unwrap())).collect::<Vec<_>>()
    });

    // A session that is killed may have stored a row without getting the answer.
    for (which, databases) in [(Which::Primary, &DATABASES[..]), (Which::Other, &[OTHER])] {
        for &database in databases {
            let of = |(of, list): &(&str, Vec<i64>)| (*of == database).then(|| list.clone());
            let heard: HashSet<i64> = inserted.iter().filter_map(of).flatten().collect();
            let unheard = stored(soak.server(which), database).into_iter().filter(|id| !heard.contains(id));
            history.found(&unheard.collect::<Vec<_>>());
        }
    }
    for (server, node) in servers.iter().zip(nodes) {
        let log = server.log();
        history.log(node, &log);
        for sign in ["PANIC:", "signal 6", "signal 11", "panicked", "TRAP:"] {
            assert!(!log.contains(sign), "{sign} in the log:\n{log}");
        }
    }
}
