//! Waking the process up.

use crate::shared::counters;
use pgrx::pg_sys;
use std::sync::atomic::Ordering::Relaxed;

/// Has the process look at once whether there is something to do.
pub fn wake() {
    let number = counters().lessee.load(Relaxed);
    if number > 0 {
        // SAFETY: the array of all processes lives as long as the server. Where the process has ended meanwhile, another one is
        // woken up, and sleeps again.
        unsafe {
            let process = (*pg_sys::ProcGlobal).allProcs.add(number as usize - 1);
            pg_sys::SetLatch(&raw mut (*process).procLatch);
        }
    }
}
