//! The fields of the records in a registry, and how each is written as text and read again. This is the only list of them: in etcd
//! and Redis a record is a JSON object with these members ([`json`](mod@crate::json)), in PostgreSQL a row with these columns.
//!
//! Records of older versions must be read as before, and records of this one by servers that are not updated yet: so a field keeps its name
//! and its form. A new field of a record that 0.2.0 knows would keep its servers out, as they take a member that they do not know for somebody
//! else's: it stands beside the record, as the identity of the registry does.

use snowflake_core::lease::{Holder, NamespaceRecord, Record, Token};
use snowflake_core::segment::{self, Holding, Range, Sizes, State, Use};
use snowflake_core::{Micros, UnixMicros};

/// The format that this version reads and writes, and the field in front of all others that has its number.
pub(crate) const FORMAT: u32 = 1;
pub(crate) const FORMAT_FIELD: &str = "format";

/// Said of a text that has other fields, or values of another kind.
pub(crate) const NOT_OURS: &str = "it is not a record of pg_snowflake";

/// # Errors
/// A sentence, where the format is another one.
pub(crate) fn check_format(format: &str) -> Result<(), String> {
    match format == FORMAT.to_string() {
        true => Ok(()),
        false => Err(format!("its format is {format}, and this version of pg_snowflake knows format {FORMAT} only")),
    }
}

/// A record whose fields are listed.
pub(crate) trait Fields: Sized + 'static {
    /// In the order in which they are written.
    const FIELDS: &'static [RecordField<Self>];

    /// One into which fields are read.
    fn blank() -> Self;

    /// Whether the values of the fields, each of which can be read, can stand together.
    fn is_consistent(&self) -> bool {
        true
    }
}

/// A field of a record.
pub(crate) struct RecordField<R> {
    pub name: &'static str,
    pub form: Form,
    pub presence: Presence,
    /// Its value as text.
    pub write: fn(&R) -> Option<String>,
    /// Takes a value over, unless the text is none.
    read: fn(&mut R, &str) -> bool,
    /// Said of such a text, which is not repeated.
    wrong: &'static str,
}

/// The form of a value, where a registry has forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    /// As [`UnixMicros`] is written.
    Instant,
    Number,
    /// A number that is text in JSON, whose numbers are often read as floating point.
    LongNumber,
}

/// Whether a field has a value in every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Always,
    /// No value is written as null; a field that is missing has none either.
    OrNull,
    /// A field without a value is not written, where a registry can leave it out.
    OrLeftOut,
    /// It always has one, but in records of the first versions, which do not have the field. There it is that of
    /// [`Fields::blank`].
    Later,
}

impl<R> RecordField<R> {
    const fn new(
        name: &'static str,
        form: Form,
        write: fn(&R) -> Option<String>,
        read: fn(&mut R, &str) -> bool,
    ) -> Self {
        let wrong = match form {
            Form::Instant => "an instant cannot be read",
            Form::Text | Form::Number | Form::LongNumber => NOT_OURS,
        };
        Self { name, form, presence: Presence::Always, write, read, wrong }
    }

    const fn present(mut self, presence: Presence) -> Self {
        self.presence = presence;
        self
    }

    const fn otherwise(mut self, wrong: &'static str) -> Self {
        self.wrong = wrong;
        self
    }

    /// Reads the value of a record, where it has one.
    ///
    /// # Errors
    /// A sentence, which does not repeat the text.
    pub fn read(&self, record: &mut R, value: Option<&str>) -> Result<(), &'static str> {
        match value {
            Some(text) if (self.read)(record, text) => Ok(()),
            Some(_) => Err(self.wrong),
            None if self.presence == Presence::Always => Err(NOT_OURS),
            None => Ok(()),
        }
    }
}

fn put<T>(place: &mut T, value: Option<T>) -> bool {
    match value {
        Some(value) => {
            *place = value;
            true
        }
        None => false,
    }
}

