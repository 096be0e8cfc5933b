//! Registries of worker IDs: where servers agree on who may make the IDs of which worker, and of which time; and of segments, where
//! they agree on who may use which numbers of a tag.
//!
//! ```no_run
//! use snowflake_core::lease::WorkerNumber;
//! use snowflake_registry::{Namespace, Options, Registry, Url, open};
//!
//! let url: Url = "etcd://etcd1,etcd2,etcd3".parse()?;
//! let mut registry = open(&url, &Namespace::new("default")?, &Options::default())?;
//! let namespace = registry.namespace()?;
//! let stands = registry.record(WorkerNumber(7))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a registry must promise
//!
//! 1. **Compare-and-swap is linearizable**: of two swaps of one version, one succeeds, and a read that begins after that sees
//!    it.
//! 2. **It is durable before it answers**: what was answered as stored is there after a crash of the registry.
//! 3. **It is never rolled back**: no restored backup, no failover to a replica that lags.
//!
//! If one of them is broken, a worker can be granted twice for the same time, and IDs can repeat. [`Registry::warnings`]
//! names what of this can be seen not to hold.
//!
//! | registry | holds | where |
//! |---|---|---|
//! | [PostgreSQL](mod@postgres) | tables in `snowflake_registry` | with `fsync = on`, and failover to synchronous standbys only |
//! | [etcd](mod@etcd) | keys below `/pg_snowflake/<namespace>/` | always, but for `--unsafe-no-fsync` and a restored snapshot |
//! | [Redis](mod@redis) | a hash `pg_snowflake:<namespace>`, and two for segments | with three settings, and no failover |
//!
//! # How it waits
//!
//! No thread is started and no signal is handled, neither here nor in the crates used: this runs in a process of PostgreSQL.
//! The clients are asynchronous; each open registry has a runtime of tokio's that runs them on the caller's thread, and only
//! during a call. So no call may be made from within another runtime of tokio's.
//!
//! Each call has one deadline over all that it does, on all hosts ([`Options`]), and ends within 100 ms after [`Stop`] says
//! so. One thing is outside of that, unless the caller provides a [`Resolver`] that waits elsewhere: the system's resolver, which is asked
//! for each host name when a connection is made, and is bounded by `timeout` and `attempts` in resolv.conf. Addresses in place of
//! names avoid it.
//!
//! Hosts are tried in turn, beginning with the one that answered last; each gets an equal share of the time that is left. A
//! connection is kept, and made anew when it broke. A change is sent only on a connection that has answered something.
//!
//! Of an answer, no more is read than one can have, 1 MB for one record and 48 MB for all: a server that has gone mad does not fill
//! the memory.
//!
//! # When an answer is lost
//!
//! A read is sent again. A change is not: it ends with [`Error::Unanswered`], because it may have been made, or may be made
//! later. The caller then reads the record, and goes on from its version. A swap of a version that is read then makes the
//! lost one void, if it comes later. Only the answer to that swap confirms anything: what can be read may be visible and not durable,
//! as where PostgreSQL's wait for a synchronous standby was ended by hand, or Redis has not reached its replicas.
//!
//! A change counts as stored only where the answer repeats what was to be stored; an answer to something else, or one that was
//! damaged, is [`Error::Unanswered`], too.
//!
//! # What each registry costs
//!
//! Each is a feature, and all are in the default build. Its size in a library that is built as the extension is (release,
//! fat LTO, one codegen unit, stripped), on x86-64 with Rust 1.95; with 2 MB of memory for the process that calls:
//!
//! | features | library | crates | processor time of the build |
//! |---|---|---|---|
//! | `postgres` | 2.20 MB | 71 | 2 min 40 s |
//! | `etcd` | 2.67 MB | 68 | 4 min |
//! | `redis` | 2.09 MB | 65 | 2 min 40 s |
//! | all | 3.72 MB | 140 | 6 min 10 s |
//!
//! 1.43 MB of each are what they share: TLS and the runtime. The build of `etcd` runs protoc. etcd's JSON gateway by way of
//! hyper, with the messages written by hand, was measured, too: 0.56 MB and 41 crates less, without protoc. It has no client
//! crate, cannot take users from certificates, and can be switched off in etcd.
//!
//! # The modules
//!
//! Each uses only those below it.
//!
//! * [`Url`]: what people write
//! * [`KINDS`]: the table of kinds, a row for each registry
//! * [`postgres`](mod@postgres), [`etcd`](mod@etcd), [`redis`](mod@redis): the registries. Each folder has a client, which is a feature,
//!   and a [`RegistryKind`], which says what is special about its URLs and is always there
//! * [`memory`](mod@memory): one in memory, with faults, for tests
//! * [`listing`]: records as lines of a file; `json`, as objects; `codec`, which fields they have;
//!   `holders`, under which name etcd and Redis have what a server holds
//! * `net`: connections, TLS, hosts in turn
//! * [`RegistryKind`]; the parts of a URL; `address`, what a client needs of it
//! * [`Error`], [`Password`], [`Namespace`]; [`mentions`], to keep passwords out of logs; [`file`](mod@file), to read what people name

