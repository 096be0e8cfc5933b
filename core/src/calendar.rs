//! Months and days, as PostgreSQL counts them: what a month added to a day becomes, and the units of `date_trunc()`.
//!
//! Times are local, in microseconds since 2000-01-01; days are counted from there. A month is a number: 12 for each year, and 0 for January.

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const HOUR: i64 = 3600 * SECOND;
pub(crate) const DAY: i64 = 24 * HOUR;

/// A day as PostgreSQL adds months to it: by its month, and its number in that. Where the other month has no such day, it becomes the last.
struct InMonth {
    /// The first day of the month that it was in before.
    first: i64,
    /// The days of that month.
    length: i64,
    /// Its number in its month, from 0 on.
    number: i64,
    /// Whether it is the last of its month.
    is_last: bool,
    /// What the time is on that day.
    time: i64,
}

impl InMonth {
    /// Of a local time, to which so many months were added.
    fn after(time: i64, months: i64) -> Self {
        let day = time.div_euclid(DAY);
        let month = month_of(day);
        let first = first_day(month - months);
        Self {
            first,
            length: first_day(month - months + 1) - first,
            number: day - first_day(month),
            is_last: day + 1 == first_day(month + 1),
            time: time.rem_euclid(DAY),
        }
    }

    /// The time on a day of the month that it was in before.
    fn on(&self, number: i64, time: i64) -> Option<i64> {
        (self.first + number).checked_mul(DAY)?.checked_add(time)
    }
}

/// The first local time that is not before this one with so many months added.
pub(crate) fn first_before(time: i64, months: i64) -> Option<i64> {
    let it = InMonth::after(time, months);
    if it.number < it.length { it.on(it.number, it.time) } else { it.on(it.length, 0) }
}

/// The last local time that is not after this one with so many months added.
pub(crate) fn last_before(time: i64, months: i64) -> Option<i64> {
    let it = InMonth::after(time, months);
    if it.number >= it.length {
        it.on(it.length - 1, DAY - 1)
    } else {
        it.on(if it.is_last { it.length - 1 } else { it.number }, it.time)
    }
}

/// A unit of `date_trunc()`.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Of this length. The first one begins so long after 2000-01-01.
    Fixed(i64, i64),
    /// Of so many months, from January of the year 1 on.
    Months(i64),
    /// At most so long.
    AtMost(i64),
}

impl Unit {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().trim_end_matches('s') {
            "microsecond" => Self::Fixed(1, 0),
            "millisecond" => Self::Fixed(1000, 0),
            "second" => Self::Fixed(SECOND, 0),
            "minute" => Self::Fixed(60 * SECOND, 0),
            "hour" => Self::Fixed(HOUR, 0),
            "day" => Self::Fixed(DAY, 0),
            "week" => Self::Fixed(7 * DAY, 2 * DAY),
            "month" => Self::Months(1),
            "quarter" => Self::Months(3),
            "year" => Self::Months(12),
            "decade" => Self::Months(120),
            "century" => Self::AtMost(36_525 * DAY),
            "millennium" => Self::AtMost(365_250 * DAY),
            _ => return None,
        })
    }

    /// The beginning of the unit that a time is in, or earlier.
    pub(crate) fn floor(self, time: i64) -> i64 {
        match self {
            Self::Fixed(length, first) => time.checked_sub(first).map_or(time, |it| time - it.rem_euclid(length)),
            Self::Months(count) => first_day(first_month(time, count)) * DAY,
            Self::AtMost(_) => time,
        }
    }

    /// How long it is, at most.
    pub(crate) const fn longest(self) -> i64 {
        match self {
            Self::Fixed(length, _) | Self::AtMost(length) => length,
            Self::Months(1) => 31 * DAY,
            Self::Months(3) => 92 * DAY,
            Self::Months(12) => 366 * DAY,
            Self::Months(_) => 3653 * DAY,
        }
    }

    /// The last time of the unit that a time is in, or later.
    pub(crate) fn last(self, time: i64) -> Option<i64> {
        let end = match self {
            Self::Months(count) => first_day(first_month(time, count) + count).checked_mul(DAY),
            Self::Fixed(length, _) | Self::AtMost(length) => self.floor(time).checked_add(length),
        };
        end.map(|end| end - 1)
    }
}

/// The month that a day is in.
pub(crate) fn month_of(day: i64) -> i64 {
    // Years that begin in March, from March of the year 0 on, so that a leap day is the last one.
    let day = day + 730_425;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    // Its first month is March.
    (year + era * 400) * 12 + month + 2
}

/// The first month of the so many that a time is in.
fn first_month(time: i64, count: i64) -> i64 {
    let month = month_of(time.div_euclid(DAY));
    month - month.rem_euclid(count)
}

/// The first day of a month.
pub(crate) fn first_day(month: i64) -> i64 {
    let (year, month) = ((month - 2).div_euclid(12), (month - 2).rem_euclid(12));
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 - 730_425
}
