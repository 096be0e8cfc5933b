//! The parameters. Each has its name, what it is, its default, its limits, its unit, when it can be set and its hooks in one place; how they
//! are defined, [`super::parameter`] says, and which values are refused, [`super::checks`].

use super::checks::{self, Refusals};
use super::parameter::{ClockSource, Context, Define, Hooks, Parameter, UNSET};
use super::{fixed, secrecy, url};
use crate::postgres::{encoding, guc};
use crate::shared::segments::MOST;
use pgrx::pg_sys::AsPgCStr;
use pgrx::prelude::*;
use pgrx::{GucFlags, GucSetting};
use std::ffi::{CString, c_char};

/// The longest lead and the longest jump, in milliseconds: a hundred years.
const CENTURY: f64 = 36_525.0 * 86_400_000.0;

// The layout.

pub static LAYOUT_TEXT: Parameter<Option<CString>> = Parameter {
    name: c"pg_snowflake.layout",
    short: c"How the bits of an ID are divided.",
    long: c"The name of a built-in layout, or the fields from high to low with their widths in bits, such as \
          \"timestamp=41 worker=9 sequence=13\".",
    value: GucSetting::<Option<CString>>::new(Some(c"default")),
    limits: (),
    flags: GucFlags::empty(),
    context: Context::Start,
    hooks: Hooks { check: Some(checks::check_layout), ..Hooks::<Option<CString>>::NONE },
};

pub static EPOCH_TEXT: Parameter<Option<CString>> = Parameter {
    name: c"pg_snowflake.epoch",
    short: c"The instant at which the timestamps of IDs begin.",
    long: c"In UTC, such as \"2024-01-01T00:00:00Z\". Empty means the layout's own.",
    value: GucSetting::<Option<CString>>::new(Some(c"")),
    limits: (),
    flags: GucFlags::empty(),
    context: Context::Start,
    hooks: Hooks { check: Some(checks::check_epoch), ..Hooks::<Option<CString>>::NONE },
};

// The worker.

pub static WORKER_ID: Parameter<i32> = Parameter {
    name: c"pg_snowflake.worker_id",
    short: c"The number of this server among all that make IDs of the same layout.",
    long: c"No two servers may have the same one at the same time. -1 means not set: then no IDs are made.",
    value: GucSetting::<i32>::new(UNSET),
    limits: UNSET..=i32::MAX,
    flags: GucFlags::empty(),
    context: Context::Reload,
    hooks: Hooks { check: Some(checks::check_worker), assign: Some(checks::assign_worker), ..Hooks::<i32>::NONE },
};

pub static DATACENTER_ID: Parameter<i32> = Parameter {
    name: c"pg_snowflake.datacenter_id",
    short: c"The number of this server's datacenter, in layouts that have such a field.",
    long: c"Datacenter and worker together must be unique. -1 means not set.",
    value: GucSetting::<i32>::new(UNSET),
    limits: UNSET..=i32::MAX,
    flags: GucFlags::empty(),
    context: Context::Reload,
    hooks: Hooks { check: Some(checks::check_datacenter), assign: Some(checks::assign_worker), ..Hooks::<i32>::NONE },
};

// How fast IDs may be made, and which sequence numbers they get.

pub static MAX_BURST: Parameter<i32> = Parameter {
    name: c"pg_snowflake.max_burst",
    short: c"How far IDs may run ahead of the clock when they are made faster than the layout allows in the long run.",
    long: c"When this credit is used up, calls wait for the clock.",
    value: GucSetting::<i32>::new(100),
    limits: 0..=60_000,
    flags: GucFlags::UNIT_MS,
    context: Context::Reload,
    hooks: Hooks { assign: Some(checks::assign_int), ..Hooks::<i32>::NONE },
};

pub static SEQUENCE_SPREAD: Parameter<i32> = Parameter {
    name: c"pg_snowflake.sequence_spread",
    short: c"Over how many sequence numbers the first IDs of ticks are spread.",
    long: c"A power of two. 1 means that every tick starts at sequence 0, so that IDs which are made rarely are all multiples \
          of the number of sequences.",
    value: GucSetting::<i32>::new(64),
    limits: 1..=1 << 30,
    flags: GucFlags::empty(),
    context: Context::Reload,
    hooks: Hooks { check: Some(checks::check_spread), assign: Some(checks::assign_int), ..Hooks::<i32>::NONE },
};

// For a wrong clock.

