//! The line: one word in memory, shared by all processes of a server, that holds the last position claimed. A claim
//! calculates the next positions from that word, the clock and the reach, and moves the word over them by one
//! compare-and-swap. So positions only rise, and each is claimed once.
//!
//! What a claim may do depends on its `lead`, which is how far the tick that it needs is ahead of the clock's tick:
//!
//! ```text
//!   lead <= max_burst             claim: IDs may run so far ahead of the clock; but who gives way leaves
//!                                 the last eighth of these positions to others: Full
//!   lead > max_burst              Full: wait for the clock
//!
//!   where the last position is beyond max_burst already, as the clock went back or the line was raised:
//!     lead > max_lead             TooFarAhead: wait, or give up
//!     the last tick has room      claim
//!     the last tick is full       Behind: `open` one more tick, at most one per tick of real time
//! ```
//!
//! The claims of the first line are the ordinary ones. Which positions they may take depends on the clock only by its
//! tick, so it is worked out once for all claims of a tick: the [`OpenRange`].
//!
//! `claim` and `claim_in` take no lock. `open`, `raise`, `lower`, `close` and `switch_worker` are *transitions*: their
//! caller holds the one lock that also guards the [`Pace`].
//!
//! ```
//! use snowflake_core::{Layout, Line, Policy, Reach, Refusal, Tick, Ticks};
//!
//! let layout: Layout = "timestamp=41 worker=10 sequence=2".parse()?; // 4 IDs a tick
//! let line = Line::new();
//! line.switch_worker(&layout, layout.place_worker(None, Some(1))?);
//!
//! let policy = Policy { max_burst: Ticks(1), max_lead: Ticks(600_000), spread: 1 };
//! let reach = Reach { policy, limit: layout.last_tick(), now: Tick(1000), gives_way: false };
//! let claim = line.claim(&layout, &reach, 6)?;
//! assert_eq!((claim.first, claim.count), (layout.position(Tick(1000), 0), 6));
//!
//! // The next tick has 2 positions left. After them, the clock must move.
//! assert_eq!(line.claim(&layout, &reach, 6)?.count, 2);
//! assert_eq!(line.claim(&layout, &reach, 6), Err(Refusal::Full { until: Tick(1001) }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::layout::{Layout, Position, WorkerBits};
use crate::sync::{AtomicU64, Ordering, back_off};
use crate::time::{Micros, MonotonicMicros, Tick, Ticks};
use thiserror::Error;

/// The top bit of the word, which no position reaches: the number of the slot that holds the worker in use.
const SLOT: u64 = 1 << 63;
const _: () = assert!(SLOT - 1 == i64::MAX as u64);

/// The line of positions of a server. Plain memory without pointers, so it can lie in memory that processes share.
///
/// # Memory orderings
///
/// The word is changed by compare-and-swap only. Each such change works on the latest value, so positions rise whatever
/// the ordering. And each continues the release sequence of those before it, so an acquire load synchronizes with every
/// release that came before the value it reads. Two pairs are needed, for the slots:
///
/// * A claim loads the word (acquire), then the slot that the word names. So it sees the worker that
///   [`Self::switch_worker`] stored in that slot before it changed the word (release).
/// * [`Self::switch_worker`] loads the word (acquire), then stores in the slot that is not in use. So a claim that was
///   made while that slot was in use (release) does not see that store. The loom test cannot show this: in its model,
///   no load sees a store that comes later. `model/litmus` has both pairs as Arm's processors see them.
#[derive(Debug)]
#[repr(C)]
pub struct Line {
    /// The last position claimed, and in the top bit the slot of the worker in use.
    word: AtomicU64,
    /// The two slots. The one that is not in use is written before the word changes to it, and then not again while it
    /// is in use. So a claim whose compare-and-swap finds the word as it was has read the right worker.
    workers: [AtomicU64; 2],
}

/// What the settings of a server allow its claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How far ahead of the clock ordinary claims may run; not negative.
    pub max_burst: Ticks,
    /// How far ahead of the clock IDs may go on after the clock went back. Without effect if it is below `max_burst`.
    pub max_lead: Ticks,
    /// Over how many sequence numbers the first IDs of ticks are spread. The first of a tick gets the number after that
    /// of the last ID, modulo this; otherwise all IDs of a server that makes few would have sequence 0. A power of two,
    /// at most the number of sequences of the layout; with 1, every tick begins at 0.
    pub spread: u64,
}

