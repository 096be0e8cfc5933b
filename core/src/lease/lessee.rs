//! The lessee: what the one process of a server that talks to the registry does next. A state machine that does nothing
//! by itself: its caller asks [`Lessee::next`], does that, and reports by [`Lessee::answer`]. It is the process's own,
//! and may be lost at any time: a new one finds the lease again by its token.

use super::change::{Identity, Write, give_back, is_current, lease, shorten};
use super::choice::{Choice, Search, Wanted, Watch};
use super::namespace::{Known, NamespaceRecord, check_namespace};
use super::published::{Grant, NotInstalled};
use super::record::{Stored, WorkerNumber};
use super::steps::{Answer, Event, Found, Moment, Next};
use super::terms::Terms;
use crate::clock::BelievedClock;
use crate::layout::Layout;
use crate::time::{Micros, MonotonicMicros, UnixMicros};
use std::collections::{BTreeMap, VecDeque};
use std::mem::{Discriminant, discriminant};

/// See the head of this module.
#[derive(Clone, Debug)]
pub struct Lessee {
    layout: Layout,
    me: Identity,
    terms: Terms,
    wanted: Wanted,
    todo: Todo,
    /// Nothing is done before.
    not_before: MonotonicMicros,
    /// The worker in use, with its record as it was last stored.
    held: Option<(WorkerNumber, Stored)>,
    /// Workers to be given back, with their records, where those are known.
    giving: VecDeque<(WorkerNumber, Option<Stored>)>,
    /// Where the next owner of the first of them starts, once that is stored.
    giving_until: Option<UnixMicros>,
    /// When the record in use, or the one asked for, was asked for.
    asked_at: MonotonicMicros,
    renew_at: MonotonicMicros,
    /// When a wanted worker is asked for again, where another one is in use.
    move_at: MonotonicMicros,
    /// When a grant was last installed.
    installed_at: MonotonicMicros,
    /// The namespace's record, as it was last found good.
    namespace: Option<NamespaceRecord>,
    /// Whether that was since the last failure.
    is_namespace_checked: bool,
    /// Which life of the namespace this server has noted.
    known_life: Option<u64>,
    /// Whether a record of this run's was lost, and nothing was done about it yet.
    is_record_lost: bool,
    /// Whether the record of the worker in use is gone.
    is_held_gone: bool,
    /// Whether the registry is taken at its word, also where it has forgotten.
    trusts: bool,
    /// Whether the settings say so. One lease uses that up, as they may say so for ever.
    is_told_to_trust: bool,
    /// From when on new leases are safe by the namespace's record, where the registry was taken at its word in spite of that.
    overruled: Option<UnixMicros>,
    watch: Watch,
    /// Since when the clock is ahead of what the registry knows, before the first lease of the run.
    ahead_since: Option<MonotonicMicros>,
    /// Whether it is believed now.
    believes_clock: bool,
    conflicts: u32,
    failures: u32,
    failing_since: Option<MonotonicMicros>,
    /// The grant in use has ended, and that was reported.
    is_expired: bool,
    /// When to give up giving back; `None` unless the server stops.
    stop_by: Option<MonotonicMicros>,
    failure_said_at: Option<MonotonicMicros>,
    refusal_said_at: Option<MonotonicMicros>,
    /// Which kind of event that was.
    refusal: Option<Discriminant<Event>>,
    events: Vec<Event>,
}

#[derive(Clone, Debug)]
enum Todo {
    /// Look at the namespace's record.
    Namespace,
    SetNamespace(Option<NamespaceRecord>, NamespaceRecord),
    Remember(NamespaceRecord),
    /// Read all records, and choose.
    Search,
    /// Lease or renew.
    Lease(Ask),
    /// Shorten a grant that was left far ahead of the clock.
    Shorten(Write),
    /// Find out from which version to ask again, after an answer was lost.
    Check(Ask),
    Install(WorkerNumber, Stored),
    /// Wait until there is something to do.
    Rest,
    Close,
    /// Give back what is in the list.
    Give,
    Done,
}

/// A request for a worker.
#[derive(Clone, Debug)]
struct Ask {
    worker: WorkerNumber,
    /// The record to start from.
    found: Option<Stored>,
    /// Whether the record is gone since.
    is_gone: bool,
    /// The request, once it is made.
    sent: Option<Write>,
}

