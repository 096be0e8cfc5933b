//! Twins that another one outdoes. Beside an index on `(id)`, one on `(tenant, id)` is read as a whole for a range of time. That can be better only where
//! the query says something of the tenant, or reads nothing but what the index has. To plan with one more index takes a tenth of the planning of a
//! short query, so where it cannot be chosen, it has no twin.

use super::nodes::{Expr, NumberSet};
use super::state::{Index, Planner, Rel};
use pgrx::pg_sys;

/// Whether an index serves a query only by the ID, its column at this place. Not so if the query has a use for a column before that, or if the index holds
/// all that the query reads, and that is more than the ID. The table is no member of another one.
pub fn serves_by_id_alone<'p>(planner: Planner<'p>, table: Rel<'p>, index: Index<'p>, at: usize) -> bool {
    let columns: Vec<Option<usize>> = index.entries().iter().map(|entry| column(entry.expr())).collect();
    let query = planner.query();
    let tables: Vec<_> = planner.same_tables(table).collect();
    let columns_of =
        |expression: Expr<'p>| tables.iter().map(move |&(number, _)| planner.columns_of(expression, number));
    // The arguments of aggregates may be wanted in an order, and what a query returns that is combined with others.
    let is_combined = || planner.parent().is_some_and(|parent| parent.query().combined().is_some());
    let is_any_ordered = query.has_aggregates() || is_combined();
    let sorted = query.targets().iter().filter(|target| is_any_ordered || target.sort_group() > 0);
    let guards = tables.iter().filter_map(|(_, entry)| entry.guards().node());
    let conditions = planner.join_tree().into_iter().chain(guards).chain(query.having());
    let mut read: Vec<NumberSet<'p>> = Vec::new();
    for used in conditions.chain(sorted.map(|target| target.expr())).flat_map(columns_of) {
        if columns.iter().take(at).any(|column| column.is_none_or(|column| used.has(column))) {
            return false;
        }
        read.push(used);
    }
    // Else all of them were looked at above.
    if !is_any_ordered {
        read.extend(query.targets().node().into_iter().flat_map(columns_of));
    }
    let all = || read.iter().flat_map(|set| set.iter());
    let id = columns.get(at).copied().flatten();
    !all().all(|column| columns.contains(&Some(column))) || all().all(|column| Some(column) == id)
}

/// The number of a column in the sets of [`Planner::columns_of`]; `None` of another expression.
fn column(expression: Expr<'_>) -> Option<usize> {
    let column = expression.cast::<pg_sys::Var>()?;
    usize::try_from(i32::from(column.attribute()) - pg_sys::FirstLowInvalidHeapAttributeNumber).ok()
}
