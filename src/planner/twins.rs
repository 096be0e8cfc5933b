//! An index on an ID is one on its time, too: of a btree, `(id, n)` is in the order `(snowflake_timestamp(id), id, n)`. The planner is told
//! so by a second description of the index, its *twin*, which has the time as one more column before the ID. Which conditions and
//! joins it serves, and in which order it is read, PostgreSQL finds out by itself, as it does for every index. So the conditions of
//! the query stay as they are, and what else serves them competes by its cost: an index on the time, partitions, a hash join.
//!
//! No path ever leaves here over a twin. PostgreSQL asks an index what a path over it costs as soon as the path is made, and a twin's answer
//! is to make it a path over the index itself: what was matched with the time becomes bounds of the ID, as a support function of
//! PostgreSQL derives them. See [`cost`].

use super::clauses::{self, Followed, Resolved, TimeColumn};
use super::derived::{self, Derived};
use super::functions::{self, IdTime};
use super::lists::Listed;
use super::nodes::{At, Expr, HookCall, List, made};
use super::operators::{self, Accepts, DATETIME_OPS};
use super::outdone;
use super::predicates;
use super::remembered::{Remembered, RememberedBy, remember, remembered};
use super::rising::Asked;
use super::state::{Index, OfIndex, Planner, Rel, WITHOUT_STATISTICS};
use super::times::{self, Statistics};
use super::versions::{self, declared};
use crate::errors::Error;
use crate::postgres::foreign;
use pg_sys::{Cost, IndexClause, IndexPath, PlannerInfo, Selectivity, TargetEntry};
use pgrx::prelude::*;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// A description of an index, for the planner.
pub struct Twin<'p> {
    /// What the planner sees.
    description: Index<'p>,
    /// The index.
    pub index: Index<'p>,
    /// The column that is the time.
    pub column: TimeColumn<'p>,
    /// Whether the table has an index on the time itself.
    has_rival: bool,
    /// The statistics of the time, once they were asked for.
    pub statistics: Cell<Option<Statistics<'p>>>,
    /// The correlation of the index with the table, once it was asked for.
    correlation: Cell<Option<f64>>,
    /// The first path over it by the elements of an array, and that condition. It costs [`ENDLESS`] until [`elements`](super::elements) makes something of it.
    pub by_elements: Cell<Option<(At<'p, IndexPath>, OfIndex<'p>)>>,
    is_estimated_by_elements: Cell<bool>,
}

/// The twins, as they are remembered.
enum AllTwins {}

// SAFETY: the same type for each lifetime, which is that of what it has of the planner's.
unsafe impl Remembered for AllTwins {
    type Of<'p> = Twin<'p>;
}

impl<'p> Twin<'p> {
    /// The twin that an index is, if it is one, or a copy that another extension has made of its description.
    pub fn of(planner: Planner<'p>, index: Index<'p>) -> Option<Rc<Self>> {
        if !is_twin(index) {
            return None;
        }
        let by = RememberedBy::index(planner, index);
        remembered::<AllTwins>(planner, by, |twin| twin.description == index)
            .or_else(|| remembered::<AllTwins>(planner, by, |twin| twin.is_copied_by(index)))
    }

    /// Whether the index may be read by [the elements of an array](super::elements), one after the other. Not where rows are changed or locked:
    /// a row that another session has changed meanwhile would be checked against the first element only. And not where days are read for one of them.
    pub fn reads_elements(&self, planner: Planner<'p>, listed: Listed<'p>) -> bool {
        self.index.access_method() == pg_sys::BTREE_AM_OID
            && !planner.rechecks_rows()
            && functions::sorted().is_some()
            && !self.column.reads_days(planner, listed.array)
    }

