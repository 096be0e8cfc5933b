//! How many different values there are of what a query groups by, or joins by: a part of an ID, or a length of time.
//!
//! ```sql
//! SELECT date_trunc('day', created_at), count(*) FROM v GROUP BY 1
//! SELECT snowflake_worker(id), count(*) FROM orders GROUP BY 1
//! ```
//!
//! PostgreSQL has no statistics of such expressions, and takes the number of groups for that of the rows. But the statistics of the
//! ID tell it: its histogram is a sample of workers, and its first and last value bound the time.
//!
//! Statistics of expressions are looked up by way of the indexes that have them. So the planner is given an index over the
//! expressions in question, which nothing else can use: it is partial, and its condition is false.

use super::functions::{self, IdTime};
use super::nodes::{cast, elements, list, text, without_labels};
use super::{joins, operators};
use pg_sys::{IndexOptInfo, Node, PlannerInfo, RelOptInfo, VariableStatData};
use pgrx::prelude::*;
use snowflake_core::statistics::distinct;
use snowflake_core::{Field, Micros};

const SECOND: f64 = 1e6;
const DAY: f64 = 86_400.0 * SECOND;
const YEAR: f64 = 365.25 * DAY;

/// What an expression of GROUP BY makes of an ID.
struct Grouping {
    id: IdTime,
    into: Groups,
}

/// How it divides IDs into groups.
#[derive(Clone, Copy, Debug)]
enum Groups {
    /// By a field.
    Field(Field),
    /// By lengths of time, in microseconds.
    Lengths(f64),
    /// By what recurs, such as the hour of a day: so many groups.
    Recurring(f64),
}

impl Grouping {
    /// Reads an expression; `None` where it is something else.
    ///
    /// # Safety
    /// The pointer is to an expression.
    unsafe fn read(expression: *mut Node) -> Option<Self> {
        // SAFETY: as above.
        unsafe {
            if let Some((id, field)) = functions::read(expression) {
                return Some(Self { id, into: Groups::Field(field) });
            }
            let call = cast::<pg_sys::FuncExpr>(expression)?;
            let mut arguments = elements::<Node>(call.args);
            // OIDs as in PostgreSQL's pg_proc.dat.
            let (time, into) = match call.funcid.to_u32() {
                // date(timestamptz), date(timestamp)
                1178 | 2029 => (arguments.next()?, Groups::Lengths(DAY)),
                // date_trunc(text, timestamptz), the same with a time zone, date_trunc(text, timestamp)
                1217 | 1284 | 2020 => {
                    let unit = text(arguments.next()?)?;
                    (arguments.next()?, Groups::Lengths(length_of_unit(&unit)?))
                }
                // date_bin(interval, timestamptz, timestamptz), date_bin(interval, timestamp, timestamp)
                6178 | 6177 => {
                    let length = length_of_interval(arguments.next()?)?;
                    (arguments.next()?, Groups::Lengths(length))
                }
                // date_part(text, timestamptz), date_part(text, timestamp), and extract()
                1171 | 2021 | 6203 | 6202 => {
                    let unit = text(arguments.next()?)?;
                    (arguments.next()?, groups_of_part(&unit)?)
                }
                _ => return None,
            };
            Some(Self { id: time_of(time)?, into })
        }
    }
}

/// The time of an ID, also one in another time zone.
///
/// # Safety
/// The pointer is to an expression.
unsafe fn time_of(mut expression: *mut Node) -> Option<IdTime> {
    // SAFETY: as above.
    unsafe {
        if let Some(call) = cast::<pg_sys::FuncExpr>(expression) {
            let mut arguments = elements::<Node>(call.args);
            match call.funcid.to_u32() {
                // timezone(text, timestamptz), timezone(interval, timestamptz)
                1159 | 1026 => expression = arguments.nth(1)?,
                // timestamp(timestamptz)
                2027 => expression = arguments.next()?,
                _ => {}
            }
        }
        IdTime::read(expression)
    }
}

