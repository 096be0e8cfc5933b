//! Sleeping: short, interruptible by cancel, timeout and shutdown, and never with a lock held.

use pgrx::prelude::*;
use snowflake_core::Micros;
use std::time::Duration;

/// No single sleep is longer, so that a clock which is set right meanwhile is noticed within this time.
const LONGEST: Micros = Micros::from_millis(100);

/// Sleeps for this long, or until the process is woken up. For a background process, whose flags its caller looks at.
pub fn for_signal(length: Micros) {
    wait_for_latch(length.0.max(0).div_euclid(1000) + 1, pg_sys::PG_WAIT_EXTENSION);
    check_for_interrupts!();
}

/// Sleeps for this long, at most [`LONGEST`], or until the session is woken up, for example by a signal. Does not
/// return where the statement is cancelled or the session terminated.
pub fn sleep(length: Micros) {
    sleep_as(length, pg_sys::PG_WAIT_EXTENSION);
}

/// As [`sleep`]; `pg_stat_activity` shows this wait event meanwhile.
pub fn sleep_as(length: Micros, event: u32) {
    let micros = length.clamp(Micros(0), LONGEST).0;
    if micros < 1000 {
        // A latch waits for whole milliseconds. This is too short to need interrupting.
        show_wait(event);
        std::thread::sleep(Duration::from_micros(micros.unsigned_abs()));
        show_wait(0);
    } else {
        wait_for_latch(micros.div_euclid(1000) + i64::from(micros % 1000 > 0), event);
    }
    check_for_interrupts!();
}

/// Waits until the latch of this process is set, at most for so many milliseconds, and resets it. Ends the process where the postmaster has
/// died.
fn wait_for_latch(millis: i64, event: u32) {
    let wake_on = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    // SAFETY: MyLatch is this process's own latch, set up before it runs anything of an extension's that sleeps.
    unsafe {
        pg_sys::WaitLatch(pg_sys::MyLatch, wake_on as i32, millis as _, event);
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
}

/// Shows a wait event in `pg_stat_activity`; 0 for none.
fn show_wait(event: u32) {
    // SAFETY: points to what this process shows of its waits, as PostgreSQL's `pgstat_report_wait_start` writes it.
    unsafe { pg_sys::my_wait_event_info.write_volatile(event) };
}