    /// The condition of a path that compares the time with the elements of an array, one after the other.
    fn list_of(&self, planner: Planner<'p>, path: At<'p, IndexPath>) -> Option<OfIndex<'p>> {
        let list = |clause: OfIndex<'p>| {
            let is_of_time = clause.column() as usize == self.column.at;
            is_of_time.then(|| Listed::read(planner, clauses::first_condition(clause)?)).flatten()
        };
        let (clause, listed) = path.clauses().iter().find_map(|clause| Some((clause, list(clause)?)))?;
        (clauses::is_of_table(self.index, clause) && self.reads_elements(planner, listed)).then_some(clause)
    }

    /// Whether a path is one for all that the query wants of the table, and not for an alternative of an OR: that may say what others do not,
    /// and prove the condition of a partial index.
    fn serves_the_table(&self, path: At<'p, IndexPath>) -> bool {
        (self.description.predicate().is_empty() || self.description.is_proven())
            && path.clauses().iter().all(|clause| clauses::is_of_table(self.index, clause))
    }

    /// Estimates what a path by elements of an array costs, as if the index were one on the time.
    pub fn estimate_by_elements(&self, planner: Planner<'p>, path: At<'p, IndexPath>) {
        self.is_estimated_by_elements.set(true);
        planner.estimate(path);
        self.is_estimated_by_elements.set(false);
    }

    /// Whether a description says what this one does. Two twins that say the same are the same for the planner.
    fn is_copied_by(&self, index: Index<'p>) -> bool {
        let (own, at) = (self.description, self.column.at);
        let is_same = |(one, other): (At<'p, TargetEntry>, At<'p, TargetEntry>)| one.expr().says(other.expr());
        own.column_count() == index.column_count()
            && own.key_count() == index.key_count()
            && own.access_method() == index.access_method()
            && own.predicate().says(index.predicate())
            && own.is_falling(at) == index.is_falling(at)
            && own.has_nulls_first(at) == index.has_nulls_first(at)
            && own.expressions().says(index.expressions())
            && own.entries().len() == index.entries().len()
            && own.entries().iter().zip(index.entries().iter()).all(is_same)
    }
}

/// Whether an index is a twin, or a copy of one.
pub fn is_twin(index: Index<'_>) -> bool {
    versions::is_estimated_by(index, cost)
}

/// Adds the twins of a table's indexes, which are known, for what the query says of it. `are_lists_read` as [`lists::are_read`](super::lists::are_read).
pub fn add<'p>(planner: Planner<'p>, table: Rel<'p>, asked: &Asked<'p>, are_lists_read: &dyn Fn() -> bool) {
    let other_nulls = !asked.sorted.is_empty() && wants_other_nulls(planner);
    let is_sorted = |time: &IdTime| asked.sorted.iter().any(|it| it.expression.says(time.call));
    let compared = asked.compared.iter().filter(|time| !is_sorted(time)).map(|time| (*time, time.call, None));
    let sorted = asked.sorted.iter().map(|rising| (rising.time, rising.expression, None));
    let derived = asked.derived.iter().map(|(derived, time)| (*time, derived.expression, Some(derived.clone())));
    let wanted: Vec<Wanted> = sorted
        .chain(compared)
        .chain(derived)
        .map(|(time, ordered_by, derived)| {
            let (followed, matched) = (Followed::default(), OnceCell::new());
            Wanted { time, ordered_by, derived, followed, matched }
        })
        .collect();
    let (mut twins, reads_arrays) = (Vec::new(), OnceCell::new());
    for index in table.indexes().iter().filter(|&index| can_have_twin(index)) {
        for wanted in &wanted {
            let id = wanted.time.id.without_labels();
            let Some(at) = column_of(index, id) else { continue };
            let is_outdone = at > 0
                && table.kind() == pg_sys::RelOptKind::RELOPT_BASEREL
                && may_be_outdone(index)
                && table.indexes().iter().any(|other| outdoes(other, index, at, id))
                && outdone::serves_by_id_alone(planner, table, index, at);
            if is_outdone {
                continue;
            }
            let has_rival = has_index_on(table, &wanted.time);
            let reads_arrays = *reads_arrays.get_or_init(|| !cfg!(since_pg18) || are_lists_read());
            twins.extend(twin(planner, index, at, wanted, Other { has_rival, nulls: false, reads_arrays }));
            // Without NULLs, their place in the order does not matter.
            if other_nulls && wanted.derived.is_none() && versions::is_not_null(planner, table, id) {
                twins.extend(twin(planner, index, at, wanted, Other { has_rival, nulls: true, reads_arrays }));
            }
        }
    }
    if twins.is_empty() {
        return;
    }
    wanted.iter().for_each(|wanted| wanted.time.keep_in_plan(planner));
    table.set_indexes(table.indexes().with_all(twins.iter().map(|twin| twin.description)));
    for twin in twins {
        remember::<AllTwins>(planner, RememberedBy::index(planner, twin.description), twin);
    }
}

