//! What a database has on record, and what an administrator can do about it: sql/40-reservation.sql.

use crate::errors::Error;
use crate::reservation::{register, rewind};
use crate::time::timestamptz;
use crate::{database, settings, shared};
use pgrx::prelude::*;

/// The layout that this server's settings make, in full.
#[pg_extern(sql = "")]
fn snowflake_server_layout() -> String {
    settings::layout().to_string()
}

/// The layout that this database has on record, in full.
#[pg_extern(sql = "")]
fn snowflake_database_layout() -> String {
    database::layout().to_string()
}

/// For the install script: puts the server's layout on record, and has the server ready to make IDs, where it can make any.
#[pg_extern(sql = "")]
fn snowflake_prepare() {
    let prepared = database::record_layout().and_then(|()| {
        if !shared::exists() {
            return Ok(());
        }
        match register::Register::open()? {
            Some(register) => {
                register.close();
                Ok(())
            }
            None => register::create(0),
        }
    });
    prepared.unwrap_or_else(|error| error.raise());
}

/// Makes the server's layout that of the database, where no ID was made in it yet, or its record is none.
#[pg_extern(sql = "")]
fn snowflake_adopt_layout() -> String {
    let adopted = match (database::has_ids(), database::read_layout()) {
        (Ok(true), Ok(_)) => Err(Error::LayoutInUse),
        (Ok(_), _) => database::record_layout(),
        (Err(error), _) => Err(error),
    };
    adopted.unwrap_or_else(|error| error.raise());
    snowflake_server_layout()
}

/// Takes the line and the reservation back to just above an ID.
#[pg_extern(sql = "")]
fn snowflake_rewind(last_id: i64) -> i64 {
    match rewind::rewind(settings::layout(), last_id) {
        Ok(from) => timestamptz::to_datum(from),
        Err(error) => error.raise(),
    }
}
