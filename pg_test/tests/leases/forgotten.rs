//! A registry that has forgotten what it had stored.

use crate::{leasing, registry, status, with_each_registry, worker};
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::query::{batch, next, value};
use snowflake_test::registries::Kind;
use snowflake_test::{Cluster, Options, Stop, seconds};
use std::time::Instant;

with_each_registry!(
    a_server_that_runs_goes_on_and_the_layout_stays_guarded,
    who_has_leased_before_waits_until_all_that_was_granted_is_over,
    an_operator_who_knows_better_ends_the_wait,
    a_namespace_that_nobody_used_is_leased_from_at_once,
);

/// A window of 3 s, and a lead of 4 s: so all that was granted is over 7 s after a loss.
pub fn short(options: Options) -> Options {
    options.set("pg_snowflake.registry_window = '3s'\npg_snowflake.max_lead = '4s'\npg_snowflake.max_wait = '200ms'")
}

/// Waits until a server can make IDs, without one that it could make before.
pub fn wait_for_ids(cluster: &Cluster) {
    wait_for("IDs are made", || cluster.client().query("SELECT snowflake_next()", &[]).is_ok());
}

/// The IDs of the two layouts would repeat each other.
fn a_server_that_runs_goes_on_and_the_layout_stays_guarded(kind: Kind) {
    let mut registry = registry(kind);
    let options = short(leasing(&registry.url()));
    let first = options.clone().set("pg_snowflake.layout = 'timestamp=41 worker=4 sequence=4'").start();
    wait_for_ids(&first);
    let before = worker(&mut first.client());
    registry.wipe();
    wait_for("the loss is noticed", || first.log().contains("the registry has lost the lease"));
    let start = Instant::now();
    while start.elapsed() < seconds(7) {
        next(&mut first.client());
    }
    assert_eq!(worker(&mut first.client()), before);
    let log = first.log();
    assert!(log.contains("the registry of worker IDs has forgotten what it had stored"), "{log}");
    let second = options.set("pg_snowflake.layout = 'timestamp=41 worker=3 sequence=5'").start();
    // Until the registry answers, that is what it says.
    wait_for("the error says why", || {
        let error = refused(&mut second.client(), "SELECT snowflake_next()", "55000");
        error.detail().unwrap().contains("is for the layout")
    });
}

fn who_has_leased_before_waits_until_all_that_was_granted_is_over(kind: Kind) {
    let mut registry = registry(kind);
    // One worker: whoever leases has the same.
    let options = short(leasing(&registry.url())).set("pg_snowflake.worker_id = 3").with_clock();
    let first = options.clone().start();
    wait_for_ids(&first);
    let second = options.start();
    refused(&mut second.client(), "SELECT snowflake_next()", "55000");
    // Its IDs are ahead of the time by nearly as much as may be.
    first.step_clock("+3s");
    // The end of the lease may have been nearer.
    wait_for_ids(&first);
    let mut lists = vec![batch(&mut first.client(), 1000)];
    wait_for("the lease is renewed", || {
        value(&mut first.client(), "SELECT granted_until > clock_timestamp() + interval '2 s' FROM snowflake_status()")
    });
    lists.push(batch(&mut first.client(), 1000));
    first.stop(Stop::Kill);
    registry.wipe();
    let start = Instant::now();
    // It was there before, and knows the namespace.
    wait_for("the second notices", || second.log().contains("no worker ID can be leased yet"));
    let error = refused(&mut second.client(), "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains("has forgotten what it had stored"), "{error:?}");
    wait_for_ids(&second);
    assert!(start.elapsed() > seconds(4), "{:?}", start.elapsed());
    lists.push(batch(&mut second.client(), 1000));
    check::distinct(&lists);
    check::rising(&lists.concat());
}

fn an_operator_who_knows_better_ends_the_wait(kind: Kind) {
    let mut registry = registry(kind);
    let cluster = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'").start();
    wait_for_ids(&cluster);
    let mut lists = vec![batch(&mut cluster.client(), 1000)];
    cluster.stop(Stop::Fast);
    registry.wipe();
    cluster.start();
    wait_for("it waits", || cluster.log().contains("no worker ID can be leased yet"));
    refused(&mut cluster.client(), "SELECT snowflake_next()", "55000");
    cluster.reload(&[("pg_snowflake.registry_trusted", "on")]);
    wait_for_ids(&cluster);
    lists.push(batch(&mut cluster.client(), 1000));
    check::distinct(&lists);
    // Off again, the lease goes on.
    cluster.reload(&[("pg_snowflake.registry_trusted", "off")]);
    assert_eq!(status(&mut cluster.client(), "lease"), "current");
    next(&mut cluster.client());
}

fn a_namespace_that_nobody_used_is_leased_from_at_once(kind: Kind) {
    let registry = registry(kind);
    let cluster = leasing(&registry.url()).set("pg_snowflake.max_wait = '10s'").start();
    next(&mut cluster.client());
    // Also by a server that knows others.
    cluster.append("postgresql.conf", "pg_snowflake.registry_namespace = 'new'\n");
    cluster.restart(Stop::Kill);
    next(&mut cluster.client());
    assert!(!cluster.log().contains("forgotten"), "{}", cluster.log());
}

/// What a server remembers of the namespace may be damaged, with the disk that it is on.
#[test]
fn what_cannot_be_read_of_the_memory_counts_as_a_loss() {
    let registry = registry(Kind::Redis);
    let server = short(leasing(&registry.url())).start();
    wait_for_ids(&server);
    let file = server.data().join("pg_snowflake.namespaces");
    let whole = std::fs::read(&file).unwrap();
    let losses = || server.log().matches("has forgotten what it had stored").count();
    assert_eq!(losses(), 0);
    let (length, zeros) = (whole.len(), vec![0; whole.len()]);
    let no_text = [&whole[..length - 2], b"\xff\n"].concat();
    for (count, damaged) in [&[][..], &zeros, &whole[..length - 3], &whole[1..], &no_text].into_iter().enumerate() {
        server.stop(Stop::Fast);
        std::fs::write(&file, damaged).unwrap();
        server.start();
        wait_for("it is noticed", || losses() > count);
    }
    // What cannot be read stays, and keeps nothing from being noted beside it.
    wait_for_ids(&server);
    let noted = std::fs::read(&file).unwrap();
    assert!(noted.starts_with(&no_text) && noted.ends_with(&whole), "{noted:?}");
    // Another namespace's line is no damage.
    let mut lines = b"00000000000000ff another\n".to_vec();
    lines.extend(&whole);
    server.stop(Stop::Fast);
    std::fs::write(&file, lines).unwrap();
    server.start();
    wait_for_ids(&server);
}
