//! Claims positions for this session. The hot path is a clock read and one compare-and-swap on the shared line; it
//! needs the session to be *admitted*, and everything out of the ordinary happens on the slow path behind it.
//!
//! A session is admitted when the library is preloaded, the server is not in recovery, and a worker is set. A change
//! of the settings withdraws the admission, so that the next claim looks at them anew.

use crate::errors::Error;
use crate::{admission, clock, settings, shared, wait};
use pgrx::pg_sys;
use snowflake_core::{Bounds, Claim, Field, Refusal, Tick, UnixMicros, WorkerError};

/// A clock that stands still for this long while a call waits for it counts as behind, in microseconds.
const STANDSTILL: i64 = 1_000_000;

/// Claims the next positions: at least one, at most `want` (at least 1). Waits where the settings say so.
///
/// # Errors
/// Where no ID can be made, or not before `pg_snowflake.max_wait` is over. Nothing was claimed then.
#[inline]
pub fn claim(want: u64) -> Result<Claim, Error> {
    let layout = settings::layout();
    if let Some(bounds) = admission::bounds(layout.tick_at(clock::now()))
        && let Ok(claim) = shared::line().claim(layout, &bounds, want)
    {
        return Ok(claim);
    }
    claim_slowly(want)
}

#[cold]
#[inline(never)]
fn claim_slowly(want: u64) -> Result<Claim, Error> {
    let (layout, mut patience) = (settings::layout(), Patience::default());
    loop {
        let now = clock::now();
        let Some(bounds) = admission::bounds(layout.tick_at(now)) else {
            admit()?;
            continue;
        };
        let line = shared::line();
        let refusal = match line.claim(layout, &bounds, want) {
            Ok(claim) => return Ok(claim),
            Err(Refusal::Behind) => {
                let mut transitions = shared::transitions();
                match line.open(layout, &bounds, want, &mut transitions.pace, clock::monotonic_micros()) {
                    Ok(claim) => return Ok(claim),
                    Err(refusal) => refusal,
                }
            }
            Err(refusal) => refusal,
        };
        match refusal {
            Refusal::Full { until } => {
                patience.with_pace(now)?;
                // Longer than need be, by a part of the burst: fewer wake-ups, and no position is lost by it.
                let extra = bounds.max_burst * layout.tick_micros() / 8;
                wait::sleep(layout.start_of(until).0 - now.0 + extra);
            }
            Refusal::TooEarly { wait } => wait::sleep(wait),
            Refusal::TooFarAhead { lead } => {
                let behind = lead.saturating_mul(layout.tick_micros());
                let left = patience.with_lead(behind)?;
                wait::sleep(left.min(behind));
            }
            Refusal::Behind => {}
            Refusal::Limit { .. } | Refusal::Exhausted => return Err(Error::Exhausted),
        }
    }
}

/// How long one call has waited, and for what. Bounds every wait.
#[derive(Default)]
struct Patience {
    /// Since when (monotonic, in microseconds) the line was too far ahead of the clock.
    too_far_since: Option<i64>,
    /// The clock when it was last seen to move during a wait for it, and when that was (monotonic, in microseconds).
    clock_moved: Option<(UnixMicros, i64)>,
}

impl Patience {
    /// How long a call may go on to wait, in microseconds, for a clock that is behind by as many.
    ///
    /// # Errors
    /// Once it has waited for `pg_snowflake.max_wait`.
    fn with_lead(&mut self, behind: i64) -> Result<i64, Error> {
        let monotonic = clock::monotonic_micros();
        let waited = monotonic - *self.too_far_since.get_or_insert(monotonic);
        match settings::max_wait() - waited {
            left if left > 0 => Ok(left),
            _ => Err(Error::ClockBehind { behind, waited }),
        }
    }

    /// A call that waits for the clock's next tick may do so for as long as the clock moves.
    ///
    /// # Errors
    /// Once the clock has stood still for `pg_snowflake.max_wait` or [`STANDSTILL`], whichever is longer.
    fn with_pace(&mut self, now: UnixMicros) -> Result<(), Error> {
        let monotonic = clock::monotonic_micros();
        match self.clock_moved {
            Some((seen, since)) if seen == now => {
                let waited = monotonic - since;
                if waited > settings::max_wait().max(STANDSTILL) {
                    return Err(Error::ClockStopped { waited });
                }
            }
            _ => self.clock_moved = Some((now, monotonic)),
        }
        Ok(())
    }
}

/// Admits this session, and makes the server use the worker that the newest configuration names.
///
/// # Errors
/// Where the session may not claim now: not preloaded, in recovery, no worker.
fn admit() -> Result<(), Error> {
    if !shared::exists() {
        return Err(Error::NotPreloaded);
    }
    // SAFETY: reads shared memory, which exists.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return Err(Error::InRecovery);
    }
    let layout = settings::layout();
    let configured = settings::worker();
    let in_use = {
        let mut transitions = shared::transitions();
        // Sessions read a changed configuration one after the other. The newest reading decides for all of them.
        if configured.read_at > transitions.worker_read_at {
            transitions.worker_read_at = configured.read_at;
            let worker = configured.bits.ok();
            if transitions.worker != worker {
                transitions.worker = worker;
                if let Some(worker) = worker {
                    shared::line().switch_worker(layout, worker);
                }
            }
        }
        transitions.worker
    };
    if in_use.is_none() {
        return Err(Error::NoWorker(
            configured.bits.err().unwrap_or(WorkerError::Missing(Field::Worker)),
        ));
    }
    admission::grant(&Bounds {
        now: Tick(0),
        max_burst: layout.ticks_in(settings::max_burst()),
        max_lead: layout.ticks_in(settings::max_lead()),
        limit: layout.last_tick(),
        spread: settings::sequence_spread().min(layout.max(Field::Sequence) + 1),
    });
    Ok(())
}