/// Whether a table has an index that has a twin.
pub fn has_any(table: Rel<'_>) -> bool {
    table.indexes().iter().any(is_twin)
}

fn can_have_twin(index: Index<'_>) -> bool {
    let most = pg_sys::INDEX_MAX_KEYS as i32;
    let is_ordered = index.access_method() == pg_sys::BTREE_AM_OID && index.order().is_some();
    let has_ranges = index.access_method() == pg_sys::BRIN_AM_OID;
    (is_ordered || has_ranges) && !is_twin(index) && index.column_count() < most && index.key_count() < most
}

/// Which key column of an index is this ID, an expression of its table.
pub fn column_of<'p>(index: Index<'p>, id: Expr<'p>) -> Option<usize> {
    (0..index.key_count().unsigned_abs() as usize).find(|&at| {
        index.family(at).is_some_and(|family| derived::family(pg_sys::TIMESTAMPTZOID, family.to_u32()).is_some())
            && index.input_type(at) == Some(pg_sys::INT8OID)
            && is_column(index, at, id).unwrap_or_else(|| index.has(at, id))
    })
}

/// Whether a key column of an index is this one of its table, as PostgreSQL's `match_index_to_operand()` finds it; `None` where one of both is an
/// expression.
fn is_column<'p>(index: Index<'p>, at: usize, expression: Expr<'p>) -> Option<bool> {
    let (column, key) = (expression.cast::<pg_sys::Var>()?, index.key(at).filter(|&key| key != 0)?);
    let is_of_table = versions::table_of(column) == index.table().number() && !versions::is_made_null(column);
    Some(is_of_table && key == i32::from(column.attribute()))
}

/// Whether an index may have no twin where there is a better one. The columns of other indexes than btrees are in no order, and an index of some
/// rows may be much smaller.
fn may_be_outdone(index: Index<'_>) -> bool {
    index.access_method() == pg_sys::BTREE_AM_OID && index.predicate().is_empty() && !index.is_hypothetical()
}

/// Whether an index begins with this ID, which is another one's column at this place.
fn outdoes<'p>(index: Index<'p>, other: Index<'p>, at: usize, id: Expr<'p>) -> bool {
    can_have_twin(index)
        && may_be_outdone(index)
        && column_of(index, id) == Some(0)
        && index.family(0) == other.family(at)
}

/// Whether an order of the query has NULLs where an index has them not, unless it says so.
fn wants_other_nulls(planner: Planner<'_>) -> bool {
    planner.query().sorted_by().iter().any(|order| match operators::of_times(order.operator().to_u32()) {
        Some((Accepts::Less, ..)) => order.nulls_first(),
        Some((Accepts::Greater, ..)) => !order.nulls_first(),
        _ => false,
    })
}

/// Whether a table has an index on a time of it itself.
fn has_index_on<'p>(table: Rel<'p>, time: &IdTime<'p>) -> bool {
    let mut own = table.indexes().iter().filter(|&index| !is_twin(index)).flat_map(|index| index.expressions().iter());
    own.any(|expression| expression.says(time.call))
}

