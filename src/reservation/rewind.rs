//! The rewind. Where IDs were made or reserved while the clock was far ahead, IDs go on from there, even when the clock
//! is right again. An administrator who has made sure that no such ID is kept can take the server back to just above
//! the last one that is.

use super::creation;
use super::register::{self, Register};
use crate::errors::Error;
use crate::errors::generator::GeneratorError;
use crate::errors::reservation::ReservationError;
use crate::postgres::encoding::{self, Text};
use crate::postgres::held::{Held, Sql};
use crate::postgres::integers::IntegerColumn;
use crate::postgres::open_relation::OpenRelation;
use crate::postgres::restricted::{self, Owner};
use crate::postgres::time::{timestamptz, wait};
use crate::postgres::wording::duration;
use crate::postgres::{catalog, own, process, snapshot, wal};
use crate::server::believed;
use crate::shared::{self, RegisterState};
use crate::{record, settings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::reservation::{DatabaseCopy, Reserved, whole_millis};
use snowflake_core::{Layout, Micros, Tick, Ticks, UnixMicros};
use std::ffi::CString;

/// The columns of this database that get their values from `snowflake_next()` ($1), by a default of their own or of their domain, with those of
/// partitions and heirs: each table alone, its column as SQL writes it, the column's number and name, and its type. What is in other sessions'
/// temporary tables, nobody else can read.
const COLUMNS: &str = "
    WITH RECURSIVE tree (relation, name) AS (
        SELECT attrelid, attname FROM pg_depend JOIN pg_attrdef f ON f.oid = objid
        JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum
        WHERE classid = 'pg_attrdef'::regclass AND refclassid = 'pg_proc'::regclass AND refobjid = $1
        UNION ALL
        SELECT attrelid, attname FROM pg_depend JOIN pg_attribute ON atttypid = objid AND NOT atthasdef
        WHERE classid = 'pg_type'::regclass AND refclassid = 'pg_proc'::regclass AND refobjid = $1
        UNION
        SELECT inhrelid, name FROM tree JOIN pg_inherits ON inhparent = relation
    )
    SELECT c.oid, format('%s.%I', c.oid::regclass, name), attnum, name::text, atttypid
    FROM tree JOIN pg_class c ON c.oid = relation JOIN pg_attribute a ON attrelid = c.oid AND attname = name
    WHERE relkind IN ('r', 'f') AND NOT attisdropped AND NOT pg_is_other_temp_schema(relnamespace) ORDER BY c.oid, name";

/// Transactions that write to these tables ($1), and whose they are. This one is left out; so are those that are not in a list of earlier ones ($2), if
/// there is such a list, unless they are prepared.
const WRITERS: &str = "
    SELECT string_agg(DISTINCT h.virtualtransaction, ' '),
           string_agg(DISTINCT coalesce('process ' || h.pid, 'prepared: ' || p.gid), ', ')
    FROM pg_locks h
    LEFT JOIN pg_locks x ON h.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid'
        AND x.virtualtransaction = h.virtualtransaction
    LEFT JOIN pg_prepared_xacts p ON p.transaction = x.transactionid
    WHERE h.locktype = 'relation' AND h.relation = ANY ($1) AND h.mode = 'RowExclusiveLock' AND h.granted
        AND h.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND h.pid IS DISTINCT FROM pg_backend_pid()
        AND ($2 IS NULL OR h.pid IS NULL OR h.virtualtransaction = ANY (string_to_array($2, ' ')))";

/// How long new IDs have to pass what they are looked for above.
const MARGIN: Micros = Micros::from_secs(60);

/// How often to look whether they have ended, and how long to sleep in between: 5 s in all.
const ATTEMPTS: usize = 100;
const PAUSE: Micros = Micros::from_millis(50);

/// Makes IDs go on just above this one, or from the clock, whichever is later. Returns the time of the next ID.
///
/// The order matters: first the line is lowered, while the register still covers all; then the register is written, and
/// from then on only what it covers is claimed. A session that has not noticed yet goes on for a moment with its old
/// limit, but not beyond the clock by more than the burst, and the new reservation reaches at least that far.
///
/// # Errors
/// Where the caller is no superuser, the server is in recovery or not preloaded, the number is no ID, a table holds
/// higher IDs, or the server's IDs are not above it.
pub fn rewind(layout: &Layout, last_id: i64) -> Result<UnixMicros, Error> {
    if !shared::exists() {
        return Err(GeneratorError::NotPreloaded.into());
    }
    if !process::is_superuser() {
        return Err(ReservationError::NotSuperuser.into());
    }
    if process::is_in_recovery() {
        return Err(GeneratorError::InRecovery("snowflake_rewind").into());
    }
    let relation = record::reservation(layout)?;
    let first = layout.tick_at(layout.timestamp(last_id)?) + Ticks(1);
    check_rows(last_id)?;
    if Register::open()?.is_none() {
        creation::create(0)?;
    }
    let (now, done) = {
        // In this order: see `reserve`.
        let mut page = record::open(relation)?;
        let register = Register::open()?.ok_or(ReservationError::NoOrigin)?;
        let now = believed::now();
        let change = page.prepare();
        let burst = layout.ticks_in(settings::max_burst()) + Ticks(1);
        let needed = layout.start_of(first.max(layout.tick_at(now) + burst).min(layout.last_tick()));
        let until = whole_millis(needed.saturating_add(settings::reserve_ahead()));
        let mut transitions = shared::transitions();
        // Before the lease, another server may have made IDs with this worker.
        let first = transitions.lease.lowest_tick(layout).map_or(first, |lowest| first.max(lowest));
        let line = shared::line();
        let last = layout.tick_of(line.last());
        let copy = record::copy_from(change.read()?);
        // For a grant that an earlier run has left far ahead of the clock.
        transitions.lease.rewound_to = Some(layout.start_of(first));
        let before = transitions.reserved.map(|held| held.reserved).or_else(|| register.read());
        let is_beyond = |instant: UnixMicros| instant > until;
        if last < first && before.is_some_and(|before| !is_beyond(before.until)) && !is_beyond(copy.until) {
            (now, None)
        } else {
            line.lower(layout, first);
            line.raise(layout, first);
            let generation = before.map_or(0, |before| before.generation);
            let generation = if generation == 0 { register::draw_generation(0) } else { generation };
            let reserved = Reserved { until, generation };
            let logged_at = register.write(reserved);
            transitions.reserved = Some(RegisterState { reserved, logged_at, origin: register.origin() });
            let copied = change.apply(|_| {
                let new = DatabaseCopy { until, generation: generation.into(), used: true };
                Some(record::copy_to(new))
            });
            shared::withdraw_admissions(&mut transitions);
            copied?;
            (now, Some((logged_at, last, before)))
        }
    };
    let Some((logged_at, last, before)) = done else { return Err(ReservationError::NothingToRewind(last_id).into()) };
    // All locks are released.
    wal::flush(logged_at);
    let from = layout.start_of(first).max(now);
    log(layout, last_id, last, before, from);
    // Transactions that began after the look have IDs from before, and may still be open. New IDs are not as high as this.
    let new = from + settings::reserve_ahead() + settings::max_burst() + MARGIN;
    if let Err(error) = check_rows(last_id.max(layout.highest_id_until(new))) {
        error.warn();
    }
    Ok(from)
}

/// Looks for higher IDs in the columns of this database that have `snowflake_next()` in their default. Other databases,
/// and columns that are filled in other ways, the administrator must check. Foreign tables are read as their owners.
///
/// # Errors
/// Where a column holds an ID above this one, or may hold one soon.
fn check_rows(last_id: i64) -> Result<(), Error> {
    if snapshot::is_of_transaction() {
        return Err(ReservationError::OldSnapshot.into());
    }
    let highest = columns().and_then(|columns| {
        wait_for_writers(&columns)?;
        highest_in(&columns, last_id)
    });
    match highest {
        Ok(None) => Ok(()),
        Ok(Some((column, highest))) => Err(ReservationError::RowsAbove { column, highest }.into()),
        Err(error) => Err(error.into()),
    }
}

/// A column that gets its values from `snowflake_next()`.
struct FilledColumn {
    table: pg_sys::Oid,
    /// The column, as SQL writes it.
    name: String,
    /// Its number in the table.
    number: i16,
    /// Its name, not quoted.
    column: CString,
}

fn columns() -> Result<Vec<FilledColumn>, ReservationError> {
    let read = |client: &SpiClient| {
        let Some(next) = own::next(client)? else { return Ok(Vec::new()) };
        let rows = restricted::with(&[restricted::SAFE_PATH], || client.select(COLUMNS, None, &[next.into()]))?;
        let mut columns = Vec::new();
        for row in rows {
            let is_stored_as_bigint = row.get(5)?.is_some_and(catalog::is_stored_as_bigint);
            if let (Some(table), Some(Text(name)), Some(number), Some(Text(column)), true) =
                (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, is_stored_as_bigint)
            {
                columns.push(FilledColumn { table, name, number, column: encoding::statement(&column) });
            }
        }
        Ok::<_, spi::Error>(columns)
    };
    Spi::connect(read).map_err(unread)
}

/// Waits until those transactions have ended that were open and write to these tables, so that their rows can be seen.
///
/// # Errors
/// Where some are still open.
fn wait_for_writers(columns: &[FilledColumn]) -> Result<(), ReservationError> {
    let tables: Vec<pg_sys::Oid> = columns.iter().map(|column| column.table).collect();
    let open = |were_open: Option<&str>| {
        let read = |client: &SpiClient| {
            let arguments = [tables.clone().into(), were_open.into()];
            let row = restricted::with(&[restricted::SAFE_PATH], || client.select(WRITERS, Some(1), &arguments))?;
            row.first().get_two::<String, Text>()
        };
        Spi::connect(read).map_err(unread)
    };
    let mut were_open: Option<String> = None;
    for _ in 0..ATTEMPTS {
        let (Some(are_open), _) = open(were_open.as_deref())? else { return Ok(()) };
        were_open.get_or_insert(are_open);
        wait::sleep(PAUSE);
    }
    match open(were_open.as_deref())? {
        (Some(_), Some(Text(who))) => Err(ReservationError::OpenWriters(who)),
        _ => Ok(()),
    }
}

/// The first of these columns that has higher IDs, and its highest. What is gone meanwhile has none.
fn highest_in(columns: &[FilledColumn], last_id: i64) -> Result<Option<(String, i64)>, ReservationError> {
    let Some(above) = last_id.checked_add(1) else { return Ok(None) };
    for column in columns {
        let Some(open) = OpenRelation::open(column.table, pg_sys::AccessShareLock) else { continue };
        let highest = if open.kind() == pg_sys::RELKIND_FOREIGN_TABLE {
            drop(open);
            Spi::connect(|client| highest_in_foreign(client, column, last_id)).map_err(unread)?
        } else {
            IntegerColumn::numbered(&open, column.number).and_then(|it| it.highest(above..=i64::MAX))
        };
        if let Some(highest) = highest {
            return Ok(Some((column.name.clone(), highest)));
        }
    }
    Ok(None)
}

/// The highest value above an ID in a foreign table, which only a query can read.
fn highest_in_foreign(client: &SpiClient, column: &FilledColumn, last_id: i64) -> Result<Option<i64>, spi::Error> {
    let Some(held) = Held::of(column.table, pg_sys::AccessShareLock) else { return Ok(None) };
    let Some(owner) = Owner::of(column.table) else { return Ok(None) };
    let query = Sql::new("SELECT max(")
        .column(&column.column)
        .text("::int8) FROM ONLY ")
        .name(&held)
        .text(" WHERE ")
        .column(&column.column)
        .text("::int8 > $1");
    owner.run(|| snapshot::latest(|| query.select(client, &[last_id.into()])?.first().get_one()))
}

#[allow(clippy::needless_pass_by_value, reason = "as `map_err` has it")]
fn unread(error: spi::Error) -> ReservationError {
    ReservationError::Query(error.to_string())
}

fn log(layout: &Layout, last_id: i64, last: Tick, before: Option<Reserved>, from: UnixMicros) {
    let mut detail = format!("They were at {}", timestamptz::display_instant(layout.start_of(last)));
    if let Some(before) = before {
        detail.push_str(&format!(", and reserved up to {}", timestamptz::display_instant(before.until)));
    }
    let back = layout.start_of(last).max(before.map_or(UnixMicros(0), |before| before.until)) - from;
    if back > Micros(0) {
        detail.push_str(&format!(": {} ahead of that", duration(back)));
    }
    detail.push('.');
    let message =
        format!("snowflake IDs were taken back to {last_id}, and go on from {}", timestamptz::display_instant(from));
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "")
        .set_detail(detail)
        .report(PgLogLevel::LOG);
}
