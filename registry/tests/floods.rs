//! Servers that do not stop to answer fill no memory, and cost no more time than the call has. The only test of its process, whose memory
//! is looked at.

mod common;
mod fakes;

use common::*;
use fakes::{Damage, Fake, of_kind};
use snowflake_registry::Error;
use snowflake_test::registries::Kind;
use std::time::Duration;

/// How much memory more than before a flood may take: for all records of a namespace, and for one.
const ALL: usize = 300 << 20;
const ONE: usize = 32 << 20;

/// The most memory that the process had since the last call, and what it has now; in bytes.
fn memory() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
    };
    let found = (value("VmHWM:"), value("VmRSS:"));
    // The next one begins with what there is.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    found
}

#[test]
fn a_flood_fills_no_memory() {
    // Those that take more come last: a process keeps some of what it had.
    for (is_all, most) in [(false, ONE), (true, ALL)] {
        for kind in Kind::ALL {
            let fake = Fake::start(kind);
            // How many answers are sent before that of a request.
            fake.begin(None);
            connect(&kind.url(false, "", &fake.address()), &options(PATIENCE)).record(WORKER).unwrap();
            let last = fake.state.lock().unwrap().answers.len() - 1;
            for (name, start, repeated) in (of_kind(kind).floods)() {
                for at in [0, last] {
                    fake.begin(Some((at, Damage::Flood { start: start.clone(), repeated: repeated.clone() })));
                    let (result, took, taken) = of_call(kind, &fake, is_all);
                    let told = format!("{kind:?}, {name}, answer {at}: {result:?}");
                    assert!(taken < most, "{told}: {} MB", taken >> 20);
                    assert!(took < PATIENCE, "{told}: {took:?}");
                    assert!(!matches!(result, Ok(()) | Err(Error::Interrupted)), "{told}");
                }
            }
        }
    }
}

/// The result of a call, how long it took, and how much memory.
fn of_call(kind: Kind, fake: &Fake, is_all: bool) -> (Result<(), Error>, Duration, usize) {
    let mut registry = connect(&kind.url(false, "", &fake.address()), &options(Duration::from_secs(2)));
    let (_, before) = memory();
    let (result, took) = timed(|| match is_all {
        true => registry.records().map(drop),
        false => registry.record(WORKER).map(drop),
    });
    (result, took, memory().0.saturating_sub(before))
}
