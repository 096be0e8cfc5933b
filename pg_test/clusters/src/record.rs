//! All IDs that anybody was ever given or has stored, on whichever server, and what must hold for them.
//!
//! Each ID is asked for under a *tag*, a number that is used once. A row has the tag of its ID. So a row that several
//! servers have, and that a client was told of, is known to be one ID that was made once; and an ID with two tags was made
//! twice.

use postgres::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The tables that a load writes to: one with IDs, and one without, which shows when writes are possible at all.
pub const TABLES: &str = "
    CREATE TABLE stored (id bigint PRIMARY KEY DEFAULT snowflake_next(), tag bigint NOT NULL);
    CREATE TABLE plain (n bigint NOT NULL)";

/// One run of one server: no two have the same port and the same start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The port of the server.
    pub port: i32,
    /// When its postmaster was started.
    pub started: String,
}

impl Run {
    /// That of the server that this session is connected to.
    ///
    /// # Errors
    /// Where the connection is lost.
    pub fn of(client: &mut Client) -> Result<Self, postgres::Error> {
        let query = "SELECT current_setting('port')::integer, pg_postmaster_start_time()::text";
        let row = client.query_one(query, &[])?;
        Ok(Self { port: row.get(0), started: row.get(1) })
    }
}

/// A call that made IDs, as its client saw it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Where it was made.
    pub run: Run,
    /// Before it was sent, since the start of the record.
    pub begin: Duration,
    /// After it was answered.
    pub end: Duration,
    /// The tag of the first ID; the others have those that follow.
    pub tag: i64,
    /// The IDs, in the order of the answer.
    pub ids: Vec<i64>,
}

/// What was given and stored.
pub struct Record {
    start: Instant,
    tags: AtomicI64,
    calls: Mutex<Vec<Call>>,
    stored: Mutex<BTreeSet<(i64, i64)>>,
    /// How often each error came, by its message.
    errors: Mutex<BTreeMap<String, usize>>,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            tags: AtomicI64::new(1),
            calls: Mutex::default(),
            stored: Mutex::default(),
            errors: Mutex::default(),
        }
    }
}

impl Record {
    /// The time since the record's start.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// So many new tags; the first of them.
    pub fn tags(&self, count: usize) -> i64 {
        self.tags.fetch_add(i64::try_from(count).unwrap(), Relaxed)
    }

    /// Notes a call.
    pub fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }

    /// Notes an error.
    pub fn note_error(&self, error: &postgres::Error) {
        let message = error.as_db_error().map_or_else(
            || "the connection was lost".to_owned(),
            |error| format!("{} {}", error.code().code(), error.message()),
        );
        *self.errors.lock().unwrap().entry(message).or_default() += 1;
    }

    /// Notes what a server has stored now. What is lost with a timeline later stays noted.
    pub fn note_stored(&self, client: &mut Client) {
        let rows = client.query("SELECT id, tag FROM stored", &[]).unwrap();
        self.stored.lock().unwrap().extend(rows.iter().map(|row| (row.get(0), row.get(1))));
    }

    /// The errors so far, with how often each came.
    pub fn errors(&self) -> BTreeMap<String, usize> {
        self.errors.lock().unwrap().clone()
    }

    /// How many IDs clients were given by the server at this port since an instant.
    pub fn given_since(&self, port: u16, since: Duration) -> usize {
        let calls = self.calls.lock().unwrap();
        let counted = calls.iter().rev().take_while(|call| call.end >= since);
        counted.filter(|call| call.run.port == i32::from(port)).map(|call| call.ids.len()).sum()
    }

    /// The IDs that were made more than once, and how many there are in all.
    pub fn repeated(&self) -> (Vec<i64>, usize) {
        let mut all: Vec<(i64, i64)> = self.stored.lock().unwrap().iter().copied().collect();
        for call in self.calls.lock().unwrap().iter() {
            all.extend(call.ids.iter().copied().zip(call.tag..));
        }
        all.sort_unstable();
        all.dedup();
        let repeated: BTreeSet<i64> =
            all.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0).collect();
        (repeated.into_iter().collect(), all.len())
    }

    /// In each run of each server, the IDs of a call are higher than those of all calls that had ended before it began.
    ///
    /// # Panics
    /// With the first call for which that is not so.
    pub fn check_order(&self) {
        let mut runs: BTreeMap<Run, Vec<Call>> = BTreeMap::new();
        for call in self.calls.lock().unwrap().iter() {
            runs.entry(call.run.clone()).or_default().push(call.clone());
        }
        for (run, mut calls) in runs {
            calls.sort_by_key(|call| call.begin);
            let mut by_end: Vec<(Duration, i64)> =
                calls.iter().map(|call| (call.end, *call.ids.last().unwrap())).collect();
            by_end.sort_unstable();
            let (mut ended, mut highest) = (by_end.into_iter().peekable(), i64::MIN);
            for call in calls {
                while let Some((_, last)) = ended.next_if(|(end, _)| *end < call.begin) {
                    highest = highest.max(last);
                }
                assert!(call.ids[0] > highest, "{run:?}: after {highest} comes {} at {:?}", call.ids[0], call.begin);
                assert!(call.ids.is_sorted(), "{run:?}: {:?}", call.ids);
            }
        }
    }

    /// No ID was made twice, and each server's IDs rise. Returns how many there are.
    ///
    /// # Panics
    /// Where that is not so.
    pub fn check(&self) -> usize {
        let (repeated, count) = self.repeated();
        assert!(repeated.is_empty(), "{} of {count} IDs came again, such as {:?}", repeated.len(), repeated.first());
        let errors = self.errors();
        assert!(!errors.keys().any(|message| message.starts_with("23505")), "{errors:?}");
        self.check_order();
        count
    }
}
