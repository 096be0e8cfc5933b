//! An order by an ID's time is an order by the ID, so an index on the ID serves it: `ORDER BY created_at DESC LIMIT 10`,
//! `max(created_at)`, a merge join by time, a window over it.
//!
//! PostgreSQL makes the paths: it is asked once more for the index paths of the table, as if the query wanted an order by the ID.
//! Those in this order are offered as paths in the order by the time, too. IDs of the same time are in the order of the IDs.
//!
//! The same holds for `date_bin()` of the time, and for `date_trunc()` in UTC, as in `GROUP BY 1 ORDER BY 1 DESC LIMIT 7`. It does
//! not hold for `date_trunc()` in any other time zone: where clocks go back at midnight, a day comes twice.

use super::functions::IdTime;
use super::nodes::{cast, elements, list, numbers, text, without_labels};
use super::versions::{self, Direction};
use pgrx::pg_sys::{self, EquivalenceClass, IndexOptInfo, IndexPath, Node, Path, PathKey, PlannerInfo, RelOptInfo};

/// The family of operators that order `bigint`: `integer_ops` of btree, in PostgreSQL's `pg_opfamily.dat`.
const INTEGER_OPS: u32 = 1976;

/// The same for `timestamptz`: `datetime_ops`.
const DATETIME_OPS: u32 = 434;

/// An order by the time of a table's IDs that the query can use.
struct TimeOrder {
    /// The order by the time.
    by_time: *mut PathKey,
    /// The orders that the query wants after it.
    then: Vec<*mut PathKey>,
    /// The ID.
    id: *mut Node,
    /// Whether the query has a use of its own for the order by the ID.
    has_id_order: bool,
}

/// Whether a call of a function is among what a table can be ordered by. Calls nothing of PostgreSQL, and takes no memory.
///
/// # Safety
/// As [`add_paths`].
pub unsafe fn has_candidates(root: *mut PlannerInfo, table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        numbers((*table).eclass_indexes).any(|number| {
            let class: *mut EquivalenceClass = (*(*(*root).eq_classes).elements.add(number)).ptr_value.cast();
            versions::calls(class, table).next().is_some()
        })
    }
}

/// Whether PostgreSQL's own scans of a table are among its paths. Where an extension has replaced all of them, an index scan
/// would pass by what it is there for, such as a column store or a rule of access.
///
/// # Safety
/// As [`add_paths`].
pub unsafe fn has_plain_paths(table: *mut RelOptInfo) -> bool {
    use pg_sys::NodeTag::{T_BitmapHeapPath, T_IndexPath, T_Path};
    // SAFETY: as above; a path without fields of its own is a sequential scan, if that is its type of path.
    unsafe {
        elements::<Path>((*table).pathlist).any(|path| match (*path).type_ {
            T_Path => (*path).pathtype == pg_sys::NodeTag::T_SeqScan,
            T_IndexPath | T_BitmapHeapPath => true,
            _ => false,
        })
    }
}

/// Adds index paths of a table in the order of its IDs' time.
///
/// # Safety
/// The planner's state, and a table of it whose other paths are made.
pub unsafe fn add_paths(root: *mut PlannerInfo, table: *mut RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        for order in useful_orders(root, table) {
            let key = &*order.by_time;
            add_paths_in(root, table, &order, key.pk_nulls_first);
            // Without NULLs, their place in the order does not matter.
            if is_not_null(root, table, order.id) {
                add_paths_in(root, table, &order, !key.pk_nulls_first);
            }
        }
    }
}

/// # Safety
/// As [`add_paths`].
unsafe fn useful_orders(root: *mut PlannerInfo, table: *mut RelOptInfo) -> Vec<TimeOrder> {
    let mut orders = Vec::new();
    // SAFETY: as above.
    unsafe {
        for number in numbers((*table).eclass_indexes) {
            let class: *mut EquivalenceClass = (*(*(*root).eq_classes).elements.add(number)).ptr_value.cast();
            let Some(id) = id_of(class, table) else { continue };
            let has_id_order = !versions::class_of(root, id, INTEGER_OPS, table, false).is_null();
            let mut wanted = elements::<PathKey>((*root).query_pathkeys);
            match wanted.next() {
                // In an order of somebody's own, times may come in any order.
                Some(first) if (*first).pk_eclass == class && (*first).pk_opfamily != DATETIME_OPS.into() => {}
                Some(first) if (*first).pk_eclass == class => {
                    orders.push(TimeOrder { by_time: first, then: wanted.collect(), id, has_id_order });
                }
                // Equal to the time of another table: a merge join can use any order.
                _ if !pg_sys::bms_equal((*class).ec_relids, (*table).relids) => {
                    let by_time = versions::path_key(root, class, DATETIME_OPS, Direction::Ascending, false);
                    orders.push(TimeOrder { by_time, then: Vec::new(), id, has_id_order });
                }
                _ => {}
            }
        }
    }
    orders
}

