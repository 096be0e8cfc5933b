//! Writes a record.

use super::{About, Event, Grant, Trouble};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Where IDs are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which of the servers that stand together.
    pub index: usize,
    /// The server.
    pub node: u32,
    /// The line that its IDs belong to.
    pub line: u32,
}

/// Writes a record that many threads add to.
pub struct Writer {
    directory: PathBuf,
    began: Instant,
    events: Mutex<File>,
    sessions: AtomicU32,
    nodes: AtomicU32,
    lines: AtomicU32,
    ids: AtomicU64,
    highest: AtomicI64,
    highest_number: AtomicI64,
}

impl Writer {
    /// Begins a record in this directory, which is made where it is missing, and has none yet.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn new(directory: &Path, about: &About) -> Self {
        std::fs::create_dir_all(directory).unwrap();
        let new = |name: &str| {
            let path = directory.join(name);
            File::create_new(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        new("about").write_all(about.to_string().as_bytes()).unwrap();
        Self {
            directory: directory.to_owned(),
            began: Instant::now(),
            events: Mutex::new(new("events")),
            sessions: AtomicU32::new(0),
            nodes: AtomicU32::new(0),
            lines: AtomicU32::new(0),
            ids: AtomicU64::new(0),
            highest: AtomicI64::new(i64::MIN),
            highest_number: AtomicI64::new(0),
        }
    }

    /// The time.
    pub fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// How many IDs were given.
    pub fn ids(&self) -> u64 {
        self.ids.load(Relaxed)
    }

    /// The highest ID that was given.
    pub fn highest(&self) -> i64 {
        self.highest.load(Relaxed)
    }

    /// The highest number of a segment that was given, of all tags.
    pub fn highest_number(&self) -> i64 {
        self.highest_number.load(Relaxed)
    }

    /// Keeps what a server has logged, for readers who ask why.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn log(&self, node: u32, log: &str) {
        std::fs::write(self.directory.join(format!("log.{node}")), log).unwrap();
    }

    /// Adds an event. It is in the file at once: a soak may be killed.
    pub fn event(&self, event: &Event) {
        // Another thread may have panicked, and the record goes on.
        let mut events = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        events.write_all(format!("{event}\n").as_bytes()).unwrap();
    }

    /// Adds a trouble that began then, and ends now.
    pub fn trouble(&self, trouble: Trouble, line: Option<u32>, begin: u64) {
        self.event(&Event::Trouble(trouble, line, begin, self.now()));
    }

    /// A new server.
    pub fn node(&self, directory: &Path) -> u32 {
        let node = self.nodes.fetch_add(1, Relaxed);
        self.event(&Event::Node(node, directory.to_str().unwrap().to_owned()));
        node
    }

    /// A new line, which makes IDs from now on.
    pub fn line(&self) -> u32 {
        let line = self.lines.fetch_add(1, Relaxed);
        self.event(&Event::Begins(line, self.now()));
        line
    }

    /// A new session.
    pub fn session(&self) -> Calls<'_> {
        let session = self.sessions.fetch_add(1, Relaxed);
        self.calls("calls", session)
    }

    fn calls(&self, kind: &'static str, session: u32) -> Calls<'_> {
        let file = File::create_new(self.directory.join(format!("{kind}.{session}"))).unwrap();
        let are_ids = kind == "calls";
        Calls { writer: self, session, are_ids, tag: None, file: BufWriter::new(file), text: String::new() }
    }

    /// What the registry granted, in its order.
    pub fn grants(&self, grants: &[Grant]) {
        let lines: String = grants.iter().map(|grant| format!("{grant}\n")).collect();
        std::fs::write(self.directory.join("grants"), lines).unwrap();
    }

    /// IDs that tables have, and no session heard of.
    pub fn found(&self, ids: &[i64]) {
        let mut file = File::options().create(true).append(true).open(self.directory.join("found")).unwrap();
        let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
        file.write_all(lines.as_bytes()).unwrap();
    }
}

/// Writes the calls of a session.
pub struct Calls<'a> {
    writer: &'a Writer,
    session: u32,
    /// Otherwise they are numbers of a segment.
    are_ids: bool,
    /// Of which segment.
    tag: Option<String>,
    file: BufWriter<File>,
    text: String,
}

impl<'a> Calls<'a> {
    /// For the calls of the same session that take numbers of a segment.
    pub fn numbers(&self) -> Calls<'a> {
        self.writer.calls("numbers", self.session)
    }

    /// The calls that follow are for numbers of this segment.
    pub fn of_tag(&mut self, tag: &str) -> &mut Self {
        if self.tag.as_deref() != Some(tag) {
            self.tag = Some(tag.to_owned());
        }
        self
    }

    /// Adds a call that began then, ends now, and returned these.
    pub fn given(&mut self, place: Place, begin: u64, ids: &[i64]) {
        self.begin(place, begin);
        let mut rest = ids;
        let mut last = 0;
        while let Some(&first) = rest.first() {
            let count = 1 + rest.windows(2).take_while(|pair| pair[0].checked_add(1) == Some(pair[1])).count();
            write!(self.text, " {}", first - last).unwrap();
            if count > 1 {
                write!(self.text, "*{count}").unwrap();
            }
            last = rest[count - 1];
            rest = &rest[count..];
        }
        self.end();
        let highest = ids.iter().copied().max().unwrap_or(i64::MIN);
        if !self.are_ids {
            self.writer.highest_number.fetch_max(highest, Relaxed);
            return;
        }
        self.writer.ids.fetch_add(ids.len() as u64, Relaxed);
        self.writer.highest.fetch_max(highest, Relaxed);
    }

    /// Adds a call that began then, and ends now with an error.
    pub fn failed(&mut self, place: Place, begin: u64, error: &postgres::Error) {
        let code = error.code().map_or("-", |code| code.code());
        let message = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
        self.refused(place, begin, code, &message);
    }

    fn refused(&mut self, place: Place, begin: u64, code: &str, message: &str) {
        self.begin(place, begin);
        write!(self.text, " ! {code} {}", message.replace('\n', " ")).unwrap();
        self.end();
    }

    fn begin(&mut self, Place { node, line, .. }: Place, begin: u64) {
        let length = self.writer.now() - begin;
        self.text.clear();
        write!(self.text, "{begin} {length} {line} {node}").unwrap();
        if let Some(tag) = &self.tag {
            write!(self.text, " @{tag}").unwrap();
        }
    }

    fn end(&mut self) {
        self.text.push('\n');
        self.file.write_all(self.text.as_bytes()).unwrap();
    }
}
