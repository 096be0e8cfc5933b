//! No client starts a thread, touches a signal, or leaves connections behind. The only test of its process, so that nobody else
//! does meanwhile.
#![cfg(all(feature = "postgres", feature = "etcd", feature = "redis"))]

mod common;

use common::*;
use snowflake_registry::{Options, Stop};
use snowflake_test::certificates::Authority;
use snowflake_test::ports::free_port;
use snowflake_test::registries::{Kind, Setup};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Which signals are blocked, ignored and handled.
fn signals() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let lines: Vec<&str> = status.lines().filter(|line| line.starts_with("Sig") && !line.starts_with("SigQ")).collect();
    assert_eq!(lines.len(), 4, "{status}");
    lines.join(" ")
}

fn sockets() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    files
        .filter(|file| std::fs::read_link(file.path()).is_ok_and(|link| link.to_string_lossy().starts_with("socket:")))
        .count()
}

#[test]
fn no_call_leaves_anything_behind() {
    let before = signals();
    no_call_starts_a_thread();
    assert_eq!(signals(), before);
    calls_that_were_given_up_leave_no_connections();
}

fn calls_that_were_given_up_leave_no_connections() {
    // A server that takes connections and says nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for kind in Kind::ALL {
        let mut registry = connect(&kind.url(false, "", &address), &options(Duration::from_millis(200)));
        let before = sockets();
        for _ in 0..10 {
            registry.record(WORKER).unwrap_err();
        }
        // That of the last call is closed by the next one at the latest.
        let left = sockets() - before;
        assert!(left <= 1, "{kind:?}: {left}");
    }
}

fn no_call_starts_a_thread() {
    let authority = Authority::new();
    let certificate = authority.certificate("server", "DNS:localhost");
    for kind in Kind::ALL {
        let server = Setup::of(kind).certificate(&certificate).start();
        // A name, so that it is resolved; the first host is dead.
        let hosts = format!("localhost:{},localhost:{}", free_port(), server.port());
        let text = verified(kind, &kind.url(true, "", &hosts), &authority.root());
        let before = threads();
        // A thread could end before the call does: so they are counted whenever the call waits, too.
        let most = Arc::new(AtomicUsize::new(0));
        let seen = most.clone();
        let stop = Stop::when(move || {
            seen.fetch_max(threads(), Ordering::Relaxed);
            false
        });
        let mut registry = connect(&text, &Options { deadline: Some(PATIENCE), stop, ..Options::default() });
        assert_eq!(layout(&mut *registry, "twitter").unwrap(), "twitter");
        let version = create(&mut *registry, WORKER, &record(1));
        stored(registry.compare_and_swap(WORKER, Some(version), &record(2)));
        registry.record(WORKER).unwrap();
        registry.records().unwrap();
        registry.warnings().unwrap();
        assert_eq!(threads(), before, "{kind:?}");
        assert_eq!(most.load(Ordering::Relaxed), before, "{kind:?}");
    }
}
