//! A short soak with a fixed seed, short forms of the other histories, and the check of their records; `scripts/soak` runs long ones.

use snowflake_test::history::check::check;
use snowflake_test::registries::Kind;
use snowflake_test::seconds;
use snowflake_test::soak::{self, Scenario, Wanted};

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

/// Once or twice what `SCENARIO=... scripts/soak` repeats.
macro_rules! in_short {
    ($($test:ident: $scenario:ident, $registry:expr;)+) => {
        $( #[test] fn $test() { in_short(Scenario::$scenario, $registry); } )+
    };
}

in_short! {
    replicas_of_redis_are_promoted: Replicas, None;
    a_registry_fails_over_to_an_asynchronous_standby: Failover, None;
    members_of_etcd_are_replaced: Members, None;
    the_url_is_changed_by_a_reload: Url, Some(Kind::Redis);
    a_namespace_moves_to_another_registry: Switch, None;
    a_server_moves_between_two_namespaces: Namespaces, Some(Kind::Etcd);
    a_server_goes_back_to_before_its_first_number: Pitr, Some(Kind::Postgres);
    databases_are_copied: Template, Some(Kind::Redis);
    a_tag_ends_while_three_servers_hold_ranges: Ends, Some(Kind::Postgres);
    there_are_more_tags_than_places: Places, Some(Kind::Etcd);
    an_old_primary_comes_back: Promoted, Some(Kind::Redis);
    the_extension_in_sql_survives_a_storm: Sql, None;
}

fn in_short(scenario: Scenario, registry: Option<Kind>) {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let wanted = Wanted { seed: 1, length: seconds(8), faults: 2, ids: 1000, groups: 1, registry, record };
    soak::run_scenario(scenario, &wanted);
    for record in scenario.records(&wanted) {
        let report = check(&record).unwrap();
        println!("{report}");
        if !report.wrong.is_empty() {
            panic!("{report}\nthe record stays in {}", directory.keep().display());
        }
        assert!(report.all_faults() >= 2 && report.ids > 100, "{report}");
        // The extension in SQL has neither.
        assert!(scenario == Scenario::Sql || report.numbers > 100 && report.grants > 2, "{report}");
    }
}
