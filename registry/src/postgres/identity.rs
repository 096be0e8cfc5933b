//! What a server, its history and its rows are: by that, a dump that was restored, a standby that was promoted, and a recovery to a point
//! in time are told from the registry in which a namespace's record was confirmed.
//!
//! The identity under which a record was confirmed stands in a row of its own in the table `namespaces`, under a name that no namespace
//! can have: versions that know nothing of it leave it alone, and no right beyond those on the table is needed. The row has the number of
//! the transaction that wrote it, too. PostgreSQL keeps that with each row, however the server is copied, and gives a row another one that
//! is copied itself: by `pg_dump`, `COPY`, or into another table.

use crate::Namespace;
use postgres_protocol::escape::escape_literal as literal;

/// An operator with its schema, so that nobody else's is found: [`PATH`](super::statements::PATH) would do, and so does this.
pub(super) const EQUAL: &str = "OPERATOR(pg_catalog.=)";

/// Which functions the role may call. Everybody may, unless that was revoked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// The system identifier.
    pub system: bool,
    /// The place in the log, which says the timeline: that of the last checkpoint lags behind a promotion.
    pub timeline: bool,
}

/// Reads [`Shown`].
pub(super) fn look_at_shown() -> String {
    let may = |function: &str| format!("pg_catalog.has_function_privilege('pg_catalog.{function}', 'EXECUTE')");
    let (system, file) = (may("pg_control_system()"), may("pg_walfile_name(pg_lsn)"));
    format!("{system}, {file} AND {}", may("pg_current_wal_lsn()"))
}

impl Shown {
    /// An expression for the identity of this server, and of rows that are where they were written.
    pub fn here(self) -> String {
        let system = "'system=', (SELECT s.system_identifier FROM pg_catalog.pg_control_system() AS s), ' ', ";
        let timeline =
            "'timeline=', pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8), ' ', ";
        let (system, timeline) = (if self.system { system } else { "" }, if self.timeline { timeline } else { "" });
        format!("pg_catalog.concat({system}{timeline}'{IN_PLACE}')")
    }
}

/// What the identity says of rows that are where they were written.
const IN_PLACE: &str = "rows=written";

/// The name under which the identity stands.
fn key(namespace: &Namespace) -> String {
    literal(&format!("{namespace}\tregistry"))
}

/// An expression for the identity under which the record of a namespace was confirmed; NULL where there is none.
pub(super) fn confirmed(namespace: &Namespace) -> String {
    format!(
        "(SELECT CASE WHEN i.xmin::pg_catalog.text {EQUAL} i.life THEN i.layout ELSE 'rows=copied' END \
         FROM snowflake_registry.namespaces AS i WHERE i.namespace {EQUAL} {})",
        key(namespace)
    )
}

/// A change of one row, and the identity with it where the row is changed.
pub(super) fn confirming(namespace: &Namespace, change: &str, format: u32, identity: &str) -> String {
    format!(
        "WITH changed AS ({change}), confirmed AS (INSERT INTO snowflake_registry.namespaces \
         (namespace, format, layout, life, written_at) SELECT {}, {format}, {}, \
         pg_catalog.mod(pg_catalog.txid_current(), 4294967296)::pg_catalog.text, pg_catalog.now() FROM changed \
         ON CONFLICT (namespace) DO UPDATE SET (layout, life, written_at) = \
         ROW (excluded.layout, excluded.life, excluded.written_at)) SELECT format FROM changed",
        key(namespace),
        literal(identity)
    )
}
