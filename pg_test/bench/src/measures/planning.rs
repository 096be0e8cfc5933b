//! What the hooks of the planner cost queries that have none of our functions, and what bounds by time cost those that have.

use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Protocol, Servers, cpu_micros, cpu_of_ended, pgbench_by, process, time};
use postgres::Client;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

const TABLES: usize = 10;
const ROWS: u32 = 10_000;

/// `pg_snowflake.plan_by_time`.
pub const WAYS: [&str; 2] = ["on", "off"];

/// By its name, what is only planned.
const PLANNED: [&str; 2] = ["planning one row by its key", "planning a join of 10 tables"];

/// One row by its key, as in `pgbench -S`, from planning alone to whole statements, and a join.
pub fn planning(servers: &Servers, plan: &Plan) -> Group {
    let server = &servers.default;
    let client = RefCell::new(server.client());
    let session = process(&mut client.borrow_mut());
    for number in 0..TABLES {
        let create = format!(
            "CREATE TABLE planned{number} (id bigint PRIMARY KEY, next bigint, at timestamptz);
             INSERT INTO planned{number} SELECT n, n, now() FROM generate_series(1, {ROWS}) n;
             VACUUM ANALYZE planned{number}"
        );
        create.split(';').for_each(|statement| client.borrow_mut().batch_execute(statement).unwrap());
    }
    // In the order as written, as the search for the best one takes so long that nothing else could be seen.
    client.borrow_mut().batch_execute("SET join_collapse_limit = 1").unwrap();
    let mut join = "SELECT count(*) FROM planned0".to_owned();
    for number in 1..TABLES {
        join += &format!(" JOIN planned{number} ON planned{number}.id = planned{}.next", number - 1);
    }
    join += " WHERE planned0.at > now() AND planned9.at < now()";

    let mut trials = Vec::new();
    for (name, query) in PLANNED.into_iter().zip(["SELECT next FROM planned0 WHERE id = 5000", join.as_str()]) {
        let explain = |count: u32| {
            format!("DO $$ BEGIN FOR i IN 1..{count} LOOP EXECUTE 'EXPLAIN (COSTS OFF) {query}'; END LOOP; END $$")
        };
        let count = calibrated(&mut client.borrow_mut(), &explain, plan.calls);
        let statement = explain(count);
        for way in WAYS {
            let (client, statement) = (&client, statement.clone());
            trials.push(Trial::new(with(name, way), move || {
                let mut client = client.borrow_mut();
                client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {way}")).unwrap();
                let before = cpu_micros(session);
                client.batch_execute(&statement).unwrap();
                vec![("µs", (cpu_micros(session) - before) / f64::from(count))]
            }));
        }
    }
    let mut rows = interleave(plan.short_rounds * 3, trials);

    let script = format!("\\set id random(1, {ROWS})\nSELECT next FROM planned0 WHERE id = :id;\n");
    let protocols = [("pgbench -S, simple", Protocol::Simple), ("pgbench -S, prepared", Protocol::Prepared)];
    let mut trials = Vec::new();
    for (name, protocol) in protocols {
        for way in WAYS {
            let script = script.clone();
            trials.push(Trial::new(with(name, way), move || {
                let cpu = || {
                    // Sessions may still be ending.
                    thread::sleep(Duration::from_millis(200));
                    cpu_of_ended(server.postmaster())
                };
                let before = cpu();
                let options = format!("-c pg_snowflake.plan_by_time={way}");
                let load =
                    pgbench_by(server, protocol, std::slice::from_ref(&script), 1, plan.load, &options).remove(0);
                let queries = load.per_second * f64::from(plan.load);
                vec![("µs", (cpu() - before) * 1e6 / queries)]
            }));
        }
    }
    rows.extend(interleave(plan.short_rounds, trials));

    let about = "Queries without a function of pg_snowflake, with `plan_by_time` on and off: processor time of the session for a \
                 query. Planning: EXPLAIN in a loop, of the join in the order as written. pgbench: one client. Prepared, a \
                 query is planned five times and then no more.";
    let mut group = Group::new("Planning", about, rows);
    for name in PLANNED.into_iter().chain(protocols.map(|(name, _)| name)) {
        let figure = |way| group.row(&with(name, way)).unwrap().figure("µs").clone();
        let more = figure("on").less(&figure("off")).median;
        group.state(format!("{name}: more µs a query"), more, Goal::AtMost(1.0));
        group.compare(&with(name, "on"), &with(name, "off"), "µs", Goal::AtMost(1.05));
    }
    group
}

