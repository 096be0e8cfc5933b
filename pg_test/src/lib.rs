//! Throw-away PostgreSQL clusters for tests: start, crash, reload, step the clock, and many sessions at once.
//!
//! The PostgreSQL of the environment's `PG_CONFIG` is used, else Debian's 15; pg_snowflake must be installed there. As
//! root, its programs run as user postgres. A cluster listens on a socket in its own directory only, and is stopped
//! and removed when its value is dropped.

pub mod check;
mod cluster;
pub mod load;
mod programs;
pub mod soak;

pub use cluster::{Cluster, Options, Stop, ids};
pub use programs::{Installation, kill, run};
