//! What the fetcher does next: the first half of each step of the process that talks to the registry. While nothing is under way, it is
//! here that it is chosen: a look at all records, what the registry has forgotten, the next range, or what somebody waits for.

use super::super::change::restore;
use super::super::steps::{Moment, Next, NotDone, Slot, TagStanding};
use super::super::terms::RangeTerms;
use super::known::{held, top};
use super::state::Fetcher;
use super::todo::Todo;
use crate::lease::NamespaceRecord;
use crate::time::Micros;

impl Fetcher {
    /// What to do next. The same again, where that was not answered.
    pub fn next(&mut self, moment: &Moment<'_>) -> Next {
        self.note_use(moment);
        if let Some(tell) = self.take_tell() {
            return tell;
        }
        if self.stop_by.is_some_and(|by| moment.monotonic >= by) && !matches!(self.todo, Todo::Close) {
            return Next::Done;
        }
        if moment.monotonic < self.not_before {
            return Next::Wait(self.not_before.saturating_since(moment.monotonic));
        }
        if matches!(self.todo, Todo::Rest)
            && let Some(wait) = self.rest(moment)
        {
            return Next::Wait(wait);
        }
        if matches!(self.todo, Todo::ReadSlot(_) | Todo::Grant(..)) {
            self.sent_at.get_or_insert(moment.monotonic);
        }
        match &self.todo {
            Todo::Rest => Next::Wait(Micros(0)),
            Todo::ReadForRequest => match &self.request {
                Some((request, _)) => Next::Read(request.tag().clone()),
                None => self.leave(),
            },
            Todo::ReadSlot(slot) => Next::Read(self.slots[*slot].tag.clone()),
            Todo::WriteForRequest(write)
            | Todo::Grant(_, write, _)
            | Todo::Restore(_, write)
            | Todo::GiveBack(_, write) => match moment.namespace {
                Some(namespace) => Next::Write(write.clone(), namespace.clone()),
                None => self.leave(),
            },
            Todo::Install(slot, range) => Next::Install(*slot, *range),
            Todo::ReadAll => Next::ReadAll,
            Todo::Close => Next::Close,
            Todo::Done => Next::Done,
        }
    }

    /// Nothing is under way: chooses what to do, or returns how long there is nothing.
    fn rest(&mut self, moment: &Moment<'_>) -> Option<Micros> {
        let Some(namespace) = moment.namespace else {
            if self.request.is_some() {
                self.finish(Err(NotDone::Failed));
            }
            return Some(Self::NAMESPACE_WAIT);
        };
        // Requests and ranges take turns: sessions that ask for a tag which is not there must not keep others from their numbers.
        if self.request.is_none() || self.is_turn_of_ranges {
            self.is_turn_of_ranges = false;
            if self.begin_range(moment, namespace) {
                return None;
            }
        }
        if self.request.is_some() {
            self.todo = Todo::ReadForRequest;
            return None;
        }
        Some(self.idle_for(moment))
    }

    /// Begins what is to be done without a request. Returns whether there was something.
    fn begin_range(&mut self, moment: &Moment<'_>, namespace: &NamespaceRecord) -> bool {
        // What the registry has forgotten is put right before anything is asked for.
        let is_other = self.look.under.as_ref().is_some_and(|seen| seen != namespace);
        if !self.slots.is_empty() && (is_other || moment.monotonic >= self.look.at) {
            self.todo = Todo::ReadAll;
            return true;
        }
        let behind = self.slots.iter().enumerate().filter(|(_, known)| known.is_behind).find_map(|(slot, known)| {
            let write = restore(&known.tag, known.stored.as_ref(), top(moment, slot))?;
            Some(Todo::Restore(slot, write))
        });
        if let Some(todo) = behind {
            self.todo = todo;
            return true;
        }
        let urgent = self.most_urgent(moment);
        if let Some(slot) = urgent {
            self.fetch(moment, slot);
        }
        urgent.is_some()
    }

