//! The rate of a processor's counter.

use proptest::prelude::*;
use snowflake_core::Micros;
use snowflake_core::counter::Rate;

const SECOND: i64 = 1_000_000_000;

/// What is allowed of a length of time by the rate of a counter of this frequency.
fn counts(hertz: u64, time: Micros) -> u64 {
    Rate::measured(hertz, SECOND, Some(hertz)).counts_in(time)
}

#[test]
fn slow_counters_have_a_fine_rate() {
    let millisecond = Micros::from_millis(1);
    // Of 64-bit Arm: 24, 24.576, 25 and 62.5 MHz, 1 GHz; then x86-64.
    for (hertz, expected) in [
        (24_000_000, 23_812),
        (24_576_000, 24_383),
        (25_000_000, 24_804),
        (62_500_000, 62_011),
        (1_000_000_000, 992_187),
        (2_400_000_000, 2_381_250),
        (5_000_000_000, 4_960_937),
    ] {
        assert_eq!(counts(hertz, millisecond), expected, "{hertz}");
    }
    // Slower than one count in a microsecond.
    assert_eq!(counts(32_768, millisecond), 32);
    assert_eq!(counts(500_000, Micros(10)), 4);
    assert_eq!(counts(500_000, Micros(2)), 0);
    assert_eq!(counts(24_000_000, Micros(0)), 0);
    assert_eq!(counts(24_000_000, Micros(-1)), 0);
}

#[test]
fn there_is_no_rate_before_it_is_measured_long_enough() {
    assert_eq!(Rate::measured(240_000, Rate::SHORTEST - 1, None), Rate::NONE);
    assert_eq!(Rate::measured(240_000, -SECOND, None), Rate::NONE);
    assert_ne!(Rate::measured(240_000, Rate::SHORTEST, None), Rate::NONE);
    assert_eq!(Rate::measured(0, SECOND, None), Rate::NONE);
    assert_eq!(Rate::measured(u64::MAX, Rate::SHORTEST, None), Rate::NONE);
    assert_eq!(Rate::NONE.counts_in(Micros(i64::MAX)), 0);
}

#[test]
fn a_counter_that_does_not_run_at_its_frequency_is_not_believed() {
    let hertz = 25_000_000;
    for (counts, believed) in [
        (24_804_687, false),
        (24_804_688, true),
        (25_000_000, true),
        (25_195_312, true),
        (25_195_313, false),
        (0, false),
        (1_000_000_000, false),
    ] {
        assert_eq!(Rate::measured(counts, SECOND, Some(hertz)) != Rate::NONE, believed, "{counts}");
    }
    // A frequency that nobody has set.
    assert_eq!(Rate::measured(25_000_000, SECOND, Some(0)), Rate::NONE);
}

proptest! {
    /// As long as fewer counts have passed than the rate says, the time cannot be over, though the clock by which it was measured was slewed.
    #[test]
    fn a_rate_is_never_too_fast_and_little_too_slow(
        hertz in 100_000_u64..6_000_000_000,
        measured_over in Rate::SHORTEST..1_000_000 * SECOND,
        slewed in -500_i64..=500,
        time in 1_i64..=1000,
    ) {
        let true_counts = |nanos: i64| u128::from(hertz) * u128::from(nanos.unsigned_abs()) / 1_000_000_000;
        let by_the_clock = measured_over + measured_over / 1_000_000 * slewed;
        let rate = Rate::measured(u64::try_from(true_counts(measured_over)).unwrap(), by_the_clock.max(Rate::SHORTEST), None);
        let allowed = u128::from(rate.counts_in(Micros(time)));
        let exact = true_counts(time * 1000);
        prop_assert!(allowed <= exact, "{allowed} of {exact}");
        prop_assert!(allowed + 1 >= exact - exact / 64 - u128::from(exact > 0), "{allowed} of {exact}");
        prop_assert_eq!(Rate::from_number(rate.to_number()), rate);
    }
}
