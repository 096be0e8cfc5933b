//! The segments of the server: for each tag that is used, the range that sessions take numbers from, and the one that comes after;
//! and what sessions want the process to do that talks to the registry.

use super::fixed_text::FixedText;
use pgrx::lwlock::PgLwLockExclusiveGuard;
use pgrx::{PGRXSharedMemory, PgAtomic, PgLwLock, pg_shmem_init};
use snowflake_core::Micros;
use snowflake_core::segment::{Counter, Held, NewSegment, Range, Sizes, Slot, Tag, TagRecord, TagRefusal, TagStanding};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The most tags for which there can be a place: the highest `pg_snowflake.max_segments`. A place beyond it would be a panic under the lock.
pub const MOST: usize = 1024;

in_shared_memory! {
    static PLACES: PgAtomic<Places> = c"pg_snowflake segments' counters";

    static SEGMENTS: PgLwLock<Segments> = c"pg_snowflake segments";
}

/// Requests the shared memory. Called while the library is preloaded.
pub fn init() {
    pg_shmem_init!(PLACES);
    pg_shmem_init!(SEGMENTS = Segments::new());
}

/// The place of a tag: what sessions look at without a lock. On cache lines of its own.
#[repr(C, align(128))]
pub struct TagPlace {
    /// The range in use. [`Counter`] says what orders its atomics.
    pub counter: Counter,
    /// How many bytes the tag has; 0: the place is free. It is written last, once, under the lock: with release, and read with acquire, so
    /// that whoever finds a length finds the tag.
    length: AtomicUsize,
    /// Written before the length, and never again. Relaxed, as the length orders them.
    tag: [AtomicU8; Tag::LONGEST],
}

impl Default for TagPlace {
    fn default() -> Self {
        Self { counter: Counter::new(), length: AtomicUsize::new(0), tag: [const { AtomicU8::new(0) }; Tag::LONGEST] }
    }
}

impl TagPlace {
    /// Its tag; `None` where it is free.
    pub fn tag(&self) -> Option<Tag> {
        let length = self.length.load(Acquire);
        let bytes: Vec<u8> = self.tag[..length].iter().map(|byte| byte.load(Relaxed)).collect();
        Tag::new(str::from_utf8(&bytes).ok()?).ok()
    }

    fn is_of(&self, tag: &Tag) -> bool {
        let bytes = tag.as_str().as_bytes();
        self.length.load(Acquire) == bytes.len()
            && self.tag.iter().zip(bytes).all(|(found, byte)| found.load(Relaxed) == *byte)
    }
}

/// All places. They are taken one after the other, and are not given up for as long as the server runs.
struct Places([TagPlace; MOST]);

impl Default for Places {
    fn default() -> Self {
        Self(std::array::from_fn(|_| TagPlace::default()))
    }
}

/// The place of a slot.
pub fn place(slot: Slot) -> &'static TagPlace {
    &PLACES.get().0[slot]
}

/// Where a tag is.
pub fn find(tag: &Tag) -> Option<Slot> {
    let places = &PLACES.get().0;
    (0..MOST).take_while(|slot| places[*slot].length.load(Acquire) > 0).find(|slot| places[*slot].is_of(tag))
}

/// The tags that have places, in their order.
pub fn tags() -> Vec<Tag> {
    PLACES.get().0.iter().map_while(TagPlace::tag).collect()
}

/// Gives the next place to a tag. The second argument proves that the caller holds the lock.
pub fn give_place(slot: Slot, tag: &Tag, _lock: &mut Segments) {
    let place = place(slot);
    for (at, byte) in place.tag.iter().zip(tag.as_str().bytes()) {
        at.store(byte, Relaxed);
    }
    place.length.store(tag.as_str().len(), Release);
}

/// What the lock guards.
pub struct Segments {
    /// By slot.
    pub states: [SlotState; MOST],
    /// What sessions want.
    pub requests: Requests,
}

/// What is known of a tag beside its counter.
#[derive(Clone, Copy, Default)]
pub struct SlotState {
    /// The range that comes after.
    pub after: Option<Range>,
    /// What was left when the counter was closed.
    pub closed: Option<Range>,
    /// What sessions are told.
    pub standing: TagStanding,
    /// The record as it was last read or stored.
    pub record: Option<ShownRecord>,
    /// The size of the last range.
    pub size: u64,
    /// How many numbers were taken since it was granted, and in which time.
    pub used: (u64, Micros),
    /// How often another server stored a record of the tag between this one's read and its write.
    pub conflicts: u64,
    /// Where that is so all the time, as the largest range is too small: that, and one that is large enough.
    pub too_small: Option<(u64, u64)>,
    /// How many calls waited for numbers.
    pub waits: u64,
}

