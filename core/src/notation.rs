//! Layouts as text: the name of a built-in one, or the notation `timestamp=41 worker=10 sequence=12 tick=1ms
//! epoch=2024-01-01T00:00:00Z`. It has the fields from the highest to the lowest with their widths in bits, then the
//! length of a tick and the epoch, which may be left out ([`DEFAULT_TICK`], [`DEFAULT_EPOCH`]).
//!
//! ```
//! use snowflake_core::{Layout, Micros};
//!
//! let sonyflake: Layout = "sonyflake".parse()?;
//! assert_eq!(sonyflake.to_string(), "timestamp=39 sequence=8 worker=16 tick=10ms epoch=2014-09-01T00:00:00Z");
//!
//! let own: Layout = "timestamp=41 worker=9 sequence=13".parse()?;
//! assert_eq!(own.tick_length(), Micros::from_millis(1));
//! assert_eq!(own.to_string().parse(), Ok(own));
//!
//! let error = "timestamp=41 worker=x".parse::<Layout>().unwrap_err();
//! assert_eq!(error.to_string(), "\"x\" is not a number of bits, at character 21");
//! # Ok::<(), snowflake_core::notation::NotationError>(())
//! ```

use crate::layout::{Field, Layout, LayoutError};
use crate::quote::shortened;
use crate::time::{Micros, UnixMicros};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The length of a tick where the notation does not say: 1 ms.
pub const DEFAULT_TICK: Micros = Micros::from_millis(1);

/// The epoch where the notation does not say: 2024-01-01T00:00:00Z.
pub const DEFAULT_EPOCH: UnixMicros = UnixMicros::from_millis(1_704_067_200_000);

/// The name of the layout used where none is set.
pub const DEFAULT_NAME: &str = "default";

/// A layout that has a name: the default one, and those that others use or have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltIn {
    /// The name under which it is known here.
    pub name: &'static str,
    /// The layout in the notation of this module.
    pub notation: &'static str,
    /// Where it is described, and which of its fields are the ones here.
    pub source: &'static str,
}

const fn built_in(name: &'static str, notation: &'static str, source: &'static str) -> BuiltIn {
    BuiltIn { name, notation, source }
}

/// All built-in layouts. Where the IDs of others have 64 bits, the timestamp has one bit fewer here, as IDs are signed
/// numbers; they use that bit only after the end of the layout here.
pub const BUILT_IN: &[BuiltIn] = &[
    built_in(DEFAULT_NAME, "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z", "pg_snowflake"),
    built_in(
        "twitter",
        "timestamp=41 datacenter=5 worker=5 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z",
        "twitter-archive/snowflake, tag snowflake-2010, IdWorker.scala",
    ),
    built_in(
        "discord",
        "timestamp=41 worker=5 datacenter=5 sequence=12 tick=1ms epoch=2015-01-01T00:00:00Z",
        "discord/discord-api-docs, Reference: Snowflakes; the process is the datacenter, the increment the sequence",
    ),
    built_in(
        "instagram",
        "timestamp=40 worker=13 sequence=10 tick=1ms epoch=2011-08-24T21:07:01.721Z",
        "Instagram Engineering, Sharding & IDs at Instagram, 2012; the shard is the worker",
    ),
    built_in(
        "mastodon",
        "timestamp=47 sequence=16 tick=1ms epoch=1970-01-01T00:00:00Z",
        "mastodon/mastodon, lib/mastodon/snowflake.rb; the tail, partly a hash, is the sequence",
    ),
    built_in(
        "sonyflake",
        "timestamp=39 sequence=8 worker=16 tick=10ms epoch=2014-09-01T00:00:00Z",
        "sony/sonyflake, v1; the machine is the worker",
    ),
    built_in(
        "sonyflake2",
        "timestamp=39 sequence=8 worker=16 tick=10ms epoch=2025-01-01T00:00:00Z",
        "sony/sonyflake, v2; the machine is the worker",
    ),
    built_in(
        "leaf",
        "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z",
        "Meituan-Dianping/Leaf, SnowflakeIDGenImpl",
    ),
    built_in(
        "bwmarrin",
        "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2010-11-04T01:42:54.657Z",
        "bwmarrin/snowflake, with its default widths and epoch; the node is the worker, the step the sequence",
    ),
    built_in(
        "baidu",
        "timestamp=28 worker=22 sequence=13 tick=1s epoch=2016-05-19T16:00:00Z",
        "baidu/uid-generator, DefaultUidGenerator: 2016-05-20 in UTC+8",
    ),
    built_in(
        "cosid",
        "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2019-12-24T16:00:00Z",
        "Ahoo-Wang/CosId, MillisecondSnowflakeId; the machine is the worker",
    ),
    built_in(
        "cosid-js",
        "timestamp=41 worker=3 sequence=9 tick=1ms epoch=2019-12-24T16:00:00Z",
        "Ahoo-Wang/CosId, SafeJavaScriptSnowflakeId; the machine is the worker",
    ),
    built_in(
        "yitter",
        "timestamp=47 worker=6 sequence=6 tick=1ms epoch=2020-02-19T18:20:02Z",
        "yitter/IdGenerator, with its default widths and base time",
    ),
    built_in(
        "tsid",
        "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2020-01-01T00:00:00Z",
        "f4b6a3/tsid-creator, TSID-1024; the node is the worker, the counter the sequence",
    ),
    built_in(
        "cockroach",
        "timestamp=48 worker=15 tick=10us epoch=2015-01-01T00:00:00Z",
        "cockroachdb/cockroach, unique_rowid(); the node is the worker",
    ),
    built_in(
        "pgedge",
        "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2023-01-01T00:00:00Z",
        "pgEdge/snowflake; the node is the worker, the count the sequence",
    ),
];

