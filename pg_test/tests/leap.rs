//! A clock that leaps a year ahead, for a moment or for good, under load, across a reload and a crash; and the way back
//! for a server that has made IDs by such a clock.

use postgres::Client;
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::load::{self, TABLE};
use snowflake_test::programs::output;
use snowflake_test::query::{NEXT, batch, next};
use snowflake_test::{Cluster, Stop, seconds, value};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

const YEAR_AHEAD: &str = "+31536000s";

fn server() -> Cluster {
    let cluster = Cluster::options().with_clock().start();
    cluster.client().batch_execute(TABLE).unwrap();
    cluster
}

fn true_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// How far the next ID is ahead of the true time, in seconds, at least and at most: it is made while this runs.
fn ahead_between(client: &mut Client) -> (f64, f64) {
    let before = true_time();
    let id: f64 = value(client, "SELECT extract(epoch FROM snowflake_timestamp(snowflake_next()))::float8");
    (id - true_time(), id - before)
}

/// How far it is at least.
fn ahead(client: &mut Client) -> f64 {
    ahead_between(client).0
}

/// The next ID is ahead of the true time by this many seconds, give or take the burst.
#[track_caller]
fn is_ahead_by(client: &mut Client, lead: f64) {
    let (least, most) = ahead_between(client);
    assert!(least < lead + 0.3 && lead - 0.3 < most, "from {least} to {most}, not {lead}");
}

fn leaps(cluster: &Cluster) -> (i64, Option<f64>) {
    let query = "SELECT clock_leaps, extract(epoch FROM clock_leap)::float8 FROM snowflake_status()";
    let row = cluster.client().query_one(query, &[]).unwrap();
    (row.get(0), row.get(1))
}

/// A load while the clock is a year ahead for so many seconds; none of its IDs is. Returns how many there are.
fn leap_under_load(cluster: &Cluster, length: u64) -> usize {
    let ((), record) = load::run_during(
        4,
        || cluster,
        || {
            thread::sleep(seconds(1));
            cluster.step_clock(YEAR_AHEAD);
            thread::sleep(seconds(length));
            cluster.step_clock("+0s");
            thread::sleep(seconds(1));
        },
    );
    assert!(record.refused.is_empty(), "{:?}", record.refused);
    let highest: i64 = cluster.client().query_one("SELECT max(id) FROM stored", &[]).unwrap().get(0);
    let limit: i64 =
        cluster.client().query_one("SELECT snowflake_min_id(now() + interval '1 min')", &[]).unwrap().get(0);
    assert!(highest < limit, "an ID has the time of the leap");
    record.check(&[cluster])
}

#[test]
fn for_a_second_and_for_thirty_it_leaves_no_trace() {
    let cluster = server();
    leap_under_load(&cluster, 1);
    assert_eq!(leaps(&cluster), (1, None));
    leap_under_load(&cluster, 30);
    assert_eq!(leaps(&cluster), (2, None));
    assert!(ahead(&mut cluster.client()) < 1.0);
    let log = cluster.log();
    assert!(log.contains("WARNING:  the clock has leapt forward by 3153"), "{log}");
    assert!(log.contains("pg_snowflake.max_jump (10 s)"), "{log}");
    // A restart begins where the IDs are.
    cluster.stop(Stop::Kill);
    cluster.start();
    assert!(ahead(&mut cluster.client()) < 2.0);
}

/// Ninety seconds under load: after a minute, the clock is believed.
#[test]
fn for_longer_than_a_minute_it_is_believed() {
    let cluster = server();
    let mut client = cluster.client();
    cluster.reload(&[("pg_snowflake.max_lead", "730d")]);
    let ((), record) = load::run_during(
        4,
        || &cluster,
        || {
            cluster.step_clock(YEAR_AHEAD);
            let start = Instant::now();
            thread::sleep(seconds(40));
            assert!(ahead(&mut client) < 1.0);
            let (count, leap) = leaps(&cluster);
            assert!(count == 1 && leap.is_some_and(|leap| leap > 31_000_000.0), "{count} {leap:?}");
            // A reload changes nothing of it.
            cluster.reload(&[("pg_snowflake.max_burst", "120ms")]);
            assert!(ahead(&mut client) < 1.0);
            wait_for("the clock is believed", || ahead(&mut client) > 31_000_000.0);
            assert!(start.elapsed() > seconds(59), "{:?}", start.elapsed());
            thread::sleep(seconds(5));
            cluster.step_clock("+0s");
            thread::sleep(seconds(1));
        },
    );
    record.check(&[&cluster]);
    assert!(record.refused.is_empty(), "{:?}", record.refused);
    assert!(cluster.log().contains("Snowflake IDs have its time from now on."), "{}", cluster.log());
}

