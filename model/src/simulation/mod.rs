//! The protocol in large: a thousand servers and a registry, on a virtual clock, with everything that goes wrong. Each
//! server runs the core's [`Lessee`](snowflake_core::lease::Lessee) and has a line from which it claims. All that is left
//! to chance comes from a seed.

pub(crate) mod chance;
pub mod contention;
mod registry;
mod report;
mod scenarios;
pub mod segments;
mod server;
mod world;

pub use report::Report;
pub use scenarios::{Scenario, broken, long, short};
pub use world::run;
