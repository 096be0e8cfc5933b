//! What this process may claim while it looks at nothing but the clock and the line. Granted on the generator's slow
//! path; withdrawn when a setting changes, so that the next claim takes that path again.
//!
//! Which positions are open to ordinary claims changes only with the clock's tick. So the open range of a tick is kept
//! until the tick is over, and the clock is not even read while the processor's counter shows that it cannot
//! be over.

use crate::postgres::process;
use crate::postgres::time::counter;
use crate::shared;
use crate::shared::confirmed::Confirmed;
use snowflake_core::counter::Rate;
use snowflake_core::{Micros, OpenRange, Policy, Position, Reach, Tick, Ticks, UnixMicros};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// The clock is read at least this often, so that a clock that is set is noticed within this time.
const LONGEST_WITHOUT_CLOCK: Micros = Micros::from_millis(1);

/// The limit while the session is not admitted.
const NOTHING: i64 = i64::MIN;

/// What this process keeps for itself. It has one thread, and no signal handler looks here: so nothing needs to order the accesses. The fields
/// are atomics, with relaxed access, only because a static must be sound for threads.
#[repr(C, align(64))]
struct Admission {
    /// The counter when the clock was last read.
    counter_start: AtomicU64,
    /// By how much the counter may have advanced since then while the open range is used without reading the clock again.
    counter_span: AtomicU64,
    /// The open range.
    floor: AtomicU64,
    end: AtomicU64,
    spread_mask: AtomicU64,
    /// When the tick of the open range begins and ends, in microseconds since 1970.
    since: AtomicI64,
    until: AtomicI64,
    /// [`Rate::to_number`] of the counter, [`Rate::NONE`] where it is not used.
    counter_rate: AtomicU64,
    /// The highest tick that may be claimed; [`NOTHING`] while the session is not admitted.
    limit: AtomicI64,
    /// The [`Policy`], its lengths in ticks.
    max_burst: AtomicI64,
    max_lead: AtomicI64,
    spread: AtomicU64,
    /// [`Confirmed::to_numbers`].
    confirmed: [AtomicI64; 2],
    /// [`shared::admissions`] before it was admitted.
    at: AtomicU64,
    /// When the statement began that [gives way](give_way), a `timestamptz`.
    gives_way: AtomicI64,
}

static ADMISSION: Admission = Admission {
    counter_start: AtomicU64::new(0),
    counter_span: AtomicU64::new(0),
    floor: AtomicU64::new(0),
    end: AtomicU64::new(0),
    spread_mask: AtomicU64::new(0),
    since: AtomicI64::new(0),
    until: AtomicI64::new(0),
    counter_rate: AtomicU64::new(0),
    limit: AtomicI64::new(NOTHING),
    max_burst: AtomicI64::new(0),
    max_lead: AtomicI64::new(0),
    spread: AtomicU64::new(1),
    confirmed: [const { AtomicI64::new(0) }; 2],
    at: AtomicU64::new(0),
    gives_way: AtomicI64::new(0),
};

/// Reads the processor's counter, for the two functions below. Call it before the clock is read.
#[inline]
pub fn read_counter() -> u64 {
    if ADMISSION.counter_rate.load(Relaxed) == 0 { 0 } else { counter::read() }
}

/// The open range, where the counter shows that it still holds.
#[inline]
pub fn open_range(counter: u64) -> Option<OpenRange> {
    let passed = counter.wrapping_sub(ADMISSION.counter_start.load(Relaxed));
    (passed < ADMISSION.counter_span.load(Relaxed)).then(kept)
}

/// The open range, where it holds at this time of the clock, which was read after the counter. Notes both, for [`open_range`].
#[inline]
pub fn open_range_at(now: UnixMicros, counter: u64) -> Option<OpenRange> {
    let left = UnixMicros(ADMISSION.until.load(Relaxed)) - now;
    (ADMISSION.since.load(Relaxed) <= now.0 && left > Micros(0)).then(|| {
        // The time was rounded down, by less than a microsecond.
        let span = (left - Micros(1)).min(LONGEST_WITHOUT_CLOCK);
        ADMISSION.counter_start.store(counter, Relaxed);
        let rate = Rate::from_number(ADMISSION.counter_rate.load(Relaxed));
        ADMISSION.counter_span.store(rate.counts_in(span), Relaxed);
        kept()
    })
}

