//! The same tests with each of the registries, on real servers.

mod common;
mod fakes;

use common::*;
use snowflake_core::lease::{NamespaceRecord, Record, Stored, Version, WorkerNumber};
use snowflake_core::segment::{self, Holding, NewSegment, Range, Sizes, Tag, Use};
use snowflake_core::{Micros, UnixMicros};
use snowflake_registry::{Error, KINDS, Registry, Swap, open};
use snowflake_test::certificates::Authority;
use snowflake_test::ports::free_port;
use snowflake_test::proxy::{Mode, Proxy};
use snowflake_test::registries::{Kind, Server, Setup};
use snowflake_test::with_each_registry;
use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpListener;
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

with_each_registry!(
    what_is_stored_reads_back,
    a_change_is_made_under_the_namespaces_record_that_was_read,
    odd_names_do_no_harm,
    eight_clients_create_at_once,
    no_swap_is_lost_among_eight_clients,
    a_server_that_was_killed_comes_back_with_all_it_stored,
    a_paused_server_leaves_a_change_unanswered,
    a_lost_answer_is_no_refusal,
    a_slow_server_is_waited_for_until_the_deadline,
    a_silent_server_ends_calls_by_deadline_and_by_stop,
    an_answer_without_an_end_is_cut_off,
    dead_hosts_are_passed_over_and_named,
    passwords_are_checked_and_do_not_show,
    certificates_are_checked,
    certificates_of_clients_are_shown,
    other_servers_are_recognised,
    records_that_cannot_be_stored_are_refused,
    a_wiped_registry_has_nothing,
    tags_are_stored_and_read_back,
    a_tag_changes_under_the_namespaces_record_that_was_read,
    odd_tags_do_no_harm,
    no_range_is_granted_twice_among_eight_clients,
    a_lost_answer_about_a_tag_is_no_refusal,
    what_a_server_holds_is_stored_with_its_grant,
    a_call_takes_no_longer_than_it_may_for_now,
);

/// A registry without a server for tests would not be tested.
#[test]
fn every_kind_is_tested() {
    let schemes: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.scheme(false)).collect();
    for kind in KINDS {
        let scheme = kind.example().split("://").next().unwrap();
        assert!(schemes.contains(scheme), "{kind}");
    }
    assert_eq!(schemes.len(), KINDS.len());
}

fn what_is_stored_reads_back(kind: Kind) {
    let server = Setup::of(kind).start();
    let mut first = client(&server);
    let mut second = client(&server);
    assert_eq!(layout(&mut *first, "twitter").unwrap(), "twitter");
    assert_eq!(layout(&mut *second, "timestamp=41 worker=10 sequence=12").unwrap(), "twitter");
    assert_eq!(first.record(WORKER).unwrap(), None);
    assert_eq!(first.records().unwrap(), []);

    let one = create(&mut *first, WORKER, &record(1));
    let stands = Stored { version: one, record: record(1) };
    assert_eq!(second.record(WORKER).unwrap(), Some(stands.clone()));
    let again = second.compare_and_swap(WORKER, None, &record(2)).unwrap();
    assert_eq!(again, Swap::Conflict(Some(stands.clone())));

    let given_back = Record { owner: None, ..record(2) };
    let two = stored(second.compare_and_swap(WORKER, Some(one), &given_back));
    assert_ne!(two, one);
    let stands = Stored { version: two, record: given_back };
    let late = first.compare_and_swap(WORKER, Some(one), &record(3)).unwrap();
    assert_eq!(late, Swap::Conflict(Some(stands.clone())));
    let never = WorkerNumber(1);
    assert_eq!(first.compare_and_swap(never, Some(two), &record(3)).unwrap(), Swap::Conflict(None));

    // Not in the order of digits.
    let numbers = [0, 10, 9, 1023, u64::try_from(i64::MAX).unwrap()];
    for number in numbers {
        create(&mut *first, WorkerNumber(number), &record(4));
    }
    let records = second.records().unwrap();
    let found: Vec<u64> = records.iter().map(|(worker, _)| worker.0).collect();
    assert_eq!(found, [0, 7, 9, 10, 1023, u64::try_from(i64::MAX).unwrap()]);
    assert_eq!(records[1].1, stands);
    let versions: BTreeSet<Version> = records.iter().map(|(_, stored)| stored.version).collect();
    assert_eq!(versions.len(), records.len());

    for instant in [UnixMicros(0), UnixMicros::from_millis(1), UnixMicros::MAX_WRITTEN] {
        let now = second.record(WORKER).unwrap().unwrap();
        let edge = Record { granted_from: instant, granted_until: instant, ..record(5) };
        stored(second.compare_and_swap(WORKER, Some(now.version), &edge));
        assert_eq!(first.record(WORKER).unwrap().unwrap().record, edge);
    }
}

