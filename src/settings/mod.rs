//! The `pg_snowflake.*` parameters: their definitions, checks and values.
//!
//! `layout` and `epoch` are fixed while a process lives, as moving a field or the epoch under existing IDs would
//! repeat them; they are parsed once. A wrong value of a parameter that says which IDs are made stops the server from
//! starting: PostgreSQL alone would warn, and go on with the default.

use crate::admission;
use crate::time::{clock, tsc};
use crate::wording::{layout_hint, sentence};
use once_cell::sync::OnceCell;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};
use snowflake_core::{Field, FieldError, Layout, Micros, UnixMicros, WorkerBits, notation};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

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

static CLOCK_SOURCE: GucSetting<ClockSource> = GucSetting::<ClockSource>::new(ClockSource::Auto);

static LAYOUT: OnceCell<Layout> = OnceCell::new();

/// When this process last read the worker's parameters, by the monotonic clock.
static WORKER_READ_AT: AtomicI64 = AtomicI64::new(0);

/// Whether [`init`] runs in the postmaster.
static PRELOADING: AtomicBool = AtomicBool::new(false);

/// How a session finds out that the clock's tick is over.
#[derive(Clone, Copy, Debug, PostgresGucEnum)]
enum ClockSource {
    /// By the processor's counter where it is fit for that, else by the clock.
    #[name = c"auto"]
    Auto,
    /// By the clock, for each claim.
    #[name = c"system"]
    System,
}

/// The worker as this process knows it. Processes read a changed configuration one after the other, so that two of
/// them may know different ones for a while: the later `read_at` is right.
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
    let id = |setting: &GucSetting<i32>| u32::try_from(setting.get()).ok();
    Worker { bits: layout().place_worker(id(&DATACENTER_ID), id(&WORKER_ID)), read_at: WORKER_READ_AT.load(Relaxed) }
}

/// Notes that this process knows the newest configuration: it was started by the postmaster, which has read it.
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

/// `pg_snowflake.sequence_spread`, a power of two.
pub fn sequence_spread() -> u64 {
    u64::from(SEQUENCE_SPREAD.get().unsigned_abs())
}

/// Whether the processor's counter saves sessions reading the clock.
pub fn uses_tsc() -> bool {
    matches!(CLOCK_SOURCE.get(), ClockSource::Auto) && tsc::usable()
}

