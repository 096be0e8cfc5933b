//! The replication origin that holds the server's reservation: what happens where it is dropped, held, set by hand, or cannot
//! be; and the keeper, without which the server goes on.

use postgres::Client;
use postgres::error::DbError;
use snowflake_test::load::{self, TABLE};
use snowflake_test::{Cluster, Installation, Stop, check, ids, kill};
use std::thread;
use std::time::{Duration, Instant};

const NEXT: &str = "SELECT snowflake_next()";
const DROP: &str = "SELECT pg_replication_origin_drop('snowflake')";

/// The parameter that says how many origins may be in use.
fn slots() -> &'static str {
    if Installation::under_test().major() < 18 { "max_replication_slots" } else { "max_active_replication_origins" }
}

fn refused(client: &mut Client, query: &str, code: &str) -> DbError {
    let error = client.query(query, &[]).expect_err(query);
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), code, "{query}: {error:?}");
    error.clone()
}

fn many(client: &mut Client) -> Vec<i64> {
    ids(&client.query("SELECT snowflake_next(1000)", &[]).unwrap())
}

/// Longer than the session's limit lasts, so that the next claim needs the origin.
fn until_it_is_needed() {
    thread::sleep(Duration::from_millis(1100));
}

#[test]
fn dropped_while_the_server_runs_it_comes_back_with_what_was_reserved() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '20s'").start();
    let mut client = cluster.client();
    let mut lists = vec![many(&mut client)];
    for round in 0..4 {
        client.batch_execute(DROP).unwrap();
        until_it_is_needed();
        lists.push(many(&mut client));
        if round % 2 == 1 {
            cluster.stop(Stop::Kill);
            cluster.step_clock("-30s");
            cluster.start().unwrap();
            client = cluster.client();
            lists.push(many(&mut client));
            cluster.step_clock("+0s");
        }
    }
    check::rising(&lists.concat());
    let log = cluster.log();
    assert!(log.contains("WARNING:  replication origin \"snowflake\" was missing, and was created again"), "{log}");
}

/// As after pg_upgrade, which carries no origins: what the databases have on record is enough for each of them.
#[test]
fn missing_at_a_start_it_comes_back_and_each_database_goes_on_above_its_own() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '20s'").start();
    let mut lists = vec![many(&mut cluster.client())];
    cluster.client().batch_execute(DROP).unwrap();
    cluster.stop(Stop::Fast);
    cluster.step_clock("-60s");
    cluster.start().unwrap();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
    assert!(cluster.log().contains("was missing, and was created again"), "{}", cluster.log());
}

/// An open transaction that has dropped any origin, in versions before 16 with a lock on all of them.
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
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    // It drops this one, too, and then does not: whoever needs it meanwhile is refused, or waits for the lock.
    other.batch_execute(DROP).unwrap();
    until_it_is_needed();
    client.batch_execute("SET lock_timeout = '300ms'").unwrap();
    let error = client.query(NEXT, &[]).unwrap_err();
    let code = if Installation::under_test().major() < 16 { "55006" } else { "55P03" };
    assert_eq!(error.code().unwrap().code(), code, "{error:?}");
    other.batch_execute("ROLLBACK").unwrap();
    lists.push(many(&mut client));
    // Or does: its value is not left behind for another origin.
    other.batch_execute("BEGIN; SELECT pg_replication_origin_drop('snowflake')").unwrap();
    until_it_is_needed();
    assert!(client.query(NEXT, &[]).is_err());
    other.batch_execute("COMMIT").unwrap();
    let heirs = "SELECT count(*) FROM pg_replication_origin_status";
    assert_eq!(other.query_one(heirs, &[]).unwrap().get::<_, i64>(0), 0);
    lists.push(many(&mut client));
    check::rising(&lists.concat());
}

/// As an apply worker of logical replication does, or in a transaction that may write nothing.
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

