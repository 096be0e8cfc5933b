//! What follows from what was found: the namespace's record, all records, one record, or that a grant was installed. It is here
//! that a loss of the registry is noticed, and a worker chosen.

use super::super::change::{is_current, shorten};
use super::super::choice::{Choice, Search};
use super::super::namespace::{Known, NamespaceRecord, check_namespace, may_have_forgotten};
use super::super::published::NotInstalled;
use super::super::record::{Stored, WorkerNumber};
use super::super::steps::{Event, Found, Moment};
use super::super::trouble::Trouble;
use super::clock::latest;
use super::state::Lessee;
use super::todo::{Ask, Todo};
use crate::time::UnixMicros;
use std::collections::BTreeMap;

impl Lessee {
    pub(super) fn found_namespace(&mut self, moment: &Moment, found: Option<NamespaceRecord>) {
        self.succeed(moment);
        self.knowledge.record = None;
        let known = self.known(moment);
        let is_to_survey =
            known != Known::NOTHING && self.knowledge.latest.is_none() && may_have_forgotten(found.as_ref(), &known);
        match (check_namespace(&self.layout, found.as_ref(), &known, moment.chance), found) {
            // An operator who overruled a mark has spoken of the loss before.
            (Ok(_), found) if is_to_survey => {
                (self.todo, self.knowledge.trust.overruled) = (Todo::Survey(found), None);
            }
            (Ok(Some(record)), found) => self.todo = Todo::SetNamespace(found, record),
            (Ok(None), Some(found)) if self.knowledge.life != Some(found.life) => self.todo = Todo::Remember(found),
            (Ok(None), Some(found)) => self.use_namespace(found),
            (Ok(None), None) => self.todo = Todo::Namespace,
            (Err(other), _) => {
                (self.todo, self.knowledge.latest) = (Todo::Namespace, None);
                self.refused(moment, Trouble::OtherLayout(other));
            }
        }
    }

    /// What this server knows of the namespace.
    fn known(&self, moment: &Moment) -> Known {
        if self.knowledge.trust.is_given {
            return Known::NOTHING;
        }
        let now = self.knowledge.latest.unwrap_or_else(|| self.latest(moment, None));
        Known {
            life: self.knowledge.life,
            noted: self.knowledge.worked_under,
            is_record_lost: self.knowledge.is_record_lost,
            granted_until: self.granted_until(moment),
            now,
            over_at: now.saturating_add(self.terms.max_lead).saturating_add(self.terms.window),
        }
    }

    /// The highest end of a grant that this server has.
    fn granted_until(&self, moment: &Moment) -> Option<UnixMicros> {
        let held = self.in_use.held.as_ref().map(|(_, stored)| stored.record.granted_until);
        held.max(moment.seen.end)
    }

    /// The latest time that anything shows; of what the registry shows, this is believed.
    pub(super) fn latest(&self, moment: &Moment, shown: Option<UnixMicros>) -> UnixMicros {
        latest(&self.layout, &self.terms, moment.now, (shown, self.granted_until(moment)))
    }

    /// The registry may have forgotten what it had stored, and all records that it has were read. Before the first lease of a run, a clock that
    /// is ahead is waited for, as in a search. So is a time that is shown far ahead of it, until a lease has to be renewed: what is put on record
    /// cannot be lowered again.
    pub(super) fn surveyed(&mut self, moment: &Moment, namespace: Option<NamespaceRecord>, found: &Found) {
        let ahead = self.clock.ahead(moment, found, self.terms.max_jump);
        let (shown, behind) = self.times.look(moment, found, &self.terms, self.must_renew(moment));
        self.knowledge.latest = Some(self.latest(moment, shown));
        let checked = check_namespace(&self.layout, namespace.as_ref(), &self.known(moment), moment.chance);
        let was = namespace.as_ref().and_then(|namespace| namespace.leases_from);
        let marks = checked.is_ok_and(|record| record.is_some_and(|record| record.leases_from != was));
        let ahead = ahead.filter(|_| marks).map(Trouble::ClockAhead);
        match ahead.or(behind.map(Trouble::ClockBehind)) {
            Some(in_doubt) => {
                self.succeed(moment);
                (self.todo, self.knowledge.latest) = (Todo::Namespace, None);
                self.refused(moment, in_doubt);
            }
            None => self.found_namespace(moment, namespace),
        }
    }

    /// The namespace's record is good, and noted on this server.
    pub(super) fn use_namespace(&mut self, record: NamespaceRecord) {
        (self.knowledge.worked_under, self.knowledge.record) = (record.leases_from, Some(record));
        (self.knowledge.is_checked, self.knowledge.is_record_lost, self.knowledge.latest) = (true, false, None);
        self.knowledge.has_failed_to_survey = false;
        self.todo = if self.in_use.held.is_some() { Todo::Rest } else { Todo::Search };
    }

