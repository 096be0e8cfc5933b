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
    let last_before = |unit: &str, day: i64| {
        let before = Way { steps: vec![Step::Trunc, Step::Local], comparison: Comparison::Less };
        before.span(&[Value::Of(Kind::Local, day * DAY)], &[Value::Text(unit.to_owned())], &none).until.unwrap() / DAY
    };
    // Before March 2000: until February has ended.
    assert_eq!(last_before("month", 60), 59);
    assert_eq!(last_before("month", 61), 90);
    assert_eq!(last_before("quarter", 91), 90);
    assert_eq!(last_before("year", 366), 365);
    assert_eq!(last_before("year", 731), 730);
    assert_eq!(last_before("week", 9), 8);
}

#[test]
fn every_step_has_a_name_that_reads_back() {
    let names = "local local_in instant instant_in date midnight trunc bin round plus minus plus_days minus_days until since epoch year isoyear";
    for name in names.split(' ') {
        assert_eq!(name.parse::<Step>().unwrap().name(), name);
    }
    assert!("later".parse::<Step>().is_err());
}

/// A zone whose offset is the same all the while.
struct Fixed(i64);

impl Zones for Fixed {
    fn offsets(&self, _: Zone<'_>, since: i64, until: i64) -> Option<(i64, i64)> {
        assert_eq!(until - since, 6 * DAY, "three days on both sides");
        Some((self.0, self.0))
    }
}

/// Knows no zone.
struct Nowhere;

impl Zones for Nowhere {
    fn offsets(&self, _: Zone<'_>, _: i64, _: i64) -> Option<(i64, i64)> {
        None
    }
}

const UTC: Fixed = Fixed(0);

/// As PostgreSQL has them.
const FIRST: i64 = -211_813_488_000_000_000;
const LAST: i64 = 9_223_371_331_199_999_999;
/// The longest interval that is added.
const LONGEST: i64 = 100_000 * 366 * DAY;

fn between(from: i64, until: i64) -> Span {
    Span { from: Some(from), until: Some(until) }
}

