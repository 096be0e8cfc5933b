//! Partitions by ID time. [`snowflake_core::pieces`] divides a range of time into pieces and finds those that have no
//! partition yet. This makes all checks, and then runs one CREATE TABLE for each missing piece, as the owner of the table,
//! which [`table`] knows; [`upkeep`] does so for the time ahead, and lets old partitions go. A partition gets the owner and the privileges of its table: what it carries, such as indexes with
//! expressions, is that owner's code.

mod failure;
mod leaving;
mod names;
mod privileges;
mod table;
pub mod upkeep;

pub use failure::Failure;

use self::names::{owned, shown};
use self::table::{Table, check_owner};
use crate::errors::partitions::PartitionError;
use crate::postgres::time::timestamptz::Instant;
use pgrx::datum::Interval;
use pgrx::direct_function_call_as_datum;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::{Edge, Piece, PieceLength, PiecesError, continued, pieces};
use snowflake_core::{Layout, Micros, UnixMicros};
use std::ffi::{CString, c_char};
use std::ops::Range;

/// The number of the column of a table's partition key, if it is partitioned by range of one column with the default
/// operator class.
const KEY: &str = "
    SELECT partattrs[0] FROM pg_catalog.pg_partitioned_table
    JOIN pg_catalog.pg_opclass o ON o.oid OPERATOR(pg_catalog.=) partclass[0]
    WHERE partrelid OPERATOR(pg_catalog.=) $1 AND partattrs[0] OPERATOR(pg_catalog.>) 0 AND opcdefault
      AND partstrat OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\" AND partnatts OPERATOR(pg_catalog.=) 1";

/// Creates the partitions of a table that are missing, one for each piece of a range of time: a call of
/// `snowflake_create_partitions()`. Returns them.
///
/// # Errors
/// Where an argument is NULL or means nothing, the caller may not, or something is in the way.
pub fn create(
    layout: &Layout,
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<Vec<pg_sys::Oid>, Failure> {
    Spi::connect_mut(|client| create_by(client, layout, parent, every, since, until))
}

fn create_by(
    client: &mut SpiClient,
    layout: &Layout,
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<Vec<pg_sys::Oid>, Failure> {
    let parent = parent.ok_or(PartitionError::Null("parent"))?;
    // First, so that nobody else can lock the table or learn anything about it.
    check_owner(parent)?;
    // SAFETY: raises an error, or does nothing.
    unsafe { pg_sys::PreventCommandIfReadOnly(c"snowflake_create_partitions()".as_ptr()) };
    let column = key_column(client, parent)?;
    let times = Times::of(layout, every, since, until)?;

    // First with a weak lock that is released at once: usually all partitions exist, or one overlaps.
    let table = Table::look(parent, pg_sys::AccessShareLock)?;
    if table.missing(&times.wanted(layout, &table)?)?.is_empty() {
        return Ok(Vec::new());
    }
    // As strong as the lock that CREATE TABLE ... PARTITION OF takes. Two sessions that held a weaker one and upgraded
    // it would deadlock.
    let table = Table::look(parent, pg_sys::AccessExclusiveLock)?;
    let wanted = times.wanted(layout, &table)?;
    let missing = table.missing(&wanted)?;
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    table.check_may_create()?;
    table.owner.run(|| table.fill_gaps(client, parent, &column, &wanted, missing))
}

/// The column of the partition key, quoted. Its type is `bigint`, a domain over it, or `snowflake_id`.
fn key_column(client: &SpiClient, table: pg_sys::Oid) -> Result<CString, Failure> {
    let found = client.select(KEY, Some(1), &[table.into()])?;
    let number = if found.is_empty() { None } else { found.first().get_one::<i16>()? };
    // SAFETY: lookups by the number of a column that exists, and quoting of a name that is NUL-terminated.
    unsafe {
        let column_type = number.map(|number| pg_sys::get_atttype(table, number));
        match number {
            Some(number) if column_type.is_some_and(|of| pg_sys::IsBinaryCoercible(of, pg_sys::INT8OID)) => {
                let name = pg_sys::get_attname(table, number, false);
                Ok(owned(pg_sys::quote_identifier(name)).unwrap_or_default())
            }
            _ => {
                let name = owned(pg_sys::get_rel_name(table)).unwrap_or_default();
                let key = direct_function_call_as_datum(pg_sys::pg_get_partkeydef, &[table.into_datum()])
                    .and_then(|key| owned(pg_sys::text_to_cstring(key.cast_mut_ptr())));
                let of_type = column_type.and_then(|of| owned(pg_sys::format_type_be(of)));
                let detail = match (key, of_type) {
                    (None, _) => "It is not partitioned.".to_owned(),
                    (Some(key), None) => format!("Its partition key is {}.", shown(&key)),
                    (Some(key), Some(of)) => format!("Its partition key is {}, of type {}.", shown(&key), shown(&of)),
                };
                Err(PartitionError::Key(shown(&name), detail).into())
            }
        }
    }
}

/// What the caller of `snowflake_create_partitions()` asks for.
struct Times {
    every: PieceLength,
    /// As the caller gives them.
    given: (i64, i64),
    since: UnixMicros,
    until: UnixMicros,
}

impl Times {
    /// Checks what does not depend on the table.
    fn of(
        layout: &Layout,
        every: Option<Interval>,
        since: Option<i64>,
        until: Option<i64>,
    ) -> Result<Self, PartitionError> {
        let every = every.ok_or(PartitionError::Null("every"))?;
        let since = since.ok_or(PartitionError::Null("since"))?;
        let until = until.ok_or(PartitionError::Null("until"))?;
        let every = step(every)?;
        let times =
            Self { every, given: (since, until), since: finite(since, "since")?, until: finite(until, "until")? };
        times.pieces(layout, times.since)?;
        Ok(times)
    }

    fn pieces(&self, layout: &Layout, since: UnixMicros) -> Result<Vec<Piece>, PartitionError> {
        pieces(layout, self.every, since, self.until)
            .map_err(|problem: PiecesError| PartitionError::Range(self.given.0, self.given.1, problem))
    }

    /// The pieces of the range. Where it begins within a partition that is such a piece, they are counted from there.
    fn wanted(&self, layout: &Layout, table: &Table) -> Result<Vec<Piece>, PartitionError> {
        let bounds: Vec<Range<Edge>> = table.bounds().cloned().collect();
        self.pieces(layout, continued(layout, self.every, &bounds, self.since))
    }
}

/// The length of partitions.
fn step(every: Interval) -> Result<PieceLength, PartitionError> {
    PieceLength::new(every.months(), every.days(), Micros(every.micros()))
        .map_err(|problem| PartitionError::Step(interval_text(every), problem))
}

fn interval_text(interval: Interval) -> String {
    // SAFETY: interval_out takes an interval and returns a NUL-terminated string.
    let text = unsafe {
        direct_function_call_as_datum(pg_sys::interval_out, &[interval.into_datum()])
            .and_then(|text| owned(text.cast_mut_ptr::<c_char>()))
    };
    shown(&text.unwrap_or_default())
}

fn finite(timestamptz: i64, argument: &'static str) -> Result<UnixMicros, PartitionError> {
    match Instant::from_datum(timestamptz) {
        Instant::At(instant) => Ok(instant),
        Instant::Past | Instant::Future => Err(PartitionError::Infinite(argument)),
    }
}
