//! The register that holds the server's reservation: the progress of a replication origin. That is the one number of a
//! whole cluster which an extension can write without a transaction. PostgreSQL writes it to the WAL, saves it at
//! checkpoints, replays it on standbys, and copies it with base backups. Nothing is replicated by this origin.
//!
//! Locks are taken in this order: [`shared::transitions`], PostgreSQL's ReplicationOriginLock, the lock of the origin's
//! slot, those of the WAL. Catalogs are read before the first of them is taken, and the WAL is flushed after they are
//! released.

use crate::errors::Error;
use crate::shared;
use crate::time::clock;
use pgrx::PgTryBuilder;
use pgrx::bgworkers::BackgroundWorkerBuilder;
use pgrx::prelude::*;
use snowflake_core::reservation::{Reserved, whole_millis};
use std::ffi::CStr;

/// The origin. Names that begin with `pg_` are PostgreSQL's own.
pub const NAME: &CStr = c"snowflake";

/// How long the process that creates the origin waits for a transaction that drops an origin.
const LOCK_TIMEOUT: &CStr = c"5s";

/// Whether the server has slots for replication origins. Without them PostgreSQL neither loads nor saves progress, and
/// it reads as 0.
fn has_slots() -> bool {
    #[cfg(any(feature = "pg18", feature = "pg19"))]
    use pg_sys::max_active_replication_origins as slots;
    #[cfg(not(any(feature = "pg18", feature = "pg19")))]
    use pg_sys::max_replication_slots as slots;
    // SAFETY: a number that only the postmaster sets.
    unsafe { slots > 0 }
}

