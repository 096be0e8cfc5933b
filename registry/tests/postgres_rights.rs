//! Who owns what in a registry in PostgreSQL, who may do what there, and that nobody's code runs as the registry's role.
#![cfg(feature = "postgres")]

mod common;

use common::*;
use snowflake_core::lease::WorkerNumber;
use snowflake_registry::postgres::{SEGMENTS_TABLES, TABLES};
use snowflake_registry::{Error, Registry, Swap};
use snowflake_test::check::wait_for;
use snowflake_test::hostile;
use snowflake_test::pgbouncer::{PgBouncer, Pool};
use snowflake_test::registries::{Kind, Server, Setup};
use snowflake_test::value;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::thread;

/// A database `registry` of an administrator who is no superuser, with the role `ids` of the servers, and another role that may create
/// schemas there; and what of the latter's code runs as whom, written down in `public.sprung`.
fn start() -> Server {
    let server = Setup::of(Kind::Postgres).start();
    let statements = "CREATE ROLE admin LOGIN; CREATE ROLE ids LOGIN; CREATE ROLE mallory LOGIN";
    server.cluster().client().batch_execute(statements).unwrap();
    server.cluster().client().batch_execute("CREATE DATABASE registry OWNER admin").unwrap();
    let grants = "GRANT CREATE ON DATABASE registry TO ids, mallory; \
        CREATE TABLE public.sprung (who name, what text); GRANT INSERT ON public.sprung TO PUBLIC; \
        GRANT CREATE ON SCHEMA public TO mallory";
    of(&server, "postgres").batch_execute(grants).unwrap();
    server
}

fn of(server: &Server, role: &str) -> postgres::Client {
    server.cluster().client_of(role, "registry")
}

fn client_of(server: &Server, role: &str) -> Box<dyn Registry> {
    connect(&format!("postgres://{role}@{}/registry", server.address()), &options(PATIENCE))
}

/// Who has run another's code.
fn sprung(server: &Server) -> Vec<String> {
    let rows =
        of(server, "postgres").query("SELECT DISTINCT who::text || ': ' || what FROM public.sprung", &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Everything that a client asks.
fn converse(registry: &mut dyn Registry) {
    assert!(registry.time().unwrap().is_some());
    registry.warnings().unwrap();
    assert_eq!(layout(registry, "twitter").unwrap(), "twitter");
    let within = registry.namespace().unwrap().unwrap();
    let next = namespace_record("twitter", 256, Some(snowflake_core::UnixMicros(1_700_000_000_000_000)));
    assert_eq!(registry.swap_namespace(Some(&within), &next).unwrap(), Some(next.clone()));
    let version = create(registry, WORKER, &record(1));
    stored(registry.swap_within(Some(&next), WORKER, Some(version), &record(2)));
    stored(registry.swap_within(Some(&next), WorkerNumber(8), None, &record(3)));
    assert_eq!(registry.records().unwrap().len(), 2);
    assert!(registry.record(WORKER).unwrap().is_some());
    registry.swap_segment_held(&next, &tag_write(1, None), Some(&(WORKER, holding(1)))).unwrap();
    let stands = registry.segment(&tag()).unwrap().unwrap();
    let again = (WORKER, holding(2));
    registry.swap_segment_held(&next, &tag_write(2, Some(stands.version)), Some(&again)).unwrap();
    converse_again(registry);
}

/// What is asked of tables that are there.
fn converse_again(registry: &mut dyn Registry) {
    assert_eq!((registry.segments().unwrap().len(), registry.holdings().unwrap().len()), (1, 1));
    assert_eq!(registry.records().unwrap().len(), 2);
    registry.exposures().unwrap();
    // Refused.
    let other = namespace_record("other", 1, None);
    assert!(matches!(registry.swap_within(Some(&other), WORKER, None, &record(5)).unwrap(), Swap::OtherNamespace(_)));
    assert!(registry.swap_namespace(Some(&other), &other).unwrap().is_some());
}

/// By names that match better than those of PostgreSQL, also where the database's owner has put them before `pg_catalog`; and as a superuser,
/// by PgBouncer, which gives each transaction another session of the server.
#[test]
fn nothing_of_a_hostile_world_runs() {
    let server = start();
    let cluster = server.cluster();
    hostile::fill(cluster, "registry", &["ids", "postgres"]);
    let bouncer = PgBouncer::before(cluster, Pool::Transaction, 2);
    let as_superuser = || connect(&format!("postgres://any@127.0.0.1:{}/registry", bouncer.port()), &options(PATIENCE));
    converse(&mut *client_of(&server, "ids"));
    assert_eq!(hostile::sprung(cluster), BTreeSet::new());

    hostile::put_first(cluster, "registry");
    for as_role in [&as_superuser as &dyn Fn() -> Box<dyn Registry>, &|| client_of(&server, "ids")] {
        of(&server, "postgres").batch_execute("DROP SCHEMA IF EXISTS snowflake_registry CASCADE").unwrap();
        converse(&mut *as_role());
        converse_again(&mut *as_role());
    }
    assert_eq!(hostile::sprung(cluster), BTreeSet::new());
    // What a session of another kind runs into there.
    of(&server, "ids").batch_execute("SELECT 1 = 1").unwrap();
    assert_ne!(hostile::sprung(cluster), BTreeSet::new());
}

#[test]
fn a_squatted_schema_is_refused() {
    let server = start();
    let mut mallory = of(&server, "mallory");
    mallory.batch_execute("CREATE SCHEMA snowflake_registry").unwrap();
    mallory.batch_execute(TABLES).unwrap();
    let trap = "CREATE FUNCTION snowflake_registry.trap() RETURNS trigger LANGUAGE plpgsql AS $$ \
            BEGIN INSERT INTO public.sprung VALUES (current_user, 'trigger'); RETURN NEW; END $$; \
        CREATE TRIGGER trap BEFORE INSERT ON snowflake_registry.namespaces FOR EACH ROW \
            EXECUTE FUNCTION snowflake_registry.trap(); \
        GRANT USAGE ON SCHEMA snowflake_registry TO PUBLIC; \
        GRANT ALL ON ALL TABLES IN SCHEMA snowflake_registry TO PUBLIC";
    mallory.batch_execute(trap).unwrap();
    for role in ["ids", "postgres"] {
        let error = layout(&mut *client_of(&server, role), "twitter").err();
        assert_eq!(sprung(&server), Vec::<String>::new(), "{role}");
        let text = error.unwrap().to_string();
        assert!(text.contains("mallory") && text.contains("trigger"), "{text}");
    }
}

/// The error of a role's client, which must be that of tables that are not to be trusted.
#[track_caller]
fn refused(server: &Server, role: &str, parts: &[&str]) {
    let error = client_of(server, role).record(WORKER).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Untrusted { .. }) && parts.iter().all(|part| text.contains(part)),
        "{parts:?}: {text}"
    );
}

