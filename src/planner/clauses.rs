//! What the planner has matched with a twin of an index, as conditions that the index itself can evaluate: what is compared with the time
//! becomes bounds of the ID.

use super::bounds;
use super::functions::IdTime;
use super::nodes::{cast, copy, elements, list};
use super::operators::{self, Accepts};
use super::{times, versions};
use pg_sys::{IndexClause, Node, PlannerInfo, RestrictInfo};
use pgrx::prelude::*;

/// The column of an index's twin that is a time.
pub struct TimeColumn {
    /// Its number; the next one is the ID, which in the index has this number.
    pub at: usize,
    /// The time.
    pub time: IdTime,
    /// The families of operators of the twin's key columns.
    pub families: *mut pg_sys::Oid,
    /// The conditions that became some of the index, by those of the twin: pairs of them.
    pub resolved: *mut pg_sys::List,
}

impl TimeColumn {
    /// The number that one of the twin's columns has in the index: one less, where it comes after the time. It must not be the time.
    const fn own(&self, column: usize) -> usize {
        if column > self.at { column - 1 } else { column }
    }

    /// # Safety
    /// The number of a key column.
    unsafe fn family(&self, column: usize) -> pg_sys::Oid {
        // SAFETY: as above.
        unsafe { *self.families.add(column) }
    }
}

/// The conditions of a path over an index.
pub struct Resolved {
    /// The conditions.
    pub clauses: *mut pg_sys::List,
    /// Whether the index reads what its twin would.
    pub is_as_described: bool,
}

/// The conditions of a path over a twin, as ones of its index.
///
/// # Safety
/// The planner's state, and the conditions of a path over the twin.
pub unsafe fn of_index(root: *mut PlannerInfo, twin: &mut TimeColumn, clauses: *mut pg_sys::List) -> Resolved {
    let (mut new, mut is_as_described) = (Vec::new(), true);
    // SAFETY: as above.
    unsafe {
        for (number, clause) in elements::<IndexClause>(clauses).enumerate() {
            let resolved = known(twin, number, clause).unwrap_or_else(|| {
                let resolved = resolve(root, twin, clause);
                let resolved = resolved.map_or(std::ptr::null_mut(), |resolved| resolved);
                twin.resolved = pg_sys::lappend(twin.resolved, clause.cast());
                twin.resolved = pg_sys::lappend(twin.resolved, resolved.cast());
                resolved
            });
            // The index may read more than the twin would.
            let is_of_id = (*clause).indexcol as usize == twin.at + 1;
            is_as_described &= !is_of_id && !resolved.is_null() && (*resolved).lossy == (*clause).lossy;
            if !resolved.is_null() {
                new.push(resolved);
            }
        }
        Resolved { clauses: list(&without_implied(&new)), is_as_described }
    }
}

/// The conditions of an index without what follows from others of them.
///
/// # Safety
/// Conditions of an index.
unsafe fn without_implied(clauses: &[*mut IndexClause]) -> Vec<*mut IndexClause> {
    // SAFETY: as above.
    unsafe {
        let restrictions = |clause: *mut IndexClause| elements::<RestrictInfo>((*clause).indexquals);
        let condition = |restriction: *mut RestrictInfo| (*restriction).clause.cast::<Node>();
        let all: Vec<*mut Node> = clauses.iter().flat_map(|&clause| restrictions(clause).map(condition)).collect();
        let needed = bounds::without_implied(&all, &all);
        if needed.len() == all.len() {
            return clauses.to_vec();
        }
        let mut needed = needed.into_iter().peekable();
        let mut is_needed = |one: &*mut RestrictInfo| needed.next_if_eq(&condition(*one)).is_some();
        let own = |&clause: &*mut IndexClause| {
            let own: Vec<*mut RestrictInfo> = restrictions(clause).filter(&mut is_needed).collect();
            if own.is_empty() || own.len() == restrictions(clause).len() {
                return clause;
            }
            let new = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<IndexClause>();
            new.copy_from_nonoverlapping(clause, 1);
            (*new).indexquals = list(&own);
            new
        };
        clauses.iter().map(own).collect()
    }
}

/// What a condition became before. It most probably has the same number as then, or is one of the last: the alternatives of an OR have paths of
/// their own, one after the other. More is not looked through, as there may be thousands.
///
/// # Safety
/// As [`of_index`]; pairs of conditions.
unsafe fn known(twin: &TimeColumn, number: usize, clause: *mut IndexClause) -> Option<*mut IndexClause> {
    const LAST: usize = 16;
    // SAFETY: as above.
    unsafe {
        let count = elements::<IndexClause>(twin.resolved).len() / 2;
        let element = |at: usize| (*(*twin.resolved).elements.add(at)).ptr_value.cast::<IndexClause>();
        let mut places = (number < count).then_some(number).into_iter().chain(count.saturating_sub(LAST)..count);
        let at = places.find(|at| element(2 * at) == clause)?;
        Some(element(2 * at + 1))
    }
}