/// How far claims may reach at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// What the settings allow.
    pub policy: Policy,
    /// The highest tick that may be claimed: IDs are reserved so far, and no further.
    pub limit: Tick,
    /// The clock's tick. Negative while the clock stands before the epoch.
    pub now: Tick,
    /// Whether the last eighth of the positions that are open to ordinary claims is left to others.
    /// So who wants more than there is keeps nobody waiting who wants little.
    pub gives_way: bool,
}

/// The positions that are open to ordinary claims, which are at most `max_burst` ahead of the clock. Made by
/// [`Reach::open_range`], and valid as long as that reach: until the clock's tick is over, or the policy or the limit
/// changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRange {
    /// The first position of the clock's tick: no lower one is claimed.
    pub floor: Position,
    /// The first position that is not open.
    pub end: Position,
    /// [`Policy::spread`] less 1: the low bits that the first position of a tick takes from the position after the last
    /// one claimed.
    pub spread_mask: u64,
}

/// Positions that the caller alone has, `count` of them from `first` on, and the worker to compose their IDs with.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The burst is used up. There is room again when the clock reaches this tick.
    #[error("the burst is used up until the clock reaches tick {}", until.0)]
    Full {
        /// The clock's tick to wait for.
        until: Tick,
    },
    /// The clock is behind the line, and the last tick is full: [`Line::open`] the next.
    #[error("the clock is behind, and the last tick is full")]
    Behind,
    /// The clock is behind, and too little real time has passed since a tick was opened.
    #[error("the next tick can be opened in {} us", wait.0)]
    TooEarly {
        /// How long to wait, at most as long as a tick.
        wait: Micros,
    },
    /// The line is further ahead of the clock than `max_lead`.
    #[error("the line is {} ticks ahead of the clock", lead.0)]
    TooFarAhead {
        /// How far the tick that the claim needs is ahead.
        lead: Ticks,
    },
    /// The claim needs a tick beyond the limit.
    #[error("tick {} is beyond the limit", needs.0)]
    Limit {
        /// The tick that it needs.
        needs: Tick,
    },
    /// The claim needs a tick beyond the layout's last.
    #[error("the layout is used up")]
    Exhausted,
}

/// When a tick was last opened while the clock was behind. Kept beside the line, under the lock for transitions.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Pace {
    opened_at: Option<MonotonicMicros>,
}

