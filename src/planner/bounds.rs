//! The comparisons of an ID that stand for one comparison of its time.
//!
//! The bounds exist for every instant, and are exact: an ID has a time before `t` if it is at most the highest ID before `t`.
//! (Where no ID is at or after `t`, the lowest one is NULL, and so is the comparison, which excludes all.)
//! A number that is no ID has no time, and `snowflake_timestamp()` ends the query with an error. No such number may pass a
//! comparison: so the ID is compared with the lowest and the highest of the layout, too, where the bound alone does not do that.

use super::functions::{Bound, IdTime};
use super::nodes::{cast, copy, elements, without_labels};
use super::operators::{ABOVE, AT_LEAST, AT_MOST, Accepts, OfIds};
use crate::postgres::time::timestamptz;
use crate::record;
use pgrx::pg_sys::{self, Node, Oid};
use snowflake_core::Layout;
use std::collections::HashSet;

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
        if pg_sys::contain_volatile_functions(other) {
            return None;
        }
        keep_in_plan(root, time);
        let bound = |bound, other| bound_by(root, &layout, time, bound, other, other_type);
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

/// How the ID is compared in a row whose last place that is compared has its time, and with what; `None` where that must stay as it is. Where
/// the row itself has more places, this accepts more than the row does.
///
/// # Safety
/// As [`of_comparison`].
pub unsafe fn last_of_row(
    root: *mut pg_sys::PlannerInfo,
    accepts: Accepts,
    is_last: bool,
    time: &IdTime,
    other: *mut Node,
    other_type: Oid,
) -> Option<(Accepts, *mut Node)> {
    let layout = time.layout()?;
    let (accepts, bound) = match (accepts, is_last) {
        (Accepts::Less, true) => (Accepts::LessOrEqual, Bound::Before),
        (Accepts::Less, false) | (Accepts::LessOrEqual, _) => (Accepts::LessOrEqual, Bound::At),
        (Accepts::Greater, true) => (Accepts::Greater, Bound::At),
        (Accepts::Greater, false) | (Accepts::GreaterOrEqual, _) => (Accepts::GreaterOrEqual, Bound::From),
        (Accepts::Equal, _) => return None,
    };
    // SAFETY: as above.
    unsafe {
        keep_in_plan(root, time);
        Some((accepts, bound_by(root, &layout, time, bound, other, other_type)?))
    }
}

/// Has a plan made again where what a bound depends on changes.
///
/// # Safety
/// As [`of_comparison`].
unsafe fn keep_in_plan(root: *mut pg_sys::PlannerInfo, time: &IdTime) {
    // SAFETY: as above.
    unsafe {
        time.keep_in_plan(root);
        if time.named.is_none() {
            let plan = (*root).glob;
            (*plan).relationOids = pg_sys::list_append_unique_oid((*plan).relationOids, record::layout_sequence());
        }
    }
}

/// # Safety
/// As [`of_comparison`].
unsafe fn bound_by(
    root: *mut pg_sys::PlannerInfo,
    layout: &Layout,
    time: &IdTime,
    bound: Bound,
    other: *mut Node,
    other_type: Oid,
) -> Option<*mut Node> {
    // SAFETY: as above.
    unsafe {
        match known_bound(layout, time, bound, other, other_type) {
            Some(known) => Some(known),
            // A call could be sent to a server with another version, or another layout.
            None if is_foreign(root, time.id) => None,
            None => Some(pg_sys::eval_const_expressions(root, time.bound(bound, other, other_type)?)),
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
/// the lowest one as well; and no constant is needed twice.
///
/// # Safety
/// Expressions, and which of them are made by [`of_comparison`], in the same order; the others stay.
pub unsafe fn without_implied(conditions: &[*mut Node], made: &[*mut Node]) -> Vec<*mut Node> {
    // SAFETY: as above.
    let of_made: Vec<Option<Sides>> = made.iter().map(|&one| unsafe { Sides::read(one) }).collect();
    let bounded: HashSet<Column> = of_made
        .iter()
        .flatten()
        .filter(|sides| sides.is_lower() && sides.bound != Some(0))
        .map(|sides| sides.id)
        .collect();
    let mut known = HashSet::new();
    let mut made = made.iter().zip(of_made).peekable();
    let mut is_needed = |condition: &*mut Node| {
        let Some((_, sides)) = made.next_if(|(made, _)| *made == condition) else { return true };
        sides.is_none_or(|sides| match sides.bound {
            Some(0) if sides.operator == AT_LEAST.operator && bounded.contains(&sides.id) => false,
            Some(_) => known.insert(sides),
            None => true,
        })
    };
    conditions.iter().copied().filter(|condition| is_needed(condition)).collect()
}

/// A column of a table: their numbers.
type Column = (i64, i16);

/// What a comparison of an ID with a bound compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sides {
    operator: u32,
    id: Column,
    /// The bound, if it is a constant.
    bound: Option<i64>,
}

impl Sides {
    /// # Safety
    /// One of the operations that [`of_comparison`] makes.
    unsafe fn read(operation: *mut Node) -> Option<Self> {
        // SAFETY: as above; an operation has two operands.
        unsafe {
            let operation = cast::<pg_sys::OpExpr>(operation)?;
            let mut operands = elements::<Node>(operation.args);
            let (id, bound) = (operands.next()?, operands.next()?);
            let id = cast::<pg_sys::Var>(without_labels(id))?;
            let bound = cast::<pg_sys::Const>(bound).filter(|bound| !bound.constisnull);
            let bound = bound.map(|bound| bound.constvalue.value() as i64);
            Some(Self { operator: operation.opno.to_u32(), id: (i64::from(id.varno), id.varattno), bound })
        }
    }

    const fn is_lower(&self) -> bool {
        self.operator == AT_LEAST.operator || self.operator == ABOVE.operator
    }
}
