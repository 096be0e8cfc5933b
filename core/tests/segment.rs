//! The decisions about segments, one by one; and all together in property tests, in which a few servers and a registry do
//! anything in any order. `model/` has the exhaustive check and the simulation of many.

use proptest::prelude::*;
use snowflake_core::lease::{self, NamespaceRecord, Version};
use snowflake_core::segment::*;
use snowflake_core::{Micros, MonotonicMicros, UnixMicros};
use std::collections::{BTreeMap, BTreeSet};

mod steps;

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

// Names and bounds.

#[test]
fn tags_have_a_length_and_are_printable() {
    for name in ["orders", "o'clock \"x\" %/ ~#", &"x".repeat(63), "*", "a/b", " "] {
        assert_eq!((tag(name).as_str(), tag(name).to_string().as_str()), (name, name));
    }
    for name in ["", &"x".repeat(64), "é", "a\nb", "a\0", "\u{7f}"] {
        assert_eq!(Tag::new(name), Err(TagError), "{name:?}");
    }
}

#[test]
fn bounds_of_a_tag_follow_from_how_many_numbers_it_has() {
    assert_eq!(Sizes::of(2_147_483_647), Sizes { smallest: 10, largest: 2_147_483 });
    assert_eq!(Sizes::of(100), Sizes { smallest: 10, largest: 10 });
    assert_eq!(Sizes::of(3), Sizes { smallest: 3, largest: 3 });
    assert_eq!(Sizes::of(TagRecord::HIGHEST).nearest(u64::MAX), TagRecord::HIGHEST / 1000);
    assert_eq!([0, 10, 11, 1000, 1001].map(|size| BOUNDS.nearest(size)), [10, 10, 11, 1000, 1000]);
}

#[test]
fn a_record_that_nobody_can_have_written_is_noticed() {
    let record = |change: fn(&mut TagRecord)| {
        let mut record = stored(20, TagRecord::HIGHEST).record;
        change(&mut record);
        record.is_sound()
    };
    assert!(record(|_| {}));
    assert!(record(|it| (it.next, it.floor) = (TagRecord::HIGHEST + 1, TagRecord::HIGHEST + 1)), "used up");
    assert!(record(|it| it.last = 1), "of one number");
    assert!(!record(|it| it.last = 0));
    assert!(!record(|it| it.last = TagRecord::HIGHEST + 1));
    assert!(!record(|it| it.next = TagRecord::HIGHEST + 2) && !record(|it| it.floor = TagRecord::HIGHEST + 2));
    assert!(!record(|it| it.bounds.smallest = 0) && !record(|it| it.bounds.smallest = 1001));
}

#[test]
fn a_holding_that_no_server_can_have_is_noticed() {
    let holding = |current, after| {
        let (granted_at, used) = (UnixMicros(0), Use { count: 0, length: Micros(0) });
        Holding { run: 1, current, after, granted_at, used }.is_sound()
    };
    let none = Range::default();
    assert!(holding(range(5, 10), none) && holding(none, none));
    assert!(holding(range(5, 10), range(10, 30)) && holding(range(10, 10), range(20, 30)));
    assert!(holding(range(5, TagRecord::HIGHEST + 1), none));
    assert!(!holding(range(10, 5), none) && !holding(range(5, TagRecord::HIGHEST + 2), none));
    assert!(!holding(range(5, 10), range(30, 20)) && !holding(range(5, 10), range(20, TagRecord::HIGHEST + 2)));
    assert!(!holding(range(5, 10), range(9, 30)));
}

#[test]
fn a_run_is_told_by_both_halves_of_its_token() {
    assert_eq!([(3, 1), (1, 3), (3, 0)].map(|(high, low)| run_of(lease::Token(high << 64 | low))), [2, 2, 3]);
}

// What is written.

#[test]
fn a_tag_is_created_once() {
    let write = create(&orders(), None, &plan(5, 99), 0).unwrap();
    assert_eq!((write.expected, write.tag), (None, orders()));
    let expected = TagRecord { next: 5, floor: 5, first: 5, last: 99, state: State::Live, bounds: BOUNDS };
    assert_eq!(write.record, expected);
    assert_eq!(create(&orders(), Some(&stored(5, 99)), &plan(5, 99), 0), Err(TagRefusal::Exists));
}

#[test]
fn a_tag_that_was_dropped_goes_on_above() {
    let write = create(&orders(), Some(&dropped(50, 99)), &plan(1, 999), 0).unwrap();
    assert_eq!(write.expected, Some(Version(7)));
    assert_eq!((write.record.next, write.record.floor, write.record.last), (50, 50, 999));
    assert_eq!(create(&orders(), Some(&dropped(50, 99)), &plan(70, 999), 0).unwrap().record.next, 70);
    assert_eq!(create(&orders(), Some(&dropped(50, 99)), &plan(1, 50), 0).unwrap().record.left(), 1);
    let used_up = create(&orders(), Some(&dropped(50, 99)), &plan(1, 49), 0);
    assert_eq!(used_up, Err(TagRefusal::UsedUp { last: 49 }));
}

#[test]
fn who_holds_numbers_creates_above_them() {
    assert_eq!(create(&orders(), None, &plan(1, 99), 40).unwrap().record.next, 40);
}

#[test]
fn a_grant_raises_the_next_number() {
    let (write, granted) = grant(&orders(), Some(&stored(20, 99)), 10, 0).unwrap();
    assert_eq!((write.expected, write.record.next, granted), (Some(Version(7)), 30, range(20, 30)));
    // The rest.
    let (write, granted) = grant(&orders(), Some(&stored(95, 99)), 10, 0).unwrap();
    assert_eq!((write.record.next, granted), (100, range(95, 100)));
    assert_eq!(grant(&orders(), Some(&stored(100, 99)), 10, 0), Err(TagRefusal::UsedUp { last: 99 }));
    let (write, granted) =
        grant(&orders(), Some(&stored(TagRecord::HIGHEST, TagRecord::HIGHEST)), u64::MAX, 0).unwrap();
    assert_eq!((write.record.next, granted.count()), (TagRecord::HIGHEST + 1, 1));
}

