//! Partitions by ID time. [`snowflake_core::pieces`] divides a range of time into pieces and finds those that have no
//! partition yet. This file reads the catalog, makes all checks, and then runs one CREATE TABLE for each missing piece,
//! as the owner of the table. A partition gets the owner and the privileges of its table: what it carries, such as indexes with
//! expressions, is that owner's code.
//!
//! Names are kept as bytes in the server's encoding. Error messages need UTF-8; in a database of another encoding, they
//! show `?` for bytes that are not UTF-8.

mod privileges;

use crate::database;
use crate::errors::Error;
use crate::errors::partitions::{DefaultRows, Partition, PartitionError};
use crate::restricted::{Owner, may_create_in};
use crate::time::timestamptz::Instant;
use pgrx::datum::Interval;
use pgrx::direct_function_call_as_datum;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::{Edge, Overlap, Piece, PieceLength, PiecesError, missing, pieces};
use snowflake_core::{Layout, Micros, UnixMicros};
use std::ffi::{CStr, CString, c_char};
use std::ops::Range;

export!(snowflake_create_partitions_wrapper as snowflake_create_partitions);

/// The greatest length of a name, in bytes.
const LONGEST_NAME: usize = pg_sys::NAMEDATALEN as usize - 1;

/// The number of the column of a table's partition key, if it is partitioned by range of one column with the default
/// operator class.
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
        Err(Failure::Refused(error)) => Error::from(error).raise_in(layout),
        Err(Failure::Query(error)) => Err(error),
    }
}

/// Why no partitions were created.
enum Failure {
    Refused(PartitionError),
    Query(spi::Error),
}

impl From<PartitionError> for Failure {
    fn from(error: PartitionError) -> Self {
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
    let parent = parent.ok_or(PartitionError::Null("parent"))?;
    // First, so that nobody else can lock the table or learn anything about it.
    check_owner(parent)?;
    // SAFETY: raises an error, or does nothing.
    unsafe { pg_sys::PreventCommandIfReadOnly(c"snowflake_create_partitions()".as_ptr()) };
    let column = key_column(client, parent)?;
    let wanted = wanted(layout, every, since, until)?;

    // First with a weak lock that is released at once: usually all partitions exist, or one overlaps.
    let table = Table::look(parent, pg_sys::AccessShareLock)?;
    if table.missing(&wanted)?.is_empty() {
        return Ok(Vec::new());
    }
    // As strong as the lock that CREATE TABLE ... PARTITION OF takes. Two sessions that held a weaker one and upgraded
    // it would deadlock.
    let table = Table::look(parent, pg_sys::AccessExclusiveLock)?;
    let missing = table.missing(&wanted)?;
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    table.check_may_create()?;
    table.owner.run(|| table.fill_gaps(client, parent, &column, &wanted, missing))
}

/// Checks that the caller owns the table, or is a member of the role that does.
fn check_owner(table: pg_sys::Oid) -> Result<(), PartitionError> {
    // SAFETY: a lookup, which returns NULL if there is no such relation.
    let name = unsafe { owned(pg_sys::get_rel_name(table)) }.ok_or(PartitionError::NoSuchTable(table.to_u32()))?;
    // SAFETY: lookups; they raise an error if the table was dropped meanwhile.
    let owner = unsafe {
        #[cfg(not(since_pg16))]
        let owner = pg_sys::pg_class_ownercheck(table, pg_sys::GetUserId());
        #[cfg(since_pg16)]
        let owner = pg_sys::object_ownercheck(pg_sys::RelationRelationId, table, pg_sys::GetUserId());
        owner
    };
    if owner { Ok(()) } else { Err(PartitionError::NotOwner(shown(&name))) }
}

/// The column of the partition key, quoted. Its type is `bigint`, or a domain over it.
fn key_column(client: &SpiClient, table: pg_sys::Oid) -> Result<CString, Failure> {
    let found = client.select(KEY, Some(1), &[table.into()])?;
    let number = if found.is_empty() { None } else { found.first().get_one::<i16>()? };
    // SAFETY: lookups by the number of a column that exists, and quoting of a name that is NUL-terminated.
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
                Err(PartitionError::Key(shown(&name), detail).into())
            }
        }
    }
}

