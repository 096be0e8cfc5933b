//! When a server writes its reservation, and what a clean stop gives back.

use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::given::{SELECT, lead, loaded, server};
use snowflake_test::load::{self, Gate, Record};
use snowflake_test::query::NEXT;
use snowflake_test::{Cluster, Installation, Options, Stop, check, millis, seconds, value};
use std::io::Write as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

// What is written, and when.

/// A thousand calls of this session are refused with this SQLSTATE, and leave no trace.
fn refused_calls_write_nothing(client: &mut Client, code: &str) {
    client.batch_execute("SET pg_snowflake.max_wait = 0").unwrap();
    let look = |client: &mut Client| -> (Option<String>, i64) {
        let query = "SELECT (SELECT reserved_until::text FROM snowflake_status()), \
                     (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let row = client.query_one(query, &[]).unwrap();
        (row.get(0), row.get(1))
    };
    let mut seen = Vec::new();
    for _ in 0..3 {
        // The server may still be writing because of its start.
        thread::sleep(millis(300));
        let before = look(client);
        for _ in 0..1000 {
            refused(client, NEXT, code);
        }
        let after = look(client);
        assert_eq!(after.0, before.0, "the reservation has moved");
        seen.push(after.1 - before.1);
        // Background processes write a little, now and then. The calls would write more.
        if after.1 - before.1 < 2000 {
            return;
        }
    }
    panic!("1,000 refused calls wrote {seen:?} bytes");
}

fn quiet() -> Options {
    Cluster::options().patient().set("autovacuum = off").set("checkpoint_timeout = '1h'")
}

#[test]
fn calls_with_the_clock_far_behind_write_nothing() {
    let cluster = server(quiet(), &["db1"]);
    let mut client = cluster.client();
    client.query(SELECT, &[]).unwrap();
    cluster.step_clock("-3600s");
    // By a session that has made IDs, by one that has not, and in another database.
    refused_calls_write_nothing(&mut client, "55000");
    refused_calls_write_nothing(&mut cluster.client(), "55000");
    refused_calls_write_nothing(&mut cluster.client_of("postgres", "db1"), "55000");
}

#[test]
fn calls_after_a_start_with_the_clock_far_behind_write_nothing() {
    let cluster = server(quiet(), &["db1"]);
    cluster.client().query(SELECT, &[]).unwrap();
    for how in [Stop::Kill, Stop::Fast] {
        cluster.stop(how);
        cluster.step_clock("-3600s");
        cluster.start();
        // The first call after a start reads the register.
        let _ = cluster.client().batch_execute("SET pg_snowflake.max_wait = 0; SELECT snowflake_next()");
        refused_calls_write_nothing(&mut cluster.client(), "55000");
        refused_calls_write_nothing(&mut cluster.client_of("postgres", "db1"), "55000");
    }
}

#[test]
fn calls_past_the_end_of_the_layout_write_nothing() {
    let cluster = server(quiet().set("pg_snowflake.max_jump = '1h'"), &["db1"]);
    let query = "SELECT floor(extract(epoch FROM layout_end - now()))::bigint FROM snowflake_status()";
    let end: i64 = value(&mut cluster.client(), query);
    // Started before the end, as it would not start after it. Then most of the rest is skipped, by a step that is
    // believed.
    cluster.stop(Stop::Fast);
    cluster.step_clock(&format!("+{}s", end - 300));
    cluster.start();
    let mut client = cluster.client();
    cluster.step_clock(&format!("+{}s", end - 4));
    check::wait_for("the layout ends", || client.query(NEXT, &[]).is_err());
    refused_calls_write_nothing(&mut client, "2200H");
    refused_calls_write_nothing(&mut cluster.client_of("postgres", "db1"), "2200H");
}

#[test]
fn many_databases_reserve_no_more_than_one() {
    let databases = ["db0", "db1", "db2", "db3", "db4", "db5", "db6", "db7", "db8", "db9"];
    // Without fsync, PostgreSQL counts no flushes.
    let cluster = server(Cluster::options().set("fsync = on").set("autovacuum = off"), &databases);
    let flushes = if Installation::under_test().major() < 18 {
        "(SELECT wal_sync FROM pg_stat_wal)"
    } else {
        "(SELECT coalesce(sum(fsyncs), 0)::bigint FROM pg_stat_io WHERE object = 'wal')"
    };
    let query = format!("SELECT reservations, {flushes} FROM snowflake_status()");
    let count = || -> (i64, i64) {
        let row = cluster.client().query_one(&query, &[]).unwrap();
        (row.get(0), row.get(1))
    };
    // Processes report what they have flushed about once a second.
    thread::sleep(millis(1500));
    let before = count();
    let start = Instant::now();
    thread::scope(|scope| {
        for database in databases {
            let cluster = &cluster;
            scope.spawn(move || {
                let mut client = cluster.client_of("postgres", database);
                while start.elapsed() < seconds(6) {
                    client.query("SELECT snowflake_next(10)", &[]).unwrap();
                    thread::sleep(millis(1));
                }
            });
        }
    });
    let length = start.elapsed();
    thread::sleep(millis(1500));
    let after = count();
    // One each 750 ms, if the machine does not pause.
    let most = i64::try_from(length.as_millis() / 500).unwrap();
    let (reservations, flushes) = (after.0 - before.0, after.1 - before.1);
    assert!((4..=most).contains(&reservations), "{reservations} reservations in {length:?}, {flushes} flushes");
    assert!(flushes <= 3 * most, "{flushes} flushes in {length:?}, {reservations} reservations");
}

