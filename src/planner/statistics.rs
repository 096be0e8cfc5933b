//! The hook for the statistics of expressions: of times ([`times`]), and of what a query groups by ([`groups`]).
//!
//! PostgreSQL looks up the statistics of an expression by way of the indexes that have it. The time of an ID is a column of the twin of an
//! index. For other expressions, and for tables that have no such index, the planner is given an index that nothing else can use: it
//! has no order, no operators, and a condition that is false.

use super::functions::{self, IdTime};
use super::groups::{Grouping, length_of_interval};
use super::nodes::{At, Expr, HookCall, List, list, made};
use super::operators;
use super::remembered::{Remembered, RememberedBy, remember, remembered};
use super::rising::Asked;
use super::state::{Index, Planner, Rel, Restriction, WITHOUT_STATISTICS};
use super::times::{Compared, Statistics};
use super::twins::Twin;
use super::versions::declared;
use super::{groups, rising, times, twins, versions};
use crate::errors::Error;
use crate::postgres::time::{clock::now, timestamptz};
use pg_sys::{HeapTuple, IndexOptInfo, Node, PlannerInfo, RestrictInfo, VariableStatData};
use pgrx::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

/// The conditions of a table that has members.
pub struct Conditions<'p> {
    /// Those on IDs that were added, in their order.
    pub implied: Cell<List<'p, Node>>,
    /// All of them, once the first member is added.
    pub all: Cell<List<'p, RestrictInfo>>,
    /// Those that its members get.
    pub handed_down: Cell<List<'p, RestrictInfo>>,
    /// Those of joins, while more are there.
    pub of_joins: Cell<List<'p, RestrictInfo>>,
    pub has_more_of_joins: Cell<bool>,
    /// Whether an extension may add members when the paths of the table are made.
    pub expects_members: Cell<bool>,
}

/// An index over expressions, for the planner.
pub struct Expressions<'p> {
    /// What the planner sees.
    description: Index<'p>,
    /// The statistics of each, once they were asked for.
    statistics: Vec<Cell<Option<Statistics<'p>>>>,
    pub conditions: Conditions<'p>,
}

/// The indexes over expressions, as they are remembered.
enum AllExpressions {}

// SAFETY: the same type for each lifetime, which is that of what it has of the planner's.
unsafe impl Remembered for AllExpressions {
    type Of<'p> = Expressions<'p>;
}

impl<'p> Expressions<'p> {
    /// That of a table, if it has one.
    pub fn of_table(planner: Planner<'p>, table: Rel<'p>) -> Option<Rc<Self>> {
        table.indexes().iter().find_map(|index| Self::of(planner, index))
    }

    /// What an index is, if it was made here, or is a copy of one that was.
    fn of(planner: Planner<'p>, index: Index<'p>) -> Option<Rc<Self>> {
        if !is_over_expressions(index) {
            return None;
        }
        let by = RememberedBy::index(planner, index);
        let is_copy = |one: &Self| one.description.expressions().says(index.expressions());
        remembered::<AllExpressions>(planner, by, |one| one.description == index)
            .or_else(|| remembered::<AllExpressions>(planner, by, is_copy))
    }

    /// Of a table, over expressions of it: at least one, and at most as many as an index has columns.
    fn add(planner: Planner<'p>, table: Rel<'p>, expressions: &[Expr<'p>]) {
        let columns = expressions.len();
        // Where there is one of the table without expressions, which a hint may name.
        let named = table.indexes().iter().find(|index| index.expressions().is_empty() && !index.is_hypothetical());
        let expressions = list(expressions);
        // SAFETY: a description of an index as PostgreSQL has it: arrays with an element for each column, where it has no order, and a condition.
        let description: Index<'p> = unsafe {
            let index: *mut IndexOptInfo = pg_sys::palloc0(size_of::<IndexOptInfo>()).cast();
            (*index).type_ = pg_sys::NodeTag::T_IndexOptInfo;
            (*index).indexoid = named.map_or(WITHOUT_STATISTICS, Index::oid);
            (*index).rel = table.as_ptr();
            (*index).ncolumns = columns as i32;
            (*index).nkeycolumns = columns as i32;
            // 0 stands for an expression, and for nothing else of a column. Nobody writes into these.
            let zeros: *mut u32 = pg_sys::palloc0(columns * size_of::<u32>()).cast();
            (*index).indexkeys = zeros.cast();
            (*index).indexcollations = zeros.cast();
            (*index).opfamily = zeros.cast();
            (*index).opcintype = zeros.cast();
            (*index).canreturn = zeros.cast();
            (*index).indexprs = expressions.as_ptr();
            (*index).indpred = list(&[planner.truth(false)]).as_ptr();
            (*index).hypothetical = true;
            (*index).amcostestimate = Some(declared(cost));
            made(index)
        };
        let conditions = Conditions {
            implied: Cell::new(List::EMPTY),
            all: Cell::new(List::EMPTY),
            handed_down: Cell::new(List::EMPTY),
            of_joins: Cell::new(List::EMPTY),
            has_more_of_joins: Cell::new(false),
            expects_members: Cell::new(false),
        };
        let statistics = vec![Cell::new(None); columns];
        let by = RememberedBy::index(planner, description);
        remember::<AllExpressions>(planner, by, Self { description, statistics, conditions });
        table.set_indexes(table.indexes().with(description));
    }
}

