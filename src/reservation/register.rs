//! The register that holds the server's reservation: the progress of a replication origin. That is the one number of a
//! whole cluster which an extension can write without a transaction. PostgreSQL writes it to the WAL, saves it at
//! checkpoints, replays it on standbys, and copies it with base backups. Nothing is replicated by this origin.
//!
//! Locks are taken in this order: [`crate::shared::transitions`], PostgreSQL's ReplicationOriginLock, the lock of the origin's
//! slot, those of the WAL. Catalogs are read before the first of them is taken, and the WAL is flushed after they are
//! released.

use crate::errors::Error;
use crate::errors::reservation::ReservationError;
use crate::postgres::{abort, process, random};
use pgrx::PgTryBuilder;
use pgrx::prelude::*;
use snowflake_core::reservation::Reserved;
use std::ffi::CStr;

/// The origin. Names that begin with `pg_` are PostgreSQL's own.
pub const NAME: &CStr = c"snowflake";

/// Whether the server has slots for replication origins. Without them PostgreSQL neither loads nor saves progress, and
/// it reads as 0.
fn has_slots() -> bool {
    process::origin_slots() > 0
}

/// The origin, found by its name. From PostgreSQL 16 on, nobody can drop it until this is dropped. Before 16, that holds
/// only where the lock on the catalog was free: see [`Self::is_safe`].
pub struct Register {
    origin: u16,
    locked: bool,
}

impl Register {
    /// Finds the origin; `None` where there is none. Needs a transaction; call it without holding an LWLock.
    ///
    /// # Errors
    /// Where the server has no slots for origins.
    pub fn open() -> Result<Option<Self>, Error> {
        if !has_slots() {
            return Err(ReservationError::NoSlots.into());
        }
        // SAFETY: a look-up in a transaction. A drop of any origin holds ExclusiveLock on the catalog, before 16 until
        // its transaction ends: nobody waits for that here.
        unsafe {
            let locked = pg_sys::ConditionalLockRelationOid(pg_sys::ReplicationOriginRelationId, CATALOG_LOCK);
            #[cfg_attr(not(since_pg16), expect(unused_mut, reason = "for the loop below"))]
            let mut register = Self { origin: pg_sys::replorigin_by_name(NAME.as_ptr(), true), locked };
            #[cfg(since_pg16)]
            while register.origin != 0 {
                pg_sys::LockSharedObject(pg_sys::ReplicationOriginRelationId, register.object(), 0, OBJECT_LOCK);
                // It may have been dropped while this waited for the lock.
                let now = pg_sys::replorigin_by_name(NAME.as_ptr(), true);
                if now == register.origin {
                    break;
                }
                pg_sys::UnlockSharedObject(pg_sys::ReplicationOriginRelationId, register.object(), 0, OBJECT_LOCK);
                register.origin = now;
            }
            Ok((register.origin != 0).then_some(register))
        }
    }

    /// Whether the register can be written. Before PostgreSQL 16, an open transaction may be dropping the origin: its
    /// value is gone then, and a value that is written now would be inherited by the next origin that gets its number.
    /// `held` is what the register should hold.
    pub fn is_safe(&self, held: Reserved) -> bool {
        !self.may_be_dropped() || self.read() == Some(held)
    }

    /// Whether an open transaction may be dropping it. Before PostgreSQL 16, one that drops any origin locks the catalog, and the value of that origin is
    /// gone before the transaction ends.
    pub fn may_be_dropped(&self) -> bool {
        !self.locked && !cfg!(since_pg16)
    }

    #[cfg(since_pg16)]
    fn object(&self) -> pg_sys::Oid {
        u32::from(self.origin).into()
    }

    /// The origin's number, for the process that has no transaction to look it up.
    pub fn origin(&self) -> u16 {
        self.origin
    }

    /// Its value; `None` where it was never written.
    pub fn read(&self) -> Option<Reserved> {
        read(self.origin)
    }

    /// Writes a value, which may be lower than the one before, and logs it. Returns the position up to which the log
    /// must be flushed before anyone relies on it. Ends the call with an error where a session holds the origin, or all
    /// slots are taken: then nothing is written.
    pub fn write(&self, new: Reserved) -> pg_sys::XLogRecPtr {
        write(self.origin, new)
    }
}

impl Drop for Register {
    fn drop(&mut self) {
        if abort::is_under_way() {
            return;
        }
        // SAFETY: lets go of the locks that `open` has taken and this has noted.
        unsafe {
            #[cfg(since_pg16)]
            if self.origin != 0 {
                pg_sys::UnlockSharedObject(pg_sys::ReplicationOriginRelationId, self.object(), 0, OBJECT_LOCK);
            }
            if self.locked {
                pg_sys::UnlockRelationOid(pg_sys::ReplicationOriginRelationId, CATALOG_LOCK);
            }
        }
    }
}

const CATALOG_LOCK: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
#[cfg(since_pg16)]
const OBJECT_LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// As [`Register::read`], by the origin's number.
pub fn read(origin: u16) -> Option<Reserved> {
    // SAFETY: any number may be asked for, under two LWLocks, which are released; 0 where there is no progress.
    Reserved::from_register(unsafe { pg_sys::replorigin_get_progress(origin, false) })
}

/// As [`Register::write`], by the origin's number.
pub fn write(origin: u16, new: Reserved) -> pg_sys::XLogRecPtr {
    let advance = || {
        // SAFETY: takes any number but 0, which no register has. PostgreSQL takes its locks, logs, and sets XactLastRecEnd to the end of the
        // record.
        unsafe {
            pg_sys::replorigin_advance(origin, new.to_register(), 0, true, true);
            pg_sys::XactLastRecEnd
        }
    };
    // After an error, PostgreSQL releases LWLocks only when the statement ends. The handlers end it, with an error that
    // says more.
    PgTryBuilder::new(advance)
        .catch_when(PgSqlErrorCode::ERRCODE_OBJECT_IN_USE, |_| Error::from(ReservationError::OriginInUse).raise())
        .catch_when(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, |_| {
            Error::from(ReservationError::SlotsFull).raise()
        })
        .execute()
}

/// A random generation for a register, other than this one, and not 0.
pub fn draw_generation(other: u16) -> u16 {
    loop {
        let Some(bytes) = random::bytes() else { Error::from(ReservationError::NoRandomNumber).raise() };
        let generation = u16::from_ne_bytes(bytes);
        if generation != 0 && generation != other {
            return generation;
        }
    }
}
