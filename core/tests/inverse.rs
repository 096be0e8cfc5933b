//! What a condition says of a time: every time that it accepts is within the bounds, in zones whose offset changes as none in the world does.

use proptest::prelude::*;
use snowflake_core::inverse::{Comparison, Kind, Span, Step, Value, Way, Zone, Zones};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;

/// A zone: the offset until the first change, and those from each change on.
#[derive(Clone, Debug)]
struct Changes(i64, Vec<(i64, i64)>);

impl Changes {
    fn at(&self, instant: i64) -> i64 {
        self.1.iter().rev().find(|(since, _)| *since <= instant).map_or(self.0, |&(_, offset)| offset)
    }

    fn local(&self, instant: i64) -> i64 {
        instant + self.at(instant)
    }

    /// PostgreSQL looks for a change near a local time, and takes the offset before it or after it.
    fn instant(&self, local: i64, later: bool) -> i64 {
        let [before, after] = [-DAY, DAY].map(|by| self.at(local + by));
        let both = [local - before, local - after];
        let fits: Vec<i64> = both.into_iter().filter(|&instant| self.local(instant) == local).collect();
        match (fits.is_empty(), later) {
            (true, true) | (false, false) => *fits.first().unwrap_or(&both[1]),
            (true, false) | (false, true) => *fits.last().unwrap_or(&both[0]),
        }
    }
}

impl Zones for Changes {
    fn offsets(&self, zone: Zone<'_>, since: i64, until: i64) -> Option<(i64, i64)> {
        assert_eq!(zone, Zone::Session);
        let within = self.1.iter().filter(|(at, _)| (since..=until).contains(at)).map(|&(_, offset)| offset);
        let all: Vec<i64> = within.chain([self.at(since)]).collect();
        Some((*all.iter().min()?, *all.iter().max()?))
    }
}

fn zones() -> impl Strategy<Value = Changes> {
    let offset = (-62i64..=62).prop_map(|quarters| quarters * HOUR / 4);
    let change = (-400i64..400, offset.clone()).prop_map(|(days, offset)| (days * DAY + 7 * HOUR, offset));
    (offset, prop::collection::vec(change, 0..5)).prop_map(|(first, mut changes)| {
        changes.sort_unstable();
        changes.dedup_by(|one, other| one.0 - other.0 < 5 * DAY);
        Changes(first, changes)
    })
}

fn unit() -> impl Strategy<Value = (&'static str, i64)> {
    prop::sample::select(vec![("hour", HOUR), ("day", DAY), ("minute", 60 * SECOND), ("milliseconds", 1000)])
}

fn comparison() -> impl Strategy<Value = Comparison> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    prop::sample::select(vec![Less, LessOrEqual, Equal, GreaterOrEqual, Greater])
}

fn accepts(comparison: Comparison, value: i64, other: i64) -> bool {
    match comparison {
        Comparison::Less => value < other,
        Comparison::LessOrEqual => value <= other,
        Comparison::Equal => value == other,
        Comparison::GreaterOrEqual => value >= other,
        Comparison::Greater => value > other,
    }
}

fn has(span: Span, instant: i64) -> bool {
    span.from.is_none_or(|from| from <= instant) && span.until.is_none_or(|until| instant <= until)
}

