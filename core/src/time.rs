//! Instants and lengths of time. A millisecond cannot be passed for a microsecond here, nor either for a tick.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An instant: microseconds since 1970-01-01T00:00:00Z, negative before. What `timestamptz` can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMicros(pub i64);

impl UnixMicros {
    /// The last instant that the written form can tell: 9999-12-31T23:59:59.999999Z.
    pub const MAX_WRITTEN: Self = Self(253_402_300_799_999_999);

    /// The instant `ms` milliseconds after 1970-01-01T00:00:00Z; the form in which epochs are published.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms * 1000)
    }

    /// Reads what is written: `2024-01-01T00:00:00Z`, with three or six decimals where they are not zero. UTC only, from
    /// 1970 to 9999. Other spellings of an instant, such as a 60th second, are refused, not mended.
    pub fn parse(text: &str) -> Option<Self> {
        let since_1970 = humantime::parse_rfc3339(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        let instant = i64::try_from(since_1970.as_micros()).ok().map(Self)?;
        (instant.to_string() == text).then_some(instant)
    }
}

/// `2024-01-01T00:00:00Z`, with three or six decimals where they are not zero; outside 1970 to 9999, the number of
/// microseconds.
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
    fn instants_outside_the_written_form_still_print() {
        assert_eq!(UnixMicros(-5).to_string(), "5 us before 1970");
        assert_eq!(UnixMicros(i64::MAX).to_string(), "9223372036854775807 us after 1970");
        assert_eq!(UnixMicros(i64::MIN).to_string(), "9223372036854775808 us before 1970");
    }
}
