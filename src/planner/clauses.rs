//! What the planner has matched with a twin of an index, as conditions that the index itself can evaluate: what is compared with the time
//! becomes bounds of the ID.

use super::derived::Derived;
use super::functions::IdTime;
use super::nodes::{At, Expr, List};
use super::operators::{self, Accepts};
use super::state::{Index, OfIndex, Planner, Restriction};
use super::{bounds, versions};
use pg_sys::{IndexClause, Oid, RestrictInfo};
use pgrx::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The column of an index's twin that is a time.
pub struct TimeColumn<'p> {
    /// Its number; the next one is the ID, which in the index has this number.
    pub at: usize,
    /// The time.
    pub time: IdTime<'p>,
    /// What is made of the time, where the column is that.
    pub derived: Option<Derived<'p>>,
    /// The conditions of the twin, with what became of them for the index.
    resolved: RefCell<Vec<(OfIndex<'p>, Option<OfIndex<'p>>)>>,
    /// What follows from conditions.
    followed: Followed<'p>,
}

/// What follows for an ID from conditions of its time, which are found by where they are in memory. The twins of a table's indexes share it.
#[derive(Clone, Default)]
pub struct Followed<'p>(Rc<RefCell<BTreeMap<usize, Option<Bounds<'p>>>>>);

impl<'p> TimeColumn<'p> {
    /// The column of this number.
    pub const fn new(at: usize, time: IdTime<'p>, derived: Option<Derived<'p>>, followed: Followed<'p>) -> Self {
        Self { at, time, derived, resolved: RefCell::new(Vec::new()), followed }
    }

    /// What the column is.
    pub fn expression(&self) -> Expr<'p> {
        self.derived.as_ref().map_or(self.time.call, |derived| derived.expression)
    }

    /// The number that one of the twin's columns has in the index: one less, where it comes after the time. It must not be the time.
    const fn own(&self, column: usize) -> usize {
        if column > self.at { column - 1 } else { column }
    }

    /// Whether days are read for what is equal to this, or to an element of it, which is estimated as one value.
    pub fn reads_days(&self, planner: Planner<'p>, other: Expr<'p>) -> bool {
        self.derived.as_ref().is_some_and(|derived| derived.joins_days(planner, other))
    }

    /// What follows for the ID from a condition of its time.
    fn followed_from(&self, planner: Planner<'p>, condition: Expr<'p>) -> Option<Bounds<'p>> {
        let at = condition.as_ptr().addr();
        if let Some(&known) = self.followed.0.borrow().get(&at) {
            return known;
        }
        let followed = match &self.derived {
            Some(derived) => of_derived(planner, derived, &self.time, condition),
            None => of_time(planner, &self.time, condition),
        };
        let equal = condition.cast::<pg_sys::OpExpr>().filter(|one| operators::is_equality(one.opno()));
        let other = equal.filter(|_| followed.is_some()).and_then(|equal| equal.args().get(1));
        let reads_days = other.is_some_and(|other| self.reads_days(planner, other));
        let bounds = followed.map(|(conditions, is_exact)| Bounds {
            conditions: conditions.into_iter().map(|one| versions::restriction(planner, one)).collect(),
            is_exact,
            reads_days,
        });
        self.followed.0.borrow_mut().insert(at, bounds);
        bounds
    }

    /// What a condition became before. It most probably has the same number as then, or is one of the last: the alternatives of an OR have paths of
    /// their own, one after the other. More is not looked through, as there may be thousands.
    fn known(&self, number: usize, clause: OfIndex<'p>) -> Option<Option<OfIndex<'p>>> {
        const LAST: usize = 16;
        let all = self.resolved.borrow();
        let same = all.get(number).filter(|(one, _)| *one == clause);
        let mut last = all[all.len().saturating_sub(LAST)..].iter();
        same.or_else(|| last.find(|(one, _)| *one == clause)).map(|&(_, resolved)| resolved)
    }
}

