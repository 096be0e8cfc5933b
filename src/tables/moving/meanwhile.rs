//! What others commit while a call waits for it or reads it. A table that is not locked yet can be dropped between two look-ups: then
//! it has no name any more, or a function of PostgreSQL's own fails that looks for it. Nothing here leaves a gap behind: it is read
//! again, or the call ends with an error that says what happened.

use super::rows::Unread;
use crate::errors::Error;
use crate::errors::moving::MovingError;
use crate::postgres::{catalog, encoding, snapshot};
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use std::panic::AssertUnwindSafe;

/// How often the catalogue is read again. Somebody who drops and creates without a pause is to be told of.
pub const ATTEMPTS: u32 = 20;

/// Reads the catalogue as it is now, until nothing of it is gone meanwhile.
pub fn read<T>(mut read: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 0..ATTEMPTS {
        let result = snapshot::latest(&mut read);
        if !matches!(result, Err(Error::Moving(MovingError::Changed(_)))) {
            return result;
        }
    }
    Err(gone())
}

/// Something was there, and is not any more.
pub fn gone() -> Error {
    MovingError::Changed(Vec::new()).into()
}

/// The error for what could not be read.
pub fn unread(problem: impl Into<Unread>) -> Error {
    match problem.into() {
        Unread::Gone => gone(),
        Unread::Query(error) => MovingError::Query(error.to_string()).into(),
    }
}

/// Does the work of a call on tables, whose names the errors have that say what others did to them meanwhile.
pub fn told<T>(tables: impl Iterator<Item = pg_sys::Oid>, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let named: Vec<(u32, String)> = tables.filter_map(|table| Some((table.to_u32(), name(table)?))).collect();
    let names: Vec<String> = named.iter().map(|(_, name)| name.clone()).collect();
    let before = changes();
    let ended = |caught: CaughtError| -> Result<T, Error> {
        // A function of PostgreSQL's own does not find what it was asked for, or a statement of ours does not find the names in it.
        let is_of_catalogue = matches!(&caught, CaughtError::PostgresError(report) if matches!(report.sql_error_code(),
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR | PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN | PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE));
        if is_of_catalogue && changes() != before {
            // After an error of PostgreSQL's, there is nothing to do but to raise one.
            Error::from(MovingError::Changed(names.clone())).raise();
        }
        caught.rethrow()
    };
    let result = PgTryBuilder::new(AssertUnwindSafe(work)).catch_others(ended).execute();
    result.map_err(|error| match error {
        Error::Moving(MovingError::Changed(_)) => MovingError::Changed(names.clone()).into(),
        Error::Moving(MovingError::NoSuchTable(oid)) => match named.iter().find(|(known, _)| *known == oid) {
            Some((_, name)) => MovingError::Dropped(name.clone()).into(),
            None => error,
        },
        error => error,
    })
}

/// How many messages about changes of the catalogue have come.
fn changes() -> u64 {
    // SAFETY: a variable of this process.
    unsafe { pg_sys::SharedInvalidMessageCounter }
}

/// Waits for others who move tables with this function: a row of the catalogue can be changed by one transaction only.
pub fn lock_function(function: pg_sys::Oid) {
    // SAFETY: any number may stand for the function. The end of the transaction releases the lock.
    unsafe { pg_sys::LockDatabaseObject(pg_sys::ProcedureRelationId, function, 0, pg_sys::AccessExclusiveLock as i32) };
}

/// The name of a relation as a statement writes it, if there is such a relation.
fn name(table: pg_sys::Oid) -> Option<String> {
    let (schema, name) = catalog::qualified_name(table)?;
    catalog::quoted_name(&schema, &name).map(|name| encoding::read_name(&name))
}
