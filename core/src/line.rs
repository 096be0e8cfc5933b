//! The line: one word, shared by all processes of a server, that holds the last position claimed. A claim is a
//! little arithmetic on (last, clock, bounds) followed by one compare-and-swap, so positions only ever rise and each
//! is claimed once.
//!
//! Where the line stands relative to the clock decides what a claim may do. With `lead` = the tick that the claim
//! needs, less the clock's tick:
//!
//! ```text
//!   lead <= max_burst               claim, up to that lead: the credit that absorbs peaks
//!   just beyond it                  Full: wait for the clock
//!   line beyond it already          the clock went back, or a recovery raised the line:
//!     within the last tick          claim
//!     past its end                  Behind: `open` one more tick, at most one per tick of real time
//!     lead > max_lead               TooFarAhead: wait, or give up
//! ```
//!
//! What an ordinary claim may take depends on the clock's tick only, so it is worked out once for all claims of a tick: the
//! [`Window`].
//!
//! `claim` and `claim_in` take no lock. `open`, `raise` and `switch_worker` are *transitions*: their caller holds the one lock
//! that guards the [`Pace`].

use crate::layout::{Layout, Position, Tick, WorkerBits};
use sync::{AtomicU64, Ordering, back_off};

#[cfg(not(loom))]
mod sync {
    pub use std::sync::atomic::{AtomicU64, Ordering};

    /// Leaves the word to others for a fraction of a microsecond: each then claims several times before the word's cache
    /// line goes to another core again, which takes longer than a claim.
    #[cold]
    pub fn back_off() {
        (0..32).for_each(|_| std::hint::spin_loop());
    }
}
#[cfg(loom)]
mod sync {
    pub use loom::hint::spin_loop as back_off;
    pub use loom::sync::atomic::{AtomicU64, Ordering};
}

/// The word's top bit, which no position reaches: which of the two workers is in use.
const SLOT: u64 = 1 << 63;

/// The one line of positions of a server. It is plain memory: shared by processes when it lies in shared memory.
#[derive(Debug)]
#[repr(C)]
pub struct Line {
    /// The last position claimed, and in the top bit the slot of the worker that claims.
    word: AtomicU64,
    /// The worker of each slot. The one not in use is written before the word switches to it, and never again while
    /// it is in use; so who finds the word unchanged after reading a slot, has read the right worker.
    workers: [AtomicU64; 2],
}

/// What a claim may do at this moment. Ticks are those of the layout.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The clock's tick; negative while it stands before the epoch.
    pub now: Tick,
    /// How many ticks ahead of the clock ordinary claims may run.
    pub max_burst: i64,
    /// How many ticks ahead of the clock the line may go on at all; less than `max_burst` means `max_burst`.
    pub max_lead: i64,
    /// The highest tick that may be claimed.
    pub limit: Tick,
    /// A tick that starts afresh starts at a sequence below this, where the last one ended modulo it; so the
    /// sequences of rare IDs are spread too. A power of two, at most the number of sequences; 1: always 0.
    pub spread: u64,
}

/// [`Bounds`] worked out for ordinary claims, those at most `max_burst` ahead of the clock: the positions that are open to them
/// while the clock's tick lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first position of the clock's tick.
    pub floor: Position,
    /// The first position that is out of reach.
    pub end: Position,
    /// `spread - 1`: the bits of the position after the last one that a tick that starts afresh takes over.
    pub spread_mask: u64,
}

/// Positions that are the caller's alone: `count` of them, from `first` on, with the worker that makes their IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The first position.
    pub first: Position,
    /// How many, at least 1.
    pub count: u64,
    /// The worker in use when they were claimed.
    pub worker: WorkerBits,
}

/// Why a claim cannot be made now. Nothing was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The burst is used up: there is room again when the clock reaches this tick.
    Full {
        /// The clock's tick to wait for.
        until: Tick,
    },
    /// The clock is behind the line and the last tick is full: [`Line::open`] the next.
    Behind,
    /// The next tick was asked for too early: try again after this many microseconds of real time.
    TooEarly {
        /// Microseconds, at most a tick.
        wait: i64,
    },
    /// The line is further ahead of the clock than `max_lead`.
    TooFarAhead {
        /// Ticks.
        lead: i64,
    },
    /// The claim needs a tick beyond the limit.
    Limit {
        /// The tick it needs.
        needs: Tick,
    },
    /// The claim needs a tick beyond the layout's last.
    Exhausted,
}

