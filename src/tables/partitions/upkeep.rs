//! Partitions that live by themselves: those of the time to come are created, and those that are older than rows are kept go.
//! [`snowflake_core::pieces::upkeep`] says which these are. All is done in the caller's transaction, behind the lock of the
//! table, which is the first: two jobs do not meet in another order, and the second finds nothing left to do.

use super::default_rows::{self, Moved};
use super::failure::Failure;
use super::key::RangeKey;
use super::keys::{KeyLayout, Keys};
use super::leaving::{self, Leaving};
use super::marks::{Marking, set_mark};
use super::names::shown;
use super::table::{Table, check_owner, lowest_of, most};
use super::{interval_text, present, step};
use crate::errors::Error;
use crate::errors::partitions::{Kept, Partition, PartitionError, warn_of_endless};
use crate::postgres::encoding::{self, Text};
use crate::postgres::given::Given;
use crate::postgres::held::{Held, NamedRelation, Seen};
use crate::postgres::subtransaction::attempted;
use crate::postgres::time::{clock, timestamptz};
use crate::postgres::{catalog, read_only, restricted};
use crate::server::believed;
use crate::{settings, shared};
use pgrx::PgTryBuilder;
use pgrx::datum::Interval;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::upkeep::{Age, UpkeepError, age, ahead};
use snowflake_core::pieces::{Edge, Piece, PieceLength, Span};
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
    /// Whose keys it has.
    keys: Keys,
    /// The pieces that get a partition.
    pieces: Vec<Piece>,
    /// Those that get none, as rows of the default partition are in the way whose keys are not known to be IDs.
    blocked: Vec<Piece>,
    /// Those that get one by the next calls.
    later: Vec<Piece>,
    /// One without an upper bound, which has a part of the time ahead, by its number.
    endless: Option<usize>,
    /// How new partitions are marked.
    marking: Option<Marking>,
    /// Partitions whose mark is to be set, from this key on, or removed.
    marks: Vec<(pg_sys::Oid, Option<i64>)>,
    /// Those that go, and those that are old and stay.
    old: Vec<leaving::Old>,
    /// Those that the next calls look at, by their numbers.
    later_old: Vec<usize>,
}

impl<N: NamedRelation> UpkeepPlan<N> {
    fn is_idle(&self) -> bool {
        self.pieces.is_empty() && self.marks.is_empty() && self.old.iter().all(|old| !old.is_carried_out())
    }
}

/// Does what a call of `snowflake_maintain_partitions()` asks for, or only says what that would be.
///
/// # Errors
/// Where an argument is NULL or means nothing, the caller may not, or something is in the way.
pub fn maintain(of: KeyLayout, wish: &Upkeep<'_>) -> Result<Vec<UpkeepStep>, Failure> {
    restricted::with(&[restricted::SAFE_PATH], || Spi::connect_mut(|client| maintain_by(client, of, wish)))
}

fn maintain_by(client: &mut SpiClient, of: KeyLayout, wish: &Upkeep<'_>) -> Result<Vec<UpkeepStep>, Failure> {
    let layout = &of.layout;
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
        let moved = || default_rows::moved(client, &schema, parent, every, wish.dry_run, of);
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
    let mut plan: UpkeepPlan<Seen> = draw(client, of, &key, &terms)?;
    if wish.dry_run && !terms.moves_default_rows {
        plan.put_aside_blocked(client, &key, pg_sys::AccessShareLock)?;
    }
    if wish.dry_run || plan.is_idle() {
        plan.warn();
        done.extend(plan.steps());
        return Ok(done);
    }
    refusing_to_wait(layout, &name, || {
        // As strong as the locks that the statements take, so that no other session is in between.
        let mut plan: UpkeepPlan<Held> = draw(client, of, &key, &terms)?;
        // The lock that CREATE TABLE would take, so that no row comes in after the check.
        plan.put_aside_blocked(client, &key, pg_sys::AccessExclusiveLock)?;
        let UpkeepPlan { table, pieces, marking, marks, .. } = &plan;
        if !pieces.is_empty() {
            let all = (0..pieces.len()).collect();
            table.owner.run(|| table.fill_gaps(client, &key, pieces, all, *marking))?;
        }
        for &(partition, from) in marks {
            set_mark(partition, from.map(|from| (from, layout)));
        }
        plan.close_past_of_default(&key, layout);
        // The partitions of tomorrow stay, whatever keeps those of the past.
        let left = attempted(|| plan.leave(client, &key, &terms), Result::is_ok, &LATER);
        match left {
            Ok(left) => left?,
            Err(failure) => plan.put_off(&failure.message),
        }
        plan.warn();
        done.extend(plan.steps());
        Ok(done)
    })
}

