//! The rate of a processor's counter: how many counts a length of time has.

use crate::Micros;

/// How fast a counter runs, a little slower than it does: what is to hold for a number of microseconds ends early by this rate, rather than late.
/// A number of a process, that it keeps in an atomic, by [`Rate::to_number`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(u64);

/// What a rate counts by, in microseconds, as a power of two: a counter of 24 MHz has 1,572,864 counts in it, one of 32 kHz 2,147.
const SCALE: u32 = 16;

/// By how much a rate is slower, and may be off, as a part of it: the clock may be slewed by up to 1/2000, and counter and clock are not read
/// at the same instant.
const MARGIN: u128 = 128;

impl Rate {
    /// No rate: no time has counts.
    pub const NONE: Self = Self(0);

    /// The shortest time over which a rate is measured, in nanoseconds.
    pub const SHORTEST: i64 = 10_000_000;

    /// The rate of a counter that has advanced by this in this time. `declared` is its frequency in hertz, where the processor says it: a counter
    /// that runs at another one is not believed. [`Rate::NONE`] where the time is too short, or the counter too slow, stands or goes back.
    #[must_use]
    pub fn measured(counts: u64, nanos: i64, declared: Option<u64>) -> Self {
        if nanos < Self::SHORTEST {
            return Self::NONE;
        }
        let (counts, nanos) = (u128::from(counts), u128::from(nanos.unsigned_abs()));
        if let Some(hertz) = declared {
            let expected = u128::from(hertz) * nanos / 1_000_000_000;
            if counts.abs_diff(expected) > expected / MARGIN {
                return Self::NONE;
            }
        }
        let scaled = (counts * 1000) << SCALE;
        u64::try_from(scaled * (MARGIN - 1) / (nanos * MARGIN)).map_or(Self::NONE, Self)
    }

    /// How many counts a length of time has, rounded down; none where it is negative.
    #[must_use]
    #[inline]
    pub fn counts_in(self, time: Micros) -> u64 {
        u64::try_from(time.0).unwrap_or(0).saturating_mul(self.0) >> SCALE
    }

    /// As a number, 0 for [`Rate::NONE`].
    #[must_use]
    pub fn to_number(self) -> u64 {
        self.0
    }

    /// From [`Rate::to_number`].
    #[must_use]
    #[inline]
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}
