//! Queries by time over a table that an extension owns. They return the same rows as over a plain table, with the hooks on and off, however
//! the planner is set.

use super::{execute, plan, rows, same_rows};
use postgres::Client;

/// Rows for a table `(id bigint, device integer, value double precision)`: one every five minutes, for 14 days.
pub const ROWS: &str = "SELECT snowflake_min_id(timestamptz '2026-01-01 00:00+00' + n * interval '5 minutes') + n % 3, n % 10, n FROM generate_series(0, 4031) n";

/// A plain table of these rows, and another one of some of them.
pub fn create_plain(client: &mut Client) {
    execute(
        client,
        &format!(
            "CREATE TABLE plain (id bigint PRIMARY KEY, device integer, value double precision);
             INSERT INTO plain {ROWS};
             CREATE TABLE other (id bigint PRIMARY KEY, device integer, value double precision);
             INSERT INTO other SELECT * FROM plain WHERE value::integer % 50 = 0"
        ),
    );
}

/// `{t}` is the table, `{at}` its time.
const QUERIES: &[&str] = &[
    "SELECT count(*), min(id), max(id) FROM {t} WHERE {at} >= '2026-01-05+00' AND {at} < '2026-01-06+00'",
    "SELECT * FROM {t} WHERE {at} BETWEEN '2026-01-05 23:00+00' AND '2026-01-06 01:00+00' ORDER BY id",
    "SELECT * FROM {t} WHERE {at} = '2026-01-05 00:05+00'",
    "SELECT * FROM {t} WHERE {at} IN ('2026-01-05 00:05+00', '2026-01-07 00:05+00', '2026-01-07 00:05:01+00') ORDER BY id",
    "SELECT count(*) FROM {t} WHERE {at} <> '2026-01-05 00:05+00'",
    "SELECT count(*) FROM {t} WHERE {at} < '2026-01-02+00' OR {at} >= '2026-01-14+00'",
    "SELECT count(*) FROM {t} WHERE NOT ({at} < '2026-01-02+00' OR device = 3)",
    "SELECT count(*) FROM {t} WHERE {at} > now() - interval '100 years' AND {at} <= now() AND device = 4",
    "SELECT count(*) FROM {t} WHERE {at} > now()",
    "SELECT count(*) FROM {t} WHERE {at} >= date '2026-01-05' AND {at} < timestamp '2026-01-06 12:00'",
    "SELECT count(*) FROM {t} WHERE {at} > '-infinity' AND {at} < 'infinity'",
    "SELECT count(*) FROM {t} WHERE {at} > NULL",
    "SELECT count(*) FROM {t} WHERE {at} > (SELECT max({at}) - interval '1 day' FROM {t})",
    "SELECT count(*) FROM {t} WHERE snowflake_between(id, '2026-01-05+00', '2026-01-06+00')",
    "SELECT count(*) FROM {t} WHERE (snowflake_decode(id)).timestamp >= '2026-01-05+00' AND device < 5",
    "SELECT count(*) FROM {t} WHERE CASE WHEN device > 5 THEN {at} > '2026-01-05+00' ELSE {at} < '2026-01-03+00' END",
    "SELECT count(*) FROM {t} WHERE ({at}, id) > ('2026-01-13 12:00+00', 0)",
    "SELECT id, {at} FROM {t} ORDER BY {at} LIMIT 5",
    "SELECT id, {at} FROM {t} ORDER BY {at} DESC LIMIT 5",
    "SELECT id FROM {t} ORDER BY {at} DESC, id DESC LIMIT 5 OFFSET 700",
    "SELECT id, device FROM {t} WHERE device = 3 ORDER BY {at} LIMIT 5",
    "SELECT id FROM {t} WHERE {at} >= '2026-01-05 12:00+00' ORDER BY {at} LIMIT 5",
    "SELECT id FROM {t} WHERE {at} < '2026-01-05 12:00+00' ORDER BY {at} DESC LIMIT 5",
    "SELECT id FROM {t} ORDER BY {at}",
    "SELECT min({at}), max({at}) FROM {t}",
    "SELECT max({at}) FROM {t} WHERE {at} < '2026-01-05 00:03+00'",
    "SELECT device, max({at}), min(id) FROM {t} GROUP BY device ORDER BY device",
    "SELECT date_trunc('day', {at}, 'UTC') d, count(*), sum(value) FROM {t} GROUP BY 1 ORDER BY 1 DESC LIMIT 7",
    "SELECT date_trunc('day', {at}, 'Europe/Berlin') d, count(*) FROM {t} WHERE {at} >= '2026-01-09+00' GROUP BY 1 ORDER BY 1",
    "SELECT date_bin('6 hours', {at}, '2026-01-01+00') d, device, count(*) FROM {t} WHERE {at} < '2026-01-03+00' GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT count(*), sum(x.value) FROM {t} x JOIN other ON snowflake_timestamp(x.id) = snowflake_timestamp(other.id)",
    "SELECT count(*), sum(o.value) FROM other o LEFT JOIN (SELECT * FROM {t} WHERE {at} < '2026-01-08+00') x ON snowflake_timestamp(x.id) = snowflake_timestamp(o.id)",
    "SELECT count(*) FROM other o FULL JOIN {t} x ON snowflake_timestamp(x.id) = snowflake_timestamp(o.id)",
    "SELECT count(*) FROM {t} a JOIN {t} b ON snowflake_timestamp(a.id) = snowflake_timestamp(b.id) WHERE snowflake_timestamp(a.id) >= '2026-01-07+00'",
    "SELECT o.id, count(*) FROM other o JOIN {t} x ON snowflake_timestamp(x.id) <= snowflake_timestamp(o.id) AND snowflake_timestamp(x.id) > snowflake_timestamp(o.id) - interval '1 hour' GROUP BY 1 ORDER BY 1",
    "SELECT o.id, x.id FROM other o, LATERAL (SELECT id FROM {t} WHERE {at} < snowflake_timestamp(o.id) ORDER BY {at} DESC LIMIT 1) x ORDER BY 1",
    "SELECT o.id, x.* FROM other o LEFT JOIN LATERAL (SELECT max({at}) m, count(*) FROM {t} WHERE device = o.device AND {at} < snowflake_timestamp(o.id)) x ON true ORDER BY 1",
    "SELECT count(*) FROM {t} WHERE {at} IN (SELECT snowflake_timestamp(id) FROM other)",
    "SELECT count(*) FROM {t} x WHERE NOT EXISTS (SELECT FROM other o WHERE snowflake_timestamp(o.id) = snowflake_timestamp(x.id))",
    "SELECT id, lag({at}) OVER (ORDER BY {at}) FROM {t} WHERE {at} < '2026-01-01 03:00+00' ORDER BY id",
    "SELECT id, device, row_number() OVER (PARTITION BY device ORDER BY {at} DESC) FROM {t} WHERE {at} >= '2026-01-13+00' ORDER BY id",
    "SELECT DISTINCT ON (device) device, {at} FROM {t} WHERE {at} < '2026-01-05+00' ORDER BY device, {at} DESC",
    "SELECT DISTINCT ON ({at}) {at}, device FROM {t} ORDER BY {at}, id LIMIT 9",
    "SELECT * FROM (SELECT id, {at} AS at FROM {t} UNION ALL SELECT id, snowflake_timestamp(id) FROM other) u WHERE at < '2026-01-09+00' ORDER BY at DESC, id LIMIT 9",
    "SELECT count(*) FROM (SELECT id, {at} AS at FROM {t} UNION ALL SELECT id, snowflake_timestamp(id) FROM other) u WHERE at >= '2026-01-09+00'",
    "WITH x AS MATERIALIZED (SELECT * FROM {t} WHERE {at} > '2026-01-09+00') SELECT count(*) FROM x WHERE snowflake_timestamp(id) < '2026-01-10+00'",
    "SELECT {at} FROM {t} WHERE {at} < '2026-01-03+00' EXCEPT SELECT snowflake_timestamp(id) FROM other ORDER BY 1 LIMIT 4",
    "SELECT count(*) FROM (SELECT * FROM {t} ORDER BY {at} DESC OFFSET 100 LIMIT 200) x WHERE snowflake_timestamp(id) < '2026-01-14+00'",
    "SELECT snowflake_worker(id), count(*) FROM {t} GROUP BY 1 ORDER BY 1",
    "SELECT to_json(x) FROM (SELECT * FROM {t} WHERE {at} >= '2026-01-06+00' ORDER BY {at} LIMIT 2) x",
];

