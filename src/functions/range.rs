//! The IDs that bound a range of time: sql/20-range.sql. An infinite instant gives a bound beyond all IDs.

use crate::errors::Error;
use crate::settings;
use crate::timestamptz::Instant;
use pgrx::prelude::*;
use snowflake_core::{Layout, OutOfRange, UnixMicros};

type Find = fn(&Layout, UnixMicros) -> Result<i64, OutOfRange>;

/// What `find` finds; below or above all IDs where the instant is infinite.
fn bound(timestamptz: i64, find: Find, below_all: i64) -> i64 {
    match Instant::from_datum(timestamptz) {
        Instant::Past => below_all,
        Instant::Future => i64::MAX,
        Instant::At(instant) => find(settings::layout(), instant).unwrap_or_else(|_| Error::Bound(timestamptz).raise()),
    }
}

#[pg_extern(sql = "")]
fn snowflake_min_id(at: i64) -> i64 {
    bound(at, Layout::lowest_id_from, 0)
}

#[pg_extern(sql = "")]
fn snowflake_max_id(at: i64) -> i64 {
    bound(at, Layout::highest_id_until, -1)
}

#[pg_extern(sql = "")]
fn snowflake_max_id_before(at: i64) -> i64 {
    bound(at, Layout::highest_id_before, -1)
}
