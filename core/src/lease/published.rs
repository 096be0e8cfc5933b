//! What the sessions of a server may make IDs of, and how that changes.

use super::record::{Record, WorkerNumber};
use crate::layout::{Layout, Position, WorkerBits};
use crate::line::Line;
use crate::time::{Tick, Ticks, UnixMicros};
use thiserror::Error;

/// What the sessions of a server may make IDs of. Lies in shared memory beside the line; the lock for transitions guards
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The worker that a lease has put beside the line.
    pub worker: Option<WorkerNumber>,
    /// Where that worker's grant begins: IDs before it may be another server's. Until the grant is published, that or the
    /// start of the grant before, whichever is later.
    pub from: Option<UnixMicros>,
    /// The first instant that no session may claim: the end of the grant. Not lowered within a run, as sessions have
    /// copies of it.
    pub end: Option<UnixMicros>,
    /// Where the line was closed: the last position before that.
    pub closed: Option<Position>,
    /// Whether the line is above all that was ever claimed with this run's token. Not so after a session's crash, which
    /// the token survives, until the line is raised to the reservation.
    pub resumed: bool,
    /// Somebody has made sure that no ID of this server at or after this instant is kept.
    pub rewound_to: Option<UnixMicros>,
}

/// The facts about a server that a request to the registry needs. Made by [`Published::look`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The instant that the line has reached: the start of the tick after the last one that was claimed or given up.
    pub line: UnixMicros,
    /// Nothing at or after this instant was claimed with this token: as `line`, but where the line is closed, as it was
    /// before. `None` where that is not known.
    pub used: Option<UnixMicros>,
    /// The worker beside the line.
    pub worker: Option<WorkerNumber>,
    /// The highest end published in this run.
    pub end: Option<UnixMicros>,
    /// Whether the line is closed.
    pub is_closed: bool,
    /// [`Published::rewound_to`].
    pub rewound_to: Option<UnixMicros>,
}

/// A worker and a range of ID time, as the registry has stored it for this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The worker.
    pub worker: WorkerNumber,
    /// The first instant of the range.
    pub from: UnixMicros,
    /// The first instant after it.
    pub until: UnixMicros,
}

/// Why a grant is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotInstalled {
    /// It ends before a end that sessions may have, or leaves the line no room. It must be renewed first.
    #[error("the grant ends before the line or a published end")]
    RenewFirst,
    /// The layout has no such worker.
    #[error("the layout has no worker {}", .0.0)]
    NoSuchWorker(WorkerNumber),
}

/// The steps that bring a grant to the sessions, in the order in which it must be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The line is raised to the tick: nothing before it is claimed any more.
    Raise(Tick),
    /// The worker of the grant is put beside the line. The grant's start is on record before, so that from then on nobody
    /// lowers the line below it by hand, even if the process ends before the next step.
    Switch(Grant, WorkerBits),
    /// Sessions may claim what begins before the end of the grant. Opens a closed line.
    Publish(Grant),
}

impl Published {
    /// At the start of a run. `is_first` says whether it is the first run of this token, and not one after a session's
    /// crash.
    pub const fn new(is_first: bool) -> Self {
        Self { worker: None, from: None, end: None, closed: None, resumed: is_first, rewound_to: None }
    }

    /// The highest tick that may be claimed. A session's limit is this or that of the reservation, whichever is lower.
    /// `None` without a lease, and while the line is closed.
    pub fn limit(&self, layout: &Layout) -> Option<Tick> {
        if self.closed.is_some() { None } else { self.last_tick(layout) }
    }

    /// The last tick that begins before the end.
    fn last_tick(&self, layout: &Layout) -> Option<Tick> {
        let end = self.end?;
        Some((layout.first_tick_from(end) - Ticks(1)).min(layout.last_tick()))
    }

    /// The lowest tick to which the line may be lowered by hand: everything before it may be another server's.
    pub fn lowest_tick(&self, layout: &Layout) -> Option<Tick> {
        self.from.map(|from| layout.first_tick_from(from))
    }

    /// The facts for a request to the registry.
    pub fn look(&self, layout: &Layout, line: &Line) -> Seen {
        let after = |last: Position| layout.start_of(layout.tick_of(last) + Ticks(1));
        let last = line.last();
        Seen {
            line: after(last),
            used: self.resumed.then(|| after(self.closed.unwrap_or(last))),
            worker: self.worker,
            end: self.end,
            is_closed: self.closed.is_some(),
            rewound_to: self.rewound_to,
        }
    }

    /// Takes the line from the sessions: none of them claims any more, whatever end it has copied. A grant that is
    /// published opens the line again, above all those ends.
    pub fn close(&mut self, layout: &Layout, line: &Line) {
        let beyond = self.last_tick(layout).unwrap_or(Tick(-1));
        let last = line.close(layout, beyond);
        self.closed.get_or_insert(last);
    }

    /// The steps that bring a grant to the sessions, without those that are done already, as in a renewal.
    ///
    /// # Errors
    /// Where the grant cannot be installed as it is.
    pub fn actions(&self, layout: &Layout, line: &Line, grant: &Grant) -> Result<[Option<Action>; 3], NotInstalled> {
        let bits = layout.place_number(grant.worker.0).ok_or(NotInstalled::NoSuchWorker(grant.worker))?;
        let next = layout.tick_of(line.last()) + Ticks(1);
        let floor = layout.first_tick_from(grant.from);
        let has_room = layout.first_tick_from(grant.until) > floor.max(next);
        // Sessions may have copies of the end, and would claim up to it with the grant's worker.
        if !has_room || self.end.is_some_and(|end| grant.until < end) {
            return Err(NotInstalled::RenewFirst);
        }
        Ok([
            (floor > next).then_some(Action::Raise(floor)),
            (self.worker != Some(grant.worker)).then_some(Action::Switch(*grant, bits)),
            Some(Action::Publish(*grant)),
        ])
    }

    /// Does a step of [`Self::actions`].
    pub fn apply(&mut self, layout: &Layout, line: &Line, step: Action) {
        match step {
            Action::Raise(floor) => line.raise(layout, floor),
            Action::Switch(grant, bits) => {
                self.from = self.from.max(Some(grant.from));
                line.switch_worker(layout, bits);
                self.worker = Some(grant.worker);
            }
            Action::Publish(grant) => {
                (self.from, self.end, self.closed) = (Some(grant.from), Some(grant.until), None);
            }
        }
    }

    /// Brings a grant to the sessions. The caller holds the lock for transitions, and lets nobody read the end
    /// before it lets go of it.
    ///
    /// # Errors
    /// Where the grant cannot be installed as it is. Nothing was changed.
    pub fn install(&mut self, layout: &Layout, line: &Line, grant: &Grant) -> Result<(), NotInstalled> {
        for step in self.actions(layout, line, grant)?.into_iter().flatten() {
            self.apply(layout, line, step);
        }
        Ok(())
    }
}

impl Grant {
    /// The grant of a record.
    pub const fn of(worker: WorkerNumber, record: &Record) -> Self {
        Self { worker, from: record.granted_from, until: record.granted_until }
    }
}