/// The origin, found by its name. From PostgreSQL 16 on, nobody can drop it until this is closed. Before 16, that holds
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
            return Err(Error::NoSlots);
        }
        // SAFETY: a look-up in a transaction. A drop of any origin holds ExclusiveLock on the catalog, before 16 until
        // its transaction ends: nobody waits for that here.
        unsafe {
            let locked = pg_sys::ConditionalLockRelationOid(pg_sys::ReplicationOriginRelationId, CATALOG_LOCK);
            #[cfg_attr(any(feature = "pg14", feature = "pg15"), expect(unused_mut, reason = "for the loop below"))]
            let mut register = Self { origin: pg_sys::replorigin_by_name(NAME.as_ptr(), true), locked };
            #[cfg(not(any(feature = "pg14", feature = "pg15")))]
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
            if register.origin == 0 {
                register.close();
                return Ok(None);
            }
            Ok(Some(register))
        }
    }

    /// Whether the register can be written. Before PostgreSQL 16, an open transaction may be dropping the origin: its
    /// value is gone then, and a value that is written now would be inherited by the next origin that gets its number.
    /// `held` is what the register should hold.
    pub fn is_safe(&self, held: Reserved) -> bool {
        self.locked || cfg!(not(any(feature = "pg14", feature = "pg15"))) || self.read() == Some(held)
    }

    #[cfg(not(any(feature = "pg14", feature = "pg15")))]
    fn object(&self) -> pg_sys::Oid {
        u32::from(self.origin).into()
    }

    /// The origin's number, for the process that has no transaction to look it up.
    pub fn origin(&self) -> u16 {
        self.origin
    }

    /// What it holds; `None` where it was never written.
    pub fn read(&self) -> Option<Reserved> {
        read(self.origin)
    }

    /// Writes a value, which may be lower than the one before, and logs it. Returns the position up to which the log
    /// must be flushed before anyone relies on it. Ends the call with an error where a session holds the origin, or all
    /// slots are taken: then nothing is written.
    pub fn write(&self, new: Reserved) -> pg_sys::XLogRecPtr {
        write(self.origin, new)
    }

    /// Releases the locks. Where an error ends the transaction, PostgreSQL releases them.
    pub fn close(self) {
        // SAFETY: taken in `open`.
        unsafe {
            #[cfg(not(any(feature = "pg14", feature = "pg15")))]
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
#[cfg(not(any(feature = "pg14", feature = "pg15")))]
const OBJECT_LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// As [`Register::read`], by the origin's number.
pub fn read(origin: u16) -> Option<Reserved> {
    // SAFETY: takes two LWLocks for reading.
    Reserved::from_register(unsafe { pg_sys::replorigin_get_progress(origin, false) })
}

/// As [`Register::write`], by the origin's number.
pub fn write(origin: u16, new: Reserved) -> pg_sys::XLogRecPtr {
    let advance = || {
        // SAFETY: PostgreSQL takes its locks, logs, and sets XactLastRecEnd to the end of the record.
        unsafe {
            pg_sys::replorigin_advance(origin, new.to_register(), 0, true, true);
            pg_sys::XactLastRecEnd
        }
    };
    // After an error, PostgreSQL releases LWLocks only when the statement ends. The handlers end it, with an error that
    // says more.
    PgTryBuilder::new(advance)
        .catch_when(PgSqlErrorCode::ERRCODE_OBJECT_IN_USE, |_| Error::OriginInUse.raise())
        .catch_when(PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, |_| Error::SlotsFull.raise())
        .execute()
}

/// A random generation for a register, other than this one, and not 0.
pub fn draw_generation(other: u16) -> u16 {
    let mut bytes = [0_u8; 2];
    loop {
        // SAFETY: the buffer has the length given.
        let drawn = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
        let generation = u16::from_ne_bytes(bytes);
        if drawn && generation != 0 && generation != other {
            return generation;
        }
        if !drawn {
            Error::NoRandomNumber.raise();
        }
    }
}

/// Creates the origin, where it does not exist, and gives it its first value. `other_than` is a generation that it must
/// not get.
///
/// A background process does so in a transaction of its own. In the caller's transaction, which may be rolled back, the
/// progress would stay behind without its origin, and the next origin to get the number would inherit it.
///
/// # Errors
/// Where there is no slot for an origin or no background process, or the process has failed.
pub fn create(other_than: i64) -> Result<(), Error> {
    if !has_slots() {
        return Err(Error::NoSlots);
    }
    // SAFETY: numbers of this process.
    let (me, database) = unsafe { (pg_sys::MyProcPid, pg_sys::MyDatabaseId.to_u32()) };
    let other_than = u16::try_from(other_than).unwrap_or(0);
    let worker = BackgroundWorkerBuilder::new("pg_snowflake: create origin")
        .set_library("pg_snowflake")
        .set_function("pg_snowflake_create_origin")
        .enable_spi_access()
        .set_argument(Some(pg_sys::Datum::from(u64::from(other_than) << 32 | u64::from(database))))
        .set_notify_pid(me)
        .load_dynamic();
    let Ok(worker) = worker else { return Err(Error::NoWorkerSlot) };
    // This wait can be cancelled; the process ends by itself then.
    let _ = worker.wait_for_shutdown();
    let register = Register::open()?.ok_or(Error::NoOrigin)?;
    let value = register.read();
    register.close();
    value.map(|_| ()).ok_or(Error::NoProgress)
}

/// The process of [`create`]. The lower 32 bits of its argument are the database to connect to, as a process needs one
/// to read catalogs; above them is the generation not to use.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_snowflake_create_origin(argument: pg_sys::Datum) {
    let (database, other_than) = (argument.value() as u32, (argument.value() >> 32) as u16);
    // SAFETY: as PostgreSQL's own workers do.
    unsafe {
        pg_sys::BackgroundWorkerUnblockSignals();
        pg_sys::BackgroundWorkerInitializeConnectionByOid(
            database.into(),
            pg_sys::InvalidOid,
            pg_sys::BGWORKER_BYPASS_ALLOWCONN,
        );
        pg_sys::SetConfigOption(
            c"lock_timeout".as_ptr(),
            LOCK_TIMEOUT.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
        pg_sys::StartTransactionCommand();
        let lock = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
        pg_sys::LockRelationOid(pg_sys::ReplicationOriginRelationId, lock);
        let created = pg_sys::replorigin_by_name(NAME.as_ptr(), true) == 0;
        if created {
            pg_sys::replorigin_create(NAME.as_ptr());
        }
        pg_sys::CommitTransactionCommand();
        // An origin that exists without a value has lost it: `snowflake_rewind()` gives it a new one, as only people
        // know which.
        if !created {
            return;
        }

        pg_sys::StartTransactionCommand();
        if let Ok(Some(register)) = Register::open() {
            let generation = draw_generation(other_than);
            let position = {
                let transitions = shared::transitions();
                let first = Reserved { until: whole_millis(clock::now()), generation };
                // Where the run knows what was reserved, the origin was dropped during the run.
                let first = transitions.reserved.map_or(first, |held| held.reserved);
                register.write(first)
            };
            pg_sys::XLogFlush(position);
            register.close();
        }
        pg_sys::CommitTransactionCommand();
    }
}