#[test]
fn a_tag_that_is_not_there_is_no_new_one() {
    assert_eq!(grant(&orders(), None, 10, 0), Err(TagRefusal::Missing));
    assert_eq!(grant(&orders(), None, 10, 500), Err(TagRefusal::Missing));
    assert_eq!(grant(&orders(), Some(&dropped(20, 99)), 10, 0), Err(TagRefusal::Dropped));
    assert_eq!(raise(&orders(), None, 10, 0), Err(TagRefusal::Missing));
    assert_eq!(drop_tag(&orders(), None, 0), Err(TagRefusal::Missing));
    assert_eq!(drop_tag(&orders(), Some(&dropped(20, 99)), 0), Err(TagRefusal::Dropped));
}

#[test]
fn a_registry_that_was_rolled_back_is_raised() {
    assert_eq!(restore(&orders(), Some(&stored(20, 99)), 40).unwrap().record.next, 40);
    assert_eq!(restore(&orders(), Some(&stored(40, 99)), 40), None);
    assert_eq!(restore(&orders(), Some(&dropped(20, 99)), 40).unwrap().record.state, State::Dropped);
    let (write, granted) = grant(&orders(), Some(&stored(20, 99)), 10, 40).unwrap();
    assert_eq!((write.record.next, granted), (50, range(40, 50)));
    let dropped = drop_tag(&orders(), Some(&stored(20, 99)), 40).unwrap().record;
    assert_eq!((dropped.next, dropped.floor), (40, 40));
    assert_eq!(raise(&orders(), Some(&stored(20, 99)), 5, 40).unwrap().record.next, 40);
}

/// Nobody is granted numbers of a tag that the registry has forgotten, and whoever creates it goes on above what servers have said.
#[test]
fn a_tag_that_was_forgotten_stays_so_until_somebody_creates_it() {
    assert_eq!(restore(&orders(), None, 0), None);
    let first = restore(&orders(), None, 40).unwrap();
    assert_eq!((first.expected, first.record.next, first.record.floor), (None, 40, 0));
    let forgotten = StoredTag { version: Version(8), record: first.record };
    assert_eq!(restore(&orders(), Some(&forgotten), 40), None);
    let second = restore(&orders(), Some(&forgotten), 60).unwrap();
    assert_eq!((second.expected, second.record.state), (Some(Version(8)), State::Forgotten));
    let forgotten = StoredTag { version: Version(9), record: second.record };
    assert_eq!(grant(&orders(), Some(&forgotten), 10, 0), Err(TagRefusal::Missing));
    assert_eq!(raise(&orders(), Some(&forgotten), 70, 0), Err(TagRefusal::Missing));
    assert_eq!(drop_tag(&orders(), Some(&forgotten), 0), Err(TagRefusal::Missing));
    let created = create(&orders(), Some(&forgotten), &plan(1, 999), 0).unwrap();
    assert_eq!((created.expected, created.record.next, created.record.first), (Some(Version(9)), 60, 1));
    assert_eq!(created.record.state, State::Live);
}

#[test]
fn a_raise_moves_the_floor_and_lowers_nothing() {
    let write = raise(&orders(), Some(&stored(20, 99)), 49, 0).unwrap();
    assert_eq!((write.record.next, write.record.floor), (50, 50));
    let write = raise(&orders(), Some(&stored(80, 99)), 49, 0).unwrap();
    assert_eq!((write.record.next, write.record.floor), (80, 50));
    let floored = StoredTag { record: TagRecord { floor: 60, ..stored(80, 99).record }, ..stored(80, 99) };
    assert_eq!(raise(&orders(), Some(&floored), 49, 0).unwrap().record.floor, 60);
    assert_eq!(raise(&orders(), Some(&stored(20, 99)), 99, 0).unwrap().record.left(), 0);
    assert_eq!(raise(&orders(), Some(&stored(20, 99)), 100, 0), Err(TagRefusal::AboveLast { last: 99 }));
}

#[test]
fn a_rest_is_given_back_where_nothing_was_granted_since() {
    let give = |next, current, after| {
        give_back(&orders(), &stored(next, 99), &Held { current, after }).map(|write| write.record.next)
    };
    assert_eq!(give(30, range(24, 30), None), Some(24));
    assert_eq!(give(40, range(24, 30), None), None, "granted since");
    assert_eq!(give(20, range(24, 30), None), None, "rolled back");
    assert_eq!(give(30, range(30, 30), None), None, "nothing left");
    assert_eq!(give(40, range(24, 30), Some(range(30, 40))), Some(24), "both");
    assert_eq!(give(50, range(24, 30), Some(range(40, 50))), Some(40), "another server's lies between");
    assert_eq!(give(50, range(30, 30), Some(range(40, 50))), Some(40));
    assert_eq!(give(40, range(30, 30), Some(range(30, 40))), Some(30));
    let floored = StoredTag { record: TagRecord { floor: 27, ..stored(30, 99).record }, ..stored(30, 99) };
    let held = Held { current: range(24, 30), after: None };
    assert_eq!(give_back(&orders(), &floored, &held).unwrap().record.next, 27, "not below the floor");
}

// What is held.

#[test]
fn a_counter_gives_each_number_once_and_no_more_than_it_has() {
    let counter = Counter::new();
    assert_eq!(counter.claim(1), None);
    assert!(counter.install(range(5, 10)));
    assert!(!counter.install(range(10, 20)), "something is left");
    assert_eq!((counter.claim(1), counter.claim(3)), (Some(range(5, 6)), Some(range(6, 9))));
    assert_eq!((counter.claim(7), counter.claim(1)), (Some(range(9, 10)), None));
    assert!(!counter.install(range(9, 20)), "ranges rise");
    assert!(!counter.install(range(20, 20)), "an empty one is none");
    assert!(counter.install(range(20, 30)));
    counter.raise(25);
    assert_eq!(counter.claim(1), Some(range(25, 26)));
    counter.raise(3);
    counter.raise(1000);
    assert_eq!((counter.claim(1), counter.left()), (None, range(30, 30)));
    assert!(counter.install(range(TagRecord::HIGHEST, TagRecord::HIGHEST + 1)));
    assert_eq!(counter.claim(u64::MAX), Some(range(TagRecord::HIGHEST, TagRecord::HIGHEST + 1)));
}