/// A condition of a twin as one of its index; `None` where there is none. Then it is evaluated for each row that is read.
///
/// # Safety
/// As [`of_index`].
unsafe fn resolve(root: *mut PlannerInfo, twin: &TimeColumn, clause: *mut IndexClause) -> Option<*mut IndexClause> {
    // SAFETY: as above.
    unsafe {
        let column = (*clause).indexcol as usize;
        if column == twin.at {
            let Bounds { conditions, is_exact } = of_time(root, &twin.time, first_condition(clause)?)?;
            return Some(with_conditions(root, clause, twin.at, &conditions, !is_exact));
        }
        let length = if (*clause).indexcols.is_null() { 0 } else { (*(*clause).indexcols).length as usize };
        let columns: Vec<usize> =
            (0..length).map(|at| (*(*(*clause).indexcols).elements.add(at)).int_value as usize).collect();
        if let Some(place) = columns.iter().position(|&column| column == twin.at) {
            return row_until_time(root, twin, clause, &columns, place);
        }
        let new = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<IndexClause>();
        new.copy_from_nonoverlapping(clause, 1);
        (*new).indexcol = twin.own(column) as i16;
        (*new).indexcols = integers(columns.into_iter().map(|column| twin.own(column)));
        Some(new)
    }
}

/// Conditions of an ID that follow from one of its time.
struct Bounds {
    conditions: Vec<*mut Node>,
    /// Whether that one follows from them, too.
    is_exact: bool,
}

/// What follows for the ID from a condition that is matched with its time.
///
/// # Safety
/// The planner's state, a time, and a condition of it, which has the time on its left side.
unsafe fn of_time(root: *mut PlannerInfo, time: &IdTime, condition: *mut Node) -> Option<Bounds> {
    // SAFETY: as above; a comparison has two sides.
    unsafe {
        let compared = |accepts, other: *mut Node, other_type, is_exact| {
            let time = time.of(copy(time.id));
            let made = bounds::of_comparison(root, accepts, &time, copy(other), other_type)?;
            Some(Bounds { conditions: bounds::without_implied(&made, &made), is_exact })
        };
        if let Some(comparison) = cast::<pg_sys::OpExpr>(condition) {
            let (accepts, _, other_type) = operators::of_times(comparison.opno.to_u32())?;
            return compared(accepts, elements(comparison.args).nth(1)?, other_type, true);
        }
        if let Some(test) = cast::<pg_sys::NullTest>(condition) {
            let new = copy(std::ptr::from_mut(test).cast());
            (*new.cast::<pg_sys::NullTest>()).arg = copy(time.id).cast();
            return Some(Bounds { conditions: vec![new], is_exact: true });
        }
        if let Some(rows) = cast::<pg_sys::RowCompareExpr>(condition) {
            let (accepts, _, other_type) = operators::of_times(oids(rows.opnos).next()?.to_u32())?;
            return compared(accepts.or_equal(), elements(rows.rargs).next()?, other_type, false);
        }
        if let Some(comparison) = cast::<pg_sys::ScalarArrayOpExpr>(condition) {
            return of_times(root, time, comparison);
        }
        None
    }
}

/// What follows from a comparison with one of several times, which are constants: one range that has all of them.
///
/// # Safety
/// As [`of_time`].
unsafe fn of_times(root: *mut PlannerInfo, time: &IdTime, comparison: &pg_sys::ScalarArrayOpExpr) -> Option<Bounds> {
    // SAFETY: as above; an array of the type that the operator takes.
    unsafe {
        let (accepts, _, other_type) = operators::of_times(comparison.opno.to_u32())?;
        let array = cast::<pg_sys::Const>(elements(comparison.args).nth(1)?)?;
        if other_type != pg_sys::TIMESTAMPTZOID || array.constisnull {
            return None;
        }
        let times = pgrx::Array::<TimestampWithTimeZone>::from_datum(array.constvalue, false)?;
        let times = times.iter().flatten().map(TimestampWithTimeZone::into_inner);
        let (lowest, highest) = times.fold(None, |range, time| {
            let (lowest, highest) = range.unwrap_or((time, time));
            Some((lowest.min(time), highest.max(time)))
        })?;
        let mut conditions = Vec::new();
        let sides: &[(Accepts, i64)] = match accepts {
            Accepts::Less | Accepts::LessOrEqual => &[(accepts, highest)],
            Accepts::Equal => &[(Accepts::GreaterOrEqual, lowest), (Accepts::LessOrEqual, highest)],
            Accepts::GreaterOrEqual | Accepts::Greater => &[(accepts, lowest)],
        };
        for &(accepts, instant) in sides {
            let time = time.of(copy(time.id));
            let instant = times::constant(instant);
            conditions.extend(bounds::of_comparison(root, accepts, &time, instant, pg_sys::TIMESTAMPTZOID)?);
        }
        Some(Bounds { conditions: bounds::without_implied(&conditions, &conditions), is_exact: false })
    }
}