/// Tables that an administrator has made for the servers' role.
fn prepare(server: &Server) {
    let mut admin = of(server, "admin");
    admin.batch_execute("CREATE SCHEMA snowflake_registry").unwrap();
    admin.batch_execute(TABLES).unwrap();
    admin.batch_execute(SEGMENTS_TABLES).unwrap();
    admin.batch_execute(FOR_IDS).unwrap();
}

/// What a role needs of tables that are not its own.
const FOR_IDS: &str = "GRANT USAGE ON SCHEMA snowflake_registry TO ids; \
    GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA snowflake_registry TO ids";

/// Each of these runs code of somebody's, whoever owns the table by now, or makes it another thing than a table.
#[test]
fn whatever_can_run_code_is_refused() {
    let server = start();
    prepare(&server);
    let mut admin = of(&server, "admin");
    let helpers = "SET search_path = snowflake_registry, pg_temp; \
        CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; \
        CREATE FUNCTION code(bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT $1'; \
        CREATE DOMAIN whole AS bigint CHECK (code(VALUE) > 0); \
        CREATE TABLE other (worker bigint PRIMARY KEY)";
    admin.batch_execute(helpers).unwrap();
    let cases = [
        (
            "CREATE TRIGGER trap BEFORE UPDATE ON workers FOR EACH STATEMENT EXECUTE FUNCTION trap()",
            "DROP TRIGGER trap ON workers",
            "table workers has a trigger",
        ),
        (
            "ALTER TABLE other ADD namespace text COLLATE \"C\" REFERENCES namespaces",
            "ALTER TABLE other DROP namespace",
            "table namespaces has a trigger, or a foreign key",
        ),
        (
            "CREATE RULE noted AS ON INSERT TO workers DO ALSO SELECT code(1)",
            "DROP RULE noted ON workers",
            "table workers has a rule",
        ),
        (
            "ALTER TABLE namespaces ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE namespaces DISABLE ROW LEVEL SECURITY",
            "table namespaces has row-level security",
        ),
        (
            "CREATE POLICY mine ON segments USING (code(version) > 0)",
            "DROP POLICY mine ON segments",
            "table segments has row-level security",
        ),
        (
            "ALTER TABLE workers ADD CONSTRAINT c CHECK (code(version) > 0)",
            "ALTER TABLE workers DROP CONSTRAINT c",
            "table workers has a constraint",
        ),
        ("CREATE INDEX i ON workers (code(version))", "DROP INDEX i", "on an expression"),
        ("CREATE INDEX i ON workers (version) WHERE code(version) > 0", "DROP INDEX i", "partial"),
        ("CREATE UNIQUE INDEX i ON workers (version)", "DROP INDEX i", "unique"),
        ("CREATE STATISTICS s ON version, format FROM workers", "DROP STATISTICS s", "table workers has statistics"),
        ("CREATE TABLE child () INHERITS (workers)", "DROP TABLE child", "table workers has parents or children"),
        ("ALTER TABLE workers SET UNLOGGED", "ALTER TABLE workers SET LOGGED", "table workers is no plain table"),
        (
            "ALTER TABLE workers ALTER version SET DEFAULT code(1)",
            "ALTER TABLE workers ALTER version DROP DEFAULT",
            "column version that runs code",
        ),
        (
            "ALTER TABLE workers ALTER written_at SET DEFAULT clock_timestamp()",
            "ALTER TABLE workers ALTER written_at SET DEFAULT now()",
            "column written_at that runs code",
        ),
        (
            "ALTER TABLE workers ALTER version TYPE whole",
            "ALTER TABLE workers ALTER version TYPE bigint",
            "column version of another kind",
        ),
        (
            "ALTER TABLE workers ALTER namespace TYPE text COLLATE \"default\"",
            "ALTER TABLE workers ALTER namespace TYPE text COLLATE \"C\"",
            "column namespace of another kind",
        ),
        (
            "ALTER TABLE workers ALTER host DROP NOT NULL",
            "ALTER TABLE workers ALTER host SET NOT NULL",
            "column host of another kind",
        ),
        (
            "ALTER TABLE workers ADD more bigint GENERATED ALWAYS AS (code(version)) STORED",
            "ALTER TABLE workers DROP more",
            "column more that runs code",
        ),
        (
            "ALTER TABLE workers ADD more bigint GENERATED BY DEFAULT AS IDENTITY",
            "ALTER TABLE workers DROP more",
            "column more that runs code",
        ),
        ("ALTER TABLE workers ADD more whole", "ALTER TABLE workers DROP more", "column more that runs code"),
        (
            "ALTER TABLE segment_holders RENAME run TO ran",
            "ALTER TABLE segment_holders RENAME ran TO run",
            "table segment_holders has no column run",
        ),
        (
            "ALTER TABLE workers DROP CONSTRAINT workers_pkey",
            "ALTER TABLE workers ADD PRIMARY KEY (namespace, worker)",
            "does not have the primary key (namespace, worker)",
        ),
        (
            "ALTER TABLE workers RENAME TO kept; CREATE VIEW workers AS SELECT * FROM kept",
            "DROP VIEW workers; ALTER TABLE kept RENAME TO workers",
            "table workers is no plain table",
        ),
    ];
    client_of(&server, "ids").record(WORKER).unwrap();
    for (change, back, what) in cases {
        admin.batch_execute(change).unwrap_or_else(|error| panic!("{change}: {error:?}"));
        refused(&server, "ids", &[what]);
        admin.batch_execute(back).unwrap_or_else(|error| panic!("{back}: {error:?}"));
        client_of(&server, "ids").record(WORKER).unwrap_or_else(|error| panic!("{back}: {error}"));
    }
    // What people may add.
    let harmless = "CREATE INDEX ON workers (host); ALTER TABLE workers ADD remark text; \
        COMMENT ON TABLE workers IS 'ours'; GRANT SELECT (namespace, worker) ON workers TO mallory; \
        CREATE VIEW shown AS SELECT worker, host FROM workers; ALTER TABLE workers SET (fillfactor = 50)";
    admin.batch_execute(harmless).unwrap();
    converse(&mut *client_of(&server, "ids"));
    assert_eq!(client_of(&server, "ids").exposures().unwrap(), Vec::<String>::new());
}

