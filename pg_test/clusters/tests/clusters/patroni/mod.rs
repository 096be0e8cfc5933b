//! Clusters under Patroni, with a real etcd: whatever happens to the primary, no ID comes again, where each server has a
//! worker ID of its own.

mod configuration;
mod failovers;
