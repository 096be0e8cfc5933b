//! Tables that have members: partitions, children by inheritance, and the parts of a UNION ALL.
//!
//! Partitions by ID are pruned by conditions on the ID. So for a table that has members, those are added which follow from conditions on
//! its times. They say nothing new, and the planner would take a row for twice as rare. So a member gets what it has a use for: one
//! that has members itself, both; a foreign table, whose server knows only IDs, those on the ID instead; any other, none.

use super::comparisons::Use;
use super::nodes::{cast, elements, list, numbers};
use super::statistics::Expressions;
use super::{comparisons, lists, members, operators, pruning, rising, statistics, twins, versions};
use pg_sys::{AppendRelInfo, List, Node, PlannerInfo, RelOptInfo, RestrictInfo};
use pgrx::prelude::*;

/// What becomes of a table's conditions on its times.
///
/// # Safety
/// The planner's state, and a table of it.
pub unsafe fn use_of(root: *mut PlannerInfo, table: *mut RelOptInfo) -> Use {
    // SAFETY: as above; the array has an element for each number of a table in the query.
    unsafe {
        let entry = *(*root).simple_rte_array.add((*table).relid as usize);
        if (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION {
            Use::Plain
        } else if !(*entry).securityQuals.is_null() || (*entry).relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE {
            Use::IdsOnly
        } else if (*entry).inh || is_extended_later(entry) {
            Use::Both
        } else {
            Use::Plain
        }
    }
}

/// Adds to the conditions of a query what a table has a use for.
///
/// # Safety
/// The planner's state of a query whose expressions are preprocessed, and not distributed yet; and a table of it that is no member.
pub unsafe fn add_conditions(root: *mut PlannerInfo, table: *mut RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        let which = use_of(root, table);
        if which == Use::Both || twins::has_any(table) {
            lists::spread(root, (*table).relid);
        }
        if which != Use::Plain {
            let added = comparisons::rewrite(root, table, which);
            if let Some(state) = Expressions::of_table(table) {
                state.conditions.implied = list(&added);
            }
        }
    }
}

/// Whether a table has children that PostgreSQL does not add: the query asks for ONLY the table, or an extension adds its children by itself, as
/// TimescaleDB does.
///
/// # Safety
/// A table of the query.
unsafe fn is_extended_later(entry: *mut pg_sys::RangeTblEntry) -> bool {
    // SAFETY: as above.
    unsafe { (*entry).relkind as u8 == pg_sys::RELKIND_RELATION && pg_sys::has_subclass((*entry).relid) }
}

/// Whether the whole that a table is about to be added to has conditions that are there for a member which was added before. Calls nothing
/// of PostgreSQL, and takes no memory.
///
/// # Safety
/// As [`hand_down`].
pub unsafe fn has_others(root: *mut PlannerInfo, member: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        rising::place(root, member).is_some_and(|(_, whole)| {
            elements::<RestrictInfo>((*whole).baserestrictinfo)
                .any(|one| numbers((*one).clause_relids).any(|table| table != (*whole).relid as usize))
        })
    }
}

/// Notes that an extension may add members to a table later. It has conditions on the ID until then.
///
/// # Safety
/// A table of the planner.
pub unsafe fn expect_members(table: *mut RelOptInfo) {
    // SAFETY: as above.
    if let Some(state) = unsafe { Expressions::of_table(table) } {
        state.conditions.expects_members = true;
    }
}

/// Whether an extension may add members to a table later. Calls nothing of PostgreSQL.
///
/// # Safety
/// A table of the planner.
pub unsafe fn expects_members(table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe { Expressions::of_table(table) }.is_some_and(|state| state.conditions.expects_members)
}

/// Whether there may be something to do when the paths of a table are made. TimescaleDB takes the indexes, and so what is known of its times,
/// from a compressed chunk; its hypertable has that still. Calls nothing of PostgreSQL.
///
/// # Safety
/// The planner's state, and a table of it.
pub unsafe fn is_prepared(root: *mut PlannerInfo, table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        statistics::is_prepared(table)
            || (*table).indexlist.is_null()
                && rising::place(root, table).is_some_and(|(_, whole)| statistics::is_prepared(whole))
    }
}

/// The conditions of a table without those that were added for members, which it has not got.
///
/// # Safety
/// A table of the planner.
pub unsafe fn own_conditions(table: *mut RelOptInfo) -> *mut List {
    // SAFETY: as above.
    unsafe {
        match Expressions::of_table(table) {
            Some(state) if state.conditions.expects_members => {
                without((*table).baserestrictinfo, state.conditions.implied)
            }
            _ => (*table).baserestrictinfo,
        }
    }
}

