//! The hooks are guests in everybody's queries: what PostgreSQL or another extension has decided about a table stays as it is.

use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::query::value;
use snowflake_test::{Cluster, preloaded};

const ROWS: &str = "
    CREATE TABLE r (id bigint PRIMARY KEY, n integer);
    INSERT INTO r SELECT snowflake_min_id('2026-01-01') + n::bigint * 1000000, n FROM generate_series(1, 20000) n;
    CREATE TABLE other AS SELECT * FROM r WHERE n % 100 = 0;
    CREATE TABLE parts (id bigint PRIMARY KEY, n integer) PARTITION BY RANGE (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2026-01-01 00:00:02'));
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (snowflake_min_id('2026-01-01 00:00:02')) TO (MAXVALUE);
    INSERT INTO parts TABLE r;
    VACUUM ANALYZE";

fn rows() -> Cluster {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    ROWS.split(';').for_each(|statement| client.batch_execute(statement).unwrap());
    cluster
}

/// The result of a query, as text, with the hooks on and off.
fn both_ways(client: &mut Client, query: &str) -> [String; 2] {
    ["on", "off"].map(|state| {
        client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {state}")).unwrap();
        let text = format!("SELECT coalesce(string_agg(q::text, E'\\n'), '') FROM ({query}) q");
        value(client, &text)
    })
}

#[test]
fn a_sample_stays_a_sample() {
    let cluster = rows();
    let mut client = cluster.client();
    for sample in ["BERNOULLI (1) REPEATABLE (1)", "SYSTEM (5) REPEATABLE (7)"] {
        for query in [
            "SELECT id FROM SAMPLED ORDER BY snowflake_timestamp(id) LIMIT 100",
            "SELECT id FROM SAMPLED ORDER BY snowflake_timestamp(id) DESC, id DESC LIMIT 100",
            "SELECT max(snowflake_timestamp(id)), min(snowflake_timestamp(id)) FROM SAMPLED",
            "SELECT date_bin('1 s', snowflake_timestamp(id), '2026-01-01'), count(*) FROM SAMPLED GROUP BY 1 ORDER BY 1",
            "SELECT count(*) FROM SAMPLED JOIN other USING (n) WHERE snowflake_timestamp(r.id) = snowflake_timestamp(other.id)",
            "SELECT count(*) FROM SAMPLED WHERE snowflake_timestamp(id) >= '2026-01-01 00:00:01'",
            "SELECT DISTINCT ON (snowflake_timestamp(id)) id FROM SAMPLED ORDER BY snowflake_timestamp(id), id",
        ] {
            for (table, setting) in [("r", "on"), ("r", "off"), ("parts", "on")] {
                client
                    .batch_execute(&format!(
                        "SET enable_hashjoin = {setting}; SET enable_sort = {setting}; SET timezone = 'UTC'"
                    ))
                    .unwrap();
                let from = format!("{table} AS r TABLESAMPLE {sample}");
                let [on, off] = both_ways(&mut client, &query.replace("SAMPLED", &from));
                assert_eq!(on, off, "{from}: {query}");
            }
        }
    }
}

/// An index of PostgreSQL has 32 columns, and so have its arrays.
#[test]
fn any_number_of_expressions_can_be_grouped_by() {
    let cluster = rows();
    let mut client = cluster.client();
    for count in [31, 32, 33, 64, 65, 100, 300] {
        let terms: Vec<String> =
            (1..=count).map(|n| format!("date_bin('{n} ms', snowflake_timestamp(id), '2026-01-01')")).collect();
        let terms = terms.join(", ");
        for from in [
            "r WHERE n < 50",
            "(SELECT * FROM r WHERE false) r WHERE n < 50",
            "(SELECT * FROM r WHERE false) r",
            "parts r WHERE n < 50",
            "(SELECT * FROM r WHERE n > 5 UNION ALL SELECT * FROM other) r WHERE n < 50",
        ] {
            let [on, off] = both_ways(&mut client, &format!("SELECT count(*) FROM {from} GROUP BY {terms} ORDER BY 1"));
            assert_eq!(on, off, "{count} over {from}");
            let query = format!("SELECT count(*) FROM (SELECT DISTINCT {terms} FROM {from}) d");
            let [on, off] = both_ways(&mut client, &query);
            assert_eq!(on, off, "{count} over {from}");
        }
    }
}

#[test]
fn partitions_are_read_in_the_order_of_the_time() {
    let cluster = rows();
    let mut client = cluster.client();
    for query in [
        "SELECT snowflake_timestamp(id) FROM parts ORDER BY snowflake_timestamp(id) LIMIT 3",
        "SELECT * FROM parts ORDER BY snowflake_timestamp(id) DESC, id LIMIT 3",
        "SELECT max(snowflake_timestamp(id)) FROM parts",
        "SELECT n FROM parts JOIN other USING (n) ORDER BY snowflake_timestamp(parts.id) DESC LIMIT 3",
        "SELECT count(*) FROM parts JOIN r ON snowflake_timestamp(parts.id) = snowflake_timestamp(r.id)",
        "SELECT * FROM (TABLE parts UNION ALL TABLE r) u ORDER BY snowflake_timestamp(id), id LIMIT 3",
    ] {
        for setting in ["on", "off"] {
            client
                .batch_execute(&format!("SET enable_hashjoin = {setting}; SET enable_partitionwise_join = {setting}"))
                .unwrap();
            let [on, off] = both_ways(&mut client, query);
            assert_eq!(on, off, "{query}");
        }
    }
}

/// Whichever of the two is loaded first.
#[test]
fn what_another_extension_has_decided_about_a_table_stays() {
    for ours_first in [true, false] {
        let cluster = Cluster::options().create();
        let other = preloaded::hook("hides_rows", &cluster);
        let libraries = if ours_first { format!("pg_snowflake, {other}") } else { format!("{other}, pg_snowflake") };
        cluster.append("postgresql.conf", &format!("shared_preload_libraries = '{libraries}'\n"));
        cluster.start();
        let mut client = cluster.client();
        client
            .batch_execute(
                "CREATE EXTENSION pg_snowflake; CREATE TABLE hidden (id bigint PRIMARY KEY DEFAULT snowflake_next()); \
                 INSERT INTO hidden SELECT FROM generate_series(1, 1000); CREATE TABLE seen AS TABLE hidden LIMIT 0; \
                 INSERT INTO seen SELECT snowflake_next() FROM generate_series(1, 1000); ANALYZE",
            )
            .unwrap();
        for query in [
            "SELECT count(*) FROM (SELECT id FROM hidden ORDER BY snowflake_timestamp(id) LIMIT 10) x",
            "SELECT count(*) FROM (SELECT id FROM hidden ORDER BY snowflake_timestamp(id) DESC, id DESC LIMIT 10) x",
            "SELECT count(max) FROM (SELECT max(snowflake_timestamp(id)) FROM hidden) x",
            "SELECT count(*) FROM hidden WHERE snowflake_timestamp(id) > '2025-01-01'",
            "SELECT count(*) FROM hidden JOIN seen ON snowflake_timestamp(hidden.id) <= snowflake_timestamp(seen.id)",
        ] {
            assert_eq!(value::<i64>(&mut client, query), 0, "ours first: {ours_first}; {query}");
        }
        assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM seen"), 1000);
    }
}

/// What is evaluated first may fail where another condition would have excluded the row.
#[test]
fn an_expression_is_evaluated_when_postgresql_would() {
    let cluster = rows();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE texts AS SELECT id::text AS val FROM r WHERE n % 10 = 0; INSERT INTO texts VALUES ('none'); \
             CREATE FUNCTION costly(bigint) RETURNS bigint IMMUTABLE COST 0.0001 LANGUAGE plpgsql AS $$ \
             BEGIN PERFORM nextval('calls'); RETURN $1; END $$; CREATE SEQUENCE calls; ANALYZE texts",
        )
        .unwrap();
    let query = "SELECT count(*) FROM texts WHERE snowflake_timestamp(val::bigint) > '2026-01-01 00:00:01+00' AND length(trim(val)) > 10";
    let [on, off] = both_ways(&mut client, query);
    assert_eq!(on, off);
    for state in ["on", "off"] {
        client
            .batch_execute(&format!(
                "SET pg_snowflake.plan_by_time = {state}; SELECT setval('calls', 1); \
                 SELECT count(*) FROM other WHERE snowflake_timestamp(costly(id)) = '2026-01-01 00:00:01+00'"
            ))
            .unwrap();
        assert_eq!(value::<i64>(&mut client, "SELECT last_value FROM calls"), 201, "{state}");
    }
}

