//! What all scenarios have: servers under load, a record, and something that happens to them.

use super::super::load::{self, Making, Site, Tags, Taking};
use super::super::{Progress, TOLD, Wanted, Watch};
use crate::check::wait_for;
use crate::history::{Calls, Event, Place, Trouble, Writer};
use crate::load::{End, Gate, Pause, stored};
use crate::{Cluster, Stop, ids, millis};
use fastrand::Rng;
use postgres::error::SqlState;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

/// How many sessions make IDs at a post, and how many take numbers.
const SESSIONS: i32 = 2;

/// Where a load is: it asks the server that stands there now.
pub(super) struct Post {
    gate: Gate,
    place: Mutex<Place>,
    database: &'static str,
    /// Which record its calls belong to.
    record: usize,
}

/// The servers of a scenario, where its loads are, and which.
pub(super) struct Cast<'a> {
    pub servers: &'a [Cluster],
    /// The server of each post, the database, and which of the records its calls belong to; a post that nobody asks yet has no server.
    pub posts: &'a [(Option<usize>, &'static str, usize)],
    /// Those that are there at the start have no end, and the record says so.
    pub tags: &'a Tags,
    pub taking: Taking,
    pub making: Making,
}

/// What a scenario acts on.
pub(super) struct Stage<'a> {
    pub random: Rng,
    pub progress: &'a Progress,
    pub histories: &'a [Writer],
    pub servers: &'a [Cluster],
    pub nodes: &'a [u32],
    pub posts: &'a [Post],
    calls: Vec<Calls<'a>>,
    numbers: Vec<Calls<'a>>,
}

/// No session of a post makes calls meanwhile; and the record says so.
pub(super) struct Held<'a> {
    history: &'a Writer,
    line: u32,
    begin: u64,
    _pause: Pause<'a>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.history.trouble(Trouble::Paused, Some(self.line), self.begin);
    }
}

/// Has loads on the servers, and repeats a round of what happens until the scenario is over.
pub(super) fn play(wanted: &Wanted, histories: &[Writer], cast: &Cast, mut round: impl FnMut(&mut Stage)) {
    let progress = &Progress::of(wanted);
    let servers = cast.servers;
    // The same in each record.
    let nodes: Vec<u32> = servers
        .iter()
        .map(|server| histories.iter().map(|history| history.node(&server.data())).max().unwrap())
        .collect();
    let post = |&(server, database, record): &(Option<usize>, &'static str, usize)| {
        let nobody = Place { index: 0, node: 0, line: u32::MAX };
        let place = server.map_or(nobody, |index| Place { index, node: nodes[index], line: histories[record].line() });
        Post { gate: Gate::default(), place: Mutex::new(place), database, record }
    };
    let posts: Vec<Post> = cast.posts.iter().map(post).collect();
    let sites: Vec<Site> = posts
        .iter()
        .map(|post| Site { history: &histories[post.record], gate: &post.gate, servers, place: &post.place })
        .collect();
    for tag in cast.tags.names() {
        histories.iter().for_each(|history| history.event(&Event::Tag(tag.clone(), 1, i64::MAX)));
    }
    // Until a server stands there.
    posts.iter().filter(|post| post.line() == u32::MAX).for_each(|post| post.gate.close());
    let done = AtomicBool::new(false);
    let inserted = thread::scope(|scope| {
        let (done, _end) = (&done, End(&done));
        let mut sessions = Vec::new();
        for (number, (site, post)) in sites.iter().zip(&posts).enumerate() {
            for session in 0..SESSIONS {
                let seed = wanted.seed.wrapping_mul(1000).wrapping_add((number * 10) as u64 + session as u64);
                sessions.push(scope.spawn(move || {
                    let _watch = Watch(progress);
                    load::session(site, post.database, (session, cast.making), seed, done)
                }));
                scope.spawn(move || {
                    let _watch = Watch(progress);
                    load::number_session(site, post.database, cast.tags, cast.taking, seed, done);
                });
            }
        }
        let mut stage = Stage {
            random: Rng::with_seed(wanted.seed),
            progress,
            histories,
            servers,
            nodes: &nodes,
            posts: &posts,
            calls: posts.iter().map(|post| histories[post.record].session()).collect(),
            numbers: posts.iter().map(|post| histories[post.record].session().numbers()).collect(),
        };
        let mut told = Instant::now();
        let is_over = || {
            let ids: u64 = histories.iter().map(Writer::ids).sum();
            progress.is_over(ids)
        };
        while !is_over() {
            round(&mut stage);
            if told.elapsed() > TOLD {
                told = Instant::now();
                println!("{}", progress.said(histories.iter().map(Writer::ids).sum()));
            }
        }
        for post in posts.iter().filter(|post| post.line() != u32::MAX) {
            let history = &histories[post.record];
            history.event(&Event::Ends(post.line(), history.now()));
        }
        done.store(true, Relaxed);
        posts.iter().for_each(|post| post.gate.open());
        sessions.into_iter().flat_map(|session| session.join().unwrap()).collect::<BTreeSet<i64>>()
    });
    assert!(!progress.has_failed(), "a session has failed");

    // A session that is killed may have stored a row without getting the answer. Copies of a server have the same rows.
    for (record, history) in histories.iter().enumerate() {
        let mut unheard = BTreeSet::new();
        for post in posts.iter().filter(|post| post.record == record && post.line() != u32::MAX) {
            let server = &servers[post.place.lock().unwrap().index];
            wait_for("the server is up", || server.try_client_of(post.database).is_ok());
            unheard.extend(stored(server, post.database).into_iter().filter(|id| !inserted.contains(id)));
        }
        history.found(&unheard.into_iter().collect::<Vec<_>>());
    }
    for (server, node) in servers.iter().zip(&nodes) {
        let log = server.log();
        histories.iter().for_each(|history| history.log(*node, &log));
        for sign in ["PANIC:", "signal 6", "signal 11", "panicked", "TRAP:"] {
            assert!(!log.contains(sign), "{sign} in the log:\n{log}");
        }
    }
}

