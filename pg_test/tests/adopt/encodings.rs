//! Databases that are not UTF-8, with names in their encoding; and tables in another tablespace.

use postgres::Client;
use snowflake_test::{Cluster, value};

/// Has the server run statements in which names are written by `chr()`, so that it does not matter which of them a client
/// could write.
fn run(client: &mut Client, table: &str, column: &str, statement: &str) {
    let statement = statement.replace('\'', "''").replace("<t>", "%1$I").replace("<c>", "%2$I");
    let block = format!("DO $do$ BEGIN EXECUTE format('{statement}', {table}, {column}); END $do$");
    client.batch_execute(&block).unwrap_or_else(|error| panic!("{block}: {error:?}"));
}

#[test]
fn names_of_other_encodings_are_kept() {
    let cluster = Cluster::options().start();
    // Each with a name that is no UTF-8 in the database's encoding, and hard to quote.
    for (encoding, table, column) in [
        ("LATIN1", "'B' || chr(252) || 'cher''s \"\\'", "'schl' || chr(252) || 'ssel'"),
        ("SQL_ASCII", "E'B\\xfccher''s \"'", "E'\\xe6\\xb3\\xa8\\xff'"),
        ("EUC_JP", "convert_from('\\xc3edcab8', 'EUC_JP')", "convert_from('\\xc8d6b9e6', 'EUC_JP')"),
        ("UTF8", "U&'\\6ce8\\6587'", "U&'\\756a\\53f7'"),
    ] {
        let database = format!("names_{}", encoding.to_lowercase());
        cluster
            .client()
            .batch_execute(&format!("CREATE DATABASE {database} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"))
            .unwrap();
        let client = &mut cluster.client_of("postgres", &database);
        client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
        run(client, table, column, "CREATE TABLE <t> (<c> serial PRIMARY KEY, v text DEFAULT 'd')");
        run(client, table, column, "INSERT INTO <t> (v) VALUES ('a'), ('b')");
        run(client, table, column, "CREATE TABLE parts (n int, <c> int REFERENCES <t>)");
        run(client, table, column, "INSERT INTO parts VALUES (1, 2)");
        run(client, table, column, "CREATE VIEW seen AS SELECT <c> FROM <t>");
        let oid =
            "(SELECT confrelid::regclass FROM pg_constraint WHERE conrelid = 'parts'::regclass AND contype = 'f')";

        // The plan's names are those that the database has.
        let statement = format!(
            "SELECT bool_or(statement = format('ALTER TABLE public.parts ALTER COLUMN %I TYPE bigint;', {column})),
                 bool_or(note = format('public.%I.%I cannot change its type because of view public.seen', {table}, {column}))
             FROM snowflake_adopt_plan({oid}, {column})"
        );
        let row = client.query_one(&statement, &[]).unwrap();
        assert_eq!((row.get(0), row.get(1)), (true, true), "{encoding}");
        let finding = format!(
            "SELECT finding LIKE replace(format('public.%I.%I has values from 1 to 2, %%', {table}, {column}), '\\', '\\\\')
             FROM snowflake_preflight(keys => ARRAY[{oid}]) WHERE subject = 'key'"
        );
        assert!(value::<bool>(client, &finding), "{encoding}");

        // An error is one, whatever its words can show.
        let adopt = format!("SELECT highest_before FROM snowflake_adopt({oid})");
        let error = client.query_one(&adopt, &[]).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "55000", "{encoding}: {error:?}");
        assert!(error.detail().unwrap().contains("cannot change its type because of view public.seen"), "{error:?}");
        run(client, table, column, "COMMENT ON COLUMN seen.<c> IS '%2$s \\'");
        run(client, table, column, "CREATE MATERIALIZED VIEW <c> AS SELECT <c> AS <t>, '%2$s'::text AS t FROM seen");
        run(client, table, column, "CREATE INDEX ON <c> (t) WHERE t <> '%2$s '");
        const VIEWS: &str = "
            SELECT md5(string_agg(concat(relname, attname, col_description(c.oid, attnum)), ',' ORDER BY relname, attnum))
            FROM pg_class c JOIN pg_attribute ON attrelid = c.oid WHERE relkind IN ('v', 'm', 'i') AND relnamespace = 'public'::regnamespace";
        let views: String = value(client, VIEWS);

        let adopt = format!("SELECT highest_before FROM snowflake_adopt({oid}, views => 'recreate')");
        assert_eq!(value::<i64>(client, &adopt), 2, "{encoding}");
        assert_eq!(value::<String>(client, VIEWS), views, "{encoding}");
        run(client, table, column, "INSERT INTO <t> (v) VALUES ('c')");
        run(client, table, column, "INSERT INTO parts SELECT 2, max(<c>) FROM <t>");
        assert_eq!(value::<i64>(client, "SELECT count(*) FROM parts"), 2);
        let next = format!("SELECT snowflake_release({oid}, {column}, start => 3)");
        assert_eq!(value::<i64>(client, &next), 3, "{encoding}");
        run(client, table, column, "INSERT INTO <t> (v) VALUES ('d')");
        let sequences = "SELECT count(*) FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace";
        assert_eq!(value::<i64>(client, sequences), 1, "{encoding}");
    }
}

