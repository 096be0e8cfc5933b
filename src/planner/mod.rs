//! What the planner is told about an ID's time: that it rises with the ID. So an index on the ID serves conditions on the time, joins by it
//! and an order by it ([`twins`]); partitions by ID are pruned by conditions on the time ([`wholes`]); and there are statistics of it
//! ([`statistics`]). This holds in views, subqueries and joins, however the query is written, and takes nothing away from what else
//! serves it.
//!
//! Where to look: an index as one on the time, [`twins`], and its conditions, [`clauses`]; what a query says of times, [`rising`]; partitions,
//! children and UNION ALL, [`wholes`] and [`members`]; bounds of one comparison, [`bounds`]; conditions that are rewritten, [`comparisons`]; what is made of a time, [`derived`]; forms that are other comparisons, [`written`];
//! IN, [`elements`], [`lists`] and [`gathered`]; partial indexes, [`predicates`]; indexes that cannot be the best, [`outdone`]; filters, [`filters`]; statistics, [`statistics`], [`times`] and [`groups`]; PostgreSQL's nodes
//! as safe types, [`nodes`] and [`state`]; what differs between majors, [`versions`]. Beside all this, before anything is planned: what a restore may set, [`setval`].
//!
//! The hooks run for every query of a session that has the library loaded. For a query without our functions they only look at
//! what its conditions compare and what it sorts by.

mod bounds;
mod clauses;
mod comparisons;
mod derived;
mod elements;
mod filters;
mod functions;
mod gathered;
mod groups;
mod join_tree;
mod lists;
mod members;
mod nodes;
mod operators;
mod outdone;
mod predicates;
mod pruning;
mod remembered;
mod rising;
mod setval;
mod state;
mod statistics;
mod times;
mod twins;
mod versions;
mod wholes;
mod written;

use crate::postgres::foreign;
use crate::settings;
use nodes::HookCall;
use once_cell::sync::OnceCell;
use pgrx::prelude::*;
use state::{Planner, Rel};

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
        setval::PREVIOUS_HOOK.get_or_init(|| pg_sys::post_parse_analyze_hook);
        pg_sys::post_parse_analyze_hook = Some(setval::on_statement);
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
    let call = HookCall::begin();
    // SAFETY: what was set as this hook is called with the arguments of this hook, whose frame has nothing to drop. PostgreSQL calls it for its state of a
    // query, and a table of that.
    look_at(unsafe {
        if let Some(&Some(previous)) = PREVIOUS_TABLE_HOOK.get() {
            foreign::call_guarded(|| previous(root, relation, is_parent, table));
        }
        call.lend(root).zip(call.lend(table))
    });
}

/// As before 19; there it is called for subqueries and the like, too.
#[cfg(since_pg19)]
unsafe extern "C-unwind" fn on_table(
    root: *mut pg_sys::PlannerInfo,
    table: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    let call = HookCall::begin();
    // SAFETY: what was set as this hook is called with the arguments of this hook, whose frame has nothing to drop. PostgreSQL calls it for its state of a
    // query, and a table of that.
    look_at(unsafe {
        if let Some(&Some(previous)) = PREVIOUS_TABLE_HOOK.get() {
            foreign::call_guarded(|| previous(root, table, entry));
        }
        call.lend(root).zip(call.lend(table))
    });
}

/// Looks whether there is something to do for a table, and does it.
fn look_at<'p>(call: Option<(Planner<'p>, Rel<'p>)>) {
    if let Some((planner, table)) = call
        && settings::plan_by_time()
        && is_of_interest(planner, table)
    {
        prepare(planner, table);
    }
}

/// Whether [`prepare`] may have something to do. Calls nothing of PostgreSQL, and takes no memory.
fn is_of_interest<'p>(planner: Planner<'p>, table: Rel<'p>) -> bool {
    table.entry_kind() == pg_sys::RTEKind::RTE_RELATION
        && (rising::has_candidates(planner, table) || statistics::groups(planner) || wholes::has_others(planner, table))
}

/// Tells the planner what it may know of a table's IDs before its conditions are distributed.
#[pg_guard]
extern "C-unwind" fn prepare<'p>(planner: Planner<'p>, table: Rel<'p>) {
    planner.in_memory(|| describe(planner, table));
}