/// Whether an index was made here, or is a copy of one that was.
fn is_over_expressions(index: Index<'_>) -> bool {
    versions::is_estimated_by(index, cost)
}

/// Whether a query may have expressions that only [`add`] makes known: it groups.
pub fn groups(planner: Planner<'_>) -> bool {
    let query = planner.query();
    !query.grouped_by().is_empty() || !query.distinct_by().is_empty()
}

/// Whether a table has what the planner is told of the times of its IDs. Calls nothing of PostgreSQL.
pub fn is_prepared(table: Rel<'_>) -> bool {
    let is_ours = |index| twins::is_twin(index) || is_over_expressions(index);
    table.indexes().iter().any(|index| index.is_hypothetical() && is_ours(index))
}

/// Makes known which expressions of a table there may be statistics of. Its twins are known.
pub fn add<'p>(planner: Planner<'p>, table: Rel<'p>, asked: &Asked<'p>, has_conditions: bool) {
    if asked.compared.is_empty() && asked.derived.is_empty() && !groups(planner) {
        return;
    }
    let twins: Vec<_> = table.indexes().iter().filter_map(|index| Twin::of(planner, index)).collect();
    let has_twin = |expression: Expr<'p>| twins.iter().any(|twin| twin.column.expression().says(expression));
    let all = asked.compared.iter().map(|time| time.call).chain(derived_too(asked));
    let mut expressions: Vec<Expr> = all.filter(|&one| !has_twin(one)).collect();
    if groups(planner) && table.kind() == pg_sys::RelOptKind::RELOPT_BASEREL {
        let wanted = planner.query().targets().iter().filter(|target| target.sort_group() > 0);
        expressions.extend(wanted.map(|target| target.expr()).filter(|&one| groups::is_about(one, table)));
    }
    if expressions.is_empty() && has_conditions {
        expressions.extend(asked.compared.iter().map(|time| time.call).chain(derived_too(asked)).take(1));
    }
    // PostgreSQL's arrays have room for so many columns of an index.
    for some in expressions.chunks(pg_sys::INDEX_MAX_KEYS as usize) {
        Expressions::add(planner, table, some);
    }
}

fn derived_too<'p>(asked: &Asked<'p>) -> impl Iterator<Item = Expr<'p>> {
    asked.derived.iter().map(|(derived, _)| derived.expression)
}

/// Supplies the statistics of an expression that the planner has found in an index. Returns whether the index was made here.
///
/// What estimates the cost of an index asks, too: about the expressions that the index has in the catalog, and then `data` may be memory that
/// nothing was written to. So nothing is answered for an index that has any.
///
/// # Safety
/// As the planner calls its hook for the statistics of an expression of an index, with the index's number and the column's.
pub unsafe fn supply<'p>(
    call: &'p HookCall,
    planner: Planner<'p>,
    index: pg_sys::Oid,
    column: i16,
    data: *mut VariableStatData,
) -> bool {
    if !functions::is_plain(index, has_columns_alone) {
        return false;
    }
    // SAFETY: what asks about other indexes has filled these.
    let Some((table, expression)) = (unsafe { call.lend((*data).rel).zip(call.lend((*data).var)) }) else {
        return false;
    };
    let compute = || planner.in_memory(|| statistics(planner, table, expression));
    for index in table.indexes().iter().filter(|one| one.oid() == index) {
        let found = if let Some(twin) = Twin::of(planner, index) {
            let is_asked = twin.column.at as i16 + 1 == column && twin.column.expression().says(expression);
            is_asked.then(|| times::once(&twin.statistics, compute))
        } else if let Some(expressions) = Expressions::of(planner, index) {
            let at = (column - 1) as usize;
            let is_asked = index.expressions().get(at).is_some_and(|own| own.says(expression));
            expressions.statistics.get(at).filter(|_| is_asked).map(|place| times::once(place, compute))
        } else {
            None
        };
        let Some(found) = found else { continue };
        if let Some(tuple) = found.row {
            // SAFETY: what the hook is asked for: a row that lives as long as the planner may read it.
            unsafe {
                (*data).statsTuple = tuple.as_ptr();
                (*data).freefunc = Some(keep);
                (*data).acl_ok = found.may_be_known;
            }
        }
        return true;
    }
    false
}

