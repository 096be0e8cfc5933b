//! Sessions that wait show for what. `clock.rs` has those that wait for a clock that went back.

use postgres::Client;
use snowflake_test::check::{refused, wait_for};
use snowflake_test::query::value;
use snowflake_test::waits::{wait_event, wait_event_of};
use snowflake_test::{Cluster, Stop};
use std::thread;

/// A session runs this query, shows this wait event meanwhile, and can be cancelled.
fn shows(cluster: &Cluster, query: &str, event: &str) {
    let mut waiting = cluster.client();
    let pid: i32 = value(&mut waiting, "SELECT pg_backend_pid()");
    thread::scope(|scope| {
        let waiter = scope.spawn(move || refused(&mut waiting, query, "57014"));
        let mut observer = cluster.client();
        wait_for(event, || wait_event(&mut observer, pid) == wait_event_of(event));
        observer.query_one("SELECT pg_cancel_backend($1)", &[&pid]).unwrap();
        waiter.join().unwrap();
    });
}

#[test]
fn a_session_shows_that_it_waits_for_the_next_tick() {
    // 25,600 IDs a second.
    let cluster = Cluster::options().set("pg_snowflake.layout = 'sonyflake2'").start();
    // Not in FROM, where the numbers would be stored first.
    let query = "SELECT count(snowflake_next()) FROM (SELECT generate_series(1, 1000000000)) n";
    shows(&cluster, query, "SnowflakeCeiling");
    // The names are there also after a crash, in new shared memory.
    cluster.restart(Stop::Kill);
    shows(&cluster, query, "SnowflakeCeiling");
}

#[test]
fn a_session_shows_that_it_waits_for_a_lease() {
    // Nobody listens there.
    let url = "redis://127.0.0.1:1";
    let settings =
        format!("pg_snowflake.worker_id = -1\npg_snowflake.registry = '{url}'\npg_snowflake.max_wait = '10min'");
    let cluster = Cluster::options().set(&settings).start();
    shows(&cluster, "SELECT snowflake_next()", "SnowflakeLease");
}

#[test]
fn the_names_are_those_that_the_server_lists() {
    if snowflake_test::Installation::under_test().major() < 17 {
        return;
    }
    let cluster = Cluster::options().start();
    let mut client: Client = cluster.client();
    let list = "SELECT string_agg(name, ' ' ORDER BY name) FROM pg_wait_events WHERE name LIKE 'Snowflake%'";
    let all = "SnowflakeCeiling SnowflakeClock SnowflakeLease SnowflakeRegistry SnowflakeSegment";
    wait_for("the keeper has named them", || value::<Option<String>>(&mut client, list).as_deref() == Some(all));
}

/// From PostgreSQL 18 on; and nothing of the statement before it.
#[test]
fn explain_says_how_long_a_statement_has_waited() {
    if snowflake_test::Installation::under_test().major() < 18 {
        return;
    }
    let cluster = Cluster::options().set("pg_snowflake.layout = 'sonyflake2'\npg_snowflake.max_lead = 0").start();
    let mut client = cluster.client();
    let mut explained = |options: &str, count: u32| -> Vec<String> {
        let query = format!("EXPLAIN (ANALYZE{options}) SELECT snowflake_next() FROM generate_series(1, {count})");
        let rows = client.query(&query, &[]).unwrap();
        rows.iter().map(|row| row.get::<_, String>(0)).filter(|line| line.contains("Snowflake")).collect()
    };
    // 256 IDs each 10 ms.
    let lines = explained("", 10_000);
    let millis: f64 =
        lines[0].strip_prefix("Snowflake Ceiling Wait: ").unwrap().strip_suffix(" ms").unwrap().parse().unwrap();
    assert!(lines.len() == 1 && millis > 100.0, "{lines:?}");
    assert!(explained("", 1).is_empty());
    assert!(explained(", SUMMARY OFF", 10_000).is_empty());
}
