//! The hook for the statistics of expressions: of times ([`times`]), and of what a query groups by ([`groups`]).
//!
//! PostgreSQL looks up the statistics of an expression by way of the indexes that have it. The time of an ID is a column of the twin of an
//! index. For other expressions, and for tables that have no such index, the planner is given an index that nothing else can use: it
//! has no order, no operators, and a condition that is false.

use super::functions::IdTime;
use super::groups::Grouping;
use super::nodes::{cast, elements, list, without_labels};
use super::rising::Asked;
use super::times::{Compared, Statistics};
use super::twins::Twin;
use super::versions::declared;
use super::{groups, keys, times};
use crate::errors::Error;
use pg_sys::{HeapTuple, IndexOptInfo, Node, PlannerInfo, RelOptInfo, RestrictInfo, VariableStatData};
use pgrx::prelude::*;

/// The conditions of a table that has members.
#[repr(C)]
pub struct Conditions {
    /// Those on IDs that were added, in their order.
    pub implied: *mut pg_sys::List,
    /// All of them, once the first member is added.
    pub all: *mut pg_sys::List,
    /// Those that its members get.
    pub handed_down: *mut pg_sys::List,
    /// Those of joins, while more are there.
    pub of_joins: *mut pg_sys::List,
    pub has_more_of_joins: bool,
    /// Whether an extension may add members when the paths of the table are made.
    pub expects_members: bool,
}

/// An index over expressions, for the planner.
#[repr(C)]
pub struct Expressions {
    /// What the planner sees.
    description: IndexOptInfo,
    /// The statistics of each, once they were asked for: an array.
    statistics: *mut Option<Statistics>,
    /// The conditions of a table that has members.
    pub conditions: Conditions,
}

impl Expressions {
    /// That of a table, if it has one.
    ///
    /// # Safety
    /// A table of the planner.
    pub unsafe fn of_table<'a>(table: *mut RelOptInfo) -> Option<&'a mut Self> {
        // SAFETY: as above.
        unsafe { elements::<IndexOptInfo>((*table).indexlist).find_map(|index| Self::of(index)) }
    }

    /// What an index is, if it was made here.
    ///
    /// # Safety
    /// An index as the planner has it.
    pub unsafe fn of<'a>(index: *mut IndexOptInfo) -> Option<&'a mut Self> {
        // SAFETY: as above. What has this function was made here, or is a copy of that.
        unsafe { keys::owner(index, declared(cost)).map(|expressions: *mut Self| &mut *expressions) }
    }

    /// # Safety
    /// The planner's state, a table of it, and expressions of it: at least one, and at most as many as an index has columns.
    unsafe fn add(table: *mut RelOptInfo, expressions: &[*mut Node]) {
        let columns = expressions.len();
        // SAFETY: as above.
        unsafe {
            let index: *mut Self = pg_sys::palloc0(size_of::<Self>()).cast();
            (*index).statistics = pg_sys::palloc0(columns * size_of::<Option<Statistics>>()).cast();
            let memory = (*index).statistics;
            (0..columns).for_each(|at| memory.add(at).write(None));
            let description = &mut (*index).description;
            description.type_ = pg_sys::NodeTag::T_IndexOptInfo;
            // Others may look for its name: so it has that of another index, where there is one that `supply` is not asked about.
            let named = elements::<IndexOptInfo>((*table).indexlist).find(|&index| (*index).indexprs.is_null());
            description.indexoid = named.map_or(pg_sys::InvalidOid, |index| (*index).indexoid);
            description.rel = table;
            description.ncolumns = columns as i32;
            description.nkeycolumns = columns as i32;
            // 0 stands for an expression.
            description.indexkeys = keys::of(index, &vec![0; columns]);
            description.indexcollations = pg_sys::palloc0(columns * size_of::<pg_sys::Oid>()).cast();
            description.opfamily = pg_sys::palloc0(columns * size_of::<pg_sys::Oid>()).cast();
            description.opcintype = pg_sys::palloc0(columns * size_of::<pg_sys::Oid>()).cast();
            description.canreturn = pg_sys::palloc0(columns * size_of::<bool>()).cast();
            description.indexprs = list(expressions);
            description.indpred = list(&[pg_sys::makeBoolConst(false, false)]);
            description.hypothetical = true;
            description.amcostestimate = Some(declared(cost));
            (*table).indexlist = pg_sys::lappend((*table).indexlist, index.cast());
        }
    }
}

