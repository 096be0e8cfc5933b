//! When something is asked for: pauses, renewals, retries.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pauses_are_bounded(window in 1_i64..=86_400_000_000, count in 0_u32..=u32::MAX, chance: u64) {
        let terms = Terms { window: Micros(window), max_lead: Micros(0), ..TERMS };
        let third = window / 3;
        let renew = terms.renew_after(chance).0;
        prop_assert!(renew <= third && renew >= third - third / 5);
        let retry = terms.retry_after(count, chance);
        prop_assert!(retry.0 >= 50_000 && retry <= Terms::LONGEST_RETRY);
        prop_assert!(terms.contend_after(count, chance) <= Micros(1_024_000));
        let look = terms.look_after(chance);
        prop_assert!(look.0 >= 50_000 && look <= Terms::LONGEST_LOOK);
    }
}

#[test]
fn retries_grow_apart() {
    let least = |failures| (0..1000).map(|chance| TERMS.retry_after(failures, chance * 7919)).min().unwrap();
    let most = |failures| (0..1000).map(|chance| TERMS.retry_after(failures, chance * 7919)).max().unwrap();
    assert!(most(1) <= Micros(100_000) && least(10) >= Micros(2_500_000) && most(1000) <= Micros(5_000_000));
    assert!(Terms { max_lead: Micros::from_secs(59), ..TERMS }.leads_too_far());
    assert!(!TERMS.leads_too_far() && !Terms { max_lead: WINDOW, ..TERMS }.leads_too_far());
}

#[test]
fn a_grant_is_short_below_half_of_the_window() {
    let half = WINDOW / 2;
    assert_eq!((TERMS.is_short(half - Micros(1)), TERMS.is_short(half)), (true, false));
}

/// From some milliseconds up to a second, of which chance takes away all or nothing.
#[test]
fn who_was_slower_waits_and_longer_each_time() {
    let longest = [1, 2, 3, 8, 9, 10, u32::MAX].map(|conflicts| TERMS.contend_after(conflicts, 0).0);
    assert_eq!(longest, [4_000, 8_000, 16_000, 512_000, 1_024_000, 1_024_000, 1_024_000]);
    assert_eq!((TERMS.contend_after(3, 5_000), TERMS.contend_after(3, 16_000)), (Micros(11_000), Micros(0)));
}

/// The last quarter of the window, and not once the grant is over.
#[test]
fn a_grant_is_urgent_shortly_before_its_end() {
    let quarter = WINDOW / 4;
    for (left, is_urgent) in [
        (Micros(-1), false),
        (Micros(0), false),
        (Micros(1), true),
        (quarter - Micros(1), true),
        (quarter, false),
        (WINDOW, false),
    ] {
        assert_eq!(TERMS.is_urgent(left), is_urgent, "{left:?}");
    }
}

/// Two calls of a request about something else are over when the lease is next looked at.
#[test]
fn other_requests_have_the_time_that_the_lease_leaves() {
    let of = |millis| Terms::spare(Micros::from_millis(millis));
    assert_eq!((of(0), of(199)), (None, None));
    assert_eq!((of(200), of(20_000)), (Some(Micros::from_millis(100)), Some(Micros::from_millis(10_000))));
}
