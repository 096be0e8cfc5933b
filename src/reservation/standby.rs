//! Waits until the synchronous standbys have what this server has logged, by the function that a commit waits with,
//! `SyncRepWaitForLSN`. So PostgreSQL decides which standbys count and when a wait is over, also where
//! `synchronous_standby_names` is reset meanwhile; waiting processes sleep, and pg_stat_activity shows their wait event
//! `SyncRep`.
//!
//! Commits wait for positions of their own, and the queue of those that wait is ordered by them. So does a session here: it logs a record of
//! its own behind the position that it needs, as others may need the same, and waits for that.
//!
//! Unlike with a commit, nothing has been done yet that could not be undone. So where the wait is cancelled, the
//! statement ends.

use super::interrupts;
#[cfg(since_pg19)]
use crate::postgres::process;
use crate::postgres::process::names_standbys;
use crate::postgres::wal;
use crate::shared::confirmed::{Confirmed, HERE, asked};
use pgrx::check_for_interrupts;
use pgrx::pg_sys::{self, XLogRecPtr};

/// Waits until the synchronous standbys have the log up to this position, where this session's `synchronous_commit`
/// asks for that and as long as `synchronous_standby_names` names any. The caller holds no lock.
///
/// Where the statement is cancelled or the session terminated, PostgreSQL's own error ends the call.
pub fn confirm(position: XLogRecPtr) -> Confirmed {
    let level = asked();
    // Where this session has not read yet that standbys are named now, it waits for the position itself. Another may wait for the same one.
    // Two equal positions in PostgreSQL's queue are harmless, but fail an assertion in builds that have assertions.
    let own = (level != HERE && names_standbys() && !standbys_have(level, position)).then(wal::mark);
    while level != HERE && !standbys_have(level, position) {
        check_for_interrupts!();
        if !interrupts::during(|| wait(own.unwrap_or(position))) && !standbys_have(level, position) {
            return Confirmed::while_none_is_named(level);
        }
    }
    Confirmed::for_good(level)
}

/// Whether the standbys have confirmed the log up to this position at this level, which is above [`HERE`].
fn standbys_have(level: i64, position: XLogRecPtr) -> bool {
    // SAFETY: shared memory that exists while the server runs. The positions are written under a lock, but an aligned
    // 64-bit number is never seen half written, and they only rise.
    unsafe { (&raw const (*pg_sys::WalSndCtl).lsn[(level - 1) as usize]).read_volatile() >= position }
}

/// PostgreSQL's wait. Returns when the standbys have confirmed the position, when no standby is named, or when the
/// statement is to be cancelled or the session terminated.
fn wait(position: XLogRecPtr) {
    let _quiet = Quiet::begin();
    // SAFETY: in a transaction, without a lock, and with interrupts held, as the function demands: it removes the
    // process from the queue of those that wait before any interrupt is processed. Where it raises an error, PostgreSQL
    // resets the count.
    unsafe {
        pg_sys::InterruptHoldoffCount += 1;
        // Not a commit: waits for the standby's disk at most.
        pg_sys::SyncRepWaitForLSN(position, false);
        pg_sys::InterruptHoldoffCount -= 1;
    }
}

/// A wait that is cancelled warns that "the transaction has already committed locally", and where the session is
/// terminated, it ends all output to the client. Both are wrong here. While this lives, warnings are suppressed, and at
/// its end, output goes to the client again. Other messages, such as that of an immediate shutdown, are not affected.
struct Quiet(Output);

impl Quiet {
    fn begin() -> Self {
        let above_warning = pg_sys::WARNING_CLIENT_ONLY as i32;
        Self(Output::change(|before| Output {
            log_min_messages: before.log_min_messages.max(above_warning),
            client_min_messages: before.client_min_messages.max(above_warning),
            ..before
        }))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        Output::change(|_| self.0);
    }
}

/// Which messages this process writes, and where its output goes.
#[derive(Clone, Copy)]
struct Output {
    log_min_messages: i32,
    client_min_messages: i32,
    to: pg_sys::CommandDest::Type,
}

impl Output {
    /// Changes it. Returns what it was.
    fn change(decide: impl FnOnce(Self) -> Self) -> Self {
        // SAFETY: variables that any code of this process may write, with levels of messages, or what was there before.
        unsafe {
            let before = Self {
                log_min_messages: *log_min_messages(),
                client_min_messages: pg_sys::client_min_messages,
                to: pg_sys::whereToSendOutput,
            };
            let new = decide(before);
            *log_min_messages() = new.log_min_messages;
            pg_sys::client_min_messages = new.client_min_messages;
            pg_sys::whereToSendOutput = new.to;
            before
        }
    }
}

/// This process's `log_min_messages`.
fn log_min_messages() -> *mut i32 {
    let first = (&raw mut pg_sys::log_min_messages).cast::<i32>();
    // From 19 on, there is one for each type of process.
    #[cfg(since_pg19)]
    return first.wrapping_add(process::backend_type() as usize);
    #[cfg(not(since_pg19))]
    first
}