/// Whether a query may have expressions that only [`add`] makes known: it groups.
///
/// # Safety
/// The planner's state.
pub unsafe fn groups(root: *mut PlannerInfo) -> bool {
    // SAFETY: as above.
    unsafe { !(*(*root).parse).groupClause.is_null() || !(*(*root).parse).distinctClause.is_null() }
}

/// Whether a table has what the planner is told of the times of its IDs. Calls nothing of PostgreSQL.
///
/// # Safety
/// A table of the planner.
pub unsafe fn is_prepared(table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        elements::<IndexOptInfo>((*table).indexlist)
            .any(|index| (*index).hypothetical && (Twin::of(index).is_some() || Expressions::of(index).is_some()))
    }
}

/// Makes known which expressions of a table there may be statistics of.
///
/// # Safety
/// The planner's state, a table of it whose twins are known, and what the query says of it.
pub unsafe fn add(root: *mut PlannerInfo, table: *mut RelOptInfo, asked: &Asked, has_conditions: bool) {
    // SAFETY: as above.
    unsafe {
        let has_twin = |time: &IdTime| {
            elements::<IndexOptInfo>((*table).indexlist).filter_map(|index| Twin::of(index)).any(|twin| {
                (*twin.index).indexprs.is_null() && pg_sys::equal(twin.column.time.call.cast(), time.call.cast())
            })
        };
        let times = asked.compared.iter().filter(|time| !has_twin(time)).map(|time| time.call);
        let mut expressions: Vec<*mut Node> = times.collect();
        if groups(root) && (*table).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL {
            let entries = elements::<pg_sys::TargetEntry>((*(*root).parse).targetList);
            let wanted = entries.filter(|&entry| (*entry).ressortgroupref > 0);
            expressions.extend(wanted.map(|entry| (*entry).expr.cast()).filter(|&one| groups::is_about(one, table)));
        }
        if expressions.is_empty() && has_conditions && !asked.compared.is_empty() {
            expressions.push(asked.compared[0].call);
        }
        // PostgreSQL's arrays have room for so many columns of an index.
        for some in expressions.chunks(pg_sys::INDEX_MAX_KEYS as usize) {
            Expressions::add(table, some);
        }
    }
}

/// Supplies the statistics of an expression that the planner has found in an index. Returns whether the index was made here.
///
/// What estimates the cost of an index asks, too: about the expressions that the index has in the catalog, and then `data` may be memory that
/// nothing was written to. So nothing is answered for an index that has any.
///
/// # Safety
/// As the planner calls its hook for the statistics of an expression of an index, with the index's number and the column's.
pub unsafe fn supply(root: *mut PlannerInfo, index: pg_sys::Oid, column: i16, data: *mut VariableStatData) -> bool {
    // SAFETY: as above.
    unsafe {
        if index != pg_sys::InvalidOid && !has_columns_alone(index) {
            return false;
        }
        let data = &mut *data;
        let (table, expression) = (data.rel, data.var);
        if table.is_null() || expression.is_null() {
            return false;
        }
        let is_same = |of_index: *mut Node| pg_sys::equal(of_index.cast(), expression.cast());
        for index in elements::<IndexOptInfo>((*table).indexlist).filter(|&one| (*one).indexoid == index) {
            let place: Option<&mut Option<Statistics>> = if let Some(twin) = Twin::of(index) {
                (twin.column.at as i16 + 1 == column && is_same(twin.column.time.call)).then_some(&mut twin.statistics)
            } else if let Some(expressions) = Expressions::of(index) {
                let at = (column - 1) as usize;
                let own = elements::<Node>((*index).indexprs).nth(at);
                own.is_some_and(is_same).then(|| &mut *expressions.statistics.add(at))
            } else {
                None
            };
            let Some(place) = place else { continue };
            // The search for an order of joins may forget what it has allocated.
            let mut memory = pgrx::PgMemoryContexts::For((*root).planner_cxt);
            let compute = || memory.switch_to(|_| statistics(root, table, expression));
            let (tuple, may_know) = *place.get_or_insert_with(compute);
            if !tuple.is_null() {
                data.statsTuple = tuple;
                data.freefunc = Some(keep);
                data.acl_ok = may_know;
            }
            return true;
        }
    }
    false
}

