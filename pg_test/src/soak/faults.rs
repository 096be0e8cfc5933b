//! What can happen, and the loop that causes it.

use super::{Soak, Which};
use crate::Stop;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What can happen. "Any clock" is a time within the soak, or near it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The postmaster and all its processes get SIGKILL; any clock when it starts again.
    PostmasterKilled,
    /// A session gets SIGKILL, and shared memory is made anew.
    SessionKilled,
    /// Stopped without a checkpoint; any clock as above.
    StoppedImmediately,
    /// Stopped with one; any clock as above.
    StoppedFast,
    /// Any clock while the server runs.
    ClockStepped,
    /// A year ahead for a moment while the server runs; sometimes a session is killed meanwhile.
    ClockLeapt,
    /// The primary is killed, the synchronous standby promoted with any clock, the old primary rewound to follow.
    FailedOver,
    /// The standby is down for a moment; sessions wait for it if it is synchronous.
    StandbyStopped,
    /// The standby becomes synchronous, or ceases to be.
    SynchronousChanged,
    /// A checkpoint is made.
    Checkpoint,
    /// The worker ID is changed by a reload.
    WorkerChanged,
    /// The two servers exchange their worker IDs.
    WorkersSwapped,
    /// A database is dumped under load, and restored as another one of this server or of the other.
    DumpRestored,
    /// The extension is dropped and created in a database; sometimes the server crashes or is restarted in between.
    ExtensionRecreated,
    /// A database is created with another one as its template.
    DatabaseCopied,
    /// The replication origin that holds the reservation is dropped.
    OriginDropped,
    /// Other parameters are changed by a reload.
    ParametersChanged,
    /// No session makes a call for a while.
    LoadPaused,
    /// The registry is killed, and started again sooner or later than leases end.
    RegistryKilled,
    /// The registry does not answer for a while.
    RegistryFrozen,
    /// All processes of a server stand still, perhaps for longer than its lease.
    ServerFrozen,
    /// A copy of the running primary becomes a primary, too, and both make IDs.
    ServerCopied,
}

const FAULTS: [Fault; 22] = [
    Fault::PostmasterKilled,
    Fault::SessionKilled,
    Fault::StoppedImmediately,
    Fault::StoppedFast,
    Fault::ClockStepped,
    Fault::ClockLeapt,
    Fault::FailedOver,
    Fault::StandbyStopped,
    Fault::SynchronousChanged,
    Fault::Checkpoint,
    Fault::WorkerChanged,
    Fault::WorkersSwapped,
    Fault::DumpRestored,
    Fault::ExtensionRecreated,
    Fault::DatabaseCopied,
    Fault::OriginDropped,
    Fault::ParametersChanged,
    Fault::LoadPaused,
    Fault::RegistryKilled,
    Fault::RegistryFrozen,
    Fault::ServerFrozen,
    Fault::ServerCopied,
];

impl Fault {
    fn is_possible(self, with_leases: bool) -> bool {
        match self {
            Self::WorkerChanged | Self::WorkersSwapped => !with_leases,
            Self::RegistryKilled | Self::RegistryFrozen | Self::ServerFrozen | Self::ServerCopied => with_leases,
            _ => true,
        }
    }
}

impl Soak<'_> {
    pub(super) fn cause(&mut self, fault: Fault) {
        let which = self.any_server();
        match fault {
            Fault::PostmasterKilled => self.restart(which, Stop::Kill),
            Fault::StoppedImmediately => self.restart(which, Stop::Immediate),
            Fault::StoppedFast => self.restart(which, Stop::Fast),
            Fault::ClockStepped => self.any_clock(self.index(which)),
            Fault::ClockLeapt => self.leap(which),
            Fault::SessionKilled => self.kill_session(which),
            Fault::FailedOver => self.fail_over(),
            Fault::StandbyStopped => self.standby_is_stopped(),
            Fault::SynchronousChanged => self.set_synchronous(!self.synchronous),
            Fault::Checkpoint => self.server(which).client().batch_execute("CHECKPOINT").unwrap(),
            Fault::WorkerChanged => {
                let worker = self.any_own_worker(which);
                self.set_worker(which, worker);
            }
            Fault::WorkersSwapped => self.swap_workers(),
            Fault::DumpRestored => self.restore_dump(),
            Fault::ExtensionRecreated => self.recreate_extension(),
            Fault::DatabaseCopied => self.copy_database(),
            Fault::OriginDropped => self.drop_origin(),
            Fault::ParametersChanged => self.change_parameters(which),
            Fault::LoadPaused => {
                let _paused = self.gate.pause();
                self.pause(1000, 3000);
            }
            Fault::RegistryKilled => self.kill_registry(),
            Fault::RegistryFrozen => self.freeze_registry(),
            Fault::ServerFrozen => self.freeze_server(which),
            Fault::ServerCopied => self.copy_server(),
        }
        self.use_extras();
        // The load goes on before the next fault.
        self.pause(100, 800);
        self.retry_id(Which::Primary);
        self.retry_id(Which::Other);
    }

    /// Causes faults until this time, and until there were so many: in each round every fault once, in any order.
    pub(super) fn go_on_until(&mut self, end: Instant, least: usize) -> BTreeMap<Fault, usize> {
        let mut survived = BTreeMap::new();
        loop {
            let mut faults = FAULTS;
            self.random.shuffle(&mut faults);
            let with_leases = self.registry.is_some();
            for fault in faults.into_iter().filter(|fault| fault.is_possible(with_leases)) {
                // A session that has failed says why when the load ends.
                let enough = Instant::now() >= end && self.history.len() >= least;
                if enough || self.gate.has_failed() {
                    return survived;
                }
                let start = Instant::now();
                self.history.push((self.began.elapsed(), fault));
                self.cause(fault);
                assert!(start.elapsed() < Duration::from_secs(600), "{fault:?} took {:?}", start.elapsed());
                *survived.entry(fault).or_default() += 1;
            }
        }
    }
}
