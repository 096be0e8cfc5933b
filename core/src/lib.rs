//! Snowflake IDs: 64-bit numbers that are unique in a cluster and ordered by time. This crate has their arithmetic:
//! what a [`Layout`] is, where the next ID stands on the [`Line`], and when a claim must wait. It has no unsafe code
//! and reads no clock: time is an argument.
//!
//! ```
//! use snowflake_core::{Layout, Line, Micros, Policy, Reach, UnixMicros};
//!
//! let layout: Layout = "timestamp=41 worker=10 sequence=12".parse()?;
//! let line = Line::new(); // may lie in memory that processes share
//! line.switch_worker(&layout, layout.place_worker(None, Some(7))?);
//!
//! // What the settings allow, how far IDs are reserved, and what time it is.
//! let policy = Policy {
//!     max_burst: layout.ticks_in(Micros::from_millis(100)),
//!     max_lead: layout.ticks_in(Micros::from_secs(600)),
//!     spread: 1,
//! };
//! let now = UnixMicros::parse("2026-01-01T00:00:00Z").unwrap();
//! let reach = Reach { policy, limit: layout.last_tick(), now: layout.tick_at(now), gives_way: false };
//!
//! // What is open while the clock's tick lasts. A claim is one compare-and-swap then.
//! let open = reach.open_range(&layout);
//! let first = line.claim_in(&open, 1).unwrap();
//! let three = line.claim_in(&open, 3).unwrap();
//! assert_eq!((first.count, three.count), (1, 3));
//!
//! let id = layout.compose(three.first, three.worker);
//! assert_eq!(id, 264905529753628673);
//! assert!(id > layout.compose(first.first, first.worker));
//!
//! let parts = layout.decode(id)?;
//! assert_eq!((parts.timestamp, parts.worker, parts.sequence), (now, Some(7), 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A server has one line, which all its processes claim from. A *position* on it is `tick << sequence bits | sequence`.
//! The worker is not part of the position; it is put in when an ID is composed.
//!
//! The modules, in the order in which to read them:
//!
//! * [`time`]: instants and lengths of time, a type for each unit
//! * [`layout`]: how 63 bits are divided; an ID from its parts and back; the IDs of a range of time
//! * [`notation`]: layouts by name, and as text such as `timestamp=41 worker=10 sequence=12`
//! * [`line`](mod@line): the one word of shared state, and claiming from it without a lock
//! * [`reservation`]: what must be durable before a claim
//! * [`lease`]: workers that servers lease from a registry, each with a range of time
//! * [`segment`]: plain numbers by tag, of which a registry grants ranges to servers
//! * [`clock`]: which time to believe when the clock leaps
//! * [`counter`]: how fast a processor's counter runs
//! * [`pieces`]: a range of time in pieces, for partitions; in its [`upkeep`](pieces::upkeep), which are missing and which are old
//! * [`capacity`]: what a layout has room for, and whether that is enough
//! * [`statistics`]: how many different values a sample stands for
//! * [`inverse`]: which times a condition accepts that compares what is made of a time
//! * [`text`]: IDs as text
//! * [`quote`]: texts of callers, as messages quote them

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod calendar;
pub mod capacity;
pub mod clock;
pub mod counter;
pub mod inverse;
pub mod layout;
pub mod lease;
pub mod line;
pub mod notation;
pub mod pieces;
pub mod quote;
mod record;
pub mod reservation;
pub mod segment;
pub mod statistics;
mod sync;
pub mod text;
pub mod time;

pub use layout::{
    EncodeError, Field, FieldError, Layout, LayoutError, NotAnId, OutOfRange, Parts, Position, WorkerBits,
};
pub use line::{Claim, Line, OpenRange, Pace, Policy, Reach, Refusal};
pub use time::{Micros, MonotonicMicros, Tick, Ticks, UnixMicros};

/// Its examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