impl Post {
    fn line(&self) -> u32 {
        self.place.lock().unwrap().line
    }
}

impl<'a> Stage<'a> {
    /// The record of a post.
    pub(super) fn history(&self, post: usize) -> &'a Writer {
        &self.histories[self.posts[post].record]
    }

    /// The first record, or the only one.
    pub(super) fn record(&self) -> &'a Writer {
        &self.histories[0]
    }

    pub(super) fn place(&self, post: usize) -> Place {
        *self.posts[post].place.lock().unwrap()
    }

    /// Another server stands there from now on.
    pub(super) fn set_place(&self, post: usize, place: Place) {
        *self.posts[post].place.lock().unwrap() = place;
    }

    pub(super) fn gate(&self, post: usize) -> &'a Gate {
        &self.posts[post].gate
    }

    pub(super) fn server(&self, post: usize) -> &'a Cluster {
        &self.servers[self.place(post).index]
    }

    pub(super) fn line(&self, post: usize) -> Option<u32> {
        Some(self.place(post).line)
    }

    pub(super) fn site(&self, post: usize) -> Site<'a> {
        let Post { gate, place, .. } = &self.posts[post];
        Site { history: self.history(post), gate, servers: self.servers, place }
    }

    pub(super) fn any_post(&mut self) -> usize {
        self.random.usize(..self.posts.len())
    }

    pub(super) fn sleep(&mut self, from: u64, to: u64) {
        thread::sleep(millis(self.random.u64(from..to)));
    }

    /// Something happens: it is in the record, and counts.
    pub(super) fn fault<T>(&mut self, name: &str, happens: impl FnOnce(&mut Self) -> T) -> T {
        let begin = self.record().now();
        let done = happens(self);
        let event = Event::Fault(name.to_owned(), begin, self.record().now());
        self.histories.iter().for_each(|history| history.event(&event));
        self.progress.faults.fetch_add(1, Relaxed);
        done
    }

    /// Holds the sessions of a post.
    pub(super) fn hold(&self, post: usize) -> Held<'a> {
        let (line, history) = (self.place(post).line, self.history(post));
        Held { history, line, begin: history.now(), _pause: self.posts[post].gate.pause() }
    }

    /// Takes an ID, once the server makes them.
    pub(super) fn take_id(&mut self, post: usize) {
        let site = self.site(post);
        load::take(&site, &mut self.calls[post], 1);
    }

    pub(super) fn is_up(&self, post: usize) {
        self.server(post).retry(|client| client.query_one("SELECT 1", &[]));
    }

    pub(super) fn any_stop(&mut self) -> Stop {
        *self.random.choice(&[Stop::Kill, Stop::Immediate, Stop::Fast]).unwrap()
    }

    /// The server is stopped, something is done, and it is started again.
    pub(super) fn restart_after(&self, post: usize, how: Stop, meanwhile: impl FnOnce(&'a Cluster)) {
        let begin = self.history(post).now();
        let server = self.server(post);
        server.stop(how);
        meanwhile(server);
        server.start();
        self.is_up(post);
        self.history(post).trouble(Trouble::Down, self.line(post), begin);
    }

    /// The server is stopped in any way and started again, or a session of it crashes, or nothing happens.
    pub(super) fn disturb(&mut self, post: usize) {
        match self.random.u32(..5) {
            0 => self.fault("PostmasterKilled", |stage| stage.restart_after(post, Stop::Kill, |_| ())),
            1 => self.fault("StoppedFast", |stage| stage.restart_after(post, Stop::Fast, |_| ())),
            2 => self.fault("SessionKilled", |stage| {
                let begin = stage.history(post).now();
                stage.server(post).crash_any_session();
                stage.is_up(post);
                stage.history(post).trouble(Trouble::Crash, stage.line(post), begin);
            }),
            _ => self.sleep(200, 1500),
        }
    }

    /// Calls for numbers of this tag are looked at.
    pub(super) fn announce(&self, tag: &str, last: i64) {
        let event = Event::Tag(tag.to_owned(), 1, last);
        self.histories.iter().for_each(|history| history.event(&event));
    }

    /// Runs a query on a server of any post until it succeeds.
    pub(super) fn operator(&mut self, query: &str) {
        let post = self.any_post();
        self.server(post).retry(|client| client.query(query, &[]));
    }

    /// Drops a tag on a server of any post. Where the answer was lost, the tag is gone when it is asked again.
    pub(super) fn drop_tag(&mut self, tag: &str) {
        let post = self.any_post();
        let drop = format!("SELECT snowflake_segment_drop('{tag}')");
        let is_gone = |error: &postgres::Error| error.code() == Some(&SqlState::UNDEFINED_OBJECT);
        self.server(post).retry(|client| match client.query(&drop, &[]) {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(()),
        });
    }

    /// All servers look at the registry's tags.
    pub(super) fn reload_all(&self) {
        for post in 0..self.posts.len() {
            self.server(post).retry(|client| client.query("SELECT pg_reload_conf()", &[]));
        }
    }

    /// Takes a number of this tag. Returns whether that is used up.
    pub(super) fn take_number(&mut self, post: usize, tag: &str) -> bool {
        let (place, begin) = (self.place(post), self.history(post).now());
        let query = format!("SELECT snowflake_segment_next('{tag}')");
        let answer = self.server(post).try_client_of("postgres").and_then(|mut client| client.query(&query, &[]));
        let numbers = self.numbers[post].of_tag(tag);
        match answer {
            Ok(rows) => numbers.given(place, begin, &ids(&rows)),
            Err(error) => {
                numbers.failed(place, begin, &error);
                return error.code().is_some_and(|code| code.code() == "2200H");
            }
        }
        false
    }

    /// Inserts a row that has an ID and a number by default, into a database of a post's server.
    pub(super) fn insert_both(&mut self, post: usize, database: &str, insert: &str) {
        let (place, history) = (self.place(post), self.history(post));
        let begin = history.now();
        match self.server(post).try_client_of(database).and_then(|mut client| client.query_one(insert, &[])) {
            Ok(row) => {
                self.calls[post].given(place, begin, &[row.get(0)]);
                self.numbers[post].of_tag(load::SEGMENT).given(place, begin, &[row.get(1)]);
            }
            Err(error) => self.calls[post].failed(place, begin, &error),
        }
    }
}
