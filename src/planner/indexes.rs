//! Tables that are partitioned by an ID's time itself, or have an index on it and none that begins with the ID:
//!
//! ```sql
//! CREATE INDEX ON orders (snowflake_timestamp(id))
//! CREATE TABLE orders (id bigint, ...) PARTITION BY RANGE (snowflake_timestamp(id))
//! ```
//!
//! A comparison with the time is best left alone there: as one of the ID, it could not use those partitions, or that index.

use super::functions::IdTime;
use super::nodes::{cast, copy, elements, without_labels};
use pgrx::FromDatum;
use pgrx::pg_sys::{self, Node, PlannerInfo};
use std::ffi::CString;

/// Whether the table of an ID serves comparisons of its time better than those of the ID.
///
/// # Safety
/// The planner's state, and a time that was read from its query.
pub unsafe fn serve_time_only(root: *mut PlannerInfo, time: &IdTime) -> bool {
    let mut number = 0;
    // SAFETY: as above. The array has an element for each number of a table in the query, and the query has locked its tables.
    unsafe {
        if !pg_sys::bms_get_singleton_member(pg_sys::pull_varnos(root, time.id), &raw mut number) {
            return false;
        }
        let entry = *(*root).simple_rte_array.add(number as usize);
        if (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION {
            return false;
        }
        // As the table's catalog entries have it: there, the table is number 1.
        let [call, id] = [time.call, without_labels(time.id)].map(|expression| {
            let own = copy(expression);
            pg_sys::ChangeVarNodes(own, number, 1, 0);
            own
        });
        let table = pg_sys::table_open((*entry).relid, pg_sys::NoLock as pg_sys::LOCKMODE);
        let own = partitioned_by(table, call) || {
            let (by_id, by_time) = indexed_by(table, id, call);
            by_time && !by_id
        };
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        own
    }
}

/// Whether a table is partitioned by an expression.
///
/// # Safety
/// A table that is open, and an expression of it.
unsafe fn partitioned_by(table: pg_sys::Relation, expression: *mut Node) -> bool {
    // SAFETY: as above; the attribute is of type `pg_node_tree`, which is stored as a `bytea` is.
    unsafe {
        if (*(*table).rd_rel).relkind as u8 != pg_sys::RELKIND_PARTITIONED_TABLE {
            return false;
        }
        let cache = pg_sys::SysCacheIdentifier::PARTRELID as _;
        let entry = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from((*table).rd_id));
        if entry.is_null() {
            return false;
        }
        let mut is_null = true;
        let attribute = pg_sys::Anum_pg_partitioned_table_partexprs as _;
        let datum = pg_sys::SysCacheGetAttr(cache, entry, attribute, &raw mut is_null);
        let expressions = <&[u8]>::from_datum(datum, is_null).and_then(|text| CString::new(text).ok());
        pg_sys::ReleaseSysCache(entry);
        expressions.is_some_and(|text| {
            let expressions = pg_sys::stringToNode(text.as_ptr());
            elements::<Node>(expressions.cast()).any(|one| pg_sys::equal(one.cast(), expression.cast()))
        })
    }
}

/// Whether a table has an index that begins with the ID; and whether it has one that is made of its time.
///
/// # Safety
/// A table that is open, and two expressions of it.
unsafe fn indexed_by(table: pg_sys::Relation, id: *mut Node, time: *mut Node) -> (bool, bool) {
    let (mut by_id, mut by_time) = (false, false);
    // SAFETY: as above.
    unsafe {
        let is_time = |expression: *mut Node| pg_sys::equal(expression.cast(), time.cast());
        let indexes = pg_sys::RelationGetIndexList(table);
        for at in 0..elements::<Node>(indexes).len() {
            let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
            let index = pg_sys::index_open((*(*indexes).elements.add(at)).oid_value, lock);
            let form = (*index).rd_index;
            if (*form).indisvalid {
                let expressions = pg_sys::RelationGetIndexExpressions(index);
                let conditions = pg_sys::RelationGetIndexPredicate(index);
                by_id |= conditions.is_null() && begins_with(form, expressions, id);
                by_time |= elements::<Node>(expressions).any(is_time);
                by_time |= elements::<Node>(conditions).any(|condition| {
                    cast::<pg_sys::OpExpr>(condition)
                        .is_some_and(|comparison| elements::<Node>(comparison.args).any(is_time))
                });
            }
            pg_sys::index_close(index, lock);
        }
    }
    (by_id, by_time)
}

/// Whether an index begins with the ID: a column, or an expression.
///
/// # Safety
/// The index's entry in the catalog, its expressions, and an expression of its table.
unsafe fn begins_with(form: pg_sys::Form_pg_index, expressions: *mut pg_sys::List, id: *mut Node) -> bool {
    // SAFETY: as above; an index has at least one column.
    unsafe {
        match (*(*form).indkey.values.as_ptr(), cast::<pg_sys::Var>(id)) {
            (0, None) => {
                elements::<Node>(expressions).next().is_some_and(|first| pg_sys::equal(first.cast(), id.cast()))
            }
            (first, Some(column)) => first == column.varattno,
            _ => false,
        }
    }
}
