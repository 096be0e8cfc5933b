//! The SQL.

use crate::Namespace;
use crate::codec::{FORMAT, FORMAT_FIELD, Fields, Form, RecordField};
use postgres_protocol::escape::escape_literal as literal;
use snowflake_core::lease::{NamespaceRecord, Record, Version, WorkerNumber};
use snowflake_core::segment::{self, Holding, Tag};
use std::time::Duration;

/// Whether the server takes no changes; whether all tables are there; whether the schema is.
pub(super) const LOOK: &str = "SELECT \
     pg_catalog.pg_is_in_recovery() OR pg_catalog.current_setting('transaction_read_only')::bool, \
     pg_catalog.to_regclass('snowflake_registry.workers') IS NOT NULL \
       AND pg_catalog.to_regclass('snowflake_registry.namespaces') IS NOT NULL, \
     pg_catalog.to_regnamespace('snowflake_registry') IS NOT NULL";

/// Only one creates. The number is chance.
const LOCK: &str = "SELECT pg_catalog.pg_advisory_xact_lock(7263549120348115)";

const SCHEMA: &str = "CREATE SCHEMA IF NOT EXISTS snowflake_registry";

/// The statements that make what the schema `snowflake_registry` has.
///
/// Versions come by chance, from the client: a sequence would give the same again after a failover.
pub const TABLES: [&str; 5] = [
    r#"CREATE TABLE IF NOT EXISTS snowflake_registry.namespaces (
        namespace text COLLATE "C" PRIMARY KEY,
        format integer NOT NULL,
        layout text NOT NULL,
        life text NOT NULL,
        leases_from timestamptz,
        written_at timestamptz NOT NULL DEFAULT pg_catalog.now()
    )"#,
    r#"CREATE TABLE IF NOT EXISTS snowflake_registry.workers (
        namespace text COLLATE "C" NOT NULL,
        worker bigint NOT NULL,
        version bigint NOT NULL,
        format integer NOT NULL,
        token uuid,
        granted_from timestamptz NOT NULL,
        granted_until timestamptz NOT NULL,
        host text NOT NULL,
        data_directory text NOT NULL,
        port integer NOT NULL,
        cluster_name text NOT NULL,
        system_identifier numeric(20) NOT NULL,
        process text NOT NULL,
        written_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
        PRIMARY KEY (namespace, worker)
    )"#,
    "COMMENT ON SCHEMA snowflake_registry IS 'pg_snowflake: who may make IDs with which worker ID, and of which time'",
    "COMMENT ON COLUMN snowflake_registry.workers.token IS \
     'secret of the server that holds the lease: grant the other columns only; null where the worker was given back'",
    "COMMENT ON COLUMN snowflake_registry.workers.granted_until IS \
     'IDs of the holder have times before this; the next holder starts here. Never lower it'",
];

/// Whether there are the tables of segments.
pub(super) const LOOK_FOR_SEGMENTS: &str = "SELECT pg_catalog.to_regclass('snowflake_registry.segments') IS NOT NULL \
     AND pg_catalog.to_regclass('snowflake_registry.segment_holders') IS NOT NULL";

/// The statements that make the tables of segments, in the same schema. Not some of [`TABLES`]: a role that may not create needs them
/// only where segments are used.
pub const SEGMENTS_TABLES: [&str; 4] = [
    r#"CREATE TABLE IF NOT EXISTS snowflake_registry.segments (
        namespace text COLLATE "C" NOT NULL,
        tag text COLLATE "C" NOT NULL,
        version bigint NOT NULL,
        format integer NOT NULL,
        next numeric(20) NOT NULL,
        floor numeric(20) NOT NULL,
        first numeric(20) NOT NULL,
        last numeric(20) NOT NULL,
        state text NOT NULL,
        smallest numeric(20) NOT NULL,
        largest numeric(20) NOT NULL,
        written_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
        PRIMARY KEY (namespace, tag)
    )"#,
    r#"CREATE TABLE IF NOT EXISTS snowflake_registry.segment_holders (
        namespace text COLLATE "C" NOT NULL,
        worker bigint NOT NULL,
        tag text COLLATE "C" NOT NULL,
        format integer NOT NULL,
        run text NOT NULL,
        current_first numeric(20) NOT NULL,
        current_end numeric(20) NOT NULL,
        after_first numeric(20) NOT NULL,
        after_end numeric(20) NOT NULL,
        granted_at timestamptz NOT NULL,
        used numeric(20) NOT NULL,
        used_in numeric(20) NOT NULL,
        PRIMARY KEY (namespace, worker, tag)
    )"#,
    "COMMENT ON COLUMN snowflake_registry.segments.next IS \
     'the next number that no server was granted. Never lower it'",
    "COMMENT ON TABLE snowflake_registry.segment_holders IS \
     'what the server of each worker held of each segment at its last grant: for people, nothing depends on it'",
];

