//! Waiting for a synchronous standby to have what this server has logged, as a commit does.

use crate::wait;
use pgrx::pg_sys;
use pgrx::pg_sys::SyncCommitLevel;

/// Between two looks at how far the standby is, in microseconds.
const LOOK_EVERY: i64 = 1000;

/// Waits until the log is on the synchronous standby up to this position, where the session's `synchronous_commit`
/// asks for that and there is to be a synchronous standby. Can be cancelled; unlike a commit, nothing has happened
/// then.
pub fn wait_for_standby(position: pg_sys::XLogRecPtr) {
    // SAFETY: globals of this process, and shared memory that exists while the server runs. The positions are written
    // under a lock, but an aligned 64-bit number is never seen half written, and they only rise.
    unsafe {
        let names = pg_sys::SyncRepStandbyNames;
        let to_standby = pg_sys::max_wal_senders > 0 && !names.is_null() && *names != 0;
        // PostgreSQL's array of positions: written, flushed and applied by the standby.
        let stage = match pg_sys::synchronous_commit as SyncCommitLevel::Type {
            SyncCommitLevel::SYNCHRONOUS_COMMIT_REMOTE_WRITE => 0,
            SyncCommitLevel::SYNCHRONOUS_COMMIT_REMOTE_FLUSH => 1,
            SyncCommitLevel::SYNCHRONOUS_COMMIT_REMOTE_APPLY => 2,
            _ => return,
        };
        while to_standby && (&raw const (*pg_sys::WalSndCtl).lsn[stage]).read_volatile() < position {
            wait::sleep(LOOK_EVERY);
        }
    }
}
