//! The analyst's ten: queries by time, on a table whose only index is that of its snowflake key, compared with the same
//! rows with a `created_at` column and its index.

use crate::contenders::OURS;
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, time};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::time::Duration;

/// The names of the two contenders.
const KEY: &str = "snowflake key";
const COLUMN: &str = "created_at and its index";

/// The tables of the two, and what is queried: for a table with a snowflake key, a view that decodes it.
const CONTENDERS: [(&str, &str); 2] = [(KEY, "keyed_events"), (COLUMN, "timed_events")];

/// A title, and the query. `{events}` is the view or table. `{day}` is a day, which begins a month of 30 days.
const QUERIES: [(&str, &str); 10] = [
    ("the last hour", "SELECT count(*), sum(amount) FROM {events} WHERE created_at >= now() - interval '1 hour'"),
    (
        "count of a day",
        "SELECT count(*) FROM {events} \
         WHERE created_at >= '{day}' AND created_at < timestamptz '{day}' + interval '1 day'",
    ),
    (
        "count per day of a month",
        "SELECT date_trunc('day', created_at) AS day, count(*) FROM {events} \
         WHERE created_at >= '{day}' AND created_at < timestamptz '{day}' + interval '30 days' GROUP BY day ORDER BY day",
    ),
    ("the newest 10 rows", "SELECT * FROM {events} ORDER BY created_at DESC LIMIT 10"),
    ("the oldest and the newest", "SELECT min(created_at), max(created_at) FROM {events}"),
    (
        "a join with ranges of time",
        "SELECT incident, count(*), sum(amount) FROM incidents JOIN {events} ON created_at BETWEEN since AND until \
         GROUP BY incident ORDER BY incident",
    ),
    (
        "the latest of each customer in a week",
        "SELECT DISTINCT ON (customer) customer, created_at, amount FROM {events} \
         WHERE created_at >= '{day}' AND created_at < timestamptz '{day}' + interval '7 days' \
         ORDER BY customer, created_at DESC",
    ),
    (
        "per hour and worker of a day",
        "SELECT date_bin('1 hour', created_at, '{day}') AS hour, worker, count(*) FROM {events} \
         WHERE created_at >= '{day}' AND created_at < timestamptz '{day}' + interval '1 day' \
         GROUP BY hour, worker ORDER BY hour, worker",
    ),
    (
        "the days of a month that have rows",
        "SELECT DISTINCT created_at::date AS day FROM {events} \
         WHERE created_at >= '{day}' AND created_at < timestamptz '{day}' + interval '30 days' ORDER BY day",
    ),
    (
        "a percentile of a day",
        "SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY amount) FROM {events} \
         WHERE created_at BETWEEN '{day}' AND timestamptz '{day}' + interval '1 day'",
    ),
];

/// For how long a query that takes less is repeated, so that the round trip and the clock do not count.
const AT_LEAST: Duration = Duration::from_millis(30);

/// How many days the rows cover. The last of them is made while the tables are filled.
const DAYS: u32 = 90;

/// The ten queries.
pub fn queries(servers: &Servers, plan: &Plan) -> Group {
    let rows = plan.analysed;
    let client = RefCell::new(servers.default.client());
    fill(&mut client.borrow_mut(), rows);
    let day: String = client.borrow_mut().query_one("SELECT (current_date - 60)::text", &[]).unwrap().get(0);
    let mut trials = Vec::new();
    for (title, query) in QUERIES {
        let query = query.replace("{day}", &day);
        let of = |events: &str| query.replace("{events}", events);
        let repeats = repeats(&mut client.borrow_mut(), &of(CONTENDERS[1].1));
        for (contender, events) in CONTENDERS {
            let (client, query) = (&client, of(events));
            trials.push(Trial::new(named(title, contender), move || {
                vec![("ms", mean(&mut client.borrow_mut(), &query, repeats))]
            }));
        }
    }
    let mut about = format!(
        "Milliseconds, round trip included, over {rows} rows of {DAYS} days, 1000 customers and 4 workers. With a snowflake key: \
         `(id bigint PRIMARY KEY, customer integer, amount smallint)`, through the view `events` with \
         `snowflake_timestamp(id) AS created_at` and `snowflake_worker(id)::smallint AS worker`. With `created_at` and its index: \
         `(id bigint PRIMARY KEY, created_at timestamptz, customer integer, amount smallint, worker smallint)` and a btree index \
         on `created_at`; `id` is from a sequence. The queries are the same, word by word; shorter ones are repeated for {} ms. \
         `incidents` has 20 ranges of 10 minutes.\n",
        AT_LEAST.as_millis()
    );
    for (title, query) in QUERIES {
        let query = query.replace("{events}", "events").replace("{day}", &day);
        let _ = write!(about, "\n* {title}: `{query}`");
    }
    let mut group = Group::new("The analyst's ten", about, interleave(plan.short_rounds, trials));
    for (title, _) in QUERIES {
        group.compare(&named(title, KEY), &named(title, COLUMN), "ms", Goal::AtMost(1.1));
    }
    group
}

