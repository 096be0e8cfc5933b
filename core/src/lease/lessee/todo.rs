//! What the lessee is about to do: one of these at a time. The lessee alone uses them; what its caller is told follows from
//! them, in [`next`](super::next).

use super::super::change::Write;
use super::super::namespace::NamespaceRecord;
use super::super::record::{Stored, WorkerNumber};

#[derive(Clone, Debug)]
pub(super) enum Todo {
    /// Look at the namespace's record.
    Namespace,
    /// Find out what time it is, as the registry may have forgotten what it had stored; the namespace's record was found like this.
    Survey(Option<NamespaceRecord>),
    SetNamespace(Option<NamespaceRecord>, NamespaceRecord),
    Remember(NamespaceRecord),
    /// Read all records, and choose.
    Search,
    /// Lease or renew.
    Lease(Ask),
    /// Shorten a grant that was left far ahead of the clock.
    Shorten(Write),
    /// Find out from which version to ask again, after an answer was lost.
    Check(Ask),
    Install(WorkerNumber, Stored),
    /// Wait until there is something to do.
    Rest,
    Close,
    /// Give back what is in the list.
    Give,
    Done,
}

/// A request for a worker.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub worker: WorkerNumber,
    /// The record to start from.
    pub found: Option<Stored>,
    /// Whether the record is gone since.
    pub is_gone: bool,
    /// The request, once it is made.
    pub sent: Option<Write>,
}

impl Ask {
    pub const fn new(worker: WorkerNumber, found: Option<Stored>) -> Self {
        Self { worker, found, is_gone: false, sent: None }
    }
}