/// Whoever may make roles can make the registry's role a member of one of his, which it did not ask for.
#[test]
fn membership_in_the_owner_is_no_trust() {
    let server = start();
    of(&server, "mallory").batch_execute("CREATE SCHEMA snowflake_registry").unwrap();
    of(&server, "postgres").batch_execute("CREATE ROLE gang; GRANT gang TO ids, mallory").unwrap();
    of(&server, "mallory").batch_execute("ALTER SCHEMA snowflake_registry OWNER TO mallory").unwrap();
    refused(&server, "ids", &["belongs to role \"mallory\""]);
    of(&server, "postgres").batch_execute("ALTER SCHEMA snowflake_registry OWNER TO gang; GRANT gang TO ids").unwrap();
    refused(&server, "ids", &["belongs to role \"gang\"", "OWNER TO \"admin\""]);
    // Nor for a superuser, who counts as a member of all.
    refused(&server, "postgres", &["belongs to role \"gang\""]);
    // The other way around: that role may do all that the registry's role may, and nothing is won by a trigger.
    let acting = "GRANT ids TO gang; GRANT ALL ON SCHEMA snowflake_registry TO ids";
    of(&server, "postgres").batch_execute(&format!("REVOKE gang FROM ids; {acting}")).unwrap();
    client_of(&server, "ids").record(WORKER).unwrap();
    // What the hint says.
    of(&server, "postgres").batch_execute("REVOKE ids FROM gang").unwrap();
    refused(&server, "ids", &["belongs to role \"gang\""]);
    of(&server, "postgres").batch_execute("ALTER SCHEMA snowflake_registry OWNER TO admin").unwrap();
    client_of(&server, "ids").record(WORKER).unwrap();
}

