//! The lease of the server's worker ID, as sessions see it: they look at nothing but shared memory, while the
//! [process](super::process) talks to the registry. [`snowflake_core::lease`] decides when a worker is leased, renewed or given back.
//!
//! A lease is a worker and a range of ID time. The end of that range, the *end*, bounds what a session may claim, as the
//! reservation does: the limit of a session is the lower of both.

use crate::errors::Error;
use crate::errors::leases::LeaseError;
use crate::settings;
use crate::shared::{self, counters};
use pgrx::pg_sys;
use snowflake_core::lease::WorkerNumber;
use snowflake_core::{Field, Layout, Tick, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;

/// Whether workers are leased; otherwise the configuration names the worker.
pub fn is_used() -> bool {
    settings::registry::is_set()
}

/// The highest tick that a session may claim by the lease.
///
/// # Errors
/// Where the server has no lease, or the lease ends before the tick that is needed.
pub fn limit(layout: &Layout, needs: Tick) -> Result<Tick, Error> {
    if !is_used() {
        return Ok(layout.last_tick());
    }
    let published = shared::transitions().lease;
    match published.limit(layout) {
        // A tick that the layout does not have is another error.
        Some(limit) if needs <= limit || needs > layout.last_tick() => Ok(limit),
        _ if published.closed.is_some() => Err(LeaseError::Stopping.into()),
        _ => Err(no_lease(published.end)),
    }
}

/// The worker ID and the datacenter ID of a worker, as far as the layout has them.
pub fn worker_ids(worker: WorkerNumber) -> [Option<u32>; 2] {
    let layout = settings::layout();
    let id = layout.place_number(worker.0).and_then(|bits| i64::try_from(bits.0).ok());
    [Field::Worker, Field::Datacenter].map(|field| layout.field(id?, field).ok()?)
}

/// Makes sure that the server has a worker.
///
/// # Errors
/// Where it has none.
pub fn settle(layout: &Layout) -> Result<(), Error> {
    limit(layout, Tick(0)).map(drop)
}

fn no_lease(until: Option<UnixMicros>) -> Error {
    LeaseError::NoLease { until, trouble: trouble() }.into()
}

/// Why there is no lease, as far as the caller may know. Names of hosts and directories of servers are for those who may call
/// `snowflake_workers()`; all of it is in the log.
pub fn trouble() -> Option<String> {
    if counters().lessee.load(Relaxed) == 0 {
        return Some(
            "The process \"pg_snowflake lease\" does not run: it needs one of max_worker_processes.".to_owned(),
        );
    }
    let news = shared::lease_news();
    let known = [news.error.to_string(), news.trouble.to_string()].into_iter().find(|text| !text.is_empty())?;
    drop(news);
    // SAFETY: looks into the catalog, in a session.
    let is_monitor =
        unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), pg_sys::Oid::from(pg_sys::ROLE_PG_MONITOR)) };
    Some(if is_monitor { known } else { "The server's log says why.".to_owned() })
}
