//! Comparisons of an ID's time become comparisons of the ID, which an index on the ID can serve:
//!
//! ```sql
//! WHERE snowflake_timestamp(id) >= now() - interval '1 hour'
//! -- is planned as
//! WHERE id >= _snowflake.min_id(now() - interval '1 hour')
//! ```
//!
//! The bounds exist for every instant, and are exact: an ID has a time before `t` if it is at most the highest ID before `t`.
//! (Where no ID is at or after `t`, the lowest one is NULL, and so is the comparison, which excludes all.)
//! A number that is no ID has no time, and `snowflake_timestamp()` ends the query with an error. No such number may pass a
//! comparison: so the ID is compared with the lowest and the highest of the layout, too, where the bound alone does not do that.
//!
//! Two tables may be joined by equal times. That condition stays, as a hash or merge join needs it. The bounds are added to it, so
//! that an index on the ID can serve a nested loop. They say nothing new, which the planner's estimates must take into account:
//! see [`set_selectivities`].
//!
//! This happens when views are inlined and constants are folded, and before the planner distributes the conditions to the
//! tables. Outer joins, EXISTS, and UPDATE and DELETE have nothing special then.

use super::functions::{Bound, IdTime};
use super::nodes::{cast, copy, elements, list};
use crate::time::timestamptz;
use pgrx::pg_sys::{self, Node, Oid};
use snowflake_core::Layout;

/// What a comparison accepts on its left side, relative to its right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepts {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

impl Accepts {
    /// The same comparison with the sides exchanged.
    const fn commuted(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Equal => Self::Equal,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Greater => Self::Less,
        }
    }
}

/// Where a condition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a list of conditions that are combined by AND.
    List,
    /// The same, of a FULL JOIN, which can use only conditions of equality.
    FullJoin,
    /// In an OR.
    Alternative,
}

/// The location in the query's text of the bounds that are added to an equality, and of the equality itself. PostgreSQL uses -1 for
/// nodes that have none, and treats all negative numbers alike.
const IMPLIED: i32 = -2;
const HAS_BOUNDS: i32 = -3;

/// Comparisons of `bigint` with `bigint`: operator and function, as in PostgreSQL's `pg_operator.dat`.
const AT_LEAST: (u32, u32) = (AT_LEAST_OPERATOR, 472);
const AT_LEAST_OPERATOR: u32 = 415;
const ABOVE: (u32, u32) = (413, 470);
const AT_MOST: (u32, u32) = (414, 471);

/// Whether an operator compares `bigint`, as those of the bounds do.
pub const fn is_bound(operator: u32) -> bool {
    operator == AT_LEAST.0 || operator == ABOVE.0 || operator == AT_MOST.0 || operator == 412
}

/// Rewrites all conditions of a query.
///
/// # Safety
/// The planner's state of a query whose expressions are preprocessed, and not distributed yet.
pub unsafe fn rewrite(root: *mut pg_sys::PlannerInfo) {
    // SAFETY: as above.
    unsafe {
        let query = (*root).parse;
        rewrite_join_tree(root, (*query).jointree.cast());
        for table in elements::<pg_sys::RangeTblEntry>((*query).rtable) {
            // Of row-level security: a list of lists.
            for (at, conditions) in elements::<Node>((*table).securityQuals).enumerate() {
                (*(*(*table).securityQuals).elements.add(at)).ptr_value =
                    rewritten_conditions(root, conditions, Place::List).cast();
            }
        }
    }
}

/// # Safety
/// As [`rewrite`]; a part of the query's join tree.
unsafe fn rewrite_join_tree(root: *mut pg_sys::PlannerInfo, node: *mut Node) {
    // SAFETY: as above. Conditions are lists, whose elements are combined by AND.
    unsafe {
        if let Some(from) = cast::<pg_sys::FromExpr>(node) {
            elements(from.fromlist).for_each(|part| rewrite_join_tree(root, part));
            from.quals = rewritten_conditions(root, from.quals, Place::List);
        } else if let Some(join) = cast::<pg_sys::JoinExpr>(node) {
            rewrite_join_tree(root, join.larg);
            rewrite_join_tree(root, join.rarg);
            let is_full = join.jointype == pg_sys::JoinType::JOIN_FULL;
            let place = if is_full { Place::FullJoin } else { Place::List };
            join.quals = rewritten_conditions(root, join.quals, place);
        }
    }
}

/// # Safety
/// As [`rewrite`]; the conditions of a part of the join tree.
unsafe fn rewritten_conditions(root: *mut pg_sys::PlannerInfo, conditions: *mut Node, place: Place) -> *mut Node {
    // SAFETY: as above.
    unsafe {
        match cast::<pg_sys::List>(conditions).and_then(|conditions| rewritten(root, conditions, place)) {
            Some(new) => new.cast(),
            None => conditions,
        }
    }
}

