//! All that the lessee knows, and what its caller may tell it or look at between two steps: settings, an operator's word, a
//! stop. The fields are of the parts; the steps are in the modules beside this one.

use super::super::change::Identity;
use super::super::choice::{Wanted, Watch};
use super::super::namespace::NamespaceRecord;
use super::super::record::{Stored, WorkerNumber};
use super::super::steps::{Event, Moment};
use super::super::terms::Terms;
use super::super::trouble::Trouble;
use super::clock::{ClockAtStart, TimesShown};
use super::giving::GivingBack;
use super::in_use::InUse;
use super::knowledge::Knowledge;
use super::todo::{Ask, Todo};
use super::trouble::{self, Failures, Refusals};
use crate::layout::Layout;
use crate::time::{Micros, MonotonicMicros, UnixMicros};

/// What the one process of a server that talks to the registry does next. A state machine that does nothing by itself: its
/// caller asks [`Lessee::next`], does that, and reports by [`Lessee::answer`]. It may be lost at any time: a new one finds the
/// lease again by its token.
#[derive(Clone, Debug)]
pub struct Lessee {
    pub(super) layout: Layout,
    pub(super) me: Identity,
    pub(super) terms: Terms,
    pub(super) wanted: Wanted,
    pub(super) todo: Todo,
    /// Nothing is done before.
    pub(super) not_before: MonotonicMicros,
    /// When a wanted worker is asked for again, where another one is in use.
    pub(super) move_at: MonotonicMicros,
    pub(super) in_use: InUse,
    pub(super) giving: GivingBack,
    pub(super) knowledge: Knowledge,
    pub(super) watch: Watch,
    pub(super) clock: ClockAtStart,
    pub(super) times: TimesShown,
    /// How often in a row somebody else was faster.
    pub(super) conflicts: u32,
    pub(super) failures: Failures,
    pub(super) refusals: Refusals,
    /// Why the last search ended without a worker that is wanted.
    pub(super) refusal: Option<Trouble>,
    /// Whether the registry has answered anything.
    pub(super) has_answered: bool,
    /// When to give up giving back; `None` unless the server stops.
    pub(super) stop_by: Option<MonotonicMicros>,
    pub(super) events: Vec<Event>,
}

impl Lessee {
    /// How often the same trouble is reported.
    pub const REPORT_EVERY: Micros = trouble::REPORT_EVERY;

    /// A lessee that knows of the registry only which life of the namespace this server has noted, in this run or an
    /// earlier one.
    pub fn new(layout: Layout, me: Identity, terms: Terms, wanted: Wanted, known_life: Option<u64>) -> Self {
        let start = MonotonicMicros(i64::MIN);
        Self {
            layout,
            me,
            terms,
            wanted,
            todo: Todo::Namespace,
            not_before: start,
            move_at: start,
            in_use: InUse::default(),
            giving: GivingBack::default(),
            knowledge: Knowledge { life: known_life, ..Knowledge::default() },
            watch: Watch::default(),
            clock: ClockAtStart::default(),
            times: TimesShown::default(),
            conflicts: 0,
            failures: Failures::default(),
            refusals: Refusals::default(),
            refusal: None,
            has_answered: false,
            stop_by: None,
            events: Vec::new(),
        }
    }

    /// The settings have changed. Where the worker in use is not wanted any more, it stays in use until another one is
    /// leased.
    pub fn configure(&mut self, terms: Terms, wanted: Wanted) {
        if self.wanted != wanted {
            // At once, also where it waits as there was no worker.
            self.move_at = MonotonicMicros(i64::MIN);
            if self.failures.is_none() {
                self.end_pause();
            }
            if matches!(&self.todo, Todo::Lease(ask) if ask.sent.is_none()) && self.in_use.held.is_none() {
                self.todo = Todo::Search;
            }
        }
        (self.terms, self.wanted) = (terms, wanted);
    }

