//! Plans that are kept, and what they were made from changes.

use snowflake_test::{Cluster, value};

/// Bounds by constants are numbers in a plan, which depend on the layout on record.
#[test]
fn a_plan_does_not_outlive_the_layout_that_it_was_made_for() {
    let cluster = Cluster::options().start();
    let mut session = cluster.client();
    session
        .batch_execute(
            "CREATE TABLE dated (id bigint PRIMARY KEY);
             INSERT INTO dated SELECT snowflake_encode('2026-01-01'::timestamptz + n * interval '1 day', 1) FROM generate_series(0, 9) n;
             -- As a dump of another server's brings it: all IDs are a year older.
             SELECT setval('_snowflake.epoch', last_value - 365 * 86400000000::bigint) FROM _snowflake.epoch;
             PREPARE of_2026 AS SELECT count(*) FROM dated WHERE snowflake_timestamp(id) >= '2026-01-01'",
        )
        .unwrap();
    let mut of_2026 = || {
        session.simple_query("EXECUTE of_2026").unwrap().iter().find_map(|message| match message {
            postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        })
    };
    for _ in 0..6 {
        assert_eq!(of_2026().as_deref(), Some("0"));
    }
    cluster.client().batch_execute("SELECT snowflake_adopt_layout()").unwrap();
    assert_eq!(of_2026().as_deref(), Some("10"));
    assert_eq!(
        value::<i64>(&mut cluster.client(), "SELECT count(*) FROM dated WHERE snowflake_timestamp(id) >= '2026-01-01'"),
        10
    );
}
