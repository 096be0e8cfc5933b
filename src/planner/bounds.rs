//! The comparisons of an ID that stand for one comparison of its time.
//!
//! The bounds exist for every instant, and are exact: an ID has a time before `t` if it is at most the highest ID before `t`.
//! (Where no ID is at or after `t`, the lowest one is NULL, and so is the comparison, which excludes all.)
//! A number that is no ID has no time, and `snowflake_timestamp()` ends the query with an error. No such number may pass a
//! comparison: so the ID is compared with the lowest and the highest of the layout, too, where the bound alone does not do that.

use super::functions::{self, Bound, IdTime};
use super::nodes::{Expr, List};
use super::operators::{ABOVE, AT_LEAST, AT_MOST, Accepts};
use super::state::Planner;
use super::versions;
use crate::postgres::time::timestamptz;
use crate::record;
use pgrx::pg_sys::{self, Oid};
use snowflake_core::Layout;
use std::collections::BTreeSet;

/// The comparisons, to be combined by AND; `None` where that of the time must stay as it is. What it is compared with is of this type, and not volatile.
pub fn of_comparison<'p>(
    planner: Planner<'p>,
    accepts: Accepts,
    time: &IdTime<'p>,
    other: Expr<'p>,
    other_type: Oid,
) -> Option<Vec<Expr<'p>>> {
    let layout = time.layout()?;
    keep_in_plan(planner, time);
    let bound = |bound, other| bound_by(planner, &layout, time, bound, other, other_type);
    let above = |bound| ABOVE.of(time.id, bound);
    let from = |bound| AT_LEAST.of(time.id, bound);
    let at_most = |id, bound| AT_MOST.of(id, bound);
    let lowest = || AT_LEAST.of(time.id.copy(), planner.id(0));
    Some(match accepts {
        Accepts::Less => vec![lowest()?, at_most(time.id, bound(Bound::Before, other)?)?],
        Accepts::LessOrEqual => vec![lowest()?, at_most(time.id, bound(Bound::At, other)?)?],
        Accepts::Equal => {
            let at = bound(Bound::At, other.copy())?;
            vec![from(bound(Bound::From, other)?)?, at_most(time.id.copy(), at)?]
        }
        Accepts::GreaterOrEqual => with_highest(planner, &layout, time.id, from(bound(Bound::From, other)?)?)?,
        Accepts::Greater => with_highest(planner, &layout, time.id, above(bound(Bound::At, other)?)?)?,
    })
}

/// How the ID is compared in a row whose last place that is compared has its time, and with what, which is a `bigint`; `None` where that must stay
/// as it is. Where the row itself has more places, this accepts more than the row does.
pub fn last_of_row<'p>(
    planner: Planner<'p>,
    accepts: Accepts,
    is_last: bool,
    time: &IdTime<'p>,
    other: Expr<'p>,
    other_type: Oid,
) -> Option<(Accepts, Expr<'p>)> {
    let layout = time.layout()?;
    let (accepts, bound) = match (accepts, is_last) {
        (Accepts::Less, true) => (Accepts::LessOrEqual, Bound::Before),
        (Accepts::Less, false) | (Accepts::LessOrEqual, _) => (Accepts::LessOrEqual, Bound::At),
        (Accepts::Greater, true) => (Accepts::Greater, Bound::At),
        (Accepts::Greater, false) | (Accepts::GreaterOrEqual, _) => (Accepts::GreaterOrEqual, Bound::From),
        (Accepts::Equal, _) => return None,
    };
    keep_in_plan(planner, time);
    Some((accepts, bound_by(planner, &layout, time, bound, other, other_type)?))
}

/// Has a plan made again where what a bound depends on changes.
fn keep_in_plan<'p>(planner: Planner<'p>, time: &IdTime<'p>) {
    time.keep_in_plan(planner);
    if time.named.is_none() {
        planner.depend_on_relation(record::layout_sequence());
    }
}

fn bound_by<'p>(
    planner: Planner<'p>,
    layout: &Layout,
    time: &IdTime<'p>,
    bound: Bound,
    other: Expr<'p>,
    other_type: Oid,
) -> Option<Expr<'p>> {
    match known_bound(planner, layout, time, bound, other, other_type) {
        Some(known) => Some(known),
        // A call could be sent to a server with another version, or another layout.
        None if is_foreign(planner, time.id) => None,
        None => {
            // Of anything else than a constant, nothing can be evaluated yet.
            let is_known = other.cast::<pg_sys::Const>().is_some();
            let call = time.bound(bound, other, other_type)?;
            Some(if is_known { planner.folded(call) } else { call })
        }
    }
}

