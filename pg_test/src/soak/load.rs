//! The sessions of the load: each makes IDs in every way, one call after the other, and writes down what came of it.

use super::PATIENCE;
use crate::history::{Calls, Place, Writer};
use crate::load::Gate;
use crate::{Cluster, ids};
use fastrand::Rng;
use postgres::{Client, Error};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// How long a session rests between two calls.
const REST: Duration = Duration::from_millis(80);
/// After an error.
const LONGER_REST: Duration = Duration::from_millis(80);
/// How many IDs a call makes at most.
const MOST: i32 = 1500;
/// How many numbers.
const MOST_NUMBERS: i32 = 60;

/// Where a load is.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub history: &'a Writer,
    pub gate: &'a Gate,
    pub servers: &'a [Cluster],
    pub place: &'a Mutex<Place>,
}

/// What the calls of a session are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Making {
    /// All that make IDs.
    Any,
    /// Rows that are committed: what is only returned, or rolled back, may come again after a crash.
    Committed,
}

/// The segment that all servers take numbers of.
pub(super) const SEGMENT: &str = "soak";

/// Makes calls until it is done. Returns the IDs that are stored, but for those that it did not hear of.
pub(super) fn session(
    site: &Site,
    database: &str,
    (number, making): (i32, Making),
    seed: u64,
    done: &AtomicBool,
) -> Vec<i64> {
    let mut random = Rng::with_seed(seed);
    let mut calls = site.history.session();
    let (mut connection, mut inserted, mut closed) = (None, Vec::new(), 0);
    while !done.load(Relaxed) {
        let passed = site.gate.pass();
        if done.load(Relaxed) {
            break;
        }
        if std::mem::replace(&mut closed, site.gate.times_closed()) != closed {
            connection = None;
        }
        let place = *site.place.lock().unwrap();
        // When a standby is promoted beside its primary, some go over to it, and others stay.
        if number % 2 == 1 && connection.as_ref().is_some_and(|(connected, _)| *connected != place) {
            connection = None;
        }
        let begin = site.history.now();
        let (place, client) = match &mut connection {
            Some((connected, client)) => (*connected, client),
            None => match site.servers[place.index].try_client_of(database) {
                Ok(client) => {
                    let (place, client) = connection.insert((place, client));
                    (*place, client)
                }
                Err(error) => {
                    calls.failed(place, begin, &error);
                    drop(passed);
                    thread::sleep(LONGER_REST);
                    continue;
                }
            },
        };
        let begin = site.history.now();
        let way = match making {
            Making::Any => random.u32(..6),
            Making::Committed => random.u32(..2) * 6,
        };
        let rest = match call(client, way, number, &mut random) {
            Ok(ids) => {
                calls.given(place, begin, &ids);
                if way == 0 || way == 6 {
                    inserted.extend(ids);
                }
                REST
            }
            Err(error) => {
                calls.failed(place, begin, &error);
                // After the crash of another session, or while the extension is not there.
                if error.code().is_none() || client.is_closed() || client.batch_execute("ROLLBACK").is_err() {
                    connection = None;
                }
                LONGER_REST
            }
        };
        drop(passed);
        thread::sleep(rest);
    }
    inserted
}

fn call(client: &mut Client, way: u32, number: i32, random: &mut Rng) -> Result<Vec<i64>, Error> {
    match way {
        0 => Ok(ids(&client.query("INSERT INTO stored (session) VALUES ($1) RETURNING id", &[&number])?)),
        1 => {
            let mut transaction = client.transaction()?;
            let rows = transaction.query("INSERT INTO stored (session) VALUES ($1), ($1) RETURNING id", &[&number])?;
            transaction.rollback()?;
            Ok(ids(&rows))
        }
        2 => Ok(ids(&client.query("SELECT snowflake_next()", &[])?)),
        3 => Ok(ids(&client.query("SELECT snowflake_next(100)", &[])?)),
        6 => {
            let insert = "INSERT INTO stored (session) SELECT $1 FROM generate_series(1, $2) RETURNING id";
            Ok(ids(&client.query(insert, &[&number, &random.i32(1..=100)])?))
        }
        // In one value, which costs the client less than rows.
        _ => Ok(client.query_one("SELECT array(SELECT snowflake_next($1))", &[&random.i32(1..=MOST)])?.get(0)),
    }
}

