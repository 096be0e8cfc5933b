//! How planning of queries by time grows with partitions, members, conditions and joins: with the parameter on and off, and with a column
//! `created_at` and its index in place of the ID, as much of it is PostgreSQL's own.

use super::planning::WAYS;
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, cpu_micros, process};
use std::cell::RefCell;
use std::fmt::Write as _;

/// What is planned: a title, and the query of `snowflake_timestamp(id)` and of `created_at`.
pub struct Case {
    pub title: String,
    by_id: String,
    by_column: String,
}

impl Case {
    /// One of such a title, by the text of its query for a time.
    pub fn new(title: impl Into<String>, query: impl Fn(Time) -> String) -> Self {
        Self {
            title: title.into(),
            by_id: query(|table| format!("snowflake_timestamp({table}id)")),
            by_column: query(|table| format!("{table}created_at")),
        }
    }

    /// Each contender, its query, and `plan_by_time`.
    pub fn contenders(&self) -> [(&'static str, &str, &'static str); 3] {
        let [on, off] = WAYS;
        [(on, &self.by_id, on), (off, &self.by_id, off), (COLUMN, &self.by_column, on)]
    }
}

/// The time in a query, of a table: `a.`, or an empty text where there is one only.
pub type Time = fn(&str) -> String;

/// How many times as long planning may take.
pub const GOAL: Goal = Goal::AtMost(1.3);

/// The contender that has a column.
pub const COLUMN: &str = "created_at and its index";