/// What a twin is wanted for.
struct Wanted<'p> {
    time: IdTime<'p>,
    /// What rises with the time.
    ordered_by: Expr<'p>,
    /// What is made of the time, and compared. It has no order.
    derived: Option<Derived<'p>>,
    /// What follows from conditions of it.
    followed: Followed<'p>,
    /// A copy of what is compared, for the descriptions.
    matched: OnceCell<Expr<'p>>,
}

/// What else there is.
struct Other {
    /// An index on the time itself.
    has_rival: bool,
    /// NULLs are on the other side than in the index.
    nulls: bool,
    /// The twin is read by a list where the index can be.
    reads_arrays: bool,
}

/// A copy, at this place in memory, of an array of so many elements, with one more; NULL stays NULL. Of [`twin`], which says why it is sound.
macro_rules! with {
    ($place:expr, $array:expr, $length:expr, $at:expr, $element:expr) => {{
        let (array, length, at, element) = ($array, $length as usize, $at, $element);
        if array.is_null() {
            array
        } else {
            let new = $place.cast();
            array.copy_to_nonoverlapping(new, at);
            new.add(at).write(element);
            array.add(at).copy_to_nonoverlapping(new.add(at + 1), length - at);
            new
        }
    }};
}

/// The twin of an index, by the column that is the ID, and what it is wanted for; `None` where the index has no operators for that.
fn twin<'p>(planner: Planner<'p>, index: Index<'p>, at: usize, wanted: &Wanted<'p>, other: Other) -> Option<Twin<'p>> {
    let Wanted { time, ordered_by, derived, followed, matched } = wanted;
    let (time, derived) = (*time, derived.clone());
    let of_type = derived.as_ref().map_or(pg_sys::TIMESTAMPTZOID, |derived| derived.expression.type_of());
    let expression = derived.as_ref().map_or(time.call, |derived| derived.expression);
    let family = derived::family(of_type, index.family(at)?.to_u32())?;
    // Only what is in an order has these.
    let (is_falling, nulls_first) = (index.is_falling(at) == Some(true), index.has_nulls_first(at) == Some(true));
    let (columns, keys) = (index.column_count(), index.key_count());
    let description = index.duplicate();
    // SAFETY: a new description. The arrays have an element for each column, or each key column, and then for the time, too. What PostgreSQL puts into a
    // description of its own is here, and nothing else.
    unsafe {
        let (by, index, new) = (index, index.as_ptr(), description.as_ptr());
        if !by.expressions().is_empty() {
            (*new).indexoid = WITHOUT_STATISTICS;
        }
        (*new).ncolumns = columns + 1;
        (*new).nkeycolumns = keys + 1;
        // For nine arrays, whose elements have eight bytes at most.
        let length = columns as usize + 1;
        let room = pg_sys::palloc(9 * size_of::<u64>() * length).cast::<u64>();
        let place = |number: usize| room.add(number * length);
        // 0 stands for an expression.
        (*new).indexkeys = with!(place(0), (*index).indexkeys, columns, at, 0);
        (*new).canreturn = with!(place(1), (*index).canreturn, columns, at, false);
        (*new).opclassoptions = with!(place(2), (*index).opclassoptions, columns, at, std::ptr::null_mut());
        (*new).indexcollations = with!(place(3), (*index).indexcollations, keys, at, pg_sys::InvalidOid);
        (*new).opfamily = with!(place(4), (*index).opfamily, keys, at, family.into());
        (*new).opcintype = with!(place(5), (*index).opcintype, keys, at, of_type);
        (*new).sortopfamily = with!(place(6), (*index).sortopfamily, keys, at, DATETIME_OPS.into());
        (*new).reverse_sort = with!(place(7), (*index).reverse_sort, keys, at, is_falling);
        (*new).nulls_first = with!(place(8), (*index).nulls_first, keys, at, nulls_first != other.nulls);
        if derived.is_some() {
            // What is made of a time need not rise with it. The estimate of a btree's cost still reads in which direction its first column is.
            (*new).sortopfamily = std::ptr::null_mut();
        }
        // Conditions are matched with these.
        let before = (0..at).filter(|&at| *(*index).indexkeys.add(at) == 0).count();
        let (own, matched) = (by.expressions(), *matched.get_or_init(|| expression.copy()));
        let time_too = own.iter().take(before).chain([matched]).chain(own.iter().skip(before));
        (*new).indexprs = time_too.collect::<List<_>>().as_ptr();
        (*new).indpred = predicates::with_times(planner, by.predicate(), &time).as_ptr();
        // The rows are ordered by these: the time, or a length of it.
        let rising = if *ordered_by == expression { matched } else { ordered_by.copy() };
        let entry = pg_sys::makeTargetEntry(rising.as_ptr().cast(), 0, std::ptr::null_mut(), false);
        let own = by.entries();
        let time_too = own.iter().take(at).chain([made(entry)]).chain(own.iter().skip(at));
        // Their numbers are not looked at.
        (*new).indextlist = time_too.collect::<List<_>>().as_ptr();
        // Several IDs may have the same time.
        (*new).unique = false;
        // It is not there: nobody can read the lowest and the highest time from it.
        (*new).hypothetical = true;
        // BRIN has none.
        (*new).amsearcharray = (*index).amsearcharray && other.reads_arrays;
        (*new).amcostestimate = Some(declared(cost));
    }
    Some(Twin {
        description,
        index,
        column: TimeColumn::new(at, time, derived, followed.clone()),
        has_rival: other.has_rival,
        statistics: Cell::new(None),
        correlation: Cell::new(None),
        by_elements: Cell::new(None),
        is_estimated_by_elements: Cell::new(false),
    })
}

