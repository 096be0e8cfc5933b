//! IDs that are expressions, and indexes with further expressions. PostgreSQL finds the statistics of an expression by an index and the number of a
//! column of it; those of another expression may be of another type.

use fastrand::Rng;
use postgres::{Client, SimpleQueryMessage};
use snowflake_test::{Cluster, variable};

/// A row every 20 s, so 1.2 days.
const ROWS: &str = "
    CREATE TABLE docs AS
        SELECT id, id::text AS val, jsonb_build_object('id', id) AS doc, 'x' || i AS name, i AS n
        FROM (SELECT i, snowflake_min_id('2026-01-05 00:00+00'::timestamptz + i * interval '20 s') AS id FROM generate_series(1, 5000) AS i) AS made;
    SET timezone = 'UTC'";

const IDS: [&str; 3] = ["id", "(val::bigint)", "((doc->>'id')::bigint)"];

/// Indexes on an ID.
const INDEXES: [&str; 12] = [
    "btree (ID)",
    "btree (ID DESC NULLS LAST) INCLUDE (n)",
    "btree (ID, lower(name))",
    "btree (lower(name), ID)",
    "btree (ID, lower(name), (n % 10))",
    "btree (ID, (n % 10), lower(name), (n::numeric))",
    "btree (lower(name), ID, (n % 10), (length(name)))",
    "btree (n, ID, lower(name))",
    "btree (ID, lower(name)) WHERE n > 100",
    "brin (ID)",
    "brin (ID, lower(name))",
    "brin (lower(name), ID, (n % 10))",
];

/// What is made of the time, of each type that there is, and compared.
const CONDITIONS: [&str; 13] = [
    "TIME > '2026-01-05 13:53+00'",
    "TIME BETWEEN '2026-01-05 06:00+00' AND '2026-01-05 12:00+00'",
    "TIME IN ('2026-01-05 00:10+00', '2026-01-05 00:20+00', NULL)",
    "date_trunc('hour', TIME) = '2026-01-05 06:00+00'",
    "TIME::date = '2026-01-05'",
    "TIME::date - '2026-01-01'::date = 4",
    "TIME AT TIME ZONE 'Europe/Berlin' < '2026-01-05 12:00'",
    "TIME - interval '1 h' < '2026-01-05 12:00+00'",
    "'2026-01-07 00:00+00' - TIME < interval '30 h'",
    "snowflake_age(ID) > '10 days'",
    "extract(epoch FROM TIME) > 1767600000",
    "date_part('epoch', TIME) < 1767620000",
    "extract(year FROM TIME) = 2026",
];

/// What else a query says. The names of the expressions are those of the indexes.
const OTHERS: [&str; 6] = [
    "",
    " AND lower(name) = 'x500'",
    " AND lower(name) < 'x2'",
    " AND n % 10 = 3",
    " AND length(name) > 3 AND n % 10 > 1",
    " AND n::numeric > 20.5",
];

const QUERIES: [&str; 5] = [
    "SELECT count(*) FROM docs WHERE CONDITION",
    "SELECT n FROM docs WHERE CONDITION ORDER BY TIME DESC LIMIT 10",
    "SELECT n % 10, count(*) FROM docs WHERE CONDITION GROUP BY 1 ORDER BY 1",
    "SELECT date_bin('1 hour', TIME, '2026-01-01'), lower(name) < 'x3', count(*) FROM docs WHERE CONDITION GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT count(*) FROM docs JOIN (VALUES (timestamptz '2026-01-05 00:20+00', 'x60'), ('2026-01-05 00:40+00', 'y')) AS v (at, of) \
     ON TIME = at AND lower(name) = of WHERE CONDITION",
];

/// With each index, analyzed in full or in part: no crash, the same rows with the hooks on and off, and an estimate that has something to do with
/// the rows.
#[test]
fn statistics_of_one_expression_are_not_those_of_another() {
    let cluster = Cluster::options().set("autovacuum = off").start();
    let mut client = cluster.client();
    client.batch_execute(ROWS).unwrap();
    let mut random = Rng::with_seed(variable("SEED").unwrap_or(1));
    for id in IDS {
        for form in INDEXES {
            client
                .batch_execute(&format!(
                    "DROP INDEX IF EXISTS docs_by; CREATE INDEX docs_by ON docs USING {}",
                    put(form, id)
                ))
                .unwrap();
            for targets in [[-1; 4], [-1, 0, -1, -1], [0, -1, -1, 0]] {
                set_targets(&mut client, &targets);
                for condition in CONDITIONS {
                    let query = put(random.choice(QUERIES).unwrap(), id);
                    let condition = put(&format!("{condition}{}", random.choice(OTHERS).unwrap()), id);
                    let query = query.replace("CONDITION", &condition);
                    let [on, off] = ["on", "off"].map(|state| {
                        client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {state}")).unwrap();
                        rows(&mut client, &query)
                    });
                    assert_eq!(on, off, "{form}, {targets:?}: {query}");
                }
                if targets == [-1; 4] && !form.contains("WHERE") {
                    estimate(&mut client, id, form);
                }
            }
        }
    }
}

fn put(text: &str, id: &str) -> String {
    text.replace("TIME ZONE", "time zone").replace("TIME", "snowflake_timestamp(ID)").replace("ID", id)
}

/// How much of each column of the index that is an expression is kept by ANALYZE.
fn set_targets(client: &mut Client, targets: &[i32]) {
    for (at, target) in targets.iter().enumerate() {
        // Columns that are none, and columns that are not there, are refused.
        let _ = client.batch_execute(&format!("ALTER INDEX docs_by ALTER COLUMN {} SET STATISTICS {target}", at + 1));
    }
    client.batch_execute("ANALYZE docs").unwrap();
    // What an earlier analysis has found stays there.
    client.batch_execute("DELETE FROM pg_statistic USING pg_attribute WHERE starelid = 'docs_by'::regclass AND attrelid = starelid AND attnum = staattnum AND attstattarget = 0").unwrap();
}

/// Of half of the rows, and of few.
fn estimate(client: &mut Client, id: &str, form: &str) {
    client.batch_execute("SET pg_snowflake.plan_by_time = on").unwrap();
    for (condition, count) in [("TIME > '2026-01-05 13:53+00'", 2501.0), ("TIME < '2026-01-05 00:30+00'", 89.0)] {
        let query = put(&format!("EXPLAIN SELECT n FROM docs WHERE {condition}"), id);
        let plan = rows(client, &query).remove(0);
        let estimate: f64 = plan.split("rows=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(estimate > count / 2.0 && estimate < count * 2.0, "{form}: {query}: {plan}");
    }
}

fn rows(client: &mut Client, query: &str) -> Vec<String> {
    let messages = client.simple_query(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).unwrap_or("NULL")).collect::<Vec<_>>().join("|"))
        }
        _ => None,
    });
    rows.collect()
}
