//! The errors of `snowflake_adopt()` and `snowflake_release()`.

use super::report::error;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use snowflake_core::quote::shortened;
use snowflake_moving::ReleaseError;
use snowflake_moving::target::Unfit;

/// Why a table cannot be moved.
#[derive(Clone, Debug)]
pub enum MovingError {
    /// An argument is NULL: this one.
    Null(&'static str),
    /// There is no table with this OID.
    NoSuchTable(u32),
    /// This table was there when the call began, and is not any more.
    Dropped(String),
    /// These tables, or what depends on them, have changed while the call read what the catalogue says of them.
    Changed(Vec<String>),
    /// The table, by name, or its column does not fit.
    Unfit(String, Unfit),
    /// These columns make IDs already.
    AlreadyAdopted(Vec<String>),
    /// The lock of this table was not granted in time; these have it.
    NotLocked(String, Vec<String>),
    /// The caller does not own these tables.
    NotOwner(Vec<String>),
    /// The table, its partitions and the tables that inherit from it belong to several roles.
    SeveralOwners(String),
    /// The caller may not read this column of this table.
    NotReadable(String, String),
    /// Values of this column of this table are in this foreign table.
    ForeignValues(String, String, String),
    /// Something stands in the way.
    Obstacles {
        /// Of these columns.
        columns: Vec<String>,
        /// Whether they are to lose their IDs, rather than to get them.
        is_release: bool,
        /// The obstacles.
        obstacles: Vec<String>,
        /// Ways around them.
        hints: Vec<&'static str>,
    },
    /// The column cannot be released.
    Release(String, ReleaseError),
    /// A word for what to do with views that means nothing.
    Views(String),
    /// This view would not be as it was.
    ViewChanged(String),
    /// A name in the definition of a view means something else than when it was created.
    ViewRebound {
        /// The view.
        view: String,
        /// The object that it depended on, and does not any more.
        before: Option<String>,
        /// The object that it depends on now.
        now: Option<String>,
    },
    /// The default of this column calls another function than was meant.
    OtherDefault(String),
    /// Rows of this table could not be written any more, as this message and detail say. The move is made all the same where something was
    /// waived.
    Unwritable(String, String, Option<String>, bool),
    /// No row could be written into this table, before the move and after it: by the defaults, and as a
    /// copy, where there is a row. What is deferred was not tried where triggers wait for the end of the
    /// transaction.
    Untried { table: String, by_defaults: String, by_copy: Option<String>, others_wait: bool },
    /// The transaction is not READ COMMITTED.
    Isolation,
    /// A query of the extension's own failed.
    Query(String),
}

impl MovingError {
    pub(super) fn report(self) -> ErrorReport {
        match self {
            Self::Null(argument) => null(argument),
            Self::NoSuchTable(oid) => no_such_table(oid),
            Self::Dropped(table) => dropped(&table),
            Self::Changed(tables) => changed(&tables),
            Self::Unfit(table, problem) => unfit(&table, problem),
            Self::AlreadyAdopted(columns) => already_adopted(&columns),
            Self::NotLocked(table, holders) => not_locked(&table, &holders),
            Self::NotOwner(tables) => not_owner(&tables),
            Self::SeveralOwners(table) => several_owners(&table),
            Self::NotReadable(table, column) => not_readable(&table, &column),
            Self::ForeignValues(table, column, foreign) => foreign_values(&table, &column, &foreign),
            Self::Obstacles { columns, is_release, obstacles, hints } => {
                in_the_way(&columns, is_release, &obstacles, &hints)
            }
            Self::Release(column, problem) => not_released(&column, problem),
            Self::Views(text) => bad_views(&text),
            Self::ViewChanged(view) => view_changed(&view),
            Self::ViewRebound { view, before, now } => view_rebound(&view, before, now),
            Self::OtherDefault(column) => other_default(&column),
            Self::Unwritable(table, problem, detail, is_made) => unwritable(&table, &problem, detail, is_made),
            Self::Untried { table, by_defaults, by_copy, others_wait } => {
                untried(&table, &by_defaults, by_copy, others_wait)
            }
            Self::Isolation => isolation(),
            Self::Query(problem) => {
                error(ERRCODE_INTERNAL_ERROR, "could not read what there is to move").set_detail(problem)
            }
        }
    }
}

// The arguments, and the transaction.

fn null(argument: &str) -> ErrorReport {
    error(ERRCODE_NULL_VALUE_NOT_ALLOWED, &format!("{argument} must not be NULL"))
        .set_hint("For example: SELECT * FROM snowflake_adopt_plan('orders');")
}

fn no_such_table(oid: u32) -> ErrorReport {
    error(ERRCODE_UNDEFINED_TABLE, &format!("there is no table with OID {oid}"))
        .set_hint("Give a table, for example 'orders'.")
}

fn bad_views(text: &str) -> ErrorReport {
    error(ERRCODE_INVALID_PARAMETER_VALUE, &format!("views cannot be \"{}\"", shortened(text)))
        .set_hint("Use \"refuse\", or \"recreate\" to have views dropped and created again.")
}

fn isolation() -> ErrorReport {
    error(ERRCODE_ACTIVE_SQL_TRANSACTION, "a table can be moved in a READ COMMITTED transaction only")
        .set_detail("At other levels, the snapshot is older than the locks, and does not show what others committed in between.")
        .set_hint("Begin the transaction with BEGIN ISOLATION LEVEL READ COMMITTED;")
}

// What others did meanwhile.

fn dropped(table: &str) -> ErrorReport {
    error(ERRCODE_UNDEFINED_TABLE, &format!("table {table} was dropped while this call waited for it"))
        .set_hint("If another one has its name by now, call this again.")
}

fn changed(tables: &[String]) -> ErrorReport {
    error(ERRCODE_T_R_SERIALIZATION_FAILURE, &format!("others changed {} meanwhile", tables.join(", ")))
        .set_detail(
            "Something that belongs to it, or depends on it, was dropped, renamed or altered while this call read it.",
        )
        .set_hint("Nothing was changed by this call. Call it again.")
}

fn not_locked(table: &str, holders: &[String]) -> ErrorReport {
    let detail = match holders {
        [] => "Whoever had it, or the name of its schema, has none any more.".to_owned(),
        holders => format!("It is held by {}.", holders.join(";\nby ")),
    };
    error(ERRCODE_LOCK_NOT_AVAILABLE, &format!("the lock of {table} was not granted in time")).set_detail(detail).set_hint(
        "Nothing was changed. Call this again when those transactions have ended; SELECT pg_terminate_backend(...) ends \
         one. A call waits for lock_timeout, or 5 seconds where that is 0: while it waits, all others wait behind it.",
    )
}

// Who owns the tables, and may read them.

fn not_owner(tables: &[String]) -> ErrorReport {
    let noun = if tables.len() == 1 { "table" } else { "tables" };
    error(ERRCODE_INSUFFICIENT_PRIVILEGE, &format!("must be owner of {noun} {}", tables.join(", "))).set_detail(
        "These would have to change: the table itself, its partitions and the tables that inherit \
         from it, and tables with foreign keys that refer to it.",
    )
}

fn several_owners(table: &str) -> ErrorReport {
    let message = format!("table {table} and its partitions or heirs belong to several roles");
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail("A query of all of them would run functions of each of these roles.")
        .set_hint("Give all these tables the same owner.")
}

fn not_readable(table: &str, column: &str) -> ErrorReport {
    let message = format!("the values of column {column} of table {table} may not be read");
    error(ERRCODE_INSUFFICIENT_PRIVILEGE, &message).set_hint(
        "This needs USAGE on the schema, SELECT on the column, and no row-level security that applies to the role.",
    )
}

fn foreign_values(table: &str, column: &str, foreign: &str) -> ErrorReport {
    let message = format!(
        "the values of column {column} of table {table} are not read, as some are in the foreign table {foreign}"
    );
    error(ERRCODE_FEATURE_NOT_SUPPORTED, &message)
        .set_hint(format!("Look whether they are all below the next ID: SELECT max({column}) FROM {table};"))
}

// What stands in the way of a plan.

fn already_adopted(columns: &[String]) -> ErrorReport {
    match columns {
        [column] => {
            let problem = format!("column {column} makes snowflake IDs already");
            error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &problem)
                .set_detail("Its default is snowflake_next(), and all columns that refer to it are bigint.")
        }
        columns => {
            let problem = format!("columns {} make snowflake IDs already", columns.join(", "));
            error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &problem)
        }
    }
}

