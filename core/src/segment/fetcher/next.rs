//! What the fetcher does next: the first half of each step of the process that talks to the registry. While nothing is under way, it is
//! here that it is chosen: a look at all records, what the registry has forgotten, the next range, or what somebody waits for.

use super::super::change::restore;
use super::super::steps::{FetchMoment, NextFetch, NotDone, Slot, TagStanding};
use super::super::terms::RangeTerms;
use super::known::{held, top};
use super::state::Fetcher;
use super::todo::FetchTodo;
use crate::lease::NamespaceRecord;
use crate::time::Micros;

impl Fetcher {
    /// What to do next. The same again, where that was not answered.
    pub fn next(&mut self, moment: &FetchMoment<'_>) -> NextFetch {
        self.note_use(moment);
        if let Some(tell) = self.take_tell() {
            return tell;
        }
        if self.stop_by.is_some_and(|by| moment.monotonic >= by) && !matches!(self.todo, FetchTodo::Close) {
            return NextFetch::Done;
        }
        if moment.monotonic < self.not_before {
            return NextFetch::Wait(self.not_before.saturating_since(moment.monotonic));
        }
        if matches!(self.todo, FetchTodo::Rest)
            && let Some(wait) = self.rest(moment)
        {
            return NextFetch::Wait(wait);
        }
        match &self.todo {
            FetchTodo::Rest => NextFetch::Wait(Micros(0)),
            FetchTodo::ReadOrder => match &self.order {
                Some((order, _)) => NextFetch::Read(order.tag().clone()),
                None => self.leave(),
            },
            FetchTodo::ReadSlot(slot) => NextFetch::Read(self.slots[*slot].tag.clone()),
            FetchTodo::WriteOrder(write)
            | FetchTodo::Grant(_, write, _)
            | FetchTodo::Restore(_, write)
            | FetchTodo::GiveBack(_, write) => match moment.namespace {
                Some(namespace) => NextFetch::Write(write.clone(), namespace.clone()),
                None => self.leave(),
            },
            FetchTodo::Install(slot, range) => NextFetch::Install(*slot, *range),
            FetchTodo::ReadAll => NextFetch::ReadAll,
            FetchTodo::Close => NextFetch::Close,
            FetchTodo::Done => NextFetch::Done,
        }
    }

    /// Nothing is under way: chooses what to do, or returns how long there is nothing.
    fn rest(&mut self, moment: &FetchMoment<'_>) -> Option<Micros> {
        let Some(namespace) = moment.namespace else {
            if self.order.is_some() {
                self.finish(Err(NotDone::Failed));
            }
            return Some(Self::NAMESPACE_WAIT);
        };
        // Orders and ranges take turns: sessions that ask for a tag which is not there must not keep others from their numbers.
        if self.order.is_none() || self.is_turn_of_ranges {
            self.is_turn_of_ranges = false;
            if self.begin_range(moment, namespace) {
                return None;
            }
        }
        if self.order.is_some() {
            self.todo = FetchTodo::ReadOrder;
            return None;
        }
        Some(self.idle_for(moment))
    }

    /// Begins what is to be done without an order. Returns whether there was something.
    fn begin_range(&mut self, moment: &FetchMoment<'_>, namespace: &NamespaceRecord) -> bool {
        // What the registry has forgotten is put right before anything is asked for.
        let is_other = self.look.under.as_ref().is_some_and(|seen| seen != namespace);
        if !self.slots.is_empty() && (is_other || moment.monotonic >= self.look.at) {
            self.todo = FetchTodo::ReadAll;
            return true;
        }
        let behind = self.slots.iter().enumerate().filter(|(_, known)| known.is_behind).find_map(|(slot, known)| {
            let write = restore(&known.tag, known.stored.as_ref(), top(moment, slot))?;
            Some(FetchTodo::Restore(slot, write))
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
    fn most_urgent(&self, moment: &FetchMoment<'_>) -> Option<Slot> {
        let due = self.slots.iter().enumerate().filter_map(|(slot, known)| {
            let held = held(moment, slot);
            let used = known.rate(&self.terms, &held, moment.monotonic);
            let is_due = known.standing == TagStanding::Live
                && held.after.is_none()
                && (held.left() == 0 || moment.monotonic >= known.not_before)
                && self.terms.is_due(held.left(), known.size.unwrap_or(0), used);
            let lasts = if held.left() == 0 { Some(Micros(0)) } else { used.lasts(held.left()) };
            // Of those without numbers, the one that has waited for the longest time.
            is_due.then(|| (lasts.unwrap_or(Micros(i64::MAX)), known.since.map(|(at, _)| at), slot))
        });
        due.min().map(|(_, _, slot)| slot)
    }

    /// Until a range is due at the present rates, or the next look.
    fn idle_for(&self, moment: &FetchMoment<'_>) -> Micros {
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

    /// Asks for the next range, from the version that was last seen.
    fn fetch(&mut self, moment: &FetchMoment<'_>, slot: Slot) {
        match self.slots[slot].stored.clone() {
            Some(stored) => self.ask(moment, slot, Some(stored)),
            None => self.todo = FetchTodo::ReadSlot(slot),
        }
    }

    /// Without a namespace, or without an order, nothing goes on.
    fn leave(&mut self) -> NextFetch {
        if self.stop_by.is_some() {
            self.todo = FetchTodo::Done;
            return NextFetch::Done;
        }
        if matches!(std::mem::replace(&mut self.todo, FetchTodo::Rest), FetchTodo::WriteOrder(_)) {
            self.finish(Err(NotDone::Failed));
        }
        NextFetch::Wait(Self::SHORTEST_WAIT)
    }

    /// What is held at the beginning counts as granted then.
    fn note_use(&mut self, moment: &FetchMoment<'_>) {
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
