//! What can happen, and the loop that causes it.

use super::{Soak, Which};
use crate::Stop;
use crate::history::Event;
use std::sync::atomic::Ordering::Relaxed;
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
    /// The standby is promoted, and the primary goes on for a while.
    PromotedBeside,
    /// What a server and the registry send each other arrives late.
    RegistryCutOff,
    /// The registry's answers to a server are lost.
    AnswersLost,
    /// The registry answers a server late.
    RegistrySlow,
    /// The process that renews a lease stands still.
    LeaseProcessFrozen,
    /// All processes of a server stand still, perhaps for longer than its lease.
    ServerFrozen,
    /// A copy of the running primary becomes a primary, too, and both make IDs.
    ServerCopied,
}

const FAULTS: [Fault; 25] = [
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
    Fault::PromotedBeside,
    Fault::RegistryCutOff,
    Fault::AnswersLost,
    Fault::RegistrySlow,
    Fault::LeaseProcessFrozen,
    Fault::ServerFrozen,
    Fault::ServerCopied,
];

impl Fault {
    fn is_possible(self, with_leases: bool) -> bool {
        match self {
            Self::WorkerChanged | Self::WorkersSwapped => !with_leases,
            Self::PromotedBeside
            | Self::RegistryCutOff
            | Self::AnswersLost
            | Self::RegistrySlow
            | Self::LeaseProcessFrozen
            | Self::ServerFrozen
            | Self::ServerCopied => with_leases,
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
                let _paused = self.pause();
                self.sleep(1000, 3000);
            }
            Fault::PromotedBeside => self.split(),
            Fault::RegistryCutOff => self.cut_off(which),
            Fault::AnswersLost => self.lose_answers(which),
            Fault::RegistrySlow => self.slow_registry(which),
            Fault::LeaseProcessFrozen => self.freeze_lease_process(which),
            Fault::ServerFrozen => self.freeze_server(which),
            Fault::ServerCopied => self.copy_server(),
        }
        self.use_extras();
        // The load goes on before the next fault.
        self.sleep(100, 800);
        self.take_id(Which::Primary);
        self.take_id(Which::Other);
    }

    /// Causes faults until the soak is over: in each round every fault once, in any order.
    pub(super) fn go_on(&mut self) {
        loop {
            let mut faults = FAULTS;
            self.random.shuffle(&mut faults);
            let with_leases = self.proxies.is_some();
            for fault in faults.into_iter().filter(|fault| fault.is_possible(with_leases)) {
                // A session that has failed says why when the load ends.
                if self.progress.is_over(self.history.ids()) {
                    return;
                }
                let (start, begin) = (Instant::now(), self.history.now());
                self.done.push((self.progress.began.elapsed(), fault));
                self.cause(fault);
                assert!(start.elapsed() < Duration::from_secs(600), "{fault:?} took {:?}", start.elapsed());
                self.history.event(&Event::Fault(format!("{fault:?}"), begin, self.history.now()));
                self.progress.faults.fetch_add(1, Relaxed);
            }
        }
    }
}
