//! Claims positions for this session. The hot path is one compare-and-swap on the shared line, and a look at the clock, or
//! only at the processor's counter, which says that the clock's tick is still the same. It needs the session to be *admitted*,
//! and everything out of the ordinary happens on the slow path behind it.
//!
//! A session is admitted when the library is preloaded, the server is not in recovery, a worker is set, and the
//! reservation of its database reaches far enough and is as safe on standbys as the session's `synchronous_commit` asks. A
//! change of the settings, of that level, or of the reservation's relation withdraws the admission, so that the next claim
//! looks at them anew.

use crate::errors::Error;
use crate::{admission, clock, reservation, settings, shared, tsc, wait};
use pgrx::pg_sys;
use snowflake_core::{Bounds, Claim, Field, Layout, Refusal, Tick, UnixMicros, Window, WorkerError};
use std::sync::atomic::Ordering::Relaxed;

/// A clock that stands still for this long while a call waits for it counts as behind, in microseconds.
const STANDSTILL: i64 = 1_000_000;

/// Claims the next positions: at least one, at most `want` (at least 1). Waits where the settings say so.
///
/// # Errors
/// Where no ID can be made, or not before `pg_snowflake.max_wait` is over. Nothing was claimed then.
pub fn claim(want: u64) -> Result<Claim, Error> {
    claim_at_once(want).map_or_else(|| claim_slowly(want), Ok)
}

/// As [`claim`], for the ordinary case; `None` in all others. Neither waits nor panics.
#[inline(always)]
pub fn claim_at_once(want: u64) -> Option<Claim> {
    let count = admission::count();
    let window = admission::window(count).or_else(|| read_clock(count))?;
    shared::line().claim_in(&window, want)
}

/// The window of the clock's tick; `None` while the session is not admitted. `count` was read just now.
#[inline(never)]
fn read_clock(count: u64) -> Option<Window> {
    withdraw_unless_confirmed();
    let now = clock::now();
    admission::window_at(now, count).or_else(|| {
        let layout = settings::layout();
        let tick = layout.tick_at(now);
        let window = admission::bounds(tick)?.window(layout);
        admission::keep(&window, layout.start_of(tick)..layout.start_of(Tick(tick.0 + 1)));
        admission::window_at(now, count)
    })
}

/// Where this session has raised `synchronous_commit` since it was admitted, it must first wait for the standby to have the
/// reservation.
#[inline]
fn withdraw_unless_confirmed() {
    if !admission::confirmed().is_enough() {
        admission::withdraw();
    }
}

#[cold]
#[inline(never)]
fn claim_slowly(want: u64) -> Result<Claim, Error> {
    claim_or_wait(want).inspect_err(|_| {
        if shared::exists() {
            shared::counters().errors.fetch_add(1, Relaxed);
        }
    })
}

fn claim_or_wait(want: u64) -> Result<Claim, Error> {
    let (layout, mut patience) = (settings::layout(), Patience::default());
    loop {
        withdraw_unless_confirmed();
        let now = clock::now();
        let Some(bounds) = admission::bounds(layout.tick_at(now)) else {
            admit(layout, layout.tick_at(now))?;
            continue;
        };
        let line = shared::line();
        let refusal = match line.claim(layout, &bounds, want) {
            Ok(claim) => return Ok(claim),
            Err(Refusal::Behind) => {
                let mut transitions = shared::transitions();
                transitions.watch_clock();
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
                patience.sleep(layout.start_of(until).0 - now.0 + extra);
            }
            Refusal::TooEarly { wait } => patience.sleep(wait),
            Refusal::TooFarAhead { lead } => {
                shared::transitions().watch_clock();
                let behind = lead.saturating_mul(layout.tick_micros());
                let left = patience.with_lead(behind)?;
                patience.sleep(left.min(behind));
            }
            Refusal::Limit { needs } => admit(layout, needs)?,
            Refusal::Behind => {}
            Refusal::Exhausted => return Err(Error::Exhausted),
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
    /// Whether the call has slept at all.
    slept: bool,
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

    /// Sleeps, and counts it.
    fn sleep(&mut self, micros: i64) {
        let counters = shared::counters();
        if !self.slept {
            self.slept = true;
            counters.waits.fetch_add(1, Relaxed);
        }
        let start = clock::monotonic_micros();
        wait::sleep(micros);
        counters.wait_time.fetch_add(clock::monotonic_micros() - start, Relaxed);
    }
}

/// Admits this session for claims up to a tick and some way beyond, and makes the server use the worker that the
/// newest configuration names.
///
/// # Errors
/// Where the session may not claim now: not preloaded, in recovery, no worker, no reservation, the layout's time over.
fn admit(layout: &Layout, needs: Tick) -> Result<(), Error> {
    if !shared::exists() {
        return Err(Error::NotPreloaded);
    }
    // SAFETY: reads shared memory, which exists.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return Err(Error::InRecovery);
    }
    // Before anything is reserved: a clock that is wrong by decades must leave no trace.
    if needs > layout.last_tick() {
        return Err(Error::Exhausted);
    }
    use_newest_worker(layout)?;
    let (limit, confirmed) = reservation::reserve(layout, needs)?;
    let bounds = Bounds {
        now: Tick(0),
        max_burst: layout.ticks_in(settings::max_burst()),
        max_lead: layout.ticks_in(settings::max_lead()),
        limit,
        spread: settings::sequence_spread().min(layout.max(Field::Sequence) + 1),
    };
    // The counter saves the look at the clock, and with it the look at the level. Where standbys are named for the first time,
    // that is noticed within a millisecond.
    let counts = settings::uses_tsc() && !confirmed.may_be_exceeded();
    admission::grant(&bounds, confirmed, if counts { tsc::per_micro() } else { 0 });
    Ok(())
}

/// Sessions read a changed configuration one after the other. The newest reading decides for all of them.
///
/// # Errors
/// Where that names no worker.
fn use_newest_worker(layout: &Layout) -> Result<(), Error> {
    let configured = settings::worker();
    let mut transitions = shared::transitions();
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
    match (transitions.worker, configured.bits) {
        (Some(_), _) => Ok(()),
        (None, Err(missing)) => Err(Error::NoWorker(missing)),
        (None, Ok(_)) => Err(Error::NoWorker(WorkerError::Missing(Field::Worker))),
    }
}
