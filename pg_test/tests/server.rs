//! One server, several databases: the promise is the server's. No ID is given twice, over all that was ever given or
//! stored in any of its databases, and what goes wrong in one database leaves the others alone.
//!
//! Most tests set a trap: one database has a line far ahead of the clock, another has been idle, and after a fault the
//! idle one makes IDs first, until it is past all that were given before. Where the server has forgotten what any of
//! its databases gave, they meet.

use postgres::Client;
use snowflake_test::load::{self, Record, TABLE, stored};
use snowflake_test::{Cluster, Installation, Options, Stop, check, ids, run};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Where a database keeps its own copy of the server's reservation.
const COPY: &str = "_snowflake.reservation";

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Waits long enough for IDs after a clock went back.
fn options() -> Options {
    Cluster::options().with_clock().set("pg_snowflake.max_wait = '20s'")
}

/// A layout of 64 IDs a millisecond: a single session uses all that there are, so that two claims of one tick meet for
/// certain. As in the default layout, the tick is above 22 other bits.
fn narrow() -> Options {
    options().set("pg_snowflake.layout = 'timestamp=41 worker=16 sequence=6'").set("pg_snowflake.sequence_spread = 1")
}

/// A server with these databases.
fn server(options: Options, databases: &[&str]) -> Cluster {
    let cluster = options.start();
    databases.iter().for_each(|database| cluster.database(database));
    cluster
}

fn start(cluster: &Cluster) {
    cluster.start().unwrap_or_else(|log| panic!("the server did not start:\n{log}"));
}

fn restart(cluster: &Cluster, how: Stop) {
    cluster.stop(how);
    start(cluster);
}

// IDs by one session after the other.

const SELECT: &str = "SELECT snowflake_next(200)";

/// All IDs that were given, by whichever database.
#[derive(Default)]
struct Given(Vec<Vec<i64>>);

impl Given {
    /// A database gives IDs, as fast as it can, whose times span so many milliseconds.
    fn claim(&mut self, cluster: &Cluster, database: &str, length: i64) {
        self.claim_by(cluster, database, length, SELECT);
    }

    fn claim_by(&mut self, cluster: &Cluster, database: &str, length: i64, query: &str) {
        self.claim_while(cluster, database, query, |first, last| last - first < length << 22);
    }

    /// A database gives IDs until they are past all others.
    fn claim_past(&mut self, cluster: &Cluster, database: &str) {
        self.claim_past_by(cluster, database, SELECT);
    }

    fn claim_past_by(&mut self, cluster: &Cluster, database: &str, query: &str) {
        let (start, highest) = (Instant::now(), self.highest());
        self.claim_while(cluster, database, query, |_, last| {
            assert!(start.elapsed() < Duration::from_secs(60), "{last} does not reach {highest}");
            last <= highest
        });
    }

    fn claim_while(&mut self, cluster: &Cluster, database: &str, query: &str, goes_on: impl Fn(i64, i64) -> bool) {
        // The server may still be making its shared memory anew.
        let mut client = cluster.client_once_up(database);
        let mut list = Vec::new();
        loop {
            list.extend(ids(&client.query(query, &[]).unwrap_or_else(|error| panic!("{database}: {error:?}"))));
            if !goes_on(list[0], list[list.len() - 1]) {
                break;
            }
        }
        self.0.push(list);
    }

    fn highest(&self) -> i64 {
        self.0.iter().flatten().copied().max().unwrap_or(0)
    }

    /// None was given twice.
    fn check(&self) {
        let count = check::distinct(&self.0);
        assert!(count >= 500, "{count}");
    }
}

/// Has the line of the server run far ahead of the clock by IDs of a database: the clock is fast for a moment, by more
/// than a restart takes on a slow machine.
fn fast_once(cluster: &Cluster, database: &str, given: &mut Given) {
    cluster.step_clock("+6s");
    given.claim(cluster, database, 150);
    cluster.step_clock("+0s");
}

// Crashes, with the clock right all the time.

