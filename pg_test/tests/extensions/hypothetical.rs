//! hypopg: its hypothetical indexes are seen where they would serve a query by time, and what our hooks tell the planner of indexes is none of
//! its own.

use super::queries::{create_plain, over};
use super::{ROWS, assert_plan, beside, execute, plan, rows, same_rows};
use snowflake_test::value;

const DAY: &str =
    "WHERE snowflake_timestamp(id) >= '2026-01-05 00:00+00' AND snowflake_timestamp(id) < '2026-01-05 06:00+00'";

/// What is an index of hypopg in a plan: its name begins with its number.
const OF_TIME: &str = "btree_bare";

#[test]
fn an_index_on_the_id_is_seen() {
    beside("hypopg", "hypopg", |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        let queries = [
            (format!("SELECT * FROM bare {DAY}"), "Index Cond"),
            ("SELECT n FROM bare ORDER BY snowflake_timestamp(id) LIMIT 10".to_owned(), "Limit"),
            ("SELECT n FROM bare ORDER BY snowflake_timestamp(id) DESC, id DESC LIMIT 10".to_owned(), "Backward"),
            ("SELECT max(snowflake_timestamp(id)) FROM bare".to_owned(), "Index"),
        ];
        for (query, _) in &queries {
            assert_plan(&mut client, query, &["Seq Scan on bare"]);
        }
        execute(&mut client, "SELECT hypopg_create_index('CREATE INDEX ON bare (id)')");
        for (query, text) in &queries {
            assert_plan(&mut client, query, &[OF_TIME, text, "!Seq Scan", "!Sort"]);
            same_rows(&mut client, query);
        }
        execute(&mut client, "SELECT hypopg_reset()");
        for (query, _) in &queries {
            assert_plan(&mut client, query, &["Seq Scan on bare"]);
        }
    });
}

#[test]
fn an_index_on_the_time_is_seen() {
    beside("hypopg", "hypopg", |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        let queries = [
            (format!("SELECT * FROM bare {DAY}"), "Index Cond"),
            ("SELECT n FROM bare ORDER BY snowflake_timestamp(id) LIMIT 10".to_owned(), "Limit"),
            ("SELECT max(snowflake_timestamp(id)) FROM bare".to_owned(), "Index"),
        ];
        execute(&mut client, "SELECT hypopg_create_index('CREATE INDEX ON bare (snowflake_timestamp(id))')");
        for (query, text) in &queries {
            assert_plan(&mut client, query, &[OF_TIME, text, "!Seq Scan", "!Sort"]);
            same_rows(&mut client, query);
        }
    });
}

/// An index on the time with a leading column, for one of many tenants, where the key has the ID alone: it is what the query wants.
#[test]
fn an_index_on_the_time_is_seen_beside_a_key() {
    beside("hypopg", "hypopg", |cluster| {
        let mut client = cluster.client();
        execute(
            &mut client,
            "CREATE TABLE events (id bigint PRIMARY KEY, tenant integer);
             INSERT INTO events SELECT snowflake_min_id(timestamptz '2026-01-01 00:00+00' + n * interval '1 minute'), n % 1000
             FROM generate_series(1, 50000) n;
             VACUUM ANALYZE events",
        );
        execute(&mut client, "SELECT hypopg_create_index('CREATE INDEX ON events (tenant, snowflake_timestamp(id))')");
        for query in [
            "SELECT * FROM events WHERE tenant = 7 AND snowflake_timestamp(id) >= '2026-01-05 00:00+00'",
            "SELECT * FROM events WHERE tenant = 7 ORDER BY snowflake_timestamp(id) DESC LIMIT 5",
            "SELECT max(snowflake_timestamp(id)) FROM events WHERE tenant = 7",
        ] {
            assert_plan(&mut client, query, &["btree_events", "tenant = 7", "!events_pkey", "!Sort"]);
            same_rows(&mut client, query);
        }
    });
}

