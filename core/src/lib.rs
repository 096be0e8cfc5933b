//! Snowflake IDs as plain arithmetic: what a [`Layout`] is, where the next ID stands on the [`Line`], and when a
//! claim must wait. No PostgreSQL, no unsafe code, no clock of its own: time comes in as an argument.
//!
//! * [`layout`]: how 63 bits are divided; an ID from its parts and back; the IDs that bound an instant
//! * [`notation`]: layouts by name, and as text such as `timestamp=41 worker=10 sequence=12`
//! * [`line`](mod@line): the one word of shared state, and claiming from it without a lock
//! * [`reservation`]: what must be durable before a claim
//! * [`clock`]: which time to believe when the clock leaps
//! * [`pieces`]: a range of time in pieces, for partitions
//! * [`text`]: IDs as text
//! * [`time`]: instants, and their one written form
//!
//! Read them in that order. A server has one line; a *position* on it is `tick << sequence bits | sequence`. The
//! worker is not part of it, and is put in when an ID is composed.

#![forbid(unsafe_code)]

pub mod clock;
pub mod layout;
pub mod line;
pub mod notation;
pub mod pieces;
mod record;
pub mod reservation;
pub mod text;
pub mod time;

pub use layout::{Field, Layout, LayoutError, NotAnId, OutOfRange, Parts, Position, Tick, WorkerBits, WorkerError};
pub use line::{Bounds, Claim, Line, Pace, Refusal, Window};
pub use time::UnixMicros;
