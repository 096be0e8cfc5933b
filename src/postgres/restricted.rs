//! Whose code runs as whom. A table carries code of its owner's: the functions of its constraints, defaults, indexes, statistics,
//! policies. PostgreSQL runs some of it for every query, already when the query is planned. So what the extension runs over
//! tables is run as their owner and not as its caller, who may be a superuser: in a security-restricted operation, in which
//! nothing can be left behind for later, and with a `search_path` in which nobody's objects stand before PostgreSQL's. REINDEX
//! and VACUUM do the same.

use crate::postgres::catalog;
use pgrx::pg_sys;
use std::ffi::CStr;

/// A parameter and its value.
pub type Setting = (&'static CStr, &'static CStr);

/// The `search_path` in which a name without a schema is PostgreSQL's own.
pub const SAFE_PATH: Setting = (c"search_path", c"pg_catalog, pg_temp");

/// The role whose code a relation may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The role.
    pub role: pg_sys::Oid,
    /// Whether the relation is a temporary one.
    pub is_temporary: bool,
}

impl Owner {
    /// The owner of a relation; `None` where there is no such relation.
    pub fn of(relation: pg_sys::Oid) -> Option<Self> {
        catalog::relation(relation).map(|found| Self { role: found.owner, is_temporary: found.is_temporary })
    }

    /// Runs this as the owner. Row-level security does not concern him, even where it is forced: it would hide values from
    /// the extension.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        // Nothing temporary can be made in a restricted operation. A temporary table is one of this session, and its owner
        // could have left anything behind before. All that remains is to keep its code from going back to another role.
        let restriction = if self.is_temporary {
            pg_sys::SECURITY_LOCAL_USERID_CHANGE
        } else {
            pg_sys::SECURITY_RESTRICTED_OPERATION
        };
        let restriction = (restriction | pg_sys::SECURITY_NOFORCE_RLS) as i32;
        // Where an error comes out of `work`, the end of the transaction or of the subtransaction sets both back.
        let (caller, context) = change_user(self.role, |context| context | restriction);
        let result = with(&[SAFE_PATH], work);
        change_user(caller, |_| context);
        result
    }
}

/// Changes as whom statements run, and the flags that say what they may do. Returns both as they were.
fn change_user(role: pg_sys::Oid, flags: impl FnOnce(i32) -> i32) -> (pg_sys::Oid, i32) {
    let (mut before, mut flags_before) = (pg_sys::InvalidOid, 0);
    // SAFETY: reads and writes variables of this process. Where no role has this OID, it has no privileges but those of PUBLIC.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&raw mut before, &raw mut flags_before);
        pg_sys::SetUserIdAndSecContext(role, flags(flags_before));
    }
    (before, flags_before)
}

/// Runs this with settings that any user may change. Afterwards, all settings are what they were.
pub fn with<T>(settings: &[Setting], work: impl FnOnce() -> T) -> T {
    use pg_sys::{GucAction, GucContext, GucSource};
    // SAFETY: opens a level of settings, and closes it. Where an error leaves it open, the end of the transaction or of
    // the subtransaction closes it. Strings are NUL-terminated.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        for (name, value) in settings {
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
                GucContext::PGC_USERSET,
                GucSource::PGC_S_SESSION,
                GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
        }
        let result = work();
        // Also what code of others has set meanwhile.
        pg_sys::AtEOXact_GUC(false, level);
        result
    }
}
