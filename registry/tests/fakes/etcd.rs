//! etcd, which asks nobody for a user: gRPC in HTTP/2, with the messages written by hand.

use super::{Ended, FakeKind, Flood, Session, State};
use crate::common::tag;
use std::collections::BTreeMap;

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header that neither side keeps in its table.
fn header(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push(u8::try_from(value & 127).unwrap() | 128);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

/// A field of Protocol Buffers that is a number.
fn of_number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// A field that has bytes, or a message.
fn of_bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// The first field of this number that has bytes.
fn bytes_in(message: &[u8], wanted: u64) -> Vec<u8> {
    nth_bytes_in(message, wanted, 0)
}

/// The field of this number that has bytes, and so many before it.
fn nth_bytes_in(message: &[u8], wanted: u64, before: usize) -> Vec<u8> {
    let (mut rest, mut seen) = (message, 0);
    let number = |rest: &mut &[u8]| {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = rest[0];
            *rest = &rest[1..];
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                break;
            }
        }
        value
    };
    while !rest.is_empty() {
        let key = number(&mut rest);
        let value = number(&mut rest);
        if key & 7 == 2 {
            let (bytes, after) = rest.split_at(usize::try_from(value).unwrap());
            if key >> 3 == wanted {
                if seen == before {
                    return bytes.to_vec();
                }
                seen += 1;
            }
            rest = after;
        }
    }
    Vec::new()
}

fn head(state: &State) -> Vec<u8> {
    of_bytes(1, &[of_number(1, 11), of_number(2, 12), of_number(3, state.versions + 1), of_number(4, 2)].concat())
}

fn pair(key: &[u8], value: &[u8], revision: u64) -> Vec<u8> {
    let parts = [of_bytes(1, key), of_number(2, revision), of_number(3, revision), of_number(4, 1), of_bytes(5, value)];
    parts.concat()
}

fn of_request(state: &mut State, request: &[u8]) -> Vec<u8> {
    let keys = request.windows(13).filter(|window| *window == b"/pg_snowflake").count();
    if keys == 0 {
        // Alarms.
        return head(state);
    }
    if keys <= 2 {
        let is_of = |part: &str| request.windows(part.len()).any(|window| window == part.as_bytes());
        let name = tag().as_str().replace('%', "%25").replace('/', "%2F");
        let (key, value, version) = match (is_of("/workers"), is_of("/segments"), is_of("/holders")) {
            (true, ..) => ("workers/7".to_owned(), &state.stored, state.versions + 1),
            (_, true, _) => (format!("segments/{name}"), &state.tag, state.version_of_tag),
            (.., true) => (format!("holders/7/{name}"), &state.holder, state.version_of_tag),
            _ => ("namespace".to_owned(), &state.namespace, state.versions + 1),
        };
        let key = format!("/pg_snowflake/default/{key}");
        let found = match value.is_empty() {
            false => of_bytes(2, &pair(key.as_bytes(), value, version)),
            true => Vec::new(),
        };
        return [head(state), found].concat();
    }
    let put = bytes_in(&bytes_in(request, 2), 2);
    let (key, value) = (bytes_in(&put, 1), bytes_in(&put, 2));
    if key.ends_with(b"namespace") {
        state.changes += 1;
        state.versions += 1;
        state.namespace.clone_from(&value);
    } else if key.windows(9).any(|window| window == b"/segments") {
        // The last put of the transaction.
        let holder = bytes_in(&bytes_in(&nth_bytes_in(request, 2, 2), 2), 2);
        state.store_tag(&value, &holder);
        state.version_of_tag += 1;
    } else {
        state.store(&value);
    }
    let (head, stands) = (head(state), pair(&key, &value, state.versions + 1));
    let found = [head.clone(), of_bytes(2, &stands), of_number(4, 1)].concat();
    let put = of_bytes(3, &of_bytes(2, &head));
    let beside = if nth_bytes_in(request, 2, 2).is_empty() { Vec::new() } else { put.clone() };
    let answers = [put, of_bytes(3, &of_bytes(1, &found)), beside].concat();
    [head, of_number(2, 1), answers].concat()
}

pub const KIND: FakeKind = FakeKind {
    serve,
    first_version: 2,
    floods,
    // Settings of HTTP/2; a frame of 16,383 bytes.
    endless: b"\0\0\0\x04\0\0\0\0\0\0\x3f\xff\xfe\0\0\0\0\0",
};

fn floods() -> Vec<Flood> {
    let start = |text: &str| text.as_bytes().to_vec();
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

fn serve(mut session: Session) -> Ended {
    session.read(24)?;
    session.answer(&frame(4, 0, 0, &[]))?;
    let mut requests: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    loop {
        let start = session.read(9)?;
        let length = u32::from_be_bytes([0, start[0], start[1], start[2]]) as usize;
        let (kind, flags) = (start[3], start[4]);
        let stream = u32::from_be_bytes([start[5], start[6], start[7], start[8]]);
        let payload = session.read(length)?;
        match kind {
            4 if flags & 1 == 0 => session.answer(&frame(4, 1, 0, &[]))?,
            6 if flags & 1 == 0 => session.answer(&frame(6, 1, 0, &payload))?,
            0 => requests.entry(stream).or_default().extend(&payload),
            _ => {}
        }
        // The end of a request.
        if kind == 0 && flags & 1 == 1 {
            let request = requests.remove(&stream).unwrap_or_default();
            let message = of_request(&mut session.state.lock().unwrap(), request.get(5..).unwrap_or_default());
            let length = u32::try_from(message.len()).unwrap().to_be_bytes();
            let headers = [vec![0x88], header("content-type", "application/grpc")].concat();
            let answer = [
                frame(1, 4, stream, &headers),
                frame(0, 0, stream, &[&[0][..], &length, &message].concat()),
                frame(1, 5, stream, &header("grpc-status", "0")),
            ];
            session.answer(&answer.concat())?;
        }
    }
}
