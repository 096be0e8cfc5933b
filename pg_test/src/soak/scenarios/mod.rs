//! Histories that do not fit the random storm of faults: each has servers of its own, and repeats one thing that operators do or that happens to
//! them, with what may happen beside it by the seed. The same checker judges the record.

mod hosted;
mod registries;
mod servers;
mod stage;
mod world;

use super::Wanted;
use crate::registries::Kind;
use std::path::PathBuf;

/// A history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// Replicas of Redis are promoted, in step or not.
    Replicas,
    /// A registry in PostgreSQL fails over to an asynchronous standby.
    Failover,
    /// Members of etcd are replaced one by one.
    Members,
    /// The URL is changed by a reload.
    Url,
    /// A namespace moves from one kind of registry to another.
    Switch,
    /// Two namespaces on one registry, and a server that moves between them.
    Namespaces,
    /// A server goes back to a point in time before its first number.
    Pitr,
    /// CREATE DATABASE ... TEMPLATE.
    Template,
    /// Tags end while three servers hold ranges.
    Ends,
    /// More tags than `max_segments`.
    Places,
    /// A standby is promoted, and the old primary comes back.
    Promoted,
    /// The extension in SQL: cancels, ends of sessions and of servers, clocks, promotions, a record that is set back.
    Sql,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Replicas,
        Self::Failover,
        Self::Members,
        Self::Url,
        Self::Switch,
        Self::Namespaces,
        Self::Pitr,
        Self::Template,
        Self::Ends,
        Self::Places,
        Self::Promoted,
        Self::Sql,
    ];

    /// As `SCENARIO=` names it.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Where its records are.
    pub fn records(self, wanted: &Wanted) -> Vec<PathBuf> {
        match self {
            Self::Namespaces => ["first", "second"].map(|name| wanted.record.join(name)).into(),
            _ => vec![wanted.record.clone()],
        }
    }
}

/// Plays a scenario, and writes its record. Where the scenario does not say which registry there is, it is the wanted one, or PostgreSQL.
///
/// # Panics
/// Where a server does not survive it.
pub fn run_scenario(scenario: Scenario, wanted: &Wanted) {
    let kind = wanted.registry.unwrap_or(Kind::Postgres);
    match scenario {
        Scenario::Replicas => registries::fails_over(Kind::Redis, wanted),
        Scenario::Failover => registries::fails_over(Kind::Postgres, wanted),
        Scenario::Members => registries::members_are_replaced(wanted),
        Scenario::Url => registries::the_url_is_changed(kind, wanted),
        Scenario::Switch => registries::the_registry_is_switched(wanted),
        Scenario::Namespaces => servers::a_server_moves_between_namespaces(kind, wanted),
        Scenario::Pitr => servers::a_server_goes_back_in_time(kind, wanted),
        Scenario::Template => servers::databases_are_copied(kind, wanted),
        Scenario::Ends => servers::tags_end(kind, wanted),
        Scenario::Places => servers::there_are_more_tags_than_places(kind, wanted),
        Scenario::Promoted => servers::an_old_primary_comes_back(kind, wanted),
        Scenario::Sql => hosted::a_storm(wanted),
    }
}