/// Conditions that are combined by AND; `None` where none of them changes.
///
/// # Safety
/// As [`rewrite`].
unsafe fn rewritten(
    root: *mut pg_sys::PlannerInfo,
    conditions: *mut pg_sys::List,
    place: Place,
) -> Option<*mut pg_sys::List> {
    // SAFETY: as above.
    unsafe {
        for condition in elements::<Node>(conditions) {
            if let Some(combination) = cast::<pg_sys::BoolExpr>(condition) {
                rewrite_combination(root, combination);
            }
        }
        // For most queries, this is all.
        if !elements::<Node>(conditions).any(|condition| is_candidate(condition)) {
            return None;
        }
        let (mut new, mut made) = (Vec::new(), Vec::new());
        for condition in elements::<Node>(conditions) {
            match cast::<pg_sys::OpExpr>(condition).and_then(|operation| bounds(root, operation, place)) {
                Some(bounds) => {
                    new.extend(&bounds);
                    made.extend(bounds);
                }
                None => new.push(condition),
            }
        }
        // Where an ID is above a bound, it need not be compared with the lowest one as well.
        let is_implied = |condition| made.contains(&condition) && made.iter().any(|&other| implies(other, condition));
        new.retain(|&condition| !is_implied(condition));
        Some(list(&new))
    }
}

/// Whether a bound, `id >= bound` or `id > bound`, implies that the ID is at least the lowest one: `id >= 0`.
///
/// # Safety
/// Two of the operations that [`bounds`] makes.
unsafe fn implies(bound: *mut Node, lowest: *mut Node) -> bool {
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
        let (Some((above, id, false)), Some((AT_LEAST_OPERATOR, lowest_id, true))) = (sides(bound), sides(lowest))
        else {
            return false;
        };
        [AT_LEAST.0, ABOVE.0].contains(&above) && pg_sys::equal(id.cast(), lowest_id.cast())
    }
}

/// Whether an expression compares times.
///
/// # Safety
/// An expression.
unsafe fn is_candidate(expression: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe { cast::<pg_sys::OpExpr>(expression) }.is_some_and(|operation| comparison(operation.opno.to_u32()).is_some())
}

/// # Safety
/// As [`rewrite`].
unsafe fn rewrite_combination(root: *mut pg_sys::PlannerInfo, combination: &mut pg_sys::BoolExpr) {
    // SAFETY: as above.
    unsafe {
        match combination.boolop {
            pg_sys::BoolExprType::AND_EXPR => {
                if let Some(new) = rewritten(root, combination.args, Place::Alternative) {
                    combination.args = new;
                }
            }
            pg_sys::BoolExprType::OR_EXPR => {
                for (at, alternative) in elements::<Node>(combination.args).enumerate() {
                    if let Some(combination) = cast::<pg_sys::BoolExpr>(alternative) {
                        rewrite_combination(root, combination);
                    } else if let Some(bounds) = cast::<pg_sys::OpExpr>(alternative)
                        .and_then(|operation| bounds(root, operation, Place::Alternative))
                    {
                        let new = match bounds[..] {
                            [only] => only,
                            _ => pg_sys::make_andclause(list(&bounds)).cast(),
                        };
                        (*(*combination.args).elements.add(at)).ptr_value = new.cast();
                    }
                }
            }
            // The planner has moved every NOT inwards that it could.
            _ => {}
        }
    }
}

/// The comparisons of the ID that stand for one of its time, to be combined by AND; `None` where the operation is none, or must
/// stay as it is.
///
/// # Safety
/// As [`rewrite`].
unsafe fn bounds(
    root: *mut pg_sys::PlannerInfo,
    operation: &mut pg_sys::OpExpr,
    place: Place,
) -> Option<Vec<*mut Node>> {
    let (accepts, left_type, right_type) = comparison(operation.opno.to_u32())?;
    // SAFETY: as above; a comparison has two operands.
    unsafe {
        let mut operands = elements::<Node>(operation.args);
        let (left, right) = (operands.next()?, operands.next()?);
        if accepts == Accepts::Equal && joins(root, left, right) {
            if place != Place::List || operation.location == HAS_BOUNDS {
                return None;
            }
            let by_left = || bounds_of(root, accepts, &time_of(copy(left), left_type)?, copy(right), right_type);
            let by_right = || bounds_of(root, accepts, &time_of(copy(right), right_type)?, copy(left), left_type);
            let implied: Vec<*mut Node> = [by_left(), by_right()].into_iter().flatten().flatten().collect();
            if implied.is_empty() {
                return None;
            }
            for &bound in &implied {
                (*bound.cast::<pg_sys::OpExpr>()).location = IMPLIED;
            }
            operation.location = HAS_BOUNDS;
            return Some([&[std::ptr::from_mut(operation).cast()], &implied[..]].concat());
        }
        let by_left = || bounds_of(root, accepts, &time_of(left, left_type)?, right, right_type);
        let by_right = || bounds_of(root, accepts.commuted(), &time_of(right, right_type)?, left, left_type);
        by_left().or_else(by_right)
    }
}

