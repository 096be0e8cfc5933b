//! Registries that fail over, and what of them is visible and not durable.

use crate::servers::make_until;
use crate::{leasing, registry, status};
use postgres::Client;
use snowflake_test::check::{self, wait_for};
use snowflake_test::load::End;
use snowflake_test::query::{batch, value};
use snowflake_test::registries::{Kind, Server, Setup};
use snowflake_test::{Cluster, Stop, millis, seconds};
use std::sync::atomic::AtomicBool;
use std::thread;
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
    wait_for("the first lease", || makes_ids(&first));
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

/// Split brain of the registry: one server sees the old primary, the other the new one. An administrator cancels and terminates what hangs on
/// the old one.
#[test]
fn a_standby_of_the_registry_is_promoted_while_the_old_primary_goes_on() {
    let registry = registry(Kind::Postgres);
    let new = registry.cluster().standby();
    registry.cluster().reload(&[("synchronous_standby_names", "*")]);
    // The second finds that the registry is another one, and waits until all leases that may be lost are over.
    let options = |url: &str| {
        leasing(url)
            .set("pg_snowflake.registry_window = '4s'\npg_snowflake.max_wait = '200ms'\npg_snowflake.worker_id = 1")
            .set("pg_snowflake.max_lead = '1s'")
    };
    let first = options(&registry.url()).start();
    wait_for("the first makes IDs", || makes_ids(&first));
    let second = options(&Kind::Postgres.url(false, "", &format!("127.0.0.1:{}", new.port()))).start();
    let done = AtomicBool::new(false);
    let lists = thread::scope(|scope| {
        let end = End(&done);
        let sessions = [&first, &second].map(|cluster| scope.spawn(|| make_until(cluster, &done)));
        thread::sleep(seconds(1));
        new.promote();
        let (mut administrator, start) = (registry.cluster().client(), Instant::now());
        let terminate = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        let mut ended = 0;
        while start.elapsed() < seconds(15) {
            ended += cancel_waits(&mut administrator);
            thread::sleep(millis(100));
            ended += value::<i64>(&mut administrator, terminate);
        }
        assert!(ended > 3, "{ended}");
        assert!(makes_ids(&second), "it has the worker now");
        assert!(!makes_ids(&first), "the old primary grants nothing");
        drop(end);
        sessions.map(|session| session.join().unwrap())
    });
    assert!(lists.iter().all(|list| list.len() > 1000));
    check::distinct(&lists);
}

/// Each is killed and started again, and frozen for as long as it takes to choose another leader.
#[test]
fn members_of_etcd_fail_one_after_the_other() {
    let (mut members, _) = Server::etcd_members();
    let hosts: Vec<_> = members.iter().map(Server::address).collect();
    let options = leasing(&Kind::Etcd.url(false, "", &hosts.join(","))).set("pg_snowflake.registry_window = '12s'");
    let servers = [options.clone().start(), options.start()];
    let done = AtomicBool::new(false);
    let lists = thread::scope(|scope| {
        let end = End(&done);
        let sessions = servers.each_ref().map(|cluster| scope.spawn(|| make_until(cluster, &done)));
        for member in &mut members {
            member.pause();
            thread::sleep(seconds(4));
            member.resume();
            thread::sleep(seconds(1));
            member.kill();
            thread::sleep(seconds(2));
            member.start();
            for server in &servers {
                wait_for("the lease is renewed", || status(&mut server.client(), "registry_error").is_empty());
            }
        }
        drop(end);
        sessions.map(|session| session.join().unwrap())
    });
    check::distinct(&lists);
    for (server, list) in servers.iter().zip(&lists) {
        check::rising(list);
        assert!(!server.log().contains("has ended before it was renewed"), "{}", server.log());
    }
}

/// The member that leads, and to which servers are connected, is cut off from the others: in both directions, or so that it is heard and hears
/// nothing, or hears and is not heard. One server goes on by the other members. One that knows no other stops at the end of its lease;
/// its worker is leased by a third after that.
#[test]
fn a_member_of_etcd_is_cut_off_from_the_others() {
    let (members, links) = Server::etcd_members();
    let hosts: Vec<_> = members.iter().map(Server::address).collect();
    let options = |hosts: &[String], window: &str| {
        let url = Kind::Etcd.url(false, "", &hosts.join(","));
        leasing(&url).set(&format!("pg_snowflake.registry_window = '{window}'\npg_snowflake.max_wait = '200ms'"))
    };
    let goes_on = options(&hosts, "12s").start();
    let stops = options(&hosts[..1], "6s").set("pg_snowflake.worker_id = 5").start();
    wait_for("the worker is leased", || makes_ids(&stops));
    let takes_over = options(&hosts[1..], "6s").set("pg_snowflake.worker_id = 5").start();
    let done = AtomicBool::new(false);
    let lists = thread::scope(|scope| {
        let end = End(&done);
        let sessions = [&goes_on, &stops, &takes_over].map(|cluster| scope.spawn(|| make_until(cluster, &done)));
        for (is_heard, hears) in [(false, false), (true, false), (false, true)] {
            wait_for("the first member leads", || {
                if let Some(leader) = members[1..].iter().find(|member| member.leads()) {
                    leader.etcdctl(&["move-leader", &links.member(0)]);
                }
                members[0].leads()
            });
            assert!(!makes_ids(&takes_over), "the worker is in use");
            let taken = || stops.log().matches("worker ID 5 was taken by another server").count();
            let before = taken();
            for other in [1, 2] {
                if !is_heard {
                    links.cut(0, other);
                }
                if !hears {
                    links.cut(other, 0);
                }
            }
            wait_for("the lease ends", || status(&mut stops.client(), "lease") == "expired");
            wait_for("the worker is leased by the third", || makes_ids(&takes_over));
            wait_for("the first server goes on", || status(&mut goes_on.client(), "registry_error").is_empty());
            assert!(!makes_ids(&stops));
            links.heal();
            wait_for("it learns of that", || taken() > before);
            takes_over.stop(Stop::Fast);
            wait_for("the worker is leased again", || makes_ids(&stops));
            takes_over.start();
        }
        drop(end);
        sessions.map(|session| session.join().unwrap())
    });
    assert!(lists.iter().all(|list| list.len() > 1000));
    check::distinct(&lists);
    check::rising(&lists[0]);
    assert!(!goes_on.log().contains("has ended before it was renewed"), "{}", goes_on.log());
}

#[test]
fn there_is_a_warning_of_replicas_that_may_lag() {
    let registry = registry(Kind::Postgres);
    let _standby = registry.cluster().standby();
    let cluster = leasing(&registry.url()).start();
    wait_for("a WARNING", || cluster.log().contains("The registry has standbys, and none is synchronous"));
    let registry = crate::registry(Kind::Redis);
    let port = registry.port().to_string();
    let _replica = Setup::of(Kind::Redis).argument("--replicaof").argument("127.0.0.1").argument(&port).start();
    wait_for("the replica is in step", || registry.redis_cli(&["info", "replication"]).contains("state=online"));
    let cluster = leasing(&registry.url()).start();
    wait_for("a WARNING", || cluster.log().contains("The registry has replicas"));
    assert!(makes_ids(&cluster), "that is all");
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
    wait_for("IDs are made", || makes_ids(&cluster));
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
