//! Several servers: none of them makes an ID of another.

use crate::{leasing, registry, status, with_each_registry, worker};
use postgres::Client;
use postgres::error::DbError;
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::load::End;
use snowflake_test::query::{batch, value};
use snowflake_test::registries::Kind;
use snowflake_test::{Cluster, Installation, Stop, ids, millis, seconds};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

with_each_registry!(
    eight_servers_lease_at_once,
    a_worker_is_used_again_when_its_lease_is_over,
    a_server_that_was_stopped_past_its_lease,
    a_copy_of_a_running_server,
    a_promoted_standby_leases_a_worker_of_its_own,
    all_workers_are_taken,
    a_worker_that_the_configuration_names,
);

/// Makes IDs until it is told to stop; what is refused is tried again.
pub fn make_until(cluster: &Cluster, done: &AtomicBool) -> Vec<i64> {
    let mut list = Vec::new();
    while !done.load(SeqCst) {
        let Ok(mut client) = cluster.try_client_of("postgres") else { continue };
        while !done.load(SeqCst) {
            match client.query("SELECT snowflake_next(200)", &[]) {
                Ok(rows) => list.extend(ids(&rows)),
                Err(_) if client.is_closed() => break,
                Err(_) => thread::sleep(millis(10)),
            }
        }
    }
    list
}

fn eight_servers_lease_at_once(kind: Kind) {
    let registry = registry(kind);
    let clusters: Vec<Cluster> = thread::scope(|scope| {
        let url = registry.url();
        let made: Vec<_> = (0..8)
            .map(|_| {
                let url = url.clone();
                scope.spawn(move || leasing(&url).create())
            })
            .collect();
        made.into_iter().map(|cluster| cluster.join().unwrap()).collect()
    });
    thread::scope(|scope| clusters.iter().for_each(|cluster| drop(scope.spawn(|| cluster.start()))));
    let lists: Vec<Vec<i64>> = clusters
        .iter()
        .map(|cluster| {
            cluster.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
            batch(&mut cluster.client(), 1000)
        })
        .collect();
    check::distinct(&lists);
    let workers: BTreeSet<i32> = clusters.iter().map(|cluster| worker(&mut cluster.client())).collect();
    assert_eq!(workers.len(), 8);
    assert_eq!(
        snowflake_test::value::<i64>(
            &mut clusters[0].client(),
            "SELECT count(*) FROM snowflake_workers() WHERE state = 'current'"
        ),
        8
    );
}

fn a_worker_is_used_again_when_its_lease_is_over(kind: Kind) {
    let registry = registry(kind);
    // Two workers.
    let options = leasing(&registry.url())
        .set("pg_snowflake.layout = 'timestamp=41 worker=1 sequence=12'")
        .set("pg_snowflake.registry_window = '3s'")
        .set("pg_snowflake.max_wait = '20s'");
    let servers = [options.clone().start(), options.clone().start()];
    let mut lists: Vec<Vec<i64>> = servers.iter().map(|cluster| batch(&mut cluster.client(), 1000)).collect();
    servers[0].stop(Stop::Kill);
    let third = options.start();
    lists.push(batch(&mut third.client(), 1000));
    check::distinct(&lists);
}

fn a_server_that_was_stopped_past_its_lease(kind: Kind) {
    let registry = registry(kind);
    let options = leasing(&registry.url())
        .set("pg_snowflake.layout = 'timestamp=41 worker=1 sequence=12'")
        .set("pg_snowflake.registry_window = '5s'")
        .set("pg_snowflake.max_wait = '30s'");
    let (first, second) = (options.clone().start(), options.clone().start());
    let done = AtomicBool::new(false);
    let lists = thread::scope(|scope| {
        let end = End(&done);
        let sessions = [&first, &second].map(|cluster| scope.spawn(|| make_until(cluster, &done)));
        thread::sleep(seconds(1));
        first.pause();
        // It takes the worker of the first, as the second has the other.
        let third = options.start();
        let mut lists = vec![batch(&mut third.client(), 1000)];
        first.resume();
        lists.push(batch(&mut third.client(), 10_000));
        thread::sleep(seconds(2));
        // The first has no worker now, until one of the others stops.
        third.stop(Stop::Fast);
        lists.push(batch(&mut first.client_once_up("postgres"), 1000));
        drop(end);
        lists.extend(sessions.map(|session| session.join().unwrap()));
        lists
    });
    check::distinct(&lists);
}

