//! Conditions on times as people write them, in the form that the planner knows: comparisons.
//!
//! | as written | becomes |
//! |---|---|
//! | `(t > $1) IS TRUE` | `t > $1` |
//! | `(t > $1) IS NOT FALSE` | the same, or NULL |
//! | `t <@ $1`, a range | from the range's lowest to its highest value |
//! | the same, made of a time, or with a multirange, or with `&&` | both |
//!
//! Conditions of a query accept a row where they are true; so NULL and false are the same here, and nowhere else.

use super::derived::{Derived, made_of};
use super::nodes::{self, At, Expr, List, list};
use super::operators::{self, Accepts};
use super::state::{Planner, Rel};
use super::{bounds, functions, join_tree, rising, twins, versions};
use pg_sys::{BoolExprType, BoolTestType, Node};
use pgrx::prelude::*;
use snowflake_core::inverse::{Kind, Value};
use std::cell::Cell;

/// PostgreSQL's own types of many ranges, and of one.
const RANGE_TYPES: [(pg_sys::Oid, pg_sys::Oid); 3] = [
    (pg_sys::TSTZMULTIRANGEOID, pg_sys::TSTZRANGEOID),
    (pg_sys::TSMULTIRANGEOID, pg_sys::TSRANGEOID),
    (pg_sys::DATEMULTIRANGEOID, pg_sys::DATERANGEOID),
];

/// `range_merge(anymultirange)`
const RANGE_MERGE: u32 = 4228;

/// Rewrites the conditions of a query whose expressions are preprocessed, and not distributed yet, that are on times of this table.
pub fn rewrite<'p>(planner: Planner<'p>, table: Rel<'p>) {
    let parts = join_tree::parts(planner);
    let written = Written::of(planner, table, &parts);
    for part in parts.into_iter().filter(|part| !part.is_full_join()) {
        written.is_filter.set(!part.is_outer_join());
        part.change(|conditions| written.conditions(conditions));
    }
}

/// Comparisons of a table's times that follow from a condition which stays as it is.
pub fn implied<'p>(planner: Planner<'p>, table: Rel<'p>, condition: Expr<'p>) -> Vec<Expr<'p>> {
    let written = Written::of(planner, table, &join_tree::parts(planner));
    condition.cast().and_then(|operation| written.of_range(operation)).unwrap_or_default()
}

struct Written<'p> {
    planner: Planner<'p>,
    table: Rel<'p>,
    has_outer_joins: bool,
    /// Whether what is looked at becomes a condition of the table by itself, and no alternative of an OR, or a condition of an outer join.
    is_filter: Cell<bool>,
}

