//! What the registry does with requests, and what becomes of it: it takes or refuses them, says what is durable, fails over, is wiped,
//! and finds out by servers that it was. Each changes what the servers concerned wait for.

use super::super::rules::{Break, Compare};
use super::super::state::*;
use super::World;

impl World {
    fn accepts(&self, found: Record, expected: Record) -> bool {
        match self.rules.compare {
            Compare::Version if self.rules.is_broken(Break::NamespaceUnchecked) => {
                expected != LOST || found == Record::default()
            }
            Compare::Version => true,
            Compare::Record => found == expected,
            Compare::Owner => found.owner == expected.owner,
        }
    }

    pub(super) fn deliver(&self, state: &mut State, at: usize, again: bool) {
        let request = state.network[at];
        if again {
            state.left.duplicates -= 1;
        } else {
            state.network.remove(at);
        }
        let worker = request.worker as usize;
        let is_accepted = self.accepts(state.registry[worker], request.expected);
        if is_accepted {
            if self.remembers {
                self.note_time(state, request);
            }
            state.registry[worker] = request.new;
        }
        if is_accepted && self.rules.compare == Compare::Version {
            // All others expect the version before.
            state.network.retain(|other| other.worker != request.worker || other.expected == LOST);
            for server in &mut state.servers {
                let is_beaten =
                    |sent: &Request| sent.worker == request.worker && *sent != request && sent.expected != LOST;
                if matches!(&server.task, Task::Waiting(_, sent) if is_beaten(sent)) {
                    server.task = Task::Idle;
                }
            }
        }
        let is_lagging = self.is_lagging();
        let waiting = state.servers.iter_mut().find(|s| matches!(s.task, Task::Waiting(_, sent) if sent == request));
        if let Some(server) = waiting
            && let Task::Waiting(grant, _) = server.task
        {
            server.task = match is_accepted {
                true if is_lagging => Task::Unconfirmed(grant),
                true => self.stored(server, grant),
                false => Task::Idle,
            };
        }
    }

    /// Who waits for the answer gives up at once: what it can do until then, it can do afterwards, too.
    pub(super) fn lose(&self, state: &mut State, at: usize) {
        let lost = state.network.remove(at);
        for server in &mut state.servers {
            if matches!(server.task, Task::Waiting(_, sent) if sent == lost) {
                server.task = Task::Idle;
            }
        }
    }

    /// How late it is at least, and how far grants reach.
    fn note_time(&self, state: &mut State, request: Request) {
        let old = state.registry[request.worker as usize];
        if request.new.owner != 0 && request.new.owner != old.owner {
            // A right clock lets it do that when the grant is over, and when new leases are given at all.
            let ended = if old.owner == 0 { 0 } else { old.until };
            state.time = state.time.max(ended).max(state.namespace.leases_from);
        }
        state.highest = state.highest.max(request.new.until);
    }

    /// Looks at the namespace's record, and stores it where it is gone, or where nobody has noted that it was.
    pub(super) fn look(&self, state: &mut State, at: usize) {
        let known = state.servers[at].known;
        let before = state.namespace;
        let is_elsewhere = self.is_elsewhere(state);
        let has_forgotten =
            known != 0 && known != before.life && !self.rules.is_broken(Break::LossIgnored) || is_elsewhere;
        if before.life == 0 {
            state.lives += 1;
            state.namespace = Namespace { life: state.lives, ..Namespace::default() };
        }
        if is_elsewhere {
            state.namespace.is_elsewhere = false;
        }
        if has_forgotten && before.leases_from == 0 {
            state.namespace.leases_from = state.highest;
        }
        if state.namespace != before {
            self.drop_requests(state);
        }
        state.servers[at].known = state.namespace.life;
    }

    /// Whether a server sees that the registry is another one than that of which the namespace's record was confirmed.
    pub(super) fn is_elsewhere(&self, state: &State) -> bool {
        state.namespace.is_elsewhere && !self.rules.is_broken(Break::IdentityIgnored)
    }

    /// All that is under way expects another record of the namespace.
    fn drop_requests(&self, state: &mut State) {
        if self.rules.is_broken(Break::NamespaceUnchecked) {
            return;
        }
        state.network = Network::default();
        for server in &mut state.servers {
            if matches!(server.task, Task::Waiting(..)) {
                server.task = Task::Idle;
            }
        }
    }

    /// Whether what the registry shows may be lost by a failover.
    pub(super) fn is_lagging(&self) -> bool {
        self.budget.failovers > 0
    }

    /// What the registry shows is durable: it says so to those who wait for that.
    pub(super) fn sync(&self, state: &mut State) {
        state.durable = state.registry;
        for server in &mut state.servers {
            if let Task::Unconfirmed(grant) = server.task {
                server.task = self.stored(server, grant);
            }
        }
    }

    /// What is not durable is lost, and with it what was to be made of it.
    pub(super) fn fail_over(&self, state: &mut State) {
        state.left.failovers -= 1;
        let (registry, durable) = (state.registry, state.durable);
        let lost = |worker: Worker| registry[worker as usize] != durable[worker as usize];
        // The version that such a request expects is another record's from now on, or nobody's.
        let under_way = std::mem::take(&mut state.network);
        for &request in under_way.iter() {
            if !lost(request.worker) {
                state.network.send(request);
            } else if self.rules.is_broken(Break::VersionsAgain) {
                let again = Request { expected: LOST, ..request };
                for server in &mut state.servers {
                    if let Task::Waiting(_, sent) = &mut server.task
                        && *sent == request
                    {
                        *sent = again;
                    }
                }
                state.network.send(again);
            }
        }
        for server in &mut state.servers {
            let is_void = match server.task {
                Task::Unconfirmed(_) => true,
                Task::Waiting(_, sent) => state.network.binary_search(&sent).is_err(),
                Task::Idle | Task::Installing(..) => false,
            };
            if is_void {
                server.task = Task::Idle;
            }
        }
        state.registry = state.durable;
    }
}
