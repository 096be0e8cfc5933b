//! What is seen of what others have committed.

use super::process;
use pgrx::prelude::*;

/// Does something that sees all that is committed by now.
pub fn latest<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: where an error comes out of the work, the end of the transaction drops the snapshot.
    unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
    let result = work();
    // SAFETY: the snapshot that was pushed above; queries have popped theirs.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}

/// Whether a transaction sees what is committed only from its beginning: it is not READ COMMITTED.
pub fn is_of_transaction() -> bool {
    process::isolation() >= pg_sys::XACT_REPEATABLE_READ as i32
}
