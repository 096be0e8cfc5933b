//! `created_at IN (…)`: each of the times is a range of IDs of its own. PostgreSQL makes one scan of each alternative of an OR, so the list becomes
//! one; and a list again, where it is evaluated for each row.

use super::nodes::{At, Expr, List, list, made};
use super::operators::{self, Accepts, EQUAL_TIMES};
use super::state::Planner;
use super::{rising, times};
use pg_sys::{BoolExpr, BoolExprType, Node, ScalarArrayOpExpr};
use pgrx::pg_sys::{self, NodeTag};

/// The longest list that becomes an OR. Each alternative takes time when the query is planned.
const LONGEST: usize = 100;

/// Makes ORs of the lists of times in the conditions of a query whose expressions are preprocessed, and not distributed yet. The times are those of
/// this table.
pub fn spread(planner: Planner<'_>, table: u32) {
    if let Some(join_tree) = planner.join_tree() {
        spread_in_join_tree(planner, join_tree, table);
    }
}

/// Conditions of a part of the join tree are lists, whose elements are combined by AND.
fn spread_in_join_tree<'p>(planner: Planner<'p>, node: Expr<'p>, table: u32) {
    let spread = |conditions: Expr<'p>| conditions.list().and_then(|list| spread_in_list(planner, list, table)?.node());
    if let Some(from) = node.cast::<pg_sys::FromExpr>() {
        from.fromlist().iter().for_each(|part| spread_in_join_tree(planner, part, table));
        if let Some(new) = from.quals().and_then(spread) {
            from.set_quals(Some(new));
        }
    } else if let Some(join) = node.cast::<pg_sys::JoinExpr>() {
        spread_in_join_tree(planner, join.left(), table);
        spread_in_join_tree(planner, join.right(), table);
        if let Some(new) = join.quals().and_then(spread) {
            join.set_quals(Some(new));
        }
    }
}

/// Conditions that are combined by AND; `None` where none of them becomes another one, as what is within a combination does in its place.
fn spread_in_list<'p>(planner: Planner<'p>, conditions: List<'p, Node>, table: u32) -> Option<List<'p, Node>> {
    let mut is_changed = false;
    let mut spread = |condition: Expr<'p>| {
        if let Some(combination) = condition.cast::<BoolExpr>() {
            spread_in_combination(planner, combination, table);
        } else if let Some(alternatives) = alternatives(planner, condition, table) {
            is_changed = true;
            return any_of(&alternatives);
        }
        condition
    };
    let new = conditions.iter().map(&mut spread).collect();
    is_changed.then_some(new)
}

fn spread_in_combination<'p>(planner: Planner<'p>, combination: At<'p, BoolExpr>, table: u32) {
    match combination.boolop() {
        BoolExprType::AND_EXPR => {
            if let Some(new) = spread_in_list(planner, combination.args(), table) {
                combination.set_args(new);
            }
        }
        // An alternative of an OR must be no OR.
        BoolExprType::OR_EXPR => {
            let mut all = Vec::new();
            for alternative in combination.args().iter() {
                if let Some(combination) = alternative.cast::<BoolExpr>() {
                    spread_in_combination(planner, combination, table);
                }
                match alternatives(planner, alternative, table) {
                    Some(alternatives) => all.extend(alternatives),
                    None => all.push(alternative),
                }
            }
            combination.set_args(list(&all));
        }
        _ => {}
    }
}

/// The alternatives of a list of times of a table's IDs, of which one at least is not NULL. The condition is one of the query, or of a member of the
/// table.
pub fn alternatives<'p>(planner: Planner<'p>, condition: Expr<'p>, table: u32) -> Option<Vec<Expr<'p>>> {
    let comparison = condition.cast::<ScalarArrayOpExpr>()?;
    let mut sides = comparison.args().iter();
    let (time, times) = (sides.next()?, sides.next()?);
    let is_list = comparison.is_any() && comparison.opno().to_u32() == EQUAL_TIMES;
    if !is_list || rising::time_of(planner, time, table).is_none() {
        return alternatives_of_derived(planner, comparison, time, times, table);
    }
    let times = elements_of(planner, times)?;
    if times.is_empty() || times.len() > LONGEST {
        return None;
    }
    let equal = |other| operators::of_instants(Accepts::Equal).of(time.copy(), other);
    times.into_iter().map(equal).collect()
}

