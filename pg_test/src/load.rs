//! A load: sessions that make IDs in every way for as long as a test needs it, through crashes and failovers. Also the
//! record of all IDs that they were given.

use crate::{Cluster, check, ids};
use postgres::error::{DbError, SqlState};
use postgres::{Client, Row};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// The table that loads insert into.
pub const TABLE: &str =
    "CREATE TABLE stored (id bigint PRIMARY KEY DEFAULT snowflake_next(), session integer NOT NULL)";

/// A table that does not depend on the extension, which can therefore be dropped: a trigger's body makes the IDs.
pub const LOOSE_TABLE: &str = "
    CREATE TABLE stored (id bigint PRIMARY KEY, session integer NOT NULL);
    CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN NEW.id := public.snowflake_next(); RETURN NEW; END';
    CREATE TRIGGER fill BEFORE INSERT ON stored FOR EACH ROW EXECUTE FUNCTION fill()";

/// Sets a flag when it goes out of scope, also where a test panics. A scope waits for all its threads: a test that panics would hang
/// if they go on until the flag is set, and nobody sets it.
pub struct End<'a>(pub &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Can hold the sessions of a load between two of their calls.
#[derive(Default)]
pub struct Gate {
    paused: AtomicBool,
    busy: AtomicUsize,
    failed: AtomicBool,
    closed: AtomicUsize,
}

/// A call that has passed the gate.
pub(crate) struct Passed<'a>(&'a Gate);

/// While it is there, no session passes the gate.
pub struct Pause<'a>(&'a Gate);

impl Gate {
    /// The longest that a call may take, also through a crash and a restart of the server.
    const LONGEST_CALL: Duration = Duration::from_secs(120);

    /// Waits while sessions are held; then a call may begin.
    pub(crate) fn pass(&self) -> Passed<'_> {
        loop {
            self.busy.fetch_add(1, SeqCst);
            let passed = Passed(self);
            if !self.paused.load(SeqCst) {
                return passed;
            }
            drop(passed);
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Holds all sessions, and waits until their calls have ended. Calls that begin after the pause go by a
    /// configuration that was changed before it.
    ///
    /// # Panics
    /// Where a call does not end.
    pub fn pause(&self) -> Pause<'_> {
        self.paused.store(true, SeqCst);
        let pause = Pause(self);
        let start = Instant::now();
        while self.busy.load(SeqCst) > 0 {
            assert!(start.elapsed() < Self::LONGEST_CALL, "{} calls hang", self.busy.load(SeqCst));
            thread::sleep(Duration::from_millis(1));
        }
        pause
    }

    /// Holds all sessions until [`Gate::open`].
    pub(crate) fn close(&self) {
        self.closed.fetch_add(1, SeqCst);
        std::mem::forget(self.pause());
    }

    /// How often it was closed: connections from before may be to a server that is not meant any more.
    pub(crate) fn times_closed(&self) -> usize {
        self.closed.load(SeqCst)
    }

    /// Lets them go on.
    pub(crate) fn open(&self) {
        drop(Pause(self));
    }

    /// Whether a session has panicked.
    pub fn has_failed(&self) -> bool {
        self.failed.load(SeqCst)
    }
}

impl Drop for Passed<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.store(true, SeqCst);
        }
        self.0.busy.fetch_sub(1, SeqCst);
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.paused.store(false, SeqCst);
    }
}

/// All IDs that sessions were given.
#[derive(Default)]
pub struct Record {
    /// By session, in order: the answers to SELECT, and to INSERT in transactions that were rolled back.
    only_given: Vec<Vec<i64>>,
    /// By session, in order, with the session's database: the answers to INSERT ... RETURNING.
    inserted: Vec<(String, Vec<i64>)>,
    /// Errors of this extension that calls ended with, by SQLSTATE.
    pub refused: Vec<String>,
    /// How often each message came, with the SQLSTATE before it.
    pub messages: BTreeMap<String, usize>,
}

impl Record {
    /// Every ID was given once, over all sessions, databases and servers, and no ID that a server has stored was given
    /// to another session. Returns how many IDs there are.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn check(&self, servers: &[&Cluster]) -> usize {
        check::distinct(&self.lists(servers))
    }

    /// All IDs that were given, and those that are stored though no session got an answer. A row that several servers
    /// have counts once.
    pub fn lists(&self, servers: &[&Cluster]) -> Vec<Vec<i64>> {
        let mut inserted: BTreeMap<&str, HashSet<i64>> = BTreeMap::new();
        for (database, list) in &self.inserted {
            inserted.entry(database).or_default().extend(list);
        }
        // A session that is killed may have stored a row without getting the answer.
        let mut unheard = HashSet::new();
        for server in servers {
            for (&database, heard) in &inserted {
                let stored = stored(server, database);
                unheard.extend(stored.into_iter().filter(|id| !heard.contains(id)).map(|id| (database, id)));
            }
        }
        let mut lists = self.only_given.clone();
        lists.extend(self.inserted.iter().map(|(_, list)| list.clone()));
        lists.push(unheard.into_iter().map(|(_, id)| id).collect());
        lists
    }

    /// All IDs that were given.
    pub fn all(&self) -> Vec<i64> {
        let inserted = self.inserted.iter().map(|(_, list)| list);
        self.only_given.iter().chain(inserted).flatten().copied().collect()
    }

    /// How many IDs were given.
    pub fn given(&self) -> usize {
        let inserted = self.inserted.iter().map(|(_, list)| list);
        self.only_given.iter().chain(inserted).map(Vec::len).sum()
    }

    /// Adds what another load was given.
    pub fn add(&mut self, other: Self) {
        self.only_given.extend(other.only_given);
        self.inserted.extend(other.inserted);
        self.refused.extend(other.refused);
        for (message, count) in other.messages {
            *self.messages.entry(message).or_default() += count;
        }
    }
}

