//! The `pg_snowflake.*` parameters: their values. Their definitions are in [`definitions`], their checks in [`checks`].
//!
//! `layout` and `epoch` are parsed once, and do not change while a process lives: in another layout, new IDs could
//! repeat existing ones. With a wrong value of a parameter that decides which IDs are made, the server does not start.

mod checks;
pub mod definitions;
mod fixed;
mod parameter;
pub mod registry;
mod secrecy;
mod url;

pub use self::checks::mark_worker_read;
pub use self::fixed::layout;

use self::definitions::{
    CLOCK_SOURCE, DATACENTER_ID, MAX_BURST, MAX_JUMP, MAX_LEAD, MAX_SEGMENTS, MAX_WAIT, PLAN_BY_TIME, PROBE,
    RESERVE_AHEAD, SEGMENT_DURATION, SEQUENCE_SPREAD, WAIVE, WORKER_ID,
};
use self::parameter::{ClockSource, Parameter};
use crate::postgres::time::counter;
use snowflake_core::lease::{Wanted, WorkerNumber};
use snowflake_core::{FieldError, Micros, WorkerBits};
use snowflake_moving::Waiver;

/// The worker as this process knows it. After a reload, processes read the configuration one after the other, so that
/// for a while two of them may know different workers: the one with the later `read_at` is right.
pub struct Worker {
    /// The worker, or what is missing.
    pub bits: Result<WorkerBits, FieldError>,
    /// When the configuration was read, in nanoseconds of the monotonic clock.
    pub read_at: i64,
}

/// The worker that the configuration names.
pub fn worker() -> Worker {
    let (datacenter, worker) = worker_ids();
    Worker { bits: layout().place_worker(datacenter, worker), read_at: checks::worker_read_at() }
}

/// The datacenter and the worker that the configuration names.
pub fn worker_ids() -> (Option<u32>, Option<u32>) {
    let id = |parameter: &Parameter<i32>| u32::try_from(parameter.get()).ok();
    (id(&DATACENTER_ID), id(&WORKER_ID))
}

/// Which workers may be leased: the one that the configuration names; without one, those of its datacenter, or all.
pub fn wanted() -> Wanted {
    let (datacenter, worker) = worker_ids();
    match (layout().number_worker(datacenter, worker), datacenter) {
        (Ok(number), _) => Wanted::One(WorkerNumber(number)),
        (Err(_), Some(datacenter)) => Wanted::datacenter(layout(), datacenter),
        (Err(_), None) => Wanted::any(layout()),
    }
}

/// The configured worker, where it says too little to be the one that is leased: without the datacenter in a layout that has them.
pub fn unused_worker() -> Option<i32> {
    let worker = WORKER_ID.get();
    (worker >= 0 && !matches!(wanted(), Wanted::One(_))).then_some(worker)
}

/// `pg_snowflake.max_burst`.
pub fn max_burst() -> Micros {
    Micros::from_millis(MAX_BURST.get().into())
}

/// `pg_snowflake.max_lead`.
pub fn max_lead() -> Micros {
    Micros((MAX_LEAD.get() * 1000.0) as i64)
}

/// `pg_snowflake.max_jump`.
#[inline]
pub fn max_jump() -> Micros {
    Micros((MAX_JUMP.get() * 1000.0) as i64)
}

/// `pg_snowflake.max_wait`.
pub fn max_wait() -> Micros {
    Micros::from_millis(MAX_WAIT.get().into())
}

/// `pg_snowflake.reserve_ahead`.
pub fn reserve_ahead() -> Micros {
    Micros::from_millis(RESERVE_AHEAD.get().into())
}

/// `pg_snowflake.max_segments`.
pub fn max_segments() -> usize {
    MAX_SEGMENTS.get().unsigned_abs() as usize
}

/// `pg_snowflake.segment_duration`.
pub fn segment_duration() -> Micros {
    Micros::from_secs(SEGMENT_DURATION.get().into())
}

/// `pg_snowflake.sequence_spread`, a power of two.
pub fn sequence_spread() -> u64 {
    u64::from(SEQUENCE_SPREAD.get().unsigned_abs())
}

/// Whether sessions use the processor's counter, so that they need not read the clock for each claim.
pub fn uses_counter() -> bool {
    matches!(CLOCK_SOURCE.get(), ClockSource::Auto) && counter::usable()
}

/// `pg_snowflake.probe`.
pub fn probe() -> bool {
    PROBE.get()
}

/// `pg_snowflake.waive`.
pub fn waived() -> Vec<Waiver> {
    Waiver::read(&WAIVE.text()).unwrap_or_default()
}

/// `pg_snowflake.plan_by_time`.
#[inline]
pub fn plan_by_time() -> bool {
    PLAN_BY_TIME.get()
}