fn a_change_is_made_under_the_namespaces_record_that_was_read(kind: Kind) {
    let mut server = Setup::of(kind).start();
    let (mut first, mut second) = (client(&server), client(&server));
    assert_eq!(first.namespace().unwrap(), None);
    let one = namespace_record("twitter", 1, None);
    let swap = |registry: &mut dyn Registry, expected: Option<&NamespaceRecord>, new: &NamespaceRecord| {
        registry.swap_namespace(expected, new).unwrap()
    };
    assert_eq!(swap(&mut *first, None, &one), Some(one.clone()));
    assert_eq!(second.namespace().unwrap(), Some(one.clone()));
    let other = namespace_record("o'clock \"x\" \\", u64::MAX, Some(UnixMicros::MAX_WRITTEN));
    assert_eq!(swap(&mut *second, None, &other), Some(one.clone()), "there is one");
    assert_eq!(swap(&mut *second, Some(&other), &one), Some(one.clone()), "it is another one");

    let version = stored(first.swap_within(Some(&one), WORKER, None, &record(1)));
    let stands = Stored { version, record: record(1) };
    assert_eq!(second.swap_within(Some(&one), WORKER, None, &record(2)).unwrap(), Swap::Conflict(Some(stands)));
    let elsewhere = second.swap_within(Some(&other), WORKER, Some(version), &record(2)).unwrap();
    assert_eq!(elsewhere, Swap::OtherNamespace(Some(one.clone())));
    let elsewhere = second.swap_within(Some(&other), WorkerNumber(8), None, &record(2)).unwrap();
    assert_eq!(elsewhere, Swap::OtherNamespace(Some(one.clone())));

    // Each part of it counts.
    let marked = NamespaceRecord { leases_from: Some(UnixMicros(1_800_000_000_000_001)), ..one.clone() };
    assert_eq!(swap(&mut *second, Some(&one), &marked), Some(marked.clone()));
    for changed in [
        one.clone(),
        NamespaceRecord { leases_from: Some(UnixMicros(1_800_000_000_000_002)), ..one.clone() },
        NamespaceRecord { life: 2, ..marked.clone() },
        NamespaceRecord { layout: "Twitter".to_owned(), ..marked.clone() },
    ] {
        let elsewhere = first.swap_within(Some(&changed), WORKER, Some(version), &record(2)).unwrap();
        assert_eq!(elsewhere, Swap::OtherNamespace(Some(marked.clone())), "{changed:?}");
    }
    let version = stored(first.swap_within(Some(&marked), WORKER, Some(version), &record(2)));
    assert_eq!(swap(&mut *first, Some(&marked), &other), Some(other.clone()));
    assert_eq!(second.namespace().unwrap(), Some(other.clone()));
    stored(second.swap_within(Some(&other), WORKER, Some(version), &record(3)));

    server.wipe();
    // PostgreSQL's session found its tables when it began.
    let _ = first.namespace();
    assert_eq!(first.namespace().unwrap(), None);
    let elsewhere = first.swap_within(Some(&other), WORKER, None, &record(4)).unwrap();
    assert_eq!(elsewhere, Swap::OtherNamespace(None));
    assert_eq!(first.records().unwrap(), []);
    for odd in [
        NamespaceRecord { layout: "\0".to_owned(), ..one.clone() },
        NamespaceRecord { leases_from: Some(UnixMicros(-1)), ..one },
    ] {
        let error = first.swap_namespace(None, &odd).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    }
}

fn odd_names_do_no_harm(kind: Kind) {
    let server = Setup::of(kind).start();
    let names = ["default", "o'clock \"x\" \\", "a/workers", "a", "%2F", "/", "é 雪 {}", "*", "$1", &"x".repeat(63)];
    let open = |name: &str| open(&url(&server.url()), &namespace(name), &options(PATIENCE)).unwrap();
    for (number, name) in names.iter().enumerate() {
        let mut registry = open(name);
        assert_eq!(layout(&mut *registry, name).unwrap(), *name);
        create(&mut *registry, WORKER, &record(i64::try_from(number).unwrap()));
        create(&mut *registry, WorkerNumber(70), &record(0));
    }
    for (number, name) in names.iter().enumerate() {
        let mut registry = open(name);
        assert_eq!(layout(&mut *registry, "another").unwrap(), *name);
        let records = registry.records().unwrap();
        assert_eq!(records.len(), 2, "{name}");
        assert_eq!(records[0].1.record, record(i64::try_from(number).unwrap()), "{name}");
    }
}

