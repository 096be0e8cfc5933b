//! The write-ahead log.

use pgrx::pg_sys::{self, XLogRecPtr};

/// Waits until the log is on disk up to this position. The caller holds no lock.
pub fn flush(position: XLogRecPtr) {
    // SAFETY: any position up to the log's end; beyond it, PostgreSQL raises an error.
    unsafe { pg_sys::XLogFlush(position) };
}
