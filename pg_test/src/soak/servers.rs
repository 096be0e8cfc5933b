//! Clocks, ends of sessions and servers, and the standby.

use super::{LONGEST_LEAD, Soak, Which, YEAR, true_time};
use crate::Stop;
use std::sync::atomic::Ordering;

impl Soak<'_> {
    // The clocks.

    pub(super) fn set_clock(&self, index: usize, offset: f64) {
        self.offsets[index].set(offset);
        self.servers[index].step_clock(&format!("{offset:+.3}s"));
    }

    /// Most often a time at which IDs were made before: there the same ones could be made again.
    pub(super) fn any_offset(&mut self) -> f64 {
        let elapsed = self.began.elapsed().as_secs_f64();
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
        self.set_clock(index, before + YEAR);
        if self.random.u32(..3) == 0 {
            self.kill_session(which);
        }
        self.pause(500, 3000);
        self.set_clock(index, before);
        self.check_lead(which);
    }

    /// An ID of the server has no time that is too far ahead.
    pub(super) fn check_lead(&mut self, which: Which) {
        let time: f64 = self.server(which).retry(|client| {
            let query = "SELECT extract(epoch FROM snowflake_timestamp(snowflake_next()))::float8";
            Ok(client.query_one(query, &[])?.get(0))
        });
        assert!(time - true_time() < LONGEST_LEAD, "{which:?} is ahead by {} s", time - true_time());
    }

    // Ends of sessions and servers.

    pub(super) fn kill_session(&mut self, which: Which) {
        self.server(which).crash_any_session();
        self.is_up(which);
    }

    pub(super) fn is_up(&self, which: Which) {
        self.server(which).retry(|client| client.query_one("SELECT 1", &[]));
    }

    pub(super) fn restart(&mut self, which: Which, how: Stop) {
        let offset = self.any_offset();
        self.restart_at(which, how, offset);
    }

    pub(super) fn restart_at(&self, which: Which, how: Stop, offset: f64) {
        self.server(which).stop(how);
        self.set_clock(self.index(which), offset);
        self.server(which).start();
    }

    // The standby.

    pub(super) fn set_synchronous(&mut self, synchronous: bool) {
        let names = if synchronous { "*" } else { "" };
        self.server(Which::Primary).reload(&[("synchronous_standby_names", names)]);
        self.synchronous = synchronous;
        if synchronous {
            // Calls that began before may not know of it, and the standby may not have what was reserved before.
            drop(self.gate.pause());
            self.standby().catch_up_with(self.server(Which::Primary));
        }
    }

    pub(super) fn standby_is_stopped(&mut self) {
        let standby = self.standby();
        standby.stop(Stop::Fast);
        self.pause(200, 2000);
        if self.synchronous {
            self.set_synchronous(false);
            drop(self.gate.pause());
        }
        self.standby().start();
        self.standby().catch_up_with(self.server(Which::Primary));
    }

    /// The primary is killed, its synchronous standby takes over; then the old primary becomes its standby.
    pub(super) fn fail_over(&mut self) {
        self.set_synchronous(true);
        self.pause(0, 1500);
        let old = self.index(Which::Primary);
        self.servers[old].stop(Stop::Kill);
        self.any_clock(1 - old);
        self.servers[1 - old].promote();
        self.primary.store(1 - old, Ordering::Relaxed);
        self.synchronous = false;
        let (primary, standby) = (self.server(Which::Primary), self.standby());
        self.is_up(Which::Primary);
        standby.rewind_to(primary);
        standby.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
        standby.start();
        standby.catch_up_with(primary);
    }
}
