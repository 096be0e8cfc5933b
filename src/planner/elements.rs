//! `created_at = ANY (…)`: an index on the ID is read for one element after the other. PostgreSQL's scan of an index by an array takes equalities
//! of its columns alone, and here each element is a range of IDs.
//!
//! So PostgreSQL makes its path over the twin of the index, as over one on the time, and here that becomes a nested loop of the same cost: outside
//! are the elements, as rows of a function, and inside is the scan of the index by one of them. The function's rows are no table of the query for
//! anything else.

use super::lists::Listed;
use super::nodes::{At, Expr, List};
use super::state::{OfIndex, Planner, Rel};
use super::twins::{self, Twin};
use super::{clauses, functions, versions};
use pg_sys::IndexPath;
use pgrx::prelude::*;

/// `unnest(anyarray)`, as in PostgreSQL's `pg_proc.dat`.
const UNNEST: u32 = 2331;

/// What a scan by one element costs that an index's own scan by an array does not: two bounds are computed, and the scan begins anew. In calls of
/// an operator.
const OF_EACH: f64 = 10.0;

/// Whether a condition of a table, whose twins are known, is one that it is read by in this way.
pub fn serve<'p>(planner: Planner<'p>, table: Rel<'p>, condition: Expr<'p>) -> bool {
    Listed::read(planner, condition).is_some_and(|listed| {
        // Whether a partial index serves a query is not known yet.
        let reads = |twin: &Twin<'p>| {
            twin.index.predicate().is_empty()
                && twin.column.expression().says(listed.compared)
                && twin.reads_elements(planner, listed)
        };
        table.indexes().iter().any(|index| Twin::of(planner, index).is_some_and(|twin| reads(&twin)))
    })
}

/// Adds to a table, whose other paths are made, a loop for each twin over which PostgreSQL has made a path by an array.
pub fn add_paths<'p>(planner: Planner<'p>, table: Rel<'p>) {
    let has_list = table.conditions().iter().any(|one| one.clause().cast::<pg_sys::ScalarArrayOpExpr>().is_some());
    if !has_list || !table.lateral().is_empty() {
        return;
    }
    for index in table.indexes().iter().filter(|&index| twins::is_twin(index)) {
        if let Some(twin) = Twin::of(planner, index)
            && let Some((path, clause)) = twin.by_elements.take()
        {
            let _ = add_path(planner, table, &twin, path, clause);
        }
    }
}

fn add_path<'p>(
    planner: Planner<'p>,
    table: Rel<'p>,
    twin: &Twin<'p>,
    path: At<'p, IndexPath>,
    clause: OfIndex<'p>,
) -> Option<()> {
    let listed = Listed::read(planner, clauses::first_condition(clause)?)?;
    let rows = functions::call_of_one(UNNEST, functions::call_of_sorted(planner, listed.array)?, listed.of_type);
    rows.cast::<pg_sys::FuncExpr>()?.set_returns_set(true);
    let count = versions::expected_elements(planner, listed.array).max(1.0);
    let (elements, element) = planner.with_function(rows, listed.of_type, count, table);

    // Elements that other conditions exclude need not be looked for.
    let others = path.clauses().iter().filter(|other| other.column() == clause.column());
    let of_element = others.filter_map(|other| {
        let comparison = clauses::first_condition(other)?.cast::<pg_sys::OpExpr>()?;
        Some(versions::restriction(planner, comparison.of(element.copy(), comparison.args().get(1)?.copy())))
    });
    elements.set_conditions(of_element.collect());

    let all = clause.restriction();
    let equal = versions::restriction(planner, listed.comparison.with_element(listed.compared.copy(), element));
    equal.set_security(all.security());
    let one = clause.duplicate();
    one.set_restriction(equal);
    one.set_quals([equal].into_iter().collect());
    let one = clauses::resolve(planner, twin.index, &twin.column, one)?;

    // As PostgreSQL's own path by the array.
    twin.estimate_by_elements(planner, path);
    let inner = path.duplicate();
    let (before, after): (Vec<_>, Vec<_>) =
        path.clauses().iter().partition(|other| (other.column() as usize) < twin.column.at);
    inner.set_clauses(before.into_iter().chain([one]).chain(after).collect());
    // Each element accepts no more than all of them do.
    let index = twin.index.duplicate();
    index.set_restrictions(index.restrictions().iter().filter(|&other| other != all).collect());
    inner.set_index(index);
    // IDs of what is made of times may lie between each other's: an hour that comes twice has two ranges.
    let is_in_order = twin.column.at == 0
        && twin.column.derived.is_none()
        && path.direction() == pg_sys::ScanDirection::ForwardScanDirection
        && twin.index.is_falling(0) == Some(false);
    let order = if is_in_order { path.order() } else { List::EMPTY };
    planner.add_loop(table, (elements, count), inner, equal, order, OF_EACH);
    Some(())
}
