//! A range of time cut into pieces, each with its range of IDs: the partitions of a table by the time of its IDs.
//!
//! The calendar is that of UTC, where each day has 24 hours. Piece k begins `k` steps after the start of the range.
//! Each is counted from the start, not from the piece before: monthly pieces from 31 January begin on 28 February, 31
//! March, 30 April. Each piece ends where the next one begins, so there is no gap and no overlap.
//!
//! ```
//! use snowflake_core::pieces::{PieceLength, pieces};
//! use snowflake_core::{Layout, Micros, UnixMicros};
//!
//! let layout: Layout = "default".parse()?;
//! let month = PieceLength::new(1, 0, Micros(0))?;
//! let since = UnixMicros::parse("2026-01-01T00:00:00Z").unwrap();
//! let until = UnixMicros::parse("2026-07-01T00:00:00Z").unwrap();
//! let months = pieces(&layout, month, since, until)?;
//! assert_eq!(months.len(), 6);
//! assert_eq!(months[1].suffix, "_20260201");
//! assert_eq!(months[1].ids.start, months[0].ids.end);
//! assert_eq!(Some(months[5].ids.end), layout.lowest_id_from(until));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::layout::Layout;
use crate::time::{Micros, UnixMicros};
use std::fmt;
use std::ops::Range;
use thiserror::Error;

// Times are in microseconds below. 128 bits hold the longest step times any number of pieces.
const SECOND: i128 = 1_000_000;
const DAY: i128 = 86_400 * SECOND;

/// The most pieces that a range may have.
pub const MAX_PIECES: u64 = 1000;

/// A length of time by the calendar: months, days and microseconds, as in PostgreSQL's `interval`, of which none is negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    months: i128,
    days: i128,
    micros: i128,
}

impl Span {
    /// The length of an `interval`; `None` where a part of it is negative.
    pub fn new(months: i32, days: i32, rest: Micros) -> Option<Self> {
        let span = Self { months: months.into(), days: days.into(), micros: rest.0.into() };
        (months >= 0 && days >= 0 && rest >= Micros(0)).then_some(span)
    }

    /// A lower bound for the length, as no month has fewer than 28 days.
    const fn shortest(self) -> i128 {
        (self.months * 28 + self.days) * DAY + self.micros
    }

    /// The instant after this time; the last one there is where it would be later.
    pub fn later(self, at: UnixMicros) -> UnixMicros {
        UnixMicros(i64::try_from(self.after(at, 1)).unwrap_or(i64::MAX))
    }

    /// The instant `k` times this after another one, since 1970. The last day of the month where that has no such day.
    fn after(self, since: UnixMicros, k: u64) -> i128 {
        let (since, k) = (i128::from(since.0), i128::from(k));
        let (year, month, day) = civil(since.div_euclid(DAY));
        let months = year * 12 + (month - 1) + k * self.months;
        let first = days_before(months.div_euclid(12), months.rem_euclid(12) + 1);
        let next = days_before((months + 1).div_euclid(12), (months + 1).rem_euclid(12) + 1);
        let days = first + day.min(next - first) - 1 + k * self.days;
        days * DAY + since.rem_euclid(DAY) + k * self.micros
    }
}

/// The length of a piece: one or more whole seconds, so each piece begins at least a second after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceLength(Span);

/// Why an interval is no [`PieceLength`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PieceLengthError {
    /// One of its parts is negative.
    #[error("a part of the step is negative")]
    Negative,
    /// It is shorter than a second, or has a fraction of one.
    #[error("the step is not one or more whole seconds")]
    NotWholeSeconds,
}

impl PieceLength {
    /// A step from the parts of an `interval`.
    ///
    /// # Errors
    /// Where pieces could overlap, or have the same [`Piece::suffix`]: see [`PieceLengthError`].
    pub fn new(months: i32, days: i32, rest: Micros) -> Result<Self, PieceLengthError> {
        let step = Span::new(months, days, rest).ok_or(PieceLengthError::Negative)?;
        if step.shortest() < SECOND || step.micros % SECOND != 0 {
            return Err(PieceLengthError::NotWholeSeconds);
        }
        Ok(Self(step))
    }