/// A snowflake key, with `plan_by_time` off.
const OFF: &str = "snowflake key, off";

/// Conditions on what is made of the time, as people write them, which no index on a column serves. `{day}` is as in [`QUERIES`].
const FORMS: [(&str, &str); 11] = [
    ("date_trunc", "date_trunc('day', created_at) = '{day}'"),
    ("date_trunc in a zone", "date_trunc('day', created_at, 'UTC') = '{day} 00:00+00'"),
    ("a date", "created_at::date = '{day}'"),
    ("three dates", "created_at::date IN ('{day}', date '{day}' + 7, date '{day}' + 14)"),
    ("date_bin", "date_bin('1 hour', created_at, '2000-01-01') = timestamptz '{day}' + interval '5 hours'"),
    ("a range", "created_at <@ tstzrange('{day}', timestamptz '{day}' + interval '1 day')"),
    (
        "AT TIME ZONE",
        "created_at AT TIME ZONE 'UTC' >= '{day}' AND created_at AT TIME ZONE 'UTC' < timestamp '{day}' + interval '1 day'",
    ),
    ("an interval added", "created_at + interval '1 hour' > now()"),
    ("an age", "now() - created_at < interval '1 hour'"),
    ("extract", "extract(epoch FROM created_at) > extract(epoch FROM now() - interval '1 hour')"),
    ("IS TRUE", "(created_at > now() - interval '1 hour') IS TRUE"),
];

/// Lists of times, which an index on a column serves by one scan.
const LISTS: [(&str, &str); 2] = [
    ("100 times", "created_at = ANY ((SELECT array_agg(created_at) FROM wanted WHERE n <= 100)::timestamptz[])"),
    ("10,000 times", "created_at = ANY ((SELECT array_agg(created_at) FROM wanted)::timestamptz[])"),
];

/// The same tables, by conditions on what is made of the time, and by lists.
pub fn forms(servers: &Servers, plan: &Plan) -> Group {
    let [on, off] = ["on", "off"].map(|value| {
        let mut client = servers.default.client();
        client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {value}")).unwrap();
        RefCell::new(client)
    });
    let day: String = on.borrow_mut().query_one("SELECT (current_date - 60)::text", &[]).unwrap().get(0);
    let contenders = [(KEY, CONTENDERS[0].1, &on), (OFF, CONTENDERS[0].1, &off), (COLUMN, CONTENDERS[1].1, &on)];
    let mut trials = Vec::new();
    for (title, condition) in FORMS.into_iter().chain(LISTS) {
        // Without an index, thousands of times are compared with each of millions of rows, for minutes.
        let is_list = LISTS.iter().any(|(list, _)| *list == title);
        for (contender, events, client) in
            contenders.into_iter().filter(|(contender, ..)| !(is_list && *contender == OFF))
        {
            let query = format!("SELECT count(*) FROM {events} WHERE {}", condition.replace("{day}", &day));
            let repeats = repeats(&mut client.borrow_mut(), &query);
            trials.push(Trial::new(named(title, contender), move || {
                vec![("ms", mean(&mut client.borrow_mut(), &query, repeats))]
            }));
        }
    }
    let mut about = "Milliseconds, round trip included, to count the rows of the same tables by a condition on what is made of the time. With \
                     `pg_snowflake.plan_by_time` off, and with a column, each row is looked at; so lists of times, which are in the table `wanted`, \
                     are not tried with it off. An index on a column serves them.\n"
        .to_owned();
    for (title, condition) in FORMS.into_iter().chain(LISTS) {
        let _ = write!(about, "\n* {title}: `{}`", condition.replace("{day}", &day));
    }
    let mut group = Group::new("Days as people write them", about, interleave(plan.short_rounds, trials));
    for (title, _) in FORMS {
        group.compare(&named(title, KEY), &named(title, COLUMN), "ms", Goal::AtMost(1.1));
        group.compare(&named(title, KEY), &named(title, OFF), "ms", Goal::AtMost(1.1));
    }
    for (title, _) in LISTS {
        group.compare(&named(title, KEY), &named(title, COLUMN), "ms", Goal::AtMost(1.2));
    }
    group
}

fn named(title: &str, contender: &str) -> String {
    format!("{title}: {contender}")
}

