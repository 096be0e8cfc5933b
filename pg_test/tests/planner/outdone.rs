//! Beside a key by ID, an index that has the ID after another column serves a range of time, too, where the query has a use for that column.

use postgres::Client;
use snowflake_test::{Cluster, Installation};

const RANGE: &str = "snowflake_timestamp(id) >= '2026-01-05Z' AND snowflake_timestamp(id) < '2026-01-12Z'";

fn plan(session: &mut Client, query: &str) -> String {
    let rows = session.query(&format!("EXPLAIN (COSTS OFF) {query}"), &[]).unwrap_or_else(|e| panic!("{query}: {e:?}"));
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}

/// A session beside a table of 20,000 rows, one a minute, of 100 tenants.
fn with_shop(cluster: &Cluster) -> Client {
    let mut session = cluster.client();
    session
        .batch_execute(
            "CREATE TABLE shop (id bigint PRIMARY KEY, tenant integer, created_at timestamptz, n integer);
             INSERT INTO shop SELECT snowflake_min_id(at), n % 100, at, n
                 FROM (SELECT n, '2026-01-01'::timestamptz + n * interval '1 min' AS at FROM generate_series(1, 20000) n) s;
             CREATE INDEX by_tenant ON shop (tenant, id); CREATE INDEX of_few ON shop (tenant, id) WHERE n < 100;",
        )
        .unwrap();
    session
}

/// All ways in which a table's join with itself can name its two sides. From 18 on, PostgreSQL removes one of them.
fn self_joins(range: &str) -> [String; 8] {
    ["aab", "aba", "baa", "abb", "bab", "bba", "aaa", "bbb"].map(|sides| {
        let [read, tenant, time] = [0, 1, 2].map(|at| &sides[at..=at]);
        let range = range.replace("(id)", &format!("({time}.id)"));
        format!("SELECT {read}.* FROM shop AS a JOIN shop AS b USING (id) WHERE {tenant}.tenant = 5 AND {range}")
    })
}

/// What a query does with the column that comes first, and what it turns off so that no other plan is the better one.
#[test]
fn an_index_that_begins_with_another_column() {
    let cluster = Cluster::options().start();
    let mut session = with_shop(&cluster);
    session
        .batch_execute(
            "CREATE TABLE few (tenant integer); INSERT INTO few VALUES (3), (7);
             CREATE TABLE guarded (LIKE shop INCLUDING ALL); INSERT INTO guarded SELECT * FROM shop;
             ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON guarded USING (tenant = 5);
             CREATE ROLE guest; GRANT SELECT ON guarded TO guest",
        )
        .unwrap();
    session.batch_execute("VACUUM ANALYZE").unwrap();
    let with_itself = self_joins(RANGE);
    let mut cases = vec![
        ("by_tenant", "", "SELECT * FROM shop WHERE tenant = 5 AND @"),
        ("by_tenant", "", "SELECT * FROM shop WHERE tenant IN (5, 6) AND @ AND n > 0"),
        ("by_tenant", "enable_sort", "SELECT * FROM shop WHERE @ ORDER BY tenant LIMIT 5"),
        ("by_tenant", "enable_sort", "SELECT DISTINCT ON (tenant) * FROM shop WHERE @"),
        ("by_tenant", "enable_sort, enable_hashagg", "SELECT tenant, sum(n) FROM shop WHERE @ GROUP BY 1"),
        ("by_tenant", "enable_sort", "SELECT *, row_number() OVER (PARTITION BY tenant) FROM shop WHERE @"),
        (
            "by_tenant",
            "enable_bitmapscan",
            "SELECT tenant FROM shop WHERE snowflake_timestamp(id) >= '2026-01-01 00:10Z'",
        ),
        ("by_tenant", "enable_bitmapscan", "SELECT min(tenant) FROM shop WHERE @"),
        ("by_tenant", "", "SELECT * FROM shop JOIN few USING (tenant) WHERE @"),
        ("by_tenant", "", "SELECT * FROM few LEFT JOIN shop ON shop.tenant = few.tenant AND @"),
        (
            "by_tenant",
            "",
            "SELECT * FROM few, LATERAL (SELECT * FROM shop WHERE shop.tenant = few.tenant AND @ LIMIT 1) s",
        ),
        ("by_tenant", "", "SELECT * FROM shop WHERE (tenant, n) > (98, 5) AND @"),
        ("of_few", "", "SELECT * FROM shop WHERE n < 100 AND @"),
        ("guarded_tenant_id_idx", "", "SELECT * FROM guarded WHERE @"),
        ("shop_pkey", "", "SELECT * FROM shop WHERE @"),
        ("shop_pkey", "", "SELECT count(*) FROM shop WHERE @"),
        (
            "shop_pkey",
            "",
            "SELECT date_trunc('hour', snowflake_timestamp(id)), sum(tenant) FROM shop WHERE @ GROUP BY 1",
        ),
    ];
    if Installation::under_test().major() >= 16 {
        // Aggregates are given their rows in order.
        cases.push(("by_tenant", "enable_sort", "SELECT string_agg(n::text, '' ORDER BY tenant) FROM shop WHERE @"));
    }
    if Installation::under_test().major() >= 18 {
        // One of the two is not read, whichever has the condition on the time.
        cases.extend(with_itself.iter().map(|query| ("by_tenant", "", query.as_str())));
    }
    for (index, off, query) in cases {
        session.batch_execute("RESET ALL; RESET ROLE; SET enable_seqscan = off; SET enable_material = off").unwrap();
        off.split(", ").filter(|name| !name.is_empty()).for_each(|name| {
            session.batch_execute(&format!("SET {name} = off")).unwrap();
        });
        if index.starts_with("guarded") {
            session.batch_execute("SET ROLE guest").unwrap();
        }
        let plan = plan(&mut session, &query.replace('@', RANGE));
        let is_read = [format!(" {index}\n"), format!(" {index} on ")].iter().any(|name| plan.contains(name));
        assert!(is_read, "{query}\n{plan}");
        assert!(plan.contains("Index Cond: ") && plan.contains("(id >= "), "{query}\n{plan}");
    }
}

