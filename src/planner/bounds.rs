//! The comparisons of an ID that stand for one comparison of its time.
//!
//! The bounds exist for every instant, and are exact: an ID has a time before `t` if it is at most the highest ID before `t`.
//! (Where no ID is at or after `t`, the lowest one is NULL, and so is the comparison, which excludes all.)
//! A number that is no ID has no time, and `snowflake_timestamp()` ends the query with an error. No such number may pass a
//! comparison: so the ID is compared with the lowest and the highest of the layout, too, where the bound alone does not do that.

use super::functions::{Bound, IdTime};
use super::indexes;
use super::nodes::{cast, copy, elements, without_labels};
use super::operators::{ABOVE, AT_LEAST, AT_MOST, Accepts, OfIds};
use crate::database;
use crate::time::timestamptz;
use pgrx::pg_sys::{self, Node, Oid};
use snowflake_core::Layout;

/// The comparisons, to be combined by AND; `None` where that of the time must stay as it is.
///
/// # Safety
/// The planner's state of a query whose expressions are preprocessed, a time that was read from it, and an expression of this type.
pub unsafe fn of_comparison(
    root: *mut pg_sys::PlannerInfo,
    accepts: Accepts,
    time: &IdTime,
    other: *mut Node,
    other_type: Oid,
) -> Option<Vec<*mut Node>> {
    let layout = time.layout()?;
    // SAFETY: as above.
    unsafe {
        // The ID is compared twice, and before conditions that would have come before the comparison of the time. An expression would
        // be evaluated twice, and could fail where those exclude the row: `val::bigint`.
        if !is_column(time.id) || pg_sys::contain_volatile_functions(other) {
            return None;
        }
        if indexes::serve_time_only(root, time) {
            return None;
        }
        // It would be evaluated twice.
        if accepts == Accepts::Equal && pg_sys::contain_subplans(other) {
            return None;
        }
        time.keep_in_plan(root);
        if time.named.is_none() {
            let plan = (*root).glob;
            (*plan).relationOids = pg_sys::list_append_unique_oid((*plan).relationOids, database::layout_sequence());
        }
        let bound = |bound, other| match known_bound(&layout, time, bound, other, other_type) {
            Some(known) => Some(known),
            // A call could be sent to a server with another version, or another layout.
            None if is_foreign(root, time.id) => None,
            None => Some(pg_sys::eval_const_expressions(root, time.bound(bound, other, other_type)?)),
        };
        let above = |bound| operation(ABOVE, time.id, bound);
        let from = |bound| operation(AT_LEAST, time.id, bound);
        let at_most = |id, bound| operation(AT_MOST, id, bound);
        let lowest = || operation(AT_LEAST, copy(time.id), constant(0));
        Some(match accepts {
            Accepts::Less => vec![lowest(), at_most(time.id, bound(Bound::Before, other)?)],
            Accepts::LessOrEqual => vec![lowest(), at_most(time.id, bound(Bound::At, other)?)],
            Accepts::Equal => {
                let at = bound(Bound::At, copy(other))?;
                vec![from(bound(Bound::From, other)?), at_most(copy(time.id), at)]
            }
            Accepts::GreaterOrEqual => with_highest(&layout, time.id, from(bound(Bound::From, other)?)),
            Accepts::Greater => with_highest(&layout, time.id, above(bound(Bound::At, other)?)),
        })
    }
}

/// Whether an expression is a column, perhaps of a table that an outer join may make NULL.
///
/// # Safety
/// An expression.
unsafe fn is_column(expression: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        let expression = without_labels(expression);
        match cast::<pg_sys::PlaceHolderVar>(expression) {
            Some(placeholder) => is_column(placeholder.phexpr.cast()),
            None => cast::<pg_sys::Var>(expression).is_some_and(|column| column.varlevelsup == 0),
        }
    }
}