#![forbid(unsafe_code)]
// The default build, with all registries, tells what is not used.
#![cfg_attr(not(all(feature = "postgres", feature = "etcd", feature = "redis")), allow(dead_code, unused_imports))]

mod address;
mod codec;
mod error;
pub mod etcd;
pub mod file;
mod holders;
mod json;
mod kind;
mod kinds;
pub mod listing;
#[cfg(feature = "memory")]
pub mod memory;
mod mention;
mod namespace;
#[cfg(feature = "net")]
mod net;
mod password;
pub mod postgres;
pub mod redis;
mod resolver;
mod stop;
mod storable;
mod url;

pub use error::{Attempt, Attempts, Error};
pub use kind::{RegistryKind, TlsBy, TlsParameter};
pub use kinds::{KINDS, example_urls};
pub use mention::mentions;
pub use namespace::{Namespace, NamespaceError};
pub use password::{Password, PasswordError};
pub use resolver::{Lookup, Resolver};
pub use stop::Stop;
pub use url::Url;
pub use url::error::UrlError;

use snowflake_core::UnixMicros;
use snowflake_core::lease::{NamespaceRecord, Record, Stored, Version, WorkerNumber};
use snowflake_core::segment::{self, Holding, Tag};
use std::time::Duration;

/// A registry, and one namespace in it.
pub trait Registry: Send {
    /// The record of the namespace, if there is one.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn namespace(&mut self) -> Result<Option<NamespaceRecord>, Error>;

    /// Stores the record of the namespace in place of this one; where none is given, if there is none yet. Returns what
    /// stands then.
    ///
    /// # Errors
    /// Any [`Error`].
    fn swap_namespace(
        &mut self,
        expected: Option<&NamespaceRecord>,
        record: &NamespaceRecord,
    ) -> Result<Option<NamespaceRecord>, Error>;

    /// All records of the namespace, by worker.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn records(&mut self) -> Result<Vec<(WorkerNumber, Stored)>, Error>;

    /// The record of a worker, if there is one.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn record(&mut self, worker: WorkerNumber) -> Result<Option<Stored>, Error>;

    /// Stores a record in place of this version; where no version is given, if there is no record yet. Only where the
    /// namespace's record is this one at the same moment; where none is given, whatever it is.
    ///
    /// # Errors
    /// Any [`Error`]. Only with [`Error::Unanswered`] may the record have been stored, or be stored later.
    fn swap_within(
        &mut self,
        namespace: Option<&NamespaceRecord>,
        worker: WorkerNumber,
        expected: Option<Version>,
        record: &Record,
    ) -> Result<Swap, Error>;

    /// [`Registry::swap_within`], whatever the namespace's record is.
    ///
    /// # Errors
    /// As there.
    fn compare_and_swap(
        &mut self,
        worker: WorkerNumber,
        expected: Option<Version>,
        record: &Record,
    ) -> Result<Swap, Error> {
        self.swap_within(None, worker, expected, record)
    }

