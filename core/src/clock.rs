//! Which time to believe. A clock that leaps forward for a moment would pull the line along, and the line does not come back:
//! a year ahead once is a year ahead for good. So a leap is believed only when it lasts.
//!
//! The measure is a monotonic clock: it cannot be set, so that a clock which is set moves against it. Steps back, and small
//! ones forward, are believed at once: the line bears them. A step forward that stays near the last ID is one of these too,
//! however large: nothing is lost by it, and a clock that was set right after it had been behind is used again at once.

use crate::time::UnixMicros;

/// What is known of the clock: its offset, in microseconds, from a monotonic clock that all processes of the server share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BelievedClock {
    /// The believed time less the monotonic one.
    pub offset: i64,
    /// A leap that is not believed yet.
    pub leap: Option<Leap>,
}

/// A leap forward that is not believed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leap {
    /// The clock less the monotonic clock.
    pub offset: i64,
    /// When it was noticed, in microseconds of the monotonic clock.
    pub since: i64,
}

/// What a look at the clock found, all in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that counts.
    None,
    /// The clock was set back by so much.
    Back(i64),
    /// The clock leapt forward by so much, and is not believed.
    Leapt(i64),
    /// A leap by so much has lasted, and is believed from now on.
    Lasted(i64),
}

/// One look at both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// What the clock says.
    pub clock: UnixMicros,
    /// The monotonic clock in microseconds.
    pub monotonic: i64,
    /// The time of the last ID: no leap beyond it by less than `max_jump` can do harm.
    pub line: UnixMicros,
    /// How far the clock may go forward at once, in microseconds.
    pub max_jump: i64,
}

impl BelievedClock {
    /// How long a leap must last, in microseconds.
    pub const LASTING: i64 = 60_000_000;

    /// A difference of the clocks below this, in microseconds, is not taken for a step.
    pub const SMALLEST_STEP: i64 = 1000;

    /// Believes what the clock says.
    pub const fn new(clock: UnixMicros, monotonic: i64) -> Self {
        Self { offset: clock.0.saturating_sub(monotonic), leap: None }
    }

    /// The time to go by, where a look at the clocks changes nothing of what is known; else `None`: then [`Self::look`]
    /// again, with the right to change it.
    #[inline]
    pub fn peek(&self, look: &Look) -> Option<UnixMicros> {
        let believed = self.offset.saturating_add(look.monotonic);
        let step = look.clock.0.saturating_sub(believed);
        if step.unsigned_abs() < Self::SMALLEST_STEP.unsigned_abs() {
            return self.leap.is_none().then_some(look.clock);
        }
        let leap = self.leap?;
        let same = look.clock.0.saturating_sub(look.monotonic).abs_diff(leap.offset) < look.max_jump.unsigned_abs();
        let lasts = look.monotonic.saturating_sub(leap.since) >= Self::LASTING;
        (same && !lasts && self.is_leap(look)).then_some(UnixMicros(believed))
    }

    /// The time to go by, and what has changed.
    pub fn look(&mut self, look: &Look) -> (UnixMicros, Change) {
        let believed = UnixMicros(self.offset.saturating_add(look.monotonic));
        let offset = look.clock.0.saturating_sub(look.monotonic);
        let step = look.clock.0.saturating_sub(believed.0);
        if !self.is_leap(look) {
            *self = Self { offset, leap: None };
            let back = if step <= -Self::SMALLEST_STEP { Change::Back(-step) } else { Change::None };
            return (look.clock, back);
        }
        match self.leap {
            Some(leap) if leap.offset.abs_diff(offset) < look.max_jump.unsigned_abs() => {
                if look.monotonic.saturating_sub(leap.since) < Self::LASTING {
                    return (believed, Change::None);
                }
                *self = Self { offset, leap: None };
                (look.clock, Change::Lasted(step))
            }
            _ => {
                self.leap = Some(Leap { offset, since: look.monotonic });
                (believed, Change::Leapt(step))
            }
        }
    }

    /// Whether the clock is beyond what is believed, and beyond the last ID, by more than may be at once.
    fn is_leap(&self, look: &Look) -> bool {
        let expected = self.offset.saturating_add(look.monotonic).max(look.line.0);
        look.clock.0.saturating_sub(expected) > look.max_jump
    }
}
