//! Records as lines of text, for a file that shows people what a registry holds: the number of a worker, a space, and its record as
//! JSON. For segments: a tag, a tab, and its record; and under it, a line for each server that holds numbers of it: the number of its
//! worker, a tab, the name of its host, a tab, and what it holds.
//!
//! A reader of such a file must not be able to act as the owner of a lease. So no line has a token, nor the process, by which a
//! server knows its own records.

use crate::json;
use snowflake_core::lease::{Holder, Record, Stored, Token, WorkerNumber};
use snowflake_core::segment::{self, Holding, Tag, run_of};
use std::collections::BTreeMap;

/// Stands for the token of an owner.
const SOMEBODY: Token = Token(1);

/// The lines of these records, without their secrets. Texts of holders have a space in place of each control character.
pub fn write(records: &[(WorkerNumber, Stored)]) -> String {
    let line =
        |(worker, stored): &(WorkerNumber, Stored)| format!("{} {}\n", worker.0, json::write(&shown(&stored.record)));
    records.iter().map(line).collect()
}

fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn shown(record: &Record) -> Record {
    let holder = &record.holder;
    Record {
        owner: record.owner.map(|_| SOMEBODY),
        holder: Holder {
            host: clean(&holder.host),
            data_directory: clean(&holder.data_directory),
            cluster_name: clean(&holder.cluster_name),
            process: String::new(),
            ..*holder
        },
        ..*record
    }
}

/// The records of lines. An owner has a token that tells nothing.
///
/// # Errors
/// A sentence, where a line cannot be read.
pub fn read(text: &str) -> Result<Vec<(WorkerNumber, Record)>, String> {
    let line = |line: &str| {
        let (worker, record) = line.split_once(' ')?;
        Some((WorkerNumber(worker.parse().ok()?), json::read(record).ok()?))
    };
    text.lines().map(|text| line(text).ok_or_else(|| "A line of the listing cannot be read.".to_owned())).collect()
}

/// A segment, as the registry has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its tag.
    pub tag: Tag,
    /// Its record.
    pub record: segment::TagRecord,
    /// Who holds numbers of it, as of their last grants.
    pub holders: Vec<SegmentHolder>,
}

/// A server that holds numbers of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentHolder {
    /// Its worker.
    pub worker: WorkerNumber,
    /// Its host's name.
    pub host: String,
    /// What it holds.
    pub holding: Holding,
}

/// The lines of these segments. What a server held that is gone is left out: its worker is given back, or has another owner.
pub fn write_segments(
    segments: &[(Tag, segment::StoredTag)],
    holdings: &[(Tag, WorkerNumber, Holding)],
    workers: &[(WorkerNumber, Stored)],
) -> String {
    let workers: BTreeMap<_, _> = workers.iter().map(|(worker, stored)| (*worker, &stored.record)).collect();
    let mut held: BTreeMap<&Tag, String> = BTreeMap::new();
    for (tag, worker, holding) in holdings {
        let record = workers.get(worker).filter(|record| record.owner.map(run_of) == Some(holding.run));
        if let Some(record) = record {
            let line = format!("{}\t{}\t{}\n", worker.0, clean(&record.holder.host), json::write(holding));
            held.entry(tag).or_default().push_str(&line);
        }
    }
    let of_tag = |(tag, stored): &(Tag, segment::StoredTag)| {
        format!("{tag}\t{}\n{}", json::write(&stored.record), held.get(tag).map_or("", String::as_str))
    };
    segments.iter().map(of_tag).collect()
}

