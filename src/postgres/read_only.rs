//! Where nothing can be written: read-only transactions, and recovery.

use pgrx::pg_sys;
use std::ffi::CStr;

/// Ends the call with PostgreSQL's error in a read-only transaction. The message names the command.
pub fn refuse_in_transaction(command: &CStr) {
    // SAFETY: the name is NUL-terminated, and copied into the message.
    unsafe { pg_sys::PreventCommandIfReadOnly(command.as_ptr()) };
}

/// Ends the call with PostgreSQL's error while the server is in recovery. The message names the command.
pub fn refuse_in_recovery(command: &CStr) {
    // SAFETY: the name is NUL-terminated, and the message has a copy of it.
    unsafe { pg_sys::PreventCommandDuringRecovery(command.as_ptr()) };
}
