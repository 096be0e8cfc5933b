//! Which worker to lease, once all records of the namespace were read.

use super::change::Identity;
use super::record::{Holder, Stored, Version, WorkerNumber};
use super::terms::Terms;
use crate::layout::Layout;
use crate::time::{Micros, MonotonicMicros, UnixMicros};
use std::collections::{BTreeMap, BTreeSet};

/// A look for a worker.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The layout of the namespace.
    pub layout: &'a Layout,
    /// The server that looks for a worker.
    pub me: &'a Identity,
    /// Which workers will do.
    pub wanted: Wanted,
    /// All records of the namespace, by worker, as they were just read.
    pub records: &'a BTreeMap<WorkerNumber, Stored>,
    /// The records of this system that did not change; see [`Watch`].
    pub watch: &'a Watch,
    /// The workers of which the caller knows that the process which leased them is gone.
    pub gone: &'a BTreeSet<WorkerNumber>,
    /// The worker beside the line.
    pub beside: Option<WorkerNumber>,
    /// The time.
    pub now: UnixMicros,
    /// The time of the monotonic clock.
    pub monotonic: MonotonicMicros,
    /// The instant that the line has reached.
    pub line: UnixMicros,
    /// No new lease begins before this, as the registry has forgotten what it had stored.
    pub leases_from: Option<UnixMicros>,
    /// Its settings.
    pub terms: Terms,
}

/// Which workers a server may lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The one that the settings name.
    One(WorkerNumber),
    /// Any of these, whose numbers follow each other.
    Any {
        /// The lowest.
        first: WorkerNumber,
        /// How many.
        count: u64,
    },
}

impl Wanted {
    /// All workers of a layout.
    pub const fn any(layout: &Layout) -> Self {
        Self::Any { first: WorkerNumber(0), count: layout.workers() }
    }

    /// Those of one datacenter; all, where the layout has no such field or no such datacenter.
    pub fn datacenter(layout: &Layout, datacenter: u32) -> Self {
        match layout.number_worker(Some(datacenter), layout.has_workers().then_some(0)) {
            Ok(first) => Self::Any { first: WorkerNumber(first), count: layout.workers_of_datacenter() },
            Err(_) => Self::any(layout),
        }
    }

    /// Whether this worker will do.
    pub const fn contains(&self, worker: WorkerNumber) -> bool {
        match *self {
            Self::One(one) => worker.0 == one.0,
            Self::Any { first, count } => worker.0 >= first.0 && worker.0 - first.0 < count,
        }
    }
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Lease this worker. Where its record has this run's own token, that renews the lease.
    Lease(WorkerNumber),
    /// There is no worker to lease now.
    NoWorker(NoWorker),
    /// No new lease is given before this instant: the registry has forgotten what it had stored.
    NotBefore(UnixMicros),
}

/// Why there is no worker to lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoWorker {
    /// Which workers would have done.
    pub wanted: Wanted,
    /// The workers with their holders, by the end of the lease.
    pub taken: Vec<Taken>,
}

/// A worker that cannot be leased now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The worker.
    pub worker: WorkerNumber,
    /// The server that has it, or had it last.
    pub holder: Holder,
    /// Where its grant ends.
    pub until: UnixMicros,
    /// Why it cannot be leased.
    pub why: Why,
}

/// Why a worker cannot be leased now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another server's grant is current.
    Held,
    /// It belongs to a server with the same system identifier, of which it is not known that it is gone: an older run of
    /// this one before the machine was started again, or a copy. It can be taken over when its record has not changed for
    /// half a window.
    MayBeCopy,
    /// The grant is nobody's any more, but ends more than `max_lead` ahead of the clock and of the line. It comes from
    /// a server whose clock was ahead.
    TooFarAhead,
}

