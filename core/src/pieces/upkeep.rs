//! Partitions that live by themselves: which ones the time to come lacks, and which ones hold only rows that are old enough to
//! go.
//!
//! Pieces lie on a *grid*, the same one in each call: months are counted from 1600, other lengths from a Monday, 1601-01-01, all
//! in UTC. So a month begins on the first, a quarter in January, a week on a Monday, six hours at midnight. Where the last
//! partition has the length of the pieces and lies on another grid, such as that of days in another time zone, that is
//! the grid.

use super::{DAY, Edge, Piece, PieceLength, PiecesError, Span, check, count, first_id, suffix};
use crate::layout::Layout;
use crate::time::{Micros, UnixMicros};
use std::ops::Range;
use thiserror::Error;

/// 1600-01-01, from which steps with months are counted: years, decades and centuries begin where people expect it.
const FIRST_MONTH: UnixMicros = UnixMicros(-11_676_096_000_000_000);
/// 1601-01-01, a Monday.
const FIRST_MONDAY: UnixMicros = UnixMicros(-11_644_473_600_000_000);

const HOUR: i64 = 3_600_000_000;

/// More pieces than this are not looked for.
pub const MAX_AHEAD: u64 = 100_000;

/// Why it cannot be said which pieces are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UpkeepError {
    /// There are no such pieces.
    #[error(transparent)]
    Pieces(#[from] PiecesError),
    /// In the range in question, a partition, by its index among those that exist, begins or ends where no time does.
    #[error("partition {0} has a bound that is no time")]
    NoTime(usize),
}

/// Pieces of one length, counted from a start.
struct Grid<'a> {
    layout: &'a Layout,
    step: PieceLength,
    start: UnixMicros,
}

impl<'a> Grid<'a> {
    fn new(layout: &'a Layout, step: PieceLength, start: UnixMicros) -> Self {
        Self { layout, step, start }
    }

    /// The grid of the last partition, if that has the length of the pieces.
    fn of(layout: &'a Layout, step: PieceLength, existing: &[Range<Edge>], now: UnixMicros) -> Self {
        let common = if step.0.months > 0 { FIRST_MONTH } else { FIRST_MONDAY };
        let common = Self::new(layout, step, common);
        let whole = |there: &Range<Edge>| Some((whole_time(layout, there.start)?, there.clone()));
        let mut whole: Vec<_> = existing.iter().filter_map(whole).collect();
        whole.sort_unstable_by_key(|&(at, _)| at);
        let Some((at, last)) = whole.last().cloned() else { return common };
        if common.has(at, &last) {
            return common;
        }
        // Months from the 31st are counted from there, not from the 28th of February.
        let others = whole.into_iter().map(|(start, _)| Self::new(layout, step, start));
        others.filter(|grid| grid.start <= now).find(|grid| grid.has(at, &last)).unwrap_or(common)
    }

    /// Whether one of its pieces begins at this instant and has these IDs.
    fn has(&self, at: UnixMicros, ids: &Range<Edge>) -> bool {
        if at < self.start {
            return false;
        }
        let k = self.number_at(at);
        self.ids(k).is_some_and(|piece| *ids == (Edge::Id(piece.start)..Edge::Id(piece.end)))
    }

    /// Which piece an instant lies in that is not before its start.
    fn number_at(&self, at: UnixMicros) -> u64 {
        count(self.step, self.start, UnixMicros(at.0.saturating_add(1))) - 1
    }

    fn ids(&self, k: u64) -> Option<Range<i64>> {
        let bound = |k| first_id(self.layout, self.step.after(self.start, k));
        Some(bound(k)?..bound(k + 1)?)
    }

    /// A part of piece `k`, or all of it.
    fn piece(&self, k: u64, ids: Range<i64>) -> Piece {
        let begins = self.step.after(self.start, k);
        let begins = match self.layout.timestamp(ids.start) {
            Ok(at) if first_id(self.layout, begins) != Some(ids.start) => at.0.into(),
            _ => begins,
        };
        Piece { suffix: suffix(begins, self.step.keeps_midnight(self.start) && begins % DAY == 0), ids }
    }
}

