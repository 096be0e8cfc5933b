//! A short soak with a fixed seed, and the check of its record; `make soak` runs long ones.

use snowflake_test::history::check::check;
use snowflake_test::registries::Kind;
use snowflake_test::seconds;
use snowflake_test::soak::{self, Wanted};

#[test]
fn a_minute_of_faults() {
    survive(None);
}

#[test]
fn a_minute_of_faults_with_leases() {
    survive(Some(Kind::Redis));
}

fn survive(registry: Option<Kind>) {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let seed = 20_261_120;
    let wanted = Wanted { seed, length: seconds(55), faults: 10, ids: 10_000, groups: 1, registry, record };
    soak::run(&wanted);
    let report = check(&wanted.record).unwrap();
    println!("{report}");
    if !report.wrong.is_empty() {
        panic!("{report}\nthe record stays in {}", directory.keep().display());
    }
    assert!(report.all_faults() >= 10 && report.ids > 10_000, "{report}");
    assert!(registry.is_none() || report.grants > 10, "{report}");
}
