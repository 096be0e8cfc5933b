//! Common parts of the tests of registries.

#![allow(dead_code, reason = "each test uses a part of it")]

use snowflake_core::lease::{Holder, NamespaceRecord, Record, Token, Version, WorkerNumber};
use snowflake_core::segment::{Holding, Range, Sizes, State, Tag, TagRecord, TagWrite, Use};
use snowflake_core::{Micros, UnixMicros};
use snowflake_registry::{Error, Namespace, Options, Password, Registry, Stop, Swap, TlsBy, Url, open};
use snowflake_test::registries::{Kind, Server};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub const WORKER: WorkerNumber = WorkerNumber(7);

/// Far more than a slow machine needs, and less than waiting in vain.
pub const PATIENCE: Duration = Duration::from_secs(10);

pub fn options(deadline: Duration) -> Options {
    Options { deadline: Some(deadline), ..Options::default() }
}

pub fn url(text: &str) -> Url {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn connect(text: &str, options: &Options) -> Box<dyn Registry> {
    open(&url(text), &namespace("default"), options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn client(server: &Server) -> Box<dyn Registry> {
    connect(&server.url(), &options(PATIENCE))
}

pub fn client_with_password(text: &str, password: &str) -> Box<dyn Registry> {
    let url = url(text).with_password(Password::new(password).unwrap());
    open(&url, &namespace("default"), &options(PATIENCE)).unwrap()
}

/// The parameter by which a URL of this kind asks for TLS, with a server that is verified; empty, where its scheme does that.
pub fn asking_for_tls(kind: Kind) -> &'static str {
    match url(&kind.url(false, "", "localhost")).kind().tls() {
        TlsBy::Parameter(parameter) => parameter.verified(),
        TlsBy::Scheme { .. } => "",
    }
}

/// A URL that asks for TLS with a server whose certificate is one of this root's.
pub fn verified(kind: Kind, url: &str, root: &std::path::Path) -> String {
    let parameters = [asking_for_tls(kind), &format!("sslrootcert={}", root.display())].join("&");
    format!("{url}?{}", parameters.trim_start_matches('&'))
}

pub fn namespace(name: &str) -> Namespace {
    Namespace::new(name).unwrap()
}

/// A record that differs from those of other numbers.
pub fn record(number: i64) -> Record {
    Record {
        owner: Some(Token(u128::MAX - u128::from(number.unsigned_abs()))),
        granted_from: UnixMicros(1_700_000_000_000_001 + number),
        granted_until: UnixMicros(1_800_000_000_000_000 + number),
        holder: Holder {
            host: "o'clock \"db\" \\ 雪".to_owned(),
            data_directory: "/var/lib/postgresql/15/main".to_owned(),
            port: 5432,
            cluster_name: String::new(),
            system_identifier: u64::MAX,
            process: "boot 1".to_owned(),
        },
    }
}

/// A tag's name that is hard to write.
pub fn tag() -> Tag {
    Tag::new("o'clock %/\\\" {}").unwrap()
}

/// A tag's record that differs from those of other numbers.
pub fn tag_record(number: u64) -> TagRecord {
    let bounds = Sizes { smallest: 10, largest: 2_147_483 };
    TagRecord { next: NEXT_OF_TAG + number, floor: 3, first: 1, last: TagRecord::HIGHEST, state: State::Live, bounds }
}

pub const NEXT_OF_TAG: u64 = 9_111_222_000;

/// What a server holds that was granted this record's last range.
pub fn holding(number: u64) -> Holding {
    let next = tag_record(number).next;
    Holding {
        run: 0xfeed,
        current: Range { first: 17, end: 20 },
        after: Range { first: next - 1, end: next },
        granted_at: UnixMicros(1_700_000_000_000_001),
        used: Use { count: 5, length: Micros(6_000_000) },
    }
}

pub fn tag_write(number: u64, expected: Option<Version>) -> TagWrite {
    TagWrite { tag: tag(), expected, record: tag_record(number) }
}

pub fn namespace_record(layout: &str, life: u64, leases_from: Option<UnixMicros>) -> NamespaceRecord {
    NamespaceRecord { layout: layout.to_owned(), life, leases_from, ..NamespaceRecord::default() }
}

/// The layout of the namespace; this one where there was none.
pub fn layout(registry: &mut dyn Registry, layout: &str) -> Result<String, Error> {
    let stands = match registry.namespace()? {
        None => registry.swap_namespace(None, &namespace_record(layout, 255, None))?,
        stands => stands,
    };
    Ok(stands.map(|stands| stands.layout).unwrap_or_default())
}

#[track_caller]
pub fn create(registry: &mut dyn Registry, worker: WorkerNumber, record: &Record) -> Version {
    stored(registry.compare_and_swap(worker, None, record))
}

#[track_caller]
pub fn stored(swap: Result<Swap, Error>) -> Version {
    match swap {
        Ok(Swap::Stored(version)) => version,
        other => panic!("{other:?}"),
    }
}

/// An option that can be switched to "stop".
pub fn stoppable(deadline: Duration) -> (Options, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = flag.clone();
    let stop = Stop::when(move || seen.load(Ordering::Relaxed));
    (Options { deadline: Some(deadline), stop, ..Options::default() }, flag)
}

/// The result of a call, and how long it took.
pub fn timed<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let returned = call();
    (returned, start.elapsed())
}

/// Neither in the message nor in `Debug`.
#[track_caller]
pub fn hides(error: &Error, secret: &str) {
    let text = format!("{error} {error:?}");
    assert!(!text.contains(secret), "{text}");
    assert!(text.len() < 2000, "{text}");
}
