//! Rights of roles over time: default privileges, objects that get another owner, roles that lose a right or go.

use postgres::Client;
use snowflake_test::check::{self, refused};
use snowflake_test::hosted::{self, DATABASE, create_database, run_script, server};
use snowflake_test::query::{ORDERS, batch};
use snowflake_test::{Cluster, value};

/// A server with a database of the role `owner`, and a role `app`.
fn empty() -> Cluster {
    let cluster = hosted::options().create();
    cluster.start();
    create_database(&cluster, DATABASE);
    cluster.client().batch_execute("CREATE ROLE app LOGIN").unwrap();
    cluster
}

/// Who may do what with each object, as if the default were written out.
fn privileges(client: &mut Client) -> Vec<String> {
    let query = "WITH object AS (
            SELECT p.oid::regprocedure::text AS name, coalesce(proacl, acldefault('f', proowner)) AS acl FROM pg_proc AS p
            JOIN pg_namespace AS n ON n.oid = pronamespace WHERE nspname = '_snowflake' OR proname LIKE 'snowflake\\_%'
            UNION ALL SELECT c.oid::regclass::text, coalesce(relacl, acldefault('s', relowner)) FROM pg_class AS c
            JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = '_snowflake' AND relkind = 'S'
            UNION ALL SELECT typname, coalesce(typacl, acldefault('T', typowner)) FROM pg_type WHERE typname = 'snowflake_parts'
            UNION ALL SELECT nspname, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace WHERE nspname = '_snowflake'
        ) SELECT concat_ws(' ', name, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, privilege_type, is_grantable)
        FROM object, aclexplode(acl) ORDER BY 1";
    client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

const DEFAULTS: &str = "
    ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
    ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO app WITH GRANT OPTION;
    ALTER DEFAULT PRIVILEGES REVOKE UPDATE ON SEQUENCES FROM owner;
    ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM owner;
    ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM owner;
    ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO PUBLIC;
    ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO app WITH GRANT OPTION;
    ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC;
    ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO PUBLIC;
    ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO app WITH GRANT OPTION;
    ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT EXECUTE ON FUNCTIONS TO app";

/// What `app` must not be able to do.
const FORBIDDEN: [&str; 6] = [
    "SELECT setval('_snowflake.base', 5)",
    "SELECT nextval('_snowflake.number')",
    "SELECT setval('_snowflake.layout', 5)",
    "CREATE FUNCTION _snowflake.trap() RETURNS bigint LANGUAGE sql RETURN 1",
    "SELECT _snowflake.open(0, _snowflake.layout())",
    "SELECT _snowflake.next_slowly(1, 2, 3)",
];

#[test]
fn default_privileges_change_nothing() {
    let cluster = empty();
    create_database(&cluster, "model");
    run_script(&cluster, "model");
    let expected = privileges(&mut cluster.client_of("owner", "model"));
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute(DEFAULTS).unwrap();
    run_script(&cluster, DATABASE);
    assert_eq!(privileges(&mut owner), expected);
    // Again, where all of it is there.
    run_script(&cluster, DATABASE);
    assert_eq!(privileges(&mut owner), expected);
    owner.batch_execute("SELECT snowflake_configure(1)").unwrap();
    let mut app = cluster.client_of("app", DATABASE);
    app.batch_execute("SELECT snowflake_timestamp(snowflake_next()), snowflake_decode(5)").unwrap();
    for statement in FORBIDDEN.iter().chain(&["SELECT snowflake_configure(2)", "SELECT snowflake_status()"]) {
        refused(&mut app, statement, "42501");
    }
}

/// What the script of 0.2.0 left open to others, an update closes.
#[test]
fn an_update_closes_what_default_privileges_left_open() {
    let cluster = empty();
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute(DEFAULTS).unwrap();
    owner.batch_execute(&hosted::first_released()).unwrap();
    let mut app = cluster.client_of("app", DATABASE);
    app.batch_execute("BEGIN; SELECT setval('_snowflake.base', 5); CREATE TABLE _snowflake.mine (); ROLLBACK").unwrap();
    run_script(&cluster, DATABASE);
    owner.batch_execute("SELECT snowflake_configure(1)").unwrap();
    for statement in FORBIDDEN {
        refused(&mut app, statement, "42501");
    }
    app.batch_execute("SELECT snowflake_timestamp(snowflake_next())").unwrap();
}

/// Who may call what is the administrator's matter.
#[test]
fn an_update_keeps_what_was_granted_and_revoked() {
    let cluster = server();
    cluster.client().batch_execute("CREATE ROLE app; CREATE ROLE backup; CREATE ROLE clerk LOGIN").unwrap();
    let mut owner = cluster.client_of("owner", DATABASE);
    owner
        .batch_execute(
            "REVOKE EXECUTE ON FUNCTION snowflake_next() FROM PUBLIC; GRANT EXECUTE ON FUNCTION snowflake_next() TO app; \
             GRANT EXECUTE ON FUNCTION snowflake_status() TO app; GRANT SELECT ON ALL SEQUENCES IN SCHEMA _snowflake TO backup",
        )
        .unwrap();
    let before = privileges(&mut owner);
    run_script(&cluster, DATABASE);
    assert_eq!(privileges(&mut owner), before);
    refused(&mut cluster.client_of("clerk", DATABASE), "SELECT snowflake_next()", "42501");
}

