//! The owner of the extension may be a role without special rights: whoever may create objects in a database can create it. He can add
//! objects of his own to it.

use snowflake_test::Cluster;
use snowflake_test::check::refused;
use snowflake_test::query::value;

/// A database of mallory's, with the extension that she has created and given a function of her own.
fn hers() -> Cluster {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE ROLE mallory LOGIN").unwrap();
    cluster.client().batch_execute("CREATE DATABASE hers OWNER mallory").unwrap();
    cluster
        .client_of("mallory", "hers")
        .batch_execute(
            "CREATE SCHEMA evil; CREATE SCHEMA ids; GRANT USAGE ON SCHEMA evil, ids TO PUBLIC; \
             CREATE FUNCTION evil.snowflake_next() RETURNS bigint LANGUAGE plpgsql AS $$ \
             BEGIN RAISE LOG 'sprung: as %', current_user; RETURN 7; END $$; \
             CREATE FUNCTION evil.snowflake_timestamp(id bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS 'SELECT now()'; \
             CREATE EXTENSION pg_snowflake SCHEMA ids; \
             ALTER EXTENSION pg_snowflake ADD FUNCTION evil.snowflake_next(); \
             ALTER EXTENSION pg_snowflake ADD FUNCTION evil.snowflake_timestamp(bigint)",
        )
        .unwrap();
    // The members are looked at in the order in which the catalogue has them, or in another.
    cluster
        .client_of("postgres", "hers")
        .batch_execute("CREATE TABLE ours (id bigserial PRIMARY KEY, n integer); INSERT INTO ours (n) VALUES (1)")
        .unwrap();
    cluster
}

#[test]
fn a_function_that_its_owner_adds_is_not_taken_for_one_of_the_extension() {
    let cluster = hers();
    let mut client = cluster.client_of("postgres", "hers");
    client
        .batch_execute("SELECT * FROM ids.snowflake_adopt_plan('ours'); SELECT * FROM ids.snowflake_adopt('ours')")
        .unwrap();
    let default = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'ours'::regclass";
    assert_eq!(value::<String>(&mut client, default), "ids.snowflake_next()");
    assert!(value::<bool>(&mut client, "INSERT INTO ours DEFAULT VALUES RETURNING id > 1000000"));
    // A column that calls hers makes no IDs, and one that calls ours does.
    client.batch_execute("CREATE TABLE theirs (id bigint PRIMARY KEY DEFAULT evil.snowflake_next())").unwrap();
    client.batch_execute("SELECT * FROM ids.snowflake_preflight(keys => '{ours,theirs}')").unwrap();
    let plan = "SELECT string_agg(statement, '') FROM ids.snowflake_adopt_plan('theirs')";
    assert!(value::<String>(&mut client, plan).contains("SET DEFAULT ids.snowflake_next()"));
    let error = client.query("SELECT ids.snowflake_rewind(0)", &[]).unwrap_err();
    assert!(error.as_db_error().unwrap().detail().unwrap().contains("public.ours.id"), "{error:?}");
    client.batch_execute("SELECT ids.snowflake_release('ours')").unwrap();
    assert!(!cluster.log().contains("LOG:  sprung"), "{}", cluster.log());
}

/// The planner goes by library and symbol, too.
#[test]
fn nor_does_the_planner_take_it_for_one() {
    let cluster = hers();
    let mut client = cluster.client_of("postgres", "hers");
    client
        .batch_execute("SELECT ids.snowflake_adopt('ours'); INSERT INTO ours SELECT FROM generate_series(1, 9)")
        .unwrap();
    let plan = |function: &str| -> String {
        let query = format!("EXPLAIN (COSTS OFF) SELECT * FROM ours WHERE {function}(id) > now() - interval '1 h'");
        let mut client = cluster.client_of("postgres", "hers");
        client.batch_execute("SET enable_seqscan = off").unwrap();
        let rows = client.query(&query, &[]).unwrap();
        rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
    };
    assert!(plan("ids.snowflake_timestamp").contains("id > "), "{}", plan("ids.snowflake_timestamp"));
    assert!(!plan("evil.snowflake_timestamp").contains("id > "), "{}", plan("evil.snowflake_timestamp"));
}

/// As docs/security.md says of the owner of the extension.
#[test]
fn an_owner_cannot_revoke_and_can_keep_roles_out_by_the_schema() {
    let cluster = hers();
    cluster.client().batch_execute("CREATE ROLE clerk LOGIN").unwrap();
    let mut mallory = cluster.client_of("mallory", "hers");
    // A WARNING, that no privileges could be revoked.
    mallory.batch_execute("REVOKE EXECUTE ON FUNCTION ids.snowflake_next() FROM PUBLIC").unwrap();
    let mut clerk = cluster.client_of("clerk", "hers");
    clerk.batch_execute("SELECT ids.snowflake_next()").unwrap();
    mallory
        .batch_execute(
            "REVOKE USAGE ON SCHEMA ids FROM PUBLIC; CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO clerk; \
             CREATE TABLE app.invoices (id bigint PRIMARY KEY DEFAULT ids.snowflake_next(), item text); \
             GRANT INSERT ON app.invoices TO clerk",
        )
        .unwrap();
    clerk.batch_execute("INSERT INTO app.invoices (item) VALUES ('lamp')").unwrap();
    refused(&mut clerk, "SELECT ids.snowflake_next()", "42501");
    // Nor replace, alter or drop what belongs to the extension.
    for statement in [
        "CREATE OR REPLACE FUNCTION ids.snowflake_next() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "ALTER FUNCTION ids.snowflake_next() IMMUTABLE",
        "ALTER FUNCTION ids.snowflake_next() SET search_path = evil",
        "ALTER EXTENSION pg_snowflake DROP FUNCTION ids.snowflake_next()",
        "CREATE TABLE _snowflake.mine ()",
        "ALTER FUNCTION _snowflake.min_id(timestamptz) RENAME TO max_id",
    ] {
        refused(&mut mallory, statement, "42501");
    }
}