#[test]
fn a_closed_counter_tells_what_is_left_and_opens_above() {
    let counter = Counter::new();
    assert!(counter.install(range(5, 10)));
    counter.claim(2);
    assert_eq!(counter.close(), range(7, 10));
    assert_eq!((counter.claim(1), counter.left(), counter.close()), (None, range(10, 10), range(10, 10)));
    counter.raise(8);
    assert_eq!(counter.claim(1), None);
    assert!(!counter.install(range(7, 12)));
    assert!(counter.install(range(12, 14)));
    assert_eq!(counter.claim(9), Some(range(12, 14)));
}

#[test]
fn a_floor_cuts_what_is_held() {
    let held = Held { current: range(5, 10), after: Some(range(20, 30)) };
    assert_eq!(held.above(0), held);
    assert_eq!(held.above(7), Held { current: range(7, 10), ..held });
    assert_eq!(held.above(25), Held { current: range(10, 10), after: Some(range(25, 30)) });
    assert_eq!(held.above(99), Held { current: range(10, 10), after: None });
    assert_eq!((held.left(), held.top()), (15, 30));
}

// Sizes.

#[test]
fn a_range_is_sized_by_time_and_changes_by_no_more_than_twice() {
    let used = |count, seconds| Use { count, length: Micros::from_secs(seconds) };
    let next = |before, used| TERMS.next_size(BOUNDS, before, used);
    assert_eq!(next(100, used(80, 600)), 100, "it lasts as long as it should, with a quarter to spare");
    assert_eq!(next(100, used(100, 600)), 125);
    assert_eq!(next(100, used(60, 600)), 75);
    assert_eq!(next(100, used(100, 60)), 200, "twice");
    assert_eq!(next(100, used(100, 0)), 200);
    assert_eq!(next(100, used(1, 600)), 50, "half");
    assert_eq!(next(100, used(0, 0)), 50);
    assert_eq!((next(15, used(1, 600)), next(800, used(800, 1))), (10, 1000), "within the bounds");
    let huge = Sizes { smallest: 1, largest: u64::MAX };
    assert_eq!(TERMS.next_size(huge, u64::MAX, used(u64::MAX, 1)), u64::MAX);
}

/// The last minute tells where a sixteenth of the range, and four numbers, were taken in it.
#[test]
fn a_rate_is_the_higher_one() {
    let used = |count, seconds| Use { count, length: Micros::from_secs(seconds) };
    let whole = used(100, 600);
    let is_last = |count, seconds, size| TERMS.higher(whole, used(count, seconds), size) == used(count, seconds);
    assert!(is_last(20, 60, 160) && !is_last(20, 59, 160), "not a minute");
    assert!(is_last(11, 60, 176) && !is_last(11, 60, 192), "too few of the range");
    assert!(!is_last(3, 60, 10), "too few");
    assert!(!is_last(10, 60, 160) && !is_last(10, 600, 160), "no higher rate");
    assert!(TERMS.higher(used(1, 600), used(4, 60), 10) == used(4, 60));
}

#[test]
fn a_largest_range_is_proposed_by_what_is_used() {
    let used = |count, seconds| Use { count, length: Micros::from_secs(seconds) };
    assert_eq!(TERMS.large_enough(BOUNDS, used(1, 600)), 10_000);
    assert_eq!(TERMS.large_enough(BOUNDS, used(100, 1)), 75_000);
}

#[test]
fn waits_for_others_are_bounded() {
    let millis = Micros::from_millis;
    let spread = |lasts: Option<i64>, chance| RangeTerms::spread_after(lasts.map(Micros), chance).0;
    assert_eq!([spread(None, 60_000_000), spread(None, 60_000_001)], [60_000_000, 0]);
    assert_eq!([spread(Some(40), 20), spread(Some(40), 21), spread(Some(-7), 5)], [20, 0, 0]);
    assert_eq!(spread(Some(i64::MAX), 60_000_000), 60_000_000, "no longer than a look");
    let turn = |latency, chance| RangeTerms::turn_after(Micros(latency), chance).0;
    assert_eq!([turn(1000, 15_999), turn(1000, 16_000), turn(0, 15), turn(0, 16), turn(-5, 16)], [15_999, 0, 15, 0, 0]);
    assert_eq!(RangeTerms::gap(millis(4)), millis(12));
    assert_eq!([10, 100].map(|latency| RangeTerms::contention_lasts(millis(latency))), [millis(1000), millis(6400)]);
    assert!(RangeTerms::is_near_end(99, 10) && !RangeTerms::is_near_end(100, 10));
}

#[test]
fn a_range_is_due_when_what_is_left_does_not_last() {
    let used = |count, seconds| Use { count, length: Micros::from_secs(seconds) };
    assert!(TERMS.is_due(100, 100, used(10, 10)), "100 s");
    assert!(TERMS.is_due(749, 751, used(10, 10)) && !TERMS.is_due(750, 751, used(10, 10)));
    assert_eq!(TERMS.due_in(751, 751, used(10, 10)), Some(Micros::from_secs(1)));
    // Rarely used: a quarter is kept.
    assert!(!TERMS.is_due(3, 10, used(1, 8640)) && TERMS.is_due(2, 10, used(1, 8640)));
    assert_eq!(TERMS.due_in(4, 10, used(1, 8640)), Some(Micros::from_secs(2 * 8640)));
    assert!(!TERMS.is_due(10, 10, used(0, 100)) && TERMS.is_due(0, 10, used(0, 100)));
    assert_eq!(TERMS.due_in(10, 10, used(0, 100)), None);
    assert!(!TERMS.is_due(26, 100, used(1, 8640)) && TERMS.is_due(25, 100, used(1, 8640)));
    assert_eq!(TERMS.due_in(29, 100, used(1, 8640)), Some(Micros::from_secs(4 * 8640)));
}

