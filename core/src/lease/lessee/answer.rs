//! What came of the last step: the second half of each step of the process that talks to the registry. Each answer is met by
//! what was to be done; what was found leads on in [`found`](super::found), and what is no answer to it counts as a failure.

use super::super::namespace::{Known, NamespaceRecord, check_namespace};
use super::super::record::Stored;
use super::super::steps::{Answer, Event, Moment};
use super::state::Lessee;
use super::todo::{Ask, Todo};

impl Lessee {
    /// What came of [`Self::next`]. An answer that does not belong to it counts as a failure.
    pub fn answer(&mut self, moment: &Moment, answer: Answer) {
        if matches!(answer, Answer::Failed | Answer::Unknown) {
            return self.fail(moment, answer == Answer::Unknown);
        }
        let todo = std::mem::replace(&mut self.todo, Todo::Done);
        match (todo, answer) {
            (Todo::Namespace, Answer::Namespace(found)) => self.found_namespace(moment, found),
            (Todo::Survey(namespace), Answer::All(found)) => self.surveyed(moment, namespace, &found),
            (Todo::SetNamespace(before, record), Answer::Namespace(found)) => {
                let is_noted =
                    |found: &NamespaceRecord| (found.life, found.leases_from) == (record.life, record.leases_from);
                if found.as_ref().is_some_and(is_noted)
                    && before.and_then(|before| before.leases_from) != record.leases_from
                {
                    self.events.extend(record.leases_from.map(Event::Forgotten));
                }
                self.found_namespace(moment, found);
            }
            (Todo::Remember(record), Answer::Remembered) => {
                self.knowledge.life = Some(record.life);
                self.use_namespace(record);
            }
            (Todo::Give, Answer::Namespace(found) | Answer::OtherNamespace(found)) if self.stop_by.is_some() => {
                self.succeed(moment);
                match found.filter(|found| check_namespace(&self.layout, Some(found), &Known::NOTHING, 0).is_ok()) {
                    Some(found) => self.knowledge.record = Some(found),
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
                    self.giving.add(worker, Some(stored));
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
                if let (None, Some(worker)) = (&self.in_use.held, moment.seen.worker) {
                    self.giving.add(worker, None);
                }
                self.todo = Todo::Give;
            }
            (Todo::Give, Answer::Stored(_)) => {
                self.succeed(moment);
                self.events.extend(self.giving.given());
                self.todo = Todo::Give;
            }
            (Todo::Give, Answer::Conflict(found) | Answer::One(found)) => {
                self.succeed(moment);
                self.giving.found(&self.me, found);
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
}
