//! What a restore may change. A dump sets each sequence of the record by a statement of its own, such as
//! `SELECT pg_catalog.setval('_snowflake.epoch', 1704067200000000, true)`. In a fresh database that brings the record
//! along. In one with IDs of its own, another layout would have them all misread, and another server's reservation would
//! stop it. Such a statement ends with an error, which pg_restore and psql show before they go on with the rest: a
//! warning, pg_restore would not show.
//!
//! What pg_restore and psql send is seen. What sets a sequence in another way, as by a parameter or as a subscription does,
//! is not: the layout in use is [kept](super::keep) all the same.

use super::form::Content;
use super::{EPOCH, LAYOUT, RESERVATION, SCHEMA, SINCE, explained_lead, is_kept, open, read_contents};
use crate::errors::Error;
use crate::errors::record::RecordError;
use crate::postgres::time::clock;
use crate::postgres::{catalog, process, questions};
use crate::settings;
use pgrx::pg_sys;
use snowflake_core::{Layout, UnixMicros};
use std::cell::Cell;
use std::ffi::CStr;

thread_local! {
    /// Whether another layout was left out in this session: then the reservation that follows is of its IDs.
    static LEFT_OUT: Cell<bool> = const { Cell::new(false) };
}

/// Whether to set a sequence to this number says nothing new, and so is to be left out. Ends the statement where it must
/// not be done.
pub fn says_nothing_new(sequence: pg_sys::Oid, number: i64) -> bool {
    look(sequence, number).unwrap_or_default()
}

/// The same; `None` where this is no sequence of the record, or not ours to judge.
fn look(sequence: pg_sys::Oid, number: i64) -> Option<bool> {
    let schema = catalog::schema_named(SCHEMA)?;
    let is_named = |name: &CStr| catalog::relation_named(schema, name) == Some(sequence);
    let name = [LAYOUT, EPOCH, RESERVATION, SINCE].into_iter().find(|name| is_named(name))?;
    // Else PostgreSQL has an error of its own.
    if process::is_in_recovery() || !questions::may_update(process::user(), sequence) {
        return None;
    }
    // Where the record cannot be read, it cannot be in use: a restore may repair it.
    let is_in_use = is_kept().ok()?;
    if name == SINCE {
        // Since when another database makes IDs says nothing of this one.
        return Some(is_in_use);
    } else if name != RESERVATION {
        check_layout(name, number, is_in_use);
        return Some(false);
    }
    let page = open(sequence).ok()?;
    let value = page.read().ok()?.last_value;
    drop(page);
    Some(check_time(number, value, is_in_use))
}

/// Ends the statement where this is another layout, or epoch, than the one in use.
fn check_layout(name: &CStr, given: i64, is_in_use: bool) {
    let Ok(contents) = read_contents() else { return };
    let [form, epoch] = contents.map(|Content { tuple, kept }| kept.filter(|_| is_in_use).unwrap_or(tuple.last_value));
    let Some(layout) = Layout::from_numbers(form, epoch) else { return };
    // A database that was restored has IDs, too.
    let has_ids = is_in_use || super::has_ids().unwrap_or_default();
    if has_ids && given != if name == EPOCH { epoch } else { form } {
        LEFT_OUT.set(true);
        let (name, layout) = (name.to_string_lossy().into_owned(), layout.to_string());
        Error::from(RecordError::LayoutStays { name, given, layout }).raise();
    }
}

/// Whether a reservation is to be left out: that of a dump of another layout, and an earlier one. Ends the statement where
/// it is too far ahead of the clock.
fn check_time(given: i64, value: i64, is_in_use: bool) -> bool {
    if LEFT_OUT.replace(false) || (given <= value && super::has_ids().unwrap_or_default()) {
        return true;
    }
    let ahead = UnixMicros(given.saturating_mul(1000)).saturating_since(clock::now());
    if is_in_use && ahead > explained_lead(settings::layout()) {
        Error::from(RecordError::TimeStays { ahead }).raise();
    }
    false
}
