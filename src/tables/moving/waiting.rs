//! How long a move waits for a lock, and who is in its way. All who come later wait behind it.

use super::catalogue;
use super::rows::{maybe_text, oid, rows, text};
use crate::errors::Error;
use crate::errors::moving::MovingError;
use crate::postgres::held::{Holds, NamedRelation, Seen};
use crate::postgres::subtransaction::undone;
use crate::postgres::{encoding, restricted};
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use std::panic::AssertUnwindSafe;

const HOLDERS: &str = include_str!("waiting/holders.sql");

/// Where the session has no `lock_timeout`.
const LONGEST: restricted::Setting = (c"lock_timeout", c"5s");

/// Does something with tables that waits for each lock for so long at most: as the session says, or
/// else 5 seconds. Where one is not granted in time, the error says who has it.
pub fn bounded<T>(client: &mut SpiClient, tables: &[pg_sys::Oid], work: impl FnOnce(&mut SpiClient) -> T) -> T {
    // SAFETY: a variable of this process.
    let has_own = unsafe { pg_sys::LockTimeout } > 0;
    // Reading the catalogue waits for those only who exclude everybody.
    let weaker =
        ["AccessShare", "RowShare", "RowExclusive", "ShareUpdateExclusive", "Share", "ShareRowExclusive", "Exclusive"];
    let weaker = weaker.map(|mode| format!("{mode}Lock"));
    let tried = || if has_own { work(client) } else { restricted::with(&[LONGEST], || work(client)) };
    PgTryBuilder::new(AssertUnwindSafe(tried))
        .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |caught| match caught {
            CaughtError::PostgresError(_) => tell(tables, &weaker, true),
            caught => caught.rethrow(),
        })
        .execute()
}

/// Holds a relation. Where its lock is not granted in time, the error says who has it.
pub fn hold(holds: &mut Holds, relation: pg_sys::Oid, lock: u32) {
    let weaker = ["AccessShareLock", "RowShareLock"].map(str::to_owned);
    let weaker = if lock == pg_sys::AccessExclusiveLock { &[] } else { &weaker[..] };
    PgTryBuilder::new(AssertUnwindSafe(|| holds.hold(relation, lock)))
        .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |_| tell(&[relation], weaker, false))
        .execute();
}

fn tell(relations: &[pg_sys::Oid], weaker: &[String], and_near: bool) -> ! {
    // There is an error already, and all that is left is to raise one: so in a subtransaction.
    let holders = undone(|| Spi::connect_mut(|client| holders(client, relations, weaker, and_near)));
    let holders = holders.unwrap_or_default();
    let relation = holders.first().map_or(relations[0], |(relation, _)| *relation);
    let name = Seen::of(relation).map(|seen| encoding::read_name(&seen.quoted()));
    let of_it = holders.into_iter().filter(|(other, _)| *other == relation).map(|(_, holder)| holder);
    Error::from(MovingError::NotLocked(name.unwrap_or_default(), of_it.collect())).raise()
}

/// Those who have a lock, each with the relation, in words, as far as the caller may know.
fn holders(
    client: &SpiClient,
    relations: &[pg_sys::Oid],
    weaker: &[String],
    and_near: bool,
) -> Vec<(pg_sys::Oid, String)> {
    let read = || {
        // It may have been read in this transaction before.
        rows(client, "SELECT pg_stat_clear_snapshot()", &[], |_| Ok(()))?;
        let arguments = [relations.to_vec().into(), weaker.to_vec().into(), and_near.into()];
        rows(client, HOLDERS, &arguments, |row| {
            let holder = format!("{}{}", text(row, 2)?, maybe_text(row, 3)?.unwrap_or_default());
            Ok((pg_sys::Oid::from(oid(row, 1)?.0), holder))
        })
    };
    catalogue::look(read).unwrap_or_default()
}
