//! Registries that fail over, and what of them is visible and not durable.

use crate::{leasing, registry, status};
use postgres::Client;
use snowflake_test::check::{self, wait_for};
use snowflake_test::query::{batch, next, value};
use snowflake_test::registries::{Kind, Setup};
use snowflake_test::{Cluster, seconds};
use std::time::Instant;

/// An administrator ends all waits for a standby. Returns how many there were.
fn cancel_waits(client: &mut Client) -> i64 {
    value(client, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
}

fn granted_until(cluster: &Cluster) -> String {
    status(&mut cluster.client(), "granted_until")
}

/// Whether the server can make an ID now.
fn makes_ids(cluster: &Cluster) -> bool {
    cluster.client().query("SELECT snowflake_next()", &[]).is_ok()
}

#[test]
fn a_commit_whose_wait_was_cancelled_grants_nothing() {
    let registry = registry(Kind::Postgres);
    let options = leasing(&registry.url()).set("pg_snowflake.registry_window = '6s'\npg_snowflake.max_wait = '100ms'");
    let first = options.clone().start();
    let ids = batch(&mut first.client(), 100);
    registry.cluster().reload(&[("synchronous_standby_names", "nobody")]);
    let second = options.start();
    let mut administrator = registry.cluster().client();
    let before = granted_until(&first);
    let (mut cancelled, start) = (0, Instant::now());
    wait_for("many waits are cancelled", || {
        cancelled += cancel_waits(&mut administrator);
        assert_eq!(status(&mut second.client(), "lease"), "none", "after {cancelled} cancels");
        assert_eq!(granted_until(&first), before, "after {cancelled} cancels");
        cancelled >= 10 && start.elapsed() > seconds(8)
    });
    assert!(!makes_ids(&first) && !makes_ids(&second), "all grants are over");
    registry.cluster().reload(&[("synchronous_standby_names", "")]);
    for cluster in [&first, &second] {
        wait_for("IDs are made", || makes_ids(cluster));
    }
    check::distinct(&[ids, batch(&mut first.client(), 100), batch(&mut second.client(), 100)]);
}

#[test]
fn what_no_replica_has_received_is_no_renewal() {
    let registry = registry(Kind::Redis);
    let port = registry.port().to_string();
    let mut replica = Setup::of(Kind::Redis).argument("--replicaof").argument("127.0.0.1").argument(&port).start();
    wait_for("the replica is in step", || registry.redis_cli(&["info", "replication"]).contains("state=online"));
    let cluster = leasing(&format!("{}?wait_replicas=1", registry.url()))
        .set("pg_snowflake.registry_window = '6s'\npg_snowflake.max_wait = '100ms'")
        .start();
    next(&mut cluster.client());
    replica.kill();
    // A renewal may have been under way.
    let (before, start) = (granted_until(&cluster), Instant::now());
    let mut ends = vec![before];
    while start.elapsed() < seconds(9) {
        let until = granted_until(&cluster);
        if ends.last() != Some(&until) {
            ends.push(until);
        }
    }
    assert!(ends.len() <= 2, "{ends:?}");
    assert!(!makes_ids(&cluster), "the grant is over");
    replica.start();
    wait_for("IDs are made", || makes_ids(&cluster));
}
