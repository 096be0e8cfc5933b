//! `snowflake_timestamp(id) = ANY (…)` is read by one element after the other: whatever the array is, where it comes from, and what the statement
//! does with the rows.

use postgres::Client;
use snowflake_test::{Cluster, value};

const TABLE: &str = "
    CREATE TABLE r (id bigint PRIMARY KEY, tenant integer, n integer);
    INSERT INTO r SELECT snowflake_min_id('2026-01-01+00'::timestamptz + i * interval '10 s') + i % 3, i % 20, i FROM generate_series(0, 49999) AS i;
    INSERT INTO r SELECT id + 1, tenant, -n FROM r WHERE n % 100 = 7;
    CREATE INDEX ON r (tenant, id);
    CREATE TABLE long (id bigint PRIMARY KEY, n integer);
    INSERT INTO long SELECT snowflake_min_id('2026-01-01+00'::timestamptz + i * interval '7 min'), i FROM generate_series(0, 49999) AS i";

fn cluster() -> (Cluster, Client) {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client.batch_execute(TABLE).unwrap();
    client.batch_execute("VACUUM ANALYZE r").unwrap();
    client.batch_execute("VACUUM ANALYZE long").unwrap();
    (cluster, client)
}

fn plan(client: &mut Client, query: &str) -> String {
    let rows = client.query(&format!("EXPLAIN (COSTS OFF) {query}"), &[]).unwrap();
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}

/// The sum of the rows' numbers, in text, with the parameter on and off. What is planned with it on reads an index in a loop.
#[track_caller]
fn agree(client: &mut Client, query: &str) {
    let plan = plan(client, query);
    assert!(
        plan.contains("Function Scan on unnest elements")
            && (plan.contains("using r_") || plan.contains("using long_")),
        "{query}\n{plan}"
    );
    let on: String = value(client, query);
    client.batch_execute("SET pg_snowflake.plan_by_time = off").unwrap();
    let off: String = value(client, query);
    client.batch_execute("RESET pg_snowflake.plan_by_time").unwrap();
    assert_eq!(on, off, "{query}");
}

const ROWS: &str = "SELECT concat(count(*), ' ', sum(n), ' ', sum(id)) FROM r WHERE";

#[test]
fn any_array_has_its_rows_once() {
    let (_cluster, mut client) = cluster();
    // A time with several rows, one with one, one with none, NULL, infinity, and each of them twice.
    for list in [
        "'{2026-01-01 00:01:10+00, 2026-01-01 00:00:30+00, 2026-01-01 00:01:10+00, 2026-01-01 00:00:01+00, NULL, infinity, -infinity}'::timestamptz[]",
        "'{{2026-01-01 00:01:10+00, 2026-01-01 00:00:30+00}, {2026-01-02 00:01:10+00, NULL}}'::timestamptz[]",
        "'{}'::timestamptz[] || '2026-01-01 00:01:10+00'::timestamptz || NULL::timestamptz",
        "ARRAY(SELECT '2026-01-01 00:00:10+00'::timestamptz + i * interval '1 min' FROM generate_series(0, 9) AS i)",
        "(SELECT array_agg('2026-01-01 00:00:10+00'::timestamptz + i * interval '1 min') FROM generate_series(0, 9) AS i)::timestamptz[]",
        "ARRAY[date_trunc('day', '2026-01-03 12:00+00'::timestamptz), current_timestamp, now() - interval '1 day']",
    ] {
        agree(&mut client, &format!("{ROWS} snowflake_timestamp(id) = ANY ({list})"));
        agree(&mut client, &format!("{ROWS} snowflake_timestamp(id) = ANY ({list}) AND tenant = 7"));
    }
    // What else is said of the time excludes elements before they are looked for.
    let query = format!(
        "{ROWS} snowflake_timestamp(id) = ANY (ARRAY(SELECT '2026-01-01+00'::timestamptz + i * interval '10 s' \
        FROM generate_series(0, 999) AS i)) AND snowflake_timestamp(id) >= '2026-01-01 02:00+00' AND snowflake_timestamp(id) < '2026-01-01 02:01+00'"
    );
    assert!(plan(&mut client, &query).contains("Filter: ((element >="));
    agree(&mut client, &query);
    assert!(value::<String>(&mut client, &query).starts_with("6 "));
    // NULL, and no array at all, have no rows.
    for list in ["NULL::timestamptz[]", "'{}'::timestamptz[]", "(SELECT NULL::timestamptz[])::timestamptz[]"] {
        let rows: i64 =
            value(&mut client, &format!("SELECT count(*) FROM r WHERE snowflake_timestamp(id) = ANY ({list})"));
        assert_eq!(rows, 0, "{list}");
    }
    // By the thousand, and so many that all rows are read.
    for (step, is_read) in [(500, true), (2, false)] {
        let list = format!(
            "(SELECT array_agg('2026-01-01+00'::timestamptz + i * interval '10 s') FROM generate_series(0, 49999, {step}) AS i)"
        );
        let list: String = value(&mut client, &format!("SELECT quote_literal({list}) || '::timestamptz[]'"));
        let query = format!("{ROWS} snowflake_timestamp(id) = ANY ({list})");
        assert_eq!(plan(&mut client, &query).contains("elements"), is_read);
        let on: String = value(&mut client, &query);
        assert!(on.starts_with(if is_read { "100 " } else { "25" }), "{on}");
    }
}

