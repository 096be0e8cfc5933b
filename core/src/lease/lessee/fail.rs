//! What follows from a failure or a refusal: how long to wait, and what to do then. Guards the lease in use: its renewal does not
//! wait for what fails about another worker.

use super::super::steps::Moment;
use super::super::trouble::Trouble;
use super::state::Lessee;
use super::todo::{Ask, Todo};
use crate::time::Micros;

impl Lessee {
    pub(super) fn succeed(&mut self, moment: &Moment) {
        self.events.extend(self.failures.end(moment.monotonic));
        self.has_answered = true;
    }

    /// The registry did not answer. With `is_unknown`, what was to be written may be stored.
    pub(super) fn fail(&mut self, moment: &Moment, is_unknown: bool) {
        self.events.extend(self.failures.add(moment.monotonic));
        (self.knowledge.is_checked, self.knowledge.latest) = (false, None);
        let todo = std::mem::replace(&mut self.todo, Todo::Done);
        let asks_for_another = match (&todo, self.in_use.worker()) {
            (Todo::Lease(ask) | Todo::Check(ask), Some(held)) => ask.worker != held,
            // Without the namespace's record, nothing can be renewed either.
            (Todo::Namespace | Todo::Survey(_) | Todo::SetNamespace(..) | Todo::Remember(_), Some(_)) => {
                self.knowledge.record.is_some()
            }
            (Todo::Search | Todo::Shorten(_), Some(_)) => true,
            _ => false,
        };
        // That is tried again until the lease in use must be renewed. Then what this server itself knows of the time has to do.
        let has_failed =
            matches!(todo, Todo::Survey(_)) && std::mem::replace(&mut self.knowledge.has_failed_to_survey, true);
        let is_over = self.in_use.left(&self.layout, moment).is_some_and(|left| left <= Micros(0));
        if has_failed && (is_over || self.must_renew(moment)) {
            self.knowledge.latest = self.in_use.worker().map(|_| self.latest(moment, None));
        }
        let mut pause = self.terms.retry_after(self.failures.count(), moment.chance);
        if self.must_renew(moment) {
            pause = pause.min(self.terms.retry_urgently());
        }
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
            Todo::Search | Todo::Survey(_) | Todo::SetNamespace(..) | Todo::Shorten(_) => Todo::Namespace,
            Todo::Give => {
                if is_unknown {
                    self.giving.forget_record();
                }
                // A lease is renewed before anything is given back.
                if self.stop_by.is_some() { Todo::Give } else { Todo::Rest }
            }
            todo => todo,
        };
        self.pause(moment, pause);
    }

    /// There is no worker now.
    pub(super) fn refused(&mut self, moment: &Moment, why: Trouble) {
        self.events.extend(why.event().and_then(|why| self.refusals.add(why, moment.monotonic)));
        self.refusal = Some(why);
        let pause = self.terms.look_after(moment.chance);
        if self.in_use.held.is_some() && self.knowledge.record.is_some() {
            self.todo = Todo::Rest;
            self.move_at = moment.monotonic.saturating_add(pause);
        } else {
            self.pause(moment, pause);
        }
    }
}
