//! Numbers that are no IDs of the layout have no time. Decoding them is an error; so without the planner's help, a query
//! over them fails, or not, as the order of its conditions has it. With it, a query may succeed, but such a number counts
//! as one without a time: it passes no condition that a NULL would not pass, and with an ID that is not NULL, it does not pass `IS NULL`.
//! Rows with IDs are all there.

use super::compare::{self, Row, Run};
use super::generator::{Generator, Order};
use super::settings;
use super::tables::{DEFAULT, Definition, OWN, Schema, table};
use snowflake_test::Cluster;

const TABLES: [Definition; 3] = [
    table("odd", &DEFAULT, 300, "bigint PRIMARY KEY", ""),
    table("odd_down", &OWN, 300, "bigint NOT NULL", "CREATE INDEX ON {t} (id DESC)"),
    table("odd_bare", &OWN, 300, "bigint NOT NULL", ""),
];

/// Numbers that are no IDs of any of these layouts, and those that are none of the second.
const NEVER: &str = "(-1), (-5), (-4194304), (-9223372036854775808)";
const NOT_OWN: &str = "(9007199254740992), (9007199254740993), (1000000000000000000), (9223372036854775807)";

#[test]
fn numbers_that_are_no_ids_are_not_included() {
    let cluster = Cluster::options().set("autovacuum = off").start();
    let mut client = cluster.client();
    let mut schema = Schema::create(&mut client, 1);
    schema.only(&mut client, &TABLES);
    for (table, numbers) in [("odd", NEVER.to_owned()), ("odd_down", format!("{NEVER}, {NOT_OWN}"))] {
        let t = if table == "odd" { vec!["odd"] } else { vec!["odd_down", "odd_bare"] };
        for t in t.into_iter().flat_map(|t| [t.to_owned(), format!("{t}_twin")]) {
            let due = "'2024-03-10+00'::timestamptz";
            let insert = format!("INSERT INTO {t} SELECT id, 1, id % 10, {due} FROM (VALUES {numbers}) AS no (id)");
            client.batch_execute(&insert).unwrap();
        }
    }
    client.batch_execute("VACUUM ANALYZE").unwrap();

    let known = settings::known(&mut client);
    let (mut succeeded, mut failed) = (0, 0);
    for number in 1..=500 {
        let mut generator = Generator::new(&schema, &known, 1, number);
        generator.source_of("a", number as usize % TABLES.len(), None);
        let subject = generator.subject("a");
        let condition = generator.condition(&subject);
        let text = format!("SELECT a.id FROM ‹a› WHERE {condition}");
        let query = generator.finish("strangers", text, Vec::new(), Order::Any);
        let [on, off, twin] = compare::each_way(&mut client, &query);
        let twin = twin.unwrap_or_else(|report| panic!("{number}: {report}"));
        match (on, off) {
            (Ok(on), off) => {
                succeeded += usize::from(off.is_err());
                let (ours, mut theirs) = (included(&on), included(&twin));
                if OF_NULL.iter().any(|words| condition.contains(words)) {
                    // The column is NULL for such a number, and the ID is not.
                    for (ours, theirs) in ours.iter().zip(&mut theirs) {
                        theirs.retain(|row| ours.contains(row) || !is_strange(row));
                    }
                }
                assert_eq!(ours, theirs, "{number}: {}{}", on.report(), twin.report());
            }
            (Err(on), Err(off)) => {
                failed += 1;
                assert!(on.contains("is not a snowflake ID") && off.contains("is not a snowflake ID"), "{on}\n{off}");
            }
            (Err(on), Ok(_)) => panic!("{number}: {}{on}", compare::settings(&query)),
        }
    }
    println!("{succeeded} queries succeed only with the parameter, {failed} fail with and without");
    assert!(succeeded > 100);
}

/// What can be true of NULL; a range from NULL is one from the beginning.
const OF_NULL: [&str; 3] = ["IS NULL", "IS NOT FALSE", "range("];

/// Whether a row has a number that is no ID of one of the layouts.
fn is_strange(row: &Row) -> bool {
    row[0].as_ref().is_some_and(|id| NEVER.contains(&format!("({id})")) || NOT_OWN.contains(&format!("({id})")))
}

fn included(run: &Run) -> Vec<Vec<Row>> {
    let sorted = |rows: &Vec<Row>| {
        let mut rows = rows.clone();
        rows.sort_unstable();
        rows
    };
    run.results.iter().map(sorted).collect()
}
