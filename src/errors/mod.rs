//! Every error that a function can end with, and its SQLSTATE, message, detail and hint.

pub mod moving;
pub mod partitions;
pub mod preflight;
mod report;

use self::moving::MovingError;
use self::partitions::PartitionError;
use self::preflight::PreflightError;
use self::report::{error, outside};
use crate::time::timestamptz;
use crate::wording::{duration, layout_hint, preload_line, sentence};
use crate::{encoding, settings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::notation::NotationError;
use snowflake_core::quote::shortened;
use snowflake_core::text::{FORMS, TextError};
use snowflake_core::{Field, FieldError, Layout, Micros, NotAnId, UnixMicros};

/// The parameter that says how many replication origins may be in use.
#[cfg(not(since_pg18))]
const SLOTS: &str = "max_replication_slots";
#[cfg(since_pg18)]
const SLOTS: &str = "max_active_replication_origins";

/// What to do about numbers that are no IDs.
const LEAVE_OUT: &str = "Leave such numbers out, for example with WHERE id >= 0.";

/// Why a call fails.
#[derive(Clone, Debug)]
pub enum Error {
    /// The library is not in shared_preload_libraries.
    NotPreloaded,
    /// This function needs a primary, and the server is a standby, or still recovering.
    InRecovery(&'static str),
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
    /// Another extension plans with an index that only the planner was told of.
    PlannedByOthers,
    /// The page of this sequence is not that of a sequence.
    Damaged(String),
    /// The layout cannot be adopted, as IDs were made in another one.
    LayoutInUse,
    /// The configuration names no worker.
    NoWorker(FieldError),
    /// The server has no lease of a worker, or it ends too early.
    NoLease {
        /// Where the last one ended.
        until: Option<UnixMicros>,
        /// What keeps it from having one.
        trouble: Option<String>,
    },
    /// The server is being stopped, and has given its worker back.
    Stopping,
    /// The records of the registry cannot be listed.
    NoListing(String),
    /// No registry is set.
    NoRegistry,
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
        /// What time it is.
        now: UnixMicros,
    },
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
    /// A table holds IDs above the one that the server is to go back to.
    RowsAbove {
        /// The table and column, as SQL writes them.
        column: String,
        /// The highest of its IDs.
        highest: i64,
    },
    /// A negative number of IDs is asked for.
    NegativeCount(i32),
    /// The text is no layout.
    NotALayout(String, NotationError),
    /// There is no text form of that name.
    NoSuchForm(String),
    /// The number is negative, and has no text.
    NoText(i64),
    /// The text is no ID in the form.
    NotInForm {
        /// The text.
        text: String,
        /// The form's name.
        form: &'static str,
        /// What is wrong.
        problem: TextError,
    },
    /// The number is no ID of the layout.
    NotAnId(NotAnId),
    /// The time of an ID to be made, a finite `timestamptz`, lies outside the layout's time.
    Time(i64),
    /// `infinity` in place of an instant.
    Infinite,
    /// A worker, datacenter or sequence that cannot stand in an ID.
    Part(FieldError),
    /// A negative worker, datacenter or sequence.
    NegativePart(Field, i32),
    /// `snowflake_create_partitions()` cannot make the partitions.
    Partitions(PartitionError),
    /// `snowflake_adopt()` or `snowflake_release()` cannot move the table.
    Moving(MovingError),
    /// The arguments of `snowflake_preflight()` mean nothing.
    Preflight(PreflightError),
}

impl From<PartitionError> for Error {
    fn from(error: PartitionError) -> Self {
        Self::Partitions(error)
    }
}

impl From<MovingError> for Error {
    fn from(error: MovingError) -> Self {
        Self::Moving(error)
    }
}

impl From<PreflightError> for Error {
    fn from(error: PreflightError) -> Self {
        Self::Preflight(error)
    }
}

impl From<NotAnId> for Error {
    fn from(error: NotAnId) -> Self {
        Self::NotAnId(error)
    }
}

impl Error {
    /// Ends the call with this error.
    #[cold]
    #[inline(never)]
    pub fn raise(self) -> ! {
        self.raise_in(settings::layout())
    }

    /// Ends a call about IDs of this layout.
    #[cold]
    #[inline(never)]
    pub fn raise_in(self, layout: &Layout) -> ! {
        let mut report = self.report(layout);
        if let Some(detail) = report.detail().map(encoding::shown) {
            report = report.set_detail(detail);
        }
        if let Some(hint) = report.hint().map(encoding::shown) {
            report = report.set_hint(hint);
        }
        report.report(PgLogLevel::ERROR);
        unreachable!("reporting an ERROR does not return")
    }

    /// Its message and its hint, for a row of a result.
    pub fn words(self) -> (String, Option<String>) {
        let report = self.report(settings::layout());
        (report.message().to_owned(), report.hint().map(str::to_owned))
    }

    fn report(self, layout: &Layout) -> ErrorReport {
        use PgSqlErrorCode::*;
        match self {
            Self::NotPreloaded => {
                let message = "pg_snowflake must be loaded via shared_preload_libraries";
                error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
                    .set_detail("The state from which IDs are made lives in shared memory. Decoding works without it.")
                    .set_hint(format!("Put into postgresql.conf, and restart the server: {}", preload_line()))
            }
            Self::InRecovery(function) => {
                let message = format!("cannot execute {function}() during recovery");
                error(ERRCODE_READ_ONLY_SQL_TRANSACTION, &message).set_hint(match function {
                    "snowflake_next" => "Make IDs on the primary. Decoding works here.",
                    _ => "Call it on the primary.",
                })
            }
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
            Self::PlannedByOthers => error(
                ERRCODE_FEATURE_NOT_SUPPORTED,
                "another extension plans with an index that pg_snowflake has described for the planner alone",
            )
            .set_detail("There is no such index: it only says what statistics there are.")
            .set_hint("Plan such queries with SET pg_snowflake.plan_by_time = off, and report the extension's name."),
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
            Self::NoWorker(missing) => {
                let field = match missing {
                    FieldError::Missing(field) | FieldError::NoSuchField(field) => field,
                    FieldError::TooHigh { field, .. } => field,
                };
                let message = format!("pg_snowflake.{field}_id is not set");
                error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
                    .set_detail(format!(
                        "Every server that makes IDs needs a {field} ID from 0 to {}, different from all others'.",
                        layout.max(field)
                    ))
                    .set_hint(format!(
                        "For example: ALTER SYSTEM SET pg_snowflake.{field}_id = 1; SELECT pg_reload_conf();"
                    ))
            }
            Self::NoLease { until, trouble } => {
                let ended = until.map(|until| {
                    let until = timestamptz::display(timestamptz::to_datum(until));
                    format!("The last lease allows IDs up to {until}.")
                });
                let trouble = trouble.unwrap_or_else(|| "The registry has not answered yet.".to_owned());
                let detail = [ended, Some(trouble)].into_iter().flatten().collect::<Vec<_>>().join(" ");
                error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "this server has no lease of a worker ID")
                    .set_detail(format!("{detail} The call waited {} (pg_snowflake.max_wait).", duration(settings::max_wait())))
                    .set_hint("See snowflake_status() and snowflake_workers(), and the server's log.")
            }
            Self::Stopping => error(ERRCODE_ADMIN_SHUTDOWN, "this server is being stopped, and makes no more IDs")
                .set_detail("It has given its worker ID back to the registry."),
            Self::NoListing(why) => {
                error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the registry of worker IDs cannot be read").set_detail(why)
            }
            Self::NoRegistry => {
                error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "this server has no registry of worker IDs")
                    .set_detail("Its worker ID is that of pg_snowflake.worker_id.")
                    .set_hint("Set pg_snowflake.registry in postgresql.conf, and restart the server.")
            }
            Self::ClockBehind { behind, waited } => {
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
            Self::ClockStopped { waited } => error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "the clock stands still")
                .set_detail(format!("The call waited {} for the next tick of the layout.", duration(waited)))
                .set_hint("Check the system's clock."),
            Self::Exhausted { now } if now >= layout.end() => {
                error(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "the layout is exhausted")
                    .set_detail(format!("The layout \"{layout}\" ends at {}, and the clock is past it.", layout.end()))
                    .set_hint("Check the system's clock. If it is right, a layout with a later end is needed.")
            }
            Self::Exhausted { .. } => {
                error(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, "the layout is used up to its end")
                    .set_detail(format!(
                        "The layout \"{layout}\" ends at {}. The clock is not there yet, but IDs were made or reserved up to \
                         then.",
                        layout.end()
                    ))
                    .set_hint(
                        "Find the highest ID that any database of this server holds, and call snowflake_rewind() with it.",
                    )
            }
            Self::CopyTooFar { ahead, wait } => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                &format!("the IDs of this database reach up to {} ahead of the clock", duration(ahead)),
            )
            .set_detail(format!(
                "The sequence _snowflake.reservation says so. It was set by the restore of a dump, by pg_upgrade, or by hand. \
                 This database makes IDs again in {}, when the clock is near enough. Other databases are not affected.",
                duration(wait)
            ))
            .set_hint(
                "If the clock is wrong, set it right. If it is right, wait; or find the highest ID in this database and call \
                 snowflake_rewind() with it.",
            ),
            Self::NoSlots => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "snowflake IDs need a replication origin, and this server allows none",
            )
            .set_detail(format!("{SLOTS} is 0. The origin holds the reservation of this server's IDs."))
            .set_hint(format!("Set {SLOTS} to at least 1 in postgresql.conf, and restart the server.")),
            Self::SlotsFull => error(
                ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                "snowflake IDs need a replication origin, and all slots for origins are taken",
            )
            .set_detail("The origin holds the reservation of this server's IDs. No ID was made.")
            .set_hint(format!(
                "Raise {SLOTS} in postgresql.conf and restart the server, or drop an origin of pg_replication_origin_status \
                 that is not in use."
            )),
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
                "Find the highest ID that any database of this server holds, and call snowflake_rewind() with it as a superuser.",
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
            Self::RowsAbove { column, highest } => error(
                ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "this database holds IDs above the one to go back to",
            )
            .set_detail(format!("The highest ID in {column} is {highest}."))
            .set_hint("Give that ID, or one above it, or delete or renumber such rows first."),
            Self::NegativeCount(count) => {
                error(ERRCODE_INVALID_PARAMETER_VALUE, &format!("count must not be negative: {count}"))
                    .set_hint("Ask for 0 or more IDs.")
            }
            Self::NotALayout(text, problem) => {
                error(ERRCODE_INVALID_PARAMETER_VALUE, &format!("\"{}\" is not a layout", shortened(&text)))
                    .set_detail(sentence(&problem.to_string()))
                    .set_hint(layout_hint())
            }
            Self::NoSuchForm(name) => error(ERRCODE_INVALID_PARAMETER_VALUE, &format!("\"{}\" is not a text form", shortened(&name)))
                .set_hint(format!("Use one of {}.", names_of_forms())),
            Self::NoText(id) => {
                error(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, &format!("{id} has no text form"))
                    .set_detail(format!("IDs range from 0 to {}.", i64::MAX))
                    .set_hint(LEAVE_OUT)
            }
            Self::NotInForm { text, form, problem } => {
                let code = match problem {
                    TextError::TooLarge => ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                    _ => ERRCODE_INVALID_TEXT_REPRESENTATION,
                };
                error(code, &format!("\"{}\" is not a snowflake ID in the form {form}", shortened(&text)))
                    .set_detail(sentence(&problem.to_string()))
                    .set_hint(format!("Give the form that it was written in, one of {}.", names_of_forms()))
            }
            Self::NotAnId(NotAnId(id)) => {
                error(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, &format!("{id} is not a snowflake ID"))
                    .set_detail(format!("IDs of the layout \"{layout}\" range from 0 to {}.", layout.max_id()))
                    .set_hint(LEAVE_OUT)
            }
            Self::Time(instant) => outside(instant, layout),
            Self::Infinite => error(ERRCODE_DATETIME_FIELD_OVERFLOW, "an ID cannot have an infinite time")
                .set_hint("Use a finite timestamp."),
            Self::Part(part) => {
                let code = match part {
                    FieldError::Missing(_) => ERRCODE_NULL_VALUE_NOT_ALLOWED,
                    FieldError::NoSuchField(_) => ERRCODE_INVALID_PARAMETER_VALUE,
                    FieldError::TooHigh { .. } => ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                };
                error(code, &part.to_string()).set_detail(format!("The layout is \"{layout}\"."))
            }
            Self::NegativePart(field, value) => {
                error(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, &format!("{field} must not be negative: {value}"))
                    .set_detail(format!("The layout is \"{layout}\"."))
            }
            Self::Partitions(problem) => problem.report(layout),
            Self::Moving(problem) => problem.report(),
            Self::Preflight(problem) => problem.report(layout),
        }
    }
}

fn names_of_forms() -> String {
    FORMS.iter().map(|form| form.name).collect::<Vec<_>>().join(", ")
}
