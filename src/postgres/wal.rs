//! The write-ahead log.

use pgrx::pg_sys::{self, XLogRecPtr};

/// Waits until the log is on disk up to this position. The caller holds no lock.
pub fn flush(position: XLogRecPtr) {
    // SAFETY: any position up to the log's end; beyond it, PostgreSQL raises an error.
    unsafe { pg_sys::XLogFlush(position) };
}

/// Logs a record that says nothing, and waits until it is on disk. Returns its end, which no other record has. The caller holds no lock.
pub fn mark() -> XLogRecPtr {
    // One byte: a record without any is nothing that PostgreSQL logs.
    let mut nothing = [0_u8];
    // SAFETY: a record of the kind that nobody replays, with so many bytes of data, which are there; the caller is in a transaction of a
    // primary, and in no critical section.
    let position = unsafe {
        pg_sys::XLogBeginInsert();
        pg_sys::XLogRegisterData(nothing.as_mut_ptr().cast(), 1);
        // So that an idle server is not kept from being idle.
        pg_sys::XLogSetRecordFlags(pg_sys::XLOG_MARK_UNIMPORTANT as pg_sys::uint8);
        pg_sys::XLogInsert(pg_sys::RmgrIds::RM_XLOG_ID as pg_sys::RmgrId, pg_sys::XLOG_NOOP as pg_sys::uint8)
    };
    flush(position);
    position
}
