//! The keeper: the one process of the extension that runs as long as the server makes IDs. It reads a changed configuration
//! for all sessions, and gives back, at a clean stop, what was reserved and not used. It is connected to no database, holds no
//! lock while it waits, and nothing stops where it does not run.

use crate::shared;
use crate::time::wait;
use crate::wording::duration;
use crate::{reservation, settings, worker};
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, SignalWakeFlags};
use pgrx::prelude::*;
use snowflake_core::Micros;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// Has the postmaster run it. Called while the library is preloaded.
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
    // SAFETY: as PostgreSQL's own processes do; connected to no database, so that pg_stat_activity shows it. The callback lives
    // as long as the process.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0);
        pg_sys::before_shmem_exit(Some(on_exit), pg_sys::Datum::from(0));
    }
    // The postmaster has read the configuration before it started this process.
    settings::mark_worker_read();
    publish();
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
    // PostgreSQL does not start again what ends well, and this may have been told to end while the server goes on.
    // SAFETY: ends this process.
    unsafe { pg_sys::proc_exit(1) };
}

fn publish() {
    shared::set_has_keeper(true);
    worker::publish(settings::layout(), &mut shared::transitions());
}

unsafe extern "C-unwind" fn on_exit(_code: i32, _argument: pg_sys::Datum) {
    shared::set_has_keeper(false);
}

/// Waits until no session can claim any more, and gives back what is left. At a stop, the postmaster ends the sessions at the
/// same time, and waits for all before it makes its last checkpoint; so nobody waits longer for this than for the sessions.
fn give_back() {
    // Where the server goes on, it reads no configuration any more.
    shared::set_has_keeper(false);
    while shared::counters().sessions.load(SeqCst) > 0 {
        wait::sleep(Micros(2000));
    }
    if let Some(length) = reservation::give_back() {
        let message = format!("gave back {} of reserved snowflake IDs", duration(length));
        ereport!(LOG, PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message);
    }
}

/// Counts this process, until it ends, among those that may claim.
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