impl Fields for Record {
    const FIELDS: &'static [RecordField<Self>] = &[
        RecordField::<Self>::new(
            "owner",
            Form::Text,
            |r| r.owner.map(write_token),
            |r, t| put(&mut r.owner, read_token(t).map(Some)),
        )
        .present(Presence::OrNull)
        .otherwise("the owner is not 32 hexadecimal digits"),
        RecordField::<Self>::new(
            "granted_from",
            Form::Instant,
            |r| Some(r.granted_from.to_string()),
            |r, t| put(&mut r.granted_from, UnixMicros::parse(t)),
        ),
        RecordField::<Self>::new(
            "granted_until",
            Form::Instant,
            |r| Some(r.granted_until.to_string()),
            |r, t| put(&mut r.granted_until, UnixMicros::parse(t)),
        ),
        RecordField::<Self>::new(
            "host",
            Form::Text,
            |r| Some(r.holder.host.clone()),
            |r, t| put(&mut r.holder.host, Some(t.to_owned())),
        ),
        RecordField::<Self>::new(
            "data_directory",
            Form::Text,
            |r| Some(r.holder.data_directory.clone()),
            |r, t| put(&mut r.holder.data_directory, Some(t.to_owned())),
        ),
        RecordField::<Self>::new(
            "port",
            Form::Number,
            |r| Some(r.holder.port.to_string()),
            |r, t| put(&mut r.holder.port, t.parse().ok()),
        ),
        RecordField::<Self>::new(
            "cluster_name",
            Form::Text,
            |r| Some(r.holder.cluster_name.clone()),
            |r, t| put(&mut r.holder.cluster_name, Some(t.to_owned())),
        ),
        RecordField::<Self>::new(
            "system_identifier",
            Form::LongNumber,
            |r| Some(r.holder.system_identifier.to_string()),
            |r, t| put(&mut r.holder.system_identifier, t.parse().ok()),
        )
        .otherwise("the system identifier is not a number"),
        RecordField::<Self>::new(
            "process",
            Form::Text,
            |r| Some(r.holder.process.clone()),
            |r, t| put(&mut r.holder.process, Some(t.to_owned())),
        )
        .present(Presence::Later),
    ];

    fn blank() -> Self {
        Self { owner: None, granted_from: UnixMicros(0), granted_until: UnixMicros(0), holder: Holder::default() }
    }
}

impl Fields for NamespaceRecord {
    const FIELDS: &'static [RecordField<Self>] = &[
        RecordField::<Self>::new(
            "layout",
            Form::Text,
            |r| Some(r.layout.clone()),
            |r, t| put(&mut r.layout, Some(t.to_owned())),
        ),
        RecordField::<Self>::new(
            "life",
            Form::Text,
            |r| Some(write_life(r.life)),
            |r, t| put(&mut r.life, read_life(t)),
        )
        .otherwise("the life is not 16 hexadecimal digits"),
        RecordField::<Self>::new(
            "leases_from",
            Form::Instant,
            |r| r.leases_from.map(|instant| instant.to_string()),
            |r, t| put(&mut r.leases_from, UnixMicros::parse(t).map(Some)),
        )
        .present(Presence::OrLeftOut),
        // The identity under which it was confirmed stands beside it: versions that know nothing of that take no other record.
    ];

    fn blank() -> Self {
        Self::default()
    }
}

/// A field of a record of this type that is a number.
macro_rules! number {
    ($record:ty, $name:literal, $($place:tt).+) => {
        RecordField::<$record>::new(
            $name,
            Form::LongNumber,
            |r| Some(r.$($place).+.to_string()),
            |r, t| put(&mut r.$($place).+, t.parse().ok()),
        )
    };
}

impl Fields for segment::TagRecord {
    const FIELDS: &'static [RecordField<Self>] = &[
        number!(segment::TagRecord, "next", next),
        number!(segment::TagRecord, "floor", floor),
        number!(segment::TagRecord, "first", first),
        number!(segment::TagRecord, "last", last),
        RecordField::<Self>::new(
            "state",
            Form::Text,
            |r| Some(write_state(r.state).to_owned()),
            |r, t| put(&mut r.state, read_state(t)),
        )
        .otherwise("the state is neither live nor dropped nor forgotten"),
        number!(segment::TagRecord, "smallest", bounds.smallest),
        number!(segment::TagRecord, "largest", bounds.largest),
    ];

    fn blank() -> Self {
        let bounds = Sizes { smallest: 0, largest: 0 };
        Self { next: 0, floor: 0, first: 0, last: 0, state: State::Live, bounds }
    }

    fn is_consistent(&self) -> bool {
        self.is_sound()
    }
}