    /// Whether to take the registry at its word, also where it has forgotten what it had stored: somebody has made sure
    /// that all that it had granted is over. That is so until the next lease or renewal: of what is granted later,
    /// nobody has made sure of anything.
    pub fn trust(&mut self, trusts: bool) {
        if self.knowledge.trust.set(trusts) && self.failures.is_none() && self.in_use.held.is_none() {
            self.end_pause();
        }
    }

    /// The server stops: from now on the lessee closes the line and gives back, up to an instant.
    pub fn stop(&mut self, by: MonotonicMicros) {
        if self.stop_by.is_some() {
            return;
        }
        self.stop_by = Some(by);
        self.end_pause();
        if let Some((worker, stored)) = self.in_use.held.clone() {
            self.giving.add(worker, Some(stored));
        }
        match std::mem::replace(&mut self.todo, Todo::Close) {
            // It is not known what is stored.
            Todo::Check(ask) | Todo::Lease(ask @ Ask { sent: Some(_), .. }) => self.giving.add(ask.worker, None),
            Todo::Install(worker, stored) => self.giving.add(worker, Some(stored)),
            _ => {}
        }
    }

    /// The worker in use, with its record as it was last stored.
    pub fn held(&self) -> Option<(WorkerNumber, &Stored)> {
        self.in_use.held.as_ref().map(|(worker, stored)| (*worker, stored))
    }

    /// The namespace's record, as it was last found good.
    pub fn namespace(&self) -> Option<&NamespaceRecord> {
        self.knowledge.record.as_ref()
    }

    /// The same, for who grants numbers of segments by it: `None`, too, while this server has no lease and new ones are not safe. Until
    /// then, those that hold numbers may not have told the registry what it has forgotten of them.
    pub fn namespace_of_segments(&self, now: UnixMicros) -> Option<&NamespaceRecord> {
        let waits = self.in_use.held.is_none() && self.knowledge.leases_from().is_some_and(|from| now < from);
        self.namespace().filter(|_| !waits)
    }

    /// What keeps the server from its lease, from renewing it, or from another worker that it wants. `None`, too, where it stops.
    pub fn trouble(&self) -> Option<Trouble> {
        let held = self.in_use.worker();
        let is_well = held.is_some_and(|worker| self.wanted.contains(worker)) && self.knowledge.record.is_some();
        if self.stop_by.is_some() {
            None
        } else if !self.failures.is_none() {
            Some(Trouble::Failing)
        } else if is_well {
            None
        } else if let Some(refusal) = &self.refusal {
            Some(refusal.clone())
        } else if self.conflicts > 0 {
            Some(Trouble::Outrun(self.conflicts))
        } else {
            (!self.has_answered).then_some(Trouble::NoAnswer)
        }
    }

    /// The namespace's record is not as it was found: it is looked at before the next renewal.
    pub fn look(&mut self) {
        if matches!(self.todo, Todo::Rest) {
            self.todo = Todo::Namespace;
        }
    }

    /// What happened since the last call, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Whether the worker may be used: one that is not wanted only where it is in use already.
    pub(super) fn is_wanted(&self, worker: WorkerNumber) -> bool {
        self.wanted.contains(worker) || self.in_use.is(worker)
    }

    /// Next is to choose a worker, under a record of the namespace that was found good since the last failure.
    pub(super) fn search(&mut self) {
        self.todo = if self.knowledge.is_checked { Todo::Search } else { Todo::Namespace };
    }

    pub(super) const fn pause(&mut self, moment: &Moment, length: Micros) {
        self.not_before = moment.monotonic.saturating_add(length);
    }

    /// Whether the lease in use ends so soon that no time may be lost.
    pub(super) fn must_renew(&self, moment: &Moment) -> bool {
        self.in_use.left(&self.layout, moment).is_some_and(|left| self.terms.is_urgent(left))
    }

    pub(super) const fn end_pause(&mut self) {
        self.not_before = MonotonicMicros(i64::MIN);
    }
}
