//! Questions to PostgreSQL about OIDs, which change nothing.

use pgrx::pg_sys;

macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) = $answer:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name($($argument: pg_sys::Oid),*) -> bool {
            // SAFETY: each of these takes any OIDs, in a session, and looks into the catalog or into memory
            // of this process.
            unsafe { $answer }
        }
    )*};
}

questions! {
    /// Whether a role has the privileges of another one, as a member of it or as a superuser.
    has_privileges_of(role, other) = pg_sys::has_privs_of_role(role, other);

    /// Whether triggers of a relation wait for the end of the transaction.
    waits_for_end(relation) = pg_sys::AfterTriggerPendingOnRel(relation);
}
