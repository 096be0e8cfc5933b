//! What follows from a failure, and from its end: how long to wait, and what to do then. What may have been granted is abandoned. When the
//! registry is back, servers do not ask all at once.

use super::super::steps::{Moment, NotDone};
use super::super::terms::RangeTerms;
use super::known::held;
use super::state::Fetcher;
use super::todo::Todo;

impl Fetcher {
    /// The registry is back. What is due by now waits for a while by chance, unless nothing is left of it: other servers have found
    /// out, too.
    pub(super) fn spread(&mut self, moment: &Moment<'_>) {
        for (slot, known) in self.slots.iter_mut().enumerate() {
            let held = held(moment, slot);
            let used = known.rate(&self.terms, &held, moment.monotonic);
            let chance = moment.chance.rotate_left(slot as u32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            let wait = RangeTerms::spread_after(used.lasts(held.left()), chance);
            known.not_before = moment.monotonic.saturating_add(wait);
        }
    }

    pub(super) fn fail(&mut self, moment: &Moment<'_>, is_unknown: bool) {
        self.failures.add(moment.monotonic);
        self.sent_at = None;
        let pause = self.terms.pauses.retry_after(self.failures.count, moment.chance);
        match std::mem::replace(&mut self.todo, Todo::Rest) {
            Todo::WriteForRequest(_) if is_unknown && self.failures.count == 1 => {
                self.todo = Todo::ReadForRequest;
                return;
            }
            Todo::WriteForRequest(_) | Todo::ReadForRequest => {
                let was_sent = self.request.as_ref().is_some_and(|(_, sent)| sent.is_some());
                let is_unknown = is_unknown || was_sent;
                self.finish(Err(if is_unknown { NotDone::Unknown } else { NotDone::Failed }));
            }
            // What may have been granted is abandoned: the next request is made from what stands then.
            Todo::Grant(slot, ..) | Todo::Restore(slot, _) if is_unknown => self.slots[slot].stored = None,
            Todo::GiveBack(..) => return self.give_next(moment),
            // It is not lost: it is in memory, and the caller does that.
            todo @ (Todo::Install(..) | Todo::Close | Todo::Done) => self.todo = todo,
            _ if self.stop_by.is_some() => self.todo = Todo::Done,
            _ => {}
        }
        if self.stop_by.is_none() {
            self.pause(moment, pause);
        }
    }
}