/// The ID, a column of the table, whose time belongs to a class of equal expressions.
///
/// # Safety
/// As [`add_paths`].
unsafe fn id_of(class: *mut EquivalenceClass, table: *mut RelOptInfo) -> Option<*mut Node> {
    // SAFETY: as above.
    unsafe {
        if !(*class).ec_merged.is_null() || (*class).ec_has_volatile || (*class).ec_has_const {
            return None;
        }
        versions::members(class, table).find_map(|member| {
            let time = rising((*member).em_expr.cast())?;
            let is_column = cast::<pg_sys::Var>(without_labels(time.id)).is_some();
            // Without a layout on record, an error must come from the rows.
            (is_column && time.layout().is_some()).then_some(time.id)
        })
    }
}

/// The time in an expression that rises with it.
///
/// # Safety
/// An expression of the query.
unsafe fn rising(expression: *mut Node) -> Option<IdTime> {
    // SAFETY: as above.
    unsafe {
        let call = cast::<pg_sys::FuncExpr>(expression)?;
        let mut arguments = elements::<Node>(call.args);
        // OIDs as in PostgreSQL's pg_proc.dat.
        match call.funcid.to_u32() {
            // date_bin(interval, timestamptz, timestamptz)
            6178 => {
                let (stride, time, origin) = (arguments.next()?, arguments.next()?, arguments.next()?);
                let is_fixed = cast::<pg_sys::Const>(stride).is_some() && cast::<pg_sys::Const>(origin).is_some();
                if is_fixed { IdTime::read(time) } else { None }
            }
            // date_trunc(text, timestamptz, text)
            1284 => {
                let (unit, time, zone) = (arguments.next()?, arguments.next()?, arguments.next()?);
                let is_fixed = cast::<pg_sys::Const>(unit).is_some() && text(zone)? == "UTC";
                if is_fixed { IdTime::read(time) } else { None }
            }
            _ => IdTime::read(expression),
        }
    }
}

/// # Safety
/// As [`add_paths`].
unsafe fn add_paths_in(root: *mut PlannerInfo, table: *mut RelOptInfo, order: &TimeOrder, nulls_first: bool) {
    // SAFETY: as above.
    unsafe {
        let direction = versions::direction(order.by_time);
        let serving = indexes_in(table, order.id, direction, nulls_first);
        if serving.is_empty() {
            return;
        }
        // PostgreSQL makes no class for a partition, and asserts so; a class that is made for a while is not its own.
        let count = (*(*root).eq_classes).length;
        let class = match versions::class_of(root, order.id, INTEGER_OPS, table, false) {
            class if class.is_null() => temporary_class(root, order.id, table),
            class => class,
        };
        let by_id = versions::path_key(root, class, INTEGER_OPS, direction, nulls_first);
        // After the time, the query may want the ID itself.
        let then = match order.then.split_first() {
            Some((&second, rest)) if second == by_id => rest,
            _ => &order.then[..],
        };
        let id_first = [&[by_id], then].concat();
        // Up to 18, indexes are matched with what the query wants first; in 19, with its ORDER BY.
        let before = ((*root).query_pathkeys, (*root).sort_pathkeys, (*table).indexlist);
        (*root).query_pathkeys = list(&id_first);
        (*root).sort_pathkeys = (*root).query_pathkeys;
        (*table).indexlist = list(&serving);
        pg_sys::create_index_paths(root, table);
        ((*root).query_pathkeys, (*root).sort_pathkeys, (*table).indexlist) = before;
        if (*(*root).eq_classes).length > count {
            (*root).eq_classes = pg_sys::list_truncate((*root).eq_classes, count);
            (*table).eclass_indexes = pg_sys::bms_del_member((*table).eclass_indexes, count);
            (*root).canon_pathkeys = pg_sys::list_delete_ptr((*root).canon_pathkeys, by_id.cast());
        }

        // All are made before the first is added: that may free others.
        let new: Vec<_> = elements((*table).pathlist).filter_map(|path| by_time(path, order, by_id)).collect();
        new.into_iter().for_each(|path| pg_sys::add_path(table, path));
        let new: Vec<_> = elements((*table).partial_pathlist).filter_map(|path| by_time(path, order, by_id)).collect();
        new.into_iter().for_each(|path| pg_sys::add_partial_path(table, path));
    }
}