pub static MAX_LEAD: Parameter<f64> = Parameter {
    name: c"pg_snowflake.max_lead",
    short: c"How far the clock may fall behind the last ID while IDs still go on.",
    long: c"Beyond it, calls wait up to pg_snowflake.max_wait, then fail. 0 means that a clock that went back by more \
          than pg_snowflake.max_burst stops IDs until it has caught up.",
    value: GucSetting::<f64>::new(600_000.0),
    limits: 0.0..=CENTURY,
    flags: GucFlags::UNIT_MS,
    context: Context::Reload,
    hooks: Hooks { assign: Some(checks::assign_real), ..Hooks::<f64>::NONE },
};

pub static MAX_JUMP: Parameter<f64> = Parameter {
    name: c"pg_snowflake.max_jump",
    short: c"How far the clock may leap forward and be believed at once.",
    long: c"A longer leap is believed after a minute; until then, IDs have the time before it.",
    value: GucSetting::<f64>::new(10_000.0),
    limits: 1000.0..=CENTURY,
    flags: GucFlags::UNIT_MS,
    context: Context::Reload,
    hooks: Hooks::<f64>::NONE,
};

pub static MAX_WAIT: Parameter<i32> = Parameter {
    name: c"pg_snowflake.max_wait",
    short: c"How long a call waits for a clock that is too far behind.",
    long: c"0 means that it fails at once.",
    value: GucSetting::<i32>::new(5_000),
    limits: 0..=i32::MAX,
    flags: GucFlags::UNIT_MS,
    context: Context::Session,
    hooks: Hooks::<i32>::NONE,
};

pub static CLOCK_SOURCE: Parameter<ClockSource> = Parameter {
    name: c"pg_snowflake.clock_source",
    short: c"How sessions find out that the clock has moved on.",
    long: c"\"auto\" uses the processor's counter where the kernel does, too, and reads the clock at least once \
          a millisecond. \"system\" reads the clock for every ID.",
    value: GucSetting::<ClockSource>::new(ClockSource::Auto),
    limits: (),
    flags: GucFlags::empty(),
    context: Context::Reload,
    hooks: Hooks { assign: Some(checks::assign_int), ..Hooks::<ClockSource>::NONE },
};

// The reservation.

pub static RESERVE_AHEAD: Parameter<i32> = Parameter {
    name: c"pg_snowflake.reserve_ahead",
    short: c"How far ahead of the clock IDs are reserved on disk.",
    long:
        c"The reservation is written about once in this time while IDs are made. After a crash or a failover, IDs go \
          on above it.",
    value: GucSetting::<i32>::new(1_000),
    limits: 100..=60_000,
    flags: GucFlags::UNIT_MS,
    context: Context::Reload,
    hooks: Hooks::<i32>::NONE,
};

// The registry.

pub static REGISTRY: Parameter<Option<CString>> = Parameter {
    name: c"pg_snowflake.registry",
    short: c"Where servers lease their worker IDs.",
    long: c"A URL: postgres://, etcd://, etcds://, redis:// or rediss://. Empty means that pg_snowflake.worker_id says which \
          worker this server is.",
    value: GucSetting::<Option<CString>>::new(Some(c"")),
    limits: (),
    flags: GucFlags::SUPERUSER_ONLY,
    context: Context::Start,
    hooks: Hooks { check: Some(checks::check_registry), assign: Some(url::assign_registry), show: Some(show_registry) },
};

pub static REGISTRY_NAMESPACE: Parameter<Option<CString>> = Parameter {
    name: c"pg_snowflake.registry_namespace",
    short: c"The name under which servers share worker IDs in the registry.",
    long: c"All servers that write into the same tables need the same one.",
    value: GucSetting::<Option<CString>>::new(Some(c"default")),
    limits: (),
    flags: GucFlags::empty(),
    context: Context::Start,
    hooks: Hooks { check: Some(checks::check_namespace), ..Hooks::<Option<CString>>::NONE },
};

pub static REGISTRY_PASSWORD_FILE: Parameter<Option<CString>> = Parameter {
    name: c"pg_snowflake.registry_password_file",
    short: c"A file whose first line is the password for the registry.",
    long: c"Only the owner of the server may be able to read it.",
    value: GucSetting::<Option<CString>>::new(Some(c"")),
    limits: (),
    flags: GucFlags::SUPERUSER_ONLY,
    context: Context::Reload,
    hooks: Hooks::<Option<CString>>::NONE,
};

pub static REGISTRY_TRUSTED: Parameter<bool> = Parameter {
    name: c"pg_snowflake.registry_trusted",
    short: c"Whether worker IDs are leased at once from a registry that has forgotten what it had stored.",
    long: c"Only under the conditions of docs/runbook.md: too early, two servers can make the same IDs.",
    value: GucSetting::<bool>::new(false),
    limits: (),
    flags: GucFlags::empty(),
    context: Context::Reload,
    hooks: Hooks::<bool>::NONE,
};

