//! Who may do what, and as whom code runs.

use snowflake_test::check::{self, refused};
use snowflake_test::hosted::{DATABASE, create_database, run_script, server};
use snowflake_test::query::{ORDERS, batch};
use snowflake_test::value;

#[test]
fn everybody_makes_ids_and_nobody_else_changes_how() {
    let cluster = server();
    cluster.client().batch_execute("CREATE ROLE app LOGIN").unwrap();
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute(&format!("{ORDERS}; GRANT SELECT, INSERT ON orders TO app")).unwrap();
    let mut app = cluster.client_of("app", DATABASE);
    app.batch_execute("INSERT INTO orders (note) VALUES ('a'), ('b')").unwrap();
    assert_eq!(value::<i64>(&mut app, "SELECT count(*) FROM orders WHERE snowflake_worker(id) = 1"), 2);
    for query in [
        "SELECT snowflake_configure(2)",
        "SELECT snowflake_status()",
        "SELECT _snowflake.open(0, _snowflake.layout())",
        "SELECT _snowflake.next_slowly(1, 2, 3)",
        "SELECT setval('_snowflake.worker', 5)",
        "SELECT setval('_snowflake.base', 0)",
        "SELECT setval('_snowflake.end', 0)",
        "SELECT setval('_snowflake.layout', 5)",
        "SELECT setval('_snowflake.epoch', 5)",
        "SELECT setval('_snowflake.reservation', 5)",
        "SELECT nextval('_snowflake.number')",
        "DROP SEQUENCE _snowflake.number",
        "CREATE FUNCTION _snowflake.clock() RETURNS bigint LANGUAGE sql RETURN 1",
    ] {
        refused(&mut app, query, "42501");
    }
    refused(&mut owner, "SELECT snowflake_configure(1024)", "22003");
    refused(&mut owner, "SELECT snowflake_configure(1, 1)", "22023");
    refused(&mut owner, "SELECT snowflake_configure(NULL)", "22004");
    let error = refused(&mut owner, "SELECT snowflake_configure(1, layout => 'sonyflake')", "55000");
    assert_eq!(error.message(), "IDs were made in this database already");
    refused(&mut owner, "SELECT snowflake_configure(1, layout => 'mastodon')", "22023");
    let mut list = Vec::new();
    for worker in [9, 0, 1023, 3] {
        owner.batch_execute(&format!("SELECT snowflake_configure({worker})")).unwrap();
        list.extend(batch(&mut app, 20));
        assert_eq!(value::<i32>(&mut app, "SELECT snowflake_worker(snowflake_next())"), worker);
    }
    check::rising(&list);
}

/// A role may set its own `search_path`; no operator or function that it has made runs as the owner of the generator.
#[test]
fn a_hostile_search_path() {
    let cluster = server();
    cluster.client().batch_execute("CREATE ROLE mallory LOGIN").unwrap();
    cluster.client_of("postgres", DATABASE).batch_execute("CREATE SCHEMA evil AUTHORIZATION mallory").unwrap();
    let mut mallory = cluster.client_of("mallory", DATABASE);
    let mut made = String::from("CREATE TABLE evil.seen (who name, what text);");
    for (name, left, right, result) in [
        (">=", "bigint", "bigint", "boolean"),
        ("<", "bigint", "bigint", "boolean"),
        ("<", "integer", "integer", "boolean"),
        ("=", "bigint", "bigint", "boolean"),
        ("+", "bigint", "bigint", "bigint"),
        ("+", "bigint", "integer", "bigint"),
        ("-", "bigint", "bigint", "bigint"),
        ("*", "bigint", "bigint", "bigint"),
        ("/", "bigint", "bigint", "bigint"),
        ("|", "bigint", "bigint", "bigint"),
        ("&", "bigint", "bigint", "bigint"),
        ("&", "bigint", "integer", "bigint"),
        (">>", "bigint", "integer", "bigint"),
        ("<<", "bigint", "integer", "bigint"),
        ("=", "name", "name", "boolean"),
        ("=", "oid", "oid", "boolean"),
    ] {
        let function = format!("f_{}", made.len());
        made.push_str(&format!(
            "CREATE FUNCTION evil.{function}({left}, {right}) RETURNS {result} LANGUAGE plpgsql AS $$ BEGIN \
             IF current_user <> 'mallory' THEN RAISE 'ran as %', current_user; END IF; RETURN NULL; END $$; \
             CREATE OPERATOR evil.{name} (FUNCTION = evil.{function}, LEFTARG = {left}, RIGHTARG = {right});"
        ));
    }
    for (name, arguments, result) in [
        ("nextval", "regclass", "bigint"),
        ("pg_sequence_last_value", "regclass", "bigint"),
        ("format", "text, VARIADIC \"any\"", "text"),
        ("clock_timestamp", "", "timestamptz"),
        ("pg_try_advisory_xact_lock", "integer, integer", "boolean"),
        ("setval", "regclass, bigint", "bigint"),
    ] {
        let arguments = if name == "format" { "text, text" } else { arguments };
        made.push_str(&format!(
            "CREATE FUNCTION evil.{name}({arguments}) RETURNS {result} LANGUAGE plpgsql AS $$ BEGIN \
             IF current_user <> 'mallory' THEN RAISE 'ran as %', current_user; END IF; RETURN NULL; END $$;"
        ));
    }
    mallory.batch_execute(&made).unwrap();
    mallory.batch_execute("SET search_path = evil, pg_catalog, public").unwrap();
    for query in [
        "SELECT public.snowflake_next()",
        "SELECT public.snowflake_next(20)",
        "SELECT public.snowflake_timestamp(5::bigint), public.snowflake_min_id(pg_catalog.now())",
        "SELECT public.snowflake_to_text(5, 'base62'), public.snowflake_database_layout()",
    ] {
        for _ in 0..3 {
            mallory.query(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        }
    }
    refused(&mut mallory, "SELECT public.snowflake_next(-1)", "22023");
}

/// The script is not for a database that has the extension.
#[test]
fn not_over_an_extension() {
    let cluster = snowflake_test::Cluster::options().start();
    create_database(&cluster, DATABASE);
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let error = owner.batch_execute(snowflake_test::hosted::script()).unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42710", "{error:?}");
    create_database(&cluster, "plain");
    run_script(&cluster, "plain");
    run_script(&cluster, "plain");
}
