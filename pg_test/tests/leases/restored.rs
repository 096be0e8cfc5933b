//! Registries that went back in time, or are another server than before, and servers that cannot know of it.
//!
//! All servers want the same worker. One has it when the registry is lost, by a lease of which the restored registry does not know. So a
//! server that leases from that one at once makes the same IDs.

use crate::forgotten::{short, wait_for_ids};
use crate::servers::make_until;
use crate::{leasing, registry, with_each_registry};
use snowflake_test::check::{self, wait_for};
use snowflake_test::load::End;
use snowflake_test::programs::run;
use snowflake_test::query::{batch, ids, value};
use snowflake_test::registries::{Kind, Server, Setup};
use snowflake_test::{Cluster, Options, Stop, millis, seconds};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

with_each_registry!(
    a_server_that_knows_nothing_waits,
    a_server_that_knows_the_namespace_from_before_the_backup_waits,
    a_server_that_was_cloned_waits,
    an_identity_that_is_gone_is_stored_again,
);

/// The only worker that servers want.
fn options(url: &str) -> Options {
    short(leasing(url)).set("pg_snowflake.worker_id = 3")
}

/// How often a server has put on record that the registry has forgotten.
fn marks(servers: &[&Cluster]) -> usize {
    let count = |server: &&Cluster| server.log().matches("the registry of worker IDs has forgotten").count();
    servers.iter().map(count).sum()
}

/// While a server makes IDs by a lease of which the backup knows nothing, the registry is lost, and another server starts at once. In
/// the end that one has the worker.
fn check_starter(user: &Cluster, lose: impl FnOnce(), start: impl FnOnce() -> Cluster) {
    wait_for_ids(user);
    let (done, before) = (AtomicBool::new(false), marks(&[user]));
    let (mut lists, starter) = thread::scope(|scope| {
        let end = End(&done);
        let session = scope.spawn(|| make_until(user, &done));
        thread::sleep(seconds(1));
        lose();
        let starter = start();
        let (mut list, begun) = (Vec::new(), Instant::now());
        // Longer than all that may have been granted.
        while begun.elapsed() < seconds(9) {
            match starter.client().query("SELECT snowflake_next(200)", &[]) {
                Ok(rows) => list.extend(ids(&rows)),
                Err(_) => thread::sleep(millis(10)),
            }
        }
        drop(end);
        (vec![session.join().unwrap(), list], starter)
    });
    assert!(lists[0].len() > 1000, "{}", lists[0].len());
    check::distinct(&lists);
    assert!(marks(&[user, &starter]) > before, "{}", starter.log());
    user.stop(Stop::Fast);
    wait_for_ids(&starter);
    lists.push(batch(&mut starter.client(), 1000));
    check::distinct(&lists);
}

/// Who starts first after a restore.
enum Starter {
    New,
    /// It had the worker before the backup.
    Before,
    /// A copy of that one.
    Clone,
}

/// Goes back to a backup that was made while no server had a lease. Another one has leased the worker since.
fn check_restore(kind: Kind, starter: Starter) {
    let mut registry = registry(kind);
    let url = registry.url();
    let mut old = options(&url).start();
    wait_for_ids(&old);
    let clone = matches!(starter, Starter::Clone).then(|| old.clone_in_place());
    old.stop(Stop::Fast);
    // The clone is in its directory.
    let mut old = Some(old);
    let directory = tempfile::tempdir().unwrap();
    let snapshot = directory.path().join("snapshot");
    let backup = match kind {
        Kind::Etcd => {
            registry.etcdctl(&["snapshot", "save", snapshot.to_str().unwrap()]);
            None
        }
        Kind::Postgres | Kind::Redis => Some(registry.back_up()),
    };
    let user = options(&url).start();
    let lose = || match &backup {
        Some(backup) => registry.restore(backup),
        None => registry.restore_snapshot(&snapshot, "another"),
    };
    let start = || match starter {
        Starter::New => options(&url).start(),
        Starter::Before | Starter::Clone => {
            let server = clone.or_else(|| old.take()).unwrap();
            server.start();
            server
        }
    };
    check_starter(&user, lose, start);
}

fn a_server_that_knows_nothing_waits(kind: Kind) {
    check_restore(kind, Starter::New);
}

fn a_server_that_knows_the_namespace_from_before_the_backup_waits(kind: Kind) {
    check_restore(kind, Starter::Before);
}

