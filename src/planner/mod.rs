//! What the planner is told about an ID's time: that it rises with the ID. So an index on the ID serves conditions on the time
//! ([`comparisons`]) and an order by it ([`order`]), in views, subqueries and joins, however the query is written.
//!
//! The hooks run for every query of a session that has the library loaded. For a query without our functions they only look at
//! the operators of its conditions.

mod bounds;
mod comparisons;
mod estimates;
mod functions;
mod indexes;
mod joins;
mod members;
mod nodes;
mod operators;
mod order;
mod versions;

use crate::settings;
use once_cell::sync::OnceCell;
use pgrx::prelude::*;

#[cfg(feature = "pg19")]
use pg_sys::{build_simple_rel_hook as table_hook, build_simple_rel_hook_type as TableHook};
#[cfg(not(feature = "pg19"))]
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
#[cfg(not(feature = "pg19"))]
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
#[cfg(feature = "pg19")]
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

/// Rewrites the conditions when the first table of the query is looked at, and prepares the estimates of each.
///
/// # Safety
/// As [`on_table`].
#[pg_guard]
unsafe extern "C-unwind" fn prepare(root: *mut pg_sys::PlannerInfo, table: *mut pg_sys::RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        if is_first(root, table) {
            comparisons::rewrite(root);
        }
        let is_table = (*table).rtekind == pg_sys::RTEKind::RTE_RELATION;
        match (*table).reloptkind {
            pg_sys::RelOptKind::RELOPT_BASEREL if is_table => estimates::add_index(root, table),
            pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL if is_table => members::rewrite(root, table),
            _ => {}
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
        if is_first(root, table) {
            joins::begin();
            if comparisons::has_candidates(root) {
                return true;
            }
        }
        let is_table = (*table).rtekind == pg_sys::RTEKind::RTE_RELATION;
        match (*table).reloptkind {
            pg_sys::RelOptKind::RELOPT_BASEREL if is_table => estimates::may_be_wanted(root),
            pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL if is_table => members::may_have_conditions(root, table),
            _ => false,
        }
    }
}

/// Whether no other table of the query was looked at yet.
///
/// # Safety
/// As [`on_table`].
unsafe fn is_first(root: *mut pg_sys::PlannerInfo, table: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: as above; the array has so many elements, which are NULL for what was not looked at yet.
    unsafe {
        let others = (1..(*root).simple_rel_array_size as usize).map(|at| *(*root).simple_rel_array.add(at));
        others
            .filter(|&other| !other.is_null() && other != table)
            .all(|other| (*other).rtekind != pg_sys::RTEKind::RTE_RELATION)
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
        if let Some(Some(previous)) = PREVIOUS_PATHS_HOOK.get() {
            previous(root, table, index, entry);
        }
        joins::set_selectivities(table);
        let is_table = (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION && !(*entry).inh;
        // A sample is not what an index scan returns.
        let is_table = is_table && (*entry).tablesample.is_null();
        let may_be_ordered = !(*table).indexlist.is_null() && !(*table).eclass_indexes.is_null();
        // One that was proved to be empty must stay so.
        if is_table && may_be_ordered && settings::plan_by_time() && order::has_candidates(root, table) {
            add_orders(root, table);
        }
    }
}

/// # Safety
/// As [`on_paths`].
#[pg_guard]
unsafe extern "C-unwind" fn add_orders(root: *mut pg_sys::PlannerInfo, table: *mut pg_sys::RelOptInfo) {
    // SAFETY: as above. What was proved to be empty must stay so.
    unsafe {
        if !pg_sys::is_dummy_rel(table) && order::has_plain_paths(table) {
            order::add_paths(root, table);
        }
    }
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
        if estimates::supply(root, index, &mut *data) {
            return true;
        }
        match PREVIOUS_STATISTICS_HOOK.get() {
            Some(Some(previous)) => previous(root, index, column, data),
            _ => false,
        }
    }
}