/// Eight clients do the same at the same moment.
fn eight<T: Send>(server: &Server, run: impl Fn(usize, &mut dyn Registry) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(8);
    let client = |number| {
        let mut registry = client(server);
        barrier.wait();
        run(number, &mut *registry)
    };
    thread::scope(|scope| {
        let client = &client;
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || client(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn eight_clients_create_at_once(kind: Kind) {
    let mut server = Setup::of(kind).start();
    for round in 0..3 {
        let found = eight(&server, |number, registry| {
            let layout = layout(registry, &number.to_string()).unwrap();
            let swap = registry.compare_and_swap(WORKER, None, &record(i64::try_from(number).unwrap())).unwrap();
            (layout, swap)
        });
        assert!(found.iter().all(|(layout, _)| *layout == found[0].0), "{found:?}");
        let winners = found.iter().filter(|(_, swap)| matches!(swap, Swap::Stored(_))).count();
        assert_eq!(winners, 1, "{found:?}");
        if round < 2 {
            server.wipe();
        }
    }
}

fn no_swap_is_lost_among_eight_clients(kind: Kind) {
    const EACH: i64 = 20;
    let server = Setup::of(kind).start();
    create(&mut *client(&server), WORKER, &record(0));
    let versions = eight(&server, |_, registry| {
        let mut versions = Vec::new();
        let mut stands = registry.record(WORKER).unwrap().unwrap();
        for _ in 0..EACH {
            loop {
                let mut next = stands.record.clone();
                next.granted_until = next.granted_until + Micros(1);
                match registry.compare_and_swap(WORKER, Some(stands.version), &next).unwrap() {
                    Swap::Stored(version) => {
                        stands = Stored { version, record: next };
                        versions.push(version);
                        break;
                    }
                    Swap::Conflict(found) => stands = found.unwrap(),
                    other => panic!("{other:?}"),
                }
            }
        }
        versions
    });
    let all: BTreeSet<Version> = versions.iter().flatten().copied().collect();
    assert_eq!(all.len(), 8 * usize::try_from(EACH).unwrap());
    let stands = client(&server).record(WORKER).unwrap().unwrap();
    assert_eq!(stands.record.granted_until, record(0).granted_until + Micros(8 * EACH));
}

fn a_server_that_was_killed_comes_back_with_all_it_stored(kind: Kind) {
    let mut server = Setup::of(kind).start();
    let mut registry = client(&server);
    let version = create(&mut *registry, WORKER, &record(1));
    server.kill();
    for error in [
        registry.record(WORKER).unwrap_err(),
        // The connection is known to be broken, so nothing was sent.
        registry.compare_and_swap(WORKER, Some(version), &record(2)).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
        assert!(error.to_string().contains(&server.address()), "{error}");
    }
    server.start();
    assert_eq!(registry.record(WORKER).unwrap(), Some(Stored { version, record: record(1) }));
    let version = stored(registry.compare_and_swap(WORKER, Some(version), &record(2)));

    // While nothing is asked.
    server.kill();
    server.start();
    let version = stored(registry.compare_and_swap(WORKER, Some(version), &record(3)));
    assert_eq!(registry.record(WORKER).unwrap(), Some(Stored { version, record: record(3) }));
}

fn a_paused_server_leaves_a_change_unanswered(kind: Kind) {
    let server = Setup::of(kind).start();
    let mut registry = connect(&server.url(), &options(Duration::from_secs(1)));
    // On a slow machine, the first call may take longer.
    while registry.record(WORKER).is_err() {}
    server.pause();
    let error = registry.compare_and_swap(WORKER, None, &record(1)).unwrap_err();
    assert!(error.is_unanswered() && matches!(error.cause(), Error::Timeout(_)), "{error:?}");
    let error = registry.record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Timeout(_)), "{error:?}");
    server.resume();
    // The change may have been made meanwhile, or not. A swap of the version that was read makes it void.
    let mut registry = client(&server);
    let mut expected = registry.record(WORKER).unwrap().map(|stored| stored.version);
    let version = loop {
        match registry.compare_and_swap(WORKER, expected, &record(2)).unwrap() {
            Swap::Stored(version) => break version,
            Swap::Conflict(stands) => expected = stands.map(|stored| stored.version),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(registry.record(WORKER).unwrap(), Some(Stored { version, record: record(2) }));
}

fn a_lost_answer_is_no_refusal(kind: Kind) {
    let server = Setup::of(kind).start();
    let proxy = Proxy::before(server.port());
    let mut registry = connect(&kind.url(false, "", &format!("127.0.0.1:{}", proxy.port())), &options(PATIENCE));
    // etcd does not make a change whose client is gone before it begins.
    let was_made = (1..=10).map(WorkerNumber).any(|worker| {
        assert_eq!(registry.record(worker).unwrap(), None);
        proxy.set(Mode::LoseAnswers);
        let error = registry.compare_and_swap(worker, None, &record(1)).unwrap_err();
        assert!(error.is_unanswered() && matches!(error.cause(), Error::Unreachable(_)), "{error:?}");
        let error = registry.record(worker).unwrap_err();
        assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
        proxy.set(Mode::Pass);
        // Only once.
        let stands = registry.record(worker).unwrap();
        assert!(stands.as_ref().is_none_or(|stands| stands.record == record(1)), "{stands:?}");
        stored(registry.compare_and_swap(worker, stands.as_ref().map(|stands| stands.version), &record(2)));
        stands.is_some()
    });
    assert!(was_made);
}

fn a_slow_server_is_waited_for_until_the_deadline(kind: Kind) {
    let server = Setup::of(kind).start();
    let proxy = Proxy::before(server.port());
    let url = kind.url(false, "", &format!("127.0.0.1:{}", proxy.port()));
    let mut patient = connect(&url, &options(PATIENCE));
    let mut hasty = connect(&url, &options(Duration::from_millis(1500)));
    assert_eq!(patient.record(WORKER).unwrap(), None);
    // On a slow machine, the first call may take longer.
    while hasty.record(WORKER).is_err() {}
    proxy.set(Mode::Slow(Duration::from_secs(3)));
    let (swap, took) = timed(|| patient.compare_and_swap(WORKER, None, &record(1)));
    let version = stored(swap);
    assert!(took >= Duration::from_secs(3), "{took:?}");
    let error = hasty.compare_and_swap(WORKER, Some(version), &record(2)).unwrap_err();
    assert!(error.is_unanswered() && matches!(error.cause(), Error::Timeout(_)), "{error:?}");
    let error = hasty.record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Timeout(_)), "{error:?}");
    // The change was sent, and is made.
    assert_eq!(client(&server).record(WORKER).unwrap().unwrap().record, record(2));
}

/// A server that takes connections and says nothing: the system takes them for it.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn a_silent_server_ends_calls_by_deadline_and_by_stop(kind: Kind) {
    let (_listener, address) = silent();
    let url = kind.url(false, "", &address);
    // No change is unanswered: the server was never ready for one.
    let deadline = Duration::from_millis(700);
    let mut registry = connect(&url, &options(deadline));
    for _ in 0..2 {
        let (error, took) = timed(|| registry.compare_and_swap(WORKER, None, &record(1)));
        assert!(matches!(error, Err(Error::Timeout(_))), "{error:?}");
        assert!(took >= deadline && took < PATIENCE, "{took:?}");
    }
    let (options, stop) = stoppable(PATIENCE);
    let mut registry = connect(&url, &options);
    let (error, took) = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        timed(|| registry.records().unwrap_err())
    });
    assert_eq!(error, Error::Interrupted);
    assert!(took < PATIENCE / 2, "{took:?}");
    assert_eq!(registry.record(WORKER), Err(Error::Interrupted));
}

