//! Connections for all registries: no thread of their own, one deadline for all that a call does, and an end as soon as the caller wants
//! to stop.

mod allowance;
mod confirm;
mod fault;
mod limit;
mod stream;
mod tls;
mod turns;
mod watched;

pub(crate) use allowance::Allowance;
pub(crate) use confirm::confirmed;
pub(crate) use fault::Fault;
pub(crate) use stream::{Connection, Stream};
pub(crate) use tls::Tls;
pub(crate) use turns::{Protocol, Turns, settle};
pub(crate) use watched::{Watch, Watched};
