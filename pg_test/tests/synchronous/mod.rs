//! A synchronous standby that does not answer: which sessions wait for it, and what ends the wait.

mod pair;

use pair::{Answer, Pair, SOON, Session, count, nothing_was_said_of_a_commit};
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::programs::{exists, kill};
use snowflake_test::query::{NEXT, batch, next};
use snowflake_test::{Cluster, Installation, Stop, ids, millis, seconds, value};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// An administrator in an outage resets `synchronous_standby_names`. That ends the wait of commits, and must end the
/// wait for a reservation, though the sessions have not read the new configuration yet.
#[test]
fn reset_lets_waiting_sessions_go() {
    let pair = Pair::start(Cluster::options());
    let before = pair.runs("", NEXT).answer().ids();
    pair.cut_for_all();
    let waiter = pair.runs("", NEXT);
    // This statement goes on for long after the reset, with the old configuration.
    let long = pair.runs("", "SELECT snowflake_next() FROM generate_series(1, 200000)");
    let commit = pair.runs("", "INSERT INTO plain VALUES (1) RETURNING n::bigint");
    pair.until_waiting(2);
    wait_for("the commit waits", || {
        count(&pair.first, "pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'INSERT%'") == 1
    });
    waiter.stays("no standby");
    pair.reset();
    let start = Instant::now();
    assert_eq!(commit.answer().ids(), [1]);
    let released = waiter.answer().ids();
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    let lists = [before, released, long.answer().ids(), pair.runs("", NEXT).answer().ids()];
    assert_eq!(check::distinct(&lists), 200_003);
}

/// A session that claimed while no standby was named waits as soon as one is named.
#[test]
fn names_that_are_set_count_at_once() {
    let pair = Pair::start(Cluster::options().set("pg_snowflake.reserve_ahead = '60s'"));
    pair.cut();
    pair.reset();
    let (mut client, answer) = pair.runs("", NEXT).finish();
    let mut given = answer.ids();
    given.push(next(&mut client));
    pair.first.reload(&[("synchronous_standby_names", "*")]);
    client.batch_execute("SET statement_timeout = '1s'").unwrap();
    Answer::of(client.query(NEXT, &[])).is_error("57014", "canceling statement due to statement timeout");
    pair.join();
    client.batch_execute("RESET statement_timeout").unwrap();
    given.push(next(&mut client));
    assert_eq!(check::distinct(&[given]), 3);
}

#[test]
fn the_wait_event_is_that_of_commits() {
    let pair = Pair::start(Cluster::options());
    pair.cut_for_all();
    let waiter = pair.waiters(1).remove(0);
    let query = "SELECT wait_event_type || ' ' || wait_event FROM pg_stat_activity WHERE pid = $1";
    let event: String = pair.first.client().query_one(query, &[&waiter.pid]).unwrap().get(0);
    assert_eq!(event, "IPC SyncRep");
    pair.join();
    assert_eq!(waiter.answer().ids().len(), 1);
}

#[test]
fn a_hundred_waiting_sessions_cost_nothing() {
    let pair = Pair::start(Cluster::options().set("max_connections = 130"));
    pair.cut_for_all();
    let waiters = pair.waiters(100);
    // User and system time, in hundredths of a second.
    let used = || -> u64 {
        let of = |waiter: &Session| -> u64 {
            let line = std::fs::read_to_string(format!("/proc/{}/stat", waiter.pid)).unwrap();
            let after_name = line.rsplit(')').next().unwrap();
            after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
        };
        waiters.iter().map(of).sum()
    };
    let (before, start) = (used(), Instant::now());
    thread::sleep(seconds(5));
    let cores = (used() - before) as f64 / 100.0 / start.elapsed().as_secs_f64();
    println!("100 waiting sessions use {cores:.4} of a core");
    assert!(cores < 0.02, "{cores} of a core");
    pair.join();
    let lists: Vec<_> = waiters.into_iter().map(|waiter| waiter.answer().ids()).collect();
    assert_eq!(check::distinct(&lists), 100);
}

