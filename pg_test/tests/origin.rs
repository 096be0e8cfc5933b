//! The replication origin that holds the server's reservation: where it is dropped, held by a session, set by hand, or
//! cannot be had; and the keeper, without which the server goes on.

use postgres::Client;
use snowflake_test::check::{self, refused};
use snowflake_test::load::{self, TABLE};
use snowflake_test::query::{NEXT, batch, next};
use snowflake_test::{Cluster, Installation, Stop, millis, preloaded, seconds, value};
use std::thread;
use std::time::Instant;

const DROP: &str = "SELECT pg_replication_origin_drop('snowflake')";

/// The parameter that limits how many origins may be in use.
fn slots() -> &'static str {
    if Installation::under_test().major() < 18 { "max_replication_slots" } else { "max_active_replication_origins" }
}

fn many(client: &mut Client) -> Vec<i64> {
    batch(client, 1000)
}

/// Waits for longer than a session's limit lasts, so that the next claim needs the origin.
fn until_it_is_needed() {
    thread::sleep(millis(1100));
}

#[test]
fn dropped_while_the_server_runs_it_comes_back_with_what_was_reserved() {
    let cluster = Cluster::options().patient().start();
    let mut client = cluster.client();
    let mut lists = vec![many(&mut client)];
    for round in 0..4 {
        client.batch_execute(DROP).unwrap();
        until_it_is_needed();
        lists.push(many(&mut client));
        if round % 2 == 1 {
            cluster.stop(Stop::Kill);
            cluster.step_clock("-30s");
            cluster.start();
            client = cluster.client();
            lists.push(many(&mut client));
            cluster.step_clock("+0s");
        }
    }
    check::rising(&lists.concat());
    let log = cluster.log();
    assert!(log.contains("WARNING:  replication origin \"snowflake\" was missing, and was created again"), "{log}");
}

/// As after pg_upgrade, which takes no origins along: each database's own copy of the reservation is enough for it.
#[test]
fn missing_at_a_start_it_comes_back_and_each_database_goes_on_above_its_own() {
    let cluster = Cluster::options().patient().start();
    let mut lists = vec![many(&mut cluster.client())];
    cluster.client().batch_execute(DROP).unwrap();
    cluster.stop(Stop::Fast);
    // The database waits until the clock is near its copy again.
    cluster.step_clock("-8s");
    cluster.start();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
    assert!(cluster.log().contains("was missing, and was created again"), "{}", cluster.log());
}

/// A transaction that drops an origin holds a lock until its end: before PostgreSQL 16, one on all origins.
#[test]
fn an_open_transaction_that_drops_another_origin_stops_nobody() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let mut other = cluster.client();
    other.batch_execute("SELECT pg_replication_origin_create('other')").unwrap();
    other.batch_execute("BEGIN; SELECT pg_replication_origin_drop('other')").unwrap();
    let start = Instant::now();
    let mut lists = vec![many(&mut client)];
    until_it_is_needed();
    lists.push(many(&mut client));
    assert!(start.elapsed() < seconds(30), "{:?}", start.elapsed());
    // It drops this origin, too, and rolls back: sessions that need it meanwhile are refused, or wait for the lock.
    other.batch_execute(DROP).unwrap();
    until_it_is_needed();
    client.batch_execute("SET lock_timeout = '300ms'").unwrap();
    refused(&mut client, NEXT, if Installation::under_test().major() < 16 { "55006" } else { "55P03" });
    other.batch_execute("ROLLBACK").unwrap();
    client.batch_execute("RESET lock_timeout").unwrap();
    lists.push(many(&mut client));
    // It drops it again, and commits: the value is not left behind for another origin.
    other.batch_execute("BEGIN; SELECT pg_replication_origin_drop('snowflake')").unwrap();
    until_it_is_needed();
    client.batch_execute("SET lock_timeout = '300ms'").unwrap();
    assert!(client.query(NEXT, &[]).is_err());
    client.batch_execute("RESET lock_timeout").unwrap();
    other.batch_execute("COMMIT").unwrap();
    let heirs = "SELECT count(*) FROM pg_replication_origin_status";
    assert_eq!(value::<i64>(&mut other, heirs), 0);
    lists.push(many(&mut client));
    check::rising(&lists.concat());
}

