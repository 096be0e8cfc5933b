//! Records as lines of text, for a file that shows people what a registry holds: the number of a worker, a space, and its record as
//! JSON.
//!
//! A reader of such a file must not be able to act as the owner of a lease. So no line has a token, nor the process, by which a
//! server knows its own records.

use crate::json;
use snowflake_core::lease::{Holder, Record, Stored, Token, WorkerNumber};

/// Stands for the token of an owner.
const SOMEBODY: Token = Token(1);

/// The lines of these records, without their secrets. Texts of holders have a space in place of each control character.
pub fn write(records: &[(WorkerNumber, Stored)]) -> String {
    let line =
        |(worker, stored): &(WorkerNumber, Stored)| format!("{} {}\n", worker.0, json::write(&shown(&stored.record)));
    records.iter().map(line).collect()
}

fn shown(record: &Record) -> Record {
    let clean = |text: &str| text.replace(char::is_control, " ");
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

#[cfg(test)]
mod tests {
    use super::*;
    use snowflake_core::UnixMicros;
    use snowflake_core::lease::Version;

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
    fn other_lines_are_refused() {
        for text in ["x", "7", "7 ", "7 {}", "x {}", "\n"] {
            read(text).unwrap_err();
        }
    }
}
