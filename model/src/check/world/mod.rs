//! The world that is checked: servers, the registry, and the network between them. Here is how much there is of everything, where it begins,
//! and what its parts share; what can happen is in [`action`], [`offered`] and [`taken`], what must be true in [`properties`].

mod action;
mod offered;
mod properties;
mod registry;
mod taken;

use super::rules::{Break, Rules};
use super::state::*;
use stateright::{Model, Property};

pub use action::Action;

/// The world: rules, and how much there is of everything.
#[derive(Clone, Debug)]
pub struct World {
    pub rules: Rules,
    pub servers: usize,
    pub workers: usize,
    /// The first instant that a clock can show. A new line gives up its first ticks at its first switch to a worker, so
    /// that grants which end there allow nothing.
    pub start: Instant,
    /// The last instant that a grant can end at.
    pub end: Instant,
    /// How many requests can be under way at once.
    pub in_flight: usize,
    /// Whether ticks are claimed below a durable reservation, to which a started server's line is raised. Without, a
    /// started server knows nothing at all.
    pub reserves: bool,
    /// Whether a grant outlives a session's crash in the postmaster's memory. Without, it is found again by its token.
    pub restores: bool,
    /// Whether servers remember the namespace, so that they notice when the registry has forgotten it. Then those of
    /// whom a worker is taken know by their clocks that their grants are over: clocks are right there.
    pub remembers: bool,
    /// Whether all of them have seen the namespace when it begins.
    pub is_known: bool,
    /// Whether the registry shows what it is: what forgets goes back to a backup with the namespace's record, and is another one then.
    pub shows: bool,
    pub budget: Budget,
}

pub const REPEATED: &str = "no ID twice";

impl World {
    /// Up to where a server can have reserved. It may do so at any time once its line is raised, so that only what it
    /// has claimed says how far it must have: how far it has is open until its memory is gone, or its disk is copied.
    fn reservations(&self, server: &Server) -> std::ops::RangeInclusive<Tick> {
        let is_open = self.reserves && server.is_raised && server.phase != Phase::Down;
        server.reserved..=if is_open {
            self.rules.first_tick_from(self.end).max(server.reserved)
        } else {
            server.reserved
        }
    }

    /// A server whose memory is new, with the token of this run.
    fn started(&self, server: &Server, token: Token, is_first: bool) -> Server {
        Server {
            phase: Phase::Up,
            token,
            is_raised: !self.reserves,
            is_resumed: is_first || !self.reserves,
            ..Self::down(server, server.born)
        }
    }

    /// What is left of a server when its memory is gone.
    fn down(server: &Server, born: Born) -> Server {
        let Server { system, reserved, known, .. } = *server;
        Server { phase: Phase::Down, born, system, reserved, known, ..Server::default() }
    }

    /// The tick after the last one used, while the line is closed as well.
    fn used(&self, server: &Server) -> Tick {
        self.rules.tick_of(server.closed.unwrap_or(server.last)) + 1
    }

    /// The readings of the clock with which a request for a worker differs.
    fn nows(&self, state: &State, server: &Server, worker: Worker) -> impl Iterator<Item = Instant> {
        self.nows_from(state, server, (worker, state.registry[worker as usize]))
    }

    /// The same, where the record to start from is this.
    fn nows_from(
        &self,
        state: &State,
        server: &Server,
        (worker, record): (Worker, Record),
    ) -> impl Iterator<Item = Instant> {
        let mut last = None;
        let times = (state.namespace.leases_from, state.time);
        let grant = |now| self.rules.lease(server, record, times, (worker, now)).1;
        let grants = (self.start..self.end).map(|now| (now, grant(now)));
        let differing: Vec<_> = grants
            .filter(|(_, grant)| grant.until <= self.end && last.replace(grant.until) != Some(grant.until))
            .map(|(now, _)| now)
            .collect();
        differing.into_iter()
    }

    /// A grant that the registry has stored, on its way to the sessions.
    fn stored(&self, server: &Server, grant: Grant) -> Task {
        let plan = self.rules.plan(server, grant);
        plan.map_or(Task::Idle, |plan| Task::Installing(plan, self.rules.next_step(&plan, 0).unwrap_or(3)))
    }

    /// The record of the worker in use, as it was confirmed. The process that has closed the line knows of none.
    fn held(&self, server: &Server) -> Option<(Worker, Record)> {
        if server.closed.is_some() && !self.rules.is_broken(Break::StoredWhenGivenBack) {
            return None;
        }
        let record = Record { owner: server.token, from: server.from?, until: server.end?, system: 0 };
        server.worker.map(|worker| (worker, record))
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut servers = [Server::default(); MAX_SERVERS];
        for (i, server) in servers.iter_mut().enumerate().take(self.servers) {
            let new = Server { system: i as u8 + 1, known: u8::from(self.is_known), ..Server::default() };
            *server = self.started(&new, i as Token + 1, true);
        }
        let state = State {
            registry: [Record::default(); MAX_WORKERS],
            namespace: Namespace { life: u8::from(self.is_known || self.shows), ..Namespace::default() },
            lives: u8::from(self.is_known || self.shows),
            highest: 0,
            time: 0,
            durable: [Record::default(); MAX_WORKERS],
            servers,
            network: Network::default(),
            runs: self.servers as Token,
            left: self.budget,
            watched: None,
            is_claimed_twice: false,
        };
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.offer(state, actions);
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        self.take(before, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.expected()
    }
}
