//! Standbys of standbys, several synchronous ones, delayed ones, an old primary that is rewound, and a standby that becomes
//! a logical replica: what one of them gave, no other gives again, though the clock of whoever goes on is behind.

use snowflake_clusters::load::until_written;
use snowflake_test::check::{self, wait_for};
use snowflake_test::load::{self, Record, TABLE};
use snowflake_test::programs::run;
use snowflake_test::query::{NEXT, batch, next};
use snowflake_test::registries::{Kind, Setup};
use snowflake_test::{Cluster, Installation, Options, Stop, millis, seconds, value};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

fn options() -> Options {
    Cluster::options().patient().set("wal_retrieve_retry_interval = '100ms'")
}

/// A standby with this name, and these lines added to its configuration.
fn standby(primary: &Cluster, name: &str, configuration: &str) -> Cluster {
    let standby = Cluster::empty(Installation::under_test(), true);
    standby.copy_from(primary, &["--write-recovery-conf"]);
    standby.append("postgresql.conf", &format!("cluster_name = '{name}'\n{configuration}\n"));
    standby.start();
    let receives = "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')";
    wait_for(&format!("{name} streams"), || value(&mut standby.client(), receives));
    standby
}

/// Nobody waits for a standby, from the next start or promotion on.
fn wait_for_nobody(cluster: &Cluster) {
    cluster.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
}

/// Up to where a standby has the WAL.
fn received(standby: &Cluster) -> i64 {
    value(&mut standby.client(), "SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint")
}

/// Sets the clock back, and makes a standby the primary.
fn promote(standby: &Cluster, clock: &str) {
    standby.step_clock(clock);
    wait_for_nobody(standby);
    standby.promote();
    standby.next_once_up();
}

/// A statement in a session of its own, which may have to wait.
fn runs(cluster: &Cluster, statement: &'static str) -> Receiver<Result<Vec<i64>, String>> {
    let mut client = cluster.client();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let answer = client.query(statement, &[]);
        let _ = sender.send(answer.map(|rows| snowflake_test::ids(&rows)).map_err(|error| format!("{error:?}")));
    });
    receiver
}

#[test]
fn a_cascade_loses_its_head_twice() {
    let first = options().set("synchronous_standby_names = '*'").create();
    first.append("postgresql.conf", "cluster_name = 'first'\n");
    first.append("postgresql.auto.conf", "synchronous_standby_names = ''\n");
    first.start();
    first.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    first.client().batch_execute(TABLE).unwrap();
    let second = standby(&first, "second", "");
    let third = standby(&second, "third", "");
    first.reload(&[("synchronous_standby_names", "second")]);
    let servers = [&first, &second, &third];
    let primary = AtomicUsize::new(0);
    let ((), record) = load::run_during(
        4,
        || servers[primary.load(SeqCst)],
        || {
            until_written(&first, 200);
            first.stop(Stop::Kill);
            promote(&second, "-100s");
            primary.store(1, SeqCst);
            // The end of the cascade goes over to the new timeline.
            third.catch_up_with(&second);
            second.reload(&[("synchronous_standby_names", "third")]);
            until_written(&second, 200);
            second.stop(Stop::Kill);
            promote(&third, "-200s");
            primary.store(2, SeqCst);
            until_written(&third, 100);
        },
    );
    let count = record.check(&[&third]);
    assert!(count > 1_000, "{count}");
}

/// Three standbys, of which one is cut off while the primary is written to; then it dies. Of these survivors, the one that
/// has received most is promoted.
fn one_of_three_is_promoted(names: &str, cut: usize, survivors: &[usize]) {
    let primary = options().start();
    primary.client().batch_execute(TABLE).unwrap();
    let standbys = ["s1", "s2", "s3"].map(|name| standby(&primary, name, ""));
    primary.reload(&[("synchronous_standby_names", names)]);
    let ((), mut record) = load::run_during(
        3,
        || &primary,
        || {
            until_written(&primary, 50);
            standbys[cut].reload(&[("primary_conninfo", "")]);
            until_written(&primary, 200);
            primary.stop(Stop::Kill);
        },
    );
    let new = &standbys[*survivors.iter().max_by_key(|&&place| received(&standbys[place])).unwrap()];
    promote(new, "-100s");
    record.add(load::run_during(3, || new, || until_written(new, 50)).1);
    let count = record.check(&[new]);
    assert!(count > 1_000, "{names}: {count}");
}

