//! Connections for all registries: no thread of their own, one deadline for all that a call does, and an end as soon as the caller wants
//! to stop.

mod allowance;
mod confirm;
mod deadline;
mod driver;
mod fault;
mod inspected;
mod stream;
mod tls;
mod turns;

pub(crate) use allowance::Allowance;
pub(crate) use confirm::confirmed;
pub(crate) use driver::Driver;
pub(crate) use fault::Fault;
pub(crate) use inspected::{Inspect, Inspected};
pub(crate) use stream::{Stream, Transport};
pub(crate) use tls::Tls;
pub(crate) use turns::{Protocol, Turns, settle};