#[test]
fn cancel_and_timeouts_end_the_wait_with_postgresqls_own_words() {
    let pair = Pair::start(Cluster::options());
    pair.cut_for_all();
    let mut admin = pair.first.client();
    for (settings, query) in [
        ("", NEXT),
        ("", "SELECT snowflake_next(5)"),
        ("BEGIN READ ONLY", NEXT),
        ("SET client_min_messages = debug1; SET log_min_messages = debug1", NEXT),
    ] {
        let waiter = pair.runs(settings, query);
        pair.until_waiting(1);
        let waiter_pid = waiter.pid;
        admin.query_one("SELECT pg_cancel_backend($1)", &[&waiter_pid]).unwrap();
        let (mut client, answer) = waiter.finish();
        answer.is_error("57014", "canceling statement due to user request");
        client.batch_execute("ROLLBACK").unwrap();
        let levels = "SELECT current_setting('client_min_messages') || current_setting('log_min_messages')";
        let levels: String = value(&mut client, levels);
        assert_eq!(levels, if settings.contains("debug1") { "debug1debug1" } else { "noticewarning" });
        // The session works, and gets no notice of the wait.
        let notices = Arc::new(Mutex::new(Vec::new()));
        let next = Session::run(
            client,
            waiter_pid,
            Arc::clone(&notices),
            "SELECT 1::bigint FROM (SELECT pg_backend_pid()) one",
        );
        assert_eq!(next.answer().ids(), [1]);
    }
    for _ in 0..20 {
        pair.runs("SET statement_timeout = '50ms'", NEXT)
            .answer()
            .is_error("57014", "canceling statement due to statement timeout");
    }
    if Installation::under_test().major() >= 17 {
        let waiter = pair.runs("SET transaction_timeout = '2s'", NEXT);
        pair.has_ended(&waiter.answer(), "25P04", "terminating connection due to transaction timeout");
    }
    pair.nobody_waits();
    nothing_was_said_of_a_commit(&pair.first);
    pair.join();
    assert_eq!(pair.runs("", NEXT).answer().ids().len(), 1);
}

#[test]
fn a_termination_and_the_loss_of_client_or_server_end_the_session() {
    let pair = Pair::start(Cluster::options());
    pair.cut_for_all();
    let mut admin = pair.first.client();
    let waiter = pair.waiters(1).remove(0);
    admin.query_one("SELECT pg_terminate_backend($1)", &[&waiter.pid]).unwrap();
    wait_for("the session ends", || waiter.is_gone());
    pair.has_ended(&waiter.answer(), "57P01", "terminating connection due to administrator command");

    // The client gets the message.
    let psql = pair.first.program("psql").args(["-c", NEXT]).stderr(Stdio::piped()).spawn().unwrap();
    pair.until_waiting(1);
    let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'psql'";
    assert_eq!(admin.query(all, &[]).unwrap().len(), 1);
    let told = String::from_utf8(psql.wait_with_output().unwrap().stderr).unwrap();
    let find = "SELECT pid FROM pg_stat_activity WHERE application_name = 'psql'";
    wait_for("the session ends", || admin.query(find, &[]).unwrap().is_empty());
    assert!(told.contains("FATAL:  terminating connection due to administrator command"), "{told}");
    assert!(!told.contains("WARNING"), "{told}");

    // A client that is killed.
    let query = "SET client_connection_check_interval = '300ms'; SELECT snowflake_next()";
    let mut psql = pair.first.program("psql").args(["-c", query]).spawn().unwrap();
    pair.until_waiting(1);
    let pid: i32 = value(&mut admin, find);
    let children = format!("pkill -KILL -P {}; kill -KILL {}", psql.id(), psql.id());
    Command::new("sh").args(["-c", &children]).output().unwrap();
    psql.wait().unwrap();
    wait_for("the session of a client that is gone ends", || !exists(pid.unsigned_abs()));
    nothing_was_said_of_a_commit(&pair.first);

    // The postmaster is killed.
    let waiter = pair.waiters(1).remove(0);
    kill(pair.first.postmaster());
    wait_for("the session ends", || waiter.is_gone());
}

