//! Settings at the start and by reload; a server without preloading; other layouts.

use snowflake_test::check::{self, refused};
use snowflake_test::query::{NEXT, batch, next};
use snowflake_test::{Cluster, millis, seconds, value};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

#[test]
fn not_preloaded_decoding_works_and_making_says_what_to_do() {
    let cluster = Cluster::options()
        .not_preloaded()
        .set("shared_preload_libraries = 'plpgsql'")
        .set("pg_snowflake.layout = 'twitter'")
        .start();
    let mut client = cluster.client();
    let row = client
        .query_one(
            "SELECT snowflake_timestamp(1541815603606036480)::text, (snowflake_decode(1541815603606036480)).worker_id",
            &[],
        )
        .unwrap();
    assert_eq!(row.get::<_, String>(0), "2022-06-28 16:07:40.105+00", "the layout of postgresql.conf holds");
    assert_eq!(row.get::<_, i32>(1), 26);
    let segments = [
        "SELECT snowflake_segment_next('x')",
        "SELECT snowflake_segment_next('x', 5)",
        "SELECT snowflake_segment_create('x')",
        "SELECT * FROM snowflake_segments()",
        "SELECT * FROM snowflake_segments(false)",
    ];
    for query in [NEXT, "SELECT snowflake_next(5)"].into_iter().chain(segments) {
        let error = refused(&mut client, query, "55000");
        assert_eq!(error.message(), "pg_snowflake must be loaded via shared_preload_libraries");
        let hint = error.hint().unwrap();
        assert!(hint.contains("shared_preload_libraries = 'plpgsql, pg_snowflake'"), "{hint}");
    }
    assert!(client.query_one("SELECT snowflake_min_id('2024-01-01')", &[]).is_ok(), "the session goes on");
}

#[test]
fn without_a_worker_no_id_is_made() {
    let cluster = Cluster::options().not_preloaded().set("shared_preload_libraries = 'pg_snowflake'").start();
    let mut client = cluster.client();
    let error = refused(&mut client, NEXT, "55000");
    assert_eq!(error.message(), "pg_snowflake.worker_id is not set");
    assert!(error.detail().unwrap().contains("from 0 to 1023"));
    assert!(error.hint().unwrap().contains("ALTER SYSTEM SET pg_snowflake.worker_id = 1"));
    // Doing what the hint says helps, also for a session that is connected already.
    cluster.reload(&[("pg_snowflake.worker_id", "42")]);
    assert_eq!(value::<i32>(&mut client, "SELECT snowflake_worker(snowflake_next())"), 42);
    cluster.reload(&[("pg_snowflake.worker_id", "-1")]);
    assert!(client.query_one(NEXT, &[]).is_err());
}

#[test]
fn a_start_with_a_wrong_identity_ends() {
    for (lines, message, detail) in [
        (
            "pg_snowflake.layout = 'twiter'",
            "invalid value for parameter \"pg_snowflake.layout\": \"twiter\"",
            "No built-in layout",
        ),
        ("pg_snowflake.layout = 'timestamp=41 worker=11 sequence=12'", "\"pg_snowflake.layout\"", "64 bits"),
        ("pg_snowflake.epoch = 'yesterday'", "\"pg_snowflake.epoch\": \"yesterday\"", "must be an instant in UTC"),
        (
            "pg_snowflake.epoch = '9990-01-01T00:00:00Z'",
            "pg_snowflake.epoch does not fit pg_snowflake.layout",
            "year 9999",
        ),
        ("pg_snowflake.layout = 'baidu'", "the time of pg_snowflake.layout is over", "ended at 2024-11-20T13:24:16Z"),
        ("pg_snowflake.layout = 'cockroach'", "\"pg_snowflake.layout\": \"cockroach\"", "sequence is missing"),
        ("pg_snowflake.layout = 'mastodon'", "\"pg_snowflake.layout\": \"mastodon\"", "worker is missing"),
        ("pg_snowflake.worker_id = 1024", "\"pg_snowflake.worker_id\": 1024", "from 0 to 1023"),
        ("pg_snowflake.datacenter_id = 3", "\"pg_snowflake.datacenter_id\": 3", "has no datacenter"),
        (
            "pg_snowflake.layout = 'twitter'\npg_snowflake.worker_id = 32",
            "\"pg_snowflake.worker_id\": 32",
            "from 0 to 31",
        ),
    ] {
        let cluster = Cluster::options().set(lines).create();
        let log = cluster.try_start().expect_err(lines);
        assert!(log.contains("FATAL") && log.contains(message) && log.contains(detail), "{lines}:\n{log}");
        assert!(log.contains("HINT") && !log.contains("panicked"), "{lines}:\n{log}");
    }
}

