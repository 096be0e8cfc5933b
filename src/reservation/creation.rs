//! How the register is created, by a background process in a transaction of its own. In a session's transaction, which may be
//! rolled back, the progress would stay behind without its origin, and the next origin to get the number would inherit it.

use super::register::{self, NAME, Register};
use crate::errors::Error;
use crate::errors::reservation::ReservationError::{NoOrigin, NoProgress, NoWorkerSlot, OriginDropped};
use crate::postgres::time::{clock, wait};
use crate::postgres::{process, wal};
use crate::server::believed;
use crate::shared;
use pgrx::bgworkers::BackgroundWorkerBuilder;
use pgrx::prelude::*;
use snowflake_core::Micros;
use snowflake_core::reservation::{Reserved, whole_millis};
use std::ffi::CStr;

/// How long the process waits for a transaction that drops an origin.
const LOCK_TIMEOUT: &CStr = c"5s";
/// How long a session waits for others that drop the origin.
pub const LONGEST_DROP: Micros = Micros::from_secs(2);
/// How long a session waits for the register: longer than the process waits for a lock.
const LONGEST: Micros = Micros::from_secs(10);
/// How long the process takes at most, unless it waits for a lock or the machine is overloaded.
const USUAL: Micros = Micros::from_secs(1);

/// Creates the register, where [`Register::open`] has not found it, and gives it its first value. `other_than` is a generation that
/// it must not get. Of the sessions that call this at the same time, one starts a process, and the others wait. There may be no
/// process to be had, and the origin may be found before it has its value. So failures are errors only when they last.
///
/// # Errors
/// Where there is no background process, or the process has failed.
pub fn create(other_than: i64) -> Result<(), Error> {
    let start = clock::monotonic_micros();
    let mut failure = NoOrigin;
    loop {
        if is_first() {
            let created = run_process(other_than);
            // Where that has failed, the process of another session, which is slow, may still have to write the value.
            if matches!(created, Ok(()) | Err(Error::Reservation(NoWorkerSlot))) {
                shared::transitions().creating_since = None;
            }
            match created {
                Ok(()) => return Ok(()),
                Err(Error::Reservation(error @ (NoWorkerSlot | NoOrigin | NoProgress))) => failure = error,
                Err(error) => return Err(error),
            }
        }
        if clock::monotonic_micros() - start > LONGEST {
            return Err(failure.into());
        }
        wait::sleep(Micros::from_millis(10));
        if has_value().is_ok() {
            return Ok(());
        }
    }
}

/// Opens the register by `open`, and where the process is still creating it, waits for its value: others see the origin a moment before that. Waits,
/// too, for a transaction that drops it.
///
/// # Errors
/// As `open`, of a cancelled wait, and where such a transaction lasts.
pub fn with_value(open: impl Fn() -> Result<Register, Error>) -> Result<Register, Error> {
    let start = clock::monotonic_micros();
    // Whether the origin was seen before the question: else a process may have created it since then, and still be writing the value.
    let mut was_there = false;
    loop {
        // Asked first: once no process is under way, the value is there, or will never be.
        let is_under_way = is_under_way();
        let register = open()?;
        if register.read().is_some() {
            return Ok(register);
        }
        let is_dropped = register.may_be_dropped();
        if is_dropped && clock::monotonic_micros() - start > LONGEST_DROP {
            return Err(OriginDropped.into());
        }
        if was_there && !is_dropped && !is_under_way {
            return Ok(register);
        }
        was_there = !is_dropped;
        drop(register);
        wait::sleep(Micros::from_millis(10));
    }
}

/// Whether a session waits for the process, and has not done so for longer than [`LONGEST`].
fn is_under_way() -> bool {
    let now = clock::monotonic_micros();
    shared::transitions().creating_since.is_some_and(|since| now - since <= LONGEST)
}

/// Whether no other session runs the process. One that was cancelled meanwhile counts as running it until [`USUAL`] has passed.
fn is_first() -> bool {
    let now = clock::monotonic_micros();
    let mut transitions = shared::transitions();
    let is_first = transitions.creating_since.is_none_or(|since| now - since > USUAL);
    if is_first {
        transitions.creating_since = Some(now);
    }
    is_first
}

fn has_value() -> Result<(), Error> {
    let register = Register::open()?.ok_or(NoOrigin)?;
    register.read().map(|_| ()).ok_or(NoProgress.into())
}

/// Starts the process and waits for its end.
fn run_process(other_than: i64) -> Result<(), Error> {
    let other_than = u16::try_from(other_than).unwrap_or(0);
    let worker = BackgroundWorkerBuilder::new("pg_snowflake: create origin")
        .set_library("pg_snowflake")
        .set_function("pg_snowflake_create_origin")
        .enable_spi_access()
        .set_argument(Some(pg_sys::Datum::from(u64::from(other_than) << 32 | u64::from(process::database().to_u32()))))
        .set_notify_pid(process::pid())
        .load_dynamic();
    let Ok(worker) = worker else { return Err(NoWorkerSlot.into()) };
    // This wait can be cancelled; the process ends by itself then.
    let _ = worker.wait_for_shutdown();
    has_value()
}

/// The process. The lower 32 bits of its argument are the database to connect to, as a process needs one
/// to read catalogs; above them is the generation not to use.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_snowflake_create_origin(argument: pg_sys::Datum) {
    let (database, other_than) = (argument.value() as u32, (argument.value() >> 32) as u16);
    // SAFETY: the calls of a background process that connects to a database, in the order of PostgreSQL's own; each text is NUL-terminated.
    // In a transaction of its own, it looks the origin up and creates it behind the lock that PostgreSQL's own functions take.
    unsafe {
        pg_sys::BackgroundWorkerUnblockSignals();
        pg_sys::BackgroundWorkerInitializeConnectionByOid(
            database.into(),
            pg_sys::InvalidOid,
            pg_sys::BGWORKER_BYPASS_ALLOWCONN,
        );
        let set = |name: &CStr, value: &CStr| {
            let (context, source) = (pg_sys::GucContext::PGC_SUSET, pg_sys::GucSource::PGC_S_OVERRIDE);
            pg_sys::SetConfigOption(name.as_ptr(), value.as_ptr(), context, source);
        };
        set(c"lock_timeout", LOCK_TIMEOUT);
        // It waits for no standby: the session does, at its own level, for what comes later in the WAL.
        set(c"synchronous_commit", c"local");
        pg_sys::StartTransactionCommand();
        let lock = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
        pg_sys::LockRelationOid(pg_sys::ReplicationOriginRelationId, lock);
        let created = pg_sys::replorigin_by_name(NAME.as_ptr(), true) == 0;
        if created {
            pg_sys::replorigin_create(NAME.as_ptr());
        }
        pg_sys::CommitTransactionCommand();
        // An origin that exists without a value has lost it: `snowflake_rewind()` gives it a new one, as only people
        // know which.
        if !created {
            return;
        }

        pg_sys::StartTransactionCommand();
        if let Ok(Some(register)) = Register::open() {
            let generation = register::draw_generation(other_than);
            let position = {
                let mut transitions = shared::transitions();
                let first = Reserved { until: whole_millis(believed::now_in(&mut transitions)), generation };
                // Where the run knows what was reserved, the origin was dropped during the run.
                let first = transitions.reserved.map_or(first, |held| held.reserved);
                register.write(first)
            };
            wal::flush(position);
        }
        pg_sys::CommitTransactionCommand();
    }
}
