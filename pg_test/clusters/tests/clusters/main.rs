//! Clusters that people run. One program, since most of its tests wait most of the time: several run at once.

mod active_active;
mod patroni;
mod pgbouncer;
mod streaming;
