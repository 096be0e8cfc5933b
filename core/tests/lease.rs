//! The decisions about leases, one by one; and all together in property tests, in which a few servers and a registry do
//! anything in any order. Here is what the tests share: records, a registry, and servers. `model/` has the exhaustive check and the simulation of many.

use proptest::prelude::*;
use snowflake_core::lease::*;
use snowflake_core::{Layout, Line, Micros, MonotonicMicros, Policy, Position, Reach, Tick, Ticks, UnixMicros};
use std::collections::{BTreeMap, BTreeSet};

mod choice;
mod clocks;
mod lessee;
mod losses;
mod published;
mod random;
mod steps;
mod when;
mod written;

const WINDOW: Micros = Micros::from_secs(60);
const TERMS: Terms = Terms { window: WINDOW, max_lead: Micros::from_secs(600), max_jump: Micros::from_secs(10) };

fn layout() -> Layout {
    "default".parse().unwrap()
}

/// Four workers.
fn narrow() -> Layout {
    "timestamp=41 worker=2 sequence=12".parse().unwrap()
}

fn start() -> UnixMicros {
    UnixMicros::parse("2026-01-01T00:00:00Z").unwrap()
}

fn at(seconds: i64) -> UnixMicros {
    start() + Micros::from_secs(seconds)
}

fn holder(number: u64) -> Holder {
    let (host, data_directory) = (format!("db{number}"), "/data".to_owned());
    let process = format!("boot of db{number}");
    Holder { host, data_directory, port: 5432, cluster_name: String::new(), system_identifier: number, process }
}

fn server(number: u64) -> Identity {
    Identity { token: Token(number.into()), holder: holder(number) }
}

fn record(owner: Option<u64>, holder_number: u64, from: i64, until: i64) -> Stored {
    let record = Record {
        owner: owner.map(|owner| Token(owner.into())),
        granted_from: at(from),
        granted_until: at(until),
        holder: holder(holder_number),
    };
    Stored { version: Version(7), record }
}

/// A server that has just started.
fn idle() -> Seen {
    Published::new(true).look(&layout(), &Line::new())
}

fn take(found: Option<&Stored>, now: i64, seen: &Seen) -> Write {
    lease(&layout(), &server(1), (WorkerNumber(3), found), None, &TERMS, at(now), seen)
}

/// The record of a namespace of this layout.
fn namespace(layout: &Layout, life: u64, leases_from: Option<UnixMicros>) -> NamespaceRecord {
    NamespaceRecord { layout: layout.to_string(), life, leases_from, ..NamespaceRecord::default() }
}

/// A registry that does what it is told, or fails as the test says.
#[derive(Default)]
struct Registry {
    namespace: Option<NamespaceRecord>,
    records: BTreeMap<WorkerNumber, Stored>,
    version: u64,
    time: Option<UnixMicros>,
}

impl Registry {
    fn answer(&mut self, request: Next) -> Answer {
        match request {
            Next::Namespace => Answer::Namespace(self.namespace.clone()),
            Next::SetNamespace { expected, record } => {
                if self.namespace == expected {
                    self.namespace = Some(record);
                }
                Answer::Namespace(self.namespace.clone())
            }
            Next::ReadAll => Answer::All(Found { records: self.records.clone(), time: self.time, ..Found::default() }),
            Next::Read(worker) => Answer::One(self.records.get(&worker).cloned()),
            Next::Write(_, namespace) if self.namespace.as_ref() != Some(&namespace) => {
                Answer::OtherNamespace(self.namespace.clone())
            }
            Next::Write(write, _) => {
                let found = self.records.get(&write.worker);
                if found.map(|stored| stored.version) != write.expected {
                    return Answer::Conflict(found.cloned());
                }
                self.version += 1;
                let version = Version(self.version);
                self.records.insert(write.worker, Stored { version, record: write.record });
                Answer::Stored(version)
            }
            other => panic!("{other:?} is not for the registry"),
        }
    }
}

struct Server {
    layout: Layout,
    me: Identity,
    line: Line,
    published: Published,
    lessee: Lessee,
    clock: UnixMicros,
    reserved: Tick,
    runs: u64,
    /// In its data directory.
    known_life: Option<u64>,
    events: Vec<Event>,
    /// What chance says in [`Self::settle`].
    chance: u64,
}

impl Server {
    fn new(number: u64) -> Self {
        Self::with(narrow(), number)
    }

    fn with(layout: Layout, number: u64) -> Self {
        Self::knowing(layout, number, None)
    }

    fn knowing(layout: Layout, number: u64, known_life: Option<u64>) -> Self {
        let me = server(number);
        Self {
            lessee: Lessee::new(layout, me.clone(), TERMS, Wanted::any(&layout), known_life),
            layout,
            me,
            line: Line::new(),
            published: Published::new(true),
            clock: start(),
            reserved: Tick(0),
            runs: 0,
            known_life,
            events: Vec::new(),
            chance: 0,
        }
    }

