//! `created_at IN (…)`: each of the times is a range of IDs of its own. A table is read by [one after the other](super::elements) where it can be.
//! Elsewhere the list becomes an OR, as PostgreSQL makes one scan of each alternative; and a list [again](super::gathered), where it is evaluated for
//! each row.

use super::nodes::{At, Expr, List, list};
use super::operators::{self, EQUAL_TIMES};
use super::state::{Planner, Rel};
use super::{gathered, join_tree, rising};
use crate::postgres::catalog;
use pg_sys::{BoolExpr, BoolExprType, Node, Oid, ScalarArrayOpExpr};
use pgrx::pg_sys;
use std::cell::{Cell, OnceCell};

/// The longest list that becomes an OR. Each alternative takes time when the query is planned.
const LONGEST: usize = 100;

/// How many alternatives the lists within ORs may become, those of all members of a whole together: each member is planned with all of them. Further
/// lists are read as one range.
const MOST_ALTERNATIVES: usize = 500;

/// This many are always made: partitions are pruned by them.
const ALWAYS: usize = 8;

/// A comparison with the elements of an array, each of which is a range of IDs of its own.
#[derive(Clone, Copy)]
pub struct Listed<'p> {
    pub comparison: At<'p, ScalarArrayOpExpr>,
    /// What is compared.
    pub compared: Expr<'p>,
    pub array: Expr<'p>,
    /// The type of what is compared, and of the elements.
    pub of_type: Oid,
}

impl<'p> Listed<'p> {
    /// Reads a condition; `None` where it is something else.
    pub fn read(planner: Planner<'p>, condition: Expr<'p>) -> Option<Self> {
        let comparison = condition.cast::<ScalarArrayOpExpr>().filter(|comparison| comparison.is_any())?;
        if !operators::is_equality(comparison.opno()) {
            return None;
        }
        let (compared, array) = (comparison.args().get(0)?, comparison.args().get(1)?);
        let of_type = compared.type_of();
        // Elements of another type may differ, and be the same time: a day that a time zone has left out.
        let is_array = match of_type {
            pg_sys::TIMESTAMPTZOID => array.type_of() == pg_sys::TIMESTAMPTZARRAYOID,
            pg_sys::TIMESTAMPOID => array.type_of() == pg_sys::TIMESTAMPARRAYOID,
            pg_sys::DATEOID => array.type_of() == pg_sys::DATEARRAYOID,
            _ => false,
        };
        let is_known = || planner.tables_of(array).is_empty() && !array.is_volatile() && !array.has_subplan();
        (is_array && is_known()).then_some(Self { comparison, compared, array, of_type })
    }

    /// Whether it can become an OR of what is known only when the query runs.
    pub fn is_known_later(&self) -> bool {
        self.array.cast::<pg_sys::Const>().is_none() && !self.is_long()
    }

    /// Whether it becomes no OR.
    fn is_long(&self) -> bool {
        let known = match self.array.cast::<pg_sys::ArrayExpr>() {
            Some(array) => Some(array.elements().len()),
            None => self.array.constants().map(|all| all.len()),
        };
        known.is_none_or(|known| known > LONGEST)
    }
}

/// Makes ORs of the lists of times in the conditions of a query whose expressions are preprocessed, and not distributed yet. The times are those of
/// this table. Those that the table is to be read by [one after the other](super::elements) stay; and where it `gathers`, an OR becomes such a list.
pub fn spread<'p>(planner: Planner<'p>, table: Rel<'p>, gathers: bool, stays: &dyn Fn(Expr<'p>) -> bool) {
    let of = Of::new(planner, table.number());
    for part in join_tree::parts(planner) {
        if part.conditions().iter().any(may_have_any) {
            gathered::expect(planner, table);
            part.change(|conditions| of.spread_in_list(conditions, gathers, stays));
        }
    }
}

