//! Whose keys a table has: whether its default makes IDs, and from which key on those of a
//! partition are known to be IDs. Only these have an age. [`snowflake_core::pieces::mark`] decides;
//! this reads the catalogue, and marks partitions, by OID.

use super::failure::Failure;
use super::key::RangeKey;
use super::marks::{Marking, mark, set_mark};
use super::names::shown;
use super::table::{Table, lowest_of};
use crate::postgres::encoding::Text;
use crate::postgres::held::{NamedRelation, Seen};
use crate::postgres::integers::has_row_of;
use crate::postgres::{catalog, encoding, own, restricted, snapshot};
use crate::{record, settings};
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::Edge;
use snowflake_core::pieces::mark::{Proof, Unknown, is_jobs_suffix, known_from};
use snowflake_core::{Layout, UnixMicros};
use std::collections::HashMap;
use std::ffi::CString;
use std::ops::Range;

/// Of a column ($2) of a table ($1): whether it has a default, or its domain has one, whether that
/// is one that makes IDs by snowflake_next() ($3) and by nothing else, and whether it was made in
/// the transaction that made the table. Runs with a `search_path` of `pg_catalog`.
const SOURCE: &str = "
    SELECT d.oid IS NOT NULL OR a.attidentity <> '' OR y.typdefaultbin IS NOT NULL,
        EXISTS (SELECT FROM pg_depend WHERE (classid, objid) = (f.class, f.oid)
            AND refclassid = 'pg_proc'::regclass AND refobjid = $3)
        AND NOT EXISTS (SELECT FROM pg_depend AS o WHERE (o.classid, o.objid) = (f.class, f.oid)
            AND (o.refclassid = 'pg_class'::regclass AND o.refobjid <> $1
                OR o.refclassid = 'pg_proc'::regclass AND NOT EXISTS (
                    SELECT FROM pg_depend AS m JOIN pg_depend AS n USING (refclassid, refobjid, deptype)
                    WHERE m.deptype = 'e' AND m.classid = 'pg_proc'::regclass AND m.objid = o.refobjid
                    AND n.classid = 'pg_proc'::regclass AND n.objid = $3))),
        d.xmin = (SELECT s.xmin FROM pg_attribute AS s WHERE s.attrelid = $1 AND s.attname = 'ctid')
    FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = atttypid
        LEFT JOIN pg_attrdef AS d ON (adrelid, adnum) = (attrelid, attnum),
        LATERAL (SELECT CASE WHEN d.oid IS NULL THEN 'pg_type'::regclass ELSE 'pg_attrdef'::regclass END,
            coalesce(d.oid, y.oid)) AS f (class, oid)
    WHERE attrelid = $1 AND attname = $2";

/// How the partitions of a table ($1) were made: each, whether it was made as a partition, whether
/// it was made together with the table, and by which transaction. Runs with a `search_path` of
/// `pg_catalog`.
const MADE: &str = "
    SELECT inhrelid, i.xmin = p.xmin, p.xmin = t.xmin, p.xmin::text::bigint
    FROM pg_inherits AS i JOIN pg_attribute AS p ON p.attrelid = inhrelid AND p.attname = 'ctid',
        pg_attribute AS t WHERE inhparent = $1 AND t.attrelid = $1 AND t.attname = 'ctid'";

/// Partitions without a mark, of tables whose keys snowflake_next() ($1) makes: how many, of how
/// many tables, and one of these. Runs with a `search_path` of `pg_catalog`.
const UNMARKED: &str = "
    SELECT count(*), count(DISTINCT partrelid), min(partrelid::regclass::text)
    FROM pg_partitioned_table JOIN pg_attrdef AS d ON (adrelid, adnum) = (partrelid, partattrs[0])
        JOIN pg_depend ON classid = 'pg_attrdef'::regclass AND objid = d.oid AND refclassid = 'pg_proc'::regclass AND refobjid = $1
        JOIN pg_inherits ON inhparent = partrelid
    WHERE partstrat = 'r' AND partnatts = 1
        AND coalesce(obj_description(inhrelid, 'pg_class'), '') !~ '[[]pg_snowflake: keys from -?[0-9]+ on are IDs of [^]]+[]]$'";

