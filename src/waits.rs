//! What waits are called in `pg_stat_activity`. PostgreSQL 17 and later let an extension name its wait events; before, all are
//! called `Extension`.

use crate::shared::{WAITS, counters};
use crate::time::wait;
use pgrx::prelude::*;
use snowflake_core::Micros;
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;

/// What a call waits for.
#[derive(Clone, Copy, Debug)]
pub enum Wait {
    /// The clock: IDs are ahead of it.
    Clock,
    /// The next tick: the layout has no more IDs in those that may be used now.
    Ceiling,
    /// A lease of a worker ID.
    Lease,
    /// The registry, which is asked for all leases.
    Registry,
}

impl Wait {
    /// All of them, each at the place of its number.
    const ALL: [Self; WAITS] = [Self::Clock, Self::Ceiling, Self::Lease, Self::Registry];

    const fn name(self) -> &'static CStr {
        match self {
            Self::Clock => c"SnowflakeClock",
            Self::Ceiling => c"SnowflakeCeiling",
            Self::Lease => c"SnowflakeLease",
            Self::Registry => c"SnowflakeRegistry",
        }
    }
}

/// Sleeps as [`wait::sleep`] does.
pub fn sleep(length: Micros, wait: Wait) {
    let event = match counters().wait_events[wait as usize].load(Relaxed) {
        0 => pg_sys::PG_WAIT_EXTENSION,
        named => named,
    };
    wait::sleep_as(length, event);
}

/// Gives the waits their names. Called by the keeper: a server has room for 128 names of all extensions, and where there is none
/// left, that must not be an error of a call that waits.
pub fn name_all() {
    for (wait, event) in Wait::ALL.into_iter().zip(&counters().wait_events) {
        event.store(number(wait.name()), Relaxed);
    }
}

#[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
const fn number(_name: &CStr) -> u32 {
    0
}

#[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16")))]
fn number(name: &'static CStr) -> u32 {
    // SAFETY: PostgreSQL copies the name. The same name has the same number, also after a restart of the keeper.
    let named = || unsafe { pg_sys::WaitEventExtensionNew(name.as_ptr()) };
    let none = |_| {
        // SAFETY: the error was raised under PostgreSQL's lock for these names; this process holds no other.
        unsafe { pg_sys::LWLockReleaseAll() };
        0
    };
    PgTryBuilder::new(named).catch_others(none).execute()
}
