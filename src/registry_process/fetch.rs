//! The segments of the server, on the side of the process that talks to the registry: [`Fetcher`] decides what is done, and this
//! brings it to shared memory and back.

use super::report;
use crate::postgres::time::clock;
use crate::server::believed;
use crate::settings;
use crate::shared::segments::{self, Kind, Outcome, ShownRecord};
use snowflake_core::lease::{NamespaceRecord, Terms as Pauses, Token};
use snowflake_core::segment::{
    Answer, Fetcher, Held, Holding, Moment, Next, NotDone, RangeTerms, Request, Tag, TagEvent, TagStanding, Trouble,
};
use snowflake_core::{Micros, MonotonicMicros};
use std::collections::BTreeMap;
use std::fs;

/// The sizes of ranges, with which the next run begins. In the data directory, which is the working directory. Nothing depends on it.
const FILE: &str = "pg_snowflake.segments";
const NEW_FILE: &str = "pg_snowflake.segments.new";

/// What the process knows of segments.
pub struct Fetch {
    fetcher: Fetcher,
    /// What was last written into the file.
    written: BTreeMap<Tag, u64>,
}

impl Fetch {
    /// Goes on with what shared memory holds.
    pub fn new(pauses: Pauses) -> Self {
        let written = read_sizes();
        let fetcher = Fetcher::new(terms(pauses), settings::max_segments(), segments::tags(), written.clone());
        Self { fetcher, written }
    }

    /// The settings have changed.
    pub fn configure(&mut self, pauses: Pauses) {
        self.fetcher.configure(terms(pauses));
    }

    /// The server stops.
    pub fn stop(&mut self, by: MonotonicMicros) {
        self.fetcher.stop(by);
    }

    /// What to do next, where that is for the registry.
    ///
    /// # Errors
    /// Where there is nothing, for how long.
    pub fn next(&mut self, namespace: Option<&NamespaceRecord>, chance: u64) -> Result<Next, Rest> {
        loop {
            self.take_request();
            let held = held();
            let next = self.fetcher.next(&moment(namespace, chance, &held));
            self.answer_requests();
            match next {
                Next::Wait(Micros(0)) => {}
                Next::Wait(length) => {
                    self.show(&held);
                    return Err(Rest::For(length));
                }
                Next::Done => return Err(Rest::ForGood),
                Next::Tell { slot, tag, standing, floor } => tell(slot, &tag, standing, floor),
                Next::Install(slot, range) => {
                    segments::lock().states[slot].install(segments::place(slot), range);
                    self.answer(namespace, chance, Answer::Installed);
                    self.write_sizes();
                }
                Next::Close => {
                    let mut segments = segments::lock();
                    for slot in 0..segments::tags().len() {
                        segments.states[slot].close(segments::place(slot));
                    }
                    drop(segments);
                    self.answer(namespace, chance, Answer::Closed);
                }
                next => return Ok(next),
            }
        }
    }

    /// What came of it.
    pub fn answer(&mut self, namespace: Option<&NamespaceRecord>, chance: u64, answer: Answer) {
        let held = held();
        self.fetcher.answer(&moment(namespace, chance, &held), answer);
        while let Some(Next::Tell { slot, tag, standing, floor }) = self.fetcher.take_tell() {
            tell(slot, &tag, standing, floor);
        }
        self.answer_requests();
        self.show(&held);
    }

    /// What this server holds once what is under way is stored, where that grants it a range.
    pub fn holding(&self, token: Token, chance: u64) -> Option<Holding> {
        let held = held();
        let (before, granted, used) = self.fetcher.granting(&moment(None, chance, &held))?;
        Some(Holding::of(token, before, granted, believed::now(), used))
    }

    /// What keeps the server from numbers.
    pub fn trouble(&self) -> Option<Trouble> {
        self.fetcher.trouble(&moment(None, 0, &held()))
    }

    /// Takes the next request of a session, unless one is under way.
    fn take_request(&mut self) {
        if self.fetcher.is_busy() {
            return;
        }
        let wanted = segments::lock().requests.first();
        if let Some((tag, kind)) = wanted {
            self.fetcher.request(match kind {
                Kind::Attach => Request::Attach(tag),
                Kind::Create(plan) => Request::Create(tag, plan),
                Kind::Raise(above) => Request::Raise(tag, above),
                Kind::Drop => Request::Drop(tag),
            });
        }
    }