/// The layout used where none is set.
pub fn default_layout() -> Layout {
    DEFAULT_NAME.parse().expect("a test reads all built-in layouts")
}

/// The greatest length of a text that is read as a layout, in bytes. It has room for spare blanks: without them, none is half as
/// long.
pub const LONGEST: usize = 256;

/// The units of a tick's length, the longest first, as the longest that fits is written.
const UNITS: [(&str, Micros); 3] = [("s", Micros::from_secs(1)), ("ms", Micros::from_millis(1)), ("us", Micros(1))];

/// Why a text is not a layout, and at which character.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct NotationError {
    /// The number of the character, counted from 1. 1 where the problem is not at one place.
    pub at: usize,
    /// The problem there.
    pub problem: Problem,
}

/// A problem in the text of a layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// More than [`LONGEST`] bytes.
    #[error("a layout has at most {max} bytes", max = LONGEST)]
    TooLong,
    /// Neither a built-in name nor `key=value`.
    #[error("no built-in layout is named \"{}\"", shortened(.0))]
    UnknownName(String),
    /// `key=value` with a key that does not exist.
    #[error("\"{}\" is not a field, nor tick or epoch", shortened(.0))]
    UnknownKey(String),
    /// A word that is not `key=value` among others that are.
    #[error("\"{}\" is not of the form key=value", shortened(.0))]
    NotAPair(String),
    /// A width that is not a number of bits.
    #[error("\"{}\" is not a number of bits", shortened(.0))]
    Width(String),
    /// A tick that is not a whole number of s, ms or us.
    #[error("\"{}\" is not a tick such as 1ms, 10ms or 1s", shortened(.0))]
    Tick(String),
    /// An epoch that is not of the form `2024-01-01T00:00:00Z`.
    #[error("\"{}\" is not an instant such as 2024-01-01T00:00:00Z", shortened(.0))]
    Epoch(String),
    /// A tick or an epoch given twice.
    #[error("{0} is given twice")]
    Repeated(&'static str),
    /// A field after the tick or the epoch.
    #[error("field {0} stands after tick or epoch")]
    FieldAfterEnd(Field),
    /// The text could be read, but there can be no such layout.
    #[error(transparent)]
    Layout(LayoutError),
}

impl fmt::Display for NotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            // Not of one place.
            Problem::Layout(_) | Problem::TooLong => self.problem.fmt(f),
            problem => write!(f, "{problem}, at character {}", self.at),
        }
    }
}

impl FromStr for Layout {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        if text.len() > LONGEST {
            return Err(NotationError { at: 1, problem: Problem::TooLong });
        }
        if let Some(built_in) = BUILT_IN.iter().find(|built_in| built_in.name == text) {
            return parse(built_in.notation);
        }
        if !text.contains('=') {
            return Err(NotationError { at: 1, problem: Problem::UnknownName(text.to_owned()) });
        }
        parse(text)
    }
}

fn parse(text: &str) -> Result<Layout, NotationError> {
    let mut fields = Vec::new();
    let mut tick = None;
    let mut epoch = None;
    for word in text.split_ascii_whitespace() {
        // `word` is a slice of `text`, so the distance of their starts is its place in bytes.
        let offset = word.as_ptr().addr() - text.as_ptr().addr();
        let fail = |skip: usize, problem| {
            Err(NotationError { at: text[..offset].chars().count() + word[..skip].chars().count() + 1, problem })
        };
        let Some((key, value)) = word.split_once('=') else {
            return fail(0, Problem::NotAPair(word.to_owned()));
        };
        let at_value = key.len() + 1;
        if key == "tick" {
            match parse_tick(value) {
                _ if tick.is_some() => return fail(0, Problem::Repeated("tick")),
                None => return fail(at_value, Problem::Tick(value.to_owned())),
                parsed => tick = parsed,
            }
        } else if key == "epoch" {
            match UnixMicros::parse(value) {
                _ if epoch.is_some() => return fail(0, Problem::Repeated("epoch")),
                None => return fail(at_value, Problem::Epoch(value.to_owned())),
                parsed => epoch = parsed,
            }
        } else if let Some(field) = Field::ALL.into_iter().find(|field| field.name() == key) {
            if tick.is_some() || epoch.is_some() {
                return fail(0, Problem::FieldAfterEnd(field));
            }
            match value.parse() {
                Ok(width) if is_digits(value) => fields.push((field, width)),
                _ => return fail(at_value, Problem::Width(value.to_owned())),
            }
        } else {
            return fail(0, Problem::UnknownKey(key.to_owned()));
        }
    }
    Layout::new(&fields, tick.unwrap_or(DEFAULT_TICK), epoch.unwrap_or(DEFAULT_EPOCH))
        .map_err(|error| NotationError { at: 1, problem: Problem::Layout(error) })
}