/// Whether rows that are read by these conditions of an index, not for each row of a join, may be dropped.
fn may_drop_rows<'p>(index: Index<'p>, clauses: List<'p, IndexClause>) -> bool {
    index.restrictions().len() > clauses.len()
}

/// An order is mostly wanted for its first rows. PostgreSQL takes it that those which a condition accepts are spread evenly, and will be found soon.
/// Where somebody has made an index on the time, as for `WHERE tenant = $1 ORDER BY created_at LIMIT 1`, that is what it is for; so
/// an order by the ID must cost much less to be preferred. What is read for each row of a join has no order that counts.
const DOUBT: f64 = 4.0;

/// What a path costs that nobody is to choose.
const ENDLESS: Cost = 1e11;

/// What a path over a twin costs, which is made one over the index itself.
///
/// What the time is compared with may be known only when the query runs. PostgreSQL's estimate for that is better by the statistics of
/// the time, where it knows how many rows have the same one, than by those of the ID. So the cost is estimated by the twin. But
/// where something else than that is read, it is estimated by what is.
#[pg_guard]
#[allow(clippy::too_many_arguments, reason = "as PostgreSQL calls it")]
unsafe extern "C-unwind" fn cost(
    root: *mut PlannerInfo,
    path: *mut IndexPath,
    loop_count: f64,
    startup: *mut Cost,
    total: *mut Cost,
    selectivity: *mut Selectivity,
    correlation: *mut f64,
    pages: *mut f64,
) {
    let call = HookCall::begin();
    // SAFETY: PostgreSQL calls this for its state, and a path that it is making.
    let Some((planner, path)) = (unsafe { call.lend(root).zip(call.lend(path)) }) else {
        Error::PlannedByOthers.raise();
    };
    let Some(twin) = Twin::of(planner, path.index()) else { Error::PlannedByOthers.raise() };
    let (by_elements, Resolved { clauses, is_as_described, also_of_row }) = planner.in_memory(|| {
        let by_elements = twin.list_of(planner, path);
        let all = path.clauses().iter().filter(|&clause| Some(clause) != by_elements);
        (by_elements, clauses::of_index(planner, twin.index, &twin.column, all))
    });
    let is_endless = match by_elements {
        Some(clause) if !twin.is_estimated_by_elements.get() => {
            if path.parameters().is_none() && twin.by_elements.get().is_none() && twin.serves_the_table(path) {
                twin.by_elements.set(Some((planner.in_memory(|| path.duplicate()), clause)));
            }
            true
        }
        _ => false,
    };
    // The elements say more than what the index reads too much for another condition.
    let is_as_described = is_as_described || twin.is_estimated_by_elements.get();
    // Of other indexes than btrees, PostgreSQL asks for statistics in a way that cannot be told from another.
    let is_as_described = is_as_described && twin.description.access_method() == pg_sys::BTREE_AM_OID;
    let Some(estimate) = versions::estimate_of(twin.index) else { Error::PlannedByOthers.raise() };
    let is_doubtful =
        !path.order().is_empty() && twin.has_rival && path.parameters().is_none() && may_drop_rows(twin.index, clauses);
    // PostgreSQL looks for it among the statistics of the index, which has none of the time.
    let look_up = || times::correlation(planner, twin.index, &twin.column.time, twin.statistics.get());
    let of_time =
        (is_as_described && !is_endless && twin.column.at == 0).then(|| times::once(&twin.correlation, look_up));
    if !is_as_described || is_endless {
        path.set_index(twin.index);
        path.set_clauses(clauses);
    }
    let (root, of_path) = (planner.as_ptr(), path.as_ptr());
    // SAFETY: the function that the index's own description has is called with the arguments of this one; the results are where it writes them.
    unsafe {
        if is_endless {
            startup.write(ENDLESS);
            total.write(ENDLESS);
            selectivity.write(1.0);
            correlation.write(0.0);
            pages.write(1.0);
            return;
        }
        foreign::call(|| estimate(root, of_path, loop_count, startup, total, selectivity, correlation, pages));
        if let Some(of_time) = of_time {
            correlation.write(of_time);
        }
        total.write(*total + also_of_row * *selectivity * path.table().row_count());
        if is_doubtful {
            startup.write(*startup * DOUBT);
            total.write(*total * DOUBT);
        }
    }
    path.set_index(twin.index);
    path.set_clauses(clauses);
    if path.order().is_empty() && may_order_by(planner, path.table(), twin.column.time.id) {
        keep_order(planner, path);
    }
}