impl Fields for Holding {
    const FIELDS: &'static [RecordField<Self>] = &[
        RecordField::<Self>::new("run", Form::Text, |h| Some(write_life(h.run)), |h, t| put(&mut h.run, read_life(t)))
            .otherwise("the run is not 16 hexadecimal digits"),
        number!(Holding, "current_first", current.first),
        number!(Holding, "current_end", current.end),
        number!(Holding, "after_first", after.first),
        number!(Holding, "after_end", after.end),
        RecordField::<Self>::new(
            "granted_at",
            Form::Instant,
            |h| Some(h.granted_at.to_string()),
            |h, t| put(&mut h.granted_at, UnixMicros::parse(t)),
        ),
        number!(Holding, "used", used.count),
        number!(Holding, "used_in", used.length.0),
    ];

    fn blank() -> Self {
        let (none, used) = (Range::default(), Use { count: 0, length: Micros(0) });
        Self { run: 0, current: none, after: none, granted_at: UnixMicros(0), used }
    }

    fn is_consistent(&self) -> bool {
        self.is_sound()
    }
}

const fn write_state(state: State) -> &'static str {
    match state {
        State::Live => "live",
        State::Dropped => "dropped",
        State::Forgotten => "forgotten",
    }
}

fn read_state(text: &str) -> Option<State> {
    [State::Live, State::Dropped, State::Forgotten].into_iter().find(|state| write_state(*state) == text)
}

/// The life of a namespace, or the run of a server, as 16 hexadecimal digits.
fn write_life(life: u64) -> String {
    format!("{life:016x}")
}

fn read_life(text: &str) -> Option<u64> {
    let is_life = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_life.then(|| u64::from_str_radix(text, 16).ok())?
}

/// A token as 32 hexadecimal digits.
fn write_token(token: Token) -> String {
    format!("{:032x}", token.0)
}

/// Also with hyphens, as PostgreSQL writes a uuid.
fn read_token(text: &str) -> Option<Token> {
    let digits = text.replace('-', "");
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().filter(|token| *token != 0).map(Token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn check<R: Fields + PartialEq + Debug>(record: &R) {
        let mut found = R::blank();
        for field in R::FIELDS {
            let value = (field.write)(record);
            let before = (field.write)(&found);
            assert_ne!(value, before, "{} of this record would tell nothing", field.name);
            field.read(&mut found, value.as_deref()).unwrap();
        }
        assert_eq!(found, *record);
    }

    /// Each part of the records is named here, and has a value that a blank record has not: so a part that is no field is found.
    #[test]
    fn every_part_of_a_record_is_a_field() {
        check(&Record {
            owner: Some(Token(255)),
            granted_from: UnixMicros(1),
            granted_until: UnixMicros(2),
            holder: Holder {
                host: "h".to_owned(),
                data_directory: "d".to_owned(),
                port: 5432,
                cluster_name: "c".to_owned(),
                system_identifier: u64::MAX,
                process: "p".to_owned(),
            },
        });
        check(&segment::TagRecord {
            next: 1 << 63,
            floor: 2,
            first: 3,
            last: 4,
            state: State::Dropped,
            bounds: Sizes { smallest: 5, largest: u64::MAX },
        });
        check(&Holding {
            run: u64::MAX,
            current: Range { first: 1, end: 2 },
            after: Range { first: 3, end: 4 },
            granted_at: UnixMicros(5),
            used: Use { count: 6, length: Micros(7) },
        });
        check(&NamespaceRecord {
            layout: "l".to_owned(),
            life: u64::MAX,
            leases_from: Some(UnixMicros(1)),
            registry: None,
            here: None,
        });
    }

    #[test]
    fn a_value_that_is_missing_is_an_error_unless_the_field_says_otherwise() {
        let of_name = |name: &str| Record::FIELDS.iter().find(|field| field.name == name).unwrap();
        let mut record = Record::blank();
        for name in ["owner", "process"] {
            assert_eq!(of_name(name).read(&mut record, None), Ok(()));
        }
        for name in ["granted_from", "granted_until", "host", "port", "system_identifier"] {
            of_name(name).read(&mut record, None).unwrap_err();
        }
        assert_eq!(record, Record::blank());
    }
}
