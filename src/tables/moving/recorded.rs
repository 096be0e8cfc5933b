//! A default that stands on record as text: whether it is an expression that PostgreSQL understands, and nothing more.

use crate::postgres::encoding;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use std::ptr;

/// Has PostgreSQL read the expression, which calls nothing. Otherwise says what is wrong with it. After that, there is nothing to do
/// but to raise an error.
pub fn check(_client: &SpiClient, expression: &str) -> Result<(), String> {
    let source = encoding::statement(expression);
    let prepare = move || {
        let options = pg_sys::SPIPrepareOptions {
            parserSetup: None,
            parserSetupArg: ptr::null_mut(),
            // One expression or several, never a statement.
            parseMode: pg_sys::RawParseMode::RAW_PARSE_PLPGSQL_EXPR,
            cursorOptions: 0,
        };
        // SAFETY: SPI is connected, as there is a client; the text is NUL-terminated, and the options outlive the call. A
        // plan has one source for each statement, and a source of an expression describes its result.
        unsafe {
            let plan = pg_sys::SPI_prepare_extended(source.as_ptr(), &raw const options);
            if plan.is_null() {
                return Err("it cannot be read".to_owned());
            }
            let sources = pg_sys::SPI_plan_get_plan_sources(plan);
            let source = (*(*sources).elements).ptr_value.cast::<pg_sys::CachedPlanSource>();
            let columns = (*(*source).resultDesc).natts;
            pg_sys::SPI_freeplan(plan);
            if columns == 1 { Ok(()) } else { Err("it is not one expression".to_owned()) }
        }
    };
    let say = |error: CaughtError| match error {
        CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => Err(report.message().to_owned()),
        CaughtError::RustPanic { ereport, .. } => Err(ereport.message().to_owned()),
    };
    PgTryBuilder::new(prepare).catch_others(say).execute()
}