    pub(super) fn found_all(&mut self, moment: &Moment, found: &Found) {
        self.succeed(moment);
        self.times.look(moment, found, &self.terms, false);
        let Found { records, gone, .. } = found;
        if let Some(worker) = self.lost_beside(moment, records) {
            self.record_is_lost(moment, worker);
            return;
        }
        let ahead = self.clock.ahead(moment, found, self.terms.max_jump);
        self.watch.note(self.me.holder.system_identifier, records, moment.monotonic);
        let search = Search {
            layout: &self.layout,
            me: &self.me,
            wanted: self.wanted,
            records,
            watch: &self.watch,
            gone,
            beside: moment.seen.worker,
            now: moment.now,
            monotonic: moment.monotonic,
            line: moment.seen.line,
            leases_from: self.knowledge.leases_from(),
            terms: self.terms,
        };
        let rewound = moment.seen.rewound_to.zip(search.left_far_ahead());
        if let Some(write) = rewound.and_then(|(to, (worker, stored))| shorten(worker, stored, to)) {
            self.todo = Todo::Shorten(write);
            return;
        }
        if let Some(ahead) = ahead {
            self.todo = Todo::Search;
            self.refused(moment, Trouble::ClockAhead(ahead));
            return;
        }
        let choice = search.choose(moment.chance);
        let chosen = if let Choice::Lease(worker) = choice { Some(worker) } else { None };
        for (worker, stored) in search.strays(chosen) {
            self.giving.add(worker, Some(stored.clone()));
        }
        match choice {
            Choice::Lease(worker) => {
                self.refusal = None;
                self.giving.keep(worker);
                self.todo = Todo::Lease(Ask::new(worker, records.get(&worker).cloned()));
            }
            Choice::NoWorker(no) => {
                self.todo = Todo::Search;
                self.refused(moment, Trouble::NoWorker(no));
            }
            Choice::NotBefore(instant) => {
                self.todo = Todo::Search;
                self.refused(moment, Trouble::NotBefore(instant));
            }
        }
    }

    /// The worker beside the line, where an earlier process of this run has leased it, and its record is gone, older than the grant that
    /// sessions have, or taken from such a one. Nothing of that once it is on record that the registry has forgotten.
    fn lost_beside(&self, moment: &Moment, records: &BTreeMap<WorkerNumber, Stored>) -> Option<WorkerNumber> {
        let (worker, end) = moment.seen.worker.zip(moment.seen.end)?;
        let is_lost = match records.get(&worker) {
            Some(Stored { record, .. }) if self.me.owns(record) => record.granted_until < end,
            Some(Stored { record, .. }) => record.granted_from.min(record.granted_until) < end,
            None => true,
        };
        (self.in_use.held.is_none() && !self.knowledge.has_noted_loss(end) && is_lost).then_some(worker)
    }

    /// What was found in place of what was expected.
    pub(super) fn found_one(&mut self, moment: &Moment, ask: Ask, found: Option<Stored>) {
        self.succeed(moment);
        let was_held = self.in_use.is(ask.worker);
        match found {
            // Also where another server's token is there: whoever takes a worker over starts where the grant ends that was found. So
            // this is who had it before.
            Some(stored) if was_held && self.in_use.is_newer_than(&stored) => {
                self.record_is_lost(moment, ask.worker);
                // The grant is the one that was confirmed.
                self.in_use.set_version(&stored);
            }
            // Also where it is as it was sent: what can be read may not be durable yet, and never be.
            Some(stored) if self.me.owns(&stored.record) => {
                self.todo = Todo::Lease(Ask::new(ask.worker, Some(stored)));
            }
            // Found before, and dealt with.
            None if was_held && self.in_use.is_gone => {
                self.todo = Todo::Lease(Ask { is_gone: true, ..ask });
            }
            None if was_held => {
                self.record_is_lost(moment, ask.worker);
                self.in_use.is_gone = true;
            }
            Some(stored) if was_held => {
                let is_record_lost = self.in_use.is_taken_from_older(&stored);
                if is_record_lost {
                    self.record_is_lost(moment, ask.worker);
                }
                self.events.push(Event::Lost { worker: ask.worker, by: stored.record.holder });
                self.in_use.lose();
                if !is_record_lost {
                    self.search();
                }
            }
            _ => {
                self.conflicts += 1;
                self.pause(moment, self.terms.contend_after(self.conflicts, moment.chance));
                self.search();
            }
        }
    }

    /// The record of the worker in use is not one that follows from what was confirmed. Where its grant is over, somebody else may have taken
    /// the worker before the registry forgot that: then it is not stored again.
    fn record_is_lost(&mut self, moment: &Moment, worker: WorkerNumber) {
        self.events.push(Event::Vanished(worker));
        (self.knowledge.is_record_lost, self.knowledge.record) = (true, None);
        if let Some((_, stored)) = &self.in_use.held
            && !is_current(&self.layout, &stored.record, moment.now, &moment.seen)
        {
            self.in_use.held = None;
        }
        self.todo = Todo::Namespace;
    }

    pub(super) fn installed(
        &mut self,
        moment: &Moment,
        worker: WorkerNumber,
        stored: Stored,
        outcome: Result<(), NotInstalled>,
    ) {
        match outcome {
            Ok(()) => {
                let renew_after = self.terms.renew_after(moment.chance);
                let (before, gained) = self.in_use.install(worker, stored, moment.monotonic, renew_after);
                self.events.extend(gained);
                if let Some((before, stored)) = before {
                    self.giving.add(before, Some(stored));
                }
                self.conflicts = 0;
                self.refusals.end();
                if self.wanted.contains(worker) {
                    self.refusal = None;
                }
                self.knowledge.use_up_trust();
                self.todo = Todo::Rest;
            }
            Err(NotInstalled::RenewFirst) => self.todo = Todo::Lease(Ask::new(worker, Some(stored))),
            Err(NotInstalled::NoSuchWorker(worker)) => {
                self.search();
                self.refused(moment, Trouble::NoSuchWorker(worker));
            }
        }
    }
}
