//! Claims positions for this session. The hot path is one compare-and-swap on the shared line, and a reading of the
//! clock, or only of the processor's counter, which tells that the clock's tick is not over yet. It needs
//! the session to be *admitted*. Everything out of the ordinary happens on the slow path.
//!
//! A session is admitted when the library is preloaded, the server is not in recovery, a worker is set, and the
//! extension is created in its database for the server's layout. A change of the settings, or of what the database has
//! on record, withdraws the admission: the next claim then checks all of this again.

pub mod explain;
pub mod keeper;
mod patience;
pub mod segments;

use self::patience::Patience;
use crate::errors::Error;
use crate::errors::generator::GeneratorError;
use crate::postgres::time::{clock, counter};
use crate::registry_process::lease;
use crate::server::{believed, worker};
use crate::shared::waits::{self, Wait};
use crate::shared::{self, admission};
use crate::{reservation, settings};
use pgrx::pg_sys;
use snowflake_core::counter::Rate;
use snowflake_core::{Claim, Field, Layout, OpenRange, Policy, Reach, Refusal, Tick, Ticks, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;

/// Claims the next positions: at least one, at most `want` (at least 1). Waits where the settings say so.
///
/// # Errors
/// Where no ID can be made, or not before `pg_snowflake.max_wait` is over. Nothing was claimed then.
pub fn claim(want: u64) -> Result<Claim, Error> {
    claim_at_once(want).map_or_else(|| claim_slowly(want), Ok)
}

/// Until the statement that runs now is over, its claims leave the last of what is open to others,
/// who want little: so they need not wait for a statement that wants more than there is.
pub fn give_way() {
    admission::give_way();
}

/// As [`claim`], for the ordinary case; `None` in all others. Neither waits nor panics.
#[inline(always)]
pub fn claim_at_once(want: u64) -> Option<Claim> {
    let counter = admission::read_counter();
    let open = admission::open_range(counter).or_else(|| read_clock(counter))?;
    shared::line().claim_in(&open, want)
}

/// The open range of the clock's tick; `None` while the session is not admitted, or where the clock was stepped. `counter`
/// was read just before.
#[inline(never)]
fn read_clock(counter: u64) -> Option<OpenRange> {
    if !admission::is_current() || !admission::confirmed().is_enough() {
        return None;
    }
    if let Some(open) = admission::open_range_at(clock::now(), counter) {
        return Some(open);
    }
    if !shared::exists() {
        return None;
    }
    let now = believed::now_if_steady()?;
    let layout = settings::layout();
    let tick = layout.tick_at(now);
    let open = admission::reach(tick)?.open_range(layout);
    admission::keep(&open, layout.start_of(tick)..layout.start_of(tick + Ticks(1)));
    admission::open_range_at(now, counter)
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
        // Where this session has raised `synchronous_commit` since it was admitted, it must first wait until the
        // standby has the reservation.
        if !admission::confirmed().is_enough() {
            admission::withdraw();
        }
        let now = read_now();
        let Some(reach) = admission::reach(layout.tick_at(now)) else {
            admit(layout).or_else(|error| patience.wait_out(error))?;
            continue;
        };
        match take(layout, &reach, want) {
            Ok(claim) => return Ok(claim),
            Err(refusal) => overcome(refusal, layout, &reach, now, &mut patience)?,
        }
    }
}

/// Claims from the line, and opens its next tick where the line is so far ahead of the clock that only a transition does.
fn take(layout: &Layout, reach: &Reach, want: u64) -> Result<Claim, Refusal> {
    let line = shared::line();
    line.claim(layout, reach, want).or_else(|refusal| match refusal {
        Refusal::Behind => {
            let mut transitions = shared::transitions();
            line.open(layout, reach, want, &mut transitions.pace, clock::monotonic_micros())
        }
        refusal => Err(refusal),
    })
}

