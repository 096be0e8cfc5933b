//! Servers with leases whose clocks are wrong.

use crate::{leasing, registry, worker};
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::query::{batch, value};
use snowflake_test::registries::Kind;
use snowflake_test::{Cluster, Stop};

const YEAR_AHEAD: &str = "+31536000s";

fn makes_ids(cluster: &Cluster) -> bool {
    cluster.client().query("SELECT snowflake_next()", &[]).is_ok()
}

/// The registry has a clock, too, or leases that are renewed.
fn a_wrong_clock_at_the_start_takes_no_lease(kind: Kind) {
    let registry = registry(kind);
    let options = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'");
    let other = options.clone().start();
    wait_for("the other makes IDs", || makes_ids(&other));
    let cluster = options.with_clock().start();
    wait_for("IDs are made", || makes_ids(&cluster));
    let before = batch(&mut cluster.client(), 100);
    cluster.stop(Stop::Fast);
    cluster.step_clock(YEAR_AHEAD);
    cluster.start();
    wait_for("the clock is not believed", || cluster.log().contains("ahead of what the registry knows"));
    let error = refused(&mut cluster.client(), "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains("ahead of what the registry knows"), "{error:?}");
    cluster.step_clock("+0s");
    wait_for("IDs are made", || makes_ids(&cluster));
    let ahead = "SELECT max(granted_until) < now() + interval '1 day' FROM snowflake_workers()";
    assert!(value::<bool>(&mut cluster.client(), ahead));
    check::distinct(&[before, batch(&mut cluster.client(), 100), batch(&mut other.client(), 100)]);
}

#[test]
fn a_wrong_clock_at_the_start_takes_no_lease_by_the_time_of_the_registry() {
    for kind in [Kind::Postgres, Kind::Redis] {
        a_wrong_clock_at_the_start_takes_no_lease(kind);
    }
}

#[test]
fn a_wrong_clock_at_the_start_takes_no_lease_by_the_leases_of_others() {
    a_wrong_clock_at_the_start_takes_no_lease(Kind::Etcd);
}

#[test]
fn a_worker_that_was_leased_a_year_ahead_is_free_after_a_rewind() {
    let registry = registry(Kind::Etcd);
    let options = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'\npg_snowflake.worker_id = 3");
    let cluster = options.with_clock().create();
    cluster.step_clock(YEAR_AHEAD);
    cluster.start();
    cluster.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    wait_for("IDs are made", || makes_ids(&cluster));
    cluster.stop(Stop::Kill);
    cluster.step_clock("+0s");
    cluster.start();
    wait_for("the worker is far ahead", || cluster.log().contains("far ahead of the clock, by"));
    assert!(!makes_ids(&cluster));
    // Nothing with an ID of that time is kept.
    cluster.client().batch_execute("SELECT snowflake_rewind(snowflake_min_id(now()))").unwrap();
    wait_for("IDs are made", || makes_ids(&cluster));
    let mut client = cluster.client();
    assert_eq!(worker(&mut client), 3);
    let ahead = "SELECT snowflake_timestamp(snowflake_next()) < now() + interval '1 min' AND \
                 granted_until < now() + interval '1 day' FROM snowflake_status()";
    assert!(value::<bool>(&mut client, ahead));
    assert!(cluster.log().contains("worker ID 3 is free again from"), "{}", cluster.log());
    drop(client);
    // For good.
    cluster.restart(Stop::Kill);
    wait_for("IDs are made", || makes_ids(&cluster));
}