impl<'p> Written<'p> {
    fn of(planner: Planner<'p>, table: Rel<'p>, parts: &[join_tree::JoinNode<'p>]) -> Self {
        let has_outer_joins = parts.iter().any(|part| part.is_outer_join());
        Self { planner, table, has_outer_joins, is_filter: Cell::new(true) }
    }

    /// Conditions that are combined by AND; `None` where none changes.
    fn conditions(&self, conditions: List<'p, Node>) -> Option<List<'p, Node>> {
        // Mostly nothing changes, and no memory is taken.
        let mut new: Option<Vec<Expr>> = None;
        for (at, condition) in conditions.iter().enumerate() {
            let instead = self.condition(condition);
            if instead.is_some() && new.is_none() {
                new = Some(conditions.iter().take(at).collect());
            }
            if let Some(new) = &mut new {
                new.extend(instead.unwrap_or_else(|| vec![condition]));
            }
        }
        new.map(|new| list(&new))
    }

    /// What takes the place of a condition, to be combined by AND; `None` where it stays, or changes in its place.
    fn condition(&self, condition: Expr<'p>) -> Option<Vec<Expr<'p>>> {
        if let Some(combination) = condition.cast::<pg_sys::BoolExpr>() {
            self.combination(combination);
            return None;
        }
        if let Some(test) = condition.cast::<pg_sys::BooleanTest>() {
            return self.tested(test).map(|instead| vec![instead]);
        }
        self.of_range(condition.cast()?)
    }

    fn combination(&self, combination: At<'p, pg_sys::BoolExpr>) {
        match combination.boolop() {
            BoolExprType::AND_EXPR => {
                if let Some(new) = self.conditions(combination.args()) {
                    combination.set_args(new);
                }
            }
            BoolExprType::OR_EXPR => {
                let is_filter = self.is_filter.replace(false);
                let alternatives = combination.args().iter().flat_map(|alternative| {
                    let Some(instead) = self.condition(alternative) else { return vec![alternative] };
                    match instead[..] {
                        // No OR is a part of an OR.
                        [only] => {
                            match only.cast::<pg_sys::BoolExpr>().filter(|it| it.boolop() == BoolExprType::OR_EXPR) {
                                Some(parts) => parts.args().iter().collect(),
                                None => vec![only],
                            }
                        }
                        _ => vec![list(&instead).all_of()],
                    }
                });
                combination.set_args(alternatives.collect());
                self.is_filter.set(is_filter);
            }
            _ => {}
        }
    }

    /// Whether an expression is a time of the table, or made of one: what it is made of then.
    fn read(&self, expression: Expr<'p>) -> Option<Derived<'p>> {
        let is_time =
            |node| functions::may_be_ours(node) && rising::time_of(self.planner, node, self.table.number()).is_some();
        Derived::read_any(self.planner, expression, &is_time)
    }

    /// A test of a comparison, as a comparison.
    fn tested(&self, test: At<'p, pg_sys::BooleanTest>) -> Option<Expr<'p>> {
        let comparison = test.arg().cast::<pg_sys::OpExpr>()?;
        let is_known = operators::compares(comparison.opno().to_u32()).is_some();
        if !is_known || !comparison.args().iter().any(|side| self.read(side).is_some()) {
            return None;
        }
        let (is_negated, may_be_null) = match test.kind() {
            BoolTestType::IS_TRUE => (false, false),
            BoolTestType::IS_NOT_FALSE => (false, true),
            BoolTestType::IS_FALSE => (true, false),
            BoolTestType::IS_NOT_TRUE => (true, true),
            _ => return None,
        };
        let condition = if is_negated { self.planner.negated(comparison.node().copy()) } else { comparison.node() };
        if condition.cast::<pg_sys::OpExpr>().is_none() || comparison.node().is_volatile() {
            return None;
        }
        if !may_be_null {
            return Some(condition);
        }
        // The operators and all steps are strict.
        let nulls = comparison.args().iter().filter(|&side| self.may_be_null(side));
        let nulls: Vec<Expr<'p>> = nulls.map(|side| self.planner.is_null(side.copy())).collect();
        Some(match nulls[..] {
            [] => condition,
            _ => [condition].into_iter().chain(nulls).collect::<List<_>>().any_of(),
        })
    }

    fn may_be_null(&self, side: Expr<'p>) -> bool {
        if let Some(constant) = side.cast::<pg_sys::Const>() {
            return constant.constisnull();
        }
        let Some(derived) = self.read(side).filter(|_| !self.has_outer_joins) else { return true };
        derived.may_be_null() || !derived.id().is_some_and(|id| versions::is_not_null(self.planner, self.table, id))
    }

    /// Comparisons of the time that follow from an operator of ranges, or say the same.
    fn of_range(&self, operation: At<'p, pg_sys::OpExpr>) -> Option<Vec<Expr<'p>>> {
        let (operator, sides) = (operation.opno().to_u32(), operation.args());
        let contains = operators::CONTAIN.iter().find(|(own, ..)| *own == operator);
        let overlaps = operators::OVERLAP.iter().find(|(own, _)| *own == operator);
        // Each bound would evaluate it once more.
        if contains.is_none() && overlaps.is_none() || operation.node().is_volatile() {
            return None;
        }
        if let Some(&(_, at, is_multirange)) = contains {
            let derived = self.read(sides.get(at)?)?;
            if let Some(same) = self.same(&derived, sides.get(1 - at)?) {
                return Some(same);
            }
            let range = self.range(&derived, sides.get(1 - at)?, is_multirange)?;
            let bounds = [true, false].map(|is_lowest| self.bound(&derived, range, is_lowest));
            let bounds: Vec<Expr<'p>> = bounds.into_iter().flatten().collect();
            // Of a range that is the same for all rows, the filters get it back. That of a join stays: it takes less time than its bounds. Where only
            // conditions on IDs are evaluated first, it stays, too.
            let is_known = bounds.iter().all(|&bound| bounds::called(bound).is_none());
            let is_put_back = self.is_filter.get()
                && self.planner.tables_of(range).is_empty()
                && self.planner.entry(self.table.number()).is_some_and(|entry| entry.guards().is_empty());
            let is_same = derived.is_itself()
                && range.type_of() == pg_sys::TSTZRANGEOID
                && !is_multirange
                && bounds.len() == 2
                && (is_known || is_put_back);
            let own = Some(operation.node()).filter(|_| !is_same);
            return (!bounds.is_empty()).then(|| own.into_iter().chain(bounds).collect());
        }
        let &(_, are_multiranges) = overlaps?;
        let mut all = vec![operation.node()];
        for at in 0..2 {
            let Some(made) = sides.get(at).and_then(made_of) else { continue };
            for (place, is_lowest) in [(0, false), (1, true)] {
                // A range from NULL, or to it, has no bound there.
                let side = made.get(place).filter(|&side| !self.may_be_null(side));
                let Some(derived) = side.and_then(|side| self.read(side)).filter(|derived| !derived.is_falling())
                else {
                    continue;
                };
                let Some(range) = self.range(&derived, sides.get(1 - at)?, are_multiranges[1 - at]) else { continue };
                all.extend(self.bound(&derived, range, is_lowest));
            }
        }
        (all.len() > 1).then_some(all)
    }

    /// Comparisons that say the same as that something is within a range, which is a constant.
    fn same(&self, derived: &Derived<'p>, range: Expr<'p>) -> Option<Vec<Expr<'p>>> {
        // The order of another type of ranges may be another.
        let is_built_in = |(many, one)| [many, one].contains(&range.type_of());
        if !RANGE_TYPES.into_iter().any(is_built_in) {
            return None;
        }
        let values = range.values()?;
        let &[ref value @ Value::Between(kind, low, high)] = &values[..] else { return None };
        // Without a bound, nothing is kept out that is infinite itself.
        if !value.is_finite() || derived.may_be_infinite() && (low.is_none() || high.is_none()) {
            return None;
        }
        let side = derived.expression;
        // `>=` and `<=` of the type, and their functions.
        let (of_type, [at_least, at_most]) = match kind {
            Kind::Instant => (pg_sys::TIMESTAMPTZOID, [(1325, 1156), (1323, 1155)]),
            Kind::Local => (pg_sys::TIMESTAMPOID, [(2065, 2056), (2063, 2055)]),
            Kind::Date => (pg_sys::DATEOID, [(1098, 1090), (1096, 1088)]),
            _ => return None,
        };
        let is_same = side.type_of() == of_type && (low.is_some() || high.is_some());
        let compared = |bound: Option<i64>, operator| {
            Some(nodes::compared(operator, side.copy(), self.planner.of_type(of_type, bound?)?))
        };
        is_same.then(|| [compared(low, at_least), compared(high, at_most)].into_iter().flatten().collect())
    }

    /// A range that values of the table are compared with, and whose bounds may be of use.
    fn range(&self, derived: &Derived<'p>, range: Expr<'p>, is_multirange: bool) -> Option<Expr<'p>> {
        if range.is_volatile()
            || range.has_subplan()
            || self.planner.tables_of(range).overlaps(self.planner.tables_of(derived.time))
        {
            return None;
        }
        let range = if is_multirange {
            let &(_, of_type) = RANGE_TYPES.iter().find(|(own, _)| *own == range.type_of())?;
            self.planner.folded(functions::call_of_one(RANGE_MERGE, range.copy(), of_type))
        } else {
            RANGE_TYPES.iter().any(|(_, own)| *own == range.type_of()).then(|| range.copy())?
        };
        self.is_bounded_usefully(derived, range).then_some(range)
    }

    /// Whether bounds by a range may be of use: to compare a row with those of a range that is not known takes longer than the range itself.
    fn is_bounded_usefully(&self, derived: &Derived<'p>, range: Expr<'p>) -> bool {
        let is_read_by = |id: Expr<'p>| self.table.indexes().iter().any(|index| twins::column_of(index, id).is_some());
        let entry = self.planner.entry(self.table.number());
        range.cast::<pg_sys::Const>().is_some()
            || entry.is_some_and(|entry| entry.has_members())
            || derived.id().is_some_and(is_read_by)
    }

    /// A comparison of the time with the lowest or the highest that is within a range.
    fn bound(&self, derived: &Derived<'p>, range: Expr<'p>, is_lowest: bool) -> Option<Expr<'p>> {
        let bound = derived.bound(self.planner, Accepts::Equal, range, is_lowest)?;
        let accepts = if is_lowest { Accepts::GreaterOrEqual } else { Accepts::LessOrEqual };
        operators::of_instants(accepts).of(derived.time.copy(), bound)
    }
}
