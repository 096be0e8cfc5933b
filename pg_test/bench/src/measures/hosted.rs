//! The extension in SQL, for servers where no library can be installed: beside Instagram's function, which is what people write there,
//! `nextval`, and the library.

use super::calls::Calls;
use crate::contenders::{INSTAGRAM, SEQUENCE};
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, time};
use postgres::Client;
use snowflake_test::hosted;
use std::cell::RefCell;

/// The database with the extension in SQL, on the server with the default layout.
const DATABASE: &str = "in_sql";
/// `snowflake_next()` there.
const OURS: &str = "snowflake_next() in SQL";

fn client(servers: &Servers) -> Client {
    let cluster = &servers.default;
    let there = "SELECT FROM pg_database WHERE datname = $1";
    if cluster.client().query_opt(there, &[&DATABASE]).unwrap().is_none() {
        hosted::create_database(cluster, DATABASE);
        hosted::run_script(cluster, DATABASE);
        let mut client = cluster.client_of("owner", DATABASE);
        client.batch_execute("SELECT snowflake_configure(1)").unwrap();
        client.batch_execute(crate::contenders::SETUP).unwrap();
    }
    cluster.client_of("owner", DATABASE)
}

/// The price of each expression in a loop.
pub fn one_call(servers: &Servers, plan: &Plan) -> Group {
    let client = RefCell::new(client(servers));
    const BATCH: &str = "snowflake_next(1000) in SQL, an ID";
    let mut trials: Vec<Trial> =
        [(OURS, "snowflake_next()"), (INSTAGRAM, "instagram_next()"), (SEQUENCE, "nextval('plain')")]
            .into_iter()
            .map(|(name, expression)| {
                let calls = Calls::calibrated(&client, expression, plan);
                let client = &client;
                Trial::new(name, move || vec![("ns", calls.nanos(client))])
            })
            .collect();
    trials.push(Trial::new(BATCH, || {
        let query = "SELECT count(*) FROM generate_series(1, 20), snowflake_next(1000)";
        vec![("ns", time(&mut client.borrow_mut(), query).as_nanos() as f64 / 20_000.0)]
    }));
    let about =
        "Nanoseconds a call, as above, in one session, in a database with the extension in SQL and the default layout.";
    let mut group = Group::new("In SQL: one call", about.to_owned(), interleave(plan.short_rounds, trials));
    group.compare(OURS, INSTAGRAM, "ns", Goal::AtMost(1.5));
    group
}

/// Aggregates over a big table, in SQL and by the library.
pub fn decoding(servers: &Servers, plan: &Plan) -> Group {
    const PARTS: [(&str, &str); 4] = [
        ("snowflake_timestamp(id)", "max(snowflake_timestamp(id)) FROM hosted_ids"),
        (
            "(snowflake_decode(id)).*",
            "max(timestamp), max(datacenter_id), max(worker_id), max(sequence) \
             FROM (SELECT (snowflake_decode(id)).* FROM hosted_ids) AS parts",
        ),
        (
            "snowflake_between(id, ...)",
            "count(*) FROM hosted_ids WHERE snowflake_between(id, '2024-01-01', '2090-01-01')",
        ),
        (
            BY_NOW,
            "count(*) FROM hosted_ids WHERE snowflake_between(id, now() - interval '1 hour', now() + interval '1 hour')",
        ),
    ];
    // Without an index, bounds that are not constant are computed for each row.
    const BY_NOW: &str = "snowflake_between(id, now() - ..., now() + ...), no index";
    let rows = plan.decoded.min(1_000_000);
    let (sql, library) = (RefCell::new(client(servers)), RefCell::new(servers.default.client()));
    for client in [&sql, &library] {
        let fill = format!(
            "CREATE TABLE hosted_ids AS SELECT snowflake_encode(now(), 1, 5) + n AS id FROM generate_series(1, {rows}) AS n"
        );
        client.borrow_mut().batch_execute(&fill).unwrap();
        client.borrow_mut().batch_execute("VACUUM (ANALYZE) hosted_ids").unwrap();
        client.borrow_mut().batch_execute("SET max_parallel_workers_per_gather = 0").unwrap();
    }
    let mut trials = Vec::new();
    for (name, query) in PARTS {
        for (name, client) in [(format!("{name} in SQL"), &sql), (name.to_owned(), &library)] {
            let query = format!("SELECT {query}");
            trials.push(Trial::new(name, move || {
                vec![("ms", time(&mut client.borrow_mut(), &query).as_secs_f64() * 1000.0)]
            }));
        }
    }
    let about = format!("Milliseconds for `SELECT max(...)` or `count(*)` over {rows} rows, without parallel workers.");
    let mut group = Group::new("In SQL: reading IDs", about, interleave(plan.long_rounds.max(3), trials));
    for (name, _) in PARTS.into_iter().filter(|(name, _)| *name != BY_NOW) {
        group.compare(&format!("{name} in SQL"), name, "ms", Goal::AtMost(2.0));
    }
    group
}
