//! Properties that only a registry in etcd has.
#![cfg(feature = "etcd")]

mod common;

use common::*;
use snowflake_core::lease::WorkerNumber;
use snowflake_registry::{Error, Swap};
use snowflake_test::registries::{Kind, Setup};

const PREFIX: &str = "/pg_snowflake/default/";

#[test]
fn people_can_read_what_is_stored() {
    let server = Setup::of(Kind::Etcd).start();
    let mut registry = client(&server);
    layout(&mut *registry, "twitter").unwrap();
    create(&mut *registry, WORKER, &record(0));
    assert_eq!(
        server.etcdctl(&["get", "--prefix", PREFIX]).lines().collect::<Vec<_>>(),
        [
            "/pg_snowflake/default/namespace",
            r#"{"format":1,"layout":"twitter","life":"00000000000000ff"}"#,
            "/pg_snowflake/default/workers/7",
            concat!(
                r#"{"format":1,"owner":"ffffffffffffffffffffffffffffffff","#,
                r#""granted_from":"2023-11-14T22:13:20.000001Z","#,
                r#""granted_until":"2027-01-15T08:00:00Z","host":"o'clock \"db\" \\ 雪","#,
                r#""data_directory":"/var/lib/postgresql/15/main","port":5432,"cluster_name":"","#,
                r#""system_identifier":"18446744073709551615","process":"boot 1"}"#,
            ),
        ]
    );
}

#[test]
fn foreign_content_is_left_alone_and_named() {
    let server = Setup::of(Kind::Etcd).start();
    let mut registry = client(&server);
    let key = format!("{PREFIX}workers/7");
    for (value, what) in [("17", "not a record"), (r#"{"format":2,"new":1}"#, "format is 2"), ("", "not a record")] {
        server.etcdctl(&["put", &key, "--", value]);
        for error in [
            registry.record(WORKER).unwrap_err(),
            registry.records().unwrap_err(),
            registry.compare_and_swap(WORKER, None, &record(1)).unwrap_err(),
        ] {
            assert!(matches!(&error, Error::Unexpected { place, .. } if *place == key), "{error:?}");
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(server.etcdctl(&["get", "--print-value-only", &key]).trim_end(), value);
    }
    server.etcdctl(&["del", &key]);
    // In a log, this is one line.
    server.etcdctl(&["put", &format!("{PREFIX}workers/se\nven"), "x"]);
    let error = registry.records().unwrap_err();
    assert!(matches!(&error, Error::Unexpected { place, .. } if place.ends_with("/se ven")), "{error:?}");
    server.etcdctl(&["put", &format!("{PREFIX}namespace"), "x"]);
    let error = layout(&mut *registry, "twitter").unwrap_err();
    assert!(matches!(&error, Error::Unexpected { place, .. } if place.ends_with("/namespace")), "{error:?}");
}

#[test]
fn versions_do_not_come_twice_when_a_record_is_deleted() {
    let server = Setup::of(Kind::Etcd).start();
    let mut registry = client(&server);
    let first = create(&mut *registry, WORKER, &record(1));
    server.etcdctl(&["del", "--prefix", PREFIX]);
    assert_eq!(registry.compare_and_swap(WORKER, Some(first), &record(2)).unwrap(), Swap::Conflict(None));
    assert!(create(&mut *registry, WORKER, &record(2)) > first);
}

/// More than a page.
#[test]
fn many_records_are_read_in_pages() {
    const COUNT: u64 = 1003;
    let server = Setup::of(Kind::Etcd).argument("--unsafe-no-fsync").start();
    let mut registry = client(&server);
    for number in 0..COUNT {
        create(&mut *registry, WorkerNumber(number), &record(i64::try_from(number).unwrap()));
    }
    let records = registry.records().unwrap();
    assert!(records.iter().map(|(worker, _)| worker.0).eq(0..COUNT));
    assert!(records.iter().all(|(worker, stored)| stored.record == record(i64::try_from(worker.0).unwrap())));
}

#[test]
fn a_token_that_is_over_is_replaced() {
    let server = Setup::of(Kind::Etcd).password("s3cret").start();
    let mut registry = client_with_password(&Kind::Etcd.url(false, "root", &server.address()), "s3cret");
    let version = create(&mut *registry, WORKER, &record(1));
    // All tokens are void after that.
    server.etcdctl(&["auth", "disable"]);
    server.etcdctl(&["auth", "enable"]);
    let version = stored(registry.compare_and_swap(WORKER, Some(version), &record(2)));
    // Tokens know the revision of all users and roles.
    server.etcdctl(&["role", "add", "another"]);
    stored(registry.compare_and_swap(WORKER, Some(version), &record(3)));
    assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(3));
}

#[test]
fn warnings_name_a_user_whom_nobody_asks_for() {
    let server = Setup::of(Kind::Etcd).start();
    assert_eq!(client(&server).warnings().unwrap(), Vec::<String>::new());
    let text = Kind::Etcd.url(false, "ids:s3cret", &server.address());
    let mut registry = connect(&text, &options(PATIENCE));
    create(&mut *registry, WORKER, &record(1));
    let warnings = registry.warnings().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("etcdctl auth enable"), "{warnings:?}");
}

#[test]
fn a_full_registry_refuses_and_warns() {
    let server = Setup::of(Kind::Etcd).argument("--quota-backend-bytes=16384").start();
    let mut registry = client(&server);
    let mut number = 0;
    let error = loop {
        match registry.compare_and_swap(WorkerNumber(number), None, &record(1)) {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Server(_)) && error.to_string().contains("space exceeded"), "{error:?}");
    // Reads go on.
    assert_eq!(u64::try_from(registry.records().unwrap().len()).unwrap(), number);
    let warnings = registry.warnings().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("no space"), "{warnings:?}");
}