    /// Whether pieces of this length that begin at an instant begin at midnight, all of them.
    const fn keeps_midnight(self, since: UnixMicros) -> bool {
        since.0 as i128 % DAY == 0 && self.0.micros % DAY == 0
    }

    const fn shortest(self) -> i128 {
        self.0.shortest()
    }

    fn after(self, since: UnixMicros, k: u64) -> i128 {
        self.0.after(since, k)
    }
}

/// Year, month and day of a day, which is counted from 1970-01-01. The calculation has years that begin in March, so
/// that the leap day is their last.
const fn civil(days: i128) -> (i128, i128, i128) {
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153; // from March on
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + (month <= 2) as i128, month, day)
}

/// The days from 1970-01-01 to the first of a month.
const fn days_before(year: i128, month: i128) -> i128 {
    let year = year - (month <= 2) as i128;
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A piece of a range of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The end of its partition's name: its start in UTC, as `_20260301`, or as `_20260301_060000` where not all pieces
    /// begin at midnight.
    pub suffix: String,
    /// The IDs whose time lies in the piece.
    pub ids: Range<i64>,
}

/// Why a range of time is not cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PiecesError {
    /// The range does not begin before it ends.
    #[error("the range is empty")]
    Empty,
    /// The range begins outside the time of the layout.
    #[error("the range begins outside the time of the layout")]
    SinceOutOfRange,
    /// The range ends outside the time of the layout.
    #[error("the range ends outside the time of the layout")]
    UntilOutOfRange,
    /// The last piece, which is as long as the others, ends after the layout does.
    #[error("the last piece ends after the time of the layout")]
    EndsTooLate,
    /// A step is shorter than a tick of the layout: some pieces would have no IDs.
    #[error("the step is shorter than a tick of the layout")]
    ShorterThanTick,
    /// There would be so many pieces, more than [`MAX_PIECES`].
    #[error("the range has {0} pieces, more than {max}", max = MAX_PIECES)]
    TooMany(u64),
}

/// The pieces of the time at or after `since` and before `until`. The last piece is as long as the others, and so may
/// end after `until`.
///
/// # Errors
/// See [`PiecesError`].
pub fn pieces(
    layout: &Layout,
    step: PieceLength,
    since: UnixMicros,
    until: UnixMicros,
) -> Result<Vec<Piece>, PiecesError> {
    if since >= until && !is_outside(layout, since) && !is_outside(layout, until) {
        return Err(PiecesError::Empty);
    }
    check(layout, step, since, until)?;
    let count = count(step, since, until);
    if count > MAX_PIECES {
        return Err(PiecesError::TooMany(count));
    }
    let at_midnight = step.keeps_midnight(since);
    let first_id = |at| first_id(layout, at);
    (0..count)
        .map(|k| {
            let (start, end) = (step.after(since, k), step.after(since, k + 1));
            let ids = first_id(start).zip(first_id(end)).map(|(start, end)| start..end);
            Ok(Piece { suffix: suffix(start, at_midnight), ids: ids.ok_or(PiecesError::EndsTooLate)? })
        })
        .collect()
}

/// The first instant of the piece of the time in which an instant lies, where a partition has that piece and begins before the
/// instant: so pieces that are asked for from the present on, now and then, continue those that are there.
pub fn continued(layout: &Layout, step: PieceLength, existing: &[Range<Edge>], since: UnixMicros) -> UnixMicros {
    let begun = existing.iter().find_map(|there| {
        let (Edge::Id(start), Edge::Id(end)) = (there.start, there.end) else { return None };
        let at = layout.timestamp(start).ok()?;
        let holds = (start..end).contains(&layout.lowest_id_from(since)?);
        let is_a_piece = layout.lowest_id_from(at) == Some(start) && first_id(layout, step.after(at, 1)) == Some(end);
        // In the same tick, it may begin after the instant.
        (holds && is_a_piece).then_some(at.min(since))
    });
    begun.unwrap_or(since)
}