/// Partitions of which nothing says whose keys they have.
pub struct Unmarked {
    /// How many.
    pub partitions: i64,
    /// Of how many tables.
    pub tables: i64,
    /// One of these.
    pub first: String,
}

/// Partitions without a mark, of all tables whose keys we make; `None` where all have one.
///
/// # Errors
/// Where the catalogue cannot be read.
pub fn unmarked() -> Result<Option<Unmarked>, spi::Error> {
    restricted::with(&[restricted::SAFE_PATH], || {
        Spi::connect(|client| {
            let Some(next) = own::next(client)? else { return Ok(None) };
            let (partitions, tables, first) =
                client.select(UNMARKED, Some(1), &[next.into()])?.first().get_three::<i64, i64, Text>()?;
            let found = partitions.zip(tables).zip(first);
            Ok(found.map(|((partitions, tables), Text(first))| Unmarked { partitions, tables, first }))
        })
    })
}

/// Where keys come from that the caller of INSERT does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// `snowflake_next()`.
    Ours,
    /// Another default, or an identity.
    Other,
    /// There is no default.
    Given,
}

/// The layout of a table's keys, and whose word that is.
#[derive(Clone, Copy)]
pub struct KeyLayout {
    /// The layout.
    pub layout: Layout,
    /// Whether the caller names it, and it is not that of the database.
    pub is_named: bool,
}

/// How a partition was made.
#[derive(Clone, Copy)]
struct Made {
    /// As a partition: it was not attached.
    as_partition: bool,
    /// In the transaction that made the table.
    with_table: bool,
    /// By this transaction.
    by: u32,
}

/// Whose keys a table has.
pub struct Keys {
    of: KeyLayout,
    source: Source,
    is_original: bool,
    since: Option<UnixMicros>,
    made: HashMap<u32, Made>,
    column: CString,
}

impl Keys {
    /// Reads it from the catalogue.
    pub fn read<N: NamedRelation>(
        client: &SpiClient,
        table: &Table<N>,
        key: &RangeKey,
        of: KeyLayout,
    ) -> Result<Self, spi::Error> {
        let next = own::next(client)?.unwrap_or(pg_sys::InvalidOid);
        table.owner.run(|| {
            snapshot::latest(|| {
                let arguments = [key.table().into(), encoding::read_name(key.column()).into(), next.into()];
                let found = client.select(SOURCE, Some(1), &arguments)?;
                let (has_default, is_ours, is_original) =
                    if found.is_empty() { (None, None, None) } else { found.first().get_three()? };
                let made = client.select(MADE, None, &[key.table().into()])?.map(|row| {
                    let made = Made {
                        as_partition: row.get(2)?.unwrap_or(false),
                        with_table: row.get(3)?.unwrap_or(true),
                        by: row.get::<i64>(4)?.and_then(|by| u32::try_from(by).ok()).unwrap_or_default(),
                    };
                    Ok::<_, spi::Error>((row.get::<pg_sys::Oid>(1)?.unwrap_or(pg_sys::InvalidOid).to_u32(), made))
                });
                Ok(Self {
                    of,
                    source: match (has_default.unwrap_or(false), is_ours.unwrap_or(false)) {
                        (_, true) => Source::Ours,
                        (true, false) => Source::Other,
                        (false, false) => Source::Given,
                    },
                    is_original: is_original.unwrap_or(false),
                    since: record::since(),
                    made: made.collect::<Result<_, _>>()?,
                    column: key.column().to_owned(),
                })
            })
        })
    }

    /// Why no partition of the table is old, whatever its bounds and its mark say.
    pub fn unfit(&self) -> Option<String> {
        let column = shown(&self.column);
        match (self.of.is_named, self.source) {
            (false, _) if self.of.layout != *settings::layout() => {
                Some("the layout of this server is not that of the database".to_owned())
            }
            (_, Source::Other) => Some(format!(
                "the default of column \"{column}\" is not snowflake_next(), so its keys may come from elsewhere"
            )),
            (true, Source::Ours) => {
                Some(format!("the default of column \"{column}\" makes IDs of the layout of the database"))
            }
            _ => None,
        }
    }

