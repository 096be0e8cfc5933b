//! The hooks of the parameters. A check hook that refuses a value sets detail and hint; which parameter and value it
//! was, PostgreSQL says. An assign hook withdraws the admission of this session, so that its next claim goes by the new
//! value.

use super::{UNSET, WORKER_READ_AT, layout, registry};
use crate::postgres::encoding;
use crate::postgres::time::clock;
use crate::postgres::wording::{layout_hint, sentence};
use crate::shared::admission;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::quote::shortened;
use snowflake_core::{Field, Layout, UnixMicros};
use snowflake_registry::{Namespace, Url, example_urls};
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether a value that is refused ends the start of the server.
static END_START: AtomicBool = AtomicBool::new(false);

/// The time in which the parameters are defined, and their values read from the configuration. PostgreSQL alone would
/// warn of a wrong value, and go on with the default: with other IDs than were asked for.
pub struct Refusals;

impl Refusals {
    /// While this lives, a value that is refused ends the start of the server, where one is being started.
    pub fn begin(preloading: bool) -> Self {
        END_START.store(preloading, Relaxed);
        Self
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        END_START.store(false, Relaxed);
    }
}

/// Refuses what is no layout, and a layout in which no IDs can be made.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_layout(
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
    refuse("pg_snowflake.layout", &quoted(&value), &sentence(&problem), &layout_hint())
}

/// Refuses what is no instant.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_epoch(
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
    refuse("pg_snowflake.epoch", &quoted(&value), detail, &hint)
}

/// Refuses what is no URL of a registry. The value of the parameter is the URL without its password; all of it goes to
/// [`assign_registry`].
#[pg_guard]
pub unsafe extern "C-unwind" fn check_registry(
    value: *mut *mut c_char,
    extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: a check hook gets a valid string.
    let text = unsafe { CStr::from_ptr(*value) };
    if text.is_empty() {
        return true;
    }
    match text.to_string_lossy().parse::<Url>() {
        Ok(url) if url.kind().is_built_in() => {
            let shown = CString::new(registry::shown(&url)).unwrap_or_default();
            // SAFETY: both are copied as PostgreSQL asks for, which frees them by itself; and so was what is freed here.
            unsafe {
                let (whole, shown) = (copied(text), copied(&shown));
                freed((*value).cast());
                (*extra, *value) = (whole.cast(), shown);
            }
            true
        }
        Ok(url) => refuse_registry(
            &format!("This pg_snowflake was built without the client of {}.", url.kind()),
            "Build it with all of them, by \"make install\", or use another registry.",
        ),
        Err(error) => refuse_registry(&sentence(&error.to_string()), &format!("For example: {}.", example_urls())),
    }
}

/// Without the value, which may have a password.
fn refuse_registry(detail: &str, hint: &str) -> bool {
    const MESSAGE: &CStr =
        c"invalid value for parameter \"pg_snowflake.registry\": not shown, as it may have a password";
    refuse("pg_snowflake.registry", "not shown, as it may have a password", detail, hint);
    // SAFETY: a global of this process, meant to be set by check hooks. The text is copied into the context of messages.
    unsafe { pg_sys::GUC_check_errmsg_string = pg_sys::MemoryContextStrdup(pg_sys::ErrorContext, MESSAGE.as_ptr()) };
    false
}

/// Takes the whole URL over.
#[pg_guard]
pub unsafe extern "C-unwind" fn assign_registry(_value: *const c_char, extra: *mut c_void) {
    // SAFETY: PostgreSQL keeps what the check hook has made for as long as the value is in use.
    unsafe { registry::assign(extra.cast()) };
}

/// A copy that PostgreSQL frees when the value of a parameter is not used any more.
fn copied(text: &CStr) -> *mut c_char {
    // SAFETY: a NUL-terminated string; out of memory is an error there.
    #[cfg(since_pg16)]
    unsafe {
        pg_sys::guc_strdup(PgLogLevel::ERROR as i32, text.as_ptr())
    }
    // SAFETY: a NUL-terminated string.
    #[cfg(not(since_pg16))]
    unsafe {
        libc::strdup(text.as_ptr())
    }
}

/// # Safety
/// PostgreSQL allocated it for the value of a parameter, or [`copied`] did.
unsafe fn freed(value: *mut c_void) {
    // SAFETY: the caller's.
    #[cfg(since_pg16)]
    unsafe {
        pg_sys::guc_free(value)
    }
    // SAFETY: the caller's.
    #[cfg(not(since_pg16))]
    unsafe {
        libc::free(value)
    }
}

/// Shows the value in the encoding of the database.
#[pg_guard]
pub unsafe extern "C-unwind" fn show_registry() -> *const c_char {
    let shown = encoding::shown(&registry::without_password().unwrap_or_default());
    // SAFETY: palloc'd in the current memory context, as PostgreSQL's own show hooks do.
    unsafe { pg_sys::pstrdup(CString::new(shown).unwrap_or_default().as_ptr()) }
}

/// Refuses what is no name of a namespace.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_namespace(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: a check hook gets a valid string.
    let value = unsafe { CStr::from_ptr(*value) }.to_string_lossy();
    match Namespace::new(&value) {
        Ok(_) => true,
        Err(error) => {
            let hint = "Choose a short name, such as \"default\" or \"shop\".";
            refuse("pg_snowflake.registry_namespace", &quoted(&value), &sentence(&error.to_string()), hint)
        }
    }
}

/// Refuses a number that the layout has no room for.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_worker(
    value: *mut i32,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: a check hook gets a valid pointer.
    check_field(Field::Worker, "pg_snowflake.worker_id", unsafe { *value })
}

/// As [`check_worker`].
#[pg_guard]
pub unsafe extern "C-unwind" fn check_datacenter(
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

/// Refuses what is no power of two.
#[pg_guard]
pub unsafe extern "C-unwind" fn check_spread(
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

/// Notes when the configuration was read, and withdraws the admission.
#[pg_guard]
pub unsafe extern "C-unwind" fn assign_worker(_value: i32, _extra: *mut c_void) {
    // A parallel worker does not read the configuration: it copies what its leader had read before.
    // SAFETY: a number that only this process writes.
    if unsafe { pg_sys::ParallelWorkerNumber } < 0 {
        WORKER_READ_AT.store(clock::monotonic_nanos(), Relaxed);
    }
    admission::withdraw();
}

/// Withdraws the admission: it was made of the old value.
#[pg_guard]
pub unsafe extern "C-unwind" fn assign_real(_value: f64, _extra: *mut c_void) {
    admission::withdraw();
}

/// As [`assign_real`].
#[pg_guard]
pub unsafe extern "C-unwind" fn assign_int(_value: i32, _extra: *mut c_void) {
    admission::withdraw();
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", shortened(value))
}

/// Refuses the value of a parameter that decides which IDs are made. A server that is being started does not start; one
/// that runs keeps the old value.
fn refuse(parameter: &str, value: &str, detail: &str, hint: &str) -> bool {
    if END_START.load(Relaxed) {
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
        let text = CString::new(encoding::shown(text).replace('\0', "")).unwrap_or_default();
        pg_sys::MemoryContextStrdup(pg_sys::ErrorContext, text.as_ptr())
    };
    // SAFETY: globals of this process, meant to be set by check hooks.
    unsafe {
        pg_sys::GUC_check_errdetail_string = copy(detail);
        pg_sys::GUC_check_errhint_string = copy(hint);
    }
}
