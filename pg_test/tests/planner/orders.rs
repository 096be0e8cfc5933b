//! An order by the ID that comes from a scan by the time: the rows are in that order.

use postgres::Client;
use snowflake_test::{Cluster, ids};

const ROWS: &str = "
    CREATE TABLE rows (tenant integer, id bigint, kind integer, pad text);
    INSERT INTO rows SELECT 5, snowflake_min_id('2026-01-05 00:00+00'::timestamptz + i * interval '1 s'), i % 100, repeat('x', 100)
        FROM generate_series(1, 100000) AS i;
    CREATE INDEX ON rows (tenant, id, kind);
    CREATE TABLE other AS SELECT id FROM rows WHERE kind < 3;
    CREATE TABLE hours (id bigint PRIMARY KEY);
    INSERT INTO hours SELECT snowflake_min_id('2025-10-25 12:00+00'::timestamptz + i * interval '1 min') FROM generate_series(0, 100000) AS i;
    CREATE TABLE months (id bigint PRIMARY KEY);
    INSERT INTO months SELECT snowflake_min_id('2026-01-28 00:00+00'::timestamptz + i * interval '1 h') FROM generate_series(0, 2000) AS i;
    VACUUM ANALYZE rows; VACUUM ANALYZE other; VACUUM ANALYZE hours; VACUUM ANALYZE months";

/// Some have an array in a condition on a later column, others a list of times whose IDs lie between each other's.
const QUERIES: [&str; 11] = [
    "SELECT id, length(pad) FROM rows WHERE tenant = 5 AND snowflake_timestamp(id) >= '2026-01-05 00:00+00' AND kind IN (1, 2) ORDER BY id",
    "SELECT id, length(pad) FROM rows WHERE tenant = 5 AND snowflake_timestamp(id) BETWEEN '2026-01-05 00:00+00' AND '2026-01-05 01:00+00' \
     AND kind IN (1, 2) ORDER BY id",
    "SELECT id FROM rows WHERE tenant = 5 AND snowflake_timestamp(id) >= '2026-01-05 00:00+00' AND kind IN (1, 2) ORDER BY id LIMIT 40",
    "SELECT id FROM rows WHERE tenant = 5 AND snowflake_timestamp(id) >= '2026-01-05 00:00+00' AND kind IN (1, 2) ORDER BY id DESC LIMIT 40",
    "SELECT id FROM rows WHERE tenant IN (4, 5) AND snowflake_timestamp(id) >= '2026-01-05 00:00+00' AND kind = ANY ('{2, 1, 7}') ORDER BY id LIMIT 40",
    "SELECT max(id) AS id FROM rows WHERE tenant = 5 AND snowflake_timestamp(id) >= '2026-01-05 00:00+00' AND kind IN (1, 2)",
    "SELECT DISTINCT id FROM rows WHERE tenant = 5 AND snowflake_timestamp(id) < '2026-01-05 01:00+00' AND kind IN (1, 2) ORDER BY id",
    "SELECT r.id FROM rows AS r JOIN other USING (id) WHERE tenant = 5 AND snowflake_timestamp(id) < '2026-01-05 01:00+00' AND kind IN (1, 2) ORDER BY id",
    "SELECT id FROM hours WHERE snowflake_timestamp(id)::timestamp IN ('2025-10-26 02:15', '2025-10-26 02:45') ORDER BY id",
    "SELECT id FROM hours WHERE snowflake_timestamp(id)::timestamp IN ('2025-10-26 02:15', '2025-10-26 02:45') ORDER BY id LIMIT 2",
    "SELECT id FROM months WHERE snowflake_timestamp(id) + interval '1 month' = ANY ('{2026-02-28 00:00, 2026-02-28 12:00}') ORDER BY id",
];

#[test]
fn rows_come_in_the_order_that_is_asked_for() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    ROWS.split(';').for_each(|statement| client.batch_execute(statement).unwrap());
    client.batch_execute("SET timezone = 'Europe/Berlin'").unwrap();
    for turned_off in [
        "",
        "enable_sort",
        "enable_sort, enable_seqscan, enable_bitmapscan",
        "enable_sort, enable_hashjoin, enable_nestloop, enable_bitmapscan",
    ] {
        client.batch_execute("SET enable_sort = on; SET enable_seqscan = on; SET enable_hashjoin = on; SET enable_nestloop = on; SET enable_bitmapscan = on").unwrap();
        for name in turned_off.split(", ").filter(|name| !name.is_empty()) {
            client.batch_execute(&format!("SET {name} = off")).unwrap();
        }
        for mode in ["auto", "force_generic_plan"] {
            client.batch_execute(&format!("SET plan_cache_mode = {mode}")).unwrap();
            for query in QUERIES {
                let [on, off] = ["on", "off"].map(|state| {
                    client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {state}")).unwrap();
                    rows(&mut client, query)
                });
                assert!(!on.is_empty());
                assert_eq!(on, off, "without {turned_off}: {query}");
            }
        }
    }
}

/// As a prepared statement, whose array is a parameter where it has one.
fn rows(client: &mut Client, query: &str) -> Vec<i64> {
    let Some((before, after)) = query.split_once("ANY ('{2026") else { return ids(&client.query(query, &[]).unwrap()) };
    let (array, after) = after.split_once("')").unwrap();
    client
        .batch_execute(&format!("DEALLOCATE ALL; PREPARE by_list (timestamptz[]) AS {before}ANY ($1){after}"))
        .unwrap();
    ids(&client.query(&format!("EXECUTE by_list ('{{2026{array}')"), &[]).unwrap())
}
