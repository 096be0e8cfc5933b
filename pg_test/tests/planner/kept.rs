//! Plans that are kept, and what they were made from changes.

use fastrand::Rng;
use postgres::Client;
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

/// Whether a query says something of times is found out once for all of its tables. The state of the next query may lie in the same place.
#[test]
fn what_one_query_says_is_not_taken_for_the_next() {
    let cluster = Cluster::options().start();
    cluster
        .client()
        .batch_execute(
            "CREATE TABLE one (id bigint PRIMARY KEY, n bigint);
             CREATE TABLE other (id bigint PRIMARY KEY, n bigint);
             CREATE TABLE parts (id bigint PRIMARY KEY, n bigint) PARTITION BY RANGE (id);
             SELECT snowflake_create_partitions('parts', '1 month', '2026-01-01', '2026-06-01');
             INSERT INTO one SELECT snowflake_min_id('2026-01-01'::timestamptz + n * interval '1 min'), n FROM generate_series(1, 2000) n;
             INSERT INTO other SELECT * FROM one; INSERT INTO parts SELECT * FROM one; ANALYZE",
        )
        .unwrap();
    let (range, early) =
        ("snowflake_timestamp(o.id) < '2026-01-01 00:10Z'", "snowflake_timestamp(id) < '2026-01-01 00:10Z'");
    let values = "(VALUES (1), (2)) AS v (n)";
    let queries: Vec<String> = [
        format!("SELECT count(*) FROM one WHERE {early}"),
        "SELECT count(*) FROM one WHERE n = 5".to_owned(),
        "SELECT count(*) FROM one AS a JOIN other AS o ON a.id = o.n".to_owned(),
        format!("SELECT count(*) FROM one AS a JOIN other AS o ON a.id = o.n WHERE {range}"),
        format!("SELECT count(*) FROM {values} JOIN other AS o ON v.n = o.n WHERE {range}"),
        format!("SELECT count(*) FROM {values} JOIN other AS o ON v.n = o.n"),
        format!("SELECT count(*) FROM (SELECT n FROM one LIMIT 5) AS s JOIN other AS o ON s.n = o.n WHERE {range}"),
        "SELECT count(*) FROM (SELECT n FROM one LIMIT 5) AS s JOIN other AS o ON s.n = o.n".to_owned(),
        format!("SELECT count(*) FROM (SELECT n FROM one WHERE {early} LIMIT 5) AS s JOIN other AS o ON s.n = o.n"),
        format!("SELECT count(*) FROM parts AS o WHERE {range}"),
        "SELECT count(*) FROM parts AS o JOIN one AS a ON a.n = o.n".to_owned(),
        format!("SELECT count(*) FROM one WHERE n IN (SELECT n FROM other WHERE {early})"),
        "SELECT id FROM one UNION ALL SELECT id FROM other".to_owned(),
        "SELECT id FROM other ORDER BY snowflake_timestamp(id) LIMIT 3".to_owned(),
        "SELECT id FROM other ORDER BY n LIMIT 3".to_owned(),
    ]
    .into_iter()
    .collect();
    let plan = |session: &mut Client, query: &String| -> String {
        let rows = session.query(&format!("EXPLAIN (COSTS OFF) {query}"), &[]).unwrap();
        rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
    };
    let alone: Vec<String> = queries.iter().map(|query| plan(&mut cluster.client(), query)).collect();
    assert!(alone[0].contains("Index") && alone[3].contains("Index Cond: ((id"), "{alone:#?}");
    let (mut session, mut random) = (cluster.client(), Rng::with_seed(1));
    for _ in 0..1500 {
        let at = random.usize(..queries.len());
        assert_eq!(plan(&mut session, &queries[at]), alone[at], "{}", queries[at]);
    }
}
