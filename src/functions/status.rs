//! What an administrator wants to know, and the database's layout: sql/40-reservation.sql, sql/50-status.sql.

#![expect(clippy::type_complexity, reason = "pg_extern reads the columns from the signature")]

use crate::errors::Error;
use crate::{clock, reservation, settings, shared, timestamptz};
use pgrx::datum::Interval;
use pgrx::iter::TableIterator;
use pgrx::name;
use pgrx::prelude::*;
use snowflake_core::Field;
use std::sync::atomic::Ordering::Relaxed;

/// The layout that this server's settings make, in full.
#[pg_extern(sql = "")]
fn snowflake_server_layout() -> String {
    settings::layout().to_string()
}

/// Begins the reservation of the database; for the install script.
#[pg_extern(sql = "")]
fn snowflake_begin_reservation(relation: pg_sys::Oid) {
    reservation::begin(relation);
}

/// The layout of this server, where no ID was made in this database yet.
#[pg_extern(sql = "")]
fn snowflake_adoptable_layout() -> String {
    match reservation::stored() {
        Ok(stored) if stored.used => Error::LayoutInUse.raise(),
        Ok(_) => snowflake_server_layout(),
        Err(error) => error.raise(),
    }
}

#[pg_extern(sql = "")]
fn snowflake_status() -> TableIterator<
    'static,
    (
        name!(worker_id, Option<i32>),
        name!(datacenter_id, Option<i32>),
        name!(layout, String),
        name!(epoch, i64),
        name!(layout_end, i64),
        name!(clock_source, &'static str),
        name!(last_time, Option<i64>),
        name!(lead, Option<Interval>),
        name!(reserved_until, Option<i64>),
        name!(run, i64),
        name!(started_at, i64),
        name!(started_after, &'static str),
        name!(reservations, i64),
        name!(waits, i64),
        name!(wait_time, Interval),
        name!(clock_steps, i64),
        name!(largest_clock_step, Interval),
        name!(errors, i64),
    ),
> {
    if !shared::exists() {
        Error::NotPreloaded.raise();
    }
    let layout = settings::layout();
    let stored = reservation::stored().unwrap_or_else(|error| error.raise());
    let (run, started_at, start, worker) = {
        let transitions = shared::transitions();
        (transitions.run, transitions.started_at, transitions.start, transitions.worker)
    };
    // Before the first claim of a run, the line is at its start and says nothing.
    let last = worker.map(|_| layout.start_of(layout.tick_of(shared::line().last())));
    let part = |field| {
        let id = i64::try_from(worker?.0).ok()?;
        layout.field(id, field).ok()?.map(|value| value as i32)
    };
    let counters = shared::counters();
    TableIterator::once((
        part(Field::Worker),
        part(Field::Datacenter),
        layout.to_string(),
        timestamptz::to_datum(layout.epoch()),
        timestamptz::to_datum(layout.end()),
        if settings::uses_tsc() { "tsc" } else { "system" },
        last.map(timestamptz::to_datum),
        last.map(|last| Interval::from_micros((last.0 - clock::now().0).max(0))),
        stored.used.then(|| timestamptz::to_datum(stored.until)),
        run,
        timestamptz::to_datum(started_at),
        start.name(),
        counters.reservations.load(Relaxed),
        counters.waits.load(Relaxed),
        Interval::from_micros(counters.wait_time.load(Relaxed)),
        counters.clock_steps.load(Relaxed),
        Interval::from_micros(counters.largest_clock_step.load(Relaxed)),
        counters.errors.load(Relaxed),
    ))
}