    /// The tag whose next range is due, and whose numbers last for the shortest time.
    fn most_urgent(&self, moment: &Moment<'_>) -> Option<Slot> {
        let due = self.slots.iter().enumerate().filter_map(|(slot, known)| {
            let held = held(moment, slot);
            let used = known.rate(&self.terms, &held, moment.monotonic);
            let is_due = known.standing == TagStanding::Live
                && held.after.is_none()
                && (held.left() == 0 || moment.monotonic >= known.not_before)
                && moment.monotonic >= known.contention.not_before
                && self.terms.is_due(held.left(), known.size.unwrap_or(0), used);
            let lasts = if held.left() == 0 { Some(Micros(0)) } else { used.lasts(held.left()) };
            // One that other servers ask for comes after all others. Of those without numbers, the one that has waited for the longest time.
            let is_contended = known.contention.is_on(moment.monotonic);
            is_due.then(|| (is_contended, lasts.unwrap_or(Micros(i64::MAX)), known.since.map(|(at, _)| at), slot))
        });
        due.min().map(|(_, _, _, slot)| slot)
    }

    /// Until a range is due at the present rates, or the next look.
    fn idle_for(&self, moment: &Moment<'_>) -> Micros {
        let turns = self.slots.iter().map(|known| known.contention.not_before).filter(|at| *at > moment.monotonic);
        let turn = turns.min().map(|at| at.saturating_since(moment.monotonic));
        let idle = self.idle_without_turns(moment);
        turn.map_or(idle, |turn| turn.min(idle))
    }

    fn idle_without_turns(&self, moment: &Moment<'_>) -> Micros {
        let look = match self.slots.is_empty() {
            true => RangeTerms::LOOK_EVERY,
            false => self.look.at.saturating_since(moment.monotonic),
        };
        let due = self.slots.iter().enumerate().filter_map(|(slot, known)| {
            let held = held(moment, slot);
            let is_open = known.standing == TagStanding::Live && held.after.is_none();
            let used = known.rate(&self.terms, &held, moment.monotonic);
            let due = self.terms.due_in(held.left(), known.size.unwrap_or(0), used).filter(|_| is_open)?;
            let not_before = known.not_before.saturating_since(moment.monotonic);
            // What was put off is asked for once nothing is left.
            let empty = used.lasts(held.left()).unwrap_or(not_before);
            Some(due.max(not_before.min(empty)))
        });
        due.min().map_or(look, |due| due.min(look)).max(Self::SHORTEST_WAIT)
    }

    /// Asks for the next range, from the version that was last seen. While others ask, too, that is an old one.
    fn fetch(&mut self, moment: &Moment<'_>, slot: Slot) {
        let known = &self.slots[slot];
        match known.stored.clone().filter(|_| !known.contention.is_on(moment.monotonic) && !known.contention.looks) {
            Some(stored) => self.ask(moment, slot, Some(stored)),
            None => self.todo = Todo::ReadSlot(slot),
        }
    }

    /// Without a namespace, or without a request, nothing goes on.
    fn leave(&mut self) -> Next {
        if self.stop_by.is_some() {
            self.todo = Todo::Done;
            return Next::Done;
        }
        if matches!(std::mem::replace(&mut self.todo, Todo::Rest), Todo::WriteForRequest(_)) {
            self.finish(Err(NotDone::Failed));
        }
        Next::Wait(Self::SHORTEST_WAIT)
    }

    /// What is held at the beginning counts as granted then.
    fn note_use(&mut self, moment: &Moment<'_>) {
        for (slot, known) in self.slots.iter_mut().enumerate() {
            let held = held(moment, slot);
            known.granted.get_or_insert(held.left());
            if known.since.is_none() && held.left() > 0 {
                (known.since, known.size) = (Some((moment.monotonic, 0)), known.size.or(Some(held.left())));
            }
            known.mark(&self.terms, &held, moment.monotonic);
        }
    }
}
