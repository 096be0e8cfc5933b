//! The SQL.

pub(super) use super::identity::EQUAL;
use super::identity::{Shown, confirmed, confirming};
use crate::Namespace;
use crate::codec::{FORMAT, FORMAT_FIELD, Fields, Form, RecordField};
use postgres_protocol::escape::escape_literal as literal;
use snowflake_core::lease::{NamespaceRecord, Record, Version, WorkerNumber};
use snowflake_core::segment::{self, Holding, Tag};
use std::time::Duration;

/// What each message begins with: names of what follows in it are looked up nowhere else, whatever the role's and the database's
/// settings say. Such a message is one transaction, and each of its statements is parsed after those before it were run; this one
/// has no name to look up. Nothing is left behind in a session that others use after us. PgBouncer refuses such a setting when a
/// session begins.
pub(super) const PATH: &str = "SET LOCAL search_path = pg_catalog, pg_temp";

/// Only one creates. The number is chance.
const LOCK: &str = "SELECT pg_catalog.pg_advisory_xact_lock(7263549120348115)";

const SCHEMA: &str = "CREATE SCHEMA IF NOT EXISTS snowflake_registry";

/// The statements that make what the schema `snowflake_registry` has, for leases.
pub const TABLES: &str = include_str!("leases.sql");

/// The statements that make the tables of segments, in the same schema.
pub const SEGMENTS_TABLES: &str = include_str!("segments.sql");

/// Which tables are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Those of leases.
    Leases,
    /// Those of segments.
    Segments,
}

impl Part {
    /// The names of its tables.
    pub fn tables(self) -> [&'static str; 2] {
        match self {
            Self::Leases => ["namespaces", "workers"],
            Self::Segments => ["segments", "segment_holders"],
        }
    }

    /// The statements that make it: tables, then comments on them.
    fn statements(self) -> (Vec<String>, Vec<String>) {
        let text = match self {
            Self::Leases => TABLES,
            Self::Segments => SEGMENTS_TABLES,
        };
        let statements = text.split(";\n").map(str::trim).filter(|statement| !statement.is_empty());
        statements.map(str::to_owned).partition(|statement| !statement.starts_with("COMMENT"))
    }

    /// Creates what is missing, with the schema or in the one that is there: to create that again needs the right to create it.
    pub fn create(self, with_schema: bool) -> Vec<String> {
        let schema = with_schema.then_some(SCHEMA);
        let start = [LOCK].into_iter().chain(schema).map(str::to_owned);
        start.chain(self.statements().0).collect()
    }

    /// What is said of it, once it is known to be ours; of the schema only by who has made it.
    pub fn comments(self, with_schema: bool) -> Vec<String> {
        let mut comments = self.statements().1;
        comments.retain(|comment| with_schema || !comment.starts_with("COMMENT ON SCHEMA"));
        comments
    }
}

/// Begins a transaction whose statements end within this time, and whose commit is durable: that it is not, as somebody has ended the wait
/// for a standby, is a warning, so those are sent whatever the role is to hear.
pub(super) fn begin(longest: Duration) -> String {
    let ms = longest.as_millis().max(1);
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = {ms}; \
         SET LOCAL lock_timeout = {ms}; SET LOCAL synchronous_commit = on; SET LOCAL client_min_messages = warning"
    )
}

/// How many statements [`begin`] has.
pub(super) const BEGIN_COUNT: usize = 5;

/// The column of a field.
pub(super) fn column(field: &str) -> &str {
    match field {
        // As people call a secret.
        "owner" => "token",
        other => other,
    }
}

/// The columns of a record, the format first.
fn columns<R: Fields>() -> Vec<&'static str> {
    [FORMAT_FIELD].into_iter().chain(R::FIELDS.iter().map(|field| column(field.name))).collect()
}

/// The values of a record for [`columns`].
fn values<R: Fields>(record: &R) -> Vec<String> {
    let value = |field: &RecordField<R>| match ((field.write)(record), field.form) {
        (None, _) => "NULL".to_owned(),
        (Some(value), Form::Number | Form::LongNumber) => value,
        (Some(value), Form::Text | Form::Instant) => literal(&value),
    };
    [FORMAT.to_string()].into_iter().chain(R::FIELDS.iter().map(value)).collect()
}

