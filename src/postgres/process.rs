//! What PostgreSQL keeps for this process.

use pgrx::pg_sys;
use std::ffi::{CStr, c_int};

/// Functions that read a variable, or call a function of PostgreSQL's without arguments: one a line.
macro_rules! readings {
    ($($(#[$attribute:meta])* $name:ident -> $type:ty = $item:ident $(($($nothing:tt)*))?;)*) => {$(
        $(#[$attribute])*
        #[inline]
        pub fn $name() -> $type {
            // SAFETY: a line names a plain variable that only this process writes, or a function that may be called wherever a process
            // is connected to shared memory. `is_superuser` and `assign_transaction` are for a transaction: only functions of SQL call them,
            // which run in one.
            unsafe { pg_sys::$item $(($($nothing)*))? }
        }
    )*};
}

readings! {
    /// Whether the postmaster has started it: not so in the postmaster itself, nor in single-user mode.
    is_child_of_postmaster -> bool = IsUnderPostmaster;
    /// The process ID.
    pid -> c_int = MyProcPid;
    /// Whether it is connected for replication. It may run statements, too.
    sends_wal -> bool = am_walsender;
    /// Its number among the workers of a parallel query; -1 where it is none.
    parallel_worker_number -> c_int = ParallelWorkerNumber;
    /// The type of the process.
    #[cfg(since_pg19)]
    backend_type -> pg_sys::BackendType::Type = MyBackendType;
    /// The database that it is connected to.
    database -> pg_sys::Oid = MyDatabaseId;
    /// The encoding of that database, one of `pg_enc::PG_…`.
    encoding -> c_int = GetDatabaseEncoding();
    /// The role as which statements run now.
    user -> pg_sys::Oid = GetUserId();
    /// The role that the session has put on, or has logged in as: outside of functions that run as their owner.
    role_of_session -> pg_sys::Oid = GetOuterUserId();
    /// Whether that role is a superuser.
    is_superuser -> bool = superuser();
    /// Whether the server is in recovery, so that nothing can be written.
    is_in_recovery -> bool = RecoveryInProgress();
    /// Gives the transaction an ID, where it has none.
    assign_transaction -> pg_sys::TransactionId = GetTopTransactionId();
    /// When the statement began, a `timestamptz`.
    statement_began_at -> pg_sys::TimestampTz = GetCurrentStatementStartTimestamp();
    /// When the configuration was last read, a `timestamptz`.
    configuration_read_at -> pg_sys::TimestampTz = PgReloadTime;
    /// The isolation level of the transaction, one of `XACT_…`.
    isolation -> c_int = XactIsoLevel;
    /// `synchronous_commit`, one of `SyncCommitLevel::…`.
    synchronous_commit -> c_int = synchronous_commit;
    /// How many replication origins the server has room for, which only the postmaster sets.
    #[cfg(not(since_pg18))]
    origin_slots -> c_int = max_replication_slots;
    /// How many replication origins the server has room for, which only the postmaster sets.
    #[cfg(since_pg18)]
    origin_slots -> c_int = max_active_replication_origins;
}

/// Settings of PostgreSQL's that are texts.
#[derive(Clone, Copy)]
enum TextSetting {
    PreloadLibraries,
    StandbyNames,
}

impl TextSetting {
    /// Reads it, as it was when the configuration was last read. `read` calls nothing of PostgreSQL's, which could read it anew.
    fn read<T>(self, read: impl FnOnce(&CStr) -> T) -> T {
        // SAFETY: NULL, or a NUL-terminated string, which stays until the configuration is read again.
        unsafe {
            let text = match self {
                Self::PreloadLibraries => pg_sys::shared_preload_libraries_string,
                Self::StandbyNames => pg_sys::SyncRepStandbyNames,
            };
            read(if text.is_null() { c"" } else { CStr::from_ptr(text) })
        }
    }
}

/// Whether `synchronous_standby_names` names any, in the configuration that was last read.
#[inline]
pub fn names_standbys() -> bool {
    TextSetting::StandbyNames.read(|names| !names.is_empty())
}

/// `shared_preload_libraries`.
pub fn preload_libraries() -> String {
    TextSetting::PreloadLibraries.read(|libraries| libraries.to_string_lossy().into_owned())
}