/// The length of a constant interval in microseconds, where it is positive.
///
/// # Safety
/// The pointer is to an expression of type `interval`.
unsafe fn length_of_interval(expression: *mut Node) -> Option<f64> {
    // SAFETY: as above.
    let constant = unsafe { cast::<pg_sys::Const>(expression) }?;
    if constant.constisnull {
        return None;
    }
    // SAFETY: a constant that is not NULL points to the interval.
    let interval = unsafe { &*constant.constvalue.cast_mut_ptr::<pg_sys::Interval>() };
    let length = interval.time as f64 + f64::from(interval.day) * DAY + f64::from(interval.month) * YEAR / 12.0;
    (length > 0.0).then_some(length)
}

/// The length of a unit of `date_trunc()`, in microseconds.
fn length_of_unit(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().trim_end_matches('s') {
        "microsecond" => 1.0,
        "millisecond" => SECOND / 1000.0,
        "second" => SECOND,
        "minute" => 60.0 * SECOND,
        "hour" => 3600.0 * SECOND,
        "day" => DAY,
        "week" => 7.0 * DAY,
        "month" => YEAR / 12.0,
        "quarter" => YEAR / 4.0,
        "year" => YEAR,
        "decade" => 10.0 * YEAR,
        _ => return None,
    })
}

/// The groups of a part of a date.
fn groups_of_part(part: &str) -> Option<Groups> {
    Some(match part.to_ascii_lowercase().trim_end_matches('s') {
        "minute" => Groups::Recurring(60.0),
        "hour" => Groups::Recurring(24.0),
        "dow" | "isodow" => Groups::Recurring(7.0),
        "day" => Groups::Recurring(31.0),
        "doy" => Groups::Recurring(366.0),
        "week" => Groups::Recurring(53.0),
        "month" => Groups::Recurring(12.0),
        "quarter" => Groups::Recurring(4.0),
        "year" | "isoyear" => Groups::Lengths(YEAR),
        "epoch" => Groups::Lengths(1.0),
        _ => return None,
    })
}

/// Whether a query may have expressions that [`add_index`] is for.
///
/// # Safety
/// The planner's state.
pub unsafe fn may_be_wanted(root: *mut PlannerInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        let query = (*root).parse;
        joins::has_any() || !(*query).groupClause.is_null() || !(*query).distinctClause.is_null()
    }
}

/// Gives the planner an index over those expressions of GROUP BY, DISTINCT and joins by equal times that are about IDs of this table.
///
/// # Safety
/// The planner's state, and a table of it whose indexes are known.
pub unsafe fn add_index(root: *mut PlannerInfo, table: *mut RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        let query = (*root).parse;
        let mut expressions = Vec::new();
        joins::for_each_side((*query).jointree.cast(), &mut |side| expressions.push(side));
        if !(*query).groupClause.is_null() || !(*query).distinctClause.is_null() {
            let wanted =
                elements::<pg_sys::TargetEntry>((*query).targetList).filter(|&entry| (*entry).ressortgroupref > 0);
            expressions.extend(wanted.map(|entry| (*entry).expr.cast::<Node>()));
        }
        expressions.retain(|&expression| is_about(expression, table) && !has_statistics(expression, table));
        // PostgreSQL's arrays have room for so many columns of an index.
        for some in expressions.chunks(pg_sys::INDEX_MAX_KEYS as usize) {
            add_index_over(root, table, some);
        }
    }
}