/// Of those that there are, none is ours.
#[test]
fn its_list_has_its_own_indexes_only() {
    beside("hypopg", "hypopg", |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        let query = "SELECT r.n FROM r JOIN both_ways b ON snowflake_timestamp(r.id) = snowflake_timestamp(b.id) \
                     WHERE snowflake_timestamp(r.id) > '2026-01-05 00:00+00' ORDER BY snowflake_timestamp(r.id) DESC LIMIT 3";
        for count in 0..3_i64 {
            plan(&mut client, query);
            same_rows(&mut client, query);
            assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM hypopg()"), count);
            assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM hypopg_list_indexes"), count);
            let column = ["id", "snowflake_timestamp(id)", "n"][usize::try_from(count).unwrap()];
            execute(&mut client, &format!("SELECT hypopg_create_index('CREATE INDEX ON r ({column})')"));
            assert!(value::<i64>(&mut client, "SELECT max(hypopg_relation_size(indexrelid)) FROM hypopg()") > 0);
        }
    });
}

/// Whatever indexes it makes up, and for whatever query.
#[test]
fn every_query_is_planned_with_them() {
    beside("hypopg", "hypopg", |cluster| {
        let mut client = cluster.client();
        create_plain(&mut client);
        execute(&mut client, "CREATE TABLE bare AS TABLE plain; VACUUM ANALYZE");
        for columns in [
            "(id)",
            "(snowflake_timestamp(id))",
            "(device, id)",
            "(device, snowflake_timestamp(id) DESC)",
            "(snowflake_timestamp(id), id)",
            "(id DESC NULLS LAST) WHERE device > 3",
            "USING hash (id)",
            "USING brin (id)",
        ] {
            for table in ["bare", "plain", "other"] {
                let create = format!("CREATE INDEX ON {table} {columns}");
                execute(&mut client, &format!("SELECT hypopg_create_index('{create}')"));
            }
            for settings in ["", "SET enable_seqscan = off", "SET enable_sort = off; SET enable_hashjoin = off"] {
                execute(&mut client, settings);
                for query in over("bare").chain(over("plain")) {
                    plan(&mut client, &query);
                }
                execute(&mut client, "RESET ALL");
            }
        }
        // What they were left with is what a query that is run has, too.
        for query in over("bare") {
            same_rows(&mut client, &query);
        }
    });
}

/// What is hidden is hidden for what we say of it, too.
#[test]
fn a_hidden_index_is_not_used() {
    beside("hypopg", "hypopg", |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        let queries = [
            format!("SELECT * FROM r {DAY}"),
            "SELECT id FROM r ORDER BY snowflake_timestamp(id) DESC LIMIT 10".to_owned(),
            "SELECT max(snowflake_timestamp(id)) FROM r".to_owned(),
            "SELECT r.n FROM other JOIN r ON snowflake_timestamp(r.id) = snowflake_timestamp(other.id)".to_owned(),
        ];
        for hidden in [false, true, false] {
            for query in &queries {
                let expected = if hidden { "!r_pkey" } else { "r_pkey" };
                // Of the join, with an index, by a nested loop.
                execute(
                    &mut client,
                    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off",
                );
                assert_plan(&mut client, query, &[expected]);
                execute(&mut client, "RESET ALL");
            }
            let function = if hidden { "unhide" } else { "hide" };
            execute(&mut client, &format!("SELECT hypopg_{function}_index('r_pkey'::regclass)"));
        }
    });
}

/// Only EXPLAIN has them: a query that is run must not.
#[test]
fn a_query_that_runs_does_not_use_them() {
    beside("hypopg", "hypopg", |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        let query = format!("SELECT count(*) FROM bare {DAY}");
        let count = same_rows(&mut client, &query);
        for column in ["id", "snowflake_timestamp(id)"] {
            execute(&mut client, &format!("SELECT hypopg_create_index('CREATE INDEX ON bare ({column})')"));
            assert_eq!(same_rows(&mut client, &query), count);
            let ran = rows(&mut client, &format!("EXPLAIN (ANALYZE, COSTS OFF) {query}")).join("\n");
            assert!(ran.contains("Seq Scan on bare"), "{ran}");
        }
    });
}
