//! What this process may claim without looking at anything but the clock and the line. Granted on the generator's
//! slow path; withdrawn when a setting changes, so that the next claim goes there again.
//!
//! What is open to ordinary claims changes with the clock's tick only. So its window is kept until the tick is over, and
//! while the processor's counter says that it cannot be over yet, the clock need not even be read.

use crate::shared;
use crate::time::tsc;
use snowflake_core::{Bounds, Position, Tick, UnixMicros, Window};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// Without a look at the clock, no more time than this may pass, in microseconds: so soon a clock that is set is noticed.
const LONGEST_WITHOUT_CLOCK: i64 = 1000;

/// How safe the reservation is on synchronous standbys, as [`crate::reservation::standby`] knows it.
#[derive(Clone, Copy)]
pub struct Confirmed {
    /// The level of `synchronous_commit` that it has reached.
    pub level: i64,
    /// The session's configuration in which that holds, by the time when it was read.
    pub configuration: i64,
}

/// The limit while nothing is granted.
const NOTHING: i64 = i64::MIN;

/// Atomics only because a static must be sound for threads; a backend has one.
#[repr(C, align(64))]
struct Admission {
    /// The counter when the clock was last read, and how far from there the window holds without another look.
    counted: AtomicU64,
    counts: AtomicU64,
    /// The window.
    floor: AtomicU64,
    end: AtomicU64,
    spread_mask: AtomicU64,
    /// The tick that it is of.
    since: AtomicI64,
    until: AtomicI64,
    /// How many counts pass in a microsecond; 0: the counter is not used.
    per_micro: AtomicU64,
    /// The bounds; `limit` is [`NOTHING`] while nothing is granted.
    limit: AtomicI64,
    max_burst: AtomicI64,
    max_lead: AtomicI64,
    spread: AtomicU64,
    /// See [`Confirmed`].
    confirmed_level: AtomicI64,
    confirmed_configuration: AtomicI64,
    /// [`shared::admissions`] before the grant.
    at: AtomicU64,
}

static ADMISSION: Admission = Admission {
    counted: AtomicU64::new(0),
    counts: AtomicU64::new(0),
    floor: AtomicU64::new(0),
    end: AtomicU64::new(0),
    spread_mask: AtomicU64::new(0),
    since: AtomicI64::new(0),
    until: AtomicI64::new(0),
    per_micro: AtomicU64::new(0),
    limit: AtomicI64::new(NOTHING),
    max_burst: AtomicI64::new(0),
    max_lead: AtomicI64::new(0),
    spread: AtomicU64::new(1),
    confirmed_level: AtomicI64::new(0),
    confirmed_configuration: AtomicI64::new(0),
    at: AtomicU64::new(0),
};

/// The processor's counter, for the two functions below; to be read before the clock is.
#[inline]
pub fn count() -> u64 {
    if ADMISSION.per_micro.load(Relaxed) == 0 { 0 } else { tsc::read() }
}

/// The window, where the counter says that it still holds.
#[inline]
pub fn window(count: u64) -> Option<Window> {
    let passed = count.wrapping_sub(ADMISSION.counted.load(Relaxed));
    (passed < ADMISSION.counts.load(Relaxed)).then(kept)
}

/// The window, where it holds at this time of the clock; and notes when the clock was read.
#[inline]
pub fn window_at(now: UnixMicros, count: u64) -> Option<Window> {
    let left = ADMISSION.until.load(Relaxed) - now.0;
    (ADMISSION.since.load(Relaxed) <= now.0 && left > 0).then(|| {
        // The clock may be up to a microsecond further than it was read.
        let micros = (left - 1).min(LONGEST_WITHOUT_CLOCK).unsigned_abs();
        ADMISSION.counted.store(count, Relaxed);
        ADMISSION.counts.store(micros * ADMISSION.per_micro.load(Relaxed), Relaxed);
        kept()
    })
}

fn kept() -> Window {
    Window {
        floor: Position(ADMISSION.floor.load(Relaxed)),
        end: Position(ADMISSION.end.load(Relaxed)),
        spread_mask: ADMISSION.spread_mask.load(Relaxed),
    }
}

/// Keeps the window of a tick, which lasts for this time.
pub fn keep(window: &Window, tick: Range<UnixMicros>) {
    ADMISSION.floor.store(window.floor.0, Relaxed);
    ADMISSION.end.store(window.end.0, Relaxed);
    ADMISSION.spread_mask.store(window.spread_mask, Relaxed);
    ADMISSION.since.store(tick.start.0, Relaxed);
    ADMISSION.until.store(tick.end.0, Relaxed);
}

/// Whether a grant, if there is one, still holds: nothing has happened on the server for which sessions must be admitted anew.
#[inline]
pub fn is_current() -> bool {
    ADMISSION.limit.load(Relaxed) == NOTHING || ADMISSION.at.load(Relaxed) == shared::admissions()
}

/// The bounds of a claim, with the clock at tick `now`; `None` while nothing is granted.
pub fn bounds(now: Tick) -> Option<Bounds> {
    let limit = ADMISSION.limit.load(Relaxed);
    (limit != NOTHING && is_current()).then(|| Bounds {
        now,
        max_burst: ADMISSION.max_burst.load(Relaxed),
        max_lead: ADMISSION.max_lead.load(Relaxed),
        limit: Tick(limit),
        spread: ADMISSION.spread.load(Relaxed),
    })
}

/// Grants these bounds until they are withdrawn, but no position yet: for those, [`set_limit`]. `now` and `limit` of the bounds do
/// not count; `at` is what [`shared::admissions`] was before anything was looked up for this.
pub fn grant(bounds: &Bounds, at: u64) {
    withdraw();
    ADMISSION.at.store(at, Relaxed);
    ADMISSION.max_burst.store(bounds.max_burst, Relaxed);
    ADMISSION.max_lead.store(bounds.max_lead, Relaxed);
    ADMISSION.spread.store(bounds.spread, Relaxed);
    ADMISSION.per_micro.store(0, Relaxed);
    // Nothing that could be less safe than it should be.
    ADMISSION.confirmed_level.store(i64::MAX, Relaxed);
    ADMISSION.confirmed_configuration.store(i64::MIN, Relaxed);
    ADMISSION.limit.store(-1, Relaxed);
}

/// How safe the reservation is that the limit stands for.
#[inline]
pub fn confirmed() -> Confirmed {
    Confirmed {
        level: ADMISSION.confirmed_level.load(Relaxed),
        configuration: ADMISSION.confirmed_configuration.load(Relaxed),
    }
}

/// Sets the limit of what is granted, which stands for a reservation that is so safe; nothing, where the grant was withdrawn
/// meanwhile. `per_micro` as in [`grant`].
pub fn set_limit(limit: Tick, confirmed: Confirmed, per_micro: u64) {
    if ADMISSION.limit.load(Relaxed) != NOTHING {
        ADMISSION.limit.store(limit.0, Relaxed);
        ADMISSION.confirmed_level.store(confirmed.level, Relaxed);
        ADMISSION.confirmed_configuration.store(confirmed.configuration, Relaxed);
        ADMISSION.per_micro.store(per_micro, Relaxed);
        forget_window();
    }
}

/// Takes the grant back.
pub fn withdraw() {
    ADMISSION.limit.store(NOTHING, Relaxed);
    forget_window();
}

/// It was made of other bounds.
fn forget_window() {
    ADMISSION.counts.store(0, Relaxed);
    ADMISSION.until.store(0, Relaxed);
    ADMISSION.since.store(0, Relaxed);
}
