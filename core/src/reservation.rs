//! The reservation: what a server writes down, before it claims, about how far it may claim. Pure decisions; who calls them
//! stores what they say.
//!
//! A server has one *register*: 64 bits that are durable and follow its log. It holds an instant, and every position
//! before that instant may have been claimed, none at or after it. Each database keeps a *copy*, for what moves a database
//! without its server: dumps and upgrades. A copy says which register it was copied from by that register's *generation*.
//!
//! The order in which a claim's caller acts is part of the promise:
//!
//! 1. the first claim of a run raises the line to the register's instant;
//! 2. [`plan`] says what the database's copy asks for, and what must be written;
//! 3. the line is raised, the register written, then the copy;
//! 4. the log is flushed up to the register's record;
//! 5. only then positions are claimed, up to [`limit`].

use crate::layout::{Layout, Tick};
use crate::time::UnixMicros;

/// What the register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Nothing at or after this instant was claimed on the server. Whole milliseconds.
    pub until: UnixMicros,
    /// Drawn at random when the register gets its first value; never 0.
    pub generation: u16,
}

/// What a database's copy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// All before this instant may have been claimed in the database. Whole milliseconds.
    pub until: UnixMicros,
    /// The generation of the register it was copied from; 0 where it came with a dump.
    pub generation: i64,
    /// Whether any ID was ever made in the database.
    pub used: bool,
}

/// What a claim needs, and what it finds.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// What the register holds, as this run knows it.
    pub reserved: Reserved,
    /// What the database's copy holds.
    pub copy: Copy,
    /// The tick of the last position claimed or given up.
    pub last: Tick,
    /// The tick that the claim needs.
    pub needs: Tick,
    /// What time it is.
    pub now: UnixMicros,
    /// How far ahead to reserve, in microseconds.
    pub ahead: i64,
    /// How far a copy from elsewhere may be ahead of the clock, in microseconds.
    pub max_lead: i64,
}

/// What must be done before a claim, in the order of the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Raise the line to this tick.
    pub raise: Option<Tick>,
    /// Write this to the register.
    pub register: Option<Reserved>,
    /// Write this to the copy.
    pub copy: Option<Copy>,
    /// What the register holds then.
    pub reserved: Reserved,
}

/// The copy came from elsewhere, and is further ahead of the clock than IDs may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyTooFar {
    /// How far ahead of the clock, in microseconds.
    pub ahead: i64,
}

impl Reserved {
    /// The generation's width in the register, in bits.
    const GENERATION_BITS: u32 = 16;
    /// The highest instant that the register can hold, in milliseconds: in the year 10889, beyond every layout.
    const MAX_MILLIS: u64 = (1 << (64 - Self::GENERATION_BITS)) - 1;

    /// From the number in the register; `None` where that is 0, which is what a register holds that was never written.
    /// Every other number is understood, whoever wrote it.
    pub const fn from_register(number: u64) -> Option<Self> {
        if number == 0 {
            return None;
        }
        let millis = (number >> Self::GENERATION_BITS) as i64;
        Some(Self { until: UnixMicros::from_millis(millis), generation: number as u16 })
    }

    /// The number for the register. Rounds up to whole milliseconds; never 0.
    pub fn to_register(self) -> u64 {
        let millis = whole_millis(self.until).0 / 1000;
        let millis = u64::try_from(millis).unwrap_or(0).clamp(1, Self::MAX_MILLIS);
        millis << Self::GENERATION_BITS | u64::from(self.generation)
    }
}

impl Copy {
    /// Whether it was copied from this register.
    const fn is_of(&self, register: Reserved) -> bool {
        self.generation != 0 && self.generation == register.generation as i64
    }

    /// The copy of a register.
    const fn of(register: Reserved) -> Self {
        Self { until: register.until, generation: register.generation as i64, used: true }
    }
}

/// What a session's first claim in a run must know of its database's copy: the tick to which the line is to be raised, where
/// the copy came from elsewhere and is above the line. Writes nothing.
///
/// # Errors
/// Where such a copy is too far ahead of the clock.
pub fn judge(layout: &Layout, situation: &Situation) -> Result<Option<Tick>, CopyTooFar> {
    let Situation { reserved, copy, last, now, max_lead, .. } = *situation;
    if copy.is_of(reserved) {
        return Ok(None);
    }
    // Not compared with the register's instant: a copy between the line and that would repeat.
    let tick = layout.first_tick_from(copy.until);
    if tick.0 <= last.0.saturating_add(1) {
        return Ok(None);
    }
    let ahead = copy.until.0.saturating_sub(now.0);
    if ahead > max_lead { Err(CopyTooFar { ahead }) } else { Ok(Some(tick)) }
}

/// What must be written before a claim. Where nothing is, what is reserved already suffices.
///
/// # Errors
/// As [`judge`].
pub fn plan(layout: &Layout, situation: &Situation) -> Result<Plan, CopyTooFar> {
    let raise = judge(layout, situation)?;
    let Situation { reserved, copy, last, needs, ahead, .. } = *situation;
    let last = raise.map_or(last, |tick| last.max(Tick(tick.0 - 1)));
    // What the claim will need once the line is raised.
    let needs = needs.max(Tick(last.0.saturating_add(1))).min(layout.last_tick());
    let wanted = layout.start_of(needs);
    let enough = reserved.until.0 > wanted.0.saturating_add(ahead / 4);
    let extended =
        Reserved { until: reserved.until.max(whole_millis(UnixMicros(wanted.0.saturating_add(ahead)))), ..reserved };
    let new = if enough { reserved } else { extended };
    Ok(Plan {
        raise,
        register: (new != reserved).then_some(new),
        copy: (copy != Copy::of(new)).then_some(Copy::of(new)),
        reserved: new,
    })
}

/// The highest tick that a session may claim when this is reserved and the log is flushed: a quarter of `ahead` (in
/// microseconds) below the end, which leaves the next reservation that long to reach a standby; but the tick `needs`, for
/// which it was reserved, in any case.
pub fn limit(layout: &Layout, reserved: Reserved, ahead: i64, needs: Tick) -> Tick {
    let limit = Tick(layout.first_tick_from(UnixMicros(reserved.until.0 - ahead / 4)).0 - 1);
    let end = Tick(layout.first_tick_from(reserved.until).0 - 1);
    limit.max(needs).min(end).min(layout.last_tick())
}

/// What is left of a reservation when nobody can claim any more: the register's new value, where it is lower.
pub fn give_back(layout: &Layout, reserved: Reserved, last: Tick) -> Option<Reserved> {
    let until = whole_millis(layout.start_of(Tick(last.0.saturating_add(1)).min(Tick(layout.last_tick().0 + 1))));
    (until < reserved.until).then_some(Reserved { until, ..reserved })
}

/// Rounds up to whole milliseconds, which is what registers and copies hold.
pub const fn whole_millis(instant: UnixMicros) -> UnixMicros {
    let up = instant.0.rem_euclid(1000) != 0;
    UnixMicros::from_millis(instant.0.div_euclid(1000) + up as i64)
}