/// PostgreSQL itself does not start with fewer slots than there are origins; with more, everything is there again.
#[test]
fn fewer_slots_than_origins_end_a_start_and_raising_them_cures_it() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '20s'").start();
    let mut client = cluster.client();
    let mut lists = vec![many(&mut client)];
    client
        .batch_execute(
            "SELECT pg_replication_origin_create('other'); SELECT pg_replication_origin_advance('other', '0/1')",
        )
        .unwrap();
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.auto.conf", &format!("\n{} = 1\n", slots()));
    let log = cluster.start().unwrap_err();
    assert!(log.contains("PANIC"), "{log}");
    cluster.append("postgresql.auto.conf", &format!("\n{} = 10\n", slots()));
    cluster.step_clock("-30s");
    cluster.start().unwrap();
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
    // Nothing is left locked by it.
    assert!(client.query("SELECT * FROM snowflake_status()", &[]).is_ok());
    refused(&mut cluster.client(), NEXT, "55006");
    drop(holder);
    let start = Instant::now();
    while client.query_one(NEXT, &[]).is_err() {
        assert!(start.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(20));
    }
    lists.push(many(&mut client));
    check::rising(&lists.concat());
}

#[test]
fn without_slots_the_parameter_is_named_and_the_value_kept() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '20s'").start();
    let mut lists = vec![many(&mut cluster.client())];
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.auto.conf", &format!("\n{} = 0\n", slots()));
    cluster.start().unwrap();
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
    cluster.start().unwrap();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
}

#[test]
fn with_all_slots_taken_the_parameter_is_named() {
    let cluster = Cluster::options().not_preloaded().set(&format!("{} = 1", slots())).create();
    cluster.start().unwrap();
    let mut client = cluster.client();
    client
        .batch_execute(
            "SELECT pg_replication_origin_create('other'); SELECT pg_replication_origin_advance('other', '0/1')",
        )
        .unwrap();
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.conf", "shared_preload_libraries = 'pg_snowflake'\npg_snowflake.worker_id = 1\n");
    cluster.start().unwrap();
    let mut client = cluster.client();
    refused(&mut client, "CREATE EXTENSION pg_snowflake", "55000");
    client.batch_execute("SELECT pg_replication_origin_drop('other')").unwrap();
    // The first attempt has left the origin behind, without a value.
    let _ = client.batch_execute("SELECT pg_replication_origin_drop('snowflake')");
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    assert!(client.query_one(NEXT, &[]).is_ok());
}

/// An origin that lost its value is never taken for one that begins; the way out is what the hint says.
#[test]
fn without_its_value_it_is_an_error_with_a_way_out() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '20s'").start();
    let mut client = cluster.client();
    let last = *many(&mut client).last().unwrap();
    client.batch_execute(DROP).unwrap();
    client.batch_execute("SELECT pg_replication_origin_create('snowflake')").unwrap();
    cluster.stop(Stop::Kill);
    cluster.step_clock("-60s");
    cluster.start().unwrap();
    let mut client = cluster.client();
    let error = refused(&mut client, NEXT, "55000");
    assert_eq!(error.message(), "the replication origin \"snowflake\" has lost its value");
    client.query_one("SELECT snowflake_rewind($1)", &[&last]).unwrap();
    let next: i64 = client.query_one(NEXT, &[]).unwrap().get(0);
    assert!(next > last);
}

#[test]
fn set_back_by_hand_it_is_set_right_by_the_next_reservation() {
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_wait = '20s'").start();
    let mut client = cluster.client();
    let mut lists = vec![many(&mut client)];
    // Only while no session holds it; the change is not logged as an ordinary one.
    client.batch_execute("SELECT pg_replication_origin_advance('snowflake', '0/1')").unwrap();
    until_it_is_needed();
    lists.push(many(&mut client));
    cluster.stop(Stop::Kill);
    cluster.step_clock("-30s");
    cluster.start().unwrap();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
}

/// A standby replays the origin into a slot of its own.
#[test]
fn a_standby_without_a_slot_stops_and_one_that_has_one_goes_on() {
    let primary = Cluster::options().create();
    primary.start().unwrap();
    let standby = primary.standby();
    standby.stop(Stop::Fast);
    standby.append("postgresql.auto.conf", &format!("\n{} = 0\n", slots()));
    standby.start().unwrap();
    let mut client = primary.client();
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let mut lists = vec![many(&mut client)];
    let start = Instant::now();
    let stopped = || standby.log().contains("could not find free replication state");
    while !stopped() {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", standby.log());
        thread::sleep(Duration::from_millis(50));
    }
    standby.append("postgresql.auto.conf", &format!("\n{} = 1\n", slots()));
    let start = Instant::now();
    while standby.start().is_err() {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", standby.log());
        thread::sleep(Duration::from_millis(100));
    }
    standby.catch_up_with(&primary);
    primary.stop(Stop::Kill);
    standby.promote();
    standby.retry(|client| client.query_one(NEXT, &[]));
    lists.push(many(&mut standby.client()));
    check::rising(&lists.concat());
}

