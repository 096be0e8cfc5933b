//! How many different values there are of what a query groups by: a part of an ID, or a length of time.
//!
//! ```sql
//! SELECT date_trunc('day', created_at), count(*) FROM v GROUP BY 1
//! SELECT snowflake_worker(id), count(*) FROM orders GROUP BY 1
//! ```
//!
//! PostgreSQL has no statistics of such expressions, and takes the number of groups for that of the rows. But the statistics of the
//! ID tell it: its histogram is a sample of workers, and its first and last value bound the time.

use super::functions::{self, IdTime};
use super::nodes::{cast, elements, text, without_labels};
use super::{operators, times};
use pg_sys::{Node, PlannerInfo, RelOptInfo};
use pgrx::prelude::*;
use snowflake_core::statistics::distinct;
use snowflake_core::{Field, Micros};

const SECOND: f64 = 1e6;
const DAY: f64 = 86_400.0 * SECOND;
const YEAR: f64 = 365.25 * DAY;

/// What an expression of GROUP BY makes of an ID.
pub struct Grouping {
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
    pub unsafe fn read(expression: *mut Node) -> Option<Self> {
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

/// Whether an expression is about IDs of this table.
///
/// # Safety
/// An expression, and a table of the planner.
pub unsafe fn is_about(expression: *mut Node, table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        Grouping::read(expression).is_some_and(|grouping| {
            cast::<pg_sys::Var>(without_labels(grouping.id.id))
                .is_some_and(|column| column.varno as pg_sys::Index == (*table).relid && column.varlevelsup == 0)
        })
    }
}

/// How many groups there are, by the statistics of the ID; `None` where there are none.
///
/// # Safety
/// The planner's state, a table of it, and what it is grouped by.
pub unsafe fn count(root: *mut PlannerInfo, table: *mut RelOptInfo, grouping: &Grouping) -> Option<f64> {
    let layout = grouping.id.layout()?;
    // SAFETY: as above.
    unsafe {
        let rows = (*table).tuples.max(1.0);
        if let Groups::Recurring(count) = grouping.into {
            return Some(count.min(rows));
        }
        let ids = times::sample(root, grouping.id.id);
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

/// Whether the query has bounds for a column of the table.
///
/// # Safety
/// The planner's state, a table of it, and what it is grouped by.
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