#[test]
fn sessions_are_killed_while_two_databases_take_turns() {
    let cluster = server(narrow(), &["db1", "db2"]);
    let mut given = Given::default();
    for round in 0..6 {
        // Which of the two has been idle.
        let (idle, busy) = if round % 2 == 0 { ("db1", "db2") } else { ("db2", "db1") };
        given.claim(&cluster, busy, 100);
        cluster.crash_session(busy);
        given.claim(&cluster, busy, 150);
        cluster.crash_session(busy);
        given.claim_past(&cluster, idle);
    }
    given.check();
}

#[test]
fn ten_databases_crash_in_any_way_and_go_on_in_any_order() {
    let databases = ["db0", "db1", "db2", "db3", "db4", "db5", "db6", "db7", "db8", "db9"];
    // Longer than a restart takes on a slow machine.
    let cluster = server(narrow().set("pg_snowflake.reserve_ahead = '3s'"), &databases);
    let mut given = Given::default();
    let mut seed = 20_261_121_u64;
    let mut below = |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((seed >> 33) % bound).unwrap()
    };
    let fault = |number: usize, database: &str| match number % 3 {
        0 => cluster.crash_session(database),
        1 => restart(&cluster, Stop::Kill),
        _ => restart(&cluster, Stop::Immediate),
    };
    for round in 0..7 {
        let busy = below(10);
        let idle = (busy + 1 + below(9)) % 10;
        given.claim(&cluster, databases[below(10)], 20);
        given.claim(&cluster, databases[busy], 20);
        fault(round, databases[below(10)]);
        given.claim(&cluster, databases[busy], 100);
        fault(round / 2, databases[below(10)]);
        given.claim_past(&cluster, databases[idle]);
    }
    given.check();
}

// A clock that was fast once, and is right since.

fn restarted_after_the_clock_was_fast(how: Stop) {
    let cluster = server(narrow(), &["db1", "db2"]);
    let mut given = Given::default();
    given.claim(&cluster, "db1", 50);
    fast_once(&cluster, "db2", &mut given);
    given.claim(&cluster, "db2", 50);
    restart(&cluster, how);
    given.claim_past(&cluster, "db1");
    given.claim_past(&cluster, "db2");
    given.check();
}

#[test]
fn stopped_and_started_after_the_clock_was_fast() {
    restarted_after_the_clock_was_fast(Stop::Fast);
}

#[test]
fn killed_after_the_clock_was_fast() {
    restarted_after_the_clock_was_fast(Stop::Kill);
}

// The extension is dropped and created.

/// What happens between the two.
#[derive(Clone, Copy)]
enum Between {
    Restart,
    SessionKilled,
}

/// IDs that are kept in a table, which has no default, as the extension could not be dropped.
const INSERT: &str = "INSERT INTO kept SELECT snowflake_next(200) RETURNING id";

fn dropped_and_created(fast: bool, between: Between) {
    // Long enough that a slow machine does not live through it before it is up again.
    let cluster = server(narrow().set("pg_snowflake.reserve_ahead = '4s'"), &["db1"]);
    let mut client = cluster.client_of("postgres", "db1");
    client.batch_execute("CREATE TABLE kept (id bigint PRIMARY KEY)").unwrap();
    drop(client);
    let mut given = Given::default();
    let claim = |given: &mut Given| given.claim_by(&cluster, "db1", 150, INSERT);
    claim(&mut given);
    if fast {
        cluster.step_clock("+3s");
        claim(&mut given);
        cluster.step_clock("+0s");
    } else {
        // The line goes on above the reservation, ahead of the clock.
        cluster.crash_session("db1");
    }
    claim(&mut given);
    cluster.client_of("postgres", "db1").batch_execute("DROP EXTENSION pg_snowflake").unwrap();
    match between {
        Between::Restart => restart(&cluster, Stop::Fast),
        Between::SessionKilled => cluster.crash_session("db1"),
    }
    cluster.client_once_up("db1").batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    given.claim_past_by(&cluster, "db1", INSERT);
    given.check();
}

#[test]
fn dropped_restarted_and_created() {
    dropped_and_created(false, Between::Restart);
}

#[test]
fn dropped_restarted_and_created_after_the_clock_was_fast() {
    dropped_and_created(true, Between::Restart);
}

#[test]
fn dropped_crashed_and_created() {
    dropped_and_created(false, Between::SessionKilled);
}

