//! Clocks, ends of sessions and servers, and the standby.

use super::{LONGEST_LEAD, Soak, Which, YEAR, true_time};
use crate::history::{Event, Place, Trouble};
use crate::{Stop, check};

/// What `pg_snowflake.max_jump` is by default, less what other servers may be behind by, in seconds.
const MAX_JUMP: f64 = 8.0;
/// For how long a clock that is further ahead is not believed, in nanoseconds.
const UNBELIEVED: u64 = 60_000_000_000;

impl Soak<'_> {
    // The clocks.

    pub(super) fn set_clock(&self, index: usize, offset: f64) {
        let begin = self.history.now();
        self.offsets[index].set(offset);
        self.servers[index].step_clock(&format!("{offset:+.3}s"));
        if let Some(which) = Which::ALL.into_iter().find(|which| self.index(*which) == index) {
            self.history.trouble(Trouble::Clock, self.line(which), begin);
        }
    }

    /// Most often a time at which IDs were made before: there the same ones could be made again.
    pub(super) fn any_offset(&mut self) -> f64 {
        let elapsed = self.progress.began.elapsed().as_secs_f64();
        match self.random.u32(..16) {
            0..9 => -self.random.f64() * (elapsed + 5.0),
            9..13 => 0.0,
            13..15 => self.random.f64() * 8.0,
            _ => self.random.f64() * 120.0 - 60.0,
        }
    }

    pub(super) fn any_clock(&mut self, index: usize) {
        let offset = self.any_offset();
        self.set_clock(index, offset);
    }

    pub(super) fn leap(&mut self, which: Which) {
        let index = self.index(which);
        let before = self.offsets[index].get();
        let begin = self.history.now();
        self.set_clock(index, before + YEAR);
        // A server that starts has nothing to compare its clock with, but the registry: it waits until the clock is set right.
        let crashes = self.random.u32(..3) == 0;
        if crashes {
            self.kill_session(which);
        }
        self.sleep(500, 3000);
        self.set_clock(index, before);
        if crashes {
            self.history.trouble(Trouble::Down, self.line(which), begin);
        }
        self.check_lead(which);
    }

    /// An ID of the server has no time that is too far ahead.
    pub(super) fn check_lead(&mut self, which: Which) {
        let time = self.time_of_next(which) as f64 * 1e-6;
        assert!(time - true_time() < LONGEST_LEAD, "{which:?} is ahead by {} s", time - true_time());
    }

    // Ends of sessions and servers.

    pub(super) fn kill_session(&mut self, which: Which) {
        let begin = self.history.now();
        self.server(which).crash_any_session();
        self.is_up(which);
        self.history.trouble(Trouble::Crash, self.line(which), begin);
        self.standby_is_back(which, begin);
    }

    /// Waits until the synchronous standby streams again: IDs wait for it. PostgreSQL takes up to 15 s where its startup process has asked
    /// for a receiver just when the one before ended.
    fn standby_is_back(&self, which: Which, begin: u64) {
        if which == Which::Primary && self.synchronous {
            let streams = "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')";
            let server = self.server(which);
            check::wait_for("the standby streams again", || {
                server.retry(|client| Ok(client.query_one(streams, &[])?.get(0)))
            });
            self.history.trouble(Trouble::Standby, self.line(which), begin);
        }
    }

    pub(super) fn is_up(&self, which: Which) {
        self.server(which).retry(|client| client.query_one("SELECT 1", &[]));
    }

    pub(super) fn restart(&mut self, which: Which, how: Stop) {
        let offset = self.any_offset();
        self.restart_at(which, how, offset);
    }

    pub(super) fn restart_at(&self, which: Which, how: Stop, offset: f64) {
        let begin = self.history.now();
        self.server(which).stop(how);
        self.set_clock(self.index(which), offset);
        self.server(which).start();
        self.history.trouble(Trouble::Down, self.line(which), begin);
        self.has_started(self.line(which), offset);
        self.standby_is_back(which, begin);
    }

    /// A server was started, or promoted, with this clock. Where it leases, it does not believe one that is far ahead.
    pub(super) fn has_started(&self, line: Option<u32>, offset: f64) {
        if self.proxies.is_some() && offset > MAX_JUMP {
            let now = self.history.now();
            self.history.event(&Event::Trouble(Trouble::Ahead, line, now, now + UNBELIEVED));
        }
    }

    // The standby.

    pub(super) fn set_synchronous(&mut self, synchronous: bool) {
        let names = if synchronous { "*" } else { "" };
        self.server(Which::Primary).reload(&[("synchronous_standby_names", names)]);
        self.synchronous = synchronous;
        if synchronous {
            // Calls that began before may not know of it, and the standby may not have what was reserved before.
            drop(self.pause());
            self.standby().catch_up_with(self.server(Which::Primary));
        }
    }

    pub(super) fn standby_is_stopped(&mut self) {
        let (standby, begin) = (self.standby(), self.history.now());
        standby.stop(Stop::Fast);
        self.sleep(200, 2000);
        if self.synchronous {
            self.set_synchronous(false);
            self.history.trouble(Trouble::Standby, self.line(Which::Primary), begin);
            drop(self.pause());
        }
        self.standby().start();
        self.standby().catch_up_with(self.server(Which::Primary));
    }

    /// The primary is killed, its synchronous standby takes over; then the old primary becomes its standby.
    pub(super) fn fail_over(&mut self) {
        self.set_synchronous(true);
        self.sleep(0, 1500);
        let (old, begin) = (self.place(Which::Primary), self.history.now());
        self.servers[old.index].stop(Stop::Kill);
        let new = 1 - old.index;
        self.any_clock(new);
        self.servers[new].promote();
        self.go_over(Place { index: new, node: self.nodes[new], ..old });
        self.is_up(Which::Primary);
        self.history.trouble(Trouble::Down, Some(old.line), begin);
        self.has_started(Some(old.line), self.offsets[new].get());
        self.follow();
    }

    /// The standby is promoted, and the primary goes on for a while. Then the old primary becomes the standby.
    pub(super) fn split(&mut self) {
        self.set_synchronous(false);
        // Or there would be databases of which the standby does not know.
        self.standby().catch_up_with(self.server(Which::Primary));
        let old = self.place(Which::Primary);
        let new = 1 - old.index;
        self.any_clock(new);
        let (line, begin) = (self.history.line(), self.history.now());
        self.servers[new].promote();
        self.go_over(Place { index: new, node: self.nodes[new], line });
        self.is_up(Which::Primary);
        self.history.trouble(Trouble::Down, Some(line), begin);
        self.has_started(Some(line), self.offsets[new].get());
        self.sleep(0, 3000);
        self.history.event(&Event::Ends(old.line, self.history.now()));
        let begin = self.history.now();
        let how = *self.random.choice(&[Stop::Kill, Stop::Immediate, Stop::Fast]).unwrap();
        self.servers[old.index].stop(how);
        self.history.trouble(Trouble::Down, Some(old.line), begin);
        self.follow();
    }

    /// The load goes over to another server.
    fn go_over(&mut self, place: Place) {
        *self.site(Which::Primary).place.lock().unwrap() = place;
        self.synchronous = false;
    }

    /// The old primary, which was stopped, becomes the standby of the new one.
    fn follow(&self) {
        let (primary, standby) = (self.server(Which::Primary), self.standby());
        standby.rewind_to(primary);
        standby.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
        standby.start();
        standby.catch_up_with(primary);
    }
}
