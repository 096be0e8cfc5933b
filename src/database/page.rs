//! The one page of a sequence: reading its tuple, and writing it with generic WAL records. Such a write is not part of
//! a transaction: it is not undone by a rollback, and is possible in a read-only transaction, as with `nextval`.

use crate::errors::Error;
use pgrx::pg_sys;
use std::ffi::CStr;

/// What the special space of a sequence's page begins with: `SEQ_MAGIC` in PostgreSQL's `commands/sequence.c`.
const SEQUENCE_MAGIC: u32 = 0x1717;

/// The tuple of a sequence, with the names of `FormData_pg_sequence_data` in PostgreSQL's `commands/sequence.h`. What
/// the fields mean in each of our sequences, [`crate::database`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SequenceTuple {
    /// The value. `setval`, and so a dump that is restored, sets it.
    pub last_value: i64,
    /// Set to 0 by `setval`.
    pub log_cnt: i64,
    /// Set by `setval`, too.
    pub is_called: bool,
}

/// The relation, opened and locked, with its page pinned. Call [`Page::close`] at the end. There is no `Drop`: where an
/// error ends the transaction, PostgreSQL releases all of this itself.
pub struct Page {
    relation: pg_sys::Relation,
    buffer: pg_sys::Buffer,
    lock: pg_sys::LOCKMODE,
}

impl Page {
    /// Opens the relation for reading, also in recovery; `None` where it is gone, or is no sequence. Ends the call with
    /// an error where the page is damaged.
    pub fn open_to_read(relation: pg_sys::Oid) -> Option<Self> {
        Self::open(relation, pg_sys::AccessShareLock)
    }

    /// Opens the relation for writing; `None` where it is gone, or is no sequence. Waits where a transaction is
    /// dropping it.
    pub fn open_to_write(relation: pg_sys::Oid) -> Option<Self> {
        Self::open(relation, pg_sys::RowExclusiveLock)
    }

    fn open(relation: pg_sys::Oid, lock: u32) -> Option<Self> {
        let lock = lock as pg_sys::LOCKMODE;
        // SAFETY: a relation that is open has its description; a sequence has a block 0.
        unsafe {
            let relation = pg_sys::try_relation_open(relation, lock);
            if relation.is_null() {
                return None;
            }
            if (*(*relation).rd_rel).relkind as u8 != pg_sys::RELKIND_SEQUENCE {
                pg_sys::relation_close(relation, lock);
                return None;
            }
            let page = Self { relation, buffer: pg_sys::ReadBuffer(relation, 0), lock };
            if !page.is_intact() {
                let name = CStr::from_ptr((*(*relation).rd_rel).relname.data.as_ptr()).to_string_lossy().into_owned();
                Error::Damaged(name).raise();
            }
            Some(page)
        }
    }

    /// Whether the page is that of a sequence. PostgreSQL takes one that is filled with zeros for a new page, and reads
    /// it.
    fn is_intact(&self) -> bool {
        // SAFETY: the buffer is pinned, and locked while it is read; what is read lies within the page.
        unsafe {
            lock(self.buffer, pg_sys::BUFFER_LOCK_SHARE);
            let page = pg_sys::BufferGetPage(self.buffer).cast::<u8>();
            let special = usize::from((*page.cast::<pg_sys::PageHeaderData>()).pd_special);
            let has_magic = special <= pg_sys::BLCKSZ as usize - size_of::<u32>()
                && page.add(special).cast::<u32>().read_unaligned() == SEQUENCE_MAGIC;
            unlock(self.buffer);
            has_magic
        }
    }

    /// Reads the tuple.
    pub fn read(&self) -> SequenceTuple {
        // SAFETY: the buffer is pinned, and locked while it is read.
        unsafe {
            lock(self.buffer, pg_sys::BUFFER_LOCK_SHARE);
            let tuple = *tuple_on(pg_sys::BufferGetPage(self.buffer));
            unlock(self.buffer);
            tuple
        }
    }

