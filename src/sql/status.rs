//! `snowflake_status()`: the state of the server's IDs, for monitoring.

use crate::errors::Error;
use crate::errors::generator::GeneratorError;
use crate::postgres::encoding;
use crate::postgres::time::{clock, counter, timestamptz};
use crate::registry_process::lease;
use crate::server::believed;
use crate::settings;
use crate::shared::{self, Counters, RegisterState, Start, Transitions};
use pgrx::datum::Interval;
use snowflake_core::lease::Published;
use snowflake_core::{Field, Layout, UnixMicros, WorkerBits};
use std::sync::atomic::Ordering::Relaxed;

export!(snowflake_status_wrapper as snowflake_status, snowflake_status_wrapper as snowflake_status_0_2_0,);

rows! {
    fn snowflake_status() {
        [Snapshot::look()]
    }

    row at => {
        worker_id: Option<i32> = at.part(at.worker, Field::Worker);
        datacenter_id: Option<i32> = at.part(at.worker, Field::Datacenter);
        previous_worker_id: Option<i32> = at.part(at.previous_worker(), Field::Worker);
        previous_datacenter_id: Option<i32> = at.part(at.previous_worker(), Field::Datacenter);
        previous_until: Option<i64> = at.previous.map(|(_, until)| timestamptz::to_datum(until));
        layout: String = at.layout.to_string();
        epoch: i64 = timestamptz::to_datum(at.layout.epoch());
        layout_end: i64 = timestamptz::to_datum(at.layout.end());
        clock_source: &'static str = if settings::uses_counter() { counter::NAME } else { "system" };
        last_time: Option<i64> = at.last.map(timestamptz::to_datum);
        lead: Option<Interval> = at.last.map(|last| Interval::from_micros((last.0 - at.believed.0).max(0)));
        reserved_until: Option<i64> = at.reserved.map(|held| timestamptz::to_datum(held.reserved.until));
        started_at: i64 = timestamptz::to_datum(at.started_at);
        started_after: &'static str = at.start.name();
        reservations: i64 = at.counters.reservations.load(Relaxed);
        waits: i64 = at.counters.waits.load(Relaxed);
        wait_time: Interval = Interval::from_micros(at.counters.wait_time.load(Relaxed));
        clock_steps: i64 = at.counters.clock_steps.load(Relaxed);
        largest_clock_step: Interval = Interval::from_micros(at.counters.largest_clock_step.load(Relaxed));
        clock_leaps: i64 = at.counters.clock_leaps.load(Relaxed);
        clock_leap: Option<Interval> =
            shared::believed_clock().leap.map(|_| Interval::from_micros(at.now.0 - at.believed.0));
        errors: i64 = at.counters.errors.load(Relaxed);
        // A database whose extension is of version 0.1.0 declares only those above.
        registry: Option<String> = settings::registry::without_password().map(|url| encoding::shown(&url));
        lease: Option<&'static str> = lease::is_used().then(|| at.state_of_lease());
        granted_until: Option<i64> = at.published.end.map(timestamptz::to_datum);
        registry_error: Option<String> = lease::all_trouble().into_iter().flatten().next().map(|trouble| encoding::shown(&trouble));
    }
}

/// What the columns follow from, looked at once.
struct Snapshot {
    layout: &'static Layout,
    worker: Option<WorkerBits>,
    previous: Option<(WorkerBits, UnixMicros)>,
    reserved: Option<RegisterState>,
    started_at: UnixMicros,
    start: Start,
    published: Published,
    /// The time of the last ID; `None` until the first claim of a run, as the line's last position is not that of an ID before.
    last: Option<UnixMicros>,
    now: UnixMicros,
    believed: UnixMicros,
    counters: &'static Counters,
}

impl Snapshot {
    /// Ends the call with an error where there is no shared memory.
    fn look() -> Self {
        if !shared::exists() {
            Error::from(GeneratorError::NotPreloaded).raise();
        }
        let layout = settings::layout();
        let (reserved, started_at, start, worker, previous, published) = {
            let transitions = shared::transitions();
            let Transitions { reserved, started_at, start, worker, previous_worker, lease, .. } = *transitions;
            (reserved, started_at, start, worker, previous_worker, lease)
        };
        let last = reserved.map(|_| layout.start_of(layout.tick_of(shared::line().last())));
        let (now, believed, counters) = (clock::now(), believed::now(), shared::counters());
        Self { layout, worker, previous, reserved, started_at, start, published, last, now, believed, counters }
    }

    fn previous_worker(&self) -> Option<WorkerBits> {
        self.previous.map(|(worker, _)| worker)
    }

    /// A field of a worker's bits; `None` where the layout has none.
    fn part(&self, worker: Option<WorkerBits>, field: Field) -> Option<i32> {
        let id = i64::try_from(worker?.0).ok()?;
        self.layout.field(id, field).ok()?.map(|value| value as i32)
    }

    fn state_of_lease(&self) -> &'static str {
        match self.published.end {
            _ if self.published.closed.is_some() => "closed",
            None => "none",
            Some(end) if end <= self.believed => "expired",
            Some(_) => "current",
        }
    }
}
