//! Flags of this process that signal handlers set.

use pgrx::pg_sys;

/// One of PostgreSQL's flags. May be read and set in a signal handler, too.
#[derive(Clone, Copy)]
pub struct Flag(*mut pg_sys::sig_atomic_t);

impl Flag {
    /// An interrupt is pending.
    pub fn interrupt() -> Self {
        Self(&raw mut pg_sys::InterruptPending)
    }

    /// The statement is to be cancelled.
    pub fn cancel() -> Self {
        Self(&raw mut pg_sys::QueryCancelPending)
    }

    /// The session is to be terminated.
    pub fn termination() -> Self {
        Self(&raw mut pg_sys::ProcDiePending)
    }

    /// The background process is to end.
    pub fn shutdown() -> Self {
        Self(&raw mut pg_sys::ShutdownRequestPending)
    }

    /// The configuration is to be read again.
    pub fn reload() -> Self {
        Self(&raw mut pg_sys::ConfigReloadPending)
    }

    /// Whether it is set.
    pub fn is_set(self) -> bool {
        // SAFETY: the address of one of the variables above. Volatile, as in C: a signal handler may set it between any two instructions.
        unsafe { self.0.read_volatile() != 0 }
    }

    /// Sets it, or takes it back.
    pub fn set(self, on: bool) {
        // SAFETY: the address of one of the variables above, which code of the process may write as well as its signal handlers. Volatile,
        // as in C.
        unsafe { self.0.write_volatile(on.into()) };
    }
}