    /// Prepares a change, and allocates the memory for it. Takes no lock yet.
    pub fn prepare(&mut self) -> Edit<'_> {
        // SAFETY: the relation is open.
        let state = unsafe { pg_sys::GenericXLogStart(self.relation) };
        Edit { page: self, state }
    }

    /// Unpins the page and closes the relation.
    pub fn close(self) {
        // SAFETY: both are held since `open`.
        unsafe {
            pg_sys::ReleaseBuffer(self.buffer);
            pg_sys::relation_close(self.relation, self.lock);
        }
    }
}

/// A change of the tuple that is prepared.
pub struct Edit<'a> {
    page: &'a mut Page,
    state: *mut pg_sys::GenericXLogState,
}

impl Edit<'_> {
    /// The tuple as it is now.
    pub fn read(&self) -> SequenceTuple {
        self.page.read()
    }

    /// Ends it without a change.
    pub fn abandon(self) {
        // SAFETY: begun in `prepare`.
        unsafe { pg_sys::GenericXLogAbort(self.state) };
    }

    /// Locks the page and calls `decide` with its tuple. Where that returns another one, writes and logs it. The log is
    /// not flushed.
    ///
    /// `decide` must not fail, wait, or call PostgreSQL.
    pub fn apply(self, decide: impl FnOnce(SequenceTuple) -> Option<SequenceTuple>) {
        let buffer = self.page.buffer;
        // SAFETY: the buffer is pinned, and locked while it is read or changed; the change is made on the copy that
        // generic WAL gives out, and is either finished or aborted.
        unsafe {
            lock(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE);
            match decide(*tuple_on(pg_sys::BufferGetPage(buffer))) {
                Some(new) => {
                    *tuple_on(pg_sys::GenericXLogRegisterBuffer(self.state, buffer, 0)) = new;
                    pg_sys::GenericXLogFinish(self.state);
                }
                None => pg_sys::GenericXLogAbort(self.state),
            }
            unlock(buffer);
        }
    }
}

/// The sequence's tuple: the page's first and only one.
///
/// # Safety
/// The page is that of a sequence.
unsafe fn tuple_on(page: pg_sys::Page) -> *mut SequenceTuple {
    // SAFETY: a sequence's page has one line pointer, which leads to its tuple; the data follows the tuple's header.
    unsafe {
        let header = page.cast::<pg_sys::PageHeaderData>();
        let item = (*header).pd_linp.as_ptr().read();
        let tuple = page.cast::<u8>().add(item.lp_off() as usize);
        let data = (*tuple.cast::<pg_sys::HeapTupleHeaderData>()).t_hoff;
        tuple.add(data.into()).cast()
    }
}

/// Locks a buffer that is pinned.
///
/// # Safety
/// The mode is share or exclusive, and the lock is not held.
#[cfg(not(since_pg19))]
unsafe fn lock(buffer: pg_sys::Buffer, mode: u32) {
    // SAFETY: as above.
    unsafe { pg_sys::LockBuffer(buffer, mode as i32) };
}

/// Unlocks it.
///
/// # Safety
/// The lock is held.
#[cfg(not(since_pg19))]
unsafe fn unlock(buffer: pg_sys::Buffer) {
    // SAFETY: as above.
    unsafe { pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32) };
}

// In 19, LockBuffer() is inline in bufmgr.h, and calls these.

/// Locks a buffer that is pinned.
///
/// # Safety
/// The mode is share or exclusive, and the lock is not held.
#[cfg(since_pg19)]
unsafe fn lock(buffer: pg_sys::Buffer, mode: pg_sys::BufferLockMode::Type) {
    // SAFETY: as above.
    unsafe { pg_sys::LockBufferInternal(buffer, mode) };
}

/// Unlocks it.
///
/// # Safety
/// The lock is held.
#[cfg(since_pg19)]
unsafe fn unlock(buffer: pg_sys::Buffer) {
    // SAFETY: as above.
    unsafe { pg_sys::UnlockBuffer(buffer) };
}
