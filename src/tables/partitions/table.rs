//! A table that is partitioned by ranges of IDs: what the catalog says of it, and the statements that add to it.

use super::failure::Failure;
use super::key::RangeKey;
use super::marks::Marking;
use super::names::{c_string, identifier, shown};
use super::privileges::Heritage;
use crate::errors::partitions::{DefaultRows, Partition, PartitionError};
use crate::postgres::catalog;
use crate::postgres::held::{Held, NamedRelation, Seen, Sql};
use crate::postgres::integers::IntegerColumn;
use crate::postgres::open_relation::OpenRelation;
use crate::postgres::restricted::Owner;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::{Edge, MAX_PIECES, Overlap, Piece, missing};
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

/// A table that is partitioned by range of a `bigint`, and held or only seen.
pub struct Table<N> {
    /// As whom its partitions are created.
    pub owner: Owner,
    /// Its name.
    pub named: N,
    schema: pg_sys::Oid,
    existing: Vec<Existing>,
    default: Option<pg_sys::Oid>,
}

impl<N: NamedRelation> Table<N> {
    /// Reads the partitions of a table, under the lock that its name needs. They are read from the relation cache: the
    /// snapshot of a REPEATABLE READ transaction might not show the latest.
    pub fn look(key: &RangeKey) -> Result<Self, PartitionError> {
        let table = key.table();
        let gone = || PartitionError::NoSuchTable(table.to_u32());
        let (relation, named) = N::open(table).ok_or_else(gone)?;
        // The owner may have changed before the lock was granted.
        check_owner(table)?;
        let (existing, default) = partitions(key, &relation);
        let schema = relation.schema();
        drop(relation);
        let owner = Owner::of(table).ok_or_else(gone)?;
        Ok(Self { owner, named, schema, existing, default })
    }

    /// Checks that the owner may create tables beside this one.
    pub fn check_may_create(&self) -> Result<(), PartitionError> {
        if self.owner.is_temporary || catalog::may_create_in(self.schema, self.owner.role) {
            return Ok(());
        }
        let role = catalog::role_name(self.owner.role).unwrap_or_default();
        Err(PartitionError::MayNotCreate {
            table: shown(&self.named.quoted()),
            role: shown(&identifier(&role)),
            schema: shown(&identifier(self.named.names().0)),
        })
    }

    /// What its partitions hold, in ascending order, but for the default partition.
    pub fn bounds(&self) -> impl ExactSizeIterator<Item = &Range<Edge>> {
        self.existing.iter().map(|(_, bounds)| bounds)
    }

    /// A partition, by its number among [`Self::bounds`].
    pub fn oid(&self, partition: usize) -> pg_sys::Oid {
        self.existing[partition].0
    }

    /// Its number.
    pub fn number_of(&self, partition: pg_sys::Oid) -> Option<usize> {
        self.existing.iter().position(|&(oid, _)| oid == partition)
    }

    /// A partition, by its number, for an error message.
    pub fn existing(&self, partition: usize) -> Partition {
        let (oid, ids) = self.existing[partition].clone();
        let name = catalog::relation_name(oid).unwrap_or_default();
        Partition { parent: shown(&self.named.quoted()), name: shown(&name), ids }
    }

    /// The last partition that begins before an ID.
    pub fn last_before(&self, id: i64) -> Option<pg_sys::Oid> {
        self.existing.iter().rev().find(|(_, ids)| ids.start < Edge::Id(id)).map(|&(oid, _)| oid)
    }

    /// The default partition.
    pub fn default_partition(&self) -> Option<pg_sys::Oid> {
        self.default
    }

    /// The partitions that may hold keys from this one on, with the default partition, each with the first of these.
    pub fn parts_from(&self, first: i64) -> Vec<(pg_sys::Oid, i64)> {
        let open = self.existing.iter().filter(|(_, ids)| ids.end > Edge::Id(first));
        let open = open.map(|(oid, ids)| match ids.start {
            Edge::Id(start) => (*oid, start.max(first)),
            Edge::Lowest | Edge::Highest => (*oid, first),
        });
        open.chain(self.default.map(|default| (default, first))).collect()
    }

    /// The name of a partition; may be too long.
    fn name_of(&self, piece: &Piece) -> CString {
        c_string([self.named.names().1.to_bytes(), piece.suffix.as_bytes()].concat())
    }

    /// The relation with the name of a partition, in the table's schema.
    fn find(&self, piece: &Piece) -> Option<pg_sys::Oid> {
        catalog::relation_named(self.schema, &self.name_of(piece))
    }

