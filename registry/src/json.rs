//! Records as JSON, which people can read:
//!
//! ```json
//! {"format":1,"owner":"00c0…","granted_from":"2026-01-01T00:00:00Z","granted_until":"2026-01-01T00:01:00Z","host":"db1",
//!  "data_directory":"/var/lib/postgresql/15/main","port":5432,"cluster_name":"","system_identifier":"7412345678901234567",
//!  "process":"…"}
//! {"format":1,"layout":"timestamp=41 …","life":"4a61…","leases_from":"2026-01-01T00:11:00Z"}
//! ```

use crate::text::{FORMAT, read_life, read_token, write_life, write_token};
use serde::{Deserialize, Serialize};
use snowflake_core::UnixMicros;
use snowflake_core::lease::{Holder, NamespaceRecord, Record};

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
    #[serde(default)]
    process: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenNamespace {
    format: u32,
    layout: String,
    life: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leases_from: Option<String>,
}

pub(crate) fn write(record: &Record) -> String {
    let Holder { host, data_directory, port, cluster_name, system_identifier, process } = record.holder.clone();
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
        process,
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
            process: written.process,
        },
    })
}

pub(crate) fn write_namespace(record: &NamespaceRecord) -> String {
    json(&WrittenNamespace {
        format: FORMAT,
        layout: record.layout.clone(),
        life: write_life(record.life),
        leases_from: record.leases_from.map(|instant| instant.to_string()),
    })
}

/// # Errors
/// What is wrong with the text, which is not repeated.
pub(crate) fn read_namespace(text: &str) -> Result<NamespaceRecord, String> {
    let WrittenNamespace { layout, life, leases_from, .. } = parse(text)?;
    let life = read_life(&life).ok_or("the life is not 16 hexadecimal digits")?;
    let instant = |text: String| UnixMicros::parse(&text).ok_or_else(|| "an instant cannot be read".to_owned());
    Ok(NamespaceRecord { layout, life, leases_from: leases_from.map(instant).transpose()? })
}

/// A namespace's record as it was last read, with its text: somebody may have written that by hand, in another form.
#[derive(Default)]
pub(crate) struct ReadNamespace(Option<(NamespaceRecord, String)>);

impl ReadNamespace {
    /// Reads the text of a record, where there is one, and notes it.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn note(&mut self, text: Option<String>) -> Result<Option<NamespaceRecord>, String> {
        self.0 = text.map(|text| read_namespace(&text).map(|record| (record, text))).transpose()?;
        Ok(self.0.as_ref().map(|(record, _)| record.clone()))
    }

    /// The text of a record, as it stands in the registry if it is there.
    pub fn text(&self, record: &NamespaceRecord) -> String {
        match &self.0 {
            Some((noted, text)) if noted == record => text.clone(),
            _ => write_namespace(record),
        }
    }
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
                process: "p".to_owned(),
            },
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for record in [record(), Record { owner: None, ..record() }, Record { owner: Some(Token(1)), ..record() }] {
            assert_eq!(read(&write(&record)), Ok(record));
        }
        for leases_from in [None, Some(UnixMicros(1))] {
            let record = NamespaceRecord { layout: "a \"b\"".to_owned(), life: u64::MAX - 1, leases_from };
            assert_eq!(read_namespace(&write_namespace(&record)), Ok(record));
        }
    }

    #[test]
    fn a_namespaces_record_that_was_written_by_hand_is_compared_as_it_stands() {
        let text = r#"{ "format": 1, "layout": "a", "life": "00000000000000ff" }"#;
        let mut read = ReadNamespace::default();
        let record = read.note(Some(text.to_owned())).unwrap().unwrap();
        assert_eq!(record, NamespaceRecord { layout: "a".to_owned(), life: 255, leases_from: None });
        assert_eq!(read.text(&record), text);
        let other = NamespaceRecord { life: 254, ..record };
        assert_eq!(read.text(&other), write_namespace(&other));
        for text in
            [text.replace("ff", "f"), text.replace("\"a\"", "7"), text.replace("}", ", \"leases_from\": \"x\"}")]
        {
            read.note(Some(text)).unwrap_err();
        }
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