/// Before PostgreSQL 16, the value is gone as soon as a transaction drops the origin, and not at its end. The first call of a run waits for that, too.
#[test]
fn the_first_id_of_a_run_waits_for_a_transaction_that_drops_the_origin() {
    let cluster = Cluster::options().patient().start();
    let mut lists = vec![many(&mut cluster.client())];
    for ends in ["COMMIT", "stays"] {
        cluster.stop(Stop::Fast);
        cluster.start();
        let (mut other, mut client) = (cluster.client(), cluster.client());
        other.batch_execute(&format!("BEGIN; {DROP}")).unwrap();
        if ends == "stays" {
            client.batch_execute("SET lock_timeout = '300ms'").unwrap();
            refused(&mut client, NEXT, if Installation::under_test().major() < 16 { "55006" } else { "55P03" });
            continue;
        }
        let ids = thread::scope(|scope| {
            let first = scope.spawn(|| many(&mut client));
            thread::sleep(millis(300));
            other.batch_execute(ends).unwrap();
            first.join().unwrap()
        });
        lists.push(ids);
    }
    check::rising(&lists.concat());
}

/// What a session holds while it waits is waited for in all databases: before PostgreSQL 16, who drops any origin locks the
/// catalog of all.
#[test]
fn a_session_that_waits_in_its_own_database_holds_nothing_that_others_need() {
    let cluster = Cluster::options().start();
    cluster.database("other");
    let mut client = cluster.client();
    client.batch_execute("SELECT pg_replication_origin_create('third')").unwrap();
    many(&mut client);
    until_it_is_needed();
    let mut owner = cluster.client();
    owner.batch_execute("BEGIN; ALTER SEQUENCE _snowflake.reservation NO CYCLE").unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| next(&mut client));
        let mut other = cluster.client_of("postgres", "other");
        let waits =
            "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = '_snowflake.reservation'::regclass)";
        check::wait_for("the session waits for its sequence", || value(&mut owner, waits));
        let dropped = other.batch_execute("SET lock_timeout = '5s'; SELECT pg_replication_origin_drop('third')");
        let still_waits: bool = value(&mut owner, waits);
        owner.batch_execute("ROLLBACK").unwrap();
        waiting.join().unwrap();
        dropped.unwrap();
        assert!(still_waits);
    });
}

/// An apply worker of logical replication holds its origin likewise.
#[test]
fn a_session_that_holds_another_origin_and_one_that_only_reads_make_ids() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "SELECT pg_replication_origin_create('other'); SELECT pg_replication_origin_session_setup('other')",
        )
        .unwrap();
    let mut lists = vec![many(&mut client)];
    until_it_is_needed();
    lists.push(many(&mut client));
    let mut reader = cluster.client();
    reader.batch_execute("SET default_transaction_read_only = on").unwrap();
    until_it_is_needed();
    lists.push(many(&mut reader));
    check::rising(&lists.concat());
    let progress =
        "SELECT coalesce(remote_lsn, '0/0') = '0/0' FROM pg_replication_origin_status WHERE external_id = 'other'";
    let untouched = client.query_opt(progress, &[]).unwrap().is_none_or(|row| row.get(0));
    assert!(untouched, "the other origin was advanced");
}

/// PostgreSQL itself does not start with fewer slots than there are origins. With more, all is as before.
#[test]
fn fewer_slots_than_origins_end_a_start_and_raising_them_cures_it() {
    let cluster = Cluster::options().patient().start();
    let mut client = cluster.client();
    let mut lists = vec![many(&mut client)];
    client
        .batch_execute(
            "SELECT pg_replication_origin_create('other'); SELECT pg_replication_origin_advance('other', '0/1')",
        )
        .unwrap();
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.auto.conf", &format!("\n{} = 1\n", slots()));
    let log = cluster.try_start().unwrap_err();
    assert!(log.contains("PANIC"), "{log}");
    cluster.append("postgresql.auto.conf", &format!("\n{} = 10\n", slots()));
    cluster.step_clock("-30s");
    cluster.start();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
}

