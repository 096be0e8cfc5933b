//! Reading the parts of an ID, and composing an ID from parts. Each function exists for the layout of the database and,
//! with `_in`, for a layout that the caller names.

use crate::errors::Error;
use crate::errors::values::ValueError;
use crate::postgres::given::Given;
use crate::postgres::time::timestamptz::{self, Instant};
use crate::record;
use crate::sql::named_layouts;
use pgrx::prelude::*;
use snowflake_core::layout::EncodeError;
use snowflake_core::{Field, Layout, NotAnId, Parts};
use std::convert::identity;

export!(
    timestamp_at_once as snowflake_timestamp,
    snowflake_timestamp_in_wrapper as snowflake_timestamp_in,
    datacenter_at_once as snowflake_datacenter,
    snowflake_datacenter_in_wrapper as snowflake_datacenter_in,
    worker_at_once as snowflake_worker,
    snowflake_worker_in_wrapper as snowflake_worker_in,
    sequence_at_once as snowflake_sequence,
    snowflake_sequence_in_wrapper as snowflake_sequence_in,
    snowflake_encode_wrapper as snowflake_encode,
    snowflake_encode_in_wrapper as snowflake_encode_in,
);

/// The value; raises the error.
#[inline]
fn or_raise<T>(result: Result<T, NotAnId>, layout: &Layout) -> T {
    result.unwrap_or_else(|error| Error::from(error).raise_in(layout))
}

#[inline]
fn timestamp(layout: &Layout, id: i64) -> i64 {
    timestamptz::to_datum(or_raise(layout.timestamp(id), layout))
}

#[inline]
fn datacenter(layout: &Layout, id: i64) -> Option<i32> {
    field(layout, id, Field::Datacenter)
}

#[inline]
fn worker(layout: &Layout, id: i64) -> Option<i32> {
    field(layout, id, Field::Worker)
}

#[inline]
fn sequence(layout: &Layout, id: i64) -> Option<i32> {
    field(layout, id, Field::Sequence)
}

#[inline]
fn field(layout: &Layout, id: i64, field: Field) -> Option<i32> {
    // At most 31 bits wide.
    or_raise(layout.field(id, field), layout).map(|value| value as i32)
}

/// Parts of an ID by the layout of the database, for each of a million rows. These have no guard of pgrx's, which takes longer than the rest:
/// nothing here panics or raises an error. The function that does has one.
macro_rules! at_once {
    ($($name:ident or $function:ident: |$layout:ident, $id:ident| $part:expr;)+) => {
        $(
            extern "C-unwind" fn $name(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
                // SAFETY: PostgreSQL's call of a STRICT function of one `bigint`.
                unsafe {
                    let $id = (*(*call).args.as_ptr()).value.value() as i64;
                    match record::layout_at_once().and_then(|$layout| $part) {
                        Some(part) => part.into(),
                        None => $function(call),
                    }
                }
            }
        )+
    };
}

/// A field that the layout has.
#[inline]
fn field_at_once(layout: &Layout, id: i64, field: Field) -> Option<i32> {
    layout.field(id, field).ok()?.map(|value| value as i32)
}

at_once! {
    timestamp_at_once or snowflake_timestamp_wrapper: |layout, id| Some(timestamptz::to_datum(layout.timestamp(id).ok()?));
    datacenter_at_once or snowflake_datacenter_wrapper: |layout, id| field_at_once(layout, id, Field::Datacenter);
    worker_at_once or snowflake_worker_wrapper: |layout, id| field_at_once(layout, id, Field::Worker);
    sequence_at_once or snowflake_sequence_wrapper: |layout, id| field_at_once(layout, id, Field::Sequence);
}

of_both_layouts! {
    snowflake_timestamp, snowflake_timestamp_in: timestamp(identity(i64)) -> i64;
    snowflake_datacenter, snowflake_datacenter_in: datacenter(identity(i64)) -> Option<i32>;
    snowflake_worker, snowflake_worker_in: worker(identity(i64)) -> Option<i32>;
    snowflake_sequence, snowflake_sequence_in: sequence(identity(i64)) -> Option<i32>;
}

/// Not STRICT, since a layout may have no datacenter. NULL if the timestamp or the sequence is NULL.
#[pg_extern(sql = "")]
fn snowflake_encode(
    timestamp: Option<i64>,
    worker_id: Option<i32>,
    sequence: Option<i32>,
    datacenter_id: Option<i32>,
) -> Option<i64> {
    Some(encode(record::layout(), timestamp?, worker_id, sequence?, datacenter_id))
}

/// As [`snowflake_encode`]; also NULL if the layout is. The sequence may be NULL if the layout has none.
#[pg_extern(sql = "")]
fn snowflake_encode_in(
    timestamp: Option<i64>,
    worker_id: Option<i32>,
    sequence: Option<i32>,
    datacenter_id: Option<i32>,
    layout: Option<Given>,
) -> Option<i64> {
    let layout = named_layouts::find(layout?);
    let sequence = match sequence {
        None if layout.max(Field::Sequence) == 0 => 0,
        sequence => sequence?,
    };
    Some(encode(&layout, timestamp?, worker_id, sequence, datacenter_id))
}

fn encode(layout: &Layout, timestamp: i64, worker: Option<i32>, sequence: i32, datacenter: Option<i32>) -> i64 {
    let try_encode = || {
        let Instant::At(instant) = Instant::from_datum(timestamp) else {
            return Err(ValueError::Infinite);
        };
        let part = |field, value: i32| u32::try_from(value).map_err(|_| ValueError::NegativePart(field, value));
        let parts = Parts {
            timestamp: instant,
            datacenter: datacenter.map(|value| part(Field::Datacenter, value)).transpose()?,
            worker: worker.map(|value| part(Field::Worker, value)).transpose()?,
            sequence: part(Field::Sequence, sequence)?,
        };
        layout.encode(&parts).map_err(|error| match error {
            EncodeError::Time(_) => ValueError::Time(timestamp),
            EncodeError::Field(error) => ValueError::Part(error),
        })
    };
    try_encode().unwrap_or_else(|error| Error::from(error).raise_in(layout))
}
