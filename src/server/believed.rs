//! The time to make IDs by: that of the system's clock, but a leap forward is believed only when it lasts. What to
//! believe is decided in [`snowflake_core::clock`]; here the state is read from shared memory and stored there, and
//! changes are logged.

use crate::postgres::time::clock;
use crate::postgres::wording::duration;
use crate::settings;
use crate::shared::{self, Transitions};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::clock::{BelievedClock, ClockStep, Look};
use snowflake_core::{Micros, MonotonicMicros, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;

/// A reading of both clocks counts only where it took less than this.
const ONE_MOMENT: Micros = Micros(500);

/// The clocks to be compared; `monotonic` was read just before the clock.
#[inline]
fn look_at(clock: UnixMicros, monotonic: MonotonicMicros) -> Look {
    let layout = settings::layout();
    let line = layout.start_of(layout.tick_of(shared::line().last()));
    Look { clock, monotonic, line, max_jump: settings::max_jump() }
}

/// The time; `None` where the clock was stepped or has leapt since it was last compared: then call [`now`]. Takes no
/// lock.
#[inline]
pub fn now_if_steady() -> Option<UnixMicros> {
    let monotonic = clock::boot_micros();
    shared::believed_clock().peek(&look_at(clock::now(), monotonic))
}

/// The time. Stores a step or a leap, so that all sessions know of it, and logs it. Takes the lock for that. The caller [may](shared::may_wait).
pub fn now() -> UnixMicros {
    shared::may_wait();
    if let Some(now) = now_if_steady() {
        return now;
    }
    let (now, change) = look(&mut shared::transitions());
    note(change);
    now
}

/// The time, for a caller that holds the lock. Stores and logs nothing: the next call of [`now`] does.
pub fn now_in(_lock: &mut Transitions) -> UnixMicros {
    let mut believed = shared::believed_clock();
    believed.look(&at_one_moment()).0
}

fn look(lock: &mut Transitions) -> (UnixMicros, ClockStep) {
    let mut believed = shared::believed_clock();
    let found = believed.look(&at_one_moment());
    shared::set_believed_clock(&believed, lock);
    found
}

/// Reads both clocks, and again where the process was interrupted in between, ten times at most.
fn at_one_moment() -> Look {
    let mut tries = 0;
    loop {
        let monotonic = clock::boot_micros();
        let now = clock::now();
        tries += 1;
        if clock::boot_micros() - monotonic < ONE_MOMENT || tries == 10 {
            return look_at(now, monotonic);
        }
    }
}

fn note(change: ClockStep) {
    let counters = shared::counters();
    match change {
        ClockStep::None => {}
        ClockStep::Back(step) => {
            counters.clock_steps.fetch_add(1, Relaxed);
            counters.largest_clock_step.fetch_max(step.0, Relaxed);
        }
        ClockStep::Leapt(step) => {
            counters.clock_leaps.fetch_add(1, Relaxed);
            let message = format!("the clock has leapt forward by {}", duration(step));
            let lasting = duration(BelievedClock::LASTING);
            ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, "")
                .set_detail(format!(
                    "That is more than pg_snowflake.max_jump ({}). Snowflake IDs go on with the time before the leap, until \
                     the clock is set back, or for {lasting}.",
                    duration(settings::max_jump())
                ))
                .set_hint(format!(
                    "If the clock is wrong, set it right within {lasting}. If it is right now, nothing needs to be done."
                ))
                .report(PgLogLevel::WARNING);
        }
        ClockStep::Lasted(step) => {
            let message =
                format!("the clock has been {} ahead for {}", duration(step), duration(BelievedClock::LASTING));
            ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "")
                .set_detail("Snowflake IDs have its time from now on.")
                .report(PgLogLevel::LOG);
        }
    }
}