#[test]
fn dropped_crashed_and_created_after_the_clock_was_fast() {
    dropped_and_created(true, Between::SessionKilled);
}

#[test]
fn dropped_in_one_database_while_another_goes_on() {
    let cluster = server(narrow(), &["db1", "db2"]);
    let mut given = Given::default();
    given.claim(&cluster, "db1", 50);
    fast_once(&cluster, "db2", &mut given);
    given.claim(&cluster, "db1", 50);
    cluster.client_of("postgres", "db1").batch_execute("DROP EXTENSION pg_snowflake").unwrap();
    given.claim(&cluster, "db2", 50);
    cluster.crash_session("db2");
    cluster.client_once_up("db1").batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    given.claim_past(&cluster, "db1");
    given.claim_past(&cluster, "db2");
    given.check();
}

// A database that came from elsewhere, or whose copy was written by hand.

/// The largest lead, in seconds, that IDs of a database had over the clock while this went on, and the longest call.
struct Watched {
    lead: f64,
    call: Duration,
}

/// How far the IDs that a session gets next are ahead of the clock, in seconds.
fn lead(client: &mut Client) -> Result<f64, postgres::Error> {
    let query = "SELECT max(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp()))::float8 \
                 FROM snowflake_next(3) id";
    Ok(client.query_one(query, &[])?.get(0))
}

/// Runs this while these databases make IDs, and looks at those of the first.
fn watched(cluster: &Cluster, databases: &[&str], during: impl FnOnce()) -> (Watched, Record) {
    load::run_during_in(
        databases,
        2,
        || cluster,
        || {
            let done = AtomicUsize::new(0);
            thread::scope(|scope| {
                let watch = scope.spawn(|| {
                    let mut client = cluster.client_of("postgres", databases[0]);
                    let mut watched = Watched { lead: f64::MIN, call: Duration::ZERO };
                    while done.load(Ordering::Relaxed) == 0 {
                        let start = Instant::now();
                        let lead = lead(&mut client).unwrap_or(f64::MAX);
                        watched.call = watched.call.max(start.elapsed());
                        watched.lead = watched.lead.max(lead);
                        thread::sleep(millis(5));
                    }
                    watched
                });
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(during));
                done.store(1, Ordering::Relaxed);
                let watched = watch.join().unwrap();
                result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                watched
            })
        },
    )
}

/// Databases with the table of the load.
fn loaded(options: Options, databases: &[&str]) -> Cluster {
    let cluster = server(options, databases);
    for database in databases {
        cluster.client_of("postgres", database).batch_execute(TABLE).unwrap();
    }
    cluster
}

/// Dumps a database `app` that had the clock off by this much all its life, restores it as a database of the server,
/// and returns the IDs in it.
fn restore_from_a_server_off_by(offset: &str, options: Options, cluster: &Cluster, database: &str) -> Vec<i64> {
    let elsewhere = options.create();
    elsewhere.step_clock(offset);
    start(&elsewhere);
    elsewhere.database("app");
    let mut client = elsewhere.client_of("postgres", "app");
    client.batch_execute(TABLE).unwrap();
    for _ in 0..20 {
        client.batch_execute("INSERT INTO stored (session) SELECT 0 FROM generate_series(1, 100)").unwrap();
    }
    let file = elsewhere.socket().join("dump");
    run(elsewhere.program("pg_dump").args(["--format=custom", "--dbname=app", "--file"]).arg(&file));
    cluster.client().batch_execute(&format!("CREATE DATABASE {database}")).unwrap();
    run(cluster.program("pg_restore").args(["--exit-on-error", "--dbname", database]).arg(&file));
    stored(cluster, database)
}

