//! What the planner is told about an ID's time: that it rises with the ID. So an index on the ID serves conditions on the time, joins by it
//! and an order by it ([`twins`]); partitions by ID are pruned by conditions on the time ([`wholes`]); and there are statistics of it
//! ([`statistics`]). This holds in views, subqueries and joins, however the query is written, and takes nothing away from what else
//! serves it.
//!
//! The hooks run for every query of a session that has the library loaded. For a query without our functions they only look at
//! what its conditions compare and what it sorts by.

mod bounds;
mod clauses;
mod comparisons;
mod filters;
mod functions;
mod groups;
mod keys;
mod lists;
mod members;
mod nodes;
mod operators;
mod predicates;
mod pruning;
mod rising;
mod statistics;
mod times;
mod twins;
mod versions;
mod wholes;

use crate::settings;
use once_cell::sync::OnceCell;
use pgrx::prelude::*;

#[cfg(since_pg19)]
use pg_sys::{build_simple_rel_hook as table_hook, build_simple_rel_hook_type as TableHook};
#[cfg(not(since_pg19))]
use pg_sys::{get_relation_info_hook as table_hook, get_relation_info_hook_type as TableHook};

/// The hooks of others, which are called, too.
static PREVIOUS_TABLE_HOOK: OnceCell<TableHook> = OnceCell::new();
static PREVIOUS_PATHS_HOOK: OnceCell<pg_sys::set_rel_pathlist_hook_type> = OnceCell::new();
static PREVIOUS_STATISTICS_HOOK: OnceCell<pg_sys::get_index_stats_hook_type> = OnceCell::new();

/// Installs the hooks. Called once in a process; the postmaster's children inherit them.
pub fn init() {
    // SAFETY: variables that extensions set when they are loaded.
    unsafe {
        PREVIOUS_TABLE_HOOK.get_or_init(|| table_hook);
        table_hook = Some(on_table);
        PREVIOUS_PATHS_HOOK.get_or_init(|| pg_sys::set_rel_pathlist_hook);
        pg_sys::set_rel_pathlist_hook = Some(on_paths);
        PREVIOUS_STATISTICS_HOOK.get_or_init(|| pg_sys::get_index_stats_hook);
        pg_sys::get_index_stats_hook = Some(on_statistics);
    }
}

/// Called for each table of a query when views are inlined and constants folded, and before conditions are distributed.
///
/// As most queries have none of our functions, nothing is guarded before there is something to do: the guard takes longer than the look.
#[cfg(not(since_pg19))]
unsafe extern "C-unwind" fn on_table(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    is_parent: bool,
    table: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: as PostgreSQL calls it.
    unsafe {
        if let Some(Some(previous)) = PREVIOUS_TABLE_HOOK.get() {
            previous(root, relation, is_parent, table);
        }
        if settings::plan_by_time() && is_of_interest(root, table) {
            prepare(root, table);
        }
    }
}

/// As before 19; there it is called for subqueries and the like, too.
#[cfg(since_pg19)]
unsafe extern "C-unwind" fn on_table(
    root: *mut pg_sys::PlannerInfo,
    table: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: as PostgreSQL calls it.
    unsafe {
        if let Some(Some(previous)) = PREVIOUS_TABLE_HOOK.get() {
            previous(root, table, entry);
        }
        if settings::plan_by_time() && is_of_interest(root, table) {
            prepare(root, table);
        }
    }
}

/// Whether [`prepare`] may have something to do. Calls nothing of PostgreSQL, and takes no memory.
///
/// # Safety
/// As [`on_table`].
unsafe fn is_of_interest(root: *mut pg_sys::PlannerInfo, table: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        (*table).rtekind == pg_sys::RTEKind::RTE_RELATION
            && (rising::has_candidates(root, table) || statistics::groups(root) || wholes::has_others(root, table))
    }
}

/// Tells the planner what it may know of a table's IDs before its conditions are distributed.
///
/// # Safety
/// As [`on_table`].
#[pg_guard]
unsafe extern "C-unwind" fn prepare(root: *mut pg_sys::PlannerInfo, table: *mut pg_sys::RelOptInfo) {
    // SAFETY: as above; the array has an element for each number of a table in the query.
    unsafe {
        let asked = rising::of_table(root, table);
        let has_members = (**(*root).simple_rte_array.add((*table).relid as usize)).inh;
        let is_member = (*table).reloptkind == pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL;
        if !has_members {
            twins::add(root, table, &asked);
        }
        let which = wholes::use_of(root, table);
        statistics::add(root, table, &asked, which == comparisons::Use::Both);
        if which == comparisons::Use::Both && !has_members {
            wholes::expect_members(table);
        }
        if is_member {
            wholes::hand_down(root, table);
        } else {
            wholes::add_conditions(root, table);
        }
    }
}

/// Called for each table of a query, and each of its partitions, when its paths are made. Guarded as [`on_table`] is.
unsafe extern "C-unwind" fn on_paths(
    root: *mut pg_sys::PlannerInfo,
    table: *mut pg_sys::RelOptInfo,
    index: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: as PostgreSQL calls it.
    unsafe {
        let is_ours = settings::plan_by_time() && ((*entry).inh || wholes::is_prepared(root, table));
        let expects_members = is_ours && !(*entry).inh && wholes::expects_members(table);
        let conditions = (*table).baserestrictinfo;
        // Before the hooks of others: a column store, too, may know what to do with conditions on the ID.
        if is_ours && !expects_members {
            finish(root, table);
        }
        if let Some(Some(previous)) = PREVIOUS_PATHS_HOOK.get() {
            previous(root, table, index, entry);
        }
        if expects_members {
            if (*entry).inh {
                // Each member had its own.
                (*table).baserestrictinfo = conditions;
            } else {
                finish(root, table);
            }
        }
    }
}

/// The paths of a table are made: what was there for the planner alone goes, and what is quicker takes its place.
///
/// # Safety
/// As [`on_paths`].
#[pg_guard]
unsafe extern "C-unwind" fn finish(root: *mut pg_sys::PlannerInfo, table: *mut pg_sys::RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        let has_members = (**(*root).simple_rte_array.add((*table).relid as usize)).inh;
        if has_members {
            wholes::restore(root, table);
        } else {
            filters::rewrite(root, table, has_others());
            pruning::add_joins(root, table);
        }
    }
}

/// Whether somebody else's hook may make paths of a table, too: one that ours calls, or one that calls ours.
fn has_others() -> bool {
    let after = PREVIOUS_PATHS_HOOK.get().is_some_and(Option::is_some);
    // SAFETY: a variable that extensions set when they are loaded.
    let before = unsafe { pg_sys::set_rel_pathlist_hook };
    after || !before.is_some_and(|hook| std::ptr::fn_addr_eq(hook, on_paths as unsafe extern "C-unwind" fn(_, _, _, _)))
}

/// Called for the statistics of an expression that an index has.
#[pg_guard]
unsafe extern "C-unwind" fn on_statistics(
    root: *mut pg_sys::PlannerInfo,
    index: pg_sys::Oid,
    column: pg_sys::AttrNumber,
    data: *mut pg_sys::VariableStatData,
) -> bool {
    // SAFETY: as PostgreSQL calls it.
    unsafe {
        if statistics::supply(root, index, column, data) {
            return true;
        }
        match PREVIOUS_STATISTICS_HOOK.get() {
            Some(Some(previous)) => previous(root, index, column, data),
            _ => false,
        }
    }
}
