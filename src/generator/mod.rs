//! Claims positions for this session. The hot path is one compare-and-swap on the shared line, and a look at the clock, or
//! only at the processor's counter, which says that the clock's tick is still the same. It needs the session to be *admitted*,
//! and everything out of the ordinary happens on the slow path behind it.
//!
//! A session is admitted when the library is preloaded, the server is not in recovery, a worker is set, and the
//! reservation of its database reaches far enough. A change of the settings, or of the reservation's relation, withdraws
//! the admission, so that the next claim looks at them anew.

use crate::errors::Error;
use crate::time::{clock, tsc, wait};
use crate::{admission, believed, keeper, reservation, settings, shared, worker};
use pgrx::pg_sys;
use snowflake_core::{Claim, Field, Layout, Micros, MonotonicMicros, Policy, Refusal, Ticks, UnixMicros, Window};
use std::sync::atomic::Ordering::Relaxed;

/// A clock that stands still for this long while a call waits for it counts as behind.
const STANDSTILL: Micros = Micros::from_secs(1);

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
    let counter = admission::read_counter();
    let window = admission::window(counter).or_else(|| read_clock(counter))?;
    shared::line().claim_in(&window, want)
}

/// The window of the clock's tick; `None` while the session is not admitted, or the clock is not steady. `counter` was read
/// just now.
#[inline(never)]
fn read_clock(counter: u64) -> Option<Window> {
    if !admission::is_current() || !admission::confirmed().is_enough() {
        return None;
    }
    if let Some(window) = admission::window_at(clock::now(), counter) {
        return Some(window);
    }
    if !shared::exists() {
        return None;
    }
    let now = believed::now_if_steady()?;
    let layout = settings::layout();
    let tick = layout.tick_at(now);
    let window = admission::bounds(tick)?.window(layout);
    admission::keep(&window, layout.start_of(tick)..layout.start_of(tick + Ticks(1)));
    admission::window_at(now, counter)
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
        // Where this session has raised `synchronous_commit` since it was admitted, it must first wait for the standby to have the
        // reservation.
        if !admission::confirmed().is_enough() {
            admission::withdraw();
        }
        let now = if shared::exists() { believed::now() } else { clock::now() };
        let Some(bounds) = admission::bounds(layout.tick_at(now)) else {
            match admit(layout) {
                Err(Error::CopyTooFar { ahead }) => patience.with_copy(ahead)?,
                admitted => admitted?,
            }
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
                let extra = layout.length_of(bounds.policy.max_burst) / 8;
                patience.sleep(layout.start_of(until) - now + extra);
            }
            Refusal::TooEarly { wait } => patience.sleep(wait),
            Refusal::TooFarAhead { lead } => {
                let behind = layout.length_of(lead);
                let left = patience.with_lead(behind)?;
                patience.sleep(left.min(behind));
            }
            Refusal::Limit { needs } => match reservation::reserve(layout, needs) {
                Ok((limit, confirmed)) => {
                    // The counter saves the look at the clock, and with it the look at the level. Where standbys are named for the
                    // first time, that is noticed within a millisecond.
                    let counts = settings::uses_tsc() && !confirmed.may_be_exceeded();
                    admission::set_limit(limit, confirmed, if counts { tsc::per_micro() } else { 0 });
                }
                Err(Error::CopyTooFar { ahead }) => patience.with_copy(ahead)?,
                Err(error) => return Err(error),
            },
            Refusal::Behind => {}
            Refusal::Exhausted => return Err(Error::Exhausted { now }),
        }
    }
}

/// How long one call has waited, and for what. Bounds every wait.
#[derive(Default)]
struct Patience {
    /// Since when the line was too far ahead of the clock.
    too_far_since: Option<MonotonicMicros>,
    /// The clock when it was last seen to move during a wait for it, and when that was.
    clock_moved: Option<(UnixMicros, MonotonicMicros)>,
    /// Whether the call has slept at all.
    slept: bool,
}

impl Patience {
    /// How long a call may go on to wait for a clock that is behind by so much.
    ///
    /// # Errors
    /// Once it has waited for `pg_snowflake.max_wait`.
    fn with_lead(&mut self, behind: Micros) -> Result<Micros, Error> {
        let monotonic = clock::monotonic_micros();
        let waited = monotonic - *self.too_far_since.get_or_insert(monotonic);
        match settings::max_wait() - waited {
            left if left > Micros(0) => Ok(left),
            _ => Err(Error::ClockBehind { behind, waited }),
        }
    }

    /// Waits for a clock that is behind, by so much, what came into this database from elsewhere.
    ///
    /// # Errors
    /// As [`Self::with_lead`].
    fn with_copy(&mut self, ahead: Micros) -> Result<(), Error> {
        let left = self.with_lead(ahead).map_err(|_| Error::CopyTooFar { ahead })?;
        self.sleep(left.min(ahead));
        Ok(())
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
    fn sleep(&mut self, length: Micros) {
        let counters = shared::counters();
        if !self.slept {
            self.slept = true;
            counters.waits.fetch_add(1, Relaxed);
        }
        let start = clock::monotonic_micros();
        wait::sleep(length);
        counters.wait_time.fetch_add((clock::monotonic_micros() - start).0, Relaxed);
    }
}

/// Admits this session: what may be claimed when, and that a claim needs a reservation. Writes nothing, so that a claim that
/// is refused leaves no trace.
///
/// # Errors
/// Where the session may not claim now: not preloaded, in recovery, no worker, another layout, no register.
fn admit(layout: &Layout) -> Result<(), Error> {
    if !shared::exists() {
        return Err(Error::NotPreloaded);
    }
    // SAFETY: reads shared memory, which exists.
    if unsafe { pg_sys::RecoveryInProgress() } {
        return Err(Error::InRecovery);
    }
    let at = shared::admissions();
    worker::settle(layout)?;
    // Before anything is read that the keeper may change when it counts nobody.
    keeper::count_session();
    reservation::resume(layout)?;
    let policy = Policy {
        max_burst: layout.ticks_in(settings::max_burst()),
        max_lead: layout.ticks_in(settings::max_lead()),
        spread: settings::sequence_spread().min(layout.max(Field::Sequence) + 1),
    };
    admission::grant(&policy, at);
    Ok(())
}