/// A child need not have what its parent has.
#[test]
fn a_parent_without_nulls_says_nothing_of_its_children() {
    let cluster = rows();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE p (id bigint); CREATE TABLE c () INHERITS (p); ALTER TABLE ONLY p ALTER id SET NOT NULL;
             DO $$ BEGIN ALTER TABLE c ALTER id DROP NOT NULL; EXCEPTION WHEN invalid_table_definition THEN END $$",
        )
        .unwrap();
    // From 18 on, it has.
    if client.batch_execute("INSERT INTO c VALUES (NULL)").is_ok() {
        let [on, off] = both_ways(
            &mut client,
            "SELECT count(*) FROM p WHERE (snowflake_timestamp(id) < '2026-01-01') IS NOT FALSE",
        );
        assert_eq!([on.as_str(), off.as_str()], ["(1)", "(1)"]);
    }
}

/// What is volatile is called once for a row.
#[test]
fn a_volatile_id_is_evaluated_once() {
    let cluster = rows();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE FUNCTION pick(bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN
                 RETURN CASE WHEN nextval('s') % 2 = 0 THEN snowflake_min_id('2026-01-05 12:00+00') ELSE 0 END; END $$",
        )
        .unwrap();
    for condition in [
        "<@ tstzrange('2026-01-05 00:00+00', '2026-01-06 00:00+00')",
        "IN ('2026-01-05 12:00+00', '2026-01-07 12:00+00')",
        "::date IN ('2026-01-05', '2026-01-07')",
        "BETWEEN '2026-01-05 12:00+00' AND '2026-01-07 12:00+00'",
    ] {
        let query = format!("SELECT count(*) FROM other WHERE snowflake_timestamp(pick(id)){condition}");
        let [on, off] = ["on", "off"].map(|state| {
            client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {state}; SELECT setval('s', 1)")).unwrap();
            let count: i64 = value(&mut client, &query);
            (count, value::<i64>(&mut client, "SELECT last_value FROM s"))
        });
        assert_eq!(on, off, "{query}");
    }
}