/// The lowest ID from an instant since 1970 on.
fn first_id(layout: &Layout, at: i128) -> Option<i64> {
    i64::try_from(at).ok().and_then(|at| layout.lowest_id_from(UnixMicros(at)))
}

fn is_outside(layout: &Layout, at: UnixMicros) -> bool {
    at < layout.epoch() || layout.lowest_id_from(at).is_none()
}

/// Checks that both ends lie in the time of the layout, and that each piece has IDs.
fn check(layout: &Layout, step: PieceLength, since: UnixMicros, until: UnixMicros) -> Result<(), PiecesError> {
    if is_outside(layout, since) {
        Err(PiecesError::SinceOutOfRange)
    } else if is_outside(layout, until) {
        Err(PiecesError::UntilOutOfRange)
    } else if step.shortest() < layout.tick_length().0.into() {
        Err(PiecesError::ShorterThanTick)
    } else {
        Ok(())
    }
}

/// How many pieces there are. Starts rise with their number, so a binary search finds the first at or after `until`.
fn count(step: PieceLength, since: UnixMicros, until: UnixMicros) -> u64 {
    let length = i128::from(until.0) - i128::from(since.0);
    let (mut low, mut high) = (1, (length / step.shortest()) as u64 + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if step.after(since, middle) < until.0.into() { low = middle + 1 } else { high = middle }
    }
    low
}

fn suffix(start: i128, at_midnight: bool) -> String {
    let (year, month, day) = civil(start.div_euclid(DAY));
    let seconds = start.rem_euclid(DAY) / SECOND;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let date = format!("_{year:04}{month:02}{day:02}");
    if at_midnight { date } else { format!("{date}_{hour:02}{minute:02}{second:02}") }
}

/// A bound of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// `MINVALUE`: no lower bound.
    Lowest,
    /// An ID: as a lower bound the first that the partition holds, as an upper bound the first that it does not.
    Id(i64),
    /// `MAXVALUE`: no upper bound.
    Highest,
}

/// The form in SQL, between the parentheses of `FROM` and `TO`.
impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lowest => f.write_str("MINVALUE"),
            Self::Id(id) => id.fmt(f),
            Self::Highest => f.write_str("MAXVALUE"),
        }
    }
}

/// A piece and a partition that overlap, and do not have the same bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("piece {piece} overlaps partition {partition}")]
pub struct Overlap {
    /// The index of the piece among those that are wanted.
    pub piece: usize,
    /// The index of the partition among those that exist.
    pub partition: usize,
}

/// The pieces that are not partitions yet, by their indexes in `wanted`. Partitions are in ascending order. One with the same bounds as a
/// piece is that piece.
///
/// # Errors
/// Where a partition overlaps a piece, and is not that piece; the first such piece.
pub fn missing(wanted: &[Range<i64>], existing: &[Range<Edge>]) -> Result<Vec<usize>, Overlap> {
    let mut missing = Vec::new();
    for (piece, ids) in wanted.iter().enumerate() {
        let ids = Edge::Id(ids.start)..Edge::Id(ids.end);
        let partition = existing.partition_point(|there| there.end <= ids.start);
        match existing.get(partition).filter(|there| there.start < ids.end) {
            None => missing.push(piece),
            Some(there) if *there == ids => {}
            Some(_) => return Err(Overlap { piece, partition }),
        }
    }
    Ok(missing)
}