/// Somebody makes the tables after the client has looked, and before it makes them itself.
#[test]
fn tables_that_come_in_between_are_looked_at() {
    let server = start();
    let mut mallory = of(&server, "mallory");
    let mut transaction = mallory.transaction().unwrap();
    transaction.batch_execute("CREATE SCHEMA snowflake_registry").unwrap();
    transaction.batch_execute(TABLES).unwrap();
    transaction.batch_execute("GRANT ALL ON SCHEMA snowflake_registry TO PUBLIC").unwrap();
    let mut registry = client_of(&server, "ids");
    let error = thread::scope(|scope| {
        let call = scope.spawn(move || registry.record(WORKER).unwrap_err());
        let waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'ids' AND wait_event_type = 'Lock'";
        wait_for("the client waits", || value(&mut server.cluster().client(), waiting));
        transaction.commit().unwrap();
        call.join().unwrap()
    });
    // PostgreSQL itself says that the schema is there now; asked again, the client sees whose it is.
    assert!(matches!(error, Error::Server(_) | Error::Untrusted { .. }), "{error:?}");
    refused(&server, "ids", &["belongs to role \"mallory\""]);
    let mine: bool =
        value(&mut of(&server, "postgres"), "SELECT NOT EXISTS (SELECT FROM pg_class WHERE relowner = 'ids'::regrole)");
    assert!(mine);
}

/// Tables of segments, in a schema in which somebody else may create.
#[test]
fn tables_of_others_in_our_schema_are_refused() {
    let server = start();
    layout(&mut *client_of(&server, "ids"), "twitter").unwrap();
    of(&server, "ids").batch_execute("GRANT ALL ON SCHEMA snowflake_registry TO mallory").unwrap();
    let mut registry = client_of(&server, "ids");
    registry.namespace().unwrap();
    of(&server, "mallory").batch_execute(SEGMENTS_TABLES).unwrap();
    let error = registry.segments().unwrap_err();
    assert!(
        matches!(&error, Error::Untrusted { what, .. } if what.contains("table segments belongs to role \"mallory\""))
    );
}

/// Default privileges of whoever makes the tables would show tokens, and let others make triggers.
#[test]
fn default_privileges_give_nothing_to_others() {
    let server = start();
    let defaults = "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC, mallory; \
        ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO mallory";
    of(&server, "ids").batch_execute(defaults).unwrap();
    converse(&mut *client_of(&server, "ids"));
    let grants = "SELECT count(*) FROM pg_class, aclexplode(relacl) \
        WHERE relnamespace = 'snowflake_registry'::regnamespace AND grantee <> relowner";
    assert_eq!(value::<i64>(&mut of(&server, "postgres"), grants), 0);
    for statement in ["TABLE snowflake_registry.workers", "CREATE TABLE snowflake_registry.t ()"] {
        snowflake_test::check::refused(&mut of(&server, "mallory"), statement, "42501");
    }
    assert_eq!(client_of(&server, "ids").exposures().unwrap(), Vec::<String>::new());
    // Rights that the owner himself does not have.
    let server = start();
    of(&server, "ids").batch_execute("ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM ids").unwrap();
    let error = client_of(&server, "ids").record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Server(_)) && error.to_string().contains("permission denied for table"), "{error}");
}

