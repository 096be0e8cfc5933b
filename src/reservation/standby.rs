//! Waiting for the synchronous standbys to have what this server has logged, as a commit waits for them: by PostgreSQL's own
//! `SyncRepWaitForLSN`. So the server's rules decide who is waited for and when a wait is over, also when
//! `synchronous_standby_names` is reset meanwhile; waiting processes sleep until they are woken up, and pg_stat_activity shows
//! them as waiting for `SyncRep`.
//!
//! Unlike a commit, nothing has happened yet that could not be undone: a wait that is cancelled ends the statement.

use super::interrupts;
use crate::admission::Confirmed;
use pgrx::check_for_interrupts;
use pgrx::pg_sys::{self, SyncCommitLevel, TimestampTz, XLogRecPtr};

// How safe a session wants its reservations to be. PostgreSQL's numbers for what the standby has done are one lower.

/// Here alone: `synchronous_commit` is off or local.
const HERE: i64 = 0;
/// The standby has it, and has handed it to its operating system: remote_write.
const WRITTEN: i64 = 1;
/// The standby has it on disk: on, or remote_apply. A reservation need not be replayed before the IDs are given out, as a
/// standby replays all that it has before it is promoted.
const FLUSHED: i64 = 2;

/// In place of a configuration: the confirmation holds whatever the configuration.
const ANY: TimestampTz = TimestampTz::MIN;

impl Confirmed {
    /// Whether this session may claim from the reservation: the level that it asks for now is not higher, or there is no
    /// synchronous standby. Looks at this session's copy of `synchronous_standby_names`, which is cheap and may be old:
    /// [`confirm`] decides for each reservation anew.
    pub fn is_enough(self) -> bool {
        let holds = |configuration| configuration == ANY || configuration == configuration_read_at();
        !names_standbys() || (asked() <= self.level && holds(self.configuration))
    }

    /// Whether the session could raise its level beyond this: then each claim must look.
    pub fn may_be_exceeded(self) -> bool {
        self.level < FLUSHED && names_standbys()
    }
}

/// What this session's `synchronous_commit` asks for.
fn asked() -> i64 {
    // SAFETY: a global of this process.
    match unsafe { pg_sys::synchronous_commit } as SyncCommitLevel::Type {
        SyncCommitLevel::SYNCHRONOUS_COMMIT_OFF | SyncCommitLevel::SYNCHRONOUS_COMMIT_LOCAL_FLUSH => HERE,
        SyncCommitLevel::SYNCHRONOUS_COMMIT_REMOTE_WRITE => WRITTEN,
        _ => FLUSHED,
    }
}

/// Whether `synchronous_standby_names` names any, as far as this session has heard.
fn names_standbys() -> bool {
    // SAFETY: NULL or a NUL-terminated string of this process.
    unsafe { !pg_sys::SyncRepStandbyNames.is_null() && *pg_sys::SyncRepStandbyNames != 0 }
}

/// When this session last read the configuration.
fn configuration_read_at() -> TimestampTz {
    // SAFETY: a global of this process.
    unsafe { pg_sys::PgReloadTime }
}

/// Waits until the synchronous standbys have the log up to this position, where this session's `synchronous_commit` asks
/// for that, and for as long as there are to be any. No lock may be held.
///
/// Does not return where the session is cancelled or told to stop: PostgreSQL's own error is raised.
pub fn confirm(position: XLogRecPtr) -> Confirmed {
    let level = asked();
    while level != HERE && !standbys_have(level, position) {
        check_for_interrupts!();
        if !interrupts::during(|| wait(position)) && !standbys_have(level, position) {
            // There is none to wait for, which a later configuration may change.
            return Confirmed { level, configuration: configuration_read_at() };
        }
    }
    Confirmed { level, configuration: ANY }
}

/// Whether the standbys have confirmed the log up to this position at this level, [`WRITTEN`] or [`FLUSHED`].
fn standbys_have(level: i64, position: XLogRecPtr) -> bool {
    // SAFETY: shared memory that exists while the server runs. The positions are written under a lock, but an aligned
    // 64-bit number is never seen half written, and they only rise.
    unsafe { (&raw const (*pg_sys::WalSndCtl).lsn[(level - 1) as usize]).read_volatile() >= position }
}

/// PostgreSQL's wait. Returns when the standbys have confirmed the position, when there is none to be waited for, or when
/// this session is to be cancelled or terminated.
fn wait(position: XLogRecPtr) {
    let _quiet = Quiet::begin();
    // SAFETY: inside of a transaction, with no lock held, and as the function demands with interrupts held: it leaves the
    // queue of waiting processes in order before any is processed. An error sets the count to 0 itself.
    unsafe {
        pg_sys::InterruptHoldoffCount += 1;
        // Not a commit: waits for the standby's disk at most.
        pg_sys::SyncRepWaitForLSN(position, false);
        pg_sys::InterruptHoldoffCount -= 1;
    }
}

/// Where it is cancelled, the wait warns that "the transaction has already committed locally", and for a termination it
/// shuts the client out. Neither is right here. While this lives, there are no warnings, and in the end the client is there
/// again; other messages, such as an immediate shutdown's, are not touched.
struct Quiet {
    log_min_messages: i32,
    client_min_messages: i32,
    output: pg_sys::CommandDest::Type,
}

impl Quiet {
    fn begin() -> Self {
        // SAFETY: globals of this process.
        unsafe {
            let before = Self {
                log_min_messages: *log_min_messages(),
                client_min_messages: pg_sys::client_min_messages,
                output: pg_sys::whereToSendOutput,
            };
            let above_warning = pg_sys::WARNING_CLIENT_ONLY as i32;
            *log_min_messages() = before.log_min_messages.max(above_warning);
            pg_sys::client_min_messages = before.client_min_messages.max(above_warning);
            before
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: as above; the values that were there.
        unsafe {
            *log_min_messages() = self.log_min_messages;
            pg_sys::client_min_messages = self.client_min_messages;
            pg_sys::whereToSendOutput = self.output;
        }
    }
}

/// What this process's messages must be worth to be logged.
fn log_min_messages() -> *mut i32 {
    let first = (&raw mut pg_sys::log_min_messages).cast::<i32>();
    // From 19 on, there is one for each type of process.
    // SAFETY: a global of this process; the array has a place for each type.
    #[cfg(feature = "pg19")]
    return unsafe { first.add(pg_sys::MyBackendType as usize) };
    #[cfg(not(feature = "pg19"))]
    first
}
