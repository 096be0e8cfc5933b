//! The keeper: a background process that runs as long as the server. It reads a changed
//! configuration for all sessions, and at a clean stop it gives back what was reserved and not used. It is connected to
//! no database, and holds no lock while it waits. Sessions work without it: see [`crate::worker`].

use crate::shared;
use crate::time::wait;
use crate::wording::duration;
use crate::{reservation, settings, waits, worker};
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, SignalWakeFlags};
use pgrx::prelude::*;
use snowflake_core::Micros;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// Registers it, so that the postmaster starts it. Called while the library is preloaded.
pub fn init() {
    BackgroundWorkerBuilder::new("pg_snowflake keeper")
        .set_type("pg_snowflake keeper")
        .set_library("pg_snowflake")
        .set_function("pg_snowflake_keeper")
        .enable_spi_access()
        .set_restart_time(Some(Duration::from_secs(1)))
        .load();
}

/// The process.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_snowflake_keeper(_argument: pg_sys::Datum) {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM);
    // SAFETY: as PostgreSQL's own processes do. Connected to no database; without this call, pg_stat_activity would not
    // show the process. The callback lives as long as the process.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0);
        pg_sys::before_shmem_exit(Some(on_exit), pg_sys::Datum::from(0));
    }
    // The postmaster has read the configuration before it started this process.
    settings::mark_worker_read();
    publish();
    waits::name_all();
    while BackgroundWorker::wait_latch(None) {
        if BackgroundWorker::sighup_received() {
            // SAFETY: as PostgreSQL's own processes do.
            unsafe {
                pg_sys::ConfigReloadPending = 0;
                pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
            }
            publish();
        }
    }
    // SAFETY: a flag of this process. It is not set where the postmaster has died.
    if unsafe { pg_sys::ShutdownRequestPending } != 0 {
        give_back();
    }
    // With exit status 1 the postmaster starts the process again, unless the server stops: somebody may have terminated
    // this process alone. SAFETY: ends this process.
    unsafe { pg_sys::proc_exit(1) };
}

fn publish() {
    shared::set_has_keeper(true);
    worker::publish(settings::layout(), &mut shared::transitions());
}

unsafe extern "C-unwind" fn on_exit(_code: i32, _argument: pg_sys::Datum) {
    shared::set_has_keeper(false);
}

/// Waits until no session can claim any more, and gives back what is left of the reservation. At a stop of the server,
/// the postmaster terminates the sessions and this process at the same time, and waits for all of them before the last
/// checkpoint; so the stop takes no longer for this than for the sessions.
fn give_back() {
    // Sessions read the configuration themselves from now on, should the server go on.
    shared::set_has_keeper(false);
    while shared::counters().sessions.load(SeqCst) > 0 {
        wait::sleep(Micros(2000));
    }
    if let Some(length) = reservation::give_back() {
        let message = format!("gave back {} of reserved snowflake IDs", duration(length));
        ereport!(LOG, PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message);
    }
}

/// Counts this process among those that may claim, until it ends.
pub fn count_session() {
    static COUNTED: AtomicBool = AtomicBool::new(false);
    if !COUNTED.swap(true, Relaxed) {
        shared::counters().sessions.fetch_add(1, SeqCst);
        // SAFETY: the callback lives as long as the process.
        unsafe { pg_sys::before_shmem_exit(Some(uncount_session), pg_sys::Datum::from(0)) };
    }
}

unsafe extern "C-unwind" fn uncount_session(_code: i32, _argument: pg_sys::Datum) {
    shared::counters().sessions.fetch_sub(1, SeqCst);
}
