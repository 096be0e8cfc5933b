//! What planning takes of what analysts write, as PostgreSQL itself says: with the parameter on and off, and of a column. The table has an index of
//! each kind for both, so that all three choose among the same.

use super::planning::WAYS;
use super::planning_growth::{COLUMN, Case};
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::Servers;
use postgres::Client;
use std::cell::RefCell;
use std::fmt::Write as _;

/// A title, and a query. ‹t› is the time, ‹times 10› a list of ten times.
const FORMS: [(&str, &str); 8] = [
    (
        "a range of an hour",
        "SELECT * FROM asked WHERE ‹t› >= now() - interval '3 hours' AND ‹t› < now() - interval '2 hours'",
    ),
    ("the latest ten of a tenant", "SELECT * FROM asked WHERE tenant = 5 ORDER BY ‹t› DESC LIMIT 10"),
    (
        "rows by hour, since a day",
        "SELECT date_trunc('hour', ‹t›), count(*) FROM asked WHERE ‹t› > now() - interval '1 day' GROUP BY 1",
    ),
    (
        "the first of each day, LATERAL",
        "SELECT f.* FROM generate_series('2026-01-01'::timestamptz, '2026-01-07', '1 day') AS d, \
         LATERAL (SELECT * FROM asked WHERE ‹t› >= d ORDER BY ‹t› LIMIT 1) AS f",
    ),
    (
        "hours with their rows, left joined",
        "SELECT h, count(n) FROM generate_series('2026-01-01'::timestamptz, '2026-01-02', '1 hour') AS h \
         LEFT JOIN asked ON ‹t› >= h AND ‹t› < h + interval '1 hour' GROUP BY 1",
    ),
    ("IN with 100 times", "SELECT n FROM asked WHERE ‹t› IN (‹times 100›)"),
    ("IN with 10,000 times", "SELECT n FROM asked WHERE ‹t› IN (‹times 10000›)"),
    ("an OR of 300 times", "SELECT n FROM asked WHERE ‹t› = ‹any 300›"),
];

/// The shortest of so many.
const REPEATED: u32 = 100;

/// Returns how long the planner takes, in µs: the shortest of so many times.
const PLANNING_TIME: &str =
    "CREATE FUNCTION planning_time(query text, count integer) RETURNS float8 LANGUAGE plpgsql AS $$
    DECLARE plan json; least float8 = 'infinity';
    BEGIN
        FOR i IN 1..count LOOP
            EXECUTE 'EXPLAIN (SUMMARY, FORMAT JSON) ' || query INTO plan;
            least = least(least, (plan->0->>'Planning Time')::float8);
        END LOOP;
        RETURN 1000 * least;
    END $$";

/// Creates what is asked.
pub fn create(client: &mut Client, plan: &Plan) {
    let create = format!(
        "CREATE TABLE asked (id bigint PRIMARY KEY, tenant integer, created_at timestamptz, n integer);
         INSERT INTO asked SELECT snowflake_min_id(at), n % 100, at, n
             FROM (SELECT n, date_trunc('second', now()) - n * interval '1 minute' AS at FROM generate_series(1, {}) n) x;
         CREATE INDEX ON asked (tenant, id); CREATE INDEX ON asked (created_at); CREATE INDEX ON asked (tenant, created_at)",
        plan.decoded / 20,
    );
    client.batch_execute(&create).unwrap();
    client.batch_execute("VACUUM ANALYZE asked").unwrap();
}

/// Each form.
pub fn forms(servers: &Servers, plan: &Plan) -> Group {
    let client = RefCell::new(servers.default.client());
    create(&mut client.borrow_mut(), plan);
    client.borrow_mut().batch_execute(PLANNING_TIME).unwrap();
    let mut trials = Vec::new();
    for case in cases() {
        for (contender, query, way) in case.contenders() {
            let (client, query) = (&client, query.to_owned());
            let count = if query.len() > 100_000 { REPEATED / 20 } else { REPEATED } as i32;
            trials.push(Trial::new(format!("{}, {contender}", case.title), move || {
                let mut client = client.borrow_mut();
                client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {way}")).unwrap();
                let least: f64 = client.query_one("SELECT planning_time($1, $2)", &[&query, &count]).unwrap().get(0);
                vec![("µs", least)]
            }));
        }
    }
    let rows = interleave(plan.short_rounds, trials);
    client.borrow_mut().batch_execute("DROP TABLE asked; DROP FUNCTION planning_time").unwrap();
    let mut about = format!(
        "`Planning Time` of EXPLAIN, the shortest of {REPEATED} (of {} for the longest query), with `plan_by_time` on and off, and of a column. \
         The table has the indexes `(id)`, `(tenant, id)`, `(created_at)` and `(tenant, created_at)`, which all three choose among.\n",
        REPEATED / 20,
    );
    for (title, form) in FORMS {
        let _ =
            write!(about, "\n* {title}: `{}`", form.replace("‹t›", "snowflake_timestamp(id)").replace(['‹', '›'], "…"));
    }
    let mut group = Group::new("Planning of what analysts ask", about, rows);
    for (title, form) in FORMS {
        let of = |contender| format!("{title}, {contender}");
        if is_list(form) {
            group.compare(&of(WAYS[0]), &of(COLUMN), "µs", Goal::AtMost(2.0));
        } else {
            let figure = |contender| group.row(&of(contender)).unwrap().figure("µs").clone();
            let more = figure(WAYS[0]).less(&figure(WAYS[1])).median;
            group.state(format!("{title}: more µs with it on"), more, Goal::AtMost(10.0));
        }
    }
    group
}

/// All of them.
pub fn cases() -> impl Iterator<Item = Case> {
    FORMS.into_iter().map(|(title, form)| Case::new(title, |time| query(form, &time(""))))
}

/// How many times as many instructions as for a column planning may take, by the title of a form; `None` for any other title.
pub fn goal(title: &str) -> Option<Goal> {
    let (_, form) = FORMS.iter().find(|(known, _)| *known == title)?;
    Some(Goal::AtMost(if is_list(form) { 2.0 } else { 1.5 }))
}

fn is_list(form: &str) -> bool {
    form.contains("‹times") || form.contains("‹any")
}

/// The query of a form.
fn query(form: &str, time: &str) -> String {
    let list = |count: u32, between: &str| {
        let literal = |n| format!("'2026-01-{:02} {:02}:{:02}+00'", 1 + n / 1440, n / 60 % 24, n % 60);
        (1..=count).map(literal).collect::<Vec<_>>().join(between)
    };
    form.replace("‹times 100›", &list(100, ", "))
        .replace("‹times 10000›", &list(10_000, ", "))
        .replace("‹any 300›", &list(300, &format!(" OR {time} = ")))
        .replace("‹t›", time)
}
