//! Errors of what a database has on record about its IDs.

use super::report::error;
use crate::settings;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use snowflake_core::Layout;

/// Why a database makes or reads no IDs.
#[derive(Clone, Debug)]
pub enum RecordError {
    /// The extension is not created in this database, or was dropped a moment ago.
    NotCreated,
    /// The layout on record in the database is this one, and not the server's.
    OtherLayout(Layout),
    /// What the database has on record is no layout.
    NoRecord {
        /// The number of the fields and the tick.
        form: i64,
        /// The number of the epoch.
        epoch: i64,
    },
    /// The page of this sequence is not that of a sequence.
    Damaged(String),
    /// The layout cannot be adopted, as IDs were made in another one.
    LayoutInUse,
}

impl RecordError {
    pub(super) fn report(self) -> ErrorReport {
        match self {
            Self::NotCreated => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "extension pg_snowflake is not created in this database",
            )
            .set_detail("The sequences in the schema _snowflake, which say what IDs this database has, were not found.")
            .set_hint("Create it in this database: CREATE EXTENSION pg_snowflake;"),
            Self::OtherLayout(other) => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the layout of this server is not the layout of this database",
            )
            .set_detail(format!(
                "The server makes IDs of \"{}\", the database has IDs of \"{other}\".",
                settings::layout()
            ))
            .set_hint(
                "Set pg_snowflake.layout and pg_snowflake.epoch to what the database has, and restart the server. \
                 If no IDs were made in the database yet, a superuser can call snowflake_adopt_layout() instead.",
            ),
            Self::NoRecord { form, epoch } => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the layout of this database is not on record",
            )
            .set_detail(format!(
                "The sequences _snowflake.layout and _snowflake.epoch hold {form} and {epoch}, which is no layout that this \
                 version knows."
            ))
            .set_hint(
                "Restore both from a dump. Or, if the IDs of this database were made in the server's layout, call \
                 snowflake_adopt_layout() as a superuser.",
            ),
            Self::Damaged(name) => error(ERRCODE_DATA_CORRUPTED, &format!("sequence _snowflake.{name} is damaged"))
                .set_detail("Its page on disk is not that of a sequence.")
                .set_hint("Other data may be damaged, too. Check the disk, and go over to a standby or restore a backup."),
            Self::LayoutInUse => {
                error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "IDs were made in this database already")
                    .set_detail("In another layout, new IDs could repeat them, and they would be misread.")
                    .set_hint(
                        "Set pg_snowflake.layout and pg_snowflake.epoch to what snowflake_database_layout() says.",
                    )
            }
        }
    }
}
