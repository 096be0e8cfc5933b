//! `created_at IN (…)`: each of the times is a range of IDs of its own. PostgreSQL makes one scan of each alternative of an OR, so the list becomes
//! one; and a list again, where it is evaluated for each row.

use super::nodes::{cast, copy, elements, list};
use super::operators::EQUAL_TIMES;
use super::rising;
use pg_sys::{BoolExprType, Node, PlannerInfo, ScalarArrayOpExpr};
use pgrx::prelude::*;

/// The longest list that becomes an OR. Each alternative takes time when the query is planned.
const LONGEST: usize = 100;

/// Makes ORs of the lists of times in the conditions of a query.
///
/// # Safety
/// The planner's state of a query whose expressions are preprocessed, and not distributed yet; and the number of the table whose times
/// they are.
pub unsafe fn spread(root: *mut PlannerInfo, table: pg_sys::Index) {
    // SAFETY: as above.
    unsafe { spread_in_join_tree(root, (*(*root).parse).jointree.cast(), table) };
}

/// # Safety
/// As [`spread`]; a part of the join tree.
unsafe fn spread_in_join_tree(root: *mut PlannerInfo, node: *mut Node, table: pg_sys::Index) {
    // SAFETY: as above. Conditions are lists, whose elements are combined by AND.
    unsafe {
        if let Some(from) = cast::<pg_sys::FromExpr>(node) {
            elements(from.fromlist).for_each(|part| spread_in_join_tree(root, part, table));
            spread_in_list(root, from.quals.cast(), table);
        } else if let Some(join) = cast::<pg_sys::JoinExpr>(node) {
            spread_in_join_tree(root, join.larg, table);
            spread_in_join_tree(root, join.rarg, table);
            spread_in_list(root, join.quals.cast(), table);
        }
    }
}

/// # Safety
/// As [`spread`]; conditions that are combined by AND.
unsafe fn spread_in_list(root: *mut PlannerInfo, conditions: *mut pg_sys::List, table: pg_sys::Index) {
    // SAFETY: as above.
    unsafe {
        for (at, condition) in elements::<Node>(conditions).enumerate() {
            if let Some(combination) = cast::<pg_sys::BoolExpr>(condition) {
                spread_in_combination(root, combination, table);
            } else if let Some(alternatives) = alternatives(root, condition, table) {
                (*(*conditions).elements.add(at)).ptr_value = any_of(&alternatives).cast();
            }
        }
    }
}

/// # Safety
/// As [`spread`]; a condition of the query.
unsafe fn spread_in_combination(root: *mut PlannerInfo, combination: &mut pg_sys::BoolExpr, table: pg_sys::Index) {
    // SAFETY: as above.
    unsafe {
        match combination.boolop {
            BoolExprType::AND_EXPR => spread_in_list(root, combination.args, table),
            // An alternative of an OR must be no OR.
            BoolExprType::OR_EXPR => {
                let mut all = Vec::new();
                for alternative in elements::<Node>(combination.args) {
                    if let Some(combination) = cast::<pg_sys::BoolExpr>(alternative) {
                        spread_in_combination(root, combination, table);
                    }
                    match alternatives(root, alternative, table) {
                        Some(alternatives) => all.extend(alternatives),
                        None => all.push(alternative),
                    }
                }
                combination.args = list(&all);
            }
            _ => {}
        }
    }
}

/// The alternatives of a list of times of a table's IDs, of which one at least is not NULL.
///
/// # Safety
/// As [`spread`]; a condition of the query, or of a member of the table.
pub unsafe fn alternatives(
    root: *mut PlannerInfo,
    condition: *mut Node,
    table: pg_sys::Index,
) -> Option<Vec<*mut Node>> {
    // SAFETY: as above; a comparison has two sides.
    unsafe {
        let comparison = cast::<ScalarArrayOpExpr>(condition)?;
        let mut sides = elements::<Node>(comparison.args);
        let (time, times) = (sides.next()?, sides.next()?);
        if !comparison.useOr || comparison.opno.to_u32() != EQUAL_TIMES || rising::time_of(root, time, table).is_none()
        {
            return None;
        }
        let times = elements_of(times)?;
        if times.is_empty() || times.len() > LONGEST {
            return None;
        }
        let equal = |other: *mut Node| {
            let none = pg_sys::InvalidOid;
            let new = pg_sys::make_opclause(
                comparison.opno,
                pg_sys::BOOLOID,
                false,
                copy(time).cast(),
                other.cast(),
                none,
                none,
            );
            (*new.cast::<pg_sys::OpExpr>()).opfuncid = comparison.opfuncid;
            new.cast::<Node>()
        };
        Some(times.into_iter().map(equal).collect())
    }
}

