//! Tables of other roles. The library runs their code as their owner; where the extension in SQL would run it as the caller, it refuses.

use snowflake_test::check::refused;
use snowflake_test::hosted::{DATABASE, server};
use snowflake_test::{Cluster, hostile, value};

/// The server of the extension in SQL, where mallory has tables with code of her own, and the landlord is a member of her role.
fn with_traps() -> Cluster {
    let cluster = server();
    let roles = "CREATE ROLE mallory LOGIN; CREATE ROLE landlord LOGIN; GRANT mallory TO landlord";
    cluster.client().batch_execute(roles).unwrap();
    cluster
        .client_of("owner", DATABASE)
        .batch_execute("CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO mallory")
        .unwrap();
    cluster
        .client_of("mallory", DATABASE)
        .batch_execute(
            "CREATE FUNCTION evil.trap(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
                IF current_user <> 'mallory' THEN RAISE LOG 'sprung: as %', current_user; END IF; RETURN $1; END $$; \
             CREATE TABLE evil.events (id bigint, CHECK (evil.trap(5) > 0)) PARTITION BY RANGE (id); \
             CREATE INDEX ON evil.events (evil.trap(7)) WHERE evil.trap(1) > 0; \
             CREATE TABLE evil.rest PARTITION OF evil.events DEFAULT; INSERT INTO evil.rest VALUES (1)",
        )
        .unwrap();
    cluster
}

const MAKE: &str = "SELECT snowflake_create_partitions('evil.events', '1 day', '2026-01-01', '2026-01-04')";

#[test]
fn partitions_of_a_table_of_somebody_else() {
    let cluster = with_traps();
    for role in ["postgres", "landlord"] {
        let error = refused(&mut cluster.client_of(role, DATABASE), MAKE, "42501");
        assert_eq!(
            error.message(),
            format!("table evil.events belongs to role mallory, and the caller is role {role}"),
            "{error:?}"
        );
        assert!(error.hint().unwrap().contains("SET ROLE mallory"), "{error:?}");
    }
    let error = refused(&mut cluster.client_of("owner", DATABASE), MAKE, "42501");
    assert_eq!(error.message(), "must be owner of table events");
    assert!(hostile::sprung(&cluster).is_empty(), "{:?}", hostile::sprung(&cluster));
    let mut mallory = cluster.client_of("mallory", DATABASE);
    assert_eq!(mallory.query(MAKE, &[]).unwrap().len(), 3);
    let theirs = "SELECT bool_and(relowner = 'mallory'::regrole) FROM pg_class JOIN pg_inherits ON inhrelid = oid";
    assert!(value::<bool>(&mut mallory, theirs));
    // By its owner alone, who is a superuser that has become that role.
    let mut superuser = cluster.client_of("postgres", DATABASE);
    superuser.batch_execute("SET ROLE mallory").unwrap();
    superuser.batch_execute(&MAKE.replace("2026", "2027")).unwrap();
    assert!(hostile::sprung(&cluster).is_empty(), "{:?}", hostile::sprung(&cluster));
}

/// The default partition is read, and what the table is a partition of is looked at.
#[test]
fn tables_of_somebody_else_around_ones_own() {
    let cluster = with_traps();
    let mut superuser = cluster.client_of("postgres", DATABASE);
    superuser.batch_execute("ALTER TABLE evil.events OWNER TO owner; GRANT ALL ON SCHEMA evil TO owner").unwrap();
    let mut owner = cluster.client_of("owner", DATABASE);
    let error = refused(&mut owner, MAKE, "42501");
    assert_eq!(error.message(), "table evil.rest belongs to role mallory, and table evil.events does not");
    superuser.batch_execute(error.hint().unwrap().split_once("for example ").unwrap().1).unwrap();
    owner
        .batch_execute(
            "DROP TABLE evil.rest; CREATE TABLE evil.rest PARTITION OF evil.events DEFAULT PARTITION BY RANGE (id)",
        )
        .unwrap();
    owner.batch_execute("CREATE TABLE evil.below PARTITION OF evil.rest DEFAULT").unwrap();
    superuser.batch_execute("ALTER TABLE evil.below OWNER TO mallory").unwrap();
    let error = refused(&mut owner, MAKE, "42501");
    assert_eq!(error.message(), "table evil.below belongs to role mallory, and table evil.events does not");
    superuser
        .batch_execute(
            "DROP TABLE evil.rest; CREATE TABLE evil.top (id bigint) PARTITION BY RANGE (id); ALTER TABLE evil.top OWNER TO mallory; \
             ALTER TABLE evil.events DROP CONSTRAINT events_check; ALTER TABLE evil.top ATTACH PARTITION evil.events FOR VALUES FROM (0) TO (MAXVALUE)",
        )
        .unwrap();
    let error = refused(&mut owner, MAKE, "42501");
    assert_eq!(error.message(), "table evil.top belongs to role mallory, and table evil.events does not");
}

/// Whoever owns the schema can drop what is in it, or give it another name, while a call waits. So the call is refused.
#[test]
fn a_table_in_a_schema_of_somebody_else() {
    let cluster = with_traps();
    let mut superuser = cluster.client_of("postgres", DATABASE);
    let own = "ALTER SCHEMA evil OWNER TO mallory; CREATE TABLE evil.own (id bigint) PARTITION BY RANGE (id)";
    superuser.batch_execute(own).unwrap();
    let error = refused(&mut superuser, &MAKE.replace("events", "own"), "42501");
    assert_eq!(error.message(), "table evil.own is in a schema of role mallory, and the caller is role postgres");
    superuser.batch_execute(error.hint().unwrap().split_once("for example ").unwrap().1).unwrap();
    superuser.batch_execute(&MAKE.replace("events", "own")).unwrap();
    assert!(hostile::sprung(&cluster).is_empty(), "{:?}", hostile::sprung(&cluster));
}

/// A new layout touches functions that have the old one in their plans; those of others are theirs.
#[test]
fn functions_of_somebody_else_do_not_stop_the_configuration() {
    let cluster = with_traps();
    let made = "CREATE FUNCTION evil.layout() RETURNS bigint[] LANGUAGE sql RETURN _snowflake.layout()";
    cluster.client_of("mallory", DATABASE).batch_execute(made).unwrap();
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute("SELECT snowflake_configure(1, layout => 'sonyflake')").unwrap();
    assert!(value::<bool>(&mut owner, "SELECT snowflake_database_layout() LIKE '% tick=10ms %'"));
}