/// Prepared statements keep plans: bounds from parameters are those of the call, whichever side has them, also after a change of the table.
#[test]
fn prepared_joins_of_a_table_with_itself() {
    let cluster = Cluster::options().start();
    let mut session = with_shop(&cluster);
    session.batch_execute("ANALYZE shop; SET enable_seqscan = off").unwrap();
    let joins = self_joins("snowflake_timestamp(id) >= $1 AND snowflake_timestamp(id) < $2");
    let calls = [
        ("2026-01-05Z", "2026-01-12Z"),
        ("2026-01-01Z", "2026-01-01 10:00Z"),
        ("2027-01-01Z", "2028-01-01Z"),
        ("-infinity", "infinity"),
    ];
    let rows = |session: &mut Client, query: &str| {
        format!("{:?}", session.simple_query(query).unwrap_or_else(|error| panic!("{query}: {error:?}")))
    };
    for mode in ["force_generic_plan", "force_custom_plan", "auto"] {
        session.batch_execute(&format!("SET plan_cache_mode = {mode}")).unwrap();
        for (number, join) in joins.iter().enumerate() {
            let statement = format!("PREPARE of_{number} (timestamptz, timestamptz) AS {join} ORDER BY 1");
            session.batch_execute(&statement).unwrap();
        }
        for change in ["SELECT", "UPDATE shop SET tenant = 5 WHERE n = 7", "DROP INDEX by_tenant"] {
            session.batch_execute(change).unwrap();
            for (number, join) in joins.iter().enumerate() {
                for (from, to) in calls {
                    let found = rows(&mut session, &format!("EXECUTE of_{number} ('{from}', '{to}')"));
                    session.batch_execute("SET pg_snowflake.plan_by_time = off").unwrap();
                    let query = join.replace("$1", &format!("'{from}'")).replace("$2", &format!("'{to}'"));
                    assert_eq!(found, rows(&mut session, &format!("{query} ORDER BY 1")), "{mode}, {change}: {query}");
                    session.batch_execute("RESET pg_snowflake.plan_by_time").unwrap();
                }
            }
        }
        session
            .batch_execute(
                "DEALLOCATE ALL; UPDATE shop SET tenant = 7 WHERE n = 7; CREATE INDEX by_tenant ON shop (tenant, id)",
            )
            .unwrap();
    }
    if Installation::under_test().major() >= 18 {
        session.batch_execute("ANALYZE shop; SET plan_cache_mode = force_generic_plan").unwrap();
        for (number, join) in joins.iter().enumerate() {
            session.batch_execute(&format!("PREPARE of_{number} (timestamptz, timestamptz) AS {join}")).unwrap();
            let plan = plan(&mut session, &format!("EXECUTE of_{number} ('2026-01-05Z', '2026-01-12Z')"));
            assert!(plan.contains("Index Cond: ") && plan.contains("(id >= "), "{join}\n{plan}");
            assert_eq!(plan.matches(" on shop").count(), 1, "{join}\n{plan}");
        }
    }
}