#[test]
fn held_by_a_session_it_says_which_session_to_end() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let mut lists = vec![many(&mut client)];
    let mut holder = cluster.client();
    holder.batch_execute("SELECT pg_replication_origin_session_setup('snowflake')").unwrap();
    until_it_is_needed();
    let error = refused(&mut client, NEXT, "55006");
    assert_eq!(error.message(), "a session holds the replication origin \"snowflake\"");
    assert!(error.hint().unwrap().contains("pg_replication_origin_session_setup('snowflake')"), "{error:?}");
    // The error leaves no lock behind.
    assert!(client.query("SELECT * FROM snowflake_status()", &[]).is_ok());
    refused(&mut cluster.client(), NEXT, "55006");
    drop(holder);
    check::wait_for("IDs are made again", || client.query_one(NEXT, &[]).is_ok());
    lists.push(many(&mut client));
    check::rising(&lists.concat());
}

#[test]
fn without_slots_the_parameter_is_named_and_the_value_kept() {
    let cluster = Cluster::options().patient().start();
    let mut lists = vec![many(&mut cluster.client())];
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.auto.conf", &format!("\n{} = 0\n", slots()));
    cluster.start();
    let mut client = cluster.client();
    let error = refused(&mut client, NEXT, "55000");
    assert_eq!(error.message(), "snowflake IDs need a replication origin, and this server allows none");
    assert!(error.hint().unwrap().starts_with(&format!("Set {} to at least 1", slots())), "{error:?}");
    client.batch_execute("CHECKPOINT").unwrap();
    client.batch_execute("CREATE DATABASE other").unwrap();
    refused(&mut cluster.client_of("postgres", "other"), "CREATE EXTENSION pg_snowflake", "55000");
    cluster.stop(Stop::Fast);
    cluster.step_clock("-60s");
    cluster.append("postgresql.auto.conf", &format!("\n{} = 1\n", slots()));
    cluster.start();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
}

#[test]
fn with_all_slots_taken_the_parameter_is_named() {
    let cluster = Cluster::options().not_preloaded().set(&format!("{} = 1", slots())).create();
    cluster.start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "SELECT pg_replication_origin_create('other'); SELECT pg_replication_origin_advance('other', '0/1')",
        )
        .unwrap();
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.conf", "shared_preload_libraries = 'pg_snowflake'\npg_snowflake.worker_id = 1\n");
    cluster.start();
    let mut client = cluster.client();
    refused(&mut client, "CREATE EXTENSION pg_snowflake", "55000");
    client.batch_execute("SELECT pg_replication_origin_drop('other')").unwrap();
    // The refused CREATE EXTENSION has left an origin without a value.
    let _ = client.batch_execute("SELECT pg_replication_origin_drop('snowflake')");
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    assert!(client.query_one(NEXT, &[]).is_ok());
}

/// An origin without a value is never taken for a new one. The hint says what to do.
#[test]
fn without_its_value_it_is_an_error_with_a_way_out() {
    let cluster = Cluster::options().patient().start();
    let mut client = cluster.client();
    let last = *many(&mut client).last().unwrap();
    client.batch_execute(DROP).unwrap();
    client.batch_execute("SELECT pg_replication_origin_create('snowflake')").unwrap();
    cluster.stop(Stop::Kill);
    cluster.step_clock("-60s");
    cluster.start();
    let mut client = cluster.client();
    let error = refused(&mut client, NEXT, "55000");
    assert_eq!(error.message(), "the replication origin \"snowflake\" has lost its value");
    client.query_one("SELECT snowflake_rewind($1)", &[&last]).unwrap();
    assert!(next(&mut client) > last);
}

#[test]
fn set_back_by_hand_it_is_set_right_by_the_next_reservation() {
    let cluster = Cluster::options().patient().start();
    let mut client = cluster.client();
    let mut lists = vec![many(&mut client)];
    // PostgreSQL allows this while no session holds the origin.
    client.batch_execute("SELECT pg_replication_origin_advance('snowflake', '0/1')").unwrap();
    until_it_is_needed();
    lists.push(many(&mut client));
    cluster.stop(Stop::Kill);
    cluster.step_clock("-30s");
    cluster.start();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
}