    /// The records of all tags of the namespace.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn segments(&mut self) -> Result<Vec<(Tag, segment::StoredTag)>, Error>;

    /// The record of a tag, if there is one.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn segment(&mut self, tag: &Tag) -> Result<Option<segment::StoredTag>, Error>;

    /// Stores the record of a tag as [`Registry::swap_within`] stores that of a worker; and with it, in the same request, what a
    /// server holds then, under the number of its worker.
    ///
    /// # Errors
    /// As there.
    fn swap_segment_held(
        &mut self,
        namespace: &NamespaceRecord,
        write: &segment::TagWrite,
        holding: Option<&(WorkerNumber, Holding)>,
    ) -> Result<Swap<segment::StoredTag>, Error>;

    /// [`Registry::swap_segment_held`], where nobody holds more than before.
    ///
    /// # Errors
    /// As there.
    fn swap_segment(
        &mut self,
        namespace: &NamespaceRecord,
        write: &segment::TagWrite,
    ) -> Result<Swap<segment::StoredTag>, Error> {
        self.swap_segment_held(namespace, write, None)
    }

    /// What the server of each worker held of each tag when it was granted a range of it last.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn holdings(&mut self) -> Result<Vec<(Tag, WorkerNumber, Holding)>, Error>;

    /// From now on, calls take at most so long; with `None`, as long as the [`Options`] say, and never longer than that.
    fn limit(&mut self, longest: Option<Duration>);

    /// Names the settings that keep this registry from promising what it must, as far as they can be seen, and says what is to be
    /// done about them: sentences for an operator. Empty where nothing was found.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn warnings(&mut self) -> Result<Vec<String>, Error>;

    /// Names what [`Self::warnings`] could not look at, as the registry does not show it to this user: sentences for an operator. Empty where
    /// everything was seen.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn unseen(&mut self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Names the roles that may do more in this registry than it needs, as far as that can be seen, and says what is to be done about it:
    /// sentences for an operator. Empty where nothing was found.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn exposures(&mut self) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// The registry's time, where it has one.
    ///
    /// # Errors
    /// Any [`Error`] but [`Error::Unanswered`].
    fn time(&mut self) -> Result<Option<UnixMicros>, Error> {
        Ok(None)
    }

    /// How the last connection that was made is protected. `None` before there was one.
    fn protection(&self) -> Option<Protection> {
        None
    }
}

/// How a connection is protected: the people who can read the requests, and answer in place of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nobody: it does not leave the machine.
    Local,
    /// Nobody: it is encrypted, and the server's certificate was verified.
    Verified,
    /// People who can redirect the connection: it is encrypted, and the certificate was not verified.
    Unverified,
    /// Everybody on the way: it is not encrypted.
    Nothing,
}

/// The outcome of a compare-and-swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap<S = Stored> {
    /// The record is stored, durably, and this is its version.
    Stored(Version),
    /// It is not: this stands there, or nothing.
    Conflict(Option<S>),
    /// It is not: the namespace's record is another one than was expected. This stands there, or nothing.
    OtherNamespace(Option<NamespaceRecord>),
}

/// How calls wait.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How long a call may take, over all that it does: 3 s where there is none, never more than [`Options::LONGEST`].
    pub deadline: Option<Duration>,
    /// When calls end early.
    pub stop: Stop,
    /// Who waits for the system's resolver.
    pub resolver: Resolver,
}

impl Options {
    /// The longest deadline.
    pub const LONGEST: Duration = Duration::from_secs(10);

    fn deadline(&self) -> Duration {
        self.deadline.unwrap_or(Duration::from_secs(3)).min(Self::LONGEST)
    }
}

/// Opens a registry. Reads the files that the URL names, and connects with nobody yet: the first call does.
///
/// # Errors
/// [`Error::Invalid`], where a file of certificates cannot be used, or the build has no such registry.
pub fn open(url: &Url, namespace: &Namespace, options: &Options) -> Result<Box<dyn Registry>, Error> {
    match url.kind.open {
        Some(open) => open(&url.address, namespace, options),
        None => Err(Error::Invalid(format!("this build has no client of {}", url.kind))),
    }
}
