//! Decoding is inlined: the planner sees comparisons with constants, uses the key's index, and prunes partitions.

use postgres::Client;
use snowflake_test::hosted::{DATABASE, server};
use snowflake_test::{Cluster, value};

fn plan(client: &mut Client, query: &str) -> String {
    let rows = client.query(&format!("EXPLAIN (COSTS OFF) {query}"), &[]).unwrap();
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}

fn with_rows() -> Cluster {
    let cluster = server();
    let mut client = cluster.client_of("owner", DATABASE);
    client
        .batch_execute(
            "CREATE TABLE events (id bigint PRIMARY KEY, n integer);
             INSERT INTO events SELECT snowflake_encode(timestamptz '2026-01-01' + n * interval '1 minute', 1), n
                FROM generate_series(1, 50000) AS n;
             CREATE INDEX by_time ON events (snowflake_timestamp(id), n);
             CREATE TABLE parted (id bigint NOT NULL) PARTITION BY RANGE (id);
             SELECT snowflake_create_partitions('parted', '1 month', '2026-01-01', '2027-01-01');
             INSERT INTO parted SELECT id FROM events; ANALYZE events, parted",
        )
        .unwrap();
    cluster
}

#[test]
fn ranges_of_time_use_the_index_of_the_key() {
    let cluster = with_rows();
    let mut client = cluster.client_of("owner", DATABASE);
    for bounds in ["'2026-01-05', '2026-01-06'", "now() - interval '1 hour', now()", "$1, $2"] {
        let query = format!("SELECT * FROM events WHERE snowflake_between(id, {bounds})");
        let found = if bounds.starts_with('$') {
            client
                .batch_execute(&format!(
                    "SET plan_cache_mode = force_generic_plan; PREPARE q (timestamptz, timestamptz) AS {query}"
                ))
                .unwrap();
            plan(&mut client, "EXECUTE q ('2026-01-05', '2026-01-06')")
        } else {
            plan(&mut client, &query)
        };
        assert!(found.contains("events_pkey") && found.contains("Index Cond: ((id >= "), "{found}");
        assert!(!found.contains("Filter"), "{found}");
    }
    let found = plan(&mut client, "SELECT * FROM events WHERE snowflake_between(id, '2026-01-05', '2026-01-06')");
    assert!(!found.contains("CASE") && !found.contains("snowflake_"), "{found}");
    let count = "SELECT count(*) FROM events WHERE snowflake_between(id, '2026-01-05', '2026-01-06')";
    assert_eq!(value::<i64>(&mut client, count), 1440);
    let found = plan(&mut client, "SELECT * FROM events WHERE snowflake_timestamp(id) = '2026-01-05' AND n = 5760");
    assert!(found.contains("by_time") && found.contains("Index Cond"), "{found}");
}

