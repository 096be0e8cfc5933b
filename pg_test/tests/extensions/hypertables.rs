//! TimescaleDB: a hypertable whose chunks are ranges of snowflake IDs. What docs/reference/timescaledb.md says of it.

use super::queries::{ROWS, create_plain, return_the_same};
use super::{assert_plan, beside_with, execute, plan, rows, same_rows};
use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, value};

/// Runs a test on a server with TimescaleDB, in both orders.
pub fn with_hypertables(test: impl Fn(&Cluster)) {
    beside_with("timescaledb", "timescaledb", |options| options.set("timescaledb.telemetry_level = off"), test);
}

/// The statements that docs/reference/timescaledb.md has: the first of its lines that are indented.
fn documented() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/timescaledb.md");
    let page = std::fs::read_to_string(page).unwrap();
    let indented =
        page.lines().skip_while(|line| !line.starts_with("    ")).take_while(|line| line.starts_with("    "));
    indented.collect::<Vec<_>>().join("\n")
}

/// A hypertable with a chunk a day, of 14 days.
pub fn create(client: &mut Client) {
    create_plain(client);
    execute(client, &documented());
    execute(client, &format!("INSERT INTO metrics {ROWS}; VACUUM ANALYZE"));
}

/// The days of the chunks that a query may read, as its plan has them.
fn days(client: &mut Client, query: &str) -> Vec<i64> {
    let chunks = client
        .query(
            "SELECT chunk_name::text, extract(day FROM snowflake_timestamp(range_start_integer))::bigint \
             FROM timescaledb_information.chunks WHERE hypertable_name = 'metrics' ORDER BY range_start_integer",
            &[],
        )
        .unwrap();
    let plan = plan(client, query);
    let words: Vec<&str> = plan.split_whitespace().collect();
    chunks.iter().filter(|chunk| words.contains(&chunk.get::<_, &str>(0))).map(|chunk| chunk.get(1)).collect()
}

#[test]
fn a_hypertable_returns_the_same_rows() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        return_the_same(&mut client, "metrics");
    });
}

/// Hashed by a second column, too, and without a key.
#[test]
fn one_of_two_dimensions_returns_the_same_rows() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        execute(
            &mut client,
            "CREATE TABLE spread (id bigint NOT NULL, device integer, value double precision);
             SELECT create_hypertable('spread', 'id', 'device', 2, chunk_time_interval => snowflake_min_id('2026-01-03') - snowflake_min_id('2026-01-01'));
             INSERT INTO spread SELECT * FROM metrics;
             ANALYZE spread",
        );
        return_the_same(&mut client, "spread");
    });
}

#[test]
fn chunks_are_excluded_by_the_time() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        execute(
            &mut client,
            "CREATE VIEW metrics_by_time AS SELECT snowflake_timestamp(id) AS created_at, * FROM metrics",
        );
        let constants = [
            ("created_at >= '2026-01-05+00' AND created_at < '2026-01-06 06:00+00'", vec![5, 6]),
            ("created_at BETWEEN '2026-01-05 01:00+00' AND '2026-01-05 02:00+00'", vec![5]),
            ("created_at = '2026-01-07 00:05+00'", vec![7]),
            ("created_at < '2026-01-03+00'", vec![1, 2]),
            ("created_at > '2026-01-13 23:00+00' AND device = 3", vec![13, 14]),
        ];
        for (condition, expected) in constants {
            let query = format!("SELECT count(*), min(id) FROM metrics_by_time WHERE {condition}");
            assert_eq!(days(&mut client, &query), expected, "{query}");
            same_rows(&mut client, &query);
        }
        let several =
            "SELECT count(*) FROM metrics_by_time WHERE created_at IN ('2026-01-07 00:05+00', '2026-01-09 00:05+00')";
        assert_eq!(days(&mut client, several), [7, 9]);
        assert_eq!(same_rows(&mut client, several), ["2"]);
        // Without the hooks, none.
        execute(&mut client, "SET pg_snowflake.plan_by_time = off");
        assert_eq!(
            days(&mut client, "SELECT count(*) FROM metrics_by_time WHERE created_at = '2026-01-07 00:05+00'").len(),
            14
        );
    });
}

/// Conditions on different times that are the same one on the ID.
const SAME: [&str; 4] = [
    "snowflake_timestamp(id) < '2026-01-05 00:07+00' AND snowflake_timestamp(id) <= '2026-01-05 00:06:59.999+00'",
    "snowflake_timestamp(id) >= '2026-01-05 00:07+00' AND snowflake_timestamp(id) > '2026-01-05 00:06:59.999+00'",
    "snowflake_timestamp(id) = '2026-01-05 00:05+00' AND snowflake_timestamp(id) IN ('2026-01-05 00:05+00', '2026-01-07 00:05+00')",
    "(snowflake_timestamp(id) < '2026-01-05 00:07+00' OR device = 3) AND (snowflake_timestamp(id) <= '2026-01-05 00:06:59.999+00' OR device = 3)",
];

