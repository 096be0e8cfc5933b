//! The reservation: a server writes down how far it may claim before it claims. Here are the decisions, as pure
//! functions; their caller reads and stores what they are about.
//!
//! A server has one *register*: 64 bits that are durable, and part of its write-ahead log. It holds an instant:
//! positions before it may have been claimed, none at or after it was. Each database has a *copy*, for dumps and
//! upgrades, which move a database without its server. A copy has the *generation* of the register that it was copied
//! from, so that a copy from elsewhere can be told from one of this server.
//!
//! The order in which the caller acts is part of the promise that no ID is given twice:
//!
//! 1. the first claim of a run raises the line to the register's instant;
//! 2. [`prepare`] says what the database's copy asks for, and what must be written;
//! 3. the line is raised, the register written, then the copy;
//! 4. the log is flushed up to the register's record;
//! 5. only then positions are claimed, up to [`limit`].
//!
//! ```
//! use snowflake_core::reservation::{DatabaseCopy, Reserved, Situation, limit, prepare};
//! use snowflake_core::{Layout, Micros, UnixMicros};
//!
//! let layout: Layout = "default".parse()?;
//! let now = UnixMicros::parse("2026-01-01T00:00:00Z").unwrap();
//! let reserved = Reserved { until: now, generation: 7 };
//! let second = Micros::from_secs(1);
//! let situation = Situation {
//!     reserved,
//!     copy: DatabaseCopy { until: now, generation: 7, used: true },
//!     last: layout.tick_at(now),
//!     needs: layout.tick_at(now),
//!     now,
//!     ahead: second,
//!     explained: second,
//! };
//! let todo = prepare(&layout, &situation)?;
//! let new = Reserved { until: now + second + Micros::from_millis(1), ..reserved };
//! assert_eq!((todo.raise, todo.register), (None, Some(new)));
//! // Once that is on disk:
//! let limit = limit(&layout, new, second, situation.needs);
//! assert_eq!(layout.start_of(limit), now + Micros::from_millis(750));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::layout::Layout;
use crate::time::{Micros, Tick, Ticks, UnixMicros};
use thiserror::Error;

/// The contents of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Nothing at or after this instant was claimed on the server. Whole milliseconds.
    pub until: UnixMicros,
    /// A random number that the register gets with its first value. Not 0, unless the register was set by hand.
    pub generation: u16,
}

/// The contents of a database's copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseCopy {
    /// All before this instant may have been claimed in the database. Whole milliseconds.
    pub until: UnixMicros,
    /// The generation of the register it was copied from; 0 where it came with a dump.
    pub generation: i64,
    /// Whether any ID was ever made in the database.
    pub used: bool,
}

/// The needs of a claim, and its findings.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// The contents of the register, as this run knows them.
    pub reserved: Reserved,
    /// The contents of the database's copy.
    pub copy: DatabaseCopy,
    /// The tick of the last position claimed or given up.
    pub last: Tick,
    /// The tick that the claim needs.
    pub needs: Tick,
    /// The time now.
    pub now: UnixMicros,
    /// How far ahead to reserve.
    pub ahead: Micros,
    /// How far a copy from elsewhere may be ahead of the clock and still raise the line: see [`explained`].
    pub explained: Micros,
}

/// The actions before a claim, in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// Raise the line to this tick.
    pub raise: Option<Tick>,
    /// Write this to the register.
    pub register: Option<Reserved>,
    /// Write this to the copy.
    pub copy: Option<DatabaseCopy>,
    /// The new contents of the register.
    pub reserved: Reserved,
}

/// The copy came from elsewhere, and is further ahead of the clock than a crash or a failover explains.
///
/// Its database may have IDs up to there, so nothing below it may be claimed there. But it is no reason to move the line,
/// which all databases of the server share: whoever may set one database's copy could disturb all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the copy of a reservation from elsewhere is {} us ahead of the clock", ahead.0)]
pub struct CopyTooFar {
    /// How far it is ahead of the clock.
    pub ahead: Micros,
    /// How long it takes, as far as is known, until the clock is near enough.
    pub wait: Micros,
}

/// How far ahead of its clock a server's copies are at most, unless the clock went back: a claim may be ahead by the burst,
/// and what is reserved for it ends `ahead` after it, rounded up to a tick and to a millisecond.
pub fn explained(layout: &Layout, ahead: Micros, max_burst: Micros) -> Micros {
    layout.length_of(layout.ticks_in(max_burst)) + layout.tick_length() + ahead + Micros::from_millis(1)
}

impl Reserved {
    /// The generation's width in the register, in bits.
    const GENERATION_BITS: u32 = 16;
    /// The highest instant that the register can hold, in milliseconds: in the year 10889, beyond every layout.
    const MAX_MILLIS: u64 = (1 << (64 - Self::GENERATION_BITS)) - 1;