/// A minute, less up to a fifth by chance.
#[test]
fn servers_do_not_look_together() {
    let looks = [0, 1, 11_999_999, 12_000_000, u64::MAX].map(RangeTerms::look_after);
    let minute = RangeTerms::LOOK_EVERY;
    assert_eq!((looks[0], looks[1], looks[3]), (minute, minute - Micros(1), minute));
    assert_eq!(looks[2], minute - Micros(11_999_999));
    assert!(looks.iter().all(|look| *look <= minute && *look >= minute - minute / 5), "{looks:?}");
}

// The fetcher.

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

#[test]
fn the_first_range_is_small_and_the_next_one_comes_in_time() {
    let (mut registry, mut server) = with_orders(1_000_000);
    assert_eq!(registry.next_of("orders"), 11);
    assert_eq!(server.claim(&orders(), 1), Some(range(1, 2)));
    server.advance(1);
    server.settle(&mut registry);
    assert_eq!(server.places[0].after, Some(range(11, 31)), "a number a second, so twice as many");
    for expected in 2..=30 {
        server.settle(&mut registry);
        assert_eq!(server.claim(&orders(), 1), Some(range(expected, expected + 1)));
    }
}

#[test]
fn a_tag_that_is_used_ten_times_a_day_keeps_small_ranges() {
    let (mut registry, mut server) = with_orders(1_000_000);
    for number in 1..=100 {
        assert_eq!(server.claim(&orders(), 1), Some(range(number, number + 1)));
        server.advance(8640);
        server.settle(&mut registry);
    }
    assert!(server.held()[0].left() <= 20, "{:?}", server.held());
    assert!(registry.next_of("orders") <= 120);
}

/// A night without use says nothing about the morning: the next range is asked for before most of the last one is used.
#[test]
fn a_rate_that_rises_is_noticed_in_time() {
    let (mut registry, mut server) = with_orders(1_000_000);
    let second = |server: &mut Server, registry: &mut Registry| {
        server.claim(&orders(), 1).unwrap();
        server.advance(1);
        server.settle(registry);
    };
    for _ in 0..4000 {
        second(&mut server, &mut registry);
    }
    server.advance(36_000);
    server.settle(&mut registry);
    let granted = registry.next_of("orders");
    let asked_with = (0..2000).find_map(|_| {
        let left = server.held()[0].left();
        second(&mut server, &mut registry);
        let size = registry.next_of("orders") - granted;
        (size > 0).then_some((left, size))
    });
    let (left, size) = asked_with.unwrap();
    assert!(left >= 600 && size >= 600, "{left} {size}");
}

/// A thousand numbers a second: sizes rise until a range lasts ten minutes.
#[test]
fn sizes_follow_the_use() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    let bounds = Sizes { smallest: 10, largest: u64::MAX };
    let plan = NewSegment { bounds, ..plan(1, TagRecord::HIGHEST) };
    server.request(&mut registry, Request::Create(orders(), plan)).unwrap();
    server.request(&mut registry, Request::Attach(orders())).unwrap();
    let mut use_for = |server: &mut Server, seconds: u64, a_second: u64| {
        registry.requests = 0;
        for _ in 0..seconds {
            let mut left = a_second;
            while left > 0 {
                match server.claim(&orders(), left) {
                    Some(claimed) => left -= claimed.count(),
                    None => drop(server.settle(&mut registry)),
                }
            }
            server.advance(1);
            server.settle(&mut registry);
        }
        registry.requests
    };
    use_for(&mut server, 7200, 1000);
    let requests = use_for(&mut server, 7200, 1000);
    let (size, _) = server.fetcher.used(0, &server.held()[0], server.now).unwrap();
    assert!((700_000..=800_000).contains(&size), "{size}");
    assert!(requests < 12 + 7200 / 48 + 10, "{requests}: a range in ten minutes, a look a minute");
    use_for(&mut server, 36_000, 1);
    let (size, _) = server.fetcher.used(0, &server.held()[0], server.now).unwrap();
    assert!(size < 800_000, "{size}");
}

#[test]
fn a_tag_that_was_not_created_is_refused_and_takes_no_place() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    for _ in 0..5 {
        let unknown = server.request(&mut registry, Request::Attach(orders()));
        assert_eq!(unknown, Err(NotDone::Refused(TagRefusal::Missing)));
    }
    assert_eq!((server.places.len(), registry.records.len()), (0, 0));
}

#[test]
fn sessions_that_ask_for_what_is_not_there_keep_nobody_from_numbers() {
    let (mut registry, mut server) = with_orders(1_000_000);
    let mut taken = 0;
    for _ in 0..200 {
        taken += server.claim(&orders(), 1000).map_or(0, |claimed| claimed.count());
        if !server.fetcher.is_busy() {
            server.fetcher.request(Request::Attach(tag("other")));
        }
        server.step(&mut registry, Fate::Done);
    }
    let refused = server.events.iter().filter(|event| matches!(event, TagEvent::Answered(Err(_)))).count();
    assert!(taken > 1000 && refused > 20, "{taken} {refused}");
}

/// Whose ranges are so small that sessions have used one before the next thing is done.
#[test]
fn a_tag_that_is_always_empty_keeps_no_other_one_waiting() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    let small = NewSegment { bounds: Sizes { smallest: 1, largest: 1 }, ..plan(1, 1_000_000) };
    for name in ["a", "b"] {
        server.request(&mut registry, Request::Create(tag(name), small)).unwrap();
        server.request(&mut registry, Request::Attach(tag(name))).unwrap();
    }
    let mut taken = [0; 2];
    for _ in 0..100 {
        for (name, taken) in ["a", "b"].into_iter().zip(&mut taken) {
            *taken += u32::from(server.claim(&tag(name), 1).is_some());
        }
        server.step(&mut registry, Fate::Done);
        server.now = server.now.saturating_add(Micros(100));
    }
    assert!(taken.iter().all(|taken| *taken > 10), "{taken:?}");
}

#[test]
fn there_is_a_place_for_so_many_tags() {
    let (mut registry, mut server) = with_orders(99);
    for name in ["b", "c"] {
        server.request(&mut registry, Request::Create(tag(name), plan(1, 99))).unwrap();
    }
    server.request(&mut registry, Request::Attach(tag("b"))).unwrap();
    assert_eq!(server.request(&mut registry, Request::Attach(tag("c"))), Err(NotDone::Full));
    assert!(server.request(&mut registry, Request::Attach(orders())).is_ok());
}

