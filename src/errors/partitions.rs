//! The errors of `snowflake_create_partitions()` and `snowflake_maintain_partitions()`.

use super::report::{error, outside, times};
use crate::postgres::encoding;
use crate::postgres::time::timestamptz;
use crate::postgres::wording::duration;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use pgrx::prelude::*;
use snowflake_core::pieces::upkeep::MAX_AHEAD;
use snowflake_core::pieces::{Edge, MAX_PIECES, PieceLengthError, PiecesError};
use snowflake_core::quote::shortened;
use snowflake_core::{Layout, NotAnId};
use std::ops::Range;

/// Why partitions cannot be made.
#[derive(Clone, Debug)]
pub enum PartitionError {
    /// There is no table with this OID.
    NoSuchTable(u32),
    /// An argument of `snowflake_create_partitions` is NULL: this one.
    Null(&'static str),
    /// The caller does not own the table.
    NotOwner(String),
    /// The owner of a table may not create tables in its schema.
    MayNotCreate {
        /// The table, as statements write it.
        table: String,
        /// Its owner, quoted.
        role: String,
        /// Its schema, quoted.
        schema: String,
    },
    /// The table is not partitioned by a range of a `bigint` column; what it is instead, as a sentence.
    Key(String, String),
    /// `since` or `until` is infinite: this one.
    Infinite(&'static str),
    /// The interval, as text, cannot be the length of partitions.
    Step(String, PieceLengthError),
    /// The time in question, two `timestamptz`, is not cut into such pieces.
    Range(i64, i64, PiecesError),
    /// The name of a partition would have more than 63 bytes.
    Name(Box<Partition>),
    /// There is a relation with the name of this partition, and it is not this partition.
    NameTaken(Box<Partition>),
    /// There is a partition, the first, that overlaps the second, which is to be made.
    Overlap(Box<(Partition, Partition)>),
    /// The default partition has rows of one that is to be made.
    DefaultRows(Box<DefaultRows>),
    /// An argument of `snowflake_maintain_partitions` is NULL: this one.
    NothingToMaintain(&'static str),
    /// A part of this argument, an interval as text, is negative.
    NegativeSpan(&'static str, String),
    /// This is no word for what happens to old partitions.
    Expired(String),
    /// A word for what to do with rows of the default partition that means nothing.
    DefaultRowsWord(String),
    /// The time from the first `timestamptz`, the present, to the second is not cut into such pieces.
    Ahead(i64, i64, PiecesError),
    /// A partition that lies in the time ahead has a bound that is no time.
    NoTime(Box<Partition>),
    /// The table has a default partition, so no partition can be detached concurrently.
    HasDefault(String),
    /// This part of the default partition belongs to this role, and the table to another one: all quoted.
    OtherOwner { part: String, owner: String, table: String },
    /// The lock of this table was not granted in time.
    NotLocked(String),
    /// The table of `snowflake_declare_keys()` is NULL.
    NothingToDeclare,
    /// Keys of this table, quoted, are not known to be IDs of the layout, whatever its owner says: why.
    OtherKeys { table: String, reason: String },
}

/// A partition in an error.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The name of its table, with the schema and quoted as in a statement.
    pub parent: String,
    /// Its own name.
    pub name: String,
    /// What it holds.
    pub ids: Range<Edge>,
}

/// Rows in the default partition that belong to a partition that is to be made.
#[derive(Clone, Debug)]
pub struct DefaultRows {
    /// The partition that is to be made.
    pub wanted: Partition,
    /// The lowest ID in question.
    pub id: i64,
    /// The default partition's name.
    pub name: String,
    /// Whether this database has the procedure that moves such rows.
    pub has_procedure: bool,
}

impl PartitionError {
    pub(super) fn report(self, layout: &Layout) -> ErrorReport {
        match self {
            Self::NoSuchTable(oid) => no_such_table(oid),
            Self::Null(argument) => null(argument, NULL_HINT),
            Self::NotOwner(table) => not_owner(&table),
            Self::MayNotCreate { table, role, schema } => may_not_create(&table, &role, &schema),
            Self::Key(table, detail) => other_key(&table, detail),
            Self::Infinite(argument) => infinite(argument),
            Self::Step(every, problem) => bad_step(&every, problem),
            Self::Range(since, until, problem) => bad_range(since, until, problem, layout),
            Self::Name(partition) => long_name(&partition),
            Self::NameTaken(partition) => name_taken(&partition, layout),
            Self::Overlap(partitions) => overlap(&partitions.0, &partitions.1, layout),
            Self::NothingToMaintain(argument) => null(argument, NOTHING_TO_MAINTAIN_HINT),
            Self::NegativeSpan(argument, interval) => negative_span(argument, &interval),
            Self::Expired(word) => bad_expired(&word),
            Self::DefaultRowsWord(word) => bad_default_rows(&word),
            Self::Ahead(now, until, problem) => bad_ahead(now, until, problem, layout),
            Self::NoTime(partition) => no_time(&partition, layout),
            Self::HasDefault(table) => has_default(&table),
            Self::OtherOwner { part, owner, table } => other_owner(&part, &owner, &table),
            Self::NotLocked(table) => not_locked(&table),
            Self::DefaultRows(rows) => default_rows(&rows, layout),
            Self::NothingToDeclare => null("parent", "For example: SELECT snowflake_declare_keys('orders');"),
            Self::OtherKeys { table, reason } => other_keys(&table, &reason),
        }
    }
}

// The arguments.

const NULL_HINT: &str =
    "For example: SELECT snowflake_create_partitions('orders', '1 month', '2026-01-01', '2027-01-01');";

const NOTHING_TO_MAINTAIN_HINT: &str =
    "For example: SELECT * FROM snowflake_maintain_partitions('orders', '1 month', '3 months');";

fn null(argument: &str, hint: &str) -> ErrorReport {
    error(ERRCODE_NULL_VALUE_NOT_ALLOWED, &format!("{argument} must not be NULL")).set_hint(hint)
}

fn infinite(argument: &str) -> ErrorReport {
    error(ERRCODE_DATETIME_FIELD_OVERFLOW, &format!("{argument} must be finite")).set_hint(
        "A partition without a lower or upper bound is made by CREATE TABLE ... PARTITION OF, with MINVALUE or \
         MAXVALUE.",
    )
}

fn bad_step(every: &str, problem: PieceLengthError) -> ErrorReport {
    let message = match problem {
        PieceLengthError::Negative => "every must be positive in all of its parts",
        PieceLengthError::NotWholeSeconds => "every must be one or more whole seconds",
    };
    error(ERRCODE_INVALID_PARAMETER_VALUE, message)
        .set_detail(format!("It is \"{every}\"."))
        .set_hint("Use a step such as '1 month', '1 day' or '6 hours'; the smallest is '1 second'.")
}

fn negative_span(argument: &str, interval: &str) -> ErrorReport {
    error(ERRCODE_INVALID_PARAMETER_VALUE, &format!("{argument} must not be negative in any of its parts"))
        .set_detail(format!("It is \"{interval}\"."))
        .set_hint("Give a length of time, such as '3 months'.")
}

fn bad_expired(word: &str) -> ErrorReport {
    let message =
        format!("expired must be \"detach\", \"detach concurrently\" or \"drop\", not \"{}\"", shortened(word));
    error(ERRCODE_INVALID_PARAMETER_VALUE, &message)
        .set_hint("Detached partitions stay as tables; dropped ones are gone with their rows.")
}

fn bad_default_rows(word: &str) -> ErrorReport {
    let message = format!("default_rows must be \"refuse\" or \"move\", not \"{}\"", shortened(word));
    error(ERRCODE_INVALID_PARAMETER_VALUE, &message)
        .set_hint("Rows of the default partition are in the way of partitions for them; \"move\" puts them there.")
}

fn bad_range(since: i64, until: i64, problem: PiecesError, layout: &Layout) -> ErrorReport {
    let [from, to] = [since, until].map(timestamptz::display);
    let whole = format!("The range is from {from} to before {to}.");
    match problem {
        PiecesError::Empty => error(ERRCODE_INVALID_PARAMETER_VALUE, "since must be before until")
            .set_detail(format!("since is {from}, until is {to}."))
            .set_hint("until is the first instant that needs no partition any more."),
        PiecesError::SinceOutOfRange => outside(since, layout).set_hint("Give a since within that time."),
        PiecesError::UntilOutOfRange => outside(until, layout).set_hint("Give an until within that time."),
        PiecesError::EndsTooLate => {
            let message = "the last partition would end after the last snowflake IDs";
            error(ERRCODE_DATETIME_FIELD_OVERFLOW, message).set_detail(format!("{whole} {}", times(layout))).set_hint(
                "The last partition is a whole one. Give an earlier until or a shorter step, and make the \
                     very last by CREATE TABLE ... PARTITION OF, with MAXVALUE.",
            )
        }
        PiecesError::ShorterThanTick => {
            error(ERRCODE_INVALID_PARAMETER_VALUE, "every is shorter than a tick of the layout")
                .set_detail(format!("A tick of the layout \"{layout}\" is the shortest time that IDs tell."))
                .set_hint(format!("Use a step of at least {}.", duration(layout.tick_length())))
        }
        PiecesError::TooMany(count) => {
            error(ERRCODE_PROGRAM_LIMIT_EXCEEDED, &format!("that would be {count} partitions"))
                .set_detail(format!("{whole} One call makes at most {MAX_PIECES} partitions."))
                .set_hint("Give a longer step, or a shorter range.")
        }
    }
}

fn bad_ahead(now: i64, until: i64, problem: PiecesError, layout: &Layout) -> ErrorReport {
    let report = bad_range(now, until, problem, layout);
    match problem {
        PiecesError::SinceOutOfRange => report.set_hint("That is what the server's clock says. Set it right."),
        PiecesError::UntilOutOfRange => report.set_hint("Give a shorter ahead."),
        PiecesError::TooMany(_) => report
            .set_detail(format!("At most {MAX_AHEAD} future partitions are looked for."))
            .set_hint("Give a longer every, or a shorter ahead."),
        _ => report,
    }
}

// The table, and who may do what.

fn no_such_table(oid: u32) -> ErrorReport {
    error(ERRCODE_UNDEFINED_TABLE, &format!("there is no table with OID {oid}"))
        .set_hint("Give the partitioned table, for example 'orders'.")
}

fn not_owner(table: &str) -> ErrorReport {
    error(ERRCODE_INSUFFICIENT_PRIVILEGE, &format!("must be owner of table {table}"))
        .set_hint("Only its owner can give a table partitions.")
}

fn may_not_create(table: &str, role: &str, schema: &str) -> ErrorReport {
    error(ERRCODE_INSUFFICIENT_PRIVILEGE, &format!("role {role} may not create partitions in schema {schema}"))
        .set_detail(format!("Partitions belong to the owner of their table, {table}, and are created as that role."))
        .set_hint(format!("For example: GRANT CREATE ON SCHEMA {schema} TO {role};"))
}

fn other_key(table: &str, detail: String) -> ErrorReport {
    let message = format!("table \"{table}\" is not partitioned by a range of a bigint column");
    error(ERRCODE_WRONG_OBJECT_TYPE, &message)
        .set_detail(detail)
        .set_hint("Create the table with PARTITION BY RANGE (id), where id is the bigint column of its IDs.")
}

fn has_default(table: &str) -> ErrorReport {
    let message = format!("partitions of {table} cannot be detached concurrently");
    error(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail("PostgreSQL does not do that for a table with a default partition.")
        .set_hint("Use expired => 'detach', with a lock_timeout.")
}

fn other_owner(part: &str, owner: &str, table: &str) -> ErrorReport {
    error(ERRCODE_INSUFFICIENT_PRIVILEGE, &format!("table {part} belongs to role {owner}, and table {table} does not"))
        .set_detail(
            "It is part of the default partition. For each new partition, PostgreSQL evaluates its constraints as the owner of the table.",
        )
        .set_hint("Give both tables one owner.")
}

fn not_locked(table: &str) -> ErrorReport {
    let message = format!("the lock of table \"{table}\" or of a partition was not granted in time");
    error(ERRCODE_LOCK_NOT_AVAILABLE, &message)
        .set_detail("Another session holds it for longer than lock_timeout. Nothing was changed.")
        .set_hint("Call again later; pg_stat_activity and pg_blocking_pids() tell who holds it.")
}

// Partitions that are there, and those that are to be made.

fn long_name(Partition { parent, name, ids }: &Partition) -> ErrorReport {
    error(ERRCODE_NAME_TOO_LONG, &format!("the name of partition \"{name}\" would be too long"))
        .set_detail(format!("It would have {} bytes; PostgreSQL's names have at most 63.", name.len()))
        .set_hint(format!(
            "Give the table a shorter name, or create its partitions under names of your own: CREATE TABLE ... \
             PARTITION OF {parent} {};",
            for_values(ids)
        ))
}

fn name_taken(Partition { parent, name, ids }: &Partition, layout: &Layout) -> ErrorReport {
    error(ERRCODE_DUPLICATE_TABLE, &format!("relation \"{name}\" already exists"))
        .set_detail(format!(
            "It has the name of a partition that is to be made, of IDs {}, and is not that partition.",
            range(ids, layout)
        ))
        .set_hint(format!(
            "Rename it; or, if it holds the rows of that time, make it the partition: ALTER TABLE {parent} \
             ATTACH PARTITION ... {};",
            for_values(ids)
        ))
}

fn overlap(there: &Partition, wanted: &Partition, layout: &Layout) -> ErrorReport {
    let message = format!("new partition \"{}\" would overlap partition \"{}\"", wanted.name, there.name);
    error(ERRCODE_INVALID_OBJECT_DEFINITION, &message)
        .set_detail(format!(
            "The new one would hold IDs {}. The existing one holds those {}.",
            range(&wanted.ids, layout),
            range(&there.ids, layout)
        ))
        .set_hint(
            "Choose since and until so that the range leaves out the existing partition, or since and every so \
             that a new partition has its bounds.",
        )
}

fn no_time(Partition { parent, name, ids }: &Partition, layout: &Layout) -> ErrorReport {
    let message = format!("partition \"{name}\" is in the way, and is not a range of time");
    error(ERRCODE_INVALID_OBJECT_DEFINITION, &message)
        .set_detail(format!(
            "It holds IDs {}. A range of time begins and ends with the first ID of an instant.",
            range(ids, layout)
        ))
        .set_hint(format!(
            "Create the partition beside it by hand, with its bound: CREATE TABLE ... PARTITION OF {parent} \
             FOR VALUES FROM (...) TO (...);"
        ))
}

fn default_rows(rows: &DefaultRows, layout: &Layout) -> ErrorReport {
    let DefaultRows { wanted, id, name, has_procedure } = rows;
    let parent = &wanted.parent;
    // The library is newer than the database's objects.
    let update = if *has_procedure { "" } else { "ALTER EXTENSION pg_snowflake UPDATE; " };
    let message = format!("default partition \"{name}\" has rows of a partition that is to be made");
    error(ERRCODE_CHECK_VIOLATION, &message)
        .set_detail(format!(
            "The first has the ID {id}. It belongs to \"{}\", of IDs {}.",
            wanted.name,
            range(&wanted.ids, layout)
        ))
        .set_hint(format!(
            "This makes the partitions of such rows, and moves the rows there: {update}CALL \
             snowflake_partition_default_rows('{}', every => ...); then make this call again.",
            parent.replace('\'', "''")
        ))
}

/// Partitions that are older than rows are kept, and stay.
pub struct Kept {
    /// The table's name.
    pub table: String,
    /// The first partition's name.
    pub first: String,
    /// Why it stays.
    pub note: String,
    /// How many others there are.
    pub others: usize,
}

impl Kept {
    /// Says so, as the job's result may be read by nobody.
    pub fn warn(self) {
        let Self { table, first, note, others } = self;
        let message = match others {
            0 => format!("partition \"{first}\" is older than the retention, and stays"),
            _ => format!("partition \"{first}\" and {others} more are older than the retention, and stay"),
        };
        error(PgSqlErrorCode::ERRCODE_WARNING, &message)
            .set_detail(encoding::shown(&format!("Of table \"{table}\", the first: {note}.")))
            .set_hint("The rows with the action \"keep\" in the result say why each stays.")
            .report(PgLogLevel::WARNING);
    }
}

/// Says that a job makes no partitions, and which partition, of which table, quoted, keeps it from that.
pub fn warn_of_endless(table: &str, partition: &str) {
    error(PgSqlErrorCode::ERRCODE_WARNING, &format!("partition \"{partition}\" has no upper bound"))
        .set_detail(encoding::shown(&format!(
            "It is one of table {table}: no partitions are made for the time in it, and its rows do not expire."
        )))
        .set_hint(
            "Detach it, and attach it again with an upper bound above its keys; or make it the default partition.",
        )
        .report(PgLogLevel::WARNING);
}

fn other_keys(table: &str, reason: &str) -> ErrorReport {
    let message = format!("keys of table {table} cannot be declared to be snowflake IDs");
    error(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, &message)
        .set_detail(encoding::shown(&format!("That is because {reason}.")))
        .set_hint(
            "First give the column its IDs by snowflake_adopt(); for IDs of another layout, which applications insert, name that by layout.",
        )
}

/// Says that some partitions were not reached by `snowflake_declare_keys()`.
pub fn left_to_next_call(left: usize, done: usize) {
    error(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, &format!("{left} more partitions are left to the next calls"))
        .set_detail(format!("One call can lock {done}."))
        .set_hint("Call it again.")
        .report(PgLogLevel::NOTICE);
}

/// The IDs of a partition with their times: `from 286286413824000000 (2026-03-01 00:00:00+00) to before MAXVALUE`.
fn range(ids: &Range<Edge>, layout: &Layout) -> String {
    let [start, end] = [ids.start, ids.end].map(|edge| match edge {
        Edge::Id(id) => match layout.timestamp(id) {
            Ok(at) => format!("{edge} ({})", timestamptz::display(timestamptz::to_datum(at))),
            Err(NotAnId(_)) => edge.to_string(),
        },
        Edge::Lowest | Edge::Highest => edge.to_string(),
    });
    format!("from {start} to before {end}")
}

/// The same in a statement.
fn for_values(ids: &Range<Edge>) -> String {
    format!("FOR VALUES FROM ({}) TO ({})", ids.start, ids.end)
}