/// A byte now and then is not an answer.
fn an_answer_without_an_end_is_cut_off(kind: Kind) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let start = fakes::of_kind(kind).endless;
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            // Until the client is gone.
            let _ = client.write_all(start);
            while client.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(10));
            }
        }
    });
    let mut registry = connect(&kind.url(false, "", &address), &options(Duration::from_secs(1)));
    let (error, took) = timed(|| registry.record(WORKER).unwrap_err());
    assert!(matches!(error, Error::Timeout(_)), "{error:?}");
    assert!(took < PATIENCE, "{took:?}");
}

fn dead_hosts_are_passed_over_and_named(kind: Kind) {
    let server = Setup::of(kind).start();
    let (_listener, silent) = silent();
    let dead = format!("127.0.0.1:{}", free_port());
    let hosts = format!("{dead},no-such-host.invalid,{silent},{}", server.address());
    let mut registry = connect(&kind.url(false, "", &hosts), &options(PATIENCE));
    // A change is not sent to the silent one either.
    let version = create(&mut *registry, WORKER, &record(1));
    // From now on with the one that answered.
    let (stands, took) = timed(|| registry.record(WORKER).unwrap());
    assert_eq!(stands.unwrap().version, version);
    assert!(took < Duration::from_secs(2), "{took:?}");

    let other = format!("127.0.0.1:{}", free_port());
    let mut registry = connect(&kind.url(false, "", &format!("{dead},{other}")), &options(PATIENCE));
    let error = registry.record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    let expected = format!("the registry cannot be reached: {dead}: Connection refused; {other}: Connection refused");
    assert_eq!(error.to_string(), expected);
}

