//! The `pg_snowflake.*` parameters: their values. Their definitions are in [`definitions`], their checks in [`checks`].
//!
//! `layout` and `epoch` are parsed once, and do not change while a process lives: in another layout, new IDs could
//! repeat existing ones. With a wrong value of a parameter that decides which IDs are made, the server does not start.

mod checks;
pub mod definitions;
pub mod registry;
mod secrecy;

use crate::postgres::time::{clock, tsc};
use once_cell::sync::OnceCell;
use pgrx::{GucSetting, PostgresGucEnum};
use snowflake_core::lease::{Wanted, WorkerNumber};
use snowflake_core::{FieldError, Layout, Micros, WorkerBits, notation};
use std::ffi::CString;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The value of an integer parameter that is not set.
const UNSET: i32 = -1;

/// The longest lead and the longest jump, in milliseconds: a hundred years.
const CENTURY: f64 = 36_525.0 * 86_400_000.0;

static LAYOUT_TEXT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"default"));
static EPOCH_TEXT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static WORKER_ID: GucSetting<i32> = GucSetting::<i32>::new(UNSET);
static DATACENTER_ID: GucSetting<i32> = GucSetting::<i32>::new(UNSET);
static MAX_BURST: GucSetting<i32> = GucSetting::<i32>::new(100);
static MAX_LEAD: GucSetting<f64> = GucSetting::<f64>::new(600_000.0);
static MAX_JUMP: GucSetting<f64> = GucSetting::<f64>::new(10_000.0);
static MAX_WAIT: GucSetting<i32> = GucSetting::<i32>::new(5_000);
static RESERVE_AHEAD: GucSetting<i32> = GucSetting::<i32>::new(1_000);
static SEQUENCE_SPREAD: GucSetting<i32> = GucSetting::<i32>::new(64);

static PLAN_BY_TIME: GucSetting<bool> = GucSetting::<bool>::new(true);

static REGISTRY: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static REGISTRY_NAMESPACE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"default"));
static REGISTRY_PASSWORD_FILE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static REGISTRY_TRUSTED: GucSetting<bool> = GucSetting::<bool>::new(false);
static REGISTRY_WINDOW: GucSetting<i32> = GucSetting::<i32>::new(60_000);

static MAX_SEGMENTS: GucSetting<i32> = GucSetting::<i32>::new(64);
static SEGMENT_DURATION: GucSetting<i32> = GucSetting::<i32>::new(600);

static CLOCK_SOURCE: GucSetting<ClockSource> = GucSetting::<ClockSource>::new(ClockSource::Auto);

static LAYOUT: OnceCell<Layout> = OnceCell::new();

/// When this process last read the worker's parameters, by the monotonic clock.
static WORKER_READ_AT: AtomicI64 = AtomicI64::new(0);

/// How a session finds out that a tick of the clock is over.
#[derive(Clone, Copy, Debug, PostgresGucEnum)]
enum ClockSource {
    /// By the processor's counter where that can be used ([`tsc::usable`]), else by the clock.
    #[name = c"auto"]
    Auto,
    /// By the clock, for each claim.
    #[name = c"system"]
    System,
}

/// The worker as this process knows it. After a reload, processes read the configuration one after the other, so that
/// for a while two of them may know different workers: the one with the later `read_at` is right.
pub struct Worker {
    /// The worker, or what is missing.
    pub bits: Result<WorkerBits, FieldError>,
    /// When the configuration was read, in nanoseconds of the monotonic clock.
    pub read_at: i64,
}

/// The layout of this server's IDs.
#[inline]
pub fn layout() -> &'static Layout {
    // `init` has set it before anything else can run.
    LAYOUT.get_or_init(notation::default_layout)
}

/// The worker that the configuration names.
pub fn worker() -> Worker {
    let (datacenter, worker) = worker_ids();
    Worker { bits: layout().place_worker(datacenter, worker), read_at: WORKER_READ_AT.load(Relaxed) }
}

/// The datacenter and the worker that the configuration names.
pub fn worker_ids() -> (Option<u32>, Option<u32>) {
    let id = |setting: &GucSetting<i32>| u32::try_from(setting.get()).ok();
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

/// Notes that this process knows the newest configuration. For a process that the postmaster has just started, and that
/// has its configuration from there.
pub fn mark_worker_read() {
    WORKER_READ_AT.store(clock::monotonic_nanos(), Relaxed);
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
pub fn uses_tsc() -> bool {
    matches!(CLOCK_SOURCE.get(), ClockSource::Auto) && tsc::usable()
}

/// `pg_snowflake.plan_by_time`.
#[inline]
pub fn plan_by_time() -> bool {
    PLAN_BY_TIME.get()
}
