//! The one page of a sequence: reading its tuple, and writing it with generic WAL records. Such a write is not part of
//! a transaction: it is not undone by a rollback, and is possible in a read-only transaction, as with `nextval`.
//!
//! A page may be damaged at any time, also after it was opened. So its form is checked whenever it is locked to be read or written, on the
//! very bytes that are then used.

use super::form::{self, Bytes, Content, Parts, SequenceTuple};
use crate::errors::record::RecordError;
use crate::postgres::abort;
use crate::postgres::open_relation::OpenRelation;
use pgrx::pg_sys;

#[cfg(since_pg16)]
use pg_sys::RelFileLocator as RelFile;
#[cfg(not(since_pg16))]
use pg_sys::RelFileNode as RelFile;

/// The page, pinned, of a sequence that is open and locked.
pub struct Page {
    // Dropped in this order.
    pinned: Pinned,
    sequence: OpenRelation,
}

/// Where a page was found: its file, and the buffer that has it until PostgreSQL needs that for another page.
#[derive(Clone, Copy)]
pub struct Place {
    file: RelFile,
    buffer: pg_sys::Buffer,
}

impl Place {
    /// Reads the sequence where the page still is in its buffer; `None` where it is not, or is damaged.
    ///
    /// Opening the sequence takes four times as long. But this does not lock it: where it was replaced or dropped a moment ago, and this session does
    /// not know that yet, the tuple is the one from before.
    pub fn read(self) -> Option<Content> {
        // SAFETY: takes any file, and any buffer that there is. It pins the buffer where that has the page.
        let is_there = unsafe { pg_sys::ReadRecentBuffer(self.file, pg_sys::ForkNumber::MAIN_FORKNUM, 0, self.buffer) };
        // Made only where it is pinned: it is released when this is dropped.
        is_there.then(|| Pinned(self)).and_then(|page| page.read())
    }
}

/// A page that stays in its buffer until this is dropped.
struct Pinned(Place);

impl Pinned {
    /// What the sequence holds; `None` where the page is damaged.
    fn read(&self) -> Option<Content> {
        let mut parts = Parts::new();
        {
            let _locked = ContentLock::take(self, Mode::Shared);
            // SAFETY: the buffer is pinned, and locked while it is read; both parts are within it.
            unsafe {
                let page = pg_sys::BufferGetPage(self.0.buffer).cast::<u8>();
                page.copy_to_nonoverlapping(parts.before.as_mut_ptr(), parts.before.len());
                page.add(form::UPPER).copy_to_nonoverlapping(parts.behind.as_mut_ptr(), parts.behind.len());
            }
        }
        parts.content()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !abort::is_under_way() {
            // SAFETY: it was pinned for this, once, and nothing looks at it any more.
            unsafe { pg_sys::ReleaseBuffer(self.0.buffer) };
        }
    }
}

impl Page {
    /// Opens the relation to read or write it, also in recovery; `None` where it is gone, or is no sequence. Waits where a transaction is
    /// dropping it, or has replaced its file, as ALTER SEQUENCE does. It takes the lock that `nextval` takes: with a weaker one, the file could
    /// go before it is read.
    pub fn open(relation: pg_sys::Oid) -> Option<Self> {
        let sequence = OpenRelation::open(relation, pg_sys::RowExclusiveLock)
            .filter(|relation| relation.kind() == pg_sys::RELKIND_SEQUENCE)?;
        let relation = sequence.as_ptr();
        // SAFETY: the relation is open, and is a sequence, which has a block 0.
        let place = unsafe {
            #[cfg(not(since_pg16))]
            let file = (*relation).rd_node;
            #[cfg(since_pg16)]
            let file = (*relation).rd_locator;
            Place { file, buffer: pg_sys::ReadBuffer(relation, 0) }
        };
        Some(Self { pinned: Pinned(place), sequence })
    }

    /// Where it is.
    pub const fn place(&self) -> Place {
        self.pinned.0
    }

    /// Reads the tuple.
    ///
    /// # Errors
    /// Where the page is damaged.
    pub fn read(&self) -> Result<SequenceTuple, RecordError> {
        self.content().map(|content| content.tuple)
    }

    /// Reads the tuple, and what is kept.
    ///
    /// # Errors
    /// Where the page is damaged.
    pub fn content(&self) -> Result<Content, RecordError> {
        self.pinned.read().ok_or_else(|| self.damaged())
    }

