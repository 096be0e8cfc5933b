//! What an action makes of a state. What a server decides, the rules say; what the registry does is in [`registry`](super::registry).

use super::super::rules::Break;
use super::super::state::*;
use super::{Action, World};

impl World {
    /// The state after an action; `None` where it comes to nothing.
    pub(super) fn take(&self, before: &State, action: Action) -> Option<State> {
        let mut state = *before;
        match action {
            Action::Lease { server, worker, now } => {
                let record = state.registry[worker as usize];
                let begins = state.namespace.leases_from;
                let (request, grant) =
                    self.rules.lease(&state.servers[server], record, (begins, state.time), (worker, now));
                state.servers[server].task = match self.rules.is_broken(Break::UsedBeforeStored) {
                    true => self.stored(&state.servers[server], grant),
                    false => Task::Waiting(grant, request),
                };
                state.network.send(request);
            }
            Action::Look { server } => self.look(&mut state, server),
            Action::StoreAgain { server, now } => {
                let (worker, held) = self.held(&state.servers[server])?;
                let begins = state.namespace.leases_from;
                let (request, grant) = self.rules.lease(&state.servers[server], held, (begins, 0), (worker, now));
                state.servers[server].task = Task::Waiting(grant, request);
                state.network.send(request);
            }
            Action::Deliver { request, again } => self.deliver(&mut state, request, again),
            Action::Lose { request } => self.lose(&mut state, request),
            Action::Forget { server } => state.servers[server].task = Task::Idle,
            Action::Install { server } => {
                let server = &mut state.servers[server];
                let Task::Installing(plan, step) = server.task else { return None };
                self.rules.install(server, &plan, step, self.budget.rewinds > 0 || self.remembers);
                let next = self.rules.next_step(&plan, step + 1);
                server.task = next.map_or(Task::Idle, |next| Task::Installing(plan, next));
                if next.is_none() && self.restores {
                    server.kept = Some(plan.grant);
                }
            }
            Action::Claim { server, now, watches } => {
                let server = &mut state.servers[server];
                server.last = self.rules.claim(server, now)?;
                if self.reserves {
                    server.reserved = server.reserved.max(self.rules.tick_of(server.last) + 1);
                }
                let claimed = Watched { worker: server.worker?, position: server.last, by: server.token };
                let is_same =
                    |watched: Watched| (watched.worker, watched.position) == (claimed.worker, claimed.position);
                state.is_claimed_twice = state.watched.is_some_and(is_same);
                if watches {
                    state.watched = Some(claimed);
                }
            }
            Action::Resume { server } => self.rules.resume(&mut state.servers[server]),
            Action::Crash { server, reserved } => {
                state.left.crashes -= 1;
                let server = &mut state.servers[server];
                *server = Server { reserved, ..Self::down(server, Born::AfterCrash) };
            }
            Action::SessionCrash { server, reserved } => {
                state.left.session_crashes -= 1;
                let server = &mut state.servers[server];
                (server.born, server.reserved) = (Born::AfterCrash, reserved);
                let kept = server.kept;
                *server = Server { kept, ..self.started(server, server.token, false) };
            }
            Action::Restore { server } => {
                let server = &mut state.servers[server];
                server.task = self.stored(server, server.kept?);
            }
            Action::Start { server } => {
                state.runs += 1;
                state.servers[server] = self.started(&state.servers[server], state.runs, true);
            }
            Action::CopyDirectory { server, to, reserved } => {
                state.left.copies -= 1;
                state.servers[to] = Server { reserved, ..Self::down(&state.servers[server], Born::Copied) };
                let copied = &mut state.servers[server];
                copied.reserved = copied.reserved.max(reserved);
            }
            Action::Fork { server, to } => {
                state.left.forks -= 1;
                state.servers[to] = Server { born: Born::Copied, ..state.servers[server] };
            }
            Action::Stop { server } => {
                state.left.stops -= 1;
                self.close(&mut state, server);
                let server = &mut state.servers[server];
                if self.rules.is_broken(Break::NotClosed) {
                    server.phase = Phase::Stopping;
                } else {
                    // The reservation is given back, too.
                    let reserved = if server.is_raised && self.reserves { self.used(server) } else { server.reserved };
                    *server = Server { reserved, ..Self::down(server, Born::AfterStop) };
                }
            }
            Action::Close { server } => {
                state.left.closings -= 1;
                self.close(&mut state, server);
            }
            Action::HandBack { server, worker } => {
                state.left.hand_backs -= 1;
                let record = state.registry[worker as usize];
                let request = self.rules.give_back(&state.servers[server], record, worker)?;
                state.network.send(request);
            }
            Action::Rewind { server, to } => {
                state.left.rewinds -= 1;
                let server = &mut state.servers[server];
                self.rules.lower(server, to);
                // Who does that has made sure that the server's own IDs from there on are not kept.
                let first = self.rules.first_position(to);
                state.watched = state.watched.filter(|watched| watched.by != server.token || watched.position < first);
            }
            Action::Shorten { server, worker, to } => {
                state.left.shortenings -= 1;
                let record = state.registry[worker as usize];
                let request = self.rules.shorten(&state.servers[server], record, worker, to)?;
                state.network.send(request);
                // Who does that has made sure that the IDs from there on are not kept.
                let first = self.rules.first_position(self.rules.first_tick_from(request.new.until));
                let is_kept = |watched: &Watched| {
                    (watched.by, watched.worker) != (record.owner, worker) || watched.position < first
                };
                state.watched = state.watched.filter(is_kept);
            }
            Action::Wipe => {
                state.left.wipes -= 1;
                state.registry = [Record::default(); MAX_WORKERS];
                state.namespace = match self.shows {
                    true => Namespace { life: 1, leases_from: 0, is_elsewhere: true },
                    false => Namespace::default(),
                };
                if self.rules.is_broken(Break::NamespaceUnchecked) {
                    // What expects that there is no record finds none.
                    state.network.retain(|request| request.expected == LOST);
                } else {
                    state.network = Network::default();
                }
                for server in &mut state.servers {
                    if let Task::Waiting(_, sent) = server.task
                        && state.network.binary_search(&sent).is_err()
                    {
                        server.task = Task::Idle;
                    }
                }
            }
            Action::Sync => self.sync(&mut state),
            Action::ReadBack { server } => {
                let server = &mut state.servers[server];
                let Task::Unconfirmed(grant) = server.task else { return None };
                server.task = self.stored(server, grant);
            }
            Action::Failover => self.fail_over(&mut state),
        }
        Some(state)
    }

    /// Closes the line and gives back the worker beside it, as far as the registry has it under this token.
    fn close(&self, state: &mut State, at: usize) {
        let is_skipped = self.rules.is_broken(Break::NotClosed);
        if !is_skipped {
            self.rules.close(&mut state.servers[at]);
        }
        let server = state.servers[at];
        if let Some(worker) = server.worker
            && let Some(request) = self.rules.give_back(&server, state.registry[worker as usize], worker)
        {
            state.network.send(request);
        }
        state.servers[at].task = Task::Idle;
    }
}