/// Expressions that read [`columns`]: an instant as RFC 3339, with six decimals.
fn selected<R: Fields>() -> String {
    let expression = |field: &RecordField<R>| {
        let column = column(field.name);
        match field.form {
            Form::Instant => instant(column),
            Form::Text | Form::Number | Form::LongNumber => column.to_owned(),
        }
    };
    [FORMAT_FIELD.to_owned()].into_iter().chain(R::FIELDS.iter().map(expression)).collect::<Vec<_>>().join(", ")
}

/// Reads the record of a namespace, and keeps others from changing it until the transaction ends.
fn namespace_locked(namespace: &Namespace, shown: Shown) -> String {
    format!("{} FOR SHARE", namespace_of(namespace, shown))
}

/// Reads the record of a namespace; then the identity under which it was confirmed, and that of the registry.
pub(super) fn namespace_of(namespace: &Namespace, shown: Shown) -> String {
    format!(
        "SELECT {}, {}, {} FROM snowflake_registry.namespaces WHERE namespace {EQUAL} {}",
        selected::<NamespaceRecord>(),
        confirmed(namespace),
        shown.here(),
        literal(namespace.as_str())
    )
}

/// That the record of a namespace is this one, in the registry in which it was found.
fn is_namespace(namespace: &Namespace, record: &NamespaceRecord, shown: Shown) -> String {
    let pairs = columns::<NamespaceRecord>().into_iter().zip(values(record));
    // Not by IS NOT DISTINCT FROM, whose operator cannot be named.
    let same = pairs.map(|(column, value)| match value.as_str() {
        "NULL" => format!(" AND {column} IS NULL"),
        value => format!(" AND {column} {EQUAL} {value}"),
    });
    let confirmed = confirmed(namespace);
    let confirmed = match &record.registry {
        None => format!("{confirmed} IS NULL"),
        Some(identity) => format!("{confirmed} {EQUAL} {}", literal(identity)),
    };
    let here = record.here.as_ref().map(|here| format!(" AND {} {EQUAL} {}", shown.here(), literal(here)));
    let (key, same) = (literal(namespace.as_str()), same.collect::<String>());
    format!("namespace {EQUAL} {key}{same} AND {confirmed}{}", here.unwrap_or_default())
}

/// Stores the record of a namespace in place of this one, or if there is none yet; reads what stands.
pub(super) fn swap_namespace(
    namespace: &Namespace,
    expected: Option<&NamespaceRecord>,
    record: &NamespaceRecord,
    shown: Shown,
) -> [String; 3] {
    let key = literal(namespace.as_str());
    let columns = format!("{}, written_at", columns::<NamespaceRecord>().join(", "));
    let values = format!("{}, pg_catalog.now()", values(record).join(", "));
    let change = match expected {
        None => format!(
            "INSERT INTO snowflake_registry.namespaces (namespace, {columns}) VALUES ({key}, {values}) \
             ON CONFLICT DO NOTHING RETURNING format"
        ),
        Some(expected) => format!(
            "UPDATE snowflake_registry.namespaces SET ({columns}) = ROW ({values}) WHERE {} RETURNING format",
            is_namespace(namespace, expected, shown)
        ),
    };
    let change = match &record.registry {
        Some(identity) => confirming(namespace, &change, FORMAT, identity),
        None => change,
    };
    // Locked first, so that the statement after it sees what others have made of the two rows.
    let lock = format!("SELECT format FROM snowflake_registry.namespaces WHERE namespace {EQUAL} {key} FOR UPDATE");
    [lock, change, namespace_of(namespace, shown)]
}

/// Stores a record in place of this version, or if there is none yet, and returns its version; reads what stands. Where the
/// namespace's record is to be this one, with that before.
pub(super) fn compare_and_swap(
    namespace: &Namespace,
    within: Option<&NamespaceRecord>,
    worker: WorkerNumber,
    (expected, new): (Option<Version>, Version),
    record: &Record,
    shown: Shown,
) -> [String; 3] {
    let key = literal(namespace.as_str());
    let (number, new) = (worker.0, new.0);
    let columns = format!("version, {}, written_at", columns::<Record>().join(", "));
    let values = format!("{new}, {}, pg_catalog.now()", values(record).join(", "));
    let is_within = within.map_or("true".to_owned(), |record| {
        format!("EXISTS (SELECT FROM snowflake_registry.namespaces WHERE {})", is_namespace(namespace, record, shown))
    });
    let change = match expected {
        None => format!(
            "INSERT INTO snowflake_registry.workers (namespace, worker, {columns}) SELECT {key}, {number}, {values} \
             WHERE {is_within} ON CONFLICT DO NOTHING"
        ),
        Some(Version(version)) => format!(
            "UPDATE snowflake_registry.workers SET ({columns}) = ROW ({values}) \
             WHERE namespace {EQUAL} {key} AND worker {EQUAL} {number} AND version {EQUAL} {version} AND {is_within}"
        ),
    };
    let look = if within.is_some() { namespace_locked(namespace, shown) } else { namespace_of(namespace, shown) };
    [look, format!("{change} RETURNING version"), record_of(namespace, worker)]
}

