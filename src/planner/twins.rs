//! An index on an ID is one on its time, too: of a btree, `(id, n)` is in the order `(snowflake_timestamp(id), id, n)`. The planner is told
//! so by a second description of the index, its *twin*, which has the time as one more column before the ID. Which conditions and
//! joins it serves, and in which order it is read, PostgreSQL finds out by itself, as it does for every index. So the conditions of
//! the query stay as they are, and what else serves them competes by its cost: an index on the time, partitions, a hash join.
//!
//! No path ever leaves here over a twin. PostgreSQL asks an index what a path over it costs as soon as the path is made, and a twin's answer
//! is to make it a path over the index itself: what was matched with the time becomes bounds of the ID, as a support function of
//! PostgreSQL derives them. See [`cost`].

use super::clauses::{self, Resolved, TimeColumn};
use super::functions::IdTime;
use super::nodes::{copy, elements, list, without_labels};
use super::operators::{Accepts, DATETIME_OPS};
use super::rising::Asked;
use super::times::Statistics;
use super::versions::declared;
use super::{keys, operators, predicates, times, versions};
use crate::errors::Error;
use pg_sys::{Cost, IndexOptInfo, IndexPath, Node, PlannerInfo, RelOptInfo, Selectivity};
use pgrx::prelude::*;

/// A description of an index, for the planner.
#[repr(C)]
pub struct Twin {
    /// What the planner sees.
    description: IndexOptInfo,
    /// The index.
    pub index: *mut IndexOptInfo,
    /// The column that is the time.
    pub column: TimeColumn,
    /// Whether the table has an index on the time itself.
    has_rival: bool,
    /// The statistics of the time, once they were asked for.
    pub statistics: Option<Statistics>,
    /// The correlation of the index with the table, once it was asked for.
    correlation: Option<f64>,
}

impl Twin {
    /// The twin that an index is, if it is one, or a copy that another extension has made of its description.
    ///
    /// # Safety
    /// An index as the planner has it.
    pub unsafe fn of<'a>(index: *mut IndexOptInfo) -> Option<&'a mut Self> {
        // SAFETY: as above. What asks for its cost here was made here, or is a copy of that.
        unsafe { keys::owner(index, declared(cost)).map(|twin: *mut Self| &mut *twin) }
    }
}

/// Adds the twins of a table's indexes.
///
/// # Safety
/// The planner's state, a table of it whose indexes are known, and what the query says of it.
pub unsafe fn add(root: *mut PlannerInfo, table: *mut RelOptInfo, asked: &Asked) {
    // SAFETY: as above.
    unsafe {
        let other_nulls = !asked.sorted.is_empty() && wants_other_nulls(root);
        let is_sorted =
            |time: &IdTime| asked.sorted.iter().any(|it| pg_sys::equal(it.expression.cast(), time.call.cast()));
        let compared = asked.compared.iter().filter(|time| !is_sorted(time)).map(|time| (*time, time.call));
        let wanted: Vec<(IdTime, *mut Node)> =
            asked.sorted.iter().map(|rising| (rising.time, rising.expression)).chain(compared).collect();
        let mut twins: Vec<*mut Twin> = Vec::new();
        for index in elements::<IndexOptInfo>((*table).indexlist).filter(|&index| can_have_twin(index)) {
            for &(time, expression) in &wanted {
                let id = without_labels(time.id);
                let Some(at) = column_of(index, id) else { continue };
                let has_rival = has_index_on(table, &time);
                twins.push(twin(index, at, time, expression, Other { has_rival, nulls: false }));
                // Without NULLs, their place in the order does not matter.
                if other_nulls && versions::is_not_null(root, table, id) {
                    twins.push(twin(index, at, time, expression, Other { has_rival, nulls: true }));
                }
            }
        }
        if !twins.is_empty() {
            wanted.iter().for_each(|(time, _)| time.keep_in_plan(root));
        }
        for twin in twins {
            (*table).indexlist = pg_sys::lappend((*table).indexlist, twin.cast());
        }
    }
}

/// Whether a table has an index that has a twin.
///
/// # Safety
/// A table of the planner.
pub unsafe fn has_any(table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe { elements::<IndexOptInfo>((*table).indexlist).any(|index| Twin::of(index).is_some()) }
}

/// # Safety
/// An index as the planner has it.
unsafe fn can_have_twin(index: *mut IndexOptInfo) -> bool {
    let most = pg_sys::INDEX_MAX_KEYS as i32;
    // SAFETY: as above.
    unsafe {
        let is_ordered = (*index).relam == pg_sys::BTREE_AM_OID && !(*index).sortopfamily.is_null();
        let has_ranges = (*index).relam == pg_sys::BRIN_AM_OID;
        (is_ordered || has_ranges)
            && Twin::of(index).is_none()
            && (*index).ncolumns < most
            && (*index).nkeycolumns < most
    }
}

