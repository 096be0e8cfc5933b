//! The records of a registry.

use crate::lease::Version;
use std::fmt;
use thiserror::Error;

/// The name of a row of numbers: 1 to 63 characters of ASCII, without control characters. The databases of a registry's servers may have other
/// encodings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

/// A name that no tag can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a tag has 1 to 63 characters of ASCII, and no control characters")]
pub struct TagError;

impl Tag {
    /// The longest name, in bytes.
    pub const LONGEST: usize = 63;

    /// # Errors
    /// Where the name is empty, too long, not ASCII, or has control characters.
    pub fn new(name: &str) -> Result<Self, TagError> {
        let is_tag = (1..=Self::LONGEST).contains(&name.len()) && name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        is_tag.then(|| Self(name.to_owned())).ok_or(TagError)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Numbers that follow each other: `first <= n < end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first one.
    pub first: u64,
    /// The first one after them.
    pub end: u64,
}

impl Range {
    /// How many there are.
    pub const fn count(&self) -> u64 {
        self.end.saturating_sub(self.first)
    }
}

/// How many numbers a range has at least and at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The size of the first range. At least 1.
    pub smallest: u64,
    /// Not below `smallest`.
    pub largest: u64,
}

impl Sizes {
    /// The size of the first range of a tag that does not say otherwise.
    pub const SMALLEST: u64 = 10;

    /// Those of a tag with so many numbers that does not say otherwise: a crash costs at most two thousandths of them.
    pub fn of(count: u64) -> Self {
        let smallest = Self::SMALLEST.min(count).max(1);
        Self { smallest, largest: (count / 1000).max(smallest) }
    }

    /// The size within these bounds that is the nearest.
    pub fn nearest(&self, size: u64) -> u64 {
        size.min(self.largest).max(self.smallest)
    }
}

/// Whether numbers of a tag can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// They can.
    Live,
    /// They cannot. What was used is still known.
    Dropped,
    /// They cannot, as with a tag without a record: the registry has forgotten it. The next number is above those of the servers that
    /// have said what they were granted.
    Forgotten,
}

/// The record of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRecord {
    /// No number from this one on was granted to anybody who may still use it.
    pub next: u64,
    /// Nobody takes a number below this one any more.
    pub floor: u64,
    /// The first number, as the tag was created with.
    pub first: u64,
    /// The last number.
    pub last: u64,
    /// Whether numbers can be taken.
    pub state: State,
    /// How large ranges are.
    pub bounds: Sizes,
}

impl TagRecord {
    /// The highest number that a tag can have: that of a `bigint`.
    pub const HIGHEST: u64 = i64::MAX as u64;

    /// Whether there can be such a record: somebody may have changed one in the registry by hand.
    pub fn is_sound(&self) -> bool {
        let Self { next, floor, first, last, bounds, .. } = *self;
        let after_last = Self::HIGHEST + 1;
        (first..after_last).contains(&last)
            && next.max(floor) <= after_last
            && (1..=bounds.largest).contains(&bounds.smallest)
    }

    /// One of a tag that the registry has forgotten, before anybody has said what was granted.
    pub const fn forgotten() -> Self {
        let bounds = Sizes { smallest: 1, largest: 1 };
        Self { next: 0, floor: 0, first: 0, last: Self::HIGHEST, state: State::Forgotten, bounds }
    }

    /// How many numbers were not granted yet.
    pub const fn left(&self) -> u64 {
        (self.last + 1).saturating_sub(self.next)
    }
}

/// A record as it was read, and which version of it that was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTag {
    /// The version.
    pub version: Version,
    /// The record.
    pub record: TagRecord,
}
