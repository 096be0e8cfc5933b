//! Properties that only a registry in Redis has.
#![cfg(feature = "redis")]

mod common;

use common::*;
use snowflake_registry::{Error, Swap};
use snowflake_test::check::wait_for;
use snowflake_test::registries::{Kind, Setup};

const KEY: &str = "pg_snowflake:default";

#[test]
fn people_can_read_what_is_stored() {
    let server = Setup::of(Kind::Redis).start();
    let mut registry = client(&server);
    layout(&mut *registry, "twitter").unwrap();
    let version = create(&mut *registry, WORKER, &record(0));
    assert_eq!(server.redis_cli(&["keys", "*"]).trim(), KEY);
    assert_eq!(
        server.redis_cli(&["hget", KEY, "namespace"]).trim(),
        r#"{"format":1,"layout":"twitter","life":"00000000000000ff"}"#
    );
    assert_eq!(server.redis_cli(&["hget", KEY, "worker:7:version"]).trim(), version.0.to_string());
    let stands = server.redis_cli(&["hget", KEY, "worker:7"]);
    assert!(stands.contains(r#""granted_until":"2027-01-15T08:00:00Z""#), "{stands}");
    assert_eq!(server.redis_cli(&["ttl", KEY]).trim(), "-1");
}

#[test]
fn foreign_content_is_left_alone_and_named() {
    let server = Setup::of(Kind::Redis).start();
    let mut registry = client(&server);
    let fields = |record: &str| server.redis_cli(&["hset", KEY, "worker:7", record, "worker:7:version", "1"]);
    for (value, what) in [("17", "not a record"), (r#"{"format":2,"new":1}"#, "format is 2"), ("", "not a record")] {
        fields(value);
        for error in [
            registry.record(WORKER).unwrap_err(),
            registry.records().unwrap_err(),
            registry.compare_and_swap(WORKER, None, &record(1)).unwrap_err(),
        ] {
            assert!(matches!(&error, Error::Unexpected { place, .. } if place.ends_with("worker:7")), "{error:?}");
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(server.redis_cli(&["hget", KEY, "worker:7"]).trim_end(), value);
    }
    for (delete, what) in [("worker:7:version", "no version"), ("worker:7", "no record")] {
        fields("17");
        server.redis_cli(&["hdel", KEY, delete]);
        for error in [
            registry.record(WORKER).unwrap_err(),
            registry.records().unwrap_err(),
            registry.compare_and_swap(WORKER, None, &record(1)).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Unexpected { .. }) && error.to_string().contains(what), "{error:?}");
        }
    }
    server.redis_cli(&["del", KEY]);
    server.redis_cli(&["hset", KEY, "another", "x"]);
    let error = registry.records().unwrap_err();
    assert!(matches!(&error, Error::Unexpected { place, .. } if place.ends_with("another")), "{error:?}");
    // Not even a hash.
    server.redis_cli(&["set", KEY, "x"]);
    for error in [
        registry.record(WORKER).unwrap_err(),
        registry.compare_and_swap(WORKER, None, &record(1)).unwrap_err(),
        layout(&mut *registry, "twitter").unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unexpected { .. }), "{error:?}");
    }
    assert_eq!(server.redis_cli(&["get", KEY]).trim(), "x");
}

#[test]
fn warnings_name_settings_that_lose_changes() {
    let server = Setup::of(Kind::Redis).start();
    let mut registry = client(&server);
    let mut warned = |setting: &str, value: &str| {
        server.redis_cli(&["config", "set", setting, value]);
        let warnings = registry.warnings().unwrap();
        assert!(warnings.iter().all(|warning| warning.contains(&format!("{setting} {value}"))), "{warnings:?}");
        warnings.len()
    };
    assert_eq!(warned("appendfsync", "always"), 0);
    assert_eq!(warned("appendfsync", "everysec"), 1);
    assert_eq!(warned("appendfsync", "always"), 0);
    assert_eq!(warned("maxmemory-policy", "allkeys-lru"), 1);
    assert_eq!(warned("maxmemory-policy", "volatile-lru"), 0);
    assert_eq!(warned("appendonly", "no"), 1);
}