#[test]
fn who_may_do_too_much_is_named() {
    let server = start();
    converse(&mut *client_of(&server, "ids"));
    let exposures = || client_of(&server, "ids").exposures().unwrap();
    assert_eq!(exposures(), Vec::<String>::new());
    let grants = "CREATE ROLE \"Read er\"; GRANT USAGE ON SCHEMA snowflake_registry TO \"Read er\"; \
        GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA snowflake_registry TO \"Read er\"";
    of(&server, "postgres").batch_execute(grants).unwrap();
    // As several servers have them, each with a role of its own.
    assert_eq!(exposures(), Vec::<String>::new());
    let cases = [
        (
            "GRANT TRIGGER ON snowflake_registry.workers TO \"Read er\"",
            "Role \"Read er\" may make triggers",
            "REVOKE TRIGGER, REFERENCES ON TABLE snowflake_registry.workers FROM \"Read er\".",
        ),
        (
            "GRANT SELECT (token) ON snowflake_registry.workers TO PUBLIC",
            "Everybody may read",
            "REVOKE ALL ON TABLE snowflake_registry.workers FROM PUBLIC.",
        ),
        (
            "GRANT DELETE ON snowflake_registry.namespaces TO PUBLIC",
            "Everybody may read or change",
            "REVOKE ALL ON TABLE snowflake_registry.namespaces FROM PUBLIC.",
        ),
        (
            "GRANT UPDATE (granted_until) ON snowflake_registry.workers TO PUBLIC",
            "Everybody may read or change",
            "REVOKE ALL ON TABLE snowflake_registry.workers FROM PUBLIC.",
        ),
        (
            "GRANT DELETE ON snowflake_registry.workers TO \"Read er\"",
            "Role \"Read er\" may take leases out",
            "REVOKE DELETE, TRUNCATE ON TABLE snowflake_registry.workers FROM \"Read er\".",
        ),
        (
            "GRANT CREATE ON SCHEMA snowflake_registry TO \"Read er\"",
            "Role \"Read er\" may make tables in the place",
            "REVOKE CREATE ON SCHEMA snowflake_registry FROM \"Read er\".",
        ),
    ];
    for (grant, what, remedy) in cases {
        of(&server, "ids").batch_execute(grant).unwrap();
        let found = exposures();
        assert!(found.len() == 1 && found[0].contains(what) && found[0].ends_with(remedy), "{grant}: {found:?}");
        // What it says to do helps.
        let (_, remedy) = found[0].split_once(": ").unwrap();
        of(&server, "ids").batch_execute(remedy.trim_end_matches('.')).unwrap();
        assert_eq!(exposures(), Vec::<String>::new(), "{grant}");
    }
    // A superuser is no safe client of another role's tables.
    refused(&server, "postgres", &["belongs to role \"ids\""]);
    of(&server, "postgres").batch_execute("REASSIGN OWNED BY ids TO admin").unwrap();
    refused(&server, "postgres", &["belongs to role \"admin\"", "OWNER TO \"postgres\""]);
    of(&server, "postgres").batch_execute("REASSIGN OWNED BY admin TO postgres").unwrap();
    let superuser = client_of(&server, "postgres").exposures().unwrap();
    assert!(superuser.len() == 1 && superuser[0].contains("\"postgres\" is a superuser"), "{superuser:?}");
}

/// A role that can become a superuser counts as one, however it can.
#[test]
fn a_role_that_can_become_a_superuser_is_one() {
    let server = start();
    prepare(&server);
    client_of(&server, "ids").record(WORKER).unwrap();
    for role in ["super", "between", "pg_execute_server_program"] {
        let roles = "CREATE ROLE super SUPERUSER; CREATE ROLE between; GRANT super TO between";
        let _ = of(&server, "postgres").batch_execute(roles);
        of(&server, "postgres").batch_execute(&format!("GRANT {role} TO ids")).unwrap();
        refused(&server, "ids", &["belongs to role \"admin\"", "connect as a role that is not a superuser"]);
        // What the other way says.
        of(&server, "postgres").batch_execute("REASSIGN OWNED BY admin TO ids").unwrap();
        let warnings = client_of(&server, "ids").exposures().unwrap();
        assert!(
            warnings.iter().any(|text| text.contains("is a superuser in the registry, or can become one")),
            "{warnings:?}"
        );
        of(&server, "postgres")
            .batch_execute(&format!("REVOKE {role} FROM ids; REASSIGN OWNED BY ids TO admin"))
            .unwrap();
        of(&server, "admin").batch_execute(FOR_IDS).unwrap();
        client_of(&server, "ids").record(WORKER).unwrap();
    }
}