    /// Whether the table's own default makes all IDs of this layout.
    fn is_source(&self) -> bool {
        self.unfit().is_none() && self.source == Source::Ours
    }

    /// Whether another one than ours makes keys that could be taken for IDs of the database.
    pub fn has_other_source(&self) -> bool {
        !self.of.is_named && self.source == Source::Other
    }

    /// From which key on those of partition `number` are known to be IDs.
    ///
    /// # Errors
    /// Why that is known of none, for the row of the partition.
    pub fn known_from<N: NamedRelation>(&self, table: &Table<N>, number: usize) -> Result<i64, String> {
        if let Some(reason) = self.unfit() {
            return Err(reason);
        }
        let (oid, ids) = (table.oid(number), table.bounds().nth(number).cloned());
        let ids = ids.unwrap_or(Edge::Lowest..Edge::Highest);
        let next = (number + 1 < table.bounds().len()).then(|| table.oid(number + 1));
        let proof = self.proof(table, oid, &ids, next);
        known_from(&self.of.layout, &ids, mark(oid).as_ref(), proof, self.since).map_err(why)
    }

    /// The same of the default partition; the first ID of a tick, so that it can be a bound. `None`
    /// where that is known of none, or there is no such partition.
    pub fn known_in_default<N: NamedRelation>(&self, table: &Table<N>) -> Option<i64> {
        let oid = table.default_partition().filter(|_| self.unfit().is_none())?;
        let (layout, ids) = (&self.of.layout, Edge::Lowest..Edge::Highest);
        let proof = self.proof(table, oid, &ids, None);
        let known = known_from(layout, &ids, mark(oid).as_ref(), proof, self.since).ok()?;
        // Of a tick that began before it, nothing is said.
        let Ok(at) = layout.timestamp(known) else { return Some(known) };
        let ticks = [at, UnixMicros(at.0.saturating_add(layout.tick_length().0))];
        let first = ticks.iter().find_map(|&at| layout.lowest_id_from(at).filter(|&first| first >= known));
        Some(first.unwrap_or(i64::MAX))
    }

    fn proof<N: NamedRelation>(
        &self,
        table: &Table<N>,
        partition: pg_sys::Oid,
        ids: &Range<Edge>,
        next: Option<pg_sys::Oid>,
    ) -> Option<Proof> {
        let made = self.made.get(&partition.to_u32()).filter(|_| self.is_source())?;
        // A restore attaches partitions; or it does all in one transaction, with their rows.
        let is_restored =
            || made.with_table && catalog::with_heirs(partition).into_iter().any(|part| has_row_of(part, made.by));
        let followed = next.and_then(|next| self.made.get(&next.to_u32()));
        let name = catalog::relation_name(partition)?;
        let suffix = name.to_bytes().strip_prefix(table.named.names().1.to_bytes());
        let suffix = suffix.and_then(|suffix| str::from_utf8(suffix).ok());
        let has_jobs_name = match (ids.start, suffix) {
            (Edge::Id(start), Some(suffix)) => is_jobs_suffix(&self.of.layout, start, suffix),
            _ => false,
        };
        Some(Proof {
            is_original: self.is_original,
            was_made_here: self.is_original && made.as_partition && !is_restored(),
            is_followed: followed.is_some_and(|next| made.by != next.by),
            has_jobs_name,
        })
    }

    /// The marks of new partitions that end after an ID, the present; `None` where nothing says
    /// whose keys they get. `last`: the partition before the first of them.
    pub fn marking(&self, last: Option<pg_sys::Oid>, present: i64) -> Option<Marking> {
        let is_known = || last.and_then(mark).is_some_and(|mark| mark.layout == self.of.layout);
        let layout = self.of.layout;
        match (self.unfit(), self.of.is_named, self.source) {
            (Some(_), ..) => None,
            (None, true, _) => Some(Marking::new(layout, i64::MIN)),
            (None, false, Source::Ours) => Some(Marking::new(layout, present)),
            (None, false, _) => is_known().then_some(Marking::new(layout, present)),
        }
    }

