//! Clusters that people run, of real software on the loopback, and what is written to them.
//!
//! A crate of its own, since these take minutes: `scripts/test-clusters` runs them, and `make test` does not. They use the PostgreSQL of
//! `PG_CONFIG`, version 17 or later.

pub mod load;
pub mod numbers;
pub mod patroni;
pub mod probes;
pub mod record;
