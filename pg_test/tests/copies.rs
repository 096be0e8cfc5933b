//! A database that came from elsewhere, or whose copy of the reservation was written by hand: it repeats no ID, and
//! stops no other database of its server.

use snowflake_test::check::refused;
use snowflake_test::dump::{Dump, Format};
use snowflake_test::given::{Given, SELECT, lead, loaded, narrow, server};
use snowflake_test::load::{self, Record, TABLE, stored};
use snowflake_test::query::NEXT;
use snowflake_test::{Cluster, Options, Stop, millis};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Where a database keeps its own copy of the server's reservation.
const COPY: &str = "_snowflake.reservation";

/// Runs this while these databases make IDs. Returns the largest lead, in seconds, that IDs of the first had over the
/// clock.
fn watched(cluster: &Cluster, databases: &[&str], during: impl FnOnce()) -> (f64, Record) {
    load::run_during_in(
        databases,
        2,
        || cluster,
        || {
            let done = AtomicBool::new(false);
            thread::scope(|scope| {
                let watch = scope.spawn(|| {
                    let mut client = cluster.client_of("postgres", databases[0]);
                    let mut largest = f64::MIN;
                    while !done.load(Ordering::Relaxed) {
                        largest = largest.max(lead(&mut client).unwrap_or(f64::MAX));
                        thread::sleep(millis(5));
                    }
                    largest
                });
                let end = load::End(&done);
                during();
                drop(end);
                watch.join().unwrap()
            })
        },
    )
}

/// Makes a database on a server whose clock is off by this much, restores a dump of it as a database of this server,
/// and returns the IDs in it.
fn restore_from_a_server_off_by(offset: &str, options: Options, cluster: &Cluster, database: &str) -> Vec<i64> {
    let elsewhere = options.create();
    elsewhere.step_clock(offset);
    elsewhere.start();
    elsewhere.database("app");
    let mut client = elsewhere.client_of("postgres", "app");
    client.batch_execute(TABLE).unwrap();
    for _ in 0..20 {
        client.batch_execute("INSERT INTO stored (session) SELECT 0 FROM generate_series(1, 100)").unwrap();
    }
    let dump = Dump::new(&elsewhere, "app", Format::Custom);
    cluster.client().batch_execute(&format!("CREATE DATABASE {database}")).unwrap();
    dump.restore(cluster, database);
    stored(cluster, database)
}

fn a_dump_of_the_far_future(offset: &str) {
    let cluster = loaded(Cluster::options().patient().set("pg_snowflake.max_wait = '300ms'"), &["db1", "db2"]);
    let (largest_lead, record) = watched(&cluster, &["db1", "db2"], || {
        restore_from_a_server_off_by(offset, Cluster::options().patient(), &cluster, "restored");
        let mut client = cluster.client_of("postgres", "restored");
        for _ in 0..3 {
            for query in [NEXT, "INSERT INTO stored (session) VALUES (1)", SELECT] {
                refused(&mut client, query, "55000");
            }
        }
        thread::sleep(millis(1000));
        assert!(client.query(NEXT, &[]).is_err(), "the restored database makes IDs");
    });
    assert!(record.refused.is_empty(), "{} calls of the others: {:?}", record.refused.len(), record.refused[0]);
    assert!(largest_lead < 2.0, "the others are ahead by {largest_lead} s");
    // Also after a start, when no other database has made an ID yet.
    cluster.restart(Stop::Kill);
    assert!(cluster.client_of("postgres", "restored").query(SELECT, &[]).is_err());
    let ahead = lead(&mut cluster.client_of("postgres", "db2")).unwrap();
    assert!(ahead < 2.0, "after a start, the others are ahead by {ahead} s");
    let count = record.check(&[&cluster]);
    assert!(count > 1_000, "{count}");
}

#[test]
fn a_dump_of_an_hour_ahead_stops_no_other_database() {
    a_dump_of_the_far_future("+3600s");
}

#[test]
fn a_dump_of_a_year_ahead_stops_no_other_database() {
    a_dump_of_the_far_future("+31536000s");
}

#[test]
fn a_dump_of_minutes_ahead_waits_for_its_own_time_alone() {
    let cluster = loaded(narrow().set("pg_snowflake.max_wait = '300ms'"), &["db1", "db2"]);
    let mut dumped = Vec::new();
    let mut given = Given::default();
    let (largest_lead, record) = watched(&cluster, &["db1", "db2"], || {
        dumped = restore_from_a_server_off_by("+300s", narrow(), &cluster, "restored");
        let mut client = cluster.client_of("postgres", "restored");
        let error = refused(&mut client, SELECT, "55000");
        let detail = error.detail().unwrap();
        assert!(detail.contains("This database makes IDs again in 29"), "{detail}");
        thread::sleep(millis(500));
        refused(&mut client, SELECT, "55000");
    });
    assert!(record.refused.is_empty(), "{} calls of the others: {:?}", record.refused.len(), record.refused[0]);
    assert!(largest_lead < 2.0, "the others are ahead by {largest_lead} s");
    // When the clock is there, also after a crash, and when the clock is set back after that.
    for offset in ["+301s", "+291s"] {
        cluster.stop(Stop::Kill);
        cluster.step_clock(offset);
        cluster.start();
        given.claim(&cluster, "restored", 300);
    }
    let lowest = given.0.iter().flatten().min().unwrap();
    assert!(dumped.len() == 2000 && dumped.iter().max().unwrap() < lowest);
    record.check(&[&cluster]);
    given.0.push(dumped);
    given.0.extend(["db1", "db2"].map(|database| stored(&cluster, database)));
    given.check();
}