    /// Answers what is done, and logs what happened.
    fn answer_requests(&mut self) {
        for event in self.fetcher.take_events() {
            let TagEvent::Answered(outcome) = event else {
                report::segment(&event);
                continue;
            };
            let outcome = match outcome {
                Ok(record) => Outcome::Done(record.next),
                Err(NotDone::Refused(refusal)) => Outcome::Refused(refusal),
                Err(NotDone::Full) => Outcome::Full,
                Err(NotDone::Failed) => Outcome::Failed,
                Err(NotDone::Unknown) => Outcome::Unknown,
            };
            segments::lock().requests.answer(outcome);
        }
    }

    /// Shows sessions how tags are used.
    fn show(&self, held: &[Held]) {
        let now = clock::monotonic_micros();
        let mut segments = segments::lock();
        for (slot, held) in held.iter().enumerate() {
            let state = &mut segments.states[slot];
            if let Some((size, used)) = self.fetcher.used(slot, held, now) {
                (state.size, state.used) = (size, (used.count, used.length));
            }
            state.conflicts = self.fetcher.conflicts(slot);
            state.too_small = self.fetcher.too_small(slot, held, now);
            state.record = self.fetcher.record(slot).map(ShownRecord::of);
        }
    }

    /// Writes the sizes down, where one has changed.
    fn write_sizes(&mut self) {
        let mut sizes = self.written.clone();
        sizes.extend(self.fetcher.sizes().map(|(tag, size)| (tag.clone(), size)));
        if sizes == self.written {
            return;
        }
        let text: String = sizes.iter().map(|(tag, size)| format!("{size} {tag}\n")).collect();
        // Where that fails, the next run begins with small ranges.
        if fs::write(NEW_FILE, text).and_then(|()| fs::rename(NEW_FILE, FILE)).is_ok() {
            self.written = sizes;
        }
    }
}

/// Why there is nothing to do.
pub enum Rest {
    /// For so long, or until something happens.
    For(Micros),
    /// The server stops.
    ForGood,
}

impl Rest {
    /// How long both have nothing to do.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::For(one), Self::For(other)) => Self::For(one.min(other)),
            (Self::ForGood, rest) | (rest, Self::ForGood) => rest,
        }
    }

    /// How long a call of the registry may take that is not about the lease, where the lease needs nothing for so long.
    pub fn spare(&self) -> Option<Micros> {
        match self {
            Self::For(length) => Pauses::spare(*length),
            Self::ForGood => Some(Micros(i64::MAX)),
        }
    }
}

fn terms(pauses: Pauses) -> RangeTerms {
    RangeTerms { duration: settings::segment_duration(), pauses }
}

fn read_sizes() -> BTreeMap<Tag, u64> {
    let line = |line: &str| {
        let (size, tag) = line.split_once(' ')?;
        Some((Tag::new(tag).ok()?, size.parse().ok()?))
    };
    fs::read_to_string(FILE).unwrap_or_default().lines().filter_map(line).collect()
}

/// What the server holds of each tag.
fn held() -> Vec<Held> {
    let count = segments::tags().len();
    let segments = segments::lock();
    (0..count).map(|slot| segments.states[slot].held(segments::place(slot))).collect()
}

fn moment<'a>(namespace: Option<&'a NamespaceRecord>, chance: u64, held: &'a [Held]) -> Moment<'a> {
    Moment { monotonic: clock::monotonic_micros(), chance, namespace, held }
}

/// Tells sessions how a tag stands. A new one gets its place.
fn tell(slot: usize, tag: &Tag, standing: TagStanding, floor: u64) {
    let mut segments = segments::lock();
    let place = segments::place(slot);
    if place.tag().is_none() {
        segments::give_place(slot, tag, &mut segments);
    }
    let state = &mut segments.states[slot];
    let is_dropped = standing == TagStanding::Dropped;
    state.standing = standing;
    place.counter.raise(floor);
    state.after = Held { after: state.after, ..Held::default() }.above(floor).after.filter(|_| !is_dropped);
    if is_dropped {
        place.counter.close();
    }
}
