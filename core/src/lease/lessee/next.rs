//! What the lessee does next: the first half of each step of the process that talks to the registry. While a lease is in use and
//! nothing is under way, it is here that a renewal, a return or a move is begun.

use super::super::change::lease;
use super::super::published::Grant;
use super::super::steps::{Moment, Next};
use super::giving::Needed;
use super::state::Lessee;
use super::todo::{Ask, Todo};
use crate::time::Micros;

impl Lessee {
    /// What to do next. The same again, where that was not answered.
    pub fn next(&mut self, moment: &Moment) -> Next {
        self.events.extend(self.in_use.expired(moment));
        if self.stop_by.is_some_and(|by| moment.monotonic >= by) {
            self.events.extend(self.giving.give_up());
            self.end_pause();
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
        let leases_from = self.knowledge.leases_from();
        match &mut self.todo {
            Todo::Namespace => Next::Namespace,
            Todo::SetNamespace(expected, record) => {
                Next::SetNamespace { expected: expected.clone(), record: record.clone() }
            }
            Todo::Remember(record) => Next::Remember(record.life),
            // [`Self::rest`] leaves it where there is anything to do.
            Todo::Search | Todo::Rest | Todo::Survey(_) => Next::ReadAll,
            Todo::Lease(ask) => {
                let Some(namespace) = self.knowledge.record.clone() else {
                    self.todo = Todo::Namespace;
                    return Next::Namespace;
                };
                let found = (ask.worker, ask.found.as_ref());
                let mut write =
                    lease(&self.layout, &self.me, found, leases_from, &self.terms, moment.now, &moment.seen);
                if ask.is_gone {
                    write.expected = None;
                }
                self.in_use.asked_at = moment.monotonic;
                Next::Write(ask.sent.insert(write).clone(), namespace)
            }
            Todo::Shorten(write) => match self.knowledge.record.clone() {
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

    /// While there is a lease, and nothing under way: chooses what to do, or returns how long there is nothing.
    fn rest(&mut self, moment: &Moment) -> Option<Micros> {
        let left = self.in_use.left(&self.layout, moment);
        let (Some((worker, stored)), Some(left)) = (&self.in_use.held, left) else {
            self.search();
            return None;
        };
        // One that is over begins again at the mark. Where that is later than a loss of just now would put it, the server waits for it, as one
        // without a lease: else its line would be raised to it.
        let length = self.terms.max_lead + self.terms.window + self.terms.window;
        let soon = moment.now.max(moment.seen.line).saturating_add(length);
        if left <= Micros(0) && self.knowledge.leases_from().is_some_and(|from| from > soon) {
            self.in_use.lose();
            self.search();
            return None;
        }
        let renew_at = self.in_use.renew_at(&self.terms, left);
        if moment.monotonic >= renew_at {
            let ask = Ask::new(*worker, Some(stored.clone()));
            self.todo = Todo::Lease(Ask { is_gone: self.in_use.is_gone, ..ask });
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

    fn next_to_give(&mut self, moment: &Moment) -> Next {
        if !self.giving.is_empty() {
            let Some(namespace) = self.knowledge.record.clone() else { return Next::Namespace };
            match self.giving.needs(&self.me, &moment.seen) {
                Some(Needed::Read(worker)) => return Next::Read(worker),
                Some(Needed::Write(write)) => return Next::Write(write, namespace),
                None => {}
            }
        }
        self.todo = if self.stop_by.is_some() { Todo::Done } else { Todo::Rest };
        if self.stop_by.is_some() { Next::Done } else { Next::Wait(Micros(0)) }
    }
}
