//! Rows of the default partition, which a call of `snowflake_maintain_partitions()` is to move: by the function of
//! `snowflake_partition_default_rows()`, as the caller, whom it refuses where he is not the owner of the tables. And what that function
//! needs of C: names that are held, and keys that are read without SQL.

use super::failure::Failure;
use super::key::RangeKey;
use super::keys::{KeyLayout, Keys};
use super::marks::set_mark;
use super::table::{Table, check_owner, lowest_in_one};
use crate::errors::partitions::PartitionError;
use crate::postgres::catalog;
use crate::postgres::encoding::{self, Text};
use crate::postgres::held::{Held, NamedRelation, Seen};
use crate::postgres::integers::IntegerColumn;
use crate::postgres::open_relation::OpenRelation;
use pgrx::datum::Interval;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::Edge;
use std::ffi::{CStr, CString};
use std::ops::Range;

macro_rules! moving_by {
    ($arguments:literal) => {
        concat!(
            "SELECT made, moved, lower, until, pg_catalog.array_to_string(statements, E';\\n') ",
            "FROM _snowflake.partition_default_rows(",
            $arguments,
            ")"
        )
    };
}

const MOVE: &str = moving_by!("$1, $2, $3, $4");
/// Not in databases that have the objects of an earlier version.
const MOVE_IN: &str = moving_by!("$1, $2, $3, $4, $5");

/// A partition that rows of the default partition went to.
pub struct Moved {
    /// Its name, with the schema and quoted.
    pub partition: Text,
    /// What it holds.
    pub ids: Range<Edge>,
    /// The statements.
    pub statements: Option<Text>,
    /// How many rows they were.
    pub note: Text,
}

/// Locks a table in ACCESS EXCLUSIVE mode until the end of the transaction, and returns its name as statements write it; `None` where
/// there is no such table any more.
///
/// # Errors
/// Where the caller does not own the table, before and after the lock.
pub fn hold(table: pg_sys::Oid) -> Result<Option<Text>, PartitionError> {
    if catalog::relation_name(table).is_none() {
        return Ok(None);
    }
    check_owner(table)?;
    let Some(held) = Held::of(table, pg_sys::AccessExclusiveLock) else { return Ok(None) };
    check_owner(table)?;
    Ok(Some(Text(encoding::read_name(&held.quoted()))))
}

/// From which ID on those in the default partition of a table are known to be IDs; `None` where that is known of none, or there is no such
/// partition.
///
/// # Errors
/// Where the caller does not own the table.
pub fn known_from(of: KeyLayout, table: pg_sys::Oid) -> Result<Option<i64>, Failure> {
    check_owner(table)?;
    Spi::connect(|client| {
        let key = RangeKey::of(client, table)?;
        let table = Table::<Seen>::look(&key)?;
        let keys = Keys::read(client, &table, &key, of)?;
        Ok(keys.known_in_default(&table))
    })
}

/// Marks a partition: its keys from this one on are IDs.
///
/// # Errors
/// Where the caller does not own it.
pub fn mark(of: KeyLayout, partition: pg_sys::Oid, from: i64) -> Result<(), PartitionError> {
    check_owner(partition)?;
    set_mark(partition, Some((from, &of.layout)));
    Ok(())
}

/// The lowest of these keys in a table and its partitions.
///
/// # Errors
/// Where the caller does not own all of them.
pub fn lowest_key(table: pg_sys::Oid, column: &CStr, keys: &Range<i64>) -> Result<Option<i64>, PartitionError> {
    let mut lowest = None;
    for table in catalog::with_heirs(table) {
        check_owner(table)?;
        lowest = [lowest, lowest_in_one(table, keys, column)].into_iter().flatten().min();
    }
    Ok(lowest)
}

/// How many rows of a table and its partitions have one of these keys, and how many have another one or none.
///
/// # Errors
/// Where the caller does not own all of them.
pub fn count_keys(table: pg_sys::Oid, column: &CStr, keys: &Range<i64>) -> Result<(i64, i64), PartitionError> {
    let mut sums = (0, 0);
    let Some(last) = keys.end.checked_sub(1) else { return Ok(sums) };
    for table in catalog::with_heirs(table) {
        check_owner(table)?;
        let open = OpenRelation::open(table, pg_sys::AccessShareLock);
        let counts =
            open.as_ref().and_then(|open| IntegerColumn::named(open, column)).map(|it| it.count(&(keys.start..=last)));
        let (inside, outside) = counts.unwrap_or_default();
        sums = (sums.0 + inside, sums.1 + outside);
    }
    Ok(sums)
}

/// Moves all rows of the default partition, and makes their partitions; or says how.
pub fn moved(
    client: &mut SpiClient,
    schema: &CStr,
    parent: pg_sys::Oid,
    every: Interval,
    dry_run: bool,
    of: KeyLayout,
) -> Result<Vec<Moved>, Failure> {
    let mut all = Vec::new();
    let mut since = 0;
    loop {
        let layout = of.layout.to_string();
        let arguments = [parent.into(), every.into(), dry_run.into(), since.into(), layout.into()];
        let found = if of.is_named {
            client.update(MOVE_IN, Some(1), &arguments)?.first()
        } else {
            client.update(MOVE, Some(1), &arguments[..4])?.first()
        };
        let Some(Text(made)) = found.get::<Text>(1)? else { return Ok(all) };
        let (lower, until) = (found.get::<i64>(3)?.unwrap_or_default(), found.get::<i64>(4)?.unwrap_or_default());
        let note = match found.get::<i64>(2)? {
            Some(rows) => format!("for {rows} rows of the default partition"),
            None => "the default partition becomes this one, and a new one takes its place".to_owned(),
        };
        let name: CString = encoding::statement(&made);
        all.push(Moved {
            partition: Text(encoding::read_name(&catalog::quoted_name(schema, &name).unwrap_or_default())),
            ids: Edge::Id(lower)..Edge::Id(until),
            statements: found.get::<Text>(5)?,
            note: Text(note),
        });
        // What was moved is not found again.
        since = if dry_run { until } else { since };
    }
}
