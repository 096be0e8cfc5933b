//! Faults at random on a primary with a standby, and on another server beside them, all under load in several databases. The
//! same seed gives the same faults in the same order.
//!
//! The faults stay within the promise: the server is failed over only while its standby is a synchronous one, nothing is
//! started from a past state, a worker ID is taken over only above all that its old owner made with it.

use crate::load::{Gate, LOOSE_TABLE, TABLE, run_gated};
use crate::{Cluster, Options, Stop, check, ids, kill, run as run_program};
use fastrand::Rng;
use postgres::Client;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What can happen. "Any clock": set to a time within the soak, or near it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The postmaster and all its processes get SIGKILL; any clock when it starts again.
    PostmasterKilled,
    /// A session gets SIGKILL, and shared memory is made anew.
    SessionKilled,
    /// Stopped without a checkpoint; any clock as above.
    StoppedImmediately,
    /// Stopped with one; any clock as above.
    StoppedFast,
    /// Any clock while the server runs.
    ClockStepped,
    /// A year ahead for a moment while the server runs; at times a session is killed meanwhile.
    ClockLeapt,
    /// The primary is killed, the synchronous standby promoted with any clock, the old primary rewound to follow.
    FailedOver,
    /// The standby is down for a moment, while sessions wait for it or not.
    StandbyStopped,
    /// The standby becomes synchronous, or ceases to be.
    SynchronousChanged,
    /// A checkpoint is made.
    Checkpoint,
    /// The worker ID is changed by a reload.
    WorkerChanged,
    /// The two servers exchange their worker IDs.
    WorkersSwapped,
    /// A database is dumped under load, and restored as another one of this server or of the other.
    DumpRestored,
    /// The extension is dropped and created in a database; at times the server crashes or is restarted in between.
    ExtensionRecreated,
    /// A database is created with another one as its template.
    DatabaseCopied,
    /// The replication origin that holds the reservation is dropped.
    OriginDropped,
    /// Other parameters are changed by a reload.
    ParametersChanged,
    /// No call for a while.
    LoadPaused,
}

const FAULTS: [Fault; 18] = [
    Fault::PostmasterKilled,
    Fault::SessionKilled,
    Fault::StoppedImmediately,
    Fault::StoppedFast,
    Fault::ClockStepped,
    Fault::ClockLeapt,
    Fault::FailedOver,
    Fault::StandbyStopped,
    Fault::SynchronousChanged,
    Fault::Checkpoint,
    Fault::WorkerChanged,
    Fault::WorkersSwapped,
    Fault::DumpRestored,
    Fault::ExtensionRecreated,
    Fault::DatabaseCopied,
    Fault::OriginDropped,
    Fault::ParametersChanged,
    Fault::LoadPaused,
];

/// Whether sessions that wait for a standby go on when `synchronous_standby_names` is reset. Until they do, the setting is only
/// reset while the standby runs.
const RESET_RELEASES: bool = true;

/// The databases under load of the primary; the extension is dropped and created in the last.
const DATABASES: [&str; 3] = ["app0", "app1", LOOSE];
const LOOSE: &str = "loose";
/// That of the other server.
const OTHER: &str = "other0";
/// Sessions in each.
const SESSIONS: i32 = 3;
/// Between two calls of one.
const REST: Duration = Duration::from_millis(1);
/// In seconds.
const YEAR: f64 = 31_536_000.0;
/// No ID may be further ahead of the true time, in seconds.
const LONGEST_LEAD: f64 = 3600.0;
/// For a server to do what it was told.
const PATIENCE: Duration = Duration::from_secs(40);

/// A server in the soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Primary,
    Other,
}

/// A database that came into being by a fault. It makes IDs after each further one, until it is dropped.
struct Extra {
    server: Which,
    name: String,
}