fn in_the_way(columns: &[String], is_release: bool, obstacles: &[String], hints: &[&str]) -> ErrorReport {
    let message = format!(
        "column{} {} cannot {} yet",
        if columns.len() == 1 { "" } else { "s" },
        columns.join(", "),
        if is_release { "be released" } else { "get snowflake IDs" }
    );
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail(format!("{}.", obstacles.join(".\n")))
        .set_hint(format!("Nothing was changed. {}", hints.join(" ")))
}

fn not_released(column: &str, problem: ReleaseError) -> ErrorReport {
    match problem {
        ReleaseError::NotAdopted => error(
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            &format!("the default of column {column} is not snowflake_next()"),
        ),
        ReleaseError::NoValueLeft => error(
            ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
            &format!("no bigint is above the highest value of column {column}"),
        )
        .set_hint("Give a start in a range of values that no row has."),
        ReleaseError::Taken(start) => {
            error(ERRCODE_INVALID_PARAMETER_VALUE, &format!("a row has the value {start} in column {column}"))
                .set_hint("Give a start that no row has, or leave it out for the value after the highest.")
        }
        ReleaseError::Nullable => error(
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            &format!("column {column} may be NULL, and an identity may not"),
        )
        .set_hint("Set it NOT NULL first, or leave identity out."),
        ReleaseError::OldIdentity => error(
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            &format!("column {column} still has the sequence of an identity"),
        )
        .set_detail("pgEdge's conversion leaves it there. PostgreSQL drops it with the column only.")
        .set_hint("Leave identity out: that sequence is used again."),
        ReleaseError::Heirs => error(
            ERRCODE_FEATURE_NOT_SUPPORTED,
            &format!("tables inherit column {column}, and would not inherit an identity"),
        )
        .set_hint("Leave identity out: they inherit the default."),
    }
}