#[test]
fn a_server_that_repeats_the_password_does_not_show_it() {
    // AUTH is not known under this name, and the error repeats the arguments.
    let server = Setup::of(Kind::Redis).argument("--rename-command").argument("AUTH").argument("LOGIN").start();
    let text = Kind::Redis.url(false, ":s3cret", &server.address());
    let error = connect(&text, &options(PATIENCE)).record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Credentials(_)), "{error:?}");
    hides(&error, "s3cret");
}

#[test]
fn replicas_are_passed_over_and_waited_for() {
    let primary = Setup::of(Kind::Redis).start();
    let port = primary.port().to_string();
    let replica = Setup::of(Kind::Redis).argument("--replicaof").argument("127.0.0.1").argument(&port).start();
    wait_for("the replica is in step", || primary.redis_cli(&["info", "replication"]).contains("state=online"));
    let hosts = format!("{},{}", replica.address(), primary.address());
    let mut registry = connect(&Kind::Redis.url(false, "", &hosts), &options(PATIENCE));
    let version = create(&mut *registry, WORKER, &record(1));
    assert_eq!(registry.record(WORKER).unwrap().unwrap().version, version);
    let warnings = registry.warnings().unwrap();
    assert!(warnings.len() == 1 && warnings[0].contains("replicas"), "{warnings:?}");
    let alone = Kind::Redis.url(false, "", &replica.address());
    let error = connect(&alone, &options(PATIENCE)).record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Server(_)) && error.to_string().contains("not the primary"), "{error:?}");

    let waits = |count: u32| Kind::Redis.url(false, "", &primary.address()) + &format!("?wait_replicas={count}");
    let version = stored(connect(&waits(1), &options(PATIENCE)).compare_and_swap(WORKER, Some(version), &record(2)));
    let error = connect(&waits(2), &options(PATIENCE)).compare_and_swap(WORKER, Some(version), &record(3)).unwrap_err();
    assert!(error.is_unanswered() && error.to_string().contains("only 1 of 2"), "{error:?}");
    assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(3));
}

#[test]
fn databases_are_apart() {
    let server = Setup::of(Kind::Redis).start();
    let open = |path: &str| connect(&format!("{}{path}", server.url()), &options(PATIENCE));
    create(&mut *open("/3"), WORKER, &record(1));
    assert_eq!(open("").record(WORKER).unwrap(), None);
    assert_eq!(open("/3").record(WORKER).unwrap().unwrap().record, record(1));
    let error = open("/1000").record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Server(_)), "{error:?}");
}

/// A change that a full memory refuses is not half done.
#[test]
fn a_full_memory_refuses() {
    let server = Setup::of(Kind::Redis).start();
    let mut registry = client(&server);
    let version = create(&mut *registry, WORKER, &record(1));
    server.redis_cli(&["config", "set", "maxmemory", "1"]);
    let error = registry.compare_and_swap(WORKER, Some(version), &record(2)).unwrap_err();
    assert!(matches!(error, Error::Server(_)) && error.to_string().contains("OOM"), "{error:?}");
    assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(1));
    server.redis_cli(&["config", "set", "maxmemory", "0"]);
    stored(registry.compare_and_swap(WORKER, Some(version), &record(2)));
}

/// As documented: all that was granted is forgotten.
#[test]
fn flushall_forgets_everything() {
    let server = Setup::of(Kind::Redis).start();
    let mut registry = client(&server);
    let version = create(&mut *registry, WORKER, &record(1));
    server.redis_cli(&["flushall"]);
    assert_eq!(registry.compare_and_swap(WORKER, Some(version), &record(2)).unwrap(), Swap::Conflict(None));
    create(&mut *registry, WORKER, &record(2));
}
