//! The lease in use: its worker with the record as it was last stored, and when to renew it. Guards against two renewals in
//! quick succession, whatever the clock and the registry do.

use super::super::published::Grant;
use super::super::record::{Stored, WorkerNumber};
use super::super::steps::{Event, Moment};
use super::super::terms::Terms;
use crate::layout::Layout;
use crate::time::{Micros, MonotonicMicros};

/// No renewals come faster; a sixth of the window where that is shorter.
const SHORTEST_RENEWAL: Micros = Micros::from_millis(500);

#[derive(Clone, Debug)]
pub(super) struct InUse {
    /// The worker in use, with its record as it was last stored.
    pub held: Option<(WorkerNumber, Stored)>,
    /// Whether that record is gone.
    pub is_gone: bool,
    /// The grant has ended, and that was reported.
    is_expired: bool,
    /// When the record in use, or the one asked for, was asked for.
    pub asked_at: MonotonicMicros,
    /// When a grant was last installed.
    installed_at: MonotonicMicros,
    renew_at: MonotonicMicros,
}

impl Default for InUse {
    fn default() -> Self {
        let start = MonotonicMicros(i64::MIN);
        Self { held: None, is_gone: false, is_expired: false, asked_at: start, installed_at: start, renew_at: start }
    }
}

impl InUse {
    pub fn worker(&self) -> Option<WorkerNumber> {
        self.held.as_ref().map(|(worker, _)| *worker)
    }

    pub fn is(&self, worker: WorkerNumber) -> bool {
        self.worker() == Some(worker)
    }

    /// How much of the grant is left, beyond the clock and the line.
    pub fn left(&self, layout: &Layout, moment: &Moment) -> Option<Micros> {
        let reached = moment.now.min(layout.end()).max(moment.seen.line);
        self.held.as_ref().map(|(_, stored)| stored.record.granted_until.saturating_since(reached))
    }

    /// When to renew, with so much left.
    pub fn renew_at(&self, terms: &Terms, left: Micros) -> MonotonicMicros {
        // Not in a tight loop, whatever the clock and the registry do.
        let soonest = self.installed_at.saturating_add(SHORTEST_RENEWAL.min(terms.window / 6));
        if terms.is_short(left) { soonest } else { self.renew_at.max(soonest) }
    }

    /// Whether the record found is one from before the worker's was last stored: grants do not shrink.
    pub fn is_newer_than(&self, found: &Stored) -> bool {
        self.held.as_ref().is_some_and(|(_, held)| found.record.granted_until < held.record.granted_until)
    }

    /// Whether the record found is of who took the worker over from one that is older than the last: others start where a grant ends.
    pub fn is_taken_from_older(&self, found: &Stored) -> bool {
        self.held.as_ref().is_some_and(|(_, held)| found.record.granted_from < held.record.granted_until)
    }

    /// The record is the one that was confirmed, under another version.
    pub const fn set_version(&mut self, found: &Stored) {
        if let Some((_, held)) = &mut self.held {
            held.version = found.version;
        }
    }

    /// Another server has it.
    pub fn lose(&mut self) {
        (self.held, self.is_gone) = (None, false);
    }

    /// What is to be reported where the grant has ended since the last call.
    pub fn expired(&mut self, moment: &Moment) -> Option<Event> {
        let (worker, stored) = self.held.as_ref()?;
        let has_ended = moment.seen.end.is_some_and(|end| end <= moment.now.max(moment.seen.line));
        let is_news = has_ended && !self.is_expired && !moment.seen.is_closed;
        self.is_expired |= is_news;
        is_news.then(|| Event::Expired(Grant::of(*worker, &stored.record)))
    }

    /// A grant was installed. Returns the worker that was in use before, where that was another one, and what is to be
    /// reported.
    pub fn install(
        &mut self,
        worker: WorkerNumber,
        stored: Stored,
        now: MonotonicMicros,
        renew_after: Micros,
    ) -> (Option<(WorkerNumber, Stored)>, Option<Event>) {
        let is_new = !self.is(worker);
        let gained = (is_new || self.is_expired).then(|| Event::Gained(Grant::of(worker, &stored.record)));
        let before = self.held.replace((worker, stored)).filter(|_| is_new);
        (self.is_expired, self.is_gone, self.installed_at) = (false, false, now);
        // From the request on, as the grant reaches so far from there.
        self.renew_at = self.asked_at.saturating_add(renew_after);
        (before, gained)
    }
}