/// Sessions that wait do not hold up others: DROP DATABASE asks each process to close its files.
#[test]
fn waiting_sessions_answer_the_rest_of_the_server() {
    let pair = Pair::start(Cluster::options());
    pair.first.client().batch_execute("CREATE DATABASE other").unwrap();
    pair.cut_for_all();
    let waiters = pair.waiters(3);
    let drop =
        pair.first.program("psql").args(["-c", "SET synchronous_commit = off", "-c", "DROP DATABASE other"]).spawn();
    let mut drop = drop.unwrap();
    wait_for("the database is dropped", || drop.try_wait().unwrap().is_some_and(|status| status.success()));
    pair.until_waiting(3);
    pair.join();
    let lists: Vec<_> = waiters.into_iter().map(|waiter| waiter.answer().ids()).collect();
    assert_eq!(check::distinct(&lists), 3);
}

/// Sessions that wait do not hold up a shutdown; and what the server gave out before is not given out after it.
fn stop_while_sessions_wait(how: Stop) {
    let pair = Pair::start(Cluster::options().with_clock());
    let mut lists = pair.first.sessions(4, |_, client| batch(client, 500));
    pair.cut_for_all();
    // This session reserves, and gets IDs, without the standby.
    lists.push(pair.runs("SET synchronous_commit = off", "SELECT snowflake_next(500)").answer().ids());
    let waiters = pair.waiters(20);
    let start = Instant::now();
    pair.first.stop(how);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    for waiter in waiters {
        let (_, answer) = waiter.answer.recv_timeout(SOON).unwrap();
        assert!(!matches!(answer, Answer::Ids(_)), "an ID that the standby does not know of");
        // An immediate shutdown sends a notice of its own.
        let notices = waiter.notices.lock().unwrap().concat();
        assert!(!notices.contains("committed"), "{notices}");
    }
    nothing_was_said_of_a_commit(&pair.first);
    pair.first.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
    pair.first.step_clock("-100s");
    pair.first.start();
    lists.extend(pair.first.sessions(4, |_, client| batch(client, 500)));
    assert_eq!(check::distinct(&lists), 4500);
}

#[test]
fn a_fast_shutdown_while_sessions_wait() {
    stop_while_sessions_wait(Stop::Fast);
}

#[test]
fn an_immediate_shutdown_while_sessions_wait() {
    stop_while_sessions_wait(Stop::Immediate);
}

#[test]
fn a_killed_server_while_sessions_wait() {
    stop_while_sessions_wait(Stop::Kill);
}

/// The standby takes over while sessions of the primary wait for it: the new primary does not give out what these were
/// given before, though its clock is behind.
#[test]
fn a_promotion_while_sessions_wait() {
    let pair = Pair::start(Cluster::options().patient());
    let given = AtomicUsize::new(0);
    let lists = thread::scope(|scope| {
        let load = scope.spawn(|| {
            pair.first.sessions(8, |_, client| {
                let mut list = Vec::new();
                // Until the server is killed.
                while let Ok(rows) = client.query(NEXT, &[]) {
                    list.extend(ids(&rows));
                    given.fetch_add(1, Relaxed);
                }
                list
            })
        });
        thread::sleep(millis(1500));
        wait_for("IDs are given", || given.load(Relaxed) > 1000);
        pair.cut();
        pair.until_waiting(8);
        pair.first.stop(Stop::Kill);
        pair.second.step_clock("-100s");
        pair.second.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
        pair.second.client().batch_execute("SELECT pg_reload_conf()").unwrap();
        pair.second.promote();
        load.join().unwrap()
    });
    let before: usize = lists.iter().map(Vec::len).sum();
    assert!(before > 1000, "{before}");
    let after = pair.second.sessions(4, |_, client| batch(client, 5000));
    assert_eq!(check::distinct(&[lists, after].concat()), before + 20_000);
}

