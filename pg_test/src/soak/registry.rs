//! What happens to the registry itself, and so to the servers of all groups at once.

use super::Progress;
use crate::history::{Event, Trouble, Writer};
use crate::millis;
use crate::registries::Server;
use fastrand::Rng;
use std::sync::atomic::Ordering::Relaxed;

/// How the registry goes away, for less or more than two thirds of the window.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Killed, and started again later.
    RegistryKilled,
    /// Stopped in good order, and started again later.
    RegistryStopped,
    /// Its processes stand still.
    RegistryFrozen,
}

/// Causes faults until the soak is over. Then the registry is there.
pub(super) fn disturb(server: &mut Server, progress: &Progress, history: &Writer) {
    let mut random = Rng::with_seed(progress.wanted.seed);
    while !progress.is_over(history) {
        // Long enough that servers lease, and renew.
        progress.sleep(history, millis(random.u64(2000..6000)));
        let fault = random.choice([Fault::RegistryKilled, Fault::RegistryStopped, Fault::RegistryFrozen]).unwrap();
        let begin = history.now();
        match fault {
            Fault::RegistryKilled => server.kill(),
            Fault::RegistryStopped => server.stop(),
            Fault::RegistryFrozen => server.pause(),
        }
        progress.sleep(history, millis(random.u64(100..7000)));
        match fault {
            Fault::RegistryFrozen => server.resume(),
            Fault::RegistryKilled | Fault::RegistryStopped => server.start(),
        }
        history.trouble(Trouble::Away, None, begin);
        history.event(&Event::Fault(format!("{fault:?}"), begin, history.now()));
        progress.faults.fetch_add(1, Relaxed);
    }
}