/// The segments of lines.
///
/// # Errors
/// A sentence, where a line cannot be read.
pub fn read_segments(text: &str) -> Result<Vec<Segment>, String> {
    let mut segments: Vec<Segment> = Vec::new();
    for line in text.lines() {
        let read = match line.split('\t').collect::<Vec<_>>()[..] {
            [tag, record] => Tag::new(tag).ok().zip(json::read(record).ok()).map(|(tag, record)| {
                segments.push(Segment { tag, record, holders: Vec::new() });
            }),
            [worker, host, holding] => worker.parse().ok().zip(json::read(holding).ok()).zip(segments.last_mut()).map(
                |((worker, holding), segment)| {
                    let worker = WorkerNumber(worker);
                    segment.holders.push(SegmentHolder { worker, host: host.to_owned(), holding });
                },
            ),
            _ => None,
        };
        read.ok_or_else(|| "A line of the listing cannot be read.".to_owned())?;
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowflake_core::lease::Version;
    use snowflake_core::segment::{Range, Sizes, State, Use};
    use snowflake_core::{Micros, UnixMicros};

    fn record(owner: Option<Token>) -> Record {
        let holder = Holder {
            host: "db\n1 \u{85} \"x\" 雪".to_owned(),
            data_directory: "/d\u{1f}\u{1e}".to_owned(),
            port: 5432,
            cluster_name: "c".to_owned(),
            system_identifier: u64::MAX,
            process: "boot".to_owned(),
        };
        Record { owner, granted_from: UnixMicros(1), granted_until: UnixMicros::MAX_WRITTEN, holder }
    }

    #[test]
    fn each_record_is_a_line_that_reads_back_without_its_secrets() {
        let stored = |owner| Stored { version: Version(9), record: record(owner) };
        let token = Token(u128::MAX / 3);
        let text = write(&[(WorkerNumber(7), stored(Some(token))), (WorkerNumber(u64::MAX), stored(None))]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains("5555") && !text.contains("boot"), "{text}");
        let found = read(&text).unwrap();
        let clean = Holder {
            host: "db 1   \"x\" 雪".to_owned(),
            data_directory: "/d  ".to_owned(),
            process: String::new(),
            ..record(None).holder
        };
        let expected = Record { holder: clean, ..record(None) };
        assert_eq!(found[1], (WorkerNumber(u64::MAX), expected.clone()));
        assert_eq!(found[0], (WorkerNumber(7), Record { owner: Some(SOMEBODY), ..expected }));
        assert_eq!(read(""), Ok(Vec::new()));
    }

    #[test]
    fn segments_are_listed_with_the_servers_that_live() {
        let bounds = Sizes { smallest: 1, largest: 2 };
        let of_tag = segment::TagRecord { next: 9, floor: 1, first: 1, last: 99, state: State::Live, bounds };
        let segment =
            |name: &str| (Tag::new(name).unwrap(), segment::StoredTag { version: Version(1), record: of_tag.clone() });
        let stored = |owner| Stored { version: Version(9), record: record(owner) };
        let (here, gone) = (Token(7 << 64 | 1), Token(3));
        let holding = |name: &str, worker, token| {
            let current = Range { first: 1, end: 5 };
            let used = Use { count: 1, length: Micros(2) };
            let holding =
                Holding { run: run_of(token), current, after: Range::default(), granted_at: UnixMicros(1), used };
            (Tag::new(name).unwrap(), WorkerNumber(worker), holding)
        };
        // 1 lives, 2 was taken over, 3 was given back, and of 4 there is no record.
        let workers = [
            (WorkerNumber(1), stored(Some(here))),
            (WorkerNumber(2), stored(Some(Token(99)))),
            (WorkerNumber(3), stored(None)),
        ];
        let of_one = holding("a b", 1, here);
        let holdings = [
            of_one.clone(),
            holding("a b", 2, gone),
            holding("a b", 3, gone),
            holding("a b", 4, gone),
            holding("c", 1, gone),
        ];
        let text = write_segments(&[segment("a b"), segment("c")], &holdings, &workers);
        let holder = SegmentHolder { worker: WorkerNumber(1), host: "db 1   \"x\" 雪".to_owned(), holding: of_one.2 };
        let listed = |name: &str, holders| Segment { tag: Tag::new(name).unwrap(), record: of_tag.clone(), holders };
        assert_eq!(read_segments(&text), Ok(vec![listed("a b", vec![holder]), listed("c", vec![])]));
        assert_eq!(read_segments(""), Ok(Vec::new()));
        for text in ["x", "a\t", "1\th\t{}", "\t{}", &text.replace("1\t", "x\t"), &text.replace("run", "ran")] {
            read_segments(text).unwrap_err();
        }
    }

    #[test]
    fn other_lines_are_refused() {
        for text in ["x", "7", "7 ", "7 {}", "x {}", "\n"] {
            read(text).unwrap_err();
        }
    }
}
