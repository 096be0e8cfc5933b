//! What goes wrong: failures of the registry, and refusals, which leave the server without a worker. Counts them, and says
//! what is to be reported of them, so that the same trouble is reported once a minute.

use super::super::steps::Event;
use crate::time::{Micros, MonotonicMicros};
use std::mem::{Discriminant, discriminant};

/// How often the same trouble is reported.
pub(super) const REPORT_EVERY: Micros = Micros::from_secs(60);

/// Requests in a row that the registry did not answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    count: u32,
    since: Option<MonotonicMicros>,
    said_at: Option<MonotonicMicros>,
}

impl Failures {
    pub const fn is_none(&self) -> bool {
        self.count == 0
    }

    pub const fn count(&self) -> u32 {
        self.count
    }

    /// One more. Returns what is to be reported.
    pub fn add(&mut self, now: MonotonicMicros) -> Option<Event> {
        self.count = self.count.saturating_add(1);
        let since = *self.since.get_or_insert(now);
        is_due(&mut self.said_at, now).then(|| Event::NotAnswering(now.saturating_since(since)))
    }

    /// The registry has answered. Returns what is to be reported.
    pub fn end(&mut self, now: MonotonicMicros) -> Option<Event> {
        self.count = 0;
        let since = self.since.take()?;
        // What was not reported has not failed for long.
        self.said_at.take().map(|_| Event::Answering(now.saturating_since(since)))
    }
}

/// Why there was no worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals {
    said_at: Option<MonotonicMicros>,
    /// Which kind of event that was.
    cause: Option<Discriminant<Event>>,
}

impl Refusals {
    /// One more. Returns it where it is to be reported: another cause is news.
    pub fn add(&mut self, why: Event, now: MonotonicMicros) -> Option<Event> {
        if self.cause != Some(discriminant(&why)) {
            (self.cause, self.said_at) = (Some(discriminant(&why)), None);
        }
        is_due(&mut self.said_at, now).then_some(why)
    }

    /// There is a lease.
    pub const fn end(&mut self) {
        self.said_at = None;
    }
}

/// Whether something is to be reported that was last reported then; notes that it is.
fn is_due(last: &mut Option<MonotonicMicros>, now: MonotonicMicros) -> bool {
    let is_due = last.is_none_or(|last| now.saturating_since(last) >= REPORT_EVERY);
    if is_due {
        *last = Some(now);
    }
    is_due
}
