//! Servers that use one tag as fast as they can, with a largest range that is too small for that, beside a calm tag and a request of
//! somebody who waits. Each runs the core's [`Fetcher`]. The registry compares and swaps one record, at a distance.

use super::chance::Chance;
use snowflake_core::lease::{self, NamespaceRecord, Version};
use snowflake_core::segment::{
    Answer, Fetcher, Held, Moment, Next, RangeTerms, Request, Sizes, State, StoredTag, Tag, TagEvent, TagRecord,
};
use snowflake_core::{Micros, MonotonicMicros};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;

/// A run.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// How many servers.
    pub servers: usize,
    /// From a request to its answer, on average.
    pub latency: Micros,
    /// How many of them are farther away: as much as ten times.
    pub far: usize,
    /// How long it lasts.
    pub length: Micros,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Report {
    scenario: Scenario,
    /// How many ranges of the busy tag each server was granted.
    pub granted: Vec<u64>,
    /// The waits for the next range of the busy tag.
    waits: Vec<Micros>,
    /// How long it took until each server had numbers of the calm tag.
    calm: Vec<Micros>,
    /// How long somebody waited who raised the busy tag.
    raised: Vec<Micros>,
    /// Writes that found another version.
    conflicts: u64,
}

impl Report {
    /// The least that a server got of what another one got.
    pub fn share(&self) -> f64 {
        let (least, most) = (self.granted.iter().min(), self.granted.iter().max());
        *least.unwrap_or(&0) as f64 / (*most.unwrap_or(&1)).max(1) as f64
    }

    /// Of the waits for a range, that which 999 of 1,000 are not longer than.
    pub fn wait(&self) -> Micros {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        waits.get(waits.len() * 999 / 1000).copied().unwrap_or(self.scenario.length)
    }

    /// The longest wait for the first numbers of the calm tag; as long as the run, where one server got none.
    pub fn calm(&self) -> Micros {
        self.all_of(&self.calm)
    }

    /// The longest wait of somebody who raised the busy tag; as long as the run, where one was not answered.
    pub fn raised(&self) -> Micros {
        self.all_of(&self.raised)
    }

    fn all_of(&self, waits: &[Micros]) -> Micros {
        match waits.len() == self.scenario.servers {
            true => waits.iter().copied().max().unwrap_or_default(),
            false => self.scenario.length,
        }
    }

    /// The heading of the table that [`Display`](fmt::Display) writes a line of.
    pub const HEADING: &'static str = "servers (of them far)  latency   ranges a second  conflicts of a range  \
        least share  99.9% of waits  calm tag within  raised within";
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { servers, latency, far, length } = self.scenario;
        let ranges = self.granted.iter().sum::<u64>().max(1) as f64;
        let millis = |length: Micros| length.0 as f64 / 1000.0;
        write!(
            f,
            "{servers:>7} ({far})            {:>4.1} ms   {:>15.0}  {:>20.2}  {:>11.2}  {:>11.1} ms  {:>12.1} ms  {:>10.1} ms",
            millis(latency),
            ranges * 1e6 / length.0 as f64,
            self.conflicts as f64 / ranges,
            self.share(),
            millis(self.wait()),
            millis(self.calm()),
            millis(self.raised()),
        )
    }
}

/// The tag that all use. The other one is that which each begins to use.
const BUSY: usize = 0;

/// When somebody raises the busy tag, on every server at another moment.
const RAISED: Micros = Micros::from_secs(5);

fn raised_at(server: usize) -> Micros {
    RAISED + Micros::from_millis(100 * server as i64)
}

struct Server {
    fetcher: Fetcher,
    held: [Held; 2],
    latency: Micros,
    /// What was asked for, and is on its way to the registry or back.
    asked: Option<Next>,
    answer: Option<Answer>,
    since: Micros,
    is_calm_there: bool,
    raising: Option<Micros>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Step,
    Arrives,
    Answered,
}

