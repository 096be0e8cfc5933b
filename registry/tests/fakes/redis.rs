//! Redis, which asks nobody for a password.

use super::{Ended, FakeKind, Flood, Session, State};
use crate::common::{WORKER, tag};

/// A line of the client's, without its end.
fn line(session: &mut Session) -> std::io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(session.read(1)?);
    }
    Ok(String::from_utf8_lossy(&line[..line.len() - 2]).into_owned())
}

fn number(session: &mut Session) -> std::io::Result<usize> {
    Ok(line(session)?[1..].parse().unwrap())
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn array(elements: &[Vec<u8>]) -> Vec<u8> {
    [format!("*{}\r\n", elements.len()).into_bytes(), elements.concat()].concat()
}

fn of_command(session: &Session, command: &[Vec<u8>]) -> Vec<u8> {
    let mut state = session.state.lock().unwrap();
    let nil = b"$-1\r\n".to_vec();
    let (version, stored) = (state.versions.to_string(), state.stored.clone());
    match command[0].as_slice() {
        b"ROLE" => array(&[bulk(b"master"), b":0\r\n".to_vec(), array(&[])]),
        b"INFO" => bulk(b"# Persistence\r\naof_enabled:1\r\n"),
        b"CONFIG" => array(&[bulk(&command[2]), bulk(b"yes")]),
        b"HGET" | b"HGETALL" if command[1].starts_with(b"pg_snowflake_") => of_segments(&state, command),
        b"HGET" if state.namespace.is_empty() => nil,
        b"HGET" => bulk(&state.namespace),
        b"EVAL" if command[1].starts_with(b"if ARGV[1] ==") => {
            state.changes += 1;
            state.namespace.clone_from(&command[5]);
            bulk(&command[5])
        }
        b"EVAL" if command[2] == b"3" => {
            let text = &command[8];
            state.store_tag(text, &command[11]);
            // The version is the client's.
            let digits = text.split(|byte| *byte == b' ').next().unwrap_or_default();
            state.version_of_tag = String::from_utf8_lossy(digits).parse().unwrap();
            array(&[bulk(b"stored"), bulk(text)])
        }
        b"EVAL" => {
            state.store(&command[6]);
            let version = bulk(state.versions.to_string().as_bytes());
            array(&[bulk(b"stored"), version.clone(), version, bulk(&command[6])])
        }
        b"HMGET" if stored.is_empty() => array(&[nil.clone(), nil]),
        b"HMGET" => array(&[bulk(version.as_bytes()), bulk(&stored)]),
        b"HGETALL" if stored.is_empty() => array(&[]),
        b"HGETALL" => array(&[bulk(b"worker:7"), bulk(&stored), bulk(b"worker:7:version"), bulk(version.as_bytes())]),
        _ => b"+OK\r\n".to_vec(),
    }
}

fn of_segments(state: &State, command: &[Vec<u8>]) -> Vec<u8> {
    let name = tag().as_str().to_owned();
    let (field, value) = match command[1].starts_with(b"pg_snowflake_holders") {
        true => (format!("{}/{name}", WORKER.0), &state.holder),
        false => (name, &state.tag),
    };
    match (command[0].as_slice(), value.is_empty()) {
        (b"HGET", true) => b"$-1\r\n".to_vec(),
        (b"HGET", false) => bulk(value),
        (_, true) => array(&[]),
        (_, false) => array(&[bulk(field.as_bytes()), bulk(value)]),
    }
}

pub const KIND: FakeKind = FakeKind { serve, first_version: 1, floods, endless: b"*1\r\n$65535\r\n" };

fn floods() -> Vec<Flood> {
    let start = |text: &str| text.as_bytes().to_vec();
    vec![
        ("a text without an end", start("$2000000000\r\n"), start("x")),
        ("a line without an end", start("+"), start("x")),
        ("an array without an end", start("*1000000000\r\n"), start(":1\r\n")),
        ("an array of arrays", start("*1000000000\r\n"), start("*0\r\n")),
        ("arrays in arrays", Vec::new(), start("*4096\r\n")),
        ("a map without an end", start("%1000000000\r\n"), start("_\r\n")),
        ("answers without an end", Vec::new(), start("+OK\r\n")),
        ("pushes without an end", Vec::new(), start(">1\r\n+x\r\n")),
    ]
}

fn serve(mut session: Session) -> Ended {
    loop {
        let count = number(&mut session)?;
        let mut command = Vec::new();
        for _ in 0..count {
            let length = number(&mut session)?;
            let mut part = session.read(length + 2)?;
            part.truncate(length);
            command.push(part);
        }
        let answer = of_command(&session, &command);
        session.answer(&answer)?;
    }
}
