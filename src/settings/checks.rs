//! The hooks of the parameters. A check hook that refuses a value sets detail and hint; which parameter and value it
//! was, PostgreSQL says. An assign hook withdraws the admission of this session, so that its next claim goes by the new
//! value.

use super::parameter::UNSET;
use super::{fixed, url};
use crate::postgres::guc::{self, NewNumber, NewText, NewValue};
use crate::postgres::time::clock;
use crate::postgres::wording::{layout_hint, sentence};
use crate::postgres::{encoding, process};
use crate::shared::admission;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::quote::shortened;
use snowflake_core::{Field, Layout, UnixMicros};
use snowflake_moving::Waiver;
use snowflake_registry::{Namespace, Url, example_urls};
use std::ffi::{CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

/// Makes check hooks of functions that say of a new value whether it is accepted.
macro_rules! check_hooks {
    ($($hook:ident: $raw:ty => $check:ident;)*) => {$(
        #[pg_guard]
        pub unsafe extern "C-unwind" fn $hook(
            value: *mut $raw,
            extra: *mut *mut c_void,
            _source: pg_sys::GucSource::Type,
        ) -> bool {
            // SAFETY: PostgreSQL calls a hook as it documents, and no text of ours has the default NULL.
            $check(unsafe { NewValue::<$raw>::from_hook(value, extra) })
        }
    )*};
}

check_hooks! {
    check_layout: *mut c_char => layout;
    check_epoch: *mut c_char => epoch;
    check_registry: *mut c_char => registry;
    check_namespace: *mut c_char => namespace;
    check_waive: *mut c_char => waive;
    check_worker: i32 => worker;
    check_datacenter: i32 => datacenter;
    check_spread: i32 => spread;
}

/// Whether a value that is refused ends the start of the server. Of this process alone.
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
fn layout(value: NewText) -> bool {
    let value = value.get();
    let value = value.to_string_lossy();
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
fn epoch(value: NewText) -> bool {
    let value = value.get();
    let value = value.to_string_lossy();
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
/// [`url::assign_registry`].
fn registry(value: NewText) -> bool {
    let text = value.get();
    if text.is_empty() {
        return true;
    }
    match text.to_string_lossy().parse::<Url>() {
        Ok(url) if url.kind().is_built_in() => {
            value.replace(&CString::new(url::shown(&url)).unwrap_or_default(), &text);
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
    const NOT_SHOWN: &str = "not shown, as it may have a password";
    end_start("pg_snowflake.registry", NOT_SHOWN, detail, hint);
    let message = format!("invalid value for parameter \"pg_snowflake.registry\": {NOT_SHOWN}");
    refuse_saying(Some(&message), detail, hint)
}

/// Refuses what is no name of a namespace.
fn namespace(value: NewText) -> bool {
    let value = value.get();
    let value = value.to_string_lossy();
    match Namespace::new(&value) {
        Ok(_) => true,
        Err(error) => {
            let hint = "Choose a short name, such as \"default\" or \"shop\".";
            refuse("pg_snowflake.registry_namespace", &quoted(&value), &sentence(&error.to_string()), hint)
        }
    }
}

/// Refuses what is no obstacle that can be waived.
fn waive(value: NewText) -> bool {
    let value = value.get();
    match Waiver::read(&value.to_string_lossy()) {
        Ok(_) => true,
        Err(word) => {
            let names = Waiver::ALL.map(Waiver::name).join(", ");
            refuse_saying(
                None,
                &format!("There is no obstacle {}.", quoted(word)),
                &format!("Those that can be waived are {names}."),
            )
        }
    }
}

/// Refuses a number that the layout has no room for.
fn worker(value: NewNumber) -> bool {
    has_room(Field::Worker, "pg_snowflake.worker_id", value.get())
}

/// Refuses a number that the layout has no room for.
fn datacenter(value: NewNumber) -> bool {
    has_room(Field::Datacenter, "pg_snowflake.datacenter_id", value.get())
}

fn has_room(field: Field, parameter: &str, value: i32) -> bool {
    let max = fixed::layout().max(field);
    if value == UNSET || (max > 0 && u64::from(value.unsigned_abs()) <= max) {
        return true;
    }
    let (detail, hint) = if max == 0 {
        (format!("The layout has no {field}."), format!("Remove {parameter}, or set a layout that has a {field}."))
    } else {
        (
            format!("In the layout \"{}\", a {field} is a number from 0 to {max}.", fixed::layout()),
            format!("Set another number, or a layout with a wider {field}."),
        )
    };
    refuse(parameter, &value.to_string(), &detail, &hint)
}

/// Refuses what is no power of two.
fn spread(value: NewNumber) -> bool {
    value.get().unsigned_abs().is_power_of_two()
        || refuse_saying(None, "The spread must be a power of two.", "Use a number such as 1, 16 or 64.")
}

/// When this process last read the worker's parameters, in nanoseconds of the monotonic clock. Of this process alone.
static WORKER_READ_AT: AtomicI64 = AtomicI64::new(0);

/// When this process last read the worker's parameters, in nanoseconds of the monotonic clock.
pub fn worker_read_at() -> i64 {
    WORKER_READ_AT.load(Relaxed)
}

/// Notes that this process knows the newest configuration. For a process that the postmaster has just started, and that
/// has its configuration from there.
pub fn mark_worker_read() {
    WORKER_READ_AT.store(clock::monotonic_nanos(), Relaxed);
}

/// Notes when the configuration was read, and withdraws the admission.
#[pg_guard]
pub extern "C-unwind" fn assign_worker(_value: i32, _extra: *mut c_void) {
    // A parallel worker does not read the configuration: it copies what its leader had read before.
    if process::parallel_worker_number() < 0 {
        mark_worker_read();
    }
    admission::withdraw();
}

/// Withdraws the admission: it was made of the old value.
#[pg_guard]
pub extern "C-unwind" fn assign_real(_value: f64, _extra: *mut c_void) {
    admission::withdraw();
}

/// Withdraws the admission: it was made of the old value.
#[pg_guard]
pub extern "C-unwind" fn assign_int(_value: i32, _extra: *mut c_void) {
    admission::withdraw();
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", shortened(value))
}

/// Refuses the value of a parameter that decides which IDs are made. A server that is being started does not start; one
/// that runs keeps the old value.
fn refuse(parameter: &str, value: &str, detail: &str, hint: &str) -> bool {
    end_start(parameter, value, detail, hint);
    refuse_saying(None, detail, hint)
}

/// Ends the start of the server, where one is being started.
fn end_start(parameter: &str, value: &str, detail: &str, hint: &str) {
    if END_START.load(Relaxed) {
        let message = format!("invalid value for parameter \"{parameter}\": {value}");
        ErrorReport::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message, "")
            .set_detail(detail)
            .set_hint(hint)
            .report(PgLogLevel::FATAL);
    }
}

/// Has PostgreSQL say this of the value, which is refused. Without a message, PostgreSQL makes one.
fn refuse_saying(message: Option<&str>, detail: &str, hint: &str) -> bool {
    guc::set_check_report(message, &encoding::shown(detail), &encoding::shown(hint));
    false
}