// What would not be as it was, or was meant.

fn view_changed(view: &str) -> ErrorReport {
    let message = format!("{view} cannot be created again exactly as it is");
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail("Its owner, privileges, options, columns, comments or indexes would differ.")
        .set_hint(
            "Nothing was changed. Privileges that ALTER DEFAULT PRIVILEGES gives to new views can be the cause. \
             Drop the view, call this again, and create it again, in one transaction.",
        )
}

fn view_rebound(view: &str, before: Option<String>, now: Option<String>) -> ErrorReport {
    let message = format!("{view} cannot be created again exactly as it is");
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail(match (before, now) {
            (Some(before), Some(now)) => format!("It would depend on {now}, and no longer on {before}."),
            (None, Some(now)) => format!("It would depend on {now}, too."),
            (before, None) => format!("It would no longer depend on {}.", before.unwrap_or_default()),
        })
        .set_hint(
            "Nothing was changed. The definition has a name that means something else for a bigint. Drop the view, call this \
             again, and create the view as you want it, in one transaction.",
        )
}

fn other_default(column: &str) -> ErrorReport {
    let message = format!("the default of column {column} would call another function");
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail("The name snowflake_next(), with the schema of the extension, means a function that is not the extension's.")
        .set_hint("Nothing was changed. Find out who created that function.")
}

