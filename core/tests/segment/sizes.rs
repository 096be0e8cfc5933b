//! How large a range is, and when it is asked for.

use super::*;

#[test]
fn a_range_is_sized_by_time_and_changes_by_no_more_than_twice() {
    let used = |count, seconds| Use { count, length: Micros::from_secs(seconds) };
    let next = |before, used| TERMS.next_size(BOUNDS, before, used);
    assert_eq!(next(100, used(80, 600)), 100, "it lasts as long as it should, with a quarter to spare");
    assert_eq!(next(100, used(100, 600)), 125);
    assert_eq!(next(100, used(60, 600)), 75);
    assert_eq!(next(100, used(100, 60)), 200, "twice");
    assert_eq!(next(100, used(100, 0)), 200);
    assert_eq!(next(100, used(1, 600)), 50, "half");
    assert_eq!(next(100, used(0, 0)), 50);
    assert_eq!((next(15, used(1, 600)), next(800, used(800, 1))), (10, 1000), "within the bounds");
    let huge = Sizes { smallest: 1, largest: u64::MAX };
    assert_eq!(TERMS.next_size(huge, u64::MAX, used(u64::MAX, 1)), u64::MAX);
}

/// The last minute tells where a sixteenth of the range, and four numbers, were taken in it.
#[test]
fn a_rate_is_the_higher_one() {
    let used = |count, seconds| Use { count, length: Micros::from_secs(seconds) };
    let whole = used(100, 600);
    let is_last = |count, seconds, size| TERMS.higher(whole, used(count, seconds), size) == used(count, seconds);
    assert!(is_last(20, 60, 160) && !is_last(20, 59, 160), "not a minute");
    assert!(is_last(11, 60, 176) && !is_last(11, 60, 192), "too few of the range");
    assert!(!is_last(3, 60, 10), "too few");
    assert!(!is_last(10, 60, 160) && !is_last(10, 600, 160), "no higher rate");
    assert!(TERMS.higher(used(1, 600), used(4, 60), 10) == used(4, 60));
}

#[test]
fn a_largest_range_is_proposed_by_what_is_used() {
    let used = |count, seconds| Use { count, length: Micros::from_secs(seconds) };
    assert_eq!(TERMS.large_enough(BOUNDS, used(1, 600)), 10_000);
    assert_eq!(TERMS.large_enough(BOUNDS, used(100, 1)), 75_000);
}

#[test]
fn waits_for_others_are_bounded() {
    let millis = Micros::from_millis;
    let spread = |lasts: Option<i64>, chance| RangeTerms::spread_after(lasts.map(Micros), chance).0;
    assert_eq!([spread(None, 60_000_000), spread(None, 60_000_001)], [60_000_000, 0]);
    assert_eq!([spread(Some(40), 20), spread(Some(40), 21), spread(Some(-7), 5)], [20, 0, 0]);
    assert_eq!(spread(Some(i64::MAX), 60_000_000), 60_000_000, "no longer than a look");
    let turn = |latency, chance| RangeTerms::turn_after(Micros(latency), chance).0;
    assert_eq!([turn(1000, 15_999), turn(1000, 16_000), turn(0, 15), turn(0, 16), turn(-5, 16)], [15_999, 0, 15, 0, 0]);
    assert_eq!(RangeTerms::gap(millis(4)), millis(12));
    assert_eq!([10, 100].map(|latency| RangeTerms::contention_lasts(millis(latency))), [millis(1000), millis(6400)]);
    assert!(RangeTerms::is_near_end(99, 10) && !RangeTerms::is_near_end(100, 10));
}

#[test]
fn a_range_is_due_when_what_is_left_does_not_last() {
    let used = |count, seconds| Use { count, length: Micros::from_secs(seconds) };
    assert!(TERMS.is_due(100, 100, used(10, 10)), "100 s");
    assert!(TERMS.is_due(749, 751, used(10, 10)) && !TERMS.is_due(750, 751, used(10, 10)));
    assert_eq!(TERMS.due_in(751, 751, used(10, 10)), Some(Micros::from_secs(1)));
    // Rarely used: a quarter is kept.
    assert!(!TERMS.is_due(3, 10, used(1, 8640)) && TERMS.is_due(2, 10, used(1, 8640)));
    assert_eq!(TERMS.due_in(4, 10, used(1, 8640)), Some(Micros::from_secs(2 * 8640)));
    assert!(!TERMS.is_due(10, 10, used(0, 100)) && TERMS.is_due(0, 10, used(0, 100)));
    assert_eq!(TERMS.due_in(10, 10, used(0, 100)), None);
    assert!(!TERMS.is_due(26, 100, used(1, 8640)) && TERMS.is_due(25, 100, used(1, 8640)));
    assert_eq!(TERMS.due_in(29, 100, used(1, 8640)), Some(Micros::from_secs(4 * 8640)));
}

/// A minute, less up to a fifth by chance.
#[test]
fn servers_do_not_look_together() {
    let looks = [0, 1, 11_999_999, 12_000_000, u64::MAX].map(RangeTerms::look_after);
    let minute = RangeTerms::LOOK_EVERY;
    assert_eq!((looks[0], looks[1], looks[3]), (minute, minute - Micros(1), minute));
    assert_eq!(looks[2], minute - Micros(11_999_999));
    assert!(looks.iter().all(|look| *look <= minute && *look >= minute - minute / 5), "{looks:?}");
}