/// Defines the parameters and reads the layout. In the postmaster, a wrong value ends the start.
pub fn init(preloading: bool) {
    PRELOADING.store(preloading, Relaxed);
    // A postmaster's parameter can only be defined in the postmaster. A session that loads the library later takes
    // the same lines from the configuration file, and reads them once.
    let fixed = || {
        if preloading { GucContext::Postmaster } else { GucContext::Sighup }
    };

    // SAFETY: the hooks are guarded, and have the signatures that PostgreSQL documents for them.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"pg_snowflake.layout",
            c"How the bits of an ID are divided.",
            c"The name of a built-in layout, or the fields from high to low with their widths in bits, such as \
              \"timestamp=41 worker=9 sequence=13\".",
            &LAYOUT_TEXT,
            fixed(),
            GucFlags::default(),
            Some(check_layout),
            None,
            None,
        );
        GucRegistry::define_string_guc_with_hooks(
            c"pg_snowflake.epoch",
            c"The instant at which the timestamps of IDs begin.",
            c"In UTC, such as \"2024-01-01T00:00:00Z\". Empty means the layout's own.",
            &EPOCH_TEXT,
            fixed(),
            GucFlags::default(),
            Some(check_epoch),
            None,
            None,
        );
    }
    let invalid = |message, detail: String, hint: &str| {
        let level = if preloading { PgLogLevel::FATAL } else { PgLogLevel::ERROR };
        let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
        ErrorReport::new(code, message, "").set_detail(detail).set_hint(hint).report(level);
    };
    match configured_layout() {
        Ok(layout) => {
            // Without preloading no IDs are made, and those that there are can be read.
            if preloading && clock::now() >= layout.end() {
                let detail = format!("The layout \"{layout}\" ended at {}.", layout.end());
                invalid(
                    "the time of pg_snowflake.layout is over",
                    detail,
                    "Set a layout, or an epoch, with a later end.",
                );
            }
            LAYOUT.get_or_init(|| layout);
        }
        Err(detail) => {
            let hint = "Set an earlier epoch, or a layout with a narrower timestamp.";
            invalid("pg_snowflake.epoch does not fit pg_snowflake.layout", detail, hint);
        }
    }

    // SAFETY: as above.
    unsafe {
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.worker_id",
            c"The number of this server among all that make IDs of the same layout.",
            c"No two servers may have the same one at the same time. -1 means not set: then no IDs are made.",
            &WORKER_ID,
            UNSET,
            i32::MAX,
            GucContext::Sighup,
            GucFlags::default(),
            Some(check_worker),
            Some(assign_worker),
            None,
        );
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.datacenter_id",
            c"The number of this server's datacenter, in layouts that have such a field.",
            c"Together with the worker it must be unique. -1 means not set.",
            &DATACENTER_ID,
            UNSET,
            i32::MAX,
            GucContext::Sighup,
            GucFlags::default(),
            Some(check_datacenter),
            Some(assign_worker),
            None,
        );
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.max_burst",
            c"How far IDs may run ahead of the clock when they are made faster than the layout's pace.",
            c"When this credit is used up, calls wait for the clock.",
            &MAX_BURST,
            0,
            60_000,
            GucContext::Sighup,
            GucFlags::UNIT_MS,
            None,
            Some(assign_pacing),
            None,
        );
        GucRegistry::define_float_guc_with_hooks(
            c"pg_snowflake.max_lead",
            c"How far the clock may fall behind the last ID while IDs still go on.",
            c"Beyond it, calls wait up to pg_snowflake.max_wait, then fail. 0 means that a clock that went back by more \
              than pg_snowflake.max_burst stops IDs until it has caught up.",
            &MAX_LEAD,
            0.0,
            CENTURY,
            GucContext::Sighup,
            GucFlags::UNIT_MS,
            None,
            Some(assign_lead),
            None,
        );
        GucRegistry::define_float_guc_with_hooks(
            c"pg_snowflake.max_jump",
            c"How far the clock may go forward at once and be believed at once.",
            c"A longer leap is believed when it has lasted for a minute; until then, IDs have the time before it.",
            &MAX_JUMP,
            1000.0,
            CENTURY,
            GucContext::Sighup,
            GucFlags::UNIT_MS,
            None,
            None,
            None,
        );
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.max_wait",
            c"How long a call waits for a clock that is too far behind.",
            c"0 means that it fails at once.",
            &MAX_WAIT,
            0,
            i32::MAX,
            GucContext::Userset,
            GucFlags::UNIT_MS,
            None,
            None,
            None,
        );
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.reserve_ahead",
            c"How far ahead of the clock IDs are reserved on disk.",
            c"The reservation is written about once in this time while IDs are made. After a crash or a failover, IDs go \
              on above it.",
            &RESERVE_AHEAD,
            100,
            60_000,
            GucContext::Sighup,
            GucFlags::UNIT_MS,
            None,
            None,
            None,
        );
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.sequence_spread",
            c"Over how many sequence numbers the first IDs of ticks are spread.",
            c"A power of two. 1 means that every tick starts at sequence 0, which makes rare IDs multiples of the \
              number of sequences.",
            &SEQUENCE_SPREAD,
            1,
            1 << 30,
            GucContext::Sighup,
            GucFlags::default(),
            Some(check_spread),
            Some(assign_pacing),
            None,
        );
        GucRegistry::define_enum_guc_with_hooks(
            c"pg_snowflake.clock_source",
            c"How sessions find out that the clock has moved on.",
            c"\"auto\" uses the processor's time-stamp counter where the kernel does, too, and reads the clock at least once \
              a millisecond. \"system\" reads the clock for every ID.",
            &CLOCK_SOURCE,
            GucContext::Sighup,
            GucFlags::default(),
            None,
            Some(assign_pacing),
            None,
        );
        #[cfg(feature = "pg14")]
        pg_sys::EmitWarningsOnPlaceholders(c"pg_snowflake".as_ptr());
        #[cfg(not(feature = "pg14"))]
        pg_sys::MarkGUCPrefixReserved(c"pg_snowflake".as_ptr());
    }
    PRELOADING.store(false, Relaxed);
}

