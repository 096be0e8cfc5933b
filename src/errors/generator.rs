//! Errors of making IDs: what keeps this server from it now.

use super::report::error;
use crate::postgres::wording::{duration, preload_line};
use crate::settings;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use snowflake_core::{FieldError, Layout, Micros, UnixMicros, WorkerBits};

/// Why no ID is made.
#[derive(Clone, Debug)]
pub enum GeneratorError {
    /// The library is not in shared_preload_libraries.
    NotPreloaded,
    /// The caller may not make many IDs by one call.
    NoBatches,
    /// This function needs a primary, and the server is a standby, or still recovering.
    InRecovery(&'static str),
    /// The configuration names no worker.
    NoWorker {
        /// What it does not name.
        missing: FieldError,
        /// The worker that the server had before, which may be another's by now.
        previous: Option<WorkerBits>,
    },
    /// The clock is too far behind the last ID.
    ClockBehind {
        /// By how much.
        behind: Micros,
        /// How long the call waited.
        waited: Micros,
    },
    /// The clock stands still.
    ClockStopped {
        /// For how long.
        waited: Micros,
    },
    /// The line is at the layout's last instant.
    Exhausted {
        /// The time of the clock.
        now: UnixMicros,
    },
}

impl GeneratorError {
    pub(super) fn report(self, layout: &Layout) -> ErrorReport {
        match self {
            Self::NotPreloaded => not_preloaded(),
            Self::NoBatches => no_batches(),
            Self::InRecovery(function) => in_recovery(function),
            Self::NoWorker { missing, previous } => no_worker(&missing, previous, layout),
            Self::ClockBehind { behind, waited } => clock_behind(behind, waited),
            Self::ClockStopped { waited } => error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the clock stands still")
                .set_detail(format!("The call waited {} for the next tick of the layout.", duration(waited)))
                .set_hint("Check the system's clock."),
            Self::Exhausted { now } => exhausted(now, layout),
        }
    }
}

fn not_preloaded() -> ErrorReport {
    let message = "pg_snowflake must be loaded via shared_preload_libraries";
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .set_detail("The state from which IDs are made lives in shared memory. Decoding works without it.")
        .set_hint(format!("Put into postgresql.conf, and restart the server: {}", preload_line()))
}

fn no_batches() -> ErrorReport {
    error(ERRCODE_INSUFFICIENT_PRIVILEGE, "permission denied for snowflake_next(count)")
        .set_detail("In this database, it needs USAGE on the type _snowflake.batch.")
        .set_hint(
            "Make IDs one by one, by snowflake_next(); or have the owner of the database GRANT USAGE ON TYPE \
             _snowflake.batch to the role.",
        )
}

fn in_recovery(function: &str) -> ErrorReport {
    let message = format!("cannot execute {function}() during recovery");
    error(ERRCODE_READ_ONLY_SQL_TRANSACTION, &message).set_hint(match function {
        "snowflake_next" => "Make IDs on the primary. Decoding works here.",
        _ => "Call it on the primary.",
    })
}

fn no_worker(missing: &FieldError, previous: Option<WorkerBits>, layout: &Layout) -> ErrorReport {
    let (FieldError::Missing(field) | FieldError::NoSuchField(field) | FieldError::TooHigh { field, .. }) = *missing;
    let had = previous.and_then(|bits| layout.field(i64::try_from(bits.0).ok()?, field).ok()?);
    let given_away = had.map(|had| format!(" Number {had}, which this server had, may be another's by now."));
    // Not the number that was just handed over.
    let example = match had {
        Some(1) if layout.max(field) == 1 => 0,
        Some(1) => 2,
        _ => 1,
    };
    let message = format!("pg_snowflake.{field}_id is not set");
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail(format!(
            "Every server that makes IDs needs a {field} ID from 0 to {}, different from all others'.{}",
            layout.max(field),
            given_away.unwrap_or_default()
        ))
        .set_hint(format!(
            "For example: ALTER SYSTEM SET pg_snowflake.{field}_id = {example}; SELECT pg_reload_conf();"
        ))
}

fn clock_behind(behind: Micros, waited: Micros) -> ErrorReport {
    let message = format!("the clock is {} behind the last ID", duration(behind));
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail(format!(
            "IDs go on while it is at most {} behind (pg_snowflake.max_lead). The call waited {} \
             (pg_snowflake.max_wait is {}).",
            duration(settings::max_lead()),
            duration(waited),
            duration(settings::max_wait())
        ))
        .set_hint(format!(
            "If the clock is wrong, set it right. If it is right, IDs were made or reserved while it was ahead: raise \
             pg_snowflake.max_lead above {} so that they go on from there, or wait, or see snowflake_rewind().",
            duration(behind)
        ))
}

fn exhausted(now: UnixMicros, layout: &Layout) -> ErrorReport {
    if now >= layout.end() {
        return error(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "the layout is exhausted")
            .set_detail(format!("The layout \"{layout}\" ends at {}, and the clock is past it.", layout.end()))
            .set_hint("Check the system's clock. If it is right, a layout with a later end is needed.");
    }
    error(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "the layout is used up to its end")
        .set_detail(format!(
            "The layout \"{layout}\" ends at {}. The clock is not there yet, but IDs were made or reserved up to then.",
            layout.end()
        ))
        .set_hint("Find the highest ID that any database of this server holds, and call snowflake_rewind() with it.")
}
