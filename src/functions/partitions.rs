//! Partitions by ID time: sql/75-partitions.sql. Which pieces a range of time has, and which of them are missing, is
//! arithmetic of [`snowflake_core::pieces`]. Here stands what is asked of the catalog: first all that can be refused, then
//! one CREATE TABLE for each missing piece, as the caller.
//!
//! Names stay as bytes of the server's encoding. Only errors take them for UTF-8; elsewhere these may show `?` for letters
//! beyond ASCII.

use crate::database;
use crate::errors::{DefaultRows, Error, Partition};
use crate::time::timestamptz::Instant;
use pgrx::datum::Interval;
use pgrx::direct_function_call_as_datum;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::{Edge, Overlap, Piece, PiecesError, Step, missing, pieces};
use snowflake_core::{Layout, Micros, UnixMicros};
use std::ffi::{CStr, CString, c_char};
use std::ops::Range;

/// The bytes that a name can have.
const LONGEST_NAME: usize = pg_sys::NAMEDATALEN as usize - 1;

/// The number of the column by whose range a table is partitioned, in the usual order of its type.
const KEY: &str = "
    SELECT partattrs[0] FROM pg_catalog.pg_partitioned_table
    JOIN pg_catalog.pg_opclass o ON o.oid OPERATOR(pg_catalog.=) partclass[0]
    WHERE partrelid OPERATOR(pg_catalog.=) $1 AND partattrs[0] OPERATOR(pg_catalog.>) 0 AND opcdefault
      AND partstrat OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\" AND partnatts OPERATOR(pg_catalog.=) 1";

#[pg_extern(sql = "")]
fn snowflake_create_partitions(
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<SetOfIterator<'static, pg_sys::Oid>, spi::Error> {
    let layout = database::layout();
    match Spi::connect_mut(|client| create(client, layout, parent, every, since, until)) {
        Ok(created) => Ok(SetOfIterator::new(created)),
        Err(Failure::Refused(error)) => error.raise_in(layout),
        Err(Failure::Query(error)) => Err(error),
    }
}