/// A range, an order over many partitions, joins, a UNION ALL of many members, many conditions.
pub fn growth(servers: &Servers, plan: &Plan) -> Group {
    let client = RefCell::new(servers.default.client());
    let session = process(&mut client.borrow_mut());
    let sizes: &[u32] = if plan.quick { &[50, 100] } else { &[500, 1000, 2000, 4000] };
    let (create, drop, cases) = cases(plan, sizes);
    for statement in create {
        client.borrow_mut().batch_execute(&statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
    let mut trials = Vec::new();
    for case in &cases {
        let title = &case.title;
        for (contender, query, way) in case.contenders() {
            let explain = format!("EXPLAIN (COSTS OFF) {query}");
            // Once for the catalogue's caches; then as often as makes a few milliseconds.
            client.borrow_mut().simple_query(&explain).unwrap();
            let before = cpu_micros(session);
            client.borrow_mut().simple_query(&explain).unwrap();
            let count = (20_000.0 / (cpu_micros(session) - before).max(100.0)).ceil() as u32;
            let client = &client;
            trials.push(Trial::new(format!("{title}, {contender}"), move || {
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
        "EXPLAIN of a query by time, with `plan_by_time` on and off, and of the same query of a table with `created_at`, its \
         index and a primary key by the ID, which is partitioned by `created_at`: processor time of the session, parsing and the printing of the plan included.\n"
            .to_owned();
    for Case { title, by_id: query, .. } in &cases {
        let start: String = query.chars().take(150).collect();
        let more = if start.len() < query.len() { " …" } else { "" };
        let _ = write!(about, "\n* {title}: `{start}{more}`");
    }
    let mut group = Group::new("Growth of planning", about, rows);
    for Case { title, .. } in &cases {
        group.compare(&format!("{title}, on"), &format!("{title}, {COLUMN}"), "µs", GOAL);
    }
    let range = &cases[0].title;
    group.compare(&format!("{range}, on"), &format!("{range}, off"), "µs", GOAL);
    group
}

/// Statements that create what is queried, of which so many partitions, and that drop it, and what is planned.
pub fn cases(plan: &Plan, sizes: &[u32]) -> (Vec<String>, Vec<String>, Vec<Case>) {
    let (joined, members) = if plan.quick { (50, 40) } else { (1000, 400) };
    let mut create = vec![
        "CREATE TABLE one (id bigint PRIMARY KEY, created_at timestamptz, n integer)".to_owned(),
        "INSERT INTO one SELECT snowflake_min_id(at), at, n \
         FROM (SELECT n, '2026-01-01'::timestamptz + n * interval '1 minute' AS at FROM generate_series(1, 10000) n) x"
            .to_owned(),
        "CREATE INDEX ON one (created_at)".to_owned(),
        "ANALYZE one".to_owned(),
    ];
    let mut drop = vec!["DROP TABLE one".to_owned()];
    let mut cases = vec![Case::new("one range", |time| {
        format!("SELECT n FROM one WHERE {0} >= '2026-01-02' AND {0} < '2026-01-03'", time(""))
    })];
    // By the ID, and by the column.
    let divided = |name: &str, count: u32| -> Vec<String> {
        let mut all = Vec::new();
        // Rows are looked up by their ID, too: so both have a primary key, as the other tables here.
        for (name, key, primary, bound) in [
            (name.to_owned(), "id", "id", "quote_literal(snowflake_min_id(%))"),
            (format!("timed_{name}"), "created_at", "id, created_at", "quote_literal(%)"),
        ] {
            let bound =
                |day: &str| bound.replace('%', &format!("'2025-01-01'::timestamptz + {day} * interval '1 day'"));
            all.extend([
                format!(
                    "CREATE TABLE {name} (id bigint, created_at timestamptz, n integer, PRIMARY KEY ({primary})) \
                     PARTITION BY RANGE ({key})"
                ),
                if key == primary { String::new() } else { format!("CREATE INDEX ON {name} ({key})") },
                format!(
                    "DO $$ BEGIN FOR i IN 0..{} LOOP EXECUTE format('CREATE TABLE {name}_%s PARTITION OF {name} FOR VALUES FROM (%s) TO \
                     (%s)', i, {}, {}); END LOOP; END $$",
                    count - 1,
                    bound("i"),
                    bound("(i + 1)"),
                ),
            ]);
        }
        all
    };
    let drop_divided = |name: &str| [format!("DROP TABLE {name}"), format!("DROP TABLE timed_{name}")];
    // The table of the two that a time is a key of.
    let of = |time: Time, name: &str| if time("") == "created_at" { format!("timed_{name}") } else { name.to_owned() };
    for count in sizes {
        let name = format!("divided_{count}");
        create.extend(divided(&name, *count));
        drop.extend(drop_divided(&name));
        cases.push(Case::new(format!("the newest of {count} partitions"), |time| {
            format!("SELECT * FROM {} ORDER BY {} DESC LIMIT 10", of(time, &name), time(""))
        }));
    }
    for name in ["joined_a", "joined_b"] {
        create.extend(divided(name, joined));
        drop.extend(drop_divided(name));
    }
    cases.push(Case::new(format!("{joined} partitions joined to {joined}"), |time| {
        let (a, b) = (of(time, "joined_a"), of(time, "joined_b"));
        format!("SELECT count(*) FROM {a} AS a JOIN {b} AS b ON {} = {}", time("a."), time("b."))
    }));
    create.push(format!(
        "DO $$ BEGIN FOR i IN 1..{members} LOOP \
         EXECUTE format('CREATE TABLE member_%s (id bigint PRIMARY KEY, created_at timestamptz)', i); \
         EXECUTE format('CREATE INDEX ON member_%s (created_at)', i); END LOOP; END $$"
    ));
    drop.extend((1..=members).map(|number| format!("DROP TABLE member_{number}")));
    cases.push(Case::new(format!("{members} members, one of another layout"), |time| {
        let member = |number: u32| {
            let time = if number == 3 { time("").replace("(id)", "(id, 'sonyflake')") } else { time("") };
            format!("SELECT id, {time} AS t FROM member_{number}")
        };
        let all: Vec<String> = (1..=members).map(member).collect();
        format!("SELECT * FROM ({}) AS u WHERE t >= '2026-01-02' AND t < '2026-01-03'", all.join(" UNION ALL "))
    }));
    cases.push(Case::new("600 conditions", |time| {
        let condition = |n| format!("{} >= timestamptz '2026-01-01' + {n} * interval '1 s'", time(""));
        let all: Vec<String> = (0..600).map(condition).collect();
        format!("SELECT n FROM one WHERE {}", all.join(" AND "))
    }));
    cases.push(Case::new("a join of 6 tables", |time| {
        let join = |n| format!(" JOIN one AS r{n} ON {} = {}", time(&format!("r{n}.")), time(&format!("r{}.", n - 1)));
        let all: Vec<String> = (1..6).map(join).collect();
        format!("SELECT count(*) FROM one AS r0{}", all.concat())
    }));
    (create, drop, cases)
}
