//! What stands in a column of a table, its partitions and heirs. Tables are read without SQL; of foreign tables, only a query knows.

use super::meanwhile::unread;
use crate::errors::Error;
use crate::errors::moving::MovingError;
use crate::postgres::held::{self, Held, Sql};
use crate::postgres::integers::IntegerColumn;
use crate::postgres::open_relation::OpenRelation;
use crate::postgres::restricted::Owner;
use crate::postgres::{catalog, snapshot};
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_moving::Values;
use std::ffi::CStr;

/// The lowest of these values and the highest: all from this one on. What is gone meanwhile has none; and on a standby, nothing is known of
/// foreign tables.
///
/// # Errors
/// Where there is no such table, or a foreign one cannot be read.
pub fn values(client: &SpiClient, table: pg_sys::Oid, column: i16, from: i64) -> Result<Option<Values>, Error> {
    let missing = || MovingError::NoSuchTable(table.to_u32());
    let _locked = OpenRelation::open(table, pg_sys::AccessShareLock).ok_or_else(missing)?;
    let column = catalog::column_name(table, column).ok_or_else(missing)?;
    let mut all: Option<Values> = None;
    for relation in catalog::with_heirs(table) {
        let Some(open) = OpenRelation::open(relation, pg_sys::AccessShareLock) else { continue };
        let found = if open.kind() == pg_sys::RELKIND_FOREIGN_TABLE {
            drop(open);
            foreign(client, relation, &column, from).map_err(unread)?
        } else {
            IntegerColumn::named(&open, &column).and_then(|column| column.ends(from..=i64::MAX))
        };
        let Some((lowest, highest)) = found else { continue };
        let all = all.get_or_insert(Values { lowest, highest });
        all.lowest = all.lowest.min(lowest);
        all.highest = all.highest.max(highest);
    }
    Ok(all)
}

/// As the owner of the foreign table, with his user mapping.
fn foreign(client: &SpiClient, table: pg_sys::Oid, column: &CStr, from: i64) -> Result<Option<(i64, i64)>, spi::Error> {
    if !held::is_possible() {
        return Ok(None);
    }
    let Some(held) = Held::of(table, pg_sys::AccessShareLock) else { return Ok(None) };
    let Some(owner) = Owner::of(table) else { return Ok(None) };
    let query = Sql::new("SELECT min(")
        .column(column)
        .text(")::int8, max(")
        .column(column)
        .text(")::int8 FROM ONLY ")
        .name(&held)
        .text(" WHERE ")
        .column(column)
        .text(" >= $1");
    let (lowest, highest) =
        owner.run(|| snapshot::latest(|| query.select(client, &[from.into()])?.first().get_two::<i64, i64>()))?;
    Ok(lowest.zip(highest))
}
