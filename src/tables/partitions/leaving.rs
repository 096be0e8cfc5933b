//! Partitions that are older than rows are kept: whether they may go, and by which statement.

use super::key::RangeKey;
use super::table::{Table, lowest_in_one};
use crate::postgres::encoding::Text;
use crate::postgres::held::{NamedRelation, Seen, Sql};
use crate::postgres::snapshot;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::Edge;
use snowflake_core::pieces::upkeep::Age;
use std::ops::Range;

/// How partitions go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// They become tables by themselves.
    Detach,
    /// The same by a statement that the caller runs, as no function can.
    DetachConcurrently,
    /// They are dropped, with their rows.
    Drop,
}

impl Leaving {
    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Detach, Self::DetachConcurrently, Self::Drop].into_iter().find(|leaving| leaving.name() == name)
    }

    /// Its name in SQL.
    const fn name(self) -> &'static str {
        match self {
            Self::Detach => "detach",
            Self::DetachConcurrently => "detach concurrently",
            Self::Drop => "drop",
        }
    }
}

/// A partition that is older than rows are kept.
pub struct Old {
    /// The partition.
    pub partition: pg_sys::Oid,
    /// Its name.
    pub named: Seen,
    /// What it holds.
    pub ids: Range<Edge>,
    /// How it goes; `None` where it stays.
    pub exit: Option<Exit>,
    /// Why it stays.
    pub note: Option<String>,
    /// Whether it is one of ours, and something keeps it.
    pub is_obstructed: bool,
}

impl Old {
    /// Whether the statement is for us to run.
    pub fn is_carried_out(&self) -> bool {
        self.exit.is_some_and(|exit| exit != Exit::DetachConcurrently)
    }

    /// What happens to it.
    pub fn action(&self) -> &'static str {
        match self.exit {
            None => "keep",
            Some(Exit::Detach | Exit::Finalize) => Leaving::Detach.name(),
            Some(Exit::DetachConcurrently) => Leaving::DetachConcurrently.name(),
            Some(Exit::Drop) => Leaving::Drop.name(),
        }
    }
}

/// The statement by which a partition goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It becomes a table by itself.
    Detach,
    /// The same, where somebody has begun to, by CONCURRENTLY, and was interrupted.
    Finalize,
    /// The same, by the caller.
    DetachConcurrently,
    /// It is dropped.
    Drop,
}

impl Exit {
    /// The statement for a partition of a table.
    pub fn statement<N: NamedRelation>(self, table: &N, partition: &N) -> Sql<N> {
        let detach = || Sql::new("ALTER TABLE ").name(table).text(" DETACH PARTITION ").name(partition);
        match self {
            Self::Detach => detach(),
            Self::Finalize => detach().text(" FINALIZE"),
            Self::DetachConcurrently => detach().text(" CONCURRENTLY"),
            Self::Drop => Sql::new("DROP TABLE ").name(partition),
        }
    }
}

/// Why a partition ($1) stays, and whether somebody has begun to detach it. $2 says whether it is to be dropped. Runs with a
/// `search_path` of `pg_catalog`, as the owner of the table.
///
/// What belongs to the partition goes with it, such as its type, or a sequence of a column; what others have of these keeps it, as DROP
/// would fail, and with it all that the call does.
const FACTS: &str = "
    WITH RECURSIVE parts (classid, objid) AS (
        SELECT 'pg_class'::regclass::oid, $1::oid WHERE $2
        UNION
        SELECT d.classid, d.objid FROM parts JOIN pg_depend d ON d.refclassid = parts.classid AND d.refobjid = parts.objid
        WHERE d.deptype IN ('a', 'i', 'P', 'S')
    )
    SELECT CASE
        WHEN relkind = 'f' THEN 'it is a foreign table'
        WHEN relkind <> 'r' THEN 'it has partitions of its own'
        WHEN NOT pg_has_role(relowner, 'USAGE') THEN format('it belongs to role %I', pg_get_userbyid(relowner))
        WHEN referring IS NOT NULL THEN format('rows of %s may refer to its rows', referring)
        WHEN extension IS NOT NULL THEN format('it belongs to %s', extension)
        WHEN dependent IS NOT NULL THEN format('%s depends on it', dependent)
    END, inhdetachpending
    FROM pg_class c JOIN pg_inherits ON inhrelid = c.oid
    LEFT JOIN LATERAL (
        SELECT min(conrelid::regclass::text) AS referring FROM pg_constraint WHERE confrelid = c.oid AND contype = 'f'
    ) AS keys ON true
    LEFT JOIN LATERAL (
        SELECT min(pg_describe_object(d.refclassid, d.refobjid, 0)) AS extension FROM parts JOIN pg_depend d USING (classid, objid)
        WHERE d.deptype = 'e'
    ) AS extensions ON true
    LEFT JOIN LATERAL (
        SELECT min(pg_describe_object(d.classid, d.objid, d.objsubid)) AS dependent
        FROM parts JOIN pg_depend d ON d.refclassid = parts.classid AND d.refobjid = parts.objid
        WHERE d.deptype = 'n' AND (d.classid, d.objid) NOT IN (SELECT classid, objid FROM parts)
    ) AS objects ON true
    WHERE c.oid = $1";

/// What happens to a partition of a table; `None` where it is gone meanwhile. `known`: from which key on they are known to be IDs, which
/// have an age; or why that is known of none, for this partition or for the whole table.
#[allow(clippy::too_many_arguments, reason = "each is one thing")]
pub fn look<N: NamedRelation>(
    client: &SpiClient,
    table: &Table<N>,
    key: &RangeKey,
    known: Result<i64, String>,
    partition: pg_sys::Oid,
    ids: Range<Edge>,
    age: Age,
    leaving: Leaving,
) -> Result<Option<Old>, spi::Error> {
    let Some(named) = Seen::of(partition) else { return Ok(None) };
    let stays = |named, ids, note, is_obstructed| {
        Ok(Some(Old { partition, named, ids, exit: None, note: Some(note), is_obstructed }))
    };
    if age == Age::Untold {
        // Of one from MINVALUE, nobody thinks that it stays for ever.
        let is_first = ids.start == Edge::Lowest;
        return stays(named, ids, "its bounds do not say how old its rows are".to_owned(), is_first);
    }
    let is_drop = leaving == Leaving::Drop;
    let facts = || {
        let found = client.select(FACTS, Some(1), &[partition.into(), is_drop.into()])?;
        if found.is_empty() { Ok(None) } else { found.first().get_two::<Text, bool>().map(Some) }
    };
    let Some((reason, is_pending)) = table.owner.run(|| snapshot::latest(facts))? else { return Ok(None) };
    if let Some(Text(reason)) = reason {
        return stays(named, ids, reason, true);
    }
    let first = *known.as_ref().unwrap_or(&i64::MAX);
    if ids.start < Edge::Id(first) && lowest_in_one(partition, &(i64::MIN..first), key.column()).is_some() {
        let of_some = |first| {
            format!(
                "it has keys below {first}, of which nothing says that they are snowflake IDs: see snowflake_declare_keys()"
            )
        };
        return stays(named, ids, known.map_or_else(|reason| reason, of_some), true);
    }
    let exit = match leaving {
        Leaving::Drop => Exit::Drop,
        _ if is_pending == Some(true) => Exit::Finalize,
        Leaving::DetachConcurrently => Exit::DetachConcurrently,
        Leaving::Detach => Exit::Detach,
    };
    let note = (exit == Exit::DetachConcurrently).then(|| "run the statement by itself".to_owned());
    Ok(Some(Old { partition, named, ids, exit: Some(exit), note, is_obstructed: false }))
}