fn passwords_are_checked_and_do_not_show(kind: Kind) {
    // Characters that mean something in URLs, SQL, JSON, HTTP and in the protocol of Redis.
    let password = "p@s:s/w?o#r d%'\"\\{}$é";
    let server = Setup::of(kind).password(password).start();
    let credentials = kind.user();
    let with = |credentials: &str| kind.url(false, credentials, &server.address());

    let mut registry = client_with_password(&with(credentials), password);
    create(&mut *registry, WORKER, &record(1));
    let encoded = "p%40s%3As%2Fw%3Fo%23r%20d%25'%22%5C%7B%7D$%C3%A9";
    let text = with(&format!("{credentials}:{encoded}"));
    assert_eq!(connect(&text, &options(PATIENCE)).record(WORKER).unwrap().unwrap().record, record(1));
    let parsed = url(&text);
    assert!(!format!("{parsed} {parsed:?} {}", parsed.without_password()).contains("s3"), "{parsed:?}");

    for secret in ["wr0ng", "p@s"] {
        let mut registry = client_with_password(&with(credentials), secret);
        for error in [
            registry.record(WORKER).unwrap_err(),
            layout(&mut *registry, "x").unwrap_err(),
            registry.compare_and_swap(WORKER, None, &record(1)).unwrap_err(),
            registry.warnings().unwrap_err(),
        ] {
            assert!(matches!(error, Error::Credentials(_)) && error.may_be_of_old_files(), "{error:?}");
            hides(&error, secret);
        }
    }
    let error = connect(&with(credentials), &options(PATIENCE)).record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Credentials(_)), "{error:?}");
    if kind == Kind::Etcd {
        let error = connect(&with(""), &options(PATIENCE)).record(WORKER).unwrap_err();
        assert!(matches!(error, Error::Credentials(_)), "{error:?}");
    }
    // The right one, where it is not asked for: it is not shown either.
    let dead = kind.url(false, credentials, &format!("127.0.0.1:{}", free_port()));
    hides(&client_with_password(&dead, password).record(WORKER).unwrap_err(), password);
}

fn certificates_are_checked(kind: Kind) {
    let authority = Authority::new();
    let good = authority.certificate("good", "IP:127.0.0.1,DNS:localhost");
    let server = Setup::of(kind).certificate(&good).start();
    let error = |url: &str| connect(url, &options(PATIENCE)).record(WORKER).unwrap_err();

    let trusted = verified(kind, &server.url(), &authority.root());
    let mut registry = connect(&trusted, &options(PATIENCE));
    let mut version = create(&mut *registry, WORKER, &record(0));
    for number in 1..5 {
        version = stored(registry.compare_and_swap(WORKER, Some(version), &record(number)));
    }
    // By name.
    let by_name = trusted.replace("127.0.0.1", "localhost");
    assert_eq!(connect(&by_name, &options(PATIENCE)).record(WORKER).unwrap().unwrap().version, version);

    let stranger = Authority::new();
    let unknown = error(&verified(kind, &server.url(), &stranger.root()));
    assert!(matches!(unknown, Error::Tls(_)) && unknown.to_string().contains("UnknownIssuer"), "{unknown:?}");
    assert!(unknown.may_be_of_old_files());
    // The system does not know the authority.
    let by_system = format!("{}?{}", server.url(), asking_for_tls(kind));
    match open(&url(by_system.trim_end_matches('?')), &namespace("default"), &options(PATIENCE)) {
        Ok(mut registry) => {
            let error = registry.record(WORKER).unwrap_err();
            assert!(matches!(error, Error::Tls(_)) && error.to_string().contains("UnknownIssuer"), "{error:?}");
        }
        Err(error) => assert!(error.to_string().contains("root certificates"), "{error}"),
    }
    // No TLS with a server that has nothing else.
    let plain = kind.url(false, "", &server.address());
    let plain = if kind == Kind::Postgres { format!("{plain}?sslmode=disable") } else { plain };
    let refused = error(&plain);
    assert!(!matches!(refused, Error::Interrupted | Error::Unexpected { .. }), "{refused:?}");
    // A file that is none.
    let missing = verified(kind, &server.url(), &authority.directory().join("missing"));
    let error = open(&url(&missing), &namespace("default"), &options(PATIENCE)).err().unwrap();
    assert!(matches!(error, Error::Invalid(_)) && error.to_string().contains("missing"), "{error:?}");

    let elsewhere = authority.certificate("elsewhere", "DNS:elsewhere.example");
    let server = Setup::of(kind).certificate(&elsewhere).start();
    let wrong = verified(kind, &server.url(), &authority.root());
    let error = connect(&wrong, &options(PATIENCE)).record(WORKER).unwrap_err();
    assert!(matches!(error, Error::Tls(_)) && error.to_string().contains("not valid for name"), "{error:?}");
    if kind == Kind::Postgres {
        let chain = wrong.replace("verify-full", "verify-ca");
        connect(&chain, &options(PATIENCE)).record(WORKER).unwrap();
        // As libpq: with roots, require is verify-ca.
        let chain = verified(kind, &server.url(), &stranger.root()).replace("verify-full", "require");
        let error = connect(&chain, &options(PATIENCE)).record(WORKER).unwrap_err();
        assert!(matches!(error, Error::Tls(_)), "{error:?}");
        for mode in ["require", "prefer"] {
            connect(&format!("{}?sslmode={mode}", server.url()), &options(PATIENCE)).record(WORKER).unwrap();
        }
    }
}

