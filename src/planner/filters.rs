//! The filters, which are evaluated for each row of a table: a comparison of the ID takes less time than one of its time.
//!
//! When the paths of a table are made, all that its conditions are still for is the plan. Those of a sequential scan are the table's; index scans
//! have a list of their own.

use super::comparisons::Rewriter;
use super::nodes::{At, Expr};
use super::state::{Planner, Rel, Restriction};
use super::{bounds, lists, rising, wholes};
use pg_sys::{NodeTag, Path};
use pgrx::prelude::*;

/// Puts comparisons of the IDs of a table, whose paths are made, in the place of those of their times, unless only indexes are read. Others may add
/// paths that read something else: batches of rows that are compressed, for example, by the lowest and the highest ID of each.
pub fn rewrite<'p>(planner: Planner<'p>, table: Rel<'p>, others_add_paths: bool) {
    if !others_add_paths && !may_read_all(table) {
        return;
    }
    let of_table = |expression| rising::time_of(planner, expression, table.number());
    let rewriter = Rewriter::exact(planner, &of_table);
    let (mut all, mut made, mut is_changed) = (Vec::new(), Vec::new(), false);
    for restriction in wholes::own_conditions(planner, table).iter() {
        let condition = restriction.clause();
        if let Some(list) = lists::gathered(condition) {
            all.push((restriction, list));
            is_changed = true;
            continue;
        }
        let implied = rewriter.implied(condition);
        if implied.is_empty() {
            all.push((restriction, condition));
        }
        all.extend(implied.iter().map(|&one| (restriction, one)));
        made.extend(implied);
    }
    if made.is_empty() && !is_changed {
        return;
    }
    let conditions: Vec<Expr> = all.iter().map(|&(_, condition)| condition).collect();
    let needed = bounds::without_implied(&conditions, &made);
    let mut needed = needed.iter().peekable();
    all.retain(|(_, condition)| needed.next_if(|&one| one == condition).is_some());
    table.set_conditions(all.into_iter().map(|(like, condition)| instead(like, condition)).collect());
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