/// A session's crash makes shared memory anew, and the postmaster remembers the clock. Twice, with another leap
/// between.
#[test]
fn a_crash_in_the_middle_does_not_make_it_believed() {
    let cluster = server();
    for _ in 0..2 {
        assert!(ahead(&mut cluster.client()) < 2.0);
        cluster.step_clock(YEAR_AHEAD);
        assert!(ahead(&mut cluster.client()) < 2.0);
        cluster.crash_session("postgres");
        let lead = cluster.retry(|client| {
            client.query_one("SELECT snowflake_next()", &[])?;
            Ok(ahead(client))
        });
        assert!(lead < 3.0, "{lead}");
        cluster.step_clock("+0s");
    }
}

/// A small leap is followed at once, and so is a clock that was behind and is set right.
#[test]
fn what_can_do_no_harm_is_followed_at_once() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = 0").start();
    let mut client = cluster.client();
    assert!(ahead(&mut client) < 1.0);
    cluster.step_clock("+8s");
    is_ahead_by(&mut client, 8.0);
    cluster.step_clock("+16s");
    is_ahead_by(&mut client, 16.0);
    cluster.step_clock("-3600s");
    let error = refused(&mut client, NEXT, "55000");
    let hint = error.hint().unwrap();
    assert!(hint.contains("If it is right") && hint.contains("snowflake_rewind()"), "{hint}");
    cluster.step_clock("+20s");
    is_ahead_by(&mut client, 20.0);
    assert_eq!(leaps(&cluster), (0, None));
}

// The way back.

/// A server that was started with its clock a year ahead, has made IDs by it, and has the right time again.
fn server_a_year_ahead() -> Cluster {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = 0").create();
    cluster.start();
    let mut client = cluster.client();
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    client.batch_execute(TABLE).unwrap();
    client.batch_execute("INSERT INTO stored (session) SELECT 1 FROM generate_series(1, 1000)").unwrap();
    cluster.stop(Stop::Fast);
    cluster.step_clock(YEAR_AHEAD);
    cluster.start();
    let mut client = cluster.client();
    client.batch_execute("INSERT INTO stored (session) SELECT 2 FROM generate_series(1, 1000)").unwrap();
    cluster.step_clock("+0s");
    refused(&mut client, NEXT, "55000");
    cluster
}

#[test]
fn a_server_that_is_a_year_ahead_goes_back() {
    let cluster = server_a_year_ahead();
    cluster.client().batch_execute("CREATE DATABASE other").unwrap();
    let mut other = cluster.client_of("postgres", "other");
    other.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    assert!(other.query("SELECT snowflake_next()", &[]).is_err());

    // Rows of the year ahead are there: the error says which.
    let mut client = cluster.client();
    let last: i64 = value(&mut client, "SELECT max(id) FROM stored WHERE session = 1");
    let error = client.query("SELECT snowflake_rewind($1)", &[&last]).unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.message(), "this database holds IDs above the one to go back to");
    assert!(error.detail().unwrap().starts_with("The highest ID in public.stored.id is "), "{error:?}");
    assert!(client.query("SELECT snowflake_next()", &[]).is_err(), "nothing has changed");

    client.batch_execute("DELETE FROM stored WHERE session = 2").unwrap();
    client.query_one("SELECT snowflake_rewind($1)", &[&last]).unwrap();
    // At once, in all sessions and databases, and after any end of the server.
    let first = next(&mut client);
    assert!(first > last);
    assert!(ahead(&mut client) < 1.0 && ahead(&mut other) < 1.0);
    assert!(cluster.log().contains(&format!("snowflake IDs were taken back to {last}")), "{}", cluster.log());
    let error = client.query("SELECT snowflake_rewind($1)", &[&i64::MAX]).unwrap_err();
    assert_eq!(error.as_db_error().unwrap().message(), format!("no ID above {} was made or reserved", i64::MAX));
    drop((client, other));
    for how in [Stop::Kill, Stop::Fast] {
        cluster.stop(how);
        cluster.start();
        for database in ["postgres", "other"] {
            let lead = ahead(&mut cluster.client_of("postgres", database));
            assert!(lead < 3.0, "{how:?} {database} {lead}");
        }
    }
}

