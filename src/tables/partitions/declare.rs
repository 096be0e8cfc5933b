//! `snowflake_declare_keys()`: the owner of a table says from when on its keys are snowflake IDs,
//! and so how old rows are.

use super::failure::Failure;
use super::key::RangeKey;
use super::keys::{KeyLayout, Keys};
use super::marks::{has_mark, set_mark};
use super::names::shown;
use super::table::{Table, check_owner, most};
use crate::errors::partitions::{PartitionError, left_to_next_call};
use crate::postgres::held::{NamedRelation, Seen};
use crate::postgres::read_only;
use crate::postgres::restricted;
use crate::postgres::time::timestamptz::Instant;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::upkeep::first_with_age;

/// Marks the partitions of a table, and its default partition, and returns those that were marked.
/// `since`, a `timestamptz`: of keys with earlier times, nothing is known. At infinity, marks are
/// removed.
///
/// # Errors
/// Where the caller may not, or the table's default makes other keys.
pub fn declare(of: KeyLayout, parent: Option<pg_sys::Oid>, since: Option<i64>) -> Result<Vec<pg_sys::Oid>, Failure> {
    let declare = || Spi::connect_mut(|client| declare_by(client, of, parent, since));
    restricted::with(&[restricted::SAFE_PATH], declare)
}

fn declare_by(
    client: &mut SpiClient,
    of: KeyLayout,
    parent: Option<pg_sys::Oid>,
    since: Option<i64>,
) -> Result<Vec<pg_sys::Oid>, Failure> {
    let parent = parent.ok_or(PartitionError::NothingToDeclare)?;
    check_owner(parent)?;
    read_only::refuse_in_transaction(c"snowflake_declare_keys()");
    let key = RangeKey::of(client, parent)?;
    let table = Table::<Seen>::look(&key)?;
    let first = match since.map(Instant::from_datum) {
        None => Some(first_with_age(&of.layout)),
        Some(Instant::Past) => Some(0),
        Some(Instant::At(since)) => Some(of.layout.lowest_id_from(since).unwrap_or(0)),
        Some(Instant::Future) => None,
    };
    let unfit = Keys::read(client, &table, &key, of)?.unfit();
    if let Some(reason) = unfit.filter(|_| first.is_some()) {
        return Err(PartitionError::OtherKeys { table: shown(&table.named.quoted()), reason }.into());
    }
    // Of those that end before it, nothing is said.
    let all = table.parts_from(first.unwrap_or(i64::MIN)).into_iter();
    let mut all: Vec<_> = all.map(|(partition, from)| (partition, first.map(|_| (from, &of.layout)))).collect();
    all.retain(|&(partition, mark)| !has_mark(partition, mark));
    let later = all.split_off(all.len().min(most(client, parent)?));
    let mut marked = Vec::with_capacity(all.len());
    for (partition, mark) in all {
        check_owner(partition)?;
        if set_mark(partition, mark) {
            marked.push(partition);
        }
    }
    if !later.is_empty() {
        left_to_next_call(later.len(), marked.len());
    }
    Ok(marked)
}
