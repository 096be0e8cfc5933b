//! Calls of code that is neither PostgreSQL's nor ours: hooks that other extensions have set, and functions that they have registered.
//!
//! What raises an ERROR in C jumps to the last handler that was set. `pgrx` sets one around each function of PostgreSQL that it declares, but it
//! knows nothing of a function behind a pointer: the jump would pass over frames of Rust, whose destructors would not run. That is undefined
//! behaviour, so each such call goes through [`call`].

use pgrx::prelude::*;

/// Makes a call into foreign code. An ERROR that it raises becomes a panic here, which unwinds the frames of Rust; the `#[pg_guard]` of the
/// outermost one makes it an ERROR again, with all that it said.
///
/// # Safety
/// The closure does nothing but call a function of C, with arguments that it may be called with: it has nothing to drop, and does not panic. The
/// frames of Rust below are within a function that has a `#[pg_guard]`.
#[inline]
pub unsafe fn call<T: Copy>(function: impl FnOnce() -> T) -> T {
    // SAFETY: the caller's promise. PostgreSQL's processes have one thread that calls it. A line of the log is written in the memory of errors, and
    // PostgreSQL copies an ERROR to no other place within that: so the guard is set up in another one.
    unsafe {
        let memory = pg_sys::CurrentMemoryContext;
        if memory == pg_sys::ErrorContext {
            pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
        }
        let result = pg_sys::ffi::pg_guard_ffi_boundary(|| {
            pg_sys::CurrentMemoryContext = memory;
            function()
        });
        pg_sys::CurrentMemoryContext = memory;
        result
    }
}

/// The same, in a function that has no `#[pg_guard]`, as that of a hook that mostly has nothing to do: the guard is here.
///
/// # Safety
/// The closure is as that of [`call`]. The frames of Rust below have nothing to drop: the ERROR passes them as one of C would.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "only Rust calls it")]
pub unsafe extern "C-unwind" fn call_guarded<T: Copy, F: FnOnce() -> T>(function: F) -> T {
    // SAFETY: the caller's promise, and the guard of this function.
    unsafe { call(function) }
}