/// # Safety
/// As [`add_index`]; at least one expression, and at most as many as an index has columns.
unsafe fn add_index_over(root: *mut PlannerInfo, table: *mut RelOptInfo, expressions: &[*mut Node]) {
    // SAFETY: as above.
    unsafe {
        let index = pgrx::PgBox::<IndexOptInfo>::alloc_node(pg_sys::NodeTag::T_IndexOptInfo).into_pg();
        let columns = expressions.len();
        // No index has the number of a table: so `on_statistics` knows it.
        (*index).indexoid = number_of(root, table);
        (*index).rel = table;
        (*index).ncolumns = columns as i32;
        (*index).nkeycolumns = columns as i32;
        // 0 stands for an expression.
        (*index).indexkeys = pg_sys::palloc0(columns * size_of::<i32>()).cast();
        (*index).indexcollations = pg_sys::palloc0(columns * size_of::<pg_sys::Oid>()).cast();
        (*index).opfamily = pg_sys::palloc0(columns * size_of::<pg_sys::Oid>()).cast();
        (*index).opcintype = pg_sys::palloc0(columns * size_of::<pg_sys::Oid>()).cast();
        (*index).canreturn = pg_sys::palloc0(columns * size_of::<bool>()).cast();
        (*index).indexprs = list(expressions);
        (*index).indpred = list(&[pg_sys::makeBoolConst(false, false)]);
        (*index).hypothetical = true;
        (*table).indexlist = pg_sys::lappend((*table).indexlist, index.cast());
    }
}

/// # Safety
/// An expression, and a table of the planner.
unsafe fn is_about(expression: *mut Node, table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        Grouping::read(expression).is_some_and(|grouping| {
            cast::<pg_sys::Var>(without_labels(grouping.id.id))
                .is_some_and(|column| column.varno as pg_sys::Index == (*table).relid && column.varlevelsup == 0)
        })
    }
}

/// Whether somebody had statistics made of an expression: `CREATE STATISTICS ... ON (snowflake_timestamp(id)) FROM orders`.
///
/// # Safety
/// As [`is_about`].
unsafe fn has_statistics(expression: *mut Node, table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        let of_some = |&statistics: &*mut pg_sys::StatisticExtInfo| {
            elements::<Node>((*statistics).exprs).any(|one| pg_sys::equal(one.cast(), expression.cast()))
        };
        elements::<pg_sys::StatisticExtInfo>((*table).statlist).any(|statistics| of_some(&statistics))
    }
}

/// # Safety
/// The planner's state, and a table of it that is one of the database.
unsafe fn number_of(root: *mut PlannerInfo, table: *mut RelOptInfo) -> pg_sys::Oid {
    // SAFETY: as above; the array has so many elements.
    unsafe { (**(*root).simple_rte_array.add((*table).relid as usize)).relid }
}

/// Says how many different values an expression of the index has. Returns whether the index is the one of [`add_index`].
///
/// # Safety
/// As the planner calls its hook for the statistics of an expression of an index.
pub unsafe fn supply(root: *mut PlannerInfo, index: pg_sys::Oid, data: &mut VariableStatData) -> bool {
    // SAFETY: as above.
    unsafe {
        if data.rel.is_null() || index != number_of(root, data.rel) {
            return false;
        }
        if let Some(groups) = Grouping::read(data.var).and_then(|grouping| count(root, data.rel, &grouping)) {
            data.statsTuple = tuple(groups);
            data.freefunc = Some(free);
        }
        true
    }
}

/// How many groups there are, by the statistics of the ID; `None` where there are none.
///
/// # Safety
/// As [`supply`].
unsafe fn count(root: *mut PlannerInfo, table: *mut RelOptInfo, grouping: &Grouping) -> Option<f64> {
    let layout = grouping.id.layout()?;
    // SAFETY: as above.
    unsafe {
        let rows = (*table).tuples.max(1.0);
        if let Groups::Recurring(count) = grouping.into {
            return Some(count.min(rows));
        }
        let ids = sample(root, grouping.id.id);
        let mut times = ids.iter().filter_map(|&id| layout.timestamp(id).ok());
        let first = times.next()?;
        let (first, last) = times.fold((first, first), |(first, last), time| (first.min(time), last.max(time)));
        // Where the query wants a part of the table, that is a part of the time as well.
        let part = if is_bounded(table, grouping.id.id) { ((*table).rows / rows).clamp(0.0, 1.0) } else { 1.0 };
        let in_time = |length: Micros| (last - first).0 as f64 * part / (length.0 as f64) + 1.0;
        let groups = match grouping.into {
            Groups::Field(Field::Timestamp) => in_time(layout.tick_length()),
            Groups::Field(field) => {
                let values: Vec<u64> =
                    ids.iter().filter_map(|&id| Some(u64::from(layout.field(id, field).ok()??))).collect();
                distinct(&values, rows).min(layout.max(field) as f64 + 1.0)
            }
            Groups::Lengths(length) => (last - first).0 as f64 * part / length + 1.0,
            Groups::Recurring(count) => count,
        };
        Some(groups.clamp(1.0, rows))
    }
}

