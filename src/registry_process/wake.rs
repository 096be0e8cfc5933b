//! Waking the process up, wherever it sleeps.

use crate::shared::counters;
use pgrx::pg_sys;
use std::sync::atomic::Ordering::Relaxed;

/// This process is the one to be woken up.
pub fn enter() {
    // SAFETY: both point into the array of all processes, which lives as long as the server; their difference is this one's place.
    let place = unsafe { pg_sys::MyProc.offset_from((*pg_sys::ProcGlobal).allProcs) };
    // 0 stands for none.
    counters().lessee.store(place as i64 + 1, Relaxed);
}

/// It ends.
pub fn leave() {
    counters().lessee.store(0, Relaxed);
}

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