proptest! {
    #[test]
    fn a_day_in_a_zone_is_within_its_bounds(
        zone in zones(), instant in -500 * DAY..500 * DAY, near in any::<prop::sample::Index>(), by in -2 * HOUR..2 * HOUR,
        (unit, length) in unit(), comparison in comparison(), later in any::<bool>(), other in -2 * DAY..2 * DAY, same in any::<bool>(),
    ) {
        // Mostly near a change.
        let instant = if zone.1.is_empty() { instant } else { zone.1[near.index(zone.1.len())].0 + by * 20 };
        let local = zone.local(instant);
        let truncated = zone.instant(local - local.rem_euclid(length), later);
        let date = local.div_euclid(DAY);
        let (other, days) = if same { (0, 0) } else { (other, other / DAY) };
        for (steps, value, compared, arguments) in [
            (vec![Step::Instant, Step::Trunc, Step::Local], truncated, Value::Of(Kind::Instant, truncated + other),
                vec![Value::Text(unit.to_owned())]),
            (vec![Step::Date, Step::Local], date, Value::Of(Kind::Date, date + days), vec![]),
            (vec![Step::Local], local, Value::Of(Kind::Local, local + other), vec![]),
        ] {
            let compared_with = match compared { Value::Of(_, value) => value, _ => unreachable!() };
            let way = Way { steps, comparison };
            if accepts(comparison, value, compared_with) {
                let span = way.span(std::slice::from_ref(&compared), &arguments, &zone);
                prop_assert!(has(span, instant), "{way:?} {compared:?} {span:?} {instant}");
            }
            // Where the zone has no change, a day is read for a day.
            if zone.1.is_empty() && comparison == Comparison::Equal && other == 0 {
                let span = way.span(&[compared], &arguments, &zone);
                prop_assert!(span.until.unwrap() - span.from.unwrap() < DAY, "{way:?} {span:?}");
            }
        }
    }

    #[test]
    fn a_length_of_time_is_within_its_bounds(
        instant in -500 * DAY..500 * DAY, now in -500 * DAY..500 * DAY, days in -3i32..3, micros in -2 * DAY..2 * DAY,
        comparison in comparison(), other in -DAY..DAY,
    ) {
        let none = Changes(0, vec![]);
        let interval = Value::Interval { months: 0, days, micros };
        let length = i64::from(days) * DAY + micros;
        for (step, argument, value, compared) in [
            (Step::Until, Value::Of(Kind::Instant, now), now - instant, interval.clone()),
            (Step::Since, Value::Of(Kind::Instant, now), instant - now, interval.clone()),
            (Step::Plus, interval.clone(), instant + length, Value::Of(Kind::Instant, instant + length + other)),
            (Step::Minus, interval, instant - length, Value::Of(Kind::Instant, instant - length + other)),
        ] {
            let compared_with = match compared { Value::Of(_, value) => value, _ => length };
            let way = Way { steps: vec![step], comparison };
            let span = way.span(&[compared], &[argument], &none);
            prop_assert_eq!(accepts(comparison, value, compared_with), has(span, instant), "{:?} {:?}", way, span);
        }
    }

    #[test]
    fn decimals_are_between_their_millionths(whole in 0i64..9_000_000_000, fraction in "[0-9]{0,9}", negative in any::<bool>()) {
        let text = format!("{}{whole}.{fraction}", if negative { "-" } else { "" });
        let Value::Number(low, high) = Value::decimal(&text) else { panic!("{text}") };
        let exact: f64 = text.trim_end_matches('.').parse().unwrap();
        prop_assert!(low <= high && high - low <= 1, "{}", text);
        prop_assert!((low as f64 - exact * 1e6).abs() <= 2.0 && (high as f64 - exact * 1e6).abs() <= 2.0, "{}", text);
    }
}

#[test]
fn what_no_bound_is_known_for_has_none() {
    let none = Changes(0, vec![]);
    let span = |steps: &[Step], value: Value, arguments: &[Value]| {
        Way { steps: steps.to_vec(), comparison: Comparison::Equal }.span(&[value], arguments, &none)
    };
    let (day, text) = (Value::Of(Kind::Instant, 0), |unit: &str| Value::Text(unit.to_owned()));
    let month = Value::Interval { months: i32::MAX, days: 0, micros: 0 };
    let trunc = [Step::Instant, Step::Trunc, Step::Local];
    assert_eq!(span(&trunc, Value::Of(Kind::Instant, i64::MAX), &[text("day")]), Span::default());
    assert_eq!(span(&trunc, Value::Unknown, &[text("day")]), Span::default());
    assert_eq!(span(&trunc, day.clone(), &[text("fortnight")]).until, None);
    assert_eq!(span(&[Step::Plus], day.clone(), &[month]), Span::default());
    assert_eq!(span(&[Step::Year], day.clone(), &[]), Span::default(), "a year of an instant");
    assert_eq!(span(&[Step::Year, Step::Local], Value::decimal("NaN"), &[]), Span::default());
    assert_eq!(span(&[Step::Year, Step::Local], Value::decimal("-44"), &[]), Span::default());
    assert_eq!(span(&trunc, Value::Null, &[text("day")]), Span::default());
}

#[test]
fn years_and_months_begin_where_the_calendar_has_them() {
    let none = Changes(0, vec![]);
    let number = |text| Value::decimal(text);
    let year = Way { steps: vec![Step::Year, Step::Local], comparison: Comparison::Equal };
    for (text, first, next) in [("2000", 0, 366), ("2001", 366, 731), ("1999", -365, 0), ("1900", -36_524, -36_159)] {
        let span = Span { from: Some(first * DAY), until: Some(next * DAY - 1) };
        assert_eq!(year.span(&[number(text)], &[], &none), span, "{text}");
    }
    let month = |unit: &str, day: i64| {
        let before = Way { steps: vec![Step::Trunc, Step::Local], comparison: Comparison::Less };
        before.span(&[Value::Of(Kind::Local, day * DAY)], &[Value::Text(unit.to_owned())], &none).until.unwrap() / DAY
    };
    // Before March 2000: until February has ended, at most two days later.
    assert!((59..=61).contains(&month("month", 60)));
    assert!((90..=92).contains(&month("quarter", 91)));
    assert_eq!(month("year", 366), 365);
    assert_eq!(month("week", 9), 8);
}

#[test]
fn every_step_has_a_name_that_reads_back() {
    let names = "local local_in instant instant_in date midnight trunc bin round plus minus plus_days minus_days until since epoch year isoyear";
    for name in names.split(' ') {
        assert_eq!(name.parse::<Step>().unwrap().name(), name);
    }
    assert!("later".parse::<Step>().is_err());
}