/// Whether the query may have a use for an order by an expression of a table: it sorts, groups or joins by it. For the members of a
/// whole, it may, without a look.
fn may_order_by<'p>(planner: Planner<'p>, table: Rel<'p>, expression: Expr<'p>) -> bool {
    let is_it = |other: Expr<'p>| other.without_labels().says(expression.without_labels());
    let is_of = |class| versions::members(class).any(|member| is_it(member.expr()));
    table.kind() != pg_sys::RelOptKind::RELOPT_BASEREL || planner.classes().iter().any(is_of)
}

/// Whether a path is one scan of the index for each element of an array, whose rows come one after the other's: before 17, where that is about
/// another column than the first.
fn is_read_in_pieces(path: At<'_, IndexPath>) -> bool {
    let is_by_array = |clause: OfIndex<'_>| {
        clauses::first_condition(clause).is_some_and(|one| one.cast::<pg_sys::ScalarArrayOpExpr>().is_some())
    };
    path.clauses().iter().any(|clause| clause.column() > 0 && is_by_array(clause))
}

/// Says in which order of the query a path, which is being made, reads its index, where the twin says none:
/// `WHERE created_at > $1 ORDER BY id LIMIT 10`.
fn keep_order<'p>(planner: Planner<'p>, path: At<'p, IndexPath>) {
    let (index, table) = (path.index(), path.table());
    if index.order().is_none() || (!cfg!(since_pg17) && is_read_in_pieces(path)) {
        return;
    }
    let Some([forward, backward]) = planner.orders(index, table) else { return };
    // What the query sorts by counts for more than what a join could use.
    let (_, direction, keys) = if backward.0 > forward.0 { backward } else { forward };
    if !keys.is_empty() {
        path.set_direction(direction);
        path.set_order(keys);
    }
}
