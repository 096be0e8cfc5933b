//! Which time to believe. If the clock were a year ahead for one claim, the line would be a year ahead too, and it does
//! not go back. So a leap forward is believed only when it lasts.
//!
//! The clock is compared with a monotonic one, which cannot be set: what changes between the two is a step of the
//! clock. Steps back, and small steps forward, are believed at once, as the line can deal with them. So are steps
//! forward, however large, that end near the time of the last ID or before it: they do not move the line far, and a
//! clock that was behind and is set right again is followed at once.
//!
//! ```
//! use snowflake_core::clock::{BelievedClock, ClockStep, Look};
//! use snowflake_core::{Micros, MonotonicMicros, UnixMicros};
//!
//! let start = UnixMicros::parse("2026-01-01T00:00:00Z").unwrap();
//! let mut believed = BelievedClock::new(start, MonotonicMicros(0));
//!
//! // After a second of real time, the clock is a year ahead.
//! let (second, year) = (Micros::from_secs(1), Micros::from_secs(365 * 86_400));
//! let mut look = Look {
//!     clock: start + second + year,
//!     monotonic: MonotonicMicros(0) + second,
//!     line: start,
//!     max_jump: Micros::from_secs(10),
//! };
//! assert_eq!(believed.look(&look), (start + second, ClockStep::Leapt(year)));
//!
//! // It is set right again, and was never believed.
//! look.clock = start + second;
//! assert_eq!(believed.look(&look), (start + second, ClockStep::None));
//! ```

use crate::time::{Micros, MonotonicMicros, UnixMicros};

/// What is known of the clock: its offset from a monotonic clock that all processes of the server share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BelievedClock {
    /// The believed time since 1970, less the time of the monotonic clock.
    pub offset: Micros,
    /// A leap that is not believed yet.
    pub leap: Option<Leap>,
}

/// A leap forward that is not believed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leap {
    /// The time since 1970 by the clock that leapt, less the time of the monotonic clock.
    pub offset: Micros,
    /// When it was noticed.
    pub since: MonotonicMicros,
}

/// The finding of a look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    /// Nothing to report.
    None,
    /// The clock was set back by so much.
    Back(Micros),
    /// The clock leapt forward by so much, and is not believed.
    Leapt(Micros),
    /// A leap by so much has lasted, and is believed from now on.
    Lasted(Micros),
}

/// One look at both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The time of the clock.
    pub clock: UnixMicros,
    /// The time of the monotonic clock.
    pub monotonic: MonotonicMicros,
    /// The time of the last ID. A clock that is ahead of it by at most `max_jump` can be believed without harm.
    pub line: UnixMicros,
    /// How far the clock may go forward at once and be believed at once.
    pub max_jump: Micros,
}

impl BelievedClock {
    /// How long a leap must last before it is believed.
    pub const LASTING: Micros = Micros::from_secs(60);

    /// Clocks are slewed, and are read a moment apart: a difference below this is no step.
    pub const SMALLEST_STEP: Micros = Micros::from_millis(1);

    /// Believes what the clock says.
    pub const fn new(clock: UnixMicros, monotonic: MonotonicMicros) -> Self {
        Self { offset: offset(clock, monotonic), leap: None }
    }

    /// The time to make IDs by, where the look changes nothing of what is known. Otherwise `None`: a caller that may
    /// change `self` then calls [`Self::look`].
    #[inline]
    pub fn peek(&self, look: &Look) -> Option<UnixMicros> {
        let believed = self.believed(look.monotonic);
        let step = look.clock.saturating_since(believed);
        if step.0.unsigned_abs() < Self::SMALLEST_STEP.0.unsigned_abs() {
            return self.leap.is_none().then_some(look.clock);
        }
        let leap = self.leap?;
        let is_same = leap.is_at(offset(look.clock, look.monotonic), look.max_jump);
        (is_same && !leap.has_lasted(look.monotonic) && self.is_leap(look)).then_some(believed)
    }

    /// The time to make IDs by, and what has changed.
    pub fn look(&mut self, look: &Look) -> (UnixMicros, ClockStep) {
        let believed = self.believed(look.monotonic);
        let offset = offset(look.clock, look.monotonic);
        let step = look.clock.saturating_since(believed);
        if !self.is_leap(look) {
            *self = Self { offset, leap: None };
            let back = if step <= -Self::SMALLEST_STEP { ClockStep::Back(-step) } else { ClockStep::None };
            return (look.clock, back);
        }
        match self.leap {
            Some(leap) if leap.is_at(offset, look.max_jump) => {
                if !leap.has_lasted(look.monotonic) {
                    return (believed, ClockStep::None);
                }
                *self = Self { offset, leap: None };
                (look.clock, ClockStep::Lasted(step))
            }
            _ => {
                self.leap = Some(Leap { offset, since: look.monotonic });
                (believed, ClockStep::Leapt(step))
            }
        }
    }

    /// The believed time at an instant of the monotonic clock.
    const fn believed(&self, monotonic: MonotonicMicros) -> UnixMicros {
        UnixMicros(self.offset.0.saturating_add(monotonic.0))
    }

    /// Whether the clock is more than `max_jump` ahead both of the believed time and of the last ID.
    fn is_leap(&self, look: &Look) -> bool {
        let expected = self.believed(look.monotonic).max(look.line);
        look.clock.saturating_since(expected) > look.max_jump
    }
}

impl Leap {
    /// Whether a clock with this offset has made this leap, and not another one, of a length that differs by
    /// `max_jump`.
    const fn is_at(&self, offset: Micros, max_jump: Micros) -> bool {
        self.offset.0.abs_diff(offset.0) < max_jump.0.unsigned_abs()
    }

    fn has_lasted(&self, now: MonotonicMicros) -> bool {
        now.saturating_since(self.since) >= BelievedClock::LASTING
    }
}

/// The time since 1970 less the time of the monotonic clock.
const fn offset(clock: UnixMicros, monotonic: MonotonicMicros) -> Micros {
    Micros(clock.0.saturating_sub(monotonic.0))
}