fn a_dump_of_the_far_future(offset: &str) {
    let cluster = loaded(options().set("pg_snowflake.max_wait = '300ms'"), &["db1", "db2"]);
    let (watched, record) = watched(&cluster, &["db1", "db2"], || {
        restore_from_a_server_off_by(offset, options(), &cluster, "restored");
        let mut client = cluster.client_of("postgres", "restored");
        for _ in 0..3 {
            for query in ["SELECT snowflake_next()", "INSERT INTO stored (session) VALUES (1)", SELECT] {
                let error = client.query(query, &[]).expect_err(query);
                assert_eq!(error.code().unwrap().code(), "55000", "{error:?}");
            }
        }
        thread::sleep(millis(1000));
        assert!(client.query("SELECT snowflake_next()", &[]).is_err(), "the restored database makes IDs");
    });
    assert!(record.refused.is_empty(), "{} calls of the others: {:?}", record.refused.len(), record.refused[0]);
    assert!(watched.lead < 2.0, "the others are ahead by {} s", watched.lead);
    // And after a start, when nobody has made an ID yet.
    restart(&cluster, Stop::Kill);
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
fn a_dump_of_less_than_max_lead_ahead_goes_on_above_its_ids() {
    let cluster = loaded(narrow(), &["db1", "db2"]);
    let mut dumped = Vec::new();
    let mut given = Given::default();
    let ((), record) = load::run_during_in(
        &["db1", "db2"],
        2,
        || &cluster,
        || {
            dumped = restore_from_a_server_off_by("+300s", narrow(), &cluster, "restored");
            given.claim(&cluster, "restored", 200);
            // Also by a run that has not seen it before, and with the clock back.
            cluster.stop(Stop::Kill);
            cluster.step_clock("-10s");
            start(&cluster);
            given.claim(&cluster, "restored", 300);
            thread::sleep(millis(200));
        },
    );
    assert!(record.refused.iter().all(|code| code != "55000"), "{:?}", record.refused);
    let lowest = given.0.iter().flatten().min().unwrap();
    assert!(dumped.len() == 2000 && dumped.iter().max().unwrap() < lowest);
    record.check(&[&cluster]);
    given.0.push(dumped);
    given.0.extend(["db1", "db2"].map(|database| stored(&cluster, database)));
    given.check();
}

// Who may write all data may write the copy.

const FAR_AHEAD: &str = "(extract(epoch FROM now()) * 1000)::bigint + 315576000000";
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
    let cluster = loaded(options().set("pg_snowflake.max_wait = '1s'"), &all);
    create_writer(&cluster);
    let ((watched, mut record), attacked) = load::run_during_in(
        &["db3"],
        2,
        || &cluster,
        || {
            watched(&cluster, &others, || {
                thread::sleep(millis(500));
                for value in [FAR_AHEAD, FAR_BACK, FAR_AHEAD] {
                    set_copy(&cluster, "db3", value);
                    // New sessions see it, and those that renew their reservation.
                    let _ = cluster.client_of("postgres", "db3").query(SELECT, &[]);
                    thread::sleep(millis(900));
                }
            })
        },
    );
    assert!(record.refused.is_empty(), "{} calls of the others: {:?}", record.refused.len(), record.refused[0]);
    assert!(watched.lead < 2.0, "the others are ahead by {} s", watched.lead);
    record.add(attacked);
    cluster.stop(Stop::Kill);
    cluster.step_clock("-10s");
    start(&cluster);
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
        // Over the same time once more.
        cluster.step_clock(&format!("-{}s", began.elapsed().as_secs() + 1));
        start(&cluster);
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
        start(&cluster);
        given.claim_past(&cluster, idle);
        given.claim_past(&cluster, busy);
    }
    given.check();
}

// Standbys and backups.

const SHORT: &str = "pg_snowflake.reserve_ahead = '500ms'";

/// Both databases at work, then one of them alone for longer than the other's reservation lasts.
fn one_falls_idle(cluster: &Cluster, given: &mut Given, idle: &str, busy: &str) {
    given.claim(cluster, idle, 100);
    given.claim(cluster, busy, 1500);
}

#[test]
fn a_standby_is_promoted_with_the_clock_back() {
    let databases = ["db1", "db2"];
    let primary = loaded(narrow().set(SHORT), &databases);
    let standby = primary.standby();
    let ((), mut record) = load::run_during_in(&databases, 3, || &primary, || thread::sleep(millis(700)));
    let ((), alone) = load::run_during_in(&["db2"], 3, || &primary, || thread::sleep(millis(1000)));
    record.add(alone);
    standby.catch_up_with(&primary);
    primary.stop(Stop::Kill);
    standby.step_clock("-100s");
    standby.promote();
    standby.retry(|client| client.query_one("SELECT snowflake_next()", &[]));
    // The one that was idle is first.
    for databases in [&["db1"][..], &databases[..]] {
        record.add(load::run_during_in(databases, 4, || &standby, || thread::sleep(millis(600))).1);
    }
    let count = record.check(&[&standby]);
    assert!(count > 1_000, "{count}");
    assert!(record.refused.is_empty(), "{:?}", record.refused);
}

