//! How many rows the planner expects: of conditions on the times of IDs, and of groups by them. At least as near to the truth as
//! with an analysed column for the time.

use postgres::Client;
use snowflake_test::{Cluster, value};

/// How far an estimate may be from the truth where that of a column is nearer, as a factor.
const NEAR: f64 = 1.5;

/// Rows that are as good as none. PostgreSQL expects at least a hundredth of a part of the histogram, unless an index on the column tells it
/// where that ends.
const FEW: f64 = 5.0;

/// A session that can ask how many rows a query is expected to return.
fn client(cluster: &Cluster) -> Client {
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE FUNCTION plan(query text) RETURNS text LANGUAGE plpgsql AS $$
                 DECLARE found json;
                 BEGIN
                     EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO found;
                     RETURN found->0->'Plan'->>'Plan Rows';
                 END $$",
        )
        .unwrap();
    client
}

fn rows(client: &mut Client, query: &str) -> f64 {
    let plan: String = value(client, &format!("SELECT plan('{}')", query.replace('\'', "''")));
    plan.parse().unwrap()
}

/// How far an estimate is from the truth, as a factor.
fn error(estimate: f64, truth: f64) -> f64 {
    let (estimate, truth) = (estimate.max(FEW), truth.max(FEW));
    (estimate / truth).max(truth / estimate)
}

#[test]
fn they_are_as_near_as_those_of_a_column() {
    let cluster = Cluster::options().set("timezone = 'UTC'").start();
    let mut client = client(&cluster);
    client
        .batch_execute(
            "SELECT setseed(0.5);
             CREATE TABLE ids (id bigint PRIMARY KEY, n integer NOT NULL);
             -- A year, more and more a day, by four workers.
             INSERT INTO ids
             SELECT snowflake_encode('2026-01-01'::timestamptz + sqrt(i) * interval '96 minutes', floor(random() * 4)::integer, 0), i
             FROM generate_series(1, 30000000, 1000) i;
             CREATE VIEW ours AS
             SELECT *, snowflake_timestamp(id) AS created_at, snowflake_worker(id) AS worker FROM ids;
             CREATE TABLE columns AS SELECT * FROM ours;
             ALTER TABLE columns ADD PRIMARY KEY (id);
             CREATE INDEX ON columns (created_at);
             ANALYZE ids, columns",
        )
        .unwrap();
    let mut nearer = 0;
    for query in [
        "SELECT * FROM rows WHERE created_at >= '2026-06-01'",
        "SELECT * FROM rows WHERE created_at >= '2026-06-01' AND created_at < '2026-06-02'",
        "SELECT * FROM rows WHERE created_at BETWEEN '2026-11-30' AND '2026-12-01 12:00'",
        "SELECT * FROM rows WHERE created_at < '2026-01-15'::date OR created_at > '2026-12-20'::timestamp",
        "SELECT * FROM rows WHERE created_at < '1970-01-01'",
        "SELECT * FROM rows WHERE created_at > '3000-01-01'",
        "SELECT * FROM rows WHERE created_at < 'infinity'",
        "SELECT * FROM rows WHERE created_at = '2026-06-01'",
        "SELECT * FROM rows WHERE NOT created_at < '2026-12-24' AND n % 2 = 0",
        "SELECT worker FROM rows GROUP BY 1",
        "SELECT DISTINCT worker FROM rows WHERE created_at > '2026-06-01'",
        "SELECT created_at FROM rows GROUP BY 1",
        "SELECT DISTINCT created_at FROM rows",
        "SELECT created_at FROM rows INTERSECT SELECT created_at FROM rows",
        "SELECT FROM rows JOIN generate_series('2026-06-01'::timestamptz, '2026-06-03', '1 day') AS at \
         ON created_at >= at AND created_at < at + interval '1 day'",
        "SELECT FROM generate_series('2026-06-01'::timestamptz, '2026-06-03', '1 day') AS at, \
         LATERAL (SELECT FROM rows WHERE created_at >= at ORDER BY created_at, n LIMIT 3) AS next",
        "SELECT created_at::date FROM rows GROUP BY 1",
        "SELECT date_trunc('day', created_at) FROM rows GROUP BY 1",
        "SELECT date_trunc('month', created_at), worker FROM rows GROUP BY 1, 2",
        "SELECT date_trunc('week', created_at AT TIME ZONE 'Europe/Berlin') FROM rows GROUP BY 1",
        "SELECT date_bin('6 hours', created_at, '2026-01-01') FROM rows GROUP BY 1",
        "SELECT extract(hour FROM created_at) FROM rows GROUP BY 1",
        "SELECT date_trunc('hour', created_at) FROM rows WHERE created_at BETWEEN '2026-06-01' AND '2026-06-08' GROUP BY 1",
    ] {
        let of = |table: &str| query.replace("rows", table);
        let truth: i64 = value(&mut client, &format!("SELECT count(*) FROM ({}) AS query", of("columns")));
        let [ours, column] = ["ours", "columns"].map(|table| rows(&mut client, &of(table)));
        let [our_error, its_error] = [ours, column].map(|estimate| error(estimate, truth as f64));
        let report = format!("{ours} rows are expected, with a column {column}, and there are {truth}: {query}");
        assert!(our_error <= its_error.max(NEAR), "{report}");
        nearer += usize::from(our_error * 2.0 < its_error);
        println!("{report}");
    }
    // PostgreSQL knows nothing of the groups that a column has by hours or days.
    assert!(nearer >= 6, "only {nearer} are much nearer");
}

