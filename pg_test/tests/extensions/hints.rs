//! pg_hint_plan: a hint is obeyed, whatever our hooks would rather do, and the rows are the same.

use super::queries::{create_plain, over};
use super::{ROWS, assert_plan, beside, execute, is_as_expected, plan, rows, same_rows};
use std::fmt::Write as _;

/// Queries by time.
const DAY: &str = "SELECT * FROM r WHERE snowflake_timestamp(r.id) >= '2026-01-05 00:00+00' AND snowflake_timestamp(r.id) < '2026-01-06 00:00+00' ORDER BY 1";
const BOTH: &str = "SELECT * FROM both_ways WHERE snowflake_timestamp(id) >= '2026-01-05 00:00+00' AND snowflake_timestamp(id) < '2026-01-06 00:00+00' ORDER BY 1";
const NEWEST: &str = "SELECT id FROM r ORDER BY snowflake_timestamp(id) DESC LIMIT 10";
const NEWEST_BOTH: &str = "SELECT id FROM both_ways ORDER BY snowflake_timestamp(id) DESC LIMIT 10";
const LATEST: &str = "SELECT max(snowflake_timestamp(id)) FROM r";
const JOIN: &str =
    "SELECT count(*), sum(r.n) FROM r JOIN other ON snowflake_timestamp(r.id) = snowflake_timestamp(other.id)";
const RANGES: &str = "SELECT count(*), sum(r.n) FROM other JOIN r ON snowflake_timestamp(r.id) <= snowflake_timestamp(other.id) \
     AND snowflake_timestamp(r.id) > snowflake_timestamp(other.id) - interval '5 minutes'";

/// A hint, a query, and what its plan has, or, marked by `!`, does not have.
type Hinted = (&'static str, &'static str, &'static [&'static str]);

const SCANS: [Hinted; 9] = [
    ("", DAY, &["Index Scan using r_pkey"]),
    ("IndexScan(r r_pkey)", DAY, &["Index Scan using r_pkey on r", "Index Cond"]),
    ("IndexScan(r)", DAY, &["Index Scan using r_pkey on r", "Index Cond"]),
    ("BitmapScan(r r_pkey)", DAY, &["Bitmap Index Scan on r_pkey", "Index Cond"]),
    ("SeqScan(r)", DAY, &["Seq Scan on r", "!Index"]),
    ("NoIndexScan(r)", DAY, &["!Index Scan using", "!Index Only Scan"]),
    ("Set(enable_indexscan off) Set(enable_bitmapscan off)", DAY, &["Seq Scan on r", "!Index"]),
    (
        "IndexScan(both_ways both_ways_pkey)",
        BOTH,
        &["Index Scan using both_ways_pkey", "Index Cond", "!both_ways_time"],
    ),
    ("SeqScan(both_ways)", BOTH, &["Seq Scan on both_ways", "!Index"]),
];

const ORDERS: [Hinted; 10] = [
    ("", NEWEST, &["Index Only Scan Backward using r_pkey", "!Sort"]),
    ("SeqScan(r)", NEWEST, &["Seq Scan on r", "Sort", "!Index"]),
    ("SeqScan(r)", LATEST, &["Seq Scan on r", "!Index"]),
    ("SeqScan(both_ways)", NEWEST_BOTH, &["Seq Scan on both_ways", "!Index"]),
    ("NoIndexScan(r)", NEWEST, &["!Index Scan Backward using", "!Index Scan using"]),
    ("NoIndexOnlyScan(r)", NEWEST, &["Index Scan Backward using r_pkey", "!Sort"]),
    ("IndexOnlyScan(r)", NEWEST, &["Index Only Scan Backward using r_pkey", "!Sort"]),
    ("IndexScan(r r_pkey)", NEWEST, &["Index Scan Backward using r_pkey", "!Sort"]),
    ("IndexScan(r r_pkey)", LATEST, &["Index Scan Backward using r_pkey", "!Aggregate"]),
    ("IndexScan(both_ways both_ways_pkey)", NEWEST_BOTH, &["Index Scan Backward using both_ways_pkey", "!Sort"]),
];

const INDEXES_ON_THE_TIME: [Hinted; 3] = [
    (
        "IndexScan(both_ways both_ways_time)",
        BOTH,
        &["Index Scan using both_ways_time", "Index Cond", "!both_ways_pkey"],
    ),
    ("BitmapScan(both_ways both_ways_time)", BOTH, &["Bitmap Index Scan on both_ways_time", "!both_ways_pkey"]),
    ("IndexScan(both_ways both_ways_time)", NEWEST_BOTH, &["Index Scan Backward using both_ways_time", "!Sort"]),
];

