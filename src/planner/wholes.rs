//! Tables that have members: partitions, children by inheritance, and the parts of a UNION ALL.
//!
//! Partitions by ID are pruned by conditions on the ID. So for a table that has members, those are added which follow from conditions on
//! its times. They say nothing new, and the planner would take a row for twice as rare. So a member gets what it has a use for: one
//! that has members itself, both; a foreign table, whose server knows only IDs, those on the ID instead; any other, none.

use super::comparisons::Use;
use super::nodes::{Expr, List};
use super::state::{MemberPlace, Planner, RangeEntry, Rel, Restriction};
use super::statistics::Expressions;
use super::{comparisons, elements, lists, members, operators, pruning, statistics, twins, versions};
use crate::postgres::catalog;
use pg_sys::{Node, RestrictInfo};
use pgrx::prelude::*;

/// What becomes of a table's conditions on its times, where another extension may add paths of tables, or not.
pub fn use_of<'p>(planner: Planner<'p>, table: Rel<'p>, others_add_paths: bool) -> Use {
    let Some(entry) = planner.entry(table.number()).filter(|one| one.kind() == pg_sys::RTEKind::RTE_RELATION) else {
        return Use::Plain;
    };
    if !entry.guards().is_empty() || entry.relkind() as u8 == pg_sys::RELKIND_FOREIGN_TABLE {
        Use::IdsOnly
    } else if entry.has_members() || others_add_paths && is_extended_later(entry) {
        Use::Both
    } else {
        Use::Plain
    }
}

/// Adds to the conditions of a query what a table that is no member has a use for. The query's expressions are preprocessed, and not distributed yet.
pub fn add_conditions<'p>(planner: Planner<'p>, table: Rel<'p>, which: Use) {
    if which == Use::Both || twins::has_any(table) {
        // A whole keeps its lists: the ORs that it is pruned by are added to them.
        let stays = |condition| match which {
            Use::Plain => elements::serve(planner, table, condition),
            Use::Both => true,
            Use::IdsOnly => false,
        };
        lists::spread(planner, table, which == Use::Plain, &stays);
    }
    if which != Use::Plain {
        let added = comparisons::rewrite(planner, table, which);
        if let Some(state) = Expressions::of_table(planner, table) {
            state.conditions.implied.set(added.into_iter().collect());
        }
    }
}

/// Whether a table has children that PostgreSQL does not add: the query asks for ONLY the table, or an extension adds its children by itself, as
/// TimescaleDB does when paths are made.
fn is_extended_later(entry: RangeEntry<'_>) -> bool {
    entry.relkind() as u8 == pg_sys::RELKIND_RELATION && catalog::may_have_children(entry.oid())
}

/// Whether the whole that a table is about to be added to has conditions that are there for a member which was added before. Calls nothing
/// of PostgreSQL, and takes no memory.
pub fn has_others<'p>(planner: Planner<'p>, member: Rel<'p>) -> bool {
    member.place(planner).is_some_and(|(_, whole)| {
        let is_of_another = |one: Restriction| one.numbers().iter().any(|table| table != whole.number() as usize);
        whole.conditions().iter().any(is_of_another)
    })
}

/// Notes that an extension may add members to a table later. It has conditions on the ID until then.
pub fn expect_members<'p>(planner: Planner<'p>, table: Rel<'p>) {
    if let Some(state) = Expressions::of_table(planner, table) {
        state.conditions.expects_members.set(true);
    }
}

/// Whether an extension may add members to a table later. Calls nothing of PostgreSQL for a table that has nothing of ours.
pub fn expects_members<'p>(planner: Planner<'p>, table: Rel<'p>) -> bool {
    Expressions::of_table(planner, table).is_some_and(|state| state.conditions.expects_members.get())
}

/// Whether an extension may exclude a member of a table when the query runs, by conditions that are known only then. TimescaleDB does so for
/// members that are read by one scan, and not by a loop.
pub fn is_excluded_later<'p>(planner: Planner<'p>, member: Rel<'p>) -> bool {
    member.place(planner).is_some_and(|(_, whole)| expects_members(planner, whole))
}

/// Whether there may be something to do when the paths of a table are made. TimescaleDB takes the indexes, and so what is known of its times,
/// from a compressed chunk; its hypertable has that still. Calls nothing of PostgreSQL.
pub fn is_prepared<'p>(planner: Planner<'p>, table: Rel<'p>) -> bool {
    statistics::is_prepared(table)
        || table.indexes().is_empty() && table.place(planner).is_some_and(|(_, whole)| statistics::is_prepared(whole))
}

/// The conditions of a table without those that were added for members, which it has not got.
pub fn own_conditions<'p>(planner: Planner<'p>, table: Rel<'p>) -> List<'p, RestrictInfo> {
    match Expressions::of_table(planner, table) {
        Some(state) if state.conditions.expects_members.get() => {
            without(table.conditions(), state.conditions.implied.get())
        }
        _ => table.conditions(),
    }
}

