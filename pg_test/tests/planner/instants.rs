//! Instants, in microseconds since 1970, and how SQL writes them.

/// Microseconds of a second, an hour, a day.
pub const SECOND: i64 = 1_000_000;
pub const HOUR: i64 = 3600 * SECOND;
pub const DAY: i64 = 24 * HOUR;

/// The start of a day of the proleptic Gregorian calendar.
pub const fn day(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March, so that the leap day is the last one.
    let year = year - (month <= 2) as i64;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year.div_euclid(400) * 146_097 + year.rem_euclid(400) * 365 + year.rem_euclid(400) / 4
        - year.rem_euclid(400) / 100
        + day_of_year;
    (days - 719_468) * DAY
}

/// `2024-03-10 12:00:00.000001`, in UTC. For the years 1 to 9999.
pub fn written(instant: i64) -> String {
    let days = instant.div_euclid(DAY) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let within = instant.rem_euclid(DAY);
    let (hours, minutes, seconds) = (within / HOUR, within / SECOND / 60 % 60, within / SECOND % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{:06}", within % SECOND)
}

#[test]
fn instants_are_written() {
    assert_eq!(written(0), "1970-01-01 00:00:00.000000");
    assert_eq!(written(-1), "1969-12-31 23:59:59.999999");
    assert_eq!(written(day(2024, 2, 29) + 12 * HOUR + 5), "2024-02-29 12:00:00.000005");
    assert_eq!(written(day(2100, 3, 1) - SECOND), "2100-02-28 23:59:59.000000");
}