/// Runs it.
pub fn run(scenario: &Scenario, seed: u64) -> Report {
    let mut chance = Chance(seed);
    let tags = ["busy", "calm"].map(|name| Tag::new(name).expect("a tag"));
    let bounds = Sizes { smallest: 10, largest: 100 };
    let record = TagRecord { next: 1, floor: 1, first: 1, last: TagRecord::HIGHEST, state: State::Live, bounds };
    let mut records: BTreeMap<Tag, StoredTag> =
        tags.iter().map(|tag| (tag.clone(), StoredTag { version: Version(1), record: record.clone() })).collect();
    let namespace = NamespaceRecord { layout: String::new(), life: 1, ..NamespaceRecord::default() };
    let pauses = lease::Terms {
        window: Micros::from_secs(60),
        max_lead: Micros::from_secs(600),
        max_jump: Micros::from_secs(10),
    };
    let terms = RangeTerms { duration: Micros::from_secs(600), pauses };
    let mut servers: Vec<Server> = (0..scenario.servers)
        .map(|number| Server {
            fetcher: Fetcher::new(terms, 2, tags.to_vec(), BTreeMap::new()),
            held: [Held::default(); 2],
            latency: if number < scenario.far { Micros(scenario.latency.0 * 10) } else { scenario.latency },
            asked: None,
            answer: None,
            since: Micros(0),
            is_calm_there: false,
            raising: None,
        })
        .collect();
    let mut report = Report {
        scenario: *scenario,
        granted: vec![0; scenario.servers],
        waits: Vec::new(),
        calm: Vec::new(),
        raised: Vec::new(),
        conflicts: 0,
    };
    let mut version = 1;
    let mut queue = BinaryHeap::new();
    for number in 0..scenario.servers {
        queue.push(Reverse((chance.within(Micros::from_millis(100)), number, Event::Step)));
        queue.push(Reverse((raised_at(number), number, Event::Step)));
    }
    while let Some(Reverse((now, number, event))) = queue.pop() {
        if now >= scenario.length {
            break;
        }
        let server = &mut servers[number];
        if now >= raised_at(number) && server.raising.is_none() && server.asked.is_none() {
            server.raising = Some(now);
            server.fetcher.request(Request::Raise(tags[BUSY].clone(), 10));
        }
        // Half the way, with a fifth of it left to chance.
        let half = |chance: &mut Chance, server: &Server| {
            Micros((server.latency.0 * 2 / 5).max(1)) + chance.within(Micros((server.latency.0 / 5).max(1)))
        };
        match event {
            Event::Step if server.asked.is_some() => {}
            Event::Arrives => {
                server.answer = Some(match server.asked.as_ref() {
                    Some(Next::ReadAll) => Answer::All(records.clone()),
                    Some(Next::Read(tag)) => Answer::One(records.get(tag).cloned()),
                    Some(Next::Write(write, _)) => {
                        let found = records.get(&write.tag);
                        if found.map(|stored| stored.version) == write.expected {
                            version += 1;
                            let stored = StoredTag { version: Version(version), record: write.record.clone() };
                            records.insert(write.tag.clone(), stored);
                            Answer::Stored(Version(version))
                        } else {
                            report.conflicts += 1;
                            Answer::Conflict(found.cloned())
                        }
                    }
                    _ => Answer::Failed,
                });
                let at = now + half(&mut chance, server);
                queue.push(Reverse((at, number, Event::Answered)));
            }
            Event::Step | Event::Answered => {
                if event == Event::Answered && server.asked.take().is_some() {
                    let answer = server.answer.take().unwrap_or(Answer::Failed);
                    let held = server.held;
                    let moment = Moment {
                        monotonic: MonotonicMicros(now.0),
                        chance: chance.draw(),
                        namespace: Some(&namespace),
                        held: &held,
                    };
                    server.fetcher.answer(&moment, answer);
                }
                loop {
                    let held = server.held;
                    let moment = Moment {
                        monotonic: MonotonicMicros(now.0),
                        chance: chance.draw(),
                        namespace: Some(&namespace),
                        held: &held,
                    };
                    match server.fetcher.next(&moment) {
                        Next::Wait(length) => {
                            queue.push(Reverse((now + length.max(Micros(1)), number, Event::Step)));
                            break;
                        }
                        Next::Tell { .. } => {}
                        Next::Install(slot, range) => {
                            server.held[slot].current = range;
                            if slot == BUSY {
                                report.granted[number] += 1;
                                report.waits.push(now - server.since);
                                // It is used up by those who wait for it.
                                server.since = now;
                                server.held[slot].current.first = range.end;
                            } else if !std::mem::replace(&mut server.is_calm_there, true) {
                                report.calm.push(now);
                            }
                            let held = server.held;
                            server.fetcher.answer(&Moment { held: &held, ..moment }, Answer::Installed);
                        }
                        next => {
                            server.asked = Some(next);
                            let at = now + half(&mut chance, server);
                            queue.push(Reverse((at, number, Event::Arrives)));
                            break;
                        }
                    }
                }
                for event in server.fetcher.take_events() {
                    if let (TagEvent::Answered(Ok(_)), Some(since)) = (event, server.raising) {
                        report.raised.push(now - since);
                    }
                }
            }
        }
    }
    report
}

/// All that are printed: 3 and 8 servers, at each latency, all as near, or some ten times as far.
pub fn all() -> Vec<Scenario> {
    let mut all = Vec::new();
    for latency in [500, 5_000, 50_000].map(Micros) {
        for (servers, far) in [(3, 0), (8, 0), (3, 1), (8, 4)] {
            all.push(Scenario { servers, latency, far, length: Micros::from_secs(40) });
        }
    }
    all
}