fn describe<'p>(planner: Planner<'p>, table: Rel<'p>) {
    if table.kind() == pg_sys::RelOptKind::RELOPT_BASEREL {
        written::rewrite(planner, table);
    }
    let asked = rising::of_table(planner, table);
    let has_members = has_members(planner, table);
    let is_member = table.kind() == pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL;
    if !has_members {
        let are_lists_read = || lists::are_read(planner, wholes::is_excluded_later(planner, table));
        twins::add(planner, table, &asked, &are_lists_read);
    }
    let which = wholes::use_of(planner, table, has_others());
    statistics::add(planner, table, &asked, which == comparisons::Use::Both);
    if which == comparisons::Use::Both && !has_members {
        wholes::expect_members(planner, table);
    }
    if is_member {
        wholes::hand_down(planner, table, which);
    } else {
        wholes::add_conditions(planner, table, which);
    }
}

fn has_members<'p>(planner: Planner<'p>, table: Rel<'p>) -> bool {
    planner.entry(table.number()).is_some_and(|entry| entry.has_members())
}

/// Called for each table of a query, and each of its partitions, when its paths are made. Guarded as [`on_table`] is.
unsafe extern "C-unwind" fn on_paths(
    root: *mut pg_sys::PlannerInfo,
    table: *mut pg_sys::RelOptInfo,
    index: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    let call = HookCall::begin();
    // SAFETY: PostgreSQL calls this for its state of a query, a table of that, and what the query says of it.
    let arguments = unsafe { call.lend(root).zip(call.lend(table)).zip(call.lend(entry)) };
    let ours = arguments.filter(|&((planner, table), entry)| {
        settings::plan_by_time() && (entry.has_members() || wholes::is_prepared(planner, table))
    });
    let mut later = None;
    if let Some(((planner, table), entry)) = ours {
        let expects_members = !entry.has_members() && wholes::expects_members(planner, table);
        // Before the hooks of others: a column store, too, may know what to do with conditions on the ID.
        if expects_members {
            later = Some((planner, table, entry, table.conditions()));
        } else {
            finish(planner, table);
        }
    }
    if let Some(&Some(previous)) = PREVIOUS_PATHS_HOOK.get() {
        // SAFETY: what was set as this hook is called with the arguments of this hook, whose frame has nothing to drop.
        unsafe { foreign::call_guarded(|| previous(root, table, index, entry)) };
    }
    if let Some((planner, table, entry, conditions)) = later {
        if entry.has_members() {
            // Each member had its own.
            table.set_conditions(conditions);
        } else {
            finish(planner, table);
        }
    }
}

/// The paths of a table are made: what was there for the planner alone goes, and what is quicker takes its place.
#[pg_guard]
extern "C-unwind" fn finish<'p>(planner: Planner<'p>, table: Rel<'p>) {
    planner.in_memory(|| {
        if has_members(planner, table) {
            wholes::restore(planner, table);
        } else {
            elements::add_paths(planner, table);
            filters::rewrite(planner, table, has_others());
            pruning::add_joins(planner, table);
        }
    });
}

/// Whether somebody else's hook may make paths of a table, too: one that ours calls, or one that calls ours.
fn has_others() -> bool {
    let after = PREVIOUS_PATHS_HOOK.get().is_some_and(Option::is_some);
    let ours: pg_sys::set_rel_pathlist_hook_type = Some(on_paths);
    // SAFETY: a variable that extensions set when they are loaded, and which is copied here.
    let before = unsafe { pg_sys::set_rel_pathlist_hook };
    after || !before.zip(ours).is_some_and(|(hook, ours)| std::ptr::fn_addr_eq(hook, ours))
}

/// Called for the statistics of an expression that an index has.
#[pg_guard]
unsafe extern "C-unwind" fn on_statistics(
    root: *mut pg_sys::PlannerInfo,
    index: pg_sys::Oid,
    column: pg_sys::AttrNumber,
    data: *mut pg_sys::VariableStatData,
) -> bool {
    let call = HookCall::begin();
    // SAFETY: PostgreSQL calls this for its state of a query, and what it asks about. What was set as this hook is called with the arguments of this hook.
    unsafe {
        let supply = |planner| {
            gathered::price(planner);
            statistics::supply(&call, planner, index, column, data)
        };
        if call.lend(root).is_some_and(supply) {
            return true;
        }
        match PREVIOUS_STATISTICS_HOOK.get() {
            Some(&Some(previous)) => foreign::call(|| previous(root, index, column, data)),
            _ => false,
        }
    }
}
