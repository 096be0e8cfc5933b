//! Properties that only a registry in PostgreSQL has.
#![cfg(feature = "postgres")]

mod common;

use common::*;
use snowflake_core::lease::{Record, WorkerNumber};
use snowflake_registry::postgres::TABLES;
use snowflake_registry::{Error, Swap};
use snowflake_test::check::wait_for;
use snowflake_test::pgbouncer::{PgBouncer, Pool};
use snowflake_test::registries::{Kind, Server, Setup};
use snowflake_test::{Cluster, Installation, value};
use std::thread;
use std::time::Duration;

fn start() -> Server {
    Setup::of(Kind::Postgres).start()
}

#[test]
fn people_can_read_what_is_stored() {
    let server = start();
    let mut registry = client(&server);
    layout(&mut *registry, "twitter").unwrap();
    create(&mut *registry, WORKER, &record(0));
    let mut people = server.cluster().client();
    people.batch_execute("SET timezone = 'UTC'").unwrap();
    let row = people
        .query_one(
            "SELECT namespace, worker, granted_until::text, host, port, system_identifier::text, token::text, \
                    written_at <= now() FROM snowflake_registry.workers",
            &[],
        )
        .unwrap();
    assert_eq!((row.get(0), row.get(1)), ("default", 7_i64));
    assert_eq!((row.get(2), row.get(3)), ("2027-01-15 08:00:00+00", record(0).holder.host.as_str()));
    assert_eq!((row.get(4), row.get(5)), (5432, "18446744073709551615"));
    assert_eq!(row.get::<_, &str>(6), "ffffffff-ffff-ffff-ffff-ffffffffffff");
    assert!(row.get::<_, bool>(7));
}

#[test]
fn tokens_show_to_the_owner_only() {
    let server = start();
    create(&mut *client(&server), WORKER, &record(1));
    let cluster = server.cluster();
    cluster.client().batch_execute("CREATE ROLE reader LOGIN").unwrap();
    let mut reader = cluster.client_of("reader", "postgres");
    let all = "SELECT * FROM snowflake_registry.workers";
    snowflake_test::check::refused(&mut reader, all, "42501");
    // As the documentation says.
    let grant = "GRANT USAGE ON SCHEMA snowflake_registry TO reader; \
        GRANT SELECT (namespace, worker, granted_from, granted_until, host, data_directory, port, cluster_name, \
            written_at) ON snowflake_registry.workers TO reader";
    cluster.client().batch_execute(grant).unwrap();
    snowflake_test::check::refused(&mut reader, all, "42501");
    snowflake_test::check::refused(&mut reader, "SELECT token FROM snowflake_registry.workers", "42501");
    let worker: i64 = value(&mut reader, "SELECT worker FROM snowflake_registry.workers WHERE granted_until > 'epoch'");
    assert_eq!(worker, 7);
}

#[test]
fn a_role_without_the_right_to_create_uses_tables_that_are_there() {
    let server = start();
    let cluster = server.cluster();
    cluster.client().batch_execute("CREATE ROLE ids LOGIN").unwrap();
    let text = format!("postgres://ids@{}/postgres", server.address());
    let mut registry = connect(&text, &options(PATIENCE));
    let error = registry.record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Server(_)) && error.to_string().contains("42501"), "{error:?}");

    let mut owner = cluster.client();
    owner.batch_execute("CREATE SCHEMA snowflake_registry; GRANT USAGE ON SCHEMA snowflake_registry TO ids").unwrap();
    owner.batch_execute(TABLES).unwrap();
    let grants = "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA snowflake_registry TO ids";
    owner.batch_execute(grants).unwrap();
    assert_eq!(layout(&mut *registry, "twitter").unwrap(), "twitter");
    let version = create(&mut *registry, WORKER, &record(1));
    stored(registry.compare_and_swap(WORKER, Some(version), &record(2)));
}

#[test]
fn versions_do_not_come_twice_when_a_record_is_deleted() {
    let server = start();
    let mut registry = client(&server);
    let first = create(&mut *registry, WORKER, &record(1));
    server.cluster().client().batch_execute("DELETE FROM snowflake_registry.workers").unwrap();
    assert_eq!(registry.compare_and_swap(WORKER, Some(first), &record(2)).unwrap(), Swap::Conflict(None));
    assert_ne!(create(&mut *registry, WORKER, &record(2)), first);
}

#[test]
fn settings_of_the_role_do_not_matter() {
    let server = start();
    let settings = "ALTER ROLE postgres SET default_transaction_isolation = 'serializable'; \
        ALTER ROLE postgres SET synchronous_commit = off; ALTER ROLE postgres SET timezone = 'Asia/Tokyo'; \
        ALTER ROLE postgres SET datestyle = 'German, DMY'; ALTER ROLE postgres SET search_path = ''; \
        ALTER ROLE postgres SET bytea_output = 'escape'";
    server.cluster().client().batch_execute(settings).unwrap();
    // PostgreSQL 19 has it on only.
    if Installation::under_test().major() < 19 {
        let setting = "ALTER ROLE postgres SET standard_conforming_strings = off";
        server.cluster().client().batch_execute(setting).unwrap();
    }
    let mut registry = client(&server);
    let version = create(&mut *registry, WORKER, &record(1));
    let version = stored(registry.compare_and_swap(WORKER, Some(version), &record(2)));
    assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(2));
    let mut other = client(&server);
    stored(other.compare_and_swap(WORKER, Some(version), &record(3)));
}