pub static REGISTRY_WINDOW: Parameter<i32> = Parameter {
    name: c"pg_snowflake.registry_window",
    short: c"How far ahead of the clock a lease reaches.",
    long: c"It is renewed after a third of that. The registry may be unreachable for two thirds of it before IDs stop.",
    value: GucSetting::<i32>::new(60_000),
    limits: 1_000..=3_600_000,
    flags: GucFlags::UNIT_MS,
    context: Context::Reload,
    hooks: Hooks::<i32>::NONE,
};

// Segments.

pub static MAX_SEGMENTS: Parameter<i32> = Parameter {
    name: c"pg_snowflake.max_segments",
    short: c"How many segments this server can use.",
    long: c"A segment that was used keeps its place until the server is restarted.",
    value: GucSetting::<i32>::new(64),
    limits: 0..=MOST as i32,
    flags: GucFlags::empty(),
    context: Context::Start,
    hooks: Hooks::<i32>::NONE,
};

pub static SEGMENT_DURATION: Parameter<i32> = Parameter {
    name: c"pg_snowflake.segment_duration",
    short: c"How long a range of numbers of a segment is to last.",
    long: c"The registry may be unreachable for about as long. A crash leaves a gap of at most two ranges.",
    value: GucSetting::<i32>::new(600),
    limits: 1..=86_400,
    flags: GucFlags::UNIT_S,
    context: Context::Reload,
    hooks: Hooks::<i32>::NONE,
};

// The planner.

pub static PLAN_BY_TIME: Parameter<bool> = Parameter {
    name: c"pg_snowflake.plan_by_time",
    short: c"Whether the planner exploits that an ID's time rises with the ID.",
    long: c"Then an index on the ID serves conditions on its time, and an order by it.",
    value: GucSetting::<bool>::new(true),
    limits: (),
    flags: GucFlags::empty(),
    context: Context::Session,
    hooks: Hooks::<bool>::NONE,
};

// Moving tables in.

pub static PROBE: Parameter<bool> = Parameter {
    name: c"pg_snowflake.probe",
    short: c"Whether moving a table in tries to write a row, which is rolled back.",
    long: c"What fails afterwards and did not before is an error, and nothing is moved.",
    value: GucSetting::<bool>::new(true),
    limits: (),
    flags: GucFlags::empty(),
    context: Context::Session,
    hooks: Hooks::<bool>::NONE,
};

pub static WAIVE: Parameter<Option<CString>> = Parameter {
    name: c"pg_snowflake.waive",
    short: c"Obstacles that moving a table in passes over.",
    long: c"Some of \"casts\", \"checks\", \"functions\" and \"partitions\", with commas between them.",
    value: GucSetting::<Option<CString>>::new(Some(c"")),
    limits: (),
    flags: GucFlags::empty(),
    context: Context::Session,
    hooks: Hooks { check: Some(checks::check_waive), ..Hooks::<Option<CString>>::NONE },
};

/// The parameters that make the layout.
static OF_THE_LAYOUT: [&dyn Define; 2] = [&LAYOUT_TEXT, &EPOCH_TEXT];

/// All others. The checks of some need the layout.
static OTHERS: [&dyn Define; 19] = [
    &WORKER_ID,
    &DATACENTER_ID,
    &MAX_BURST,
    &SEQUENCE_SPREAD,
    &MAX_LEAD,
    &MAX_JUMP,
    &MAX_WAIT,
    &CLOCK_SOURCE,
    &RESERVE_AHEAD,
    &REGISTRY,
    &REGISTRY_NAMESPACE,
    &REGISTRY_PASSWORD_FILE,
    &REGISTRY_TRUSTED,
    &REGISTRY_WINDOW,
    &MAX_SEGMENTS,
    &SEGMENT_DURATION,
    &PLAN_BY_TIME,
    &PROBE,
    &WAIVE,
];

/// Defines the parameters and reads the layout. In the postmaster (`preloading`), a wrong value ends the start of the
/// server.
pub fn init(preloading: bool) {
    secrecy::init();
    let refusals = Refusals::begin(preloading);
    OF_THE_LAYOUT.iter().for_each(|parameter| parameter.define(preloading));
    fixed::init(&LAYOUT_TEXT.text(), &EPOCH_TEXT.text(), preloading);
    OTHERS.iter().for_each(|parameter| parameter.define(preloading));
    if preloading {
        url::fix();
    }
    // Such a name is misspelt.
    guc::reserve_prefix(c"pg_snowflake");
    drop(refusals);
}

/// Shows the registry in the encoding of the database.
#[pg_guard]
extern "C-unwind" fn show_registry() -> *const c_char {
    // In the current memory context, as the texts of PostgreSQL's own show hooks are.
    encoding::shown(&REGISTRY.text()).as_pg_cstr()
}