fn certificates_of_clients_are_shown(kind: Kind) {
    let authority = Authority::new();
    let certificate = authority.certificate("server", "IP:127.0.0.1");
    let server = Setup::of(kind).certificate(&certificate).wants_certificate().start();
    let without = verified(kind, &server.url(), &authority.root());
    let error = connect(&without, &options(PATIENCE)).record(WORKER).unwrap_err();
    // Not each kind of server says why it ends the connection.
    assert!(error.may_be_of_old_files(), "{error:?}");
    let own = authority.certificate("client", "DNS:client.example");
    let with = format!("{without}&sslcert={}&sslkey={}", own.certificate.display(), own.key.display());
    create(&mut *connect(&with, &options(PATIENCE)), WORKER, &record(1));
}

/// Another registry stands where this one is expected.
fn other_servers_are_recognised(kind: Kind) {
    for other in Kind::ALL.into_iter().filter(|other| *other != kind) {
        let server = Setup::of(other).start();
        let mut registry = connect(&kind.url(false, "", &server.address()), &options(Duration::from_secs(3)));
        let error = registry.record(WORKER).unwrap_err();
        assert!(matches!(error, Error::Unreachable(_) | Error::Server(_) | Error::Timeout(_)), "{other:?}: {error:?}");
        hides(&error, "\n");
    }
}

fn records_that_cannot_be_stored_are_refused(kind: Kind) {
    // No server is needed to see that.
    let mut registry = connect(&kind.url(false, "", "127.0.0.1:1"), &options(PATIENCE));
    let mut zero = record(1);
    zero.holder.host.push('\0');
    for (worker, record) in [
        (WorkerNumber(u64::MAX), record(1)),
        (WORKER, Record { granted_from: UnixMicros(-1), ..record(1) }),
        (WORKER, Record { granted_until: UnixMicros(i64::MAX), ..record(1) }),
        (WORKER, Record { owner: Some(snowflake_core::lease::Token(0)), ..record(1) }),
        (WORKER, zero),
    ] {
        let error = registry.compare_and_swap(worker, None, &record).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    }
}

fn a_wiped_registry_has_nothing(kind: Kind) {
    let mut server = Setup::of(kind).start();
    let mut registry = client(&server);
    layout(&mut *registry, "twitter").unwrap();
    let version = create(&mut *registry, WORKER, &record(1));
    server.wipe();
    assert_eq!(registry.compare_and_swap(WORKER, Some(version), &record(2)).unwrap(), Swap::Conflict(None));
    assert_eq!(registry.records().unwrap(), []);
    assert_eq!(layout(&mut *registry, "another").unwrap(), "another");
}

// Segments.

fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

fn plan() -> NewSegment {
    NewSegment { first: 1, last: segment::TagRecord::HIGHEST, bounds: Sizes { smallest: 1, largest: u64::MAX } }
}

/// The record of the namespace, made where there was none.
fn made(registry: &mut dyn Registry) -> NamespaceRecord {
    layout(registry, "twitter").unwrap();
    registry.namespace().unwrap().unwrap()
}

#[track_caller]
fn stored_segment(swap: Result<Swap<segment::StoredTag>, Error>) -> Version {
    match swap {
        Ok(Swap::Stored(version)) => version,
        other => panic!("{other:?}"),
    }
}

fn tags_are_stored_and_read_back(kind: Kind) {
    let mut server = Setup::of(kind).start();
    let (mut first, mut second) = (client(&server), client(&server));
    let namespace = made(&mut *first);
    assert_eq!(first.segments().unwrap(), []);
    assert_eq!(first.segment(&tag("orders")).unwrap(), None);
    let write = segment::create(&tag("orders"), None, &plan(), 0).unwrap();
    let version = stored_segment(first.swap_segment(&namespace, &write));
    let stands = segment::StoredTag { version, record: write.record.clone() };
    assert_eq!(second.segment(&tag("orders")).unwrap(), Some(stands.clone()));
    assert_eq!(second.swap_segment(&namespace, &write).unwrap(), Swap::Conflict(Some(stands.clone())));

    // Up to the highest number.
    let (write, _) = segment::grant(&tag("orders"), Some(&stands), u64::MAX, 0).unwrap();
    assert_eq!(write.record.next, 1 << 63);
    let version = stored_segment(second.swap_segment(&namespace, &write));
    let stands = segment::StoredTag { version, record: write.record.clone() };
    assert_eq!(first.swap_segment(&namespace, &write).unwrap(), Swap::Conflict(Some(stands.clone())), "an old version");
    let write = segment::drop_tag(&tag("orders"), Some(&stands), 0).unwrap();
    stored_segment(first.swap_segment(&namespace, &write));
    assert_eq!(second.segment(&tag("orders")).unwrap().unwrap().record, write.record);

    // Workers and tags do not get into each other's way.
    create(&mut *first, WORKER, &record(1));
    assert_eq!(second.records().unwrap().len(), 1);
    let never = segment::TagWrite { tag: tag("other"), expected: Some(version), ..write };
    assert_eq!(first.swap_segment(&namespace, &never).unwrap(), Swap::Conflict(None));
    assert_eq!(first.segments().unwrap().len(), 1);

    server.kill();
    assert!(matches!(first.segments().unwrap_err(), Error::Unreachable(_)));
    server.start();
    assert_eq!(first.segments().unwrap().len(), 1);
}