/// A trigger that is not committed yet when the client looks is waited for, and seen.
#[test]
fn a_trigger_that_is_made_meanwhile_does_not_run() {
    let server = start();
    let mut registry = client_of(&server, "ids");
    layout(&mut *registry, "twitter").unwrap();
    let version = create(&mut *registry, WORKER, &record(1));
    of(&server, "ids").batch_execute("GRANT USAGE ON SCHEMA snowflake_registry TO mallory").unwrap();
    of(&server, "ids").batch_execute("GRANT TRIGGER ON snowflake_registry.workers TO mallory").unwrap();
    let mut mallory = of(&server, "mallory");
    let trap = "CREATE FUNCTION public.trap() RETURNS trigger LANGUAGE plpgsql AS $$ \
        BEGIN INSERT INTO public.sprung VALUES (current_user, 'trigger'); RETURN NEW; END $$";
    mallory.batch_execute(trap).unwrap();
    let mut transaction = mallory.transaction().unwrap();
    let trigger =
        "CREATE TRIGGER trap BEFORE UPDATE ON snowflake_registry.workers FOR EACH ROW EXECUTE FUNCTION public.trap()";
    transaction.batch_execute(trigger).unwrap();
    let error = thread::scope(|scope| {
        let call = scope.spawn(|| registry.compare_and_swap(WORKER, Some(version), &record(2)).unwrap_err());
        let waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'ids' AND wait_event_type = 'Lock'";
        wait_for("the client waits", || value(&mut server.cluster().client(), waiting));
        transaction.commit().unwrap();
        call.join().unwrap()
    });
    assert!(matches!(&error, Error::Untrusted { what, .. } if what.contains("(trigger trap)")), "{error:?}");
    assert_eq!(sprung(&server), Vec::<String>::new());
}

/// What settings of the role say of names and of errors does not matter.
#[test]
fn settings_of_the_role_change_nothing() {
    let server = start();
    let settings = "ALTER ROLE ids SET quote_all_identifiers = on; ALTER ROLE ids SET default_transaction_isolation = serializable; \
        ALTER DATABASE registry SET snowflake_registry.has_changed = 'x'; ALTER ROLE ids SET datestyle = 'German'";
    of(&server, "postgres").batch_execute(settings).unwrap();
    converse(&mut *client_of(&server, "ids"));
    converse_again(&mut *client_of(&server, "ids"));
}

/// Servers of several roles, whose tables one of them has made, go on when the error's remedy was followed.
#[test]
fn roles_share_tables_of_the_databases_owner() {
    let server = start();
    client_of(&server, "ids").record(WORKER).unwrap();
    of(&server, "postgres").batch_execute("CREATE ROLE others LOGIN").unwrap();
    of(&server, "ids").batch_execute(&FOR_IDS.replace("TO ids", "TO others")).unwrap();
    refused(
        &server,
        "others",
        &[
            "belongs to role \"ids\"",
            "OWNER TO \"admin\"",
            "GRANT to each role that servers connect as USAGE on the schema",
        ],
    );
    of(&server, "postgres").batch_execute("REASSIGN OWNED BY ids TO admin").unwrap();
    for role in ["ids", "others"] {
        of(&server, "admin").batch_execute(&FOR_IDS.replace("TO ids", &format!("TO {role}"))).unwrap();
    }
    client_of(&server, "ids").record(WORKER).unwrap();
    client_of(&server, "others").record(WORKER).unwrap();
}

/// Owners that may act as the role, or stand for the owner of the database.
#[test]
fn owners_that_may_act_as_the_role_are_taken() {
    let server = start();
    client_of(&server, "ids").record(WORKER).unwrap();
    of(&server, "postgres").batch_execute("CREATE ROLE late NOINHERIT; GRANT ids TO late").unwrap();
    for owner in ["late", "pg_database_owner"] {
        let give =
            ["SCHEMA snowflake_registry", "TABLE snowflake_registry.namespaces", "TABLE snowflake_registry.workers"]
                .map(|object| format!("ALTER {object} OWNER TO {owner}"));
        of(&server, "postgres").batch_execute(&give.join("; ")).unwrap();
        of(&server, "postgres").batch_execute(FOR_IDS).unwrap();
        client_of(&server, "ids").record(WORKER).unwrap();
    }
}

