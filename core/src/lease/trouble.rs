//! What keeps a server from its lease.

use super::choice::NoWorker;
use super::namespace::OtherLayout;
use super::record::WorkerNumber;
use super::steps::Event;
use crate::time::{Micros, UnixMicros};

/// Why a server has no lease, or cannot renew the one that it has, or does not get another worker that it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The registry has not answered since the process began.
    NoAnswer,
    /// The last request failed; whoever has sent it knows why.
    Failing,
    /// So often in a row, another server stored a record between this one's read and its write.
    Outrun(u32),
    /// The namespace is for another layout.
    OtherLayout(OtherLayout),
    /// No lease is given before this instant, as the registry has forgotten what it had stored.
    NotBefore(UnixMicros),
    /// The clock is so far ahead of what the registry knows.
    ClockAhead(Micros),
    /// The clock is so far behind what the registry shows, which may have forgotten what it had stored.
    ClockBehind(Micros),
    /// There is no worker to lease.
    NoWorker(NoWorker),
    /// The worker that was leased is none of the layout's.
    NoSuchWorker(WorkerNumber),
}

impl Trouble {
    /// What people are told when it begins. `None`: that is said of requests.
    pub(super) fn event(&self) -> Option<Event> {
        Some(match self {
            Self::NoAnswer | Self::Failing | Self::Outrun(_) => return None,
            Self::OtherLayout(other) => Event::OtherLayout(other.clone()),
            Self::NotBefore(until) => Event::NotBefore(*until),
            Self::ClockAhead(by) => Event::ClockAhead(*by),
            Self::ClockBehind(by) => Event::ClockBehind(*by),
            Self::NoWorker(none) => Event::NoWorker(none.clone()),
            Self::NoSuchWorker(worker) => Event::NoSuchWorker(*worker),
        })
    }
}