/// A class of the ID alone, which the caller takes back: the last of the query's.
///
/// # Safety
/// As [`add_paths`]; a column of the table.
unsafe fn temporary_class(root: *mut PlannerInfo, id: *mut Node, table: *mut RelOptInfo) -> *mut EquivalenceClass {
    // SAFETY: as above. The fields are those that get_eclass_for_sort_expr() and make_pathkey_from_sortinfo() look at.
    unsafe {
        let member =
            pgrx::PgBox::<pg_sys::EquivalenceMember>::alloc_node(pg_sys::NodeTag::T_EquivalenceMember).into_pg();
        (*member).em_expr = id.cast();
        (*member).em_relids = (*table).relids;
        (*member).em_datatype = pg_sys::INT8OID;
        let class = pgrx::PgBox::<EquivalenceClass>::alloc_node(pg_sys::NodeTag::T_EquivalenceClass).into_pg();
        (*class).ec_opfamilies = pg_sys::lappend_oid(std::ptr::null_mut(), INTEGER_OPS.into());
        (*class).ec_members = list(&[member]);
        (*class).ec_relids = (*table).relids;
        (*class).ec_max_security = 0;
        (*table).eclass_indexes = pg_sys::bms_add_member((*table).eclass_indexes, (*(*root).eq_classes).length);
        (*root).eq_classes = pg_sys::lappend((*root).eq_classes, class.cast());
        class
    }
}

/// The indexes of a table that have the ID in this order, read forwards or backwards, possibly after other columns. Paths of others would
/// be made in vain.
///
/// # Safety
/// As [`add_paths`]; a column of the table.
unsafe fn indexes_in(
    table: *mut RelOptInfo,
    id: *mut Node,
    direction: Direction,
    nulls_first: bool,
) -> Vec<*mut IndexOptInfo> {
    let is_descending = direction == Direction::Descending;
    // SAFETY: as above. The arrays have an element for each key column; those of the order are missing where an index has none.
    unsafe {
        let column = cast::<pg_sys::Var>(without_labels(id)).map_or(0, |column| i32::from(column.varattno));
        let serves = |&index: &*mut IndexOptInfo| {
            let is_ordered = !(*index).sortopfamily.is_null();
            is_ordered
                && (0..(*index).nkeycolumns as usize).any(|at| {
                    let is_backwards = *(*index).reverse_sort.add(at) != is_descending;
                    let has_nulls_there = *(*index).nulls_first.add(at) != is_backwards;
                    *(*index).indexkeys.add(at) == column && has_nulls_there == nulls_first
                })
        };
        elements::<IndexOptInfo>((*table).indexlist).filter(serves).collect()
    }
}

/// The path as one in the order by the time, where it is in the order by the ID. A new path where the query has a use for the order
/// by the ID; else the same path is changed, and `None` returned.
///
/// # Safety
/// As [`add_paths`]; a path of the table.
unsafe fn by_time(path: *mut Path, order: &TimeOrder, by_id: *mut PathKey) -> Option<*mut Path> {
    // SAFETY: as above. PostgreSQL copies paths in the same way.
    unsafe {
        let keys: Vec<*mut PathKey> = elements((*path).pathkeys).collect();
        let index_path = cast::<IndexPath>(path.cast())?;
        if keys.first() != Some(&by_id) {
            return None;
        }
        if !order.has_id_order {
            // The order by the ID was made up for this table. Its parent, which sorts what its other children have, does not know it.
            index_path.path.pathkeys = list(&[order.by_time]);
            return None;
        }
        let new = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<IndexPath>();
        new.copy_from_nonoverlapping(index_path, 1);
        (*new).path.pathkeys = list(&[&[order.by_time], &keys[..]].concat());
        Some(new.cast())
    }
}

/// Whether the ID, a column of the table, is declared NOT NULL.
///
/// # Safety
/// As [`add_paths`].
unsafe fn is_not_null(root: *mut PlannerInfo, table: *mut RelOptInfo, id: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        let column = cast::<pg_sys::Var>(without_labels(id)).map_or(0, |column| column.varattno);
        column > 0 && versions::is_not_null(root, table, column)
    }
}
