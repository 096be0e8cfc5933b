//! Bounds of ranges of time for the planner, which replaces comparisons of an ID's time by comparisons of the ID. Those
//! for users are in [`super::range`]. Each function exists for the layout of the database and, with `_in`, for a layout
//! that the caller names.
//!
//! For a range that begins at an instant, `id >= min_id` is better than `id > max_id_before`, which accepts the same
//! IDs: PostgreSQL does not know that no number lies between the two bounds, and would also read the partition that
//! ends at that instant.
//!
//! A `timestamp` or a `date` is converted as PostgreSQL's operators do that compare it with a `timestamptz`: by the
//! session's time zone, and without an error.

use super::range::{max_id, max_id_before};
use crate::postgres::given::Given;
use crate::postgres::time::timestamptz::{from_date, from_timestamp, to_unix};
use crate::postgres::value::{self, KnownZones};
use pgrx::AnyArray;
use pgrx::pg_sys::FunctionCallInfo;
use snowflake_core::Layout;
use snowflake_core::inverse::{Span, Value, Way};
use std::convert::identity;

export!(
    snowflake_min_id_of_timestamptz_wrapper as snowflake_min_id_of_timestamptz,
    snowflake_min_id_of_timestamptz_in_wrapper as snowflake_min_id_of_timestamptz_in,
    snowflake_min_id_of_timestamp_wrapper as snowflake_min_id_of_timestamp,
    snowflake_min_id_of_timestamp_in_wrapper as snowflake_min_id_of_timestamp_in,
    snowflake_min_id_of_date_wrapper as snowflake_min_id_of_date,
    snowflake_min_id_of_date_in_wrapper as snowflake_min_id_of_date_in,
    snowflake_max_id_of_timestamp_wrapper as snowflake_max_id_of_timestamp,
    snowflake_max_id_of_timestamp_in_wrapper as snowflake_max_id_of_timestamp_in,
    snowflake_max_id_of_date_wrapper as snowflake_max_id_of_date,
    snowflake_max_id_of_date_in_wrapper as snowflake_max_id_of_date_in,
    snowflake_max_id_before_timestamp_wrapper as snowflake_max_id_before_timestamp,
    snowflake_max_id_before_timestamp_in_wrapper as snowflake_max_id_before_timestamp_in,
    snowflake_max_id_before_date_wrapper as snowflake_max_id_before_date,
    snowflake_max_id_before_date_in_wrapper as snowflake_max_id_before_date_in,
    snowflake_earliest_wrapper as snowflake_earliest,
    snowflake_latest_wrapper as snowflake_latest,
    snowflake_sorted_wrapper as snowflake_sorted,
);

/// The lowest ID of the layout whose time is at or after a `timestamptz`. NULL where there is none, as the highest
/// `bigint` is an ID in a layout of 63 bits.
fn min_id(layout: &Layout, at: i64) -> Option<i64> {
    layout.lowest_id_from(to_unix(at))
}

of_both_layouts! {
    snowflake_min_id_of_timestamptz, snowflake_min_id_of_timestamptz_in: min_id(identity(i64)) -> Option<i64>;
    snowflake_min_id_of_timestamp, snowflake_min_id_of_timestamp_in: min_id(from_timestamp(i64)) -> Option<i64>;
    snowflake_min_id_of_date, snowflake_min_id_of_date_in: min_id(from_date(i32)) -> Option<i64>;
    snowflake_max_id_of_timestamp, snowflake_max_id_of_timestamp_in: max_id(from_timestamp(i64)) -> i64;
    snowflake_max_id_of_date, snowflake_max_id_of_date_in: max_id(from_date(i32)) -> i64;
    snowflake_max_id_before_timestamp, snowflake_max_id_before_timestamp_in: max_id_before(from_timestamp(i64)) -> i64;
    snowflake_max_id_before_date, snowflake_max_id_before_date_in: max_id_before(from_date(i32)) -> i64;
}

/// The times that a condition accepts, by its way, what it compares with, and the arguments of the steps; `None` where that is NULL, and so is what
/// the condition returns.
fn accepted(way: Option<Given>, call: FunctionCallInfo) -> Option<Span> {
    let Ok(way) = way?.read().parse::<Way>() else { return Some(Span::default()) };
    let mut values = value::arguments(call).into_iter().skip(1);
    let compared = values.next()?;
    if compared.iter().all(|value| *value == Value::Null) {
        return None;
    }
    let arguments: Vec<Value> = values.map(|mut argument| argument.pop().unwrap_or(Value::Null)).collect();
    Some(way.span(&compared, &arguments, &KnownZones))
}

#[pgrx::pg_extern(sql = "")]
fn snowflake_earliest(way: Option<Given>, call: FunctionCallInfo) -> Option<i64> {
    accepted(way, call).map(|span| span.from.unwrap_or(i64::MIN))
}

#[pgrx::pg_extern(sql = "")]
fn snowflake_latest(way: Option<Given>, call: FunctionCallInfo) -> Option<i64> {
    accepted(way, call).map(|span| span.until.unwrap_or(i64::MAX))
}

/// The elements of a list of times that are not NULL, each once, in their order: what an index is read by, one after the other.
#[pgrx::pg_extern(sql = "")]
fn snowflake_sorted(values: AnyArray) -> AnyArray {
    value::sorted(values)
}