impl Pace {
    /// # Errors
    /// [`Refusal::TooEarly`] where less than a tick has passed since a tick was opened.
    fn check(self, now: MonotonicMicros, tick_length: Micros) -> Result<(), Refusal> {
        match self.opened_at {
            Some(opened_at) if now < opened_at + tick_length => {
                Err(Refusal::TooEarly { wait: opened_at + tick_length - now })
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
    /// A line on which nothing was claimed, and without a worker: call [`Self::switch_worker`] before the first claim.
    pub fn new() -> Self {
        Self { word: AtomicU64::new(0), workers: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// The last position that was claimed or given up.
    pub fn last(&self) -> Position {
        // Relaxed: only the position is wanted, not the slot.
        position(self.word.load(Ordering::Relaxed))
    }

    /// Claims the next positions: at least one, at most `want` (at least 1), as many as the reach has room for.
    ///
    /// # Errors
    /// Where the reach has no room: see [`Refusal`]. Never [`Refusal::TooEarly`].
    #[inline]
    pub fn claim(&self, layout: &Layout, reach: &Reach, want: u64) -> Result<Claim, Refusal> {
        self.advance(|last| reach.room(layout, last, want))
    }

    /// An ordinary claim: as [`Self::claim`] with the reach that the open range was made of, but cheaper. `None` where
    /// `claim` would refuse, or claim further ahead of the clock than `max_burst`.
    #[inline]
    pub fn claim_in(&self, open: &OpenRange, want: u64) -> Option<Claim> {
        self.advance(|last| open.room(last, want).ok_or(())).ok()
    }

    /// Claims as [`Self::claim`] does; where that is refused as [`Refusal::Behind`], opens the next tick and claims
    /// from its start. `now` is the time of a monotonic clock, the same in all calls: at most one tick is opened in the
    /// time of a tick. The caller holds the lock for transitions.
    ///
    /// # Errors
    /// As [`Self::claim`], with [`Refusal::TooEarly`] in place of [`Refusal::Behind`].
    pub fn open(
        &self,
        layout: &Layout,
        reach: &Reach,
        want: u64,
        pace: &mut Pace,
        now: MonotonicMicros,
    ) -> Result<Claim, Refusal> {
        let mut opens = false;
        let claim = self.advance(|last| {
            let room = reach.room(layout, last, want);
            opens = room == Err(Refusal::Behind);
            if !opens {
                return room;
            }
            pace.check(now, layout.tick_length())?;
            let first = Position(last.0 + 1);
            Ok((first, want.min(layout.last_position(layout.tick_of(first)).0 - last.0)))
        })?;
        if opens {
            pace.opened_at = Some(now);
        }
        Ok(claim)
    }

    /// Moves the word over the positions that `room` finds after the last one: their first, and how many.
    #[inline(always)]
    fn advance<E>(&self, mut room: impl FnMut(Position) -> Result<(Position, u64), E>) -> Result<Claim, E> {
        loop {
            // Acquire: synchronizes with the compare-and-swap in `switch_worker`, so that the load of the slot sees the
            // worker that was stored before the word named it.
            let word = self.word.load(Ordering::Acquire);
            let worker = WorkerBits(self.workers[slot(word)].load(Ordering::Relaxed));
            let (first, count) = room(position(word))?;
            let next = word & SLOT | (first.0 + count - 1);
            // Release: synchronizes with the load in `switch_worker`, so that the load of the slot does not see what a
            // later switch stores there.
            if self.word.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed).is_ok() {
                return Ok(Claim { first, count, worker });
            }
            back_off();
        }
    }

    /// Gives up all positions before a tick: later claims get that tick or a later one. For positions that may have
    /// been claimed already, but not on this line, as in an earlier run of the server. The caller holds the lock for
    /// transitions.
    pub fn raise(&self, layout: &Layout, tick: Tick) {
        // Past the layout's end there is nothing to claim, and positions would reach the top bit.
        let last_given_up = Tick(tick.0.saturating_sub(1)).min(layout.last_tick());
        if last_given_up.0 < 0 {
            return;
        }
        let floor = layout.last_position(last_given_up);
        self.set_position_where(|last| last < floor, floor);
    }

    /// Takes back all positions from a tick on: later claims get that tick or a later one. Positions beyond it are
    /// claimed again, so the caller makes sure that no ID of them is kept. The caller holds the lock for transitions.
    pub fn lower(&self, layout: &Layout, tick: Tick) {
        let floor = Position(layout.position(tick.max(Tick(0)), 0).0.saturating_sub(1));
        self.set_position_where(|last| last > floor, floor);
    }

    /// Closes the line to all claims whose limit is this tick or a lower one: gives up all positions up to the end of
    /// the tick, and returns the last position before that. Nothing above the returned position, and up to the end of
    /// the tick, has been claimed or will be, also by a caller that holds an [`OpenRange`] or a [`Reach`] from before. The caller
    /// holds the lock for transitions.
    pub fn close(&self, layout: &Layout, beyond: Tick) -> Position {
        if beyond.0 < 0 {
            return self.last();
        }
        let end = layout.last_position(beyond.min(layout.last_tick()));
        self.set_position_where(|last| last < end, end)
    }

    /// Sets the last position, and leaves the slot as it is, if the last position is one to be replaced. Returns the
    /// last position as it was.
    fn set_position_where(&self, replaced: impl Fn(Position) -> bool, new: Position) -> Position {
        // Relaxed: the slots are not touched.
        let mut word = self.word.load(Ordering::Relaxed);
        while replaced(position(word)) {
            let next = word & SLOT | new.0;
            match self.word.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => break,
                Err(found) => word = found,
            }
        }
        position(word)
    }

    /// Makes the IDs of all later claims those of this worker. The rest of the tick that comes next is given up, so
    /// that IDs rise even where the new worker has the lower number. The caller holds the lock for transitions.
    pub fn switch_worker(&self, layout: &Layout, worker: WorkerBits) {
        // Acquire: synchronizes with the compare-and-swap of all claims, in `advance`, so that those which were made
        // while the other slot was in use do not see the store below.
        let mut word = self.word.load(Ordering::Acquire);
        self.workers[slot(word ^ SLOT)].store(worker.0, Ordering::Relaxed);
        loop {
            // The position must change. Otherwise a second switch could bring back the same word, and a claim that read
            // the word before the first would not notice them.
            let next_position = Position(position(word).0 + 1);
            let end_of_tick = layout.last_position(layout.tick_of(next_position));
            let next = (word & SLOT ^ SLOT) | end_of_tick.0;
            // Release: synchronizes with the load in `advance`, so that claims which see the other slot in use see its
            // worker.
            match self.word.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed) {
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

impl OpenRange {
    /// The position after `last` at which a claim begins, whether that is open or not.
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

impl Reach {
    /// The positions that are open to ordinary claims while this reach holds.
    pub fn open_range(&self, layout: &Layout) -> OpenRange {
        let last = self.now.saturating_add(self.policy.max_burst);
        let end = start_after(layout, last).0 - self.left_to_others(layout);
        OpenRange {
            floor: start_of(layout, self.now),
            end: Position(end.min(start_after(layout, self.limit).0)),
            spread_mask: self.policy.spread - 1,
        }
    }

    /// How many of the positions up to `max_burst` ahead of the clock this reach leaves to others.
    fn left_to_others(&self, layout: &Layout) -> u64 {
        if !self.gives_way {
            return 0;
        }
        let last = self.now.saturating_add(self.policy.max_burst);
        (start_after(layout, last).0 - start_of(layout, self.now).0) / 8
    }

    /// The first position after `last` that a claim gets, and how many, at most `want`.
    fn room(&self, layout: &Layout, last: Position, want: u64) -> Result<(Position, u64), Refusal> {
        let open = self.open_range(layout);
        if let Some(room) = open.room(last, want) {
            return Ok(room);
        }
        let Policy { max_burst, max_lead, .. } = self.policy;
        let first = open.first_after(last);
        let (last_tick, tick) = (layout.tick_of(last), layout.tick_of(first));
        if tick > layout.last_tick() {
            return Err(Refusal::Exhausted);
        }
        let lead = tick.saturating_since(self.now);
        // The tick of the position up to which there must be room.
        let needs = layout.tick_of(Position(first.0 + self.left_to_others(layout)));
        if needs.saturating_since(self.now) > max_burst {
            if last_tick.saturating_since(self.now) <= max_burst {
                return Err(Refusal::Full { until: needs - max_burst });
            }
            if lead > max_lead {
                return Err(Refusal::TooFarAhead { lead });
            }
            if tick > last_tick && tick <= self.limit {
                return Err(Refusal::Behind);
            }
        }
        if tick > self.limit {
            return Err(Refusal::Limit { needs: tick });
        }
        // The last position is further ahead than the burst, and its tick has room.
        Ok((first, want.min(layout.last_position(last_tick).0 - first.0 + 1)))
    }
}

/// The first position of a tick. A tick before the layout's first counts as the first, one after
/// its last as the one after the last.
fn start_of(layout: &Layout, tick: Tick) -> Position {
    layout.position(tick.clamp(Tick(0), layout.last_tick() + Ticks(1)), 0)
}

/// The first position after a tick.
fn start_after(layout: &Layout, tick: Tick) -> Position {
    start_of(layout, tick.saturating_add(Ticks(1)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A claim that has read the word before reads its own worker still.
    #[test]
    fn the_worker_before_stays_where_it_was() {
        let (line, layout): (Line, Layout) = (Line::new(), "default".parse().unwrap());
        let mut before = Vec::new();
        for worker in 1..6 {
            let worker = layout.place_worker(None, Some(worker)).unwrap();
            line.switch_worker(&layout, worker);
            before.push(worker.0);
            let mut held = [0, 1].map(|slot| line.workers[slot].load(Ordering::Relaxed));
            held.sort_unstable();
            assert_eq!(held[1], worker.0);
            assert_eq!(held[0], before.len().checked_sub(2).map_or(0, |at| before[at]));
        }
    }
}