#[test]
fn at_its_end_a_tag_is_used_up() {
    let (mut registry, mut server) = with_orders(25);
    let near = |server: &Server| server.events.iter().filter(|event| matches!(event, TagEvent::NearEnd { .. })).count();
    assert_eq!(near(&server), 1);
    for number in 1..=25 {
        server.settle(&mut registry);
        assert_eq!(server.claim(&orders(), 1), Some(range(number, number + 1)));
    }
    server.settle(&mut registry);
    assert_eq!((server.claim(&orders(), 1), server.places[0].standing), (None, TagStanding::UsedUp));
    assert_eq!(near(&server), 1, "once an hour");
    let requests = registry.requests;
    server.advance(30);
    server.settle(&mut registry);
    assert!(registry.requests <= requests + 1, "it is not asked for again and again");
}

/// Also while numbers are left that were granted before.
#[test]
fn a_look_shows_that_a_tag_is_used_up() {
    let (mut registry, mut server) = with_orders(15);
    assert_eq!(server.claim(&orders(), 9), Some(range(1, 10)));
    server.settle(&mut registry);
    assert_eq!(registry.next_of("orders"), 16);
    server.advance(61);
    server.settle(&mut registry);
    assert_eq!(server.places[0].standing, TagStanding::UsedUp);
    assert_eq!((server.claim(&orders(), 9), server.claim(&orders(), 9)), (Some(range(10, 11)), Some(range(11, 16))));
}

#[test]
fn what_is_not_answered_is_abandoned() {
    for fate in [Fate::AnswerLost, Fate::Late, Fate::Lost] {
        let (mut registry, mut server) = with_orders(1_000_000);
        assert_eq!(server.claim(&orders(), 9), Some(range(1, 10)));
        assert_eq!(server.step(&mut registry, fate), None);
        server.advance(1);
        server.settle(&mut registry);
        for late in std::mem::take(&mut registry.late) {
            registry.answer(&late);
        }
        let granted = server.places[0].after.unwrap();
        assert_eq!(granted.first, if fate == Fate::AnswerLost { 31 } else { 11 }, "{fate:?}");
        assert_eq!(registry.next_of("orders"), granted.end, "{fate:?}: a late one finds another version");
    }
}

/// Others store a record of the tag between each read and write of this server.
fn collide(registry: &mut Registry) {
    registry.version += 1;
    registry.records.get_mut(&orders()).unwrap().version = Version(registry.version);
}

/// Other servers are granted ranges meanwhile. The first conflict may be chance; after others, it waits for a turn, as long on average after a range as
/// after a conflict, and reads the record before it writes.
#[test]
fn servers_that_want_ranges_of_the_same_tag_take_turns() {
    let (mut registry, mut server) = with_orders(1_000_000);
    while server.claim(&orders(), 1000).is_some() {}
    let (mut pauses, requests) = (Vec::new(), registry.requests);
    while pauses.len() < 10 {
        collide(&mut registry);
        server.chance = server.chance.wrapping_add(0x9e37_79b9);
        if let Some(pause) = server.step(&mut registry, Fate::Done) {
            pauses.push(pause.0);
            server.now = server.now.saturating_add(pause);
        }
    }
    assert!(pauses.iter().all(|pause| (0..=16_000).contains(pause)), "{pauses:?}");
    assert!(pauses.iter().max() > pauses.iter().min(), "{pauses:?}");
    // The first one is tried again at once, from what was found; each of the others is a read and a write.
    assert_eq!(registry.requests - requests, 2 + 2 * (pauses.len() - 1));
    // Granted at last, and the next one after a turn, too.
    server.settle(&mut registry);
    while server.claim(&orders(), 1000).is_some() {}
    let before = registry.next_of("orders");
    server.step(&mut registry, Fate::Done);
    assert_eq!(registry.next_of("orders"), before);
    server.now = server.now.saturating_add(Micros(16_000));
    server.settle(&mut registry);
    assert!(registry.next_of("orders") > before && server.claim(&orders(), 1).is_some());
}

/// Sessions wait for numbers while others collide with this server: it asks for more each time, however little it could use in that time.
#[test]
fn a_server_whose_sessions_wait_asks_for_more() {
    let (mut registry, mut server) = with_orders(1_000_000_000);
    let mut sizes = Vec::new();
    while sizes.len() < 8 {
        while server.claim(&orders(), 1000).is_some() {}
        server.advance(600);
        for _ in 0..10 {
            collide(&mut registry);
            server.chance = server.chance.wrapping_add(0x9e37_79b9);
            if let Some(pause) = server.step(&mut registry, Fate::Done) {
                server.now = server.now.saturating_add(pause);
            }
        }
        let before = registry.next_of("orders");
        while registry.next_of("orders") == before {
            if let Some(pause) = server.step(&mut registry, Fate::Done) {
                server.now = server.now.saturating_add(pause);
            }
        }
        server.settle(&mut registry);
        sizes.push(registry.next_of("orders") - before);
    }
    assert!(sizes.windows(2).all(|pair| pair[1] >= (2 * pair[0]).min(1000)), "up to its largest range: {sizes:?}");
}

