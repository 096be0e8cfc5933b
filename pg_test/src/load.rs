//! Sessions that make IDs in every way for as long as they are told to, through crashes and failovers, and the record of
//! all that they were given.

use crate::{Cluster, check, ids};
use postgres::error::SqlState;
use postgres::{Client, Row};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The table that loads insert into.
pub const TABLE: &str =
    "CREATE TABLE stored (id bigint PRIMARY KEY DEFAULT snowflake_next(), session integer NOT NULL)";

/// All IDs that sessions were given.
#[derive(Default)]
pub struct Record {
    /// By session, in order: the answers to SELECT, and to INSERT in transactions that were rolled back.
    only_given: Vec<Vec<i64>>,
    /// By session, in order, with the session's database: the answers to INSERT ... RETURNING.
    inserted: Vec<(String, Vec<i64>)>,
    /// Errors of this extension that calls ended with, by SQLSTATE.
    pub refused: Vec<String>,
}

impl Record {
    /// Every ID was given once, over all sessions, databases and servers; each session's rise; and what the servers
    /// have stored was given to nobody else. Returns how many IDs there are.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn check(&self, servers: &[&Cluster]) -> usize {
        let mut inserted: BTreeMap<&str, HashSet<i64>> = BTreeMap::new();
        for (database, list) in &self.inserted {
            inserted.entry(database).or_default().extend(list);
        }
        // A session that dies may not hear of a row that it has stored. A row that several servers have is one.
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
        check::distinct(&lists)
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
    }
}

/// What a database has stored.
pub fn stored(server: &Cluster, database: &str) -> Vec<i64> {
    ids(&server.client_of("postgres", database).query("SELECT id FROM stored", &[]).unwrap())
}

/// Runs `during` while so many sessions make IDs on whatever server `server` names at the moment. A session that loses
/// its connection makes a new one.
pub fn run_during<'a, T>(
    sessions: i32,
    server: impl Fn() -> &'a Cluster + Sync,
    during: impl FnOnce() -> T,
) -> (T, Record) {
    run_during_in(&["postgres"], sessions, server, during)
}

/// The same with so many sessions in each of these databases.
pub fn run_during_in<'a, T>(
    databases: &[&str],
    sessions: i32,
    server: impl Fn() -> &'a Cluster + Sync,
    during: impl FnOnce() -> T,
) -> (T, Record) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (server, done) = (&server, &done);
        let threads: Vec<_> = databases
            .iter()
            .flat_map(|&database| (0..sessions).map(move |number| (database, number)))
            .map(|(database, number)| scope.spawn(move || session(database, number, server, done)))
            .collect();
        // Also where `during` panics: the scope waits for the threads.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(during));
        done.store(true, Ordering::Relaxed);
        let mut record = Record::default();
        for thread in threads {
            record.add(thread.join().unwrap());
        }
        match result {
            Ok(result) => (result, record),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn session<'a>(database: &str, number: i32, server: &(impl Fn() -> &'a Cluster + Sync), done: &AtomicBool) -> Record {
    let (mut only_given, mut inserted, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut all = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let Ok(mut client) = server().try_client_of(database) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        for round in number.. {
            if done.load(Ordering::Relaxed) || client.is_closed() {
                break;
            }
            let (list, answer) = match round % 5 {
                0 => (&mut only_given, one(&mut client)),
                1 => (&mut only_given, client.query("SELECT snowflake_next(100)", &[])),
                2 => (&mut only_given, rolled_back(&mut client, number)),
                _ => (&mut inserted, client.query("INSERT INTO stored (session) VALUES ($1) RETURNING id", &[&number])),
            };
            match answer {
                Ok(rows) => {
                    list.extend(ids(&rows));
                    all.extend(ids(&rows));
                }
                Err(error) => {
                    let Some(code) = error.code() else { break };
                    assert_ne!(*code, SqlState::UNIQUE_VIOLATION, "{error:?}");
                    refused.push(code.code().to_owned());
                    if client.is_closed() {
                        break;
                    }
                    // As after the crash of another session, or while the extension is not there.
                    let _ = client.batch_execute("ROLLBACK");
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }
    check::rising(&all);
    Record { only_given: vec![only_given], inserted: vec![(database.to_owned(), inserted)], refused }
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