/// Each of the first two that are there has every reservation.
#[test]
fn the_first_two_have_all() {
    one_of_three_is_promoted("FIRST 2 (s1, s2, s3)", 2, &[1]);
    one_of_three_is_promoted("FIRST 2 (s1, s2, s3)", 0, &[1]);
}

/// Of any two, one has every reservation: the one that has received most.
#[test]
fn of_any_two_one_has_all() {
    one_of_three_is_promoted("ANY 2 (s1, s2, s3)", 0, &[0, 1]);
    one_of_three_is_promoted("ANY 2 (s1, s2, s3)", 1, &[1, 2]);
}

/// An administrator asks for fewer standbys while sessions wait: they go on, and what they get is on the one that is left.
#[test]
fn fewer_standbys_are_asked_for_while_sessions_wait() {
    for (many, few) in [("FIRST 2 (s1, s2)", "FIRST 1 (s1)"), ("ANY 2 (s1, s2)", "ANY 1 (s1, s2)")] {
        let primary = options().start();
        let [s1, s2] = ["s1", "s2"].map(|name| standby(&primary, name, ""));
        primary.reload(&[("synchronous_standby_names", many)]);
        let mut lists = vec![batch(&mut primary.client(), 100)];
        s2.reload(&[("primary_conninfo", "")]);
        let gone = "SELECT count(*) = 1 FROM pg_stat_replication";
        wait_for("s2 is cut off", || value(&mut primary.client(), gone));
        // What is reserved is used up, and then sessions wait.
        thread::sleep(millis(1100));
        let waiting: Vec<_> = (0..3).map(|_| runs(&primary, NEXT)).collect();
        let count =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%snowflake_next%'";
        wait_for("three sessions wait", || value::<i64>(&mut primary.client(), count) == 3);
        primary.reload(&[("synchronous_standby_names", few)]);
        for answer in waiting {
            lists.push(answer.recv_timeout(seconds(60)).expect("the wait ends").unwrap());
        }
        lists.push(batch(&mut primary.client(), 100_000));
        primary.stop(Stop::Kill);
        promote(&s1, "-100s");
        lists.push(batch(&mut s1.client(), 200_000));
        check::distinct(&lists);
    }
}

/// A standby that replays an hour late has received all the same, and replays all of it when it is promoted.
#[test]
fn a_delayed_standby_is_promoted() {
    for paused in [false, true] {
        let primary = options().start();
        primary.client().batch_execute(TABLE).unwrap();
        let delayed = standby(&primary, "delayed", "recovery_min_apply_delay = '1h'");
        primary.reload(&[("synchronous_standby_names", "delayed")]);
        let ((), mut record) = load::run_during(
            3,
            || &primary,
            || {
                until_written(&primary, 100);
                if paused {
                    delayed.client().batch_execute("SELECT pg_wal_replay_pause()").unwrap();
                }
                until_written(&primary, 100);
                primary.stop(Stop::Kill);
            },
        );
        let rows: i64 = value(&mut delayed.client(), "SELECT count(*) FROM stored");
        assert_eq!(rows, 0, "it has replayed no row yet");
        promote(&delayed, "-100s");
        record.add(load::run_during(3, || &delayed, || until_written(&delayed, 50)).1);
        let count = record.check(&[&delayed]);
        assert!(count > 1_000, "{count}");
    }
}

/// The old primary goes on beside the new one, is rewound, which takes its rows away, and is promoted again, with a clock
/// that is behind. The new primary's register knows nothing of the rows that were lost; the registry of workers does.
#[test]
fn a_primary_that_went_on_is_rewound_and_promoted_again() {
    let registry = Setup::of(Kind::Etcd).start();
    let leases = format!("pg_snowflake.registry = '{}'\npg_snowflake.registry_window = '5s'", registry.url());
    let first = options().set("pg_snowflake.worker_id = -1").set(&leases).start();
    first.client().batch_execute(TABLE).unwrap();
    let second = standby(&first, "second", "");
    let mut record = Record::default();
    let mut writes = |server: &Cluster| {
        let ((), more) = load::run_during(2, || server, || until_written(server, 100));
        record.add(more);
    };
    writes(&first);
    second.catch_up_with(&first);
    second.promote();
    second.next_once_up();
    // Both, and the old one last.
    writes(&second);
    writes(&first);
    let before = load::stored(&first, "postgres");
    first.stop(Stop::Fast);
    first.rewind_to(&second);
    first.step_clock("-30s");
    first.start();
    first.catch_up_with(&second);
    second.stop(Stop::Kill);
    promote(&first, "-60s");
    writes(&first);
    let kept: HashSet<i64> = load::stored(&first, "postgres").into_iter().collect();
    let lost = before.iter().filter(|id| !kept.contains(id)).count();
    assert!(lost > 50, "rows are lost with their timeline: {lost}");
    record.check(&[&first]);
}

