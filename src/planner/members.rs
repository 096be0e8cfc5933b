//! A UNION ALL of tables, as one table of a query:
//!
//! ```sql
//! CREATE VIEW v AS SELECT *, snowflake_timestamp(id) AS created_at FROM orders
//!        UNION ALL SELECT *, snowflake_timestamp(id) FROM archived_orders
//! ```
//!
//! The planner makes each of them a *member* of the whole. A condition on the whole is on one of its columns; it is translated
//! into one on each member only when that is added to the whole. So the condition is rewritten just before the first member is
//! added, to one on the column that is the ID in each member. Where the whole has no such column, it gets one more.
//!
//! A member with conditions of its own is not in here: the planner leaves it a subquery, with the conditions on the whole added.

use super::comparisons::Rewriter;
use super::functions::IdTime;
use super::nodes::{cast, copy, elements, list, without_labels};
use super::{bounds, indexes};
use pg_sys::{AppendRelInfo, Node, PlannerInfo, RelOptInfo, RestrictInfo};
use pgrx::prelude::*;
use std::cell::RefCell;

/// Whether the whole that a table is about to be added to is a UNION ALL, and has conditions.
///
/// # Safety
/// As [`rewrite`].
pub unsafe fn may_have_conditions(root: *mut PlannerInfo, member: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        let number = (**(*root).append_rel_array.add((*member).relid as usize)).parent_relid;
        let whole = *(*root).simple_rel_array.add(number as usize);
        (*whole).rtekind == pg_sys::RTEKind::RTE_SUBQUERY && !(*whole).baserestrictinfo.is_null()
    }
}

/// Rewrites the conditions of the whole that a table is about to be added to.
///
/// # Safety
/// The planner's state, and a member that is looked at, and not added yet.
pub unsafe fn rewrite(root: *mut PlannerInfo, member: *mut RelOptInfo) {
    // SAFETY: as above; a member has an entry in this array, whose numbers are those of tables of the query.
    unsafe {
        let number = (**(*root).append_rel_array.add((*member).relid as usize)).parent_relid;
        let whole = *(*root).simple_rel_array.add(number as usize);
        if (*whole).rtekind != pg_sys::RTEKind::RTE_SUBQUERY || (*whole).baserestrictinfo.is_null() {
            return;
        }
        // A column of the whole may be in several conditions.
        let known: RefCell<Vec<(*mut Node, IdTime)>> = RefCell::default();
        let known_time = |column: *mut Node| {
            let mut known = known.borrow_mut();
            if let Some((_, time)) = known.iter().find(|(other, _)| pg_sys::equal(other.cast(), column.cast())) {
                return Some(*time);
            }
            let time = time_of(root, number, column)?;
            known.push((column, time));
            Some(time)
        };
        let rewriter = Rewriter { root, time_of: &known_time };
        let (mut new, mut made) = (Vec::new(), Vec::new());
        for restriction in elements::<RestrictInfo>((*whole).baserestrictinfo) {
            let condition: *mut Node = (*restriction).clause.cast();
            match rewriter.one(condition) {
                Some(conditions) => {
                    new.extend(elements::<Node>(conditions).map(|condition| (restriction, condition)));
                    made.extend(elements::<Node>(conditions));
                }
                None => new.push((restriction, condition)),
            }
        }
        if made.is_empty() {
            return;
        }
        let conditions: Vec<_> = new.iter().map(|&(_, condition)| condition).collect();
        let needed = bounds::without_implied(&conditions, &made);
        new.retain(|(_, condition)| needed.contains(condition));
        let new: Vec<_> = new.into_iter().map(|(restriction, condition)| instead(restriction, condition)).collect();
        (*whole).baserestrictinfo = list(&new);
    }
}

/// Another condition in place of one, of which only the condition itself, and how and when it may be evaluated, matter from here on.
///
/// # Safety
/// A condition of the planner, and an expression.
unsafe fn instead(restriction: *mut RestrictInfo, condition: *mut Node) -> *mut RestrictInfo {
    // SAFETY: as above.
    unsafe {
        if condition == (*restriction).clause.cast() {
            return restriction;
        }
        let new = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<RestrictInfo>();
        new.copy_from_nonoverlapping(restriction, 1);
        (*new).clause = condition.cast();
        (*new).orclause = std::ptr::null_mut();
        new
    }
}