/// The tags of which numbers are taken; they may change meanwhile.
#[derive(Default)]
pub(super) struct Tags(Mutex<Vec<String>>);

impl Tags {
    pub(super) fn of(names: &[&str]) -> Self {
        Self(Mutex::new(names.iter().map(|name| (*name).to_owned()).collect()))
    }

    pub(super) fn set(&self, names: &[&str]) {
        *self.0.lock().unwrap() = names.iter().map(|name| (*name).to_owned()).collect();
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn any(&self, random: &mut Rng) -> Option<String> {
        random.choice(self.0.lock().unwrap().iter()).cloned()
    }
}

/// How numbers are taken.
#[derive(Clone, Copy)]
pub(super) struct Taking {
    /// How many in one call at most. With 1, no number is lost in a call that fails.
    pub most: i32,
    /// How long between two calls.
    pub rest: Duration,
}

impl Taking {
    pub(super) const USUAL: Self = Self { most: MOST_NUMBERS, rest: REST };
}

/// Takes numbers of tags until it is done. A session of its own: one that waits for numbers makes no IDs.
pub(super) fn number_session(site: &Site, database: &str, tags: &Tags, taking: Taking, seed: u64, done: &AtomicBool) {
    let mut random = Rng::with_seed(seed);
    let mut numbers = site.history.session().numbers();
    let (mut connection, mut closed) = (None, 0);
    while !done.load(Relaxed) {
        let passed = site.gate.pass();
        if done.load(Relaxed) {
            break;
        }
        if std::mem::replace(&mut closed, site.gate.times_closed()) != closed {
            connection = None;
        }
        let Some(tag) = tags.any(&mut random) else {
            drop(passed);
            thread::sleep(REST);
            continue;
        };
        let now = *site.place.lock().unwrap();
        let begin = site.history.now();
        let (place, taken) = match connection
            .take()
            .map_or_else(|| site.servers[now.index].try_client_of(database).map(|client| (now, client)), Ok)
        {
            Ok((place, mut client)) => {
                let begin = site.history.now();
                let taken = take_numbers(&mut client, &tag, taking.most, &mut random);
                let is_lost = taken.as_ref().is_err_and(|error| error.code().is_none()) || client.is_closed();
                connection = (!is_lost).then_some((place, client));
                (place, taken.map(|taken| (begin, taken)))
            }
            Err(error) => (now, Err(error)),
        };
        let rest = match taken {
            Ok((begin, taken)) => {
                numbers.of_tag(&tag).given(place, begin, &taken);
                taking.rest
            }
            Err(error) => {
                numbers.of_tag(&tag).failed(place, begin, &error);
                REST
            }
        };
        drop(passed);
        thread::sleep(rest);
    }
}

fn take_numbers(client: &mut Client, tag: &str, most: i32, random: &mut Rng) -> Result<Vec<i64>, Error> {
    match if most == 1 { 0 } else { random.u32(..3) } {
        0 => Ok(ids(&client.query(&format!("SELECT snowflake_segment_next('{tag}')"), &[])?)),
        1 => {
            let query = format!("SELECT snowflake_segment_next('{tag}') FROM generate_series(1, 20)");
            Ok(ids(&client.query(&query, &[])?))
        }
        _ => {
            let query = format!("SELECT array(SELECT snowflake_segment_next('{tag}', $1))");
            Ok(client.query_one(&query, &[&random.i32(1..=most)])?.get(0))
        }
    }
}

/// Takes so many IDs, once the server makes them, in sessions of its own.
pub(super) fn take(site: &Site, calls: &mut Calls, count: i32) -> Vec<i64> {
    let start = Instant::now();
    loop {
        let place = *site.place.lock().unwrap();
        let begin = site.history.now();
        let answer = site.servers[place.index].try_client_of("postgres").and_then(|mut client| {
            Ok(client.query_one("SELECT array(SELECT snowflake_next($1))", &[&count])?.get::<_, Vec<i64>>(0))
        });
        match answer {
            Ok(ids) => {
                calls.given(place, begin, &ids);
                return ids;
            }
            Err(error) => {
                assert!(start.elapsed() < PATIENCE, "{error:?}");
                calls.failed(place, begin, &error);
            }
        }
        thread::sleep(LONGER_REST);
    }
}