fn parse_tick(text: &str) -> Option<Micros> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(digits);
    if !is_digits(count) {
        return None;
    }
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
    count.parse::<i64>().ok()?.checked_mul(unit.0).map(Micros)
}

/// Whether a text is the usual way to write a number. `parse` reads `+12` and `012` as well, as 12.
fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

/// The notation with nothing left out. Parsing it gives the same layout.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (field, width) in self.fields() {
            write!(f, "{field}={width} ")?;
        }
        let tick = self.tick_length();
        for (name, unit) in UNITS {
            if tick.0 % unit.0 == 0 {
                write!(f, "tick={}{name} ", tick.0 / unit.0)?;
                break;
            }
        }
        write!(f, "epoch={}", self.epoch())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_layouts_read_and_write_themselves() {
        for built_in in BUILT_IN {
            let layout: Layout = built_in.name.parse().unwrap();
            assert_eq!(layout.to_string(), built_in.notation, "{}", built_in.name);
        }
    }

    #[test]
    fn tick_and_epoch_may_be_left_out() {
        let layout: Layout = "timestamp=41 worker=9 sequence=13".parse().unwrap();
        assert_eq!(layout.to_string(), "timestamp=41 worker=9 sequence=13 tick=1ms epoch=2024-01-01T00:00:00Z");
    }

    #[test]
    fn errors_say_what_and_where() {
        for (text, message) in [
            ("twiter", "no built-in layout is named \"twiter\", at character 1"),
            ("", "no built-in layout is named \"\", at character 1"),
            ("timestamp=41 worker=x sequence=12", "\"x\" is not a number of bits, at character 21"),
            ("timestamp=41 worker=+9 sequence=12", "\"+9\" is not a number of bits, at character 21"),
            ("timestamp=41 worker=09 sequence=12", "\"09\" is not a number of bits, at character 21"),
            ("timestamp=41 sequence=12 tick=01ms", "\"01ms\" is not a tick such as 1ms, 10ms or 1s, at character 31"),
            ("timestamp=41 worker sequence=12", "\"worker\" is not of the form key=value, at character 14"),
            ("timestamp=41 shard=9 sequence=12", "\"shard\" is not a field, nor tick or epoch, at character 14"),
            ("timestamp=41 sequence=12 tick=1h", "\"1h\" is not a tick such as 1ms, 10ms or 1s, at character 31"),
            ("timestamp=41 sequence=12 tick=1ms tick=1ms", "tick is given twice, at character 35"),
            (
                "timestamp=41 sequence=12 epoch=2024-01-01T00:00:00Z epoch=2025-01-01T00:00:00Z",
                "epoch is given twice, at character 53",
            ),
            (
                "timestamp=41 sequence=12 epoch=2024-01-01",
                "\"2024-01-01\" is not an instant such as 2024-01-01T00:00:00Z, at character 32",
            ),
            ("timestamp=41 tick=1ms sequence=12", "field sequence stands after tick or epoch, at character 23"),
            ("timestamp=41 worker=11 sequence=12", "the fields have 64 bits together, more than 63"),
            ("worker=10 sequence=12", "field timestamp is missing"),
            ("timestamp=41 worker=10 sequence=0", "field sequence must have at least 1 bit"),
            ("timestamp=41 worker=0 sequence=12", "field worker must have at least 1 bit"),
            ("worker=10 timestamp=41 sequence=12", "the timestamp must be the first field, so that IDs sort by time"),
            ("timestamp=20 worker=32 sequence=1", "field worker has 32 bits, more than 31"),
            ("timestamp=40 worker=1 worker=2 sequence=1", "field worker is given twice"),
            ("timestamp=62 sequence=1", "the timestamp would run on beyond the year 9999: give it fewer bits"),
            ("timestamp=41 sequence=12 tick=0ms", "a tick must last between 1us and 60s"),
            ("timestamp=41 sequence=12 tick=61s", "a tick must last between 1us and 60s"),
            ("timestamp=4294967295 sequence=4294967295", "field sequence has 4294967295 bits, more than 31"),
            ("ü=1", "\"ü\" is not a field, nor tick or epoch, at character 1"),
            ("ü worker=1", "\"ü\" is not of the form key=value, at character 1"),
        ] {
            assert_eq!(text.parse::<Layout>().unwrap_err().to_string(), message, "{text}");
        }
    }
}
