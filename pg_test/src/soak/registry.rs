//! What happens to the registry itself, and so to the servers of all groups at once.

use super::Progress;
use crate::history::{Event, Trouble, Writer};
use crate::millis;
use crate::registries::{Kind, Server};
use fastrand::Rng;
use std::sync::atomic::Ordering::Relaxed;

/// How the registry goes away, for less or more than two thirds of the window.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Killed, and started again later.
    Killed,
    /// Stopped in good order, and started again later.
    Stopped,
    /// Its processes stand still.
    Frozen,
}

/// Causes faults until the soak is over. Then the registry is there.
pub(super) fn disturb(server: &mut Server, progress: &Progress, history: &Writer) {
    let mut random = Rng::with_seed(progress.wanted.seed);
    let faults: &[Fault] = match server.kind() {
        // A Redis that was restarted counts as one that may have forgotten: servers that start would wait for six hours.
        Kind::Redis => &[Fault::Frozen],
        Kind::Postgres | Kind::Etcd => &[Fault::Killed, Fault::Stopped, Fault::Frozen],
    };
    while !progress.is_over(history.ids()) {
        // Long enough that servers lease, and renew.
        progress.sleep(history, millis(random.u64(4000..12_000)));
        let fault = random.choice(faults).unwrap();
        let begin = history.now();
        match fault {
            Fault::Killed => server.kill(),
            Fault::Stopped => server.stop(),
            Fault::Frozen => server.pause(),
        }
        progress.sleep(history, millis(random.u64(100..7000)));
        match fault {
            Fault::Frozen => server.resume(),
            Fault::Killed | Fault::Stopped => server.start(),
        }
        history.trouble(Trouble::Away, None, begin);
        history.event(&Event::Fault(format!("Registry{fault:?}"), begin, history.now()));
        progress.faults.fetch_add(1, Relaxed);
    }
}
