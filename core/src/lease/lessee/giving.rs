//! The workers that are to be given back, one after the other. The lessee adds those that it needs no more: on a stop, after a
//! move to another worker, and strays of earlier processes.

use super::super::change::{Identity, Write, give_back};
use super::super::published::Seen;
use super::super::record::{Stored, WorkerNumber};
use super::super::steps::Event;
use crate::time::UnixMicros;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(super) struct GivingBack {
    /// With their records, where those are known.
    workers: VecDeque<(WorkerNumber, Option<Stored>)>,
    /// Where the next owner of the first of them starts, once that is stored.
    until: Option<UnixMicros>,
}

/// What the first of them needs.
pub(super) enum Needed {
    /// Its record is not known.
    Read(WorkerNumber),
    Write(Write),
}

impl GivingBack {
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub fn add(&mut self, worker: WorkerNumber, stored: Option<Stored>) {
        if !self.workers.iter().any(|(other, _)| *other == worker) {
            self.workers.push_back((worker, stored));
        }
    }

    /// It is to be used after all.
    pub fn keep(&mut self, worker: WorkerNumber) {
        self.workers.retain(|(other, _)| *other != worker);
    }

    /// There is nothing of this server's any more.
    pub fn clear(&mut self) {
        self.workers.clear();
    }

    /// There is no time left: those that remain.
    pub fn give_up(&mut self) -> impl Iterator<Item = Event> {
        self.workers.drain(..).map(|(worker, _)| Event::NotGivenBack(worker))
    }

    /// What is to be asked of the registry next. Leaves out what cannot be given back; `None` where nothing remains.
    pub fn needs(&mut self, me: &Identity, seen: &Seen) -> Option<Needed> {
        loop {
            let (worker, stored) = self.workers.front()?;
            let Some(stored) = stored else { return Some(Needed::Read(*worker)) };
            if let Some(write) = give_back(me, *worker, stored, seen) {
                self.until = Some(write.record.granted_until);
                return Some(Needed::Write(write));
            }
            self.workers.pop_front();
        }
    }

    /// The first of them was given back. Returns what is to be reported.
    pub fn given(&mut self) -> Option<Event> {
        let ((worker, _), until) = self.workers.pop_front().zip(self.until.take())?;
        Some(Event::GivenBack { worker, until })
    }

    /// The record of the first of them was found: it is given back from there, if it is this server's.
    pub fn found(&mut self, me: &Identity, found: Option<Stored>) {
        match (self.workers.front_mut(), found.filter(|found| me.owns(&found.record))) {
            (Some(front), Some(found)) => front.1 = Some(found),
            _ => drop(self.workers.pop_front()),
        }
    }

    /// What the registry has of the first of them is not known any more.
    pub fn forget_record(&mut self) {
        if let Some(front) = self.workers.front_mut() {
            front.1 = None;
        }
    }
}
