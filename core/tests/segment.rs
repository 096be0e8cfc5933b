//! The decisions about segments, one by one; and all together in property tests, in which a few servers and a registry do
//! anything in any order. Here is what the tests share: a registry, and servers. `model/` has the exhaustive check and the simulation of many.

use proptest::prelude::*;
use snowflake_core::lease::{self, NamespaceRecord, Version};
use snowflake_core::segment::*;
use snowflake_core::{Micros, MonotonicMicros, UnixMicros};
use std::collections::{BTreeMap, BTreeSet};

mod fetcher;
mod held;
mod random;
mod sizes;
mod steps;
mod troubles;
mod written;

const MINUTES_10: Micros = Micros::from_secs(600);
const PAUSES: lease::Terms =
    lease::Terms { window: Micros::from_secs(60), max_lead: Micros::from_secs(600), max_jump: Micros::from_secs(10) };
const TERMS: RangeTerms = RangeTerms { duration: MINUTES_10, pauses: PAUSES };
const BOUNDS: Sizes = Sizes { smallest: 10, largest: 1000 };

fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

fn orders() -> Tag {
    tag("orders")
}

fn range(first: u64, end: u64) -> Range {
    Range { first, end }
}

/// A live record with this next number.
fn stored(next: u64, last: u64) -> StoredTag {
    StoredTag {
        version: Version(7),
        record: TagRecord { next, floor: 1, first: 1, last, state: State::Live, bounds: BOUNDS },
    }
}

fn dropped(next: u64, last: u64) -> StoredTag {
    let live = stored(next, last);
    StoredTag { record: TagRecord { state: State::Dropped, floor: next, ..live.record }, ..live }
}

fn plan(first: u64, last: u64) -> NewSegment {
    NewSegment { first, last, bounds: BOUNDS }
}

const LIFE: u64 = 77;

fn namespace(life: u64) -> NamespaceRecord {
    NamespaceRecord { layout: "l".to_owned(), life, ..NamespaceRecord::default() }
}

/// A registry that does as it is told.
#[derive(Clone, Debug)]
struct Registry {
    namespace: NamespaceRecord,
    records: BTreeMap<Tag, StoredTag>,
    version: u64,
    requests: usize,
    late: Vec<Next>,
}

impl Registry {
    fn new() -> Self {
        Self { namespace: namespace(LIFE), records: BTreeMap::new(), version: 0, requests: 0, late: Vec::new() }
    }

    fn answer(&mut self, request: &Next) -> Answer {
        self.requests += 1;
        match request {
            Next::ReadAll => Answer::All(self.records.clone()),
            Next::Read(tag) => Answer::One(self.records.get(tag).cloned()),
            Next::Write(_, namespace) if *namespace != self.namespace => Answer::OtherNamespace,
            Next::Write(write, _) => {
                let found = self.records.get(&write.tag);
                if found.map(|stored| stored.version) != write.expected {
                    return Answer::Conflict(found.cloned());
                }
                self.version += 1;
                let stored = StoredTag { version: Version(self.version), record: write.record.clone() };
                self.records.insert(write.tag.clone(), stored);
                Answer::Stored(Version(self.version))
            }
            other => panic!("{other:?}"),
        }
    }

    fn next_of(&self, name: &str) -> u64 {
        self.records[&tag(name)].record.next
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    /// It does not arrive.
    Lost,
    /// It is done, and the answer is lost.
    AnswerLost,
    /// It arrives when nobody waits for it any more.
    Late,
}

/// What a server has in shared memory of a tag.
struct Place {
    tag: Tag,
    counter: Counter,
    after: Option<Range>,
    /// What was left when it was closed.
    closed: Option<Range>,
    standing: TagStanding,
}

struct Server {
    fetcher: Fetcher,
    places: Vec<Place>,
    now: MonotonicMicros,
    events: Vec<TagEvent>,
    is_done: bool,
    /// Two servers do not draw the same.
    chance: u64,
}

fn fetcher(tags: Vec<Tag>) -> Fetcher {
    Fetcher::new(TERMS, 2, tags, BTreeMap::new())
}

impl Server {
    fn new() -> Self {
        let now = MonotonicMicros(0);
        Self { fetcher: fetcher(Vec::new()), places: Vec::new(), now, events: Vec::new(), is_done: false, chance: 0 }
    }

