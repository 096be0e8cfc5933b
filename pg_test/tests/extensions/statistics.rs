//! pg_qualstats, pg_stat_statements, pg_stat_kcache, auto_explain: what they count and show of queries by time.

use super::{ROWS, beside_with, execute, rows, same_rows};
use snowflake_test::value;

const DAY: &str = "SELECT count(*) FROM r WHERE snowflake_timestamp(id) >= '2026-01-05 00:00+00' AND snowflake_timestamp(id) < '2026-01-06 00:00+00'";
const QUERIES: [&str; 6] = [
    DAY,
    "SELECT id FROM r ORDER BY snowflake_timestamp(id) DESC LIMIT 10",
    "SELECT max(snowflake_timestamp(id)) FROM r WHERE n > 5",
    "SELECT count(*) FROM r JOIN other ON snowflake_timestamp(r.id) = snowflake_timestamp(other.id) WHERE other.n < 5000",
    "SELECT count(*) FROM other JOIN r ON snowflake_timestamp(r.id) < snowflake_timestamp(other.id) WHERE other.n < 500",
    "SELECT count(*) FROM bare WHERE n = 77 AND snowflake_timestamp(id) > '2026-01-01 00:00+00'",
];

#[test]
fn qualstats_collects_and_advises() {
    let options = |options: snowflake_test::Options| {
        options.set("pg_qualstats.sample_rate = 1").set("pg_qualstats.resolve_oids = on")
    };
    beside_with("pg_qualstats", "pg_qualstats", options, |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        execute(&mut client, "SELECT pg_qualstats_reset()");
        for query in QUERIES {
            same_rows(&mut client, query);
        }
        // The conditions of each table. That of `bare` on a plain column is the same on and off.
        for table in ["r", "bare"] {
            let count =
                "SELECT count(*) FROM pg_qualstats() WHERE lrelid = $1::text::regclass OR rrelid = $1::text::regclass";
            let count: i64 = client.query_one(count, &[&table]).unwrap().get(0);
            assert!(count > 0, "{table}: {:?}", rows(&mut client, "SELECT * FROM pg_qualstats()"));
        }
        let plain: i64 = value(
            &mut client,
            "SELECT sum(occurences)::bigint FROM pg_qualstats() JOIN pg_attribute ON attrelid = lrelid AND attnum = lattnum \
             WHERE lrelid = 'bare'::regclass AND attname = 'n'",
        );
        assert_eq!(plain, 2);
        let advice: String =
            value(&mut client, "SELECT pg_qualstats_index_advisor(min_filter => 50, min_selectivity => 10)::text");
        assert!(advice.contains("bare USING btree (n"), "{advice}");
    });
}

#[test]
fn statements_are_counted() {
    let options =
        |options: snowflake_test::Options| options.set("pg_stat_statements.track = all").set("compute_query_id = on");
    beside_with("pg_stat_statements, pg_stat_kcache", "pg_stat_statements pg_stat_kcache", options, |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        execute(
            &mut client,
            "CREATE FUNCTION of_day() RETURNS bigint LANGUAGE sql AS \
             'SELECT count(*) FROM r WHERE snowflake_timestamp(id) > timestamptz ''2026-01-05 00:00+00'''",
        );
        execute(&mut client, "SELECT pg_stat_statements_reset()");
        for query in QUERIES {
            same_rows(&mut client, query);
            // By its text, up to its first constant, and not by its plan: both ways are one.
            let counted = "SELECT calls || ' ' || rows FROM pg_stat_statements WHERE query LIKE $1 AND toplevel ORDER BY calls DESC";
            let begin = query.split(|c: char| c.is_ascii_digit() || c == '\'').next().unwrap();
            let found: Vec<String> =
                client.query(counted, &[&format!("{begin}%")]).unwrap().iter().map(|row| row.get(0)).collect();
            let expected = if query.contains("LIMIT 10") { "2 20" } else { "2 2" };
            assert_eq!(found, [expected], "{query}");
        }
        same_rows(&mut client, "SELECT of_day()");
        let nested: i64 = value(
            &mut client,
            "SELECT calls FROM pg_stat_statements WHERE NOT toplevel AND query LIKE '%snowflake_timestamp%'",
        );
        assert_eq!(nested, 2);
        let kernel: i64 =
            value(&mut client, "SELECT count(*) FROM pg_stat_kcache_detail WHERE query LIKE '%snowflake_timestamp%'");
        assert!(kernel > 5, "{kernel}");
    });
}

#[test]
fn plans_are_logged() {
    let options = |options: snowflake_test::Options| {
        options
            .set("auto_explain.log_min_duration = 0")
            .set("auto_explain.log_nested_statements = on")
            .set("auto_explain.log_analyze = on")
            .set("auto_explain.log_verbose = on")
            .set("auto_explain.log_buffers = on")
    };
    beside_with("auto_explain", "", options, |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        client
            .batch_execute(
                "CREATE FUNCTION of_day(since timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE result bigint; BEGIN \
                 SELECT count(*) INTO result FROM r WHERE snowflake_timestamp(id) >= since AND snowflake_timestamp(id) < since + interval '1 hour'; \
                 RETURN result; END $$",
            )
            .unwrap();
        let logged = |before: usize| cluster.log()[before..].to_owned();
        for query in [DAY, "SELECT of_day('2026-01-05 00:00+00')"] {
            let before = cluster.log().len();
            rows(&mut client, query);
            let new = logged(before);
            assert!(new.contains("Query Text: "), "{query}:\n{new}");
            assert!(new.contains("using r_pkey on public.r"), "{query}:\n{new}");
            assert!(new.contains("Index Cond: "), "{query}:\n{new}");
        }
        for query in QUERIES {
            same_rows(&mut client, query);
        }
    });
}
