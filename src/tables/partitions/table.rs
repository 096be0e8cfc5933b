//! A table that is partitioned by ranges of IDs: what the catalog says of it, and the statements that add to it.

use super::failure::Failure;
use super::key::RangeKey;
use super::names::{c_string, identifier, quoted, shown};
use super::privileges::Heritage;
use crate::errors::partitions::{DefaultRows, Partition, PartitionError};
use crate::postgres::open_relation::OpenRelation;
use crate::postgres::restricted::Owner;
use crate::postgres::{catalog, snapshot};
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::{Edge, Overlap, Piece, missing};
use std::ffi::{CStr, CString};
use std::ops::Range;

/// The greatest length of a name, in bytes.
const LONGEST_NAME: usize = pg_sys::NAMEDATALEN as usize - 1;

/// Checks that the caller owns the table, or is a member of the role that does.
pub fn check_owner(table: pg_sys::Oid) -> Result<(), PartitionError> {
    let name = catalog::relation_name(table).ok_or(PartitionError::NoSuchTable(table.to_u32()))?;
    if catalog::owns(table) { Ok(()) } else { Err(PartitionError::NotOwner(shown(&name))) }
}

/// A partition that exists, and its bounds.
type Existing = (pg_sys::Oid, Range<Edge>);

/// A table that is partitioned by range of a `bigint`.
pub struct Table {
    /// As whom its partitions are created.
    pub owner: Owner,
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
    pub fn look(key: &RangeKey, lock: u32) -> Result<Self, PartitionError> {
        let table = key.table();
        let gone = || PartitionError::NoSuchTable(table.to_u32());
        let relation = match lock {
            pg_sys::AccessShareLock => OpenRelation::open(table, lock),
            _ => OpenRelation::open_and_keep_locked(table, lock),
        };
        let relation = relation.ok_or_else(gone)?;
        // The owner may have changed before the lock was granted.
        check_owner(table)?;
        let (existing, default) = partitions(key, &relation);
        let catalog::RelationFacts { name, schema: schema_oid, .. } = catalog::relation(table).ok_or_else(gone)?;
        let schema = catalog::schema_name(schema_oid).ok_or_else(gone)?;
        drop(relation);
        let owner = Owner::of(table).ok_or_else(gone)?;
        Ok(Self { owner, schema_oid, schema, name, existing, default })
    }

    /// Checks that the owner may create tables beside this one.
    pub fn check_may_create(&self) -> Result<(), PartitionError> {
        if self.owner.is_temporary || catalog::may_create_in(self.schema_oid, self.owner.role) {
            return Ok(());
        }
        let role = catalog::role_name(self.owner.role).unwrap_or_default();
        Err(PartitionError::MayNotCreate {
            table: shown(&self.quoted()),
            role: shown(&identifier(&role)),
            schema: shown(&identifier(&self.schema)),
        })
    }

    /// Creates the missing partitions, with the privileges of the table.
    pub fn fill_gaps(
        &self,
        client: &mut SpiClient,
        key: &RangeKey,
        wanted: &[Piece],
        missing: Vec<usize>,
    ) -> Result<Vec<pg_sys::Oid>, Failure> {
        // The lock that CREATE TABLE would take, so that no row comes in after the check.
        self.check_default(client, key, wanted, &missing, pg_sys::AccessExclusiveLock)?;
        let mut created = Vec::with_capacity(missing.len());
        let mut heritage = Heritage::default();
        for piece in missing {
            client.update(&*self.statement(&wanted[piece]), None, &[])?;
            let partition = self.find(&wanted[piece]).unwrap_or(pg_sys::InvalidOid);
            heritage.pass_on(client, key.table(), partition)?;
            created.push(partition);
        }
        Ok(created)
    }

    /// What its partitions hold, in ascending order, but for the default partition.
    pub fn bounds(&self) -> impl Iterator<Item = &Range<Edge>> {
        self.existing.iter().map(|(_, bounds)| bounds)
    }

