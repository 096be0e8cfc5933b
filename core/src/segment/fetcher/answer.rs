//! What came of the last step: the second half of each step of the process that talks to the registry. It is here that a loss of the
//! registry is noticed, the size of a range decided, and what is left given back, one tag after the other.

use super::super::change::{TagRefusal, TagWrite, give_back, grant};
use super::super::record::{Range, State, StoredTag, Tag};
use super::super::steps::{Answer, Moment, NotDone, Slot, TagEvent, TagStanding};
use super::super::terms::RangeTerms;
use super::known::{KnownTag, held, top};
use super::state::Fetcher;
use super::todo::Todo;
use crate::lease::Version;
use crate::time::Micros;
use std::collections::{BTreeMap, VecDeque};

impl Fetcher {
    /// What came of [`Self::next`]. An answer that does not belong to it counts as a failure.
    pub fn answer(&mut self, moment: &Moment<'_>, answer: Answer) {
        if matches!(answer, Answer::Failed | Answer::Unknown) {
            return self.fail(moment, answer == Answer::Unknown);
        }
        let todo = std::mem::replace(&mut self.todo, Todo::Rest);
        self.note_latency(moment.monotonic);
        if self.failures.end(moment.monotonic) {
            self.spread(moment);
        }
        match (todo, answer) {
            (Todo::ReadAll, Answer::All(found)) => self.found_all(moment, found),
            (Todo::ReadForRequest, Answer::One(found)) | (Todo::WriteForRequest(_), Answer::Conflict(found)) => {
                self.go_on_with_request(moment, found);
            }
            (Todo::WriteForRequest(write), Answer::Stored(version)) => {
                let record = write.record.clone();
                self.note_stored(&write, version, None);
                self.finish(Ok(record));
            }
            (Todo::ReadSlot(slot), Answer::One(found)) => {
                let known = &mut self.slots[slot];
                let seen = known.stored.as_ref().map(|stored| stored.version);
                let is_of_others = seen.is_some() && seen != found.as_ref().map(|stored| stored.version);
                known.contention.look(moment.monotonic, self.latency, is_of_others);
                self.ask(moment, slot, found);
            }
            (Todo::Grant(slot, ..), Answer::Conflict(found)) => {
                // Others ask for ranges, too. What is due of other tags is done before the next attempt.
                self.say_too_small(moment, slot);
                if self.slots[slot].contention.lose(moment.monotonic, self.latency, moment.chance) {
                    self.ask(moment, slot, found);
                } else {
                    self.note(moment, slot, found);
                }
            }
            (Todo::Grant(slot, write, range), Answer::Stored(version)) => {
                self.note_stored(&write, version, Some(range));
                let known = &mut self.slots[slot];
                let is_at_once = known
                    .since
                    .is_some_and(|(at, _)| moment.monotonic.saturating_since(at) < Micros(self.latency.0 * 4));
                known.contention.win(moment.monotonic, self.latency, is_at_once, moment.chance);
                self.todo = Todo::Install(slot, range);
            }
            (Todo::Install(slot, range), Answer::Installed) => self.installed(moment, slot, range),
            (Todo::Restore(_, write), Answer::Stored(version)) => self.note_stored(&write, version, None),
            (Todo::Restore(slot, _), Answer::Conflict(found)) => self.note(moment, slot, found),
            (Todo::Close, Answer::Closed) => {
                let is_empty = moment.held.iter().all(|held| held.left() == 0);
                self.todo = if is_empty { Todo::Done } else { Todo::ReadAll };
            }
            (Todo::GiveBack(slot, write), Answer::Stored(_)) => {
                let (tag, next) = (self.slots[slot].tag.clone(), write.record.next);
                self.events.push(TagEvent::GivenBack { tag, next });
                self.give_next(moment);
            }
            // Something was granted since.
            (Todo::GiveBack(..), Answer::Conflict(_)) => self.give_next(moment),
            (Todo::GiveBack(..), Answer::OtherNamespace) => self.todo = Todo::Done,
            // The lessee looks at it.
            (Todo::WriteForRequest(_), Answer::OtherNamespace) => self.finish(Err(NotDone::Failed)),
            (Todo::Grant(..) | Todo::Restore(..), Answer::OtherNamespace) => {
                self.pause(moment, Self::NAMESPACE_WAIT);
            }
            (todo, _) => {
                self.todo = todo;
                self.fail(moment, false);
            }
        }
    }

    /// Reports that servers collide as the largest range is too small, where that is to be reported.
    fn say_too_small(&mut self, moment: &Moment<'_>, slot: Slot) {
        let too_small = self.too_small(slot, &held(moment, slot), moment.monotonic);
        if let Some((largest, enough)) = too_small
            && self.slots[slot].contention.is_to_be_said(moment.monotonic)
        {
            let KnownTag { tag, contention, .. } = &self.slots[slot];
            self.events.push(TagEvent::TooSmall { tag: tag.clone(), conflicts: contention.total, largest, enough });
        }
    }

