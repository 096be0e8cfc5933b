//! The lease of the server's worker ID, as sessions see it: they look at nothing but shared memory, while the
//! [process](super::process) talks to the registry. [`snowflake_core::lease`] decides when a worker is leased, renewed or given back.
//!
//! A lease is a worker and a range of ID time. The end of that range, the *end*, bounds what a session may claim, as the
//! reservation does: the limit of a session is the lower of both.

use crate::errors::Error;
use crate::errors::leases::LeaseError;
use crate::postgres::{process, questions};
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

/// What keeps this server from its lease, and from numbers of segments. Nothing does where it leases no worker, as a standby, or one that is
/// being stopped.
pub fn all_trouble() -> [Option<String>; 2] {
    if !is_used() || process::is_in_recovery() || shared::transitions().lease.closed.is_some() {
        return [None, None];
    }
    if counters().lessee.load(Relaxed) == 0 {
        let words = "The process \"pg_snowflake lease\" does not run: it needs one of max_worker_processes.";
        return [Some(words.to_owned()), None];
    }
    let news = shared::lease_news();
    [news.lease.to_string(), news.segments.to_string()].map(|text| Some(text).filter(|text| !text.is_empty()))
}

/// The same, of the lease alone, as far as the caller may know.
pub fn trouble() -> Option<String> {
    let [lease, _] = all_trouble();
    lease.map(for_caller)
}

/// What keeps every tag from numbers, as far as the caller may know: the lease, or that requests fail.
pub fn trouble_of_segments() -> Option<String> {
    let error = || shared::lease_news().segments_error.to_string();
    trouble().or_else(|| Some(error()).filter(|error| !error.is_empty()).map(for_caller))
}

/// What a caller may know. Where the registry is, and names of hosts and directories of servers, are
/// for those to whom PostgreSQL shows its parameters; all of it is in the log. A function that runs as
/// its owner passes an error on to the client: so the role of the session must be one of them, too.
pub fn for_caller(trouble: String) -> String {
    shared::may_wait();
    let reader = pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_SETTINGS);
    let roles = [process::user(), process::role_of_session()];
    if roles.into_iter().all(|role| questions::has_privileges_of(role, reader)) {
        trouble
    } else {
        "The server's log says why.".to_owned()
    }
}