/// As [`compare_and_swap`], for the record of a tag; and with it what a server holds, where that is given.
pub(super) fn swap_segment(
    namespace: &Namespace,
    within: &NamespaceRecord,
    write: &segment::TagWrite,
    new: Version,
    holding: Option<&(WorkerNumber, Holding)>,
    shown: Shown,
) -> [String; 3] {
    let (key, tag) = (literal(namespace.as_str()), literal(write.tag.as_str()));
    let columns = format!("version, {}, written_at", columns::<segment::TagRecord>().join(", "));
    let values = format!("{}, {}, pg_catalog.now()", new.0, values(&write.record).join(", "));
    let is_within =
        format!("EXISTS (SELECT FROM snowflake_registry.namespaces WHERE {})", is_namespace(namespace, within, shown));
    let change = match write.expected {
        None => format!(
            "INSERT INTO snowflake_registry.segments (namespace, tag, {columns}) SELECT {key}, {tag}, {values} \
             WHERE {is_within} ON CONFLICT DO NOTHING"
        ),
        Some(Version(version)) => format!(
            "UPDATE snowflake_registry.segments SET ({columns}) = ROW ({values}) \
             WHERE namespace {EQUAL} {key} AND tag {EQUAL} {tag} AND version {EQUAL} {version} AND {is_within}"
        ),
    };
    let change = format!("{change} RETURNING version");
    let change = match holding {
        None => change,
        Some((worker, holding)) => noting(namespace, &write.tag, &change, *worker, holding),
    };
    [namespace_locked(namespace, shown), change, segment_of(namespace, &write.tag)]
}

/// A change, and what a server holds where it is made.
fn noting(namespace: &Namespace, tag: &Tag, change: &str, worker: WorkerNumber, holding: &Holding) -> String {
    let columns = columns::<Holding>();
    let values = [literal(namespace.as_str()), worker.0.to_string(), literal(tag.as_str())].into_iter();
    let values: Vec<String> = values.chain(self::values(holding)).collect();
    let new: Vec<String> = columns.iter().map(|column| format!("excluded.{column}")).collect();
    let (columns, values, new) = (columns.join(", "), values.join(", "), new.join(", "));
    format!(
        "WITH changed AS ({change}), held AS (INSERT INTO snowflake_registry.segment_holders \
         (namespace, worker, tag, {columns}) SELECT {values} FROM changed \
         ON CONFLICT (namespace, worker, tag) DO UPDATE SET ({columns}) = ROW ({new})) SELECT version FROM changed"
    )
}

/// Reads what servers hold.
pub(super) fn holdings_of(namespace: &Namespace) -> String {
    format!(
        "SELECT tag, worker, {} FROM snowflake_registry.segment_holders WHERE namespace {EQUAL} {} ORDER BY tag, worker",
        selected::<Holding>(),
        literal(namespace.as_str())
    )
}

fn read_segments(namespace: &Namespace) -> String {
    format!(
        "SELECT tag, version, {} FROM snowflake_registry.segments WHERE namespace {EQUAL} {}",
        selected::<segment::TagRecord>(),
        literal(namespace.as_str())
    )
}

/// Reads the record of a tag.
pub(super) fn segment_of(namespace: &Namespace, tag: &Tag) -> String {
    format!("{} AND tag {EQUAL} {}", read_segments(namespace), literal(tag.as_str()))
}

/// Reads the records of all tags.
pub(super) fn segments_of(namespace: &Namespace) -> String {
    format!("{} ORDER BY tag", read_segments(namespace))
}

fn read() -> String {
    format!("SELECT worker, version, {} FROM snowflake_registry.workers", selected::<Record>())
}