/// Whatever the column's type, and wherever it has its default from.
#[test]
fn rows_of_the_year_ahead_are_found_in_columns_of_any_type_that_holds_ids() {
    let cluster = server_a_year_ahead();
    let mut client = cluster.client();
    let last: i64 = value(&mut client, "SELECT max(id) FROM stored WHERE session = 1");
    let high: i64 = value(&mut client, "SELECT max(id) FROM stored");
    client
        .batch_execute(
            "DELETE FROM stored WHERE session = 2; CREATE DOMAIN ids AS bigint; CREATE DOMAIN of_ids AS ids CHECK (VALUE > 0);
             CREATE DOMAIN made AS bigint DEFAULT snowflake_next(); CREATE DOMAIN typed AS snowflake_id DEFAULT snowflake_next(); CREATE DOMAIN of_made AS made;
             CREATE TABLE others (id snowflake_id); INSERT INTO others VALUES (9000000000000000000)",
        )
        .unwrap();
    // Of another session, and nobody else's to read.
    let mut temporary = cluster.client();
    temporary.batch_execute("CREATE TEMP TABLE of_session (id bigint DEFAULT snowflake_next())").unwrap();
    for column in [
        "id snowflake_id PRIMARY KEY DEFAULT snowflake_next()",
        "id ids PRIMARY KEY DEFAULT snowflake_next()",
        "id of_ids DEFAULT snowflake_next()",
        "id made PRIMARY KEY",
        "id of_made",
        "id typed",
        "id integer, n made",
    ] {
        let name = if column.contains("n made") { "n" } else { "id" };
        client.batch_execute(&format!("CREATE TABLE t ({column}); INSERT INTO t ({name}) VALUES ({high})")).unwrap();
        let error = refused(&mut client, &format!("SELECT snowflake_rewind({last})"), "55000");
        assert_eq!(error.detail().unwrap(), format!("The highest ID in public.t.{name} is {high}."), "{column}");
        client.batch_execute("DROP TABLE t").unwrap();
    }
    // A default of its own takes the place of the domain's.
    client.batch_execute(&format!("CREATE TABLE t (id made DEFAULT 5); INSERT INTO t VALUES ({high})")).unwrap();
    client.query_one("SELECT snowflake_rewind($1)", &[&last]).unwrap();
}

/// A transaction that has rows of the year ahead may be open: it is waited for, and then its rows are seen, or it is named.
#[test]
fn open_transactions_may_have_rows_of_the_year_ahead() {
    let options = Cluster::options().with_clock().set("pg_snowflake.max_wait = 0").set("max_prepared_transactions = 5");
    let cluster = options.start();
    let mut client = cluster.client();
    client.batch_execute(TABLE).unwrap();
    client.batch_execute("CREATE TABLE heir () INHERITS (stored); INSERT INTO stored (session) VALUES (1)").unwrap();
    let last: i64 = value(&mut client, "SELECT max(id) FROM stored");
    cluster.stop(Stop::Fast);
    cluster.step_clock(YEAR_AHEAD);
    cluster.start();
    let insert = "BEGIN; INSERT INTO stored (session) VALUES (2)";
    let [mut committed, mut undone, mut in_heir] = [(); 3].map(|()| cluster.client());
    committed.batch_execute(insert).unwrap();
    undone.batch_execute(insert).unwrap();
    in_heir.batch_execute("BEGIN; INSERT INTO heir (id, session) VALUES (snowflake_next(), 3)").unwrap();
    cluster.client().batch_execute(&format!("{insert}; PREPARE TRANSACTION 'kept'")).unwrap();
    cluster.step_clock("+0s");
    let mut client = cluster.client();
    refused(&mut client, NEXT, "55000");
    let rewind = format!("SELECT snowflake_rewind({last})");
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
    assert!(refused(&mut client, &rewind, "25001").hint().unwrap().contains("READ COMMITTED"));
    client.batch_execute("ROLLBACK").unwrap();

    let pids = [&mut undone, &mut in_heir].map(|client| value::<i32>(client, "SELECT pg_backend_pid()"));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let error = refused(&mut cluster.client(), &rewind, "55P03");
            let detail = error.detail().unwrap();
            assert!(detail.contains("prepared: kept") && !detail.contains("process,"), "{detail}");
            assert!(pids.iter().all(|pid| detail.contains(&format!("process {pid}"))), "{detail}");
        });
        thread::sleep(seconds(1));
        committed.batch_execute("COMMIT").unwrap();
        waiting.join().unwrap();
    });
    undone.batch_execute("ROLLBACK").unwrap();
    in_heir.batch_execute("COMMIT").unwrap();
    client.batch_execute("ROLLBACK PREPARED 'kept'").unwrap();
    // Of those that were waited for, and each is seen.
    for table in ["public.stored", "public.heir"] {
        let error = refused(&mut client, &rewind, "55000");
        assert!(error.detail().unwrap().contains("The highest ID in public."), "{table}: {error:?}");
        client.batch_execute(&format!("DELETE FROM ONLY {table} WHERE session > 1")).unwrap();
    }
    thread::scope(|scope| {
        // Whoever begins later, as somebody who deletes the rows, is not waited for. But a row of such a transaction may have an ID from before, too.
        let mut other = cluster.client();
        other.batch_execute("BEGIN; UPDATE stored SET session = 1").unwrap();
        let waiting = scope.spawn(|| {
            let mut psql = cluster.program("psql");
            output(psql.args(["--no-psqlrc", "--set=ON_ERROR_STOP=1", "--command", &rewind])).errors
        });
        thread::sleep(seconds(1));
        let mut later = cluster.client();
        later.batch_execute("BEGIN; DELETE FROM heir").unwrap();
        other.batch_execute("COMMIT").unwrap();
        let said = waiting.join().unwrap();
        assert!(said.starts_with("WARNING:  transactions are open that may have written IDs above"), "{said}");
    });
    assert!(ahead(&mut client) < 1.0);
}