/// A standby replays the origin into a slot of its own.
#[test]
fn a_standby_without_a_slot_stops_and_one_that_has_one_goes_on() {
    let primary = Cluster::options().create();
    primary.start();
    let standby = primary.standby();
    standby.stop(Stop::Fast);
    standby.append("postgresql.auto.conf", &format!("\n{} = 0\n", slots()));
    standby.start();
    let mut client = primary.client();
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let mut lists = vec![many(&mut client)];
    check::wait_for("the standby stops", || standby.log().contains("could not find free replication state"));
    standby.append("postgresql.auto.conf", &format!("\n{} = 1\n", slots()));
    // It may still be stopping.
    check::wait_for("the standby starts", || standby.try_start().is_ok());
    standby.catch_up_with(&primary);
    primary.stop(Stop::Kill);
    standby.promote();
    standby.next_once_up();
    lists.push(many(&mut standby.client()));
    check::rising(&lists.concat());
}

// The keeper.

const KEEPER: &str = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_snowflake keeper'";

fn keeper(cluster: &Cluster) -> Option<i32> {
    cluster.client().query_opt(KEEPER, &[]).unwrap().map(|row| row.get(0))
}

/// Its process ID. A server may take sessions before it has started the keeper.
fn keeper_once_up(cluster: &Cluster) -> i32 {
    let mut pid = None;
    check::wait_for("the keeper runs", || {
        pid = keeper(cluster);
        pid.is_some()
    });
    pid.unwrap()
}

#[test]
fn a_keeper_that_is_told_to_end_comes_back_and_nothing_repeats() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let mut lists = vec![many(&mut client)];
    for _ in 0..3 {
        let pid = keeper_once_up(&cluster);
        client.query("SELECT pg_terminate_backend($1)", &[&pid]).unwrap();
        lists.push(many(&mut client));
        // It ends when no session is left that has claimed.
        drop(client);
        check::wait_for("another keeper runs", || keeper(&cluster).is_some_and(|other| other != pid));
        client = cluster.client();
        lists.push(many(&mut client));
    }
    cluster.stop(Stop::Kill);
    cluster.start();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
}

#[test]
fn a_keeper_that_is_killed_is_a_crash_like_any_other() {
    let cluster = Cluster::options().start();
    let mut lists = vec![many(&mut cluster.client())];
    assert!(cluster.crash(keeper_once_up(&cluster)));
    cluster.next_once_up();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
}

/// Where there is no process for it, IDs are made all the same, and the session that reads a new worker puts it into
/// use.
#[test]
fn without_a_keeper_sessions_go_on() {
    let cluster = Cluster::options().start();
    let mut lists = vec![many(&mut cluster.client())];
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.auto.conf", "\nmax_worker_processes = 0\n");
    cluster.start();
    assert_eq!(keeper(&cluster), None);
    let mut client = cluster.client();
    lists.push(many(&mut client));
    cluster.reload(&[("pg_snowflake.worker_id", "9")]);
    assert_eq!(value::<i32>(&mut client, "SELECT snowflake_worker(snowflake_next())"), 9);
    lists.push(many(&mut client));
    check::rising(&lists.concat());
}

#[test]
fn where_no_process_can_be_had_the_extension_is_not_created_and_the_parameter_is_named() {
    let cluster = Cluster::options().set("max_worker_processes = 0").create();
    cluster.start();
    let error = refused(&mut cluster.client(), "CREATE EXTENSION pg_snowflake", "53000");
    assert!(error.hint().unwrap().contains("max_worker_processes"), "{error:?}");
}

/// After a clean stop, IDs are not ahead of the clock.
#[test]
fn a_clean_stop_gives_back() {
    let cluster = Cluster::options().start();
    for _ in 0..3 {
        many(&mut cluster.client());
        cluster.stop(Stop::Fast);
        assert!(cluster.log().contains("gave back"), "{}", cluster.log());
        cluster.start();
        let mut client = cluster.client();
        many(&mut client);
        let lead: f64 = value(&mut client, "SELECT extract(epoch FROM lead)::float8 FROM snowflake_status()");
        assert!(lead < 0.2, "{lead}");
    }
}

