//! The short form of the model check: see `snowflake_model::check`.

use snowflake_model::check::{Check, Manner, run, suite};
use snowflake_model::segments;
use std::time::Duration;

fn all(is_wanted: impl Fn(&Check) -> bool) {
    let wanted: Vec<_> = suite().into_iter().filter(|check| check.is_short && is_wanted(check)).collect();
    let wrong: Vec<_> =
        wanted.iter().filter(|check| !run(check, &Manner::default()).is_right).map(|check| check.name).collect();
    assert!(wanted.len() > 5, "there are too few checks");
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn no_id_repeats_whatever_happens() {
    all(|check| check.is_safe);
}

#[test]
fn an_id_repeats_where_a_rule_is_broken() {
    all(|check| !check.is_safe);
}

#[test]
fn no_number_of_a_segment_repeats_but_where_a_rule_is_broken() {
    let wanted: Vec<_> = segments::suite().into_iter().filter(|check| check.is_short).collect();
    let is_wrong = |check: &&segments::Check| !segments::run(check, &Manner::default()).is_right;
    let wrong: Vec<_> = wanted.iter().filter(is_wrong).map(|check| check.name).collect();
    assert!(wanted.iter().filter(|check| check.is_safe).count() > 5, "there are too few checks");
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Not every state was seen then, so that no ID repeated says nothing.
#[test]
fn a_check_that_is_cut_off_is_not_right() {
    let check = suite().into_iter().find(|check| check.name == "crash, 2 workers").unwrap();
    assert!(!run(&check, &Manner { longest: Duration::ZERO, ..Manner::default() }).is_right);
}