#[test]
fn an_idle_database_of_a_promoted_standby_goes_on_above_the_others() {
    let primary = server(narrow(), &["db1", "db2"]);
    let standby = primary.standby();
    let mut given = Given::default();
    one_falls_idle(&primary, &mut given, "db1", "db2");
    standby.catch_up_with(&primary);
    primary.stop(Stop::Kill);
    standby.step_clock("-100s");
    standby.promote();
    standby.retry(|client| client.query_one("SELECT snowflake_next()", &[]));
    given.claim_past(&standby, "db1");
    given.claim_past(&standby, "db2");
    given.check();
}

#[test]
fn a_primary_is_rewound_and_promoted_again() {
    let first = server(narrow(), &["db1", "db2"]);
    let second = first.standby();
    let mut given = Given::default();
    given.claim(&first, "db1", 100);
    second.catch_up_with(&first);
    first.stop(Stop::Kill);
    second.step_clock("-100s");
    second.promote();
    second.retry(|client| client.query_one("SELECT snowflake_next()", &[]));
    one_falls_idle(&second, &mut given, "db1", "db2");
    first.rewind_to(&second);
    first.step_clock("-150s");
    start(&first);
    first.catch_up_with(&second);
    second.stop(Stop::Kill);
    first.promote();
    first.retry(|client| client.query_one("SELECT snowflake_next()", &[]));
    given.claim_past(&first, "db1");
    given.claim_past(&first, "db2");
    given.check();
}

/// What is in the backup, in whichever database, is not given again by any.
#[test]
fn a_base_backup_goes_on_above_what_it_has_stored() {
    let databases = ["db1", "db2"];
    let primary = loaded(narrow().set(SHORT), &databases);
    let copy = Cluster::empty(Installation::under_test(), true);
    load::run_during_in(&databases, 2, || &primary, || thread::sleep(millis(300)));
    load::run_during_in(
        &["db2"],
        3,
        || &primary,
        || {
            thread::sleep(millis(1000));
            copy.copy_from(&primary, &["--max-rate=32M"]);
        },
    );
    primary.stop(Stop::Kill);
    copy.step_clock("-60s");
    start(&copy);
    let mut given = Given(databases.map(|database| stored(&copy, database)).into());
    assert!(given.0.iter().all(|list| list.len() > 10), "the load was too slow");
    given.claim_past(&copy, "db1");
    let ((), record) = load::run_during_in(&databases, 2, || &copy, || thread::sleep(millis(500)));
    record.check(&[&copy]);
    for (list, database) in given.0.iter_mut().zip(databases) {
        *list = stored(&copy, database);
    }
    given.check();
}

// What is written, and when.

/// Calls that are refused, and what they left behind.
fn refused_calls_write_nothing(client: &mut Client, code: &str) {
    client.batch_execute("SET pg_snowflake.max_wait = 0").unwrap();
    let refused = |client: &mut Client| {
        let error = client.query("SELECT snowflake_next()", &[]).expect_err("it was not refused");
        assert_eq!(error.code().unwrap().code(), code, "{error:?}");
    };
    let look = |client: &mut Client| -> (Option<String>, i64) {
        let query = "SELECT (SELECT reserved_until::text FROM snowflake_status()), \
                     (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let row = client.query_one(query, &[]).unwrap();
        (row.get(0), row.get(1))
    };
    let mut seen = Vec::new();
    for _ in 0..3 {
        // What the start and the steps of the clock have set off may take a moment.
        thread::sleep(millis(300));
        let before = look(client);
        for _ in 0..1000 {
            refused(client);
        }
        let after = look(client);
        assert_eq!(after.0, before.0, "the reservation has moved");
        seen.push(after.1 - before.1);
        // Checkpoints and such write a little, now and then.
        if after.1 - before.1 < 2000 {
            return;
        }
    }
    panic!("1,000 refused calls wrote {seen:?} bytes");
}

