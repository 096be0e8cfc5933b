//! What is there before the script runs: nothing that it did not make, or that another role owns, is taken over.

use postgres::Client;
use postgres::error::DbError;
use snowflake_test::check::refused;
use snowflake_test::dump::psql;
use snowflake_test::hosted::{self, DATABASE, create_database, run_script};
use snowflake_test::programs::output;
use snowflake_test::{Cluster, value};
use std::fs;

/// A server with a database of the role `owner`, in which mallory may create schemas, and objects in `public`.
fn shared() -> Cluster {
    let cluster = hosted::options().create();
    cluster.start();
    create_database(&cluster, DATABASE);
    cluster
        .client_of("postgres", DATABASE)
        .batch_execute(&format!(
            "CREATE ROLE mallory LOGIN; GRANT CREATE ON DATABASE {DATABASE} TO mallory; GRANT CREATE ON SCHEMA public TO mallory"
        ))
        .unwrap();
    cluster
}

#[track_caller]
fn refused_script(client: &mut Client, sqlstate: &str) -> DbError {
    refused(client, hosted::script(), sqlstate)
}

/// All functions, types, relations, schemas, and whose they are.
fn everything(cluster: &Cluster) -> Vec<String> {
    let query = "SELECT concat_ws(' ', oid::regprocedure, proowner::regrole, prosrc) FROM pg_proc
        UNION ALL SELECT concat_ws(' ', oid::regclass, relowner::regrole) FROM pg_class
        UNION ALL SELECT concat_ws(' ', oid::regtype, typowner::regrole) FROM pg_type
        UNION ALL SELECT concat_ws(' ', nspname, nspowner::regrole, nspacl) FROM pg_namespace ORDER BY 1";
    let mut client = cluster.client_of("postgres", DATABASE);
    client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn a_schema_of_somebody_else() {
    let cluster = shared();
    cluster
        .client_of("mallory", DATABASE)
        .batch_execute(
            "CREATE SCHEMA _snowflake; GRANT ALL ON SCHEMA _snowflake TO PUBLIC; CREATE SEQUENCE _snowflake.number; \
             CREATE FUNCTION _snowflake.clock() RETURNS bigint LANGUAGE sql RETURN 1",
        )
        .unwrap();
    let before = everything(&cluster);
    for role in ["owner", "postgres"] {
        let error = refused_script(&mut cluster.client_of(role, DATABASE), "42501");
        let detail = "Of role mallory: schema _snowflake, sequence _snowflake.number, function _snowflake.clock().";
        assert_eq!(error.detail(), Some(detail));
        assert!(error.hint().unwrap().ends_with("If not, have these dropped."), "{error:?}");
        assert_eq!(everything(&cluster), before);
    }
}

/// As Rails' `create_schema` makes it, before anything else.
#[test]
fn an_empty_schema_of_ones_own_is_made_anew() {
    let cluster = shared();
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute("CREATE SCHEMA _snowflake; GRANT ALL ON SCHEMA _snowflake TO mallory").unwrap();
    let oid = "SELECT oid FROM pg_namespace WHERE nspname = '_snowflake'";
    let before: u32 = value(&mut owner, oid);
    let mut mallory = cluster.client_of("mallory", DATABASE);
    run_script(&cluster, DATABASE);
    let after: u32 = value(&mut owner, oid);
    assert_ne!(after, before);
    refused(&mut mallory, "CREATE TABLE _snowflake.mine ()", "42501");
    // An update does not make it anew.
    run_script(&cluster, DATABASE);
    assert_eq!(value::<u32>(&mut owner, oid), after);
    // Nor is anything lost that somebody has made.
    owner.batch_execute("DROP SCHEMA _snowflake CASCADE").unwrap();
    for made in [
        "CREATE TYPE _snowflake.e AS ENUM ()",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA _snowflake GRANT ALL ON TABLES TO PUBLIC",
    ] {
        owner.batch_execute(&format!("BEGIN; CREATE SCHEMA _snowflake; {made}")).unwrap();
        refused_script(&mut owner, "42710");
        owner.batch_execute("ROLLBACK").unwrap();
    }
}

/// Each that the script makes, taken from a database that has it: by another role, and of another kind.
#[test]
fn functions_and_types_of_somebody_else() {
    let cluster = shared();
    create_database(&cluster, "model");
    run_script(&cluster, "model");
    let list = "SELECT concat_ws('(', proname, oidvectortypes(proargtypes) || ')') FROM pg_proc WHERE proname LIKE 'snowflake\\_%'";
    let mut model = cluster.client_of("owner", "model");
    let list: Vec<String> = model.query(list, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    assert!(list.len() > 30, "{list:?}");
    let mut client = cluster.client_of("postgres", DATABASE);
    let mut try_with = |role: &str, made: &str, name: &str, sqlstate: &str| {
        client.batch_execute(&format!("BEGIN; SET ROLE {role}; {made}; SET ROLE owner")).unwrap();
        let error = refused_script(&mut client, sqlstate);
        assert_eq!(
            error.message(),
            "the extension in SQL would create objects that are there already, and are not its own"
        );
        assert!(error.detail().unwrap().contains(name), "{name}: {error:?}");
        client.batch_execute("ROLLBACK").unwrap();
    };
    for function in list {
        let name = function.replace(", ", ",");
        let made = format!("CREATE FUNCTION public.{function} RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'");
        try_with("mallory", &made, &name, "42501");
        try_with("owner", &made, &name, "42710");
        let procedure = format!("CREATE PROCEDURE public.{function} LANGUAGE sql AS ''");
        try_with("owner", &procedure, &name, "42710");
    }
    let aggregate = "CREATE AGGREGATE snowflake_next(integer) (SFUNC = int4pl, STYPE = integer)";
    try_with("owner", aggregate, "snowflake_next(integer)", "42710");
    for made in ["CREATE TYPE snowflake_parts AS (a integer)", "CREATE TABLE snowflake_parts ()"] {
        try_with("mallory", made, "snowflake_parts", "42501");
        try_with("owner", made, "snowflake_parts", "42710");
    }
    assert!(!value::<bool>(&mut client, "SELECT to_regnamespace('_snowflake') IS NOT NULL"));
}

/// A restore may leave comments out, by which the script knows what it has made. The hint says what to do.
#[test]
fn a_comment_makes_it_known_again() {
    let cluster = shared();
    run_script(&cluster, DATABASE);
    let mut owner = cluster.client_of("owner", DATABASE);
    let comment = "SELECT obj_description('snowflake_age(bigint)'::regprocedure, 'pg_proc')";
    let comment: String = value(&mut owner, comment);
    owner.batch_execute("COMMENT ON FUNCTION snowflake_age(bigint) IS NULL").unwrap();
    let error = refused_script(&mut owner, "42710");
    assert_eq!(error.detail(), Some("Not made by this file: function public.snowflake_age(bigint)."));
    assert!(error.hint().unwrap().contains("COMMENT ON"), "{error:?}");
    owner.batch_execute(&format!("COMMENT ON FUNCTION snowflake_age(bigint) IS '{comment}'")).unwrap();
    run_script(&cluster, DATABASE);
}

/// An installation belongs to one role, also where another one could replace its functions.
#[test]
fn an_installation_of_another_role() {
    let cluster = shared();
    cluster.client_of("owner", DATABASE).batch_execute(&hosted::first_released()).unwrap();
    cluster.client().batch_execute("CREATE ROLE deputy LOGIN; GRANT owner TO deputy").unwrap();
    let before = everything(&cluster);
    for role in ["postgres", "deputy", "mallory"] {
        let mut client = cluster.client_of(role, DATABASE);
        let error = refused_script(&mut client, "42501");
        assert!(error.detail().unwrap().starts_with("Of role owner: schema _snowflake, "), "{error:?}");
        assert!(error.hint().unwrap().contains("SET ROLE owner, and run the file again"), "{error:?}");
        assert_eq!(everything(&cluster), before);
    }
    let mut client = cluster.client_of("postgres", DATABASE);
    client.batch_execute("SET ROLE owner").unwrap();
    client.batch_execute(hosted::script()).unwrap();
}

/// Whoever could create something in the schema once may have left it there.
#[test]
fn what_else_is_in_the_schema() {
    let cluster = shared();
    run_script(&cluster, DATABASE);
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute("GRANT CREATE ON SCHEMA _snowflake TO mallory").unwrap();
    let made = "CREATE OPERATOR _snowflake.* (FUNCTION = int8mul, LEFTARG = bigint, RIGHTARG = bigint)";
    cluster.client_of("mallory", DATABASE).batch_execute(made).unwrap();
    let error = refused_script(&mut owner, "42501");
    assert_eq!(error.detail(), Some("Of role mallory: operator _snowflake.*(bigint,bigint)."));
    cluster.client_of("postgres", DATABASE).batch_execute("REASSIGN OWNED BY mallory TO owner").unwrap();
    let error = refused_script(&mut owner, "42710");
    assert_eq!(error.detail(), Some("Not made by this file: operator _snowflake.*(bigint,bigint)."));
    owner.batch_execute("DROP OPERATOR _snowflake.* (bigint, bigint)").unwrap();
    owner.batch_execute("CREATE FUNCTION _snowflake.floor(numeric) RETURNS numeric LANGUAGE sql RETURN 1").unwrap();
    let error = refused_script(&mut owner, "42710");
    assert_eq!(error.detail(), Some("Function _snowflake.floor(numeric) was not made by this file."));
    owner.batch_execute("ALTER FUNCTION _snowflake.floor(numeric) SET SCHEMA public").unwrap();
    run_script(&cluster, DATABASE);
    // Nobody else can any more.
    refused(&mut cluster.client_of("mallory", DATABASE), made, "42501");
}

/// Where functions are called: `found`, as the catalog says.
fn place(client: &mut Client) -> Vec<String> {
    let query = "SELECT DISTINCT nspname::text FROM pg_proc JOIN pg_namespace AS n ON n.oid = pronamespace \
                 WHERE proname LIKE 'snowflake\\_%' UNION SELECT nspname FROM pg_type JOIN pg_namespace AS n ON n.oid = typnamespace \
                 WHERE typname = 'snowflake_parts' ORDER BY 1";
    client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn the_schema_where_functions_are_called() {
    let cluster = shared();
    // One that is found before public, where sessions of the owner look first.
    cluster
        .client_of("mallory", DATABASE)
        .batch_execute("CREATE SCHEMA owner; GRANT ALL ON SCHEMA owner TO owner")
        .unwrap();
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute("SET search_path = owner").unwrap();
    let error = refused_script(&mut owner, "3F000");
    assert_eq!(error.detail(), Some("The search_path is \"owner\". Schemas of other roles do not count."));
    owner.batch_execute("RESET search_path; BEGIN").unwrap();
    owner.batch_execute(hosted::script()).unwrap();
    assert_eq!(place(&mut owner), ["public"]);
    owner.batch_execute("ROLLBACK").unwrap();
    // One of its own, whatever its name. An update finds it.
    owner.batch_execute("CREATE SCHEMA \"Our \"\"IDs\"; SET search_path = \"Our \"\"IDs\", public").unwrap();
    owner.batch_execute(hosted::script()).unwrap();
    assert_eq!(place(&mut owner), ["Our \"IDs"]);
    assert_eq!(value::<String>(&mut owner, "SHOW search_path"), "\"Our \"\"IDs\", public");
    owner.batch_execute("RESET search_path").unwrap();
    owner.batch_execute(hosted::script()).unwrap();
    assert_eq!(place(&mut owner), ["Our \"IDs"]);
    assert_eq!(value::<String>(&mut owner, "SHOW search_path"), "\"$user\", public");
    // There are two of what 0.2.0 was run for twice.
    let drop = "DROP SCHEMA \"Our \"\"IDs\" CASCADE; DROP SCHEMA _snowflake CASCADE; SET search_path = public";
    owner.batch_execute(drop).unwrap();
    owner.batch_execute(&hosted::first_released()).unwrap();
    owner.batch_execute("CREATE SCHEMA ids; SET search_path = ids").unwrap();
    owner.batch_execute(&hosted::first_released()).unwrap();
    owner.batch_execute("RESET search_path; DROP SCHEMA IF EXISTS other").unwrap();
    owner.batch_execute("CREATE SCHEMA other; SET search_path = other").unwrap();
    assert_eq!(refused_script(&mut owner, "42725").detail(), Some("It is in the schemas ids, public."));
    owner.batch_execute("SET search_path = ids").unwrap();
    owner.batch_execute(hosted::script()).unwrap();
    assert_eq!(place(&mut owner), ["ids", "public"]);
}

/// All is done or nothing, also by psql without a transaction that goes on after errors.
#[test]
fn nothing_is_half_done() {
    let cluster = shared();
    let mut mallory = cluster.client_of("mallory", DATABASE);
    mallory.batch_execute("CREATE FUNCTION snowflake_status() RETURNS void LANGUAGE sql AS ''").unwrap();
    let before = everything(&cluster);
    let file = cluster.new_file("hosted.sql");
    fs::write(&file, hosted::script()).unwrap();
    let run = || {
        let path = cluster.new_file("path.sql");
        fs::write(&path, format!("\\i {}\nSHOW search_path\n", file.display())).unwrap();
        output(psql(&cluster, "owner", DATABASE).args(["--no-align", "--tuples-only", "--file"]).arg(&path))
    };
    let said = run();
    assert!(said.errors.contains("Of role mallory: function public.snowflake_status()."), "{said:?}");
    assert_eq!(everything(&cluster), before);
    assert!(said.output.contains("\"$user\", public"), "{said:?}");
    mallory.batch_execute("DROP FUNCTION snowflake_status()").unwrap();
    let said = run();
    assert_eq!((said.errors.as_str(), said.output.trim()), ("", "\"$user\", public"));
    cluster
        .client_of("owner", DATABASE)
        .batch_execute("SELECT snowflake_configure(1); SELECT snowflake_next()")
        .unwrap();
}