fn unwritable(table: &str, problem: &str, detail: Option<String>, is_made: bool) -> ErrorReport {
    let detail = detail.map_or_else(String::new, |detail| format!(": {detail}"));
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &format!("rows of table {table} could not be written any more"))
        .set_detail(format!("A test row failed that could be written before the move: {problem}{detail}"))
        .set_hint(if is_made {
            "The table is moved anyway, because of pg_snowflake.waive. Fix what failed."
        } else {
            "Nothing was changed. Fix what failed, or SET pg_snowflake.probe = off to move the table without a try."
        })
}

fn untried(table: &str, by_defaults: &str, by_copy: Option<String>, others_wait: bool) -> ErrorReport {
    let by_copy = match by_copy {
        Some(problem) => format!("A copy of the newest row fails, too: {problem}"),
        None => "There is no other row to copy.".to_owned(),
    };
    let remedy = if others_wait {
        "Call this in a transaction of its own: triggers wait for the end of this one, so what is deferred was not tried."
    } else {
        "Write one, in this transaction, before you commit."
    };
    error(ERRCODE_WARNING, &format!("table {table} could not be tried: {by_defaults}"))
        .set_detail(format!("A row of defaults failed so before the move and after it. {by_copy}"))
        .set_hint(format!("Whether rows can be written after the move was not seen. {remedy}"))
}

// The table or the column.

fn unfit(table: &str, problem: Unfit) -> ErrorReport {
    match problem {
        Unfit::NotATable(kind) => error(ERRCODE_WRONG_OBJECT_TYPE, &format!("\"{table}\" is {kind}, not a table")),
        Unfit::System => error(ERRCODE_WRONG_OBJECT_TYPE, &format!("\"{table}\" is a system catalog")),
        Unfit::OthersTemporary => {
            error(ERRCODE_WRONG_OBJECT_TYPE, &format!("\"{table}\" is a temporary table of another session"))
        }
        Unfit::Partition(parent) => {
            error(ERRCODE_WRONG_OBJECT_TYPE, &format!("\"{table}\" is a partition of {parent}"))
                .set_hint(format!("Give the partitioned table at the top, {parent} or its parent."))
        }
        Unfit::Child(parents) => {
            let parents = parents.join(", ");
            error(ERRCODE_WRONG_OBJECT_TYPE, &format!("\"{table}\" inherits from {parents}"))
                .set_hint("Give the table that it inherits from: all that inherit the column change with it.")
        }
        Unfit::NoSuchColumn(column) => {
            error(ERRCODE_UNDEFINED_COLUMN, &format!("column \"{column}\" of \"{table}\" does not exist"))
        }
        Unfit::WhichColumn(candidates) => {
            let detail = match &*candidates {
                [] => "It has no column of an integer type.".to_owned(),
                _ => format!("These are of an integer type: {}.", candidates.join(", ")),
            };
            let hint = match &*candidates {
                [] => "Add a bigint column for the IDs, with DEFAULT snowflake_next().",
                _ => "Give the column, for example: SELECT * FROM snowflake_adopt_plan('orders', 'id');",
            };
            error(ERRCODE_AMBIGUOUS_COLUMN, &format!("it is not clear which column of \"{table}\" is to get the IDs"))
                .set_detail(detail)
                .set_hint(hint)
        }
        Unfit::Type(column, of_type) => {
            let hint = match of_type.rsplit('.').next() {
                Some("snowflake_id") => {
                    "Make it a bigint first, by ALTER TABLE; it can be a snowflake_id again afterwards."
                }
                _ => "Add a bigint column for the IDs, with DEFAULT snowflake_next().",
            };
            error(ERRCODE_DATATYPE_MISMATCH, &format!("column \"{column}\" of \"{table}\" is of type {of_type}"))
                .set_detail("Snowflake IDs take a column of type smallint, integer or bigint, or a domain over bigint.")
                .set_hint(hint)
        }
        Unfit::Generated(column) => {
            error(ERRCODE_WRONG_OBJECT_TYPE, &format!("column \"{column}\" of \"{table}\" is a generated column"))
        }
    }
}