fn a_tag_changes_under_the_namespaces_record_that_was_read(kind: Kind) {
    let mut server = Setup::of(kind).start();
    let mut registry = client(&server);
    let namespace = made(&mut *registry);
    let create = segment::create(&tag("orders"), None, &plan(), 0).unwrap();
    for other in [
        NamespaceRecord { life: 1, ..namespace.clone() },
        NamespaceRecord { leases_from: Some(UnixMicros(1)), ..namespace.clone() },
        NamespaceRecord { layout: "Twitter".to_owned(), ..namespace.clone() },
    ] {
        let elsewhere = registry.swap_segment(&other, &create).unwrap();
        assert_eq!(elsewhere, Swap::OtherNamespace(Some(namespace.clone())), "{other:?}");
    }
    assert_eq!(registry.segments().unwrap(), []);
    stored_segment(registry.swap_segment(&namespace, &create));

    // What was under way when the registry was wiped creates nothing.
    server.wipe();
    // PostgreSQL's session found its tables when it began.
    let _ = registry.segments();
    assert_eq!(registry.segments().unwrap(), []);
    assert_eq!(registry.swap_segment(&namespace, &create).unwrap(), Swap::OtherNamespace(None));
    assert_eq!(registry.segments().unwrap(), []);
}

fn odd_tags_do_no_harm(kind: Kind) {
    let server = Setup::of(kind).start();
    let names = [
        "orders",
        "orders:version",
        "o'clock \"x\" \\",
        "a/b",
        "a",
        "%2F",
        "/",
        " ",
        "~ #{}",
        "*",
        "$1",
        &"x".repeat(63),
    ];
    let spaces = ["default", "a/segments", "x:segments"];
    for space in spaces {
        let mut registry = open(&url(&server.url()), &namespace(space), &options(PATIENCE)).unwrap();
        let record = made(&mut *registry);
        for (number, name) in names.iter().enumerate() {
            let plan = NewSegment { first: number as u64, ..plan() };
            let write = segment::create(&tag(name), None, &plan, 0).unwrap();
            stored_segment(registry.swap_segment(&record, &write));
        }
    }
    for space in spaces {
        let mut registry = open(&url(&server.url()), &namespace(space), &options(PATIENCE)).unwrap();
        let found = registry.segments().unwrap();
        assert_eq!(found.len(), names.len(), "{space}");
        assert!(found.is_sorted_by_key(|(tag, _)| tag.clone()), "{found:?}");
        for (number, name) in names.iter().enumerate() {
            assert_eq!(registry.segment(&tag(name)).unwrap().unwrap().record.first, number as u64, "{space} {name}");
        }
        assert_eq!(registry.records().unwrap(), [], "{space}");
    }
}

fn no_range_is_granted_twice_among_eight_clients(kind: Kind) {
    let server = Setup::of(kind).start();
    let mut registry = client(&server);
    let namespace = made(&mut *registry);
    let write = segment::create(&tag("orders"), None, &plan(), 0).unwrap();
    stored_segment(registry.swap_segment(&namespace, &write));
    let granted = eight(&server, |_, registry| {
        let mut found = registry.segment(&tag("orders")).unwrap();
        let mut granted = Vec::new();
        while granted.len() < 20 {
            let (write, range) = segment::grant(&tag("orders"), found.as_ref(), 3, 0).unwrap();
            match registry.swap_segment(&namespace, &write).unwrap() {
                Swap::Stored(version) => {
                    granted.extend(range.first..range.end);
                    found = Some(segment::StoredTag { version, record: write.record });
                }
                Swap::Conflict(stands) => found = stands,
                other => panic!("{other:?}"),
            }
        }
        granted
    });
    let all: BTreeSet<u64> = granted.iter().flatten().copied().collect();
    assert_eq!(all.len(), granted.iter().map(Vec::len).sum::<usize>());
    assert_eq!(client(&server).segment(&tag("orders")).unwrap().unwrap().record.next, all.len() as u64 + 1);
}

