//! What the fetcher knows of a tag that has a place: its record, and how fast its numbers are used, by which it is decided when the next
//! range is asked for. Guards against a rate that was measured over so short or so long a time that it says nothing.

use super::super::held::Held;
use super::super::record::{Range, StoredTag, Tag};
use super::super::steps::{Moment, Slot, TagStanding};
use super::super::terms::{RangeTerms, Use};
use crate::lease::Version;
use crate::time::{Micros, MonotonicMicros};

/// What the fetcher knows of a tag that has a place.
#[derive(Clone, Debug)]
pub(super) struct KnownTag {
    pub tag: Tag,
    pub standing: TagStanding,
    pub floor: u64,
    /// The record as it was last read or stored.
    pub stored: Option<StoredTag>,
    /// The version of the record that this server has stored with its last range, and the first number of the ranges that it was granted
    /// one after the other up to there: nobody else's write came between. So all from there on is its own.
    pub own: Option<(Version, u64)>,
    /// Whether the record is behind what this server was granted.
    pub is_behind: bool,
    /// The size of the last range.
    pub size: Option<u64>,
    /// How many numbers were granted since the fetcher began, with what was held then; `None` before the first look.
    pub granted: Option<u64>,
    /// Where the registry was away: when to ask for the next range, if numbers are left until then.
    pub not_before: MonotonicMicros,
    /// When the last range was granted, and how many numbers were taken by then.
    pub since: Option<(MonotonicMicros, u64)>,
    /// Two moments, a while apart, and how many numbers were taken by then.
    pub marks: Option<[(MonotonicMicros, u64); 2]>,
    pub end_said_at: Option<MonotonicMicros>,
    pub contention: Contention,
}

/// Other servers ask for ranges of the same tag at the same moments, and each stores over what the others have read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contention {
    /// Conflicts since the last range.
    pub conflicts: u32,
    /// All of them, and how many there were when that was last reported, and when.
    pub total: u64,
    said: (u64, MonotonicMicros),
    /// As long as this, others are believed to ask, too.
    until: MonotonicMicros,
    /// The next attempt.
    pub not_before: MonotonicMicros,
    /// Ranges that were granted one at once after the other.
    in_a_row: u32,
    /// Whether the record is to be read before the next attempt, to see whether there are others.
    pub looks: bool,
}

impl Contention {
    /// So many conflicts are worth a report, once a minute.
    const MANY: u64 = 16;
    const REPORT_EVERY: Micros = Micros::from_secs(60);

    /// So many ranges at once are enough.
    const MOST_IN_A_ROW: u32 = 16;

    const NONE: Self = Self {
        conflicts: 0,
        total: 0,
        said: (0, MonotonicMicros(i64::MIN)),
        until: MonotonicMicros(i64::MIN),
        not_before: MonotonicMicros(i64::MIN),
        in_a_row: 0,
        looks: false,
    };

    /// Whether others ask at the same time.
    pub fn is_on(&self, now: MonotonicMicros) -> bool {
        now < self.until
    }

    /// An attempt is over, and others were faster. Returns whether to try again at once: for the first time, it may have been chance.
    pub fn lose(&mut self, now: MonotonicMicros, latency: Micros, chance: u64) -> bool {
        self.conflicts = self.conflicts.saturating_add(1);
        self.total = self.total.saturating_add(1);
        let is_first = !self.is_on(now) && self.conflicts == 1;
        if !is_first {
            self.until = now.saturating_add(RangeTerms::contention_lasts(latency));
            self.wait(now, latency, chance);
        }
        is_first
    }

    /// A range was granted, at once after the one before or not. Whoever has one lets others have a turn: if only those waited who lose, the
    /// same one would win for ever. One that always wins learns nothing of the others: now and then, it leaves a gap and looks.
    pub fn win(&mut self, now: MonotonicMicros, latency: Micros, is_at_once: bool, chance: u64) {
        self.conflicts = 0;
        self.in_a_row = if is_at_once { self.in_a_row + 1 } else { 0 };
        if self.is_on(now) {
            self.wait(now, latency, chance);
        } else if self.in_a_row >= Self::MOST_IN_A_ROW {
            self.in_a_row = 0;
            self.looks = true;
            self.not_before = now.saturating_add(RangeTerms::gap(latency));
        }
    }

