//! Something that is tried, and undone.

use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use std::panic::AssertUnwindSafe;
use std::ptr;

/// An error that ended what was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptError {
    /// Its SQLSTATE.
    pub code: PgSqlErrorCode,
    /// Its message.
    pub message: String,
    /// Its detail.
    pub detail: Option<String>,
}

/// Runs this in a subtransaction, which is rolled back whatever came of it. A cancel is no failure of what is tried: it goes on to the caller, once
/// the subtransaction is rolled back, as he may catch it.
pub fn undone<T>(work: impl FnOnce() -> T) -> Result<T, AttemptError> {
    run(work, |_| false, |_| true)
}

/// Runs this in a subtransaction, which is rolled back where it fails by one of these errors, or where its result is no success. Another
/// error goes on to the caller.
pub fn attempted<T>(
    work: impl FnOnce() -> T,
    is_success: impl FnOnce(&T) -> bool,
    errors: &[PgSqlErrorCode],
) -> Result<T, AttemptError> {
    run(work, is_success, |code| errors.contains(&code))
}

fn run<T>(
    work: impl FnOnce() -> T,
    is_kept: impl FnOnce(&T) -> bool,
    is_failure: impl FnOnce(PgSqlErrorCode) -> bool,
) -> Result<T, AttemptError> {
    // SAFETY: what a subtransaction changes in this process beside what its end puts back are these two, which are set back below.
    let (context, owner) = unsafe {
        let kept = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(ptr::null());
        pg_sys::MemoryContextSwitchTo(kept.0);
        kept
    };
    let caught = |caught| Err(Box::new(caught));
    let result = PgTryBuilder::new(AssertUnwindSafe(|| Ok(work()))).catch_others(caught).execute();
    // SAFETY: ends the subtransaction that was begun above, and no other: what `work` began, it has ended, or the error has.
    unsafe {
        if result.as_ref().is_ok_and(is_kept) {
            pg_sys::ReleaseCurrentSubTransaction();
        } else {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
    }
    result.map_err(|caught| match (failure(&caught, is_failure), *caught) {
        (Some(failure), _) => failure,
        // It has left PostgreSQL's stack of errors, and so is raised anew.
        (None, CaughtError::PostgresError(report)) => CaughtError::ErrorReport(report).rethrow(),
        (None, caught) => caught.rethrow(),
    })
}

/// What an error says of what was tried; `None` where it is of something else.
fn failure(caught: &CaughtError, is_failure: impl FnOnce(PgSqlErrorCode) -> bool) -> Option<AttemptError> {
    let (CaughtError::PostgresError(report) | CaughtError::ErrorReport(report)) = caught else { return None };
    let failure = AttemptError {
        code: report.sql_error_code(),
        message: report.message().to_owned(),
        detail: report.detail().map(str::to_owned),
    };
    (failure.code != PgSqlErrorCode::ERRCODE_QUERY_CANCELED && is_failure(failure.code)).then_some(failure)
}
