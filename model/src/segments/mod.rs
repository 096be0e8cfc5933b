//! An exhaustive check of segments. What keeps it small, and loses nothing:
//!
//! * *No clock, no rates.* A server may ask for the next range of any tag at any time, one number or two of them: what is safe
//!   then is safe with every rule for when and how many.
//! * *Reading a record and sending the request are one step*, as the request then stays under way for as long as it likes. It may
//!   arrive late, when nobody waits for it any more or its sender is gone, twice, or never.
//! * *All sessions of a server are one*: that they share the counter well is for loom to show, in `core/tests/loom.rs`. But a range
//!   is put in place in two steps, with claims in between.
//! * *The numbers that were taken are remembered*, as there are few.
//!
//! Records, ranges and what is written are those of the core.

mod explore;
mod rules;
mod state;
mod suite;
mod world;

pub use explore::run;
pub use suite::{Check, suite};