/// Whether a condition is a list, or may have one within, or what became of one.
pub fn may_have_any(condition: Expr<'_>) -> bool {
    condition.cast::<BoolExpr>().is_some() || condition.cast::<ScalarArrayOpExpr>().is_some()
}

/// Lists of the times of this table.
struct Of<'p> {
    planner: Planner<'p>,
    table: u32,
    /// How many tables get such a condition, once that is asked for.
    tables: OnceCell<usize>,
    /// How many alternatives lists within ORs have become.
    alternatives: Cell<usize>,
}

impl<'p> Of<'p> {
    const fn new(planner: Planner<'p>, table: u32) -> Self {
        Self { planner, table, tables: OnceCell::new(), alternatives: Cell::new(0) }
    }

    /// Conditions that are combined by AND; `None` where none of them becomes another one, as what is within a combination does in its place.
    fn spread_in_list(
        &self,
        conditions: List<'p, Node>,
        gathers: bool,
        stays: &dyn Fn(Expr<'p>) -> bool,
    ) -> Option<List<'p, Node>> {
        let mut is_changed = false;
        let mut spread = |condition: Expr<'p>| {
            if let Some(combination) = condition.cast::<BoolExpr>() {
                if gathers && let Some(list) = gathered::whole(condition).filter(|&list| stays(list)) {
                    is_changed = true;
                    return list;
                }
                self.spread_in_combination(combination);
            } else if !stays(condition)
                && let Some(alternatives) = of_table(self.planner, condition, self.table)
            {
                is_changed = true;
                return any_of(&alternatives);
            }
            condition
        };
        let new: Vec<_> = conditions.iter().map(&mut spread).collect();
        is_changed.then(|| list(&new))
    }

    /// Changes an OR, or an AND, which is always within an OR here.
    fn spread_in_combination(&self, combination: At<'p, BoolExpr>) {
        match combination.boolop() {
            BoolExprType::AND_EXPR => {
                let parts: Vec<_> = combination.args().iter().map(|part| any_of(&self.spread_in_or(part))).collect();
                combination.set_args(list(&parts));
            }
            // An alternative of an OR must be no OR.
            BoolExprType::OR_EXPR => {
                combination.set_args(combination.args().iter().flat_map(|one| self.spread_in_or(one)).collect());
            }
            _ => {}
        }
    }

    /// What becomes of a part of a combination: alternatives, if it is a list and there is room for them.
    fn spread_in_or(&self, part: Expr<'p>) -> Vec<Expr<'p>> {
        if let Some(combination) = part.cast::<BoolExpr>() {
            self.spread_in_combination(combination);
        }
        let alternatives = of_table(self.planner, part, self.table).filter(|some| self.has_room(some.len()));
        alternatives.unwrap_or_else(|| vec![part])
    }

    /// Whether so many more alternatives are not too many.
    fn has_room(&self, more: usize) -> bool {
        let all = self.alternatives.get() + more;
        let is_allowed =
            all <= ALWAYS || all.saturating_mul(*self.tables.get_or_init(|| self.count())) <= MOST_ALTERNATIVES;
        if is_allowed {
            self.alternatives.set(all);
        }
        is_allowed
    }

    fn count(&self) -> usize {
        if let Some((place, whole)) = self.planner.rel(self.table).and_then(|table| table.place(self.planner)) {
            // What a table has left for its members was too long for them.
            let is_query = whole.entry_kind() == pg_sys::RTEKind::RTE_SUBQUERY;
            let members = self.planner.places().iter().filter(|one| one.parent() == place.parent());
            return if is_query { members.count() } else { usize::MAX };
        }
        let whole = self.planner.entry(self.table).filter(|entry| entry.has_members());
        whole.map_or(1, |whole| catalog::with_heirs(whole.oid()).len())
    }
}

