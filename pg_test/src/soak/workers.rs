//! Parameters that a reload changes, and worker IDs that change hands.

use super::{SWAPPED, Soak, Which, true_time};
use crate::Stop;
use crate::check::wait_for;
use crate::history::{Event, Trouble};

impl Soak<'_> {
    /// On the standby, too: it keeps them when it is promoted.
    pub(super) fn configure(&self, which: Which, parameters: &[(&str, &str)]) {
        self.server(which).reload(parameters);
        if which == Which::Primary {
            self.standby().reload(parameters);
        }
    }

    pub(super) fn set_worker(&self, which: Which, worker: i64) {
        let nodes = if which == Which::Primary { &self.nodes[..2] } else { &self.nodes[2..] };
        for node in nodes {
            u64::try_from(worker).into_iter().for_each(|worker| self.history.event(&Event::Worker(*node, worker)));
        }
        self.configure(which, &[("pg_snowflake.worker_id", &worker.to_string())]);
    }

    /// A worker ID that no other server ever has.
    pub(super) fn any_own_worker(&mut self, which: Which) -> i64 {
        let own = self.random.i64(2..500) * 2;
        if which == Which::Primary { own } else { own + 1 }
    }

    pub(super) fn change_parameters(&mut self, which: Which) {
        let reserve = *self.random.choice(&["200ms", "1s", "1s", "3s"]).unwrap();
        let burst = *self.random.choice(&["10ms", "100ms", "300ms"]).unwrap();
        let spread = *self.random.choice(&["1", "8", "64"]).unwrap();
        let source = *self.random.choice(&["auto", "system"]).unwrap();
        self.configure(
            which,
            &[
                ("pg_snowflake.reserve_ahead", reserve),
                ("pg_snowflake.max_burst", burst),
                ("pg_snowflake.sequence_spread", spread),
                ("pg_snowflake.clock_source", source),
            ],
        );
    }

    pub(super) fn swap_workers(&mut self) {
        let (owner, [first, second]) = (self.owner_of_first, SWAPPED.map(i64::from));
        let rest = if owner == Which::Primary { Which::Other } else { Which::Primary };
        // Without a worker for a while, or with one of its own.
        let spare = self.any_own_worker(owner);
        let leaves_for = if self.random.bool() { -1 } else { spare };
        let begin = self.history.now();
        self.hand_over(first, owner, rest, leaves_for);
        self.set_worker(owner, spare);
        if leaves_for < 0 {
            self.history.trouble(Trouble::NoWorker, self.line(owner), begin);
        }
        self.hand_over(second, rest, owner, first);
        self.owner_of_first = rest;
    }

    /// One server ceases to use a worker ID, and another begins.
    pub(super) fn hand_over(&mut self, worker: i64, from: Which, to: Which, leaves_for: i64) {
        self.set_worker(from, worker);
        self.take_id(from);
        self.sleep(50, 300);
        self.set_worker(from, leaves_for);
        let mut until = None;
        wait_for("the status says until when the worker was used", || {
            let query = "SELECT (extract(epoch FROM previous_until) * 1000000)::bigint FROM snowflake_status() \
                         WHERE previous_worker_id = $1 AND worker_id IS DISTINCT FROM $1";
            let worker = i32::try_from(worker).unwrap();
            let row = self.server(from).retry(|client| client.query_opt(query, &[&worker]));
            until = row.map(|row| row.get::<_, i64>(0));
            until.is_some()
        });
        // The new owner's IDs count, not its clock: that may have leapt without being believed, and may be set back
        // before the first ID with the new worker.
        let until = until.unwrap();
        if until - self.time_of_next(to) > 5_000_000 {
            self.restart_at(to, Stop::Fast, until as f64 * 1e-6 - true_time() + 1.0);
        }
        wait_for("the new owner is past the time of the old", || self.time_of_next(to) >= until);
        self.set_worker(to, worker);
    }
}
