//! What the user of a registry needs, who has less, and who has the rights to another namespace. By the commands of
//! docs/reference/registries.md.
#![cfg(all(feature = "etcd", feature = "redis"))]

mod common;

use common::*;
use snowflake_core::lease::WorkerNumber;
use snowflake_core::segment::{Tag, TagWrite};
use snowflake_registry::{Error, Registry, Swap, open};
use snowflake_test::check::wait_for;
use snowflake_test::registries::rights::{NAMESPACE, PASSWORD};
use snowflake_test::registries::{Kind, Server, Setup};
use std::thread;

macro_rules! with_access_lists {
    ($($test:ident),+ $(,)?) => {
        mod by_etcd { $( #[test] fn $test() { super::$test(super::Kind::Etcd) } )+ }
        mod by_redis { $( #[test] fn $test() { super::$test(super::Kind::Redis) } )+ }
    };
}

with_access_lists!(
    the_user_of_the_page_can_do_everything,
    who_may_use_another_namespace_can_neither_read_nor_change_this_one,
    names_that_are_hard_to_write_can_be_written,
    rights_that_are_taken_away_are_missed_at_once,
    nobody_gets_in_without_the_password,
    who_has_the_rights_reads_the_tokens,
);

const TOP: &str = "top";

fn server(kind: Kind) -> Server {
    Setup::of(kind).password(TOP).start()
}

fn of(url_text: &str, name: &str) -> Box<dyn Registry> {
    open(&url(url_text), &namespace(name), &options(PATIENCE)).unwrap()
}

/// The administrator's.
fn administrator(server: &Server, name: &str) -> Box<dyn Registry> {
    of(&server.kind().url(false, &format!("{}:{TOP}", server.kind().user()), &server.address()), name)
}

/// One call, which tells nothing but whether it was served.
type Call = fn(&mut dyn Registry) -> Result<(), Error>;

const NAMESPACE_RECORD: fn() -> snowflake_core::lease::NamespaceRecord = || namespace_record("twitter", 255, None);

/// Another tag than that which stands there already.
fn new_tag() -> TagWrite {
    TagWrite { tag: Tag::new("another").unwrap(), expected: None, record: tag_record(1) }
}

/// Every call that asks the registry. None of them changes anything that stands there in [`filled`], but the last.
const CALLS: [(&str, Call); 10] = [
    ("namespace", |registry| registry.namespace().map(|_| ())),
    ("records", |registry| registry.records().map(|_| ())),
    ("record", |registry| registry.record(WORKER).map(|_| ())),
    ("segments", |registry| registry.segments().map(|_| ())),
    ("segment", |registry| registry.segment(&tag()).map(|_| ())),
    ("holdings", |registry| registry.holdings().map(|_| ())),
    ("swap_namespace", |registry| registry.swap_namespace(None, &NAMESPACE_RECORD()).map(|_| ())),
    ("swap_within", |registry| {
        registry.swap_within(Some(&NAMESPACE_RECORD()), WorkerNumber(8), None, &record(2)).map(|_| ())
    }),
    ("swap_segment", |registry| registry.swap_segment(&NAMESPACE_RECORD(), &new_tag()).map(|_| ())),
    ("swap_segment_held", |registry| {
        registry.swap_segment_held(&NAMESPACE_RECORD(), &tag_write(2, None), Some(&(WORKER, holding(2)))).map(|_| ())
    }),
];

/// Does everything there is to do with a registry, in a namespace that is empty.
fn filled(registry: &mut dyn Registry) {
    assert_eq!(layout(registry, "twitter").unwrap(), "twitter");
    let version = create(registry, WORKER, &record(1));
    stored(registry.swap_within(Some(&NAMESPACE_RECORD()), WORKER, Some(version), &record(1)));
    assert_eq!(registry.records().unwrap().len(), 1);
    assert_eq!(registry.record(WORKER).unwrap().unwrap().record, record(1));
    let swap = registry.swap_segment(&NAMESPACE_RECORD(), &tag_write(1, None)).unwrap();
    let Swap::Stored(version) = swap else { panic!("{swap:?}") };
    let held = (WORKER, holding(2));
    let swap = registry.swap_segment_held(&NAMESPACE_RECORD(), &tag_write(2, Some(version)), Some(&held)).unwrap();
    assert!(matches!(swap, Swap::Stored(_)), "{swap:?}");
    assert_eq!(registry.segments().unwrap().len(), 1);
    assert_eq!(registry.segment(&tag()).unwrap().unwrap().record, tag_record(2));
    assert_eq!(registry.holdings().unwrap(), [(tag(), WORKER, holding(2))]);
}

/// All that the registry stores, in some order.
fn content(server: &Server) -> String {
    let content = match server.kind() {
        Kind::Etcd => server.etcdctl(&["get", "--prefix", ""]),
        _ => {
            let script = "local all = {} for _, key in ipairs(redis.call('KEYS', '*')) do all[#all + 1] = key \
                          for _, part in ipairs(redis.call('HGETALL', key)) do all[#all + 1] = part end end \
                          return table.concat(all, '\\n')";
            server.redis_cli(&["eval", script, "0"])
        }
    };
    let mut lines: Vec<&str> = content.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// The names of the calls that are not served. Each of these errors says that a right is missing, and which are needed.
#[track_caller]
fn denied(registry: &mut dyn Registry, name: &str) -> Vec<&'static str> {
    let mut denied = Vec::new();
    for (call, make) in CALLS {
        let Err(error) = make(registry) else { continue };
        let text = error.to_string();
        assert!(matches!(error, Error::Server(_)), "{call}: {error:?}");
        let says = text.contains("permission denied") || text.contains("NOPERM") || text.contains("can't");
        assert!(says && text.contains("the user needs") && text.contains(name), "{call}: {text}");
        hides(&error, PASSWORD);
        denied.push(call);
    }
    denied
}

fn the_user_of_the_page_can_do_everything(kind: Kind) {
    let server = server(kind);
    let mut registry = of(&server.make_user_of_the_page(NAMESPACE), NAMESPACE);
    filled(&mut *registry);
    assert_eq!(denied(&mut *registry, NAMESPACE), [""; 0]);
    assert_eq!(registry.warnings().unwrap(), [""; 0]);
    assert_eq!(registry.time().unwrap().is_some(), kind == Kind::Redis);
    let unseen = registry.unseen().unwrap();
    match kind {
        Kind::Redis => assert!(unseen.len() == 1 && unseen[0].contains("appendfsync"), "{unseen:?}"),
        _ => assert_eq!(unseen, [""; 0]),
    }
}

fn who_may_use_another_namespace_can_neither_read_nor_change_this_one(kind: Kind) {
    let server = server(kind);
    let text = server.make_user_of_the_page(NAMESPACE);
    // Names that begin or end alike, that are longer and shorter, and that look like keys.
    let victims =
        ["shop2", "sho", "SHOP", "shop/", "shop/workers", "shop%2F", "xshop", "shop}", "shop:x", "{shop}", " shop"];
    for name in victims {
        filled(&mut *administrator(&server, name));
    }
    let before = content(&server);
    for name in victims {
        let shown = if kind == Kind::Etcd { "/pg_snowflake/" } else { name };
        let denied = denied(&mut *of(&text, name), shown);
        assert_eq!(denied, CALLS.map(|(call, _)| call), "{name}");
    }
    // Nor by the registry's own program.
    let attempts: &[&[&str]] = match kind {
        Kind::Etcd => &[
            &["get", "--prefix", "/pg_snowflake/"],
            &["get", "/pg_snowflake/shop2/workers/7"],
            &["get", "--prefix", "/pg_snowflake/shop"],
            &["put", "/pg_snowflake/shop2/workers/7", "x"],
            &["del", "--prefix", "/pg_snowflake/shop2/"],
            &["user", "list"],
            &["role", "grant-permission", "shop", "--prefix=true", "readwrite", "/"],
            &["auth", "disable"],
        ],
        _ => &[
            &["hgetall", "pg_snowflake:shop2"],
            &["hset", "pg_snowflake:shop2", "worker:7", "x"],
            &["eval", "return redis.call('HGETALL', KEYS[1])", "1", "pg_snowflake:shop2"],
            &["eval", "return redis.call('HGETALL', 'pg_snowflake:shop2')", "0"],
            &["eval", "return redis.call('DEL', 'pg_snowflake:shop')", "0"],
            &["del", "pg_snowflake:shop"],
            &["keys", "*"],
            &["scan", "0"],
            &["flushall"],
            &["config", "get", "requirepass"],
            &["acl", "list"],
            &["select", "1"],
        ],
    };
    for attempt in attempts {
        let done = server.as_user_of_the_page(attempt);
        let said = done.output + &done.errors;
        let is_denied = ["permission denied", "NOPERM", "can't"].iter().any(|part| said.contains(part));
        assert!(!done.success && is_denied && !said.contains("granted_until"), "{attempt:?}: {said}");
    }
    assert!(content(&server) == before);
}

fn names_that_are_hard_to_write_can_be_written(kind: Kind) {
    let server = server(kind);
    // The name, and how the page has it written.
    let names = match kind {
        Kind::Etcd => [("a/b", "a%2Fb"), ("100%", "100%25"), ("a*[x]?", "a*[x]?")],
        _ => [("a*[x]?", r"a\*\[x\]\?"), (r"a\b", r"a\\b"), ("two words", "two?words")],
    };
    for (name, written) in names {
        let text = match kind {
            // A `*` is not the shell's.
            Kind::Etcd => of_etcd(&server, &format!("'{written}'")),
            _ => server.make_user_of_the_page(written),
        };
        filled(&mut *of(&text, name));
        // What the characters would stand for.
        for other in ["aaxx", "axxb", "a"] {
            assert_eq!(denied(&mut *of(&text, other), "").len(), CALLS.len(), "{name}: {other}");
        }
    }
}

/// As the page says, and once more where there is such a user.
fn of_etcd(server: &Server, written: &str) -> String {
    if server.etcdctl(&["user", "list"]).lines().any(|user| user == NAMESPACE) {
        server.etcdctl(&["user", "delete", NAMESPACE]);
        server.etcdctl(&["role", "delete", NAMESPACE]);
    }
    server.make_user_of_the_page(written)
}

/// On a connection that is open; and they are there again as soon as they are given back.
fn rights_that_are_taken_away_are_missed_at_once(kind: Kind) {
    let server = server(kind);
    let text = server.make_user_of_the_page(NAMESPACE);
    let mut registry = of(&text, NAMESPACE);
    filled(&mut *registry);
    let before = content(&server);
    let prefix = "/pg_snowflake/shop/";
    match kind {
        Kind::Etcd => server.etcdctl(&["role", "revoke-permission", NAMESPACE, "--prefix=true", prefix]),
        _ => server.redis_cli(&["acl", "setuser", NAMESPACE, "resetkeys"]),
    };
    assert_eq!(denied(&mut *registry, NAMESPACE), CALLS.map(|(call, _)| call));
    assert!(content(&server) == before);
    match kind {
        Kind::Etcd => server.etcdctl(&["role", "grant-permission", NAMESPACE, "--prefix=true", "readwrite", prefix]),
        _ => server.redis_cli(&["acl", "setuser", NAMESPACE, "~pg_snowflake*"]),
    };
    assert_eq!(denied(&mut *registry, NAMESPACE), [""; 0]);
    // The user himself.
    match kind {
        Kind::Etcd => server.etcdctl(&["user", "delete", NAMESPACE]),
        _ => server.redis_cli(&["acl", "deluser", NAMESPACE]),
    };
    for (call, make) in CALLS {
        let error = make(&mut *registry).unwrap_err();
        assert!(matches!(error, Error::Credentials(_)), "{call}: {error:?}");
    }
}

fn nobody_gets_in_without_the_password(kind: Kind) {
    let server = server(kind);
    server.make_user_of_the_page(NAMESPACE);
    for credentials in ["", "shop:wrong", "nobody:secret", "shop:secret%20"] {
        let text = match credentials {
            "" => format!("{}://{}", kind.scheme(false), server.address()),
            credentials => kind.url(false, credentials, &server.address()),
        };
        for (call, make) in CALLS {
            let (result, took) = timed(|| make(&mut *of(&text, NAMESPACE)));
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Credentials(_)), "{credentials}: {call}: {error:?}");
            assert!(took < PATIENCE, "{took:?}");
        }
    }
    assert!(!content(&server).contains("pg_snowflake"));
}

/// As the page says of what remains possible.
fn who_has_the_rights_reads_the_tokens(kind: Kind) {
    let server = server(kind);
    let text = server.make_user_of_the_page(NAMESPACE);
    filled(&mut *administrator(&server, NAMESPACE));
    let mut registry = of(&text, NAMESPACE);
    let stands = registry.record(WORKER).unwrap().unwrap();
    assert_eq!(stands.record.owner, record(1).owner);
    // And so takes the lease.
    stored(registry.compare_and_swap(WORKER, Some(stands.version), &record(2)));
}

const READS: [&str; 6] = ["namespace", "records", "record", "segments", "segment", "holdings"];
const SEGMENTS: [&str; 4] = ["segments", "segment", "swap_segment", "swap_segment_held"];

#[test]
fn each_part_of_the_role_is_needed_in_etcd() {
    let server = server(Kind::Etcd);
    let text = server.make_user_of_the_page(NAMESPACE);
    filled(&mut *administrator(&server, NAMESPACE));
    let before = content(&server);
    let all = CALLS.map(|(call, _)| call);
    let changes: Vec<_> = all.into_iter().filter(|call| !READS.contains(call)).collect();
    let grant = |kind: &str, prefix: &str| {
        server.etcdctl(&["role", "grant-permission", NAMESPACE, "--prefix=true", kind, prefix]);
    };
    let revoke = |prefix: &str| {
        server.etcdctl(&["role", "revoke-permission", NAMESPACE, "--prefix=true", prefix]);
    };
    let denied = || denied(&mut *of(&text, NAMESPACE), "/pg_snowflake/shop/");
    revoke("/pg_snowflake/shop/");
    assert_eq!(denied(), all);
    grant("read", "/pg_snowflake/shop/");
    assert_eq!(denied(), changes);
    grant("write", "/pg_snowflake/shop/");
    assert_eq!(denied(), all);
    revoke("/pg_snowflake/shop/");
    for part in ["workers/", "segments/", "holders/", "registry"] {
        grant("readwrite", &format!("/pg_snowflake/shop/{part}"));
    }
    assert_eq!(denied(), all, "the namespace's record");
    grant("readwrite", "/pg_snowflake/shop/namespace");
    assert_eq!(denied(), [""; 0]);
    for (part, needs) in [
        ("workers/", vec!["records", "record", "swap_within"]),
        ("segments/", SEGMENTS.to_vec()),
        ("holders/", vec!["holdings", "swap_segment_held"]),
    ] {
        let prefix = format!("/pg_snowflake/shop/{part}");
        revoke(&prefix);
        assert_eq!(denied(), needs, "{part}");
        grant("readwrite", &prefix);
    }
    // `filled` and the calls that were allowed.
    server.etcdctl(&["del", "/pg_snowflake/shop/workers/8"]);
    server.etcdctl(&["del", "/pg_snowflake/shop/segments/another"]);
    assert!(content(&server) == before);
}

/// The trap that the page names.
#[test]
fn a_prefix_without_the_slash_reaches_more_in_etcd() {
    let server = server(Kind::Etcd);
    let text = server.make_user_of_the_page(NAMESPACE);
    server.etcdctl(&["role", "grant-permission", NAMESPACE, "--prefix=true", "readwrite", "/pg_snowflake/shop"]);
    filled(&mut *of(&text, "shop2"));
}

#[test]
fn each_part_of_the_list_is_needed_in_redis() {
    let server = server(Kind::Redis);
    let text = server.make_user_of_the_page(NAMESPACE);
    filled(&mut *administrator(&server, NAMESPACE));
    let keys =
        ["pg_snowflake:shop", "pg_snowflake_segments:{pg_snowflake:shop}", "pg_snowflake_holders:{pg_snowflake:shop}"];
    let change = |rules: &[&str]| server.redis_cli(&[&["acl", "setuser", NAMESPACE], rules].concat());
    let all = CALLS.map(|(call, _)| call);
    let changes: Vec<_> = all.into_iter().filter(|call| !READS.contains(call)).collect();
    for (command, needs) in [
        ("eval", changes.clone()),
        ("hget", [&["namespace", "segment"], &changes[..]].concat()),
        ("hgetall", vec!["records", "segments", "holdings"]),
        ("hmget", vec!["record", "swap_within"]),
        // Those that would change something.
        ("hset", vec!["swap_within", "swap_segment"]),
    ] {
        change(&[&format!("-{command}")]);
        // What the calls before have made.
        server.redis_cli(&["hdel", keys[0], "worker:8", "worker:8:version"]);
        server.redis_cli(&["hdel", keys[1], "another"]);
        assert_eq!(denied(&mut *of(&text, NAMESPACE), NAMESPACE), needs, "{command}");
        change(&[&format!("+{command}")]);
    }
    for (missing, needs) in [
        (0, all.into_iter().filter(|call| !["segments", "segment", "holdings"].contains(call)).collect()),
        (1, SEGMENTS.to_vec()),
        (2, vec!["holdings", "swap_segment_held"]),
    ] {
        let others: Vec<String> = (0..3).filter(|key| *key != missing).map(|key| format!("~{}", keys[key])).collect();
        change(&[&["resetkeys"], &others.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
        assert_eq!(denied(&mut *of(&text, NAMESPACE), NAMESPACE), needs, "{}", keys[missing]);
    }
    change(&[&["resetkeys"], &keys.map(|key| format!("~{key}")).each_ref().map(String::as_str)[..]].concat());
    assert_eq!(denied(&mut *of(&text, NAMESPACE), NAMESPACE), [""; 0]);

    // Without these there is less to see, and nothing else.
    for (command, says) in [("time", ""), ("role", "its role"), ("info", "whether it has replicas")] {
        change(&[&format!("-{command}")]);
        let mut registry = of(&text, NAMESPACE);
        assert_eq!(denied(&mut *registry, NAMESPACE), [""; 0], "{command}");
        assert_eq!(registry.warnings().unwrap(), [""; 0], "{command}");
        assert_eq!(registry.time().unwrap().is_none(), command == "time");
        let unseen = registry.unseen().unwrap().join(" ");
        assert!(unseen.contains(says), "{command}: {unseen}");
        change(&[&format!("+{command}")]);
    }
}

/// What waits, or has another database, needs a right more, and says so before anything is changed.
#[test]
fn waiting_and_databases_need_more_in_redis() {
    let server = server(Kind::Redis);
    let text = server.make_user_of_the_page(NAMESPACE);
    for (end, right) in [("?wait_replicas=1", "wait"), ("/3", "select")] {
        let text = format!("{text}{end}");
        let error = of(&text, NAMESPACE).compare_and_swap(WORKER, None, &record(1)).unwrap_err();
        assert!(matches!(error, Error::Server(_)) && error.to_string().contains(&format!("'{right}'")), "{error:?}");
        assert_eq!(content(&server).trim(), "");
        server.redis_cli(&["acl", "setuser", NAMESPACE, &format!("+{right}")]);
        of(&text, NAMESPACE).records().unwrap();
    }
    // No border for whoever has the keys' names.
    filled(&mut *of(&format!("{text}/3"), NAMESPACE));
    assert!(of(&format!("{text}/3"), NAMESPACE).record(WORKER).unwrap().is_some());
}

/// The reason why the page does not have it.
#[test]
fn who_may_see_settings_reads_the_password_of_redis() {
    let server = server(Kind::Redis);
    let text = server.make_user_of_the_page(NAMESPACE);
    server.redis_cli(&["acl", "setuser", NAMESPACE, "+config|get"]);
    assert_eq!(of(&text, NAMESPACE).unseen().unwrap(), [""; 0]);
    let shown = server.as_user_of_the_page(&["config", "get", "requirepass"]);
    assert!(shown.output.contains(TOP), "{shown:?}");
}

/// Others get an error, or wait until their deadline; no change of theirs is lost.
#[test]
fn who_may_run_scripts_can_stop_redis() {
    let server = server(Kind::Redis);
    server.make_user_of_the_page(NAMESPACE);
    server.redis_cli(&["config", "set", "busy-reply-threshold", "100"]);
    let mut other = administrator(&server, "other");
    filled(&mut *other);
    thread::scope(|scope| {
        let script = scope.spawn(|| server.as_user_of_the_page(&["eval", "while true do end", "0"]));
        wait_for("it runs", || other.record(WORKER).is_err());
        let error = other.record(WORKER).unwrap_err();
        assert!(error.to_string().contains("BUSY"), "{error:?}");
        server.redis_cli(&["script", "kill"]);
        assert!(!script.join().unwrap().success);
    });
    wait_for("it answers", || other.record(WORKER).is_ok());
}
