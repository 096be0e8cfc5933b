//! What functions show to a role without any rights: by their rows, errors and notices. Nothing of what the role cannot read by itself.

use snowflake_test::dump::psql;
use snowflake_test::programs::output;
use snowflake_test::{Cluster, value};

/// All values that nobody but the keeper may read begin with these digits.
const SECRET: &str = "7700";

/// Tables of a keeper. Of each, the analyst may see something, and not the values: the privileges are for the column, and not for the schema;
/// for another column; for rows of a policy; for the table, and not for the server of a foreign partition.
const TABLES: &str = "
    CREATE SCHEMA vault; CREATE SCHEMA shop; GRANT USAGE ON SCHEMA shop TO PUBLIC;
    CREATE TABLE vault.goods (id bigserial PRIMARY KEY, amount integer); GRANT SELECT ON vault.goods TO PUBLIC;
    CREATE TABLE shop.closed (id serial PRIMARY KEY, amount integer);
    CREATE TABLE shop.partly (id bigint PRIMARY KEY DEFAULT snowflake_next(), amount integer); GRANT SELECT (amount) ON shop.partly TO PUBLIC;
    CREATE TABLE shop.ruled (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, amount integer); GRANT SELECT ON shop.ruled TO PUBLIC;
    ALTER TABLE shop.ruled ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON shop.ruled USING (id < 10);
    CREATE TABLE shop.events (id bigint DEFAULT snowflake_next(), amount integer) PARTITION BY RANGE (id);
    CREATE TABLE shop.rest PARTITION OF shop.events DEFAULT;
    INSERT INTO vault.goods VALUES (77000001, 77000002); SELECT setval('vault.goods_id_seq', 77000003);
    INSERT INTO shop.closed VALUES (77000004, 77000005); SELECT setval('shop.closed_id_seq', 77000006);
    INSERT INTO shop.partly VALUES (77000007, 5);
    INSERT INTO shop.ruled OVERRIDING SYSTEM VALUE VALUES (77000008, 77000009);
    INSERT INTO shop.events VALUES (770000000000000000, 77000010)";

/// Tables of which rows lie behind a foreign server, to which only the keeper has a mapping.
const FOREIGN: &str = "
    CREATE TABLE vault.there (id bigint, amount integer); INSERT INTO vault.there VALUES (77000011, 77000012);
    CREATE FOREIGN TABLE shop.far PARTITION OF shop.parts FOR VALUES FROM (1000) TO (900000000000) SERVER loopback
        OPTIONS (schema_name 'vault', table_name 'there');
    CREATE FOREIGN TABLE shop.far_heir () INHERITS (shop.heirs) SERVER loopback OPTIONS (schema_name 'vault', table_name 'there')";

const PARENTS: &str = "
    CREATE TABLE shop.parts (id bigint, amount integer) PARTITION BY RANGE (id); GRANT SELECT ON shop.parts TO PUBLIC;
    CREATE TABLE shop.near PARTITION OF shop.parts FOR VALUES FROM (0) TO (1000); INSERT INTO shop.parts VALUES (5, 6);
    CREATE TABLE shop.heirs (id bigint, amount integer); GRANT SELECT ON shop.heirs TO PUBLIC; INSERT INTO shop.heirs VALUES (5, 6)";