impl Search<'_> {
    /// Chooses. `chance` is any number, drawn anew for each call.
    pub fn choose(&self, chance: u64) -> Choice {
        if let Some(from) = self.leases_from.filter(|from| self.now < *from) {
            // A lease that goes on is no new one.
            let own = self.records().filter(|(_, stored)| self.me.owns(&stored.record) && self.is_current(stored));
            let best = own.max_by_key(|&(worker, stored)| (self.beside == Some(worker), stored.record.granted_until));
            return best.map_or(Choice::NotBefore(from), |(worker, _)| Choice::Lease(worker));
        }
        let (first, count) = match self.wanted {
            Wanted::One(worker) => return self.choose_one(worker),
            Wanted::Any { first, count } => (first, count),
        };
        let judged = || self.records().map(|(worker, stored)| (worker, stored, self.judge(worker, stored)));
        let best_own = judged()
            .filter(|(_, _, standing)| *standing == Standing::Own)
            .max_by_key(|&(worker, stored, _)| (self.beside == Some(worker), stored.record.granted_until));
        if let Some((worker, ..)) = best_own {
            return Choice::Lease(worker);
        }
        // The own last worker: given back, also where that lies ahead of the clock, as the own line is there, too; or
        // over by the clock.
        let last = judged()
            .filter(|(_, stored, standing)| {
                matches!(standing, Standing::Free | Standing::GivenBack) && self.is_mine(&stored.record.holder)
            })
            .max_by_key(|(_, stored, _)| stored.record.granted_until);
        if let Some((worker, ..)) = last {
            return Choice::Lease(worker);
        }
        if let Some(worker) = self.free_by_chance(first, count, chance) {
            return Choice::Lease(worker);
        }
        let soonest = |wanted: Standing| {
            judged()
                .filter(move |(_, _, standing)| *standing == wanted)
                .min_by_key(|(_, stored, _)| stored.record.granted_until)
        };
        match soonest(Standing::GivenBack).or_else(|| soonest(Standing::OwnOld)) {
            Some((worker, ..)) => Choice::Lease(worker),
            None => self.none(),
        }
    }

    fn choose_one(&self, worker: WorkerNumber) -> Choice {
        match self.records.get(&worker).map(|stored| self.judge(worker, stored)) {
            Some(Standing::No(_)) => self.none(),
            None | Some(Standing::Own | Standing::Free | Standing::GivenBack | Standing::OwnOld) => {
                Choice::Lease(worker)
            }
        }
    }

    /// A worker that an older run of this server has left with a grant far ahead of the clock, where it is certain that
    /// nobody uses it any more.
    pub fn left_far_ahead(&self) -> Option<(WorkerNumber, &Stored)> {
        self.all().find(|&(worker, stored)| {
            let record = &stored.record;
            let is_unused = match record.owner {
                None => true,
                Some(_) => !self.me.owns(record) && self.is_gone(worker, stored),
            };
            let ahead = record.granted_until.saturating_since(self.now);
            is_unused && self.is_mine(&record.holder) && ahead > self.terms.max_lead.max(self.terms.window)
        })
    }

    /// Whether the server that leased the worker is gone: its process is, or its record stands still.
    fn is_gone(&self, worker: WorkerNumber, stored: &Stored) -> bool {
        self.gone.contains(&worker)
            || self.watch.is_still(worker, stored.version, self.monotonic, self.terms.standstill())
    }

    /// The workers with this run's own token that neither are beside the line nor are this one: left over where an
    /// answer was lost. They are to be given back.
    pub fn strays(&self, kept: Option<WorkerNumber>) -> impl Iterator<Item = (WorkerNumber, &Stored)> {
        self.all().filter(move |&(worker, stored)| {
            self.me.owns(&stored.record) && self.beside != Some(worker) && kept != Some(worker)
        })
    }

    fn is_current(&self, stored: &Stored) -> bool {
        stored.record.granted_until > self.now.min(self.layout.end()).max(self.line)
    }

    fn all(&self) -> impl Iterator<Item = (WorkerNumber, &Stored)> {
        self.records.iter().map(|(&worker, stored)| (worker, stored))
    }

    /// Of the workers that will do.
    fn records(&self) -> impl Iterator<Item = (WorkerNumber, &Stored)> {
        self.all().filter(|&(worker, _)| self.wanted.contains(worker))
    }

    /// One of those that nobody has, each with the same chance.
    fn free_by_chance(&self, first: WorkerNumber, count: u64, chance: u64) -> Option<WorkerNumber> {
        let taken = || self.records().filter(|&(worker, stored)| self.judge(worker, stored) != Standing::Free);
        let free = count - taken().count() as u64;
        if free == 0 {
            return None;
        }
        let mut number = first.0 + chance % free;
        for (worker, _) in taken() {
            if worker.0 > number {
                break;
            }
            number += 1;
        }
        Some(WorkerNumber(number))
    }

    fn judge(&self, worker: WorkerNumber, stored: &Stored) -> Standing {
        let record = &stored.record;
        if self.me.owns(record) {
            return Standing::Own;
        }
        // By this server's clock: where that is wrong, the worker is taken from its owner, and the line is raised to
        // the end of the grant. No ID repeats by that.
        if record.granted_until <= self.now {
            return Standing::Free;
        }
        let is_own_system = record.holder.system_identifier == self.me.holder.system_identifier;
        if record.owner.is_some() && !is_own_system {
            return Standing::No(Why::Held);
        }
        // A grant that this server gave back itself is no further than its own line was, to which it is raised again.
        let max_lead = match record.owner {
            None if self.is_mine(&record.holder) => self.terms.max_lead.max(self.terms.window),
            _ => self.terms.max_lead,
        };
        if record.granted_until.saturating_since(self.now.max(self.line)) > max_lead {
            return Standing::No(Why::TooFarAhead);
        }
        if record.owner.is_none() {
            return Standing::GivenBack;
        }
        if self.is_gone(worker, stored) { Standing::OwnOld } else { Standing::No(Why::MayBeCopy) }
    }

    /// Whether that is this server, by all that it knows of itself.
    fn is_mine(&self, holder: &Holder) -> bool {
        let mine = &self.me.holder;
        (holder.system_identifier, &holder.host, &holder.data_directory)
            == (mine.system_identifier, &mine.host, &mine.data_directory)
    }

    fn none(&self) -> Choice {
        let mut taken: Vec<Taken> = self
            .records()
            .filter_map(|(worker, stored)| match self.judge(worker, stored) {
                Standing::No(why) => {
                    let record = &stored.record;
                    Some(Taken { worker, holder: record.holder.clone(), until: record.granted_until, why })
                }
                _ => None,
            })
            .collect();
        taken.sort_by_key(|taken| (taken.until, taken.worker));
        Choice::NoWorker(NoWorker { wanted: self.wanted, taken })
    }
}