#[test]
fn an_epoch_in_the_future_makes_no_ids() {
    let cluster =
        Cluster::options().set("pg_snowflake.epoch = '2080-01-01T00:00:00Z'").set("pg_snowflake.max_wait = 0").start();
    refused(&mut cluster.client(), NEXT, "55000");
}

#[test]
fn the_worker_changes_while_sessions_run() {
    const WORKERS: [i64; 7] = [900, 7, 800, 3, 0, 1023, 5];
    let cluster = Cluster::options().set("pg_snowflake.worker_id = 900").start();
    let done = AtomicBool::new(false);
    let seen = Mutex::new(BTreeSet::new());
    let lists = thread::scope(|scope| {
        let reloads = scope.spawn(|| {
            for worker in WORKERS {
                if worker != WORKERS[0] {
                    cluster.reload(&[("pg_snowflake.worker_id", &worker.to_string())]);
                }
                // No panic when the time is over, as the sessions must be told to end. The order is checked below.
                let start = Instant::now();
                while !seen.lock().unwrap().contains(&worker) && start.elapsed() < seconds(60) {
                    thread::sleep(millis(5));
                }
                thread::sleep(millis(150));
            }
            done.store(true, Ordering::Relaxed);
        });
        let lists = cluster.sessions(8, |session, client| {
            let mut list = Vec::new();
            while !done.load(Ordering::Relaxed) {
                match session {
                    // A long statement does not read the configuration before its end, and must follow all the same.
                    0 => list.extend(batch(client, 200_000)),
                    1..4 => list.extend(batch(client, 50)),
                    _ => list.push(next(client)),
                }
                seen.lock().unwrap().extend(list.last().map(|id| id >> 12 & 1023));
            }
            list
        });
        reloads.join().unwrap();
        lists
    });
    lists.iter().for_each(|list| check::rising(list));
    check::distinct(&lists);

    // In the order of IDs, those of a worker are one run: the server changes the worker at a single moment.
    let mut all = lists.concat();
    all.sort_unstable();
    let mut order: Vec<i64> = all.iter().map(|id| id >> 12 & 1023).collect();
    order.dedup();
    assert_eq!(order, WORKERS);
}

#[test]
fn twitter_ids_have_a_datacenter() {
    let cluster = Cluster::options().set("pg_snowflake.layout = 'twitter'").set("pg_snowflake.worker_id = 26").start();
    let mut client = cluster.client();
    let error = refused(&mut client, NEXT, "55000");
    assert_eq!(error.message(), "pg_snowflake.datacenter_id is not set");
    cluster.reload(&[("pg_snowflake.datacenter_id", "11")]);
    let query = "SELECT (p).datacenter_id, (p).worker_id, abs(extract(epoch FROM now() - (p).timestamp)) < 60 \
                 FROM (SELECT snowflake_decode(snowflake_next()) AS p OFFSET 0) one";
    let row = client.query_one(query, &[]).unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), (11, 26, true));
    // An ID of Twitter's, decoded and encoded again.
    let query = "SELECT d.*::text, snowflake_encode(d.timestamp, d.worker_id, d.sequence, d.datacenter_id) \
                 FROM (SELECT (snowflake_decode(1541815603606036480)).*) d";
    let row = client.query_one(query, &[]).unwrap();
    assert_eq!(row.get::<_, String>(0), "(\"2022-06-28 16:07:40.105+00\",11,26,0)");
    assert_eq!(row.get::<_, i64>(1), 1541815603606036480);
}

