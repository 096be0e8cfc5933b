//! The keeper: a background process that runs as long as the server. It reads a changed
//! configuration for all sessions, and at a clean stop it gives back what was reserved and not used. It is connected to
//! no database, and holds no lock while it waits. Sessions work without it: see [`crate::server::worker`].

use crate::postgres::background;
use crate::postgres::time::wait;
use crate::postgres::wording::duration;
use crate::server::worker;
use crate::shared::{self, waits};
use crate::{reservation, settings};
use pgrx::bgworkers::BackgroundWorker;
use pgrx::prelude::*;
use snowflake_core::Micros;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};

/// Registers it. Called while the library is preloaded.
pub fn init() {
    background::register("pg_snowflake keeper", "pg_snowflake_keeper");
}

/// The process.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_snowflake_keeper(_argument: pg_sys::Datum) {
    background::begin(on_exit);
    // The postmaster has read the configuration before it started this process.
    settings::mark_worker_read();
    publish();
    waits::name_all();
    while BackgroundWorker::wait_latch(None) {
        if background::reload() {
            publish();
        }
    }
    if background::is_asked_to_end() {
        give_back();
    }
    background::end();
}

fn publish() {
    shared::set_has_keeper(true);
    worker::publish(settings::layout(), &mut shared::transitions());
}

extern "C-unwind" fn on_exit(_code: i32, _argument: pg_sys::Datum) {
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

extern "C-unwind" fn uncount_session(_code: i32, _argument: pg_sys::Datum) {
    shared::counters().sessions.fetch_sub(1, SeqCst);
}