/// Functions of a table, whose OID stands for the word.
const OF_TABLES: [&str; 27] = [
    "SELECT * FROM snowflake_preflight(keys => ARRAY[OID]::regclass[])",
    "SELECT * FROM snowflake_preflight(keys => ARRAY[OID]::regclass[], key_column => 'id')",
    "SELECT * FROM snowflake_preflight('pgedge', keys => ARRAY[OID]::regclass[], key_column => 'amount')",
    "SELECT * FROM snowflake_adopt_plan(OID::regclass)",
    "SELECT * FROM snowflake_adopt_plan(OID::regclass, 'id', 'recreate')",
    "SELECT * FROM snowflake_adopt_plan(OID::regclass, 'amount')",
    "SELECT * FROM snowflake_adopt_all_plan(ARRAY[OID]::regclass[])",
    "SELECT * FROM snowflake_release_plan(OID::regclass, 'id', 77)",
    "SELECT * FROM snowflake_release_plan(OID::regclass, 'id', NULL, true)",
    "SELECT * FROM snowflake_adopt(OID::regclass, 'id')",
    "SELECT * FROM snowflake_adopt_all(ARRAY[OID]::regclass[])",
    "SELECT * FROM snowflake_release(OID::regclass, 'id')",
    "SELECT * FROM snowflake_create_partitions(OID::regclass, '1 day', '2026-01-01', '2036-01-04')",
    "SELECT * FROM snowflake_declare_keys(OID::regclass)",
    "SELECT _snowflake.known_from(OID::regclass, NULL)",
    "SELECT _snowflake.mark(OID::regclass, 0, NULL)",
    "SELECT * FROM snowflake_maintain_partitions(OID::regclass, '1 day', '1 day', '1 day', 'drop', dry_run => true, default_rows => 'move')",
    "CALL snowflake_partition_default_rows(OID::regclass, '1 day', true)",
    "SELECT * FROM _snowflake.partition_default_rows(OID::regclass, '1 day', true, 0)",
    "SELECT _snowflake.check_default_partition(OID::regclass, OID::regclass)",
    "SELECT * FROM _snowflake.triggers(OID::regclass, 8, NULL)",
    "SELECT * FROM _snowflake.is_plain_partition(OID::regclass, OID::regclass)",
    "SELECT * FROM _snowflake.privileges(OID, OID)",
    "SELECT * FROM _snowflake.family_of(OID::regclass)",
    "SELECT _snowflake.hold(OID::regclass)",
    "SELECT _snowflake.lowest_key(OID::regclass, 'id', 0, 9000000000000000000)",
    "SELECT * FROM _snowflake.count_keys(OID::regclass, 'id', 0, 9000000000000000000)",
];

/// Other functions that everybody may call and that do not only compute, and what they show. The columns of `snowflake_preflight()` about
/// the server are in `leases::trouble` and `preflight::`.
const OF_NOTHING: [(&str, &str); 7] = [
    ("snowflake_next", "an ID, as a default does"),
    ("snowflake_age", "the clock"),
    ("snowflake_layouts", "what is built in, and the clock"),
    ("snowflake_server_layout", "a parameter that everybody may see"),
    ("snowflake_database_layout", "what each ID is read by"),
    ("_snowflake.earliest", "an instant, by the caller's time zone"),
    ("_snowflake.latest", "the same"),
];

fn server() -> Cluster {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE ROLE keeper LOGIN; CREATE ROLE analyst LOGIN").unwrap();
    cluster.client().batch_execute("CREATE DATABASE prey OWNER keeper").unwrap();
    cluster
        .client_of("keeper", "prey")
        .batch_execute(&format!("CREATE EXTENSION pg_snowflake; {TABLES}; {PARENTS}"))
        .unwrap();
    cluster
}

/// Some builds of PostgreSQL have no contrib modules.
fn has_foreign_tables(cluster: &Cluster) -> bool {
    let mut superuser = cluster.client_of("postgres", "prey");
    if !value::<bool>(&mut superuser, "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw')")
    {
        return false;
    }
    superuser
        .batch_execute(&format!(
            "CREATE EXTENSION postgres_fdw; CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{}', dbname 'prey');
             CREATE USER MAPPING FOR keeper SERVER loopback OPTIONS (user 'keeper', password_required 'false');
             GRANT USAGE ON FOREIGN SERVER loopback TO keeper",
            cluster.socket().display()
        ))
        .unwrap();
    cluster.client_of("keeper", "prey").batch_execute(FOREIGN).unwrap();
    true
}

/// All that a role gets to see when it calls this: rows, errors with all their parts, notices.
fn seen_by(cluster: &Cluster, role: &str, call: &str) -> String {
    let mut command = psql(cluster, role, "prey");
    let seen = output(command.args(["--set=VERBOSITY=verbose", "--set=SHOW_CONTEXT=always", "--command", call]));
    seen.output + &seen.errors
}