fn a_server_that_was_cloned_waits(kind: Kind) {
    check_restore(kind, Starter::Clone);
}

/// Each of these leaves the tables where they are.
#[test]
fn rows_that_are_copied_are_seen() {
    for empty in ["DELETE FROM", "TRUNCATE"] {
        let registry = registry(Kind::Postgres);
        let url = registry.url();
        let old = options(&url).start();
        wait_for_ids(&old);
        old.stop(Stop::Fast);
        let mut admin = registry.cluster().client();
        admin
            .batch_execute(
                "CREATE TABLE public.namespaces AS TABLE snowflake_registry.namespaces; \
                 CREATE TABLE public.workers AS TABLE snowflake_registry.workers",
            )
            .unwrap();
        let user = options(&url).start();
        let lose = || {
            for table in ["namespaces", "workers"] {
                admin
                    .batch_execute(&format!(
                        "{empty} snowflake_registry.{table}; INSERT INTO snowflake_registry.{table} SELECT * FROM public.{table}"
                    ))
                    .unwrap();
            }
        };
        check_starter(&user, lose, || options(&url).start());
    }
}

/// The standby has none of the last changes.
#[test]
fn a_standby_of_the_registry_that_lagged_is_promoted() {
    let registry = registry(Kind::Postgres);
    let standby = registry.cluster().standby();
    let hosts = format!("{},127.0.0.1:{}", registry.address(), standby.port());
    let url = Kind::Postgres.url(false, "", &hosts);
    let old = options(&url).start();
    wait_for_ids(&old);
    old.stop(Stop::Fast);
    standby.catch_up_with(registry.cluster());
    standby.reload(&[("primary_conninfo", "")]);
    let user = options(&url).start();
    let lose = || {
        registry.cluster().stop(Stop::Immediate);
        standby.promote();
    };
    check_starter(&user, lose, || options(&url).start());
}

/// It goes on from there on a new timeline.
#[test]
fn a_registry_that_was_recovered_to_a_point_in_time_is_seen() {
    let registry = registry(Kind::Postgres);
    let recovered = registry.cluster().standby();
    let hosts = format!("{},127.0.0.1:{}", registry.address(), recovered.port());
    let url = Kind::Postgres.url(false, "", &hosts);
    let old = options(&url).start();
    wait_for_ids(&old);
    old.stop(Stop::Fast);
    recovered.stop(Stop::Fast);
    registry.cluster().client().batch_execute("SELECT pg_create_restore_point('here')").unwrap();
    let user = options(&url).start();
    let lose = || {
        registry.cluster().stop(Stop::Immediate);
        std::fs::remove_file(recovered.data().join("standby.signal")).unwrap();
        let restore = format!("restore_command = 'cp {}/pg_wal/%f %p'", registry.cluster().data().display());
        let target = "recovery_target_name = 'here'\nrecovery_target_action = 'promote'";
        recovered.append("postgresql.auto.conf", &format!("\n{restore}\n{target}\n"));
        recovered.append("recovery.signal", "");
        recovered.start();
        wait_for("it is promoted", || value(&mut recovered.client(), "SELECT NOT pg_is_in_recovery()"));
    };
    check_starter(&user, lose, || options(&url).start());
    assert!(recovered.log().contains("recovery stopping at restore point \"here\""), "{}", recovered.log());
}

/// What the registry does not show, a server that runs and has a lease sees at its next renewal. Until then, the runbook has nobody start
/// another one.
fn check_procedure(user: &Cluster, url: &str, lose: impl FnOnce()) {
    let before = marks(&[user]);
    let start = || {
        wait_for("the one that runs has noticed", || marks(&[user]) > before);
        options(url).start()
    };
    check_starter(user, lose, start);
}

/// As a snapshot of the volume is.
#[test]
fn files_of_a_registry_that_are_put_back_are_seen_by_who_runs() {
    let registry = registry(Kind::Postgres);
    let (url, cluster) = (registry.url(), registry.cluster());
    let old = options(&url).start();
    wait_for_ids(&old);
    old.stop(Stop::Fast);
    let snapshot = cluster.data().with_extension("snapshot");
    let copy = |from: &Path, to: &Path| run(Command::new("cp").arg("-a").args([from, to]));
    cluster.stop(Stop::Fast);
    copy(&cluster.data(), &snapshot);
    cluster.start();
    let user = options(&url).start();
    check_procedure(&user, &url, || {
        cluster.stop(Stop::Immediate);
        std::fs::remove_dir_all(cluster.data()).unwrap();
        copy(&snapshot, &cluster.data());
        cluster.start();
    });
}