/// Whether an expression is a column of a foreign table.
fn is_foreign<'p>(planner: Planner<'p>, expression: Expr<'p>) -> bool {
    let column = expression.without_labels().cast::<pg_sys::Var>();
    column.and_then(|column| planner.entry(versions::table_of(column))).is_some_and(|entry| {
        entry.kind() == pg_sys::RTEKind::RTE_RELATION && entry.relkind() as u8 == pg_sys::RELKIND_FOREIGN_TABLE
    })
}

/// The bound by a constant. The planner would fold the call of the function, too, but takes ten times as long.
fn known_bound<'p>(
    planner: Planner<'p>,
    layout: &Layout,
    time: &IdTime<'p>,
    bound: Bound,
    other: Expr<'p>,
    of_type: Oid,
) -> Option<Expr<'p>> {
    let other = other.cast::<pg_sys::Const>()?;
    if of_type != pg_sys::TIMESTAMPTZOID || other.constisnull() || !time.may_be_called() {
        return None;
    }
    let instant = timestamptz::to_unix(other.constvalue().value() as i64);
    match bound {
        Bound::From => layout.lowest_id_from(instant).map(|id| planner.id(id)),
        Bound::Before => Some(planner.id(layout.highest_id_before(instant))),
        Bound::At => Some(planner.id(layout.highest_id_until(instant))),
    }
}

/// A comparison, and where the layout has fewer bits than a `bigint`, that with its highest ID.
fn with_highest<'p>(
    planner: Planner<'p>,
    layout: &Layout,
    id: Expr<'p>,
    comparison: Expr<'p>,
) -> Option<Vec<Expr<'p>>> {
    match layout.max_id() {
        i64::MAX => Some(vec![comparison]),
        highest => Some(vec![comparison, AT_MOST.of(id.copy(), planner.id(highest))?]),
    }
}

/// What a comparison has on its right side.
pub fn right_of(comparison: Expr<'_>) -> Option<Expr<'_>> {
    comparison.cast::<pg_sys::OpExpr>().and_then(|comparison| comparison.args().get(1))
}

/// The arguments of the call of `_snowflake.earliest()`, or `latest()`, that a comparison has as its bound.
pub fn called(comparison: Expr<'_>) -> Option<List<'_, pg_sys::Node>> {
    functions::arguments_of_times(right_of(comparison)?)
}

/// Conditions that are combined by AND, without what follows from the rest: where an ID is above a bound, it need not be compared with
/// the lowest one as well; and no constant is needed twice. Those that are made by [`of_comparison`] are given in the same order; the others stay.
pub fn without_implied<'p>(conditions: &[Expr<'p>], made: &[Expr<'p>]) -> Vec<Expr<'p>> {
    // Of most queries.
    if made.len() < 2 {
        return conditions.to_vec();
    }
    let of_made: Vec<Option<Sides>> = made.iter().map(|&one| Sides::read(one)).collect();
    let bounded: BTreeSet<Column> = of_made
        .iter()
        .flatten()
        .filter(|sides| sides.is_lower() && sides.bound != Some(0))
        .map(|sides| sides.id)
        .collect();
    let mut known = BTreeSet::new();
    let mut made = made.iter().zip(of_made).peekable();
    let mut is_needed = |condition: &Expr<'p>| {
        let Some((_, sides)) = made.next_if(|(made, _)| *made == condition) else { return true };
        sides.is_none_or(|sides| match sides.bound {
            Some(0) if sides.operator == AT_LEAST.operator() && bounded.contains(&sides.id) => false,
            Some(_) => known.insert(sides),
            None => true,
        })
    };
    conditions.iter().copied().filter(|condition| is_needed(condition)).collect()
}

/// A column of a table: their numbers.
type Column = (u32, i16);

/// What a comparison of an ID with a bound compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sides {
    operator: u32,
    id: Column,
    /// The bound, if it is a constant.
    bound: Option<i64>,
}

impl Sides {
    /// Reads one of the operations that [`of_comparison`] makes.
    fn read(operation: Expr<'_>) -> Option<Self> {
        let operation = operation.cast::<pg_sys::OpExpr>()?;
        let mut operands = operation.args().iter();
        let (id, bound) = (operands.next()?, operands.next()?);
        let id = id.without_labels().cast::<pg_sys::Var>()?;
        let bound = bound.cast::<pg_sys::Const>().filter(|bound| !bound.constisnull());
        let bound = bound.map(|bound| bound.constvalue().value() as i64);
        let id = (versions::table_of(id), id.attribute());
        Some(Self { operator: operation.opno().to_u32(), id, bound })
    }

    const fn is_lower(&self) -> bool {
        self.operator == AT_LEAST.operator() || self.operator == ABOVE.operator()
    }
}