/// Servers collide all the time, as ranges are too small: that is counted, reported once a minute, and says what is large enough.
#[test]
fn a_largest_range_that_is_too_small_is_said() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    let small = NewSegment { bounds: Sizes { smallest: 10, largest: 10 }, ..plan(1, 1_000_000) };
    server.request(&mut registry, Request::Create(orders(), small)).unwrap();
    server.request(&mut registry, Request::Attach(orders())).unwrap();
    server.settle(&mut registry);
    let said =
        |server: &Server| server.events.iter().filter(|event| matches!(event, TagEvent::TooSmall { .. })).count();
    let trouble = |server: &Server| {
        let held = server.held();
        server.fetcher.trouble(&Moment { monotonic: server.now, chance: 0, namespace: None, held: &held })
    };
    assert_eq!((said(&server), trouble(&server), server.fetcher.conflicts(0)), (0, None, 0));
    while server.claim(&orders(), 1000).is_some() {}
    let contend = |server: &mut Server, registry: &mut Registry, conflicts: u64| {
        while server.fetcher.conflicts(0) < conflicts {
            collide(registry);
            server.chance = server.chance.wrapping_add(0x9e37_79b9);
            if let Some(pause) = server.step(registry, Fate::Done) {
                server.now = server.now.saturating_add(pause);
            }
        }
    };
    contend(&mut server, &mut registry, 40);
    assert_eq!(said(&server), 1, "{:?}", server.events);
    let Some(Trouble::TooSmall { tag, conflicts: 40, largest: 10, enough }) = trouble(&server) else {
        panic!("{:?}", trouble(&server))
    };
    assert!(tag == orders() && enough >= 100, "{enough}");
    server.advance(61);
    contend(&mut server, &mut registry, 80);
    assert_eq!(said(&server), 2);
    // Nobody else asks any more.
    server.advance(61);
    server.settle(&mut registry);
    assert_eq!(trouble(&server), None);
}

/// Each is found by its standing; a tag that was dropped is what somebody wanted.
#[test]
fn trouble_is_what_keeps_a_server_from_numbers_now() {
    let (mut registry, mut server) = with_orders(1000);
    let trouble = |server: &Server| {
        let held = server.held();
        server.fetcher.trouble(&Moment { monotonic: server.now, chance: 0, namespace: None, held: &held })
    };
    while server.claim(&orders(), 1000).is_some() {}
    while server.step(&mut registry, Fate::Lost).is_none() && trouble(&server).is_none() {}
    assert_eq!(trouble(&server), Some(Trouble::Failing));
    server.advance(60);
    server.settle(&mut registry);
    assert_eq!(trouble(&server), None);
    server.request(&mut registry, Request::Raise(orders(), 1000)).unwrap();
    server.advance(60);
    server.settle(&mut registry);
    assert_eq!(trouble(&server), Some(Trouble::UsedUp(orders())));
    server.request(&mut registry, Request::Drop(orders())).unwrap();
    assert_eq!(trouble(&server), None);
    for name in ["b", "c"] {
        server.request(&mut registry, Request::Create(tag(name), plan(1, 9))).unwrap();
    }
    server.request(&mut registry, Request::Attach(tag("b"))).unwrap();
    assert_eq!(server.request(&mut registry, Request::Attach(tag("c"))), Err(NotDone::Full));
    assert_eq!(trouble(&server), Some(Trouble::Full(tag("c"))));
    registry.records.clear();
    server.advance(61);
    server.settle(&mut registry);
    assert!(matches!(trouble(&server), Some(Trouble::Missing(_))));
}

/// A tag on which servers collide keeps nothing else waiting: another tag gets its range, and somebody who waits is answered.
#[test]
fn a_contended_tag_delays_itself_alone() {
    let (mut registry, mut server) = with_orders(1_000_000);
    while server.claim(&orders(), 1000).is_some() {}
    for _ in 0..6 {
        collide(&mut registry);
        server.step(&mut registry, Fate::Done);
    }
    let requests = registry.requests;
    server.fetcher.request(Request::Raise(orders(), 5));
    while !server.events.iter().any(|event| matches!(event, TagEvent::Answered(Ok(_)))) {
        server.step(&mut registry, Fate::Done);
    }
    // The tag's own turn may have come before it: each a read and a write.
    assert!(registry.requests - requests <= 4, "{}", registry.requests - requests);
}

/// The registry was away for as long as a range lasts, so that all servers have a range to ask for. They do not ask all at once; one
/// that has nothing left asks at once.
#[test]
fn after_an_outage_requests_are_spread() {
    let mut asked = Vec::new();
    for chance in 0..50 {
        let (mut registry, mut server) = with_orders(1_000_000);
        server.chance = chance * 0x0123_4567_89ab_cdef;
        // A number a second.
        for _ in 0..3000 {
            server.advance(1);
            server.settle(&mut registry);
            assert!(server.claim(&orders(), 1).is_some());
        }
        while server.held()[0].left() > 400 {
            server.advance(1);
            while server.step(&mut registry, Fate::Lost).is_none() {}
            assert!(server.claim(&orders(), 1).is_some());
        }
        let granted = registry.next_of("orders");
        let back = server.now;
        let mut wait = server.settle(&mut registry);
        while registry.next_of("orders") == granted {
            assert!(wait <= Micros::from_secs(60), "{wait:?}");
            server.now = server.now.saturating_add(wait.max(Micros::from_millis(1)));
            wait = server.settle(&mut registry);
        }
        asked.push((server.now.0 - back.0) / 1_000_000);
    }
    assert!(asked.iter().all(|second| *second <= 70), "{asked:?}");
    for second in 0..60 {
        let together = asked.iter().filter(|asked| (second..second + 10).contains(*asked)).count();
        assert!(together <= 25, "{together} of {} within 10 s: {asked:?}", asked.len());
    }

    let (mut registry, mut server) = with_orders(1_000_000);
    for _ in 0..20 {
        server.advance(1);
        server.step(&mut registry, Fate::Lost);
        server.claim(&orders(), 1);
    }
    server.advance(5);
    server.settle(&mut registry);
    assert!(server.claim(&orders(), 1).is_some());
}

#[test]
fn a_clean_stop_leaves_no_gap() {
    let (mut registry, mut server) = with_orders(1_000_000);
    assert_eq!(server.claim(&orders(), 9), Some(range(1, 10)));
    server.settle(&mut registry);
    assert_eq!(registry.next_of("orders"), 31);
    server.fetcher.stop(MonotonicMicros(1_000_000));
    server.settle(&mut registry);
    assert!(server.is_done);
    assert_eq!((registry.next_of("orders"), server.claim(&orders(), 1)), (10, None));
    assert!(server.events.contains(&TagEvent::GivenBack { tag: orders(), next: 10 }));
    // Where another server was granted a range since, that stays.
    let (mut registry, mut server) = with_orders(1_000_000);
    let mut other = Server::new();
    other.request(&mut registry, Request::Attach(orders())).unwrap();
    server.fetcher.stop(MonotonicMicros(1_000_000));
    server.settle(&mut registry);
    assert!(server.is_done);
    assert_eq!(registry.next_of("orders"), 21);
}