/// Seven thousand years away, seconds in binary are apart by more than a microsecond.
#[test]
fn seconds_in_binary_are_compared_as_they_are() {
    const LAYOUT: &str = "'timestamp=50 worker=6 sequence=7 tick=1us epoch=9000-01-01T00:00:00Z'";
    let cluster = rows();
    let mut client = cluster.client();
    client
        .batch_execute(&format!(
            "CREATE TABLE far (id bigint PRIMARY KEY); SET enable_seqscan = off;
             INSERT INTO far SELECT snowflake_min_id('9000-01-01 00:00+00'::timestamptz + n * interval '1 us', {LAYOUT}) FROM generate_series(0, 200) AS n"
        ))
        .unwrap();
    for comparison in ["=", "<=", "<", ">", ">="] {
        let query = format!(
            "SELECT count(*) FROM far WHERE date_part('epoch', snowflake_timestamp(id, {LAYOUT})) {comparison} 221845392000"
        );
        let [on, off] = both_ways(&mut client, &query);
        assert_eq!(on, off, "{query}");
    }
}

/// A range type may have the order of another operator class.
#[test]
fn a_range_in_an_order_of_its_own_is_left_alone() {
    let cluster = rows();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE FUNCTION back(timestamptz, timestamptz) RETURNS integer IMMUTABLE STRICT LANGUAGE sql AS 'SELECT timestamptz_cmp($2, $1)';
             CREATE OPERATOR CLASS back_ops FOR TYPE timestamptz USING btree AS OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =,
                 OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 back(timestamptz, timestamptz);
             CREATE TYPE backrange AS RANGE (subtype = timestamptz, subtype_opclass = back_ops)",
        )
        .unwrap();
    let query = "SELECT count(*) FROM r WHERE snowflake_timestamp(id) <@ backrange('2026-01-06 00:00+00', '2026-01-01 00:00:01+00', '[]')";
    let [on, off] = both_ways(&mut client, query);
    assert_eq!(on, off);
    assert_ne!(on, "(0)");
}