// A clean stop gives back what was not used.

#[test]
fn strict_settings_refuse_nobody_after_a_clean_start() {
    // Reserved for longer than a restart takes on a slow machine: what is not given back is missed.
    let strict = Cluster::options()
        .set("pg_snowflake.reserve_ahead = '4s'")
        .set("pg_snowflake.max_lead = 0")
        .set("pg_snowflake.max_burst = 0")
        .set("pg_snowflake.max_wait = 0");
    let databases = ["db1", "db2"];
    let cluster = loaded(strict, &databases);
    let mut record = Record::default();
    for _ in 0..3 {
        let work = || {
            thread::sleep(millis(500));
            cluster.restart(Stop::Fast);
            thread::sleep(millis(700));
        };
        record.add(load::run_during_in(&databases, 2, || &cluster, work).1);
    }
    let refused = record.refused.iter().filter(|&code| code == "55000").count();
    assert_eq!(refused, 0, "calls were refused, of {}", record.given());
    let count = record.check(&[&cluster]);
    assert!(count > 1_000, "{count}");
}

/// What was read off the clock is old when it is used, and the others were quicker: that is no lead over the clock.
#[test]
fn strict_settings_refuse_no_session_that_is_interrupted() {
    let strict = Cluster::options()
        .set("pg_snowflake.max_lead = 0")
        .set("pg_snowflake.max_burst = 0")
        .set("pg_snowflake.max_wait = 0")
        .with_clock()
        .variable("PGSF_READS_BETWEEN_PAUSES", "3");
    let databases = ["db1"];
    let cluster = loaded(strict, &databases);
    // Without a rest between two calls.
    let during = || thread::sleep(seconds(4));
    let record = load::run_gated(&databases, 6, Duration::ZERO, &Gate::default(), || &cluster, during).1;
    let refused = record.refused.iter().filter(|&code| code == "55000").count();
    assert_eq!(refused, 0, "calls were refused, of {}", record.given());
    assert!(record.check(&[&cluster]) > 1_000);
}

#[test]
fn after_a_clean_start_ids_carry_the_right_time_at_once() {
    let databases = ["db1", "db2", "db3"];
    let cluster = loaded(Cluster::options().set("pg_snowflake.reserve_ahead = '8s'"), &databases);
    let mut record = Record::default();
    for round in 0..3 {
        // Databases that were idle give the first ID, too.
        let busy = &databases[..=round];
        record.add(load::run_during_in(busy, 2, || &cluster, || thread::sleep(millis(400))).1);
        cluster.restart(Stop::Fast);
        for database in databases {
            let ahead = lead(&mut cluster.client_of("postgres", database)).unwrap();
            assert!(ahead < 0.1, "{database} is ahead by {ahead} s in round {round}");
        }
    }
    let count = record.check(&[&cluster]);
    assert!(count > 1_000, "{count}");
}

#[test]
fn a_clean_stop_under_load_takes_a_moment() {
    let databases = ["db1", "db2"];
    let cluster = loaded(Cluster::options().patient(), &databases);
    let mut took = Vec::new();
    for _ in 0..3 {
        load::run_during_in(
            &databases,
            4,
            || &cluster,
            || {
                thread::sleep(millis(300));
                let start = Instant::now();
                cluster.stop(Stop::Fast);
                took.push(start.elapsed());
            },
        );
        cluster.start();
    }
    // The quickest: the machine may be busy with other things.
    assert!(*took.iter().min().unwrap() < seconds(10), "{took:?}");
}

/// The postmaster tells sessions for replication to end after all others, and the keeper is one of those others.
#[test]
fn a_session_for_replication_that_has_made_ids_does_not_keep_the_server_from_stopping() {
    let cluster = quiet().set("wal_level = logical").start();
    cluster.client().batch_execute("CREATE EXTENSION IF NOT EXISTS pg_snowflake").unwrap();
    let last: i64 = value(&mut cluster.client(), "SELECT snowflake_next()");
    let mut psql = cluster.program("psql");
    let mut psql = psql
        .args(["--no-psqlrc", "dbname=postgres replication=database"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = psql.stdin.take().unwrap();
    input.write_all(b"SELECT snowflake_next();\n").unwrap();
    let idle = "SELECT EXISTS (SELECT FROM pg_stat_activity \
                WHERE backend_type = 'walsender' AND state = 'idle' AND query ~ 'snowflake_next')";
    check::wait_for("it has made an ID", || value(&mut cluster.client(), idle));
    let begun = Instant::now();
    cluster.stop(Stop::Fast);
    assert!(begun.elapsed() < seconds(30), "{:?}", begun.elapsed());
    drop(input);
    psql.wait().unwrap();
    cluster.start();
    assert!(value::<i64>(&mut cluster.client(), "SELECT snowflake_next()") > last);
}