/// Sees to it that a table that is about to be added to a whole gets the conditions that it has a use for: it gets those that the whole has.
pub fn hand_down<'p>(planner: Planner<'p>, member: Rel<'p>, which: Use) {
    let Some((place, whole)) = member.place(planner) else { return };
    let own = match Expressions::of_table(planner, whole) {
        Some(state) => {
            let state = &state.conditions;
            if state.all.get().is_empty() {
                state.all.set(whole.conditions());
                state.handed_down.set(without(state.all.get(), state.implied.get()));
            }
            state.handed_down.get()
        }
        None => members::of_whole(planner, whole),
    };
    // What is there for one member alone is taken away before the next one is added; but only tables come here.
    let has_use = which != Use::Plain || twins::has_any(member);
    whole.set_conditions(match which {
        _ if has_use && reads_rows(planner, place, own) => own,
        Use::Plain => {
            let is_child = whole.entry_kind() == pg_sys::RTEKind::RTE_RELATION && whole.partitioning().is_none();
            let own = match twins::has_any(member) {
                true => members::with_alternatives(planner, place, member, own, expects_members(planner, whole)),
                false => own,
            };
            if is_child && members::is_excluded(planner, member, own) {
                members::with_implied(planner, place, member, own, false)
            } else {
                own
            }
        }
        Use::Both => members::with_implied(planner, place, member, own, false),
        Use::IdsOnly => members::with_implied(planner, place, member, own, true),
    });
}

/// Whether a condition of a UNION ALL reads its rows as wholes. For a member, these are made of all of its columns, and so would be of those that
/// stand for conditions. What else a query reads of the rows is made without them.
fn reads_rows<'p>(planner: Planner<'p>, place: MemberPlace<'p>, conditions: List<'p, RestrictInfo>) -> bool {
    let number = place.parent();
    if planner.entry(number).is_none_or(|whole| whole.kind() != pg_sys::RTEKind::RTE_SUBQUERY) {
        return false;
    }
    let mut columns = std::ptr::null_mut();
    // SAFETY: these walk through trees, and add to a set of its own.
    unsafe {
        for condition in conditions.iter() {
            pg_sys::pull_varattnos(condition.clause().as_ptr(), number, &raw mut columns);
        }
        pg_sys::bms_is_member(-pg_sys::FirstLowInvalidHeapAttributeNumber, columns)
    }
}

/// The conditions without those that were added, which come in this order.
fn without<'p>(conditions: List<'p, RestrictInfo>, implied: List<'p, Node>) -> List<'p, RestrictInfo> {
    let implied: Vec<Expr> = implied.iter().collect();
    let mut next = 0;
    let mut is_own = |condition: Expr<'p>| {
        if !compares_ids(condition) {
            return true;
        }
        let is_same = |&one: &Expr<'p>| one == condition || one.says(condition);
        match implied[next..].iter().position(is_same) {
            Some(at) => next += at + 1,
            None => return true,
        }
        false
    };
    conditions.iter().filter(|one| is_own(one.clause())).collect()
}

/// Whether a condition may be one that is made here: a comparison of IDs, or several.
fn compares_ids(condition: Expr<'_>) -> bool {
    condition.cast::<pg_sys::BoolExpr>().is_some()
        || condition.cast::<pg_sys::NullTest>().is_some()
        || condition.cast::<pg_sys::OpExpr>().is_some_and(|one| operators::bounds_ids(one.opno().to_u32()))
}

/// The paths of a table that has members are made. Conditions of joins are as before, and the others are all there again: PostgreSQL prunes by
/// them when the query runs.
pub fn restore<'p>(planner: Planner<'p>, whole: Rel<'p>) {
    let Some(state) = Expressions::of_table(planner, whole) else {
        whole.set_conditions(with_those_of_members(planner, whole));
        return;
    };
    if !state.conditions.all.get().is_empty() {
        whole.set_conditions(state.conditions.all.get());
    }
    pruning::remove_joins(whole, &state.conditions);
}

/// The conditions of a UNION ALL, and those that its members have got.
fn with_those_of_members<'p>(planner: Planner<'p>, whole: Rel<'p>) -> List<'p, RestrictInfo> {
    let mut all: Vec<Restriction> = members::of_whole(planner, whole).iter().collect();
    let own = all.len();
    for place in planner.places().iter().filter(|place| place.parent() == whole.number()) {
        let Some(member) = planner.rel(place.child()).filter(|member| member.partitioning().is_some()) else {
            continue;
        };
        if let Some(state) = Expressions::of_table(planner, member) {
            let implied = state.conditions.implied.get();
            all.extend(implied.iter().map(|condition| versions::restriction(planner, condition)));
        }
    }
    if all.len() == own { members::of_whole(planner, whole) } else { all.into_iter().collect() }
}