/// Whether two expressions are of different tables.
///
/// # Safety
/// As [`rewrite`].
unsafe fn joins(root: *mut pg_sys::PlannerInfo, left: *mut Node, right: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        let (left, right) = (pg_sys::pull_varnos(root, left), pg_sys::pull_varnos(root, right));
        !left.is_null() && !right.is_null() && !pg_sys::bms_overlap(left, right)
    }
}

/// The sides of the equalities that bounds were added to.
///
/// # Safety
/// As [`rewrite`], which was called before; a part of the query's join tree.
pub unsafe fn joined(node: *mut Node) -> Vec<*mut Node> {
    // SAFETY: as above.
    unsafe {
        let (parts, conditions) = if let Some(from) = cast::<pg_sys::FromExpr>(node) {
            (elements::<Node>(from.fromlist).flat_map(|part| joined(part)).collect(), from.quals)
        } else if let Some(join) = cast::<pg_sys::JoinExpr>(node) {
            ([joined(join.larg), joined(join.rarg)].concat(), join.quals)
        } else {
            return Vec::new();
        };
        let mut sides: Vec<*mut Node> = parts;
        if let Some(conditions) = cast::<pg_sys::List>(conditions) {
            let operations = elements::<Node>(conditions).filter_map(|condition| cast::<pg_sys::OpExpr>(condition));
            let equalities = operations.filter(|operation| operation.location == HAS_BOUNDS);
            sides.extend(equalities.flat_map(|equality| elements::<Node>(equality.args)));
        }
        sides
    }
}

/// Says that the bounds which are added to an equality exclude nothing that the equality does not exclude.
///
/// # Safety
/// A table of the planner whose conditions are distributed.
pub unsafe fn set_selectivities(table: *mut pg_sys::RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        for restriction in elements::<pg_sys::RestrictInfo>((*table).joininfo) {
            let operation = cast::<pg_sys::OpExpr>((*restriction).clause.cast());
            if operation.is_some_and(|operation| operation.location == IMPLIED) {
                (*restriction).norm_selec = 1.0;
                (*restriction).outer_selec = 1.0;
            }
        }
    }
}

/// # Safety
/// An expression of this type.
unsafe fn time_of(expression: *mut Node, of_type: Oid) -> Option<IdTime> {
    // SAFETY: as above.
    if of_type == pg_sys::TIMESTAMPTZOID { unsafe { IdTime::read(expression) } } else { None }
}

/// # Safety
/// As [`rewrite`].
unsafe fn bounds_of(
    root: *mut pg_sys::PlannerInfo,
    accepts: Accepts,
    time: &IdTime,
    other: *mut Node,
    other_type: Oid,
) -> Option<Vec<*mut Node>> {
    let layout = time.layout()?;
    // SAFETY: as above.
    unsafe {
        // The ID is compared twice, and may be evaluated where the comparison would not be.
        if !pg_sys::contain_var_clause(time.id)
            || pg_sys::contain_volatile_functions(time.id)
            || pg_sys::contain_subplans(time.id)
            || pg_sys::contain_volatile_functions(other)
        {
            return None;
        }
        // It would be evaluated twice.
        if accepts == Accepts::Equal && pg_sys::contain_subplans(other) {
            return None;
        }
        let bound = |bound, other| match known_bound(&layout, time, bound, other, other_type) {
            Some(known) => Some(known),
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

/// The bound by a constant. The planner would fold the call of the function, too, but takes ten times as long.
///
/// # Safety
/// As [`rewrite`].
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
/// As [`rewrite`].
unsafe fn with_highest(layout: &Layout, id: *mut Node, comparison: *mut Node) -> Vec<*mut Node> {
    match layout.max_id() {
        i64::MAX => vec![comparison],
        // SAFETY: as above.
        highest => unsafe { vec![comparison, operation(AT_MOST, copy(id), constant(highest))] },
    }
}

/// # Safety
/// Two expressions of type `bigint`.
unsafe fn operation((operator, function): (u32, u32), left: *mut Node, right: *mut Node) -> *mut Node {
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

/// What an operator compares, and the types of its sides, one of which is `timestamptz`. The OIDs are those of PostgreSQL's
/// `pg_operator.dat`; they never change.
const fn comparison(operator: u32) -> Option<(Accepts, Oid, Oid)> {
    use Accepts::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    use pg_sys::{DATEOID, TIMESTAMPOID, TIMESTAMPTZOID};
    const BY_NUMBER: [Accepts; 5] = [Less, LessOrEqual, Equal, GreaterOrEqual, Greater];
    let (first, left, right) = match operator {
        1320 => return Some((Equal, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        1322 => return Some((Less, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        1323 => return Some((LessOrEqual, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        1324 => return Some((Greater, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        1325 => return Some((GreaterOrEqual, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        2358..=2362 => (2358, DATEOID, TIMESTAMPTZOID),
        2384..=2388 => (2384, TIMESTAMPTZOID, DATEOID),
        2534..=2538 => (2534, TIMESTAMPOID, TIMESTAMPTZOID),
        2540..=2544 => (2540, TIMESTAMPTZOID, TIMESTAMPOID),
        _ => return None,
    };
    Some((BY_NUMBER[(operator - first) as usize], left, right))
}