fn a_copy_of_a_running_server(kind: Kind) {
    let registry = registry(kind);
    let options = leasing(&registry.url()).set("pg_snowflake.registry_window = '3s'");
    let original = options.start();
    let done = AtomicBool::new(false);
    let copy = Cluster::empty(Installation::under_test(), false);
    let lists = thread::scope(|scope| {
        let end = End(&done);
        let session = scope.spawn(|| make_until(&original, &done));
        copy.copy_from(&original, &[]);
        copy.start();
        let copied = scope.spawn(|| make_until(&copy, &done));
        assert_ne!(worker(&mut copy.client()), worker(&mut original.client()));
        thread::sleep(seconds(4));
        assert_ne!(worker(&mut copy.client()), worker(&mut original.client()));
        drop(end);
        vec![session.join().unwrap(), copied.join().unwrap()]
    });
    assert!(lists.iter().all(|list| list.len() > 1000));
    check::distinct(&lists);
}

fn a_promoted_standby_leases_a_worker_of_its_own(kind: Kind) {
    let registry = registry(kind);
    let primary = leasing(&registry.url()).start();
    let mut lists = vec![batch(&mut primary.client(), 1000)];
    let first = worker(&mut primary.client());
    let standby = primary.standby();
    standby.catch_up_with(&primary);
    assert_eq!(status(&mut standby.client(), "lease"), "none");
    let error = refused(&mut standby.client(), "SELECT * FROM snowflake_workers()", "25006");
    assert_eq!(error.message(), "cannot execute snowflake_workers() during recovery");
    standby.promote();
    wait_for("the promoted standby makes IDs", || standby.client().query("SELECT snowflake_next()", &[]).is_ok());
    // Both live.
    lists.push(batch(&mut standby.client(), 1000));
    lists.push(batch(&mut primary.client(), 1000));
    assert_ne!(worker(&mut standby.client()), first);
    check::distinct(&lists);
}

fn all_workers_are_taken(kind: Kind) {
    let registry = registry(kind);
    let options = leasing(&registry.url())
        .set("pg_snowflake.layout = 'timestamp=41 worker=2 sequence=12'")
        .set("pg_snowflake.max_wait = '1s'");
    let servers: Vec<Cluster> =
        (0..4).map(|number| options.clone().set(&format!("cluster_name = 'n{number}'")).start()).collect();
    let mut lists: Vec<Vec<i64>> = servers.iter().map(|cluster| batch(&mut cluster.client(), 100)).collect();
    let fifth = options.start();
    let mut client = fifth.client();
    let error = refused(&mut client, "SELECT snowflake_next()", "55000");
    assert_eq!(error.message(), "this server has no lease of a worker ID");
    let detail = DbError::detail(&error).unwrap();
    assert!(detail.contains("is leased by") && detail.contains("(\"n"), "{detail}");
    assert!(fifth.log().contains("there is no worker ID to lease"));
    // Who may not see the servers' names elsewhere does not see them here.
    client.batch_execute("CREATE ROLE clerk LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_monitor").unwrap();
    let of = |role: &str| refused(&mut fifth.client_of(role, "postgres"), "SELECT snowflake_next()", "55000");
    let detail = of("clerk").detail().unwrap().to_owned();
    assert!(detail.contains("The server's log says why."), "{detail}");
    assert!(!detail.contains("is leased by") && !detail.contains("data") && !detail.contains("127.0.0.1"), "{detail}");
    assert!(of("watcher").detail().unwrap().contains("is leased by"));
    // One of them is stopped, and gives its worker back.
    servers[2].stop(Stop::Fast);
    wait_for("the fifth server makes IDs", || client.query("SELECT snowflake_next()", &[]).is_ok());
    lists.push(batch(&mut client, 100));
    check::distinct(&lists);
}

