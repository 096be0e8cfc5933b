//! Defines the parameters, a function for each group of them. [`super::checks`] says which values are refused.

use super::checks::{self, Refusals};
use super::{CENTURY, UNSET};
use super::{
    CLOCK_SOURCE, DATACENTER_ID, EPOCH_TEXT, LAYOUT, LAYOUT_TEXT, MAX_BURST, MAX_JUMP, MAX_LEAD, MAX_SEGMENTS,
    MAX_WAIT, PLAN_BY_TIME, REGISTRY, REGISTRY_NAMESPACE, REGISTRY_PASSWORD_FILE, REGISTRY_TRUSTED, REGISTRY_WINDOW,
    RESERVE_AHEAD, SEGMENT_DURATION, SEQUENCE_SPREAD, WORKER_ID,
};
use super::{registry, secrecy};
use crate::postgres::time::clock;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};
use snowflake_core::notation::NotationError;
use snowflake_core::{Layout, UnixMicros};
use std::ffi::CString;

/// Defines the parameters and reads the layout. In the postmaster (`preloading`), a wrong value ends the start of the
/// server.
pub fn init(preloading: bool) {
    secrecy::init();
    let refusals = Refusals::begin(preloading);
    define_layout(preloading);
    // The checks of the worker need the layout.
    fix_layout(preloading);
    define_worker();
    define_pace();
    define_clock();
    define_reservation();
    define_registry(preloading);
    define_segments(preloading);
    define_planner();
    reserve_prefix();
    drop(refusals);
}

fn define_layout(preloading: bool) {
    // PostgreSQL lets nobody define a parameter of the context Postmaster once the server runs. A session that loads
    // the library later reads the same lines of the configuration file, and it reads them once.
    let fixed = || if preloading { GucContext::Postmaster } else { GucContext::Sighup };
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
            Some(checks::check_layout),
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
            Some(checks::check_epoch),
            None,
            None,
        );
    }
}

fn define_worker() {
    // SAFETY: as in `define_layout`.
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
            Some(checks::check_worker),
            Some(checks::assign_worker),
            None,
        );
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.datacenter_id",
            c"The number of this server's datacenter, in layouts that have such a field.",
            c"Datacenter and worker together must be unique. -1 means not set.",
            &DATACENTER_ID,
            UNSET,
            i32::MAX,
            GucContext::Sighup,
            GucFlags::default(),
            Some(checks::check_datacenter),
            Some(checks::assign_worker),
            None,
        );
    }
}

/// How fast IDs may be made, and which sequence numbers they get.
fn define_pace() {
    // SAFETY: as in `define_layout`.
    unsafe {
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.max_burst",
            c"How far IDs may run ahead of the clock when they are made faster than the layout allows in the long run.",
            c"When this credit is used up, calls wait for the clock.",
            &MAX_BURST,
            0,
            60_000,
            GucContext::Sighup,
            GucFlags::UNIT_MS,
            None,
            Some(checks::assign_int),
            None,
        );
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.sequence_spread",
            c"Over how many sequence numbers the first IDs of ticks are spread.",
            c"A power of two. 1 means that every tick starts at sequence 0, so that IDs which are made rarely are all multiples \
              of the number of sequences.",
            &SEQUENCE_SPREAD,
            1,
            1 << 30,
            GucContext::Sighup,
            GucFlags::default(),
            Some(checks::check_spread),
            Some(checks::assign_int),
            None,
        );
    }
}

/// Parameters for a wrong clock.
fn define_clock() {
    // SAFETY: as in `define_layout`.
    unsafe {
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
            Some(checks::assign_real),
            None,
        );
        GucRegistry::define_float_guc_with_hooks(
            c"pg_snowflake.max_jump",
            c"How far the clock may leap forward and be believed at once.",
            c"A longer leap is believed after a minute; until then, IDs have the time before it.",
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
        GucRegistry::define_enum_guc_with_hooks(
            c"pg_snowflake.clock_source",
            c"How sessions find out that the clock has moved on.",
            c"\"auto\" uses the processor's time-stamp counter where the kernel does, too, and reads the clock at least once \
              a millisecond. \"system\" reads the clock for every ID.",
            &CLOCK_SOURCE,
            GucContext::Sighup,
            GucFlags::default(),
            None,
            Some(checks::assign_int),
            None,
        );
    }
}

fn define_reservation() {
    // SAFETY: as in `define_layout`.
    unsafe {
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
    }
}

