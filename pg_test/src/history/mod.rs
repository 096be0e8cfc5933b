//! The record of a soak, which can be checked afterwards: every call, every fault, and what the registry granted.
//!
//! It is a directory of text files. All times are nanoseconds of one monotonic clock, since the soak began.
//!
//! | file | each line |
//! |---|---|
//! | `about` | a [key](About) and its value |
//! | `events` | an [`Event`] |
//! | `calls.N` | a call of session N, in the order in which they ended: `BEGIN LENGTH LINE NODE IDS`, or `BEGIN LENGTH LINE NODE ! SQLSTATE MESSAGE`, with `-` where the connection broke |
//! | `numbers.N` | the same of calls for numbers of a segment, which all servers share: `BEGIN LENGTH LINE NODE @TAG NUMBERS`, where there are several |
//! | `grants` | a version of a worker's record, in the registry's order: `WORKER OWNER FROM UNTIL DIRECTORY`, with `-` for no owner, and microseconds since 1970 |
//! | `found` | an ID that a table has, and no session heard of |
//! | `log.N` | of the log of node N; the checker does not read it |
//!
//! A *node* is a server with its data directory. A *line* is what the promise calls a server: the IDs of a node through all its
//! stops and crashes, and of the synchronous standby that goes on for it. A copy, and what is promoted beside its primary, begins a new one.
//!
//! IDs are written as they came, as runs of numbers that follow each other: `FIRST`, or `FIRST*COUNT`. In all runs of a call but
//! the first, FIRST is the distance from the last number of the run before.

pub mod check;
mod read;
mod write;

pub use read::{Call, Reader, Run, events, found, grants};
pub use write::{Calls, Place, Writer};

use std::fmt;
use std::str::FromStr;

/// What one must know to read IDs: the file `about`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// How many bits the worker has.
    pub worker_bits: u32,
    /// How many bits the sequence has, the lowest of an ID.
    pub sequence_bits: u32,
    /// The length of a tick in microseconds.
    pub tick: i64,
    /// When tick 0 begins, in microseconds since 1970.
    pub epoch: i64,
    /// How far a lease reaches, in nanoseconds; 0 where worker IDs are set by hand.
    pub window: u64,
}

impl About {
    /// The worker of an ID.
    pub fn worker(&self, id: i64) -> u64 {
        (id >> self.sequence_bits) as u64 & ((1 << self.worker_bits) - 1)
    }

    /// The tick of an ID.
    pub fn tick_of(&self, id: i64) -> i64 {
        id >> (self.sequence_bits + self.worker_bits)
    }

    /// The first tick that begins at this instant or later, which is in microseconds since 1970.
    pub fn first_tick_from(&self, instant: i64) -> i64 {
        -(self.epoch - instant).div_euclid(self.tick)
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker_bits, sequence_bits, tick, epoch, window } = self;
        write!(f, "worker {worker_bits}\nsequence {sequence_bits}\ntick {tick}\nepoch {epoch}\nwindow {window}\n")
    }
}

impl FromStr for About {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = |key: &str| -> Result<i64, String> {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
            line.and_then(|value| value.parse().ok()).ok_or_else(|| format!("about: no {key}"))
        };
        Ok(Self {
            worker_bits: value("worker")? as u32,
            sequence_bits: value("sequence")? as u32,
            tick: value("tick")?,
            epoch: value("epoch")?,
            window: value("window")? as u64,
        })
    }
}

/// What may keep a server from making IDs, or may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// It is stopped or killed, until it takes sessions again.
    Down,
    /// A session crashes, until the server takes sessions again.
    Crash,
    /// Calls of it are cancelled.
    Cancelled,
    /// All its processes stand still.
    Frozen,
    /// Its clock is set.
    Clock,
    /// It hears nothing of the registry, or all servers do.
    Away,
    /// Answers of the registry come late.
    Slow,
    /// The process that renews its lease stands still.
    LeaseProcess,
    /// It waits for a standby that is not there.
    Standby,
    /// Its worker ID is taken away by hand.
    NoWorker,
    /// It was started with a clock that is further ahead of what the registry knows than a server believes at once: for a minute.
    Ahead,
    /// The extension is not there in one of its databases.
    Extension,
    /// One of its databases comes from a dump, or is a copy of one that does, and its IDs may be ahead of the clock.
    Restored,
    /// No session makes calls.
    Paused,
    /// The registry is another one than before: no new lease begins until all that may have been lost are over.
    Unsafe,
    /// Tags are not there, or numbers of theirs are not to be had, as the registry is another one.
    NoTag,
}

impl Trouble {
    const ALL: [Self; 16] = [
        Self::Down,
        Self::Crash,
        Self::Cancelled,
        Self::Frozen,
        Self::Clock,
        Self::Away,
        Self::Slow,
        Self::LeaseProcess,
        Self::Standby,
        Self::NoWorker,
        Self::Ahead,
        Self::Extension,
        Self::Restored,
        Self::Paused,
        Self::Unsafe,
        Self::NoTag,
    ];
}

