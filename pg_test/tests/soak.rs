//! A short soak with a fixed seed; `make soak` runs long ones.

use std::time::Duration;

#[test]
fn a_minute_of_faults() {
    let report = snowflake_test::soak::run(20_261_120, Duration::from_secs(55));
    let faults: usize = report.survived.values().sum();
    assert!(faults >= 10 && report.made > 10_000, "{report:?}");
}