/// A tag's record.
#[derive(Clone, Copy)]
pub struct ShownRecord {
    /// Its next number.
    pub next: u64,
    /// Its first number.
    pub first: u64,
    /// Its last number.
    pub last: u64,
}

impl ShownRecord {
    /// What is shown of a record.
    pub const fn of(record: &TagRecord) -> Self {
        Self { next: record.next, first: record.first, last: record.last }
    }
}

impl SlotState {
    /// What the server holds of the tag.
    pub fn held(&self, place: &TagPlace) -> Held {
        Held { current: self.closed.unwrap_or_else(|| place.counter.left()), after: self.after }
    }

    /// Puts a range in place, or behind the one in use.
    pub fn install(&mut self, place: &TagPlace, range: Range) {
        self.closed = None;
        if !place.counter.install(range) {
            self.after = Some(range);
        }
    }

    /// Puts the range that comes after in place, where nothing is left of the one in use. Returns whether it did.
    pub fn go_on(&mut self, place: &TagPlace) -> bool {
        let goes_on = self.after.is_some_and(|after| place.counter.install(after));
        if goes_on {
            self.after = None;
        }
        goes_on
    }

    /// Lets no session take numbers any more.
    pub fn close(&mut self, place: &TagPlace) {
        let left = place.counter.close();
        self.closed.get_or_insert(left);
    }
}

impl Segments {
    fn new() -> Self {
        Self { states: [SlotState::default(); MOST], requests: Requests::default() }
    }
}

/// Takes the lock.
pub fn lock() -> PgLwLockExclusiveGuard<'static, Segments> {
    SEGMENTS.exclusive()
}

/// How many requests may wait, and how many answers are kept.
const RING: usize = 32;

/// What sessions want, one after the other, each with a number, and what came of it.
#[derive(Clone, Copy, Default)]
pub struct Requests {
    placed: u64,
    answered: u64,
    ring: [Entry; RING],
}

#[derive(Clone, Copy, Default)]
struct Entry {
    number: u64,
    tag: FixedText<{ Tag::LONGEST }>,
    kind: Kind,
    outcome: Outcome,
}

/// What is wanted.
#[derive(Clone, Copy, Default)]
pub enum Kind {
    /// Numbers.
    #[default]
    Attach,
    /// A new tag.
    Create(NewSegment),
    /// Numbers above this one only.
    Raise(u64),
    /// That there be no such tag any more.
    Drop,
}

/// What came of it.
#[derive(Clone, Copy, Default)]
pub enum Outcome {
    /// It was done; the next number by the registry is this.
    Done(u64),
    /// By the tag's record, it cannot be done.
    Refused(TagRefusal),
    /// There is no place for another tag.
    Full,
    /// The registry does not answer. Nothing was done.
    #[default]
    Failed,
    /// The registry does not answer. Whether it was done is not known.
    Unknown,
}

impl Requests {
    /// Places a request, and returns its number; `None` while too many wait.
    pub fn place(&mut self, tag: &Tag, kind: Kind) -> Option<u64> {
        if self.placed - self.answered >= RING as u64 {
            return None;
        }
        self.placed += 1;
        let mut entry = Entry { number: self.placed, kind, ..Entry::default() };
        entry.tag.set(tag.as_str());
        self.ring[self.placed as usize % RING] = entry;
        Some(self.placed)
    }

    /// The answer to a request, where there is one; [`Outcome::Unknown`], where it is not kept any more.
    pub fn outcome(&self, number: u64) -> Option<Outcome> {
        let entry = &self.ring[number as usize % RING];
        match entry.number == number {
            true => (self.answered >= number).then_some(entry.outcome),
            false => Some(Outcome::Unknown),
        }
    }

    /// The first request that was not answered.
    pub fn first(&self) -> Option<(Tag, Kind)> {
        let entry = &self.ring[(self.answered + 1) as usize % RING];
        (self.answered < self.placed).then(|| Some((Tag::new(&entry.tag.to_string()).ok()?, entry.kind)))?
    }

    /// Answers it.
    pub fn answer(&mut self, outcome: Outcome) {
        if self.answered < self.placed {
            self.answered += 1;
            self.ring[self.answered as usize % RING].outcome = outcome;
        }
    }
}

/// Sizes for what a caller has left open.
pub fn bounds(count: u64, smallest: Option<u64>, largest: Option<u64>) -> Sizes {
    let usual = Sizes::of(count);
    let smallest = smallest.unwrap_or_else(|| usual.smallest.min(largest.unwrap_or(u64::MAX)));
    Sizes { smallest, largest: largest.unwrap_or(usual.largest).max(smallest) }
}