/// Which key column of an index is this ID.
///
/// # Safety
/// An index as the planner has it, and an expression of its table.
unsafe fn column_of(index: *mut IndexOptInfo, id: *mut Node) -> Option<usize> {
    // SAFETY: as above; the arrays have an element for each key column.
    unsafe {
        (0..(*index).nkeycolumns as usize).find(|&at| {
            operators::of_times_like((*(*index).opfamily.add(at)).to_u32()).is_some()
                && (*(*index).opcintype.add(at)) == pg_sys::INT8OID
                && pg_sys::match_index_to_operand(id, at as i32, index)
        })
    }
}

/// Whether an order of the query has NULLs where an index has them not, unless it says so.
///
/// # Safety
/// The planner's state.
unsafe fn wants_other_nulls(root: *mut PlannerInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        elements::<pg_sys::SortGroupClause>((*(*root).parse).sortClause).any(|order| {
            match operators::of_times((*order).sortop.to_u32()) {
                Some((Accepts::Less, ..)) => (*order).nulls_first,
                Some((Accepts::Greater, ..)) => !(*order).nulls_first,
                _ => false,
            }
        })
    }
}

/// Whether a table has an index on a time itself.
///
/// # Safety
/// A table of the planner, and a time of it.
unsafe fn has_index_on(table: *mut RelOptInfo, time: &IdTime) -> bool {
    // SAFETY: as above.
    unsafe {
        elements::<IndexOptInfo>((*table).indexlist)
            .filter(|&index| Twin::of(index).is_none())
            .flat_map(|index| elements::<Node>((*index).indexprs))
            .any(|expression| pg_sys::equal(expression.cast(), time.call.cast()))
    }
}

/// What else there is.
struct Other {
    /// An index on the time itself.
    has_rival: bool,
    /// NULLs are on the other side than in the index.
    nulls: bool,
}

/// The twin of an index.
///
/// # Safety
/// An index as the planner has it, the column that is the ID, its time, and what rises with that.
unsafe fn twin(index: *mut IndexOptInfo, at: usize, time: IdTime, ordered_by: *mut Node, other: Other) -> *mut Twin {
    // SAFETY: as above. The arrays have an element for each column, or each key column. What PostgreSQL puts into a description of its own is
    // here, and nothing else.
    unsafe {
        let (columns, keys) = ((*index).ncolumns, (*index).nkeycolumns);
        let mut new: IndexOptInfo = std::ptr::read(index);
        new.ncolumns = columns + 1;
        new.nkeycolumns = keys + 1;
        // 0 stands for an expression.
        let own_keys = std::slice::from_raw_parts((*index).indexkeys, columns as usize);
        let keys_with_time = [&own_keys[..at], &[0], &own_keys[at..]].concat();
        new.canreturn = with((*index).canreturn, columns, at, false);
        new.opclassoptions = with((*index).opclassoptions, columns, at, std::ptr::null_mut());
        new.indexcollations = with((*index).indexcollations, keys, at, pg_sys::InvalidOid);
        let family = operators::of_times_like((*(*index).opfamily.add(at)).to_u32()).unwrap_or(DATETIME_OPS);
        new.opfamily = with((*index).opfamily, keys, at, family.into());
        new.opcintype = with((*index).opcintype, keys, at, pg_sys::TIMESTAMPTZOID);
        new.sortopfamily = with((*index).sortopfamily, keys, at, DATETIME_OPS.into());
        // Only what is in an order has these.
        let of_id = |array: *mut bool| !array.is_null() && *array.add(at);
        new.reverse_sort = with((*index).reverse_sort, keys, at, of_id((*index).reverse_sort));
        new.nulls_first = with((*index).nulls_first, keys, at, of_id((*index).nulls_first) != other.nulls);
        // Conditions are matched with these.
        let before = (0..at).filter(|&at| *(*index).indexkeys.add(at) == 0).count();
        let mut expressions: Vec<*mut Node> = elements((*index).indexprs).collect();
        expressions.insert(before, copy(time.call));
        new.indexprs = list(&expressions);
        if !(*index).indpred.is_null() {
            new.indpred = predicates::with_times((*index).indpred, &time);
        }
        // The rows are ordered by these: the time, or a length of it.
        let mut entries: Vec<*mut pg_sys::TargetEntry> = elements((*index).indextlist).collect();
        entries.insert(at, pg_sys::makeTargetEntry(copy(ordered_by).cast(), 0, std::ptr::null_mut(), false));
        for (at, entry) in entries.iter_mut().enumerate() {
            *entry = pg_sys::flatCopyTargetEntry(*entry);
            (**entry).resno = at as i16 + 1;
        }
        new.indextlist = list(&entries);
        // Several IDs may have the same time.
        new.unique = false;
        // It is not there: nobody can read the lowest and the highest time from it.
        new.hypothetical = true;
        // Several times are several ranges of IDs.
        new.amsearcharray = false;
        new.amcostestimate = Some(declared(cost));
        let families = new.opfamily;
        let twin = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<Twin>();
        new.indexkeys = keys::of(twin, &keys_with_time);
        twin.write(Twin {
            description: new,
            index,
            column: TimeColumn { at, time, families, resolved: std::ptr::null_mut() },
            has_rival: other.has_rival,
            statistics: None,
            correlation: None,
        });
        twin
    }
}