    /// A partition that is to be created, for an error message.
    fn wanted(&self, piece: &Piece) -> Partition {
        Partition {
            parent: shown(&self.named.quoted()),
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

    /// Which of the missing pieces cannot have a partition, as rows of the default partition are in the way whose keys are not known to be
    /// IDs: those below `known_from`.
    ///
    /// # Errors
    /// Where others are in the way.
    pub fn blocked(
        &self,
        client: &SpiClient,
        key: &RangeKey,
        wanted: &[Piece],
        missing: &[usize],
        known_from: i64,
        lock: u32,
    ) -> Result<Vec<usize>, Failure> {
        let mut blocked = Vec::new();
        let Some(default) = self.default else { return Ok(blocked) };
        // Whoever may detach or drop it has waited for the lock on the table.
        let Some(default) = OpenRelation::open_and_keep_locked(default, lock) else { return Ok(blocked) };
        self.check_owners_of_default(&default, lock)?;
        // Once for each run of adjacent pieces.
        for run in missing.chunk_by(|piece, next| piece + 1 == *next) {
            let ids = wanted[run[0]].ids.start..wanted[run[run.len() - 1]].ids.end;
            let is_in_the_way = lowest_of(default.oid(), &ids, key.column()).is_some();
            for &piece in run.iter().filter(|_| is_in_the_way) {
                match lowest_of(default.oid(), &wanted[piece].ids, key.column()) {
                    None => {}
                    Some(id) if id < known_from => blocked.push(piece),
                    Some(id) => return Err(self.default_rows(client, default.oid(), &wanted[piece], id)?.into()),
                }
            }
        }
        Ok(blocked)
    }

    /// The error where a row of the default partition, with this ID, is in the way of a partition.
    fn default_rows(
        &self,
        client: &SpiClient,
        default: pg_sys::Oid,
        wanted: &Piece,
        id: i64,
    ) -> Result<PartitionError, spi::Error> {
        let name = catalog::relation_name(default).unwrap_or_default();
        Ok(PartitionError::DefaultRows(Box::new(DefaultRows {
            wanted: self.wanted(wanted),
            id,
            name: shown(&name),
            has_procedure: !client.select(PROCEDURE, Some(1), &[])?.is_empty(),
        })))
    }

    /// Checks that all that the default partition consists of has the owner of the table.
    fn check_owners_of_default(&self, default: &OpenRelation, lock: u32) -> Result<(), PartitionError> {
        for part in catalog::with_heirs(default.oid()) {
            // Until it is locked, it may get another owner.
            let Some(_open) = OpenRelation::open_and_keep_locked(part, lock) else { continue };
            let Some(owner) = Owner::of(part).filter(|owner| owner.role != self.owner.role) else { continue };
            let role = catalog::role_name(owner.role).unwrap_or_default();
            return Err(PartitionError::OtherOwner {
                part: Seen::of(part).map_or_else(String::new, |part| shown(&part.quoted())),
                owner: shown(&identifier(&role)),
                table: shown(&self.named.quoted()),
            });
        }
        Ok(())
    }

    /// The name of a partition, with the schema and quoted.
    pub fn quoted_name_of(&self, piece: &Piece) -> CString {
        catalog::quoted_name(self.named.names().0, &self.name_of(piece)).unwrap_or_default()
    }

    /// The statement that creates a partition.
    pub fn statement(&self, piece: &Piece) -> Sql<N> {
        Sql::new("CREATE TABLE ")
            .name_beside(&self.named, &self.name_of(piece))
            .text(" PARTITION OF ")
            .name(&self.named)
            .text(" FOR VALUES FROM (")
            .number(piece.ids.start)
            .text(") TO (")
            .number(piece.ids.end)
            .text(")")
    }
}

impl Table<Held> {
    /// Creates the missing partitions, with the privileges of the table, and marks them. The default partition is not
    /// [in the way](Self::blocked).
    pub fn fill_gaps(
        &self,
        client: &mut SpiClient,
        key: &RangeKey,
        wanted: &[Piece],
        missing: Vec<usize>,
        marking: Option<Marking>,
    ) -> Result<Vec<pg_sys::Oid>, Failure> {
        let mut created = Vec::with_capacity(missing.len());
        let mut heritage = Heritage::default();
        for piece in missing {
            self.statement(&wanted[piece]).update(client)?;
            let partition = self.find(&wanted[piece]).unwrap_or(pg_sys::InvalidOid);
            if let Some(held) = Held::of(partition, pg_sys::AccessExclusiveLock) {
                heritage.pass_on(client, key.table(), (partition, &held))?;
                if let Some(marking) = marking {
                    marking.set(partition, &wanted[piece].ids);
                }
            }
            created.push(partition);
        }
        Ok(created)
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

/// How many indexes a table ($1) has.
const INDEXES: &str = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_index WHERE indrelid OPERATOR(pg_catalog.=) $1";

/// How many partitions of a table one call makes: no more than three quarters of the server's locks are for, as each takes one lock for
/// itself, two for its TOAST table, and one for each of its indexes.
pub fn most(client: &SpiClient, table: pg_sys::Oid) -> Result<usize, spi::Error> {
    let indexes = client.select(INDEXES, Some(1), &[table.into()])?.first().get_one::<i64>()?.unwrap_or_default();
    // SAFETY: variables of this process, which do not change.
    let locks =
        unsafe { i64::from(pg_sys::max_locks_per_xact) * i64::from(pg_sys::MaxBackends + pg_sys::max_prepared_xacts) };
    let most = (locks / 4 * 3 / (3 + indexes)).clamp(1, MAX_PIECES as i64);
    Ok(usize::try_from(most).unwrap_or(1))
}

/// Whether the database has what moves rows out of a default partition, as a row: objects of 0.2.0 have it not.
const PROCEDURE: &str = "SELECT FROM pg_catalog.pg_proc JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) pronamespace \
     WHERE nspname OPERATOR(pg_catalog.=) '_snowflake' AND proname OPERATOR(pg_catalog.=) 'partition_default_rows'";

/// The lowest of these IDs in a table and its partitions. Foreign tables among these are not looked at.
pub fn lowest_of(table: pg_sys::Oid, ids: &Range<i64>, column: &CStr) -> Option<i64> {
    let tables = catalog::with_heirs(table).into_iter();
    tables.filter_map(|table| lowest_in_one(table, ids, column)).min()
}

/// The lowest of these IDs in a table alone.
pub fn lowest_in_one(table: pg_sys::Oid, ids: &Range<i64>, column: &CStr) -> Option<i64> {
    let open = OpenRelation::open(table, pg_sys::AccessShareLock)?;
    let last = ids.end.checked_sub(1)?;
    IntegerColumn::named(&open, column)?.lowest(ids.start..=last)
}