/// Why no partitions are made.
enum Failure {
    Refused(Error),
    Query(spi::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<spi::Error> for Failure {
    fn from(error: spi::Error) -> Self {
        Self::Query(error)
    }
}

fn create(
    client: &mut SpiClient,
    layout: &Layout,
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<Vec<pg_sys::Oid>, Failure> {
    let parent = parent.ok_or(Error::PartitionNull("parent"))?;
    // Before anything is locked or computed for somebody who may not have it.
    check_owner(parent)?;
    // SAFETY: raises an error, or does nothing.
    unsafe { pg_sys::PreventCommandIfReadOnly(c"snowflake_create_partitions()".as_ptr()) };
    let column = key_column(client, parent)?;
    let wanted = wanted(layout, every, since, until)?;

    // A look without a lock that stays: mostly all partitions are there, or one is in the way.
    let table = Table::look(parent, pg_sys::AccessShareLock)?;
    if table.missing(&wanted)?.is_empty() {
        return Ok(Vec::new());
    }
    // The lock that CREATE TABLE ... PARTITION OF takes. A weaker one would have to be raised to it, and two sessions that
    // do so wait for each other.
    let table = Table::look(parent, pg_sys::AccessExclusiveLock)?;
    let missing = table.missing(&wanted)?;
    if let (Some(default), [_, ..]) = (table.default, &*missing) {
        table.check_default(client, default, &column, &wanted, &missing)?;
    }
    let mut created = Vec::with_capacity(missing.len());
    for piece in missing {
        client.update(&*table.statement(&wanted[piece]), None, &[])?;
        created.push(table.find(&wanted[piece]));
    }
    Ok(created)
}

/// That the caller owns the table, or is a member of the role that does.
fn check_owner(table: pg_sys::Oid) -> Result<(), Error> {
    // SAFETY: a lookup, which gives NULL where there is no such relation.
    let name = unsafe { owned(pg_sys::get_rel_name(table)) }.ok_or(Error::NoSuchTable(table.to_u32()))?;
    // SAFETY: lookups; an error where the table was dropped since.
    let owner = unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        let owner = pg_sys::pg_class_ownercheck(table, pg_sys::GetUserId());
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        let owner = pg_sys::object_ownercheck(pg_sys::RelationRelationId, table, pg_sys::GetUserId());
        owner
    };
    if owner { Ok(()) } else { Err(Error::PartitionNotOwner(shown(&name))) }
}

/// The column by whose range the table is partitioned, quoted: a `bigint`, or a domain over it.
fn key_column(client: &SpiClient, table: pg_sys::Oid) -> Result<CString, Failure> {
    let found = client.select(KEY, Some(1), &[table.into()])?;
    let number = if found.is_empty() { None } else { found.first().get_one::<i16>()? };
    // SAFETY: lookups by the number of a column that is there, and quoting of a name that is NUL-terminated.
    unsafe {
        let column_type = number.map(|number| pg_sys::get_atttype(table, number));
        match number {
            Some(number) if column_type.map(|of| pg_sys::getBaseType(of)) == Some(pg_sys::INT8OID) => {
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
                Err(Error::PartitionKey(shown(&name), detail).into())
            }
        }
    }
}

/// The pieces that are asked for.
fn wanted(
    layout: &Layout,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<Vec<Piece>, Error> {
    let every = every.ok_or(Error::PartitionNull("every"))?;
    let since = since.ok_or(Error::PartitionNull("since"))?;
    let until = until.ok_or(Error::PartitionNull("until"))?;
    let step = Step::new(every.months(), every.days(), Micros(every.micros())).map_err(|problem| {
        // SAFETY: interval_out takes an interval, and returns a NUL-terminated string.
        let text = unsafe {
            direct_function_call_as_datum(pg_sys::interval_out, &[every.into_datum()])
                .and_then(|text| owned(text.cast_mut_ptr::<c_char>()))
        };
        Error::PartitionStep(shown(&text.unwrap_or_default()), problem)
    })?;
    pieces(layout, step, finite(since, "since")?, finite(until, "until")?)
        .map_err(|problem: PiecesError| Error::PartitionRange(since, until, problem))
}

fn finite(timestamptz: i64, argument: &'static str) -> Result<UnixMicros, Error> {
    match Instant::from_datum(timestamptz) {
        Instant::At(instant) => Ok(instant),
        Instant::Past | Instant::Future => Err(Error::PartitionInfinite(argument)),
    }
}

/// A partition that is there, and what it holds.
type Existing = (pg_sys::Oid, Range<Edge>);

/// A table that is partitioned by a range of a `bigint`.
struct Table {
    schema_oid: pg_sys::Oid,
    schema: CString,
    name: CString,
    existing: Vec<Existing>,
    default: Option<pg_sys::Oid>,
}

impl Table {
    /// The table as it is once the lock is there, which stays to the end of the transaction unless it is the weakest. Its
    /// partitions come from the relation cache, not through a snapshot: one of a transaction that reads repeatably would
    /// not have the latest.
    fn look(table: pg_sys::Oid, lock: u32) -> Result<Self, Error> {
        let gone = || Error::NoSuchTable(table.to_u32());
        let release = if lock == pg_sys::AccessShareLock { lock } else { pg_sys::NoLock };
        // SAFETY: the relation is open while its description is read. That of ranges of one bigint has this form: datum i
        // is a bound, of the kind i; the partition whose upper bound it is, if any, has the number `indexes[i]`, and begins
        // at the bound before. Lookups of names give NULL where there is no such object.
        unsafe {
            let relation = pg_sys::try_relation_open(table, lock as pg_sys::LOCKMODE);
            if relation.is_null() {
                return Err(gone());
            }
            // It may have been given away meanwhile.
            check_owner(table)?;
            let partitions = &*pg_sys::RelationGetPartitionDesc(relation, false);
            let (mut existing, mut default) = (Vec::new(), None);
            if let Some(bounds) = partitions.boundinfo.as_ref() {
                let oid = |index: i32| usize::try_from(index).ok().map(|index| *partitions.oids.add(index));
                let edge = |i: usize| match **bounds.kind.add(i) {
                    pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MINVALUE => Edge::Lowest,
                    pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MAXVALUE => Edge::Highest,
                    _ => Edge::Id((**bounds.datums.add(i)).value() as i64),
                };
                existing = (1..bounds.ndatums as usize)
                    .filter_map(|i| Some((oid(*bounds.indexes.add(i))?, edge(i - 1)..edge(i))))
                    .collect();
                default = oid(bounds.default_index);
            }
            let schema_oid = pg_sys::get_rel_namespace(table);
            let schema = owned(pg_sys::get_namespace_name(schema_oid)).ok_or_else(gone)?;
            let name = owned(pg_sys::get_rel_name(table)).ok_or_else(gone)?;
            pg_sys::relation_close(relation, release as pg_sys::LOCKMODE);
            Ok(Self { schema_oid, schema, name, existing, default })
        }
    }

    /// The table in a statement.
    fn quoted(&self) -> CString {
        quoted(&self.schema, &self.name)
    }

    /// The name of a partition; may be longer than a name can be.
    fn name_of(&self, piece: &Piece) -> CString {
        c_string([self.name.to_bytes(), piece.suffix.as_bytes()].concat())
    }

    /// The relation of that name, in the table's schema.
    fn find(&self, piece: &Piece) -> pg_sys::Oid {
        // SAFETY: a lookup by a NUL-terminated name.
        unsafe { pg_sys::get_relname_relid(self.name_of(piece).as_ptr(), self.schema_oid) }
    }

    /// A partition to be made, for an error.
    fn wanted(&self, piece: &Piece) -> Partition {
        Partition {
            parent: shown(&self.quoted()),
            name: shown(&self.name_of(piece)),
            ids: Edge::Id(piece.ids.start)..Edge::Id(piece.ids.end),
        }
    }

    /// The pieces that are to be made, by their places. No partition is in their way, and their names can be given.
    fn missing(&self, wanted: &[Piece]) -> Result<Vec<usize>, Error> {
        let ids: Vec<Range<i64>> = wanted.iter().map(|piece| piece.ids.clone()).collect();
        let bounds: Vec<Range<Edge>> = self.existing.iter().map(|(_, bounds)| bounds.clone()).collect();
        let missing = missing(&ids, &bounds).map_err(|Overlap { piece, partition }| {
            let (oid, ids) = self.existing[partition].clone();
            // SAFETY: a lookup, which gives NULL where it was dropped.
            let name = unsafe { owned(pg_sys::get_rel_name(oid)) }.unwrap_or_default();
            let there = Partition { parent: shown(&self.quoted()), name: shown(&name), ids };
            Error::PartitionOverlap(Box::new((there, self.wanted(&wanted[piece]))))
        })?;
        for piece in missing.iter().map(|&piece| &wanted[piece]) {
            if self.name_of(piece).as_bytes().len() > LONGEST_NAME {
                return Err(Error::PartitionName(Box::new(self.wanted(piece))));
            }
            if self.find(piece) != pg_sys::InvalidOid {
                return Err(Error::PartitionNameTaken(Box::new(self.wanted(piece))));
            }
        }
        Ok(missing)
    }

    /// That the default partition has no rows of the missing pieces. The lock is the one that CREATE TABLE would take, so
    /// that none comes in after the look.
    fn check_default(
        &self,
        client: &mut SpiClient,
        default: pg_sys::Oid,
        column: &CStr,
        wanted: &[Piece],
        missing: &[usize],
    ) -> Result<(), Failure> {
        // SAFETY: a lock, which the end of the transaction lets go.
        unsafe { pg_sys::LockRelationOid(default, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE) };
        // One look for each run of pieces that follow one another. By way of the table, on which the caller has its rights:
        // of its partitions, the default one alone is looked into, as it alone can have such rows.
        for run in missing.chunk_by(|piece, next| piece + 1 == *next) {
            let ids = wanted[run[0]].ids.start..wanted[run[run.len() - 1]].ids.end;
            // `update`, for a snapshot of its own: later than the lock.
            let rows = client.update(&*first_in(&ids, column, &self.quoted()), Some(1), &[])?;
            if rows.is_empty() {
                continue;
            }
            let id = rows.first().get_one::<i64>()?.unwrap_or_default();
            let piece = run.iter().map(|&piece| &wanted[piece]).find(|piece| piece.ids.contains(&id));
            // SAFETY: lookups of what is locked.
            let (schema, name) = unsafe {
                let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(default));
                (owned(schema).unwrap_or_default(), owned(pg_sys::get_rel_name(default)).unwrap_or_default())
            };
            return Err(Error::PartitionDefaultRows(Box::new(DefaultRows {
                wanted: self.wanted(piece.unwrap_or(&wanted[run[0]])),
                id,
                name: shown(&name),
                quoted: shown(&quoted(&schema, &name)),
                column: shown(column),
                all: wanted[0].ids.start..wanted[wanted.len() - 1].ids.end,
            }))
            .into());
        }
        Ok(())
    }

    /// What makes a partition.
    fn statement(&self, piece: &Piece) -> CString {
        let (partition, parent) = (quoted(&self.schema, &self.name_of(piece)), self.quoted());
        let bounds = format!(" FOR VALUES FROM ({}) TO ({})", piece.ids.start, piece.ids.end);
        let parts =
            [&b"CREATE TABLE "[..], partition.to_bytes(), b" PARTITION OF ", parent.to_bytes(), bounds.as_bytes()];
        c_string(parts.concat())
    }
}

/// Finds the lowest ID of these in a table.
fn first_in(ids: &Range<i64>, column: &CStr, table: &CStr) -> CString {
    let (column, table) = (column.to_bytes(), table.to_bytes());
    let from = format!(" OPERATOR(pg_catalog.>=) {}::pg_catalog.int8 AND ", ids.start);
    let to = format!(" OPERATOR(pg_catalog.<) {}::pg_catalog.int8 ORDER BY ", ids.end);
    let parts = [
        &b"SELECT "[..],
        column,
        b"::pg_catalog.int8 FROM ",
        table,
        b" WHERE ",
        column,
        from.as_bytes(),
        column,
        to.as_bytes(),
        column,
        b" LIMIT 1",
    ];
    c_string(parts.concat())
}

/// `schema.name`, quoted where it must be.
fn quoted(schema: &CStr, name: &CStr) -> CString {
    // SAFETY: both are NUL-terminated, and so is what it returns.
    unsafe { owned(pg_sys::quote_qualified_identifier(schema.as_ptr(), name.as_ptr())) }.unwrap_or_default()
}

/// A string of PostgreSQL's, copied; NULL is `None`.
///
/// # Safety
/// It is NUL-terminated, or NULL.
unsafe fn owned(string: *const c_char) -> Option<CString> {
    // SAFETY: as the caller says.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_owned())
}

/// Names and numbers put together; they have no NUL.
fn c_string(bytes: Vec<u8>) -> CString {
    CString::new(bytes).unwrap_or_default()
}

/// For an error.
fn shown(name: &CStr) -> String {
    name.to_str().map_or_else(|_| name.to_string_lossy().replace(char::REPLACEMENT_CHARACTER, "?"), str::to_owned)
}
