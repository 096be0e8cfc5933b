//! Partitions that live by themselves: those of the time to come are created, and those that are older than rows are kept go.
//! [`snowflake_core::pieces::upkeep`] says which these are. All is done in the caller's transaction, behind the lock of the
//! table, which is the first: two jobs do not meet in another order, and the second finds nothing left to do.

use super::default_rows::{self, Moved};
use super::failure::Failure;
use super::key::RangeKey;
use super::leaving::{self, Leaving};
use super::names::shown;
use super::table::{Table, check_owner};
use super::{interval_text, step};
use crate::errors::Error;
use crate::errors::partitions::{Kept, PartitionError};
use crate::postgres::encoding::{self, Text};
use crate::postgres::given::Given;
use crate::postgres::held::{Held, NamedRelation, Seen};
use crate::postgres::time::{clock, timestamptz};
use crate::postgres::{catalog, read_only, restricted};
use crate::server::believed;
use crate::{settings, shared};
use pgrx::PgTryBuilder;
use pgrx::datum::Interval;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::upkeep::{Age, UpkeepError, age, ahead, first_with_age};
use snowflake_core::pieces::{Edge, MAX_PIECES, Piece, PieceLength, Span};
use snowflake_core::{Layout, Micros, UnixMicros};
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::panic::AssertUnwindSafe;

/// The name of the SQL function, for PostgreSQL's messages.
const FUNCTION: &CStr = c"snowflake_maintain_partitions()";

/// What the caller wants.
pub struct Upkeep<'a> {
    /// The table.
    pub parent: Option<pg_sys::Oid>,
    /// The length of partitions.
    pub every: Option<Interval>,
    /// For how long partitions are to be there from now on.
    pub ahead: Option<Interval>,
    /// For how long rows are kept; `None` for ever.
    pub retention: Option<Interval>,
    /// What happens to partitions that are older.
    pub expired: Option<Given<'a>>,
    /// What happens to rows in the default partition.
    pub default_rows: Option<Given<'a>>,
    /// Whether nothing is to be done.
    pub dry_run: bool,
}

/// What was done with a partition, or would be.
pub struct UpkeepStep {
    /// Its name, with the schema and quoted.
    pub partition: Text,
    /// What it was.
    pub action: &'static str,
    /// What it holds.
    pub ids: Range<Edge>,
    /// The statement; `None` where nothing is done.
    pub statement: Option<Text>,
    /// Why nothing is done, or that the caller is to do it.
    pub note: Option<Text>,
}

/// The wish, understood.
struct Schedule {
    every: PieceLength,
    ahead: Span,
    retention: Option<Span>,
    leaving: Leaving,
    moves_default_rows: bool,
}

/// What there is to do.
struct UpkeepPlan<N> {
    table: Table<N>,
    /// The pieces that get a partition.
    pieces: Vec<Piece>,
    /// Those that get one by the next calls.
    later: Vec<Piece>,
    /// Those that go, and those that are old and stay.
    old: Vec<leaving::Old>,
}

impl<N: NamedRelation> UpkeepPlan<N> {
    fn is_idle(&self) -> bool {
        self.pieces.is_empty() && self.old.iter().all(|old| !old.is_carried_out())
    }
}

/// Does what a call of `snowflake_maintain_partitions()` asks for, or only says what that would be.
///
/// # Errors
/// Where an argument is NULL or means nothing, the caller may not, or something is in the way.
pub fn maintain(layout: &Layout, wish: &Upkeep<'_>) -> Result<Vec<UpkeepStep>, Failure> {
    restricted::with(&[restricted::SAFE_PATH], || Spi::connect_mut(|client| maintain_by(client, layout, wish)))
}