/// The instant from which on a bound's IDs are, if it is the first of such IDs.
fn whole_time(layout: &Layout, edge: Edge) -> Option<UnixMicros> {
    let Edge::Id(id) = edge else { return None };
    let at = layout.timestamp(id).ok()?;
    (layout.lowest_id_from(at) == Some(id)).then_some(at)
}

/// The pieces of the grid from the one in which `now` lies to the one that `until` ends, without what partitions have of them.
/// So what is left of a piece beside a partition of another length is shorter than the others. Nothing is wanted that has
/// passed. Partitions are in ascending order.
///
/// # Errors
/// See [`UpkeepError`].
pub fn ahead(
    layout: &Layout,
    step: PieceLength,
    existing: &[Range<Edge>],
    now: UnixMicros,
    until: UnixMicros,
) -> Result<Vec<Piece>, UpkeepError> {
    check(layout, step, now, until)?;
    let grid = Grid::of(layout, step, existing, now);
    let first = grid.number_at(now);
    let last = grid.number_at(UnixMicros(until.0 - 1)).max(first);
    if last - first >= MAX_AHEAD {
        return Err(PiecesError::TooMany(last - first + 1).into());
    }
    let wanted = grid.ids(first).zip(grid.ids(last)).ok_or(PiecesError::EndsTooLate)?;
    let wanted = wanted.0.start..wanted.1.end;
    let is_in_between = |edge: Edge| matches!(edge, Edge::Id(id) if wanted.start < id && id < wanted.end);
    let no_time = |edge| is_in_between(edge) && whole_time(layout, edge).is_none();
    if let Some(partition) = existing.iter().position(|there| no_time(there.start) || no_time(there.end)) {
        return Err(UpkeepError::NoTime(partition));
    }
    // The first ID of the tick that `now` lies in.
    let present = layout.lowest_id_from(layout.start_of(layout.tick_at(now))).unwrap_or(wanted.start);
    let mut pieces = Vec::new();
    for k in first..=last {
        let ids = grid.ids(k).ok_or(PiecesError::EndsTooLate)?;
        // Those before it end before it begins.
        let begun = existing.partition_point(|there| there.end <= Edge::Id(ids.start));
        let rest = without(ids, &existing[begun..]).into_iter().filter(|ids| ids.end > present);
        pieces.extend(rest.map(|ids| grid.piece(k, ids)));
    }
    Ok(pieces)
}

/// What of a range no partition has. None of them ends before it begins.
fn without(ids: Range<i64>, existing: &[Range<Edge>]) -> Vec<Range<i64>> {
    let mut left = Vec::new();
    let mut from = ids.start;
    for there in existing.iter().take_while(|there| there.start < Edge::Id(ids.end)) {
        match there.start {
            Edge::Id(start) if start > from => left.push(from..start),
            _ => {}
        }
        from = match there.end {
            Edge::Id(end) => end.min(ids.end),
            _ => ids.end,
        };
    }
    if from < ids.end {
        left.push(from..ids.end);
    }
    left
}

/// How old a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// It holds rows that are kept, or may get some.
    Kept,
    /// All that it may hold is older.
    Old,
    /// It ends before the time for which rows are kept, and is no range of time: it has a lower bound that is no time, or ends before all
    /// times.
    Untold,
}

/// How old a partition is. Rows are kept for `retention`; and a partition may get rows for as long as `slack` after its end. One without a
/// lower bound is as old as its upper bound says, as all its IDs are below that; unless there are no IDs below it.
pub fn age(layout: &Layout, ids: &Range<Edge>, retention: Span, slack: Micros, now: UnixMicros) -> Age {
    let is_over = |at: UnixMicros| retention.later(at) <= now && at.0.saturating_add(slack.0) <= now.0;
    let Edge::Id(end) = ids.end else { return Age::Kept };
    let begins_in_time = ids.start == Edge::Lowest && end > 0 || whole_time(layout, ids.start).is_some();
    match whole_time(layout, ids.end).filter(|_| begins_in_time) {
        Some(at) if is_over(at) => Age::Old,
        // Up to there, there are no times.
        _ if end <= 0 || layout.timestamp(end).is_ok_and(is_over) => Age::Untold,
        _ => Age::Kept,
    }
}