#[test]
fn what_is_made_of_a_time_is_read_so_too() {
    let (_cluster, mut client) = cluster();
    for zone in ["UTC", "Europe/Berlin", "Pacific/Apia", "America/St_Johns"] {
        client.batch_execute(&format!("SET timezone = '{zone}'")).unwrap();
        for condition in [
            "snowflake_timestamp(id)::date IN ('2026-01-02', '2026-01-03', '2026-01-03', NULL)",
            "snowflake_timestamp(id)::date = ANY (ARRAY(SELECT '2026-01-02'::date + i FROM generate_series(0, 2) AS i))",
            "date_trunc('hour', snowflake_timestamp(id)) IN ('2026-01-02 03:00+00', '2026-01-02 04:00+00', '2026-01-04 03:30+00')",
            "snowflake_timestamp(id) AT TIME ZONE 'Asia/Tokyo' IN ('2026-01-02 03:00', '2026-01-02 04:00')",
        ] {
            agree(
                &mut client,
                &format!("SELECT concat(count(*), ' ', sum(n), ' ', sum(id)) FROM long WHERE {condition}"),
            );
        }
    }
}

#[test]
fn an_array_is_a_parameter() {
    let (_cluster, mut client) = cluster();
    client
        .batch_execute(
            "PREPARE p (timestamptz[]) AS SELECT concat(count(*), ' ', sum(n)) FROM r WHERE snowflake_timestamp(id) = ANY ($1);
             SET plan_cache_mode = force_generic_plan",
        )
        .unwrap();
    for (list, rows) in [
        ("'{2026-01-01 00:00:10+00, 2026-01-01 00:00:20+00}'", "2 3"),
        ("'{2026-01-01 00:00:10+00, 2026-01-01 00:00:10+00, NULL}'", "1 1"),
        ("'{}'", "0 "),
        ("NULL", "0 "),
    ] {
        assert_eq!(value::<String>(&mut client, &format!("EXECUTE p ({list})")), rows);
    }
    // And of a row of another table, for each of which a subquery runs.
    let of_each = "SELECT string_agg((SELECT count(*) FROM r WHERE snowflake_timestamp(id) = ANY (a))::text, ',' ORDER BY k) FROM \
                   (VALUES (1, ARRAY['2026-01-01 00:00:10+00'::timestamptz]), (2, NULL), (3, '{}'), \
                   (4, ARRAY['2026-01-01 00:00:10+00'::timestamptz, '2026-01-01 00:01:10+00'])) AS v (k, a)";
    assert!(plan(&mut client, of_each).contains("elements"));
    assert_eq!(value::<String>(&mut client, of_each), "1,0,0,3");
}

