//! Instants, and the lengths of time between them. A type for each unit, so that a number of ticks cannot be passed for
//! a number of microseconds, nor the reading of one clock for that of another.
//!
//! | instant | counts | length |
//! |---|---|---|
//! | [`UnixMicros`] | microseconds since 1970, which is what the clock of the system shows | [`Micros`] |
//! | [`MonotonicMicros`] | microseconds of a clock that cannot be set | [`Micros`] |
//! | [`Tick`] | the ticks of a layout since its epoch | [`Ticks`] |
//!
//! The operators are those of `i64`: an overflow panics in a debug build. The `saturating_` methods are for instants
//! that may be anything, such as the time of a clock that was set wrong.
//!
//! ```
//! use snowflake_core::{Micros, UnixMicros};
//!
//! let start = UnixMicros::parse("2026-01-01T00:00:00Z").unwrap();
//! let end = start + Micros::from_millis(1500);
//! assert_eq!(end.to_string(), "2026-01-01T00:00:01.500Z");
//! assert_eq!(end - start, Micros(1_500_000));
//! ```

use std::fmt;
use std::ops::{Add, Div, Neg, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An instant of the calendar: microseconds since 1970-01-01T00:00:00Z, negative before. The resolution of PostgreSQL's
/// `timestamptz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMicros(pub i64);

/// An instant of a monotonic clock: microseconds since a start that the system chooses. Such a clock cannot be set and
/// never goes back. Only instants of the same clock can be compared, and only until the machine is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonotonicMicros(pub i64);

/// A length of time in microseconds. Negative where the end is before the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub i64);

/// An instant in ticks of a [`Layout`](crate::Layout), counted from its epoch. The tick of an ID is never negative;
/// that of a clock that stands before the epoch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub i64);

/// A length of time in ticks of a [`Layout`](crate::Layout), which knows [how long they are](crate::Layout::length_of).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub i64);

/// Calculations with an instant and a length of its unit.
macro_rules! instant {
    ($instant:ident, $length:ident) => {
        impl Add<$length> for $instant {
            type Output = Self;

            #[inline]
            fn add(self, length: $length) -> Self {
                Self(self.0 + length.0)
            }
        }

        impl Sub<$length> for $instant {
            type Output = Self;

            #[inline]
            fn sub(self, length: $length) -> Self {
                Self(self.0 - length.0)
            }
        }

        impl Sub for $instant {
            type Output = $length;

            #[inline]
            fn sub(self, earlier: Self) -> $length {
                $length(self.0 - earlier.0)
            }
        }

        impl $instant {
            /// The instant so much later; at most the last that the type can hold.
            #[inline]
            pub const fn saturating_add(self, length: $length) -> Self {
                Self(self.0.saturating_add(length.0))
            }

            /// How long after another instant this one is, negative where it is before; at most what the type can hold.
            #[inline]
            pub const fn saturating_since(self, other: Self) -> $length {
                $length(self.0.saturating_sub(other.0))
            }
        }
    };
}

instant!(UnixMicros, Micros);
instant!(MonotonicMicros, Micros);
instant!(Tick, Ticks);

/// Calculations with lengths of one unit.
macro_rules! length {
    ($length:ident) => {
        impl Add for $length {
            type Output = Self;

            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $length {
            type Output = Self;

            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Neg for $length {
            type Output = Self;

            #[inline]
            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        impl Div<i64> for $length {
            type Output = Self;

            #[inline]
            fn div(self, divisor: i64) -> Self {
                Self(self.0 / divisor)
            }
        }
    };
}

length!(Micros);
length!(Ticks);

impl Micros {
    /// A number of milliseconds.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms * 1000)
    }

    /// A number of seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds * 1_000_000)
    }
}

impl UnixMicros {
    /// The last instant that can be written: 9999-12-31T23:59:59.999999Z.
    pub const MAX_WRITTEN: Self = Self(253_402_300_799_999_999);

    /// The length of the longest written form.
    const LONGEST_WRITTEN: usize = "9999-12-31T23:59:59.999999Z".len();

    /// The instant `ms` milliseconds after 1970-01-01T00:00:00Z, which is how epochs are often published.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms * 1000)
    }

    /// Reads the form that [`Display`](fmt::Display) writes: `2024-01-01T00:00:00Z`, with three or six decimals where
    /// they are not zero; in UTC, from 1970 to 9999. `None` for every other text, also for other spellings of an
    /// instant, such as one with a 60th second.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > Self::LONGEST_WRITTEN {
            return None;
        }
        let since_1970 = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        let instant = i64::try_from(since_1970.as_micros()).ok().map(Self)?;
        (instant.to_string() == text).then_some(instant)
    }
}