fn kept() -> OpenRange {
    OpenRange {
        floor: Position(ADMISSION.floor.load(Relaxed)),
        end: Position(ADMISSION.end.load(Relaxed)),
        spread_mask: ADMISSION.spread_mask.load(Relaxed),
    }
}

/// Keeps the open range of a tick, which begins and ends at these instants.
pub fn keep(open: &OpenRange, tick: Range<UnixMicros>) {
    ADMISSION.floor.store(open.floor.0, Relaxed);
    ADMISSION.end.store(open.end.0, Relaxed);
    ADMISSION.spread_mask.store(open.spread_mask, Relaxed);
    ADMISSION.since.store(tick.start.0, Relaxed);
    ADMISSION.until.store(tick.end.0, Relaxed);
}

/// Whether the admission, if there is one, still holds: since then, nothing has happened for which sessions must be admitted
/// anew.
#[inline]
pub fn is_current() -> bool {
    ADMISSION.limit.load(Relaxed) == NOTHING || ADMISSION.at.load(Relaxed) == shared::admissions()
}

/// The reach of a claim, with the clock at tick `now`; `None` while the session is not admitted.
pub fn reach(now: Tick) -> Option<Reach> {
    let limit = ADMISSION.limit.load(Relaxed);
    (limit != NOTHING && is_current()).then(|| Reach {
        policy: Policy {
            max_burst: Ticks(ADMISSION.max_burst.load(Relaxed)),
            max_lead: Ticks(ADMISSION.max_lead.load(Relaxed)),
            spread: ADMISSION.spread.load(Relaxed),
        },
        limit: Tick(limit),
        now,
        gives_way: ADMISSION.gives_way.load(Relaxed) == process::statement_began_at(),
    })
}

/// Until the statement that runs now is over, it leaves the last of the open positions to others.
pub fn give_way() {
    ADMISSION.gives_way.store(process::statement_began_at(), Relaxed);
    forget_open_range();
}

/// Admits the session, at the pace that the settings allow, until that is withdrawn. The limit is below all positions, so that the first claim
/// makes a reservation: see [`set_limit`]. `at` is what [`shared::admissions`] was before anything was looked up for
/// this.
pub fn admit(policy: &Policy, at: u64) {
    withdraw();
    ADMISSION.at.store(at, Relaxed);
    ADMISSION.max_burst.store(policy.max_burst.0, Relaxed);
    ADMISSION.max_lead.store(policy.max_lead.0, Relaxed);
    ADMISSION.spread.store(policy.spread, Relaxed);
    ADMISSION.counter_rate.store(0, Relaxed);
    // While there is no reservation, every level counts as confirmed.
    note_confirmed(Confirmed::for_good(i64::MAX));
    ADMISSION.limit.store(-1, Relaxed);
}

/// How safe the reservation is from which the limit follows.
#[inline]
pub fn confirmed() -> Confirmed {
    Confirmed::from_numbers(ADMISSION.confirmed.each_ref().map(|number| number.load(Relaxed)))
}

fn note_confirmed(confirmed: Confirmed) {
    for (kept, number) in ADMISSION.confirmed.iter().zip(confirmed.to_numbers()) {
        kept.store(number, Relaxed);
    }
}

/// Sets the limit that follows from a reservation, and how safe that is. `rate` is [`counter::rate`], or
/// [`Rate::NONE`] if the clock is to be read for each claim. Does nothing where the admission was withdrawn meanwhile.
pub fn set_limit(limit: Tick, confirmed: Confirmed, rate: Rate) {
    if ADMISSION.limit.load(Relaxed) != NOTHING {
        ADMISSION.limit.store(limit.0, Relaxed);
        note_confirmed(confirmed);
        ADMISSION.counter_rate.store(rate.to_number(), Relaxed);
        forget_open_range();
    }
}

/// Takes the admission back.
pub fn withdraw() {
    ADMISSION.limit.store(NOTHING, Relaxed);
    forget_open_range();
}

/// Forgets the open range, which was made from a reach that does not hold any more.
fn forget_open_range() {
    ADMISSION.counter_span.store(0, Relaxed);
    ADMISSION.until.store(0, Relaxed);
    ADMISSION.since.store(0, Relaxed);
}
