//! Segments in large: a thousand servers that take numbers of a hundred tags, for a day. Each server runs the core's
//! [`Fetcher`]; beside it, the same day by the rule of Leaf, which fetches a buffer when a tenth of the one before is used,
//! doubles it where that has lasted for less than 15 minutes, and halves it where it has lasted for more than 30.

use super::chance::Chance;
use snowflake_core::lease::{self, NamespaceRecord, Version};
use snowflake_core::segment::{
    Answer, Fetcher, Held, Moment, Next, Range, RangeTerms, Sizes, State, StoredTag, Tag, TagEvent, TagRecord,
};
use snowflake_core::{Micros, MonotonicMicros};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;

/// A run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// How many servers.
    pub servers: usize,
    /// How many tags, each of which all servers use.
    pub tags: usize,
    /// How long it lasts.
    pub length: Micros,
    /// When the registry is away, and for how long.
    pub outage: (Micros, Micros),
    /// How long a range is to last.
    pub duration: Micros,
}

/// A thousand servers, a hundred tags, a day, and an outage in the busiest hour.
pub fn day() -> Scenario {
    Scenario {
        servers: 1000,
        tags: 100,
        length: Micros::from_secs(86_400),
        outage: (Micros::from_secs(14 * 3600), Micros::from_secs(600)),
        duration: Micros::from_secs(600),
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Report {
    name: String,
    /// The requests of each second.
    seconds: Vec<u32>,
    /// How many numbers were taken.
    pub taken: u64,
    /// How many were lost as each server crashed once.
    pub lost: u64,
    /// Of those, in tags of which a server takes at most one a minute.
    pub lost_of_rare: u64,
    /// How often a tag of a server ran empty before the next range was there, but for the outage.
    pub empty: u64,
    /// How many tags of servers ran empty during the outage, but for those of the next line.
    pub empty_in_outage: u64,
    /// How many ran empty of servers which crashed during the outage, then or later.
    pub empty_by_crash: u64,
    /// How many tags of servers there are.
    pub pairs: u64,
}

impl Report {
    fn new(name: String, scenario: &Scenario) -> Self {
        let seconds = vec![0; (scenario.length.0 / 1_000_000) as usize + 1];
        let pairs = (scenario.servers * scenario.tags) as u64;
        Self {
            name,
            seconds,
            taken: 0,
            lost: 0,
            lost_of_rare: 0,
            empty: 0,
            empty_in_outage: 0,
            empty_by_crash: 0,
            pairs,
        }
    }

    fn request(&mut self, now: Micros) {
        self.seconds[(now.0 / 1_000_000) as usize] += 1;
    }

    fn crash(&mut self, tag: usize, left: u64) {
        self.lost += left;
        if rate(tag) <= Rate::A_MINUTE {
            self.lost_of_rare += left;
        }
    }

    /// Requests a second, in the middle.
    pub fn mean(&self) -> f64 {
        let all: u64 = self.seconds.iter().map(|&count| u64::from(count)).sum();
        all as f64 / self.seconds.len() as f64
    }

    /// The most requests in one second, after the first hour.
    pub fn peak(&self) -> u32 {
        self.seconds.iter().skip(3600).copied().max().unwrap_or(0)
    }

    /// The heading of the table that [`Display`](fmt::Display) writes a line of.
    pub const HEADING: &'static str = concat!(
        "                                 requests a second        numbers   lost by a crash      of rare   ran empty in ",
        "the outage, of all tags\n",
        "rule                              mean        peak           taken   of each server         tags  before it  of ",
        "others  of servers that crashed in it",
    );
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, taken, lost, lost_of_rare, empty, empty_in_outage, empty_by_crash, pairs, .. } = self;
        let (mean, peak) = (self.mean(), self.peak());
        write!(
            f,
            "{name:<30} {mean:>7.1}  {peak:>10}  {taken:>14}  {lost:>15}  {lost_of_rare:>11}  {empty:>9}  \
             {empty_in_outage:>9}  {empty_by_crash:>15} of {pairs}"
        )
    }
}