/// Waits, or reserves more, so that the next attempt may succeed. `now` is the time of the refused one.
///
/// # Errors
/// Where no attempt will succeed, or not before the patience is at its end.
fn overcome(
    refusal: Refusal,
    layout: &Layout,
    reach: &Reach,
    now: UnixMicros,
    patience: &mut Patience,
) -> Result<(), Error> {
    match refusal {
        Refusal::Full { until } => {
            patience.check_that_clock_moves(now)?;
            let left = layout.start_of(until) - now;
            if reach.gives_way {
                // An eighth of the burst longer than necessary: fewer wake-ups, and no position is
                // lost by it.
                let extra = layout.length_of(reach.policy.max_burst) / 8;
                patience.sleep(left + extra, Wait::Ceiling);
            } else {
                // A statement that comes here again uses up what belongs to all.
                if waits::has_waited(Wait::Ceiling) {
                    give_way();
                }
                patience.sleep(left, Wait::Ceiling);
            }
        }
        Refusal::TooEarly { wait } => patience.sleep(wait, Wait::Clock),
        // Where the process was interrupted since it read the clock, others may have claimed meanwhile.
        Refusal::TooFarAhead { lead } if lead - (layout.tick_at(read_now()) - reach.now) <= reach.policy.max_lead => {}
        Refusal::TooFarAhead { lead } => {
            let behind = layout.length_of(lead);
            let left = patience.time_left(behind)?;
            patience.sleep(left.min(behind), Wait::Clock);
        }
        Refusal::Limit { needs } => raise_limit(layout, needs).or_else(|error| patience.wait_out(error))?,
        Refusal::Behind => {}
        Refusal::Exhausted => return Err(GeneratorError::Exhausted { now }.into()),
    }
    Ok(())
}

fn read_now() -> UnixMicros {
    if shared::exists() { believed::now() } else { clock::now() }
}

/// Raises the highest tick that this session may claim to this one or above it, by the lease and by the reservation, which is made up to
/// there.
fn raise_limit(layout: &Layout, needs: Tick) -> Result<(), Error> {
    let leased = lease::limit(layout, needs)?;
    let (reserved, confirmed) = reservation::reserve(layout, needs)?;
    // While the counter is used, claims do not look at the level of `synchronous_commit` either. Where standbys are named for the first
    // time, that is noticed within a millisecond.
    let counts = settings::uses_counter() && !confirmed.may_be_exceeded();
    admission::set_limit(reserved.min(leased), confirmed, if counts { counter::rate() } else { Rate::NONE });
    Ok(())
}

/// Admits this session: from now on it may claim, at the pace that the settings allow, once it has a reservation.
/// Writes nothing, so that a claim which is refused leaves no trace.
///
/// # Errors
/// Where the session may not claim now: not preloaded, in recovery, no worker, another layout, no register.
fn admit(layout: &Layout) -> Result<(), Error> {
    check_preloaded()?;
    check_primary("snowflake_next")?;
    let at = shared::admissions();
    if lease::is_used() {
        lease::settle(layout)?;
    } else {
        worker::settle(layout)?;
    }
    // Before the reservation is read: the keeper gives it back only when no session is counted.
    keeper::count_session();
    reservation::resume(layout)?;
    let policy = Policy {
        max_burst: layout.ticks_in(settings::max_burst()),
        max_lead: layout.ticks_in(settings::max_lead()),
        spread: settings::sequence_spread().min(layout.max(Field::Sequence) + 1),
    };
    admission::admit(&policy, at);
    Ok(())
}

/// # Errors
/// Where the library is not preloaded, and there is no shared memory.
pub fn check_preloaded() -> Result<(), Error> {
    if shared::exists() { Ok(()) } else { Err(GeneratorError::NotPreloaded.into()) }
}

/// # Errors
/// Where the server is a standby, or still recovering, and this function needs a primary.
pub fn check_primary(function: &'static str) -> Result<(), Error> {
    if is_in_recovery() { Err(GeneratorError::InRecovery(function).into()) } else { Ok(()) }
}

/// Whether the server is a standby, or still recovering.
pub fn is_in_recovery() -> bool {
    // SAFETY: reads PostgreSQL's own shared memory, which each process of the server has.
    unsafe { pg_sys::RecoveryInProgress() }
}