/// Whether an index of the catalog has no expressions.
fn has_columns_alone(index: pg_sys::Oid) -> bool {
    let cache = pg_sys::SysCacheIdentifier::INDEXRELID as _;
    // SAFETY: a look-up in the catalog.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(index));
        if tuple.is_null() {
            return false;
        }
        let mut is_null = true;
        pg_sys::SysCacheGetAttr(cache, tuple, pg_sys::Anum_pg_index_indexprs as _, &raw mut is_null);
        pg_sys::ReleaseSysCache(tuple);
        is_null
    }
}

/// # Safety
/// The planner's state, a table of it, and an expression of it.
unsafe fn statistics(root: *mut PlannerInfo, table: *mut RelOptInfo, expression: *mut Node) -> Statistics {
    let none = (std::ptr::null_mut(), false);
    // SAFETY: as above.
    unsafe {
        if has_own(expression, table) {
            return none;
        }
        if let Some(time) = IdTime::read(expression) {
            let compared = compared(table, expression);
            return times::statistics(root, &time, (*table).tuples.max(1.0), compared).unwrap_or(none);
        }
        let groups = Grouping::read(expression).and_then(|grouping| groups::count(root, table, &grouping));
        groups.map_or(none, |groups| (times::distinct(groups), true))
    }
}

/// The values that the conditions of a query compare a time with, as far as they are known when it is planned.
///
/// # Safety
/// A table of the planner whose conditions are known, and a time of it.
unsafe fn compared(table: *mut RelOptInfo, time: *mut Node) -> Compared {
    // SAFETY: as above; a comparison has two sides.
    unsafe {
        if !(*table).joininfo.is_null() || (*table).has_eclass_joins {
            return Compared::WithAny;
        }
        let is_time = |side: *mut Node| pg_sys::equal(side.cast(), time.cast());
        let is_column = |side| cast::<pg_sys::Var>(without_labels(side)).is_some();
        let of_condition = |condition: *mut RestrictInfo| {
            let condition: *mut Node = (*condition).clause.cast();
            if let Some(test) = cast::<pg_sys::NullTest>(condition)
                && (is_time(test.arg.cast()) || is_column(test.arg.cast()))
            {
                return Compared::No;
            }
            let Some(comparison) = cast::<pg_sys::OpExpr>(condition) else { return Compared::WithAny };
            let is_of_time = elements(comparison.args).any(is_time);
            let of_side = |side: *mut Node| match cast::<pg_sys::Const>(without_labels(side)) {
                Some(constant) if !is_of_time || constant.constisnull => Compared::No,
                Some(constant) if constant.consttype == pg_sys::TIMESTAMPTZOID => {
                    Compared::UpTo(constant.constvalue.value() as i64)
                }
                None if is_time(side) || is_column(side) => Compared::No,
                _ => Compared::WithAny,
            };
            elements(comparison.args).map(of_side).max().unwrap_or(Compared::No)
        };
        elements((*table).baserestrictinfo).map(of_condition).max().unwrap_or(Compared::No)
    }
}

/// Whether somebody had statistics made of an expression: `CREATE STATISTICS ... ON (snowflake_timestamp(id)) FROM orders`.
///
/// # Safety
/// An expression, and a table of the planner.
unsafe fn has_own(expression: *mut Node, table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        elements::<pg_sys::StatisticExtInfo>((*table).statlist).any(|statistics| {
            elements::<Node>((*statistics).exprs).any(|one| pg_sys::equal(one.cast(), expression.cast()))
        })
    }
}

/// A tuple may be asked for again while the query is planned, and lives as long as that.
#[pg_guard]
unsafe extern "C-unwind" fn keep(_tuple: HeapTuple) {}

/// An index over expressions has no paths, unless another extension makes one.
#[pg_guard]
#[allow(clippy::too_many_arguments, reason = "as PostgreSQL calls it")]
unsafe extern "C-unwind" fn cost(
    _root: *mut PlannerInfo,
    _path: *mut pg_sys::IndexPath,
    _loop_count: f64,
    _startup: *mut f64,
    _total: *mut f64,
    _selectivity: *mut f64,
    _correlation: *mut f64,
    _pages: *mut f64,
) {
    Error::PlannedByOthers.raise();
}
