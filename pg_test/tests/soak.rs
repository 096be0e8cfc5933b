//! A short soak with a fixed seed; `make soak` runs long ones.

use snowflake_test::registries::Kind;
use snowflake_test::seconds;

#[test]
fn a_minute_of_faults() {
    survive(None);
}

#[test]
fn a_minute_of_faults_with_leases() {
    survive(Some(Kind::Redis));
}

fn survive(registry: Option<Kind>) {
    let report = snowflake_test::soak::run(20_261_120, seconds(55), 10, registry);
    let faults: usize = report.survived.values().sum();
    assert!(faults >= 10 && report.made > 10_000, "{report:?}");
}
