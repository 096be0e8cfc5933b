//! Reads a record.

use super::{Event, Grant};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Lines};
use std::path::Path;
use std::str::FromStr;

/// IDs that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The first.
    pub first: i64,
    /// The last.
    pub last: i64,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// The line that it asked.
    pub line: u32,
    /// The server that it asked.
    pub node: u32,
    /// The segment that it asked for, where the record names it.
    pub tag: Option<String>,
    /// The IDs that it returned, in their order, or its SQLSTATE and message.
    pub answer: Result<Vec<Run>, (String, String)>,
}

impl FromStr for Call {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).ok_or_else(|| format!("no call: {text}"))
    }
}

fn parse(text: &str) -> Option<Call> {
    let (head, error) = match text.split_once(" ! ") {
        Some((head, error)) => (head, Some(error)),
        None => (text, None),
    };
    let mut words = head.split(' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (begin, length, line, node) = (number()?, number()?, number()?, number()?);
    let mut words = words.peekable();
    let tag = words.next_if(|word| word.starts_with('@')).map(|word| word[1..].to_owned());
    let answer = match error {
        Some(error) => {
            let (code, message) = error.split_once(' ').unwrap_or((error, ""));
            Err((code.to_owned(), message.to_owned()))
        }
        None => {
            let mut runs = Vec::new();
            let mut last = 0i64;
            for word in words {
                let (first, count) = word.split_once('*').unwrap_or((word, "1"));
                let first = last.checked_add(first.parse().ok()?)?;
                last = first.checked_add(count.parse::<i64>().ok().filter(|count| *count > 0)? - 1)?;
                runs.push(Run { first, last });
            }
            Ok(runs)
        }
    };
    Some(Call {
        begin,
        end: begin.checked_add(length)?,
        line: line.try_into().ok()?,
        node: node.try_into().ok()?,
        tag,
        answer,
    })
}

/// All calls of a session.
pub struct Reader(Lines<BufReader<File>>);

impl Reader {
    /// The calls of this session; `None` where the record has no session of that number.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn open(directory: &Path, session: u32) -> Result<Option<Self>, String> {
        Ok(lines(directory, &format!("calls.{session}"))?.map(Self))
    }

    /// Those that took numbers of a segment; `None` where the session took none.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn of_numbers(directory: &Path, session: u32) -> Result<Option<Self>, String> {
        Ok(lines(directory, &format!("numbers.{session}"))?.map(Self))
    }
}

impl Iterator for Reader {
    type Item = Result<Call, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.0.next()?;
        Some(line.map_err(|error| error.to_string()).and_then(|line| line.parse()))
    }
}

fn lines(directory: &Path, name: &str) -> Result<Option<Lines<BufReader<File>>>, String> {
    match File::open(directory.join(name)) {
        Ok(file) => Ok(Some(BufReader::with_capacity(1 << 16, file).lines())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn all<T: FromStr<Err: ToString>>(directory: &Path, name: &str) -> Result<Vec<T>, String> {
    let Some(lines) = lines(directory, name)? else { return Ok(Vec::new()) };
    let parse = |line: Result<String, std::io::Error>| {
        line.map_err(|error| error.to_string())?.parse::<T>().map_err(|error| format!("{name}: {}", error.to_string()))
    };
    lines.map(parse).collect()
}

/// All events.
///
/// # Errors
/// Where they cannot be read.
pub fn events(directory: &Path) -> Result<Vec<Event>, String> {
    all(directory, "events")
}

/// All grants, in the registry's order.
///
/// # Errors
/// Where they cannot be read.
pub fn grants(directory: &Path) -> Result<Vec<Grant>, String> {
    all(directory, "grants")
}

/// What was found in tables.
///
/// # Errors
/// Where it cannot be read.
pub fn found(directory: &Path) -> Result<Vec<i64>, String> {
    all(directory, "found")
}
