//! The promise is the server's: whichever database an ID comes from, it is never given again. Here sessions and servers
//! crash, the clock is fast for a moment, and the extension is dropped and created.

use fastrand::Rng;
use snowflake_test::given::{Given, narrow, server};
use snowflake_test::{Cluster, Stop};

/// The clock is fast for a moment, in which a database makes IDs: these are then ahead of the clock, by more than a
/// restart takes on a slow machine.
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
    // Reserved for longer than a restart takes on a slow machine.
    let cluster = server(narrow().set("pg_snowflake.reserve_ahead = '3s'"), &databases);
    let mut given = Given::default();
    let mut random = Rng::with_seed(20_261_121);
    let fault = |number: usize, database: &str| match number % 3 {
        0 => cluster.crash_session(database),
        1 => cluster.restart(Stop::Kill),
        _ => cluster.restart(Stop::Immediate),
    };
    for round in 0..7 {
        let busy = random.usize(..10);
        let idle = (busy + 1 + random.usize(..9)) % 10;
        given.claim(&cluster, databases[random.usize(..10)], 20);
        given.claim(&cluster, databases[busy], 20);
        fault(round, databases[random.usize(..10)]);
        given.claim(&cluster, databases[busy], 100);
        fault(round / 2, databases[random.usize(..10)]);
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
    cluster.restart(how);
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

/// Keeps IDs in a table without a default, beside which the extension can be dropped.
const INSERT: &str = "INSERT INTO kept SELECT snowflake_next(200) RETURNING id";

fn dropped_and_created(fast: bool, between: Between) {
    // Reserved for longer than a restart takes on a slow machine.
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
        // IDs go on above the reservation, ahead of the clock.
        cluster.crash_session("db1");
    }
    claim(&mut given);
    cluster.client_of("postgres", "db1").batch_execute("DROP EXTENSION pg_snowflake").unwrap();
    match between {
        Between::Restart => cluster.restart(Stop::Fast),
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
