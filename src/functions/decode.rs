//! Reading IDs, and making them from their parts: sql/10-decode.sql.

use crate::errors::Error;
use crate::settings;
use crate::timestamptz::{self, Instant};
use pgrx::prelude::*;
use snowflake_core::layout::EncodeError;
use snowflake_core::{Field, NotAnId, Parts};

/// The value, or the error that ends the call.
fn or_raise<T>(result: Result<T, NotAnId>) -> T {
    result.unwrap_or_else(|error| Error::from(error).raise())
}

fn field(id: i64, field: Field) -> Option<i32> {
    // At most 31 bits wide.
    or_raise(settings::layout().field(id, field)).map(|value| value as i32)
}

#[pg_extern(sql = "")]
fn snowflake_timestamp(id: i64) -> i64 {
    timestamptz::to_datum(or_raise(settings::layout().timestamp(id)))
}

#[pg_extern(sql = "")]
fn snowflake_datacenter(id: i64) -> Option<i32> {
    field(id, Field::Datacenter)
}

#[pg_extern(sql = "")]
fn snowflake_worker(id: i64) -> Option<i32> {
    field(id, Field::Worker)
}

#[pg_extern(sql = "")]
fn snowflake_sequence(id: i64) -> Option<i32> {
    field(id, Field::Sequence)
}

/// Not STRICT, since a layout may lack the datacenter; NULL where the timestamp or the sequence is.
#[pg_extern(sql = "")]
fn snowflake_encode(
    timestamp: Option<i64>,
    worker_id: Option<i32>,
    sequence: Option<i32>,
    datacenter_id: Option<i32>,
) -> Option<i64> {
    let (timestamp, sequence) = (timestamp?, sequence?);
    match encode(timestamp, worker_id, sequence, datacenter_id) {
        Ok(id) => Some(id),
        Err(error) => error.raise(),
    }
}

fn encode(timestamp: i64, worker: Option<i32>, sequence: i32, datacenter: Option<i32>) -> Result<i64, Error> {
    let Instant::At(instant) = Instant::from_datum(timestamp) else {
        return Err(Error::Infinite);
    };
    let part = |field, value: i32| u32::try_from(value).map_err(|_| Error::NegativePart(field, value));
    let parts = Parts {
        timestamp: instant,
        datacenter: datacenter.map(|value| part(Field::Datacenter, value)).transpose()?,
        worker: worker.map(|value| part(Field::Worker, value)).transpose()?,
        sequence: part(Field::Sequence, sequence)?,
    };
    settings::layout().encode(&parts).map_err(|error| match error {
        EncodeError::Time(_) => Error::Time(timestamp),
        EncodeError::Worker(error) => Error::Part(error),
    })
}
