//! The hooks are guests in everybody's queries: what PostgreSQL or another extension has decided about a table stays as it is.

use postgres::Client;
use snowflake_test::query::value;
use snowflake_test::{Cluster, Installation, run};
use std::path::Path;
use std::process::Command;

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

/// Compiles an extension of `pg_test/hooks`, as a library that can be preloaded by its path.
fn compiled(name: &str, cluster: &Cluster) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(name).with_extension("c");
    let library = cluster.new_file(&format!("{name}.so"));
    let headers = Installation::under_test().headers();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-I"]).arg(headers).arg("-o").arg(&library).arg(source);
    run(&mut cc);
    library.to_str().unwrap().to_owned()
}

/// Whichever of the two is loaded first.
#[test]
fn what_another_extension_has_decided_about_a_table_stays() {
    for ours_first in [true, false] {
        let cluster = Cluster::options().create();
        let other = compiled("hides_rows", &cluster);
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