/// A foreign key to our tables stops servers: it is said whose table has it, and who may make one.
#[test]
fn foreign_keys_from_elsewhere_are_named() {
    let server = start();
    client_of(&server, "ids").record(WORKER).unwrap();
    let grants = "GRANT USAGE ON SCHEMA snowflake_registry TO mallory; GRANT REFERENCES ON snowflake_registry.workers TO mallory";
    of(&server, "ids").batch_execute(grants).unwrap();
    let found = client_of(&server, "ids").exposures().unwrap();
    assert!(found.len() == 1 && found[0].contains("REVOKE TRIGGER, REFERENCES ON TABLE"), "{found:?}");
    let refers =
        "CREATE TABLE public.refers (n text, w bigint, FOREIGN KEY (n, w) REFERENCES snowflake_registry.workers)";
    of(&server, "mallory").batch_execute(refers).unwrap();
    refused(&server, "ids", &["table workers has a trigger, or a foreign key (foreign key with public.refers)"]);
}

/// What becomes of rights later ends in an error that says what is missing, and what was stored is there when they are back.
#[test]
fn rights_that_go_are_errors_until_they_come_back() {
    let server = start();
    let mut registry = client_of(&server, "ids");
    layout(&mut *registry, "twitter").unwrap();
    let version = create(&mut *registry, WORKER, &record(1));
    let says = |registry: &mut dyn Registry, what: &str| {
        for _ in 0..2 {
            let error = registry.compare_and_swap(WORKER, Some(version), &record(2)).unwrap_err();
            assert!(!error.is_unanswered() && error.to_string().contains(what), "{what}: {error}");
        }
    };
    let change = |statement: &str| of(&server, "postgres").batch_execute(statement).unwrap();
    for (change_rights, what, back) in [
        (
            "REVOKE ALL ON SCHEMA snowflake_registry FROM ids",
            "permission denied for schema",
            "GRANT ALL ON SCHEMA snowflake_registry TO ids",
        ),
        (
            "REVOKE UPDATE ON snowflake_registry.workers FROM ids",
            "permission denied for table workers",
            "GRANT UPDATE ON snowflake_registry.workers TO ids",
        ),
        // To the owner of the database, who is trusted, and lets nobody else in yet.
        (
            "REASSIGN OWNED BY ids TO admin",
            "permission denied for schema",
            "GRANT USAGE ON SCHEMA snowflake_registry TO ids; GRANT ALL ON ALL TABLES IN SCHEMA snowflake_registry TO ids",
        ),
        ("REVOKE CONNECT ON DATABASE registry FROM PUBLIC", "", "GRANT CONNECT ON DATABASE registry TO PUBLIC"),
    ] {
        change(change_rights);
        if !what.is_empty() {
            says(&mut *registry, what);
        }
        change(back);
        assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(1), "{change_rights}");
    }
    // To somebody: a session from before lacks the rights, and a new one sees whose it is.
    change("ALTER SCHEMA snowflake_registry OWNER TO mallory; REVOKE ALL ON SCHEMA snowflake_registry FROM ids");
    let error = registry.compare_and_swap(WORKER, Some(version), &record(2)).unwrap_err();
    assert!(!error.is_unanswered(), "{error}");
    refused(&server, "ids", &["schema snowflake_registry belongs to role \"mallory\""]);
    change("ALTER SCHEMA snowflake_registry OWNER TO ids");
    stored(registry.compare_and_swap(WORKER, Some(version), &record(2)));

    // An owner who may not create in his schema lacks what a part that is not there yet needs.
    change("REVOKE CREATE ON SCHEMA snowflake_registry FROM ids");
    let error = registry.segments().unwrap_err();
    assert!(error.to_string().contains("permission denied for schema snowflake_registry (SQLSTATE 42501)"), "{error}");
    change("GRANT CREATE ON SCHEMA snowflake_registry TO ids");
    assert!(registry.segments().unwrap().is_empty());

    // All that it owns, and all that it was granted.
    change("DROP OWNED BY ids CASCADE");
    let error = registry.record(WORKER).unwrap_err();
    assert!(error.to_string().contains("permission denied for database registry (SQLSTATE 42501)"), "{error}");
}