#[test]
fn another_owner() {
    let cluster = server();
    cluster.client().batch_execute("CREATE ROLE heir LOGIN; CREATE ROLE app LOGIN").unwrap();
    let mut app = cluster.client_of("app", DATABASE);
    let mut list = batch(&mut app, 50);
    let mut superuser = cluster.client_of("postgres", DATABASE);
    superuser
        .batch_execute(&format!("REASSIGN OWNED BY owner TO heir; GRANT CREATE ON DATABASE {DATABASE} TO owner"))
        .unwrap();
    list.extend(batch(&mut app, 50));
    // The one that was there before does not update it any more, and cannot change it.
    let mut owner = cluster.client_of("owner", DATABASE);
    let error = refused(&mut owner, hosted::script(), "42501");
    assert!(error.detail().unwrap().starts_with("Of role heir: schema _snowflake"), "{error:?}");
    refused(&mut owner, "SELECT snowflake_configure(3)", "42501");
    refused(&mut owner, "SELECT setval('_snowflake.base', 5)", "42501");
    let mut heir = cluster.client_of("heir", DATABASE);
    heir.batch_execute(hosted::script()).unwrap();
    heir.batch_execute("SELECT snowflake_configure(4)").unwrap();
    list.extend(batch(&mut app, 50));
    check::rising(&list);
    // Only some of it.
    superuser.batch_execute("ALTER FUNCTION snowflake_next() OWNER TO owner").unwrap();
    let error = refused(&mut heir, hosted::script(), "42501");
    assert_eq!(error.detail(), Some("Of role owner: function public.snowflake_next()."));
}

#[test]
fn owned_objects_are_dropped() {
    let cluster = server();
    cluster.client().batch_execute("CREATE ROLE app LOGIN; CREATE ROLE clerk LOGIN").unwrap();
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute("GRANT EXECUTE ON FUNCTION snowflake_status() TO app").unwrap();
    let mut superuser = cluster.client_of("postgres", DATABASE);
    // What was granted to a role goes with it, and nothing else.
    superuser.batch_execute("DROP OWNED BY app; DROP ROLE app").unwrap();
    let mut clerk = cluster.client_of("clerk", DATABASE);
    let list = batch(&mut clerk, 10);
    // What uses the functions is in the way.
    superuser.batch_execute(ORDERS).unwrap();
    refused(&mut superuser, "DROP OWNED BY owner", "2BP01");
    superuser.batch_execute("DROP OWNED BY owner CASCADE").unwrap();
    assert!(privileges(&mut superuser).is_empty());
    superuser
        .batch_execute(&format!("GRANT CREATE ON DATABASE {DATABASE} TO owner; GRANT CREATE ON SCHEMA public TO owner"))
        .unwrap();
    run_script(&cluster, DATABASE);
    owner.batch_execute("SELECT snowflake_configure(1)").unwrap();
    check::rising(&[list, batch(&mut clerk, 10)].concat());
}

#[test]
fn without_the_right_to_create() {
    let cluster = empty();
    cluster.client().batch_execute("CREATE DATABASE others").unwrap();
    let mut superuser = cluster.client_of("postgres", "others");
    superuser.batch_execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC").unwrap();
    let mut app = cluster.client_of("app", "others");
    let error = refused(&mut app, hosted::script(), "42501");
    assert_eq!(error.message(), "role app may not create schemas in this database");
    assert_eq!(error.hint(), Some("For example: GRANT CREATE ON DATABASE others TO app;"));
    superuser.batch_execute(error.hint().unwrap().trim_start_matches("For example: ")).unwrap();
    let error = refused(&mut app, hosted::script(), "42501");
    assert_eq!(error.message(), "role app may not create functions in schema public");
    superuser.batch_execute(error.hint().unwrap().trim_start_matches("For example: ")).unwrap();
    app.batch_execute(hosted::script()).unwrap();
    app.batch_execute("SELECT snowflake_configure(1)").unwrap();
    // An update makes no schema; but functions, in public as well.
    superuser.batch_execute("REVOKE CREATE ON DATABASE others FROM app").unwrap();
    app.batch_execute(hosted::script()).unwrap();
    superuser.batch_execute("REVOKE CREATE ON SCHEMA public FROM app").unwrap();
    let error = refused(&mut app, hosted::script(), "42501");
    assert_eq!(error.message(), "role app may not create functions in schema public");
    app.batch_execute("SELECT snowflake_next()").unwrap();
}

/// Whoever may create roles has no rights of theirs, from 16 on either.
#[test]
fn a_role_that_creates_roles() {
    let cluster = hosted::options().create();
    cluster.start();
    cluster.client().batch_execute("CREATE ROLE registrar LOGIN CREATEROLE").unwrap();
    let mut registrar = cluster.client_of("registrar", "postgres");
    registrar.batch_execute("CREATE ROLE tenant LOGIN").unwrap();
    cluster.client().batch_execute("CREATE DATABASE theirs OWNER tenant").unwrap();
    let mut tenant = cluster.client_of("tenant", "theirs");
    tenant.batch_execute(hosted::script()).unwrap();
    tenant
        .batch_execute("SELECT snowflake_configure(1); CREATE TABLE events (id bigint) PARTITION BY RANGE (id)")
        .unwrap();
    let mut registrar = cluster.client_of("registrar", "theirs");
    refused(&mut registrar, hosted::script(), "42501");
    refused(&mut registrar, "SELECT snowflake_configure(2)", "42501");
    let make = "SELECT snowflake_create_partitions('events', '1 day', '2026-01-01', '2026-01-03')";
    refused(&mut registrar, make, "42501");
    assert_eq!(value::<i64>(&mut tenant, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass"), 0);
}