/// An expression that writes an instant as RFC 3339, with six decimals.
fn instant(of: &str) -> String {
    format!("pg_catalog.to_char({of} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
}

/// Reads the clock, without arithmetic: no operator is needed.
pub(super) fn time() -> String {
    format!("SELECT {}", instant("pg_catalog.clock_timestamp()"))
}

/// Reads a record.
pub(super) fn record_of(namespace: &Namespace, worker: WorkerNumber) -> String {
    format!("{} WHERE namespace {EQUAL} {} AND worker {EQUAL} {}", read(), literal(namespace.as_str()), worker.0)
}

/// Reads all records.
pub(super) fn records_of(namespace: &Namespace) -> String {
    format!("{} WHERE namespace {EQUAL} {} ORDER BY worker", read(), literal(namespace.as_str()))
}

/// The settings that decide whether a change lasts. The number of standbys is visible to everybody.
pub(super) const DURABILITY: &str = "SELECT pg_catalog.current_setting('fsync'), \
     pg_catalog.current_setting('full_page_writes'), pg_catalog.current_setting('synchronous_standby_names'), \
     (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication)";

#[cfg(test)]
mod tests {
    use super::*;
    use snowflake_core::UnixMicros;
    use snowflake_core::lease::{Holder, Token};

    fn namespace() -> Namespace {
        Namespace::new("o'clock").unwrap()
    }

    fn record() -> Record {
        Record {
            owner: Some(Token(255)),
            granted_from: UnixMicros(1),
            granted_until: UnixMicros::MAX_WRITTEN,
            holder: Holder {
                host: "db'1 \\".to_owned(),
                data_directory: "/d".to_owned(),
                port: 5432,
                cluster_name: String::new(),
                system_identifier: u64::MAX,
                process: "p".to_owned(),
            },
        }
    }

    /// Each value is stored byte for byte as servers of other versions store it.
    #[test]
    fn a_record_is_stored_in_these_columns() {
        let versions = (Some(Version(8)), Version(9));
        let [_, change, _] =
            compare_and_swap(&namespace(), None, WorkerNumber(7), versions, &record(), Shown::default());
        assert_eq!(
            change,
            "UPDATE snowflake_registry.workers SET (version, format, token, granted_from, granted_until, host, \
             data_directory, port, cluster_name, system_identifier, process, written_at) = ROW (9, 1, \
             '000000000000000000000000000000ff', '1970-01-01T00:00:00.000001Z', '9999-12-31T23:59:59.999999Z',  \
             E'db''1 \\\\', '/d', 5432, '', 18446744073709551615, 'p', pg_catalog.now()) \
             WHERE namespace OPERATOR(pg_catalog.=) 'o''clock' AND worker OPERATOR(pg_catalog.=) 7 \
             AND version OPERATOR(pg_catalog.=) 8 AND true RETURNING version"
        );
        let [_, change, _] = compare_and_swap(
            &namespace(),
            None,
            WorkerNumber(7),
            (None, Version(9)),
            &Record { owner: None, ..record() },
            Shown::default(),
        );
        assert!(change.contains(" SELECT 'o''clock', 7, 9, 1, NULL, '1970-"), "{change}");
        let of_namespace = NamespaceRecord { layout: "twitter".to_owned(), life: 255, ..NamespaceRecord::default() };
        let [_, change, _] = swap_namespace(&namespace(), None, &of_namespace, Shown::default());
        assert_eq!(
            change,
            "INSERT INTO snowflake_registry.namespaces (namespace, format, layout, life, leases_from, written_at) \
             VALUES ('o''clock', 1, 'twitter', '00000000000000ff', NULL, pg_catalog.now()) \
             ON CONFLICT DO NOTHING RETURNING format"
        );
    }

    #[test]
    fn tables_have_a_column_for_each_field() {
        fn check<R: Fields>(table: &str) {
            for field in R::FIELDS.iter() {
                let column = column(field.name);
                let types: &[&str] = match field.form {
                    Form::Text => &["pg_catalog.text", "pg_catalog.uuid"],
                    Form::Instant => &["pg_catalog.timestamptz"],
                    Form::Number => &["integer"],
                    Form::LongNumber => &["numeric(20)"],
                };
                assert!(
                    types.iter().any(|of_type| table.contains(&format!(" {column} {of_type}"))),
                    "{column}: {table}"
                );
            }
        }
        let tables = |part: Part| part.statements().0;
        check::<NamespaceRecord>(&tables(Part::Leases)[0]);
        check::<Record>(&tables(Part::Leases)[1]);
        check::<segment::TagRecord>(&tables(Part::Segments)[0]);
        check::<Holding>(&tables(Part::Segments)[1]);
    }
}
