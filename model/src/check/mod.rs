//! An exhaustive check of the protocol. What keeps it small, and loses nothing:
//!
//! * *No clock.* A clock that can be set to anything can say anything whenever it is read. So what depends on it is any
//!   choice: how far a grant reaches, and which of the open positions a claim takes.
//! * *No choice of workers by rules.* Any server may ask for any worker at any time. What is safe then is safe with
//!   every rule for choosing.
//! * *Reading a record and sending the request are one step*, as the request then stays under way for as long as it
//!   likes. It may arrive late, after its sender is gone, twice, or never; and its answer may be lost.
//! * *A pause is no action*: who does nothing is paused. An outage of the registry is requests that are lost.
//! * *One ID is watched*, from any claim on, or none. So not all IDs need to be remembered.
//! * *All sessions of a server are one*, which has a copy of the highest end that was ever published in its run.
//! * *A request that cannot succeed any more is dropped* where versions are compared. Who waits for its answer might as
//!   well be told that it failed. So a request that is under way expects the record as it stands.
//! * *Of states that differ by nothing that matters, one is looked at*: see `normal`.
//!
//! An instant of the check is a microsecond, and its layouts have ticks of one or two of them. Positions, ticks and
//! records are those of the core.

mod explore;
mod normal;
mod rules;
mod run;
mod state;
mod suite;
#[cfg(test)]
mod tests;
mod world;

pub use run::{Manner, Outcome, run};
pub use suite::{Check, suite};
