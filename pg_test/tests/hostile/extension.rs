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

/// A database in which the role `app` may create schemas, and so the extension.
fn before_the_extension() -> Cluster {
    let cluster = Cluster::options().create();
    cluster.start();
    let roles = "CREATE ROLE app LOGIN; CREATE ROLE mallory LOGIN; GRANT CREATE ON DATABASE postgres TO app, mallory";
    cluster.client().batch_execute(roles).unwrap();
    cluster
}

const CREATE: &str = "CREATE EXTENSION pg_snowflake SCHEMA public";

/// The schema `_snowflake`: its OID, its owner, its privileges, and what is in it that is not of the
/// extension.
const SCHEMA: &str = "SELECT concat_ws(' ', oid, nspowner::regrole, nspacl, (SELECT string_agg(pg_describe_object(classid, objid, 0), ', ')
        FROM pg_depend AS d WHERE refclassid = 'pg_namespace'::regclass AND refobjid = n.oid AND NOT EXISTS (SELECT FROM pg_depend AS e
            WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype = 'e')))
    FROM pg_namespace AS n WHERE nspname = '_snowflake'";

/// Rails and others make the schemas that a database had before its extensions. Whoever owned the
/// empty one, or had privileges on it, has none on the new one.
#[test]
fn an_empty_schema_of_the_creator_is_made_anew() {
    let cluster = before_the_extension();
    for role in ["app", "postgres"] {
        let mut client = cluster.client_of(role, "postgres");
        client
            .batch_execute(
                "CREATE SCHEMA _snowflake; GRANT ALL ON SCHEMA _snowflake TO mallory WITH GRANT OPTION; \
                 COMMENT ON SCHEMA _snowflake IS 'of Rails'",
            )
            .unwrap();
        let oid = "SELECT oid FROM pg_namespace WHERE nspname = '_snowflake'";
        let before: u32 = value(&mut client, oid);
        let mut mallory = cluster.client_of("mallory", "postgres");
        client.batch_execute(CREATE).unwrap();
        assert_ne!(value::<u32>(&mut client, oid), before);
        let made: String = value(&mut client, SCHEMA);
        let owner = " postgres {postgres=UC/postgres,=U/postgres}";
        assert!(made.ends_with(owner), "{made}");
        let comment = "SELECT obj_description('_snowflake'::regnamespace, 'pg_namespace')";
        assert!(value::<String>(&mut client, comment).starts_with("pg_snowflake's internal record"));
        refused(&mut mallory, "CREATE TABLE _snowflake.mine ()", "42501");
        if role == "app" {
            refused(&mut client, "ALTER SCHEMA _snowflake OWNER TO app", "42501");
            refused(&mut client, "CREATE TABLE _snowflake.mine ()", "42501");
        }
        client.batch_execute("DROP EXTENSION pg_snowflake").unwrap();
    }
}

/// Nothing that somebody has made goes, of whatever kind; nor what belongs to somebody else.
#[test]
fn a_schema_that_is_not_empty_or_of_another_role_stays() {
    let cluster = before_the_extension();
    let mut app = cluster.client_of("app", "postgres");
    let mut superuser = cluster.client();
    app.batch_execute("CREATE SCHEMA _snowflake").unwrap();
    let made = [
        ("TABLE _snowflake.t ()", "table _snowflake.t"),
        ("SEQUENCE _snowflake.epoch", "sequence _snowflake.epoch"),
        ("VIEW _snowflake.v AS SELECT 1 AS n", "view _snowflake.v"),
        ("TYPE _snowflake.e AS ENUM ()", "type _snowflake.e"),
        ("DOMAIN _snowflake.d AS integer", "type _snowflake.d"),
        ("FUNCTION _snowflake.f() RETURNS void LANGUAGE sql AS ''", "function _snowflake.f()"),
        (
            "OPERATOR _snowflake.* (FUNCTION = int8mul, LEFTARG = bigint, RIGHTARG = bigint)",
            "operator _snowflake.*(bigint,bigint)",
        ),
        ("COLLATION _snowflake.c FROM \"C\"", "collation _snowflake.c"),
        ("CONVERSION _snowflake.c FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8", "conversion _snowflake.c"),
        ("TEXT SEARCH CONFIGURATION _snowflake.c (COPY = simple)", "text search configuration _snowflake.c"),
    ];
    let stays = |by: &mut postgres::Client, part: &str| {
        let before: String = value(by, SCHEMA);
        by.batch_execute("SAVEPOINT here").unwrap();
        let error = refused(by, CREATE, "42P06");
        assert!(error.detail().unwrap().contains(part) && error.hint().is_some(), "{part}: {error:?}");
        by.batch_execute("ROLLBACK TO here").unwrap();
        assert_eq!(value::<String>(by, SCHEMA), before);
        by.batch_execute("ROLLBACK").unwrap();
    };
    for (object, name) in made {
        app.batch_execute(&format!("BEGIN; CREATE {object}")).unwrap();
        stays(&mut app, name);
    }
    app.batch_execute("BEGIN; ALTER DEFAULT PRIVILEGES IN SCHEMA _snowflake GRANT ALL ON TABLES TO PUBLIC").unwrap();
    stays(&mut app, "default privileges on new relations belonging to role app in schema _snowflake");
    // The extension's own schema cannot be that of its record.
    app.batch_execute("BEGIN").unwrap();
    let error = refused(&mut app, "CREATE EXTENSION pg_snowflake SCHEMA _snowflake", "42P06");
    assert!(error.detail().unwrap().contains("extension pg_snowflake"), "{error:?}");
    app.batch_execute("ROLLBACK").unwrap();
    // Another's, also for a superuser.
    for client in [&mut cluster.client_of("mallory", "postgres"), &mut superuser] {
        client.batch_execute("BEGIN").unwrap();
        stays(client, "It belongs to role app.");
    }
    // What comes while the extension is being created.
    let meanwhile = |other: &mut postgres::Client, statement: &str, part: &str| {
        other.batch_execute(&format!("BEGIN; {statement}")).unwrap();
        let error = std::thread::scope(|scope| {
            let creates = scope.spawn(|| cluster.client_of("app", "postgres").batch_execute(CREATE).unwrap_err());
            let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)";
            snowflake_test::check::wait_for("it waits", || value(&mut cluster.client(), waits));
            other.batch_execute("COMMIT").unwrap();
            creates.join().unwrap()
        });
        let error = error.as_db_error().unwrap();
        assert!(error.detail().unwrap().contains(part), "{error:?}");
    };
    meanwhile(&mut app, "CREATE TABLE _snowflake.t ()", "table _snowflake.t depends on schema _snowflake");
    app.batch_execute("DROP TABLE _snowflake.t").unwrap();
    if snowflake_test::Installation::under_test().major() >= 18 {
        // Before, a function could be left in a schema that was gone: in that one, not in ours.
        let function = "CREATE FUNCTION _snowflake.f() RETURNS void LANGUAGE sql AS ''";
        meanwhile(&mut app, function, "function _snowflake.f() depends on schema _snowflake");
        app.batch_execute("DROP FUNCTION _snowflake.f()").unwrap();
    }
    meanwhile(&mut superuser, "ALTER SCHEMA _snowflake OWNER TO mallory", "It belongs to role mallory.");
}