    /// A partition, by its number among [`Self::bounds`].
    pub fn oid(&self, partition: usize) -> pg_sys::Oid {
        self.existing[partition].0
    }

    /// The same, for an error message.
    pub fn existing(&self, partition: usize) -> Partition {
        let (oid, ids) = self.existing[partition].clone();
        let name = catalog::relation_name(oid).unwrap_or_default();
        Partition { parent: shown(&self.quoted()), name: shown(&name), ids }
    }

    /// Whether there is a default partition.
    pub fn has_default(&self) -> bool {
        self.default.is_some()
    }

    /// The table's name.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// The table's name, quoted, for a statement.
    pub fn quoted(&self) -> CString {
        quoted(&self.schema, &self.name)
    }

    /// The name of a partition; may be too long.
    fn name_of(&self, piece: &Piece) -> CString {
        c_string([self.name.to_bytes(), piece.suffix.as_bytes()].concat())
    }

    /// The relation with the name of a partition, in the table's schema.
    fn find(&self, piece: &Piece) -> Option<pg_sys::Oid> {
        catalog::relation_named(self.schema_oid, &self.name_of(piece))
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
    pub fn missing(&self, wanted: &[Piece]) -> Result<Vec<usize>, PartitionError> {
        let ids: Vec<Range<i64>> = wanted.iter().map(|piece| piece.ids.clone()).collect();
        let bounds: Vec<Range<Edge>> = self.bounds().cloned().collect();
        let missing = missing(&ids, &bounds).map_err(|Overlap { piece, partition }| {
            PartitionError::Overlap(Box::new((self.existing(partition), self.wanted(&wanted[piece]))))
        })?;
        for piece in missing.iter().map(|&piece| &wanted[piece]) {
            if self.name_of(piece).as_bytes().len() > LONGEST_NAME {
                return Err(PartitionError::Name(Box::new(self.wanted(piece))));
            }
            if self.find(piece).is_some() {
                return Err(PartitionError::NameTaken(Box::new(self.wanted(piece))));
            }
        }
        Ok(missing)
    }

    /// Checks that the default partition, if there is one, has no rows of the missing pieces.
    ///
    /// # Errors
    /// Where it has some.
    pub fn check_default(
        &self,
        client: &SpiClient,
        key: &RangeKey,
        wanted: &[Piece],
        missing: &[usize],
        lock: u32,
    ) -> Result<(), Failure> {
        let Some(default) = self.default else { return Ok(()) };
        // Whoever may detach or drop it has waited for the lock on the table.
        let Some(default) = OpenRelation::open_and_keep_locked(default, lock) else { return Ok(()) };
        // One query for each run of adjacent pieces.
        for run in missing.chunk_by(|piece, next| piece + 1 == *next) {
            let ids = wanted[run[0]].ids.start..wanted[run[run.len() - 1]].ids.end;
            let Some(id) = lowest_in(client, &default, &ids, key.column())? else { continue };
            let piece = run.iter().map(|&piece| &wanted[piece]).find(|piece| piece.ids.contains(&id));
            let name = catalog::relation_name(default.oid()).unwrap_or_default();
            return Err(PartitionError::DefaultRows(Box::new(DefaultRows {
                wanted: self.wanted(piece.unwrap_or(&wanted[run[0]])),
                id,
                name: shown(&name),
                has_procedure: !client.select(PROCEDURE, Some(1), &[])?.is_empty(),
            }))
            .into());
        }
        Ok(())
    }

    /// The name of a partition, with the schema and quoted.
    pub fn quoted_name_of(&self, piece: &Piece) -> CString {
        quoted(&self.schema, &self.name_of(piece))
    }

    /// The statement that creates a partition.
    pub fn statement(&self, piece: &Piece) -> CString {
        let (partition, parent) = (self.quoted_name_of(piece), self.quoted());
        let bounds = format!(" FOR VALUES FROM ({}) TO ({})", piece.ids.start, piece.ids.end);
        let parts =
            [&b"CREATE TABLE "[..], partition.to_bytes(), b" PARTITION OF ", parent.to_bytes(), bounds.as_bytes()];
        c_string(parts.concat())
    }
}

/// The partitions of a table with this key, in ascending order, and the default partition.
fn partitions(key: &RangeKey, table: &OpenRelation) -> (Vec<Existing>, Option<pg_sys::Oid>) {
    assert_eq!(key.table(), table.oid());
    // SAFETY: the relation is open while its description is read. By its key, it is partitioned by ranges of one bigint. Then bounds are in
    // ascending order: bound i is `datums[i]` if `kind[i]` says that it has a value. The partition from bound i - 1 to bound i is number
    // `indexes[i]`, or -1 if there is none.
    unsafe {
        let partitions = &*pg_sys::RelationGetPartitionDesc(table.as_ptr(), false);
        let Some(bounds) = partitions.boundinfo.as_ref() else { return (Vec::new(), None) };
        let oid = |index: i32| usize::try_from(index).ok().map(|index| *partitions.oids.add(index));
        let edge = |i: usize| match **bounds.kind.add(i) {
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MINVALUE => Edge::Lowest,
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MAXVALUE => Edge::Highest,
            _ => Edge::Id((**bounds.datums.add(i)).value() as i64),
        };
        let existing = (1..bounds.ndatums as usize)
            .filter_map(|i| Some((oid(*bounds.indexes.add(i))?, edge(i - 1)..edge(i))))
            .collect();
        (existing, oid(bounds.default_index))
    }
}

/// Whether the database has what moves rows out of a default partition, as a row: objects of 0.2.0 have it not.
const PROCEDURE: &str = "SELECT FROM pg_catalog.pg_proc JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) pronamespace \
     WHERE nspname OPERATOR(pg_catalog.=) '_snowflake' AND proname OPERATOR(pg_catalog.=) 'partition_default_rows'";

/// The lowest of these IDs in a table and its partitions. Each is read by itself, as its owner: whoever read all of them at
/// once would run code of all owners.
fn lowest_in(
    client: &SpiClient,
    table: &OpenRelation,
    ids: &Range<i64>,
    column: &CStr,
) -> Result<Option<i64>, spi::Error> {
    let mut lowest = None;
    for table in with_partitions(table) {
        let has_rows = catalog::relation(table).is_some_and(|relation| relation.kind == pg_sys::RELKIND_RELATION);
        let (Some(owner), Some((schema, name)), true) = (Owner::of(table), catalog::qualified_name(table), has_rows)
        else {
            continue;
        };
        let query = query_for_lowest(ids, column, &quoted(&schema, &name));
        let lowest_of_it = || {
            let rows = client.select(&*query, Some(1), &[])?;
            if rows.is_empty() { Ok(None) } else { rows.first().get_one::<i64>() }
        };
        // What was committed before the lock was granted.
        let found = owner.run(|| snapshot::latest(lowest_of_it))?;
        lowest = [lowest, found].into_iter().flatten().min();
    }
    Ok(lowest)
}

/// A table that is open and so locked, and its partitions down to the last.
fn with_partitions(table: &OpenRelation) -> Vec<pg_sys::Oid> {
    // SAFETY: the list is of OIDs, as many as it says, and at least one: that of the table, which exists.
    unsafe {
        let list = pg_sys::find_all_inheritors(table.oid(), pg_sys::NoLock as pg_sys::LOCKMODE, std::ptr::null_mut());
        let cells = std::slice::from_raw_parts((*list).elements, (*list).length as usize);
        cells.iter().map(|cell| cell.oid_value).collect()
    }
}

/// A query for the lowest of these IDs in a table.
pub fn query_for_lowest(ids: &Range<i64>, column: &CStr, table: &CStr) -> CString {
    let (column, table) = (column.to_bytes(), table.to_bytes());
    let from = format!(" OPERATOR(pg_catalog.>=) '{}'::pg_catalog.int8 AND ", ids.start);
    let to = format!(" OPERATOR(pg_catalog.<) '{}'::pg_catalog.int8 ORDER BY ", ids.end);
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