/// A session that was admitted at a level that does not wait raises its level.
#[test]
fn a_level_that_is_raised_counts_for_the_next_id() {
    // The reservation lasts for all of the test: what makes a session wait is the level.
    let pair = Pair::start(Cluster::options().set("pg_snowflake.reserve_ahead = '60s'"));
    let mut client = pair.first.client();
    client
        .batch_execute(
            "CREATE FUNCTION at_level_on() RETURNS bigint SET synchronous_commit = on \
             LANGUAGE plpgsql AS 'BEGIN RETURN snowflake_next(); END'",
        )
        .unwrap();
    pair.cut();
    let mut given = Vec::new();
    for low in ["off", "local"] {
        for raised in [
            "SET synchronous_commit = on; SELECT snowflake_next()",
            "SET synchronous_commit = remote_apply; SELECT snowflake_next(3)",
            "SET synchronous_commit = remote_write; SELECT snowflake_next()",
            "SELECT at_level_on()",
        ] {
            client.batch_execute(&format!("SET synchronous_commit = {low}")).unwrap();
            // At this level, the session needs no standby.
            given.extend(ids(&client.query("SELECT snowflake_next() FROM generate_series(1, 1000)", &[]).unwrap()));
            // Both calls in one message: the second comes before the session reads the clock again.
            client.batch_execute("SET statement_timeout = '200ms'").unwrap();
            let error = client.simple_query(&format!("SELECT snowflake_next(); {raised}"));
            let error = error.err().unwrap_or_else(|| panic!("from {low}: {raised}: did not wait"));
            assert_eq!(error.code().unwrap().code(), "57014", "from {low}: {raised}");
            client.batch_execute("RESET statement_timeout").unwrap();
        }
    }
    client.batch_execute("SET synchronous_commit = on").unwrap();
    client.batch_execute("SET statement_timeout = '200ms'").unwrap();
    for query in [NEXT, "SELECT snowflake_next(3)"] {
        refused(&mut client, query, "57014");
    }
    pair.join();
    client.batch_execute("RESET statement_timeout").unwrap();
    given.push(next(&mut client));
    check::rising(&given);
    assert_eq!(check::distinct(&[given]), 8001);
}

/// An ID that was claimed at the raised level is known to the standby that is promoted.
#[test]
fn a_level_that_is_raised_holds_after_a_promotion() {
    // With this burst, the new primary can give out seconds of positions at once.
    let options = Cluster::options().with_clock().set("pg_snowflake.reserve_ahead = '100ms'");
    let pair = Pair::start(options.set("pg_snowflake.max_burst = '60s'"));
    // The standby knows of a reservation up to about now.
    pair.runs("", NEXT).answer().ids();
    pair.cut();
    thread::sleep(millis(150));
    let lists = pair.first.sessions(4, |_, client| {
        let raised = "SELECT snowflake_next(10); SET synchronous_commit = on";
        client.simple_query(&format!("SET synchronous_commit = off; {raised}")).unwrap();
        client.batch_execute("SET statement_timeout = '300ms'").unwrap();
        client.query("SELECT snowflake_next(10)", &[]).map_or_else(|_| Vec::new(), |rows| ids(&rows))
    });
    pair.first.stop(Stop::Kill);
    pair.second.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
    pair.second.client().batch_execute("SELECT pg_reload_conf()").unwrap();
    pair.second.step_clock("-30s");
    pair.second.promote();
    let again = "SELECT count(*) FROM (SELECT snowflake_next(20000000) AS id) new WHERE id = ANY ($1)";
    let again: i64 = pair.second.client().query_one(again, &[&lists.concat()]).unwrap().get(0);
    assert_eq!(again, 0, "IDs given at the raised level come again");
}

