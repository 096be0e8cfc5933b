//! What only leases survive: no registry, a server that stands still, and two copies of one.

use super::{Soak, Which};
use crate::query::batch;
use crate::registries::Server;
use crate::{Cluster, Installation, Stop};

impl Soak<'_> {
    fn registry(&mut self) -> &mut Server {
        self.registry.as_mut().expect("worker IDs are leased")
    }

    pub(super) fn kill_registry(&mut self) {
        self.registry().kill();
        self.pause(100, 9000);
        self.registry().start();
    }

    pub(super) fn freeze_registry(&mut self) {
        self.registry().pause();
        self.pause(100, 9000);
        self.registry().resume();
    }

    pub(super) fn freeze_server(&mut self, which: Which) {
        self.server(which).pause();
        self.pause(100, 9000);
        self.server(which).resume();
    }

    /// The copy makes IDs, with any clock, and is gone without a word.
    pub(super) fn copy_server(&mut self) {
        let copy = Cluster::empty(Installation::under_test(), true);
        copy.copy_from(self.server(Which::Primary), &[]);
        copy.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
        let offset = self.any_offset();
        copy.step_clock(&format!("{offset:+.3}s"));
        copy.start();
        let mut client = copy.client_once_up("app0");
        for _ in 0..3 {
            self.given.extend(batch(&mut client, 1000));
            self.pause(0, 1000);
        }
        copy.stop(if self.random.bool() { Stop::Kill } else { Stop::Fast });
    }
}
