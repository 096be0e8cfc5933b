//! A relation that is open, and closes by itself.

use crate::postgres::abort;
use pgrx::pg_sys;
use std::ffi::CString;

/// A relation that is open until this is dropped.
pub struct OpenRelation {
    relation: pg_sys::Relation,
    /// The lock that is released when it is closed, or none.
    lock: pg_sys::LOCKMODE,
}

impl OpenRelation {
    /// Locks and opens a relation; `None` where there is none. Waits for a lock that is in the way. The lock goes when this is dropped.
    /// `lock` is one of PostgreSQL's modes, from `AccessShareLock` to `AccessExclusiveLock`.
    pub fn open(relation: pg_sys::Oid, lock: u32) -> Option<Self> {
        assert!((pg_sys::AccessShareLock..=pg_sys::AccessExclusiveLock).contains(&lock));
        let lock = lock as pg_sys::LOCKMODE;
        // SAFETY: takes any OID, and returns NULL where there is no such relation.
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

    /// Its row of pg_class.
    fn row(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: PostgreSQL's description of a relation has the row for as long as the relation is open.
        unsafe { &*(*self.relation).rd_rel }
    }

    /// Its OID.
    pub fn oid(&self) -> pg_sys::Oid {
        self.row().oid
    }

    /// The OID of its schema.
    pub fn schema(&self) -> pg_sys::Oid {
        self.row().relnamespace
    }

    /// One of `pg_sys::RELKIND_…`.
    pub fn kind(&self) -> u8 {
        self.row().relkind as u8
    }

    /// Its name, without its schema.
    pub fn name(&self) -> String {
        self.c_name().to_string_lossy().into_owned()
    }

    /// The same in the server's encoding.
    pub fn c_name(&self) -> CString {
        let bytes = self.row().relname.data.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0);
        CString::new(bytes.collect::<Vec<u8>>()).unwrap_or_default()
    }
}

impl Drop for OpenRelation {
    fn drop(&mut self) {
        if !abort::is_under_way() {
            // SAFETY: it is open, and locked so unless the lock is to stay.
            unsafe { pg_sys::relation_close(self.relation, self.lock) };
        }
    }
}