#[test]
fn a_snapshot_of_etcd_that_is_restored_with_its_cluster_id_is_seen_by_who_runs() {
    let mut registry = registry(Kind::Etcd);
    let url = registry.url();
    let old = options(&url).start();
    wait_for_ids(&old);
    old.stop(Stop::Fast);
    let directory = tempfile::tempdir().unwrap();
    let snapshot = directory.path().join("snapshot");
    registry.etcdctl(&["snapshot", "save", snapshot.to_str().unwrap()]);
    let user = options(&url).start();
    wait_for_ids(&user);
    let before = identity(&registry);
    check_procedure(&user, &url, || registry.restore_snapshot(&snapshot, "etcd-cluster"));
    assert_eq!(identity(&registry), before, "it does not show");
}

#[test]
fn keys_of_redis_that_are_put_back_are_seen_by_who_runs() {
    let registry = registry(Kind::Redis);
    let url = registry.url();
    let old = options(&url).start();
    wait_for_ids(&old);
    old.stop(Stop::Fast);
    registry.redis_cli(&["copy", "pg_snowflake:default", "saved"]);
    let user = options(&url).start();
    check_procedure(&user, &url, || {
        registry.redis_cli(&["copy", "saved", "pg_snowflake:default", "replace"]);
    });
}

/// All keys are dumped, and restored into an empty server. Redis has no text for what DUMP gives, so it is written as hexadecimal digits.
#[test]
fn keys_of_redis_that_are_restored_after_flushall_are_seen_by_who_runs() {
    const DUMP: &str =
        "return (redis.call('DUMP', KEYS[1]):gsub('.', function(c) return string.format('%02x', c:byte()) end))";
    const RESTORE: &str = "local bytes = ARGV[1]:gsub('..', function(h) return string.char(tonumber(h, 16)) end) \
                           return redis.call('RESTORE', KEYS[1], 0, bytes)";
    let registry = registry(Kind::Redis);
    let url = registry.url();
    let old = options(&url).start();
    wait_for_ids(&old);
    old.stop(Stop::Fast);
    let keys = registry.redis_cli(&["keys", "*"]);
    let dumped: Vec<(&str, String)> =
        keys.lines().map(|key| (key, registry.redis_cli(&["eval", DUMP, "1", key]))).collect();
    assert!(!dumped.is_empty());
    let user = options(&url).start();
    check_procedure(&user, &url, || {
        registry.redis_cli(&["flushall"]);
        for (key, digits) in &dumped {
            assert_eq!(registry.redis_cli(&["eval", RESTORE, "1", key, digits.trim()]).trim(), "OK");
        }
    });
}

/// Servers that have leases go on; those that start wait.
#[test]
fn a_promotion_that_loses_nothing_stops_nobody_who_has_a_lease() {
    let registry = registry(Kind::Postgres);
    let standby = registry.cluster().standby();
    let hosts = format!("{},127.0.0.1:{}", registry.address(), standby.port());
    let url = Kind::Postgres.url(false, "", &hosts);
    let holder = short(leasing(&url)).set("pg_snowflake.registry_window = '9s'").start();
    wait_for_ids(&holder);
    standby.catch_up_with(registry.cluster());
    registry.cluster().stop(Stop::Fast);
    standby.promote();
    let (begun, mut list) = (Instant::now(), Vec::new());
    while begun.elapsed() < seconds(15) {
        list.extend(batch(&mut holder.client(), 100));
    }
    let starter = short(leasing(&url)).set("pg_snowflake.registry_window = '9s'").start();
    wait_for("new leases are safe", || starter.client().query("SELECT snowflake_next()", &[]).is_ok());
    let lists = [list, batch(&mut starter.client(), 100), batch(&mut holder.client(), 100)];
    check::distinct(&lists);
    assert_eq!(marks(&[&holder, &starter]), 1, "{}", holder.log());
}

