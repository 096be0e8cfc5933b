//! What somebody waits for, who wants something done with a tag: its record was read, and is changed. Guards against a tag that is
//! taken for a new one, and against an answer that says more than is known.

use super::super::change::{TagRefusal, TagWrite, create, drop_tag, raise};
use super::super::record::{State, StoredTag, Tag, TagRecord};
use super::super::steps::{FetchMoment, NotDone, Order, Slot, TagEvent};
use super::known::{KnownTag, top};
use super::state::Fetcher;
use super::todo::FetchTodo;

impl Fetcher {
    /// The record of the order's tag was found.
    pub(super) fn go_on_with_order(&mut self, moment: &FetchMoment<'_>, found: Option<StoredTag>) {
        let Some((order, sent)) = self.order.take() else { return };
        self.is_turn_of_ranges = true;
        let slot = self.slot_of(order.tag());
        if let Some(slot) = slot {
            self.note(moment, slot, found.clone());
        }
        let (tag, found) = (order.tag(), found.as_ref());
        let known = slot.map_or(0, |slot| top(moment, slot));
        let write = match (found, &sent) {
            // The answer was lost. What can be read may not be durable yet, and never be.
            (Some(stored), Some(sent)) if stored.record == *sent => {
                Ok(TagWrite { tag: tag.clone(), expected: Some(stored.version), record: sent.clone() })
            }
            _ => match &order {
                Order::Attach(tag) => {
                    let outcome = self.attach(tag, slot, found);
                    self.events.push(TagEvent::Answered(outcome));
                    return;
                }
                Order::Create(_, plan) => create(tag, found, plan, known),
                Order::Raise(_, above) => raise(tag, found, *above, known),
                Order::Drop(_) => drop_tag(tag, found, known),
            },
        };
        match write {
            Ok(write) => {
                self.order = Some((order, Some(write.record.clone())));
                self.todo = FetchTodo::WriteOrder(write);
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
                return Err(NotDone::Full);
            }
            let floor = stored.record.floor;
            self.slots.push(KnownTag {
                stored: Some(stored.clone()),
                floor,
                granted: Some(0),
                ..KnownTag::new(tag.clone())
            });
            self.tells.push_back(self.slots.len() - 1);
        }
        Ok(stored.record.clone())
    }
}
