//! Errors of values that callers give: numbers that are no IDs, texts, times, layouts.

use super::report::{error, outside};
use crate::postgres::wording::{layout_hint, sentence};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgSqlErrorCode::*;
use snowflake_core::notation::NotationError;
use snowflake_core::quote::shortened;
use snowflake_core::text::{FORMS, TextError};
use snowflake_core::{Field, FieldError, Layout, NotAnId};

/// The hint about numbers that are no IDs.
const LEAVE_OUT: &str = "Leave such numbers out, for example with WHERE id >= 0.";

/// Why a value cannot be used.
#[derive(Clone, Debug)]
pub enum ValueError {
    /// A negative number of IDs is asked for.
    NegativeCount(i32),
    /// The text is no layout.
    NotALayout(String, NotationError),
    /// There is no text form of that name.
    NoSuchForm(String),
    /// The number is negative, and has no text.
    NoText(i64),
    /// The text is no ID in the form.
    NotInForm {
        /// The text.
        text: String,
        /// The form's name.
        form: &'static str,
        /// The problem.
        problem: TextError,
    },
    /// The number is no ID of the layout.
    NotAnId(NotAnId),
    /// The time of an ID to be made, a finite `timestamptz`, lies outside the layout's time.
    Time(i64),
    /// `infinity` in place of an instant.
    Infinite,
    /// A worker, datacenter or sequence that cannot stand in an ID.
    Part(FieldError),
    /// A negative worker, datacenter or sequence.
    NegativePart(Field, i32),
}

impl From<NotAnId> for ValueError {
    fn from(error: NotAnId) -> Self {
        Self::NotAnId(error)
    }
}

impl ValueError {
    pub(super) fn report(self, layout: &Layout) -> ErrorReport {
        match self {
            Self::NegativeCount(count) => {
                error(ERRCODE_INVALID_PARAMETER_VALUE, &format!("count must not be negative: {count}"))
                    .set_hint("Ask for 0 or more IDs.")
            }
            Self::NotALayout(text, problem) => {
                error(ERRCODE_INVALID_PARAMETER_VALUE, &format!("\"{}\" is not a layout", shortened(&text)))
                    .set_detail(sentence(&problem.to_string()))
                    .set_hint(layout_hint())
            }
            Self::NoSuchForm(name) => {
                error(ERRCODE_INVALID_PARAMETER_VALUE, &format!("\"{}\" is not a text form", shortened(&name)))
                    .set_hint(format!("Use one of {}.", names_of_forms()))
            }
            Self::NoText(id) => error(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, &format!("{id} has no text form"))
                .set_detail(format!("IDs range from 0 to {}.", i64::MAX))
                .set_hint(LEAVE_OUT),
            Self::NotInForm { text, form, problem } => {
                let code = match problem {
                    TextError::TooLarge => ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                    _ => ERRCODE_INVALID_TEXT_REPRESENTATION,
                };
                error(code, &format!("\"{}\" is not a snowflake ID in the form {form}", shortened(&text)))
                    .set_detail(sentence(&problem.to_string()))
                    .set_hint(format!("Give the form that it was written in, one of {}.", names_of_forms()))
            }
            Self::NotAnId(NotAnId(id)) => {
                error(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, &format!("{id} is not a snowflake ID"))
                    .set_detail(format!("IDs of the layout \"{layout}\" range from 0 to {}.", layout.max_id()))
                    .set_hint(LEAVE_OUT)
            }
            Self::Time(instant) => outside(instant, layout),
            Self::Infinite => error(ERRCODE_DATETIME_FIELD_OVERFLOW, "an ID cannot have an infinite time")
                .set_hint("Use a finite timestamp."),
            Self::Part(part) => {
                let code = match part {
                    FieldError::Missing(_) => ERRCODE_NULL_VALUE_NOT_ALLOWED,
                    FieldError::NoSuchField(_) => ERRCODE_INVALID_PARAMETER_VALUE,
                    FieldError::TooHigh { .. } => ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                };
                error(code, &part.to_string()).set_detail(format!("The layout is \"{layout}\"."))
            }
            Self::NegativePart(field, value) => {
                error(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, &format!("{field} must not be negative: {value}"))
                    .set_detail(format!("The layout is \"{layout}\"."))
            }
        }
    }
}

fn names_of_forms() -> String {
    FORMS.iter().map(|form| form.name).collect::<Vec<_>>().join(", ")
}
