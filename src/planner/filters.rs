//! The filters, which are evaluated for each row of a table: a comparison of the ID takes less time than one of its time.
//!
//! When the paths of a table are made, all that its conditions are still for is the plan. Those of a sequential scan are the table's; index scans
//! have a list of their own.

use super::comparisons::Rewriter;
use super::gathered::WithLists;
use super::nodes::{At, Expr};
use super::state::{Planner, Rel, Restriction};
use super::{bounds, rising, wholes};
use pg_sys::{NodeTag, Path};
use pgrx::prelude::*;

/// Puts comparisons of the IDs of a table, whose paths are made, in the place of those of their times, unless only indexes are read. Others may add
/// paths that read something else: batches of rows that are compressed, for example, by the lowest and the highest ID of each.
pub fn rewrite<'p>(planner: Planner<'p>, table: Rel<'p>, others_add_paths: bool) {
    let own = wholes::own_conditions(planner, table);
    let gathered: Vec<Replaced> = own.iter().filter_map(Replaced::gathered).collect();
    if !gathered.is_empty() {
        rewrite_of_indexes(table, &gathered);
    }
    if !others_add_paths && !may_read_all(table) {
        return;
    }
    let of_table = |expression| rising::time_of(planner, expression, table.number());
    let rewriter = Rewriter::exact(planner, &of_table);
    let (mut all, mut made) = (Vec::new(), Vec::new());
    for restriction in own.iter() {
        let condition = restriction.clause();
        let list = gathered.iter().find(|replaced| replaced.before == restriction);
        // Ranges of IDs, one after the other, take longer than to look up one of many times.
        let implied = if list.is_some_and(|list| list.is_hashed) { Vec::new() } else { rewriter.implied(condition) };
        if implied.is_empty() {
            let restriction = list.map_or(restriction, |list| list.after);
            all.push((restriction, restriction.clause()));
        }
        all.extend(implied.iter().map(|&one| (restriction, one)));
        made.extend(implied);
    }
    if made.is_empty() && gathered.is_empty() {
        return;
    }
    let conditions: Vec<Expr> = all.iter().map(|&(_, condition)| condition).collect();
    let needed = bounds::without_implied(&conditions, &made);
    let mut needed = needed.iter().peekable();
    all.retain(|(_, condition)| needed.next_if(|&one| one == condition).is_some());
    table.set_conditions(all.into_iter().map(|(like, condition)| instead(like, condition)).collect());
}

/// A condition that is [a list again](super::gathered).
struct Replaced<'p> {
    before: Restriction<'p>,
    after: Restriction<'p>,
    is_hashed: bool,
}

impl<'p> Replaced<'p> {
    fn gathered(before: Restriction<'p>) -> Option<Self> {
        let WithLists { condition, is_hashed } = WithLists::of(before.clause())?;
        Some(Self { before, after: instead(before, condition), is_hashed })
    }
}

/// The same for the filters of scans of a table's indexes. From 18 on, an index may be read by such a condition, which is no filter then.
fn rewrite_of_indexes<'p>(table: Rel<'p>, replaced: &[Replaced<'p>]) {
    let paths = || table.paths().iter().chain(table.partial_paths().iter()).filter_map(At::over_index);
    let is_read_by = |restriction: Restriction<'p>| {
        paths().any(|path| path.clauses().iter().any(|clause| clause.restriction() == restriction))
    };
    let filters: Vec<_> = replaced.iter().filter(|replaced| !is_read_by(replaced.before)).collect();
    let after = |restriction: Restriction<'p>| {
        filters.iter().find(|replaced| replaced.before == restriction).map_or(restriction, |replaced| replaced.after)
    };
    for index in table.indexes().iter() {
        index.set_restrictions(index.restrictions().iter().map(after).collect());
    }
}

/// How many times as much as by an index all rows may cost, for that to be chosen still.
const DEARER: f64 = 10.0;

/// Whether a path that reads all rows may be chosen: one that is not over an index, and not out of all proportion.
fn may_read_all(table: Rel<'_>) -> bool {
    let is_over_index = |path: At<'_, Path>| matches!(path.tag(), NodeTag::T_IndexPath | NodeTag::T_NestPath);
    let own = table.paths().iter().filter(|&path| is_over_index(path) && path.parameters().is_none());
    let cheapest = own.map(At::cost).fold(f64::INFINITY, f64::min);
    let is_near = |path: At<'_, Path>| !is_over_index(path) && path.cost() < cheapest * DEARER;
    table.paths().iter().chain(table.partial_paths().iter()).any(is_near)
}

/// Another condition in place of one, of which only the condition itself, and how and when it may be evaluated, matter from here on.
fn instead<'p>(restriction: Restriction<'p>, condition: Expr<'p>) -> Restriction<'p> {
    if condition == restriction.clause() {
        return restriction;
    }
    let new = restriction.duplicate();
    new.set_clause(condition.copy());
    new.set_or_clause(None);
    // Not known yet.
    new.set_startup_cost(-1.0);
    new
}