#[test]
fn a_standby_is_passed_over_until_it_is_promoted() {
    let server = start();
    let primary = server.cluster();
    let standby = primary.standby();
    let hosts = |first: &Cluster, second: &Cluster| format!("127.0.0.1:{},127.0.0.1:{}", first.port(), second.port());
    let text = Kind::Postgres.url(false, "", &hosts(&standby, primary));
    let mut registry = connect(&text, &options(PATIENCE));
    let version = create(&mut *registry, WORKER, &record(1));
    assert_eq!(registry.record(WORKER).unwrap().unwrap().version, version);

    let alone = Kind::Postgres.url(false, "", &format!("127.0.0.1:{}", standby.port()));
    let error = connect(&alone, &options(PATIENCE)).record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Server(_)) && error.to_string().contains("standby, or read-only"), "{error:?}");

    standby.catch_up_with(primary);
    primary.stop(snowflake_test::Stop::Fast);
    standby.promote();
    wait_for("the promoted takes changes", || registry.record(WORKER).is_ok());
    stored(registry.compare_and_swap(WORKER, Some(version), &record(2)));
}

#[test]
fn a_server_that_becomes_read_only_is_left_without_a_change() {
    let server = start();
    let mut registry = client(&server);
    let version = create(&mut *registry, WORKER, &record(1));
    server.cluster().client().batch_execute("ALTER ROLE postgres SET default_transaction_read_only = on").unwrap();
    // A session from before goes on; a new one is read-only.
    let mut late = client(&server);
    let error = late.compare_and_swap(WORKER, Some(version), &record(2)).unwrap_err();
    assert!(matches!(error, Error::Server(_)), "{error:?}");
    assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(1));
}

/// A change that is there, and may be lost by a failover, is not stored.
#[test]
fn a_wait_for_a_standby_that_is_ended_by_hand_is_no_answer() {
    let server = start();
    let cluster = server.cluster();
    create(&mut *client(&server), WORKER, &record(1));
    // Also where the role is to hear of errors only: the end of the wait is a warning.
    for (worker, heard) in [(8, "notice"), (10, "error")] {
        cluster.client().batch_execute(&format!("ALTER ROLE postgres SET client_min_messages = {heard}")).unwrap();
        let mut registry = client(&server);
        assert!(registry.record(WORKER).unwrap().is_some());
        cluster.reload(&[("synchronous_standby_names", "nobody")]);
        let (worker, change) = (WorkerNumber(worker), record(2));
        let swap = thread::scope(|scope| {
            let change = scope.spawn(|| registry.compare_and_swap(worker, None, &change));
            let mut other = cluster.client();
            wait_for("the change waits", || {
                let cancel =
                    "SELECT count(pg_cancel_backend(pid)) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
                change.is_finished() || value(&mut other, cancel)
            });
            change.join().unwrap()
        });
        let error = swap.expect_err(heard);
        assert!(error.is_unanswered() && matches!(error.cause(), Error::Server(_)), "{heard}: {error:?}");
        assert!(error.to_string().contains("synchronous replication"), "{heard}: {error}");
        cluster.reload(&[("synchronous_standby_names", "")]);
    }
    cluster.reload(&[("synchronous_standby_names", "nobody")]);
    // Nor is it where nobody ends the wait.
    let mut hasty = connect(&server.url(), &options(Duration::from_secs(2)));
    let error = hasty.compare_and_swap(WorkerNumber(9), None, &record(3)).unwrap_err();
    assert!(error.is_unanswered() && matches!(error.cause(), Error::Timeout(_)), "{error:?}");
}

#[test]
fn a_locked_record_is_refused_in_time() {
    let server = start();
    let version = create(&mut *client(&server), WORKER, &record(1));
    let mut holder = server.cluster().client();
    let mut transaction = holder.transaction().unwrap();
    transaction.execute("SELECT FROM snowflake_registry.workers FOR UPDATE", &[]).unwrap();
    // The server gives up first, or we do: then what is left there ends, too.
    let mut registry = connect(&server.url(), &options(Duration::from_secs(2)));
    let error = registry.compare_and_swap(WORKER, Some(version), &record(2)).unwrap_err();
    assert!(matches!(error.cause(), Error::Server(_) | Error::Timeout(_)), "{error:?}");
    let waiting = "SELECT count(*) = 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    wait_for("nobody waits for the lock", || value(&mut server.cluster().client(), waiting));
    transaction.rollback().unwrap();
    assert_eq!(client(&server).record(WORKER).unwrap().unwrap().record, record(1));
}