/// Errors for which old partitions stay until the next call.
const LATER: [PgSqlErrorCode; 3] = [
    PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
    PgSqlErrorCode::ERRCODE_T_R_DEADLOCK_DETECTED,
    PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
];

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
    of: KeyLayout,
    key: &RangeKey,
    terms: &Schedule,
) -> Result<UpkeepPlan<N>, Failure> {
    let layout = &of.layout;
    let table = Table::<N>::look(key)?;
    let keys = Keys::read(client, &table, key, of)?;
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
    let is_ahead = |ids: &Range<Edge>| layout.lowest_id_from(until).is_none_or(|end| ids.start < Edge::Id(end));
    let endless = bounds.iter().position(|ids| ids.end == Edge::Highest && is_ahead(ids));
    let mut most = most(client, key.table())?;
    let later = pieces.split_off(pieces.len().min(most));
    most -= pieces.len();
    let present = present(layout);
    let mut marks = keys.to_mark(&table, present);
    marks.truncate(most);
    most -= marks.len();
    let marking = keys.marking(table.last_before(present), present);
    // Checks that their names are free.
    table.missing(&pieces)?;
    let (mut old, mut later_old) = (Vec::<leaving::Old>::new(), Vec::new());
    if let Some(retention) = terms.retention {
        if terms.leaving == Leaving::DetachConcurrently && table.default_partition().is_some() {
            return Err(PartitionError::HasDefault(shown(&table.named.quoted())).into());
        }
        let slack = settings::max_lead();
        for (number, bounds) in bounds.iter().enumerate() {
            let found = age(layout, bounds, retention, slack, passed);
            if found == Age::Kept {
                continue;
            } else if most == 0 {
                later_old.push(number);
                continue;
            }
            let looked = look_at(client, &table, (key, &keys), number, found, terms)?;
            most -= usize::from(looked.as_ref().is_some_and(leaving::Old::is_carried_out));
            old.extend(looked);
        }
    }
    Ok(UpkeepPlan { table, keys, pieces, blocked: Vec::new(), later, endless, marking, marks, old, later_old })
}

/// What happens to an old partition.
fn look_at<N: NamedRelation>(
    client: &SpiClient,
    table: &Table<N>,
    (key, keys): (&RangeKey, &Keys),
    number: usize,
    age: Age,
    terms: &Schedule,
) -> Result<Option<leaving::Old>, Failure> {
    let known = keys.known_from(table, number);
    let (partition, ids) = (table.oid(number), table.bounds().nth(number).cloned());
    let ids = ids.unwrap_or(Edge::Lowest..Edge::Highest);
    Ok(leaving::look(client, table, key, known, partition, ids, age, terms.leaving)?)
}

impl UpkeepPlan<Held> {
    /// Holds the partitions that go, and looks at each again: until it was locked, others could rename it, and write to it by its own
    /// name. Then lets them go.
    fn leave(&mut self, client: &mut SpiClient, key: &RangeKey, terms: &Schedule) -> Result<(), Failure> {
        let (table, keys) = (&self.table, &self.keys);
        let mut leaving = Vec::new();
        for old in self.old.iter_mut().filter(|old| old.is_carried_out()) {
            let Some(held) = Held::of(old.partition, pg_sys::AccessExclusiveLock) else { continue };
            let gone = || PartitionError::NoSuchTable(old.partition.to_u32());
            let number = table.number_of(old.partition).ok_or_else(gone)?;
            *old = look_at(client, table, (key, keys), number, Age::Old, terms)?.ok_or_else(gone)?;
            leaving.extend(old.exit.filter(|_| old.is_carried_out()).map(|exit| (exit, held)));
        }
        for (exit, partition) in leaving {
            table.owner.run(|| exit.statement(&table.named, &partition).update(client))?;
        }
        Ok(())
    }