/// Both ways to prepare a registry that docs/reference/settings.md has, by psql.
#[test]
fn a_registry_is_prepared_as_the_documentation_says() {
    let page = include_str!("../../docs/reference/settings.md");
    let section = page.split("### The role of a registry in PostgreSQL\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut scripts = vec![String::new()];
    for line in section.lines() {
        match (line.strip_prefix("    "), scripts.last_mut().unwrap()) {
            (Some(statement), script) => script.extend([statement, "\n"]),
            // A blank line within a script, or a text between two of them.
            (None, script) if !line.is_empty() && !script.is_empty() => scripts.push(String::new()),
            _ => {}
        }
    }
    scripts.retain(|script| !script.is_empty());
    assert_eq!(scripts.len(), 2, "{scripts:?}");
    for script in scripts {
        let server = Setup::of(Kind::Postgres).start();
        let cluster = server.cluster();
        cluster.client().batch_execute("CREATE ROLE admin LOGIN; CREATE ROLE mallory LOGIN").unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
        // psql runs as another user, who may not see the folder.
        let script = script.lines().map(|line| match line.strip_prefix("\\ir ") {
            Some(file) => std::fs::read_to_string(folder.join(file)).unwrap(),
            None => format!("{line}\n"),
        });
        let mut psql = cluster.program("psql");
        let psql =
            psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut psql = psql.spawn().unwrap();
        psql.stdin.take().unwrap().write_all(script.collect::<String>().as_bytes()).unwrap();
        let done = psql.wait_with_output().unwrap();
        assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));

        converse(&mut *client_of(&server, "snowflake"));
        assert_eq!(client_of(&server, "snowflake").exposures().unwrap(), Vec::<String>::new());
        let error = client_of(&server, "mallory").record(WORKER).unwrap_err();
        assert!(error.to_string().contains("permission denied for database"), "{error}");
    }
}

/// A client that is connected looks again when something is not what it was, before anything of it runs.
#[test]
fn what_changes_under_a_client_is_looked_at_again() {
    let server = start();
    let mut registry = client_of(&server, "ids");
    layout(&mut *registry, "twitter").unwrap();
    let version = create(&mut *registry, WORKER, &record(1));
    let untrusted = |registry: &mut dyn Registry, part: &str| {
        let is_untrusted = |error: &Error| matches!(error, Error::Untrusted { what, .. } if what.contains(part));
        let written = registry.compare_and_swap(WORKER, Some(version), &record(2)).unwrap_err();
        // With another owner, the lock may be denied before the look.
        assert!(is_untrusted(&written) || written.to_string().contains("permission denied"), "{part}: {written:?}");
        let read = registry.record(WORKER).unwrap_err();
        assert!(is_untrusted(&read), "{part}: {read:?}");
    };
    let trap = "CREATE FUNCTION public.trap() RETURNS trigger LANGUAGE plpgsql AS $$ \
        BEGIN INSERT INTO public.sprung VALUES (current_user, 'trigger'); RETURN NEW; END $$";
    of(&server, "mallory").batch_execute(trap).unwrap();
    of(&server, "ids").batch_execute("GRANT USAGE ON SCHEMA snowflake_registry TO mallory").unwrap();
    of(&server, "ids").batch_execute("GRANT TRIGGER ON snowflake_registry.workers TO mallory").unwrap();
    let trigger = "CREATE TRIGGER trap BEFORE UPDATE ON snowflake_registry.workers EXECUTE FUNCTION public.trap()";
    of(&server, "mallory").batch_execute(trigger).unwrap();
    untrusted(&mut *registry, "table workers has a trigger");
    // Again and again: PostgreSQL notes for good that the table has had one.
    for _ in 0..2 {
        of(&server, "ids").batch_execute("DROP TRIGGER trap ON snowflake_registry.workers").unwrap();
        assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(1));
        of(&server, "mallory").batch_execute(trigger).unwrap();
        untrusted(&mut *registry, "table workers has a trigger");
    }
    of(&server, "ids").batch_execute("DROP TRIGGER trap ON snowflake_registry.workers").unwrap();
    assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(1));

    of(&server, "postgres").batch_execute("ALTER TABLE snowflake_registry.workers OWNER TO mallory").unwrap();
    untrusted(&mut *registry, "table workers belongs to role \"mallory\"");
    of(&server, "postgres").batch_execute("ALTER TABLE snowflake_registry.workers OWNER TO ids").unwrap();
    assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(1));

    of(&server, "postgres").batch_execute("DROP SCHEMA snowflake_registry CASCADE").unwrap();
    let again = format!(
        "CREATE SCHEMA snowflake_registry; {TABLES}; GRANT ALL ON SCHEMA snowflake_registry TO PUBLIC; {trigger}"
    );
    of(&server, "mallory").batch_execute(&again).unwrap();
    untrusted(&mut *registry, "schema snowflake_registry belongs to role \"mallory\"");
    assert_eq!(sprung(&server), Vec::<String>::new());
}