/// How a record stands to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has this run's token.
    Own,
    /// Its grant is over by the clock.
    Free,
    /// It was given back, and what was used of it ends ahead of the clock.
    GivenBack,
    /// An older run of this server has it, which is gone.
    OwnOld,
    /// It cannot be leased.
    No(Why),
}

/// Since when records have not changed, by the monotonic clock. Versions do not come twice, so a version stands for its
/// record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch(BTreeMap<WorkerNumber, (Version, MonotonicMicros)>);

impl Watch {
    /// Notes the records of a system, as they were just read, and forgets all others.
    pub fn note(
        &mut self,
        system_identifier: u64,
        records: &BTreeMap<WorkerNumber, Stored>,
        monotonic: MonotonicMicros,
    ) {
        let mut noted = BTreeMap::new();
        for (&worker, stored) in records {
            if stored.record.holder.system_identifier == system_identifier {
                let since = match self.0.get(&worker) {
                    Some(&(version, since)) if version == stored.version => since,
                    _ => monotonic,
                };
                noted.insert(worker, (stored.version, since));
            }
        }
        self.0 = noted;
    }

    /// Whether the worker's record has been the same for so long.
    fn is_still(&self, worker: WorkerNumber, version: Version, now: MonotonicMicros, for_long: Micros) -> bool {
        self.0.get(&worker).is_some_and(|&(noted, since)| noted == version && now.saturating_since(since) >= for_long)
    }
}
