//! Throw-away PostgreSQL clusters for tests: start, crash, reload, step the clock, and many sessions at once; and throw-away
//! [registries] of worker IDs.
//!
//! The PostgreSQL of the environment's `PG_CONFIG` is used, else the default of `scripts/pg-config`; pg_snowflake must
//! be installed there. As root, its programs run as user postgres, or as nobody where there is none. A cluster listens on a socket in its own directory
//! only, and is stopped and removed when its value is dropped.

pub mod certificates;
pub mod check;
pub mod clients;
mod cluster;
pub mod directories;
pub mod draws;
pub mod dump;
pub mod given;
pub mod history;
pub mod hosted;
pub mod hostile;
pub mod installations;
pub mod links;
pub mod load;
pub mod packages;
pub mod pgbouncer;
pub mod ports;
pub mod preloaded;
pub mod programs;
pub mod proxy;
pub mod query;
pub mod registries;
pub mod soak;
mod template;
pub mod waits;

pub use cluster::{Cluster, Options, Stop};
pub use programs::{Installation, run};
pub use query::{ids, value};

use std::time::Duration;

/// A number from the environment, for another or a longer form of a test; `None` where it is not set, or empty.
pub fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().filter(|text| !text.is_empty()).map(|text| text.parse().unwrap())
}

/// So many milliseconds.
pub fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// So many seconds.
pub fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