fn maintain_by(client: &mut SpiClient, layout: &Layout, wish: &Upkeep<'_>) -> Result<Vec<UpkeepStep>, Failure> {
    let parent = wish.parent.ok_or(PartitionError::NothingToMaintain("parent"))?;
    // First, so that nobody else can lock the table or learn anything about it.
    check_owner(parent)?;
    if !wish.dry_run {
        read_only::refuse_in_recovery(FUNCTION);
        read_only::refuse_in_transaction(FUNCTION);
    }
    let terms = understood(wish)?;
    let key = RangeKey::of(client, parent)?;
    let (schema, name) = catalog::qualified_name(parent).unwrap_or_default();
    let mut done = Vec::new();
    if let Some(every) = wish.every.filter(|_| terms.moves_default_rows) {
        let moved = || default_rows::moved(client, &schema, parent, every, wish.dry_run);
        let moved = refusing_to_wait(layout, &name, moved)?;
        let (_, _, passed) = times();
        // The partition is not there yet, so nothing else in a plan says that it goes.
        let goes_at_once = |ids: &Range<Edge>| {
            let is_old = |retention| age(layout, ids, retention, settings::max_lead(), passed) == Age::Old;
            wish.dry_run && terms.retention.is_some_and(is_old)
        };
        done.extend(moved.into_iter().map(|Moved { partition, ids, statements, note: Text(note) }| UpkeepStep {
            note: Some(Text(if goes_at_once(&ids) { format!("{note}; it is older than rows are kept") } else { note })),
            partition,
            action: "move",
            ids,
            statement: statements,
        }));
    }

    // First with a weak lock that is released at once: usually there is nothing to do.
    let plan: UpkeepPlan<Seen> = draw(client, layout, &key, &terms)?;
    if wish.dry_run && !terms.moves_default_rows {
        plan.check(client, &key)?;
    }
    if wish.dry_run || plan.is_idle() {
        plan.warn();
        done.extend(plan.steps());
        return Ok(done);
    }
    refusing_to_wait(layout, &name, || {
        // As strong as the locks that the statements take, so that no other session is in between.
        let mut plan: UpkeepPlan<Held> = draw(client, layout, &key, &terms)?;
        let leaving = plan.hold_leaving(client, layout, &key, &terms)?;
        plan.warn();
        done.extend(plan.steps());
        let UpkeepPlan { table, pieces, .. } = plan;
        if !pieces.is_empty() {
            table.check_may_create()?;
            let all = (0..pieces.len()).collect();
            table.owner.run(|| table.fill_gaps(client, &key, &pieces, all))?;
        }
        for (exit, partition) in leaving {
            table.owner.run(|| exit.statement(&table.named, &partition).update(client))?;
        }
        Ok(done)
    })
}

/// Does something that locks this table; where it does not get the lock in time, the error says what that means for a job.
fn refusing_to_wait<T>(layout: &Layout, name: &CStr, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    PgTryBuilder::new(AssertUnwindSafe(work))
        .catch_when(PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE, |_| {
            Error::from(PartitionError::NotLocked(shown(name))).raise_in(layout)
        })
        .execute()
}

fn understood(wish: &Upkeep<'_>) -> Result<Schedule, PartitionError> {
    let every = step(wish.every.ok_or(PartitionError::NothingToMaintain("every"))?)?;
    let span = |interval: Interval, argument| {
        Span::new(interval.months(), interval.days(), Micros(interval.micros()))
            .ok_or_else(|| PartitionError::NegativeSpan(argument, interval_text(interval)))
    };
    let ahead = span(wish.ahead.ok_or(PartitionError::NothingToMaintain("ahead"))?, "ahead")?;
    let retention = wish.retention.map(|retention| span(retention, "retention")).transpose()?;
    let leaving = wish.expired.ok_or(PartitionError::NothingToMaintain("expired"))?.read();
    let leaving = Leaving::named(&leaving).ok_or_else(|| PartitionError::Expired(leaving.into_owned()))?;
    let default_rows = wish.default_rows.ok_or(PartitionError::NothingToMaintain("default_rows"))?.read();
    let moves_default_rows = match &*default_rows {
        "refuse" => false,
        "move" => true,
        _ => return Err(PartitionError::DefaultRowsWord(default_rows.into_owned())),
    };
    Ok(Schedule { every, ahead, retention, leaving, moves_default_rows })
}

/// The time from which on partitions are needed, the time before which IDs may have been made, and the time that has certainly passed.
/// A clock that has leapt ahead takes nothing away, until it is believed.
fn times() -> (UnixMicros, UnixMicros, UnixMicros) {
    let now = clock::now();
    if !shared::exists() {
        return (now, now, now);
    }
    let believed = believed::now();
    let layout = settings::layout();
    let last = layout.start_of(layout.tick_of(shared::line().last()));
    (believed, believed.max(last), believed.min(now))
}

fn draw<N: NamedRelation>(
    client: &SpiClient,
    layout: &Layout,
    key: &RangeKey,
    terms: &Schedule,
) -> Result<UpkeepPlan<N>, Failure> {
    let table = Table::<N>::look(key)?;
    let (now, latest, passed) = times();
    let until = terms.ahead.later(latest);
    let bounds: Vec<Range<Edge>> = table.bounds().cloned().collect();
    let mut pieces = ahead(layout, terms.every, &bounds, now, until).map_err(|error| match error {
        UpkeepError::Pieces(problem) => {
            let [now, until] = [now, until].map(timestamptz::to_datum);
            PartitionError::Ahead(now, until, problem)
        }
        UpkeepError::NoTime(partition) => PartitionError::NoTime(Box::new(table.existing(partition))),
    })?;
    let later = pieces.split_off(pieces.len().min(most(client, key.table())?));
    // Checks that their names are free.
    table.missing(&pieces)?;
    let mut old = Vec::new();
    if let Some(retention) = terms.retention {
        if terms.leaving == Leaving::DetachConcurrently && table.has_default() {
            return Err(PartitionError::HasDefault(shown(&table.named.quoted())).into());
        }
        let (slack, first) = (settings::max_lead(), first_with_age(layout));
        for (number, bounds) in bounds.iter().enumerate() {
            let found = age(layout, bounds, retention, slack, passed);
            if found != Age::Kept {
                let partition = table.oid(number);
                let looked = leaving::look(client, &table, key, first, partition, bounds.clone(), found, terms.leaving);
                old.extend(looked?);
            }
        }
    }
    Ok(UpkeepPlan { table, pieces, later, old })
}

