//! The life of one server.

use crate::{leasing, registry, status, with_each_registry, worker};
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::query::{batch, next, value};
use snowflake_test::registries::Kind;
use snowflake_test::{Stop, seconds};
use std::time::Instant;

with_each_registry!(
    a_worker_is_leased_listed_and_given_back,
    a_restart_has_the_same_worker_and_no_gap,
    a_server_that_was_killed_has_another_worker_at_once,
    the_crash_of_a_session_changes_nothing,
    the_crash_of_a_session_while_the_registry_is_away,
    the_process_can_be_terminated,
    a_lease_is_renewed,
);

fn a_worker_is_leased_listed_and_given_back(kind: Kind) {
    let registry = registry(kind);
    let cluster = leasing(&registry.url()).set("cluster_name = 'shop'").start();
    let mut client = cluster.client();
    let worker = worker(&mut client);
    assert_eq!(status(&mut client, "lease"), "current");
    assert_eq!(status(&mut client, "registry_error"), "");
    assert!(value::<bool>(&mut client, "SELECT granted_until > now() FROM snowflake_status()"));
    let list =
        "SELECT worker_id || ' ' || state || ' ' || cluster_name || ' ' || is_this_server FROM snowflake_workers()";
    assert_eq!(value::<String>(&mut client, list), format!("{worker} current shop true"));
    let own = "SELECT system_identifier = (SELECT system_identifier FROM pg_control_system())
                      AND data_directory = current_setting('data_directory') AND host <> ''
                      AND granted_until > now() FROM snowflake_workers()";
    assert!(value::<bool>(&mut client, own));
    assert!(cluster.log().contains(&format!("leased worker ID {worker} up to")));
    cluster.stop(Stop::Fast);
    assert!(cluster.log().contains(&format!("gave worker ID {worker} back")), "{}", cluster.log());

    // Another server sees that.
    let other = leasing(&registry.url()).start();
    let mut client = other.client();
    next(&mut client);
    let list = format!("SELECT state || ' ' || cluster_name FROM snowflake_workers() WHERE worker_id = {worker}");
    assert_eq!(value::<String>(&mut client, &list), "given back shop");
}

fn a_restart_has_the_same_worker_and_no_gap(kind: Kind) {
    let registry = registry(kind);
    let cluster = leasing(&registry.url()).start();
    let (mut ids, mut workers) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let mut client = cluster.client();
        ids.extend(batch(&mut client, 100));
        workers.push(worker(&mut client));
        let lead = "SELECT extract(epoch FROM lead)::float8 FROM snowflake_status()";
        assert!(value::<f64>(&mut client, lead) < 1.0);
        drop(client);
        cluster.restart(Stop::Fast);
    }
    check::rising(&ids);
    assert!(workers.iter().all(|worker| *worker == workers[0]), "{workers:?}");
}

fn a_server_that_was_killed_has_another_worker_at_once(kind: Kind) {
    let registry = registry(kind);
    let cluster = leasing(&registry.url()).start();
    let mut lists = vec![batch(&mut cluster.client(), 1000)];
    let first = worker(&mut cluster.client());
    for how in [Stop::Kill, Stop::Immediate] {
        cluster.restart(how);
        let start = Instant::now();
        lists.push(batch(&mut cluster.client(), 1000));
        // Long before the lease of the run before ends.
        assert!(start.elapsed() < seconds(20));
    }
    assert_ne!(worker(&mut cluster.client()), first);
    check::distinct(&lists);
}

fn the_crash_of_a_session_changes_nothing(kind: Kind) {
    let registry = registry(kind);
    let cluster = leasing(&registry.url()).start();
    let mut lists = vec![batch(&mut cluster.client(), 1000)];
    let first = worker(&mut cluster.client());
    for _ in 0..2 {
        cluster.crash_session("postgres");
        lists.push(batch(&mut cluster.client_once_up("postgres"), 1000));
        let mut client = cluster.client();
        assert_eq!(worker(&mut client), first);
        // The line goes on above the reservation, not above the lease.
        assert!(value::<f64>(&mut client, "SELECT extract(epoch FROM lead)::float8 FROM snowflake_status()") < 5.0);
    }
    check::distinct(&lists);
    check::rising(&lists.concat());
}