fn define_registry(preloading: bool) {
    let fixed = || if preloading { GucContext::Postmaster } else { GucContext::Sighup };
    // SAFETY: as in `define_layout`.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"pg_snowflake.registry",
            c"Where servers lease their worker IDs.",
            c"A URL: postgres://, etcd://, etcds://, redis:// or rediss://. Empty means that pg_snowflake.worker_id says which \
              worker this server is.",
            &REGISTRY,
            fixed(),
            GucFlags::SUPERUSER_ONLY,
            Some(checks::check_registry),
            Some(checks::assign_registry),
            Some(checks::show_registry),
        );
        if preloading {
            registry::fix();
        }
        GucRegistry::define_string_guc_with_hooks(
            c"pg_snowflake.registry_namespace",
            c"The name under which servers share worker IDs in the registry.",
            c"All servers that write into the same tables need the same one.",
            &REGISTRY_NAMESPACE,
            fixed(),
            GucFlags::default(),
            Some(checks::check_namespace),
            None,
            None,
        );
        GucRegistry::define_string_guc_with_hooks(
            c"pg_snowflake.registry_password_file",
            c"A file whose first line is the password for the registry.",
            c"Only the owner of the server may be able to read it.",
            &REGISTRY_PASSWORD_FILE,
            GucContext::Sighup,
            GucFlags::SUPERUSER_ONLY,
            None,
            None,
            None,
        );
        GucRegistry::define_bool_guc_with_hooks(
            c"pg_snowflake.registry_trusted",
            c"Whether worker IDs are leased at once from a registry that has forgotten what it had stored.",
            c"Only after somebody has made sure that no server has made IDs of later times than now.",
            &REGISTRY_TRUSTED,
            GucContext::Sighup,
            GucFlags::default(),
            None,
            None,
            None,
        );
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.registry_window",
            c"How far ahead of the clock a lease reaches.",
            c"It is renewed after a third of that. The registry may be unreachable for two thirds of it before IDs stop.",
            &REGISTRY_WINDOW,
            1_000,
            3_600_000,
            GucContext::Sighup,
            GucFlags::UNIT_MS,
            None,
            None,
            None,
        );
    }
}

fn define_segments(preloading: bool) {
    let fixed = if preloading { GucContext::Postmaster } else { GucContext::Sighup };
    // SAFETY: as in `define_layout`.
    unsafe {
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.max_segments",
            c"How many segments this server can use.",
            c"A segment that was used keeps its place until the server is restarted.",
            &MAX_SEGMENTS,
            0,
            1024,
            fixed,
            GucFlags::default(),
            None,
            None,
            None,
        );
        GucRegistry::define_int_guc_with_hooks(
            c"pg_snowflake.segment_duration",
            c"How long a range of numbers of a segment is to last.",
            c"The registry may be unreachable for about as long. A crash leaves a gap of at most two ranges.",
            &SEGMENT_DURATION,
            1,
            86_400,
            GucContext::Sighup,
            GucFlags::UNIT_S,
            None,
            None,
            None,
        );
    }
}

fn define_planner() {
    // SAFETY: as in `define_layout`.
    unsafe {
        GucRegistry::define_bool_guc_with_hooks(
            c"pg_snowflake.plan_by_time",
            c"Whether the planner uses that an ID's time rises with the ID.",
            c"Then an index on the ID serves conditions on its time, and an order by it.",
            &PLAN_BY_TIME,
            GucContext::Userset,
            GucFlags::default(),
            None,
            None,
            None,
        );
    }
}

/// Has PostgreSQL refuse other parameters that begin with `pg_snowflake.`; such a name is misspelt.
fn reserve_prefix() {
    // SAFETY: a NUL-terminated string.
    unsafe {
        #[cfg(not(since_pg15))]
        pg_sys::EmitWarningsOnPlaceholders(c"pg_snowflake".as_ptr());
        #[cfg(since_pg15)]
        pg_sys::MarkGUCPrefixReserved(c"pg_snowflake".as_ptr());
    }
}

/// Reads the layout, which does not change while the process lives.
fn fix_layout(preloading: bool) {
    let invalid = |message, detail: String, hint: &str| {
        let level = if preloading { PgLogLevel::FATAL } else { PgLogLevel::ERROR };
        let code = PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE;
        ErrorReport::new(code, message, "").set_detail(detail).set_hint(hint).report(level);
    };
    match configured_layout() {
        Ok(layout) => {
            // Without preloading no IDs are made, and those that exist can be read.
            if preloading && clock::now() >= layout.end() {
                invalid(
                    "the time of pg_snowflake.layout is over",
                    format!("The layout \"{layout}\" ended at {}.", layout.end()),
                    "Set a layout, or an epoch, with a later end.",
                );
            }
            LAYOUT.get_or_init(|| layout);
        }
        Err(detail) => invalid(
            "pg_snowflake.epoch does not fit pg_snowflake.layout",
            detail,
            "Set an earlier epoch, or a layout with a narrower timestamp.",
        ),
    }
}

/// The layout that the two parameters make together, or why they do not. Each was checked alone.
fn configured_layout() -> Result<Layout, String> {
    let layout: Layout = text(&LAYOUT_TEXT).parse().map_err(|error: NotationError| error.to_string())?;
    match text(&EPOCH_TEXT).as_str() {
        "" => Ok(layout),
        epoch => {
            let epoch = UnixMicros::parse(epoch).unwrap_or(layout.epoch());
            layout.with_epoch(epoch).map_err(|error| format!("With epoch {epoch}, {error}."))
        }
    }
}

fn text(setting: &GucSetting<Option<CString>>) -> String {
    setting.get().map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}
