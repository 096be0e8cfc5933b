//! What the server did before this run, as its data directory says.

use pgrx::pg_sys;
use std::path::Path;

/// The end of the run before.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// The server was shut down.
    CleanShutdown,
    /// The server, or one of its sessions, crashed.
    Crash,
    /// The server was a standby, or still is.
    Standby,
    /// The server was recovered from a backup, perhaps to a point in time.
    Recovery,
}

impl Start {
    /// The name in `snowflake_status`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CleanShutdown => "clean shutdown",
            Self::Crash => "crash",
            Self::Standby => "standby",
            Self::Recovery => "recovery",
        }
    }

    /// The sentence for the server's log.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::CleanShutdown => "The server was started after a clean shutdown.",
            Self::Crash => "The server was started after a crash.",
            Self::Standby => "The server was a standby before.",
            Self::Recovery => "The server was recovered from a backup.",
        }
    }

    /// Finds out, when shared memory is made; the working directory is the data directory.
    pub fn find() -> Self {
        if Path::new("standby.signal").exists() {
            return Self::Standby;
        }
        if Path::new("recovery.signal").exists() || Path::new("backup_label").exists() {
            return Self::Recovery;
        }
        // SAFETY: the file is there, as the postmaster has read it before, and what is returned is a copy of it. Both pointers are valid.
        let state = unsafe {
            let mut intact = false;
            (*pg_sys::get_controlfile(pg_sys::DataDir, &raw mut intact)).state
        };
        match state {
            pg_sys::DBState::DB_SHUTDOWNED => Self::CleanShutdown,
            pg_sys::DBState::DB_SHUTDOWNED_IN_RECOVERY | pg_sys::DBState::DB_IN_ARCHIVE_RECOVERY => Self::Standby,
            _ => Self::Crash,
        }
    }
}