#[test]
fn standbys_by_priority_and_by_quorum() {
    let pair = Pair::start(Cluster::options());
    let short = "SET statement_timeout = '600ms'";
    for (names, enough) in [
        ("ANY 1 (*)", true),
        ("FIRST 1 (*)", true),
        ("FIRST 2 (*)", false),
        ("ANY 2 (a, *)", false),
        ("elsewhere", false),
    ] {
        pair.first.reload(&[("synchronous_standby_names", names)]);
        // What was reserved under the old names has passed.
        thread::sleep(millis(1100));
        let answer = pair.runs(if enough { "" } else { short }, NEXT).answer();
        assert_eq!(matches!(answer, Answer::Ids(_)), enough, "{names}: {answer:?}");
    }
    for names in ["ANY 1 (*)", "FIRST 1 (*)"] {
        pair.first.reload(&[("synchronous_standby_names", names)]);
        pair.runs("", NEXT).answer().ids();
        pair.cut_for_all();
        pair.runs(short, NEXT).answer().is_error("57014", "canceling statement due to statement timeout");
        let waiter = pair.waiters(1).remove(0);
        pair.join();
        assert_eq!(waiter.answer().ids().len(), 1);
    }
}

#[test]
fn parallel_workers_wait_and_can_be_cancelled() {
    let force = if Installation::under_test().major() >= 16 { "debug_parallel_query" } else { "force_parallel_mode" };
    let pair = Pair::start(
        Cluster::options().set("max_parallel_workers_per_gather = 2").set("min_parallel_table_scan_size = 0"),
    );
    pair.first.client().batch_execute("CREATE TABLE source AS SELECT i FROM generate_series(1, 20000) i").unwrap();
    let settings = format!("SET {force} = on; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0");
    let query = "SELECT snowflake_next() FROM source";
    pair.cut_for_all();
    let workers = "pg_stat_activity WHERE backend_type = 'parallel worker'";
    let mut admin = pair.first.client();
    for call in ["pg_cancel_backend", "pg_terminate_backend"] {
        let waiter = pair.runs(&settings, query);
        wait_for("workers wait", || {
            count(&pair.first, &format!("{workers} AND wait_event IN ('SyncRep', 'Extension')")) > 0
        });
        waiter.stays("parallel");
        admin.query_one(&format!("SELECT {call}($1)"), &[&waiter.pid]).unwrap();
        let answer = waiter.answer();
        if call == "pg_cancel_backend" {
            answer.is_error("57014", "canceling statement due to user request");
        } else {
            pair.has_ended(&answer, "57P01", "terminating connection due to administrator command");
        }
        wait_for("no worker is left", || count(&pair.first, workers) == 0);
    }
    // A parallel worker that is terminated ends the whole query, though its leader waits.
    let waiter = pair.runs(&settings, query);
    wait_for("workers wait", || {
        count(&pair.first, &format!("{workers} AND wait_event IN ('SyncRep', 'Extension')")) > 0
    });
    admin.query_one(&format!("SELECT pg_terminate_backend((SELECT pid FROM {workers} LIMIT 1))"), &[]).unwrap();
    waiter.answer().is_error("57P01", "terminating background worker \"parallel worker\" due to administrator command");

    let waiter = pair.runs(&settings, query);
    waiter.stays("parallel");
    pair.join();
    assert_eq!(check::distinct(&[waiter.answer().ids()]), 20_000);
    nothing_was_said_of_a_commit(&pair.first);
}

/// The process that creates the origin waits for no standby: the session does, at its own level, for what comes after that in the WAL.
#[test]
fn the_extension_is_created_at_a_level_that_waits_for_nobody() {
    let cluster = Cluster::options().set("synchronous_standby_names = 'nobody'").create();
    cluster.start();
    let mut client = cluster.client();
    client.batch_execute("SET synchronous_commit = local; SET statement_timeout = '60s'").unwrap();
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    client.query_one(NEXT, &[]).unwrap();
    // Others wait, as they would for a commit.
    let mut other = cluster.client();
    other.batch_execute("SET statement_timeout = '2s'").unwrap();
    refused(&mut other, NEXT, "57014");
}