#[test]
fn a_stop_ends_while_the_registry_is_away() {
    let (mut registry, mut server) = with_orders(1_000_000);
    server.fetcher.stop(MonotonicMicros(1_000_000));
    for _ in 0..5 {
        server.step(&mut registry, Fate::Lost);
    }
    assert!(server.is_done);
    assert_eq!(registry.next_of("orders"), 11);
}

#[test]
fn a_drop_and_a_raise_reach_other_servers_by_their_next_look() {
    let (mut registry, mut server) = with_orders(1_000_000);
    let mut other = Server::new();
    other.request(&mut registry, Request::Attach(orders())).unwrap();
    assert_eq!(other.claim(&orders(), 1), Some(range(11, 12)));
    server.request(&mut registry, Request::Raise(orders(), 500)).unwrap();
    other.advance(61);
    other.settle(&mut registry);
    server.settle(&mut registry);
    assert!(other.claim(&orders(), 1).unwrap().first > 500);
    assert!(server.claim(&orders(), 1).unwrap().first > 500);

    server.request(&mut registry, Request::Drop(orders())).unwrap();
    other.advance(61);
    other.settle(&mut registry);
    server.settle(&mut registry);
    assert_eq!((other.claim(&orders(), 1), server.claim(&orders(), 1)), (None, None));
    assert_eq!(other.places[0].standing, TagStanding::Dropped);
    let before = registry.next_of("orders");

    server.request(&mut registry, Request::Create(orders(), plan(1, 1_000_000))).unwrap();
    server.settle(&mut registry);
    assert_eq!(server.claim(&orders(), 1).unwrap().first, before);
    other.request(&mut registry, Request::Attach(orders())).unwrap();
    other.settle(&mut registry);
    assert!(other.claim(&orders(), 1).unwrap().first > before);
}

#[test]
fn a_registry_that_has_forgotten_is_told() {
    let (mut registry, mut server) = with_orders(1_000_000);
    let old = registry.clone();
    assert_eq!(server.claim(&orders(), 9), Some(range(1, 10)));
    server.settle(&mut registry);
    registry.records = old.records;
    server.advance(61);
    server.settle(&mut registry);
    let news = TagEvent::RolledBack { tag: orders(), next: 11, known: 31 };
    assert_eq!(server.events.iter().filter(|event| **event == news).count(), 1);
    assert_eq!(registry.next_of("orders"), 31);

    registry.records.clear();
    server.advance(61);
    server.settle(&mut registry);
    assert!(server.events.contains(&TagEvent::Missing(orders())));
    assert_eq!(server.places[0].standing, TagStanding::Missing);
    assert!(server.claim(&orders(), 1).is_some(), "what is held is nobody else's");
    let forgotten = &registry.records[&orders()].record;
    assert_eq!((forgotten.state, forgotten.next), (State::Forgotten, 31), "and nothing begins anew");
    assert_eq!(server.request(&mut registry, Request::Attach(orders())), Err(NotDone::Refused(TagRefusal::Missing)));
    server.request(&mut registry, Request::Create(orders(), plan(1, 1_000_000))).unwrap();
    assert!(registry.next_of("orders") >= 31, "this server knows what it was granted");
}

/// Also those that another server holds and has not used, which no table shows.
#[test]
fn a_tag_that_was_forgotten_goes_on_above_what_all_servers_were_granted() {
    let (mut registry, mut first) = with_orders(1_000_000);
    let mut second = Server { chance: 1, ..Server::new() };
    second.request(&mut registry, Request::Attach(orders())).unwrap();
    assert_eq!(first.claim(&orders(), 1), Some(range(1, 2)));
    let granted = registry.next_of("orders");
    registry.records.clear();
    registry.namespace = namespace(LIFE + 1);
    second.settle(&mut registry);
    first.settle(&mut registry);
    assert_eq!(registry.next_of("orders"), granted);
    for server in [&mut first, &mut second] {
        assert_eq!(server.places[0].standing, TagStanding::Missing);
        assert_eq!(server.events.iter().filter(|event| **event == TagEvent::Missing(orders())).count(), 1);
    }
    assert!(!first.events.iter().any(|event| matches!(event, TagEvent::RolledBack { .. })));
    let mut third = Server { chance: 2, ..Server::new() };
    let record = third.request(&mut registry, Request::Create(orders(), plan(1, 1_000_000))).unwrap();
    assert_eq!(record.next, granted);
}

#[test]
fn another_record_of_the_namespace_has_all_servers_look() {
    let (mut registry, mut server) = with_orders(1_000_000);
    server.settle(&mut registry);
    registry.records.clear();
    registry.namespace = NamespaceRecord { leases_from: Some(snowflake_core::UnixMicros(1)), ..namespace(LIFE) };
    server.settle(&mut registry);
    assert!(server.events.contains(&TagEvent::Missing(orders())));
}

#[test]
fn an_order_whose_answer_is_lost_is_looked_after() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    server.fetcher.request(Request::Create(orders(), plan(1, 99)));
    for fate in [Fate::Done, Fate::AnswerLost] {
        assert_eq!(server.step(&mut registry, fate), None);
    }
    server.settle(&mut registry);
    assert!(matches!(&server.events[..], [TagEvent::Answered(Ok(_))]), "{:?}", server.events);
    assert_eq!(registry.version, 2, "confirmed by a second write");
    server.events.clear();
    server.fetcher.request(Request::Drop(orders()));
    for fate in [Fate::Done, Fate::Lost, Fate::Lost] {
        assert_eq!(server.step(&mut registry, fate), None);
    }
    assert_eq!(server.events, [TagEvent::Answered(Err(NotDone::Unknown))]);
}

