//! A short soak with a fixed seed; `make soak` runs long ones.

use snowflake_test::seconds;

#[test]
fn a_minute_of_faults() {
    let report = snowflake_test::soak::run(20_261_120, seconds(55), 10);
    let faults: usize = report.survived.values().sum();
    assert!(faults >= 10 && report.made > 10_000, "{report:?}");
}