// Roles that may write all data may write the copy.

const FAR_AHEAD: &str = "(extract(epoch FROM now()) * 1000)::bigint + 315576000000";
/// Less than `max_lead`.
const MINUTES_AHEAD: &str = "(extract(epoch FROM now()) * 1000)::bigint + 590000";
/// A step ahead of where the server's line is, as far as this database knows.
const A_STEP_AHEAD: &str = "(SELECT last_value FROM _snowflake.reservation) + 900";
const FAR_BACK: &str = "1";

fn create_writer(cluster: &Cluster) {
    cluster.client().batch_execute("CREATE ROLE writer LOGIN; GRANT pg_write_all_data TO writer").unwrap();
}

fn set_copy(cluster: &Cluster, database: &str, value: &str) {
    cluster.client_of("writer", database).query(&format!("SELECT setval('{COPY}', {value})"), &[]).unwrap();
}

#[test]
fn a_copy_set_by_hand_stops_no_other_database() {
    let (others, all) = (["db1", "db2"], ["db1", "db2", "db3"]);
    let cluster = loaded(Cluster::options().patient().set("pg_snowflake.max_wait = '1s'"), &all);
    create_writer(&cluster);
    let ((largest_lead, mut record), attacked) = load::run_during_in(
        &["db3"],
        2,
        || &cluster,
        || {
            watched(&cluster, &others, || {
                thread::sleep(millis(500));
                for value in [FAR_AHEAD, FAR_BACK, MINUTES_AHEAD, FAR_BACK, FAR_AHEAD] {
                    set_copy(&cluster, "db3", value);
                    // New sessions read it, and sessions that need a new reservation.
                    let _ = cluster.client_of("postgres", "db3").query(SELECT, &[]);
                    thread::sleep(millis(900));
                }
                set_copy(&cluster, "db3", FAR_BACK);
                for _ in 0..20 {
                    let _ = cluster.client_of("postgres", "db3").query(NEXT, &[]);
                    set_copy(&cluster, "db3", A_STEP_AHEAD);
                }
            })
        },
    );
    assert!(record.refused.is_empty(), "{} calls of the others: {:?}", record.refused.len(), record.refused[0]);
    assert!(largest_lead < 2.0, "the others are ahead by {largest_lead} s");
    record.add(attacked);
    cluster.stop(Stop::Kill);
    cluster.step_clock("-10s");
    cluster.start();
    let _ = cluster.client_of("postgres", "db3").query(SELECT, &[]);
    let ((), after) = load::run_during_in(&others, 2, || &cluster, || thread::sleep(millis(500)));
    assert!(after.refused.is_empty(), "{} calls after a crash: {:?}", after.refused.len(), after.refused[0]);
    record.add(after);
    let count = record.check(&[&cluster]);
    assert!(count > 1_000, "{count}");
}

#[test]
fn a_copy_set_back_repeats_nothing() {
    let cluster = server(narrow(), &["db1", "db2"]);
    create_writer(&cluster);
    let mut given = Given::default();
    let began = Instant::now();
    for _ in 0..2 {
        given.claim(&cluster, "db1", 100);
        given.claim(&cluster, "db2", 300);
        set_copy(&cluster, "db1", FAR_BACK);
        set_copy(&cluster, "db2", FAR_BACK);
        cluster.stop(Stop::Kill);
        // The same time passes once more.
        cluster.step_clock(&format!("-{}s", began.elapsed().as_secs() + 1));
        cluster.start();
        given.claim_past(&cluster, "db2");
        given.claim_past(&cluster, "db1");
    }
    given.check();
}

#[test]
fn a_copy_of_a_database_and_its_template_crash_together() {
    let cluster = server(narrow(), &["db1"]);
    let mut given = Given::default();
    given.claim(&cluster, "db1", 100);
    cluster.client().batch_execute("CREATE DATABASE copy TEMPLATE db1").unwrap();
    given.claim(&cluster, "db1", 100);
    for (idle, busy) in [("db1", "copy"), ("copy", "db1")] {
        given.claim(&cluster, idle, 50);
        // Longer than a reservation lasts.
        given.claim(&cluster, busy, 1300);
        cluster.stop(Stop::Kill);
        cluster.step_clock("-30s");
        cluster.start();
        given.claim_past(&cluster, idle);
        given.claim_past(&cluster, busy);
    }
    given.check();
}
