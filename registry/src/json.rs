//! Records as JSON, which people can read:
//!
//! ```json
//! {"format":1,"owner":"00c0…","granted_from":"2026-01-01T00:00:00Z","granted_until":"2026-01-01T00:01:00Z","host":"db1",
//!  "data_directory":"/var/lib/postgresql/15/main","port":5432,"cluster_name":"","system_identifier":"7412345678901234567",
//!  "process":"…"}
//! {"format":1,"layout":"timestamp=41 …","life":"4a61…","leases_from":"2026-01-01T00:11:00Z"}
//! {"format":1,"next":"4711","floor":"1","first":"1","last":"2147483647","state":"live","smallest":"10","largest":"2147483"}
//! ```
//!
//! serde's derive would be a second list of the fields, beside that of PostgreSQL's columns.

use crate::codec::{FORMAT, FORMAT_FIELD, Fields, Form, NOT_OURS, Presence, check_format};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use snowflake_core::lease::NamespaceRecord;
use std::collections::BTreeMap;
use std::fmt;

pub(crate) fn write<R: Fields>(record: &R) -> String {
    let mut members = vec![format!("\"{FORMAT_FIELD}\":{FORMAT}")];
    for field in R::FIELDS {
        let value = match ((field.write)(record), field.form) {
            (None, _) if field.presence == Presence::OrLeftOut => continue,
            (None, _) => Value::Null.to_string(),
            (Some(value), Form::Number) => value,
            (Some(value), Form::Text | Form::Instant | Form::LongNumber) => Value::String(value).to_string(),
        };
        members.push(format!("\"{}\":{value}", field.name));
    }
    format!("{{{}}}", members.join(","))
}

/// # Errors
/// A description of what is wrong with the text, which is not repeated.
pub(crate) fn read<R: Fields>(text: &str) -> Result<R, String> {
    let Members(mut members) = serde_json::from_str(text).map_err(|_| NOT_OURS)?;
    let format =
        members.remove(FORMAT_FIELD).and_then(|format| u32::try_from(format.as_u64()?).ok()).ok_or(NOT_OURS)?;
    check_format(&format.to_string())?;
    let mut record = R::blank();
    for field in R::FIELDS {
        let value = match (members.remove(field.name), field.form) {
            (None, _) => None,
            (Some(Value::Null), _) if matches!(field.presence, Presence::OrNull | Presence::OrLeftOut) => None,
            (Some(Value::Number(number)), Form::Number) => Some(number.to_string()),
            (Some(Value::String(text)), Form::Text | Form::Instant | Form::LongNumber) => Some(text),
            _ => return Err(NOT_OURS.to_owned()),
        };
        field.read(&mut record, value.as_deref())?;
    }
    match members.is_empty() && record.is_consistent() {
        true => Ok(record),
        false => Err(NOT_OURS.to_owned()),
    }
}

/// The members of an object, which has none of them twice.
struct Members(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReadMembers)
    }
}

struct ReadMembers;

impl<'de> Visitor<'de> for ReadMembers {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = map.next_entry()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a member twice"));
            }
        }
        Ok(Members(members))
    }
}

/// A namespace's record as it was last read, with its text: somebody may have written that by hand, in another form.
#[derive(Default)]
pub(crate) struct ReadNamespace(Option<(NamespaceRecord, String)>);

impl ReadNamespace {
    /// Reads the text of a record, where there is one, and notes it. `registry` is the identity under which it was confirmed, `here` that
    /// of the registry that has it.
    ///
    /// # Errors
    /// A description of what is wrong with the text.
    pub fn note(
        &mut self,
        text: Option<String>,
        registry: Option<String>,
        here: Option<String>,
    ) -> Result<Option<NamespaceRecord>, String> {
        let read = |text: String| {
            read::<NamespaceRecord>(&text).map(|record| (NamespaceRecord { registry, here, ..record }, text))
        };
        self.0 = text.map(read).transpose()?;
        Ok(self.0.as_ref().map(|(record, _)| record.clone()))
    }

