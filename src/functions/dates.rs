//! The highest IDs at or before a `timestamp` or a `date`, and before one. For the planner, which replaces comparisons
//! of an ID's time with a `timestamp` or a `date` by comparisons of the ID. So they convert as PostgreSQL's operators for
//! such comparisons do: by the session's time zone, and without an error. Each function exists for the layout of the
//! database and, with `_in`, for a layout that the caller names.

use super::range::{max_id, max_id_before};
use crate::time::timestamptz::{from_date, from_timestamp};
use crate::{database, named_layouts};
use pgrx::prelude::*;

export!(
    snowflake_max_id_of_timestamp_wrapper as snowflake_max_id_of_timestamp,
    snowflake_max_id_of_timestamp_in_wrapper as snowflake_max_id_of_timestamp_in,
    snowflake_max_id_of_date_wrapper as snowflake_max_id_of_date,
    snowflake_max_id_of_date_in_wrapper as snowflake_max_id_of_date_in,
    snowflake_max_id_before_timestamp_wrapper as snowflake_max_id_before_timestamp,
    snowflake_max_id_before_timestamp_in_wrapper as snowflake_max_id_before_timestamp_in,
    snowflake_max_id_before_date_wrapper as snowflake_max_id_before_date,
    snowflake_max_id_before_date_in_wrapper as snowflake_max_id_before_date_in,
);

#[pg_extern(sql = "")]
fn snowflake_max_id_of_timestamp(at: i64) -> i64 {
    max_id(database::layout(), from_timestamp(at))
}

#[pg_extern(sql = "")]
fn snowflake_max_id_of_timestamp_in(at: i64, layout: &str) -> i64 {
    max_id(&named_layouts::find(layout), from_timestamp(at))
}

#[pg_extern(sql = "")]
fn snowflake_max_id_of_date(at: i32) -> i64 {
    max_id(database::layout(), from_date(at))
}

#[pg_extern(sql = "")]
fn snowflake_max_id_of_date_in(at: i32, layout: &str) -> i64 {
    max_id(&named_layouts::find(layout), from_date(at))
}

#[pg_extern(sql = "")]
fn snowflake_max_id_before_timestamp(at: i64) -> i64 {
    max_id_before(database::layout(), from_timestamp(at))
}

#[pg_extern(sql = "")]
fn snowflake_max_id_before_timestamp_in(at: i64, layout: &str) -> i64 {
    max_id_before(&named_layouts::find(layout), from_timestamp(at))
}

#[pg_extern(sql = "")]
fn snowflake_max_id_before_date(at: i32) -> i64 {
    max_id_before(database::layout(), from_date(at))
}

#[pg_extern(sql = "")]
fn snowflake_max_id_before_date_in(at: i32, layout: &str) -> i64 {
    max_id_before(&named_layouts::find(layout), from_date(at))
}