/// The conditions of a path over an index.
pub struct Resolved<'p> {
    /// The conditions.
    pub clauses: List<'p, IndexClause>,
    /// Whether the index reads what its twin would.
    pub is_as_described: bool,
    /// What it costs, for each row that is read, to evaluate those that the twin alone would have been enough for.
    pub also_of_row: f64,
}

/// The conditions of a path over a twin, as ones of its index.
pub fn of_index<'p>(
    planner: Planner<'p>,
    index: Index<'p>,
    twin: &TimeColumn<'p>,
    clauses: impl Iterator<Item = OfIndex<'p>>,
) -> Resolved<'p> {
    let (mut new, mut is_as_described, mut also_of_row) = (Vec::new(), true, 0.0);
    for (number, clause) in clauses.enumerate() {
        let resolved = twin.known(number, clause).unwrap_or_else(|| {
            let resolved = resolve(planner, index, twin, clause);
            twin.resolved.borrow_mut().push((clause, resolved));
            resolved
        });
        // The index may read more than the twin would.
        let is_of_id = clause.column() as usize == twin.at + 1;
        // What is made of a time is compared with one value, or read for a range of all.
        let is_one = |condition: Expr<'p>| condition.cast::<pg_sys::OpExpr>().is_some();
        let is_range = twin.derived.is_some()
            && clause.column() as usize == twin.at
            && first_condition(clause).is_some_and(|one| {
                is_one(one) && !twin.followed_from(planner, one).is_some_and(|bounds| bounds.reads_days)
            });
        is_as_described &=
            !is_of_id && resolved.is_some_and(|resolved| is_range || resolved.is_lossy() == clause.is_lossy());
        if !clause.is_lossy() && resolved.is_none_or(OfIndex::is_lossy) && is_of_table(index, clause) {
            // An alternative of an OR is read by bitmaps, and priced there. What is not known yet is 0.
            also_of_row += clause.restriction().cost_of_row();
        }
        new.extend(resolved);
    }
    Resolved { clauses: without_implied(&new).into_iter().collect(), is_as_described, also_of_row }
}

/// Whether a condition is one of the table, and not an alternative of an OR.
pub fn is_of_table<'p>(index: Index<'p>, clause: OfIndex<'p>) -> bool {
    index.restrictions().iter().any(|one| one == clause.restriction())
}

/// The conditions of an index without what follows from others of them.
fn without_implied<'p>(clauses: &[OfIndex<'p>]) -> Vec<OfIndex<'p>> {
    if clauses.iter().map(|clause| clause.quals().len()).sum::<usize>() < 2 {
        return clauses.to_vec();
    }
    let all: Vec<Expr> = clauses.iter().flat_map(|clause| clause.quals().iter().map(At::clause)).collect();
    let needed = bounds::without_implied(&all, &all);
    if needed.len() == all.len() {
        return clauses.to_vec();
    }
    let mut needed = needed.into_iter().peekable();
    let mut is_needed = |one: &Restriction<'p>| needed.next_if_eq(&one.clause()).is_some();
    let own = |&clause: &OfIndex<'p>| {
        let own: Vec<Restriction> = clause.quals().iter().filter(&mut is_needed).collect();
        if own.is_empty() || own.len() == clause.quals().len() {
            return clause;
        }
        let new = clause.duplicate();
        new.set_quals(own.into_iter().collect());
        new
    };
    clauses.iter().map(own).collect()
}

/// A condition of a twin as one of its index; `None` where there is none. Then it is evaluated for each row that is read.
pub fn resolve<'p>(
    planner: Planner<'p>,
    index: Index<'p>,
    twin: &TimeColumn<'p>,
    clause: OfIndex<'p>,
) -> Option<OfIndex<'p>> {
    let column = clause.column() as usize;
    if column == twin.at {
        let Bounds { conditions, is_exact, .. } = twin.followed_from(planner, first_condition(clause)?)?;
        let new = clause.of_columns(index, twin.at, std::iter::empty())?;
        set_conditions(new, conditions, !is_exact);
        return Some(new);
    }
    let columns: Vec<usize> = clause.columns().iter().map(|column| column as usize).collect();
    if let Some(place) = columns.iter().position(|&column| column == twin.at) {
        if twin.derived.is_some() {
            return None;
        }
        return row_until_time(planner, index, twin, clause, &columns, place);
    }
    clause.of_columns(index, twin.own(column), columns.into_iter().map(|column| twin.own(column)))
}

