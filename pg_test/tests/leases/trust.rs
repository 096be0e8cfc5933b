//! Whose code could run in a registry, and what a server says of it.

use crate::{leasing, registry, status};
use snowflake_test::check::{refused, wait_for};
use snowflake_test::query::{next, value};
use snowflake_test::registries::Kind;
use snowflake_test::{Cluster, Stop, seconds};
use std::process::Command;
use std::time::Instant;

/// Somebody who may create schemas in the registry's database had his trigger run as the servers' role.
#[test]
fn a_registry_that_somebody_else_has_made_is_not_used() {
    let registry = registry(Kind::Postgres);
    let trap = "CREATE ROLE mallory LOGIN; CREATE ROLE ids LOGIN; GRANT CREATE ON DATABASE postgres TO mallory, ids; \
        SET ROLE mallory; CREATE SCHEMA snowflake_registry; \
        CREATE TABLE snowflake_registry.namespaces (namespace text COLLATE \"C\" PRIMARY KEY, format integer NOT NULL, \
            layout text NOT NULL, life text NOT NULL, leases_from timestamptz, written_at timestamptz NOT NULL DEFAULT now()); \
        CREATE TABLE snowflake_registry.sprung (who name); \
        CREATE FUNCTION snowflake_registry.trap() RETURNS trigger LANGUAGE plpgsql AS \
            'BEGIN INSERT INTO snowflake_registry.sprung VALUES (current_user); RETURN NEW; END'; \
        CREATE TRIGGER trap BEFORE INSERT OR UPDATE ON snowflake_registry.namespaces FOR EACH ROW \
            EXECUTE FUNCTION snowflake_registry.trap(); \
        GRANT ALL ON SCHEMA snowflake_registry TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA snowflake_registry TO PUBLIC; \
        RESET ROLE";
    let mut people = registry.cluster().client();
    people.batch_execute(trap).unwrap();
    let url = format!("postgres://ids@{}/postgres", registry.address());
    let cluster = leasing(&url).set("pg_snowflake.max_wait = '1s'").start();
    let mut client = cluster.client();
    let says = "schema snowflake_registry belongs to role \"mallory\"; table namespaces has a trigger";
    wait_for("the state is shown", || status(&mut client, "registry_error").contains(says));
    let error = refused(&mut client, "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains(says), "{error:?}");
    wait_for("it is in the log", || cluster.log().contains(says));
    assert_eq!(value::<i64>(&mut people, "SELECT count(*) FROM snowflake_registry.sprung"), 0);
    people.batch_execute("DROP SCHEMA snowflake_registry CASCADE").unwrap();
    wait_for("the registry is used", || client.query("SELECT snowflake_next()", &[]).is_ok());
    assert!(!cluster.log().contains("more rights than it needs"), "{}", cluster.log());
}

#[test]
fn there_is_a_warning_of_a_superuser() {
    let registry = registry(Kind::Postgres);
    let cluster = leasing(&registry.url()).start();
    next(&mut cluster.client());
    let warning = "WARNING:  the registry of worker IDs gives a role more rights than it needs";
    wait_for("a WARNING", || cluster.log().contains(warning));
    assert!(
        cluster.log().contains("The registry's role \"postgres\" is a superuser in the registry, or can become one."),
        "{}",
        cluster.log()
    );
}

/// The process hung in open(), and a fast stop with it.
#[test]
fn a_pipe_in_the_place_of_certificates_does_not_hold_up_a_stop() {
    let registry = registry(Kind::Postgres);
    let cluster = Cluster::options().create();
    let pipe = cluster.new_file("roots");
    assert!(Command::new("mkfifo").args(["-m", "666"]).arg(&pipe).status().unwrap().success());
    let url = format!("{}?sslmode=verify-ca&sslrootcert={}", registry.url(), pipe.display());
    cluster.append(
        "postgresql.conf",
        &format!("pg_snowflake.worker_id = -1\npg_snowflake.registry = '{url}'\npg_snowflake.max_wait = '1s'\n"),
    );
    cluster.start();
    let mut client = cluster.client();
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    wait_for("the state is shown", || status(&mut client, "registry_error").contains("it is not a regular file"));
    let start = Instant::now();
    cluster.stop(Stop::Fast);
    assert!(start.elapsed() < seconds(20), "{:?}", start.elapsed());
}