/// Numbers in a day, on average.
struct Rate;

impl Rate {
    const TEN_A_DAY: u64 = 10;
    const A_MINUTE: u64 = 1440;
    const A_SECOND: u64 = 86_400;
    const HUNDRED_A_SECOND: u64 = 8_640_000;
}

/// How many numbers of a tag a server takes in a day: of 100 tags, 5 are busy, 15 are used every second, 40 every minute, and 40
/// ten times.
fn rate(tag: usize) -> u64 {
    match tag * 37 % 100 {
        0..5 => Rate::HUNDRED_A_SECOND,
        5..20 => Rate::A_SECOND,
        20..60 => Rate::A_MINUTE,
        _ => Rate::TEN_A_DAY,
    }
}

/// What a server takes of a tag in an hour of the day, in thousandths of the average.
const HOURS: [u64; 24] = [
    200, 150, 100, 100, 100, 200, 500, 900, 1300, 1600, 1700, 1700, 1600, 1700, 1900, 1800, 1700, 1600, 1500, 1300,
    1000, 700, 400, 250,
];

/// Numbers in a second.
fn rate_at(tag: usize, now: Micros) -> f64 {
    let hour = (now.0 / 3_600_000_000) as usize % 24;
    rate(tag) as f64 * HOURS[hour] as f64 / 1000.0 / 86_400.0
}

/// The end of the hour.
fn hour_after(now: Micros) -> Micros {
    Micros((now.0 / 3_600_000_000 + 1) * 3_600_000_000)
}

/// What sessions of a server take of a tag.
#[derive(Clone, Copy, Debug, Default)]
struct Taking {
    held: Held,
    /// A part of the next number.
    part: f64,
    is_empty: bool,
}

impl Taking {
    /// Time goes on, by at most as long as [`Self::lasts`]. Returns how many numbers were taken.
    fn advance(&mut self, rate: f64, length: Micros) -> u64 {
        let wanted = self.part + rate * length.0 as f64 / 1e6;
        let count = (wanted as u64).min(self.held.current.count());
        self.part = (wanted - count as f64).clamp(0.0, 1.0);
        self.held.current.first += count;
        self.is_empty = self.held.left() == 0 && self.part >= 0.999;
        self.go_on();
        count
    }

    fn go_on(&mut self) {
        if self.held.current.count() == 0
            && let Some(after) = self.held.after.take()
        {
            self.held.current = after;
        }
    }

    fn install(&mut self, range: Range) {
        self.held.after = Some(range);
        self.go_on();
        self.is_empty = false;
    }

    /// Until the range in use is empty, and a number more is wanted.
    fn lasts(&self, rate: f64) -> Option<Micros> {
        let count = self.held.current.count() as f64 + if self.held.left() == 0 { 1.0 } else { 0.0 } - self.part;
        (rate > 0.0 && !self.is_empty).then(|| Micros((count.max(0.0) * 1e6 / rate) as i64 + 1))
    }
}

/// Who fetches ranges for a server.
trait Rule {
    /// The server looks what is to be done now, and does it. Returns when to look again at the latest.
    fn look(&mut self, now: Micros, is_away: bool, chance: u64, takings: &mut [Taking], world: &mut World) -> Micros;

    /// The server has crashed, and is started again.
    fn crash(&mut self);
}

/// The registry, and the figures.
struct World {
    records: BTreeMap<Tag, StoredTag>,
    namespace: NamespaceRecord,
    version: u64,
    /// Where Leaf's records stand.
    next: Vec<u64>,
    report: Report,
}

/// The core's.
struct Ours(Fetcher, Scenario);

/// Of each tag: the size of the last buffer, and when it was fetched.
struct Leaf {
    smallest: u64,
    buffers: Vec<(u64, Option<Micros>)>,
}

fn tag(number: usize) -> Tag {
    Tag::new(&format!("tag {number}")).expect("a tag")
}

