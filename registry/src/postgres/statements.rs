//! The SQL.

use crate::Namespace;
use crate::text::{FORMAT, write_life, write_token};
use postgres_protocol::escape::escape_literal as literal;
use snowflake_core::lease::{Holder, NamespaceRecord, Record, Version, WorkerNumber};
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

/// What begins a transaction whose statements end within this time, and whose commit is durable.
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

/// Reads the record of a namespace, and keeps others from changing it until the transaction ends.
pub(super) fn namespace_locked(namespace: &Namespace) -> String {
    format!("{} FOR SHARE", namespace_of(namespace))
}

/// Reads the record of a namespace.
pub(super) fn namespace_of(namespace: &Namespace) -> String {
    let instant = instant("leases_from");
    format!(
        "SELECT format, layout, life, {instant} FROM snowflake_registry.namespaces WHERE namespace = {}",
        literal(namespace.as_str())
    )
}

/// That the record of a namespace is this one.
fn is_namespace(namespace: &Namespace, record: &NamespaceRecord) -> String {
    let NamespaceRecord { layout, life, leases_from } = record;
    let leases_from = leases_from.map_or("NULL".to_owned(), |instant| literal(&instant.to_string()));
    format!(
        "namespace = {} AND format = {FORMAT} AND layout = {} AND life = {} \
         AND leases_from IS NOT DISTINCT FROM {leases_from}::timestamptz",
        literal(namespace.as_str()),
        literal(layout),
        literal(&write_life(*life)),
    )
}

/// Stores the record of a namespace in place of this one, or if there is none yet; reads what stands.
pub(super) fn swap_namespace(
    namespace: &Namespace,
    expected: Option<&NamespaceRecord>,
    record: &NamespaceRecord,
) -> [String; 2] {
    let NamespaceRecord { layout, life, leases_from } = record;
    let (key, layout, life) = (literal(namespace.as_str()), literal(layout), literal(&write_life(*life)));
    let leases_from = leases_from.map_or("NULL".to_owned(), |instant| literal(&instant.to_string()));
    let columns = "format, layout, life, leases_from, written_at";
    let values = format!("{FORMAT}, {layout}, {life}, {leases_from}, pg_catalog.now()");
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
    let Record { owner, granted_from, granted_until, holder } = record;
    let Holder { host, data_directory, port, cluster_name, system_identifier, process } = holder;
    let key = literal(namespace.as_str());
    let (number, new) = (worker.0, new.0);
    let token = owner.map_or("NULL".to_owned(), |token| literal(&write_token(token)));
    let (from, until) = (literal(&granted_from.to_string()), literal(&granted_until.to_string()));
    let (host, directory, cluster) = (literal(host), literal(data_directory), literal(cluster_name));
    let process = literal(process);
    let columns = "version, format, token, granted_from, granted_until, host, data_directory, port, cluster_name, \
                   system_identifier, process, written_at";
    let values = format!(
        "{new}, {FORMAT}, {token}, {from}, {until}, {host}, {directory}, \
         {port}, {cluster}, {system_identifier}, {process}, pg_catalog.now()"
    );
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

/// A column as RFC 3339.
fn instant(column: &str) -> String {
    format!("pg_catalog.to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
}

fn read() -> String {
    format!(
        "SELECT format, worker, version, token, {}, {}, host, data_directory, port, cluster_name, system_identifier, process \
         FROM snowflake_registry.workers",
        instant("granted_from"),
        instant("granted_until")
    )
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

/// What decides whether a change lasts. The number of standbys is visible to everybody.
pub(super) const DURABILITY: &str = "SELECT pg_catalog.current_setting('fsync'), \
     pg_catalog.current_setting('full_page_writes'), pg_catalog.current_setting('synchronous_standby_names'), \
     (SELECT count(*) FROM pg_catalog.pg_stat_replication)";