fn text(setting: &GucSetting<Option<CString>>) -> String {
    setting.get().map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

/// The layout that the two parameters make together, or why they do not. Each was checked alone.
fn configured_layout() -> Result<Layout, String> {
    let layout: Layout = text(&LAYOUT_TEXT).parse().map_err(|error: notation::NotationError| error.to_string())?;
    match text(&EPOCH_TEXT).as_str() {
        "" => Ok(layout),
        epoch => {
            let epoch = UnixMicros::parse(epoch).unwrap_or(layout.epoch());
            layout.with_epoch(epoch).map_err(|error| format!("With epoch {epoch}, {error}."))
        }
    }
}

// Hooks. A check hook that refuses sets detail and hint; PostgreSQL says which parameter and value.

#[pg_guard]
unsafe extern "C-unwind" fn check_layout(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: a check hook gets a valid string.
    let value = unsafe { CStr::from_ptr(*value) }.to_string_lossy();
    let problem = match value.parse::<Layout>() {
        Ok(layout) => match layout.check_makes_ids() {
            Ok(()) => return true,
            Err(error) => format!("{error}, so IDs can only be read in this layout, not made"),
        },
        Err(error) => error.to_string(),
    };
    refuse("pg_snowflake.layout", &format!("\"{value}\""), &sentence(&problem), &layout_hint())
}

#[pg_guard]
unsafe extern "C-unwind" fn check_epoch(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: a check hook gets a valid string.
    let value = unsafe { CStr::from_ptr(*value) }.to_string_lossy();
    if value.is_empty() || UnixMicros::parse(&value).is_some() {
        return true;
    }
    // Epochs are often published as milliseconds.
    let hint = match value.parse().map(UnixMicros::from_millis) {
        Ok(instant) => format!("For milliseconds since 1970, write \"{instant}\"."),
        Err(_) => "Leave it empty for the layout's own epoch.".to_owned(),
    };
    let detail = "The epoch must be an instant in UTC, such as \"2024-01-01T00:00:00Z\".";
    refuse("pg_snowflake.epoch", &format!("\"{value}\""), detail, &hint)
}

#[pg_guard]
unsafe extern "C-unwind" fn check_worker(
    value: *mut i32,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: a check hook gets a valid pointer.
    check_field(Field::Worker, "pg_snowflake.worker_id", unsafe { *value })
}

#[pg_guard]
unsafe extern "C-unwind" fn check_datacenter(
    value: *mut i32,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: a check hook gets a valid pointer.
    check_field(Field::Datacenter, "pg_snowflake.datacenter_id", unsafe { *value })
}

fn check_field(field: Field, parameter: &str, value: i32) -> bool {
    let max = layout().max(field);
    if value == UNSET || (max > 0 && u64::from(value.unsigned_abs()) <= max) {
        return true;
    }
    let (detail, hint) = if max == 0 {
        (format!("The layout has no {field}."), format!("Remove {parameter}, or set a layout that has a {field}."))
    } else {
        (
            format!("In the layout \"{}\", a {field} is a number from 0 to {max}.", layout()),
            format!("Set another number, or a layout with a wider {field}."),
        )
    };
    refuse(parameter, &value.to_string(), &detail, &hint)
}

#[pg_guard]
unsafe extern "C-unwind" fn check_spread(
    value: *mut i32,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: a check hook gets a valid pointer.
    let value = unsafe { *value };
    value.unsigned_abs().is_power_of_two() || {
        set_check_message("The spread must be a power of two.", "Use a number such as 1, 16 or 64.");
        false
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn assign_worker(_value: i32, _extra: *mut c_void) {
    // A parallel worker does not read the configuration: it copies what its leader had read before.
    // SAFETY: a number that only this process writes.
    if unsafe { pg_sys::ParallelWorkerNumber } < 0 {
        WORKER_READ_AT.store(clock::monotonic_nanos(), Relaxed);
    }
    admission::withdraw();
}

#[pg_guard]
unsafe extern "C-unwind" fn assign_lead(_value: f64, _extra: *mut c_void) {
    admission::withdraw();
}

#[pg_guard]
unsafe extern "C-unwind" fn assign_pacing(_value: i32, _extra: *mut c_void) {
    admission::withdraw();
}

/// Refuses the value of a parameter that says which IDs are made: ends the start of a server, leaves a running one at
/// the old value.
fn refuse(parameter: &str, value: &str, detail: &str, hint: &str) -> bool {
    if PRELOADING.load(Relaxed) {
        let message = format!("invalid value for parameter \"{parameter}\": {value}");
        ErrorReport::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message, "")
            .set_detail(detail)
            .set_hint(hint)
            .report(PgLogLevel::FATAL);
    }
    set_check_message(detail, hint);
    false
}

fn set_check_message(detail: &str, hint: &str) {
    // PostgreSQL's own macros for this keep the strings in the same memory context.
    // SAFETY: the context lives as long as the process, and the copies are NUL-terminated.
    let copy = |text: &str| unsafe {
        let text = CString::new(text.replace('\0', "")).unwrap_or_default();
        pg_sys::MemoryContextStrdup(pg_sys::ErrorContext, text.as_ptr())
    };
    // SAFETY: globals of this process, meant to be set by check hooks.
    unsafe {
        pg_sys::GUC_check_errdetail_string = copy(detail);
        pg_sys::GUC_check_errhint_string = copy(hint);
    }
}