/// A sample of a column of type `bigint`: the values of its histogram, and its most common values.
///
/// # Safety
/// As [`supply`]; a column.
unsafe fn sample(root: *mut PlannerInfo, column: *mut Node) -> Vec<i64> {
    let mut values = Vec::new();
    // SAFETY: as above. What is returned is freed as PostgreSQL does.
    unsafe {
        let mut data = VariableStatData::default();
        pg_sys::examine_variable(root, without_labels(column), 0, &raw mut data);
        if data.statsTuple.is_null() {
            return values;
        }
        for kind in [pg_sys::STATISTIC_KIND_HISTOGRAM, pg_sys::STATISTIC_KIND_MCV] {
            let mut slot = pg_sys::AttStatsSlot::default();
            let wanted = pg_sys::ATTSTATSSLOT_VALUES as i32;
            if pg_sys::get_attstatsslot(&raw mut slot, data.statsTuple, kind as i32, pg_sys::InvalidOid, wanted) {
                if slot.valuetype == pg_sys::INT8OID {
                    values.extend((0..slot.nvalues as usize).map(|at| (*slot.values.add(at)).value() as i64));
                }
                pg_sys::free_attstatsslot(&raw mut slot);
            }
        }
        if let Some(free) = data.freefunc {
            free(data.statsTuple);
        }
    }
    values
}

/// Whether the query has bounds for a column of the table.
///
/// # Safety
/// As [`supply`].
unsafe fn is_bounded(table: *mut RelOptInfo, column: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        elements::<pg_sys::RestrictInfo>((*table).baserestrictinfo).any(|restriction| {
            cast::<pg_sys::OpExpr>((*restriction).clause.cast()).is_some_and(|operation| {
                let is_bound = operators::bounds_ids(operation.opno.to_u32());
                is_bound && elements::<Node>(operation.args).any(|side| pg_sys::equal(side.cast(), column.cast()))
            })
        })
    }
}

/// Statistics that say only how many different values there are.
fn tuple(distinct: f64) -> pg_sys::HeapTuple {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    let mut values = [pg_sys::Datum::from(0); pg_sys::Natts_pg_statistic as usize];
    let mut nulls = [false; pg_sys::Natts_pg_statistic as usize];
    values[pg_sys::Anum_pg_statistic_stadistinct as usize - 1] = (distinct as f32).into_datum().unwrap_or(values[0]);
    for kind in 0..pg_sys::STATISTIC_NUM_SLOTS as usize {
        nulls[pg_sys::Anum_pg_statistic_stanumbers1 as usize - 1 + kind] = true;
        nulls[pg_sys::Anum_pg_statistic_stavalues1 as usize - 1 + kind] = true;
    }
    // SAFETY: a tuple of the catalog, with all of its columns.
    unsafe {
        let relation = pg_sys::table_open(pg_sys::StatisticRelationId, lock);
        let tuple = pg_sys::heap_form_tuple((*relation).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::table_close(relation, lock);
        tuple
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn free(tuple: pg_sys::HeapTuple) {
    // SAFETY: made by `tuple`.
    unsafe { pg_sys::heap_freetuple(tuple) };
}
