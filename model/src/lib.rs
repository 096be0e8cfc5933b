//! The protocols of `snowflake_core::lease` and `snowflake_core::segment`, attacked from two sides. Both drive the functions that
//! the extension calls, and have no rule of their own.
//!
//! * [`check`]: two or three servers and some instants, in every order of events that there can be. Each rule can be
//!   broken by itself, and the check then finds how an ID repeats.
//! * [`segments`]: the same for plain numbers.
//! * [`simulation`]: a thousand servers on a virtual clock, for a day.

pub mod check;
pub mod segments;
pub mod simulation;
