//! The lowest and highest IDs of a range of time: each a number for every `timestamptz`, also for those outside the
//! layout's time and for the infinite ones. Each function exists for the layout of the database and, with `_in`, for a
//! layout that the caller names. Those for the planner are in [`super::bounds`].

use crate::postgres::time::timestamptz::to_unix;
use snowflake_core::Layout;
use std::convert::identity;

export!(
    snowflake_min_id_wrapper as snowflake_min_id,
    snowflake_min_id_in_wrapper as snowflake_min_id_in,
    snowflake_max_id_wrapper as snowflake_max_id,
    snowflake_max_id_in_wrapper as snowflake_max_id_in,
    snowflake_max_id_before_wrapper as snowflake_max_id_before,
    snowflake_max_id_before_in_wrapper as snowflake_max_id_before_in,
);

/// The lowest ID of the layout whose time is at or after a `timestamptz`; the highest `bigint` where there is none,
/// which is also the last ID of a layout of 63 bits.
fn min_id(layout: &Layout, at: i64) -> i64 {
    layout.lowest_id_from(to_unix(at)).unwrap_or(i64::MAX)
}

/// The highest ID of the layout whose time is at or before a `timestamptz`; -1 where there is none.
pub fn max_id(layout: &Layout, at: i64) -> i64 {
    layout.highest_id_until(to_unix(at))
}

/// The highest ID of the layout whose time is before a `timestamptz`; -1 where there is none.
pub fn max_id_before(layout: &Layout, at: i64) -> i64 {
    layout.highest_id_before(to_unix(at))
}

of_both_layouts! {
    snowflake_min_id, snowflake_min_id_in: min_id(identity(i64)) -> i64;
    snowflake_max_id, snowflake_max_id_in: max_id(identity(i64)) -> i64;
    snowflake_max_id_before, snowflake_max_id_before_in: max_id_before(identity(i64)) -> i64;
}
