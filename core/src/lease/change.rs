//! What is written into a worker's record: to lease it, to renew the lease, to give it back. Each change is one
//! compare-and-swap on the version that was read.

use super::published::{Grant, Seen};
use super::record::{Holder, Record, Stored, Token, Version, WorkerNumber};
use super::terms::Terms;
use crate::layout::Layout;
use crate::time::UnixMicros;

/// The server that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The secret of this run of the server.
    pub token: Token,
    /// The server, as people know it.
    pub holder: Holder,
}

/// A compare-and-swap of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Whose record.
    pub worker: WorkerNumber,
    /// The version that must be found; `None`: there must be no record.
    pub expected: Option<Version>,
    /// The record to be stored.
    pub record: Record,
}

impl Write {
    /// The grant that this is, once it is stored.
    pub const fn grant(&self) -> Grant {
        Grant::of(self.worker, &self.record)
    }
}

impl Identity {
    /// Whether the record is this run's own.
    pub fn owns(&self, record: &Record) -> bool {
        record.owner == Some(self.token)
    }
}

/// Leases a worker whose record was found like this. Where the record has this run's own token, this renews the lease,
/// and the grant keeps its start; otherwise the grant starts where the one found ends. A new lease, and one that is over,
/// does not begin before what the namespace's record says ([`NamespaceRecord::leases_from`]).
///
/// [`NamespaceRecord::leases_from`]: super::NamespaceRecord::leases_from
pub fn lease(
    layout: &Layout,
    me: &Identity,
    (worker, found): (WorkerNumber, Option<&Stored>),
    leases_from: Option<UnixMicros>,
    terms: &Terms,
    now: UnixMicros,
    seen: &Seen,
) -> Write {
    let begins = leases_from.unwrap_or(layout.epoch());
    let (from, at_least) = match found {
        None => (begins.max(layout.epoch()), layout.epoch()),
        Some(Stored { record, .. }) if me.owns(record) => match is_current(layout, record, now, seen) {
            true => (record.granted_from, record.granted_until),
            false => (record.granted_from.max(begins), record.granted_until),
        },
        Some(Stored { record, .. }) => (record.granted_until.max(begins), record.granted_until),
    };
    // A clock past the layout's end says no more than the end does.
    let start = now.min(layout.end()).max(seen.line).max(from);
    // Never before a end of this run: sessions may have copies of it, and claim up to it with this worker.
    let until = start.saturating_add(terms.window).max(at_least).max(seen.end.unwrap_or(from));
    Write {
        worker,
        expected: found.map(|stored| stored.version),
        record: Record { owner: Some(me.token), granted_from: from, granted_until: until, holder: me.holder.clone() },
    }
}

/// Whether a grant is not over yet, neither by the clock nor by the line.
pub fn is_current(layout: &Layout, record: &Record, now: UnixMicros, seen: &Seen) -> bool {
    record.granted_until > now.min(layout.end()).max(seen.line)
}

/// Shortens a grant of an older run of this server that lies far ahead of the clock: somebody has made sure that no ID of
/// this server at or after an instant is kept. The caller knows that the process which leased it is gone, or that it was
/// given back. `None` where the grant is no longer than that.
pub fn shorten(worker: WorkerNumber, found: &Stored, rewound_to: UnixMicros) -> Option<Write> {
    let record = &found.record;
    // Below its start, the record's range was another server's.
    let until = rewound_to.max(record.granted_from.min(record.granted_until));
    let record = Record { owner: None, granted_from: until, granted_until: until, holder: record.holder.clone() };
    (until < found.record.granted_until).then_some(Write { worker, expected: Some(found.version), record })
}

/// Gives a worker back: whoever has it next starts right after what was used of it. `None` where that cannot be: the
/// record is not this run's own, or sessions may still claim with the worker.
pub fn give_back(me: &Identity, worker: WorkerNumber, found: &Stored, seen: &Seen) -> Option<Write> {
    let record = &found.record;
    if !me.owns(record) || seen.worker == Some(worker) && !seen.is_closed {
        return None;
    }
    // Below its start, the record's range was another server's.
    let until = seen.used.map_or(record.granted_until, |used| used.max(record.granted_from));
    let record = Record { owner: None, granted_from: until, granted_until: until, holder: record.holder.clone() };
    Some(Write { worker, expected: Some(found.version), record })
}
