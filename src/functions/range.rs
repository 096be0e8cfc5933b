//! The lowest and highest IDs of a range of time. For an infinite instant, the result is at or beyond the last ID in
//! that direction. Each function exists for the layout of the database and, with `_in`, for a layout that the caller
//! names.

use crate::errors::Error;
use crate::time::timestamptz::Instant;
use crate::{database, named_layouts};
use pgrx::prelude::*;
use snowflake_core::{Layout, OutOfRange, UnixMicros};

export!(
    snowflake_min_id_wrapper as snowflake_min_id,
    snowflake_min_id_in_wrapper as snowflake_min_id_in,
    snowflake_max_id_wrapper as snowflake_max_id,
    snowflake_max_id_in_wrapper as snowflake_max_id_in,
    snowflake_max_id_before_wrapper as snowflake_max_id_before,
    snowflake_max_id_before_in_wrapper as snowflake_max_id_before_in,
);

type Find = fn(&Layout, UnixMicros) -> Result<i64, OutOfRange>;

/// The result of `find`; for `-infinity` it is `below_all`, and for `infinity` the highest `bigint`.
fn bound(layout: &Layout, timestamptz: i64, find: Find, below_all: i64) -> i64 {
    match Instant::from_datum(timestamptz) {
        Instant::Past => below_all,
        Instant::Future => i64::MAX,
        Instant::At(instant) => find(layout, instant).unwrap_or_else(|_| Error::Bound(timestamptz).raise_in(layout)),
    }
}

/// The lowest ID of the layout whose time is at or after a `timestamptz`.
pub fn min_id(layout: &Layout, at: i64) -> i64 {
    bound(layout, at, Layout::lowest_id_from, 0)
}

fn max_id(layout: &Layout, at: i64) -> i64 {
    bound(layout, at, Layout::highest_id_until, -1)
}

fn max_id_before(layout: &Layout, at: i64) -> i64 {
    bound(layout, at, Layout::highest_id_before, -1)
}

#[pg_extern(sql = "")]
fn snowflake_min_id(at: i64) -> i64 {
    min_id(database::layout(), at)
}

#[pg_extern(sql = "")]
fn snowflake_min_id_in(at: i64, layout: &str) -> i64 {
    min_id(&named_layouts::find(layout), at)
}

#[pg_extern(sql = "")]
fn snowflake_max_id(at: i64) -> i64 {
    max_id(database::layout(), at)
}

#[pg_extern(sql = "")]
fn snowflake_max_id_in(at: i64, layout: &str) -> i64 {
    max_id(&named_layouts::find(layout), at)
}

#[pg_extern(sql = "")]
fn snowflake_max_id_before(at: i64) -> i64 {
    max_id_before(database::layout(), at)
}

#[pg_extern(sql = "")]
fn snowflake_max_id_before_in(at: i64, layout: &str) -> i64 {
    max_id_before(&named_layouts::find(layout), at)
}