impl Ours {
    fn new(scenario: &Scenario, sizes: BTreeMap<Tag, u64>) -> Self {
        let pauses = lease::Terms {
            window: Micros::from_secs(60),
            max_lead: Micros::from_secs(600),
            max_jump: Micros::from_secs(10),
        };
        let terms = RangeTerms { duration: scenario.duration, pauses };
        let tags = (0..scenario.tags).map(tag).collect();
        Self(Fetcher::new(terms, scenario.tags, tags, sizes), scenario.clone())
    }
}

impl World {
    fn answer(&mut self, next: &Next) -> Answer {
        match next {
            Next::ReadAll => Answer::All(self.records.clone()),
            Next::Read(tag) => Answer::One(self.records.get(tag).cloned()),
            Next::Write(write, _) => {
                let found = self.records.get(&write.tag);
                if found.map(|stored| stored.version) != write.expected {
                    return Answer::Conflict(found.cloned());
                }
                self.version += 1;
                let version = Version(self.version);
                self.records.insert(write.tag.clone(), StoredTag { version, record: write.record.clone() });
                Answer::Stored(version)
            }
            _ => Answer::Failed,
        }
    }
}

impl Rule for Ours {
    fn look(&mut self, now: Micros, is_away: bool, chance: u64, takings: &mut [Taking], world: &mut World) -> Micros {
        let namespace = world.namespace.clone();
        loop {
            let held: Vec<Held> = takings.iter().map(|taking| taking.held).collect();
            let moment = Moment { monotonic: MonotonicMicros(now.0), chance, namespace: Some(&namespace), held: &held };
            let answer = match self.0.next(&moment) {
                Next::Wait(length) if length > Micros(0) => return now + length,
                Next::Wait(_) | Next::Tell { .. } => continue,
                Next::Install(slot, range) => {
                    takings[slot].install(range);
                    Answer::Installed
                }
                next => {
                    world.report.request(now);
                    match next {
                        Next::Write(..) if is_away => Answer::Unknown,
                        _ if is_away => Answer::Failed,
                        next => world.answer(&next),
                    }
                }
            };
            let held: Vec<Held> = takings.iter().map(|taking| taking.held).collect();
            self.0.answer(&Moment { held: &held, ..moment }, answer);
            assert!(!self.0.take_events().iter().any(|event| matches!(event, TagEvent::Missing(_))));
        }
    }

    fn crash(&mut self) {
        let sizes = self.0.sizes().map(|(tag, size)| (tag.clone(), size)).collect();
        *self = Self::new(&self.1, sizes);
    }
}

impl Rule for Leaf {
    fn look(&mut self, now: Micros, is_away: bool, _: u64, takings: &mut [Taking], world: &mut World) -> Micros {
        // It looks which tags there are.
        let minute = now.0 / 60_000_000;
        let mut again = Micros((minute + 1) * 60_000_000);
        if now.0 % 60_000_000 == 0 {
            world.report.request(now);
        }
        for (number, taking) in takings.iter_mut().enumerate() {
            let (size, fetched_at) = self.buffers[number];
            let left = taking.held.current.count();
            if taking.held.after.is_some() {
                continue;
            }
            if size > 0 && left * 10 >= size * 9 {
                let to_go = (left - size * 9 / 10 + 1) as f64 / rate_at(number, now) * 1e6;
                again = again.min(now + Micros(to_go.min(3.6e9) as i64));
                continue;
            }
            world.report.request(now);
            if is_away {
                // It tries again with the next call.
                again = again.min(now + Micros::from_secs(1));
                continue;
            }
            let size = match fetched_at.map(|at| now - at) {
                None => self.smallest,
                Some(lasted) if lasted < Micros::from_secs(900) => (size * 2).min(1_000_000),
                Some(lasted) if lasted < Micros::from_secs(1800) => size,
                Some(_) => (size / 2).max(self.smallest),
            };
            self.buffers[number] = (size, Some(now));
            let first = world.next[number];
            world.next[number] += size;
            taking.install(Range { first, end: first + size });
            // The second buffer is fetched when a tenth of this one is used.
            again = again.min(now + Micros(1));
        }
        again
    }

