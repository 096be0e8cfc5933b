//! What a database has on record about its IDs, and what an administrator can change.

use crate::errors::record::RecordError;
use crate::postgres::time::{clock, timestamptz};
use crate::record::{self, rights};
use crate::reservation::register::Register;
use crate::reservation::{creation, rewind};
use crate::{settings, shared};
use pgrx::prelude::*;

export!(
    snowflake_server_layout_wrapper as snowflake_server_layout,
    snowflake_database_layout_wrapper as snowflake_database_layout,
    snowflake_prepare_wrapper as snowflake_prepare,
    snowflake_set_privileges_wrapper as snowflake_set_privileges,
    snowflake_adopt_layout_wrapper as snowflake_adopt_layout,
    snowflake_rewind_wrapper as snowflake_rewind,
);

/// The layout that this server is configured with, in full notation.
#[pg_extern(sql = "")]
fn snowflake_server_layout() -> String {
    settings::layout().to_string()
}

/// The layout that this database has on record, in full notation.
#[pg_extern(sql = "")]
fn snowflake_database_layout() -> String {
    record::layout().to_string()
}

/// Called by the install script: records the server's layout and, if the library is preloaded, creates the replication
/// origin of the reservation.
#[pg_extern(sql = "")]
fn snowflake_prepare() {
    let recorded = record::record_layout().and_then(|()| record::record_since(clock::now()));
    let prepared = recorded.and_then(|()| {
        if !shared::exists() {
            return Ok(());
        }
        match Register::open()? {
            Some(_) => Ok(()),
            None => creation::create(0),
        }
    });
    prepared.unwrap_or_else(|error| error.raise());
}

/// Called at the end of the install script, and of that of an update: makes privileges independent of default privileges.
#[pg_extern(sql = "")]
fn snowflake_set_privileges() -> Result<(), spi::Error> {
    rights::set()
}

/// Records the server's layout as that of the database. Refused if IDs were made in the database and the layout on
/// record is valid.
#[pg_extern(sql = "")]
fn snowflake_adopt_layout() -> String {
    let adopted = match (record::has_ids(), record::read_layout()) {
        (Ok(true), Ok(_)) => Err(RecordError::LayoutInUse.into()),
        (Ok(_), _) => record::record_layout(),
        (Err(error), _) => Err(error),
    };
    adopted.unwrap_or_else(|error| error.raise());
    snowflake_server_layout()
}

/// Takes the line and the reservation back to just after an ID; returns the time from which IDs are made.
#[pg_extern(sql = "")]
fn snowflake_rewind(last_id: i64) -> i64 {
    match rewind::rewind(settings::layout(), last_id) {
        Ok(from) => timestamptz::to_datum(from),
        Err(error) => error.raise(),
    }
}
