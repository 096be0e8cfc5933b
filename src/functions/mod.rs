//! The functions that SQL calls. Their SQL declarations, by hand, are in `sql/`; a `timestamptz` passes as the number
//! that it is (see [`crate::time::timestamptz`]).

/// Says that functions which PostgreSQL calls without pgrx's wrapper have its calling convention, version 1: the names are
/// theirs with `pg_finfo_` before.
macro_rules! version_1 {
    ($($name:ident),+) => {
        $(
            #[unsafe(no_mangle)]
            #[doc(hidden)]
            pub extern "C" fn $name() -> &'static pgrx::pg_sys::Pg_finfo_record {
                const VERSION_1: pgrx::pg_sys::Pg_finfo_record = pgrx::pg_sys::Pg_finfo_record { api_version: 1 };
                &VERSION_1
            }
        )+
    };
}

mod decode;
mod layouts;
mod next;
mod partitions;
mod range;
mod reservation;
mod status;
mod text;