    /// The record of a tag was found: asks for a range from there.
    pub(super) fn ask(&mut self, moment: &Moment<'_>, slot: Slot, found: Option<StoredTag>) {
        self.note(moment, slot, found);
        let held = held(moment, slot);
        let known = &self.slots[slot];
        let bounds = known.stored.as_ref().map(|stored| stored.record.bounds);
        let size = match (bounds, known.size) {
            (Some(bounds), Some(before)) => {
                self.terms.next_size(bounds, before, known.rate(&self.terms, &held, moment.monotonic))
            }
            (Some(bounds), None) => bounds.nearest(self.sizes.get(&known.tag).copied().unwrap_or(0)),
            (None, _) => 1,
        };
        // A larger range is asked for less often.
        let size = match (bounds, known.contention.is_on(moment.monotonic)) {
            (Some(bounds), true) => bounds.nearest(size.saturating_mul(2)),
            _ => size,
        };
        match grant(&known.tag, known.stored.as_ref(), size, held.top()) {
            Ok((write, range)) => {
                self.todo = Todo::Grant(slot, write, range);
            }
            Err(refusal) => self.stand(slot, standing_of(refusal)),
        }
    }

    fn installed(&mut self, moment: &Moment<'_>, slot: Slot, range: Range) {
        let known = &mut self.slots[slot];
        known.granted = Some(known.granted.unwrap_or(0) + range.count());
        known.size = Some(range.count());
        known.since = Some((moment.monotonic, known.taken(&held(moment, slot))));
        let Some(record) = known.stored.as_ref().map(|stored| &stored.record) else { return };
        let is_near = RangeTerms::is_near_end(record.left(), known.size.unwrap_or(1));
        let was_said = known.end_said_at.is_some_and(|at| moment.monotonic.saturating_since(at) < Self::END_EVERY);
        if is_near && !was_said {
            known.end_said_at = Some(moment.monotonic);
            self.events.push(TagEvent::NearEnd { tag: known.tag.clone(), left: record.left() });
        }
    }

    fn found_all(&mut self, moment: &Moment<'_>, mut found: BTreeMap<Tag, StoredTag>) {
        for slot in 0..self.slots.len() {
            let stored = found.remove(&self.slots[slot].tag);
            self.note(moment, slot, stored);
        }
        if self.stop_by.is_some() {
            self.giving = Some((0..self.slots.len()).collect());
            return self.give_next(moment);
        }
        self.look.at = moment.monotonic.saturating_add(RangeTerms::look_after(moment.chance));
        self.look.under = moment.namespace.cloned();
    }

    /// Takes note of a tag's record as it was found.
    pub(super) fn note(&mut self, moment: &Moment<'_>, slot: Slot, found: Option<StoredTag>) {
        let top = top(moment, slot);
        let known = &mut self.slots[slot];
        let is_missing = found.as_ref().is_none_or(|stored| stored.record.state == State::Forgotten);
        if is_missing && known.standing != TagStanding::Missing {
            self.events.push(TagEvent::Missing(known.tag.clone()));
        }
        let Some(stored) = found else {
            known.is_behind = true;
            known.stored = None;
            return self.stand(slot, TagStanding::Missing);
        };
        let record = &stored.record;
        // Said once, for as long as it stands so.
        let is_behind = record.next < top;
        if is_behind && !known.is_behind && !is_missing {
            let (tag, next) = (known.tag.clone(), record.next);
            self.events.push(TagEvent::RolledBack { tag, next, known: top });
        }
        known.is_behind = is_behind;
        let standing = match record.state {
            State::Dropped => TagStanding::Dropped,
            State::Forgotten => TagStanding::Missing,
            State::Live if record.next.max(top).max(record.floor) > record.last => TagStanding::UsedUp,
            State::Live => TagStanding::Live,
        };
        if record.floor > known.floor {
            known.floor = record.floor;
            self.tells.push_back(slot);
        }
        known.stored = Some(stored);
        self.stand(slot, standing);
    }

    /// A write of ours was confirmed, with a range where that was a grant.
    fn note_stored(&mut self, write: &TagWrite, version: Version, range: Option<Range>) {
        if let Some(slot) = self.slot_of(&write.tag) {
            let record = &write.record;
            let known = &mut self.slots[slot];
            if record.floor > known.floor {
                known.floor = record.floor;
                self.tells.push_back(slot);
            }
            let standing = match record.state {
                State::Dropped => TagStanding::Dropped,
                State::Forgotten => TagStanding::Missing,
                State::Live => TagStanding::Live,
            };
            known.note_own(write.expected, version, range);
            known.stored = Some(StoredTag { version, record: record.clone() });
            known.is_behind = false;
            self.stand(slot, standing);
        }
    }

    /// The records were read, and nothing is taken any more.
    pub(super) fn give_next(&mut self, moment: &Moment<'_>) {
        while let Some(slot) = self.giving.as_mut().and_then(VecDeque::pop_front) {
            let known = &self.slots[slot];
            let own = known.to_give_back(held(moment, slot));
            let write = own.and_then(|(stored, held)| give_back(&known.tag, stored, &held));
            if let Some(write) = write {
                self.todo = Todo::GiveBack(slot, write);
                return;
            }
        }
        self.todo = Todo::Done;
    }
}

const fn standing_of(refusal: TagRefusal) -> TagStanding {
    match refusal {
        TagRefusal::UsedUp { .. } | TagRefusal::AboveLast { .. } | TagRefusal::Exists => TagStanding::UsedUp,
        TagRefusal::Missing => TagStanding::Missing,
        TagRefusal::Dropped => TagStanding::Dropped,
    }
}
