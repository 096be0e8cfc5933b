//! What the fetcher knows of a tag that has a place: its record, and how fast its numbers are used, by which it is decided when the next
//! range is asked for. Guards against a rate that was measured over so short or so long a time that it says nothing.

use super::super::held::Held;
use super::super::record::{StoredTag, Tag};
use super::super::steps::{Moment, Slot, TagStanding};
use super::super::terms::{RangeTerms, Use};
use crate::time::MonotonicMicros;

/// What the fetcher knows of a tag that has a place.
#[derive(Clone, Debug)]
pub(super) struct KnownTag {
    pub tag: Tag,
    pub standing: TagStanding,
    pub floor: u64,
    /// The record as it was last read or stored.
    pub stored: Option<StoredTag>,
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
}

impl KnownTag {
    pub fn new(tag: Tag) -> Self {
        Self {
            tag,
            standing: TagStanding::Live,
            floor: 0,
            stored: None,
            is_behind: false,
            size: None,
            granted: None,
            not_before: MonotonicMicros(i64::MIN),
            since: None,
            marks: None,
            end_said_at: None,
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