/// Whether an index of the catalog has no expressions.
fn has_columns_alone(index: pg_sys::Oid) -> bool {
    let cache = pg_sys::SysCacheIdentifier::INDEXRELID as _;
    // SAFETY: a look-up in the catalog, by an OID; the row is held meanwhile.
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

fn statistics<'p>(planner: Planner<'p>, table: Rel<'p>, expression: Expr<'p>) -> Statistics<'p> {
    let none = Statistics::default();
    if has_own(expression, table) {
        return none;
    }
    if let Some(time) = IdTime::read(expression) {
        let compared = compared(table, expression);
        if compared == Compared::No && !counts_values(planner) {
            return none;
        }
        return times::statistics(planner, &time, None, table.row_count().max(1.0), compared).unwrap_or(none);
    }
    if is_compared(table, expression)
        && let Some((derived, time)) = rising::derived_of(planner, expression)
    {
        let rows = table.row_count().max(1.0);
        return times::statistics(planner, &time, Some(&derived), rows, Compared::WithAny).unwrap_or(none);
    }
    let groups = Grouping::read(expression).and_then(|grouping| groups::count(planner, table, &grouping));
    groups.map_or(none, |groups| times::distinct(planner, groups))
}

/// Whether PostgreSQL may ask how many different values an expression has that a query compares with nothing: for groups, an order by several
/// expressions, windows, joins, and queries that are combined.
fn counts_values(planner: Planner<'_>) -> bool {
    let query = planner.query();
    let is_combined = planner.parent().is_some_and(|parent| parent.query().combined().is_some());
    let is_joined = planner.tables().iter().nth(1).is_some();
    groups(planner) || query.sorted_by().len() > 1 || query.has_windows() || is_joined || is_combined
}

/// Whether a condition of a query may compare an expression.
fn is_compared<'p>(table: Rel<'p>, expression: Expr<'p>) -> bool {
    let is_within = |condition: Restriction<'p>| {
        let condition = condition.clause();
        let operation = condition.cast::<pg_sys::OpExpr>();
        operation.is_none_or(|operation| operation.args().iter().any(|side| side.says(expression)))
    };
    !table.joins().is_empty() || table.has_class_joins() || table.conditions().iter().any(is_within)
}

/// The values that the conditions of a query compare a time with, as far as they are known when it is planned.
fn compared<'p>(table: Rel<'p>, time: Expr<'p>) -> Compared {
    // A merge join is estimated by all values of both sides.
    let is_equated = |join: Restriction<'p>| {
        let comparison = join.clause().cast::<pg_sys::OpExpr>();
        comparison.is_some_and(|comparison| operators::is_equality(comparison.opno()))
    };
    if table.has_class_joins() || table.joins().iter().any(is_equated) {
        return Compared::WithAny;
    }
    let conditions = table.conditions().iter().chain(table.joins().iter());
    conditions.map(|one| compared_in(table, one.clause(), time)).max().unwrap_or(Compared::No)
}

