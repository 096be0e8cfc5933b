//! The URL of the registry with its password, which the value of the parameter does not have.

use snowflake_registry::{Url, UrlError};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

// Both are of this process alone, which has one thread: nothing needs to order the accesses.

/// The URL with the password that it may have, as the check of the parameter has made it; null where none is set.
static WHOLE: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// Whether the parameter keeps its value until the server is started again.
static FIXED: AtomicBool = AtomicBool::new(false);

/// The assign hook: takes the whole URL over.
///
/// # Safety
/// The second argument is NUL-terminated, or null, and stays until the next one is assigned. PostgreSQL sees to that.
pub unsafe extern "C-unwind" fn assign_registry(_value: *const c_char, whole: *mut c_void) {
    WHOLE.store(whole.cast(), Relaxed);
}

/// From now on, the parameter has the value that the server was started with.
pub fn fix() {
    FIXED.store(true, Relaxed);
}

/// The value of the parameter that is shown: the URL without its password.
///
/// Where only the password in the configuration has changed since the start, PostgreSQL must see another value, to say that a restart is
/// needed. It does not keep that value.
pub fn shown(url: &Url) -> String {
    let shown = url.without_password();
    let is_new = FIXED.load(Relaxed) && whole().is_ok_and(|used| used.without_password() == shown && used != *url);
    if is_new { format!("{shown} with another password") } else { shown }
}

/// The URL that is in use, with the password that it may have.
///
/// # Errors
/// Where none is set.
pub fn whole() -> Result<Url, UrlError> {
    let whole = WHOLE.load(Relaxed);
    // SAFETY: NUL-terminated, and there until another one is assigned, as `assign_registry` demands. That is not while this copies it.
    let text = if whole.is_null() { c"" } else { unsafe { CStr::from_ptr(whole) } };
    text.to_string_lossy().parse()
}