/// An ID of each of these calls, which find the origin missing and meet in the wait for it to be created.
fn made_while_it_is_missing(cluster: &Cluster, calls: Vec<impl FnOnce() -> i64 + Send>) -> Vec<i64> {
    cluster.client().batch_execute(DROP).unwrap();
    let mut locker = cluster.client();
    locker.batch_execute("BEGIN; LOCK TABLE pg_replication_origin IN EXCLUSIVE MODE").unwrap();
    thread::scope(|scope| {
        let threads: Vec<_> = calls.into_iter().map(|call| scope.spawn(call)).collect();
        thread::sleep(millis(500));
        locker.batch_execute("COMMIT").unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn of_many_sessions_that_find_it_missing_one_has_it_created() {
    let cluster = Cluster::options().set("max_worker_processes = 64").set("log_min_messages = debug1").start();
    next(&mut cluster.client());
    let mut sessions: Vec<Client> = (0..24).map(|_| cluster.client()).collect();
    until_it_is_needed();
    let made = made_while_it_is_missing(&cluster, sessions.iter_mut().map(|session| || next(session)).collect());
    check::distinct(std::slice::from_ref(&made));
    // One more for each second that the machine lets the process wait.
    let processes = cluster.log().matches("starting background worker process \"pg_snowflake: create origin\"").count();
    assert!((1..=6).contains(&processes), "{processes} for {} sessions", made.len());
}

/// As by tools that set up several databases at once. There are fewer background processes than databases.
#[test]
fn extensions_that_are_created_at_the_same_time_wait_for_one_process() {
    let cluster = Cluster::options().set("max_worker_processes = 3").start();
    let databases: Vec<String> = (0..12).map(|number| format!("d{number}")).collect();
    for name in &databases {
        cluster.client().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
    }
    let create = |name: &str| {
        let mut client = cluster.client_of("postgres", name);
        client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
        next(&mut client)
    };
    let made = made_while_it_is_missing(&cluster, databases.iter().map(|name| || create(name)).collect());
    check::distinct(std::slice::from_ref(&made));
}

/// All find it missing at once, and there are fewer processes to create it than sessions.
#[test]
fn many_sessions_that_find_it_missing_are_not_refused() {
    let cluster = Cluster::options().set("pg_snowflake.reserve_ahead = '200ms'").start();
    cluster.client().batch_execute(TABLE).unwrap();
    let ((), record) = load::run_during(
        12,
        || &cluster,
        || {
            let there = "SELECT EXISTS (SELECT FROM pg_replication_origin WHERE roname = 'snowflake')";
            for _ in 0..20 {
                thread::sleep(millis(400));
                check::wait_for("it is there again", || value(&mut cluster.client(), there));
                // Refused while a session writes to it.
                cluster.retry(|client| client.batch_execute(DROP));
            }
        },
    );
    record.check(&[&cluster]);
    assert!(record.messages.is_empty(), "{:#?}", record.messages);
}

/// The process may be kept waiting before others see the origin, so that another session starts one, too, which finds the origin; and again before
/// that has its value. Another database's extension is created meanwhile, and IDs are asked for.
#[test]
fn an_origin_that_has_no_value_yet_is_waited_for() {
    let cluster = Cluster::options().create();
    let slow = preloaded::hook("slow_origin", &cluster);
    cluster.append("postgresql.conf", &format!("shared_preload_libraries = 'pg_snowflake, {slow}'\n"));
    cluster.start();
    let databases = ["first", "second", "third"];
    databases.iter().for_each(|name| cluster.client().batch_execute(&format!("CREATE DATABASE {name}")).unwrap());
    let create = |database| cluster.client_of("postgres", database).batch_execute("CREATE EXTENSION pg_snowflake");
    thread::scope(|scope| {
        let both = ["first", "second"].map(|database| scope.spawn(move || create(database)));
        let there = "SELECT EXISTS (SELECT FROM pg_replication_origin WHERE roname = 'snowflake')";
        check::wait_for("it is there", || value(&mut cluster.client(), there));
        let start = Instant::now();
        create("third").unwrap();
        thread::sleep(millis(200));
        next(&mut cluster.client_of("postgres", "third"));
        // Or the process did not sleep.
        assert!(start.elapsed() > millis(500), "{:?}", start.elapsed());
        both.into_iter().for_each(|created| created.join().unwrap().unwrap());
    });
    databases.iter().for_each(|name| assert!(next(&mut cluster.client_of("postgres", name)) > 0));
}