    /// The record was read. Others were granted ranges since the last of this server's, or not.
    pub fn look(&mut self, now: MonotonicMicros, latency: Micros, is_of_others: bool) {
        self.looks = false;
        if is_of_others {
            self.until = now.saturating_add(RangeTerms::contention_lasts(latency));
        }
    }

    /// Whether it is time to report it; notes that it is reported.
    pub fn is_to_be_said(&mut self, now: MonotonicMicros) -> bool {
        let (total, at) = self.said;
        let is_due = now.saturating_since(at) >= Self::REPORT_EVERY && self.total - total >= Self::MANY;
        if is_due {
            self.said = (self.total, now);
        }
        is_due
    }

    fn wait(&mut self, now: MonotonicMicros, latency: Micros, chance: u64) {
        self.not_before = now.saturating_add(RangeTerms::turn_after(latency, chance));
    }
}

impl KnownTag {
    /// A write of this server's was stored, with a range where that was a grant.
    pub fn note_own(&mut self, expected: Option<Version>, stored: Version, range: Option<Range>) {
        let first = self.own.filter(|(version, _)| expected == Some(*version)).map(|(_, first)| first);
        self.own = first.or(range.map(|range| range.first)).map(|first| (stored, first));
    }

    /// The record, and what of this can be given back to it: where the registry was rolled back, others may have been granted the same
    /// numbers since, up to the same end. So only what was granted by the version that stands, or by those right before it.
    pub fn to_give_back(&self, held: Held) -> Option<(&StoredTag, Held)> {
        let (stored, (version, first)) = self.stored.as_ref().zip(self.own)?;
        (stored.version == version).then(|| (stored, held.above(first)))
    }

    pub fn new(tag: Tag) -> Self {
        Self {
            tag,
            standing: TagStanding::Live,
            floor: 0,
            stored: None,
            own: None,
            is_behind: false,
            size: None,
            granted: None,
            not_before: MonotonicMicros(i64::MIN),
            since: None,
            marks: None,
            end_said_at: None,
            contention: Contention::NONE,
        }
    }

    /// How many numbers were taken since the fetcher began.
    pub fn taken(&self, held: &Held) -> u64 {
        self.granted.unwrap_or(0).saturating_sub(held.left())
    }

    /// How it was used since the last range was granted.
    pub fn used(&self, held: &Held, now: MonotonicMicros) -> Use {
        self.used_since(self.since, held, now)
    }

    /// How it was used since a moment, with how many numbers were taken by then.
    fn used_since(&self, mark: Option<(MonotonicMicros, u64)>, held: &Held, now: MonotonicMicros) -> Use {
        let (at, before) = mark.unwrap_or((now, 0));
        Use { count: self.taken(held).saturating_sub(before), length: now.saturating_since(at) }
    }

    /// The rate by which it is decided: that of [`Self::used`]; or that of the last time, where more was used in it. Of a range
    /// that was granted in the evening, the whole night says nothing about the morning.
    pub fn rate(&self, terms: &RangeTerms, held: &Held, now: MonotonicMicros) -> Use {
        let last = self.used_since(self.marks.map(|marks| marks[0]), held, now);
        terms.higher(self.used(held, now), last, self.size.unwrap_or(0))
    }

    /// Where servers ask for ranges of this tag all the time, and its bounds do not let them ask for more at once: with which largest range
    /// they would not.
    pub fn too_small(&self, terms: &RangeTerms, held: &Held, now: MonotonicMicros) -> Option<u64> {
        let bounds = self.stored.as_ref()?.record.bounds;
        let is_too_small = self.contention.is_on(now) && self.size.is_some_and(|size| size >= bounds.largest);
        is_too_small.then(|| terms.large_enough(bounds, self.rate(terms, held, now)))
    }

    pub fn mark(&mut self, terms: &RangeTerms, held: &Held, now: MonotonicMicros) {
        let mark = (now, self.taken(held));
        let marks = self.marks.get_or_insert([mark; 2]);
        if now.saturating_since(marks[1].0) >= terms.mark_every() {
            *marks = [marks[1], mark];
        }
    }
}

/// What is held of a tag.
pub(super) fn held(moment: &Moment<'_>, slot: Slot) -> Held {
    moment.held.get(slot).copied().unwrap_or_default()
}

/// The first number that this server was not granted; 0 where it was granted none.
pub(super) fn top(moment: &Moment<'_>, slot: Slot) -> u64 {
    held(moment, slot).top()
}
