//! A relation that is open, and closes by itself.

use crate::postgres::abort;
use pgrx::pg_sys;
use std::ffi::CStr;

/// A relation that is open until this is dropped.
pub struct OpenRelation {
    relation: pg_sys::Relation,
    /// The lock that is released when it is closed, or none.
    lock: pg_sys::LOCKMODE,
}

impl OpenRelation {
    /// Locks and opens a relation; `None` where there is none. Waits for a lock that is in the way. The lock goes when this is dropped.
    pub fn open(relation: pg_sys::Oid, lock: u32) -> Option<Self> {
        let lock = lock as pg_sys::LOCKMODE;
        // SAFETY: a look-up, which returns NULL where the relation is gone.
        let relation = unsafe { pg_sys::try_relation_open(relation, lock) };
        (!relation.is_null()).then(|| Self { relation, lock })
    }

    /// As [`Self::open`], but the lock stays until the end of the transaction.
    pub fn open_and_keep_locked(relation: pg_sys::Oid, lock: u32) -> Option<Self> {
        let mut open = Self::open(relation, lock)?;
        open.lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        Some(open)
    }

    /// PostgreSQL's description, which is there as long as this.
    pub fn as_ptr(&self) -> pg_sys::Relation {
        self.relation
    }

    /// One of `pg_sys::RELKIND_…`.
    pub fn kind(&self) -> u8 {
        // SAFETY: a relation that is open has its description.
        unsafe { (*(*self.relation).rd_rel).relkind as u8 }
    }

    /// Its name, without its schema.
    pub fn name(&self) -> String {
        // SAFETY: as above; the name is NUL-terminated.
        unsafe { CStr::from_ptr((*(*self.relation).rd_rel).relname.data.as_ptr()) }.to_string_lossy().into_owned()
    }
}

impl Drop for OpenRelation {
    fn drop(&mut self) {
        if !abort::is_under_way() {
            // SAFETY: opened, and locked so, by the two functions above.
            unsafe { pg_sys::relation_close(self.relation, self.lock) };
        }
    }
}
