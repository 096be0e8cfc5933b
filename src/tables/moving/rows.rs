//! Queries of the catalogue, and how their rows are read.

use crate::postgres::encoding::{self, Text};
use pgrx::datum::DatumWithOid;
use pgrx::prelude::*;
use pgrx::spi::{self, SpiClient, SpiHeapTupleData};
use snowflake_moving::{Column, Oid, Width};

/// Why the catalogue could not be read.
pub enum Unread {
    /// Something was there, and is not any more: others have dropped it meanwhile.
    Gone,
    /// A query of the extension's own failed.
    Query(spi::Error),
}

impl From<spi::Error> for Unread {
    fn from(error: spi::Error) -> Self {
        Self::Query(error)
    }
}

/// What was read.
pub type Result<T> = std::result::Result<T, Unread>;

/// A query with its parts, each in the places that its name marks, which begins with a colon. A part may have those behind it.
pub fn composed(query: &str, parts: &[(&str, &str)]) -> String {
    parts.iter().fold(query.to_owned(), |text, (name, part)| text.replace(name, part))
}

/// Columns as two arguments: their tables, and their numbers.
pub fn places<'a>(columns: &[&Column]) -> [DatumWithOid<'a>; 2] {
    let tables: Vec<pg_sys::Oid> = columns.iter().map(|column| column.relation.0.into()).collect();
    let numbers: Vec<i16> = columns.iter().map(|column| column.number).collect();
    [tables.into(), numbers.into()]
}

/// Runs a query, and reads all its rows. In a transaction that has changed something, as [`super::carry_out`] makes it,
/// each query takes a snapshot of its own, and sees what was committed before a lock was granted.
pub fn rows<'a, T>(
    client: &SpiClient<'a>,
    query: &str,
    arguments: &[DatumWithOid],
    mut read: impl FnMut(&SpiHeapTupleData<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    client.select(&*encoding::statement(query), None, arguments)?.map(|row| read(&row)).collect()
}

/// A text that is never NULL, but of an object that is not there any more.
pub fn text(row: &SpiHeapTupleData, column: usize) -> Result<String> {
    maybe_text(row, column)?.ok_or(Unread::Gone)
}

/// A text that may be NULL.
pub fn maybe_text(row: &SpiHeapTupleData, column: usize) -> Result<Option<String>> {
    Ok(row.get::<Text>(column)?.map(|text| text.0))
}

/// Texts of which none is ever NULL, but of an object that is not there any more; there may be none.
pub fn texts(row: &SpiHeapTupleData, column: usize) -> Result<Vec<String>> {
    let texts = row.get::<Vec<Option<Text>>>(column)?.unwrap_or_default();
    texts.into_iter().map(|text| text.map(|text| text.0).ok_or(Unread::Gone)).collect()
}

/// A truth, which is false where it is NULL.
pub fn flag(row: &SpiHeapTupleData, column: usize) -> Result<bool> {
    Ok(row.get(column)?.unwrap_or_default())
}

/// An OID that is never NULL, but of an object that is not there any more.
pub fn oid(row: &SpiHeapTupleData, column: usize) -> Result<Oid> {
    Ok(Oid(row.get::<pg_sys::Oid>(column)?.ok_or(Unread::Gone)?.to_u32()))
}

/// OIDs; none where there is NULL.
pub fn oids(row: &SpiHeapTupleData, column: usize) -> Result<Vec<Oid>> {
    let oids: Vec<pg_sys::Oid> = row.get(column)?.unwrap_or_default();
    Ok(oids.into_iter().map(|oid| Oid(oid.to_u32())).collect())
}

/// The width of an integer of so many bytes; `None` for other types.
pub fn width(row: &SpiHeapTupleData, column: usize) -> Result<Option<Width>> {
    Ok(match row.get::<i32>(column)? {
        Some(2) => Some(Width::Two),
        Some(4) => Some(Width::Four),
        Some(8) => Some(Width::Eight),
        _ => None,
    })
}