    fn crash(&mut self) {
        self.buffers.iter_mut().for_each(|buffer| *buffer = (0, None));
    }
}

/// Runs it by the core's rule.
pub fn ours(scenario: &Scenario, seed: u64) -> Report {
    run(format!("ranges of {} min", scenario.duration.0 / 60_000_000), scenario, seed, || {
        Ours::new(scenario, BTreeMap::new())
    })
}

/// Runs it by that of Leaf, with buffers of so many numbers at least.
pub fn leaf(scenario: &Scenario, seed: u64, smallest: u64) -> Report {
    let buffers = vec![(0, None); scenario.tags];
    run(format!("Leaf, buffers of {smallest} at least"), scenario, seed, || Leaf { smallest, buffers: buffers.clone() })
}

fn run<R: Rule>(name: String, scenario: &Scenario, seed: u64, rule: impl Fn() -> R) -> Report {
    let mut chance = Chance(seed);
    let bounds = Sizes::of(TagRecord::HIGHEST);
    let record = TagRecord { next: 1, floor: 1, first: 1, last: TagRecord::HIGHEST, state: State::Live, bounds };
    let stored = |number| (tag(number), StoredTag { version: Version(1), record: record.clone() });
    let mut world = World {
        records: (0..scenario.tags).map(stored).collect(),
        namespace: NamespaceRecord { life: 1, ..NamespaceRecord::default() },
        version: 1,
        next: vec![1; scenario.tags],
        report: Report::new(name, scenario),
    };
    let mut servers: Vec<_> =
        (0..scenario.servers).map(|_| (rule(), vec![Taking::default(); scenario.tags], Micros(0))).collect();
    // Servers start within an hour, and crash once, at any time after that.
    let hour = Micros::from_secs(3600);
    let mut queue: BinaryHeap<_> =
        (0..scenario.servers).map(|server| Reverse((chance.within(hour).max(Micros(1)), server))).collect();
    let crashes: Vec<_> = servers.iter().map(|_| hour + chance.within(scenario.length - hour)).collect();
    let mut is_crashed = vec![false; scenario.servers];
    while let Some(Reverse((now, server))) = queue.pop() {
        if now >= scenario.length {
            break;
        }
        let is_away = now >= scenario.outage.0 && now < scenario.outage.0 + scenario.outage.1;
        let (_, takings, before) = &mut servers[server];
        let before = match std::mem::replace(before, now) {
            Micros(0) => now,
            before => before,
        };
        for (number, taking) in takings.iter_mut().enumerate() {
            let was_empty = taking.is_empty;
            world.report.taken += taking.advance(rate_at(number, before), now - before);
            if taking.is_empty && !was_empty {
                let report = &mut world.report;
                let (begin, end) = (scenario.outage.0, scenario.outage.0 + scenario.outage.1);
                let has_crashed = is_crashed[server] && (begin..end).contains(&crashes[server]);
                // Also where the first number is wanted a moment after the outage.
                *match (is_away, has_crashed) {
                    (_, true) => &mut report.empty_by_crash,
                    (true, false) => &mut report.empty_in_outage,
                    (false, false) => &mut report.empty,
                } += 1;
            }
        }
        if !is_crashed[server] && now >= crashes[server] {
            is_crashed[server] = true;
            for (number, taking) in takings.iter_mut().enumerate() {
                world.report.crash(number, taking.held.left());
                *taking = Taking::default();
            }
            servers[server].0.crash();
        }
        let (rule, takings, _) = &mut servers[server];
        let again = rule.look(now, is_away, chance.draw(), takings, &mut world);
        let empty = takings.iter().enumerate().filter_map(|(number, taking)| taking.lasts(rate_at(number, now)));
        let soonest = empty.min().map_or(again, |lasts| again.min(now + lasts));
        queue.push(Reverse((soonest.max(now + Micros(1)).min(hour_after(now)), server)));
    }
    world.report
}
