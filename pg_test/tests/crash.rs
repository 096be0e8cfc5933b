//! One server through crashes, with its clock set back: of all IDs that were ever given or stored, none is given twice.

use fastrand::Rng;
use postgres::Client;
use snowflake_test::check::{self, refused};
use snowflake_test::load::{self, Record, TABLE};
use snowflake_test::query::{NEXT, batch, ids, next};
use snowflake_test::{Cluster, Stop, millis, value};
use std::thread;

const ROUNDS: usize = 20;

/// A server with a clock and the load's table.
fn server() -> Cluster {
    let cluster = Cluster::options().patient().start();
    cluster.client().batch_execute(TABLE).unwrap();
    cluster
}

fn load(cluster: &Cluster, during: impl FnOnce()) -> Record {
    load::run_during(8, || cluster, during).1
}

#[test]
fn the_postmaster_is_killed_and_the_clock_set_back() {
    let cluster = server();
    let mut record = Record::default();
    for round in 0..ROUNDS {
        let offset = ["-10s", "+0s", "-600s", "+0s"][round % 4];
        record.add(load(&cluster, || {
            thread::sleep(millis(150));
            cluster.stop(Stop::Kill);
            cluster.step_clock(offset);
            cluster.start();
            cluster.next_once_up();
            thread::sleep(millis(100));
        }));
    }
    let count = record.check(&[&cluster]);
    assert!(count > 20_000, "{count}");
    assert!(record.refused.iter().all(|code| code != "55000"), "nobody was refused: {:?}", record.refused);
    assert!(cluster.log().contains("The server was started after a crash."));
}

/// Without rows, the log is only flushed for the reservation itself.
#[test]
fn ids_that_left_without_a_row_are_not_given_again() {
    let cluster = Cluster::options().patient().set("autovacuum = off").start();
    let mut client = cluster.client();
    let ends = |client: &mut Client| -> Vec<i64> {
        let row = client.query_one("SELECT min(id), max(id) FROM snowflake_next(50000) id", &[]).unwrap();
        vec![row.get(0), row.get(1)]
    };
    let mut lists = Vec::new();
    for round in 0..10 {
        cluster.stop_writers();
        // Just after a reservation was written: no other process has flushed it.
        let written = |client: &mut Client| -> i64 { value(client, "SELECT reservations FROM snowflake_status()") };
        let before = written(&mut client);
        while written(&mut client) == before {
            lists.push(ends(&mut client));
        }
        lists.push(batch(&mut client, 5000));
        cluster.stop(Stop::Kill);
        cluster.step_clock(if round % 2 == 0 { "-30s" } else { "+0s" });
        cluster.start();
        client = cluster.client();
        lists.push(batch(&mut client, 20_000));
    }
    check::rising(&lists.concat());
}

#[test]
fn a_session_is_killed_and_shared_memory_made_anew() {
    let cluster = server();
    let record = load(&cluster, || {
        for round in 0..ROUNDS {
            thread::sleep(millis(100));
            cluster.step_clock(["-10s", "+0s"][round % 2]);
            cluster.crash_any_session();
            cluster.next_once_up();
        }
    });
    let count = record.check(&[&cluster]);
    assert!(count > 20_000, "{count}");
    assert!(cluster.log().matches("reinitializing").count() >= ROUNDS / 2);
}

#[test]
fn the_server_is_stopped_and_started_at_once() {
    let cluster = server();
    let mut record = Record::default();
    for (round, how) in [Stop::Immediate, Stop::Fast, Stop::Immediate, Stop::Fast].into_iter().enumerate() {
        record.add(load(&cluster, || {
            thread::sleep(millis(200));
            cluster.stop(how);
            cluster.step_clock(["-10s", "-20s", "+0s", "-1s"][round]);
            cluster.start();
            cluster.next_once_up();
            thread::sleep(millis(200));
        }));
    }
    assert!(record.check(&[&cluster]) > 5_000);
    assert!(cluster.log().contains("The server was started after a clean shutdown."));
}

/// By up to an hour forward and back, at random. The lead allows for it.
#[test]
fn the_clock_jumps_for_a_minute() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_lead = '3h'").start();
    cluster.client().batch_execute(TABLE).unwrap();
    let mut random = Rng::with_seed(20_261_120);
    let record = load(&cluster, || {
        for _ in 0..240 {
            let seconds = random.i64(-3600..3600);
            cluster.step_clock(&format!("{seconds:+}s"));
            thread::sleep(millis(250));
        }
    });
    let count = record.check(&[&cluster]);
    assert!(count > 100_000, "{count}");
    assert!(record.refused.is_empty(), "{:?}", record.refused);
    let query = "SELECT clock_steps, extract(epoch FROM largest_clock_step)::bigint FROM snowflake_status()";
    let row = cluster.client().query_one(query, &[]).unwrap();
    let (steps, largest): (i64, i64) = (row.get(0), row.get(1));
    let log = cluster.log();
    assert!(!log.contains("terminated by signal"), "{log}");
    assert!(steps > 30 && largest > 600, "{steps} steps, the largest of {largest} s");
}