    fn restart(&mut self, is_new_token: bool) {
        self.runs += 1;
        if is_new_token {
            self.me.token = Token(u128::from(self.me.holder.system_identifier << 32 | self.runs));
        }
        (self.line, self.published) = (Line::new(), Published::new(is_new_token));
        self.lessee = Lessee::new(self.layout, self.me.clone(), TERMS, Wanted::any(&self.layout), self.known_life);
    }

    fn moment(&self, monotonic: MonotonicMicros, chance: u64) -> Moment {
        let seen = self.published.look(&self.layout, &self.line);
        Moment { now: self.clock, monotonic, seen, chance }
    }

    /// Asks once, and does what is asked where it is not for the registry. Returns a request, or how long to wait.
    fn step(&mut self, monotonic: MonotonicMicros, chance: u64) -> Result<Next, Option<Micros>> {
        for _ in 0..10 {
            let moment = self.moment(monotonic, chance);
            let next = self.lessee.next(&moment);
            let answer = match next {
                Next::Wait(length) => return Err(Some(length)),
                Next::Done => return Err(None),
                Next::Install(grant) => Answer::Installed(self.published.install(&self.layout, &self.line, &grant)),
                Next::Remember(life) => {
                    self.known_life = Some(life);
                    Answer::Remembered
                }
                Next::Close => {
                    self.published.close(&self.layout, &self.line);
                    Answer::Closed
                }
                request => return Ok(request),
            };
            self.answer(monotonic, answer, chance);
        }
        panic!("it goes round in circles");
    }

    fn answer(&mut self, monotonic: MonotonicMicros, mut answer: Answer, chance: u64) {
        if let Answer::All(Found { records, gone, .. }) = &mut answer {
            // Of its older runs, a server knows that.
            let is_mine = |stored: &Stored| stored.record.holder == self.me.holder && !self.me.owns(&stored.record);
            gone.extend(records.iter().filter(|(_, stored)| is_mine(stored)).map(|(worker, _)| *worker));
        }
        let moment = self.moment(monotonic, chance);
        self.lessee.answer(&moment, answer);
        self.events.extend(self.lessee.take_events());
    }

    /// Goes on until there is nothing to do.
    fn settle(&mut self, registry: &mut Registry, monotonic: MonotonicMicros) -> Option<Micros> {
        for _ in 0..100 {
            match self.step(monotonic, self.chance) {
                Ok(request) => {
                    let answer = registry.answer(request);
                    self.answer(monotonic, answer, self.chance);
                }
                Err(Some(Micros(0))) => {}
                Err(wait) => {
                    self.events.extend(self.lessee.take_events());
                    return wait;
                }
            }
        }
        panic!("there is no end");
    }

    /// Claims up to so many positions. Returns the worker and the positions.
    fn claim_many(&mut self, want: u64) -> Vec<(u64, u64)> {
        self.line.raise(&self.layout, self.reserved);
        self.published.resumed = true;
        let (Some(worker), Some(limit)) = (self.published.worker, self.published.limit(&self.layout)) else {
            return Vec::new();
        };
        let policy = Policy { max_burst: Ticks(10), max_lead: Ticks(i64::MAX), spread: 1 };
        let reach = Reach { policy, limit, now: self.layout.tick_at(self.clock), gives_way: false };
        let Ok(claim) = self.line.claim(&self.layout, &reach, want) else { return Vec::new() };
        let positions = claim.first.0..claim.first.0 + claim.count;
        self.reserved = self.reserved.max(self.layout.tick_of(Position(positions.end - 1)) + Ticks(2));
        positions.map(|position| (worker.0, position)).collect()
    }

    fn claim(&mut self) -> Option<(u64, u64)> {
        self.claim_many(1).first().copied()
    }
}

const YEAR: i64 = 365 * 86400;
const ZERO: MonotonicMicros = MonotonicMicros(0);

fn later(seconds: i64) -> MonotonicMicros {
    ZERO + Micros::from_secs(seconds)
}

/// Goes on until the request is one of these, and returns that. There is something to ask for all the time.
fn until(
    server: &mut Server,
    registry: &mut Registry,
    monotonic: MonotonicMicros,
    is_it: impl Fn(&Next) -> bool,
) -> Next {
    loop {
        let request = server.step(monotonic, 0).unwrap();
        if is_it(&request) {
            return request;
        }
        let answer = registry.answer(request);
        server.answer(monotonic, answer, 0);
    }
}

/// Asks until there is a write.
fn first_write(server: &mut Server, registry: &mut Registry, monotonic: MonotonicMicros) -> Next {
    until(server, registry, monotonic, |request| matches!(request, Next::Write(..)))
}
