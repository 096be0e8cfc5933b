//! What waits are called in `pg_stat_activity`, and how long a statement has waited. PostgreSQL 17 and later let an extension name
//! its wait events; before, all are called `Extension`.

use crate::postgres::process;
use crate::postgres::time::{clock, wait};
use crate::shared::{WAITS, counters};
use pgrx::prelude::*;
use snowflake_core::Micros;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;

/// The reasons for which a call waits.
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
    /// The next numbers of a segment, or a change of one.
    Segment,
}

impl Wait {
    /// All of them, each at the place of its number.
    const ALL: [Self; WAITS] = [Self::Clock, Self::Ceiling, Self::Lease, Self::Registry, Self::Segment];

    /// The wait event.
    const fn name(self) -> &'static CStr {
        match self {
            Self::Clock => c"SnowflakeClock",
            Self::Ceiling => c"SnowflakeCeiling",
            Self::Lease => c"SnowflakeLease",
            Self::Registry => c"SnowflakeRegistry",
            Self::Segment => c"SnowflakeSegment",
        }
    }
}

/// How long one statement of this session has waited, for each of [`Wait::ALL`].
#[derive(Clone, Copy, Default)]
struct Waited {
    /// When the statement began, a `timestamptz`.
    statement: i64,
    lengths: [Micros; WAITS],
}

thread_local! {
    /// Of the last statement that has waited. A process has one thread that runs statements.
    static WAITED: Cell<Waited> = Cell::default();
}

/// Of the statement that runs now.
fn waited() -> Waited {
    let statement = process::statement_began_at();
    match WAITED.get() {
        waited if waited.statement == statement => waited,
        _ => Waited { statement, ..Waited::default() },
    }
}

/// Whether the statement that runs now has waited for this before.
pub fn has_waited(wait: Wait) -> bool {
    waited().lengths[wait as usize] > Micros(0)
}

/// How long the statement that runs now has waited, and for what; also where it has not.
#[cfg(since_pg18)]
pub fn of_statement() -> impl Iterator<Item = (Wait, Micros)> {
    Wait::ALL.into_iter().zip(waited().lengths)
}

/// Sleeps as [`wait::sleep`] does. Returns for how long.
pub fn sleep(length: Micros, wait: Wait) -> Micros {
    let event = match counters().wait_events[wait as usize].load(Relaxed) {
        0 => pg_sys::PG_WAIT_EXTENSION,
        named => named,
    };
    let start = clock::monotonic_micros();
    wait::sleep_as(length, event);
    let slept = clock::monotonic_micros() - start;
    let mut waited = waited();
    waited.lengths[wait as usize] = waited.lengths[wait as usize] + slept;
    WAITED.set(waited);
    slept
}

/// Gives the waits their names. Called by the keeper: a server has room for 128 names of all extensions, and where there is none
/// left, that must not be an error of a call that waits.
pub fn name_all() {
    for (wait, event) in Wait::ALL.into_iter().zip(&counters().wait_events) {
        event.store(number(wait.name()), Relaxed);
    }
}

#[cfg(not(since_pg17))]
const fn number(_name: &CStr) -> u32 {
    0
}

#[cfg(since_pg17)]
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