#[test]
fn a_new_process_goes_on_with_what_is_held() {
    let (mut registry, mut server) = with_orders(1_000_000);
    server.claim(&orders(), 3);
    server.fetcher = fetcher(vec![orders()]);
    server.settle(&mut registry);
    assert_eq!(server.claim(&orders(), 1), Some(range(4, 5)));
    for number in 5..40 {
        server.settle(&mut registry);
        assert_eq!(server.claim(&orders(), 1), Some(range(number, number + 1)));
    }
}

#[test]
fn a_new_run_begins_with_the_size_of_the_last() {
    let (mut registry, mut server) = with_orders(1_000_000);
    server.fetcher = Fetcher::new(TERMS, 2, Vec::new(), BTreeMap::from([(orders(), 300)]));
    server.places.clear();
    server.request(&mut registry, Request::Attach(orders())).unwrap();
    assert_eq!(server.claim(&orders(), 1000), Some(range(11, 311)));
    assert_eq!(server.fetcher.sizes().collect::<Vec<_>>(), [(&orders(), 300)]);
}

// All together.

#[derive(Clone, Debug)]
enum Op {
    Claim(usize, usize, u64),
    Step(usize, Fate),
    Advance(usize, i64),
    Attach(usize, usize),
    Create(usize, usize, u64),
    Raise(usize, usize, u64),
    Drop(usize, usize),
    Crash(usize),
    Stop(usize),
    Deliver,
}

const SERVERS: usize = 2;

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let (server, tag) = (0..SERVERS, 0..2_usize);
    let fate =
        prop_oneof![6 => Just(Fate::Done), 1 => Just(Fate::Lost), 1 => Just(Fate::AnswerLost), 1 => Just(Fate::Late)];
    let op = prop_oneof![
        12 => (server.clone(), tag.clone(), 1..9_u64).prop_map(|(s, t, n)| Op::Claim(s, t, n)),
        16 => (server.clone(), fate).prop_map(|(s, fate)| Op::Step(s, fate)),
        4 => (server.clone(), 1..90_i64).prop_map(|(s, n)| Op::Advance(s, n)),
        4 => (server.clone(), tag.clone()).prop_map(|(s, t)| Op::Attach(s, t)),
        2 => (server.clone(), tag.clone(), 1..30_u64).prop_map(|(s, t, n)| Op::Create(s, t, n)),
        1 => (server.clone(), tag.clone(), 1..300_u64).prop_map(|(s, t, n)| Op::Raise(s, t, n)),
        1 => (server.clone(), tag).prop_map(|(s, t)| Op::Drop(s, t)),
        1 => server.clone().prop_map(Op::Crash),
        1 => server.prop_map(Op::Stop),
        2 => Just(Op::Deliver),
    ];
    proptest::collection::vec(op, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn numbers_are_distinct_and_rise_on_each_server(ops in ops()) {
        let tags = [tag("a"), tag("b")];
        let mut registry = Registry::new();
        let mut servers: Vec<_> = (0..SERVERS).map(|_| Server::new()).collect();
        let mut taken = [BTreeSet::new(), BTreeSet::new()];
        // By server and tag, of the run.
        let mut highest = [[0; 2]; SERVERS];
        for op in ops {
            match op {
                Op::Claim(s, t, want) => {
                    if let Some(claimed) = servers[s].claim(&tags[t], want) {
                        prop_assert!(claimed.first > highest[s][t]);
                        highest[s][t] = claimed.end - 1;
                        for number in claimed.first..claimed.end {
                            prop_assert!(taken[t].insert(number), "{number} of {} twice", tags[t]);
                        }
                    }
                }
                Op::Step(s, fate) => drop(servers[s].step(&mut registry, fate)),
                Op::Advance(s, seconds) => servers[s].advance(seconds),
                Op::Attach(s, t) => servers[s].fetcher.request(Request::Attach(tags[t].clone())),
                Op::Create(s, t, first) => servers[s].fetcher.request(Request::Create(tags[t].clone(), plan(first, 2000))),
                Op::Raise(s, t, above) => servers[s].fetcher.request(Request::Raise(tags[t].clone(), above)),
                Op::Drop(s, t) => servers[s].fetcher.request(Request::Drop(tags[t].clone())),
                Op::Crash(s) => (servers[s], highest[s]) = (Server::new(), [0; 2]),
                Op::Stop(s) => {
                    let by = servers[s].now.saturating_add(Micros::from_secs(1));
                    servers[s].fetcher.stop(by);
                    for _ in 0..20 {
                        servers[s].step(&mut registry, Fate::Done);
                    }
                    prop_assert!(servers[s].is_done);
                    (servers[s], highest[s]) = (Server::new(), [0; 2]);
                }
                Op::Deliver => {
                    for late in std::mem::take(&mut registry.late) {
                        registry.answer(&late);
                    }
                }
            }
        }
        // Nothing is above what the registry knows.
        for (tag, taken) in tags.iter().zip(&taken) {
            if let Some(last) = taken.last() {
                prop_assert!(registry.records[tag].record.next > *last);
            }
        }
    }

    /// Once nothing goes wrong any more, numbers come again.
    #[test]
    fn no_way_leads_to_where_no_number_comes(ops in ops()) {
        let (mut registry, mut server) = (Registry::new(), Server::new());
        server.request(&mut registry, Request::Create(tag("a"), plan(1, TagRecord::HIGHEST))).unwrap();
        for op in ops {
            match op {
                Op::Claim(_, _, want) => drop(server.claim(&tag("a"), want)),
                Op::Step(_, fate) => drop(server.step(&mut registry, fate)),
                Op::Advance(_, seconds) => server.advance(seconds),
                Op::Attach(..) => server.fetcher.request(Request::Attach(tag("a"))),
                Op::Raise(_, _, above) => server.fetcher.request(Request::Raise(tag("a"), above)),
                Op::Crash(_) => server.fetcher = fetcher(server.places.iter().map(|place| place.tag.clone()).collect()),
                _ => {}
            }
        }
        server.advance(10);
        server.events.clear();
        prop_assert!(server.request(&mut registry, Request::Attach(tag("a"))).is_ok());
        for _ in 0..100 {
            server.settle(&mut registry);
            prop_assert!(server.claim(&tag("a"), 1).is_some());
            server.advance(6);
        }
    }
}