fn quiet() -> Options {
    options().set("autovacuum = off").set("checkpoint_timeout = '1h'")
}

#[test]
fn calls_with_the_clock_far_behind_write_nothing() {
    let cluster = server(quiet(), &["db1"]);
    let mut client = cluster.client();
    client.query(SELECT, &[]).unwrap();
    cluster.step_clock("-3600s");
    // Of a session that has made IDs, of one that has not, and of another database.
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
        start(&cluster);
        // The first call of a run reads what there is.
        let _ = cluster.client().batch_execute("SET pg_snowflake.max_wait = 0; SELECT snowflake_next()");
        refused_calls_write_nothing(&mut cluster.client(), "55000");
        refused_calls_write_nothing(&mut cluster.client_of("postgres", "db1"), "55000");
    }
}

#[test]
fn calls_past_the_end_of_the_layout_write_nothing() {
    let cluster = server(quiet(), &["db1"]);
    let query = "SELECT floor(extract(epoch FROM layout_end - now()))::bigint FROM snowflake_status()";
    let end: i64 = cluster.client().query_one(query, &[]).unwrap().get(0);
    // Started shortly before the end, as it would not start after it; then time passes, the most of it at a step that is
    // small enough to be believed at once.
    cluster.stop(Stop::Fast);
    cluster.step_clock(&format!("+{}s", end - 12));
    start(&cluster);
    let mut client = cluster.client();
    cluster.step_clock(&format!("+{}s", end - 4));
    let start = Instant::now();
    while client.query("SELECT snowflake_next()", &[]).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(60), "the layout does not end");
    }
    refused_calls_write_nothing(&mut client, "2200H");
    refused_calls_write_nothing(&mut cluster.client_of("postgres", "db1"), "2200H");
}

#[test]
fn many_databases_reserve_no_more_than_one() {
    let databases = ["db0", "db1", "db2", "db3", "db4", "db5", "db6", "db7", "db8", "db9"];
    // Flushes that are not made are not counted.
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
                while start.elapsed() < millis(6000) {
                    client.query("SELECT snowflake_next(10)", &[]).unwrap();
                    thread::sleep(millis(1));
                }
            });
        }
    });
    let length = start.elapsed();
    thread::sleep(millis(1500));
    let after = count();
    // One per 750 ms, and some slack for a machine that pauses.
    let most = i64::try_from(length.as_millis() / 500).unwrap();
    let (reservations, flushes) = (after.0 - before.0, after.1 - before.1);
    assert!((5..=most).contains(&reservations), "{reservations} reservations in {length:?}, {flushes} flushes");
    assert!(flushes <= 3 * most, "{flushes} flushes in {length:?}, {reservations} reservations");
}

// A clean stop gives back what is not used.

#[test]
fn strict_settings_refuse_nobody_after_a_clean_start() {
    // Longer than a restart takes on a slow machine.
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
            restart(&cluster, Stop::Fast);
            thread::sleep(millis(700));
        };
        record.add(load::run_during_in(&databases, 2, || &cluster, work).1);
    }
    let refused = record.refused.iter().filter(|&code| code == "55000").count();
    assert_eq!(refused, 0, "calls were refused, of {}", record.given());
    let count = record.check(&[&cluster]);
    assert!(count > 1_000, "{count}");
}

#[test]
fn after_a_clean_start_ids_carry_the_right_time_at_once() {
    let databases = ["db1", "db2", "db3"];
    let cluster = loaded(Cluster::options().set("pg_snowflake.reserve_ahead = '8s'"), &databases);
    let mut record = Record::default();
    for round in 0..3 {
        // A database that was idle gives the first ID, too.
        let busy = &databases[..=round];
        record.add(load::run_during_in(busy, 2, || &cluster, || thread::sleep(millis(400))).1);
        restart(&cluster, Stop::Fast);
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
    let cluster = loaded(options(), &databases);
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
        start(&cluster);
    }
    // The quickest: the machine may be busy with other things.
    assert!(took.iter().min().unwrap() < &Duration::from_secs(2), "{took:?}");
}