/// An expression over the whole as the time of an ID, where it is that in all members, with the same layout. The ID is a column
/// of the whole.
///
/// # Safety
/// The planner's state, the number of the whole, and an expression.
unsafe fn time_of(root: *mut PlannerInfo, whole: pg_sys::Index, expression: *mut Node) -> Option<IdTime> {
    // SAFETY: as above; the translations of the columns are in their order.
    unsafe {
        if let Some(time) = IdTime::read(expression) {
            // The members have the ID only; on most majors, nothing has looked at the condition before.
            return Some(time);
        }
        let column = cast::<pg_sys::Var>(expression).filter(|column| column.varno as pg_sys::Index == whole)?;
        let at = usize::try_from(column.varattno).ok()?.checked_sub(1)?;
        let mut times = Vec::new();
        for member in members(root, whole) {
            let time = IdTime::read(elements::<Node>((*member).translated_vars).nth(at)?)?;
            let is_column = cast::<pg_sys::Var>(without_labels(time.id)).is_some();
            if !is_column || indexes::serve_time_only(root, &time) {
                return None;
            }
            times.push(time);
        }
        let first = *times.first()?;
        if times.iter().any(|time| time.layout() != first.layout()) {
            return None;
        }
        let number = id_column(root, whole, &times).or_else(|| add_id_column(root, whole, &times))?;
        let id = pg_sys::makeVar(whole as _, number, pg_sys::INT8OID, -1, pg_sys::InvalidOid, 0);
        Some(first.of(id.cast()))
    }
}

/// # Safety
/// The planner's state, and the number of the whole.
unsafe fn members(root: *mut PlannerInfo, whole: pg_sys::Index) -> impl Iterator<Item = *mut AppendRelInfo> {
    // SAFETY: as above.
    unsafe { elements::<AppendRelInfo>((*root).append_rel_list).filter(move |&member| (*member).parent_relid == whole) }
}

/// The number of the column that is the ID in each member; `None` where the whole has none.
///
/// # Safety
/// As [`time_of`]; a time for each member.
unsafe fn id_column(root: *mut PlannerInfo, whole: pg_sys::Index, times: &[IdTime]) -> Option<i16> {
    // SAFETY: as above.
    unsafe {
        let columns = (*members(root, whole).next()?).translated_vars;
        let is_id = |at: &usize| {
            members(root, whole).zip(times).all(|(member, time)| {
                elements::<Node>((*member).translated_vars)
                    .nth(*at)
                    .is_some_and(|column| pg_sys::equal(column.cast(), time.id.cast()))
            })
        };
        i16::try_from((0..elements::<Node>(columns).len()).find(is_id)? + 1).ok()
    }
}

/// Adds a column to the whole, which is the ID in each member, and returns its number; `None` where the query reads whole rows,
/// which are made of all columns.
///
/// # Safety
/// As [`id_column`].
unsafe fn add_id_column(root: *mut PlannerInfo, whole: pg_sys::Index, times: &[IdTime]) -> Option<i16> {
    // SAFETY: as above.
    unsafe {
        if reads_rows(root, *(*root).simple_rel_array.add(whole as usize)) {
            return None;
        }
        let mut number = 0;
        for (member, time) in members(root, whole).zip(times) {
            (*member).translated_vars = pg_sys::lappend((*member).translated_vars, copy(time.id).cast());
            number = (*(*member).translated_vars).length;
        }
        i16::try_from(number).ok()
    }
}

/// Whether the query reads rows of the whole as such: `SELECT v FROM v`, `UPDATE ... FROM v`, `FOR UPDATE` of a table beside it.
///
/// # Safety
/// The planner's state, and the whole, whose conditions are distributed.
unsafe fn reads_rows(root: *mut PlannerInfo, whole: *mut RelOptInfo) -> bool {
    const WHOLE_ROW: i32 = -pg_sys::FirstLowInvalidHeapAttributeNumber;
    // SAFETY: as above; the array of what is needed above the whole begins with its lowest column.
    unsafe {
        let needed = *(*whole).attr_needed.offset(-isize::from((*whole).min_attr));
        let mut columns = std::ptr::null_mut();
        let mut add = |expression: *mut Node| pg_sys::pull_varattnos(expression, (*whole).relid, &raw mut columns);
        for restriction in elements::<RestrictInfo>((*whole).baserestrictinfo) {
            add((*restriction).clause.cast());
        }
        // Where the whole is a member itself; and what an outer join makes NULL.
        add((*root).append_rel_list.cast());
        add((*root).placeholder_list.cast());
        !needed.is_null() || pg_sys::bms_is_member(WHOLE_ROW, columns)
    }
}
