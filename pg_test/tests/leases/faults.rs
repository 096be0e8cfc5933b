//! A registry that is away, slow, wiped, or refuses.

use crate::{leasing, registry, secret_file, status, with_each_registry, worker};
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::query::{batch, next};
use snowflake_test::registries::{Kind, Setup};
use snowflake_test::{Stop, seconds};
use std::thread;
use std::time::Instant;

with_each_registry!(
    an_outage_shorter_than_the_window_stops_nobody,
    an_outage_longer_than_the_window_stops_ids_until_it_is_over,
    a_registry_that_is_slow,
    a_registry_that_was_wiped,
    a_registry_that_is_away_at_the_start,
    a_wrong_password,
    another_layout_in_the_namespace,
    a_stop_of_the_server_does_not_wait_for_a_registry_that_hangs,
);

fn an_outage_shorter_than_the_window_stops_nobody(kind: Kind) {
    let mut registry = registry(kind);
    let cluster = leasing(&registry.url()).set("pg_snowflake.registry_window = '15s'").start();
    let mut client = cluster.client();
    let first = worker(&mut client);
    registry.kill();
    let start = Instant::now();
    let mut ids = Vec::new();
    while start.elapsed() < seconds(6) {
        ids.extend(batch(&mut client, 10));
    }
    registry.start();
    wait_for("the lease is renewed", || status(&mut client, "registry_error").is_empty());
    ids.extend(batch(&mut client, 10));
    assert_eq!(worker(&mut client), first);
    check::rising(&ids);
    assert!(cluster.log().contains("WARNING:  the registry of worker IDs does not answer"), "{}", cluster.log());
}

fn an_outage_longer_than_the_window_stops_ids_until_it_is_over(kind: Kind) {
    let mut registry = registry(kind);
    let cluster = leasing(&registry.url())
        .set("pg_snowflake.registry_window = '3s'\npg_snowflake.max_wait = '1s'\npg_snowflake.max_burst = 0")
        .start();
    let mut client = cluster.client();
    let mut lists = vec![batch(&mut client, 100)];
    registry.kill();
    wait_for("the lease ends", || client.query("SELECT snowflake_next()", &[]).is_err());
    let error = refused(&mut client, "SELECT snowflake_next()", "55000");
    assert_eq!(error.message(), "this server has no lease of a worker ID");
    assert!(error.detail().unwrap().contains("The last lease allows IDs up to"), "{error:?}");
    assert!(error.detail().unwrap().contains("registry cannot be reached"), "{error:?}");
    wait_for("the state is shown", || status(&mut client, "lease") == "expired");
    assert!(status(&mut client, "registry_error").contains("127.0.0.1"));
    registry.start();
    wait_for("IDs go on", || client.query("SELECT snowflake_next()", &[]).is_ok());
    lists.push(batch(&mut client, 100));
    check::rising(&lists.concat());
    let log = cluster.log();
    for line in ["the registry of worker IDs does not answer", "has ended before it was renewed", "answers again"] {
        assert!(log.contains(line), "{line}: {log}");
    }
    let outage = log.split("answers again").next().unwrap();
    assert_eq!(outage.matches("the registry of worker IDs does not answer").count(), 1, "at most once a minute");
}

fn a_registry_that_is_slow(kind: Kind) {
    let registry = registry(kind);
    let cluster = leasing(&registry.url()).set("pg_snowflake.registry_window = '12s'").start();
    let mut client = cluster.client();
    let mut ids = batch(&mut client, 10);
    let start = Instant::now();
    while start.elapsed() < seconds(10) {
        registry.pause();
        thread::sleep(seconds(3));
        registry.resume();
        ids.extend(batch(&mut client, 10));
    }
    check::rising(&ids);
}

fn a_registry_that_was_wiped(kind: Kind) {
    let mut registry = registry(kind);
    let cluster = leasing(&registry.url()).set("pg_snowflake.registry_window = '3s'").start();
    let mut client = cluster.client();
    let mut ids = batch(&mut client, 10);
    let first = worker(&mut client);
    registry.wipe();
    wait_for("the loss is noticed", || cluster.log().contains("the registry has lost the lease"));
    ids.extend(batch(&mut client, 10));
    assert_eq!(worker(&mut client), first);
    check::rising(&ids);
}

fn a_registry_that_is_away_at_the_start(kind: Kind) {
    let mut registry = registry(kind);
    registry.kill();
    let cluster = leasing(&registry.url()).set("pg_snowflake.max_wait = '1s'").start();
    let mut client = cluster.client();
    let error = refused(&mut client, "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains("cannot be reached"), "{error:?}");
    registry.start();
    wait_for("IDs are made", || client.query("SELECT snowflake_next()", &[]).is_ok());
    next(&mut client);
}

fn a_wrong_password(kind: Kind) {
    let registry = Setup::of(kind).password("right").start();
    let (scheme, address) = (kind.scheme(false), registry.address());
    let url = format!("{scheme}://{}:wrong@{address}", kind.user());
    let cluster = leasing(&url).set("pg_snowflake.max_wait = '1s'").start();
    let mut client = cluster.client();
    wait_for("the error says why", || {
        let error = refused(&mut client, "SELECT snowflake_next()", "55000");
        error.detail().is_some_and(|detail| detail.contains("refuses the credentials"))
    });
    assert!(!cluster.log().contains("wrong"), "{}", cluster.log());
    // By a file, and a reload.
    let file = secret_file(&cluster, "right");
    cluster.reload(&[("pg_snowflake.registry_password_file", file.to_str().unwrap())]);
    wait_for("IDs are made", || client.query("SELECT snowflake_next()", &[]).is_ok());
}

fn another_layout_in_the_namespace(kind: Kind) {
    let registry = registry(kind);
    let first = leasing(&registry.url()).start();
    next(&mut first.client());
    let options = || leasing(&registry.url()).set("pg_snowflake.max_wait = '1s'\npg_snowflake.layout = 'twitter'");
    let second = options().start();
    let error = refused(&mut second.client(), "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains("is for the layout"), "{error:?}");
    let third = options().set("pg_snowflake.registry_namespace = 'of twitter''s'").start();
    next(&mut third.client());
}

fn a_stop_of_the_server_does_not_wait_for_a_registry_that_hangs(kind: Kind) {
    let registry = registry(kind);
    let cluster = leasing(&registry.url()).start();
    next(&mut cluster.client());
    registry.pause();
    let start = Instant::now();
    cluster.stop(Stop::Fast);
    assert!(start.elapsed() < seconds(30));
    assert!(cluster.log().contains("could not be given back in time"), "{}", cluster.log());
    registry.resume();
}