/// A semi-join by equal times stays one of equalities alone: so the subquery is made unique, and each of its times is looked up.
#[test]
fn in_with_a_subquery_looks_up_each_of_its_times_once() {
    let cluster = rows();
    let mut client = cluster.client();
    for query in [
        "SELECT count(*) FROM r WHERE snowflake_timestamp(id) IN (SELECT snowflake_timestamp(id) FROM other)",
        "SELECT count(*) FROM r WHERE EXISTS (SELECT FROM other WHERE snowflake_timestamp(other.id) = snowflake_timestamp(r.id))",
    ] {
        client.batch_execute("SET pg_snowflake.plan_by_time = on").unwrap();
        let rows = client.query(&format!("EXPLAIN (COSTS OFF) {query}"), &[]).unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        for part in [
            "Nested Loop",
            "Aggregate\n              Group Key: snowflake_timestamp(other.id)",
            "Index Cond: ((id >= _snowflake.min_id(",
        ] {
            assert!(plan.contains(part), "{query}\n{plan}");
        }
        let [on, off] = both_ways(&mut client, query);
        assert_eq!(on, off, "{query}");
    }
}

/// Operators of somebody's own for times, by which they come in another order.
#[test]
fn an_order_of_somebodys_own_is_not_that_of_the_ids() {
    let cluster = rows();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE FUNCTION lt(timestamptz, timestamptz) RETURNS boolean IMMUTABLE LANGUAGE sql AS \
             'SELECT abs(extract(epoch FROM $1 - timestamptz ''2026-01-01 00:00:02+00'')) < abs(extract(epoch FROM $2 - timestamptz ''2026-01-01 00:00:02+00''))'; \
             CREATE FUNCTION le(timestamptz, timestamptz) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT NOT lt($2, $1)'; \
             CREATE FUNCTION eq(timestamptz, timestamptz) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT NOT lt($1, $2) AND NOT lt($2, $1)'; \
             CREATE FUNCTION ge(timestamptz, timestamptz) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT NOT lt($1, $2)'; \
             CREATE FUNCTION gt(timestamptz, timestamptz) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT lt($2, $1)'; \
             CREATE FUNCTION cmp(timestamptz, timestamptz) RETURNS integer IMMUTABLE LANGUAGE sql AS \
             'SELECT CASE WHEN lt($1, $2) THEN -1 WHEN lt($2, $1) THEN 1 ELSE 0 END'; \
             CREATE OPERATOR <! (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = lt); \
             CREATE OPERATOR <=! (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = le); \
             CREATE OPERATOR =! (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = eq, MERGES); \
             CREATE OPERATOR >=! (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = ge); \
             CREATE OPERATOR >! (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = gt); \
             CREATE OPERATOR CLASS near FOR TYPE timestamptz USING btree AS OPERATOR 1 <!, OPERATOR 2 <=!, OPERATOR 3 =!, \
             OPERATOR 4 >=!, OPERATOR 5 >!, FUNCTION 1 cmp(timestamptz, timestamptz)",
        )
        .unwrap();
    let query = "SELECT snowflake_timestamp(id) FROM r ORDER BY snowflake_timestamp(id) USING <! LIMIT 3";
    let [on, off] = both_ways(&mut client, query);
    assert_eq!(on, off);
}

/// A plan that does not call the function any more still needs the right to call it.
#[test]
fn a_plan_that_is_kept_is_not_for_whoever_may_not_call_the_function() {
    let cluster = rows();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE ROLE reader; GRANT SELECT ON r TO reader; SET plan_cache_mode = force_generic_plan; \
             PREPARE newer AS SELECT count(*) FROM r WHERE snowflake_timestamp(id) > '2026-01-01 00:00:01+00'; \
             EXECUTE newer; SET ROLE reader; EXECUTE newer; RESET ROLE; \
             REVOKE EXECUTE ON FUNCTION snowflake_timestamp(bigint) FROM PUBLIC; EXECUTE newer; SET ROLE reader",
        )
        .unwrap();
    refused(&mut client, "EXECUTE newer", "42501");
    client.batch_execute("RESET ROLE; GRANT EXECUTE ON FUNCTION snowflake_timestamp(bigint) TO reader").unwrap();
    client.batch_execute("EXECUTE newer; SET ROLE reader; EXECUTE newer").unwrap();
    cluster.client().batch_execute("REVOKE EXECUTE ON FUNCTION snowflake_timestamp(bigint) FROM reader").unwrap();
    refused(&mut client, "EXECUTE newer", "42501");
}