    /// Our own keys of the past have their partitions by now. So whatever comes into the default partition with such a key is not ours.
    fn close_past_of_default(&self, key: &RangeKey, layout: &Layout) {
        let present = present(layout);
        if let Some(default) = self.table.default_partition()
            && let Some(from) = self.keys.known_in_default(&self.table)
            && from < present
            && lowest_of(default, &(from..present), key.column()).is_none()
        {
            set_mark(default, Some((present, layout)));
        }
    }

    /// Says that none of them has gone, and why.
    fn put_off(&mut self, why: &str) {
        for old in self.old.iter_mut().filter(|old| old.is_carried_out()) {
            old.exit = None;
            old.note = Some(format!("the next call tries again: {why}"));
            old.is_obstructed = true;
        }
    }
}

impl<N: NamedRelation> UpkeepPlan<N> {
    /// Puts aside the pieces that rows of the default partition are in the way of. Ends with the errors that names and bounds do not show.
    fn put_aside_blocked(&mut self, client: &SpiClient, key: &RangeKey, lock: u32) -> Result<(), Failure> {
        if self.pieces.is_empty() {
            return Ok(());
        }
        self.table.check_may_create()?;
        let known = self.keys.known_in_default(&self.table);
        let all: Vec<usize> = (0..self.pieces.len()).collect();
        let table = &self.table;
        let blocked =
            table.owner.run(|| table.blocked(client, key, &self.pieces, &all, known.unwrap_or(i64::MAX), lock))?;
        for &piece in blocked.iter().rev() {
            self.blocked.push(self.pieces.remove(piece));
        }
        self.blocked.reverse();
        Ok(())
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
        let later_old = self.later_old.first().zip(self.later_old.last()).map(|(&first, &last)| {
            let [start, end] = [first, last].map(|number| self.table.bounds().nth(number).cloned());
            let going = self.old.iter().filter(|old| old.is_carried_out()).count();
            UpkeepStep {
                partition: text(&Seen::of(self.table.oid(first)).map(|seen| seen.quoted()).unwrap_or_default()),
                action: "later",
                ids: start.map_or(Edge::Lowest, |ids| ids.start)..end.map_or(Edge::Highest, |ids| ids.end),
                statement: None,
                note: Some(Text(format!(
                    "{} more old partitions are left to the next calls: one call can lock {}",
                    self.later_old.len(),
                    self.pieces.len() + self.marks.len() + going
                ))),
            }
        });
        let blocked = self.blocked.iter().map(|piece| UpkeepStep {
            partition: text(&self.table.quoted_name_of(piece)),
            action: "later",
            ids: Edge::Id(piece.ids.start)..Edge::Id(piece.ids.end),
            statement: None,
            note: Some(Text(
                "the default partition has rows of it, and nothing says that their keys are snowflake IDs: see snowflake_declare_keys()"
                    .to_owned(),
            )),
        });
        let endless = self.endless.map(|number| UpkeepStep {
            partition: text(&Seen::of(self.table.oid(number)).map(|seen| seen.quoted()).unwrap_or_default()),
            action: "keep",
            ids: self.table.bounds().nth(number).cloned().unwrap_or(Edge::Lowest..Edge::Highest),
            statement: None,
            note: Some(Text(
                "it has no upper bound: no partitions are made for the time in it, and its rows do not expire"
                    .to_owned(),
            )),
        });
        created.chain(blocked).chain(later).chain(endless).chain(old).chain(later_old).collect()
    }

    /// Says which partitions are ours and old, and stay; and which is in the way of those to come.
    fn warn(&self) {
        if let Some(number) = self.endless {
            let Partition { parent, name, .. } = self.table.existing(number);
            warn_of_endless(&parent, &name);
        }
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