    /// From the number in the register. `None` for 0, as in a register that was never written; every other number
    /// stands for a reservation, whoever wrote it.
    pub const fn from_register(number: u64) -> Option<Self> {
        if number == 0 {
            return None;
        }
        let millis = (number >> Self::GENERATION_BITS) as i64;
        Some(Self { until: UnixMicros::from_millis(millis), generation: number as u16 })
    }

    /// The number for the register, which is not 0. The instant is rounded up to whole milliseconds.
    pub fn to_register(self) -> u64 {
        let millis = whole_millis(self.until).0 / 1000;
        let millis = u64::try_from(millis).unwrap_or(0).clamp(1, Self::MAX_MILLIS);
        millis << Self::GENERATION_BITS | u64::from(self.generation)
    }
}

impl DatabaseCopy {
    /// Whether this is a copy of the register, and not from elsewhere.
    const fn is_of(&self, register: Reserved) -> bool {
        self.generation != 0 && self.generation == register.generation as i64
    }

    /// The copy of a register.
    const fn of(register: Reserved) -> Self {
        Self { until: register.until, generation: register.generation as i64, used: true }
    }
}

impl Situation {
    /// For a database that is in use: where its copy was set by a restore, and is further ahead of the clock than is
    /// explained, leaves it out, so that the database goes on from the register as before. Returns what was left out.
    ///
    /// A copy of another generation was not set by a restore. It may be all that is known of what was reserved.
    pub fn leave_what_is_too_far(&mut self, layout: &Layout) -> Option<CopyTooFar> {
        let too_far = judge(layout, self).err().filter(|_| self.copy.generation == 0)?;
        self.copy = DatabaseCopy { until: UnixMicros(0), generation: 0, used: true };
        Some(too_far)
    }
}

/// What the first claim of a session must know about the copy of its database: the tick to which the line is to be
/// raised, where the copy came from elsewhere and is above the line.
///
/// # Errors
/// Where such a copy is further ahead of the clock than is explained.
pub fn judge(layout: &Layout, situation: &Situation) -> Result<Option<Tick>, CopyTooFar> {
    let Situation { reserved, copy, last, now, explained, .. } = *situation;
    if copy.is_of(reserved) {
        return Ok(None);
    }
    // Compared with the line, not with the register's instant: if a copy between the two were ignored, IDs that were
    // made elsewhere would be made again.
    // The tick of the last position may have room, and the copy's server may have used all of it.
    let tick = layout.first_tick_from(copy.until);
    if tick <= last {
        return Ok(None);
    }
    let ahead = copy.until.saturating_since(now);
    if ahead > explained { Err(CopyTooFar { ahead, wait: ahead - explained }) } else { Ok(Some(tick)) }
}

/// What must be written before a claim; nothing, where enough is reserved and the database's copy is that of the
/// register.
///
/// # Errors
/// As [`judge`].
pub fn prepare(layout: &Layout, situation: &Situation) -> Result<Preparation, CopyTooFar> {
    let raise = judge(layout, situation)?;
    let Situation { reserved, copy, last, needs, ahead, .. } = *situation;
    let last = raise.map_or(last, |tick| last.max(tick - Ticks(1)));
    // The need of the claim once the line is raised.
    let needs = needs.max(last.saturating_add(Ticks(1))).min(layout.last_tick());
    let wanted = layout.start_of(needs);
    let enough = reserved.until > wanted.saturating_add(ahead / 4);
    let extended = Reserved { until: reserved.until.max(whole_millis(wanted.saturating_add(ahead))), ..reserved };
    let new = if enough { reserved } else { extended };
    Ok(Preparation {
        raise,
        register: (new != reserved).then_some(new),
        copy: (copy != DatabaseCopy::of(new)).then_some(DatabaseCopy::of(new)),
        reserved: new,
    })
}

/// The highest tick that a session may claim when this is reserved and the log is flushed: a quarter of `ahead` below
/// the end of what is reserved, so that the next reservation has a quarter to reach a standby; but at least `needs`,
/// the tick for which it was reserved.
pub fn limit(layout: &Layout, reserved: Reserved, ahead: Micros, needs: Tick) -> Tick {
    let limit = layout.first_tick_from(reserved.until - ahead / 4) - Ticks(1);
    let end = layout.first_tick_from(reserved.until) - Ticks(1);
    limit.max(needs).min(end).min(layout.last_tick())
}

/// The register's new value when nobody can claim any more, and `last` is the tick of the last position: the
/// reservation ends just above it. `None` where that is not lower.
pub fn give_back(layout: &Layout, reserved: Reserved, last: Tick) -> Option<Reserved> {
    let until = whole_millis(layout.start_of(last.saturating_add(Ticks(1)).min(layout.last_tick() + Ticks(1))));
    (until < reserved.until).then_some(Reserved { until, ..reserved })
}

/// Rounds up to whole milliseconds, which is what registers and copies hold.
pub const fn whole_millis(instant: UnixMicros) -> UnixMicros {
    let up = instant.0.rem_euclid(1000) != 0;
    UnixMicros::from_millis(instant.0.div_euclid(1000) + up as i64)
}
