//! `snowflake_workers()`: the registry's records.

use crate::errors::Error;
use crate::errors::leases::LeaseError;
use crate::postgres::encoding;
use crate::postgres::time::timestamptz;
use crate::registry_process::lease;
use crate::registry_process::listing::{self, Row};
use crate::server::believed;
use crate::{generator, shared};
use snowflake_core::UnixMicros;
use snowflake_core::lease::WorkerNumber;

export!(snowflake_workers_wrapper as snowflake_workers);

rows! {
    fn snowflake_workers() {
        let listed = listed().unwrap_or_else(|error| error.raise());
        let own = shared::transitions().lease.worker;
        let now = believed::now();
        listed.into_iter().map(move |row| (numbers(row.worker), state(&row, now), own == Some(row.worker), row))
    }

    row ([worker_id, datacenter_id], state, is_own, Row { is_owned, from, until, holder, .. }) => {
        worker_id: Option<i32> = worker_id;
        datacenter_id: Option<i32> = datacenter_id;
        state: &'static str = state;
        granted_from: i64 = timestamptz::to_datum(from);
        granted_until: i64 = timestamptz::to_datum(until);
        host: String = encoding::shown(&holder.host);
        port: i32 = i32::from(holder.port);
        data_directory: String = encoding::shown(&holder.data_directory);
        cluster_name: String = encoding::shown(&holder.cluster_name);
        system_identifier: i64 = holder.system_identifier as i64;
        is_this_server: bool = is_owned && is_own;
    }
}

fn state(row: &Row, now: UnixMicros) -> &'static str {
    match row.is_owned {
        false => "given back",
        true if row.until <= now => "expired",
        true => "current",
    }
}

/// The worker ID and the datacenter ID of a worker, as far as the layout has them.
pub(super) fn numbers(worker: WorkerNumber) -> [Option<i32>; 2] {
    lease::worker_ids(worker).map(|id| id.map(|id| id as i32))
}

fn listed() -> Result<Vec<Row>, Error> {
    generator::check_preloaded()?;
    if !lease::is_used() {
        return Err(LeaseError::NoRegistry.into());
    }
    generator::check_primary("snowflake_workers")?;
    listing::workers()
}
