//! PostgreSQL's `timestamptz`: microseconds since 2000-01-01, with both infinities. It passes through the SQL
//! functions as the plain number that it is.

use pgrx::pg_sys;
use snowflake_core::UnixMicros;
use std::ffi::CStr;
#[cfg(since_pg19)]
use std::ptr;

/// 2000-01-01T00:00:00Z, PostgreSQL's epoch, in microseconds since 1970.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// The kinds of a `timestamptz`.
#[derive(Clone, Copy)]
pub enum Instant {
    /// `-infinity`.
    Past,
    /// Any finite instant, from 4714 BC to AD 294276.
    At(UnixMicros),
    /// `infinity`.
    Future,
}

impl Instant {
    /// From the number that stands for a `timestamptz`.
    pub const fn from_datum(timestamptz: i64) -> Self {
        match timestamptz {
            i64::MIN => Self::Past,
            i64::MAX => Self::Future,
            finite => Self::At(UnixMicros(finite.saturating_add(POSTGRES_EPOCH))),
        }
    }
}

/// To the number that stands for a `timestamptz`.
#[inline]
pub const fn to_datum(instant: UnixMicros) -> i64 {
    instant.0 - POSTGRES_EPOCH
}

/// The instant of a `timestamptz`. An infinite one becomes an instant before or after the time of every layout.
#[inline]
pub const fn to_unix(timestamptz: i64) -> UnixMicros {
    UnixMicros(timestamptz.saturating_add(POSTGRES_EPOCH))
}

/// The `timestamptz` of a `timestamp`, by the session's time zone; an infinite one where a finite one would overflow.
/// PostgreSQL's comparisons of the two types convert so.
pub fn from_timestamp(timestamp: i64) -> i64 {
    // SAFETY: takes any timestamp, and raises no error, as the second argument receives what is wrong.
    unsafe {
        #[cfg(not(since_pg19))]
        return pg_sys::timestamp2timestamptz_opt_overflow(timestamp, &mut 0);
        #[cfg(since_pg19)]
        return pg_sys::timestamp2timestamptz_safe(timestamp, ptr::from_mut(&mut soft_errors()).cast());
    }
}

/// The `timestamptz` at which a `date` begins, by the session's time zone; an infinite one where a finite one would overflow.
pub fn from_date(date: i32) -> i64 {
    // SAFETY: takes any date, and raises no error, as the second argument receives what is wrong.
    unsafe {
        #[cfg(not(since_pg19))]
        return pg_sys::date2timestamptz_opt_overflow(date, &mut 0);
        #[cfg(since_pg19)]
        return pg_sys::date2timestamptz_safe(date, ptr::from_mut(&mut soft_errors()).cast());
    }
}

/// A place for an error that is not to be raised, without its message.
#[cfg(since_pg19)]
fn soft_errors() -> pg_sys::ErrorSaveContext {
    pg_sys::ErrorSaveContext { type_: pg_sys::NodeTag::T_ErrorSaveContext, ..Default::default() }
}

/// An instant, as the session's `timezone` and `datestyle` write it.
pub fn display_instant(instant: UnixMicros) -> String {
    display(to_datum(instant))
}

/// A `timestamptz` as the session's `timezone` and `datestyle` write it.
pub fn display(timestamptz: i64) -> String {
    // SAFETY: returns a NUL-terminated string in a static buffer, which is copied at once.
    let text = unsafe { CStr::from_ptr(pg_sys::timestamptz_to_str(timestamptz)) };
    text.to_string_lossy().into_owned()
}