/// Makes a logical replica of a standby, by `pg_createsubscriber`, which came with PostgreSQL 17.
fn becomes_a_subscriber(standby: &Cluster, name: &str, primary: &Cluster) {
    standby.stop(Stop::Fast);
    let connection = format!("host={} user=postgres dbname=postgres", primary.socket().display());
    let mut create = Installation::under_test().program("pg_createsubscriber", &[]);
    create.args(["--database=postgres", "--pgdata"]);
    create.arg(standby.data()).args(["--publisher-server", &connection, "--subscriber-username=postgres"]);
    create.arg("--socketdir").arg(standby.socket());
    create.args([format!("--publication=for_{name}"), format!("--subscription=of_{name}")]);
    run(&mut create);
    standby.start();
}

/// All rows of the primary are on the subscriber.
fn has_all_of(subscriber: &Cluster, primary: &Cluster) {
    let wanted: HashSet<i64> = load::stored(primary, "postgres").into_iter().collect();
    wait_for("the subscriber has all rows", || {
        let rows: HashSet<i64> = load::stored(subscriber, "postgres").into_iter().collect();
        wanted.is_subset(&rows)
    });
}

fn options_of_publishers() -> Options {
    options().set("wal_level = logical\nmax_replication_slots = 10\nmax_worker_processes = 20")
}

#[test]
fn a_standby_that_becomes_a_subscriber_leases_a_worker_of_its_own() {
    let registry = Setup::of(Kind::Etcd).start();
    let leases = format!("pg_snowflake.registry = '{}'", registry.url());
    let primary = options_of_publishers().set("pg_snowflake.worker_id = -1").set(&leases).start();
    primary.client().batch_execute(TABLE).unwrap();
    let converted = standby(&primary, "converted", "");
    // The primary is written to all the while.
    let (own, mut record) = load::run_during(
        2,
        || &primary,
        || {
            until_written(&primary, 50);
            becomes_a_subscriber(&converted, "converted", &primary);
            load::run_during(2, || &converted, || until_written(&converted, 100)).1
        },
    );
    record.add(own);
    has_all_of(&converted, &primary);
    let worker = "SELECT worker_id FROM snowflake_status()";
    assert_ne!(value::<i32>(&mut primary.client(), worker), value::<i32>(&mut converted.client(), worker));
    let count = record.check(&[&primary, &converted]);
    assert!(count > 1_000, "{count}");
    assert!(!converted.log().contains("duplicate key"), "{}", converted.log());
}

/// With the primary's own worker ID, which its configuration brought along, both make the same IDs, and what the primary
/// writes stops arriving. So it needs another one before it makes its first ID.
#[test]
fn a_standby_that_becomes_a_subscriber_needs_another_worker_id() {
    let primary = options_of_publishers().set("pg_snowflake.sequence_spread = 1").start();
    primary.client().batch_execute(TABLE).unwrap();
    let [copy, numbered] = ["copy", "numbered"].map(|name| standby(&primary, name, ""));
    becomes_a_subscriber(&copy, "copy", &primary);
    // Both use whole ticks at the same time.
    let many = "SELECT snowflake_next(100000)";
    wait_for("an ID comes again", || {
        let answers = [runs(&primary, many), runs(&copy, many)];
        let [ours, theirs] = answers.map(|answer| answer.recv().unwrap().unwrap());
        let ours: HashSet<i64> = ours.into_iter().collect();
        theirs.iter().any(|id| ours.contains(id))
    });
    let same = next(&mut copy.client());
    for server in [&copy, &primary] {
        server.client().execute("INSERT INTO stored (id, session) VALUES ($1, 0)", &[&same]).unwrap();
    }
    wait_for("the subscription stops", || copy.log().contains("duplicate key value violates unique constraint"));
    copy.stop(Stop::Fast);

    // The number is changed while it is a standby, before there is any ID.
    numbered.append("postgresql.conf", "pg_snowflake.worker_id = 2\n");
    becomes_a_subscriber(&numbered, "numbered", &primary);
    assert_eq!(value::<i32>(&mut numbered.client(), "SELECT snowflake_worker(snowflake_next())"), 2);
    let lists = [runs(&primary, many), runs(&numbered, many)].map(|answer| answer.recv().unwrap().unwrap());
    check::distinct(&lists);
    has_all_of(&numbered, &primary);
}