/// TimescaleDB's hooks are installed by a session's first query, after those of all libraries that are preloaded; ours may be by a later one.
#[test]
fn one_may_be_read_before_the_hooks_are_there() {
    let cluster = Cluster::options()
        .set("autovacuum = off")
        .set("timescaledb.telemetry_level = off")
        .set("shared_preload_libraries = 'timescaledb'")
        .start();
    execute(&mut cluster.client(), "CREATE EXTENSION timescaledb");
    create(&mut cluster.client());
    let mut client = cluster.client();
    assert_eq!(rows(&mut client, "SELECT count(*) FROM metrics"), ["4032"]);
    execute(&mut client, "LOAD 'pg_snowflake'");
    for condition in SAME {
        for other in ["", "AND value > 100", "AND id > 0"] {
            let query = |table: &str| format!("SELECT count(*), sum(value) FROM {table} WHERE {condition} {other}");
            assert_eq!(rows(&mut client, &query("metrics")), rows(&mut client, &query("plain")), "{condition} {other}");
        }
    }
    let query =
        "SELECT count(*) FROM metrics WHERE snowflake_timestamp(id) BETWEEN '2026-01-05+00' AND '2026-01-06 01:00+00'";
    assert_eq!(days(&mut client, query), [5, 6]);
    let query = "SELECT count(*) FROM metrics WHERE snowflake_timestamp(id) < timestamp '2026-01-02 12:00'";
    assert!(
        rows(&mut client, &format!("EXPLAIN (ANALYZE) {query}"))
            .join("\n")
            .contains("Chunks excluded during startup: 12"),
        "{}",
        plan(&mut client, query)
    );
    return_the_same(&mut client, "metrics");
}

/// What is known only when the query starts, or runs: ChunkAppend excludes chunks then.
#[test]
fn chunks_are_excluded_when_the_query_runs() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        // A chunk of today.
        execute(&mut client, "INSERT INTO metrics (device, value) VALUES (1, 0)");
        let explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)";
        execute(
            &mut client,
            "SET plan_cache_mode = force_generic_plan;
             PREPARE bounds(timestamptz, timestamptz) AS SELECT count(*) FROM metrics
             WHERE snowflake_timestamp(id) >= $1 AND snowflake_timestamp(id) < $2;
             PREPARE several(timestamptz, timestamptz) AS SELECT count(*) FROM metrics WHERE snowflake_timestamp(id) IN ($1, $2)",
        );
        for (query, text) in [
            ("EXECUTE several('2026-01-07 00:05+00', '2026-01-09 00:05+00')", "Chunks excluded during startup: 13"),
            ("EXECUTE bounds('2026-01-05+00', '2026-01-06+00')", "Chunks excluded during startup: 14"),
            (
                "SELECT count(*) FROM metrics WHERE snowflake_timestamp(id) >= timestamp '2026-01-14 12:00'",
                "Chunks excluded during startup: 13",
            ),
            (
                "SELECT count(*) FROM metrics WHERE snowflake_timestamp(id) < date '2026-01-03'",
                "Chunks excluded during startup: 13",
            ),
            (
                "SELECT count(*) FROM metrics WHERE snowflake_timestamp(id) > now() - interval '1 day'",
                "Chunks excluded during startup: 14",
            ),
            (
                "SELECT count(*) FROM metrics WHERE snowflake_timestamp(id) >= (SELECT timestamptz '2026-01-14+00')",
                "Chunks excluded during runtime: 13",
            ),
            (
                "SELECT * FROM (VALUES (timestamptz '2026-01-05+00'), ('2026-01-05 01:00+00')) v (since), \
                 LATERAL (SELECT * FROM metrics WHERE snowflake_timestamp(id) >= since ORDER BY id LIMIT 1) x",
                "Chunks excluded during runtime: 4",
            ),
        ] {
            let plan = rows(&mut client, &format!("{explain} {query}")).join("\n");
            assert!(plan.contains(text), "{query}: lacks `{text}`:\n{plan}");
            same_rows(&mut client, query);
        }
    });
}

