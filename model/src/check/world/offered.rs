//! Which actions there are in a state: all that could happen next. What is left out here is never checked, so each condition follows from
//! a rule, or from how much there is of everything.

use super::super::rules::Break;
use super::super::state::*;
use super::{Action, World};

impl World {
    /// Adds the actions that a state has to these.
    pub(super) fn offer(&self, state: &State, actions: &mut Vec<Action>) {
        if state.is_claimed_twice {
            return;
        }
        let has_room = state.network.len() < self.in_flight;
        for request in 0..state.network.len() {
            actions.push(Action::Deliver { request, again: false });
            actions.push(Action::Lose { request });
            if state.left.duplicates > 0 {
                actions.push(Action::Deliver { request, again: true });
            }
        }
        let unborn = state.servers.iter().position(|server| server.phase == Phase::Unborn);
        for (i, server) in state.servers.iter().enumerate() {
            let is_running = matches!(server.phase, Phase::Up | Phase::Stopping);
            if server.phase == Phase::Down {
                actions.push(Action::Start { server: i });
            }
            if is_running && server.worker.is_some() && server.is_raised {
                let mut before = None;
                for now in self.rules.tick_of(server.last)..=self.rules.first_tick_from(self.end) {
                    let claim = self.rules.claim(server, now);
                    if claim.is_some() && claim != before {
                        actions.push(Action::Claim { server: i, now, watches: false });
                        if state.watched.is_none() {
                            actions.push(Action::Claim { server: i, now, watches: true });
                        }
                    }
                    before = claim;
                }
            }
            if is_running && state.left.crashes > 0 {
                actions.extend(self.reservations(server).map(|reserved| Action::Crash { server: i, reserved }));
            }
            if let (Some(to), true, true) = (unborn, state.left.copies > 0, server.phase != Phase::Unborn) {
                for reserved in 0..=*self.reservations(server).end() {
                    actions.push(Action::CopyDirectory { server: i, to, reserved });
                }
            }
            if server.phase != Phase::Up {
                continue;
            }
            if let (Some(to), true) = (unborn, state.left.forks > 0) {
                actions.push(Action::Fork { server: i, to });
            }
            if !server.is_raised {
                actions.push(Action::Resume { server: i });
            }
            if state.left.session_crashes > 0 {
                actions.extend(self.reservations(server).map(|reserved| Action::SessionCrash { server: i, reserved }));
            }
            if state.left.stops > 0 && has_room {
                actions.push(Action::Stop { server: i });
            }
            if state.left.closings > 0 && has_room && server.worker.is_some() && server.closed.is_none() {
                actions.push(Action::Close { server: i });
            }
            // The lock for transitions is held while a grant is installed, and while the line is lowered.
            if state.left.rewinds > 0
                && !matches!(server.task, Task::Installing(..))
                && let Some(lowest) = self.rules.lowest_tick(server)
            {
                for to in lowest..=self.rules.tick_of(server.last) {
                    actions.push(Action::Rewind { server: i, to });
                }
            }
            let is_here = !self.is_elsewhere(state);
            let knows = !self.remembers || server.known == state.namespace.life && server.known != 0 && is_here;
            if server.task == Task::Idle && !knows {
                actions.push(Action::Look { server: i });
            }
            if state.left.shortenings > 0 && has_room && server.task == Task::Idle {
                for worker in 0..self.workers as Worker {
                    let record = state.registry[worker as usize];
                    let is_up = |server: &Server| server.phase == Phase::Up && server.token == record.owner;
                    let is_used = state.servers.iter().any(is_up);
                    if !is_used || record.owner != 0 && self.rules.is_broken(Break::ShortenedWhileUsed) {
                        for to in self.start..record.until {
                            actions.push(Action::Shorten { server: i, worker, to });
                        }
                    }
                }
            }
            if server.task == Task::Idle && server.kept.is_some() && server.end.is_none() {
                actions.push(Action::Restore { server: i });
            }
            match server.task {
                Task::Idle if has_room && knows => {
                    if self.remembers
                        && let Some((worker, held)) = self.held(server)
                        && state.registry[worker as usize] == Record::default()
                        && (held.until > state.time || self.rules.is_broken(Break::StoredWhenOver))
                    {
                        for now in self.nows_from(state, server, (worker, held)) {
                            actions.push(Action::StoreAgain { server: i, now });
                        }
                    }
                    for worker in 0..self.workers as Worker {
                        for now in self.nows(state, server, worker) {
                            actions.push(Action::Lease { server: i, worker, now });
                        }
                        let record = state.registry[worker as usize];
                        let is_stray = server.worker != Some(worker) || self.rules.is_broken(Break::HandedBackInUse);
                        if state.left.hand_backs > 0 && is_stray && record.owner == server.token {
                            actions.push(Action::HandBack { server: i, worker });
                        }
                    }
                }
                Task::Idle => {}
                Task::Waiting(..) => actions.push(Action::Forget { server: i }),
                Task::Unconfirmed(_) => {
                    actions.push(Action::Forget { server: i });
                    if self.rules.is_broken(Break::ReadCounts) {
                        actions.push(Action::ReadBack { server: i });
                    }
                }
                Task::Installing(..) => {
                    actions.push(Action::Install { server: i });
                    actions.push(Action::Forget { server: i });
                }
            }
        }
        if state.left.wipes > 0 {
            actions.push(Action::Wipe);
        }
        if self.is_lagging() && state.registry != state.durable {
            if state.left.failovers > 0 {
                actions.push(Action::Failover);
            }
            actions.push(Action::Sync);
        }
    }
}