/// A line of the file `events`. `*` stands for all lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `node NODE DIRECTORY`: where the data of a server is.
    Node(u32, String),
    /// `begins LINE AT`: from then on, a line makes IDs.
    Begins(u32, u64),
    /// `ends LINE AT`: from then on, nobody asks it to.
    Ends(u32, u64),
    /// `fault KIND BEGIN END`: what the soak did.
    Fault(String, u64, u64),
    /// `trouble KIND LINE BEGIN END`: what that meant for a line.
    Trouble(Trouble, Option<u32>, u64, u64),
    /// `worker NODE WORKER`: a server was given this worker ID by hand, and may have made IDs with it.
    Worker(u32, u64),
    /// `tag TAG FIRST LAST`: a segment has these numbers. Its calls fail only where something explains that.
    Tag(String, i64, i64),
    /// `ended TAG MISSING`: a segment is used up, and as many of its numbers at most were lost.
    Ended(String, u64),
    /// `lost TAG FROM UNTIL BEGIN END`: a registry that failed over has forgotten that it had granted these numbers, up to the one before
    /// UNTIL. By the documentation they may come once more, until somebody has raised the tag above them.
    Lost {
        /// The segment.
        tag: String,
        /// The first number.
        from: i64,
        /// The one after the last.
        until: i64,
        /// When it failed over.
        begin: u64,
        /// When the tag was raised, and all servers had looked.
        end: u64,
    },
    /// `places NODE COUNT`: from its start to the next one, a server uses so many tags.
    Places(u32, usize),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node, directory) => write!(f, "node {node} {directory}"),
            Self::Begins(line, at) => write!(f, "begins {line} {at}"),
            Self::Ends(line, at) => write!(f, "ends {line} {at}"),
            Self::Fault(kind, begin, end) => write!(f, "fault {kind} {begin} {end}"),
            Self::Trouble(kind, Some(line), begin, end) => write!(f, "trouble {kind:?} {line} {begin} {end}"),
            Self::Trouble(kind, None, begin, end) => write!(f, "trouble {kind:?} * {begin} {end}"),
            Self::Worker(node, worker) => write!(f, "worker {node} {worker}"),
            Self::Tag(tag, first, last) => write!(f, "tag {tag} {first} {last}"),
            Self::Ended(tag, missing) => write!(f, "ended {tag} {missing}"),
            Self::Lost { tag, from, until, begin, end } => write!(f, "lost {tag} {from} {until} {begin} {end}"),
            Self::Places(node, count) => write!(f, "places {node} {count}"),
        }
    }
}

impl FromStr for Event {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let number = |word: &str| word.parse::<u64>().map_err(|_| format!("no number: {text}"));
        let signed = |word: &str| word.parse::<i64>().map_err(|_| format!("no number: {text}"));
        let small = |word: &str| word.parse::<u32>().map_err(|_| format!("no number: {text}"));
        Ok(match words[..] {
            ["node", node, directory] => Self::Node(small(node)?, directory.to_owned()),
            ["begins", line, at] => Self::Begins(small(line)?, number(at)?),
            ["ends", line, at] => Self::Ends(small(line)?, number(at)?),
            ["fault", kind, begin, end] => Self::Fault(kind.to_owned(), number(begin)?, number(end)?),
            ["trouble", kind, line, begin, end] => {
                let named = Trouble::ALL.into_iter().find(|trouble| format!("{trouble:?}") == kind);
                let trouble = named.ok_or_else(|| format!("no trouble: {text}"))?;
                let line = if line == "*" { None } else { Some(small(line)?) };
                Self::Trouble(trouble, line, number(begin)?, number(end)?)
            }
            ["worker", node, worker] => Self::Worker(small(node)?, number(worker)?),
            ["tag", tag, first, last] => Self::Tag(tag.to_owned(), signed(first)?, signed(last)?),
            ["ended", tag, missing] => Self::Ended(tag.to_owned(), number(missing)?),
            ["lost", tag, from, until, begin, end] => Self::Lost {
                tag: tag.to_owned(),
                from: signed(from)?,
                until: signed(until)?,
                begin: number(begin)?,
                end: number(end)?,
            },
            ["places", node, count] => Self::Places(small(node)?, number(count)? as usize),
            _ => return Err(format!("no event: {text}")),
        })
    }
}

/// A version of a worker's record in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The worker.
    pub worker: u64,
    /// Who has it; `None` where it was given back.
    pub owner: Option<String>,
    /// From when on it is granted, in microseconds since 1970.
    pub from: i64,
    /// Where the grant ends, which is the first instant that does not belong to it.
    pub until: i64,
    /// The data directory of the server.
    pub directory: String,
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { worker, owner, from, until, directory } = self;
        write!(f, "{worker} {} {from} {until} {directory}", owner.as_deref().unwrap_or("-"))
    }
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("no grant: {text}");
        let [worker, owner, from, until, directory] = text.split(' ').collect::<Vec<_>>()[..] else {
            return Err(wrong());
        };
        Ok(Self {
            worker: worker.parse().map_err(|_| wrong())?,
            owner: (owner != "-").then(|| owner.to_owned()),
            from: from.parse().map_err(|_| wrong())?,
            until: until.parse().map_err(|_| wrong())?,
            directory: directory.to_owned(),
        })
    }
}