/// Rounded down to a microsecond; at least and at most what the type can hold.
impl From<SystemTime> for UnixMicros {
    fn from(time: SystemTime) -> Self {
        Self(match time.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos().div_ceil(1000)).map_or(i64::MIN, Neg::neg),
        })
    }
}

impl From<UnixMicros> for SystemTime {
    fn from(instant: UnixMicros) -> Self {
        let distance = Duration::from_micros(instant.0.unsigned_abs());
        if instant.0 < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
    }
}

/// `2024-01-01T00:00:00Z`, with three or six decimals where they are not zero. Instants outside the years 1970 to 9999
/// are written as a number of microseconds.
impl fmt::Display for UnixMicros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(micros) = u64::try_from(self.0) else {
            return write!(f, "{} us before 1970", self.0.unsigned_abs());
        };
        if *self > Self::MAX_WRITTEN {
            return write!(f, "{micros} us after 1970");
        }
        let time: SystemTime = UNIX_EPOCH + Duration::from_micros(micros);
        match micros {
            us if us % 1_000_000 == 0 => humantime::format_rfc3339_seconds(time).fmt(f),
            us if us % 1000 == 0 => humantime::format_rfc3339_millis(time).fmt(f),
            _ => humantime::format_rfc3339_micros(time).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_form_reads_back() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2010-11-04T01:42:54.657Z",
            "2024-01-01T00:00:00Z",
            "2024-02-29T23:59:59.000001Z",
            "9999-12-31T23:59:59.999999Z",
        ] {
            assert_eq!(UnixMicros::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(UnixMicros::parse("2010-11-04T01:42:54.657Z"), Some(UnixMicros::from_millis(1288834974657)));
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "2024-01-01",
            "2024-01-01 00:00:00",
            "1288834974657",
            "2024-13-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2024-01-01T00:00:00.000Z",
            "2024-01-01T00:00:00.5Z",
            "2024-01-01T00:00:00.0000009Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00+00:00",
        ] {
            assert_eq!(UnixMicros::parse(text), None, "{text}");
        }
    }

    #[test]
    fn times_of_the_system_convert_both_ways() {
        for micros in [i64::MIN, -1_000_001, -1, 0, 1, 1_700_000_000_000_001, i64::MAX] {
            let time = SystemTime::from(UnixMicros(micros));
            assert_eq!(UnixMicros::from(time), UnixMicros(micros));
        }
        let nanosecond = Duration::from_nanos(1);
        assert_eq!(UnixMicros::from(UNIX_EPOCH + nanosecond), UnixMicros(0));
        assert_eq!(UnixMicros::from(UNIX_EPOCH - nanosecond), UnixMicros(-1));
    }

    #[test]
    fn instants_outside_the_written_form_still_print() {
        assert_eq!(UnixMicros(-5).to_string(), "5 us before 1970");
        assert_eq!(UnixMicros(i64::MAX).to_string(), "9223372036854775807 us after 1970");
        assert_eq!(UnixMicros(i64::MIN).to_string(), "9223372036854775808 us before 1970");
    }
}
