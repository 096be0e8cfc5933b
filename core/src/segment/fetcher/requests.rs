//! What somebody waits for, who wants something done with a tag: its record was read, and is changed. Guards against a tag that is
//! taken for a new one, and against an answer that says more than is known.

use super::super::change::{TagRefusal, TagWrite, create, drop_tag, raise};
use super::super::record::{State, StoredTag, Tag, TagRecord};
use super::super::steps::{Moment, NotDone, Request, Slot, TagEvent};
use super::known::{KnownTag, top};
use super::state::Fetcher;
use super::todo::Todo;

impl Fetcher {
    /// The record of the request's tag was found.
    pub(super) fn go_on_with_request(&mut self, moment: &Moment<'_>, found: Option<StoredTag>) {
        let Some((request, sent)) = self.request.take() else { return };
        self.is_turn_of_ranges = true;
        let slot = self.slot_of(request.tag());
        if let Some(slot) = slot {
            self.note(moment, slot, found.clone());
        }
        let (tag, found) = (request.tag(), found.as_ref());
        let known = slot.map_or(0, |slot| top(moment, slot));
        let write = match (found, &sent) {
            // The answer was lost. What can be read may not be durable yet, and never be.
            (Some(stored), Some(sent)) if stored.record == *sent => {
                Ok(TagWrite { tag: tag.clone(), expected: Some(stored.version), record: sent.clone() })
            }
            _ => match &request {
                Request::Attach(tag) => {
                    let outcome = self.attach(tag, slot, found);
                    self.events.push(TagEvent::Answered(outcome));
                    return;
                }
                Request::Create(_, plan) => create(tag, found, plan, known),
                Request::Raise(_, above) => raise(tag, found, *above, known),
                Request::Drop(_) => drop_tag(tag, found, known),
            },
        };
        match write {
            Ok(write) => {
                self.request = Some((request, Some(write.record.clone())));
                self.todo = Todo::WriteForRequest(write);
            }
            Err(refusal) => self.events.push(TagEvent::Answered(Err(NotDone::Refused(refusal)))),
        }
    }

    /// Gives a tag a place, if it is live.
    fn attach(&mut self, tag: &Tag, slot: Option<Slot>, found: Option<&StoredTag>) -> Result<TagRecord, NotDone> {
        let stored = match found {
            Some(stored) if stored.record.state == State::Forgotten => {
                return Err(NotDone::Refused(TagRefusal::Missing));
            }
            None => return Err(NotDone::Refused(TagRefusal::Missing)),
            Some(stored) if stored.record.state == State::Dropped => return Err(NotDone::Refused(TagRefusal::Dropped)),
            Some(stored) => stored,
        };
        if slot.is_none() {
            if self.slots.len() >= self.capacity {
                self.full_for = Some(tag.clone());
                return Err(NotDone::Full);
            }
            let floor = stored.record.floor;
            self.slots.push(KnownTag { stored: Some(stored.clone()), floor, ..KnownTag::new(tag.clone()) });
            self.tells.push_back(self.slots.len() - 1);
        }
        Ok(stored.record.clone())
    }
}
