//! Fake registries: they speak just enough of each protocol, and one of their answers is not what it should be.

#![allow(dead_code, reason = "each test uses a part of it")]

mod etcd;
mod postgres;
mod redis;

use snowflake_test::registries::Kind;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The fake of a kind of registry.
pub struct FakeKind {
    /// Serves a connection until it ends.
    serve: fn(Session) -> Ended,
    /// The version of the first change.
    first_version: u64,
    /// Answers that do not end.
    pub floods: fn() -> Vec<Flood>,
    /// The start of an answer that a client waits for the rest of.
    pub endless: &'static [u8],
}

/// A name, the start, and the bytes that are repeated.
pub type Flood = (&'static str, Vec<u8>, Vec<u8>);

pub fn of_kind(kind: Kind) -> &'static FakeKind {
    match kind {
        Kind::Postgres => &postgres::KIND,
        Kind::Etcd => &etcd::KIND,
        Kind::Redis => &redis::KIND,
    }
}

/// The fate of one answer.
#[derive(Clone, Debug)]
pub enum Damage {
    /// These bits are flipped.
    Flips(Vec<usize>),
    /// Only so many bytes are sent, and then the connection is closed; or the server says nothing more.
    Cut { at: usize, closes: bool },
    /// Some bytes are sent twice.
    Repeated { from: usize, length: usize },
    /// Some bytes are left out.
    Removed { from: usize, length: usize },
    /// Other bytes stand between.
    Inserted { at: usize, bytes: Vec<u8> },
    /// Other bytes stand in the place of some.
    Overwritten { at: usize, bytes: Vec<u8> },
    /// All of it is sent this many times.
    Times(usize),
    /// The answer that was sent so long before is sent in its place.
    Earlier(usize),
    /// It is sent together with the next one, before it.
    Late,
    /// It comes byte by byte, and takes so long.
    Drip(Duration),
    /// These bytes follow it, without an end.
    Endless(Vec<u8>),
    /// These bytes are sent in its place, without an end.
    Flood { start: Vec<u8>, repeated: Vec<u8> },
}

/// The state of a fake, for all its connections.
#[derive(Default)]
pub struct State {
    /// Which answer is damaged, by its number, and how.
    pub damage: Option<(usize, Damage)>,
    /// The answers that it made.
    pub answers: Vec<Vec<u8>>,
    /// Bytes that are sent before the next one.
    late: Vec<u8>,
    /// The changes that it was asked for.
    pub changes: usize,
    /// The namespace's record.
    namespace: Vec<u8>,
    /// The last value that was stored, and how many were.
    stored: Vec<u8>,
    versions: u64,
    /// The record of the tag that was stored, what was stored of its holder, and the version.
    tag: Vec<u8>,
    holder: Vec<u8>,
    version_of_tag: u64,
}

impl State {
    fn store(&mut self, value: &[u8]) {
        self.changes += 1;
        self.versions += 1;
        self.stored = value.to_vec();
    }

    fn store_tag(&mut self, value: &[u8], holder: &[u8]) {
        self.changes += 1;
        self.versions += 1;
        self.version_of_tag = self.versions;
        (self.tag, self.holder) = (value.to_vec(), holder.to_vec());
    }
}

/// A fake on the loopback. It ends with the process.
pub struct Fake {
    kind: Kind,
    port: u16,
    pub state: Arc<Mutex<State>>,
}

impl Fake {
    pub fn start(kind: Kind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fake = Self { kind, port: listener.local_addr().unwrap().port(), state: Arc::default() };
        let state = fake.state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = state.clone();
                thread::spawn(move || {
                    // A request that is not sent to the end does not keep the connection for ever.
                    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                    stream.set_nodelay(true).unwrap();
                    let session = Session { stream, state };
                    // Ends with the connection.
                    let _ = (of_kind(kind).serve)(session);
                });
            }
        });
        fake
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The version of the last change.
    pub fn version(&self) -> u64 {
        self.state.lock().unwrap().versions + of_kind(self.kind).first_version - 1
    }

    /// The version of the tag's record.
    pub fn version_of_tag(&self) -> u64 {
        self.state.lock().unwrap().version_of_tag
    }

    /// Forgets everything; from now on, this answer is damaged.
    pub fn begin(&self, damage: Option<(usize, Damage)>) {
        *self.state.lock().unwrap() = State { damage, ..State::default() };
    }
}