/// By the ID, chunk by chunk, by one of its scans or another; by the time, merged, which reads a row of each chunk.
#[test]
fn the_order_is_that_of_the_index() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        for (query, texts) in [
            (
                "SELECT * FROM metrics ORDER BY id DESC LIMIT 3",
                &["ChunkAppend", "Order: ", "id DESC", "!Sort", "!Seq Scan"][..],
            ),
            (
                "SELECT * FROM metrics WHERE snowflake_timestamp(id) < '2026-01-09+00' ORDER BY id DESC LIMIT 3",
                &["ChunkAppend", "Order: ", "id DESC", "!Sort", "!Seq Scan"],
            ),
            (
                "SELECT * FROM metrics ORDER BY snowflake_timestamp(id) DESC LIMIT 3",
                &["Index Scan Backward", "!->  Sort", "!Seq Scan"],
            ),
            ("SELECT max(snowflake_timestamp(id)) FROM metrics", &["Limit", "Backward", "!->  Sort", "!Seq Scan"]),
            ("SELECT last(value, id) FROM metrics", &["ChunkAppend", "Order: ", "id DESC", "!Sort", "!Seq Scan"]),
            (
                "SELECT last(value, snowflake_timestamp(id)) FROM metrics",
                &["Limit", "Backward", "!->  Sort", "!Seq Scan"],
            ),
            (
                "SELECT first(value, snowflake_timestamp(id)) FROM metrics",
                &["Limit", "Index Scan", "!->  Sort", "!Seq Scan"],
            ),
        ] {
            assert_plan(&mut client, query, texts);
            same_rows(&mut client, query);
        }
    });
}

#[test]
fn its_functions_take_the_time() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        let query = "SELECT time_bucket('1 day', snowflake_timestamp(id)) AS day, count(*), first(value, id), last(value, snowflake_timestamp(id)) \
                     FROM metrics WHERE snowflake_timestamp(id) >= '2026-01-12+00' GROUP BY 1 ORDER BY 1";
        assert_eq!(
            same_rows(&mut client, query),
            [
                "2026-01-12 00:00:00+00 | 288 | 3168 | 3455",
                "2026-01-13 00:00:00+00 | 288 | 3456 | 3743",
                "2026-01-14 00:00:00+00 | 288 | 3744 | 4031",
            ]
        );
        assert_eq!(days(&mut client, query), [12, 13, 14]);
        // Old chunks are named, and dropped, by an ID.
        let dropped: i64 = value(
            &mut client,
            "SELECT count(*) FROM drop_chunks('metrics', older_than => snowflake_min_id('2026-01-05+00'))",
        );
        assert_eq!(dropped, 4);
        let chunks: i64 = value(&mut client, "SELECT count(*) FROM show_chunks('metrics')");
        assert_eq!(chunks, 10);
        assert_eq!(
            same_rows(&mut client, "SELECT min(snowflake_timestamp(id)) FROM metrics"),
            ["2026-01-05 00:00:00+00"]
        );
    });
}

#[test]
fn a_function_of_several_forms_is_no_dimension() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        execute(&mut client, "CREATE TABLE t (id bigint NOT NULL)");
        let by_time = "SELECT create_hypertable('t', 'id', time_partitioning_func => 'snowflake_timestamp', chunk_time_interval => interval '1 day')";
        // ambiguous_function
        refused(&mut client, by_time, "42725");
    });
}

#[test]
fn rows_are_changed_by_their_time() {
    with_hypertables(|cluster| {
        let mut client = cluster.client();
        create(&mut client);
        for statement in [
            "UPDATE {t} SET value = -1 WHERE snowflake_timestamp(id) < '2026-01-02+00' RETURNING id",
            "DELETE FROM {t} WHERE snowflake_timestamp(id) BETWEEN '2026-01-05 12:00+00' AND '2026-01-06+00' RETURNING id",
            "UPDATE {t} x SET device = 77 FROM other WHERE snowflake_timestamp(x.id) = snowflake_timestamp(other.id) RETURNING x.id",
            "DELETE FROM {t} WHERE snowflake_timestamp(id) < now() - interval '100 years' RETURNING id",
            "INSERT INTO {t} SELECT id, 5, 5 FROM other WHERE snowflake_timestamp(id) < '2026-01-09+00' \
             ON CONFLICT (id) DO UPDATE SET value = excluded.value RETURNING id",
            "SELECT count(*), sum(value), sum(device), sum(id) FROM {t}",
        ] {
            let mut results = Vec::new();
            for (state, table) in [("on", "metrics"), ("off", "metrics"), ("on", "plain")] {
                execute(&mut client, &format!("SET pg_snowflake.plan_by_time = {state}; BEGIN"));
                let mut changed = rows(&mut client, &statement.replace("{t}", table));
                changed.sort_unstable();
                let all = rows(&mut client, &format!("SELECT count(*), sum(value), sum(device), sum(id) FROM {table}"));
                execute(&mut client, "ROLLBACK");
                results.push((changed, all));
            }
            assert_eq!(results[0], results[2], "on: {statement}");
            assert_eq!(results[1], results[2], "off: {statement}");
        }
        // IDs of now make a chunk of today.
        execute(&mut client, "INSERT INTO metrics (device, value) SELECT n, n FROM generate_series(1, 100) n");
        let newest = "SELECT count(*), count(DISTINCT id) FROM metrics WHERE snowflake_timestamp(id) > now() - interval '1 hour'";
        assert_eq!(same_rows(&mut client, newest), ["100 | 100"]);
    });
}
