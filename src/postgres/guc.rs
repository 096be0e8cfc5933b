//! What PostgreSQL's machinery for parameters (GUC) gives to hooks, and takes from them.

use pgrx::pg_sys;
use std::ffi::{CStr, CString, c_char, c_void};

/// The new value of a parameter, in a check hook, which gets a pointer to it.
pub struct NewValue<Raw> {
    value: *mut Raw,
    extra: *mut *mut c_void,
}

/// The new value of an integer parameter.
pub type NewNumber = NewValue<i32>;

/// The new value of a text parameter.
pub type NewText = NewValue<*mut c_char>;

impl<Raw> NewValue<Raw> {
    /// From the first two arguments of a check hook.
    ///
    /// # Safety
    /// They are the arguments of the check hook of a parameter with values of this type, which is no text that may be NULL; and this is not
    /// kept beyond it.
    pub unsafe fn from_hook(value: *mut Raw, extra: *mut *mut c_void) -> Self {
        Self { value, extra }
    }
}

impl NewNumber {
    /// The value.
    pub fn get(&self) -> i32 {
        // SAFETY: a check hook gets a valid pointer to the value, which the promise of `from_hook` is about.
        unsafe { *self.value }
    }
}

impl NewText {
    /// The value.
    pub fn get(&self) -> CString {
        // SAFETY: a check hook of a text gets a valid pointer to a NUL-terminated string, which is copied at once.
        unsafe { CStr::from_ptr(*self.value) }.to_owned()
    }

    /// Puts another value in its place, and gives a text to the assign hook, as its second argument.
    pub fn replace(self, value: &CStr, extra: &CStr) {
        // SAFETY: both are copied as PostgreSQL asks for, which frees them by itself when the value is not used any more; and so was what is
        // freed here. Out of memory is an error.
        unsafe {
            #[cfg(since_pg16)]
            let (copy, free) =
                (|text: &CStr| pg_sys::guc_strdup(pgrx::PgLogLevel::ERROR as i32, text.as_ptr()), pg_sys::guc_free);
            #[cfg(not(since_pg16))]
            let (copy, free) = (|text: &CStr| libc::strdup(text.as_ptr()), libc::free);
            let (extra, value) = (copy(extra), copy(value));
            free((*self.value).cast());
            (*self.extra, *self.value) = (extra.cast(), value);
        }
    }
}

/// Sets what PostgreSQL says when a check hook refuses a value. Without a message, it names the parameter and the value.
pub fn set_check_report(message: Option<&str>, detail: &str, hint: &str) {
    let c_text = |text: &str| CString::new(text.replace('\0', "")).unwrap_or_default();
    let (message, detail, hint) = (message.map(c_text), c_text(detail), c_text(hint));
    // SAFETY: variables of this process, meant to be set by check hooks. PostgreSQL's own macros for this keep the texts in the same memory
    // context, which lives as long as the process.
    unsafe {
        let copy = |text: CString| pg_sys::MemoryContextStrdup(pg_sys::ErrorContext, text.as_ptr());
        if let Some(message) = message {
            pg_sys::GUC_check_errmsg_string = copy(message);
        }
        pg_sys::GUC_check_errdetail_string = copy(detail);
        pg_sys::GUC_check_errhint_string = copy(hint);
    }
}

/// Has PostgreSQL refuse parameters that begin with this prefix and a dot, and are not defined. Called when all of them are.
pub fn reserve_prefix(prefix: &CStr) {
    // SAFETY: a NUL-terminated string, which PostgreSQL copies.
    unsafe {
        #[cfg(not(since_pg15))]
        pg_sys::EmitWarningsOnPlaceholders(prefix.as_ptr());
        #[cfg(since_pg15)]
        pg_sys::MarkGUCPrefixReserved(prefix.as_ptr());
    }
}
