//! How background processes start, read a changed configuration and end: those that run as long as the server, connected to no database.

use crate::postgres::flag::Flag;
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, SignalWakeFlags};
use pgrx::pg_sys;
use std::fs;
use std::time::Duration;

/// Registers a process, so that the postmaster starts it when the server is no standby, or no longer, and a second after it has
/// ended. `function` is the one that it runs. Called while the library is preloaded.
pub fn register(name: &str, function: &str) {
    BackgroundWorkerBuilder::new(name)
        .set_type(name)
        .set_library("pg_snowflake")
        .set_function(function)
        // With access to shared memory, once recovery has finished.
        .enable_spi_access()
        .set_restart_time(Some(Duration::from_secs(1)))
        .load();
}

/// What the function does first. `on_exit` is called at the end of the process, however it comes.
pub fn begin(on_exit: extern "C-unwind" fn(i32, pg_sys::Datum)) {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM);
    // Connected to no database; without this call, pg_stat_activity would not show the process.
    // SAFETY: the first call in a background process, which was registered with access to shared memory. The callback lives as long as
    // the process.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnection(std::ptr::null(), std::ptr::null(), 0);
        pg_sys::before_shmem_exit(Some(on_exit), pg_sys::Datum::from(0));
    }
}

/// Reads the configuration where the process was told that it has changed. Returns whether it did.
pub fn reload() -> bool {
    let reload = BackgroundWorker::sighup_received();
    if reload {
        Flag::reload().set(false);
        read_configuration();
    }
    reload
}

/// Reads the configuration. Until a background process has its handlers, PostgreSQL ignores the signal that it has changed.
pub fn read_configuration() {
    // SAFETY: in the main loop of a background process, or before it, where no value of a setting is being used.
    unsafe { pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP) };
}

/// Whether the postmaster stops the server: it notes that in its file.
pub fn is_server_stopping() -> bool {
    fs::read_to_string("postmaster.pid").is_ok_and(|text| text.lines().nth(7).map(str::trim) == Some("stopping"))
}

/// Whether the process was asked to end. It was not where the postmaster has died.
pub fn is_asked_to_end() -> bool {
    Flag::shutdown().is_set()
}

/// Ends the process. With this exit status the postmaster starts it again, unless the server stops: somebody may have terminated this
/// process alone.
pub fn end() -> ! {
    // SAFETY: PostgreSQL runs the callbacks of the process, which release what it holds; nothing of it runs afterwards.
    unsafe { pg_sys::proc_exit(1) };
    // From PostgreSQL 18 on, the declaration of proc_exit() does not say that it never returns.
    #[cfg(since_pg18)]
    unreachable!("proc_exit() has returned");
}