/// How many indexes a table ($1) has.
const INDEXES: &str = "SELECT pg_catalog.count(*) FROM pg_catalog.pg_index WHERE indrelid OPERATOR(pg_catalog.=) $1";

/// How many partitions of a table one call makes: no more than three quarters of the server's locks are for, as each takes one lock for
/// itself, two for its TOAST table, and one for each of its indexes.
fn most(client: &SpiClient, table: pg_sys::Oid) -> Result<usize, spi::Error> {
    let indexes = client.select(INDEXES, Some(1), &[table.into()])?.first().get_one::<i64>()?.unwrap_or_default();
    // SAFETY: variables of this process, which do not change.
    let locks =
        unsafe { i64::from(pg_sys::max_locks_per_xact) * i64::from(pg_sys::MaxBackends + pg_sys::max_prepared_xacts) };
    let most = (locks / 4 * 3 / (3 + indexes)).clamp(1, MAX_PIECES as i64);
    Ok(usize::try_from(most).unwrap_or(1))
}

impl UpkeepPlan<Held> {
    /// Holds the partitions that go, and looks at each again: until it was locked, others could rename it, and write to it by its own
    /// name.
    fn hold_leaving(
        &mut self,
        client: &SpiClient,
        layout: &Layout,
        key: &RangeKey,
        terms: &Schedule,
    ) -> Result<Vec<(leaving::Exit, Held)>, Failure> {
        let mut leaving = Vec::new();
        for old in self.old.iter_mut().filter(|old| old.is_carried_out()) {
            let Some(held) = Held::of(old.partition, pg_sys::AccessExclusiveLock) else { continue };
            let (first, ids) = (first_with_age(layout), old.ids.clone());
            let again = leaving::look(client, &self.table, key, first, old.partition, ids, Age::Old, terms.leaving)?;
            *old = again.ok_or_else(|| PartitionError::NoSuchTable(old.partition.to_u32()))?;
            leaving.extend(old.exit.filter(|_| old.is_carried_out()).map(|exit| (exit, held)));
        }
        Ok(leaving)
    }
}

impl<N: NamedRelation> UpkeepPlan<N> {
    /// For a dry run: the errors that the call itself would end with, as far as names and bounds do not show them.
    fn check(&self, client: &SpiClient, key: &RangeKey) -> Result<(), Failure> {
        if self.pieces.is_empty() {
            return Ok(());
        }
        self.table.check_may_create()?;
        let all: Vec<usize> = (0..self.pieces.len()).collect();
        self.table.check_default(client, key, &self.pieces, &all, pg_sys::AccessShareLock)
    }

    fn steps(&self) -> Vec<UpkeepStep> {
        let table = self.table.named.seen();
        let created = self.pieces.iter().map(|piece| UpkeepStep {
            partition: text(&self.table.quoted_name_of(piece)),
            action: "create",
            ids: Edge::Id(piece.ids.start)..Edge::Id(piece.ids.end),
            statement: Some(self.table.statement(piece).shown()),
            note: None,
        });
        let old = self.old.iter().map(|old| UpkeepStep {
            partition: text(&old.named.quoted()),
            action: old.action(),
            ids: old.ids.clone(),
            statement: old.exit.map(|exit| exit.statement(&table, &old.named).shown()),
            note: old.note.clone().map(Text),
        });
        let later = self.later.first().zip(self.later.last()).map(|(first, last)| UpkeepStep {
            partition: text(&self.table.quoted_name_of(first)),
            action: "later",
            ids: Edge::Id(first.ids.start)..Edge::Id(last.ids.end),
            statement: None,
            note: Some(Text(format!(
                "{} more partitions are made by the next calls, as one call can lock {}",
                self.later.len(),
                self.pieces.len()
            ))),
        });
        created.chain(later).chain(old).collect()
    }

    /// Says which partitions are ours and old, and stay.
    fn warn(&self) {
        let mut stay = self.old.iter().filter(|old| old.is_obstructed);
        if let Some(first) = stay.next() {
            let (table, name) = (shown(self.table.named.names().1), shown(first.named.names().1));
            Kept { table, first: name, note: first.note.clone().unwrap_or_default(), others: stay.count() }.warn();
        }
    }
}

/// Text of the database.
fn text(bytes: &CString) -> Text {
    Text(encoding::read_name(bytes))
}
