//! Errors of what a database has on record about its IDs.

use super::report::error;
use crate::postgres::wording::duration;
use crate::settings;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use snowflake_core::{Layout, Micros};

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
    /// A restore must not set this, as IDs were made in another layout.
    LayoutStays {
        /// The sequence.
        name: String,
        /// What it would hold.
        given: i64,
        /// The layout in use.
        layout: String,
    },
    /// A restore must not set the reservation, as IDs go on from the clock in a database that is in use.
    TimeStays {
        /// How far the reservation of the dump is ahead of the clock.
        ahead: Micros,
    },
    /// It has done so all the same, and the reservation is left out. A warning.
    TimeLeft {
        /// How far it is ahead of the clock.
        ahead: Micros,
    },
    /// These numbers of another layout were on record in a database that is in use. A warning.
    Replaced {
        /// The number of the fields and the tick.
        form: i64,
        /// The number of the epoch.
        epoch: i64,
    },
}

/// What to do where rows may have IDs of times to come.
const TIMES_TO_COME: &str = "If the rows were made with the worker ID of this server, give it another one before the clock gets \
                             there: else the same IDs could be made again. Otherwise, nothing needs to be done.";

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
            Self::LayoutStays { name, given, layout } => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                &format!("sequence _snowflake.{name} cannot be set: the layout of this database is in use"),
            )
            .set_detail(format!(
                "IDs in this database are of the layout \"{layout}\", and would be misread. A dump of another layout would set \
                 the sequence to {given}."
            ))
            .set_hint(
                "Restore that dump into a database of its own. Or leave its record out, if its rows may be misread here: \
                 pg_restore --list dump | grep -v 'SEQUENCE SET _snowflake' > list, and pg_restore -L list.",
            ),
            Self::TimeStays { ahead } => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                &format!(
                    "sequence _snowflake.reservation cannot be set {} ahead of the clock: this database makes IDs",
                    duration(ahead)
                ),
            )
            .set_detail("Rows of the dump may have IDs of times to come. IDs of this database go on from the clock.")
            .set_hint(TIMES_TO_COME),
            Self::TimeLeft { ahead } => {
                error(ERRCODE_WARNING, &format!("a reservation {} ahead of the clock was not taken over", duration(ahead)))
                    .set_detail(
                        "It came with a dump, whose rows may have IDs of times to come. IDs of this database go on from the clock.",
                    )
                    .set_hint(TIMES_TO_COME)
            }
            Self::Replaced { form, epoch } => {
                error(ERRCODE_WARNING, "the layout of this database was replaced on record, and is set again")
                    .set_detail(format!(
                        "The sequences _snowflake.layout and _snowflake.epoch held {form} and {epoch}, and IDs were made here in \
                         the layout \"{}\", by which they are read all the time.",
                        settings::layout()
                    ))
                    .set_hint(
                        "If the dump of another database was restored, its rows may have IDs of another layout. A dump that was \
                         made of this database meanwhile has the wrong one: make it again.",
                    )
            }
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