/// Sees to it that a table that is about to be added to a whole gets the conditions that it has a use for: it gets those that the whole has.
///
/// # Safety
/// The planner's state, and a member that is looked at, and not added yet.
pub unsafe fn hand_down(root: *mut PlannerInfo, member: *mut RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        let Some((place, whole)) = rising::place(root, member) else { return };
        let own = match Expressions::of_table(whole) {
            Some(state) => {
                let state = &mut state.conditions;
                if state.all.is_null() {
                    state.all = (*whole).baserestrictinfo;
                    state.handed_down = without(state.all, state.implied);
                }
                state.handed_down
            }
            None => members::of_whole(root, whole),
        };
        // What is there for one member alone is taken away before the next one is added; but only tables come here.
        let which = use_of(root, member);
        let has_use = which != Use::Plain || twins::has_any(member);
        (*whole).baserestrictinfo = match which {
            _ if has_use && reads_rows(root, place, own) => own,
            Use::Plain => {
                let is_child = (*whole).rtekind == pg_sys::RTEKind::RTE_RELATION && (*whole).part_scheme.is_null();
                let own =
                    if twins::has_any(member) { members::with_alternatives(root, place, member, own) } else { own };
                if is_child && members::is_excluded(root, member, own) {
                    members::with_implied(root, place, member, own, false)
                } else {
                    own
                }
            }
            Use::Both => {
                let own = members::with_alternatives(root, place, member, own);
                members::with_implied(root, place, member, own, false)
            }
            Use::IdsOnly => members::with_implied(root, place, member, own, true),
        };
    }
}

/// Whether a condition of a UNION ALL reads its rows as wholes. For a member, these are made of all of its columns, and so would be of those that
/// stand for conditions. What else a query reads of the rows is made without them.
///
/// # Safety
/// The planner's state, a member's place, and the conditions of its whole.
unsafe fn reads_rows(root: *mut PlannerInfo, place: *mut AppendRelInfo, conditions: *mut List) -> bool {
    // SAFETY: as above; the array has an element for each number of a table in the query.
    unsafe {
        let number = (*place).parent_relid;
        if (**(*root).simple_rte_array.add(number as usize)).rtekind != pg_sys::RTEKind::RTE_SUBQUERY {
            return false;
        }
        let mut columns = std::ptr::null_mut();
        for condition in elements::<RestrictInfo>(conditions) {
            pg_sys::pull_varattnos((*condition).clause.cast(), number, &raw mut columns);
        }
        pg_sys::bms_is_member(-pg_sys::FirstLowInvalidHeapAttributeNumber, columns)
    }
}

/// The conditions without those that were added, which come in this order.
///
/// # Safety
/// Conditions of the planner, and expressions.
unsafe fn without(conditions: *mut List, implied: *mut List) -> *mut List {
    // SAFETY: as above.
    unsafe {
        let implied: Vec<*mut Node> = elements(implied).collect();
        let mut next = 0;
        let mut is_own = |condition: *mut Node| {
            if !compares_ids(condition) {
                return true;
            }
            let is_same = |one: &*mut Node| *one == condition || pg_sys::equal(one.cast(), condition.cast());
            match implied[next..].iter().position(is_same) {
                Some(at) => next += at + 1,
                None => return true,
            }
            false
        };
        let own: Vec<*mut RestrictInfo> =
            elements::<RestrictInfo>(conditions).filter(|&one| is_own((*one).clause.cast())).collect();
        list(&own)
    }
}

/// Whether a condition may be one that is made here: a comparison of IDs, or several.
///
/// # Safety
/// A condition.
unsafe fn compares_ids(condition: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        cast::<pg_sys::BoolExpr>(condition).is_some()
            || cast::<pg_sys::NullTest>(condition).is_some()
            || cast::<pg_sys::OpExpr>(condition).is_some_and(|one| operators::bounds_ids(one.opno.to_u32()))
    }
}

/// The paths of a table that has members are made. Conditions of joins are as before, and the others are all there again: PostgreSQL prunes by
/// them when the query runs.
///
/// # Safety
/// The planner's state, and a table of it that has members, and whose paths are made.
pub unsafe fn restore(root: *mut PlannerInfo, whole: *mut RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        let Some(state) = Expressions::of_table(whole) else {
            (*whole).baserestrictinfo = with_those_of_members(root, whole);
            return;
        };
        let state = &mut state.conditions;
        if !state.all.is_null() {
            (*whole).baserestrictinfo = state.all;
        }
        pruning::remove_joins(whole, state);
    }
}

/// The conditions of a UNION ALL, and those that its members have got.
///
/// # Safety
/// As [`restore`].
unsafe fn with_those_of_members(root: *mut PlannerInfo, whole: *mut RelOptInfo) -> *mut List {
    // SAFETY: as above.
    unsafe {
        let mut all: Vec<*mut RestrictInfo> = elements(members::of_whole(root, whole)).collect();
        let own = all.len();
        for place in elements::<AppendRelInfo>((*root).append_rel_list) {
            let member = *(*root).simple_rel_array.add((*place).child_relid as usize);
            if (*place).parent_relid != (*whole).relid || member.is_null() || (*member).part_scheme.is_null() {
                continue;
            }
            if let Some(state) = Expressions::of_table(member) {
                let implied = elements::<Node>(state.conditions.implied);
                all.extend(implied.map(|condition| versions::restriction(root, condition)));
            }
        }
        if all.len() == own { members::of_whole(root, whole) } else { list(&all) }
    }
}