/// How the planner is set.
const SETTINGS: &[&str] = &[
    "",
    "SET enable_seqscan = off",
    "SET enable_sort = off; SET enable_hashagg = off",
    "SET enable_hashjoin = off; SET enable_mergejoin = off",
    "SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_indexonlyscan = off",
    "SET enable_indexscan = off; SET enable_indexonlyscan = off",
    "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2",
    "SET timezone = 'America/New_York'; SET random_page_cost = 0.1",
];

/// The queries over a table.
pub fn over(table: &str) -> impl Iterator<Item = String> {
    QUERIES.iter().map(move |query| query.replace("{t}", table).replace("{at}", "snowflake_timestamp(id)"))
}

/// All queries over a table return what they return over `plain`, with the hooks on and off.
pub fn return_the_same(client: &mut Client, table: &str) {
    return_the_same_but(client, table, |_| false);
}

/// All but some of them.
pub fn return_the_same_but(client: &mut Client, table: &str, left_out: impl Fn(&str) -> bool) {
    for settings in SETTINGS {
        execute(client, settings);
        for (query, of_plain) in over(table).zip(over("plain")).filter(|(query, _)| !left_out(query)) {
            let of_plain = rows(client, &of_plain);
            let of_table = same_rows(client, &query);
            assert!(of_table == of_plain, "{settings}; {query}\n{of_table:?}\n{of_plain:?}\n{}", plan(client, &query));
        }
        generic_plans_return_the_same(client, table);
        execute(client, "RESET ALL");
    }
}

