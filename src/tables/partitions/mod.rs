//! Partitions by ID time. [`snowflake_core::pieces`] divides a range of time into pieces and finds those that have no
//! partition yet. This makes all checks, and then runs one CREATE TABLE for each missing piece, as the owner of the table,
//! which [`table`] knows; [`upkeep`] does so for the time ahead, and lets old partitions go. A partition gets the owner and the privileges of its table: what it carries, such as indexes with
//! expressions, is that owner's code.

mod declare;
pub mod default_rows;
mod failure;
mod key;
mod keys;
mod leaving;
mod marks;
mod names;
mod privileges;
mod table;
pub mod upkeep;

pub use declare::declare;
pub use failure::Failure;
pub use keys::{KeyLayout, Unmarked, adopted, released, unmarked};

use self::key::RangeKey;
use self::keys::Keys;
use self::names::shown;
use self::table::{Table, check_owner};
use crate::errors::partitions::PartitionError;
use crate::postgres::held::{Held, NamedRelation, Seen};
use crate::postgres::time::clock;
use crate::postgres::time::timestamptz::Instant;
use crate::postgres::{catalog, read_only, restricted};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::{Edge, Piece, PieceLength, PiecesError, continued, pieces};
use snowflake_core::{Layout, Micros, UnixMicros};
use std::ops::Range;

/// Creates the partitions of a table that are missing, one for each piece of a range of time: a call of
/// `snowflake_create_partitions()`. Returns them.
///
/// # Errors
/// Where an argument is NULL or means nothing, the caller may not, or something is in the way.
pub fn create(
    of: KeyLayout,
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<Vec<pg_sys::Oid>, Failure> {
    let create = || Spi::connect_mut(|client| create_by(client, of, parent, every, since, until));
    restricted::with(&[restricted::SAFE_PATH], create)
}

fn create_by(
    client: &mut SpiClient,
    of: KeyLayout,
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<Vec<pg_sys::Oid>, Failure> {
    let parent = parent.ok_or(PartitionError::Null("parent"))?;
    // First, so that nobody else can lock the table or learn anything about it.
    check_owner(parent)?;
    read_only::refuse_in_transaction(c"snowflake_create_partitions()");
    let (key, layout) = (RangeKey::of(client, parent)?, &of.layout);
    let times = Times::of(layout, every, since, until)?;

    // First with a weak lock that is released at once: usually all partitions exist, or one overlaps.
    let table = Table::<Seen>::look(&key)?;
    if table.missing(&times.wanted(layout, &table)?)?.is_empty() {
        return Ok(Vec::new());
    }
    // As strong as the lock that CREATE TABLE ... PARTITION OF takes. Two sessions that held a weaker one and upgraded
    // it would deadlock.
    let table = Table::<Held>::look(&key)?;
    let wanted = times.wanted(layout, &table)?;
    let missing = table.missing(&wanted)?;
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    table.check_may_create()?;
    // The lock that CREATE TABLE would take, so that no row comes in after the check.
    table.owner.run(|| table.blocked(client, &key, &wanted, &missing, i64::MIN, pg_sys::AccessExclusiveLock))?;
    let present = present(layout);
    let marking = Keys::read(client, &table, &key, of)?.marking(table.last_before(present), present);
    table.owner.run(|| table.fill_gaps(client, &key, &wanted, missing, marking))
}

/// What the caller of `snowflake_create_partitions()` asks for.
struct Times {
    every: PieceLength,
    /// As the caller gives them.
    given: (i64, i64),
    since: UnixMicros,
    until: UnixMicros,
}

impl Times {
    /// Checks what does not depend on the table.
    fn of(
        layout: &Layout,
        every: Option<Interval>,
        since: Option<i64>,
        until: Option<i64>,
    ) -> Result<Self, PartitionError> {
        let every = every.ok_or(PartitionError::Null("every"))?;
        let since = since.ok_or(PartitionError::Null("since"))?;
        let until = until.ok_or(PartitionError::Null("until"))?;
        let every = step(every)?;
        let times =
            Self { every, given: (since, until), since: finite(since, "since")?, until: finite(until, "until")? };
        times.pieces(layout, times.since)?;
        Ok(times)
    }

    fn pieces(&self, layout: &Layout, since: UnixMicros) -> Result<Vec<Piece>, PartitionError> {
        pieces(layout, self.every, since, self.until)
            .map_err(|problem: PiecesError| PartitionError::Range(self.given.0, self.given.1, problem))
    }

    /// The pieces of the range. Where it begins within a partition that is such a piece, they are counted from there.
    fn wanted<N: NamedRelation>(&self, layout: &Layout, table: &Table<N>) -> Result<Vec<Piece>, PartitionError> {
        let bounds: Vec<Range<Edge>> = table.bounds().cloned().collect();
        self.pieces(layout, continued(layout, self.every, &bounds, self.since))
    }
}

/// The first ID of the present tick; that of the layout where it has no such time.
fn present(layout: &Layout) -> i64 {
    layout.lowest_id_from(layout.start_of(layout.tick_at(clock::now()))).unwrap_or(0)
}

/// The length of partitions.
fn step(every: Interval) -> Result<PieceLength, PartitionError> {
    PieceLength::new(every.months(), every.days(), Micros(every.micros()))
        .map_err(|problem| PartitionError::Step(interval_text(every), problem))
}

fn interval_text(interval: Interval) -> String {
    shown(&catalog::interval(interval).unwrap_or_default())
}

fn finite(timestamptz: i64, argument: &'static str) -> Result<UnixMicros, PartitionError> {
    match Instant::from_datum(timestamptz) {
        Instant::At(instant) => Ok(instant),
        Instant::Past | Instant::Future => Err(PartitionError::Infinite(argument)),
    }
}
