//! Servers that do not stop to answer fill no memory, and cost no more time than the call has. The only test of its process, whose memory
//! is looked at.

mod common;
mod fakes;

use common::*;
use fakes::postgres::message;
use fakes::{Damage, Fake};
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

/// A name, what it begins with, and what it repeats.
type Flood = (&'static str, Vec<u8>, Vec<u8>);

fn floods(kind: Kind) -> Vec<Flood> {
    let start = |text: &str| text.as_bytes().to_vec();
    match kind {
        Kind::Postgres => {
            let column = [b"c\0".as_slice(), &[0; 6], &25_u32.to_be_bytes(), &[255; 6], &[0, 0]].concat();
            let columns =
                |count: u16| message(b'T', &[&count.to_be_bytes()[..], &column.repeat(count.into())].concat());
            let row = |count: u16| message(b'D', &[&count.to_be_bytes()[..], &[255; 4].repeat(count.into())].concat());
            vec![
                ("rows without an end", columns(11), row(11)),
                ("rows without columns", columns(0), row(0)),
                ("rows of many columns", columns(3000), row(3000)),
                ("a message without an end", start("D\x7f\0\0\0"), start("x")),
                ("an error of that length", start("E\x7f\0\0\0"), start("x")),
                ("statements without an end", Vec::new(), message(b'C', b"SET\0")),
                ("notices without an end", Vec::new(), message(b'N', b"SWARNING\0C01000\0Mx\0\0")),
                ("parameters without an end", Vec::new(), message(b'S', b"a\0b\0")),
            ]
        }
        Kind::Redis => vec![
            ("a text without an end", start("$2000000000\r\n"), start("x")),
            ("a line without an end", start("+"), start("x")),
            ("an array without an end", start("*1000000000\r\n"), start(":1\r\n")),
            ("an array of arrays", start("*1000000000\r\n"), start("*0\r\n")),
            ("arrays in arrays", Vec::new(), start("*4096\r\n")),
            ("a map without an end", start("%1000000000\r\n"), start("_\r\n")),
            ("answers without an end", Vec::new(), start("+OK\r\n")),
            ("pushes without an end", Vec::new(), start(">1\r\n+x\r\n")),
        ],
        Kind::Etcd => {
            let headers = b"\x88\0\x0ccontent-type\x10application/grpc";
            let length = u8::try_from(headers.len()).unwrap();
            let begin = [&[0, 0, length, 1, 4, 0, 0, 0, 3], &headers[..]].concat();
            let data = |length: u32, bytes: &[u8]| {
                let frame = u32::try_from(bytes.len() + 5).unwrap().to_be_bytes();
                [&frame[1..], &[0, 0, 0, 0, 0, 3, 0], &length.to_be_bytes(), bytes].concat()
            };
            vec![
                ("a message without an end", [begin.clone(), data(u32::MAX, b"")].concat(), start("x")),
                (
                    "empty records",
                    [begin.clone(), data(4 << 20, b"")].concat(),
                    [&[0, 16, 0, 0, 0, 0, 0, 0, 3][..], &[0x12, 0].repeat(2048)].concat(),
                ),
                ("headers without an end", begin, vec![0, 0, 1, 9, 0, 0, 0, 0, 3, 0]),
                ("settings without an end", Vec::new(), vec![0, 0, 0, 4, 0, 0, 0, 0, 0]),
                ("pings without an end", Vec::new(), vec![0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]),
            ]
        }
    }
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
            for (name, start, repeated) in floods(kind) {
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
