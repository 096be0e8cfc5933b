//! The same rows, always: random queries over the times of IDs return the same with `pg_snowflake.plan_by_time` on,
//! with it off, and on a twin table that has the time as a column of its own.
//!
//! * `QUERIES=20000`: how many; 1,000 by default
//! * `SEED=7`: which; 1 by default
//! * `ONLY=123`: only the query of this number, with its plans and the numbers of its rows
//! * `FAILURES=20`: ends after so many failures; 1 by default
//!
//! Further tests: no query does more work, nor takes longer to plan ([`work`]), numbers that are no IDs are never included ([`strangers`]), plans that are kept are right ([`kept`]), and nothing is evaluated for a row that a
//! view hides ([`barriers`]).
//!
//! A query is made from the seed and its number alone. What it says of the current time depends on when the test began.

mod barriers;
mod compare;
mod conditions;
mod cursors;
mod derived;
mod elements;
mod expressions;
mod generator;
mod guests;
mod instants;
mod kept;
mod orders;
mod outdone;
mod settings;
mod shapes;
mod sources;
mod strangers;
mod tables;
mod unions;
mod work;

use compare::Outcome;
use generator::Generator;
use snowflake_test::{Cluster, variable};
use std::collections::BTreeMap;
use tables::Schema;

#[test]
fn the_same_rows() {
    let (queries, seed, only) = (variable("QUERIES").unwrap_or(1000), variable("SEED").unwrap_or(1), variable("ONLY"));
    let failures = variable("FAILURES").unwrap_or(1);
    let cluster = Cluster::options().set("autovacuum = off").set("max_worker_processes = 32").start();
    let mut client = cluster.client();
    let schema = Schema::create(&mut client, seed);
    let known = settings::known(&mut client);
    let (mut differ, mut with_rows, mut failed) = (0, 0, 0);
    let mut shapes = BTreeMap::<&str, [usize; 2]>::new();
    let numbers = only.map_or(1..=queries, |number| number..=number);
    for number in numbers.clone() {
        let query = Generator::new(&schema, &known, seed, number).query();
        let Outcome { plans_differ, rows } = match compare::all_ways(&mut client, &query, only.is_some()) {
            Ok(outcome) => outcome,
            Err(report) => {
                println!("SEED={seed}, query {number}:\n{report}");
                failed += 1;
                assert!(failed < failures, "{failed} queries failed");
                continue;
            }
        };
        let count = shapes.entry(query.shape).or_default();
        count[0] += 1;
        count[1] += usize::from(plans_differ);
        differ += usize::from(plans_differ);
        with_rows += usize::from(rows > 0);
        // What was rolled back is still in the tables.
        if number % 500 == 0 {
            client.batch_execute("VACUUM").unwrap();
        }
    }
    assert_eq!(failed, 0, "queries failed");
    let all = numbers.count();
    println!(
        "{all} queries agree; {with_rows} return rows; {differ} have another plan with the parameter than without"
    );
    for (shape, [count, differ]) in shapes {
        println!("{shape:>12}: {count}, of which {differ} are planned in another way");
    }
    if only.is_none() {
        assert!(with_rows * 2 > all, "too few queries return rows");
        assert!(differ * 3 > all, "the parameter changes too few plans");
    }
}
