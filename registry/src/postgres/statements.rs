//! The SQL.

use crate::Namespace;
use crate::text::{FORMAT, write_token};
use postgres_protocol::escape::escape_literal as literal;
use snowflake_core::lease::{Holder, Record, Version, WorkerNumber};
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

/// Creates a namespace that is not there; reads the one that is.
pub(super) fn layout(namespace: &Namespace, layout: &str) -> [String; 2] {
    let (namespace, layout) = (literal(namespace.as_str()), literal(layout));
    [
        format!(
            "INSERT INTO snowflake_registry.namespaces (namespace, format, layout) \
             VALUES ({namespace}, {FORMAT}, {layout}) ON CONFLICT DO NOTHING RETURNING format"
        ),
        format!("SELECT format, layout FROM snowflake_registry.namespaces WHERE namespace = {namespace}"),
    ]
}

/// Stores a record in place of this version, or if there is none yet, and returns its version; reads what stands.
pub(super) fn compare_and_swap(
    namespace: &Namespace,
    worker: WorkerNumber,
    (expected, new): (Option<Version>, Version),
    record: &Record,
) -> [String; 2] {
    let Record { owner, granted_from, granted_until, holder } = record;
    let Holder { host, data_directory, port, cluster_name, system_identifier } = holder;
    let key = literal(namespace.as_str());
    let (number, new) = (worker.0, new.0);
    let token = owner.map_or("NULL".to_owned(), |token| literal(&write_token(token)));
    let (from, until) = (literal(&granted_from.to_string()), literal(&granted_until.to_string()));
    let (host, directory, cluster) = (literal(host), literal(data_directory), literal(cluster_name));
    let columns = "version, format, token, granted_from, granted_until, host, data_directory, port, cluster_name, \
                   system_identifier, written_at";
    let values = format!(
        "{new}, {FORMAT}, {token}, {from}, {until}, {host}, {directory}, \
         {port}, {cluster}, {system_identifier}, pg_catalog.now()"
    );
    let change = match expected {
        None => format!(
            "INSERT INTO snowflake_registry.workers (namespace, worker, {columns}) VALUES ({key}, {number}, {values}) \
             ON CONFLICT DO NOTHING"
        ),
        Some(Version(version)) => format!(
            "UPDATE snowflake_registry.workers SET ({columns}) = ROW ({values}) \
             WHERE namespace = {key} AND worker = {number} AND version = {version}"
        ),
    };
    [format!("{change} RETURNING version"), record_of(namespace, worker)]
}

const READ: &str = r#"SELECT format, worker, version, token,
         pg_catalog.to_char(granted_from AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
         pg_catalog.to_char(granted_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
         host, data_directory, port, cluster_name, system_identifier
     FROM snowflake_registry.workers"#;

/// Reads a record.
pub(super) fn record_of(namespace: &Namespace, worker: WorkerNumber) -> String {
    format!("{READ} WHERE namespace = {} AND worker = {}", literal(namespace.as_str()), worker.0)
}

/// Reads all records.
pub(super) fn records_of(namespace: &Namespace) -> String {
    format!("{READ} WHERE namespace = {} ORDER BY worker", literal(namespace.as_str()))
}

/// What decides whether a change lasts. The number of standbys is visible to everybody.
pub(super) const DURABILITY: &str = "SELECT pg_catalog.current_setting('fsync'), \
     pg_catalog.current_setting('full_page_writes'), pg_catalog.current_setting('synchronous_standby_names'), \
     (SELECT count(*) FROM pg_catalog.pg_stat_replication)";