/// The same for what is made of a time: each is a range of IDs of its own.
fn alternatives_of_derived<'p>(
    planner: Planner<'p>,
    comparison: At<'p, ScalarArrayOpExpr>,
    made_of_time: Expr<'p>,
    values: Expr<'p>,
    table: u32,
) -> Option<Vec<Expr<'p>>> {
    let is_equality = operators::compares(comparison.opno().to_u32()) == Some(Accepts::Equal);
    if !is_equality || !comparison.is_any() {
        return None;
    }
    let (_, time) = rising::derived_of(planner, made_of_time)?;
    rising::time_of(planner, time.call, table)?;
    let values = match values.cast::<pg_sys::ArrayExpr>() {
        Some(_) => elements_of(planner, values)?,
        None => values.constants()?,
    };
    let is_short = !values.is_empty() && values.len() <= LONGEST;
    is_short.then(|| values.into_iter().map(|value| comparison.with_element(made_of_time.copy(), value)).collect())
}

/// One of these conditions, as a condition. There is one at least.
pub fn any_of<'p>(alternatives: &[Expr<'p>]) -> Expr<'p> {
    match alternatives {
        [only] => *only,
        _ => list(alternatives).any_of(),
    }
}

/// The elements of an array of times, without those that are NULL; `None` where they are not known yet.
fn elements_of<'p>(planner: Planner<'p>, array: Expr<'p>) -> Option<Vec<Expr<'p>>> {
    if array.cast::<pg_sys::Const>().is_some() {
        return Some(array.instants()?.into_iter().map(|time| planner.time(time)).collect());
    }
    let array = array.cast::<pg_sys::ArrayExpr>().filter(|array| !array.is_of_arrays())?;
    let is_plain = |one: Expr<'_>| !one.has_subplan() && !one.is_volatile();
    array.elements().iter().all(is_plain).then(|| array.elements().iter().map(Expr::copy).collect())
}

/// The list that a condition was made of: of an OR of comparisons of one time with constants. `None` where it is none.
pub fn gathered(condition: Expr<'_>) -> Option<Expr<'_>> {
    let alternatives = condition.cast::<BoolExpr>().filter(|it| it.boolop() == BoolExprType::OR_EXPR)?.args();
    let mut time: Option<Expr> = None;
    let (mut operator, mut of_type) = (None, pg_sys::InvalidOid);
    let mut times = Vec::new();
    for alternative in alternatives.iter() {
        let comparison = alternative.cast::<pg_sys::OpExpr>()?;
        if operators::compares(comparison.opno().to_u32()) != Some(Accepts::Equal)
            || operator.is_some_and(|operator| operator != comparison.opno())
        {
            return None;
        }
        operator = Some(comparison.opno());
        let mut sides = comparison.args().iter();
        let (left, right) = (sides.next()?, sides.next()?.cast::<pg_sys::Const>()?);
        if time.is_some_and(|time| !time.says(left)) || right.constisnull() {
            return None;
        }
        time = Some(left);
        of_type = right.consttype();
        times.push(right.constvalue());
    }
    let first = alternatives.get(0)?.cast::<pg_sys::OpExpr>()?;
    let (none, array) = (pg_sys::InvalidOid, times::array_of(of_type, times));
    // SAFETY: these make new nodes. The array is of the type, and the operator, by which the time is compared already, takes its elements.
    unsafe {
        let array = pg_sys::makeConst(pg_sys::get_array_type(of_type), -1, none, -1, array, false, false);
        let new = pgrx::PgBox::<ScalarArrayOpExpr>::alloc_node(NodeTag::T_ScalarArrayOpExpr).into_pg();
        (*new).opno = first.opno();
        (*new).opfuncid = first.opfuncid();
        (*new).useOr = true;
        (*new).args = list(&[time?.copy(), made(array)]).as_ptr();
        (*new).location = -1;
        Some(made(new))
    }
}
