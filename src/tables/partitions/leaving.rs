//! Partitions that are older than rows are kept: whether they may go, and by which statement.

use super::key::RangeKey;
use super::names::{c_string, quoted};
use super::table::{Table, query_for_lowest};
use crate::postgres::encoding::Text;
use crate::postgres::restricted::Owner;
use crate::postgres::{catalog, snapshot};
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::Edge;
use snowflake_core::pieces::upkeep::Age;
use std::ffi::CString;
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
    /// Its schema.
    pub schema: CString,
    /// Its name.
    pub name: CString,
    /// What it holds.
    pub ids: Range<Edge>,
    /// What happens to it.
    pub action: &'static str,
    /// By which statement; `None` where it stays.
    pub statement: Option<CString>,
    /// Why it stays.
    pub note: Option<String>,
    /// Whether it is one of ours, and something keeps it.
    pub is_obstructed: bool,
}

impl Old {
    /// Whether the statement is for us to run.
    pub fn is_carried_out(&self) -> bool {
        self.statement.is_some() && self.action != Leaving::DetachConcurrently.name()
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

/// What happens to a partition of a table; `None` where it is gone meanwhile. Below `first_with_age`, keys have no age.
#[allow(clippy::too_many_arguments, reason = "each is one thing")]
pub fn look(
    client: &SpiClient,
    table: &Table,
    key: &RangeKey,
    first_with_age: i64,
    partition: pg_sys::Oid,
    ids: Range<Edge>,
    age: Age,
    leaving: Leaving,
) -> Result<Option<Old>, spi::Error> {
    let Some((schema, name)) = catalog::qualified_name(partition) else { return Ok(None) };
    let stays = |schema, name, ids, note, is_obstructed| {
        Ok(Some(Old { schema, name, ids, action: "keep", statement: None, note: Some(note), is_obstructed }))
    };
    if age == Age::Untold {
        // Of one from MINVALUE, nobody thinks that it stays for ever.
        let is_first = ids.start == Edge::Lowest;
        return stays(schema, name, ids, "its bounds do not say how old its rows are".to_owned(), is_first);
    }
    let is_drop = leaving == Leaving::Drop;
    let facts = || {
        let found = client.select(FACTS, Some(1), &[partition.into(), is_drop.into()])?;
        if found.is_empty() { Ok(None) } else { found.first().get_two::<Text, bool>().map(Some) }
    };
    let Some((reason, is_pending)) = table.owner.run(|| snapshot::latest(facts))? else { return Ok(None) };
    if let Some(Text(reason)) = reason {
        return stays(schema, name, ids, reason, true);
    }
    let (of, whole) = (table.quoted(), quoted(&schema, &name));
    if ids.start < Edge::Id(first_with_age)
        && let Some(owner) = Owner::of(partition)
    {
        let below = query_for_lowest(&(i64::MIN..first_with_age), key.column(), &whole);
        let below = || Ok::<_, spi::Error>(!client.select(&*below, Some(1), &[])?.is_empty());
        let note = if owner.run(|| snapshot::latest(below))? {
            Some(
                "it has keys of the layout's first hour, as tables have from before, which do not say how old rows are",
            )
        } else if snapshot::is_of_transaction() {
            Some("it may have keys of the layout's first hour that only a READ COMMITTED transaction sees")
        } else {
            None
        };
        if let Some(note) = note {
            return stays(schema, name, ids, note.to_owned(), true);
        }
    }
    let detach =
        |end: &[u8]| [&b"ALTER TABLE "[..], of.to_bytes(), b" DETACH PARTITION ", whole.to_bytes(), end].concat();
    let (action, statement) = match leaving {
        Leaving::Drop => (leaving, [&b"DROP TABLE "[..], whole.to_bytes()].concat()),
        // Somebody has begun to, by CONCURRENTLY, and was interrupted.
        _ if is_pending == Some(true) => (Leaving::Detach, detach(b" FINALIZE")),
        Leaving::DetachConcurrently => (leaving, detach(b" CONCURRENTLY")),
        Leaving::Detach => (leaving, detach(b"")),
    };
    let note = (action == Leaving::DetachConcurrently).then(|| "run the statement by itself".to_owned());
    let statement = Some(c_string(statement));
    Ok(Some(Old { schema, name, ids, action: action.name(), statement, note, is_obstructed: false }))
}