/// Conditions of an ID that follow from one of its time.
#[derive(Clone, Copy)]
struct Bounds<'p> {
    conditions: List<'p, RestrictInfo>,
    /// Whether that one follows from them, too.
    is_exact: bool,
    /// Whether they take in days where that one is an equality.
    reads_days: bool,
}

/// What follows for the ID from a condition that is matched with its time, which it has on its left side; and whether that one follows
/// from it, too.
fn of_time<'p>(planner: Planner<'p>, time: &IdTime<'p>, condition: Expr<'p>) -> Option<(Vec<Expr<'p>>, bool)> {
    let compared = |accepts, other: Expr<'p>, other_type, is_exact| {
        let time = time.of(time.id.copy());
        let made = bounds::of_comparison(planner, accepts, &time, other.copy(), other_type)?;
        Some((bounds::without_implied(&made, &made), is_exact))
    };
    if let Some(comparison) = condition.cast::<pg_sys::OpExpr>() {
        let (accepts, _, other_type) = operators::of_times(comparison.opno().to_u32())?;
        return compared(accepts, comparison.args().get(1)?, other_type, true);
    }
    if let Some(test) = condition.cast::<pg_sys::NullTest>() {
        let new = test.duplicate();
        new.set_arg(time.id.copy());
        return Some((vec![new.node()], true));
    }
    if let Some(rows) = condition.cast::<pg_sys::RowCompareExpr>() {
        let (accepts, _, other_type) = operators::of_times(rows.opnos().get(0)?)?;
        return compared(accepts.or_equal(), rows.right().get(0)?, other_type, false);
    }
    of_times(planner, time, condition.cast::<pg_sys::ScalarArrayOpExpr>()?)
}

/// What follows for the ID from a condition that is matched with what is made of its time, which it has on its left side.
fn of_derived<'p>(
    planner: Planner<'p>,
    derived: &Derived<'p>,
    time: &IdTime<'p>,
    condition: Expr<'p>,
) -> Option<(Vec<Expr<'p>>, bool)> {
    let (operator, arguments) = if let Some(comparison) = condition.cast::<pg_sys::OpExpr>() {
        (comparison.opno(), comparison.args())
    } else {
        let list = condition.cast::<pg_sys::ScalarArrayOpExpr>().filter(|list| list.is_any())?;
        (list.opno(), list.args())
    };
    let accepts = operators::compares(operator.to_u32())?;
    let conditions = derived.bounds(planner, accepts, time, arguments.get(1)?)?;
    Some((conditions, false))
}

/// What follows from a comparison with one of several times, which are constants: one range that has all of them.
fn of_times<'p>(
    planner: Planner<'p>,
    time: &IdTime<'p>,
    comparison: At<'p, pg_sys::ScalarArrayOpExpr>,
) -> Option<(Vec<Expr<'p>>, bool)> {
    let (accepts, _, other_type) = operators::of_times(comparison.opno().to_u32())?;
    if other_type != pg_sys::TIMESTAMPTZOID {
        return None;
    }
    let times = comparison.args().get(1)?.instants()?;
    let (lowest, highest) = (*times.iter().min()?, *times.iter().max()?);
    let mut conditions = Vec::new();
    let sides: &[(Accepts, i64)] = match accepts {
        Accepts::Less | Accepts::LessOrEqual => &[(accepts, highest)],
        Accepts::Equal => &[(Accepts::GreaterOrEqual, lowest), (Accepts::LessOrEqual, highest)],
        Accepts::GreaterOrEqual | Accepts::Greater => &[(accepts, lowest)],
    };
    for &(accepts, instant) in sides {
        let (time, instant) = (time.of(time.id.copy()), planner.time(instant));
        conditions.extend(bounds::of_comparison(planner, accepts, &time, instant, pg_sys::TIMESTAMPTZOID)?);
    }
    Some((bounds::without_implied(&conditions, &conditions), false))
}