/// The replica has none of the last changes.
#[test]
fn a_replica_of_redis_that_lagged_is_promoted() {
    let mut registry = registry(Kind::Redis);
    let port = registry.port().to_string();
    let replica = Setup::of(Kind::Redis).argument("--replicaof").argument("127.0.0.1").argument(&port).start();
    let hosts = format!("{},{}", registry.address(), replica.address());
    let url = Kind::Redis.url(false, "", &hosts);
    let old = options(&url).start();
    wait_for_ids(&old);
    old.stop(Stop::Fast);
    wait_for("the replica is in step", || registry.redis_cli(&["wait", "1", "1000"]).trim() == "1");
    replica.redis_cli(&["replicaof", "127.0.0.1", "1"]);
    let user = options(&url).start();
    let lose = || {
        registry.kill();
        replica.redis_cli(&["replicaof", "no", "one"]);
    };
    check_starter(&user, lose, || options(&url).start());
}

/// Servers that have leases go on; those that start wait. Nothing was lost.
#[test]
fn a_restart_of_redis_stops_nobody_who_has_a_lease() {
    let mut registry = registry(Kind::Redis);
    let holder = short(leasing(&registry.url())).set("pg_snowflake.registry_window = '9s'").start();
    wait_for_ids(&holder);
    registry.stop();
    registry.start();
    let (begun, mut list) = (Instant::now(), Vec::new());
    while begun.elapsed() < seconds(15) {
        list.extend(batch(&mut holder.client(), 100));
    }
    check::distinct(&[list]);
    assert_eq!(marks(&[&holder]), 1, "{}", holder.log());
}

/// What a registry is stands beside what released versions store, and they leave it alone: it is as they have made it.
#[test]
fn what_the_registry_is_stands_in_a_row_of_its_own() {
    let registry: Server = registry(Kind::Postgres);
    let server = options(&registry.url()).start();
    wait_for_ids(&server);
    let rows = registry
        .cluster()
        .client()
        .query("SELECT namespace, layout FROM snowflake_registry.namespaces ORDER BY namespace", &[])
        .unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(names, ["default", "default\tregistry"]);
    let identity: String = rows[1].get(1);
    let parts: Vec<&str> = identity.split(' ').map(|word| word.split('=').next().unwrap()).collect();
    assert_eq!(parts, ["system", "timeline", "rows"], "{identity}");
    assert_eq!(marks(&[&server]), 0);
}

const IN_ETCD: &str = "/pg_snowflake/default/registry";
const IN_REDIS: &str = "pg_snowflake_holders:{pg_snowflake:default}";

/// The identity under which the namespace's record was confirmed; empty where there is none.
fn identity(registry: &Server) -> String {
    match registry.kind() {
        Kind::Postgres => {
            let query = "SELECT layout FROM snowflake_registry.namespaces WHERE namespace = E'default\\tregistry'";
            let rows = registry.cluster().client().query(query, &[]).unwrap();
            rows.first().map(|row| row.get(0)).unwrap_or_default()
        }
        Kind::Etcd => registry.etcdctl(&["get", "--print-value-only", IN_ETCD]).trim().to_owned(),
        Kind::Redis => registry.redis_cli(&["hget", IN_REDIS, "registry"]).trim().to_owned(),
    }
}

/// As an operator might do it.
fn drop_identity(registry: &Server) {
    match registry.kind() {
        Kind::Postgres => {
            let query = "DELETE FROM snowflake_registry.namespaces WHERE namespace = E'default\\tregistry'";
            registry.cluster().client().batch_execute(query).unwrap();
        }
        Kind::Etcd => drop(registry.etcdctl(&["del", IN_ETCD])),
        Kind::Redis => drop(registry.redis_cli(&["hdel", IN_REDIS, "registry"])),
    }
}

/// Nobody waits for that, and who starts next stores it again.
fn an_identity_that_is_gone_is_stored_again(kind: Kind) {
    let registry = registry(kind);
    let holder = short(leasing(&registry.url())).start();
    wait_for_ids(&holder);
    wait_for("it is stored", || !identity(&registry).is_empty());
    let before = identity(&registry);
    drop_identity(&registry);
    assert_eq!(identity(&registry), "");
    let mut lists = vec![batch(&mut holder.client(), 1000)];
    let second = short(leasing(&registry.url())).set("pg_snowflake.max_wait = '5s'").start();
    wait_for("it is stored again", || identity(&registry) == before);
    lists.extend([batch(&mut second.client(), 1000), batch(&mut holder.client(), 1000)]);
    check::distinct(&lists);
    assert_eq!(marks(&[&holder, &second]), 0);
}