/// Plans that are made before the parameters are known.
fn generic_plans_return_the_same(client: &mut Client, table: &str) {
    execute(client, "SET plan_cache_mode = force_generic_plan");
    let mut results = Vec::new();
    for (state, table) in [("on", "plain"), ("on", table), ("off", table)] {
        execute(
            client,
            &format!(
                "SET pg_snowflake.plan_by_time = {state};
                 PREPARE bounds(timestamptz, timestamptz) AS SELECT count(*), sum(value) FROM {table}
                 WHERE snowflake_timestamp(id) >= $1 AND snowflake_timestamp(id) < $2;
                 PREPARE newest(timestamptz) AS SELECT id FROM {table} WHERE snowflake_timestamp(id) < $1
                 ORDER BY snowflake_timestamp(id) DESC, id DESC LIMIT 3"
            ),
        );
        let mut found = Vec::new();
        for since in
            ["2025-01-01", "2026-01-05 00:05+00", "2026-01-05 00:05:00.001+00", "2026-01-14 23:55+00", "infinity"]
        {
            found.extend(rows(client, &format!("EXECUTE bounds('{since}', '2026-01-14+00')")));
            found.extend(rows(client, &format!("EXECUTE newest('{since}')")));
        }
        found.extend(rows(client, "EXECUTE bounds(NULL, 'infinity')"));
        execute(client, "DEALLOCATE ALL");
        results.push(found);
    }
    execute(client, "RESET pg_snowflake.plan_by_time");
    assert_eq!(results[1], results[0], "{table}, the hooks on");
    assert_eq!(results[2], results[0], "{table}, the hooks off");
}