/// What a database has stored.
pub fn stored(server: &Cluster, database: &str) -> Vec<i64> {
    ids(&server.client_of("postgres", database).query("SELECT id FROM stored", &[]).unwrap())
}

/// Runs `during` while so many sessions make IDs on the server that `server` names at the moment. A session that loses
/// its connection connects again.
pub fn run_during<'a, T>(
    sessions: i32,
    server: impl Fn() -> &'a Cluster + Sync,
    during: impl FnOnce() -> T,
) -> (T, Record) {
    run_during_in(&["postgres"], sessions, server, during)
}

/// How long a session rests between two calls. Without a rest, the clients would take most of the processors' time.
const REST: Duration = Duration::from_millis(3);

/// The same with so many sessions in each of these databases.
pub fn run_during_in<'a, T>(
    databases: &[&str],
    sessions: i32,
    server: impl Fn() -> &'a Cluster + Sync,
    during: impl FnOnce() -> T,
) -> (T, Record) {
    run_gated(databases, sessions, REST, &Gate::default(), server, during)
}

/// The same with sessions that rest between two calls, and can be held at a gate.
pub fn run_gated<'a, T>(
    databases: &[&str],
    sessions: i32,
    rest: Duration,
    gate: &Gate,
    server: impl Fn() -> &'a Cluster + Sync,
    during: impl FnOnce() -> T,
) -> (T, Record) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (server, done) = (&server, &done);
        let threads: Vec<_> = databases
            .iter()
            .flat_map(|&database| (0..sessions).map(move |number| (database, number)))
            .map(|(database, number)| scope.spawn(move || session(database, number, rest, gate, server, done)))
            .collect();
        let end = End(done);
        let result = during();
        drop(end);
        let mut record = Record::default();
        for thread in threads {
            record.add(thread.join().unwrap());
        }
        (result, record)
    })
}

fn session<'a>(
    database: &str,
    number: i32,
    rest: Duration,
    gate: &Gate,
    server: &(impl Fn() -> &'a Cluster + Sync),
    done: &AtomicBool,
) -> Record {
    let (mut only_given, mut inserted, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut messages = BTreeMap::<String, usize>::new();
    let (mut connection, mut round, mut last) = (None, number, i64::MIN);
    while !done.load(Ordering::Relaxed) {
        let passed = gate.pass();
        let client = match &mut connection {
            Some(client) => client,
            None => match server().try_client_of(database) {
                Ok(client) => connection.insert(client),
                Err(_) => {
                    drop(passed);
                    thread::sleep(Duration::from_millis(10));
                    continue;
                }
            },
        };
        let (list, answer) = match round % 5 {
            0 => (&mut only_given, one(client)),
            1 => (&mut only_given, client.query("SELECT snowflake_next(100)", &[])),
            2 => (&mut only_given, rolled_back(client, number)),
            _ => (&mut inserted, client.query("INSERT INTO stored (session) VALUES ($1) RETURNING id", &[&number])),
        };
        round = (round + 1) % 5;
        let mut pause = rest;
        match answer {
            Ok(rows) => {
                let new = ids(&rows);
                check::rising(&[&[last], &new[..]].concat());
                last = new.last().copied().unwrap_or(last);
                list.extend(new);
            }
            Err(error) => {
                if let Some(code) = error.code() {
                    assert_ne!(*code, SqlState::UNIQUE_VIOLATION, "{error:?}");
                    refused.push(code.code().to_owned());
                    let message = error.as_db_error().map_or("", DbError::message);
                    *messages.entry(format!("{} {message}", code.code())).or_default() += 1;
                    pause = Duration::from_millis(5);
                }
                // After the crash of another session, or while the extension is not there.
                if error.code().is_none() || client.is_closed() || client.batch_execute("ROLLBACK").is_err() {
                    connection = None;
                }
            }
        }
        drop(passed);
        if !pause.is_zero() {
            thread::sleep(pause);
        }
    }
    Record { only_given: vec![only_given], inserted: vec![(database.to_owned(), inserted)], refused, messages }
}

fn one(client: &mut Client) -> Result<Vec<Row>, postgres::Error> {
    client.query("SELECT snowflake_next()", &[])
}

fn rolled_back(client: &mut Client, number: i32) -> Result<Vec<Row>, postgres::Error> {
    let mut transaction = client.transaction()?;
    let rows = transaction.query("INSERT INTO stored (session) VALUES ($1), ($1) RETURNING id", &[&number])?;
    transaction.rollback()?;
    Ok(rows)
}
