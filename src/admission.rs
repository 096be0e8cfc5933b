//! What this process may claim without looking at anything but the clock and the line. Granted on the generator's
//! slow path; withdrawn when a setting changes, so that the next claim goes there again.

use snowflake_core::{Bounds, Tick};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

// Atomics only because a static must be sound for threads; a backend has one. `LIMIT` is negative while nothing is
// granted.
static LIMIT: AtomicI64 = AtomicI64::new(-1);
static MAX_BURST: AtomicI64 = AtomicI64::new(0);
static MAX_LEAD: AtomicI64 = AtomicI64::new(0);
static SPREAD: AtomicU64 = AtomicU64::new(1);

/// The bounds of a claim, with the clock at tick `now`; `None` while nothing is granted.
#[inline]
pub fn bounds(now: Tick) -> Option<Bounds> {
    let limit = LIMIT.load(Relaxed);
    (limit >= 0).then(|| Bounds {
        now,
        max_burst: MAX_BURST.load(Relaxed),
        max_lead: MAX_LEAD.load(Relaxed),
        limit: Tick(limit),
        spread: SPREAD.load(Relaxed),
    })
}

/// Grants these bounds until they are withdrawn; `now` does not count.
pub fn grant(bounds: &Bounds) {
    MAX_BURST.store(bounds.max_burst, Relaxed);
    MAX_LEAD.store(bounds.max_lead, Relaxed);
    SPREAD.store(bounds.spread, Relaxed);
    LIMIT.store(bounds.limit.0, Relaxed);
}

/// Takes the grant back.
pub fn withdraw() {
    LIMIT.store(-1, Relaxed);
}