pub mod mark;
pub mod upkeep;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::BUILT_IN;
    use proptest::prelude::*;

    const MICROS_OF_DAY: i64 = DAY as i64;

    fn default() -> Layout {
        "default".parse().unwrap()
    }

    fn at(text: &str) -> UnixMicros {
        UnixMicros::parse(text).unwrap()
    }

    fn step(months: i32, days: i32, micros: i64) -> PieceLength {
        PieceLength::new(months, days, Micros(micros)).unwrap()
    }

    fn of(step: PieceLength, since: &str, until: &str) -> Result<Vec<Piece>, PiecesError> {
        pieces(&default(), step, at(since), at(until))
    }

    fn suffixes(step: PieceLength, since: &str, until: &str) -> Vec<String> {
        of(step, since, until).unwrap().into_iter().map(|piece| piece.suffix).collect()
    }

    #[test]
    fn months_of_a_year() {
        let months = of(step(1, 0, 0), "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z").unwrap();
        assert_eq!(months.len(), 12);
        assert_eq!(months[2].suffix, "_20260301");
        assert_eq!(months[2].ids.start, default().lowest_id_from(at("2026-03-01T00:00:00Z")).unwrap());
        assert_eq!(months[11].ids.end, default().lowest_id_from(at("2027-01-01T00:00:00Z")).unwrap());
    }

    #[test]
    fn months_from_the_31st_begin_on_the_31st_where_there_is_one() {
        assert_eq!(
            suffixes(step(1, 0, 0), "2028-01-31T00:00:00Z", "2028-06-01T00:00:00Z"),
            ["_20280131", "_20280229", "_20280331", "_20280430", "_20280531"]
        );
    }

    #[test]
    fn the_last_piece_is_whole() {
        let months = of(step(1, 0, 0), "2026-01-01T00:00:00Z", "2026-02-01T00:00:00.000001Z").unwrap();
        assert_eq!(months.len(), 2);
        assert_eq!(months[1].ids.end, default().lowest_id_from(at("2026-03-01T00:00:00Z")).unwrap());
    }

    #[test]
    fn suffixes_have_the_time_of_day_where_not_all_pieces_begin_at_midnight() {
        let six_hours = step(0, 0, 6 * 3600 * 1_000_000);
        let names = ["_20260329_000000", "_20260329_060000", "_20260329_120000", "_20260329_180000"];
        assert_eq!(suffixes(six_hours, "2026-03-29T00:00:00Z", "2026-03-30T00:00:00Z"), names);
        let day = step(0, 0, MICROS_OF_DAY);
        assert_eq!(suffixes(day, "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"), ["_20260329"]);
        assert_eq!(suffixes(day, "2026-03-29T05:00:00Z", "2026-03-29T06:00:00Z"), ["_20260329_050000"]);
    }

    #[test]
    fn steps_are_whole_seconds_and_positive() {
        let new = |months, days, micros| PieceLength::new(months, days, Micros(micros));
        assert_eq!(new(0, 0, 500_000), Err(PieceLengthError::NotWholeSeconds));
        assert_eq!(new(0, 0, 1_500_000), Err(PieceLengthError::NotWholeSeconds));
        assert_eq!(new(0, 1, 1), Err(PieceLengthError::NotWholeSeconds));
        assert_eq!(new(0, 0, 0), Err(PieceLengthError::NotWholeSeconds));
        assert_eq!(new(1, -30, 0), Err(PieceLengthError::Negative));
        assert_eq!(new(-1, 40, 0), Err(PieceLengthError::Negative));
        assert_eq!(new(0, 1, -1_000_000), Err(PieceLengthError::Negative));
        // '-infinity' and 'infinity' of PostgreSQL 17.
        assert_eq!(new(i32::MIN, i32::MIN, i64::MIN), Err(PieceLengthError::Negative));
        assert_eq!(new(i32::MAX, i32::MAX, i64::MAX), Err(PieceLengthError::NotWholeSeconds));
        assert!(new(0, 0, 1_000_000).is_ok());
    }

    #[test]
    fn refusals() {
        let day = step(0, 1, 0);
        let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        assert_eq!(of(day, start, start), Err(PiecesError::Empty));
        assert_eq!(of(day, end, start), Err(PiecesError::Empty));
        let early = at("2023-12-31T23:59:59.999999Z");
        assert_eq!(pieces(&default(), day, early, at(end)), Err(PiecesError::SinceOutOfRange));
        let late = UnixMicros(i64::MAX);
        assert_eq!(pieces(&default(), day, at(start), late), Err(PiecesError::UntilOutOfRange));
        let minutes = "timestamp=31 worker=10 sequence=22 tick=60s".parse().unwrap();
        assert_eq!(pieces(&minutes, step(0, 0, 59_000_000), at(start), at(end)), Err(PiecesError::ShorterThanTick));
        assert_eq!(pieces(&minutes, step(0, 0, 60_000_000), at(start), at(end)), Err(PiecesError::TooMany(1440)));
        assert_eq!(pieces(&minutes, step(0, 0, 90_000_000), at(start), at(end)).unwrap().len(), 960);
    }

    #[test]
    fn too_many_pieces_are_counted_and_not_made() {
        let second = step(0, 0, 1_000_000);
        assert_eq!(of(second, "2026-01-01T00:00:00Z", "2026-01-01T00:16:40Z").unwrap().len(), 1000);
        let count = |until| of(second, "2026-01-01T00:00:00Z", until).unwrap_err();
        assert_eq!(count("2026-01-01T00:16:41Z"), PiecesError::TooMany(1001));
        assert_eq!(count("2093-01-01T00:00:00Z"), PiecesError::TooMany(2_114_380_800));
        assert_eq!(
            of(step(0, 1, 0), "2024-01-01T00:00:00Z", "2051-05-19T00:00:00Z"),
            Err(PiecesError::TooMany(10_000))
        );
    }

    #[test]
    fn the_longest_steps_reach_beyond_every_layout() {
        for longest in
            [step(i32::MAX, 0, 0), step(0, i32::MAX, 0), step(i32::MAX, i32::MAX, i64::MAX / 1_000_000 * 1_000_000)]
        {
            let refused = of(longest, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
            assert_eq!(refused, Err(PiecesError::EndsTooLate), "{longest:?}");
        }
    }

    #[test]
    fn existing_partitions_are_left_out_and_overlaps_are_errors() {
        let id = |start, end| Edge::Id(start)..Edge::Id(end);
        let overlap = |piece, partition| Err(Overlap { piece, partition });
        let wanted = [10..20, 20..30, 30..40];
        assert_eq!(missing(&wanted, &[]), Ok(vec![0, 1, 2]));
        assert_eq!(missing(&wanted, &[id(0, 10), id(20, 30), id(40, 50)]), Ok(vec![0, 2]));
        assert_eq!(missing(&wanted, &[Edge::Lowest..Edge::Id(10), Edge::Id(40)..Edge::Highest]), Ok(vec![0, 1, 2]));
        assert_eq!(missing(&wanted, &[id(0, 10), id(12, 14)]), overlap(0, 1));
        assert_eq!(missing(&wanted, &[id(20, 31)]), overlap(1, 0));
        assert_eq!(missing(&wanted, &[Edge::Lowest..Edge::Highest]), overlap(0, 0));
        assert_eq!(missing(&wanted, &[Edge::Id(39)..Edge::Highest]), overlap(2, 0));
    }

    #[test]
    fn pieces_continue_the_one_that_holds_their_start() {
        let (layout, day) = (default(), step(0, 1, 0));
        let id = |text: &str| layout.lowest_id_from(at(text)).unwrap();
        let [first, second, fourth] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-04T00:00:00Z"];
        let there = [
            Edge::Lowest..Edge::Id(id(first)),
            Edge::Id(id(first))..Edge::Id(id(second)),
            Edge::Id(id(second))..Edge::Id(id(fourth)),
            Edge::Id(id(fourth) + 1)..Edge::Id(id("2026-01-05T00:00:00Z")),
        ];
        let from = |length, since: &str| continued(&layout, length, &there, at(since)).to_string();
        assert_eq!(from(day, "2026-01-01T12:00:00Z"), first);
        assert_eq!(from(day, first), first);
        for since in [
            "2025-12-31T12:00:00Z",
            "2025-12-31T23:59:59.999999Z",
            second,
            "2026-01-03T12:00:00Z",
            fourth,
            "2026-01-04T12:00:00Z",
        ] {
            assert_eq!(from(day, since), since, "no partition of a day holds it");
        }
        assert_eq!(from(step(0, 2, 0), "2026-01-03T12:00:00Z"), second);
    }

    #[test]
    fn bounds_are_written_as_sql_has_them() {
        let written = [Edge::Lowest, Edge::Id(-5), Edge::Highest].map(|edge| edge.to_string());
        assert_eq!(written, ["MINVALUE", "-5", "MAXVALUE"]);
    }

    /// Any step of which at least one fits between the years 1970 and 2300.
    fn any_step() -> impl Strategy<Value = PieceLength> {
        (0..400_i32, 0..4000_i32, 0..100_000_i64)
            .prop_flat_map(|(months, days, seconds)| {
                let zero_or = |n: i64| prop_oneof![Just(0), Just(n)];
                (zero_or(months.into()), zero_or(days.into()), zero_or(seconds))
            })
            .prop_filter_map("positive", |(months, days, seconds)| {
                PieceLength::new(months as i32, days as i32, Micros::from_secs(seconds)).ok()
            })
    }

    proptest! {
        #[test]
        fn days_are_those_of_another_calendar(day in 0_i64..2_932_897) {
            same_as_of_another_calendar(day);
        }

        #[test]
        fn pieces_meet_and_cover_the_range(
            step in any_step(),
            since in 0_i64..8_000_000_000_000_000,
            length in 1_i64..8_000_000_000_000_000,
        ) {
            // To the year 2248; the default layout ends in 2093.
            let layout: Layout = "timestamp=43 worker=8 sequence=12 epoch=1970-01-01T00:00:00Z".parse().unwrap();
            let until = UnixMicros(since + length);
            match pieces(&layout, step, UnixMicros(since), until) {
                Ok(pieces) => {
                    prop_assert_eq!(pieces[0].ids.start, layout.lowest_id_from(UnixMicros(since)).unwrap());
                    let end = pieces.last().unwrap().ids.end;
                    prop_assert!(end >= layout.lowest_id_from(until).unwrap());
                    let last = step.after(UnixMicros(since), pieces.len() as u64 - 1);
                    prop_assert!(last < until.0.into());
                    for pair in pieces.windows(2) {
                        prop_assert_eq!(pair[0].ids.end, pair[1].ids.start);
                        prop_assert!(pair[0].suffix < pair[1].suffix);
                    }
                    for piece in &pieces {
                        prop_assert!(piece.ids.start < piece.ids.end);
                    }
                }
                Err(PiecesError::TooMany(count)) => {
                    prop_assert!(count > MAX_PIECES);
                    prop_assert!(step.after(UnixMicros(since), count - 1) < until.0.into());
                    prop_assert!(step.after(UnixMicros(since), count) >= until.0.into());
                }
                Err(PiecesError::SinceOutOfRange | PiecesError::UntilOutOfRange | PiecesError::EndsTooLate) => {}
                Err(other) => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn each_step_is_as_long_as_the_shortest_and_a_second(step in any_step(), since in 0_i64..8_000_000_000_000_000, k in 0_u64..1000) {
            let length = step.after(UnixMicros(since), k + 1) - step.after(UnixMicros(since), k);
            prop_assert!(length >= step.shortest() && length >= SECOND);
        }
    }

    fn same_as_of_another_calendar(day: i64) {
        let (year, month, date) = civil(day.into());
        let written = UnixMicros(day * MICROS_OF_DAY).to_string();
        assert_eq!(format!("{year:04}-{month:02}-{date:02}T00:00:00Z"), written);
        assert_eq!(days_before(year, month) + date - 1, i128::from(day));
    }

    #[test]
    fn so_are_the_days_before_and_after_the_end_of_each_year_and_february() {
        for (year, month) in (1971..10_000).flat_map(|year| [(year, 1), (year, 3)]) {
            let first = days_before(year, month) as i64;
            (first - 1..=first).for_each(same_as_of_another_calendar);
        }
    }

    #[test]
    fn the_time_of_every_built_in_layout_can_be_cut() {
        for built_in in BUILT_IN {
            let layout: Layout = built_in.name.parse().unwrap();
            let start = UnixMicros((layout.epoch().0 / MICROS_OF_DAY + 1) * MICROS_OF_DAY);
            let until = UnixMicros(start.0 + 100 * MICROS_OF_DAY);
            assert_eq!(pieces(&layout, step(0, 1, 0), start, until).unwrap().len(), 100, "{}", built_in.name);
        }
    }
}