/// Whether an expression is a column of a foreign table.
///
/// # Safety
/// The planner's state, and an expression of its query.
unsafe fn is_foreign(root: *mut pg_sys::PlannerInfo, expression: *mut Node) -> bool {
    // SAFETY: as above; the array has an element for each number of a table in the query.
    unsafe {
        cast::<pg_sys::Var>(without_labels(expression)).is_some_and(|column| {
            let entry = *(*root).simple_rte_array.add(column.varno as usize);
            (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION && (*entry).relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE
        })
    }
}

/// The bound by a constant. The planner would fold the call of the function, too, but takes ten times as long.
///
/// # Safety
/// As [`of_comparison`].
unsafe fn known_bound(
    layout: &Layout,
    time: &IdTime,
    bound: Bound,
    other: *mut Node,
    of_type: Oid,
) -> Option<*mut Node> {
    // SAFETY: as above; an expression of this type.
    let other = unsafe { cast::<pg_sys::Const>(other) }?;
    if of_type != pg_sys::TIMESTAMPTZOID || other.constisnull || !time.may_be_called() {
        return None;
    }
    let instant = timestamptz::to_unix(other.constvalue.value() as i64);
    match bound {
        Bound::From => layout.lowest_id_from(instant).map(constant),
        Bound::Before => Some(constant(layout.highest_id_before(instant))),
        Bound::At => Some(constant(layout.highest_id_until(instant))),
    }
}

/// A comparison, and where the layout has fewer bits than a `bigint`, that with its highest ID.
///
/// # Safety
/// As [`of_comparison`].
unsafe fn with_highest(layout: &Layout, id: *mut Node, comparison: *mut Node) -> Vec<*mut Node> {
    match layout.max_id() {
        i64::MAX => vec![comparison],
        // SAFETY: as above.
        highest => unsafe { vec![comparison, operation(AT_MOST, copy(id), constant(highest))] },
    }
}

/// # Safety
/// Two expressions of type `bigint`.
unsafe fn operation(OfIds { operator, function }: OfIds, left: *mut Node, right: *mut Node) -> *mut Node {
    // SAFETY: as above.
    unsafe {
        let none = pg_sys::InvalidOid;
        let new = pg_sys::make_opclause(operator.into(), pg_sys::BOOLOID, false, left.cast(), right.cast(), none, none);
        (*new.cast::<pg_sys::OpExpr>()).opfuncid = function.into();
        new.cast()
    }
}

fn constant(id: i64) -> *mut Node {
    let length = size_of::<i64>() as i32;
    // SAFETY: a `bigint`, which is passed by value.
    unsafe {
        pg_sys::makeConst(pg_sys::INT8OID, -1, pg_sys::InvalidOid, length, pg_sys::Datum::from(id), false, true).cast()
    }
}

/// Conditions that are combined by AND, without what follows from the rest: where an ID is above a bound, it need not be compared with
/// the lowest one as well; and no bound is needed twice.
///
/// # Safety
/// Expressions, and which of them are made by [`of_comparison`]; the others stay.
pub unsafe fn without_implied(conditions: &[*mut Node], made: &[*mut Node]) -> Vec<*mut Node> {
    let follows = |at: usize, condition: *mut Node| {
        conditions.iter().enumerate().filter(|(_, other)| made.contains(other)).any(|(other_at, &other)| {
            // SAFETY: as above.
            unsafe { implies(other, condition) || other_at < at && pg_sys::equal(other.cast(), condition.cast()) }
        })
    };
    let all = conditions.iter().copied().enumerate();
    all.filter(|&(at, condition)| !made.contains(&condition) || !follows(at, condition)).map(|(_, one)| one).collect()
}

/// Whether a bound, `id >= bound` or `id > bound`, implies that the ID is at least the lowest one: `id >= 0`.
///
/// # Safety
/// Two of the operations that [`of_comparison`] makes.
unsafe fn implies(bound: *mut Node, lowest: *mut Node) -> bool {
    const LOWEST: u32 = AT_LEAST.operator;
    // SAFETY: as above; an operation has two operands.
    unsafe {
        let sides = |operation: *mut Node| {
            let operation = cast::<pg_sys::OpExpr>(operation)?;
            let mut operands = elements::<Node>(operation.args);
            let (id, bound) = (operands.next()?, operands.next()?);
            let is_zero = cast::<pg_sys::Const>(bound).is_some_and(|bound| {
                let is_null = bound.constisnull;
                !is_null && bound.constvalue.value() == 0
            });
            Some((operation.opno.to_u32(), id, is_zero))
        };
        let (Some((above, id, false)), Some((LOWEST, lowest_id, true))) = (sides(bound), sides(lowest)) else {
            return false;
        };
        [AT_LEAST.operator, ABOVE.operator].contains(&above) && pg_sys::equal(id.cast(), lowest_id.cast())
    }
}