struct Soak<'a> {
    random: Rng,
    began: Instant,
    gate: &'a Gate,
    /// The primary and its standby, and the other server.
    servers: &'a [Cluster; 3],
    primary: &'a AtomicUsize,
    /// Of each server's clock, in seconds.
    offsets: [Cell<f64>; 3],
    synchronous: bool,
    /// Which server has the first of the two worker IDs that are swapped; the other has the second.
    owner_of_first: Which,
    extras: Vec<Extra>,
    /// How many there ever were.
    created: usize,
    /// What the extra databases gave, and what this gave to itself.
    given: Vec<i64>,
    /// What was caused when.
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

/// The two worker IDs that are swapped. The others are the primary's where they are even, else the other server's.
const SWAPPED: [u32; 2] = [1, 2];

fn true_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
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
        thread::sleep(Duration::from_millis(self.random.u64(from..to)));
    }

    // The clocks.

    fn set_clock(&self, index: usize, offset: f64) {
        self.offsets[index].set(offset);
        self.servers[index].step_clock(&format!("{offset:+.3}s"));
    }

    /// Most often a time at which IDs were made before, as there they would come again.
    fn any_offset(&mut self) -> f64 {
        let elapsed = self.began.elapsed().as_secs_f64();
        match self.random.u32(..16) {
            0..9 => -self.random.f64() * (elapsed + 5.0),
            9..13 => 0.0,
            13..15 => self.random.f64() * 8.0,
            _ => self.random.f64() * 120.0 - 60.0,
        }
    }

    fn any_clock(&mut self, index: usize) {
        let offset = self.any_offset();
        self.set_clock(index, offset);
    }

    fn leap(&mut self, which: Which) {
        let index = self.index(which);
        let before = self.offsets[index].get();
        self.set_clock(index, before + YEAR);
        if self.random.u32(..3) == 0 {
            self.kill_session(which);
        }
        self.pause(500, 3000);
        self.set_clock(index, before);
        self.check_lead(which);
    }

    /// An ID of the server has no time that is too far ahead.
    fn check_lead(&mut self, which: Which) {
        let time: f64 = self.server(which).retry(|client| {
            let query = "SELECT extract(epoch FROM snowflake_timestamp(snowflake_next()))::float8";
            Ok(client.query_one(query, &[])?.get(0))
        });
        assert!(time - true_time() < LONGEST_LEAD, "{which:?} is ahead by {} s", time - true_time());
    }

    // Ends of sessions and servers.

    fn kill_session(&mut self, which: Which) {
        let server = self.server(which);
        let crashes = || server.log().matches("all server processes terminated; reinitializing").count();
        let before = crashes();
        let pid: i32 = server.retry(|client| {
            let others = "SELECT pid FROM pg_stat_activity \
                          WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1";
            Ok(client.query_one(others, &[])?.get(0))
        });
        kill(pid.unsigned_abs());
        wait_until("the server does not notice that a session was killed", || crashes() > before);
        self.is_up(which);
    }

    fn is_up(&self, which: Which) {
        self.server(which).retry(|client| client.query_one("SELECT 1", &[]));
    }

    fn restart(&mut self, which: Which, how: Stop) {
        let offset = self.any_offset();
        self.restart_at(which, how, offset);
    }

    fn restart_at(&self, which: Which, how: Stop, offset: f64) {
        self.server(which).stop(how);
        self.set_clock(self.index(which), offset);
        self.server(which).start().unwrap();
    }

    // The standby.

    fn set_synchronous(&mut self, synchronous: bool) {
        let names = if synchronous { "*" } else { "" };
        self.server(Which::Primary).reload(&[("synchronous_standby_names", names)]);
        self.synchronous = synchronous;
        if synchronous {
            // What is under way may not know of it, and what is reserved may not be on the standby yet.
            drop(self.gate.pause());
            self.standby().catch_up_with(self.server(Which::Primary));
        }
    }

    fn standby_is_stopped(&mut self) {
        let standby = self.standby();
        standby.stop(Stop::Fast);
        self.pause(200, 2000);
        if RESET_RELEASES && self.synchronous {
            self.set_synchronous(false);
            drop(self.gate.pause());
        }
        self.standby().start().unwrap();
        self.standby().catch_up_with(self.server(Which::Primary));
    }

    /// The primary dies, its synchronous standby takes over; then it follows.
    fn fail_over(&mut self) {
        self.set_synchronous(true);
        self.pause(0, 1500);
        let old = self.index(Which::Primary);
        self.servers[old].stop(Stop::Kill);
        self.any_clock(1 - old);
        self.servers[1 - old].promote();
        self.primary.store(1 - old, Ordering::Relaxed);
        self.synchronous = false;
        let (primary, standby) = (self.server(Which::Primary), self.standby());
        self.is_up(Which::Primary);
        standby.rewind_to(primary);
        standby.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
        standby.start().unwrap();
        standby.catch_up_with(primary);
    }

    // Parameters.

    /// On the standby, too: it keeps them when it is promoted.
    fn configure(&self, which: Which, parameters: &[(&str, &str)]) {
        self.server(which).reload(parameters);
        if which == Which::Primary {
            self.standby().reload(parameters);
        }
    }

    fn set_worker(&self, which: Which, worker: i64) {
        self.configure(which, &[("pg_snowflake.worker_id", &worker.to_string())]);
    }

    /// A worker ID that no other server ever has.
    fn any_own_worker(&mut self, which: Which) -> i64 {
        let own = self.random.i64(2..500) * 2;
        if which == Which::Primary { own } else { own + 1 }
    }

    fn change_parameters(&mut self, which: Which) {
        let reserve = *self.random.choice(&["200ms", "1s", "1s", "3s"]).unwrap();
        let burst = *self.random.choice(&["10ms", "100ms", "300ms"]).unwrap();
        let spread = *self.random.choice(&["1", "8", "64"]).unwrap();
        let source = *self.random.choice(&["auto", "system"]).unwrap();
        self.configure(
            which,
            &[
                ("pg_snowflake.reserve_ahead", reserve),
                ("pg_snowflake.max_burst", burst),
                ("pg_snowflake.sequence_spread", spread),
                ("pg_snowflake.clock_source", source),
            ],
        );
    }

    fn swap_workers(&mut self) {
        let (owner, [first, second]) = (self.owner_of_first, SWAPPED.map(i64::from));
        let rest = if owner == Which::Primary { Which::Other } else { Which::Primary };
        // Without a worker for a while, or with one of its own.
        let spare = self.any_own_worker(owner);
        let leaves_for = if self.random.bool() { -1 } else { spare };
        self.hand_over(first, owner, rest, leaves_for);
        self.set_worker(owner, spare);
        self.hand_over(second, rest, owner, first);
        self.owner_of_first = rest;
    }

    /// One server ceases to use a worker ID, and another begins.
    fn hand_over(&mut self, worker: i64, from: Which, to: Which, leaves_for: i64) {
        self.set_worker(from, worker);
        self.retry_id(from);
        self.pause(50, 300);
        self.set_worker(from, leaves_for);
        let mut until = None;
        wait_until("the status does not say until when the worker was used", || {
            let query = "SELECT previous_until::text, extract(epoch FROM previous_until)::float8 FROM snowflake_status() \
                         WHERE previous_worker_id = $1 AND worker_id IS DISTINCT FROM $1";
            let worker = i32::try_from(worker).unwrap();
            let row = self.server(from).retry(|client| client.query_opt(query, &[&worker]));
            until = row.map(|row| (row.get::<_, String>(0), row.get::<_, f64>(1)));
            until.is_some()
        });
        let (until, seconds) = until.unwrap();
        // Its IDs, which say more than its clock: it may have a leap that is not believed, and it may be set back before
        // the first ID with the new worker.
        let query = format!("SELECT snowflake_timestamp(snowflake_next()) >= '{until}'");
        let is_past =
            |soak: &Self| -> bool { soak.server(to).retry(|client| Ok(client.query_one(&query, &[])?.get(0))) };
        let time: f64 = self.server(to).retry(|client| {
            let query = "SELECT extract(epoch FROM snowflake_timestamp(snowflake_next()))::float8";
            Ok(client.query_one(query, &[])?.get(0))
        });
        if seconds - time > 5.0 {
            self.restart_at(to, Stop::Fast, seconds - true_time() + 1.0);
        }
        wait_until("the new owner does not come past the time of the old", || is_past(self));
        self.set_worker(to, worker);
    }

    /// An ID for this, once the server makes them.
    fn retry_id(&mut self, which: Which) {
        let id = self.server(which).retry(|client| Ok(client.query_one("SELECT snowflake_next()", &[])?.get(0)));
        self.given.push(id);
    }

    // Databases.

    fn new_name(&mut self) -> String {
        self.created += 1;
        format!("extra{}", self.created)
    }

    fn any_database(&mut self) -> String {
        let extras = self.extras.iter().filter(|extra| extra.server == Which::Primary).map(|extra| extra.name.clone());
        let all: Vec<String> = DATABASES.map(str::to_owned).into_iter().chain(extras).collect();
        self.random.choice(all).unwrap()
    }

    fn restore_dump(&mut self) {
        let (from, server, name) = (self.any_database(), self.any_server(), self.new_name());
        let primary = self.server(Which::Primary);
        let file = primary.socket().join("dump");
        run_program(primary.program("pg_dump").args(["--dbname", &from, "--file"]).arg(&file));
        let target = self.server(server);
        target.client().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        let mut psql = target.program("psql");
        psql.args(["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname", &name, "--file"]);
        run_program(psql.arg(&file).stdout(std::process::Stdio::null()));
        self.extras.push(Extra { server, name });
    }

    fn copy_database(&mut self) {
        let (from, name) = (self.any_database(), self.new_name());
        let paused = self.gate.pause();
        let mut client = self.server(Which::Primary).client();
        let others = format!("FROM pg_stat_activity WHERE datname = '{from}'");
        client.batch_execute(&format!("SELECT pg_terminate_backend(pid) {others}")).unwrap();
        wait_until("sessions that were terminated do not end", || {
            client.query_one(&format!("SELECT count(*) {others}"), &[]).unwrap().get::<_, i64>(0) == 0
        });
        client.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {from}")).unwrap();
        drop(paused);
        self.extras.push(Extra { server: Which::Primary, name });
    }

    fn recreate_extension(&mut self) {
        let loose = |soak: &Self| -> Client { soak.server(Which::Primary).client_once_up(LOOSE) };
        loose(self).batch_execute("DROP EXTENSION pg_snowflake").unwrap();
        match self.random.u32(..4) {
            0 => self.kill_session(Which::Primary),
            1 => self.restart(Which::Primary, Stop::Fast),
            2 => self.restart(Which::Primary, Stop::Kill),
            _ => self.pause(0, 300),
        }
        loose(self).batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    }

    /// It comes again when the next reservation is written; until then, the server must not crash.
    fn drop_origin(&mut self) {
        self.server(Which::Primary).client().batch_execute("SELECT pg_replication_origin_drop('snowflake')").unwrap();
        wait_until("the origin does not come again", || {
            let query = "SELECT snowflake_next(), EXISTS (
                SELECT FROM pg_replication_origin_status WHERE external_id = 'snowflake' AND remote_lsn <> '0/0')";
            let row = self.server(Which::Primary).retry(|client| client.query_one(query, &[]));
            self.given.push(row.get(0));
            row.get(1)
        });
    }

    /// Those that were created make IDs, and of more than a few the oldest is dropped.
    fn use_extras(&mut self) {
        for Extra { server, name } in &self.extras {
            let mut client = self.servers[self.index(*server)].client_once_up(name);
            for query in ["SELECT snowflake_next(200)", "INSERT INTO stored (session) VALUES (-1) RETURNING id"] {
                let rows = client.query(query, &[]).unwrap_or_else(|error| panic!("{name}: {error:?}"));
                self.given.extend(ids(&rows));
            }
        }
        if self.extras.len() > 3 {
            let Extra { server, name } = self.extras.remove(0);
            self.server(server).client().batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).unwrap();
        }
    }

    // All of them.

    fn cause(&mut self, fault: Fault) {
        let which = self.any_server();
        match fault {
            Fault::PostmasterKilled => self.restart(which, Stop::Kill),
            Fault::StoppedImmediately => self.restart(which, Stop::Immediate),
            Fault::StoppedFast => self.restart(which, Stop::Fast),
            Fault::ClockStepped => self.any_clock(self.index(which)),
            Fault::ClockLeapt => self.leap(which),
            Fault::SessionKilled => self.kill_session(which),
            Fault::FailedOver => self.fail_over(),
            Fault::StandbyStopped => self.standby_is_stopped(),
            Fault::SynchronousChanged => self.set_synchronous(!self.synchronous),
            Fault::Checkpoint => self.server(which).client().batch_execute("CHECKPOINT").unwrap(),
            Fault::WorkerChanged => {
                let worker = self.any_own_worker(which);
                self.set_worker(which, worker);
            }
            Fault::WorkersSwapped => self.swap_workers(),
            Fault::DumpRestored => self.restore_dump(),
            Fault::ExtensionRecreated => self.recreate_extension(),
            Fault::DatabaseCopied => self.copy_database(),
            Fault::OriginDropped => self.drop_origin(),
            Fault::ParametersChanged => self.change_parameters(which),
            Fault::LoadPaused => {
                let _paused = self.gate.pause();
                self.pause(1000, 3000);
            }
        }
        self.use_extras();
        // The load goes on before the next fault.
        self.pause(100, 800);
        self.retry_id(Which::Primary);
        self.retry_id(Which::Other);
    }

    /// In each round every fault once, in any order.
    fn go_on_until(&mut self, end: Instant) -> BTreeMap<Fault, usize> {
        let mut survived = BTreeMap::new();
        loop {
            let mut faults = FAULTS;
            self.random.shuffle(&mut faults);
            for fault in faults {
                // A session has found what must not be: it says so when the load ends.
                if Instant::now() >= end || self.gate.has_failed() {
                    return survived;
                }
                let start = Instant::now();
                self.history.push((self.began.elapsed(), fault));
                self.cause(fault);
                assert!(start.elapsed() < Duration::from_secs(180), "{fault:?} took {:?}", start.elapsed());
                *survived.entry(fault).or_default() += 1;
            }
        }
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

/// 64 IDs a millisecond: most are used under load, so that claims of one time meet.
fn options() -> Options {
    Cluster::options()
        .with_clock()
        .set("pg_snowflake.layout = 'timestamp=41 worker=16 sequence=6'")
        .set("pg_snowflake.max_lead = '6h'")
        .set("pg_snowflake.max_wait = '20s'")
        .set("wal_retrieve_retry_interval = '200ms'")
        // They take a clock that leaps for time that has passed.
        .set("wal_sender_timeout = 0")
        .set("wal_receiver_timeout = 0")
}

/// Errors that a fault explains: the server ends sessions or is on its way; the extension is not there; there is no worker.
const EXPLAINED: [&str; 9] = [
    "57P0",
    "25006",
    "42883 function snowflake_next",
    "42883 function public.snowflake_next",
    "XX000 cache lookup failed for function",
    "55000 extension pg_snowflake is not created in this database",
    "55000 pg_snowflake.worker_id is not set",
    "40P01",
    "40001",
];

/// Causes faults for so long.
///
/// # Panics
/// With the first duplicate; or where a server does not survive, or does what no fault explains.
pub fn run(seed: u64, length: Duration) -> Report {
    let first = options().start();
    for database in DATABASES {
        first.database(database);
        let table = if database == LOOSE { LOOSE_TABLE } else { TABLE };
        first.client_of("postgres", database).batch_execute(table).unwrap();
    }
    let second = first.standby();
    let other = options().set(&format!("pg_snowflake.worker_id = {}", SWAPPED[1])).start();
    other.database(OTHER);
    other.client_of("postgres", OTHER).batch_execute(TABLE).unwrap();

    let (servers, primary, gate) = ([first, second, other], AtomicUsize::new(0), Gate::default());
    let mut soak = Soak {
        random: Rng::with_seed(seed),
        began: Instant::now(),
        gate: &gate,
        servers: &servers,
        primary: &primary,
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
        run_gated(&[OTHER], SESSIONS, REST, &gate, || &servers[2], || soak.go_on_until(end))
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
