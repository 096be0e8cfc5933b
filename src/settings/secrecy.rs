//! Keeps the password of a registry out of the server's log: PostgreSQL adds the statement to the line of an error, and where that
//! statement sets `pg_snowflake.registry`, a password may stand in it.

use crate::postgres::foreign;
use once_cell::sync::OnceCell;
use pgrx::prelude::*;
use snowflake_registry::mentions;
use std::ffi::{CStr, c_char};

/// The hook of others, which is called, too.
static PREVIOUS: OnceCell<pg_sys::emit_log_hook_type> = OnceCell::new();

/// Installs the hook. Called once in a process; the postmaster's children inherit it.
pub fn init() {
    // SAFETY: a variable that extensions set when they are loaded.
    unsafe {
        PREVIOUS.get_or_init(|| pg_sys::emit_log_hook);
        pg_sys::emit_log_hook = Some(on_line);
    }
}

/// Called before a line is written to the server's log. Neither the client's messages nor the line itself change.
#[pg_guard]
unsafe extern "C-unwind" fn on_line(line: *mut pg_sys::ErrorData) {
    // SAFETY: as PostgreSQL calls it; its texts are NUL-terminated, or not there.
    unsafe {
        if [(*line).message.cast_const(), (*line).context, pg_sys::debug_query_string]
            .into_iter()
            .any(|text| names_registry(text))
        {
            (*line).hide_stmt = true;
            (*line).hide_ctx = true;
        }
    }
    if let Some(&Some(previous)) = PREVIOUS.get() {
        // SAFETY: what was set as this hook is called with the argument of this hook.
        unsafe { foreign::call(|| previous(line)) };
    }
}

/// # Safety
/// The text is NUL-terminated, or null.
unsafe fn names_registry(text: *const c_char) -> bool {
    // SAFETY: the caller's.
    !text.is_null() && mentions(unsafe { CStr::from_ptr(text) }.to_bytes(), "pg_snowflake", "registry")
}