#[test]
fn a_restart_with_the_clock_far_back_refuses_until_it_is_right() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '300ms'").start();
    let before = next(&mut cluster.client());
    cluster.stop(Stop::Kill);
    cluster.step_clock("-7200s");
    cluster.start();
    let mut client = cluster.client();
    let error = refused(&mut client, NEXT, "55000");
    assert!(error.message().starts_with("the clock is 7"), "{}", error.message());
    assert!(cluster.log().contains(" s ahead of the clock"), "{}", cluster.log());
    let row = client.query_one("SELECT extract(epoch FROM lead)::bigint, errors, waits FROM snowflake_status()", &[]);
    let row = row.unwrap();
    assert!((7100..7300).contains(&row.get::<_, i64>(0)) && row.get::<_, i64>(1) == 1 && row.get::<_, i64>(2) == 1);
    cluster.step_clock("+0s");
    assert!(next(&mut client) > before);
}

/// Each database has its own copy of the reservation, and all have one line of IDs.
#[test]
fn two_databases_crash_together() {
    let cluster = server();
    cluster.client().batch_execute("CREATE DATABASE other").unwrap();
    let mut other = cluster.client_of("postgres", "other");
    other.batch_execute("CREATE SCHEMA ids; CREATE EXTENSION pg_snowflake SCHEMA ids").unwrap();
    let mut lists: Vec<Vec<i64>> = Vec::new();
    for round in 0..6 {
        let mut first = cluster.client();
        let mut other = cluster.client_of("postgres", "other");
        for _ in 0..200 {
            let a = first.query("SELECT snowflake_next(20)", &[]).unwrap();
            let b = other.query("SELECT ids.snowflake_next(20)", &[]).unwrap();
            lists.push([ids(&a), ids(&b)].concat());
        }
        cluster.stop(Stop::Kill);
        cluster.step_clock(["-10s", "-20s"][round % 2]);
        cluster.start();
    }
    check::rising(&lists.concat());

    // The extension in one more database does not raise the next ID.
    let lead = |cluster: &Cluster| -> f64 {
        let lead = "SELECT extract(epoch FROM lead)::float8 FROM snowflake_status()";
        value(&mut cluster.client(), lead)
    };
    next(&mut cluster.client());
    let before = lead(&cluster);
    for number in 0..5 {
        cluster.client().batch_execute(&format!("CREATE DATABASE more{number}")).unwrap();
        let mut more = cluster.client_of("postgres", &format!("more{number}"));
        more.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
        lists.push(batch(&mut more, 10));
    }
    assert!(lead(&cluster) <= before + 0.1, "{before} became {}", lead(&cluster));
    check::rising(&lists.concat());
}

#[test]
fn the_extension_is_dropped_and_created_under_load() {
    let cluster = server();
    cluster.client().batch_execute("ALTER TABLE stored ALTER id DROP DEFAULT").unwrap();
    // The clock is behind the last ID all the time, so it cannot tell which IDs were made.
    cluster.step_clock("-60s");
    let record = load(&cluster, || {
        let mut client = cluster.client();
        for _ in 0..20 {
            client.batch_execute("DROP EXTENSION pg_snowflake").unwrap();
            thread::sleep(millis(20));
            client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
            thread::sleep(millis(50));
        }
        cluster.stop(Stop::Kill);
        cluster.step_clock("-10s");
        cluster.start();
        cluster.next_once_up();
        thread::sleep(millis(200));
    });
    assert!(record.check(&[&cluster]) > 1_000);
    // Undefined function; extension not created; shutdown, crash, cannot connect now; no default for a column that is not null; and
    // PostgreSQL's own words for a function that is dropped between two looks at the catalogue.
    let expected = ["42883", "55000", "57P01", "57P02", "57P03", "23502", "XX000 cache lookup failed for function"];
    let unexpected: Vec<&String> =
        record.messages.keys().filter(|message| !expected.iter().any(|start| message.starts_with(start))).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
    assert!(!cluster.log().contains("terminated by signal 11"), "{}", cluster.log());
}