/// One of these conditions, as a condition.
///
/// # Safety
/// Conditions: at least one.
pub unsafe fn any_of(alternatives: &[*mut Node]) -> *mut Node {
    match alternatives {
        [only] => *only,
        // SAFETY: as above.
        _ => unsafe { pg_sys::make_orclause(list(alternatives)).cast() },
    }
}

/// The elements of an array, without those that are NULL; `None` where they are not known yet.
///
/// # Safety
/// An expression of the type `timestamptz[]`.
unsafe fn elements_of(array: *mut Node) -> Option<Vec<*mut Node>> {
    // SAFETY: as above.
    unsafe {
        if let Some(constant) = cast::<pg_sys::Const>(array) {
            let times = pgrx::Array::<TimestampWithTimeZone>::from_datum(constant.constvalue, constant.constisnull)?;
            let times = times.iter().flatten().map(TimestampWithTimeZone::into_inner);
            return Some(times.map(super::times::constant).collect());
        }
        let array = cast::<pg_sys::ArrayExpr>(array).filter(|array| !array.multidims)?;
        let is_plain = |&one: &*mut Node| !pg_sys::contain_subplans(one) && !pg_sys::contain_volatile_functions(one);
        elements::<Node>(array.elements)
            .all(|one| is_plain(&one))
            .then(|| elements(array.elements).map(|one| copy(one)).collect())
    }
}

/// The list that a condition was made of: of an OR of comparisons of one time with constants. `None` where it is none.
///
/// # Safety
/// A condition.
pub unsafe fn gathered(condition: *mut Node) -> Option<*mut Node> {
    // SAFETY: as above; a comparison has two sides.
    unsafe {
        let alternatives = cast::<pg_sys::BoolExpr>(condition).filter(|it| it.boolop == BoolExprType::OR_EXPR)?;
        let mut time: *mut Node = std::ptr::null_mut();
        let mut times = Vec::new();
        for alternative in elements::<Node>(alternatives.args) {
            let comparison = cast::<pg_sys::OpExpr>(alternative).filter(|it| it.opno.to_u32() == EQUAL_TIMES)?;
            let mut sides = elements::<Node>(comparison.args);
            let (left, right) = (sides.next()?, cast::<pg_sys::Const>(sides.next()?)?);
            if !time.is_null() && !pg_sys::equal(time.cast(), left.cast()) || right.constisnull {
                return None;
            }
            time = left;
            times.push(right.constvalue);
        }
        let first = cast::<pg_sys::OpExpr>(elements::<Node>(alternatives.args).next()?)?;
        let length = size_of::<i64>() as i32;
        let array = pg_sys::construct_array(
            times.as_mut_ptr(),
            times.len() as i32,
            pg_sys::TIMESTAMPTZOID,
            length,
            true,
            b'd' as _,
        );
        let none = pg_sys::InvalidOid;
        let array =
            pg_sys::makeConst(pg_sys::TIMESTAMPTZARRAYOID, -1, none, -1, pg_sys::Datum::from(array), false, false);
        let new = pgrx::PgBox::<ScalarArrayOpExpr>::alloc_node(pg_sys::NodeTag::T_ScalarArrayOpExpr).into_pg();
        (*new).opno = first.opno;
        (*new).opfuncid = first.opfuncid;
        (*new).useOr = true;
        (*new).args = list::<Node>(&[copy(time), array.cast()]);
        (*new).location = -1;
        Some(new.cast())
    }
}
