//! What the [`Lessee`](super::Lessee) is asked, says and is told.

use super::change::Write;
use super::choice::NoWorker;
use super::namespace::{NamespaceRecord, OtherLayout};
use super::published::{Grant, NotInstalled, Seen};
use super::record::{Holder, Stored, Version, WorkerNumber};
use crate::time::{Micros, MonotonicMicros, UnixMicros};
use std::collections::{BTreeMap, BTreeSet};

/// What is so at the moment of a call.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time that the server believes.
    pub now: UnixMicros,
    /// The time of the monotonic clock.
    pub monotonic: MonotonicMicros,
    /// What is published, and where the line is; read under the lock for transitions.
    pub seen: Seen,
    /// Any number, drawn anew for each call.
    pub chance: u64,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing for so long, or until something happens: a session finds no lease, the settings change, the server stops.
    /// Not answered.
    Wait(Micros),
    /// Read the namespace's record.
    Namespace,
    /// Store the namespace's record, if what was found there still stands, and read what is stored.
    SetNamespace {
        /// What was found; `None`: there was none.
        expected: Option<NamespaceRecord>,
        /// What is to be stored.
        record: NamespaceRecord,
    },
    /// Store durably, on this server, that it has seen this life of the namespace.
    Remember(u64),
    /// Read all records.
    ReadAll,
    /// Read the record of a worker.
    Read(WorkerNumber),
    /// Store a record, if the version is as expected, and the namespace's record is this.
    Write(Write, NamespaceRecord),
    /// Install a grant, by [`Published::install`](super::Published::install).
    Install(Grant),
    /// Close the line, by [`Published::close`](super::Published::close).
    Close,
    /// Nothing any more: the process may end.
    Done,
}

/// What was found in answer to [`Next::ReadAll`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// All records.
    pub records: BTreeMap<WorkerNumber, Stored>,
    /// Of which workers the caller knows that the process which leased them is gone.
    pub gone: BTreeSet<WorkerNumber>,
    /// The time of the registry, where it has one.
    pub time: Option<UnixMicros>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The registry did not answer, or not as expected. Nothing was stored.
    Failed,
    /// The registry did not answer a [`Next::Write`]. Whether the record was stored is not known.
    Unknown,
    /// The namespace's record, if there is one.
    Namespace(Option<NamespaceRecord>),
    /// It is stored on this server.
    Remembered,
    /// All records.
    All(Found),
    /// The worker's record, if there is one.
    One(Option<Stored>),
    /// The record was stored, and this is its version.
    Stored(Version),
    /// Another version was found: this one. Nothing was stored.
    Conflict(Option<Stored>),
    /// The namespace's record is another one than was expected: this. Nothing was stored.
    OtherNamespace(Option<NamespaceRecord>),
    /// The grant was installed, or not.
    Installed(Result<(), NotInstalled>),
    /// The line is closed.
    Closed,
}

/// What people may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server has a lease that it had not before, or had lost.
    Gained(Grant),
    /// Another server has taken the worker. IDs can be made until the grant ends.
    Lost {
        /// The worker.
        worker: WorkerNumber,
        /// Who has taken it.
        by: Holder,
    },
    /// The record of the worker in use is gone, or an older one is there, or that of a server which has found such a one: the registry was
    /// wiped or rolled back. It is stored again, unless the grant is over, or another server has the worker.
    Vanished(WorkerNumber),
    /// This server has put on record that the registry has forgotten what it had stored: no new lease is given before
    /// this instant.
    Forgotten(UnixMicros),
    /// No lease is given before this instant, as the registry has forgotten what it had stored. At most once a minute.
    NotBefore(UnixMicros),
    /// The clock is so far ahead of what the registry knows. No lease is taken before it was set right, or a minute has
    /// passed. At most once a minute.
    ClockAhead(Micros),
    /// The registry may have forgotten what it had stored, and the clock is so far behind what it shows. From when on new leases are safe is
    /// put on record when that was set right, or has lasted a minute. At most once a minute.
    ClockBehind(Micros),
    /// A grant that an older run has left far ahead of the clock was shortened.
    Shortened {
        /// The worker.
        worker: WorkerNumber,
        /// Where its next owner starts.
        until: UnixMicros,
    },
    /// The grant has ended before it was renewed. No IDs can be made until it is.
    Expired(Grant),
    /// The worker was given back.
    GivenBack {
        /// The worker.
        worker: WorkerNumber,
        /// Where its next owner starts.
        until: UnixMicros,
    },
    /// The server stops, and the worker could not be given back in time.
    NotGivenBack(WorkerNumber),
    /// The registry has not answered for so long. At most once a minute.
    NotAnswering(Micros),
    /// The registry answers again, after so long.
    Answering(Micros),
    /// There is no worker to lease. At most once a minute.
    NoWorker(NoWorker),
    /// The namespace is for another layout. At most once a minute.
    OtherLayout(OtherLayout),
    /// The worker that was leased is none of the layout's. At most once a minute.
    NoSuchWorker(WorkerNumber),
}