#[test]
fn layouts_of_ones_own_generate_and_decode() {
    for (layout, worker, tick) in [
        ("timestamp=41 worker=9 sequence=13", 511, "1 millisecond"),
        ("sonyflake", 65535, "10 milliseconds"),
        ("sonyflake2", 65535, "10 milliseconds"),
        ("instagram", 8191, "1 millisecond"),
        ("yitter", 63, "1 millisecond"),
        ("timestamp=31 worker=22 sequence=10 tick=1s", 4_194_303, "1 second"),
        ("cosid-js", 7, "1 millisecond"),
    ] {
        let cluster = Cluster::options()
            .set(&format!("pg_snowflake.layout = '{layout}'"))
            .set(&format!("pg_snowflake.worker_id = {worker}"))
            .start();
        let lists = cluster.sessions(3, |_, client| batch(client, 300));
        lists.iter().for_each(|list| check::rising(list));
        assert_eq!(check::distinct(&lists), 900);
        let query = format!(
            "SELECT count(*), bool_and((p).worker_id = {worker}), \
             bool_and((p).timestamp BETWEEN now() - interval '1 min' AND now() + interval '1 min'), \
             bool_and(id = snowflake_encode((p).timestamp, (p).worker_id, (p).sequence)), \
             bool_and(id = snowflake_encode((p).timestamp + interval '{tick}' * 0.99, (p).worker_id, (p).sequence)) \
             FROM (SELECT id, snowflake_decode(id) AS p FROM unnest($1::bigint[]) id) ids"
        );
        let row = cluster.client().query_one(&query, &[&lists.concat()]).unwrap();
        assert_eq!(
            (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4)),
            (900_i64, true, true, true, true),
            "{layout}"
        );
    }
}

#[test]
fn the_epoch_can_be_set_apart_from_the_layout() {
    let cluster = Cluster::options().set("pg_snowflake.epoch = '2020-02-20T00:00:00Z'").start();
    let row = cluster
        .client()
        .query_one("SELECT snowflake_timestamp(0)::text, snowflake_timestamp(snowflake_next()) - now() < '1 min'", &[])
        .unwrap();
    assert_eq!((row.get::<_, String>(0).as_str(), row.get(1)), ("2020-02-20 00:00:00+00", true));
}

#[test]
fn looking_at_the_status_makes_no_id() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let query = "SELECT last_time::text, reserved_until::text, reservations, waits, errors FROM snowflake_status()";
    next(&mut client);
    let mut look = || {
        let row = client.query_one(query, &[]).unwrap();
        (row.get::<_, String>(0), row.get::<_, String>(1), [2, 3, 4].map(|column| row.get::<_, i64>(column)))
    };
    let before = look();
    assert_eq!(before.2, [1, 0, 0]);
    thread::sleep(millis(1500)); // for longer than the reservation
    assert_eq!(look(), before);
}

/// A server that makes an ID every two seconds writes a reservation for each; a busy one about one a second, however
/// many sessions it has.
#[test]
fn reservations_are_written_about_once_in_their_time() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let mut written = || -> i64 { value(&mut client, "SELECT reservations FROM snowflake_status()") };
    let before = written();
    let start = Instant::now();
    cluster.sessions(16, |_, client| {
        while start.elapsed() < seconds(6) {
            client.query("SELECT snowflake_next(10)", &[]).unwrap();
        }
    });
    let (count, length) = (written() - before, start.elapsed());
    // One each 750 ms, if the machine does not pause.
    let most = i64::try_from(length.as_millis() / 600).unwrap();
    assert!((4..=most).contains(&count), "{count} reservations in {length:?}");
}

/// Sharding by `id % n` needs more than one remainder.
#[test]
fn rare_ids_spread_over_remainders() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let mut remainders = |spread: &str| {
        cluster.reload(&[("pg_snowflake.sequence_spread", spread)]);
        let rare = |_| {
            thread::sleep(millis(3));
            value::<i64>(&mut client, "SELECT snowflake_next() % 16")
        };
        (0..100).map(rare).collect::<BTreeSet<i64>>().len()
    };
    assert_eq!(remainders("64"), 16);
    assert_eq!(remainders("1"), 1);
}

#[test]
fn an_errors_detail_is_no_backtrace() {
    let cluster = Cluster::options()
        .variable("RUST_BACKTRACE", "1")
        .not_preloaded()
        .set("shared_preload_libraries = 'pg_snowflake'")
        .start();
    let mut client = cluster.client();
    for query in [NEXT, "SELECT snowflake_timestamp(-1)", "SELECT snowflake_from_text('x', 'hex')"] {
        let error = client.query(query, &[]).unwrap_err();
        let detail = error.as_db_error().unwrap().detail().unwrap().to_owned();
        assert!(!detail.contains('\n'), "{query}: {detail}");
    }
    assert!(!cluster.log().contains("stack backtrace"), "{}", cluster.log());
}
