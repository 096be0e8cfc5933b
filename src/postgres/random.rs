//! Random numbers that nobody can guess.

use pgrx::pg_sys;

/// So many random bytes; `None` where the system has none to give.
pub fn bytes<const COUNT: usize>() -> Option<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    // SAFETY: the buffer has the length given.
    let drawn = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
    drawn.then_some(bytes)
}