#[test]
fn foreign_content_is_left_alone_and_named() {
    let server = start();
    let mut registry = client(&server);
    layout(&mut *registry, "twitter").unwrap();
    let version = create(&mut *registry, WORKER, &record(1));
    let mut people = server.cluster().client();
    for (change, back, what) in [
        ("format = 2", "format = 1", "format is 2"),
        ("granted_until = 'infinity'", "granted_until = '2030-01-01'", "granted_until"),
        ("port = 70000", "port = 5432", "port"),
        ("token = '00000000-0000-0000-0000-000000000000'", "token = NULL", "token"),
    ] {
        people.batch_execute(&format!("UPDATE snowflake_registry.workers SET {change}")).unwrap();
        for error in [
            registry.record(WORKER).unwrap_err(),
            registry.records().unwrap_err(),
            registry.compare_and_swap(WORKER, None, &record(2)).unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(matches!(error, Error::Unexpected { .. }) && text.contains(what), "{change}: {error:?}");
            assert!(text.contains("worker 7"), "{text}");
        }
        people.batch_execute(&format!("UPDATE snowflake_registry.workers SET {back}")).unwrap();
    }
    let last = Record { owner: None, ..record(3) };
    stored(registry.compare_and_swap(WORKER, Some(version), &last));

    people.batch_execute("UPDATE snowflake_registry.namespaces SET format = 3").unwrap();
    let error = layout(&mut *registry, "twitter").unwrap_err();
    assert!(matches!(&error, Error::Unexpected { place, .. } if place.contains("default")), "{error:?}");
    // Tables of somebody else.
    let table = "DROP TABLE snowflake_registry.workers; CREATE TABLE snowflake_registry.workers (id int)";
    people.batch_execute(table).unwrap();
    let error = registry.record(WORKER).unwrap_err();
    assert!(
        matches!(error, Error::Untrusted { .. }) && error.to_string().contains("has no column worker"),
        "{error:?}"
    );
}

#[test]
fn warnings_name_what_can_roll_it_back() {
    let server = Setup::of(Kind::Postgres).argument("fsync = on").start();
    assert_eq!(client(&server).warnings().unwrap(), Vec::<String>::new());
    let _standby = server.cluster().standby();
    let warnings = client(&server).warnings().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("synchronous_standby_names"), "{warnings:?}");
    let careless = Setup::of(Kind::Postgres).argument("fsync = off\nfull_page_writes = off").start();
    let warnings = client(&careless).warnings().unwrap();
    assert!(warnings.len() == 2 && warnings[0].contains("fsync"), "{warnings:?}");
}

#[test]
fn modes_of_tls_without_a_server_that_has_it() {
    let server = start();
    for mode in ["disable", "prefer"] {
        connect(&format!("{}?sslmode={mode}", server.url()), &options(PATIENCE)).record(WORKER).unwrap();
    }
    let error = connect(&format!("{}?sslmode=require", server.url()), &options(PATIENCE)).record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Tls(_)) && error.to_string().contains("does not support TLS"), "{error:?}");
}

#[test]
fn a_database_and_a_role_that_are_not_there() {
    let server = start();
    let error = |text: &str| connect(text, &options(PATIENCE)).record(WORKER).unwrap_err();
    let none = error(&format!("postgres://postgres@{}/none", server.address()));
    assert!(matches!(none, Error::Server(_)) && none.to_string().contains("does not exist"), "{none:?}");
    let nobody = error(&format!("postgres://nobody@{}/postgres", server.address()));
    assert!(matches!(nobody, Error::Credentials(_)), "{nobody:?}");
}

/// MD5, which old servers have, and a password in the clear.
#[test]
fn other_kinds_of_passwords() {
    let server = Setup::of(Kind::Postgres).password("s3cret").start();
    let cluster = server.cluster();
    let rules = cluster.data().join("pg_hba.conf");
    let with = |method: &str| {
        std::fs::write(&rules, format!("local all all trust\nhost all all 127.0.0.1/32 {method}\n")).unwrap();
        cluster.reload(&[("password_encryption", if method == "md5" { "md5" } else { "scram-sha-256" })]);
        cluster.client().batch_execute("ALTER ROLE postgres PASSWORD 's3cret'").unwrap();
        client_with_password(&server.url(), "s3cret").record(WORKER)
    };
    with("md5").unwrap();
    with("password").unwrap();
}

#[test]
fn pgbouncer_may_stand_between() {
    let server = start();
    let bouncer = PgBouncer::before(server.cluster(), Pool::Transaction, 1);
    let text = format!("postgres://postgres@127.0.0.1:{}/postgres", bouncer.port());
    // One session of the server for all: what one leaves behind, another one would find.
    let mut registries: Vec<_> = (0..3).map(|_| connect(&text, &options(PATIENCE))).collect();
    let mut version = create(&mut *registries[0], WORKER, &record(0));
    for number in 1..12 {
        let registry = &mut registries[usize::try_from(number).unwrap() % 3];
        version = stored(registry.compare_and_swap(WORKER, Some(version), &record(number)));
        assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(number));
    }
    assert!(matches!(registries[0].compare_and_swap(WORKER, None, &record(0)).unwrap(), Swap::Conflict(Some(_))));
    assert_eq!(layout(&mut *registries[1], "twitter").unwrap(), "twitter");
    let left: bool = value(
        &mut server.cluster().client(),
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'",
    );
    assert!(left);
}