/// The plans of docs/reference/hosted.md: nothing makes a range of IDs of a condition on the time.
#[test]
fn conditions_on_the_time() {
    let cluster = with_rows();
    let mut client = cluster.client_of("owner", DATABASE);
    client.batch_execute("DROP INDEX by_time; SET max_parallel_workers_per_gather = 0").unwrap();
    let of_time = "WHERE snowflake_timestamp(id) >= '2026-01-05' AND snowflake_timestamp(id) < '2026-01-06'";
    let found = plan(&mut client, &format!("SELECT * FROM events {of_time}"));
    assert!(found.starts_with("Seq Scan on events\n  Filter: ((CASE WHEN (id < 0) THEN "), "{found}");
    let parted = plan(&mut client, &format!("SELECT * FROM parted {of_time}"));
    assert!(parted.contains("parted_20260101") && parted.contains("parted_20261201"), "{parted}");
    let made = "CREATE INDEX ON events USING brin (snowflake_timestamp(id)); ANALYZE events";
    client.batch_execute(made).unwrap();
    let found = plan(&mut client, &format!("SELECT * FROM events {of_time}"));
    assert!(found.starts_with("Bitmap Heap Scan on events\n  Recheck Cond: ((CASE WHEN (id < 0) THEN "), "{found}");
    assert!(found.contains("Bitmap Index Scan on events_snowflake_timestamp_idx"), "{found}");
    assert_eq!(value::<i64>(&mut client, &format!("SELECT count(*) FROM events {of_time}")), 1440);
    assert!(value::<bool>(&mut client, "SELECT pg_relation_size('events_snowflake_timestamp_idx') < 100000"));
    // By statistics of the expression.
    let rows = client.query(&format!("EXPLAIN SELECT * FROM events {of_time}"), &[]).unwrap();
    let first: String = rows[0].get(0);
    let estimate: f64 = first.split("rows=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    assert!((700.0..3000.0).contains(&estimate), "{first}");
}

#[test]
fn partitions_are_pruned() {
    let cluster = with_rows();
    let mut client = cluster.client_of("owner", DATABASE);
    let found = plan(&mut client, "SELECT * FROM parted WHERE snowflake_between(id, '2026-02-01', '2026-03-01')");
    assert!(
        found.contains("parted_20260201") && !found.contains("parted_20260101") && !found.contains("parted_20260301"),
        "{found}"
    );
    let found = plan(
        &mut client,
        "SELECT * FROM parted WHERE snowflake_between(id, now() - interval '100 years', timestamptz '2026-01-02' + (now() - now()))",
    );
    assert!(found.contains("Subplans Removed: 11"), "{found}");
}

#[test]
fn decoding_calls_no_function_of_ours() {
    let cluster = with_rows();
    let mut client = cluster.client_of("owner", DATABASE);
    for part in [
        "snowflake_timestamp(id)",
        "snowflake_worker(id)",
        "snowflake_sequence(id, 'twitter')",
        "(snowflake_decode(id)).*",
    ] {
        let rows = client.query(&format!("EXPLAIN (VERBOSE, COSTS OFF) SELECT {part} FROM events"), &[]).unwrap();
        let found: String = rows.iter().map(|row| row.get::<_, String>(0)).collect();
        // What is called for numbers that are no IDs ends the query.
        let calls = found.replace("_snowflake.not_an_id", "");
        assert!(!calls.contains("snowflake_") && !calls.contains("_snowflake"), "{found}");
    }
}

#[test]
fn parallel_plans() {
    let cluster = with_rows();
    let mut client = cluster.client_of("owner", DATABASE);
    let major: i32 = value(&mut client, "SELECT current_setting('server_version_num')::integer / 10000");
    let force = if major < 16 { "force_parallel_mode" } else { "debug_parallel_query" };
    client
        .batch_execute(&format!(
            "SET {force} = on; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0"
        ))
        .unwrap();
    let decode = "SELECT count(snowflake_timestamp(id)), max(snowflake_to_text(id, 'hex')) FROM events";
    assert!(plan(&mut client, decode).contains("Gather"));
    assert_eq!(client.query_one(decode, &[]).unwrap().get::<_, i64>(0), 50_000);
    // On PostgreSQL 14, the setting starts a worker for each look at the position, which takes 10 ms.
    let make = "SELECT count(*) FROM (SELECT DISTINCT snowflake_next() FROM events WHERE n <= 1000) AS made";
    assert!(!plan(&mut client, make).contains("Gather"));
    assert_eq!(value::<i64>(&mut client, make), 1000);
    client.batch_execute("CREATE TABLE made (id bigint PRIMARY KEY DEFAULT snowflake_next(), n integer)").unwrap();
    client.batch_execute("INSERT INTO made (n) SELECT n FROM events WHERE n <= 1000").unwrap();
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM made"), 1000);
}

/// Each function that takes a layout gets it from a column: in parallel workers and in generic plans, the same rows.
#[test]
fn layouts_from_columns_in_parallel_and_generic_plans() {
    let cluster = with_rows();
    let mut client = cluster.client_of("owner", DATABASE);
    client
        .batch_execute(
            "CREATE TABLE asked AS SELECT layout, at, snowflake_min_id(at, layout) AS id
                FROM (SELECT timestamptz '2026-01-01' + n * interval '1 s' AS at FROM generate_series(1, 2) AS n) AS t,
                (SELECT layout FROM snowflake_layouts()
                 UNION ALL SELECT 'timestamp=41 worker=10 sequence=12 epoch=2023-02-28T23:59:59.999999Z') AS l;
             ANALYZE asked",
        )
        .unwrap();
    let query = "SELECT count(*), md5(string_agg(concat_ws(' ', layout, id, snowflake_timestamp(id, layout), snowflake_worker(id, layout),
            snowflake_datacenter(id, layout), snowflake_sequence(id, layout), snowflake_decode(id, layout), snowflake_max_id(at, layout),
            snowflake_max_id_before(at, layout), snowflake_between(id, at, at, layout)), ',' ORDER BY layout, at))
        FROM asked WHERE at > $1";
    let ask = |client: &mut Client| -> (i64, String) {
        client.batch_execute(&format!("DEALLOCATE ALL; PREPARE q (timestamptz) AS {query}")).unwrap();
        let row = client.query_one("EXECUTE q ('2026-01-01')", &[]).unwrap();
        (row.get(0), row.get(1))
    };
    let expected = ask(&mut client);
    assert_eq!(expected.0, 2 * (value::<i64>(&mut client, "SELECT count(*) FROM snowflake_layouts()") + 1));
    let major: i32 = value(&mut client, "SELECT current_setting('server_version_num')::integer / 10000");
    let force = if major < 16 { "force_parallel_mode" } else { "debug_parallel_query" };
    for settings in [
        "SET plan_cache_mode = force_generic_plan".to_owned(),
        format!("SET {force} = on"),
        "SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0".to_owned(),
    ] {
        client.batch_execute(&settings).unwrap();
        assert_eq!(ask(&mut client), expected, "{settings}");
    }
    assert!(plan(&mut client, "EXECUTE q ('2026-01-01')").contains("Gather"));
}