fn a_lost_answer_about_a_tag_is_no_refusal(kind: Kind) {
    let server = Setup::of(kind).start();
    let mut registry = connect(&server.url(), &options(Duration::from_secs(1)));
    // On a slow machine, the first call may take longer.
    while registry.segments().is_err() {}
    let namespace = made(&mut *client(&server));
    let create = segment::create(&tag("orders"), None, &plan(), 0).unwrap();
    stored_segment(client(&server).swap_segment(&namespace, &create));
    let found = client(&server).segment(&tag("orders")).unwrap();
    while registry.segments().is_err() {}
    server.pause();
    let (write, _) = segment::grant(&tag("orders"), found.as_ref(), 3, 0).unwrap();
    let error = registry.swap_segment(&namespace, &write).unwrap_err();
    assert!(error.is_unanswered() && matches!(error.cause(), Error::Timeout(_)), "{error:?}");
    assert!(matches!(registry.segment(&tag("orders")).unwrap_err(), Error::Timeout(_)));
    server.resume();
    // What was asked for is abandoned: the next grant is made from what stands then.
    let mut registry = client(&server);
    let mut found = registry.segment(&tag("orders")).unwrap();
    let granted = loop {
        let (write, granted) = segment::grant(&tag("orders"), found.as_ref(), 3, 0).unwrap();
        match registry.swap_segment(&namespace, &write).unwrap() {
            Swap::Stored(_) => break granted,
            Swap::Conflict(stands) => found = stands,
            other => panic!("{other:?}"),
        }
    };
    assert!([1, 4].contains(&granted.first), "{granted:?}");
}

fn what_a_server_holds_is_stored_with_its_grant(kind: Kind) {
    let server = Setup::of(kind).start();
    let (mut first, mut second) = (client(&server), client(&server));
    let namespace = made(&mut *first);
    assert_eq!(first.holdings().unwrap(), []);
    let holding = |run: u64, first: u64| Holding {
        run,
        current: Range { first, end: first + 5 },
        after: Range { first: segment::TagRecord::HIGHEST, end: segment::TagRecord::HIGHEST + 1 },
        granted_at: UnixMicros(1_800_000_000_123_456),
        used: Use { count: 7, length: Micros(8) },
    };
    let names = ["a/b", "a", "1/a", "%2F", "~ #{}", "o'clock \"\\"];
    for name in names {
        stored_segment(first.swap_segment(&namespace, &segment::create(&tag(name), None, &plan(), 0).unwrap()));
    }
    let mut found = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let stands = first.segment(&tag(name)).unwrap();
        let (write, _) = segment::grant(&tag(name), stands.as_ref(), 5, 0).unwrap();
        let of_seven = (WorkerNumber(7), holding(number as u64, 1));
        stored_segment(first.swap_segment_held(&namespace, &write, Some(&of_seven)));
        // Another version stands there, so this changes nothing.
        let other = (WorkerNumber(8), holding(u64::MAX, 1));
        assert!(matches!(second.swap_segment_held(&namespace, &write, Some(&other)), Ok(Swap::Conflict(_))));
        let elsewhere = NamespaceRecord { life: 1, ..namespace.clone() };
        let unseen = second.swap_segment_held(&elsewhere, &write, Some(&other));
        assert!(matches!(unseen, Ok(Swap::OtherNamespace(_))));
        found.push((tag(name), of_seven.0, of_seven.1));
    }
    found.sort_by_key(|(tag, ..)| tag.clone());
    assert_eq!(second.holdings().unwrap(), found);

    // The next grant takes its place; another worker has a place of its own, and other changes leave it alone.
    let grant = |registry: &mut dyn Registry, worker: u64, held: Holding| {
        let stands = registry.segment(&tag("a")).unwrap();
        let (write, _) = segment::grant(&tag("a"), stands.as_ref(), 5, 0).unwrap();
        stored_segment(registry.swap_segment_held(&namespace, &write, Some(&(WorkerNumber(worker), held))));
    };
    grant(&mut *first, 7, holding(9, 20));
    grant(&mut *second, 1 << 40, holding(10, 25));
    let stands = first.segment(&tag("a")).unwrap();
    stored_segment(first.swap_segment(&namespace, &segment::raise(&tag("a"), stands.as_ref(), 500, 0).unwrap()));
    let of_a: Vec<_> = first.holdings().unwrap().into_iter().filter(|(of, ..)| *of == tag("a")).collect();
    let expected = [(7, holding(9, 20)), (1 << 40, holding(10, 25))];
    assert_eq!(of_a, expected.map(|(worker, held)| (tag("a"), WorkerNumber(worker), held)));
    assert_eq!((first.records().unwrap(), first.segments().unwrap().len()), (Vec::new(), names.len()));
    // Nor do those of another namespace.
    let mut other =
        open(&url(&server.url()), &snowflake_registry::Namespace::new("default/holders").unwrap(), &options(PATIENCE))
            .unwrap();
    assert_eq!(other.holdings().unwrap(), []);
}

fn a_call_takes_no_longer_than_it_may_for_now(kind: Kind) {
    let server = Setup::of(kind).start();
    let mut registry = connect(&server.url(), &options(Duration::from_secs(9)));
    made(&mut *registry);
    while registry.segments().is_err() {}
    server.pause();
    registry.limit(Some(Duration::from_millis(300)));
    let start = Instant::now();
    assert!(matches!(registry.segment(&tag("orders")).unwrap_err(), Error::Timeout(_)));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    registry.limit(None);
    server.resume();
    registry.segments().unwrap();
}
