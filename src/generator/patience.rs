//! How long a call waits before it gives up. Every wait is bounded, can be interrupted, and is counted for
//! `snowflake_status()`.

use crate::errors::Error;
use crate::errors::generator::GeneratorError;
use crate::errors::leases::LeaseError;
use crate::errors::reservation::ReservationError;
use crate::postgres::time::clock;
use crate::registry_process;
use crate::shared::waits::{self, Wait};
use crate::{settings, shared};
use snowflake_core::{Micros, MonotonicMicros, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;

/// Where the clock does not move for this long while a call waits for it, the call fails.
const STANDSTILL: Micros = Micros::from_secs(1);

/// How long one call has waited, and for what. Bounds every wait.
#[derive(Default)]
pub struct Patience {
    /// Since when the line was too far ahead of the clock.
    too_far_since: Option<MonotonicMicros>,
    /// The clock when it was last seen to move during a wait for it, and when that was.
    clock_moved: Option<(UnixMicros, MonotonicMicros)>,
    /// Since when there was no lease.
    no_lease_since: Option<MonotonicMicros>,
    /// Whether the call has slept at all.
    slept: bool,
}

impl Patience {
    /// How much longer the call may wait for a clock that is behind by so much.
    ///
    /// # Errors
    /// Once it has waited for `pg_snowflake.max_wait`.
    pub fn time_left(&mut self, behind: Micros) -> Result<Micros, Error> {
        let waited = waited_since(&mut self.too_far_since);
        match settings::max_wait() - waited {
            left if left > Micros(0) => Ok(left),
            _ => Err(GeneratorError::ClockBehind { behind, waited }.into()),
        }
    }

    /// Waits a while, where the error is one that passes.
    ///
    /// # Errors
    /// The error, where it does not pass, or the call has waited for `pg_snowflake.max_wait`.
    pub fn wait_out(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Reservation(ReservationError::CopyTooFar { ahead, wait }) => self.wait_for_copy(ahead, wait),
            Error::Lease(LeaseError::NoLease { .. }) => self.wait_for_lease(error),
            error => Err(error),
        }
    }

    /// Waits for the clock, where the copy of this database's reservation is ahead of it by so much, which must first
    /// become less by `wait`.
    fn wait_for_copy(&mut self, ahead: Micros, wait: Micros) -> Result<(), Error> {
        let left = self.time_left(ahead).map_err(|_| ReservationError::CopyTooFar { ahead, wait })?;
        self.sleep(left.min(wait), Wait::Clock);
        Ok(())
    }

    /// Waits for a lease, with this error otherwise.
    fn wait_for_lease(&mut self, error: Error) -> Result<(), Error> {
        let waited = waited_since(&mut self.no_lease_since);
        if waited >= settings::max_wait() {
            return Err(error);
        }
        registry_process::wake();
        // Mostly, the process is about to have one.
        self.sleep((waited / 4).clamp(Micros::from_millis(2), Micros::from_millis(50)), Wait::Lease);
        Ok(())
    }

    /// A call that waits for the clock's next tick may do so for as long as the clock moves; `now` is what it says.
    ///
    /// # Errors
    /// Once the clock has stood still for `pg_snowflake.max_wait` or [`STANDSTILL`], whichever is longer.
    pub fn check_that_clock_moves(&mut self, now: UnixMicros) -> Result<(), Error> {
        let monotonic = clock::monotonic_micros();
        match self.clock_moved {
            Some((seen, since)) if seen == now => {
                let waited = monotonic - since;
                if waited > settings::max_wait().max(STANDSTILL) {
                    return Err(GeneratorError::ClockStopped { waited }.into());
                }
            }
            _ => self.clock_moved = Some((now, monotonic)),
        }
        Ok(())
    }

    /// Sleeps, and counts it.
    pub fn sleep(&mut self, length: Micros, wait: Wait) {
        let counters = shared::counters();
        if !self.slept {
            self.slept = true;
            counters.waits.fetch_add(1, Relaxed);
        }
        counters.wait_time.fetch_add(waits::sleep(length, wait).0, Relaxed);
    }
}

/// How long a wait has lasted, which begins now where it has not begun.
pub fn waited_since(start: &mut Option<MonotonicMicros>) -> Micros {
    let now = clock::monotonic_micros();
    now - *start.get_or_insert(now)
}
