//! Errors of leases of worker IDs.

use super::report::{error, or_no_answer};
use crate::postgres::time::timestamptz;
use crate::postgres::wording::duration;
use crate::settings;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use snowflake_core::UnixMicros;

/// Why there is no worker ID, or nothing is known of leases.
#[derive(Clone, Debug)]
pub enum LeaseError {
    /// The server has no lease of a worker, or it ends too early.
    NoLease {
        /// Where the last one ended.
        until: Option<UnixMicros>,
        /// The reason why it has none.
        trouble: Option<String>,
    },
    /// The server is being stopped, and has given its worker back.
    Stopping,
    /// No registry is set.
    NoRegistry,
}

impl LeaseError {
    pub(super) fn report(self) -> ErrorReport {
        match self {
            Self::NoLease { until, trouble } => {
                let ended = until.map(|until| {
                    let until = timestamptz::display(timestamptz::to_datum(until));
                    format!("The last lease allows IDs up to {until}.")
                });
                let detail = [ended, Some(or_no_answer(trouble))].into_iter().flatten().collect::<Vec<_>>().join(" ");
                error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "this server has no lease of a worker ID")
                    .set_detail(format!(
                        "{detail} The call waited {} (pg_snowflake.max_wait).",
                        duration(settings::max_wait())
                    ))
                    .set_hint("See snowflake_status() and snowflake_workers(), and the server's log.")
            }
            Self::Stopping => error(ERRCODE_ADMIN_SHUTDOWN, "this server is being stopped, and makes no more IDs")
                .set_detail("It has given its worker ID back to the registry."),
            Self::NoRegistry => {
                error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "this server has no registry of worker IDs")
                    .set_detail("Its worker ID is that of pg_snowflake.worker_id.")
                    .set_hint("Set pg_snowflake.registry in postgresql.conf, and restart the server.")
            }
        }
    }
}