    /// The text of a record, as it stands in the registry if it is there.
    pub fn text(&self, record: &NamespaceRecord) -> String {
        match &self.0 {
            Some((noted, text)) if noted == record => text.clone(),
            _ => write(record),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowflake_core::lease::{Holder, Record, Token};
    use snowflake_core::segment::{Holding, Range, Sizes, State, TagRecord, Use};
    use snowflake_core::{Micros, UnixMicros};

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

    /// As it stands in registries.
    const GOLDEN: &str = concat!(
        r#"{"format":1,"owner":"55555555555555555555555555555555","granted_from":"1970-01-01T00:00:00.000001Z","#,
        r#""granted_until":"9999-12-31T23:59:59.999999Z","host":"a \"b\" \\ \u0001 雪","data_directory":"/d","port":65535,"#,
        r#""cluster_name":"","system_identifier":"18446744073709551615","process":"p"}"#,
    );

    #[test]
    fn what_stands_in_registries_is_written_byte_for_byte() {
        assert_eq!(write(&record()), GOLDEN);
        let given_back = Record { owner: None, ..record() };
        let of_nobody = GOLDEN.replace(&format!("\"{}\"", "5".repeat(32)), "null");
        assert_eq!(write(&given_back), of_nobody);
        let namespace = NamespaceRecord { layout: "twitter \"x\"".to_owned(), life: 255, ..NamespaceRecord::default() };
        assert_eq!(write(&namespace), r#"{"format":1,"layout":"twitter \"x\"","life":"00000000000000ff"}"#);
        let namespace = NamespaceRecord { leases_from: Some(UnixMicros::from_millis(1)), ..namespace };
        assert_eq!(
            write(&namespace),
            r#"{"format":1,"layout":"twitter \"x\"","life":"00000000000000ff","leases_from":"1970-01-01T00:00:00.001Z"}"#
        );
    }

    #[test]
    fn what_stands_in_registries_is_read_as_before() {
        assert_eq!(read(GOLDEN), Ok(record()));
        let of_nobody = Record { owner: None, ..record() };
        for text in [
            GOLDEN.replace(&format!("\"{}\"", "5".repeat(32)), "null"),
            GOLDEN.replace(&format!("\"owner\":\"{}\",", "5".repeat(32)), ""),
        ] {
            assert_eq!(read(&text), Ok(of_nobody.clone()), "{text}");
        }
        // Of the first versions.
        let without = GOLDEN.replace(",\"process\":\"p\"", "");
        let unknown = Record { holder: Holder { process: String::new(), ..record().holder }, ..record() };
        assert_eq!(read(&without), Ok(unknown));
        // In another order, and with white space, as people write it.
        let by_hand = r#"{ "life": "00000000000000ff", "format": 1, "leases_from": null, "layout": "a" }"#;
        let namespace = NamespaceRecord { layout: "a".to_owned(), life: 255, ..NamespaceRecord::default() };
        assert_eq!(read(by_hand), Ok(namespace));
    }

    #[test]
    fn what_is_written_reads_back() {
        for record in [record(), Record { owner: None, ..record() }, Record { owner: Some(Token(1)), ..record() }] {
            assert_eq!(read(&write(&record)), Ok(record));
        }
        for leases_from in [None, Some(UnixMicros(1))] {
            let record = NamespaceRecord {
                layout: "a \"b\"".to_owned(),
                life: u64::MAX - 1,
                leases_from,
                ..NamespaceRecord::default()
            };
            assert_eq!(read(&write(&record)), Ok(record));
        }
    }

    #[test]
    fn a_namespaces_record_that_was_written_by_hand_is_compared_as_it_stands() {
        let text = r#"{ "format": 1, "layout": "a", "life": "00000000000000ff" }"#;
        let mut read = ReadNamespace::default();
        let record = read.note(Some(text.to_owned()), None, None).unwrap().unwrap();
        assert_eq!(record, NamespaceRecord { layout: "a".to_owned(), life: 255, ..NamespaceRecord::default() });
        assert_eq!(read.text(&record), text);
        let other = NamespaceRecord { life: 254, ..record };
        assert_eq!(read.text(&other), write(&other));
        for text in
            [text.replace("ff", "f"), text.replace("\"a\"", "7"), text.replace("}", ", \"leases_from\": \"x\"}")]
        {
            read.note(Some(text), None, None).unwrap_err();
        }
    }

    /// Numbers above those of a `bigint` would be negative ones there.
    #[test]
    fn values_that_cannot_stand_together_are_refused() {
        let bounds = Sizes { smallest: 10, largest: 20 };
        let tag = TagRecord { next: 7, floor: 3, first: 0, last: TagRecord::HIGHEST, state: State::Live, bounds };
        let used_up = TagRecord { next: TagRecord::HIGHEST + 1, ..tag.clone() };
        for good in [&tag, &used_up] {
            assert_eq!(read::<TagRecord>(&write(good)).as_ref(), Ok(good));
        }
        let of_sizes = |smallest, largest| TagRecord { bounds: Sizes { smallest, largest }, ..tag.clone() };
        for bad in [
            TagRecord { last: TagRecord::HIGHEST + 1, ..tag.clone() },
            TagRecord { last: u64::MAX, ..tag.clone() },
            TagRecord { first: 8, last: 7, ..tag.clone() },
            TagRecord { next: TagRecord::HIGHEST + 2, ..tag.clone() },
            TagRecord { floor: u64::MAX, ..tag.clone() },
            of_sizes(0, 20),
            of_sizes(21, 20),
        ] {
            assert_eq!(read::<TagRecord>(&write(&bad)).unwrap_err(), NOT_OURS, "{bad:?}");
        }
        let (none, used) = (Range::default(), Use { count: 5, length: Micros(0) });
        let current = Range { first: 5, end: 9 };
        let holding = Holding { run: 255, current, after: none, granted_at: UnixMicros(1), used };
        let with = |current, after| Holding { current, after, ..holding };
        for good in [holding, with(current, Range { first: 9, end: TagRecord::HIGHEST + 1 }), with(none, none)] {
            assert_eq!(read::<Holding>(&write(&good)), Ok(good));
        }
        for bad in [
            with(Range { first: 9, end: 5 }, none),
            with(Range { first: 9, end: u64::MAX }, none),
            with(current, Range { first: 8, end: 12 }),
            with(current, Range { first: 12, end: 11 }),
            with(current, Range { first: 12, end: u64::MAX }),
        ] {
            assert_eq!(read::<Holding>(&write(&bad)).unwrap_err(), NOT_OURS, "{bad:?}");
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
            (with("\"port\":65535,", ""), "not a record"),
            (with("\"port\":65535", "\"port\":\"65535\""), "not a record"),
            (with("\"port\":65535", "\"port\":65535.0"), "not a record"),
            (with("\"port\":65535,", "\"port\":65535,\"port\":65535,"), "not a record"),
            (with("\"host\":", "\"host\":null,\"x\":"), "not a record"),
            (with("\"process\":\"p\"", "\"process\":null"), "not a record"),
            (with("{\"format\":1,", "[1,"), "not a record"),
            (with("\"format\":1,", "\"format\":\"1\","), "not a record"),
            (with("5555", "555"), "hexadecimal"),
            (with("5555", "55-5"), "hexadecimal"),
            (with(&"5".repeat(32), &"0".repeat(32)), "hexadecimal"),
            (with("9999-12-31T23:59:59.999999Z", "infinity"), "instant"),
            (with(":65535", ":65536"), "not a record"),
            (with("18446744073709551615", "-1"), "identifier"),
        ] {
            let error = read::<Record>(&text).unwrap_err();
            assert!(error.contains(cause), "{text}: {error}");
        }
    }
}