/// When a tick was last opened while the clock was behind, in microseconds of a monotonic clock that all processes
/// share. Kept beside the line, under the lock for transitions.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Pace {
    opened_at: Option<i64>,
}

impl Pace {
    /// # Errors
    /// [`Refusal::TooEarly`] while less than a tick has passed since the last opening.
    fn check(self, monotonic: i64, tick_micros: i64) -> Result<(), Refusal> {
        match self.opened_at {
            Some(opened_at) if monotonic < opened_at + tick_micros => {
                Err(Refusal::TooEarly { wait: opened_at + tick_micros - monotonic })
            }
            _ => Ok(()),
        }
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

impl Line {
    /// A line on which nothing was claimed, and which has no worker yet: call [`Self::switch_worker`] before the
    /// first claim.
    pub fn new() -> Self {
        Self { word: AtomicU64::new(0), workers: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// The last position claimed, or given up.
    pub fn last(&self) -> Position {
        position(self.word.load(Ordering::Acquire))
    }

    /// Claims the next positions: at least one, at most `want` (at least 1), as many as the bounds have room for.
    ///
    /// # Errors
    /// Where the bounds have no room: see [`Refusal`]. Never [`Refusal::TooEarly`].
    #[inline]
    pub fn claim(&self, layout: &Layout, bounds: &Bounds, want: u64) -> Result<Claim, Refusal> {
        self.advance(|last| bounds.room(layout, last, want))
    }

    /// As [`Self::claim`] with the bounds that the window was made of, and cheaper. `None` where that is refused, or is no
    /// ordinary claim.
    #[inline]
    pub fn claim_in(&self, window: &Window, want: u64) -> Option<Claim> {
        self.advance(|last| window.room(last, want).ok_or(())).ok()
    }

    /// Claims as [`Self::claim`] does and, where the clock is behind and the last tick is full, opens the next tick
    /// and claims from its start; at most one tick per tick of real time, which `monotonic` tells (microseconds).
    /// The caller holds the lock for transitions.
    ///
    /// # Errors
    /// As [`Self::claim`], with [`Refusal::TooEarly`] in place of [`Refusal::Behind`].
    pub fn open(
        &self,
        layout: &Layout,
        bounds: &Bounds,
        want: u64,
        pace: &mut Pace,
        monotonic: i64,
    ) -> Result<Claim, Refusal> {
        let mut opens = false;
        let claim = self.advance(|last| {
            let room = bounds.room(layout, last, want);
            opens = room == Err(Refusal::Behind);
            if !opens {
                return room;
            }
            pace.check(monotonic, layout.tick_micros())?;
            let first = Position(last.0 + 1);
            Ok((first, want.min(layout.last_position(layout.tick_of(first)).0 - last.0)))
        })?;
        if opens {
            pace.opened_at = Some(monotonic);
        }
        Ok(claim)
    }

    /// Moves the line to the end of what `room` finds after the last position: the first position and their count.
    #[inline(always)]
    fn advance<E>(&self, mut room: impl FnMut(Position) -> Result<(Position, u64), E>) -> Result<Claim, E> {
        loop {
            // Acquire: the word's slot must be seen as it was when the word was written.
            let word = self.word.load(Ordering::Acquire);
            let worker = WorkerBits(self.workers[slot(word)].load(Ordering::Relaxed));
            let (first, count) = room(position(word))?;
            let next = word & SLOT | (first.0 + count - 1);
            if self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(Claim { first, count, worker });
            }
            back_off();
        }
    }

    /// Gives up all positions before a tick: later claims get that tick or a later one. For positions that may have
    /// been claimed where this line does not know of it. The caller holds the lock for transitions.
    pub fn raise(&self, layout: &Layout, tick: Tick) {
        // Past the layout's end there is nothing to claim, and positions would reach the top bit.
        let last_given_up = Tick(tick.0.saturating_sub(1)).min(layout.last_tick());
        if last_given_up.0 < 0 {
            return;
        }
        let floor = layout.last_position(last_given_up);
        let mut word = self.word.load(Ordering::Acquire);
        while position(word) < floor {
            let next = word & SLOT | floor.0;
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(found) => word = found,
            }
        }
    }

    /// Takes back what is beyond a tick: later claims get that tick or a later one. Only for who knows that no ID of a position
    /// beyond it is kept. The caller holds the lock for transitions.
    pub fn lower(&self, layout: &Layout, tick: Tick) {
        let floor = layout.position(tick.max(Tick(0)), 0).0.saturating_sub(1);
        let mut word = self.word.load(Ordering::Acquire);
        while position(word).0 > floor {
            match self.word.compare_exchange_weak(word, word & SLOT | floor, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(found) => word = found,
            }
        }
    }

    /// Makes the worker of all later claims this one. The rest of the tick that comes next is given up, so that IDs
    /// rise also where the new worker is the lower number. The caller holds the lock for transitions.
    pub fn switch_worker(&self, layout: &Layout, worker: WorkerBits) {
        let mut word = self.word.load(Ordering::Acquire);
        self.workers[slot(word ^ SLOT)].store(worker.0, Ordering::Relaxed);
        loop {
            // The position must move, or two switches would bring the same word back, and a claim between them would
            // not notice.
            let next_position = Position(position(word).0 + 1);
            let end_of_tick = layout.last_position(layout.tick_of(next_position));
            let next = (word & SLOT ^ SLOT) | end_of_tick.0;
            // Release: who sees the new slot sees its worker.
            match self.word.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(found) => word = found,
            }
        }
    }
}

const fn slot(word: u64) -> usize {
    (word >> 63) as usize
}

const fn position(word: u64) -> Position {
    Position(word & !SLOT)
}

impl Window {
    /// The position after `last` that a claim begins with, open or not.
    #[inline]
    const fn first_after(&self, last: Position) -> Position {
        let next = last.0 + 1;
        Position(if next < self.floor.0 { self.floor.0 | next & self.spread_mask } else { next })
    }