/// Queries by time, through a view: by its name, the condition, and what `$1` and `$2` stand for. `{day}` and `{next}` are two days.
const BY_TIME: [(&str, &str, &str); 3] = [
    ("constants", "created_at >= '{day}' AND created_at < '{next}'", ""),
    ("now()", "created_at >= now() - interval '1 hour'", ""),
    ("parameters", "created_at >= $1 AND created_at < $2", "USING now() - interval '1 hour', now()"),
];

/// Planning of queries by time: of a view over a snowflake key, and of a table with the column and its index.
pub fn by_time(servers: &Servers, plan: &Plan) -> Group {
    let client = RefCell::new(servers.default.client());
    let session = process(&mut client.borrow_mut());
    let create = format!(
        "CREATE TABLE keyed (id bigint PRIMARY KEY, n integer);
         INSERT INTO keyed SELECT snowflake_encode(now() - n * interval '1 minute', 1), n FROM generate_series(1, {ROWS}) n;
         CREATE VIEW keyed_events AS SELECT snowflake_timestamp(id) AS created_at, * FROM keyed;
         CREATE TABLE timed_events (id bigint PRIMARY KEY, created_at timestamptz, n integer);
         INSERT INTO timed_events SELECT n, now() - n * interval '1 minute', n FROM generate_series(1, {ROWS}) n;
         CREATE INDEX ON timed_events (created_at);
         CREATE VIEW timed_view AS SELECT * FROM timed_events;
         VACUUM ANALYZE keyed; VACUUM ANALYZE timed_events"
    );
    create.split(';').for_each(|statement| client.borrow_mut().batch_execute(statement).unwrap());
    let day = |ago: u32| -> String {
        client.borrow_mut().query_one(&format!("SELECT (current_date - {ago})::text"), &[]).unwrap().get(0)
    };
    let days = [day(4), day(3)];
    let condition_on = |condition: &str| condition.replace("{day}", &days[0]).replace("{next}", &days[1]);
    let mut trials = Vec::new();
    for (name, condition, parameters) in BY_TIME {
        let condition = condition_on(condition);
        let statement = |events: &str, count: u32| {
            format!(
                "DO $do$ BEGIN FOR i IN 1..{count} LOOP \
                 EXECUTE $$EXPLAIN (COSTS OFF) SELECT n FROM {events} WHERE {condition}$$ {parameters}; END LOOP; END $do$"
            )
        };
        let count = calibrated(&mut client.borrow_mut(), &|count| statement("keyed_events", count), plan.calls);
        let contenders = [
            (with(name, WAYS[0]), "keyed_events", WAYS[0]),
            (with(name, WAYS[1]), "keyed_events", WAYS[1]),
            (with(name, "created_at and its index"), "timed_events", WAYS[0]),
            (with(name, "the same through a view"), "timed_view", WAYS[0]),
        ];
        for (name, events, way) in contenders {
            let (client, statement) = (&client, statement(events, count));
            trials.push(Trial::new(name, move || {
                let mut client = client.borrow_mut();
                client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {way}")).unwrap();
                let before = cpu_micros(session);
                client.batch_execute(&statement).unwrap();
                vec![("µs", (cpu_micros(session) - before) / f64::from(count))]
            }));
        }
    }
    let mut about = "EXPLAIN in a loop of a query by time of a small table: processor time of the session for a query, parsing and \
                     the printing of the plan included. Through a view with `snowflake_timestamp(id) AS created_at`, with \
                     `plan_by_time` on (a range of the index) and off (a sequential scan); and of a table with `created_at` \
                     and its index, by itself and through a view.\n"
        .to_owned();
    for (name, condition, _) in BY_TIME {
        let _ = write!(about, "\n* {name}: `{}`", condition_on(condition));
    }
    let rows = interleave(plan.short_rounds, trials);
    client.borrow_mut().batch_execute("DROP VIEW keyed_events, timed_view; DROP TABLE keyed, timed_events").unwrap();
    Group::new("Planning of queries by time", about, rows)
}

fn with(name: &str, way: &str) -> String {
    format!("{name}, {way}")
}

/// How often the loop must run to last so long.
fn calibrated(client: &mut Client, explain: &impl Fn(u32) -> String, length: Duration) -> u32 {
    const PROBE: u32 = 200;
    let of_one = time(client, &explain(PROBE)) / PROBE;
    (length.as_secs_f64() / of_one.as_secs_f64()).max(1.0) as u32
}
