//! Errors of the reservation, of the replication origin that holds it, and of the rewind.

use super::report::error;
use crate::postgres::wording::duration;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use snowflake_core::Micros;

/// The parameter that says how many replication origins may be in use.
#[cfg(not(since_pg18))]
const SLOTS: &str = "max_replication_slots";
#[cfg(since_pg18)]
const SLOTS: &str = "max_active_replication_origins";

/// Why nothing can be reserved or taken back.
#[derive(Clone, Debug)]
pub enum ReservationError {
    /// The IDs of a dump that was restored into this database are too far ahead of the clock.
    CopyTooFar {
        /// By how much.
        ahead: Micros,
        /// How long the database must wait for the clock.
        wait: Micros,
    },
    /// The server has no slots for replication origins.
    NoSlots,
    /// All slots for replication origins are taken.
    SlotsFull,
    /// A session holds the replication origin.
    OriginInUse,
    /// An open transaction drops the replication origin.
    OriginDropped,
    /// The replication origin is gone.
    NoOrigin,
    /// The replication origin has no value.
    NoProgress,
    /// The process that creates the replication origin could not be started.
    NoWorkerSlot,
    /// The system gives no random number.
    NoRandomNumber,
    /// The caller is no superuser.
    NotSuperuser,
    /// No ID above this one was made or reserved.
    NothingToRewind(i64),
    /// A query of the extension's own failed.
    Query(String),
    /// Rows that others have committed are not all seen.
    OldSnapshot,
    /// These have open transactions that write to tables with IDs.
    OpenWriters(String),
    /// A table holds IDs above the one that the server is to go back to.
    RowsAbove {
        /// The table and column, as SQL writes them.
        column: String,
        /// The highest of its IDs.
        highest: i64,
    },
}

impl ReservationError {
    pub(super) fn report(self) -> ErrorReport {
        match self {
            Self::CopyTooFar { ahead, wait } => copy_too_far(ahead, wait),
            Self::NoSlots => no_slots(),
            Self::SlotsFull => slots_full(),
            Self::OriginInUse => error(ERRCODE_OBJECT_IN_USE, "a session holds the replication origin \"snowflake\"")
                .set_detail("It holds the reservation of this server's IDs. No ID was made.")
                .set_hint(
                    "End the session that called pg_replication_origin_session_setup('snowflake'): see pg_stat_activity.",
                ),
            Self::OriginDropped => error(
                ERRCODE_OBJECT_IN_USE,
                "a transaction that is still open drops the replication origin \"snowflake\"",
            )
            .set_detail("It holds the reservation of this server's IDs. No ID was made.")
            .set_hint("End that transaction. The origin is then kept, or created again."),
            Self::NoOrigin => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the replication origin \"snowflake\" could not be created",
            )
            .set_detail("It holds the reservation of this server's IDs. The server's log says why.")
            .set_hint("Try again when no transaction is open that drops a subscription or a replication origin."),
            Self::NoProgress => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the replication origin \"snowflake\" has lost its value",
            )
            .set_detail("It holds the reservation of this server's IDs.")
            .set_hint(
                "Find the highest ID that any database of this server holds, and call snowflake_rewind() with it as a superuser. \
                 If there is none, SELECT pg_replication_origin_drop('snowflake').",
            ),
            Self::NoWorkerSlot => error(
                ERRCODE_INSUFFICIENT_RESOURCES,
                "the process that creates the replication origin \"snowflake\" could not be started",
            )
            .set_hint("Raise max_worker_processes in postgresql.conf, and restart the server."),
            Self::NoRandomNumber => error(ERRCODE_INTERNAL_ERROR, "could not draw a random number"),
            Self::NotSuperuser => error(ERRCODE_INSUFFICIENT_PRIVILEGE, "must be superuser to call snowflake_rewind()"),
            Self::NothingToRewind(id) => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                &format!("no ID above {id} was made or reserved"),
            )
            .set_detail("So there is nothing to take back on this server.")
            .set_hint("Compare last_time and reserved_until of snowflake_status()."),
            Self::Query(problem) => error(ERRCODE_INTERNAL_ERROR, "could not look for IDs in this database").set_detail(problem),
            Self::OldSnapshot => error(
                ERRCODE_ACTIVE_SQL_TRANSACTION,
                "snowflake_rewind() can be called in a READ COMMITTED transaction only",
            )
            .set_detail("At other levels, rows are not seen that were committed since the transaction began.")
            .set_hint("Begin the transaction with BEGIN ISOLATION LEVEL READ COMMITTED;"),
            Self::OpenWriters(who) => error(
                ERRCODE_LOCK_NOT_AVAILABLE,
                "transactions are open that may have written IDs above the one to go back to",
            )
            .set_detail(format!("They are of {who}. Their rows cannot be seen yet."))
            .set_hint("Commit these transactions, or end them. Then call snowflake_rewind() again."),
            Self::RowsAbove { column, highest } => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "this database holds IDs above the one to go back to",
            )
            .set_detail(format!("The highest ID in {column} is {highest}."))
            .set_hint("Give the highest ID that any database of this server holds, or delete or renumber such rows first."),
        }
    }
}

fn copy_too_far(ahead: Micros, wait: Micros) -> ErrorReport {
    let message = format!("the IDs of this database reach up to {} ahead of the clock", duration(ahead));
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail(format!(
            "The sequence _snowflake.reservation says so. It was set by the restore of a dump, by pg_upgrade, or by hand. \
             This database makes IDs again in {}, when the clock is near enough. Other databases are not affected.",
            duration(wait)
        ))
        .set_hint(
            "If the clock is wrong, set it right. If it is right, wait; or find the highest ID that any database of this \
             server holds, and call snowflake_rewind() with it in this one.",
        )
}

fn no_slots() -> ErrorReport {
    let message = "snowflake IDs need a replication origin, and this server allows none";
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .set_detail(format!("{SLOTS} is 0. The origin holds the reservation of this server's IDs."))
        .set_hint(format!("Set {SLOTS} to at least 1 in postgresql.conf, and restart the server."))
}

fn slots_full() -> ErrorReport {
    let message = "snowflake IDs need a replication origin, and all slots for origins are taken";
    error(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, message)
        .set_detail("The origin holds the reservation of this server's IDs. No ID was made.")
        .set_hint(format!(
            "Raise {SLOTS} in postgresql.conf and restart the server, or drop an origin of pg_replication_origin_status \
             that is not in use."
        ))
}
