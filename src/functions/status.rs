//! `snowflake_status()`: the state of the server's IDs, for monitoring.

#![expect(clippy::type_complexity, reason = "pg_extern reads the columns from the signature")]

use crate::errors::Error;
use crate::errors::generator::GeneratorError;
use crate::shared::{self, Transitions};
use crate::time::{clock, timestamptz};
use crate::{believed, encoding, lease, settings};
use pgrx::datum::Interval;
use pgrx::iter::TableIterator;
use pgrx::name;
use pgrx::prelude::*;
use snowflake_core::{Field, WorkerBits};
use std::sync::atomic::Ordering::Relaxed;

export!(snowflake_status_wrapper as snowflake_status);

#[pg_extern(sql = "")]
fn snowflake_status() -> TableIterator<
    'static,
    (
        name!(worker_id, Option<i32>),
        name!(datacenter_id, Option<i32>),
        name!(previous_worker_id, Option<i32>),
        name!(previous_datacenter_id, Option<i32>),
        name!(previous_until, Option<i64>),
        name!(layout, String),
        name!(epoch, i64),
        name!(layout_end, i64),
        name!(clock_source, &'static str),
        name!(last_time, Option<i64>),
        name!(lead, Option<Interval>),
        name!(reserved_until, Option<i64>),
        name!(started_at, i64),
        name!(started_after, &'static str),
        name!(reservations, i64),
        name!(waits, i64),
        name!(wait_time, Interval),
        name!(clock_steps, i64),
        name!(largest_clock_step, Interval),
        name!(clock_leaps, i64),
        name!(clock_leap, Option<Interval>),
        name!(errors, i64),
        // A database whose extension is of version 0.1.0 declares only those above.
        name!(registry, Option<String>),
        name!(lease, Option<&'static str>),
        name!(granted_until, Option<i64>),
        name!(registry_error, Option<String>),
    ),
> {
    if !shared::exists() {
        Error::from(GeneratorError::NotPreloaded).raise();
    }
    let layout = settings::layout();
    let (reserved, started_at, start, worker, previous, published) = {
        let transitions = shared::transitions();
        let Transitions { reserved, started_at, start, worker, previous_worker, lease, .. } = *transitions;
        (reserved, started_at, start, worker, previous_worker, lease)
    };
    // Until the first claim of a run, the line's last position is not that of an ID.
    let last = reserved.map(|_| layout.start_of(layout.tick_of(shared::line().last())));
    let part = |worker: Option<WorkerBits>, field| {
        let id = i64::try_from(worker?.0).ok()?;
        layout.field(id, field).ok()?.map(|value| value as i32)
    };
    let previous_worker = previous.map(|(worker, _)| worker);
    let (now, believed) = (clock::now(), believed::now());
    let counters = shared::counters();
    TableIterator::once((
        part(worker, Field::Worker),
        part(worker, Field::Datacenter),
        part(previous_worker, Field::Worker),
        part(previous_worker, Field::Datacenter),
        previous.map(|(_, until)| timestamptz::to_datum(until)),
        layout.to_string(),
        timestamptz::to_datum(layout.epoch()),
        timestamptz::to_datum(layout.end()),
        if settings::uses_tsc() { "tsc" } else { "system" },
        last.map(timestamptz::to_datum),
        last.map(|last| Interval::from_micros((last.0 - believed.0).max(0))),
        reserved.map(|held| timestamptz::to_datum(held.reserved.until)),
        timestamptz::to_datum(started_at),
        start.name(),
        counters.reservations.load(Relaxed),
        counters.waits.load(Relaxed),
        Interval::from_micros(counters.wait_time.load(Relaxed)),
        counters.clock_steps.load(Relaxed),
        Interval::from_micros(counters.largest_clock_step.load(Relaxed)),
        counters.clock_leaps.load(Relaxed),
        shared::believed_clock().leap.map(|_| Interval::from_micros(now.0 - believed.0)),
        counters.errors.load(Relaxed),
        settings::registry::without_password().map(|url| encoding::shown(&url)),
        lease::is_used().then(|| match published.end {
            _ if published.closed.is_some() => "closed",
            None => "none",
            Some(end) if end <= believed => "expired",
            Some(_) => "current",
        }),
        published.end.map(timestamptz::to_datum),
        Some(shared::lease_news().error.to_string())
            .filter(|error| !error.is_empty())
            .map(|error| encoding::shown(&error)),
    ))
}