// The keeper.

const KEEPER: &str = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_snowflake keeper'";

fn keeper(cluster: &Cluster) -> Option<i32> {
    cluster.client().query_opt(KEEPER, &[]).unwrap().map(|row| row.get(0))
}

#[test]
fn a_keeper_that_is_told_to_end_comes_back_and_nothing_repeats() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let mut lists = vec![many(&mut client)];
    for _ in 0..3 {
        let start = Instant::now();
        let pid = loop {
            if let Some(pid) = keeper(&cluster) {
                break pid;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{}", cluster.log());
            thread::sleep(Duration::from_millis(50));
        };
        client.query("SELECT pg_terminate_backend($1)", &[&pid]).unwrap();
        lists.push(many(&mut client));
        // It ends when no session is left that may claim.
        drop(client);
        thread::sleep(Duration::from_millis(300));
        client = cluster.client();
        lists.push(many(&mut client));
    }
    cluster.stop(Stop::Kill);
    cluster.start().unwrap();
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
}

#[test]
fn a_keeper_that_is_killed_is_a_crash_like_any_other() {
    let cluster = Cluster::options().start();
    let mut lists = vec![many(&mut cluster.client())];
    kill(keeper(&cluster).unwrap().unsigned_abs());
    thread::sleep(Duration::from_millis(300));
    cluster.retry(|client| client.query_one(NEXT, &[]));
    lists.push(many(&mut cluster.client()));
    check::rising(&lists.concat());
}

/// Where no process can be had for it, IDs are made all the same, and a new worker is taken by the session that reads it.
#[test]
fn without_a_keeper_sessions_go_on() {
    let cluster = Cluster::options().start();
    let mut lists = vec![many(&mut cluster.client())];
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.auto.conf", "\nmax_worker_processes = 0\n");
    cluster.start().unwrap();
    assert_eq!(keeper(&cluster), None);
    let mut client = cluster.client();
    lists.push(many(&mut client));
    cluster.reload(&[("pg_snowflake.worker_id", "9")]);
    let worker: i32 = client.query_one("SELECT snowflake_worker(snowflake_next())", &[]).unwrap().get(0);
    assert_eq!(worker, 9);
    lists.push(many(&mut client));
    check::rising(&lists.concat());
}

#[test]
fn where_no_process_can_be_had_the_extension_is_not_created_and_the_parameter_is_named() {
    let cluster = Cluster::options().set("max_worker_processes = 0").create();
    cluster.start().unwrap();
    let error = refused(&mut cluster.client(), "CREATE EXTENSION pg_snowflake", "53000");
    assert!(error.hint().unwrap().contains("max_worker_processes"), "{error:?}");
}

/// A clean stop under load takes no longer than without the extension, and gives back.
#[test]
fn a_clean_stop_gives_back() {
    let cluster = Cluster::options().start();
    for _ in 0..3 {
        many(&mut cluster.client());
        cluster.stop(Stop::Fast);
        assert!(cluster.log().contains("gave back"), "{}", cluster.log());
        cluster.start().unwrap();
        let mut client = cluster.client();
        many(&mut client);
        let lead: f64 =
            client.query_one("SELECT extract(epoch FROM lead)::float8 FROM snowflake_status()", &[]).unwrap().get(0);
        assert!(lead < 0.2, "{lead}");
    }
}

/// All find it missing at once, and there are not as many processes to create it.
#[test]
fn many_sessions_that_find_it_missing_are_not_refused() {
    let cluster = Cluster::options().set("pg_snowflake.reserve_ahead = '200ms'").start();
    cluster.client().batch_execute(TABLE).unwrap();
    let ((), record) = load::run_during(
        12,
        || &cluster,
        || {
            for _ in 0..20 {
                thread::sleep(Duration::from_millis(400));
                cluster.client().batch_execute("SELECT pg_replication_origin_drop('snowflake')").unwrap();
            }
        },
    );
    record.check(&[&cluster]);
    assert!(record.messages.is_empty(), "{:#?}", record.messages);
}