    /// What marks are to be set by a job, as the mark's `from`, or removed: of partitions that were
    /// made without it, and may get IDs.
    pub fn to_mark<N: NamedRelation>(&self, table: &Table<N>, present: i64) -> Vec<(pg_sys::Oid, Option<i64>)> {
        let ends_later = |ids: &Range<Edge>| ids.end > Edge::Id(present);
        let all = table.bounds().cloned().enumerate();
        if self.has_other_source() {
            // What comes now is of another generator.
            let open = all.filter(|(_, ids)| ends_later(ids)).map(|(number, _)| table.oid(number));
            let marked = open.chain(table.default_partition()).filter(|&oid| mark(oid).is_some());
            return marked.map(|oid| (oid, None)).collect();
        } else if !self.is_source() {
            return Vec::new();
        }
        let is_unmarked = |oid: pg_sys::Oid| mark(oid).is_none() && catalog::owns(oid);
        let unmarked = all.filter(|&(number, _)| is_unmarked(table.oid(number)));
        let mut marks: Vec<_> = unmarked
            .filter_map(|(number, ids)| {
                let oid = table.oid(number);
                let from = match (self.known_from(table, number), ids.start) {
                    (Ok(from), _) => from,
                    (Err(_), Edge::Id(start))
                        if ends_later(&ids) && lowest_of(oid, &(i64::MIN..i64::MAX), &self.column).is_none() =>
                    {
                        start
                    }
                    (Err(_), _) if ends_later(&ids) => present,
                    _ => return None,
                };
                Some((oid, Some(from)))
            })
            .collect();
        if let Some(default) = table.default_partition().filter(|&oid| is_unmarked(oid)) {
            marks.push((default, Some(self.known_in_default(table).unwrap_or(present))));
        }
        marks
    }
}

/// After a column of a table was given its IDs, by `snowflake_adopt()`: its partitions are marked
/// from the first on. `column` is its number: partitions by another key stay as they are.
///
/// # Errors
/// Where the catalogue cannot be read.
pub fn adopted(client: &SpiClient, table: pg_sys::Oid, column: i16, first: i64) -> Result<(), Failure> {
    let layout = record::layout();
    each_open(client, table, column, first, |partition, from| {
        set_mark(partition, Some((from, layout)));
    })
}

/// After it gets other keys, by `snowflake_release()`: those from this one on have no age.
///
/// # Errors
/// Where the catalogue cannot be read.
pub fn released(client: &SpiClient, table: pg_sys::Oid, column: i16, first: i64) -> Result<(), Failure> {
    each_open(client, table, column, first, |partition, _| {
        if mark(partition).is_some() {
            set_mark(partition, None);
        }
    })
}

/// The partitions that may get keys from this one on, each with the first of these that it may
/// hold.
fn each_open(
    client: &SpiClient,
    table: pg_sys::Oid,
    column: i16,
    first: i64,
    mut work: impl FnMut(pg_sys::Oid, i64),
) -> Result<(), Failure> {
    let key = match RangeKey::of(client, table) {
        Ok(key) if catalog::column_number(table, key.column()) == Some(column) => key,
        Ok(_) | Err(Failure::Refused(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let open = Table::<Seen>::look(&key)?.parts_from(first);
    open.into_iter().for_each(|(partition, from)| work(partition, from));
    Ok(())
}

/// Why keys have no age, for the row of a partition.
fn why(unknown: Unknown) -> String {
    match unknown {
        Unknown::Unmarked => "nothing says that its keys are snowflake IDs: see snowflake_declare_keys()".to_owned(),
        Unknown::OfLayout(layout) => format!("its keys are IDs of the layout \"{layout}\""),
    }
}