fn a_worker_that_the_configuration_names(kind: Kind) {
    let registry = registry(kind);
    let options = leasing(&registry.url()).set("pg_snowflake.max_wait = '1s'");
    let first = options.clone().set("pg_snowflake.worker_id = 3\ncluster_name = 'three'").start();
    let mut lists = vec![batch(&mut first.client(), 100)];
    assert_eq!(worker(&mut first.client()), 3);
    let second = options.set("pg_snowflake.worker_id = 3").start();
    let error = refused(&mut second.client(), "SELECT snowflake_next()", "55000");
    assert!(
        error.detail().unwrap().contains("Worker ID 3 is leased by") && error.detail().unwrap().contains("three"),
        "{error:?}"
    );
    // Its own older run's is taken over.
    first.restart(Stop::Kill);
    lists.push(batch(&mut first.client(), 100));
    assert_eq!(worker(&mut first.client()), 3);
    // Another one, while it runs.
    second.reload(&[("pg_snowflake.worker_id", "5")]);
    wait_for("the second server makes IDs", || second.client().query("SELECT snowflake_next()", &[]).is_ok());
    assert_eq!(worker(&mut second.client()), 5);
    lists.push(batch(&mut second.client(), 100));
    check::distinct(&lists);
}

/// Host name, data directory and system identifier are the same, and the original lives.
#[test]
fn a_cloned_machine_does_not_evict_the_original() {
    let registry = registry(Kind::Redis);
    let options = leasing(&registry.url())
        .set("pg_snowflake.registry_window = '4s'\npg_snowflake.max_wait = '200ms'")
        .set("pg_snowflake.worker_id = 3");
    let mut original = options.start();
    let mut client = original.client();
    wait_for("IDs are made", || client.query("SELECT snowflake_next()", &[]).is_ok());
    let clone = original.clone_in_place();
    clone.start();
    let at = "SELECT current_setting('data_directory')";
    assert_eq!(value::<String>(&mut clone.client(), at), value::<String>(&mut client, at));
    wait_for("the clone looks for a worker", || clone.log().contains("there is no worker ID to lease"));
    let (start, mut ids) = (std::time::Instant::now(), Vec::new());
    while start.elapsed() < seconds(8) {
        ids.extend(batch(&mut client, 10));
        let error = refused(&mut clone.client(), "SELECT snowflake_next()", "55000");
        assert!(error.detail().unwrap().contains("was leased by this server, or a copy of it"), "{error:?}");
    }
    check::rising(&ids);
    assert!(!original.log().contains("was taken by another server"), "{}", original.log());
    // The original is gone for certain: at once.
    drop(client);
    original.stop(Stop::Kill);
    let start = std::time::Instant::now();
    wait_for("the clone makes IDs", || clone.client().query("SELECT snowflake_next()", &[]).is_ok());
    assert!(start.elapsed() < seconds(20), "{:?}", start.elapsed());
    check::distinct(&[ids, batch(&mut clone.client(), 100)]);
}

/// Where there are others, the clone has another worker at once.
#[test]
fn a_cloned_machine_leases_another_worker() {
    let registry = registry(Kind::Redis);
    let mut original = leasing(&registry.url()).start();
    let mut lists = vec![batch(&mut original.client(), 1000)];
    let clone = original.clone_in_place();
    clone.start();
    let workers = [&original, &clone].map(|server| worker(&mut server.client()));
    assert_ne!(workers[0], workers[1]);
    lists.extend([&original, &clone].map(|server| batch(&mut server.client(), 1000)));
    check::distinct(&lists);
}

#[test]
fn datacenters() {
    let registry = registry(Kind::Redis);
    let server = leasing(&registry.url()).set("pg_snowflake.layout = 'twitter'\npg_snowflake.worker_id = 3").start();
    let mut client = server.client();
    let mut lists = vec![batch(&mut client, 100)];
    assert!(server.log().contains("pg_snowflake.worker_id = 3 is not used"));
    let number =
        |client: &mut Client, what: &str| value::<i32>(client, &format!("SELECT {what} FROM snowflake_status()"));
    let at = |client: &mut Client| (number(client, "datacenter_id"), number(client, "worker_id"));
    server.reload(&[("pg_snowflake.datacenter_id", "2")]);
    wait_for("worker 3 of datacenter 2 is leased", || at(&mut client) == (2, 3));
    lists.push(batch(&mut client, 100));
    server.reload(&[("pg_snowflake.worker_id", "-1"), ("pg_snowflake.datacenter_id", "5")]);
    wait_for("any worker of datacenter 5 is leased", || at(&mut client).0 == 5);
    lists.push(batch(&mut client, 100));
    check::distinct(&lists);
}
