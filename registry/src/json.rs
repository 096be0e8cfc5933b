//! Records as JSON, which people can read:
//!
//! ```json
//! {"format":1,"owner":"00c0…","granted_from":"2026-01-01T00:00:00Z","granted_until":"2026-01-01T00:01:00Z","host":"db1",
//!  "data_directory":"/var/lib/postgresql/15/main","port":5432,"cluster_name":"","system_identifier":"7412345678901234567"}
//! ```

use crate::text::{FORMAT, read_token, write_token};
use serde::{Deserialize, Serialize};
use snowflake_core::UnixMicros;
use snowflake_core::lease::{Holder, Record};

/// Only the number, of whatever format.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: u32,
    owner: Option<String>,
    granted_from: String,
    granted_until: String,
    host: String,
    data_directory: String,
    port: u16,
    cluster_name: String,
    /// As text: JSON's numbers are often read as floating point.
    system_identifier: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNamespace {
    format: u32,
    layout: String,
}

pub(crate) fn write(record: &Record) -> String {
    let Holder { host, data_directory, port, cluster_name, system_identifier } = record.holder.clone();
    json(&Written {
        format: FORMAT,
        owner: record.owner.map(write_token),
        granted_from: record.granted_from.to_string(),
        granted_until: record.granted_until.to_string(),
        host,
        data_directory,
        port,
        cluster_name,
        system_identifier: system_identifier.to_string(),
    })
}

/// # Errors
/// What is wrong with the text, which is not repeated.
pub(crate) fn read(text: &str) -> Result<Record, String> {
    let written: Written = parse(text)?;
    let instant = |text: &str| UnixMicros::parse(text).ok_or_else(|| "an instant cannot be read".to_owned());
    let owner = match &written.owner {
        Some(token) => Some(read_token(token).ok_or("the owner is not 32 hexadecimal digits")?),
        None => None,
    };
    Ok(Record {
        owner,
        granted_from: instant(&written.granted_from)?,
        granted_until: instant(&written.granted_until)?,
        holder: Holder {
            host: written.host,
            data_directory: written.data_directory,
            port: written.port,
            cluster_name: written.cluster_name,
            system_identifier: written
                .system_identifier
                .parse()
                .map_err(|_| "the system identifier is not a number")?,
        },
    })
}

pub(crate) fn write_layout(layout: &str) -> String {
    json(&WrittenNamespace { format: FORMAT, layout: layout.to_owned() })
}

/// # Errors
/// What is wrong with the text, which is not repeated.
pub(crate) fn read_layout(text: &str) -> Result<String, String> {
    parse::<WrittenNamespace>(text).map(|written| written.layout)
}

fn json(written: &impl Serialize) -> String {
    serde_json::to_string(written).expect("its keys are strings, and its values are all writable")
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    let not_ours = |_| "it is not a record of pg_snowflake".to_owned();
    match serde_json::from_str::<Format>(text).map_err(not_ours)?.format {
        FORMAT => serde_json::from_str(text).map_err(not_ours),
        other => Err(format!("its format is {other}, and this version of pg_snowflake knows format {FORMAT} only")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowflake_core::lease::Token;

    fn record() -> Record {
        Record {
            owner: Some(Token(u128::MAX / 3)),
            granted_from: UnixMicros(1),
            granted_until: UnixMicros::MAX_WRITTEN,
            holder: Holder {
                host: "a \"b\" \\ \u{1} 雪".to_owned(),
                data_directory: "/d".to_owned(),
                port: 65535,
                cluster_name: String::new(),
                system_identifier: u64::MAX,
            },
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for record in [record(), Record { owner: None, ..record() }, Record { owner: Some(Token(1)), ..record() }] {
            assert_eq!(read(&write(&record)), Ok(record));
        }
        assert_eq!(read_layout(&write_layout("a \"b\"")), Ok("a \"b\"".to_owned()));
    }

    #[test]
    fn other_texts_are_refused_with_the_cause() {
        let ours = write(&record());
        let with = |from: &str, to: &str| {
            assert!(ours.contains(from), "{ours}");
            ours.replace(from, to)
        };
        for (text, cause) in [
            (String::new(), "not a record"),
            ("17".to_owned(), "not a record"),
            ("{}".to_owned(), "not a record"),
            (with("\"format\":1", "\"format\":2"), "format is 2"),
            (with("\"format\":1,", "\"format\":2,\"new\":[],"), "format is 2"),
            (with("\"format\":1,", "\"format\":1,\"new\":[],"), "not a record"),
            (with("5555", "555"), "hexadecimal"),
            (with("5555", "55-5"), "hexadecimal"),
            (with(&"5".repeat(32), &"0".repeat(32)), "hexadecimal"),
            (with("9999-12-31T23:59:59.999999Z", "infinity"), "instant"),
            (with(":65535", ":65536"), "not a record"),
            (with("18446744073709551615", "-1"), "identifier"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(cause), "{text}: {error}");
        }
    }
}
