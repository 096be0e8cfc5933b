//! `snowflake_workers()`: the registry's records.

#![expect(clippy::type_complexity, reason = "pg_extern reads the columns from the signature")]

use crate::errors::Error;
use crate::errors::generator::GeneratorError;
use crate::errors::leases::LeaseError;
use crate::postgres::encoding;
use crate::postgres::time::timestamptz;
use crate::registry_process::lease;
use crate::registry_process::listing::{self, Row};
use crate::server::believed;
use crate::{settings, shared};
use pgrx::iter::TableIterator;
use pgrx::name;
use pgrx::prelude::*;
use snowflake_core::Field;
use snowflake_core::lease::WorkerNumber;

export!(snowflake_workers_wrapper as snowflake_workers);

#[pg_extern(sql = "")]
fn snowflake_workers() -> TableIterator<
    'static,
    (
        name!(worker_id, Option<i32>),
        name!(datacenter_id, Option<i32>),
        name!(state, &'static str),
        name!(granted_from, i64),
        name!(granted_until, i64),
        name!(host, String),
        name!(port, i32),
        name!(data_directory, String),
        name!(cluster_name, String),
        name!(system_identifier, i64),
        name!(is_this_server, bool),
    ),
> {
    let rows = listed().unwrap_or_else(|error| error.raise());
    let own = shared::transitions().lease.worker;
    let now = believed::now();
    TableIterator::new(rows.into_iter().map(move |Row { worker, is_owned, from, until, holder }| {
        let [worker_id, datacenter_id] = numbers(worker);
        let state = match is_owned {
            false => "given back",
            true if until <= now => "expired",
            true => "current",
        };
        (
            worker_id,
            datacenter_id,
            state,
            timestamptz::to_datum(from),
            timestamptz::to_datum(until),
            encoding::shown(&holder.host),
            i32::from(holder.port),
            encoding::shown(&holder.data_directory),
            encoding::shown(&holder.cluster_name),
            holder.system_identifier as i64,
            is_owned && own == Some(worker),
        )
    }))
}

/// The worker ID and the datacenter ID of a worker, as far as the layout has them.
pub(super) fn numbers(worker: WorkerNumber) -> [Option<i32>; 2] {
    let layout = settings::layout();
    let id = layout.place_number(worker.0).and_then(|bits| i64::try_from(bits.0).ok());
    [Field::Worker, Field::Datacenter].map(|field| layout.field(id?, field).ok()?.map(|value| value as i32))
}

fn listed() -> Result<Vec<Row>, Error> {
    if !shared::exists() {
        return Err(GeneratorError::NotPreloaded.into());
    }
    if !lease::is_used() {
        return Err(LeaseError::NoRegistry.into());
    }
    // SAFETY: reads shared memory, which exists.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return Err(GeneratorError::InRecovery("snowflake_workers").into());
    }
    listing::workers()
}