/// The same rows in both tables, in the order in which they were made.
fn fill(client: &mut postgres::Client, rows: u32) {
    let fill = format!(
        "CREATE TABLE made AS
         SELECT i, date_trunc('milliseconds', now() - interval '{DAYS} days' * (1 - i / {rows}.0)) AS at,
                abs(hashint4(i) % 1000) AS customer, (abs(hashint4(-i) % 500) + 1)::smallint AS amount,
                (abs(hashint4(i)) % 4)::smallint AS worker
         FROM generate_series(1, {rows}) AS i;
         CREATE TABLE keyed (id bigint, customer integer, amount smallint);
         INSERT INTO keyed SELECT snowflake_encode(at, worker, i % 4096), customer, amount FROM made ORDER BY i;
         CREATE VIEW keyed_events AS
         SELECT id, snowflake_timestamp(id) AS created_at, customer, amount, snowflake_worker(id)::smallint AS worker FROM keyed;
         CREATE TABLE timed_events (id bigint, created_at timestamptz, customer integer, amount smallint, worker smallint);
         INSERT INTO timed_events SELECT i, at, customer, amount, worker FROM made ORDER BY i;
         DROP TABLE made;
         ALTER TABLE keyed ADD PRIMARY KEY (id);
         ALTER TABLE timed_events ADD PRIMARY KEY (id);
         CREATE INDEX ON timed_events (created_at);
         CREATE TABLE wanted AS
         SELECT created_at, row_number() OVER () AS n FROM (SELECT created_at FROM timed_events ORDER BY hashint8(id) LIMIT 10000) AS few;
         CREATE TABLE incidents AS
         SELECT incident, since, since + interval '10 minutes' AS until
         FROM generate_series(1, 20) AS incident, LATERAL (SELECT now() - incident * interval '100 hours' AS since) AS times"
    );
    client.batch_execute(&fill).unwrap();
    for table in ["keyed", "timed_events", "wanted", "incidents"] {
        client.batch_execute(&format!("VACUUM (FREEZE, ANALYZE) {table}")).unwrap();
    }
}

/// How often a query runs in [`AT_LEAST`].
fn repeats(client: &mut postgres::Client, query: &str) -> u32 {
    time(client, query);
    let once = time(client, query);
    (AT_LEAST.as_secs_f64() / once.as_secs_f64()).ceil().clamp(1.0, 100.0) as u32
}

/// How many milliseconds a query takes on average, after a run that does not count: PostgreSQL's buffers do not hold both tables, so another
/// contender may have pushed out the pages that the query reads.
fn mean(client: &mut postgres::Client, query: &str, repeats: u32) -> f64 {
    time(client, query);
    let all: Duration = (0..repeats).map(|_| time(client, query)).sum();
    all.as_secs_f64() * 1000.0 / f64::from(repeats)
}

/// What the column and its index cost: room, and time when rows are inserted. The tables are those of [`queries`].
pub fn costs(servers: &Servers, plan: &Plan) -> Group {
    let count = plan.inserted;
    let size = |table: &str| -> f64 {
        let query = format!("SELECT pg_total_relation_size('{table}')::float8 / 1048576");
        servers.default.client().query_one(&query, &[]).unwrap().get(0)
    };
    let trial = |name: &'static str, filled: &str, columns: &'static str, index: &'static str| {
        let size = size(filled);
        Trial::new(name, move || {
            let mut client = servers.default.client();
            let create =
                format!("DROP TABLE IF EXISTS new_events; CREATE TABLE new_events ({columns}); {index}; CHECKPOINT");
            client.batch_execute(&create).unwrap();
            let insert = format!("INSERT INTO new_events (n) SELECT n FROM generate_series(1, {count}) AS n");
            let seconds = time(&mut client, &insert).as_secs_f64();
            vec![("rows/s", f64::from(count) / seconds), ("MiB", size)]
        })
    };
    let trials = vec![
        trial(KEY, "keyed", "id bigint PRIMARY KEY DEFAULT snowflake_next(), n integer", ""),
        trial(
            COLUMN,
            "timed_events",
            "id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(), n integer",
            "CREATE INDEX ON new_events (created_at)",
        ),
    ];
    let about = format!(
        "Rows a second of `INSERT ... SELECT` of {count} rows with one integer into an empty table, and the size of the tables \
         of the analyst's ten with their indexes, which is the same as with one integer, as rows are aligned to 8 bytes. The \
         keys are by default {OURS} and from a sequence, and `created_at` is `now()`, the same for all rows of a statement, \
         which is the fastest that there is for its index."
    );
    let mut group =
        Group::new("What created_at and its index cost", about, interleave(plan.long_rounds.max(3), trials));
    group.compare(KEY, COLUMN, "rows/s", Goal::AtLeast(1.15));
    group.compare(KEY, COLUMN, "MiB", Goal::AtMost(0.72));
    let drop = "DROP VIEW keyed_events; DROP TABLE keyed, timed_events, wanted, incidents, new_events";
    servers.default.client().batch_execute(drop).unwrap();
    group
}
