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
use super::nodes::Expr;
use super::state::{Planner, Rel};
use super::{operators, times, versions};
use pgrx::prelude::*;
use snowflake_core::Field;
use snowflake_core::statistics::distinct;

const SECOND: f64 = 1e6;
const DAY: f64 = 86_400.0 * SECOND;
const YEAR: f64 = 365.25 * DAY;

/// What an expression of GROUP BY makes of an ID.
pub struct Grouping<'p> {
    id: IdTime<'p>,
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

impl<'p> Grouping<'p> {
    /// Reads an expression; `None` where it is something else.
    pub fn read(expression: Expr<'p>) -> Option<Self> {
        if let Some((id, field)) = functions::read(expression) {
            return Some(Self { id, into: Groups::Field(field) });
        }
        let call = expression.cast::<pg_sys::FuncExpr>()?;
        let mut arguments = call.args().iter();
        // OIDs as in PostgreSQL's pg_proc.dat.
        let (time, into) = match call.funcid().to_u32() {
            // date(timestamptz), date(timestamp)
            1178 | 2029 => (arguments.next()?, Groups::Lengths(DAY)),
            // date_trunc(text, timestamptz), the same with a time zone, date_trunc(text, timestamp)
            1217 | 1284 | 2020 => {
                let unit = arguments.next()?.text()?;
                (arguments.next()?, Groups::Lengths(length_of_unit(&unit)?))
            }
            // date_bin(interval, timestamptz, timestamptz), date_bin(interval, timestamp, timestamp)
            6178 | 6177 => {
                let length = length_of_interval(arguments.next()?)?;
                (arguments.next()?, Groups::Lengths(length))
            }
            // date_part(text, timestamptz), date_part(text, timestamp), and extract()
            1171 | 2021 | 6203 | 6202 => {
                let unit = arguments.next()?.text()?;
                (arguments.next()?, groups_of_part(&unit)?)
            }
            _ => return None,
        };
        Some(Self { id: time_of(time)?, into })
    }
}

/// The time of an ID, also one in another time zone.
fn time_of(mut expression: Expr<'_>) -> Option<IdTime<'_>> {
    if let Some(call) = expression.cast::<pg_sys::FuncExpr>() {
        match call.funcid().to_u32() {
            // timezone(text, timestamptz), timezone(interval, timestamptz)
            1159 | 1026 => expression = call.args().get(1)?,
            // timestamp(timestamptz)
            2027 => expression = call.args().get(0)?,
            _ => {}
        }
    }
    IdTime::read(expression)
}

/// The length of a constant interval in microseconds, where it is positive.
pub fn length_of_interval(expression: Expr<'_>) -> Option<f64> {
    let constant = expression.cast::<pg_sys::Const>()?;
    if constant.constisnull() || constant.consttype() != pg_sys::INTERVALOID {
        return None;
    }
    // SAFETY: a constant of this type that is not NULL points to the interval, which nobody changes.
    let interval = unsafe { constant.constvalue().cast_mut_ptr::<pg_sys::Interval>().read() };
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
pub fn is_about(expression: Expr<'_>, table: Rel<'_>) -> bool {
    Grouping::read(expression).is_some_and(|grouping| {
        let column = grouping.id.id.without_labels().cast::<pg_sys::Var>();
        column.is_some_and(|column| versions::table_of(column) == table.number() && column.levels_up() == 0)
    })
}

/// How many groups there are, by the statistics of the ID; `None` where there are none.
pub fn count<'p>(planner: Planner<'p>, table: Rel<'p>, grouping: &Grouping<'p>) -> Option<f64> {
    let layout = grouping.id.layout()?;
    let rows = table.row_count().max(1.0);
    let in_time = |length: f64| {
        let (first, last) = times::ends(planner, grouping.id.id, &layout)?;
        // Where the query wants a part of the table, that is a part of the time as well.
        let part = if is_bounded(table, grouping.id.id) { (table.expected_rows() / rows).clamp(0.0, 1.0) } else { 1.0 };
        Some((last - first) as f64 * part / length + 1.0)
    };
    let groups = match grouping.into {
        Groups::Field(Field::Timestamp) => in_time(layout.tick_length().0 as f64)?,
        Groups::Field(field) => {
            let ids = times::sample(planner, grouping.id.id);
            let values: Vec<u64> =
                ids.iter().filter_map(|&id| Some(u64::from(layout.field(id, field).ok()??))).collect();
            if values.is_empty() {
                return None;
            }
            distinct(&values, rows).min(layout.max(field) as f64 + 1.0)
        }
        Groups::Lengths(length) => in_time(length)?,
        Groups::Recurring(count) => count,
    };
    Some(groups.clamp(1.0, rows))
}

/// Whether the query has bounds for a column of the table.
fn is_bounded<'p>(table: Rel<'p>, column: Expr<'p>) -> bool {
    table.conditions().iter().any(|restriction| {
        restriction.clause().cast::<pg_sys::OpExpr>().is_some_and(|operation| {
            operators::bounds_ids(operation.opno().to_u32()) && operation.args().iter().any(|side| side.says(column))
        })
    })
}