/// Creates the tables of segments.
pub(super) fn create_segments() -> Vec<String> {
    [LOCK].into_iter().chain(SEGMENTS_TABLES).map(str::to_owned).collect()
}

/// Begins a transaction whose statements end within this time, and whose commit is durable.
pub(super) fn begin(longest: Duration) -> String {
    let ms = longest.as_millis().max(1);
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = {ms}; \
         SET LOCAL lock_timeout = {ms}; SET LOCAL synchronous_commit = on"
    )
}

/// How many statements [`begin`] has.
pub(super) const BEGIN_COUNT: usize = 4;

/// Creates what is missing, with the schema or in the one that is there: to create that again needs the right to create it.
pub(super) fn create(with_schema: bool) -> Vec<String> {
    let schema = with_schema.then_some(SCHEMA);
    [LOCK].into_iter().chain(schema).chain(TABLES).map(str::to_owned).collect()
}

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
            Form::Instant => {
                format!("pg_catalog.to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
            }
            Form::Text | Form::Number | Form::LongNumber => column.to_owned(),
        }
    };
    [FORMAT_FIELD.to_owned()].into_iter().chain(R::FIELDS.iter().map(expression)).collect::<Vec<_>>().join(", ")
}

/// Reads the record of a namespace, and keeps others from changing it until the transaction ends.
fn namespace_locked(namespace: &Namespace) -> String {
    format!("{} FOR SHARE", namespace_of(namespace))
}

/// Reads the record of a namespace.
pub(super) fn namespace_of(namespace: &Namespace) -> String {
    format!(
        "SELECT {} FROM snowflake_registry.namespaces WHERE namespace = {}",
        selected::<NamespaceRecord>(),
        literal(namespace.as_str())
    )
}

/// That the record of a namespace is this one.
fn is_namespace(namespace: &Namespace, record: &NamespaceRecord) -> String {
    let pairs = columns::<NamespaceRecord>().into_iter().zip(values(record));
    let same: String = pairs.map(|(column, value)| format!(" AND {column} IS NOT DISTINCT FROM {value}")).collect();
    format!("namespace = {}{same}", literal(namespace.as_str()))
}

/// Stores the record of a namespace in place of this one, or if there is none yet; reads what stands.
pub(super) fn swap_namespace(
    namespace: &Namespace,
    expected: Option<&NamespaceRecord>,
    record: &NamespaceRecord,
) -> [String; 2] {
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
            is_namespace(namespace, expected)
        ),
    };
    [change, namespace_of(namespace)]
}

/// Stores a record in place of this version, or if there is none yet, and returns its version; reads what stands. Where the
/// namespace's record is to be this one, with that before.
pub(super) fn compare_and_swap(
    namespace: &Namespace,
    within: Option<&NamespaceRecord>,
    worker: WorkerNumber,
    (expected, new): (Option<Version>, Version),
    record: &Record,
) -> [String; 3] {
    let key = literal(namespace.as_str());
    let (number, new) = (worker.0, new.0);
    let columns = format!("version, {}, written_at", columns::<Record>().join(", "));
    let values = format!("{new}, {}, pg_catalog.now()", values(record).join(", "));
    let is_within = within.map_or("true".to_owned(), |record| {
        format!("EXISTS (SELECT FROM snowflake_registry.namespaces WHERE {})", is_namespace(namespace, record))
    });
    let change = match expected {
        None => format!(
            "INSERT INTO snowflake_registry.workers (namespace, worker, {columns}) SELECT {key}, {number}, {values} \
             WHERE {is_within} ON CONFLICT DO NOTHING"
        ),
        Some(Version(version)) => format!(
            "UPDATE snowflake_registry.workers SET ({columns}) = ROW ({values}) \
             WHERE namespace = {key} AND worker = {number} AND version = {version} AND {is_within}"
        ),
    };
    let look = if within.is_some() { namespace_locked(namespace) } else { namespace_of(namespace) };
    [look, format!("{change} RETURNING version"), record_of(namespace, worker)]
}

