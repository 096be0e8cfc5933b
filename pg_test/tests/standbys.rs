//! Standbys and backups of a server with several databases: what one of them gave, no other gives again.

use snowflake_test::given::{Given, loaded, narrow, server};
use snowflake_test::load::{self, stored};
use snowflake_test::{Cluster, Installation, Stop, check, millis};
use std::thread;

const SHORT: &str = "pg_snowflake.reserve_ahead = '500ms'";

/// Both databases give IDs, then one of them alone for longer than the other's reservation lasts.
fn one_falls_idle(cluster: &Cluster, given: &mut Given, idle: &str, busy: &str) {
    given.claim(cluster, idle, 100);
    given.claim(cluster, busy, 1500);
}

#[test]
fn a_standby_is_promoted_with_the_clock_back() {
    let databases = ["db1", "db2"];
    let primary = loaded(narrow().set(SHORT), &databases);
    let standby = primary.standby();
    let ((), mut record) = load::run_during_in(&databases, 3, || &primary, || thread::sleep(millis(700)));
    let ((), alone) = load::run_during_in(&["db2"], 3, || &primary, || thread::sleep(millis(1000)));
    record.add(alone);
    standby.catch_up_with(&primary);
    primary.stop(Stop::Kill);
    standby.step_clock("-100s");
    standby.promote();
    standby.next_once_up();
    // The database that was idle gives IDs first.
    for databases in [&["db1"][..], &databases[..]] {
        record.add(load::run_during_in(databases, 4, || &standby, || thread::sleep(millis(600))).1);
    }
    let count = record.check(&[&standby]);
    assert!(count > 1_000, "{count}");
    assert!(record.refused.is_empty(), "{:?}", record.refused);
}

#[test]
fn an_idle_database_of_a_promoted_standby_goes_on_above_the_others() {
    let primary = server(narrow(), &["db1", "db2"]);
    let standby = primary.standby();
    let mut given = Given::default();
    one_falls_idle(&primary, &mut given, "db1", "db2");
    standby.catch_up_with(&primary);
    primary.stop(Stop::Kill);
    standby.step_clock("-100s");
    standby.promote();
    standby.next_once_up();
    given.claim_past(&standby, "db1");
    given.claim_past(&standby, "db2");
    given.check();
}

#[test]
fn a_primary_is_rewound_and_promoted_again() {
    let first = server(narrow(), &["db1", "db2"]);
    let second = first.standby();
    let mut given = Given::default();
    given.claim(&first, "db1", 100);
    second.catch_up_with(&first);
    first.stop(Stop::Kill);
    second.step_clock("-100s");
    second.promote();
    second.next_once_up();
    one_falls_idle(&second, &mut given, "db1", "db2");
    first.rewind_to(&second);
    first.step_clock("-150s");
    first.start();
    first.catch_up_with(&second);
    second.stop(Stop::Kill);
    first.promote();
    first.next_once_up();
    given.claim_past(&first, "db1");
    given.claim_past(&first, "db2");
    given.check();
}

/// IDs that are in the backup, in whichever database, are not given again by any.
#[test]
fn a_base_backup_goes_on_above_what_it_has_stored() {
    let databases = ["db1", "db2"];
    let primary = loaded(narrow().set(SHORT), &databases);
    let copy = Cluster::empty(Installation::under_test(), true);
    let have_rows = || databases.iter().all(|database| stored(&primary, database).len() > 10);
    load::run_during_in(&databases, 2, || &primary, || check::wait_for("both databases have rows", have_rows));
    load::run_during_in(
        &["db2"],
        3,
        || &primary,
        || {
            thread::sleep(millis(1000));
            copy.copy_from(&primary, &["--max-rate=32M"]);
        },
    );
    primary.stop(Stop::Kill);
    copy.step_clock("-60s");
    copy.start();
    let mut given = Given(databases.map(|database| stored(&copy, database)).into());
    assert!(given.0.iter().all(|list| list.len() > 10), "the backup has the rows");
    given.claim_past(&copy, "db1");
    let have_more = || databases.iter().all(|database| stored(&copy, database).len() > 300);
    let ((), record) =
        load::run_during_in(&databases, 2, || &copy, || check::wait_for("both have more rows", have_more));
    record.check(&[&copy]);
    for (list, database) in given.0.iter_mut().zip(databases) {
        *list = stored(&copy, database);
    }
    given.check();
}
