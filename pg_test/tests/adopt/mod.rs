//! Moving in and out, where that takes several sessions, a crash, or schemas that were made elsewhere.

mod encodings;
mod others;
mod pgedge;
mod schema;
mod sessions;
mod staged;

use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a thread that writes, also where a test panics.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
