//! The errors of `snowflake_preflight()`: arguments that mean nothing. Requirements that cannot be met are rows of its result.

use super::report::error;
use crate::postgres::time::timestamptz;
use crate::postgres::wording::sentence;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use snowflake_core::{Layout, LayoutError};

/// The most keys that one call checks.
pub const MAX_KEYS: usize = 10_000;

/// Why nothing can be checked.
#[derive(Clone, Debug)]
pub enum PreflightError {
    /// A number must be 1 or more: this argument, and its value.
    TooFew(&'static str, i32),
    /// The rate is no number of IDs, or negative.
    Rate(f64),
    /// The layout cannot begin at this `timestamptz`.
    Epoch(i64, LayoutError),
    /// `keys` has a NULL.
    NullKey,
    /// `keys` has so many, more than [`MAX_KEYS`].
    TooManyKeys(usize),
}

impl PreflightError {
    pub(super) fn report(self, layout: &Layout) -> ErrorReport {
        let invalid = |message: &str| error(ERRCODE_INVALID_PARAMETER_VALUE, message);
        match self {
            Self::TooFew(argument, value) => invalid(&format!("{argument} must be at least 1: {value}"))
                .set_hint("Leave it out, or NULL, if it is not known."),
            Self::Rate(value) => invalid(&format!("ids_per_second must be a number above 0: {value}")).set_hint(
                "Give the IDs that the busiest server makes in a second, or leave it out if that is not known.",
            ),
            Self::Epoch(epoch, problem) => {
                invalid(&format!("the layout cannot begin at {}", timestamptz::display(epoch)))
                    .set_detail(format!("{} The layout is \"{layout}\".", sentence(&problem.to_string())))
                    .set_hint("Give an epoch from 1970 on, such as '2024-01-01 00:00+00', or a narrower timestamp.")
            }
            Self::NullKey => error(ERRCODE_NULL_VALUE_NOT_ALLOWED, "keys must not have a NULL")
                .set_hint("For example: SELECT * FROM snowflake_preflight(keys => '{orders, customers}');"),
            Self::TooManyKeys(count) => error(ERRCODE_PROGRAM_LIMIT_EXCEEDED, &format!("keys has {count} tables"))
                .set_detail(format!("One call checks at most {MAX_KEYS} keys."))
                .set_hint("Check them in several calls."),
        }
    }
}
