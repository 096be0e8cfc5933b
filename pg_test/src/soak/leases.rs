//! What only leases survive: no registry, a server that stands still, and two copies of one.

use super::{Soak, Which, load};
use crate::history::{Event, Place, Trouble};
use crate::programs::{continue_process, stop_process};
use crate::proxy::Mode;
use crate::{Cluster, Installation, Stop};

impl Soak<'_> {
    /// For less or more than two thirds of the window.
    fn sleep_for_a_lease(&mut self) {
        self.sleep(100, 9000);
    }

    /// What stands between a server and the registry does something else for a while.
    fn through(&mut self, which: Which, mode: Mode, trouble: Trouble) {
        let (proxies, begin) = (self.proxies.expect("worker IDs are leased"), self.history.now());
        proxies[which as usize].set(mode);
        self.sleep_for_a_lease();
        proxies[which as usize].set(Mode::Pass);
        self.history.trouble(trouble, self.line(which), begin);
    }

    pub(super) fn cut_off(&mut self, which: Which) {
        self.through(which, Mode::Hold, Trouble::Away);
    }

    pub(super) fn lose_answers(&mut self, which: Which) {
        self.through(which, Mode::LoseAnswers, Trouble::Away);
    }

    pub(super) fn slow_registry(&mut self, which: Which) {
        let delay = crate::millis(self.random.u64(20..300));
        self.through(which, Mode::Slow(delay), Trouble::Slow);
    }

    pub(super) fn freeze_server(&mut self, which: Which) {
        let begin = self.history.now();
        self.server(which).pause();
        self.sleep_for_a_lease();
        self.server(which).resume();
        self.history.trouble(Trouble::Frozen, self.line(which), begin);
    }

    /// The process that renews the lease stands still, and sessions go on.
    pub(super) fn freeze_lease_process(&mut self, which: Which) {
        let query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_snowflake lease'";
        let pid: i32 = self.server(which).retry(|client| Ok(client.query_one(query, &[])?.get(0)));
        let begin = self.history.now();
        stop_process(pid.unsigned_abs());
        self.sleep_for_a_lease();
        continue_process(pid.unsigned_abs());
        self.history.trouble(Trouble::LeaseProcess, self.line(which), begin);
    }

    /// The copy makes IDs, with any clock, and is gone without a word.
    pub(super) fn copy_server(&mut self) {
        let copy = Cluster::empty(Installation::under_test(), true);
        copy.copy_from(self.server(Which::Primary), &[]);
        copy.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
        let offset = self.any_offset();
        copy.step_clock(&format!("{offset:+.3}s"));
        let (node, line, begin) = (self.history.node(&copy.data()), self.history.line(), self.history.now());
        copy.start();
        self.history.trouble(Trouble::Down, Some(line), begin);
        self.has_started(Some(line), offset);
        let place = std::sync::Mutex::new(Place { index: 0, node, line });
        let site = load::Site { servers: std::slice::from_ref(&copy), place: &place, ..*self.site(Which::Primary) };
        for _ in 0..3 {
            load::take(&site, &mut self.calls, 1000);
            self.sleep(0, 1000);
        }
        self.history.event(&Event::Ends(line, self.history.now()));
        copy.stop(if self.random.bool() { Stop::Kill } else { Stop::Fast });
        self.history.log(node, &copy.log());
    }
}