/// A comparison of rows that has the time in a later place, as `(tenant, created_at) > ($1, $2)`: that of the columns until there, with
/// the ID in place of its time. The comparison itself is evaluated, too, as it may compare more columns, and knows what is no ID.
///
/// These columns of the twin are compared; the one at this place is the time.
fn row_until_time<'p>(
    planner: Planner<'p>,
    index: Index<'p>,
    twin: &TimeColumn<'p>,
    clause: OfIndex<'p>,
    columns: &[usize],
    place: usize,
) -> Option<OfIndex<'p>> {
    let rows = first_condition(clause)?.cast::<pg_sys::RowCompareExpr>()?;
    let (accepts, _, other_type) = operators::of_times(rows.opnos().get(place)?)?;
    let other = rows.right().get(place)?;
    let is_last = place + 1 == rows.left().len();
    let (accepts, bound) = bounds::last_of_row(planner, accepts, is_last, &twin.time, other.copy(), other_type)?;
    let first = *columns.first()?;
    let before = columns.get(..place)?.iter().zip(rows.opnos().iter());
    let operators: Option<Vec<Oid>> = before
        .map(|(&column, operator)| operators::in_family(operator.into(), index.family(twin.own(column))?, accepts))
        .collect();
    let operators = operators?.into_iter().map(Oid::to_u32).chain([operators::of_ids(accepts).to_u32()]);
    let families = rows.families().iter().take(place).chain([operators::INTEGER_OPS]);
    let new = rows.duplicate();
    let sides = |own: List<'p, pg_sys::Node>, last| own.iter().take(place).chain([last]).map(Expr::copy).collect();
    let (left, right): (List<_>, List<_>) = (sides(rows.left(), twin.time.id), sides(rows.right(), bound));
    // SAFETY: a new node, whose lists have the same length. Each operator compares the types that the one before it did, as it is of the same family;
    // and the last one `bigint`, as both of its sides are.
    unsafe {
        versions::set_comparison(new, accepts);
        let new = new.as_ptr();
        (*new).opnos = rows.opnos().replaced(operators).as_ptr();
        (*new).opfamilies = rows.families().replaced(families).as_ptr();
        (*new).inputcollids = rows.collations().replaced(rows.collations().iter().take(place + 1)).as_ptr();
        (*new).largs = left.as_ptr();
        (*new).rargs = right.as_ptr();
    }
    let columns = columns[..=place].iter().map(|&column| twin.own(column));
    let made = clause.of_columns(index, twin.own(first), columns)?;
    set_conditions(made, [versions::restriction(planner, new.node())].into_iter().collect(), true);
    Some(made)
}

/// Says what an index is to evaluate for a condition.
fn set_conditions<'p>(clause: OfIndex<'p>, conditions: List<'p, RestrictInfo>, is_lossy: bool) {
    clause.set_quals(conditions);
    clause.set_lossy(clause.is_lossy() || is_lossy);
    // A scan by a bitmap does not evaluate what belongs to a class of equal expressions that the index has a condition of.
    if is_lossy && clause.restriction().class().is_some() {
        let restriction = clause.restriction().duplicate();
        restriction.set_class(None);
        clause.set_restriction(restriction);
    }
}

/// What PostgreSQL has made of a condition for the index: with the column on the left side. It makes one from each.
pub fn first_condition(clause: OfIndex<'_>) -> Option<Expr<'_>> {
    clause.quals().get(0).map(At::clause)
}