    fn held(&self) -> Vec<Held> {
        let of = |place: &Place| Held { current: place.closed.unwrap_or(place.counter.left()), after: place.after };
        self.places.iter().map(of).collect()
    }

    /// Does the next thing. Returns how long there is nothing.
    fn step(&mut self, registry: &mut Registry, fate: Fate) -> Option<Micros> {
        let (held, namespace) = (self.held(), registry.namespace.clone());
        let chance = self.chance.wrapping_add(self.now.0 as u64);
        let moment = Moment { monotonic: self.now, chance, namespace: Some(&namespace), held: &held };
        let next = self.fetcher.next(&moment);
        let answer = match &next {
            Next::Wait(length) => return Some(*length),
            Next::Done => {
                self.is_done = true;
                return Some(Micros(0));
            }
            Next::Tell { slot, tag, standing, floor } => {
                if *slot == self.places.len() {
                    let (tag, counter) = (tag.clone(), Counter::new());
                    self.places.push(Place { tag, counter, after: None, closed: None, standing: TagStanding::Live });
                }
                let place = &mut self.places[*slot];
                assert_eq!(place.tag, *tag);
                place.standing = *standing;
                place.counter.raise(*floor);
                place.after = Held { current: range(0, 0), after: place.after }.above(*floor).after;
                if *standing == TagStanding::Dropped {
                    place.counter.close();
                    place.after = None;
                }
                return None;
            }
            Next::Install(slot, range) => {
                let place = &mut self.places[*slot];
                if !place.counter.install(*range) {
                    assert!(place.after.is_none() && place.counter.left().count() > 0);
                    place.after = Some(*range);
                }
                Answer::Installed
            }
            Next::Close => {
                for place in &mut self.places {
                    place.closed = Some(place.counter.close());
                }
                Answer::Closed
            }
            request => match fate {
                Fate::Done => registry.answer(request),
                Fate::AnswerLost => {
                    registry.answer(request);
                    Answer::Unknown
                }
                Fate::Lost => Answer::Unknown,
                Fate::Late => {
                    registry.late.push(request.clone());
                    Answer::Unknown
                }
            },
        };
        let answer = match (answer, &next) {
            (Answer::Unknown, Next::Read(_) | Next::ReadAll) => Answer::Failed,
            (answer, _) => answer,
        };
        let held = self.held();
        let moment = Moment { held: &held, ..moment };
        self.fetcher.answer(&moment, answer);
        self.events.extend(self.fetcher.take_events());
        None
    }

    /// Up to where there is nothing to do.
    fn settle(&mut self, registry: &mut Registry) -> Micros {
        (0..100).find_map(|_| self.step(registry, Fate::Done)).expect("an end")
    }

    fn request(&mut self, registry: &mut Registry, request: Request) -> Result<TagRecord, NotDone> {
        self.fetcher.request(request);
        self.settle(registry);
        let at = self.events.iter().position(|event| matches!(event, TagEvent::Answered(_))).unwrap();
        match self.events.remove(at) {
            TagEvent::Answered(outcome) => outcome,
            _ => unreachable!(),
        }
    }

    fn place(&self, tag: &Tag) -> Option<usize> {
        self.places.iter().position(|place| place.tag == *tag)
    }

    /// As sessions do; `None` where they would wait, or fail.
    fn claim(&mut self, tag: &Tag, want: u64) -> Option<Range> {
        let at = self.place(tag)?;
        let place = &mut self.places[at];
        if let Some(claimed) = place.counter.claim(want) {
            return Some(claimed);
        }
        if place.closed.is_some() {
            return None;
        }
        let after = place.after.take()?;
        assert!(place.counter.install(after));
        place.counter.claim(want)
    }

    fn advance(&mut self, seconds: i64) {
        self.now = self.now.saturating_add(Micros::from_secs(seconds));
    }
}

/// A registry with the tag, and a server that has taken numbers of it.
fn with_orders(last: u64) -> (Registry, Server) {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    server.request(&mut registry, Request::Create(orders(), plan(1, last))).unwrap();
    server.request(&mut registry, Request::Attach(orders())).unwrap();
    (registry, server)
}

/// Others store a record of the tag between each read and write of this server.
fn collide(registry: &mut Registry) {
    registry.version += 1;
    registry.records.get_mut(&orders()).unwrap().version = Version(registry.version);
}