/// As [`compare_and_swap`], for the record of a tag; and with it what a server holds, where that is given.
pub(super) fn swap_segment(
    namespace: &Namespace,
    within: &NamespaceRecord,
    write: &segment::TagWrite,
    new: Version,
    holding: Option<&(WorkerNumber, Holding)>,
) -> [String; 3] {
    let (key, tag) = (literal(namespace.as_str()), literal(write.tag.as_str()));
    let columns = format!("version, {}, written_at", columns::<segment::TagRecord>().join(", "));
    let values = format!("{}, {}, pg_catalog.now()", new.0, values(&write.record).join(", "));
    let is_within =
        format!("EXISTS (SELECT FROM snowflake_registry.namespaces WHERE {})", is_namespace(namespace, within));
    let change = match write.expected {
        None => format!(
            "INSERT INTO snowflake_registry.segments (namespace, tag, {columns}) SELECT {key}, {tag}, {values} \
             WHERE {is_within} ON CONFLICT DO NOTHING"
        ),
        Some(Version(version)) => format!(
            "UPDATE snowflake_registry.segments SET ({columns}) = ROW ({values}) \
             WHERE namespace = {key} AND tag = {tag} AND version = {version} AND {is_within}"
        ),
    };
    let change = format!("{change} RETURNING version");
    let change = match holding {
        None => change,
        Some((worker, holding)) => noting(namespace, &write.tag, &change, *worker, holding),
    };
    [namespace_locked(namespace), change, segment_of(namespace, &write.tag)]
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
        "SELECT tag, worker, {} FROM snowflake_registry.segment_holders WHERE namespace = {} ORDER BY tag, worker",
        selected::<Holding>(),
        literal(namespace.as_str())
    )
}

fn read_segments(namespace: &Namespace) -> String {
    format!(
        "SELECT tag, version, {} FROM snowflake_registry.segments WHERE namespace = {}",
        selected::<segment::TagRecord>(),
        literal(namespace.as_str())
    )
}

/// Reads the record of a tag.
pub(super) fn segment_of(namespace: &Namespace, tag: &Tag) -> String {
    format!("{} AND tag = {}", read_segments(namespace), literal(tag.as_str()))
}

/// Reads the records of all tags.
pub(super) fn segments_of(namespace: &Namespace) -> String {
    format!("{} ORDER BY tag", read_segments(namespace))
}

fn read() -> String {
    format!("SELECT worker, version, {} FROM snowflake_registry.workers", selected::<Record>())
}

/// Reads the clock: microseconds since 1970.
pub(super) const TIME: &str = "SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint";

/// Reads a record.
pub(super) fn record_of(namespace: &Namespace, worker: WorkerNumber) -> String {
    format!("{} WHERE namespace = {} AND worker = {}", read(), literal(namespace.as_str()), worker.0)
}

/// Reads all records.
pub(super) fn records_of(namespace: &Namespace) -> String {
    format!("{} WHERE namespace = {} ORDER BY worker", read(), literal(namespace.as_str()))
}

/// The settings that decide whether a change lasts. The number of standbys is visible to everybody.
pub(super) const DURABILITY: &str = "SELECT pg_catalog.current_setting('fsync'), \
     pg_catalog.current_setting('full_page_writes'), pg_catalog.current_setting('synchronous_standby_names'), \
     (SELECT count(*) FROM pg_catalog.pg_stat_replication)";

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
        let [_, change, _] = compare_and_swap(&namespace(), None, WorkerNumber(7), versions, &record());
        assert_eq!(
            change,
            "UPDATE snowflake_registry.workers SET (version, format, token, granted_from, granted_until, host, \
             data_directory, port, cluster_name, system_identifier, process, written_at) = ROW (9, 1, \
             '000000000000000000000000000000ff', '1970-01-01T00:00:00.000001Z', '9999-12-31T23:59:59.999999Z',  \
             E'db''1 \\\\', '/d', 5432, '', 18446744073709551615, 'p', pg_catalog.now()) \
             WHERE namespace = 'o''clock' AND worker = 7 AND version = 8 AND true RETURNING version"
        );
        let [_, change, _] = compare_and_swap(
            &namespace(),
            None,
            WorkerNumber(7),
            (None, Version(9)),
            &Record { owner: None, ..record() },
        );
        assert!(change.contains(" SELECT 'o''clock', 7, 9, 1, NULL, '1970-"), "{change}");
        let of_namespace = NamespaceRecord { layout: "twitter".to_owned(), life: 255, leases_from: None };
        let [change, _] = swap_namespace(&namespace(), None, &of_namespace);
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
            for field in R::FIELDS {
                let column = column(field.name);
                let types: &[&str] = match field.form {
                    Form::Text => &["text", "uuid"],
                    Form::Instant => &["timestamptz"],
                    Form::Number => &["integer"],
                    Form::LongNumber => &["numeric(20)"],
                };
                assert!(
                    types.iter().any(|of_type| table.contains(&format!(" {column} {of_type}"))),
                    "{column}: {table}"
                );
            }
        }
        check::<NamespaceRecord>(TABLES[0]);
        check::<Record>(TABLES[1]);
        check::<segment::TagRecord>(SEGMENTS_TABLES[0]);
        check::<Holding>(SEGMENTS_TABLES[1]);
    }
}
