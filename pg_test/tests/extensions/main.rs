//! Extensions of others beside ours, each with their libraries loaded before ours and after it: what they decide, show and count is as without
//! ours, and a query returns the same rows. `scripts/test-extensions` runs these tests on a PostgreSQL that has the extensions.

mod columnar;
mod compression;
mod cron;
mod hints;
mod hypertables;
mod hypothetical;
mod queries;
mod statistics;

use postgres::{Client, SimpleQueryMessage};
use snowflake_test::{Cluster, Options};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a test beside these libraries, separated by commas, in both orders. Their extensions, separated by blanks, are created.
fn beside(libraries: &str, extensions: &str, test: impl Fn(&Cluster)) {
    beside_with(libraries, extensions, |options| options, test);
}

/// The same, with more options of the cluster.
fn beside_with(libraries: &str, extensions: &str, more: impl Fn(Options) -> Options, test: impl Fn(&Cluster)) {
    let orders = [format!("{libraries}, pg_snowflake"), format!("pg_snowflake, {libraries}")];
    let run = |order: &str| {
        let cluster = more(Cluster::options().set("autovacuum = off"))
            .set(&format!("shared_preload_libraries = '{order}'"))
            .start();
        for name in extensions.split_whitespace() {
            cluster.client().batch_execute(&format!("CREATE EXTENSION {name} CASCADE")).unwrap();
        }
        test(&cluster);
        assert!(!cluster.log().contains("terminated by signal"), "a session crashed:\n{}", cluster.log());
    };
    // Both, even where the first fails: what fails in one only says much of why.
    let fails = |order: &&String| catch_unwind(AssertUnwindSafe(|| run(order))).is_err();
    let failed: Vec<&String> = orders.iter().filter(fails).collect();
    assert!(failed.is_empty(), "with shared_preload_libraries = {failed:?}");
}

/// Executes statements, separated by semicolons, one by one.
fn execute(client: &mut Client, statements: &str) {
    for statement in statements.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
        client.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

/// A row a minute, for 14 days: `r` with its key, `both` with an index on the time, too, `bare` without any.
const ROWS: &str = "
    CREATE TABLE r (id bigint PRIMARY KEY, n integer);
    INSERT INTO r SELECT snowflake_min_id(timestamptz '2026-01-01 00:00+00' + n * interval '1 minute'), n FROM generate_series(1, 20000) n;
    CREATE TABLE both_ways (id bigint PRIMARY KEY, n integer);
    INSERT INTO both_ways TABLE r;
    CREATE INDEX both_ways_time ON both_ways (snowflake_timestamp(id));
    CREATE TABLE bare (id bigint NOT NULL, n integer);
    INSERT INTO bare TABLE r;
    CREATE TABLE other AS SELECT * FROM r WHERE n % 100 = 0;
    VACUUM ANALYZE";

/// The plan of a query; all its lines.
fn plan(client: &mut Client, query: &str) -> String {
    // A hint must be the first comment of the whole statement.
    let (hint, query) = query.split_once("*/").map_or(("", query), |(hint, query)| (hint, query));
    let hint = if hint.is_empty() { String::new() } else { format!("{hint}*/ ") };
    rows(client, &format!("{hint}EXPLAIN (COSTS OFF) {query}")).join("\n")
}

/// The rows of a query, as text.
fn rows(client: &mut Client, query: &str) -> Vec<String> {
    let messages = client.simple_query(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let mut rows = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let mut text = String::new();
            for column in 0..row.len() {
                write!(text, "{}{}", if column > 0 { " | " } else { "" }, row.get(column).unwrap_or("NULL")).unwrap();
            }
            rows.push(text);
        }
    }
    rows
}

/// The rows of a query with the hooks on, which must be those with them off.
fn same_rows(client: &mut Client, query: &str) -> Vec<String> {
    let [on, off] = ["on", "off"].map(|state| {
        execute(client, &format!("SET pg_snowflake.plan_by_time = {state}"));
        rows(client, query)
    });
    execute(client, "RESET pg_snowflake.plan_by_time");
    assert_eq!(on, off, "{query}\nThe plan with the hooks:\n{}", plan(client, query));
    on
}

/// Whether a plan has each of these texts, and none that is marked by `!`.
fn is_as_expected(plan: &str, texts: &[&str]) -> bool {
    texts.iter().all(|text| match text.strip_prefix('!') {
        Some(text) => !plan.contains(text),
        None => plan.contains(text),
    })
}

/// The same of the plan of a query.
#[track_caller]
fn assert_plan(client: &mut Client, query: &str, texts: &[&str]) {
    let plan = plan(client, query);
    assert!(is_as_expected(&plan, texts), "{query}: not with {texts:?}:\n{plan}");
}