/// In the order of the time without a sort, and of rows with the same time by the ID.
#[test]
fn the_rows_come_in_order() {
    let (_cluster, mut client) = cluster();
    let condition =
        "snowflake_timestamp(id) IN ('2026-01-01 00:01:10+00', '2026-01-03 00:00+00', '2026-01-01 00:00:30+00')";
    for (order, sorts) in [("snowflake_timestamp(id)", false), ("id", false), ("id DESC", true)] {
        let query = format!("SELECT id FROM r WHERE {condition} ORDER BY {order}");
        assert_eq!(plan(&mut client, &query).contains("Sort"), sorts, "{query}");
        let ids: Vec<i64> = client.query(&query, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        if sorts {
            sorted.reverse();
        }
        assert_eq!(ids, sorted, "{query}");
        assert_eq!(ids.len(), 4);
    }
}

#[test]
fn rows_are_changed_and_locked() {
    let (cluster, mut client) = cluster();
    let list =
        "snowflake_timestamp(id) IN ('2026-01-01 00:00:10+00', '2026-01-01 00:00:20+00', '2026-01-01 00:00:30+00')";
    let update = format!("UPDATE r SET n = n + 1000 WHERE {list}");
    // The scans of what is changed or locked look again at what another session has changed, each by its own conditions.
    assert!(!plan(&mut client, &update).contains("elements"));
    let far =
        "snowflake_timestamp(id) IN ('2026-01-01 00:00:10+00', '2026-01-03 00:00:20+00', '2026-01-05 00:00:30+00')";
    for statement in ["UPDATE r SET n = n + 1000 WHERE", "SELECT FROM r WHERE"] {
        let locks = if statement.starts_with("SELECT") { "FOR UPDATE" } else { "" };
        let plan = plan(&mut client, &format!("{statement} {far} {locks}"));
        assert!(plan.contains("BitmapOr") && !plan.contains("elements"), "{plan}");
    }
    // A list within an OR, too; from 18 on, PostgreSQL would make one range of it.
    let either = plan(&mut client, &format!("SELECT FROM r WHERE {far} OR tenant = 99"));
    assert!(either.matches("Bitmap Index Scan").count() == 4, "{either}");
    assert_eq!(client.execute(&update, &[]).unwrap(), 3);
    assert_eq!(client.execute(&format!("DELETE FROM r WHERE {list} AND n = 1002"), &[]).unwrap(), 1);
    assert_eq!(client.execute(&format!("SELECT FROM r WHERE {list} FOR UPDATE"), &[]).unwrap(), 2);
    client
        .batch_execute(&format!(
            "BEGIN; DECLARE c CURSOR FOR SELECT * FROM r WHERE {list} FOR UPDATE; FETCH 2 FROM c; UPDATE r SET n = -1 WHERE CURRENT OF c; COMMIT"
        ))
        .unwrap();
    assert_eq!(value::<i64>(&mut client, &format!("SELECT count(*) FROM r WHERE {list} AND n = -1")), 1);

    // What another session has changed meanwhile is looked at again: by the conditions, once.
    let mut other = cluster.client();
    for (change, rows) in [
        ("n = n + 1", 2),
        // The row has another ID of the same time, or one of a time that is not in the list.
        ("id = id + 1", 2),
        ("id = snowflake_max_id('2026-01-09+00')", 1),
    ] {
        let mut transaction = other.transaction().unwrap();
        let last = format!("id = (SELECT max(id) FROM r WHERE {list})");
        transaction.execute(&format!("UPDATE r SET {change} WHERE {last}"), &[]).unwrap();
        let waits = std::thread::spawn({
            let mut third = cluster.client();
            let statement = format!("UPDATE r SET tenant = tenant WHERE {list}");
            move || third.execute(&statement, &[]).unwrap()
        });
        snowflake_test::check::wait_for("a session waits for the other one", || {
            value::<i64>(&mut client, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") > 0
        });
        transaction.commit().unwrap();
        assert_eq!(waits.join().unwrap(), rows, "{change}");
    }
}

/// A partition, a child, and a member of a UNION ALL are each read so; partitions that have none of the times are not read at all. A list within an
/// OR is not all of the condition.
#[test]
fn members_are_read_so() {
    let (_cluster, mut client) = cluster();
    client
        .batch_execute(
            "CREATE TABLE p (id bigint, tenant integer, n integer) PARTITION BY RANGE (id);
             DO $$ BEGIN FOR day IN 0..5 LOOP EXECUTE format('CREATE TABLE p_%s PARTITION OF p FOR VALUES FROM (%s) TO (%s)', day,
                 snowflake_min_id('2026-01-01+00'::timestamptz + day * interval '1 day'), snowflake_min_id('2026-01-02+00'::timestamptz + day * interval '1 day')); END LOOP; END $$;
             CREATE INDEX ON p (id); CREATE INDEX ON p (n); CREATE INDEX ON r (n); INSERT INTO p SELECT * FROM r; ANALYZE p;
             CREATE VIEW u AS SELECT * FROM r UNION ALL SELECT * FROM p;
             CREATE TABLE c () INHERITS (r); CREATE INDEX ON c (id); CREATE INDEX ON c (n); INSERT INTO c SELECT * FROM r; ANALYZE c",
        )
        .unwrap();
    let list = "snowflake_timestamp(id) IN ('2026-01-02 00:01:10+00', '2026-01-03 00:00+00', '2026-01-03 00:00:30+00')";
    let either: &str = &format!("({list} OR n < 3)");
    let cases = [("p", 2), ("u", 4), ("r", 2), ("ONLY r", 1)];
    for (table, condition, scans) in cases.iter().flat_map(|&(table, scans)| [(table, list, scans), (table, either, 0)])
    {
        let query = format!("SELECT concat(count(*), ' ', sum(n)) FROM {table} WHERE {condition}");
        let plan = plan(&mut client, &query);
        assert_eq!(plan.matches("Function Scan on unnest elements").count(), scans, "{query}\n{plan}");
        let on: String = value(&mut client, &query);
        client.batch_execute("SET pg_snowflake.plan_by_time = off").unwrap();
        assert_eq!(value::<String>(&mut client, &query), on, "{query}");
        client.batch_execute("RESET pg_snowflake.plan_by_time").unwrap();
    }
}

/// An alternative of an OR proves the condition of a partial index, which the query as a whole does not, or says what others do not.
#[test]
fn what_one_alternative_reads_is_not_read_for_all() {
    let (_cluster, mut client) = cluster();
    client
        .batch_execute(
            "CREATE TABLE o (id bigint PRIMARY KEY, open bool NOT NULL, vip bool NOT NULL, a integer NOT NULL, b integer NOT NULL);
             INSERT INTO o SELECT snowflake_min_id('2026-01-01+00'::timestamptz + i * interval '1 s'), i % 100 = 0, i % 50 = 1, i % 7, i % 11
                 FROM generate_series(1, 20000) AS i;
             CREATE INDEX o_open ON o (id) WHERE open; CREATE INDEX o_late ON o (id) WHERE id >= 2000000000000000; CREATE INDEX ON o (a, id);
             CREATE INDEX o_a ON o (id) WHERE a = 3",
        )
        .unwrap();
    client.batch_execute("VACUUM ANALYZE o").unwrap();
    let times = "'{2026-01-01 00:01:40+00, 2026-01-01 00:01:41+00, 2026-01-01 00:03:20+00, 2026-01-01 01:00:03+00, 2026-01-01 01:00:04+00}'";
    let mut all = 0;
    for one in [
        "open",
        "a = 3",
        "a = 3 AND open",
        "id >= 2000000000000000",
        "snowflake_timestamp(id) = '2026-01-01 00:01:40+00'",
    ] {
        for other in ["vip", "b = 5", "open AND vip", "(id, b) > (5, 5)"] {
            for kind in ["force_custom_plan", "force_generic_plan"] {
                let query = format!(
                    "SELECT concat(count(*), ' ', sum(id)) FROM o WHERE snowflake_timestamp(id) = ANY ($1) AND ({one} OR {other})"
                );
                let mut run = |by_time: &str| {
                    client
                        .batch_execute(&format!(
                            "SET plan_cache_mode = {kind}; SET pg_snowflake.plan_by_time = {by_time}; PREPARE q (timestamptz[]) AS {query}"
                        ))
                        .unwrap();
                    let rows: String = value(&mut client, &format!("EXECUTE q ({times})"));
                    client.batch_execute("DEALLOCATE q").unwrap();
                    rows
                };
                let on = run("on");
                assert_eq!(on, run("off"), "{one} OR {other}, {kind}");
                all += 1;
            }
        }
    }
    assert_eq!(all, 40);
}
