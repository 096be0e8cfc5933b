//! Questions to PostgreSQL about roles, types and relations, which change nothing.

use pgrx::pg_sys::{self, Oid};
use std::ffi::CStr;

macro_rules! questions {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $answer:block)*) => {$(
        $(#[$doc])*
        pub fn $name($($argument: $type),*) -> $result {
            // SAFETY: each of these takes any OIDs and any name, which is NUL-terminated, in a session, and looks
            // into the catalog or into memory of this process.
            unsafe { $answer }
        }
    )*};
}

questions! {
    /// Whether a role has the privileges of another one, as a member of it or as a superuser.
    fn has_privileges_of(role: Oid, other: Oid) -> bool {
        pg_sys::has_privs_of_role(role, other)
    }

    /// The type with this name in a schema; 0 where there is none.
    fn type_named(schema: Oid, name: &CStr) -> Oid {
        let none = pg_sys::Datum::from(0);
        let (cache, oid) = (pg_sys::SysCacheIdentifier::TYPENAMENSP, pg_sys::Anum_pg_type_oid);
        pg_sys::GetSysCacheOid(cache as _, oid as _, name.as_ptr().into(), schema.into(), none, none)
    }

    /// Whether a role may use a type.
    fn may_use_type(role: Oid, of: Oid) -> bool {
        let mode = pg_sys::ACL_USAGE as pg_sys::AclMode;
        #[cfg(not(since_pg16))]
        let result = pg_sys::pg_type_aclcheck(of, role, mode);
        #[cfg(since_pg16)]
        let result = pg_sys::object_aclcheck(pg_sys::TypeRelationId, of, role, mode);
        result == pg_sys::AclResult::ACLCHECK_OK
    }

    /// Whether a role may set a sequence.
    fn may_update(role: Oid, sequence: Oid) -> bool {
        pg_sys::pg_class_aclcheck(sequence, role, pg_sys::ACL_UPDATE as pg_sys::AclMode)
            == pg_sys::AclResult::ACLCHECK_OK
    }

    /// Whether triggers of a relation wait for the end of the transaction.
    fn waits_for_end(relation: Oid) -> bool {
        pg_sys::AfterTriggerPendingOnRel(relation)
    }
}
