//! What a server holds of a tag: the range that its sessions take numbers from, and the one that comes after.

use super::record::Range;
use crate::sync::{AtomicU64, Ordering, back_off};

/// The range in use, as two words in memory that processes share. A claim is one compare-and-swap, without a lock.
///
/// # Memory orderings
///
/// A claim loads `end`, then `next`, and moves `next` by a compare-and-swap that stays below that `end`. A new range is put in
/// place when nothing is left of the old one: `next` is stored first, then `end` (release). So a claim that has seen the new
/// `end` (acquire) works on the new `next`, and takes nothing between the ranges. One that has seen the old `end` finds
/// nothing below it, as ranges only rise. `next` itself is changed by compare-and-swap, so each number is claimed once whatever
/// the ordering.
#[derive(Debug)]
#[repr(C)]
pub struct Counter {
    next: AtomicU64,
    end: AtomicU64,
}

/// The value of `next` while no number can be claimed.
const CLOSED: u64 = u64::MAX;

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

impl Counter {
    /// One without a range.
    pub fn new() -> Self {
        Self { next: AtomicU64::new(0), end: AtomicU64::new(0) }
    }

    /// Claims the next numbers: at least one, at most `want` (at least 1), as many as the range has. `None` where it has none.
    #[inline]
    pub fn claim(&self, want: u64) -> Option<Range> {
        // Acquire: see above.
        let end = self.end.load(Ordering::Acquire);
        // Relaxed: the compare-and-swap works on the latest value.
        let mut first = self.next.load(Ordering::Relaxed);
        loop {
            if first >= end {
                return None;
            }
            let after = first + want.min(end - first);
            match self.next.compare_exchange_weak(first, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Range { first, end: after }),
                Err(found) => {
                    back_off();
                    first = found;
                }
            }
        }
    }

    /// What is left.
    pub fn left(&self) -> Range {
        // Acquire: as a claim.
        let end = self.end.load(Ordering::Acquire);
        Range { first: self.next.load(Ordering::Relaxed).min(end), end }
    }

    /// Puts a range in place. The caller holds the lock for the tag, nothing is left of the range before, and this one is
    /// above it. Returns whether that is so; otherwise nothing was done.
    pub fn install(&self, range: Range) -> bool {
        let before = self.left();
        let is_fit = before.count() == 0 && range.first >= before.end && range.count() > 0;
        if is_fit {
            self.next.store(range.first, Ordering::Relaxed);
            // Release: see above.
            self.end.store(range.end, Ordering::Release);
        }
        is_fit
    }

    /// No number below this one is claimed any more. The caller holds the lock for the tag.
    pub fn raise(&self, floor: u64) {
        // Relaxed: only holders of the lock change `end`, and `next` is changed at its latest value.
        let end = self.end.load(Ordering::Relaxed);
        self.next.fetch_max(floor.min(end), Ordering::Relaxed);
    }

    /// No number is claimed any more, until a range is put in place. Returns what is left. The caller holds the lock for the
    /// tag.
    pub fn close(&self) -> Range {
        // Relaxed: as in `raise`.
        let end = self.end.load(Ordering::Relaxed);
        Range { first: self.next.swap(CLOSED, Ordering::Relaxed).min(end), end }
    }
}

/// What a server holds of a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Held {
    /// What is left of the range in use.
    pub current: Range,
    /// The range that comes after.
    pub after: Option<Range>,
}

impl Held {
    /// How many numbers are left.
    pub fn left(&self) -> u64 {
        self.current.count() + self.after.map_or(0, |range| range.count())
    }

    /// The first number that was not granted to this server.
    pub fn top(&self) -> u64 {
        self.after.unwrap_or(self.current).end
    }

    /// From here up to [`Self::top`], all numbers are this server's, and unused.
    pub fn unused_from(&self) -> u64 {
        match self.after {
            Some(after) if after.first == self.current.end => self.current.first.min(after.first),
            Some(after) => after.first,
            None => self.current.first,
        }
    }

    /// Without the numbers below a floor.
    #[must_use]
    pub fn above(self, floor: u64) -> Self {
        let cut = |range: Range| Range { first: range.first.max(floor.min(range.end)), ..range };
        Self { current: cut(self.current), after: self.after.map(cut).filter(|after| after.count() > 0) }
    }
}
