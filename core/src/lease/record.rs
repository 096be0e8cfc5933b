//! The records of a registry.

use crate::time::UnixMicros;
use std::fmt;

/// The number of a worker within a whole layout: the worker ID, and above it the datacenter ID where the layout has one. The key of
/// a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerNumber(pub u64);

/// The secret of one run of one server, drawn by chance when the postmaster starts. It is kept in the postmaster's private memory
/// only, so that no copy of a data directory has it. Not 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub u128);

/// Not the token itself: who knows it can pass for its owner.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:08x}…)", self.0 >> 96)
    }
}

/// The record of a worker: who may make its IDs, and of which time. The grant is half-open: `granted_from <= t < granted_until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The token of the server that may make IDs; `None` where the worker was given back.
    pub owner: Option<Token>,
    /// The first instant that the owner may make IDs of.
    pub granted_from: UnixMicros,
    /// The first instant that the owner may not make IDs of. The next owner starts here at the earliest.
    pub granted_until: UnixMicros,
    /// That server, as people know it; where the worker was given back, the last one.
    pub holder: Holder,
}

/// A server, as people know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The name of the machine.
    pub host: String,
    /// PostgreSQL's data directory.
    pub data_directory: String,
    /// The port that the server listens at.
    pub port: u16,
    /// PostgreSQL's `cluster_name`, which may be empty.
    pub cluster_name: String,
    /// PostgreSQL's system identifier, which copies of a data directory share.
    pub system_identifier: u64,
    /// Which process of which run of the machine it is, as its own machine writes it; empty where that is not known. Only
    /// compared: what copies of a machine share is not enough to tell whether a server is gone.
    pub process: String,
}

/// The version of a record: each change gives it another one, and no version comes twice, also after a failover of the registry. Its own
/// number, such as etcd's `mod_revision`, or one by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

/// A record as it was read, and which version of it that was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The version.
    pub version: Version,
    /// The record.
    pub record: Record,
}