/// The same of one of them.
fn compared_in<'p>(table: Rel<'p>, condition: Expr<'p>, time: Expr<'p>) -> Compared {
    let is_time = |side: Expr<'p>| side.says(time);
    let is_column = |side: Expr<'p>| side.without_labels().cast::<pg_sys::Var>().is_some();
    let tested = condition.cast::<pg_sys::NullTest>().map(|test| test.arg());
    if tested.is_some_and(is_time) {
        return Compared::ForNull;
    }
    if tested.is_some_and(is_column) {
        return Compared::No;
    }
    if condition.cast::<pg_sys::ScalarArrayOpExpr>().is_some_and(|list| operators::is_equality(list.opno())) {
        return Compared::Equal;
    }
    let Some(comparison) = condition.cast::<pg_sys::OpExpr>() else { return Compared::WithAny };
    let is_of_time = comparison.args().iter().any(is_time);
    if !is_of_time && comparison.args().iter().any(is_column) {
        return Compared::No;
    }
    if is_of_time && operators::is_equality(comparison.opno()) {
        return Compared::Equal;
    }
    let of_side = |side: Expr<'p>| match side.without_labels().cast::<pg_sys::Const>() {
        Some(constant) if !is_of_time || constant.constisnull() => Compared::No,
        Some(constant) if constant.consttype() == pg_sys::TIMESTAMPTZOID => {
            Compared::UpTo(constant.constvalue().value() as i64)
        }
        None if is_time(side) || is_column(side) || is_of_another_row(side, table) => Compared::No,
        _ => about_now(side).map_or(Compared::WithAny, Compared::UpTo),
    };
    comparison.args().iter().map(of_side).max().unwrap_or(Compared::No)
}

/// An upper bound of `now()`, `now() - interval '1 day'` and their like, as a `timestamptz`; `None` of other expressions. Having PostgreSQL
/// evaluate them takes longer. As days and months differ in length, a tenth of the interval is added.
fn about_now(expression: Expr<'_>) -> Option<i64> {
    let after = |sides: List<'_, pg_sys::Node>, direction: f64| {
        let length = direction * length_of_interval(sides.get(1)?)?;
        is_now(sides.get(0)?).then_some((length + length.abs() / 10.0) as i64)
    };
    let after = match expression.cast::<pg_sys::OpExpr>() {
        // OIDs as in PostgreSQL's pg_operator.dat: timestamptz + interval, timestamptz - interval
        Some(operation) if operation.opno() == pg_sys::Oid::from(1327) => after(operation.args(), 1.0)?,
        Some(operation) if operation.opno() == pg_sys::Oid::from(1329) => after(operation.args(), -1.0)?,
        _ => is_now(expression).then_some(0)?,
    };
    Some(timestamptz::to_datum(now()).saturating_add(after))
}

/// Whether an expression is `now()`, the same by another name, or `CURRENT_TIMESTAMP`.
fn is_now(expression: Expr<'_>) -> bool {
    match expression.cast::<pg_sys::FuncExpr>() {
        // OIDs as in PostgreSQL's pg_proc.dat: now(), transaction_timestamp(), statement_timestamp()
        Some(call) => matches!(call.funcid().to_u32(), 1299 | 2647 | 2648),
        None => {
            expression.tag() == pg_sys::NodeTag::T_SQLValueFunction && expression.type_of() == pg_sys::TIMESTAMPTZOID
        }
    }
}

/// Whether an expression has a value for each row of another table than this, in the query or in one around it. For a comparison with it, other than
/// for equality, PostgreSQL assumes a fixed share of the rows, and reads no statistics.
fn is_of_another_row(expression: Expr<'_>, table: Rel<'_>) -> bool {
    let call = || expression.cast::<pg_sys::FuncExpr>().map(|call| call.args());
    let arguments = || expression.cast::<pg_sys::OpExpr>().map(|operation| operation.args()).or_else(call);
    expression.cast::<pg_sys::Var>().is_some_and(|column| versions::table_of(column) != table.number())
        || expression.cast::<pg_sys::Param>().is_some_and(|one| one.paramkind() == pg_sys::ParamKind::PARAM_EXEC)
        || arguments().is_some_and(|all| all.iter().any(|one| is_of_another_row(one, table)))
}

/// Whether somebody had statistics made of an expression: `CREATE STATISTICS ... ON (snowflake_timestamp(id)) FROM orders`.
fn has_own<'p>(expression: Expr<'p>, table: Rel<'p>) -> bool {
    let has = |one: At<'p, pg_sys::StatisticExtInfo>| one.expressions().iter().any(|one| one.says(expression));
    table.statistics().iter().any(has)
}

/// A tuple may be asked for again while the query is planned, and lives as long as that.
#[pg_guard]
extern "C-unwind" fn keep(_tuple: HeapTuple) {}

/// An index over expressions has no paths, unless another extension makes one.
#[pg_guard]
#[allow(clippy::too_many_arguments, reason = "as PostgreSQL calls it")]
extern "C-unwind" fn cost(
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