#[test]
fn tables_and_indexes_stay_in_their_tablespaces() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    // As a developer's option, PostgreSQL 15 and later have tablespaces in the data directory.
    let is_new = value::<bool>(&mut client, "SELECT current_setting('server_version_num')::int >= 150000");
    let location = if is_new {
        client.batch_execute("SET allow_in_place_tablespaces = on").unwrap();
        String::new()
    } else {
        let location = cluster.data().join("../elsewhere");
        client
            .batch_execute(&format!("COPY (SELECT WHERE false) TO PROGRAM 'mkdir -m 700 {}'", location.display()))
            .unwrap();
        location.canonicalize().unwrap().display().to_string()
    };
    for name in ["\"of tables\"", "indexes"] {
        let location =
            if location.is_empty() { String::new() } else { format!("{location}/{}", name.trim_matches('"')) };
        if !location.is_empty() {
            client
                .batch_execute(&format!("COPY (SELECT WHERE false) TO PROGRAM 'mkdir -m 700 \"{location}\"'"))
                .unwrap();
        }
        client.batch_execute(&format!("CREATE TABLESPACE {name} LOCATION '{location}'")).unwrap();
    }
    client
        .batch_execute(
            "CREATE TABLE far (id serial PRIMARY KEY USING INDEX TABLESPACE indexes, v text) TABLESPACE \"of tables\";
             CREATE INDEX far_v ON far (v, id) TABLESPACE indexes;
             CREATE TABLE far_too (id serial PRIMARY KEY, far_id integer REFERENCES far) TABLESPACE \"of tables\";
             CREATE TABLE near (id serial PRIMARY KEY USING INDEX TABLESPACE indexes) PARTITION BY HASH (id);
             CREATE TABLE near_1 PARTITION OF near FOR VALUES WITH (MODULUS 1, REMAINDER 0) TABLESPACE \"of tables\";
             INSERT INTO far (v) SELECT repeat('x', 3000) || n FROM generate_series(1, 100) n;
             INSERT INTO far_too (far_id) SELECT id FROM far",
        )
        .unwrap();
    const PLACES: &str = "
        SELECT string_agg(relname || ' ' || coalesce(spcname, ''), ', ' ORDER BY relname)
        FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = reltablespace
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'i', 'I')";
    let before: String = value(&mut client, PLACES);
    // Also where new tables are made elsewhere.
    client.batch_execute("SET default_tablespace = indexes").unwrap();
    for table in ["far", "far_too"] {
        assert_eq!(value::<i64>(&mut client, &format!("SELECT highest_before FROM snowflake_adopt('{table}')")), 100);
        assert_eq!(value::<String>(&mut client, PLACES), before);
    }
    assert_eq!(value::<i64>(&mut client, "SELECT snowflake_release('far', start => 101)"), 101);
    assert_eq!(value::<String>(&mut client, PLACES), before);
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM far_too JOIN far ON far.id = far_id"), 100);
}