/// A connection with a client.
pub struct Session {
    stream: TcpStream,
    state: Arc<Mutex<State>>,
}

/// Without a word of the cause: the connection is over.
pub type Ended = std::io::Result<()>;

impl Session {
    fn read(&mut self, length: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).map(|()| bytes)
    }

    /// Answers a request, in whatever way this answer is to be damaged.
    fn answer(&mut self, bytes: &[u8]) -> Ended {
        let (damage, earlier, late) = {
            let mut state = self.state.lock().unwrap();
            let number = state.answers.len();
            state.answers.push(bytes.to_vec());
            let damage = state.damage.as_ref().filter(|(at, _)| *at == number).map(|(_, damage)| damage.clone());
            let back = if let Some(Damage::Earlier(back)) = damage { back } else { 0 };
            let earlier = state.answers[number.saturating_sub(back)].clone();
            (damage, earlier, std::mem::take(&mut state.late))
        };
        let bytes = [&late[..], bytes].concat();
        match damage {
            None => self.stream.write_all(&bytes),
            Some(damage) => self.answer_damaged(&bytes, &earlier, damage),
        }
    }

    fn answer_damaged(&mut self, bytes: &[u8], earlier: &[u8], damage: Damage) -> Ended {
        let length = bytes.len();
        let at = |at: usize| at % (length + 1);
        let sent = match damage {
            Damage::Flips(bits) => {
                let mut bytes = bytes.to_vec();
                bits.iter().map(|bit| bit % (length * 8)).for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
                bytes
            }
            Damage::Cut { at: end, closes } => {
                self.stream.write_all(&bytes[..at(end)])?;
                if closes {
                    return Err(std::io::ErrorKind::Other.into());
                }
                return Ok(());
            }
            Damage::Repeated { from, length: many } => {
                let (from, to) = (at(from), at(from).saturating_add(many).min(length));
                [&bytes[..to], &bytes[from..]].concat()
            }
            Damage::Removed { from, length: many } => {
                let (from, to) = (at(from), at(from).saturating_add(many).min(length));
                [&bytes[..from], &bytes[to..]].concat()
            }
            Damage::Inserted { at: place, bytes: other } => [&bytes[..at(place)], &other, &bytes[at(place)..]].concat(),
            Damage::Overwritten { at: place, bytes: other } => {
                let after = (at(place) + other.len()).min(length);
                [&bytes[..at(place)], &other, &bytes[after..]].concat()
            }
            Damage::Times(times) => bytes.repeat(times),
            Damage::Earlier(_) => earlier.to_vec(),
            Damage::Late => {
                self.state.lock().unwrap().late = bytes.to_vec();
                return Ok(());
            }
            Damage::Drip(length) => {
                let pause = length / u32::try_from(bytes.len().max(1)).unwrap();
                for byte in bytes {
                    self.stream.write_all(&[*byte])?;
                    thread::sleep(pause);
                }
                return Ok(());
            }
            Damage::Endless(repeated) => return self.flood(bytes, &repeated),
            Damage::Flood { start, repeated } => return self.flood(&start, &repeated),
        };
        self.stream.write_all(&sent)
    }

    /// Until the client is gone.
    fn flood(&mut self, start: &[u8], repeated: &[u8]) -> Ended {
        let much = repeated.repeat((1 << 16) / repeated.len().max(1) + 1);
        self.stream.write_all(start)?;
        loop {
            self.stream.write_all(&much)?;
        }
    }
}
