//! Beside a key by ID, an index that has the ID after another column serves a range of time, too, where the query has a use for that column.

use postgres::Client;
use snowflake_test::{Cluster, Installation};

const RANGE: &str = "snowflake_timestamp(id) >= '2026-01-05Z' AND snowflake_timestamp(id) < '2026-01-12Z'";

fn plan(session: &mut Client, query: &str) -> String {
    let rows = session.query(&format!("EXPLAIN (COSTS OFF) {query}"), &[]).unwrap_or_else(|e| panic!("{query}: {e:?}"));
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}

/// What a query does with the column that comes first, and what it turns off so that no other plan is the better one.
#[test]
fn an_index_that_begins_with_another_column() {
    let cluster = Cluster::options().start();
    let mut session = cluster.client();
    session
        .batch_execute(
            "CREATE TABLE shop (id bigint PRIMARY KEY, tenant integer, created_at timestamptz, n integer);
             INSERT INTO shop SELECT snowflake_min_id(at), n % 100, at, n
                 FROM (SELECT n, '2026-01-01'::timestamptz + n * interval '1 min' AS at FROM generate_series(1, 20000) n) s;
             CREATE INDEX by_tenant ON shop (tenant, id); CREATE INDEX of_few ON shop (tenant, id) WHERE n < 100;
             CREATE TABLE few (tenant integer); INSERT INTO few VALUES (3), (7);
             CREATE TABLE guarded (LIKE shop INCLUDING ALL); INSERT INTO guarded SELECT * FROM shop;
             ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON guarded USING (tenant = 5);
             CREATE ROLE guest; GRANT SELECT ON guarded TO guest",
        )
        .unwrap();
    session.batch_execute("VACUUM ANALYZE").unwrap();
    let with_itself: Vec<String>;
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
        with_itself = ["aab", "aba", "baa", "abb", "bab", "bba", "aaa", "bbb"]
            .map(|sides| {
                let [read, tenant, time] = [0, 1, 2].map(|at| &sides[at..=at]);
                let range = RANGE.replace("(id)", &format!("({time}.id)"));
                format!(
                    "SELECT {read}.* FROM shop AS a JOIN shop AS b USING (id) WHERE {tenant}.tenant = 5 AND {range}"
                )
            })
            .into();
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