/// The first ID of the layout's second hour. Keys that a table had before it had IDs are below: there are billions of them at least. So what is below
/// has no age.
pub fn first_with_age(layout: &Layout) -> i64 {
    layout.lowest_id_from(UnixMicros(layout.epoch().0.saturating_add(HOUR))).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::BUILT_IN;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000;

    fn default() -> Layout {
        "default".parse().unwrap()
    }

    fn at(text: &str) -> UnixMicros {
        UnixMicros::parse(text).unwrap()
    }

    fn step(months: i32, days: i32, hours: i64) -> PieceLength {
        PieceLength::new(months, days, Micros(hours * 3600 * SECOND)).unwrap()
    }

    fn id(text: &str) -> i64 {
        default().lowest_id_from(at(text)).unwrap()
    }

    fn between(start: &str, end: &str) -> Range<Edge> {
        Edge::Id(id(start))..Edge::Id(id(end))
    }

    /// The pieces, by their names and the times of their ends.
    fn named(
        step: PieceLength,
        existing: &[Range<Edge>],
        now: &str,
        until: &str,
    ) -> Result<Vec<(String, String)>, UpkeepError> {
        let pieces = ahead(&default(), step, existing, at(now), at(until))?;
        let end = |piece: &Piece| default().timestamp(piece.ids.end).unwrap().to_string();
        Ok(pieces.into_iter().map(|piece| (piece.suffix.clone(), end(&piece))).collect())
    }

    fn names(step: PieceLength, existing: &[Range<Edge>], now: &str, until: &str) -> Vec<String> {
        named(step, existing, now, until).unwrap().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn the_first_call_begins_with_the_piece_of_the_present() {
        let (now, until) = ("2026-03-18T10:20:30Z", "2026-05-02T00:00:00Z");
        assert_eq!(names(step(1, 0, 0), &[], now, until), ["_20260301", "_20260401", "_20260501"]);
        assert_eq!(names(step(3, 0, 0), &[], now, until), ["_20260101", "_20260401"]);
        assert_eq!(names(step(12, 0, 0), &[], now, until), ["_20260101"]);
        // 2026-03-16 was a Monday.
        assert_eq!(names(step(0, 7, 0), &[], now, "2026-03-24T00:00:00Z"), ["_20260316", "_20260323"]);
        assert_eq!(names(step(0, 0, 6), &[], now, "2026-03-18T12:00:00Z"), ["_20260318_060000"]);
        assert_eq!(names(step(0, 0, 6), &[], now, now), ["_20260318_060000"]);
    }

    /// Those of a length in months count from 1600. The default layout begins in 2024, within the first of them.
    #[test]
    fn decades_begin_where_people_expect_it() {
        let names = names(step(120, 0, 0), &[], "2026-03-18T10:20:30Z", "2032-01-01T00:00:00Z");
        assert_eq!(names, ["_20200101", "_20300101"]);
    }

    #[test]
    fn what_ends_now_has_passed() {
        let noon = [between("2026-03-18T12:00:00Z", "2026-03-19T00:00:00Z")];
        let names = |now| names(step(0, 1, 0), &noon, now, "2026-03-19T00:00:00Z");
        assert_eq!(names("2026-03-18T11:59:59.999Z"), ["_20260318"]);
        assert!(names("2026-03-18T12:00:00Z").is_empty());
    }

    #[test]
    fn a_later_call_goes_on() {
        let march = between("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z");
        let month = step(1, 0, 0);
        assert!(names(month, std::slice::from_ref(&march), "2026-03-18T00:00:00Z", "2026-04-01T00:00:00Z").is_empty());
        assert_eq!(names(month, &[march], "2026-03-18T00:00:00Z", "2026-04-01T00:00:00.000001Z"), ["_20260401"]);
        assert!(
            names(month, &[Edge::Lowest..Edge::Highest], "2026-03-18T00:00:00Z", "2027-04-01T00:00:00Z").is_empty()
        );
    }

    #[test]
    fn days_of_another_zone_stay_so() {
        let day = between("2026-03-17T14:30:00Z", "2026-03-18T14:30:00Z");
        assert_eq!(
            names(step(0, 1, 0), &[day], "2026-03-18T00:00:00Z", "2026-03-20T00:00:00Z"),
            ["_20260318_143000", "_20260319_143000"]
        );
        let months = [
            between("2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"),
            between("2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"),
        ];
        assert_eq!(
            named(step(1, 0, 0), &months, "2026-03-18T00:00:00Z", "2026-05-01T00:00:00Z").unwrap(),
            [
                ("_20260331".to_owned(), "2026-04-30T00:00:00Z".to_owned()),
                ("_20260430".to_owned(), "2026-05-31T00:00:00Z".to_owned())
            ]
        );
    }

    #[test]
    fn another_length_comes_back_to_the_grid() {
        let days = [
            between("2026-02-14T00:00:00Z", "2026-02-15T00:00:00Z"),
            between("2026-03-14T00:00:00Z", "2026-03-15T00:00:00Z"),
        ];
        assert_eq!(
            named(step(1, 0, 0), &days, "2026-03-14T12:00:00Z", "2026-04-14T00:00:00Z").unwrap(),
            [
                ("_20260315".to_owned(), "2026-04-01T00:00:00Z".to_owned()),
                ("_20260401".to_owned(), "2026-05-01T00:00:00Z".to_owned())
            ]
        );
        // What has passed is not made: the piece before the partition, of the same month.
        assert_eq!(names(step(1, 0, 0), &days, "2026-03-20T00:00:00Z", "2026-03-21T00:00:00Z"), ["_20260315"]);
        // A hole between two partitions is filled, and nothing of them is taken.
        let around =
            [Edge::Lowest..Edge::Id(id("2026-03-14T06:00:00Z")), Edge::Id(id("2026-03-16T00:00:00Z"))..Edge::Highest];
        assert_eq!(
            named(step(0, 1, 0), &around, "2026-03-14T00:00:00Z", "2026-03-20T00:00:00Z").unwrap(),
            [
                ("_20260314_060000".to_owned(), "2026-03-15T00:00:00Z".to_owned()),
                ("_20260315".to_owned(), "2026-03-16T00:00:00Z".to_owned())
            ]
        );
    }

    #[test]
    fn what_is_no_range_of_time_is_refused_where_it_is_in_the_way() {
        let (now, until) = ("2026-03-18T00:00:00Z", "2026-03-20T00:00:00Z");
        let odd = Edge::Id(id("2026-03-19T00:00:00Z") + 1)..Edge::Highest;
        let before = Edge::Id(0)..Edge::Id(10_000_000);
        assert_eq!(named(step(0, 1, 0), &[before.clone(), odd], now, until), Err(UpkeepError::NoTime(1)));
        assert_eq!(names(step(0, 1, 0), &[before], now, until).len(), 2);
        let refused = |step, until| named(step, &[], now, until).unwrap_err();
        assert_eq!(refused(step(0, 0, 1), "2037-08-13T16:00:00.000001Z"), PiecesError::TooMany(MAX_AHEAD + 1).into());
        assert_eq!(refused(step(0, 1, 0), "2100-01-01T00:00:00Z"), PiecesError::UntilOutOfRange.into());
        assert_eq!(refused(step(3000, 0, 0), until), PiecesError::EndsTooLate.into());
        let early = ahead(&default(), step(0, 1, 0), &[], at("2023-01-01T00:00:00Z"), at(until));
        assert_eq!(early, Err(PiecesError::SinceOutOfRange.into()));
    }

    #[test]
    fn a_partition_up_to_no_time_is_no_range_of_time_whatever_the_time_is() {
        let month = Span::new(1, 0, Micros(0)).unwrap();
        let at_epoch = |ids: Range<Edge>| age(&default(), &ids, month, Micros(0), default().epoch());
        for end in [0, -7] {
            assert_eq!(at_epoch(Edge::Lowest..Edge::Id(end)), Age::Untold);
        }
        assert_eq!(at_epoch(Edge::Lowest..Edge::Id(7)), Age::Kept);
    }

    #[test]
    fn how_old_partitions_are() {
        let month = Span::new(1, 0, Micros(0)).unwrap();
        let age_of = |ids: Range<Edge>, now: &str| age(&default(), &ids, month, Micros(10 * SECOND), at(now));
        let january = between("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
        assert_eq!(age_of(january.clone(), "2026-02-28T23:59:59.999999Z"), Age::Kept);
        assert_eq!(age_of(january.clone(), "2026-03-01T00:00:00Z"), Age::Old);
        let now = at("2026-02-01T00:00:10Z");
        let none = Span::new(0, 0, Micros(0)).unwrap();
        assert_eq!(age(&default(), &january, none, Micros(10 * SECOND), now), Age::Old);
        assert_eq!(age(&default(), &january, none, Micros(10 * SECOND + 1), now), Age::Kept);
        let end = january.end;
        assert_eq!(age_of(Edge::Lowest..end, "2026-03-01T00:00:00Z"), Age::Old);
        assert_eq!(age_of(Edge::Lowest..Edge::Id(7), "2026-03-01T00:00:00Z"), Age::Untold);
        assert_eq!(age_of(Edge::Lowest..Edge::Id(-7), "2026-03-01T00:00:00Z"), Age::Untold);
        assert_eq!(age_of(Edge::Lowest..Edge::Id(0), "2026-03-01T00:00:00Z"), Age::Untold);
        assert_eq!(age_of(Edge::Lowest..end, "2026-02-28T00:00:00Z"), Age::Kept);
        assert_eq!(age_of(Edge::Id(0)..Edge::Id(7), "2026-03-01T00:00:00Z"), Age::Untold);
        assert_eq!(age_of(Edge::Id(-9)..Edge::Id(-7), "2026-03-01T00:00:00Z"), Age::Untold);
        assert_eq!(age_of(january.start..Edge::Highest, "2093-01-01T00:00:00Z"), Age::Kept);
        assert_eq!(age_of(Edge::Lowest..Edge::Highest, "2093-01-01T00:00:00Z"), Age::Kept);
        let forever = Span::new(i32::MAX, i32::MAX, Micros(i64::MAX)).unwrap();
        assert_eq!(age(&default(), &january, forever, Micros(0), at("2093-01-01T00:00:00Z")), Age::Kept);
    }

    #[test]
    fn keys_from_before_have_no_age() {
        for built_in in BUILT_IN {
            let layout: Layout = built_in.name.parse().unwrap();
            let first = first_with_age(&layout);
            assert!(first > 5_000_000_000, "{}: {first}", built_in.name);
            assert!(layout.timestamp(first).unwrap().0 < layout.epoch().0 + 2 * HOUR);
        }
    }

    #[test]
    fn the_grids_begin_where_they_should() {
        let midnight = |year| (super::super::days_before(year, 1) * super::DAY) as i64;
        assert_eq!((FIRST_MONTH.0, FIRST_MONDAY.0), (midnight(1600), midnight(1601)));
        // 1970-01-05 was a Monday.
        assert_eq!((4 * super::DAY as i64 - FIRST_MONDAY.0) % (7 * super::DAY as i64), 0);
    }

    /// One call of a job, as somebody may set it up, change and forget it.
    #[derive(Clone, Debug)]
    struct Call {
        /// How much later than the call before, or earlier where the clock is set back; seconds.
        passed: i64,
        /// Months, days, hours; one of them at least.
        step: (i32, i32, i64),
        ahead_days: i32,
        retention_days: Option<i32>,
    }

    fn any_call() -> impl Strategy<Value = Call> {
        let steps = prop_oneof![
            (1..13, Just(0), Just(0)),
            (Just(0), 1..40, Just(0)),
            (Just(0), Just(0), 1..40_i64),
            (1..3, 1..20, 0..9_i64)
        ];
        let passed = prop_oneof![4 => 1..5_000_000_i64, 1 => -200_000..0_i64];
        (passed, steps, 0..90, proptest::option::of(0..200))
            .prop_map(|(passed, step, ahead_days, retention_days)| Call { passed, step, ahead_days, retention_days })
    }

    proptest! {
        /// Whatever a job is told, and however it changes: no row that is to be kept is lost, and each row of the time ahead has a
        /// partition.
        #[test]
        fn calls_leave_no_gap_and_lose_no_row(
            layout in 0..BUILT_IN.len(),
            begin in 0..40_000_000_i64,
            found in proptest::collection::vec((-3_000_000..6_000_000_i64, 1..3_000_000_i64), 0..4),
            calls in proptest::collection::vec(any_call(), 1..12),
        ) {
            let layout: Layout = BUILT_IN[layout].name.parse().unwrap();
            let mut now = UnixMicros(layout.epoch().0.max(0) + 400 * super::DAY as i64 + begin * SECOND + 123);
            let first = |at: i64| layout.lowest_id_from(UnixMicros(at)).unwrap();
            // Partitions that somebody has made, with the times of their rows.
            let mut partitions: Vec<(Range<Edge>, Vec<i64>)> = Vec::new();
            let mut from = i64::MIN;
            for (after, length) in found {
                let start = (now.0 + after * SECOND).max(from).max(layout.epoch().0);
                let (start, end) = (start, start + length * SECOND);
                partitions.push((Edge::Id(first(start))..Edge::Id(first(end)), Vec::new()));
                from = end;
            }
            partitions.retain(|(ids, _)| ids.start < ids.end);
            for call in calls {
                now = UnixMicros((now.0 + call.passed * SECOND).max(layout.epoch().0));
                let step = step(call.step.0, call.step.1, call.step.2);
                let until = Span::new(0, call.ahead_days, Micros(0)).unwrap().later(now);
                let existing: Vec<Range<Edge>> = partitions.iter().map(|(ids, _)| ids.clone()).collect();
                let pieces = match ahead(&layout, step, &existing, now, until) {
                    Ok(pieces) => pieces,
                    Err(UpkeepError::Pieces(PiecesError::TooMany(count))) => {
                        prop_assert!(count > MAX_AHEAD);
                        continue;
                    }
                    Err(error) => return Err(TestCaseError::fail(format!("{error:?}"))),
                };
                for piece in pieces {
                    let ids = Edge::Id(piece.ids.start)..Edge::Id(piece.ids.end);
                    prop_assert!(ids.start < ids.end);
                    prop_assert!(partitions.iter().all(|(there, _)| there.end <= ids.start || ids.end <= there.start));
                    prop_assert!(whole_time(&layout, ids.start).is_some() && whole_time(&layout, ids.end).is_some());
                    partitions.push((ids, Vec::new()));
                }
                partitions.sort_unstable_by_key(|(ids, _)| ids.start);
                // Nothing is left to do.
                let existing: Vec<Range<Edge>> = partitions.iter().map(|(ids, _)| ids.clone()).collect();
                prop_assert_eq!(ahead(&layout, step, &existing, now, until), Ok(Vec::new()));

                if let Some(days) = call.retention_days {
                    let retention = Span::new(0, days, Micros(0)).unwrap();
                    let old = |ids: &Range<Edge>| age(&layout, ids, retention, Micros(SECOND), now) == Age::Old;
                    for (ids, rows) in partitions.extract_if(.., |(ids, _)| old(ids)) {
                        prop_assert!(rows.iter().all(|&row| retention.later(UnixMicros(row)) <= now), "{:?}", ids);
                        prop_assert!(ids.end < Edge::Id(first(now.0)));
                    }
                }
                for k in 0..8 {
                    let row = now.0 + (until.0 - 1 - now.0).max(0) / 7 * k;
                    let id = Edge::Id(layout.highest_id_until(UnixMicros(row)));
                    let holds = partitions.iter_mut().find(|(ids, _)| ids.contains(&id));
                    prop_assert!(holds.is_some(), "no partition for {}", UnixMicros(row));
                    holds.unwrap().1.push(row);
                }
            }
        }
    }
}
