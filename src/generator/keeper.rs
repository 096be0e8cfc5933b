//! The keeper: a background process that runs as long as the server. It reads a changed
//! configuration for all sessions, and at a clean stop it gives back what was reserved and not used. It is connected to
//! no database, and holds no lock while it waits. Sessions work without it: see [`crate::server::worker`].

use crate::postgres::time::wait;
use crate::postgres::wording::duration;
use crate::postgres::{background, process};
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
    // This process was started with the postmaster's configuration. If that has changed since, the signal was ignored.
    background::read_configuration();
    settings::mark_worker_read();
    publish();
    waits::name_all();
    while BackgroundWorker::wait_latch(None) {
        if background::reload() {
            publish();
        }
    }
    // Somebody may have terminated this process alone. Another one is started then.
    if background::is_asked_to_end() && background::is_server_stopping() {
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
/// checkpoint; so the stop takes no longer for this than for the sessions. Sessions that send WAL are told to end after this process has: where
/// one of them may claim, nothing is given back.
fn give_back() {
    let counters = shared::counters();
    while counters.sessions.load(SeqCst) > 0 {
        if counters.senders.load(SeqCst) > 0 {
            return;
        }
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
        // First, as it fails where there is no room for it.
        // SAFETY: the callback lives as long as the process.
        unsafe { pg_sys::before_shmem_exit(Some(uncount_session), pg_sys::Datum::from(0)) };
        count(1);
    }
}

extern "C-unwind" fn uncount_session(_code: i32, _argument: pg_sys::Datum) {
    count(-1);
}

fn count(by: i64) {
    let counters = shared::counters();
    if process::sends_wal() {
        counters.senders.fetch_add(by, SeqCst);
    }
    counters.sessions.fetch_add(by, SeqCst);
}
