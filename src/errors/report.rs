//! Parts that several errors have in common.

use crate::postgres::encoding;
use crate::postgres::time::timestamptz;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::Layout;

/// An error with this message.
pub fn error(code: PgSqlErrorCode, message: &str) -> ErrorReport {
    ErrorReport::new(code, encoding::shown(message), "")
}

/// A finite `timestamptz` that no ID can have.
pub fn outside(instant: i64, layout: &Layout) -> ErrorReport {
    let message = format!("{} is outside the time of snowflake IDs", timestamptz::display(instant));
    ErrorReport::new(PgSqlErrorCode::ERRCODE_DATETIME_FIELD_OVERFLOW, message, "").set_detail(times(layout))
}

/// Which times IDs can have, as a sentence.
pub fn times(layout: &Layout) -> String {
    format!(
        "IDs of the layout \"{layout}\" have times from {} to before {}.",
        timestamptz::display(timestamptz::to_datum(layout.epoch())),
        timestamptz::display(timestamptz::to_datum(layout.end()))
    )
}

/// What is said where nothing is known.
pub const NO_ANSWER: &str = "The registry has not answered yet.";

/// What is known of the registry's trouble.
pub fn or_no_answer(trouble: Option<String>) -> String {
    trouble.unwrap_or_else(|| NO_ANSWER.to_owned())
}