/// The tables, by OID, as whoever may not use the schema cannot name them.
fn oids(cluster: &Cluster) -> Vec<(u32, String)> {
    let tables = "SELECT oid, oid::regclass::text FROM pg_class WHERE relnamespace IN ('vault'::regnamespace, 'shop'::regnamespace) \
                  AND relkind IN ('r', 'p', 'f') ORDER BY 2";
    let rows = cluster.client_of("postgres", "prey").query(tables, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[test]
fn no_value_is_shown_to_who_may_not_read_it() {
    let cluster = server();
    let has_foreign = has_foreign_tables(&cluster);
    // The keeper sees them.
    let of_keeper = seen_by(&cluster, "keeper", "SELECT * FROM snowflake_preflight(keys => '{vault.goods}')");
    assert!(of_keeper.contains("77000001"), "{of_keeper}");
    let tables = oids(&cluster);
    assert!(tables.len() >= if has_foreign { 12 } else { 9 }, "{tables:?}");
    let mut shown = Vec::new();
    for (oid, table) in &tables {
        for call in OF_TABLES {
            let seen = seen_by(&cluster, "analyst", &call.replace("OID", &oid.to_string()));
            assert!(!seen.is_empty() || call.contains("_snowflake."), "{table}: {call}");
            if seen.contains(SECRET) {
                shown.push(format!("{table}: {call}: {seen}"));
            }
        }
    }
    assert_eq!(shown, [""; 0]);
}

/// Nor what lies behind a foreign server, to whoever may read the table, but has no mapping there; it is said that it was not looked at.
#[test]
fn foreign_tables_are_not_read() {
    let cluster = server();
    if !has_foreign_tables(&cluster) {
        // They need no server, to be there.
        let mut superuser = cluster.client_of("postgres", "prey");
        superuser
            .batch_execute(
                "CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER loopback FOREIGN DATA WRAPPER nowhere;
                 GRANT USAGE ON FOREIGN SERVER loopback TO keeper",
            )
            .unwrap();
        cluster.client_of("keeper", "prey").batch_execute(FOREIGN).unwrap();
    }
    for role in ["analyst", "keeper", "postgres"] {
        for (table, foreign) in [("shop.parts", "shop.far"), ("shop.heirs", "shop.far_heir")] {
            let key = format!(
                "SELECT verdict || ': ' || finding FROM snowflake_preflight(keys => '{{{table}}}', key_column => 'id') WHERE subject = 'key'"
            );
            let finding: String = value(&mut cluster.client_of(role, "prey"), &key);
            assert_eq!(
                finding,
                format!(
                    "problem: the values of column id of table {table} are not read, as some are in the foreign table {foreign}"
                ),
                "{role}"
            );
        }
    }
}

/// A function that is added must be called here, or said to show nothing.
#[test]
fn all_functions_that_everybody_may_call_are_looked_at() {
    let cluster = server();
    let functions = "SELECT DISTINCT CASE nspname WHEN '_snowflake' THEN '_snowflake.' ELSE '' END || proname, \
            proargtypes::oid[] && ARRAY['regclass', 'regclass[]', 'oid', 'oid[]']::regtype[]::oid[] \
         FROM pg_proc p JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = p.oid JOIN pg_namespace n ON n.oid = pronamespace \
         JOIN pg_extension e ON refobjid = e.oid AND deptype = 'e' AND extname = 'pg_snowflake' \
         WHERE has_function_privilege('analyst', p.oid, 'EXECUTE') AND provolatile <> 'i' AND proname !~ '^(min|max)_id|^(first_id_at|time_of_id|first_id_in|time_of_id_in)$'";
    let rows = cluster.client_of("postgres", "prey").query(functions, &[]).unwrap();
    assert!(rows.len() > 15);
    for row in rows {
        let (function, takes_table): (String, bool) = (row.get(0), row.get(1));
        let is_known = match takes_table {
            true => OF_TABLES.iter().any(|call| call.contains(&format!("{function}("))),
            false => OF_NOTHING.iter().any(|(name, _)| *name == function),
        };
        assert!(is_known, "{function}");
    }
}