/// Times relative to `now()`, before and after the end of the histogram, which the planner looks up only where it needs it.
#[test]
fn up_to_now() {
    let cluster = Cluster::options().set("timezone = 'Europe/Berlin'").set("autovacuum = off").start();
    let mut client = client(&cluster);
    client
        .batch_execute(
            "CREATE TABLE ids (id bigint PRIMARY KEY, day integer NOT NULL);
             CREATE TABLE columns (id bigint PRIMARY KEY, day integer NOT NULL, created_at timestamptz NOT NULL);
             CREATE VIEW ours AS SELECT *, snowflake_timestamp(id) AS created_at FROM ids;
             -- A row in ten minutes, since 400 days. Of the last two, the statistics do not know.
             CREATE PROCEDURE add(since integer, until integer) LANGUAGE sql AS $$
                 INSERT INTO ids SELECT snowflake_min_id(now() - i * interval '10 minutes'), i / 144 FROM generate_series(until * 144, since * 144 - 1) i;
                 INSERT INTO columns SELECT *, snowflake_timestamp(id) FROM ids ON CONFLICT DO NOTHING
             $$;
             CALL add(400, 2);
             CREATE INDEX ON columns (created_at);
             ANALYZE ids, columns;
             CALL add(2, 0)",
        )
        .unwrap();
    for time in [
        "now()",
        "now() - interval '1 hour'",
        "statement_timestamp() - interval '1 day'",
        "current_timestamp - interval '3 days'",
        "now() - interval '5 days'",
        "transaction_timestamp() - interval '7 days 3 hours'",
        "now() - interval '1 month'",
        "now() - interval '1 year'",
        "now() + interval '1 day' - interval '4 days'",
        "now() + interval '1 day'",
        "date_trunc('day', now())",
    ] {
        for operator in [">", "<="] {
            let of = |table: &str| format!("SELECT FROM {table} WHERE created_at {operator} {time}");
            let truth: i64 = value(&mut client, &format!("SELECT count(*) FROM ({}) AS query", of("columns")));
            let [ours, column] = ["ours", "columns"].map(|table| rows(&mut client, &of(table)));
            let [our_error, its_error] = [ours, column].map(|estimate| error(estimate, truth as f64));
            let report =
                format!("{ours} rows are expected, with a column {column}, and there are {truth}: {operator} {time}");
            assert!(our_error <= its_error * NEAR, "{report}");
            println!("{report}");
        }
    }
}

/// NULLs are not in the histogram whose end is looked up.
#[test]
fn up_to_now_beside_nulls() {
    let cluster = Cluster::options().set("autovacuum = off").start();
    let mut client = client(&cluster);
    client
        .batch_execute(
            "CREATE TABLE ids (id bigint UNIQUE, created_at timestamptz);
             CREATE INDEX ON ids (created_at);
             CREATE PROCEDURE add(since integer, until integer) LANGUAGE sql AS $$
                 INSERT INTO ids SELECT snowflake_min_id(at), at
                 FROM (SELECT date_trunc('second', now()) - i * interval '1 minute' AS at FROM generate_series(until, since - 1) i) x
             $$;
             CALL add(20000, 2000);
             INSERT INTO ids SELECT FROM generate_series(1, 180000);
             ANALYZE ids;
             CALL add(2000, 0)",
        )
        .unwrap();
    for time in ["now()", "now() - interval '1 hour'", "now() - interval '1 day'", "now() - interval '3 days'"] {
        let of = |of: &str| format!("SELECT FROM ids WHERE {of} > {time}");
        let [ours, column] = ["snowflake_timestamp(id)", "created_at"].map(|it| rows(&mut client, &of(it)));
        assert!(error(ours, column) <= NEAR, "{ours} rows are expected, with a column {column}: > {time}");
    }
}

/// As docs/planner.md says.
#[test]
fn statistics_of_the_time_tell_how_many_rows_have_the_same() {
    let cluster = Cluster::options().set("timezone = 'UTC'").start();
    let mut client = client(&cluster);
    client
        .batch_execute(
            "CREATE TABLE orders (id bigint NOT NULL);
             CREATE TABLE parts (id bigint NOT NULL) PARTITION BY RANGE (id);
             CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (snowflake_min_id('2026-02-01'));
             CREATE TABLE parts_2 PARTITION OF parts DEFAULT;
             -- 200 an hour.
             INSERT INTO orders SELECT snowflake_min_id('2026-01-20'::timestamptz + (i / 200) * interval '1 hour') | (i % 200)
             FROM generate_series(0, 99999) AS i;
             INSERT INTO parts TABLE orders;
             CREATE TABLE days AS SELECT '2026-01-20'::timestamptz + i * interval '1 day' AS at FROM generate_series(0, 19) AS i;
             ANALYZE orders, parts, days",
        )
        .unwrap();
    let major: i32 = value(&mut client, "SELECT current_setting('server_version_num')::integer / 10000");
    for table in ["orders", "parts"] {
        let query = format!("SELECT FROM days JOIN {table} ON snowflake_timestamp(id) = at");
        assert!(rows(&mut client, &query) < 40.0, "{table}");
        client
            .batch_execute(&format!(
                "CREATE STATISTICS {table}_time ON (snowflake_timestamp(id)) FROM {table}; ANALYZE {table}"
            ))
            .unwrap();
        let expected = rows(&mut client, &query);
        let is_known = (3000.0..5000.0).contains(&expected);
        assert_eq!(
            is_known,
            table == "orders" || major >= 15,
            "{expected} rows of {table} are expected, and there are 4000"
        );
    }
}