/// The grant survives, as the token does.
fn the_crash_of_a_session_while_the_registry_is_away(kind: Kind) {
    let mut registry = registry(kind);
    let cluster = leasing(&registry.url()).set("pg_snowflake.max_wait = '5s'").start();
    let mut lists = vec![batch(&mut cluster.client(), 1000)];
    let first = worker(&mut cluster.client());
    let until = status(&mut cluster.client(), "granted_until");
    registry.kill();
    for _ in 0..2 {
        cluster.crash_session("postgres");
        lists.push(batch(&mut cluster.client_once_up("postgres"), 1000));
        let mut client = cluster.client();
        assert_eq!(worker(&mut client), first);
        assert_eq!(status(&mut client, "granted_until"), until);
        assert_eq!(status(&mut client, "lease"), "current");
    }
    registry.start();
    wait_for("the lease is renewed", || status(&mut cluster.client(), "granted_until") > until);
    assert_eq!(worker(&mut cluster.client()), first);
    lists.push(batch(&mut cluster.client(), 1000));
    check::distinct(&lists);
    check::rising(&lists.concat());
}

fn the_process_can_be_terminated(kind: Kind) {
    let registry = registry(kind);
    let cluster = leasing(&registry.url()).set("pg_snowflake.registry_window = '10s'").start();
    let mut client = cluster.client();
    let first = worker(&mut client);
    let until = "SELECT granted_until::text FROM snowflake_status()";
    let mut ids = Vec::new();
    for _ in 0..2 {
        let before: String = value(&mut client, until);
        let terminate =
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'pg_snowflake lease'";
        assert_eq!(value::<i64>(&mut client, terminate), 1);
        ids.extend(batch(&mut client, 100));
        wait_for("a new process renews the lease", || value::<String>(&mut client, until) > before);
        ids.extend(batch(&mut client, 100));
        assert_eq!(worker(&mut client), first);
    }
    check::rising(&ids);
    assert!(!cluster.log().contains("back, used up to"), "{}", cluster.log());
}

fn a_lease_is_renewed(kind: Kind) {
    let registry = registry(kind);
    let cluster = leasing(&registry.url()).set("pg_snowflake.registry_window = '2s'").start();
    let mut client = cluster.client();
    let start = Instant::now();
    let mut ids = Vec::new();
    while start.elapsed() < seconds(6) {
        ids.extend(batch(&mut client, 10));
    }
    check::rising(&ids);
    assert_eq!(value::<i64>(&mut client, "SELECT errors FROM snowflake_status()"), 0);
}

/// As the harness promises: on every major, those that the postmaster starts later have it, too.
#[test]
fn all_processes_have_one_clock() {
    let registry = registry(Kind::Redis);
    let cluster = leasing(&registry.url()).set("pg_snowflake.registry_window = '3s'").with_clock().start();
    let mut client = cluster.client();
    next(&mut client);
    let is_ahead = "SELECT granted_until > clock_timestamp() FROM snowflake_status()";
    for offset in ["+8s", "+16s", "+24s"] {
        cluster.step_clock(offset);
        wait_for("the lease is ahead of the clock that was set", || value(&mut client, is_ahead));
    }
    // What a file can say.
    let true_time = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    for (offset, expected) in [("+2y", 2.0 * 365.0 * 86400.0), ("-0.5s", -0.5), ("-9m", -540.0), ("+1.25s", 1.25)] {
        cluster.step_clock(offset);
        let clock: f64 = value(&mut client, "SELECT extract(epoch FROM clock_timestamp())::float8");
        assert!((clock - true_time() - expected).abs() < 0.2, "{offset}: {clock}");
    }
    cluster.step_clock("2077-07-07 07:07:07");
    assert!(value::<bool>(&mut client, "SELECT clock_timestamp() = timestamptz '2077-07-07 07:07:07+00'"));
}

#[test]
fn a_process_that_cannot_be_started_is_said() {
    let registry = registry(Kind::Redis);
    let cluster = leasing(&registry.url()).set("pg_snowflake.max_wait = '200ms'").start();
    cluster.append("postgresql.conf", "max_worker_processes = 1\n");
    cluster.restart(Stop::Fast);
    let error = refused(&mut cluster.client(), "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains("needs one of max_worker_processes"), "{error:?}");
}

#[test]
fn without_a_registry_there_is_none() {
    let cluster = snowflake_test::Cluster::options().start();
    let mut client = cluster.client();
    assert_eq!(
        refused(&mut client, "SELECT * FROM snowflake_workers()", "55000").message(),
        "this server has no registry of worker IDs"
    );
    for column in ["registry", "lease", "granted_until", "registry_error"] {
        assert_eq!(status(&mut client, column), "");
    }
    assert_eq!(
        value::<i64>(&mut client, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pg_snowflake lease'"),
        0
    );
}