/// An order needs the time alone. To call a function for a bound needs the right to that.
#[test]
fn an_order_is_read_from_the_index_without_the_right_to_bounds() {
    let cluster = rows();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE ROLE reader; GRANT SELECT ON r TO reader; DO $$ DECLARE bound regprocedure; BEGIN \
             FOR bound IN SELECT oid FROM pg_proc WHERE proname ~ '(min|max)_id$' LOOP \
             EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', bound); END LOOP; END $$; SET ROLE reader",
        )
        .unwrap();
    refused(&mut client, "SELECT snowflake_min_id(now())", "42501");
    let plan = |client: &mut Client, query: &str| {
        client.batch_execute("SET pg_snowflake.plan_by_time = on").unwrap();
        let lines = client.query(&format!("EXPLAIN (COSTS OFF) {query}"), &[]).unwrap();
        lines.iter().map(|line| line.get::<_, String>(0) + "\n").collect::<String>()
    };
    let ordered = "SELECT snowflake_timestamp(id) FROM r ORDER BY snowflake_timestamp(id) DESC LIMIT 3";
    let plan_of_order = plan(&mut client, ordered);
    assert!(plan_of_order.contains("Backward") && !plan_of_order.contains("Sort"), "{plan_of_order}");
    for query in [
        ordered,
        "SELECT snowflake_timestamp(id) FROM r WHERE snowflake_timestamp(id) > timestamptz '2026-01-01 00:00:01+00' + (now() - now()) \
         ORDER BY snowflake_timestamp(id) LIMIT 3",
        "SELECT count(*) FROM r WHERE snowflake_timestamp(id) > timestamptz '2026-01-01 00:00:01+00' + (now() - now())",
    ] {
        let plan = plan(&mut client, query);
        assert!(!plan.contains("id >"), "{plan}");
        let [on, off] = both_ways(&mut client, query);
        assert_eq!(on, off, "{query}");
    }
}

/// As any parameter: for a role, a database or a function.
#[test]
fn it_can_be_turned_off_for_some_only() {
    let cluster = rows();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE ROLE reports LOGIN; GRANT SELECT ON r TO reports; ALTER ROLE reports SET pg_snowflake.plan_by_time = off; \
             CREATE FUNCTION plan() RETURNS text LANGUAGE plpgsql AS $$ DECLARE line text; all_lines text := ''; BEGIN \
             FOR line IN EXPLAIN (COSTS OFF) SELECT * FROM r WHERE snowflake_timestamp(id) > '2026-01-01 00:00:19+00' LOOP \
             all_lines := all_lines || line; END LOOP; RETURN all_lines; END $$",
        )
        .unwrap();
    let is_rewritten = |client: &mut Client| !value::<String>(client, "SELECT plan()").contains("snowflake_timestamp");
    assert!(is_rewritten(&mut client));
    assert!(!is_rewritten(&mut cluster.client_of("reports", "postgres")));
    client.batch_execute("ALTER FUNCTION plan() SET pg_snowflake.plan_by_time = off").unwrap();
    assert!(!is_rewritten(&mut client));
    client
        .batch_execute("ALTER FUNCTION plan() RESET ALL; ALTER DATABASE postgres SET pg_snowflake.plan_by_time = off")
        .unwrap();
    assert!(!is_rewritten(&mut cluster.client()));
}

