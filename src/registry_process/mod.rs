//! The one process that talks to the registry, for leases of worker IDs and for ranges of segments ([`process`]); and what sessions have to
//! do with it: they look at nothing but shared memory ([`lease`]), wake it ([`wake()`]), or, where somebody asks for a list, read the
//! registry themselves ([`listing`]).

mod connection;
mod fetch;
mod identity;
mod incarnation;
pub mod lease;
pub mod listing;
mod memory;
mod process;
mod report;
mod resolver;
mod wake;

pub use identity::host_name;
pub use wake::wake;

use crate::settings;

/// Draws the token of this run, and registers the process. Called while the library is preloaded.
pub fn init() {
    if settings::registry::is_set() {
        identity::init();
        process::init();
    }
}