/// A comparison of rows that has the time in a later place, as `(tenant, created_at) > ($1, $2)`: that of the columns until there, with
/// the ID in place of its time. The comparison itself is evaluated, too, as it may compare more columns, and knows what is no ID.
///
/// # Safety
/// As [`resolve`]; the columns of the twin that are compared, the one at this place of which is the time.
unsafe fn row_until_time(
    root: *mut PlannerInfo,
    twin: &TimeColumn,
    clause: *mut IndexClause,
    columns: &[usize],
    place: usize,
) -> Option<*mut IndexClause> {
    // SAFETY: as above. A comparison of rows has lists of the same length.
    unsafe {
        let rows = cast::<pg_sys::RowCompareExpr>(first_condition(clause)?)?;
        let (accepts, _, other_type) = operators::of_times(oids(rows.opnos).nth(place)?.to_u32())?;
        let other: *mut Node = elements(rows.rargs).nth(place)?;
        let is_last = place + 1 == elements::<Node>(rows.largs).len();
        let (accepts, bound) = bounds::last_of_row(root, accepts, is_last, &twin.time, copy(other), other_type)?;
        let new = cast::<pg_sys::RowCompareExpr>(copy(std::ptr::from_mut(rows).cast()))?;
        versions::set_comparison(new, accepts);
        for (at, &column) in columns[..place].iter().enumerate() {
            let operator = &mut (*(*new.opnos).elements.add(at)).oid_value;
            *operator = operators::in_family(*operator, twin.family(column), accepts)?;
        }
        (*(*new.opnos).elements.add(place)).oid_value = operators::of_ids(accepts);
        (*(*new.opfamilies).elements.add(place)).oid_value = operators::INTEGER_OPS.into();
        (*(*new.largs).elements.add(place)).ptr_value = copy(twin.time.id).cast();
        (*(*new.rargs).elements.add(place)).ptr_value = bound.cast();
        let count = place as i32 + 1;
        for list in [&mut new.opnos, &mut new.opfamilies, &mut new.inputcollids, &mut new.largs, &mut new.rargs] {
            *list = pg_sys::list_truncate(*list, count);
        }
        let made = with_conditions(root, clause, twin.own(columns[0]), &[std::ptr::from_mut(new).cast()], true);
        (*made).indexcols = integers(columns[..=place].iter().map(|&column| twin.own(column)));
        Some(made)
    }
}

/// A condition of an index in place of one of its twin.
///
/// # Safety
/// The planner's state, a condition, the number of its column in the index, and what the index is to evaluate.
unsafe fn with_conditions(
    root: *mut PlannerInfo,
    clause: *mut IndexClause,
    column: usize,
    conditions: &[*mut Node],
    is_lossy: bool,
) -> *mut IndexClause {
    // SAFETY: as above.
    unsafe {
        let new = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<IndexClause>();
        new.copy_from_nonoverlapping(clause, 1);
        let conditions: Vec<_> = conditions.iter().map(|&one| versions::restriction(root, one)).collect();
        (*new).indexquals = list(&conditions);
        (*new).lossy |= is_lossy;
        (*new).indexcol = column as i16;
        (*new).indexcols = std::ptr::null_mut();
        new
    }
}

/// What PostgreSQL has made of a condition for the index: with the column on the left side. It makes one from each.
///
/// # Safety
/// A condition of an index.
unsafe fn first_condition(clause: *mut IndexClause) -> Option<*mut Node> {
    // SAFETY: as above.
    unsafe { elements::<RestrictInfo>((*clause).indexquals).next().map(|condition| (*condition).clause.cast()) }
}

/// The elements of a list of OIDs.
///
/// # Safety
/// NULL, or such a list.
unsafe fn oids(list: *mut pg_sys::List) -> impl Iterator<Item = pg_sys::Oid> {
    // SAFETY: as above.
    let length = if list.is_null() { 0 } else { unsafe { (*list).length as usize } };
    // SAFETY: as above.
    (0..length).map(move |at| unsafe { (*(*list).elements.add(at)).oid_value })
}

/// A list of integers.
fn integers(numbers: impl Iterator<Item = usize>) -> *mut pg_sys::List {
    // SAFETY: lappend_int() makes a new list of NIL.
    numbers.fold(std::ptr::null_mut(), |list, number| unsafe { pg_sys::lappend_int(list, number as i32) })
}
