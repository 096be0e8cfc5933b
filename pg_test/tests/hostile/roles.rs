//! Rights of roles over time: what the role that creates the extension has given away beforehand, and what becomes of the extension when
//! its owner goes.

use postgres::Client;
use snowflake_test::Cluster;
use snowflake_test::check::{refused, rising};
use snowflake_test::query::{next, value};

/// What may be given away of all that is made later. It is common to do so for the role of an application.
const DEFAULTS: &str = "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO PUBLIC;
    ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO clerk WITH GRANT OPTION;
    ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO PUBLIC, clerk";

/// The privileges of others with which the record can be changed.
const PRIVILEGES: &str = "SELECT concat_ws(' ', name, grantee::regrole, privilege_type)
    FROM (SELECT relname AS name, relacl AS acl, relowner AS owner FROM pg_class
          WHERE relnamespace = '_snowflake'::regnamespace AND relkind = 'S'
          UNION ALL SELECT nspname, nspacl, nspowner FROM pg_namespace WHERE nspname = '_snowflake') o, aclexplode(acl)
    WHERE grantee <> owner AND privilege_type <> CASE name WHEN '_snowflake' THEN 'USAGE' ELSE 'SELECT' END";

/// A role that owns the database `prey`, another superuser, and the clerk of an application; each of those who can create the extension has
/// given the clerk what he makes.
fn server() -> Cluster {
    let cluster = Cluster::options().start();
    let roles = "CREATE ROLE landlord LOGIN; CREATE ROLE chief LOGIN SUPERUSER; CREATE ROLE clerk LOGIN";
    cluster.client().batch_execute(roles).unwrap();
    cluster.client().batch_execute("CREATE DATABASE prey OWNER landlord").unwrap();
    for role in ["postgres", "chief", "landlord"] {
        cluster.client_of(role, "prey").batch_execute(DEFAULTS).unwrap();
    }
    cluster
}

fn check_record(cluster: &Cluster) {
    let rows = cluster.client_of("postgres", "prey").query(PRIVILEGES, &[]).unwrap();
    let privileges: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(privileges, [""; 0]);
    let mut clerk = cluster.client_of("clerk", "prey");
    for statement in [
        "SELECT setval('_snowflake.reservation', 1)",
        "SELECT setval('_snowflake.layout', 1)",
        "SELECT nextval('_snowflake.epoch')",
        "CREATE TABLE _snowflake.mine ()",
        "CREATE FUNCTION _snowflake.min_id(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
    ] {
        refused(&mut clerk, statement, "42501");
    }
    clerk.batch_execute("SELECT last_value FROM _snowflake.reservation").unwrap();
}

#[test]
fn default_privileges_do_not_open_the_record() {
    let cluster = server();
    for creator in ["landlord", "chief", "postgres"] {
        let mut client = cluster.client_of(creator, "prey");
        client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
        check_record(&cluster);
        client.batch_execute("DROP EXTENSION pg_snowflake").unwrap();
    }
}

/// Also what was given away before the update, and passed on.
#[test]
fn an_update_closes_the_record() {
    let cluster = server();
    let mut client = cluster.client_of("landlord", "prey");
    client.batch_execute("CREATE EXTENSION pg_snowflake VERSION '0.2.0'").unwrap();
    cluster.client_of("postgres", "prey").batch_execute("CREATE ROLE friend").unwrap();
    let mut clerk = cluster.client_of("clerk", "prey");
    clerk.batch_execute("GRANT USAGE ON SEQUENCE _snowflake.reservation TO friend").unwrap();
    client.batch_execute("ALTER EXTENSION pg_snowflake UPDATE").unwrap();
    check_record(&cluster);
}

fn owner(client: &mut Client) -> String {
    let owners = "SELECT string_agg(DISTINCT owner::regrole::text, ', ') FROM (
        SELECT extowner AS owner FROM pg_extension WHERE extname = 'pg_snowflake'
        UNION ALL SELECT relowner FROM pg_class WHERE relnamespace = '_snowflake'::regnamespace AND relkind = 'S') o";
    value(client, owners)
}

#[test]
fn when_its_owner_goes_ids_go_on_or_nothing_is_done() {
    let cluster = server();
    let mut landlord = cluster.client_of("landlord", "prey");
    landlord
        .batch_execute(
            "CREATE EXTENSION pg_snowflake; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next())",
        )
        .unwrap();
    let mut client = cluster.client_of("postgres", "prey");
    let mut list = vec![next(&mut client)];
    client.batch_execute("CREATE TABLE others (id bigint DEFAULT snowflake_next())").unwrap();
    // It belongs to him, and a table of somebody else's needs it.
    let error = refused(&mut client, "DROP OWNED BY landlord", "2BP01");
    assert!(error.detail().unwrap().contains("others"), "{error:?}");
    list.push(next(&mut client));
    client.batch_execute("CREATE ROLE heir LOGIN; REASSIGN OWNED BY landlord TO heir").unwrap();
    assert_eq!(owner(&mut client), "heir");
    client.batch_execute("DROP OWNED BY landlord").unwrap();
    list.push(next(&mut client));
    list.push(value(&mut landlord, "SELECT snowflake_next()"));
    // He restores what a dump says, and nobody else does.
    cluster
        .client_of("heir", "prey")
        .batch_execute("SELECT setval('_snowflake.layout', last_value) FROM _snowflake.layout")
        .unwrap();
    refused(&mut landlord, "SELECT setval('_snowflake.layout', 1)", "42501");
    list.push(next(&mut client));
    rising(&list);
}
