//! How large a range is, and when the next one is asked for: by time.

use super::record::Sizes;
use crate::lease;
use crate::time::Micros;

/// The settings about segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeTerms {
    /// How long a range lasts, and how long an outage of the registry may be.
    pub duration: Micros,
    /// The pauses between attempts.
    pub pauses: lease::Terms,
}

/// How a tag was used in the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// So many numbers were taken.
    pub count: u64,
    /// In this time.
    pub length: Micros,
}

impl Use {
    /// How long so many numbers last at this rate. `None`: for ever, as far as is known.
    pub fn lasts(&self, count: u64) -> Option<Micros> {
        let length = u128::from(self.length.0.max(0).unsigned_abs()) * u128::from(count);
        let micros = length.checked_div(u128::from(self.count))?;
        i64::try_from(micros).ok().map(Micros)
    }

    /// How many numbers are taken in this time at this rate.
    fn count_in(&self, length: Micros) -> u64 {
        let count = u128::from(self.count) * u128::from(length.0.max(0).unsigned_abs());
        let in_time = count / u128::from(self.length.0.max(1).unsigned_abs());
        u64::try_from(in_time).unwrap_or(u64::MAX)
    }
}

impl RangeTerms {
    /// How often a server looks at the records of all tags: so it learns of a raise, a drop, or a registry that has forgotten.
    pub const LOOK_EVERY: Micros = Micros::from_secs(60);

    /// After an outage as long as this, requests are spread: see [`Self::spread_after`].
    pub const LONG_OUTAGE: Micros = Micros::from_secs(10);

    /// For how long a range is sized, and for how long there are numbers at least: at a rate that rises by a quarter meanwhile, it
    /// lasts for [`Self::duration`].
    fn reach(&self) -> Micros {
        self.duration + self.duration / 4
    }

    /// How far apart the moments are at the least between which the latest use is counted.
    pub fn mark_every(&self) -> Micros {
        (self.duration / 10).min(Self::LOOK_EVERY)
    }

    /// The use at the higher rate: of all the time since a range of this size was granted, or of the last time, where enough numbers
    /// were taken in that to tell.
    pub fn higher(&self, whole: Use, last: Use, size: u64) -> Use {
        let tells = last.length >= self.mark_every() && last.count >= (size / 16).max(4);
        let is_higher = last.count_in(self.duration) > whole.count_in(self.duration);
        if tells && is_higher { last } else { whole }
    }

    /// The size of the next range: what is used in [`Self::duration`] and a quarter more, but at most twice and at least half of the
    /// size before.
    pub fn next_size(&self, bounds: Sizes, before: u64, used: Use) -> u64 {
        let (half, double) = ((before / 2).max(1), before.saturating_mul(2).max(1));
        bounds.nearest(used.count_in(self.reach()).clamp(half, double))
    }

    /// Which largest range to set where servers collide on this one: what a server uses in [`Self::duration`] and a quarter more, as far as it
    /// got it, and at least ten times as much as now, as it would have used more.
    pub fn large_enough(&self, bounds: Sizes, used: Use) -> u64 {
        used.count_in(self.reach()).max(bounds.largest.saturating_mul(10))
    }

    /// Whether the next range is to be asked for, with so many numbers left of a range of this size. One that is used rarely
    /// keeps a quarter, so that it does not run empty while the registry is away.
    pub fn is_due(&self, left: u64, size: u64, used: Use) -> bool {
        left <= size / 4 || used.lasts(left).is_some_and(|lasts| lasts < self.reach())
    }

    /// How long it takes at this rate until [`Self::is_due`]. `None`: for ever, as far as is known.
    pub fn due_in(&self, left: u64, size: u64, used: Use) -> Option<Micros> {
        let to_quarter = used.lasts(left.saturating_sub(size / 4))?;
        used.lasts(left).map(|lasts| (lasts - self.reach()).min(to_quarter).max(Micros(0)))
    }

    /// When to look again, with a little chance, so that servers that were started together do not look together for ever.
    pub fn look_after(chance: u64) -> Micros {
        Micros(Self::LOOK_EVERY.0 - (chance % (Self::LOOK_EVERY.0.unsigned_abs() / 5)).cast_signed())
    }

    /// For how long a tag that is due waits, where the registry was away: all servers find out together that it is back. Of
    /// numbers that last so long, at most half are used meanwhile.
    pub fn spread_after(lasts: Option<Micros>, chance: u64) -> Micros {
        let most = lasts.map_or(Self::LOOK_EVERY, |lasts| (lasts / 2).min(Self::LOOK_EVERY));
        Micros((chance % (most.0.max(0).unsigned_abs() + 1)).cast_signed())
    }

    /// How long a server waits for its turn, where others ask for ranges of the same tag at the same time: of servers that are as near to
    /// the registry, each waits as long on average, whether its last attempt was in vain or not. So all get as much.
    pub fn turn_after(latency: Micros, chance: u64) -> Micros {
        Micros((chance % (Self::TURN.unsigned_abs() * latency.0.max(1).unsigned_abs())).cast_signed())
    }

    /// The gap that a server leaves which is granted one range after the other: others that are as near can read and store in it.
    pub fn gap(latency: Micros) -> Micros {
        Micros(latency.0 * 3)
    }

    /// For how long others are believed to ask for ranges after a conflict with them.
    pub fn contention_lasts(latency: Micros) -> Micros {
        Micros(latency.0 * Self::TURN * 4).max(Micros::from_secs(1))
    }

    /// The longest wait for a turn, in requests: of 8 servers, about half of the attempts succeed.
    const TURN: i64 = 16;

    /// Whether a tag comes to its end: ten ranges of this size would use it up.
    pub const fn is_near_end(left: u64, size: u64) -> bool {
        left < size.saturating_mul(10)
    }
}
