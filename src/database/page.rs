//! The one page of a sequence: reading its tuple, and writing it with generic WAL records. Such a write is not part of
//! a transaction: it is not undone by a rollback, and is possible in a read-only transaction, as with `nextval`.

use crate::abort;
use crate::errors::Error;
use crate::errors::record::RecordError;
use crate::open_relation::OpenRelation;
use pgrx::pg_sys;

/// The number at the start of the special space of a sequence's page: `SEQ_MAGIC` in PostgreSQL's `commands/sequence.c`.
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

/// The page, pinned, of a sequence that is open and locked.
pub struct Page {
    sequence: OpenRelation,
    buffer: pg_sys::Buffer,
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
        let sequence =
            OpenRelation::open(relation, lock).filter(|relation| relation.kind() == pg_sys::RELKIND_SEQUENCE)?;
        // SAFETY: the relation is open; a sequence has a block 0.
        let buffer = unsafe { pg_sys::ReadBuffer(sequence.as_ptr(), 0) };
        let page = Self { sequence, buffer };
        if !page.is_intact() {
            Error::from(RecordError::Damaged(page.sequence.name())).raise();
        }
        Some(page)
    }

    /// Whether the page is that of a sequence. PostgreSQL takes one that is filled with zeros for a new page, and reads
    /// it.
    fn is_intact(&self) -> bool {
        let _locked = ContentLock::shared(self);
        // SAFETY: the buffer is pinned, and locked while it is read; what is read lies within the page.
        unsafe {
            let page = pg_sys::BufferGetPage(self.buffer).cast::<u8>();
            let special = usize::from((*page.cast::<pg_sys::PageHeaderData>()).pd_special);
            special <= pg_sys::BLCKSZ as usize - size_of::<u32>()
                && page.add(special).cast::<u32>().read_unaligned() == SEQUENCE_MAGIC
        }
    }

    /// Reads the tuple.
    pub fn read(&self) -> SequenceTuple {
        let _locked = ContentLock::shared(self);
        // SAFETY: the buffer is pinned, and locked while it is read.
        unsafe { *tuple_on(pg_sys::BufferGetPage(self.buffer)) }
    }

    /// Prepares a change, and allocates the memory for it. Takes no lock yet.
    pub fn prepare(&mut self) -> Edit<'_> {
        // SAFETY: the relation is open.
        let state = unsafe { pg_sys::GenericXLogStart(self.sequence.as_ptr()) };
        Edit { page: self, state }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if !abort::is_under_way() {
            // SAFETY: pinned in `open`.
            unsafe { pg_sys::ReleaseBuffer(self.buffer) };
        }
    }
}

/// A change of the tuple that is prepared. Where it is not applied, it is dropped without a trace.
pub struct Edit<'a> {
    page: &'a mut Page,
    /// Null once the change is made.
    state: *mut pg_sys::GenericXLogState,
}

impl Edit<'_> {
    /// The tuple as it is now.
    pub fn read(&self) -> SequenceTuple {
        self.page.read()
    }

    /// Locks the page and calls `decide` with its tuple. Where that returns another one, writes and logs it. The log is
    /// not flushed.
    ///
    /// `decide` must not fail, wait, or call PostgreSQL.
    pub fn apply(mut self, decide: impl FnOnce(SequenceTuple) -> Option<SequenceTuple>) {
        let buffer = self.page.buffer;
        let _locked = ContentLock::exclusive(self.page);
        // SAFETY: the buffer is pinned, and locked while it is read or changed; the change is made on the copy that
        // generic WAL gives out.
        unsafe {
            if let Some(new) = decide(*tuple_on(pg_sys::BufferGetPage(buffer))) {
                let state = std::mem::replace(&mut self.state, std::ptr::null_mut());
                *tuple_on(pg_sys::GenericXLogRegisterBuffer(state, buffer, 0)) = new;
                pg_sys::GenericXLogFinish(state);
            }
        }
    }
}

impl Drop for Edit<'_> {
    fn drop(&mut self) {
        if !self.state.is_null() && !abort::is_under_way() {
            // SAFETY: begun in `prepare`, and not finished.
            unsafe { pg_sys::GenericXLogAbort(self.state) };
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

/// The lock on what a page holds, until this is dropped. The page stays pinned for longer.
struct ContentLock {
    buffer: pg_sys::Buffer,
}

impl ContentLock {
    fn shared(page: &Page) -> Self {
        // SAFETY: the buffer is pinned, and this process does not hold its lock.
        unsafe { lock(page.buffer, pg_sys::BUFFER_LOCK_SHARE) };
        Self { buffer: page.buffer }
    }

    fn exclusive(page: &Page) -> Self {
        // SAFETY: as above.
        unsafe { lock(page.buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE) };
        Self { buffer: page.buffer }
    }
}

impl Drop for ContentLock {
    fn drop(&mut self) {
        if !abort::is_under_way() {
            // SAFETY: locked since this was made.
            unsafe { unlock(self.buffer) };
        }
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
