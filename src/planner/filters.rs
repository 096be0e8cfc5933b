//! The filters, which are evaluated for each row of a table: a comparison of the ID takes less time than one of its time.
//!
//! When the paths of a table are made, all that its conditions are still for is the plan. Those of a sequential scan are the table's; index scans
//! have a list of their own.

use super::comparisons::Rewriter;
use super::gathered::WithLists;
use super::nodes::{self, At, Expr, List};
use super::operators::{self, Accepts};
use super::state::{Planner, Rel, Restriction};
use super::{bounds, functions, rising, wholes, written};
use pg_sys::{IndexPath, Node, NodeTag, Path, RestrictInfo};
use pgrx::prelude::*;

/// Puts comparisons of the IDs of a table, whose paths are made, in the place of those of their times, unless only indexes are read. Others may add
/// paths that read something else: batches of rows that are compressed, for example, by the lowest and the highest ID of each.
pub fn rewrite<'p>(planner: Planner<'p>, table: Rel<'p>, others_add_paths: bool) {
    let own = without_calls(planner, table, wholes::own_conditions(planner, table), others_add_paths);
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
        let mut implied =
            if list.is_some_and(|list| list.is_hashed) { Vec::new() } else { rewriter.implied(condition) };
        // Nor is a bound to be computed for each row, where it is not for a batch of them.
        if !others_add_paths && !implied.iter().all(|&one| is_by_constants(one)) {
            implied.clear();
        }
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

/// Whether a condition on the ID compares it with nothing but constants.
fn is_by_constants(condition: Expr<'_>) -> bool {
    match condition.cast::<pg_sys::BoolExpr>() {
        Some(combination) => combination.args().iter().all(is_by_constants),
        None => !bounds::right_of(condition).is_some_and(functions::may_be_ours),
    }
}

/// The conditions of a table, whose paths are made, without those that follow from others by a bound that is computed for each row; so are the
/// filters of its indexes.
fn without_calls<'p>(
    planner: Planner<'p>,
    table: Rel<'p>,
    own: List<'p, RestrictInfo>,
    others_add_paths: bool,
) -> List<'p, RestrictInfo> {
    let is_by_call = |one: &Restriction<'p>| bounds::called(one.clause()).is_some();
    // Of most tables.
    if !own.iter().any(|one| is_by_call(&one)) {
        return own;
    }
    let (by_calls, others): (Vec<_>, Vec<_>) = own.iter().partition(is_by_call);
    let of_table = |expression| rising::time_of(planner, expression, table.number());
    let (exact, wide) = (Rewriter::exact(planner, &of_table), Rewriter::new(planner, &of_table));
    let follows_from = |condition: Expr<'p>| {
        let times = written::implied(planner, table, condition);
        let of_ids: Vec<Expr<'p>> = times.iter().flat_map(|&one| exact.implied(one)).collect();
        times.into_iter().chain(of_ids).chain(wide.implied(condition))
    };
    let implied: Vec<Expr<'p>> = others.iter().flat_map(|one| follows_from(one.clause())).collect();
    let within = |one: Restriction<'p>| {
        let range = if others_add_paths { None } else { within_range(one, &by_calls) };
        range.map(|condition| instead(one, condition))
    };
    let is_implied = |one: Restriction<'p>| implied.iter().any(|other| other.says(one.clause()));
    // Both bounds are those of the same range, which is looked at once.
    let with_ranges = |all: List<'p, RestrictInfo>, is_filter: &dyn Fn(Restriction<'p>) -> bool| {
        let mut kept: Vec<Restriction<'p>> = Vec::new();
        for one in all.iter() {
            let is_by_call = by_calls.contains(&one);
            match within(one).filter(|_| is_by_call) {
                Some(_) if !is_filter(one) => kept.push(one),
                Some(range) if kept.iter().any(|known| known.clause().says(range.clause())) => {}
                Some(range) => kept.push(range),
                None if is_by_call && is_implied(one) => {}
                None => kept.push(one),
            }
        }
        kept.into_iter().collect()
    };
    for index in table.indexes().iter() {
        let is_read_by = |one| is_read_by(one, paths_over_indexes(table).filter(|path| path.index() == index));
        index.set_restrictions(with_ranges(index.restrictions(), &|one| !is_read_by(one)));
    }
    let kept = with_ranges(own, &|_| true);
    table.set_conditions(kept);
    kept
}

/// `t <@ $1`, where this is one of both of its bounds.
fn within_range<'p>(bound: Restriction<'p>, all: &[Restriction<'p>]) -> Option<Expr<'p>> {
    let is_itself = |arguments: List<'p, Node>| {
        let way = arguments.get(0)?.text()?;
        let range = arguments.get(1).filter(|_| arguments.len() == 2)?;
        (way == "=" && range.type_of() == pg_sys::TSTZRANGEOID).then_some(range)
    };
    let read = |one: Restriction<'p>| {
        let comparison = one.clause().cast::<pg_sys::OpExpr>()?;
        let range = is_itself(bounds::called(one.clause())?)?;
        let time = comparison.args().get(0).filter(|time| time.type_of() == pg_sys::TIMESTAMPTZOID)?;
        Some((operators::compares(comparison.opno().to_u32())?, time, range))
    };
    let (accepts, time, range) = read(bound)?;
    let is_other = |one: &Restriction<'p>| {
        let is_it = |(other, of, within): (Accepts, Expr<'p>, Expr<'p>)| {
            other == accepts.commuted() && of.says(time) && within.says(range)
        };
        read(*one).is_some_and(is_it)
    };
    let is_bound = matches!(accepts, Accepts::GreaterOrEqual | Accepts::LessOrEqual);
    (is_bound && all.iter().any(is_other)).then(|| nodes::compared(operators::WITHIN, time.copy(), range.copy()))
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
    let is_filter = |replaced: &&Replaced<'p>| !is_read_by(replaced.before, paths_over_indexes(table));
    let filters: Vec<_> = replaced.iter().filter(is_filter).collect();
    let after = |restriction: Restriction<'p>| {
        filters.iter().find(|replaced| replaced.before == restriction).map_or(restriction, |replaced| replaced.after)
    };
    for index in table.indexes().iter() {
        index.set_restrictions(index.restrictions().iter().map(after).collect());
    }
}

fn paths_over_indexes<'p>(table: Rel<'p>) -> impl Iterator<Item = At<'p, IndexPath>> {
    table.paths().iter().chain(table.partial_paths().iter()).filter_map(At::over_index)
}

/// Whether one of these paths reads its index by a condition.
fn is_read_by<'p>(condition: Restriction<'p>, mut paths: impl Iterator<Item = At<'p, IndexPath>>) -> bool {
    paths.any(|path| path.clauses().iter().any(|clause| clause.restriction() == condition))
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