    /// Has all sessions forget what they know of the sequence, at the end of the transaction.
    pub fn announce_change(&self) {
        // SAFETY: the relation exists, as it is open and locked.
        unsafe { pg_sys::CacheInvalidateRelcacheByRelid(self.sequence.oid()) };
    }

    fn damaged(&self) -> RecordError {
        RecordError::Damaged(self.sequence.name())
    }

    /// Prepares a change, and allocates the memory for it. Takes no lock yet.
    pub fn prepare(&mut self) -> Edit<'_> {
        // SAFETY: the relation is open until this page is dropped, which the change does not outlive.
        let state = unsafe { pg_sys::GenericXLogStart(self.sequence.as_ptr()) };
        Edit { page: self, state }
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
    ///
    /// # Errors
    /// Where the page is damaged.
    pub fn read(&self) -> Result<SequenceTuple, RecordError> {
        self.page.read()
    }

    /// Locks the page and calls `decide` with its tuple. Where that returns another one, writes and logs it. The log is
    /// not flushed.
    ///
    /// `decide` must not fail, wait, or call PostgreSQL.
    ///
    /// # Errors
    /// Where the page is damaged. Then `decide` is not called, and nothing is written. The page is locked no more.
    pub fn apply(self, decide: impl FnOnce(SequenceTuple) -> Option<SequenceTuple>) -> Result<(), RecordError> {
        self.change(|page, old| decide(old).map(|new| form::set_tuple(page, new)))
    }

    /// The same, with `new` as the tuple; and its value is kept.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn keep(self, new: SequenceTuple) -> Result<(), RecordError> {
        self.change(|page, _| {
            form::set_tuple(page, new);
            form::keep(page, new.last_value);
            Some(())
        })
    }

    /// Locks the page, and has `change` change it. Where that returns `None`, nothing is written.
    fn change(mut self, change: impl FnOnce(&mut Bytes, SequenceTuple) -> Option<()>) -> Result<(), RecordError> {
        let pinned = &self.page.pinned;
        let is_intact = {
            let _locked = ContentLock::take(pinned, Mode::Exclusive);
            // SAFETY: the buffer is pinned, and locked until the change is made. Generic WAL gives out a copy of the page, which nobody else
            // has, and which stays until the change is finished.
            unsafe {
                let copy = pg_sys::GenericXLogRegisterBuffer(self.state, pinned.0.buffer, 0).cast::<Bytes>();
                let page = &mut *copy;
                Parts::of(page).tuple().map(|old| change(page, old)).map(|changed| {
                    if changed.is_some() {
                        pg_sys::GenericXLogFinish(std::mem::replace(&mut self.state, std::ptr::null_mut()));
                    }
                })
            }
        };
        is_intact.ok_or_else(|| self.page.damaged())
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

/// The lock on what a page holds, until this is dropped. The page stays pinned for longer.
struct ContentLock<'a>(&'a Pinned);

impl<'a> ContentLock<'a> {
    /// Waits for the lock, which this process must not hold yet: it would wait for itself.
    fn take(page: &'a Pinned, mode: Mode) -> Self {
        lock(page, Some(mode));
        Self(page)
    }
}

impl Drop for ContentLock<'_> {
    fn drop(&mut self) {
        if !abort::is_under_way() {
            lock(self.0, None);
        }
    }
}

/// How what a page holds is locked.
#[derive(Clone, Copy)]
enum Mode {
    Shared,
    Exclusive,
}

/// Locks what a page holds, or with `None` lets go of it. In PostgreSQL 19, `LockBuffer()` is inline in bufmgr.h, and calls these.
fn lock(page: &Pinned, mode: Option<Mode>) {
    let mode = mode.map(|mode| match mode {
        Mode::Shared => pg_sys::BUFFER_LOCK_SHARE,
        Mode::Exclusive => pg_sys::BUFFER_LOCK_EXCLUSIVE,
    });
    // SAFETY: the buffer is pinned for as long as there is this. Only `ContentLock` calls this, which locks once and unlocks once.
    unsafe {
        #[cfg(not(since_pg19))]
        pg_sys::LockBuffer(page.0.buffer, mode.unwrap_or(pg_sys::BUFFER_LOCK_UNLOCK) as i32);
        #[cfg(since_pg19)]
        match mode {
            Some(mode) => pg_sys::LockBufferInternal(page.0.buffer, mode),
            None => pg_sys::UnlockBuffer(page.0.buffer),
        }
    }
}