/// Sessions that make IDs during a rewind go on by their old limits for a moment. No ID is given twice, also after a
/// crash.
#[test]
fn under_load_with_the_lead_allowed() {
    let cluster = server_a_year_ahead();
    cluster.reload(&[("pg_snowflake.max_lead", "730d")]);
    let mut client = cluster.client();
    let last: i64 = value(&mut client, "SELECT max(id) FROM stored WHERE session = 1");
    client.batch_execute("ALTER TABLE stored ALTER id DROP DEFAULT; TRUNCATE stored").unwrap();
    let made = made_during(4, &cluster, |calls| {
        let count = || -> Vec<usize> { calls.iter().map(|count| count.load(Relaxed)).collect() };
        let all_go_on = |what| {
            let before = count();
            // One of these calls may have begun before.
            wait_for(what, || count().iter().zip(&before).all(|(now, before)| *now > before + 10));
        };
        all_go_on("IDs a year ahead");
        client.query_one("SELECT snowflake_rewind($1)", &[&last]).unwrap();
        all_go_on("IDs after the rewind");
        thread::sleep(seconds(1));
    });
    // What was made before the rewind is a year ahead. It is taken back, and does not count.
    let limit: i64 = client.query_one("SELECT snowflake_min_id(now() + interval '1 min')", &[]).unwrap().get(0);
    let kept: Vec<Vec<i64>> =
        made.into_iter().map(|list| list.into_iter().filter(|&id| id < limit).collect()).collect();
    assert!(kept.iter().all(|list| !list.is_empty()), "a session has made nothing since");
    kept.iter().for_each(|list| check::rising(list));

    client.batch_execute("ALTER TABLE stored ALTER id SET DEFAULT snowflake_next()").unwrap();
    let ((), mut record) = load::run_during(4, || &cluster, || thread::sleep(seconds(1)));
    cluster.stop(Stop::Kill);
    cluster.step_clock("-5s");
    cluster.start();
    record.add(load::run_during(4, || &cluster, || thread::sleep(seconds(1))).1);
    let mut lists = record.lists(&[&cluster]);
    lists.extend(kept);
    check::distinct(&lists);
    assert!(ahead(&mut cluster.client()) < 3.0);
}

/// What so many sessions made while `during` ran, by session; their IDs need not rise. `during` is told how many calls
/// each has made.
fn made_during(sessions: usize, cluster: &Cluster, during: impl FnOnce(&[AtomicUsize])) -> Vec<Vec<i64>> {
    let done = AtomicBool::new(false);
    let calls: Vec<AtomicUsize> = (0..sessions).map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        let done = &done;
        let make = |calls: &AtomicUsize| {
            let (mut client, mut made) = (cluster.client(), Vec::new());
            while !done.load(Relaxed) {
                for count in [1, 100] {
                    made.extend(batch(&mut client, count));
                    calls.fetch_add(1, Relaxed);
                }
            }
            made
        };
        let threads: Vec<_> = calls.iter().map(|calls| scope.spawn(move || make(calls))).collect();
        let end = load::End(done);
        during(&calls);
        drop(end);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn beyond_the_layouts_end_the_error_names_the_true_cause() {
    let cluster = server_a_year_ahead();
    cluster.client().batch_execute("DELETE FROM stored WHERE session = 2").unwrap();
    cluster.stop(Stop::Fast);
    cluster.start();
    // The last value that there is, set by hand.
    cluster.client().batch_execute("SELECT pg_replication_origin_advance('snowflake', 'FFFFFFFF/FFFFFFFF')").unwrap();
    let mut client = cluster.client();
    let error = refused(&mut client, NEXT, "2200H");
    assert_eq!(error.message(), "the layout is used up to its end");
    assert!(error.hint().unwrap().contains("snowflake_rewind()"), "{error:?}");
    let last: i64 = value(&mut client, "SELECT max(id) FROM stored");
    client.query_one("SELECT snowflake_rewind($1)", &[&last]).unwrap();
    assert!(ahead(&mut client) < 1.0);
}