impl Ask {
    const fn new(worker: WorkerNumber, found: Option<Stored>) -> Self {
        Self { worker, found, is_gone: false, sent: None }
    }
}

impl Lessee {
    /// How often the same trouble is reported.
    pub const REPORT_EVERY: Micros = Micros::from_secs(60);

    /// No renewals come faster, whatever the clock and the registry do; a sixth of the window where that is shorter.
    const SHORTEST_RENEWAL: Micros = Micros::from_millis(500);

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
            held: None,
            giving: VecDeque::new(),
            giving_until: None,
            asked_at: start,
            renew_at: start,
            move_at: start,
            installed_at: start,
            namespace: None,
            is_namespace_checked: false,
            known_life,
            is_record_lost: false,
            is_held_gone: false,
            trusts: false,
            is_told_to_trust: false,
            overruled: None,
            watch: Watch::default(),
            ahead_since: None,
            believes_clock: false,
            conflicts: 0,
            failures: 0,
            failing_since: None,
            is_expired: false,
            stop_by: None,
            failure_said_at: None,
            refusal_said_at: None,
            refusal: None,
            events: Vec::new(),
        }
    }

    /// The settings have changed. Where the worker in use is not wanted any more, it stays in use until another one is
    /// leased.
    pub fn configure(&mut self, terms: Terms, wanted: Wanted) {
        if self.wanted != wanted {
            // At once, also where it waits as there was no worker.
            self.move_at = MonotonicMicros(i64::MIN);
            if self.failures == 0 {
                self.not_before = MonotonicMicros(i64::MIN);
            }
            if matches!(&self.todo, Todo::Lease(ask) if ask.sent.is_none()) && self.held.is_none() {
                self.todo = Todo::Search;
            }
        }
        (self.terms, self.wanted) = (terms, wanted);
    }

    /// Whether to take the registry at its word, also where it has forgotten what it had stored: somebody has made sure
    /// that all that it had granted is over. That is so until the next lease or renewal: of what is granted later,
    /// nobody has made sure of anything.
    pub fn trust(&mut self, trusts: bool) {
        if trusts != self.is_told_to_trust {
            (self.trusts, self.is_told_to_trust) = (trusts, trusts);
            if self.failures == 0 && self.held.is_none() {
                self.not_before = MonotonicMicros(i64::MIN);
            }
        }
    }

    /// The server stops: from now on the lessee closes the line and gives back, up to an instant.
    pub fn stop(&mut self, by: MonotonicMicros) {
        if self.stop_by.is_some() {
            return;
        }
        self.stop_by = Some(by);
        self.not_before = MonotonicMicros(i64::MIN);
        if let Some((worker, stored)) = self.held.clone() {
            self.give(worker, Some(stored));
        }
        match std::mem::replace(&mut self.todo, Todo::Close) {
            // It is not known what is stored.
            Todo::Check(ask) | Todo::Lease(ask @ Ask { sent: Some(_), .. }) => self.give(ask.worker, None),
            Todo::Install(worker, stored) => self.give(worker, Some(stored)),
            Todo::Done => self.todo = Todo::Done,
            _ => {}
        }
    }

    /// The worker in use, with its record as it was last stored.
    pub fn held(&self) -> Option<(WorkerNumber, &Stored)> {
        self.held.as_ref().map(|(worker, stored)| (*worker, stored))
    }

    /// The namespace's record, as it was last found good.
    pub fn namespace(&self) -> Option<&NamespaceRecord> {
        self.namespace.as_ref()
    }

    /// What happened since the last call, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What to do next. The same again, where that was not answered.
    pub fn next(&mut self, moment: &Moment) -> Next {
        self.note_expiry(moment);
        if self.stop_by.is_some_and(|by| moment.monotonic >= by) {
            let left = self.giving.drain(..).map(|(worker, _)| Event::NotGivenBack(worker));
            self.events.extend(left);
            self.not_before = MonotonicMicros(i64::MIN);
            if !matches!(self.todo, Todo::Close) {
                self.todo = Todo::Done;
            }
        }
        if moment.monotonic < self.not_before {
            let until = self.not_before.min(self.stop_by.unwrap_or(self.not_before));
            return Next::Wait(until.saturating_since(moment.monotonic));
        }
        if matches!(self.todo, Todo::Rest)
            && let Some(wait) = self.rest(moment)
        {
            return Next::Wait(wait);
        }
        let leases_from = self.leases_from();
        match &mut self.todo {
            Todo::Namespace => Next::Namespace,
            Todo::SetNamespace(expected, record) => {
                Next::SetNamespace { expected: expected.clone(), record: record.clone() }
            }
            Todo::Remember(record) => Next::Remember(record.life),
            // [`Self::rest`] leaves it where there is anything to do.
            Todo::Search | Todo::Rest => Next::ReadAll,
            Todo::Lease(ask) => {
                let Some(namespace) = self.namespace.clone() else {
                    self.todo = Todo::Namespace;
                    return Next::Namespace;
                };
                let found = (ask.worker, ask.found.as_ref());
                let mut write =
                    lease(&self.layout, &self.me, found, leases_from, &self.terms, moment.now, &moment.seen);
                if ask.is_gone {
                    write.expected = None;
                }
                self.asked_at = moment.monotonic;
                Next::Write(ask.sent.insert(write).clone(), namespace)
            }
            Todo::Shorten(write) => match self.namespace.clone() {
                Some(namespace) => Next::Write(write.clone(), namespace),
                None => {
                    self.todo = Todo::Namespace;
                    Next::Namespace
                }
            },
            Todo::Check(ask) => Next::Read(ask.worker),
            Todo::Install(worker, stored) => Next::Install(Grant::of(*worker, &stored.record)),
            Todo::Close => Next::Close,
            Todo::Give => self.next_to_give(moment),
            Todo::Done => Next::Done,
        }
    }

    /// What came of [`Self::next`]. An answer that does not belong to it counts as a failure.
    pub fn answer(&mut self, moment: &Moment, answer: Answer) {
        if matches!(answer, Answer::Failed | Answer::Unknown) {
            return self.fail(moment, answer == Answer::Unknown);
        }
        let todo = std::mem::replace(&mut self.todo, Todo::Done);
        match (todo, answer) {
            (Todo::Namespace, Answer::Namespace(found)) => self.found_namespace(moment, found),
            (Todo::SetNamespace(_, record), Answer::Namespace(found)) => {
                if found.as_ref() == Some(&record) {
                    self.events.extend(record.leases_from.map(Event::Forgotten));
                }
                self.found_namespace(moment, found);
            }
            (Todo::Remember(record), Answer::Remembered) => {
                self.known_life = Some(record.life);
                self.use_namespace(record);
            }
            (Todo::Give, Answer::Namespace(found) | Answer::OtherNamespace(found)) if self.stop_by.is_some() => {
                self.succeed(moment);
                match found.filter(|found| check_namespace(&self.layout, Some(found), &NOTHING, 0).is_ok()) {
                    Some(found) => self.namespace = Some(found),
                    // There is nothing of this server's any more.
                    None => self.giving.clear(),
                }
                self.todo = Todo::Give;
            }
            (Todo::Search, Answer::All(found)) => self.found_all(moment, &found),
            (Todo::Lease(Ask { worker, sent: Some(write), .. }), Answer::Stored(version)) => {
                self.succeed(moment);
                let stored = Stored { version, record: write.record };
                if self.is_wanted(worker) {
                    self.todo = Todo::Install(worker, stored);
                } else {
                    self.give(worker, Some(stored));
                    self.search();
                }
            }
            (Todo::Lease(ask), Answer::Conflict(found)) | (Todo::Check(ask), Answer::One(found)) => {
                self.found_one(moment, ask, found);
            }
            (Todo::Install(worker, stored), Answer::Installed(outcome)) => {
                self.installed(moment, worker, stored, outcome);
            }
            (Todo::Close, Answer::Closed) => {
                // A process before this one may have leased it.
                if let (None, Some(worker)) = (&self.held, moment.seen.worker) {
                    self.give(worker, None);
                }
                self.todo = Todo::Give;
            }
            (Todo::Give, Answer::Stored(_) | Answer::Conflict(_) | Answer::One(_)) if self.giving.is_empty() => {
                self.todo = Todo::Give;
            }
            (Todo::Give, Answer::Stored(_)) => {
                self.succeed(moment);
                self.given();
            }
            (Todo::Give, Answer::Conflict(found) | Answer::One(found)) => {
                self.succeed(moment);
                match (self.giving.front_mut(), found.filter(|found| self.me.owns(&found.record))) {
                    (Some(front), Some(found)) => front.1 = Some(found),
                    _ => drop(self.giving.pop_front()),
                }
                self.todo = Todo::Give;
            }
            (Todo::Shorten(write), Answer::Stored(_)) => {
                self.succeed(moment);
                let until = write.record.granted_until;
                self.events.push(Event::Shortened { worker: write.worker, until });
                self.search();
            }
            (Todo::Shorten(_), Answer::Conflict(_)) => {
                self.succeed(moment);
                self.search();
            }
            // What is to be given back is so later, if it is there then.
            (Todo::Lease(_) | Todo::Give | Todo::Shorten(_), Answer::OtherNamespace(found))
            | (Todo::Give, Answer::Namespace(found)) => {
                self.found_namespace(moment, found);
            }
            (todo, _) => {
                self.todo = todo;
                self.fail(moment, false);
            }
        }
    }

    // What is done when.

    /// While there is a lease, and nothing under way: chooses what to do, or returns how long there is nothing.
    fn rest(&mut self, moment: &Moment) -> Option<Micros> {
        let Some((worker, stored)) = &self.held else {
            self.search();
            return None;
        };
        let reached = moment.now.min(self.layout.end()).max(moment.seen.line);
        let left = stored.record.granted_until.saturating_since(reached);
        // Not in a tight loop, whatever the clock and the registry do.
        let pause = Self::SHORTEST_RENEWAL.min(self.terms.window / 6);
        let renew_at = match self.terms.is_short(left) {
            true => self.installed_at.saturating_add(pause),
            false => self.renew_at.max(self.installed_at.saturating_add(pause)),
        };
        if moment.monotonic >= renew_at {
            let ask = Ask::new(*worker, Some(stored.clone()));
            self.todo = Todo::Lease(Ask { is_gone: self.is_held_gone, ..ask });
            return None;
        }
        if !self.giving.is_empty() {
            self.todo = Todo::Give;
            return None;
        }
        let moves = !self.wanted.contains(*worker);
        if moves && moment.monotonic >= self.move_at {
            self.search();
            return None;
        }
        let until = if moves { renew_at.min(self.move_at) } else { renew_at };
        Some(until.saturating_since(moment.monotonic))
    }

    fn search(&mut self) {
        self.todo = if self.is_namespace_checked { Todo::Search } else { Todo::Namespace };
    }

    fn next_to_give(&mut self, moment: &Moment) -> Next {
        loop {
            let Some(namespace) = self.namespace.as_ref().filter(|_| !self.giving.is_empty()) else {
                if !self.giving.is_empty() {
                    return Next::Namespace;
                }
                self.todo = if self.stop_by.is_some() { Todo::Done } else { Todo::Rest };
                return if self.stop_by.is_some() { Next::Done } else { Next::Wait(Micros(0)) };
            };
            match self.giving.front() {
                Some(&(worker, None)) => return Next::Read(worker),
                Some((worker, Some(stored))) => match give_back(&self.me, *worker, stored, &moment.seen) {
                    Some(write) => {
                        self.giving_until = Some(write.record.granted_until);
                        return Next::Write(write, namespace.clone());
                    }
                    None => drop(self.giving.pop_front()),
                },
                None => {}
            }
        }
    }

    // What follows from answers.

    fn found_namespace(&mut self, moment: &Moment, found: Option<NamespaceRecord>) {
        self.succeed(moment);
        self.namespace = None;
        let known = self.known(moment);
        match (check_namespace(&self.layout, found.as_ref(), &known, moment.chance), found) {
            (Ok(Some(record)), found) => self.todo = Todo::SetNamespace(found, record),
            (Ok(None), Some(found)) if self.known_life != Some(found.life) => self.todo = Todo::Remember(found),
            (Ok(None), Some(found)) => self.use_namespace(found),
            (Ok(None), None) => self.todo = Todo::Namespace,
            (Err(other), _) => {
                self.todo = Todo::Namespace;
                self.refused(moment, Event::OtherLayout(other));
            }
        }
    }

    /// Before when no new lease begins.
    fn leases_from(&self) -> Option<UnixMicros> {
        let from = self.namespace.as_ref()?.leases_from;
        from.filter(|from| !self.trusts && self.overruled != Some(*from))
    }

    /// What this server knows of the namespace.
    fn known(&self, moment: &Moment) -> Known {
        if self.trusts {
            return NOTHING;
        }
        let held = self.held.as_ref().map(|(_, stored)| stored.record.granted_until);
        let now = moment.now.min(self.layout.end()).max(self.layout.epoch());
        Known {
            life: self.known_life,
            is_record_lost: self.is_record_lost,
            granted_until: held.max(moment.seen.end),
            over_at: now.saturating_add(self.terms.max_lead).saturating_add(self.terms.window),
        }
    }

    /// The namespace's record is good, and noted on this server.
    fn use_namespace(&mut self, record: NamespaceRecord) {
        self.namespace = Some(record);
        (self.is_namespace_checked, self.is_record_lost) = (true, false);
        self.todo = if self.held.is_some() { Todo::Rest } else { Todo::Search };
    }

    fn found_all(&mut self, moment: &Moment, found: &Found) {
        self.succeed(moment);
        let Found { records, gone, .. } = found;
        if let Some(worker) = self.lost_beside(moment, records) {
            self.record_is_lost(moment, worker);
            return;
        }
        let ahead = self.clock_is_ahead(moment, found);
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
            leases_from: self.leases_from(),
            terms: self.terms,
        };
        let rewound = moment.seen.rewound_to.zip(search.left_far_ahead());
        if let Some(write) = rewound.and_then(|(to, (worker, stored))| shorten(worker, stored, to)) {
            self.todo = Todo::Shorten(write);
            return;
        }
        if let Some(ahead) = ahead {
            self.todo = Todo::Search;
            self.refused(moment, Event::ClockAhead(ahead));
            return;
        }
        let choice = search.choose(moment.chance);
        let chosen = if let Choice::Lease(worker) = choice { Some(worker) } else { None };
        let strays: Vec<_> = search.strays(chosen).map(|(worker, stored)| (worker, stored.clone())).collect();
        for (worker, stored) in strays {
            self.give(worker, Some(stored));
        }
        match choice {
            Choice::Lease(worker) => {
                self.giving.retain(|(other, _)| *other != worker);
                self.todo = Todo::Lease(Ask::new(worker, records.get(&worker).cloned()));
            }
            Choice::NoWorker(no) => {
                self.todo = Todo::Search;
                self.refused(moment, Event::NoWorker(no));
            }
            Choice::NotBefore(instant) => {
                self.todo = Todo::Search;
                self.refused(moment, Event::NotBefore(instant));
            }
        }
    }

    /// The worker beside the line, where an earlier process of this run has leased it, and its record is gone, or older than
    /// the grant that sessions have. Nothing of that once it is on record that the registry has forgotten.
    fn lost_beside(&self, moment: &Moment, records: &BTreeMap<WorkerNumber, Stored>) -> Option<WorkerNumber> {
        let (worker, end) = moment.seen.worker.zip(moment.seen.end)?;
        let noted = self.namespace.as_ref().and_then(|record| record.leases_from);
        let is_noted = self.trusts || noted.is_some_and(|from| from >= end);
        let is_lost = match records.get(&worker) {
            Some(Stored { record, .. }) => self.me.owns(record) && record.granted_until < end,
            None => true,
        };
        (self.held.is_none() && !is_noted && is_lost).then_some(worker)
    }

    /// By how much the clock is ahead of what the registry knows, while that is not believed: before the first lease of
    /// the run there is nothing else to compare it with. What the registry knows is its own time, or that leases are
    /// renewed. A clock that stays ahead for a minute is believed, as is one that leaps while the server runs.
    fn clock_is_ahead(&mut self, moment: &Moment, found: &Found) -> Option<Micros> {
        if self.believes_clock || moment.seen.end.is_some() {
            return None;
        }
        let renewed = found.records.values().filter(|stored| stored.record.owner.is_some());
        let renewed = renewed.map(|stored| stored.record.granted_until).max();
        let ahead = moment.now.saturating_since(found.time.or(renewed).unwrap_or(moment.now));
        if ahead <= self.terms.max_jump {
            self.ahead_since = None;
            return None;
        }
        let since = *self.ahead_since.get_or_insert(moment.monotonic);
        self.believes_clock = moment.monotonic.saturating_since(since) >= BelievedClock::LASTING;
        (!self.believes_clock).then_some(ahead)
    }

    /// What was found in place of what was expected.
    fn found_one(&mut self, moment: &Moment, ask: Ask, found: Option<Stored>) {
        self.succeed(moment);
        let was_held = self.held.as_ref().is_some_and(|(worker, _)| *worker == ask.worker);
        match found {
            Some(stored) if was_held && self.me.owns(&stored.record) && self.is_older(&stored) => {
                self.record_is_lost(moment, ask.worker);
                // The grant is the one that was confirmed: nobody can have taken over what still has this run's token.
                if let Some((_, held)) = &mut self.held {
                    held.version = stored.version;
                }
            }
            // Also where it is as it was sent: what can be read may not be durable yet, and never be.
            Some(stored) if self.me.owns(&stored.record) => {
                self.todo = Todo::Lease(Ask::new(ask.worker, Some(stored)));
            }
            // Found before, and dealt with.
            None if was_held && self.is_held_gone => {
                self.todo = Todo::Lease(Ask { is_gone: true, sent: None, ..ask });
            }
            None if was_held => {
                self.record_is_lost(moment, ask.worker);
                self.is_held_gone = true;
            }
            Some(stored) if was_held => {
                self.events.push(Event::Lost { worker: ask.worker, by: stored.record.holder });
                (self.held, self.is_held_gone) = (None, false);
                self.search();
            }
            _ => {
                self.conflicts += 1;
                self.pause(moment, self.terms.contend_after(self.conflicts, moment.chance));
                self.search();
            }
        }
    }

    /// Whether this is a record of the worker in use from before it was last stored: grants do not shrink.
    fn is_older(&self, found: &Stored) -> bool {
        self.held.as_ref().is_some_and(|(_, held)| found.record.granted_until < held.record.granted_until)
    }

    /// The record of the worker in use is not as it was confirmed. Where its grant is over, somebody else may have taken
    /// the worker before the registry forgot that: then it is not stored again.
    fn record_is_lost(&mut self, moment: &Moment, worker: WorkerNumber) {
        self.events.push(Event::Vanished(worker));
        (self.is_record_lost, self.namespace) = (true, None);
        if let Some((_, stored)) = &self.held
            && !is_current(&self.layout, &stored.record, moment.now, &moment.seen)
        {
            self.held = None;
        }
        self.todo = Todo::Namespace;
    }

    fn installed(&mut self, moment: &Moment, worker: WorkerNumber, stored: Stored, outcome: Result<(), NotInstalled>) {
        match outcome {
            Ok(()) => {
                let before = self.held.replace((worker, stored.clone()));
                let is_new = before.as_ref().is_none_or(|(before, _)| *before != worker);
                if is_new || self.is_expired {
                    self.events.push(Event::Gained(Grant::of(worker, &stored.record)));
                }
                if let Some((before, stored)) = before.filter(|_| is_new) {
                    self.give(before, Some(stored));
                }
                (self.is_expired, self.conflicts, self.refusal_said_at) = (false, 0, None);
                self.is_held_gone = false;
                if std::mem::take(&mut self.trusts) {
                    self.overruled = self.namespace.as_ref().and_then(|record| record.leases_from);
                }
                self.installed_at = moment.monotonic;
                // From the request on, as the grant reaches so far from there.
                self.renew_at = self.asked_at.saturating_add(self.terms.renew_after(moment.chance));
                self.todo = Todo::Rest;
            }
            Err(NotInstalled::RenewFirst) => self.todo = Todo::Lease(Ask::new(worker, Some(stored))),
            Err(NotInstalled::NoSuchWorker(_)) => {
                self.pause(moment, self.terms.look_after(moment.chance));
                self.search();
            }
        }
    }

    fn give(&mut self, worker: WorkerNumber, stored: Option<Stored>) {
        if !self.giving.iter().any(|(other, _)| *other == worker) {
            self.giving.push_back((worker, stored));
        }
    }

    /// The first in the list was given back.
    fn given(&mut self) {
        if let (Some((worker, _)), Some(until)) = (self.giving.pop_front(), self.giving_until.take()) {
            self.events.push(Event::GivenBack { worker, until });
        }
        self.todo = Todo::Give;
    }

    /// Whether the worker may be used: one that is not wanted only where it is in use already.
    fn is_wanted(&self, worker: WorkerNumber) -> bool {
        self.wanted.contains(worker) || self.held.as_ref().is_some_and(|(held, _)| *held == worker)
    }

    // What is reported.

    fn note_expiry(&mut self, moment: &Moment) {
        let Some((worker, stored)) = &self.held else { return };
        let has_ended = moment.seen.end.is_some_and(|end| end <= moment.now.max(moment.seen.line));
        if has_ended && !self.is_expired && !moment.seen.is_closed {
            self.is_expired = true;
            self.events.push(Event::Expired(Grant::of(*worker, &stored.record)));
        }
    }

    fn succeed(&mut self, moment: &Moment) {
        self.failures = 0;
        if let Some(since) = self.failing_since.take() {
            // What was not reported has not failed for long.
            if self.failure_said_at.take().is_some() {
                self.events.push(Event::Answering(moment.monotonic.saturating_since(since)));
            }
        }
    }

    fn fail(&mut self, moment: &Moment, is_unknown: bool) {
        self.failures = self.failures.saturating_add(1);
        self.is_namespace_checked = false;
        let since = *self.failing_since.get_or_insert(moment.monotonic);
        if is_due(&mut self.failure_said_at, moment.monotonic) {
            self.events.push(Event::NotAnswering(moment.monotonic.saturating_since(since)));
        }
        let todo = std::mem::replace(&mut self.todo, Todo::Done);
        let asks_for_another = match (&todo, &self.held) {
            (Todo::Lease(ask) | Todo::Check(ask), Some((held, _))) => ask.worker != *held,
            // Without the namespace's record, nothing can be renewed either.
            (Todo::Namespace | Todo::SetNamespace(..) | Todo::Remember(_), Some(_)) => self.namespace.is_some(),
            (Todo::Search | Todo::Shorten(_), Some(_)) => true,
            _ => false,
        };
        let pause = self.terms.retry_after(self.failures, moment.chance);
        let left = self.held.as_ref().map(|(_, stored)| {
            let reached = moment.now.min(self.layout.end()).max(moment.seen.line);
            stored.record.granted_until.saturating_since(reached)
        });
        let pause = if left.is_some_and(|left| self.terms.is_urgent(left)) {
            pause.min(self.terms.retry_urgently())
        } else {
            pause
        };
        if asks_for_another {
            // The lease in use must be renewed in time, whatever fails for another one. What was stored after all is
            // found by its token.
            self.todo = Todo::Rest;
            self.move_at = moment.monotonic.saturating_add(pause);
            return;
        }
        self.todo = match todo {
            Todo::Lease(ask) if is_unknown => Todo::Check(ask),
            Todo::Lease(ask) => Todo::Lease(Ask { sent: None, ..ask }),
            Todo::Search | Todo::SetNamespace(..) | Todo::Shorten(_) => Todo::Namespace,
            Todo::Give => {
                if let Some(front) = self.giving.front_mut().filter(|_| is_unknown) {
                    front.1 = None;
                }
                // A lease is renewed before anything is given back.
                if self.stop_by.is_some() { Todo::Give } else { Todo::Rest }
            }
            todo => todo,
        };
        self.pause(moment, pause);
    }

    /// There is no worker now.
    fn refused(&mut self, moment: &Moment, why: Event) {
        // Another cause is news.
        if self.refusal != Some(discriminant(&why)) {
            (self.refusal, self.refusal_said_at) = (Some(discriminant(&why)), None);
        }
        if is_due(&mut self.refusal_said_at, moment.monotonic) {
            self.events.push(why);
        }
        let pause = self.terms.look_after(moment.chance);
        if self.held.is_some() && self.namespace.is_some() {
            self.todo = Todo::Rest;
            self.move_at = moment.monotonic.saturating_add(pause);
        } else {
            self.pause(moment, pause);
        }
    }

    fn pause(&mut self, moment: &Moment, length: Micros) {
        self.not_before = moment.monotonic.saturating_add(length);
    }
}

/// A server that knows nothing of the namespace, or takes the registry at its word.
const NOTHING: Known = Known { life: None, is_record_lost: false, granted_until: None, over_at: UnixMicros(0) };

/// Whether something is to be reported that was last reported then; notes that it is.
fn is_due(last: &mut Option<MonotonicMicros>, now: MonotonicMicros) -> bool {
    let is_due = last.is_none_or(|last| now.saturating_since(last) >= Lessee::REPORT_EVERY);
    if is_due {
        *last = Some(now);
    }
    is_due
}