/// A copy of an array with one more element at this place.
///
/// # Safety
/// NULL, or an array of this length.
unsafe fn with<T: Copy>(array: *mut T, length: i32, at: usize, element: T) -> *mut T {
    if array.is_null() {
        return array;
    }
    let length = length as usize;
    // SAFETY: as above; the new array has one element more.
    unsafe {
        let new: *mut T = pg_sys::palloc(size_of::<T>() * (length + 1)).cast();
        new.copy_from_nonoverlapping(array, at);
        new.add(at).write(element);
        new.add(at + 1).copy_from_nonoverlapping(array.add(at), length - at);
        new
    }
}

/// Whether rows that are read by a path, one that is not for each row of a join, may be dropped.
///
/// # Safety
/// A path over an index.
unsafe fn has_filter(path: *mut IndexPath) -> bool {
    // SAFETY: as above.
    unsafe {
        let length = |list: *mut pg_sys::List| elements::<Node>(list).len();
        length((*(*path).indexinfo).indrestrictinfo) > length((*path).indexclauses)
    }
}

/// An order is mostly wanted for its first rows. PostgreSQL takes it that those which a condition accepts are spread evenly, and will be found soon.
/// Where somebody has made an index on the time, as for `WHERE tenant = $1 ORDER BY created_at LIMIT 1`, that is what it is for; so
/// an order by the ID must cost much less to be preferred. What is read for each row of a join has no order that counts.
const DOUBT: f64 = 4.0;

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
    // SAFETY: as PostgreSQL calls it, for a path over what has this function.
    unsafe {
        let Some(twin) = Twin::of((*path).indexinfo) else { Error::PlannedByOthers.raise() };
        let Resolved { clauses, is_as_described } = clauses::of_index(root, &mut twin.column, (*path).indexclauses);
        // Of other indexes than btrees, PostgreSQL asks for statistics in a way that cannot be told from another.
        let is_as_described = is_as_described && !twin.description.sortopfamily.is_null();
        let Some(declared) = (*twin.index).amcostestimate else { Error::PlannedByOthers.raise() };
        let estimate = versions::estimate(declared);
        let estimate = |path| {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                estimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
            });
        };
        if is_as_described {
            estimate(path);
            if twin.column.at == 0 {
                // PostgreSQL looks for it among the statistics of the index, which has none of the time.
                let known =
                    twin.correlation.get_or_insert_with(|| times::correlation(root, twin.index, &twin.column.time));
                correlation.write(*known);
            }
        }
        (*path).indexinfo = twin.index;
        (*path).indexclauses = clauses;
        if !is_as_described {
            estimate(path);
        }
        if (*path).path.pathkeys.is_null() {
            keep_order(root, path);
        } else if twin.has_rival && (*path).path.param_info.is_null() && has_filter(path) {
            startup.write(*startup * DOUBT);
            total.write(*total * DOUBT);
        }
    }
}

/// Says in which order of the query a path reads its index, where the twin says none: `WHERE created_at > $1 ORDER BY id LIMIT 10`.
///
/// # Safety
/// The planner's state, and a path over an index of it that is being made.
unsafe fn keep_order(root: *mut PlannerInfo, path: *mut IndexPath) {
    use pg_sys::ScanDirection::{BackwardScanDirection, ForwardScanDirection};
    // SAFETY: as above.
    unsafe {
        let (index, table) = ((*path).indexinfo, (*path).path.parent);
        if (*index).sortopfamily.is_null() || !pg_sys::has_useful_pathkeys(root, table) {
            return;
        }
        let orders = [ForwardScanDirection, BackwardScanDirection].map(|direction| {
            let keys = pg_sys::build_index_pathkeys(root, index, direction);
            let keys = pg_sys::truncate_useless_pathkeys(root, table, keys);
            let mut wanted = 0;
            pg_sys::pathkeys_count_contained_in((*root).query_pathkeys, keys, &mut wanted);
            (wanted, direction, keys)
        });
        let [forward, backward] = orders;
        // What the query sorts by counts for more than what a join could use.
        let (_, direction, keys) = if backward.0 > forward.0 { backward } else { forward };
        if !keys.is_null() {
            (*path).indexscandir = direction;
            (*path).path.pathkeys = keys;
        }
    }
}
