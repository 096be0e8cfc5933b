//! How planning of queries by time grows with partitions, members, conditions and joins, with the parameter on and off.

use super::planning::WAYS;
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, cpu_micros, process};
use std::cell::RefCell;
use std::fmt::Write as _;

/// What is planned: a title and the query.
struct Case {
    title: String,
    query: String,
}

/// How many times as long planning may take.
const GOAL: Goal = Goal::AtMost(1.3);

const TIME: &str = "snowflake_timestamp(id)";

/// A range, an order over many partitions, joins, a UNION ALL of many members, many conditions.
pub fn growth(servers: &Servers, plan: &Plan) -> Group {
    let client = RefCell::new(servers.default.client());
    let session = process(&mut client.borrow_mut());
    let (create, drop, cases) = cases(plan);
    for statement in create {
        client.borrow_mut().batch_execute(&statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    let mut trials = Vec::new();
    for Case { title, query } in &cases {
        let explain = format!("EXPLAIN (COSTS OFF) {query}");
        // Once for the catalogue's caches; then as often as makes a few milliseconds.
        client.borrow_mut().simple_query(&explain).unwrap();
        let before = cpu_micros(session);
        client.borrow_mut().simple_query(&explain).unwrap();
        let count = (20_000.0 / (cpu_micros(session) - before).max(100.0)).ceil() as u32;
        for way in WAYS {
            let (client, explain) = (&client, explain.clone());
            trials.push(Trial::new(format!("{title}, {way}"), move || {
                let mut client = client.borrow_mut();
                client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {way}")).unwrap();
                let before = cpu_micros(session);
                for _ in 0..count {
                    client.simple_query(&explain).unwrap();
                }
                vec![("µs", (cpu_micros(session) - before) / f64::from(count))]
            }));
        }
    }
    let rows = interleave(plan.short_rounds, trials);
    drop.iter().for_each(|statement| client.borrow_mut().batch_execute(statement).unwrap());
    let mut about =
        "EXPLAIN of a query by time, with `plan_by_time` on and off: processor time of the session, parsing and the \
                     printing of the plan included.\n"
            .to_owned();
    for Case { title, query } in &cases {
        let start: String = query.chars().take(150).collect();
        let more = if start.len() < query.len() { " …" } else { "" };
        let _ = write!(about, "\n* {title}: `{start}{more}`");
    }
    let mut group = Group::new("Growth of planning", about, rows);
    for Case { title, .. } in &cases {
        group.compare(&format!("{title}, on"), &format!("{title}, off"), "µs", GOAL);
    }
    group
}

/// Statements that create what is queried and that drop it, and what is planned.
fn cases(plan: &Plan) -> (Vec<String>, Vec<String>, Vec<Case>) {
    let (sizes, joined, members): (&[u32], u32, u32) =
        if plan.quick { (&[50, 100], 50, 40) } else { (&[500, 1000, 2000, 4000], 1000, 400) };
    let case = |title: String, query: String| Case { title, query };
    let mut create = vec![
        "CREATE TABLE one (id bigint PRIMARY KEY, n integer)".to_owned(),
        "INSERT INTO one SELECT snowflake_min_id('2026-01-01'::timestamptz + n * interval '1 minute'), n FROM generate_series(1, 10000) n"
            .to_owned(),
        "ANALYZE one".to_owned(),
    ];
    let mut drop = vec!["DROP TABLE one".to_owned()];
    let mut cases = vec![case(
        "one range".to_owned(),
        format!("SELECT n FROM one WHERE {TIME} >= '2026-01-02' AND {TIME} < '2026-01-03'"),
    )];
    let divided = |name: &str, count: u32| -> [String; 2] {
        [
            format!("CREATE TABLE {name} (id bigint PRIMARY KEY, n integer) PARTITION BY RANGE (id)"),
            format!(
                "DO $$ BEGIN FOR i IN 0..{} LOOP EXECUTE format('CREATE TABLE {name}_%s PARTITION OF {name} FOR VALUES FROM (%s) TO \
                 (%s)', i, snowflake_min_id('2025-01-01'::timestamptz + i * interval '1 day'), \
                 snowflake_min_id('2025-01-01'::timestamptz + (i + 1) * interval '1 day')); END LOOP; END $$",
                count - 1
            ),
        ]
    };
    for count in sizes {
        let name = format!("divided_{count}");
        create.extend(divided(&name, *count));
        drop.push(format!("DROP TABLE {name}"));
        cases.push(case(
            format!("the newest of {count} partitions"),
            format!("SELECT * FROM {name} ORDER BY {TIME} DESC LIMIT 10"),
        ));
    }
    for name in ["joined_a", "joined_b"] {
        create.extend(divided(name, joined));
        drop.push(format!("DROP TABLE {name}"));
    }
    cases.push(case(
        format!("{joined} partitions joined to {joined}"),
        "SELECT count(*) FROM joined_a AS a JOIN joined_b AS b ON snowflake_timestamp(a.id) = snowflake_timestamp(b.id)".to_owned(),
    ));
    create.push(format!(
        "DO $$ BEGIN FOR i IN 1..{members} LOOP EXECUTE format('CREATE TABLE member_%s (id bigint PRIMARY KEY)', i); END LOOP; END $$"
    ));
    drop.extend((1..=members).map(|number| format!("DROP TABLE member_{number}")));
    let of = |number: u32| {
        let layout = if number == 3 { ", 'sonyflake'" } else { "" };
        format!("SELECT id, snowflake_timestamp(id{layout}) AS t FROM member_{number}")
    };
    let all: Vec<String> = (1..=members).map(of).collect();
    cases.push(case(
        format!("{members} members, one of another layout"),
        format!("SELECT * FROM ({}) AS u WHERE t >= '2026-01-02' AND t < '2026-01-03'", all.join(" UNION ALL ")),
    ));
    let all: Vec<String> =
        (0..600).map(|n| format!("{TIME} >= timestamptz '2026-01-01' + {n} * interval '1 s'")).collect();
    cases.push(case("600 conditions".to_owned(), format!("SELECT n FROM one WHERE {}", all.join(" AND "))));
    let all: Vec<String> = (1..6)
        .map(|n| format!(" JOIN one AS r{n} ON snowflake_timestamp(r{n}.id) = snowflake_timestamp(r{}.id)", n - 1))
        .collect();
    cases.push(case("a join of 6 tables".to_owned(), format!("SELECT count(*) FROM one AS r0{}", all.concat())));
    (create, drop, cases)
}