/// The pieces of the range that the caller asks for.
fn wanted(
    layout: &Layout,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<Vec<Piece>, PartitionError> {
    let every = every.ok_or(PartitionError::Null("every"))?;
    let since = since.ok_or(PartitionError::Null("since"))?;
    let until = until.ok_or(PartitionError::Null("until"))?;
    let step = PieceLength::new(every.months(), every.days(), Micros(every.micros())).map_err(|problem| {
        // SAFETY: interval_out takes an interval and returns a NUL-terminated string.
        let text = unsafe {
            direct_function_call_as_datum(pg_sys::interval_out, &[every.into_datum()])
                .and_then(|text| owned(text.cast_mut_ptr::<c_char>()))
        };
        PartitionError::Step(shown(&text.unwrap_or_default()), problem)
    })?;
    pieces(layout, step, finite(since, "since")?, finite(until, "until")?)
        .map_err(|problem: PiecesError| PartitionError::Range(since, until, problem))
}

fn finite(timestamptz: i64, argument: &'static str) -> Result<UnixMicros, PartitionError> {
    match Instant::from_datum(timestamptz) {
        Instant::At(instant) => Ok(instant),
        Instant::Past | Instant::Future => Err(PartitionError::Infinite(argument)),
    }
}

/// A partition that exists, and its bounds.
type Existing = (pg_sys::Oid, Range<Edge>);

/// A table that is partitioned by range of a `bigint`.
struct Table {
    owner: Owner,
    schema_oid: pg_sys::Oid,
    schema: CString,
    name: CString,
    existing: Vec<Existing>,
    default: Option<pg_sys::Oid>,
}

impl Table {
    /// Locks a table and reads its partitions. The lock is kept until the end of the transaction, unless it is an
    /// ACCESS SHARE lock. The partitions are read from the relation cache: the snapshot of a REPEATABLE READ
    /// transaction might not show the latest.
    fn look(table: pg_sys::Oid, lock: u32) -> Result<Self, PartitionError> {
        let gone = || PartitionError::NoSuchTable(table.to_u32());
        let release = if lock == pg_sys::AccessShareLock { lock } else { pg_sys::NoLock };
        // SAFETY: the relation is open while its description is read. For ranges of one bigint, the bounds are in
        // ascending order: bound i is `datums[i]` if `kind[i]` says that it has a value. The partition from bound i - 1
        // to bound i is number `indexes[i]`, or -1 if there is none. Lookups of names return NULL if there is no such
        // object.
        unsafe {
            let relation = pg_sys::try_relation_open(table, lock as pg_sys::LOCKMODE);
            if relation.is_null() {
                return Err(gone());
            }
            // The owner may have changed before the lock was granted.
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
            let (schema, name) = names(table).ok_or_else(gone)?;
            pg_sys::relation_close(relation, release as pg_sys::LOCKMODE);
            let owner = Owner::of(table).ok_or_else(gone)?;
            Ok(Self { owner, schema_oid, schema, name, existing, default })
        }
    }

    /// Checks that the owner may create tables beside this one.
    fn check_may_create(&self) -> Result<(), PartitionError> {
        if self.owner.is_temporary || may_create_in(self.schema_oid, self.owner.role) {
            return Ok(());
        }
        // SAFETY: a look-up, which returns NULL if there is no such role.
        let role = unsafe { owned(pg_sys::GetUserNameFromId(self.owner.role, true)) }.unwrap_or_default();
        Err(PartitionError::MayNotCreate {
            table: shown(&self.quoted()),
            role: shown(&identifier(&role)),
            schema: shown(&identifier(&self.schema)),
        })
    }

    /// Creates the missing partitions, with the privileges of the table.
    fn fill_gaps(
        &self,
        client: &mut SpiClient,
        parent: pg_sys::Oid,
        column: &CStr,
        wanted: &[Piece],
        missing: Vec<usize>,
    ) -> Result<Vec<pg_sys::Oid>, Failure> {
        if let Some(default) = self.default {
            self.check_default(client, default, column, wanted, &missing)?;
        }
        let mut created = Vec::with_capacity(missing.len());
        for piece in missing {
            client.update(&*self.statement(&wanted[piece]), None, &[])?;
            let partition = self.find(&wanted[piece]);
            privileges::inherit(client, parent, partition)?;
            created.push(partition);
        }
        Ok(created)
    }

    /// The table's name, quoted, for a statement.
    fn quoted(&self) -> CString {
        quoted(&self.schema, &self.name)
    }

    /// The name of a partition; may be too long.
    fn name_of(&self, piece: &Piece) -> CString {
        c_string([self.name.to_bytes(), piece.suffix.as_bytes()].concat())
    }

    /// The relation with the name of a partition, in the table's schema.
    fn find(&self, piece: &Piece) -> pg_sys::Oid {
        // SAFETY: a lookup by a NUL-terminated name.
        unsafe { pg_sys::get_relname_relid(self.name_of(piece).as_ptr(), self.schema_oid) }
    }

    /// A partition that is to be created, for an error message.
    fn wanted(&self, piece: &Piece) -> Partition {
        Partition {
            parent: shown(&self.quoted()),
            name: shown(&self.name_of(piece)),
            ids: Edge::Id(piece.ids.start)..Edge::Id(piece.ids.end),
        }
    }

    /// The indexes of the pieces that have no partition yet. Checks that no partition overlaps them and that their
    /// names are free.
    fn missing(&self, wanted: &[Piece]) -> Result<Vec<usize>, PartitionError> {
        let ids: Vec<Range<i64>> = wanted.iter().map(|piece| piece.ids.clone()).collect();
        let bounds: Vec<Range<Edge>> = self.existing.iter().map(|(_, bounds)| bounds.clone()).collect();
        let missing = missing(&ids, &bounds).map_err(|Overlap { piece, partition }| {
            let (oid, ids) = self.existing[partition].clone();
            // SAFETY: a lookup, which returns NULL if it was dropped.
            let name = unsafe { owned(pg_sys::get_rel_name(oid)) }.unwrap_or_default();
            let there = Partition { parent: shown(&self.quoted()), name: shown(&name), ids };
            PartitionError::Overlap(Box::new((there, self.wanted(&wanted[piece]))))
        })?;
        for piece in missing.iter().map(|&piece| &wanted[piece]) {
            if self.name_of(piece).as_bytes().len() > LONGEST_NAME {
                return Err(PartitionError::Name(Box::new(self.wanted(piece))));
            }
            if self.find(piece) != pg_sys::InvalidOid {
                return Err(PartitionError::NameTaken(Box::new(self.wanted(piece))));
            }
        }
        Ok(missing)
    }

    /// Checks that the default partition has no rows of the missing pieces. Takes the lock that CREATE TABLE would
    /// take, so that none can be inserted after the check.
    fn check_default(
        &self,
        client: &mut SpiClient,
        default: pg_sys::Oid,
        column: &CStr,
        wanted: &[Piece],
        missing: &[usize],
    ) -> Result<(), Failure> {
        // SAFETY: takes a lock, which is released at the end of the transaction.
        unsafe { pg_sys::LockRelationOid(default, pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE) };
        // One query for each run of adjacent pieces.
        for run in missing.chunk_by(|piece, next| piece + 1 == *next) {
            let ids = wanted[run[0]].ids.start..wanted[run[run.len() - 1]].ids.end;
            let Some(id) = lowest_in(client, default, &ids, column)? else { continue };
            let piece = run.iter().map(|&piece| &wanted[piece]).find(|piece| piece.ids.contains(&id));
            let (schema, name) = names(default).unwrap_or_default();
            return Err(PartitionError::DefaultRows(Box::new(DefaultRows {
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

    /// The statement that creates a partition.
    fn statement(&self, piece: &Piece) -> CString {
        let (partition, parent) = (quoted(&self.schema, &self.name_of(piece)), self.quoted());
        let bounds = format!(" FOR VALUES FROM ({}) TO ({})", piece.ids.start, piece.ids.end);
        let parts =
            [&b"CREATE TABLE "[..], partition.to_bytes(), b" PARTITION OF ", parent.to_bytes(), bounds.as_bytes()];
        c_string(parts.concat())
    }
}

/// The lowest of these IDs in a table and its partitions. Each is read by itself, as its owner: whoever read all of them at
/// once would run code of all owners.
fn lowest_in(
    client: &mut SpiClient,
    table: pg_sys::Oid,
    ids: &Range<i64>,
    column: &CStr,
) -> Result<Option<i64>, spi::Error> {
    let mut lowest = None;
    for table in with_partitions(table) {
        // SAFETY: a look-up in the catalog.
        let has_rows = unsafe { pg_sys::get_rel_relkind(table) } as u8 == pg_sys::RELKIND_RELATION;
        let (Some(owner), Some((schema, name)), true) = (Owner::of(table), names(table), has_rows) else { continue };
        let query = first_in(ids, column, &quoted(&schema, &name));
        // `update` takes a new snapshot, after the lock was granted.
        let rows = owner.run(|| client.update(&*query, Some(1), &[]))?;
        let found = if rows.is_empty() { None } else { rows.first().get_one::<i64>()? };
        lowest = [lowest, found].into_iter().flatten().min();
    }
    Ok(lowest)
}

/// A table that is locked, and so gets and loses no partition, and its partitions down to the last.
fn with_partitions(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: the list is of OIDs, as many as it says, and at least one.
    unsafe {
        let list = pg_sys::find_all_inheritors(table, pg_sys::NoLock as pg_sys::LOCKMODE, std::ptr::null_mut());
        let cells = std::slice::from_raw_parts((*list).elements, (*list).length as usize);
        cells.iter().map(|cell| cell.oid_value).collect()
    }
}

/// A query for the lowest of these IDs in a table.
fn first_in(ids: &Range<i64>, column: &CStr, table: &CStr) -> CString {
    let (column, table) = (column.to_bytes(), table.to_bytes());
    let from = format!(" OPERATOR(pg_catalog.>=) {}::pg_catalog.int8 AND ", ids.start);
    let to = format!(" OPERATOR(pg_catalog.<) {}::pg_catalog.int8 ORDER BY ", ids.end);
    let parts = [
        &b"SELECT "[..],
        column,
        b"::pg_catalog.int8 FROM ONLY ",
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

/// The schema and the name of a relation; `None` where there is none.
fn names(relation: pg_sys::Oid) -> Option<(CString, CString)> {
    // SAFETY: look-ups in the catalog, which return NULL if there is no such object.
    unsafe {
        let schema = owned(pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation)))?;
        Some((schema, owned(pg_sys::get_rel_name(relation))?))
    }
}

/// A name, quoted where necessary.
fn identifier(name: &CStr) -> CString {
    // SAFETY: it is NUL-terminated, and so is what it returns.
    unsafe { owned(pg_sys::quote_identifier(name.as_ptr())) }.unwrap_or_default()
}

/// `schema.name`, quoted where necessary.
fn quoted(schema: &CStr, name: &CStr) -> CString {
    // SAFETY: both are NUL-terminated, and so is what it returns.
    unsafe { owned(pg_sys::quote_qualified_identifier(schema.as_ptr(), name.as_ptr())) }.unwrap_or_default()
}

/// A copy of a C string; `None` for NULL.
///
/// # Safety
/// It must be NUL-terminated, or NULL.
unsafe fn owned(string: *const c_char) -> Option<CString> {
    // SAFETY: the caller ensures it.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_owned())
}

/// A C string of names and numbers, which contain no NUL.
fn c_string(bytes: Vec<u8>) -> CString {
    CString::new(bytes).unwrap_or_default()
}

/// A name for an error message.
fn shown(name: &CStr) -> String {
    name.to_str().map_or_else(|_| name.to_string_lossy().replace(char::REPLACEMENT_CHARACTER, "?"), str::to_owned)
}