    /// The first position after `last` that a claim gets, and how many, at most `want`. `None` where none is open.
    #[inline]
    fn room(&self, last: Position, want: u64) -> Option<(Position, u64)> {
        let first = self.first_after(last);
        (first < self.end).then(|| (first, want.min(self.end.0 - first.0)))
    }
}

impl Bounds {
    /// What is open to ordinary claims while the clock's tick lasts.
    pub fn window(&self, layout: &Layout) -> Window {
        // The first position of a tick; of those that the layout lacks, that of the nearest.
        let start_of = |tick: i64| layout.position(Tick(tick.clamp(0, layout.last_tick().0 + 1)), 0);
        let ceiling = self.now.0.saturating_add(self.max_burst).min(self.limit.0);
        Window { floor: start_of(self.now.0), end: start_of(ceiling.saturating_add(1)), spread_mask: self.spread - 1 }
    }

    /// The first position after `last` that a claim gets, and how many, at most `want`.
    fn room(&self, layout: &Layout, last: Position, want: u64) -> Result<(Position, u64), Refusal> {
        let window = self.window(layout);
        if let Some(room) = window.room(last, want) {
            return Ok(room);
        }
        let first = window.first_after(last);
        let (last_tick, tick) = (layout.tick_of(last), layout.tick_of(first));
        if tick > layout.last_tick() {
            return Err(Refusal::Exhausted);
        }
        let lead = self.lead_of(tick);
        if lead > self.max_burst {
            if self.lead_of(last_tick) <= self.max_burst {
                return Err(Refusal::Full { until: Tick(tick.0 - self.max_burst) });
            }
            if lead > self.max_lead {
                return Err(Refusal::TooFarAhead { lead });
            }
            if tick > last_tick && tick <= self.limit {
                return Err(Refusal::Behind);
            }
        }
        if tick > self.limit {
            return Err(Refusal::Limit { needs: tick });
        }
        // The line is ahead of the clock, and its last tick is not full.
        Ok((first, want.min(layout.last_position(last_tick).0 - first.0 + 1)))
    }

    /// How many ticks ahead of the clock a tick is; negative where it is behind.
    const fn lead_of(&self, tick: Tick) -> i64 {
        tick.0.saturating_sub(self.now.0)
    }
}
