//! `WHERE CURRENT OF` a cursor over partitions: PostgreSQL looks for the partitions in the cursor's plan, where those that were pruned are not. So it
//! fails as it does where a condition on the ID prunes them.

use snowflake_test::Cluster;

#[test]
fn the_current_row_is_found_as_by_a_condition_on_the_id() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE parts (id bigint PRIMARY KEY, n integer) PARTITION BY RANGE (id);
             DO $$
             DECLARE middle bigint := snowflake_min_id('2026-01-01+00');
             BEGIN
                 EXECUTE format('CREATE TABLE parts_0 PARTITION OF parts FOR VALUES FROM (0) TO (%s)', middle);
                 EXECUTE format('CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (%s) TO (MAXVALUE)', middle);
             END $$;
             INSERT INTO parts SELECT snowflake_min_id('2025-12-31+00'::timestamptz + i * interval '12 hours'), i
             FROM generate_series(0, 5) AS i",
        )
        .unwrap();
    let by_id: i64 = client.query_one("SELECT snowflake_min_id('2026-01-01+00')", &[]).unwrap().get(0);
    let mut update = |plan_by_time: &str, condition: &str, locking: &str| {
        let sql = format!(
            "BEGIN; SET LOCAL pg_snowflake.plan_by_time = {plan_by_time};
             DECLARE c CURSOR FOR SELECT * FROM parts WHERE {condition} {locking};
             FETCH c; UPDATE parts SET n = n + 1 WHERE CURRENT OF c"
        );
        let result = client.batch_execute(&sql).map_err(|error| error.as_db_error().unwrap().message().to_owned());
        client.batch_execute("ROLLBACK").unwrap();
        result
    };
    let by_time = "snowflake_timestamp(id) >= '2026-01-01+00'";
    for locking in ["", "FOR UPDATE"] {
        let pruned = update("on", by_time, locking);
        assert!(pruned.is_err());
        assert_eq!(pruned, update("off", &format!("id >= {by_id}"), locking));
        assert_eq!(update("on", "n >= 2", locking), update("off", "n >= 2", locking));
    }
    assert_eq!(update("off", by_time, "FOR UPDATE"), Ok(()));
}