/// Whether an index on a time is to be read by lists. From 18 on, PostgreSQL makes a list of the comparisons in an OR where it is, and then looks at
/// them in no other way: beside other alternatives, or where rows are changed or locked, that is one range from the lowest to the highest. So it is
/// not where the query has such an OR, and no list that stays one. For a table that [is excluded later](super::wholes::is_excluded_later), a list of
/// what is known later becomes an OR.
pub fn are_read(planner: Planner<'_>, is_excluded_later: bool) -> bool {
    let (mut stays, mut is_apart) = (false, false);
    for condition in join_tree::parts(planner).into_iter().flat_map(|part| part.conditions().iter()) {
        match condition.cast::<BoolExpr>() {
            Some(_) if !planner.rechecks_rows() && gathered::is_whole(condition) => stays = true,
            Some(combination) => is_apart |= combination.args().iter().any(compares_times),
            None => match Listed::read(planner, condition) {
                Some(list) if planner.rechecks_rows() && !list.is_long() => is_apart = true,
                Some(list) if is_excluded_later && list.is_known_later() => is_apart = true,
                list => stays |= list.is_some(),
            },
        }
    }
    stays || !is_apart
}

/// Whether a condition compares a time for equality, or has one within that does.
fn compares_times(condition: Expr<'_>) -> bool {
    if let Some(combination) = condition.cast::<BoolExpr>() {
        return combination.args().iter().any(compares_times);
    }
    let list = || condition.cast::<ScalarArrayOpExpr>().map(|list| list.opno());
    condition.cast::<pg_sys::OpExpr>().map(|one| one.opno()).or_else(list).is_some_and(operators::is_equality)
}

/// Whether a condition is a list, or has one within.
pub fn has_any(condition: Expr<'_>) -> bool {
    match condition.cast::<BoolExpr>() {
        Some(combination) => combination.args().iter().any(has_any),
        None => condition.cast::<ScalarArrayOpExpr>().is_some(),
    }
}

/// The same for one condition, which is a copy; `None` where nothing in it becomes an OR.
pub fn spread_condition<'p>(
    planner: Planner<'p>,
    condition: Expr<'p>,
    table: u32,
    stays: &dyn Fn(Expr<'p>) -> bool,
) -> Option<Expr<'p>> {
    let before = condition.copy();
    let spread = Of::new(planner, table).spread_in_list(list(&[condition]), false, stays);
    let spread = spread.and_then(|spread| spread.get(0)).unwrap_or(condition);
    (!spread.says(before)).then_some(spread)
}

/// The alternatives of a list of times of a table's IDs.
pub fn of_table<'p>(planner: Planner<'p>, condition: Expr<'p>, table: u32) -> Option<Vec<Expr<'p>>> {
    alternatives(planner, condition, &|time| rising::time_of(planner, time, table).is_some())
}

/// The alternatives of a list of times, or of what is made of them, of which one at least is not NULL: each is a range of IDs of its own. The
/// condition is one of the query, or of a member of a table. `is_time` says what is a time.
pub fn alternatives<'p>(
    planner: Planner<'p>,
    condition: Expr<'p>,
    is_time: &dyn Fn(Expr<'p>) -> bool,
) -> Option<Vec<Expr<'p>>> {
    let comparison = condition.cast::<ScalarArrayOpExpr>()?;
    let (compared, values) = (comparison.args().get(0)?, comparison.args().get(1)?);
    if !operators::is_equality(comparison.opno()) || !comparison.is_any() || compared.is_volatile() {
        return None;
    }
    let made = || rising::derived_of(planner, compared).is_some_and(|(_, time)| is_time(time.call));
    let values = if comparison.opno().to_u32() == EQUAL_TIMES && is_time(compared) {
        elements_of(planner, values)?
    } else if made() {
        match values.cast::<pg_sys::ArrayExpr>() {
            Some(_) => elements_of(planner, values)?,
            None => values.constants()?,
        }
    } else {
        return None;
    };
    let is_short = !values.is_empty() && values.len() <= LONGEST;
    is_short.then(|| values.into_iter().map(|value| comparison.with_element(compared.copy(), value)).collect())
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