const JOINS: [Hinted; 8] = [
    ("HashJoin(r other)", JOIN, &["Hash Join"]),
    ("MergeJoin(r other)", JOIN, &["Merge Join"]),
    ("NestLoop(r other)", JOIN, &["Nested Loop"]),
    (
        "Leading((other r)) NestLoop(r other) IndexScan(r r_pkey)",
        JOIN,
        &["Nested Loop\n", "Index Scan using r_pkey", "Index Cond"],
    ),
    ("Leading((r other)) HashJoin(r other)", JOIN, &["Hash Join", "->  Seq Scan on r\n", "->  Hash\n"]),
    ("Rows(r other #20000) HashJoin(r other)", JOIN, &["Hash Join"]),
    ("Leading((other r)) NestLoop(r other) SeqScan(r)", RANGES, &["Nested Loop\n", "Seq Scan on r", "!Index"]),
    ("IndexScan(r r_pkey)", RANGES, &["Index Scan using r_pkey", "Index Cond"]),
];

#[test]
fn of_scans() {
    are_obeyed(&SCANS);
}

#[test]
fn of_scans_in_order() {
    are_obeyed(&ORDERS);
}

#[test]
fn of_indexes_on_the_time() {
    are_obeyed(&INDEXES_ON_THE_TIME);
}

#[test]
fn of_joins() {
    are_obeyed(&JOINS);
}

/// Whatever a hint makes of a plan.
#[test]
fn leave_the_rows_as_they_are() {
    beside("pg_hint_plan", "pg_hint_plan", |cluster| {
        let mut client = cluster.client();
        create_plain(&mut client);
        execute(&mut client, "CREATE INDEX ON other (snowflake_timestamp(id)); VACUUM ANALYZE");
        for kind in ["Seq", "Index", "IndexOnly", "Bitmap", "NoSeq", "NoIndex", "NoBitmap"] {
            let hints = ["plain", "other", "x", "o", "a", "b"].map(|table| format!("{kind}Scan({table})")).join(" ");
            for query in over("plain") {
                let hinted = format!("/*+ {hints} HashJoin(a b) MergeJoin(x other) */ {query}");
                assert_eq!(same_rows(&mut client, &hinted), rows(&mut client, &query), "{hinted}");
            }
        }
    });
}

fn are_obeyed(hints: &[Hinted]) {
    beside("pg_hint_plan", "pg_hint_plan", |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        let mut ignored = String::new();
        for (hint, query, texts) in hints {
            let hinted = format!("/*+ {hint} */ {query}");
            assert_eq!(same_rows(&mut client, &hinted), rows(&mut client, query), "{hinted}");
            let plan = plan(&mut client, &hinted);
            if !is_as_expected(&plan, texts) {
                write!(ignored, "\n{hinted}: not with {texts:?}:\n{plan}\n").unwrap();
            }
        }
        assert!(ignored.is_empty(), "{ignored}");
    });
}

/// Where the ID is an expression, and the table may have no index without one. pg_hint_plan looks up the name of each index that the planner has.
#[test]
fn of_ids_that_are_expressions() {
    beside("pg_hint_plan", "pg_hint_plan", |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        execute(
            &mut client,
            "CREATE TABLE docs AS SELECT id::text AS val, n FROM r; CREATE INDEX docs_by ON docs ((val::bigint), (n % 10)); ANALYZE docs",
        );
        let query = "SELECT * FROM docs WHERE snowflake_timestamp(val::bigint) > '2026-01-05 00:00+00' AND n % 10 = 3 ORDER BY 1";
        assert_plan(&mut client, query, &["docs_by"]);
        for also in ["", "CREATE INDEX docs_n ON docs (n)"] {
            execute(&mut client, also);
            for hint in [
                "IndexScan(docs docs_by)",
                "IndexScan(docs)",
                "BitmapScan(docs docs_by)",
                "NoIndexScan(docs)",
                "IndexScan(docs docs_n)",
            ] {
                let hinted = format!("/*+ {hint} */ {query}");
                assert_eq!(same_rows(&mut client, &hinted), rows(&mut client, query), "{hinted}");
            }
        }
    });
}

/// One statement alone is planned without.
#[test]
fn that_set_the_parameter() {
    beside("pg_hint_plan", "pg_hint_plan", |cluster| {
        let mut client = cluster.client();
        execute(&mut client, ROWS);
        let off = format!("/*+ Set(pg_snowflake.plan_by_time off) */ {DAY}");
        assert_plan(&mut client, &off, &["Seq Scan on r", "Filter: ((snowflake_timestamp(id)", "!Index Cond"]);
        assert_plan(&mut client, DAY, &["Index Cond"]);
        assert_eq!(rows(&mut client, &off), rows(&mut client, DAY));
    });
}