fn interval(months: i32, days: i32, micros: i64) -> Value {
    Value::Interval { months, days, micros }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn instant(micros: i64) -> Value {
    Value::Of(Kind::Instant, micros)
}

/// By the text of a way.
fn span(way: &str, value: Value, arguments: &[Value], zones: &dyn Zones) -> Span {
    way.parse::<Way>().unwrap().span(&[value], arguments, zones)
}

#[test]
fn each_step_is_undone_exactly() {
    let date = |day| Value::Of(Kind::Date, day);
    let local = |micros| Value::Of(Kind::Local, micros);
    let days = |days| Value::Of(Kind::Days, days);
    let east = Fixed(2 * HOUR);
    for (way, value, arguments, zones, expected) in [
        ("local =", local(0), vec![], &east, between(-2 * HOUR, -2 * HOUR)),
        ("local_in =", local(0), vec![text("Europe/Berlin")], &east, between(-2 * HOUR, -2 * HOUR)),
        ("local_in =", local(0), vec![interval(0, 0, 3 * HOUR)], &east, between(-3 * HOUR, -3 * HOUR)),
        ("local_in =", local(0), vec![interval(0, 0, LONGEST)], &UTC, Span { from: None, until: Some(FIRST) }),
        ("local_in =", local(0), vec![interval(0, 0, LONGEST + 1)], &UTC, Span::default()),
        ("local_in =", local(0), vec![interval(0, 1, 0)], &UTC, Span::default()),
        ("local_in =", local(0), vec![interval(1, 0, 0)], &UTC, Span::default()),
        ("instant_in local =", instant(0), vec![text("Asia/Tokyo")], &east, between(0, 0)),
        ("instant_in local =", instant(HOUR), vec![interval(0, 0, HOUR)], &east, between(0, 0)),
        ("date local =", date(5), vec![], &east, between(5 * DAY - 2 * HOUR, 6 * DAY - 2 * HOUR - 1)),
        ("midnight date local >=", local(DAY + 1), vec![], &UTC, Span { from: Some(2 * DAY), until: None }),
        ("midnight date local >=", local(DAY), vec![], &UTC, Span { from: Some(DAY), until: None }),
        ("midnight date local <=", local(DAY - 1), vec![], &UTC, Span { from: None, until: Some(DAY - 1) }),
        ("date local <", local(DAY + 1), vec![], &UTC, Span { from: None, until: Some(2 * DAY - 1) }),
        ("date local <", instant(DAY - HOUR), vec![], &east, Span { from: None, until: Some(2 * DAY - 2 * HOUR - 1) }),
        ("local >", instant(7), vec![], &east, Span { from: Some(8), until: None }),
        ("local >", date(1), vec![], &UTC, Span { from: Some(DAY + 1), until: None }),
        ("instant local <=", local(DAY), vec![], &east, Span { from: None, until: Some(DAY - 2 * HOUR) }),
        ("instant local <=", date(1), vec![], &east, Span { from: None, until: Some(DAY - 2 * HOUR) }),
        ("bin =", instant(0), vec![interval(0, 0, HOUR)], &UTC, between(0, HOUR)),
        ("bin =", instant(0), vec![interval(0, 2, HOUR)], &UTC, between(0, 2 * DAY + HOUR)),
        ("bin =", instant(0), vec![interval(0, 0, 0)], &UTC, Span::default()),
        ("bin =", instant(0), vec![interval(1, 0, 0)], &UTC, Span::default()),
        ("round =", instant(0), vec![], &UTC, between(-SECOND, SECOND)),
        ("plus =", instant(0), vec![interval(0, 0, HOUR)], &UTC, between(-HOUR, -HOUR)),
        ("plus =", instant(0), vec![interval(0, 3, HOUR)], &east, between(-3 * DAY - HOUR, -3 * DAY - HOUR)),
        ("plus =", instant(0), vec![interval(1, 0, 0)], &UTC, between(-31 * DAY, -31 * DAY)),
        ("plus =", instant(HOUR), vec![interval(1, 0, 0)], &east, between(HOUR - 31 * DAY, HOUR - 31 * DAY)),
        ("plus local =", local(7), vec![interval(-1, 0, 0)], &UTC, between(31 * DAY + 7, 31 * DAY + 7)),
        // What ends in February 2000 began in the last three days of January.
        ("plus local =", local(59 * DAY + 7), vec![interval(1, 0, 0)], &UTC, between(28 * DAY + 7, 30 * DAY + 7)),
        ("minus =", instant(0), vec![interval(12, -1, 5)], &UTC, between(365 * DAY + 5, 365 * DAY + 5)),
        ("plus local =", local(LAST), vec![interval(-1_200_000, 0, 0)], &UTC, Span::default()),
        ("plus_days date local =", date(9), vec![days(2)], &UTC, between(7 * DAY, 8 * DAY - 1)),
        ("minus_days date local =", date(9), vec![days(2)], &UTC, between(11 * DAY, 12 * DAY - 1)),
        ("minus_days date local =", date(9), vec![interval(0, 2, 0)], &UTC, Span::default()),
        ("until date local =", days(2), vec![date(9)], &UTC, between(7 * DAY, 8 * DAY - 1)),
        ("since date local =", days(2), vec![date(9)], &UTC, between(11 * DAY, 12 * DAY - 1)),
        ("until <", interval(1, 1, 1), vec![instant(0)], &UTC, Span { from: Some(-31 * DAY), until: None }),
        ("since >=", interval(0, 0, HOUR), vec![instant(DAY)], &UTC, Span { from: Some(DAY + HOUR), until: None }),
        ("since >=", interval(0, 0, HOUR), vec![Value::Unknown], &UTC, Span::default()),
        ("epoch =", Value::decimal("946684800"), vec![], &UTC, between(-2, 2)),
        ("epoch =", Value::decimal("946684801.5"), vec![], &UTC, between(1_499_998, 1_500_002)),
        ("epoch =", days(946_684_801), vec![], &UTC, between(SECOND - 2, SECOND + 2)),
        ("epoch since =", Value::decimal("3600"), vec![instant(0)], &UTC, between(HOUR - 2, HOUR + 2)),
        ("isoyear local =", Value::decimal("2000"), vec![], &UTC, between(-4 * DAY, 370 * DAY - 1)),
        ("year local >=", Value::decimal("1999.5"), vec![], &UTC, Span { from: Some(0), until: None }),
        ("year local <=", Value::decimal("1999.5"), vec![], &UTC, Span { from: None, until: Some(-1) }),
        ("year local >=", Value::decimal("1"), vec![], &UTC, Span { from: Some(-730_119 * DAY), until: None }),
        ("year local >=", Value::decimal("0"), vec![], &UTC, Span::default()),
        ("year local <", Value::decimal("1"), vec![], &UTC, Span { from: None, until: Some(-730_119 * DAY - 1) }),
        ("year local >=", Value::decimal("199999"), vec![], &UTC, Span { from: Some(72_317_650 * DAY), until: None }),
        ("year local >=", Value::decimal("200000"), vec![], &UTC, Span::default()),
    ] {
        let found = span(way, value.clone(), &arguments, zones);
        assert_eq!(found, expected, "{way} {value:?} {arguments:?}");
    }
}

/// A day is added in the zone of the session: around a change of its offset, it is longer or shorter by that.
#[test]
fn a_day_is_as_long_as_the_zone_says() {
    let zone = Changes(0, vec![(10 * DAY, 2 * HOUR)]);
    let day = [interval(0, 1, 0)];
    let of = |way: &str, kind| span(way, Value::Of(kind, 10 * DAY + 12 * HOUR), &day, &zone);
    assert_eq!(of("plus >=", Kind::Instant).from, Some(9 * DAY + 10 * HOUR));
    assert_eq!(of("plus <=", Kind::Instant).until, Some(9 * DAY + 14 * HOUR));
    // A time without a zone knows nothing of that, but when it is: two hours before or none.
    assert_eq!(of("plus local >=", Kind::Local).from, Some(9 * DAY + 10 * HOUR));
    assert_eq!(of("plus local <=", Kind::Local).until, Some(9 * DAY + 12 * HOUR));
}

#[test]
fn what_is_farther_away_than_times_can_be_has_no_bound() {
    let at_least = |value| span("plus >=", value, &[interval(0, 0, 0)], &UTC).from;
    assert_eq!(
        [FIRST, FIRST + 1, LAST, i64::MAX - 1].map(|it| at_least(instant(it))),
        [None, Some(FIRST + 1), Some(LAST), Some(LAST)]
    );
    let at_most = |value| span("plus <=", value, &[interval(0, 0, 0)], &UTC).until;
    assert_eq!(
        [LAST, LAST - 1, FIRST, i64::MIN + 1].map(|it| at_most(instant(it))),
        [None, Some(LAST - 1), Some(FIRST), Some(FIRST)]
    );
    for infinite in [i64::MIN, i64::MAX] {
        assert_eq!(at_least(instant(infinite)), None);
        assert_eq!(span("local >=", Value::Of(Kind::Local, infinite), &[], &UTC), Span::default());
        assert_eq!(span("local >=", Value::Of(Kind::Date, infinite), &[], &UTC), Span::default());
        for zone in [Fixed(2 * HOUR), Fixed(-2 * HOUR)] {
            assert_eq!(span("round >=", Value::Of(Kind::Local, infinite), &[], &zone), Span::default());
            assert_eq!(span("round <=", Value::Of(Kind::Local, infinite), &[], &zone), Span::default());
        }
    }
    // A zone that nobody knows is at most 16 hours away.
    assert_eq!(span("local =", Value::Of(Kind::Local, 0), &[], &Nowhere), between(-16 * HOUR, 16 * HOUR));
    // The longest intervals that are added.
    let days = i32::try_from(LONGEST / DAY).unwrap();
    for (longest, longer) in [
        (interval(1_200_000, 0, 0), interval(1_200_001, 0, 0)),
        (interval(0, days, 0), interval(0, days + 1, 0)),
        (interval(0, 0, LONGEST), interval(0, 0, LONGEST + 1)),
        (interval(-1_200_000, 0, 0), interval(-1_200_001, 0, 0)),
        (interval(0, -days, 0), interval(0, -days - 1, 0)),
    ] {
        assert_ne!(
            span("plus local =", Value::Of(Kind::Local, 0), std::slice::from_ref(&longest), &UTC),
            Span::default(),
            "{longest:?}"
        );
        assert_eq!(
            span("plus local =", Value::Of(Kind::Local, 0), std::slice::from_ref(&longer), &UTC),
            Span::default(),
            "{longer:?}"
        );
    }
}

#[test]
fn decimals_are_read_to_the_millionth() {
    for (text, value) in [
        ("1.5", Value::Number(1_500_000, 1_500_000)),
        ("2.0000000", Value::Number(2_000_000, 2_000_000)),
        ("1.0000005", Value::Number(1_000_000, 1_000_001)),
        ("-1.0000005", Value::Number(-1_000_001, -1_000_000)),
        ("-3", Value::Number(-3_000_000, -3_000_000)),
        ("9000000000000", Value::Number(9_000_000_000_000_000_000, 9_000_000_000_000_000_000)),
        ("9000000000001", Value::Unknown),
        ("1e3", Value::Unknown),
        ("1.x", Value::Unknown),
        ("Infinity", Value::Unknown),
    ] {
        assert_eq!(Value::decimal(text), value, "{text}");
    }
}

#[test]
fn ranges_have_the_values_within() {
    let of = |value: i64| Some((Kind::Instant, value));
    let range = |from, until| Value::Between(Kind::Instant, from, until);
    assert_eq!(Value::between((of(5), true), (of(9), true)), range(Some(5), Some(9)));
    assert_eq!(Value::between((of(5), false), (of(9), false)), range(Some(6), Some(8)));
    assert_eq!(Value::between((None, false), (of(9), false)), range(None, Some(8)));
    assert_eq!(Value::between((of(5), true), (None, false)), range(Some(5), None));
    assert_eq!(Value::between((None, true), (None, true)), Value::Unknown);
    // From minus infinity on, and from infinity on.
    assert_eq!(Value::between((of(i64::MIN), true), (of(9), true)), range(None, Some(9)));
    assert_eq!(Value::between((of(i64::MAX), true), (None, true)), range(Some(LAST), None));
    assert_eq!(Value::between((of(5), true), (of(i64::MAX), false)), range(Some(5), None));
    assert_eq!(Value::between((None, true), (of(i64::MIN), true)), range(None, Some(FIRST)));
    assert_eq!(Value::between((of(FIRST), true), (of(LAST), true)), range(Some(FIRST), Some(LAST)));
    let kind = Value::Between(Kind::Date, Some(1), Some(2));
    assert_eq!(span("local =", kind, &[], &UTC), Span::default(), "of another kind");
    let instants = Value::Between(Kind::Instant, Some(1), Some(2));
    assert_eq!(span("plus =", instants, &[interval(0, 0, 0)], &UTC), between(1, 2));
}

#[test]
fn several_values_are_accepted_together() {
    let way: Way = "local =".parse().unwrap();
    let local = |micros| Value::Of(Kind::Local, micros);
    assert_eq!(way.span(&[local(5), Value::Null, local(-3), local(4)], &[], &UTC), between(-3, 5));
    assert_eq!(way.span(&[local(5), Value::Unknown], &[], &UTC), Span::default());
    assert_eq!(way.span(&[], &[], &UTC), Span::default());
}

#[test]
fn a_way_says_what_it_compares_and_which_bounds_there_are() {
    for (text, kind, bounds) in [
        ("date local <", Some(Kind::Date), (false, true)),
        ("date local <=", Some(Kind::Date), (false, true)),
        ("trunc local =", Some(Kind::Local), (true, true)),
        ("until >=", Some(Kind::Length), (false, true)),
        ("until >", Some(Kind::Length), (false, true)),
        ("until <", Some(Kind::Length), (true, false)),
        ("since date local >", None, (true, false)),
        ("until date local =", Some(Kind::Days), (true, true)),
        ("epoch until >=", Some(Kind::Number), (false, true)),
        ("epoch >=", Some(Kind::Number), (true, false)),
        ("year local >", Some(Kind::Number), (true, false)),
        ("date <", None, (false, true)),
        ("midnight local =", None, (true, true)),
    ] {
        let way: Way = text.parse().unwrap();
        let kind = if text == "since date local >" { Some(Kind::Days) } else { kind };
        assert_eq!((way.text().as_str(), way.kind(), way.bounds()), (text, kind, bounds));
    }
    for wrong in ["date local", "", "later <", "date local <>"] {
        assert!(wrong.parse::<Way>().is_err(), "{wrong}");
    }
}

/// The calendar, day by day.
fn each_day(mut look: impl FnMut(i64, i64, i64, i64)) {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut day = -146_097 - 36_524; // 1500-01-01
    for year in 1500..2510 {
        for month in 1..=12 {
            let length = match month {
                2 => 28 + i64::from(is_leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            for of_month in 1..=length {
                look(day, year, month, of_month);
                day += 1;
            }
        }
    }
}

#[test]
fn the_calendar_is_that_of_gregory() {
    let about = |way: &str, day: i64, arguments: &[Value]| {
        way.parse::<Way>().unwrap().about(day * DAY + HOUR, arguments, &UTC).unwrap()
    };
    let (mut of_year, mut of_quarter, mut of_month) = (0, 0, 0);
    each_day(|day, year, month, number| {
        if number == 1 {
            of_month = day;
            of_quarter = if month % 3 == 1 { day } else { of_quarter };
            of_year = if month == 1 { day } else { of_year };
        }
        if !(3..=27).contains(&number) {
            assert_eq!(about("year local =", day, &[]), year * SECOND, "{day}");
            for (unit, first) in [("month", of_month), ("quarters", of_quarter), ("YEAR", of_year), ("day", day)] {
                assert_eq!(about("trunc local =", day, &[text(unit)]), first * DAY, "{unit} {day}");
            }
        }
        if number == 1 && month == 1 {
            let year_of =
                |comparison| span(&format!("year local {comparison}"), Value::decimal(&year.to_string()), &[], &UTC);
            assert_eq!(year_of(">=").from, Some(day * DAY), "{year}");
        }
    });
}

#[test]
fn months_are_added_by_the_calendar() {
    let (mut days, mut months) = (Vec::new(), Vec::new());
    each_day(|day, year, month, number| {
        if number == 1 {
            months.push((year * 12 + month, day));
        }
        days.push((day, months.len() - 1, number));
    });
    let length = |at: usize| months[at + 1].1 - months[at].1;
    let first = days.partition_point(|&(_, month, _)| months[month].0 < 1895 * 12);
    let until = days.partition_point(|&(_, month, _)| months[month].0 < 2105 * 12);
    for by in [-25, -12, -1, 1, 2, 6, 13, 48] {
        // Which day becomes which: by the definition, one after the other.
        let made = |&(day, month, number): &(i64, usize, i64)| {
            let to = month.checked_add_signed(by).unwrap();
            (day, months[to].1 + number.min(length(to)) - 1)
        };
        let made: Vec<(i64, i64)> = days[first - 2000..until + 2000].iter().map(made).collect();
        for &(day, ..) in &days[first..until] {
            let at = Value::Of(Kind::Local, day * DAY + HOUR);
            let by = interval(by as i32, 0, 0);
            let from = made[made.partition_point(|&(_, to)| to < day)];
            let last = made[made.partition_point(|&(_, to)| to <= day) - 1];
            // Where no day becomes this one, all of the day before it is accepted, and all of the one after it.
            let from = from.0 * DAY + if from.1 == day { HOUR } else { 0 };
            let last = last.0 * DAY + if last.1 == day { HOUR } else { DAY - 1 };
            let found = |way: &str| span(way, at.clone(), std::slice::from_ref(&by), &UTC);
            assert_eq!(found("plus local >="), Span { from: Some(from), until: None }, "{by:?} {day}");
            assert_eq!(found("plus local <="), Span { from: None, until: Some(last) }, "{by:?} {day}");
        }
        for &(day, to) in &made {
            let about = "plus local =".parse::<Way>().unwrap().about(day * DAY, &[interval(by as i32, 0, 0)], &UTC);
            assert!((about.unwrap() - to * DAY).abs() <= 3 * DAY, "{by} {day}");
        }
    }
}

#[test]
fn units_are_as_long_as_they_are() {
    for (unit, longest) in [
        ("microseconds", 1),
        ("milliseconds", 1000),
        ("second", SECOND),
        ("minute", 60 * SECOND),
        ("hour", HOUR),
        ("day", DAY),
        ("week", 7 * DAY),
        ("month", 31 * DAY),
        ("quarter", 92 * DAY),
        ("year", 366 * DAY),
        ("decade", 3653 * DAY),
        ("century", 36_525 * DAY),
        ("millennium", 365_250 * DAY),
    ] {
        let way: Way = "trunc local <=".parse().unwrap();
        assert_eq!(way.grain(&[text(unit)]), longest, "{unit}");
        let until = way.span(&[Value::Of(Kind::Local, 0)], &[text(unit)], &UTC).until.unwrap();
        // 2000-01-01 is a Saturday: its week began on Monday. Its quarter has 91 days.
        let begins = match unit {
            "week" => -5 * DAY,
            "quarter" => -DAY,
            _ => 0,
        };
        assert_eq!(until, begins + longest - 1, "{unit}");
    }
    let grain = |way: &str, arguments: &[Value]| way.parse::<Way>().unwrap().grain(arguments);
    assert_eq!(grain("date local =", &[]), DAY);
    assert_eq!(grain("isoyear local =", &[]), 365 * DAY);
    assert_eq!(grain("year local =", &[]), 365 * DAY);
    assert_eq!(grain("bin =", &[interval(0, 2, HOUR)]), 2 * DAY + HOUR);
    assert_eq!(grain("trunc local =", &[text("fortnight")]), 1);
    assert_eq!(grain("plus =", &[interval(0, 2, HOUR)]), 1);
    assert_eq!(grain("bin plus date local =", &[interval(0, 2, 0), interval(0, 9, 0)]), 2 * DAY);
}

#[test]
fn the_last_of_a_month_is_made_of_several_days() {
    let joins = |way: &str, day: i64, arguments: &[Value]| {
        let kind = if way.starts_with("plus =") { Kind::Instant } else { Kind::Local };
        way.parse::<Way>().unwrap().joins_days(&[Value::Null, Value::Of(kind, day * DAY + HOUR)], arguments, &UTC)
    };
    let month = || vec![interval(1, 0, 0)];
    // February and April 2000 end on days 59 and 120.
    for (day, expected) in [(58, false), (59, true), (60, false), (120, true), (90, false)] {
        assert_eq!(joins("plus local =", day, &month()), expected, "{day}");
        assert_eq!(joins("plus =", day, &month()), expected, "{day}");
        assert_eq!(joins("minus local =", day, &[interval(-1, 0, 0)]), expected, "{day}");
        assert!(!joins("plus local =", day, &[interval(0, 30, 0)]), "{day}");
    }
    let days = |way: &str, day: i64, arguments: &[Value]| {
        way.parse::<Way>().unwrap().joins_days(&[Value::Of(Kind::Local, day * DAY)], arguments, &UTC)
    };
    assert!(days("plus midnight date local =", 59, &month()));
    assert!(!days("plus midnight date local =", 58, &month()));
    let of_month = [interval(1, 0, 0), text("month")];
    assert!(!days("plus trunc local =", 31, &of_month), "a month is what it is made of");
    assert!(!days("trunc local =", 31, &[text("month")]));
}

#[test]
fn what_is_made_of_an_instant_is_about_this() {
    let east = Fixed(2 * HOUR);
    for (way, instant, arguments, expected) in [
        ("local =", HOUR, vec![], 3 * HOUR),
        ("instant local =", HOUR, vec![], HOUR),
        ("date local =", DAY - HOUR, vec![], 1),
        ("date local =", -3 * HOUR, vec![], -1),
        ("midnight date local =", DAY - HOUR, vec![], DAY),
        ("trunc local =", DAY - HOUR, vec![text("hour")], DAY + HOUR),
        ("trunc local =", -DAY, vec![text("week")], -5 * DAY),
        ("bin =", 5, vec![interval(0, 0, 3)], 5),
        ("round =", 5, vec![], 5),
        ("plus =", HOUR, vec![interval(0, 1, 6)], DAY + HOUR + 6),
        ("minus =", HOUR, vec![interval(0, 1, 6)], HOUR - DAY - 6),
        ("until =", HOUR, vec![Value::Of(Kind::Instant, 3 * HOUR)], 2 * HOUR),
        ("since =", HOUR, vec![Value::Of(Kind::Instant, 3 * HOUR)], -2 * HOUR),
        ("epoch =", SECOND, vec![], 946_684_801 * SECOND),
        ("plus minus =", HOUR, vec![interval(0, 0, 8), interval(0, 0, 4)], HOUR + 4),
        ("isoyear local =", 400 * DAY, vec![], 2001 * SECOND),
    ] {
        let found = way.parse::<Way>().unwrap().about(instant, &arguments, &east);
        assert_eq!(found, Some(expected), "{way} {instant} {arguments:?}");
    }
    let none = |way: &str, arguments: &[Value]| way.parse::<Way>().unwrap().about(0, arguments, &UTC);
    assert_eq!(none("trunc local =", &[text("fortnight")]), None);
    assert_eq!(none("plus =", &[]), None);
    assert_eq!(none("date =", &[]), None);
}