/// A path over a copy of such a description is one over the index itself, too: whatever of it is copied.
#[test]
fn a_copy_of_what_the_planner_knows_of_an_index_can_be_planned_with() {
    for hook in ["copies_indexes", "copies_arrays"] {
        let cluster = Cluster::options().create();
        let other = preloaded::hook(hook, &cluster);
        cluster.append("postgresql.conf", &format!("shared_preload_libraries = 'pg_snowflake, {other}'\n"));
        cluster.start();
        let mut client = cluster.client();
        let statements = format!("CREATE EXTENSION IF NOT EXISTS pg_snowflake; {ROWS}");
        statements.split(';').for_each(|statement| client.batch_execute(statement).unwrap());
        client.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off").unwrap();
        for query in [
            "SELECT id FROM r ORDER BY snowflake_timestamp(id), id LIMIT 5",
            "SELECT count(*) FROM r WHERE snowflake_timestamp(id) > '2026-01-01 00:00:01'",
            "SELECT max(snowflake_timestamp(id)) FROM r",
            "SELECT count(*) FROM (SELECT date_bin('1 s', snowflake_timestamp(id), '2026-01-01') FROM r GROUP BY 1) x",
            "SELECT count(*) FROM r JOIN other ON snowflake_timestamp(r.id) = snowflake_timestamp(other.id)",
            "SELECT count(*) FROM r JOIN r AS s ON snowflake_timestamp(r.id) = snowflake_timestamp(s.id) AND r.n < 9",
            "SELECT n FROM parts ORDER BY snowflake_timestamp(id) DESC, id DESC LIMIT 5",
            "SELECT * FROM (TABLE parts UNION ALL TABLE r) u WHERE snowflake_timestamp(id) IN ('2026-01-01', '2026-01-02')",
        ] {
            let [on, off] = both_ways(&mut client, query);
            assert_eq!(on, off, "{hook}: {query}");
        }
    }
}

/// Hooks of others that ours call, and functions of theirs, may raise an ERROR: it is one as any, and the session goes on.
#[test]
fn an_error_of_another_extension_is_an_ordinary_one() {
    let cluster = Cluster::options().create();
    let other = preloaded::hook("raises", &cluster);
    cluster.append("postgresql.conf", &format!("shared_preload_libraries = '{other}, pg_snowflake'\n"));
    cluster.start();
    let mut client = cluster.client();
    let statements =
        format!("CREATE EXTENSION IF NOT EXISTS pg_snowflake; {ROWS}; CREATE INDEX ON r ((n + 1)); ANALYZE r");
    statements.split(';').for_each(|statement| client.batch_execute(statement).unwrap());
    let by_time = "SELECT count(*) FROM r WHERE snowflake_timestamp(id) > '2026-01-01 00:00:19'";
    let mut places = vec![
        ("table", by_time),
        ("table", "SELECT count(*) FROM r"),
        ("paths", by_time),
        ("paths", "SELECT count(*) FROM r"),
        ("statistics", "SELECT count(*) FROM r WHERE n + 1 = 5"),
        ("release", by_time),
        ("cost", by_time),
        ("log", "DO $$ BEGIN RAISE LOG 'raise here'; END $$"),
    ];
    if value::<String>(&mut client, "SHOW server_version_num").parse::<u32>().unwrap() >= 180_000 {
        places.push(("explain", "EXPLAIN SELECT 1"));
    }
    let session: i32 = value(&mut client, "SELECT pg_backend_pid()");
    for (place, query) in places {
        for _ in 0..10 {
            client.batch_execute(&format!("SET raises.at = '{place}'; BEGIN; SAVEPOINT before")).unwrap();
            for end in ["ROLLBACK TO before", "ROLLBACK"] {
                let error = client.batch_execute(query).expect_err(place);
                let error = error.as_db_error().unwrap_or_else(|| panic!("{place}: {query}: {error}"));
                assert_eq!(error.message(), format!("raised at {place}"), "{query}");
                assert_eq!((error.code().code(), error.detail()), ("P0001", Some("By somebody else.")), "{query}");
                client.batch_execute(end).unwrap();
            }
            client.batch_execute(&format!("RESET raises.at; {query}")).unwrap();
        }
    }
    assert_eq!(value::<i32>(&mut client, "SELECT pg_backend_pid()"), session);
    let [on, off] = both_ways(&mut client, by_time);
    assert_eq!(on, off);
}
