//! Names that the system's resolver is asked for elsewhere, and does not answer.
#![cfg(all(feature = "postgres", feature = "etcd", feature = "redis"))]

mod common;

use common::*;
use snowflake_registry::{Error, Lookup, Options, Resolver, Stop};
use snowflake_test::registries::{Kind, Setup};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The names that a resolver was asked for, with what it has not begun.
type Asked = Arc<Mutex<Vec<(String, Lookup)>>>;

/// A resolver that never begins.
fn dead() -> (Resolver, Asked) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    let resolver = Resolver::elsewhere(move |name, lookup| {
        kept.lock().unwrap().push((name.to_owned(), lookup));
        Ok(())
    });
    (resolver, asked)
}

#[test]
fn a_host_that_is_an_address_is_reached_in_spite_of_one_whose_name_is_not_resolved() {
    for kind in Kind::ALL {
        let server = Setup::of(kind).start();
        let (resolver, asked) = dead();
        let text = kind.url(false, "", &format!("nobody.invalid,{}", server.address()));
        let options = Options { deadline: Some(Duration::from_secs(2)), resolver, ..Options::default() };
        let mut registry = connect(&text, &options);
        assert_eq!(layout(&mut *registry, "twitter").unwrap(), "twitter");
        let names: Vec<_> = asked.lock().unwrap().iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names, ["nobody.invalid"], "{kind:?}");
    }
}

#[test]
fn a_call_ends_by_its_deadline_or_a_stop() {
    for kind in Kind::ALL {
        let text = kind.url(false, "", "nobody.invalid");
        let (resolver, _asked) = dead();
        let deadline = Duration::from_millis(300);
        let options = Options { deadline: Some(deadline), resolver: resolver.clone(), ..Options::default() };
        let (result, took) = timed(|| connect(&text, &options).record(WORKER));
        assert!(matches!(result, Err(Error::Timeout(_))), "{kind:?}: {result:?}");
        assert!(took >= deadline && took < PATIENCE, "{kind:?}: {took:?}");
        let options = Options { deadline: Some(PATIENCE), stop: Stop::when(|| true), resolver };
        let (result, took) = timed(|| connect(&text, &options).record(WORKER));
        assert!(matches!(result, Err(Error::Interrupted)), "{kind:?}: {result:?}");
        assert!(took < PATIENCE, "{kind:?}: {took:?}");
        // Or because nobody can be asked, or nobody answers any more.
        let refuses = Resolver::elsewhere(|_, _| Err(std::io::Error::other("no threads")));
        let drops = Resolver::elsewhere(|_, _| Ok(()));
        for (resolver, why) in [(refuses, "no threads"), (drops, "ended without an answer")] {
            let options = Options { deadline: Some(PATIENCE), resolver, ..Options::default() };
            let error = connect(&text, &options).record(WORKER).unwrap_err();
            assert!(error.to_string().contains(why), "{kind:?}: {error}");
        }
    }
}

#[test]
fn a_name_is_resolved_elsewhere() {
    let server = Setup::of(Kind::Redis).start();
    let text = Kind::Redis.url(false, "", &format!("localhost:{}", server.port()));
    let resolver = Resolver::elsewhere(|_, lookup| thread::Builder::new().spawn(lookup).map(drop));
    let mut registry = connect(&text, &Options { deadline: Some(PATIENCE), resolver, ..Options::default() });
    assert_eq!(layout(&mut *registry, "twitter").unwrap(), "twitter");
}
