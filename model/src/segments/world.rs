//! What can happen.

use super::rules::{Break, FIRST, Rules};
use super::state::{Budget, Held, Phase, Range, Request, SERVERS, Server, State, TAGS, TagRecord, TagState, Task};
use std::fmt;

#[derive(Clone, Debug)]
pub struct World {
    pub rules: Rules,
    pub servers: usize,
    pub tags: usize,
    /// How many requests may be under way at once.
    pub in_flight: usize,
    /// Whether tags are there at the beginning.
    pub is_created: bool,
    pub budget: Budget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A server reads the record of a tag, and asks for so many numbers.
    Ask {
        server: usize,
        tag: usize,
        size: u8,
    },
    /// A server reads the record of a tag, and tells what is not in it.
    Restore {
        server: usize,
        tag: usize,
    },
    Create {
        server: usize,
        tag: usize,
    },
    Drop {
        server: usize,
        tag: usize,
    },
    Deliver {
        request: usize,
        again: bool,
    },
    Lose {
        request: usize,
    },
    /// A server waits no longer.
    GiveUp {
        server: usize,
    },
    /// The same, and it takes what it reads for the answer. That breaks a rule.
    ReadBack {
        server: usize,
    },
    /// Nothing is left of the range in use: one step of putting the next one in place.
    Move {
        server: usize,
        tag: usize,
    },
    Claim {
        server: usize,
        tag: usize,
    },
    Crash {
        server: usize,
    },
    Start {
        server: usize,
    },
    Copy {
        from: usize,
        to: usize,
    },
    Fork {
        from: usize,
        to: usize,
    },
    Stop {
        server: usize,
    },
    Wipe,
    /// Somebody creates a tag above all that was used.
    Repair {
        tag: usize,
    },
    /// Somebody creates a tag at its first number.
    Careless {
        tag: usize,
    },
    Backup,
    Rollback,
    /// All that the registry shows is durable.
    Sync,
    Failover,
}

impl World {
    pub fn start(&self) -> State {
        let mut state = State { life: 1, left: self.budget, highest: [FIRST; TAGS], ..State::default() };
        if self.is_created {
            for tag in 0..self.tags {
                state.registry[tag] = TagRecord { version: 1, next: FIRST, state: TagState::Live };
            }
            state.versions = 1;
        }
        if self.budget.failovers > 0 {
            state.durable = state.registry;
        }
        for server in 0..self.servers {
            state.runs += 1;
            state.servers[server] = Server { phase: Phase::Up, run: state.runs, ..Server::default() };
        }
        state
    }

    pub fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let left = &state.left;
        let has_room = state.network.len() < self.in_flight && !state.network.is_full();
        for server in 0..SERVERS {
            let it = &state.servers[server];
            for tag in 0..self.tags {
                let held = &it.held[tag];
                if it.phase == Phase::Up && it.task == Task::Idle && has_room {
                    if held.after.is_none() {
                        actions.extend([1, 2].map(|size| Action::Ask { server, tag, size }));
                    }
                    if self.budget.rollbacks > 0 || self.budget.recreations > left.wipes {
                        actions.push(Action::Restore { server, tag });
                    }
                    let record = &state.registry[tag];
                    // After a wipe, only somebody who has looked creates.
                    let is_new = !self.is_created && record.version == 0 && left.wipes == self.budget.wipes;
                    let is_again = left.recreations > 0 && self.is_wiped_and_told(state, tag);
                    if record.state == TagState::Dropped || is_new || is_again {
                        actions.push(Action::Create { server, tag });
                    }
                    if left.drops > 0 {
                        actions.push(Action::Drop { server, tag });
                    }
                }
                if it.phase != Phase::Down {
                    if held.is_moving || held.current.first >= held.current.end && held.after.is_some() {
                        actions.push(Action::Move { server, tag });
                    }
                    if held.current.first < held.current.end {
                        actions.push(Action::Claim { server, tag });
                    }
                }
            }
            if matches!(it.task, Task::Waiting(_)) {
                actions.push(Action::GiveUp { server });
                if self.rules.is_broken(Break::ReadCounts) {
                    actions.push(Action::ReadBack { server });
                }
            }
            if it.phase == Phase::Up {
                if left.crashes > 0 {
                    actions.push(Action::Crash { server });
                }
                // One that has stopped cannot tell what it was granted: its numbers are in tables.
                let has_told = self.budget.recreations == 0
                    || left.wipes < self.budget.wipes && (0..self.tags).all(|tag| self.has_told(state, it, tag));
                if left.stops > 0 && has_told && state.network.len() + self.tags <= super::state::MAX_IN_FLIGHT {
                    actions.push(Action::Stop { server });
                }
            }
            if it.phase == Phase::Down && server < self.servers {
                actions.push(Action::Start { server });
            }
            for to in (0..SERVERS).filter(|&to| to != server && state.servers[to].phase == Phase::Down) {
                if it.phase != Phase::Down && left.copies > 0 {
                    actions.push(Action::Copy { from: server, to });
                }
                if it.phase != Phase::Down && left.forks > 0 {
                    actions.push(Action::Fork { from: server, to });
                }
            }
        }
        for request in 0..state.network.len() {
            actions.push(Action::Deliver { request, again: false });
            if left.duplicates > 0 {
                actions.push(Action::Deliver { request, again: true });
            }
            actions.push(Action::Lose { request });
        }
        if left.wipes > 0 {
            actions.push(Action::Wipe);
        }
        for tag in (0..self.tags).filter(|&tag| state.registry[tag].version == 0 && left.wipes < self.budget.wipes) {
            if left.repairs > 0 {
                actions.push(Action::Repair { tag });
            }
            if left.careless > 0 {
                actions.push(Action::Careless { tag });
            }
        }
        if left.rollbacks > 0 {
            actions.push(if state.backup.is_none() { Action::Backup } else { Action::Rollback });
        }
        if self.budget.failovers > 0 && state.durable != state.registry {
            actions.push(Action::Sync);
            if left.failovers > 0 {
                actions.push(Action::Failover);
            }
        }
    }

    /// Whether the registry was wiped, and knows by now of all that the servers were granted.
    fn is_wiped_and_told(&self, state: &State, tag: usize) -> bool {
        let record = state.registry[tag];
        let is_gone = record.version == 0 || record.state == TagState::Forgotten;
        let is_wiped = state.left.wipes < self.budget.wipes;
        is_gone && is_wiped && state.servers.iter().all(|server| self.has_told(state, server, tag))
    }

    fn has_told(&self, state: &State, server: &Server, tag: usize) -> bool {
        self.rules.restore(state.registry[tag], &server.held[tag]).is_none()
    }

    pub fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = *state;
        self.act(&mut next, action)?;
        self.forget_requests(&mut next);
        Some(next)
    }

    fn act(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Ask { server, tag, size } => {
                let request = self.rules.grant(state.registry[tag], size, &state.servers[server].held[tag])?;
                self.send(state, server, tag, request, true);
            }
            Action::Restore { server, tag } => {
                let request = self.rules.restore(state.registry[tag], &state.servers[server].held[tag])?;
                self.send(state, server, tag, request, true);
            }
            Action::Create { server, tag } => {
                if self.is_wiped_and_told(state, tag) {
                    state.left.recreations -= 1;
                }
                let request = self.rules.create(state.registry[tag], FIRST, &state.servers[server].held[tag])?;
                self.send(state, server, tag, request, true);
            }
            Action::Drop { server, tag } => {
                state.left.drops -= 1;
                let request = self.rules.drop_tag(state.registry[tag], &state.servers[server].held[tag])?;
                self.send(state, server, tag, request, true);
            }
            Action::Deliver { request, again } => {
                let sent = state.network[request];
                if again {
                    state.left.duplicates -= 1;
                } else {
                    state.network.remove(request);
                }
                self.deliver(state, &sent);
            }
            Action::Lose { request } => drop(state.network.remove(request)),
            Action::GiveUp { server } => state.servers[server].task = Task::Idle,
            Action::ReadBack { server } => {
                let Task::Waiting(sent) = state.servers[server].task else { return None };
                (state.registry[usize::from(sent.tag)].next == sent.new.next).then_some(())?;
                self.confirm(state, server, &sent);
            }
            Action::Move { server, tag } => self.advance(&mut state.servers[server].held[tag])?,
            Action::Claim { server, tag } => {
                let current = &mut state.servers[server].held[tag].current;
                let bit = 1 << current.first;
                current.first += 1;
                state.is_taken_twice |= state.taken[tag] & bit != 0;
                state.taken[tag] |= bit;
            }
            Action::Crash { server } => {
                state.left.crashes -= 1;
                self.end(state, server);
            }
            Action::Start { server } => self.begin(state, server),
            Action::Copy { from, to } => {
                state.left.copies -= 1;
                if self.rules.is_broken(Break::Persisted) {
                    state.servers[to].held = state.servers[from].held;
                }
                self.begin(state, to);
            }
            Action::Fork { from, to } => {
                state.left.forks -= 1;
                state.servers[to] = state.servers[from];
            }
            Action::Stop { server } => self.stop(state, server),
            Action::Wipe => {
                state.left.wipes -= 1;
                (state.registry, state.durable, state.backup) = Default::default();
                state.life += 1;
            }
            Action::Repair { tag } => {
                state.left.repairs -= 1;
                self.store(state, tag, TagRecord { version: 0, next: state.highest[tag], state: TagState::Live });
            }
            Action::Careless { tag } => {
                state.left.careless -= 1;
                self.store(state, tag, TagRecord { version: 0, next: FIRST, state: TagState::Live });
            }
            Action::Backup => state.backup = Some(state.registry),
            Action::Rollback => {
                state.left.rollbacks -= 1;
                state.registry = state.backup.take()?;
            }
            Action::Sync => {
                state.durable = state.registry;
                for server in 0..SERVERS {
                    if let Task::Unconfirmed(sent) = state.servers[server].task {
                        self.confirm(state, server, &sent);
                    }
                }
            }
            Action::Failover => {
                state.left.failovers -= 1;
                state.registry = state.durable;
                if self.rules.is_broken(Break::VersionsAgain) {
                    state.versions = state.registry.iter().map(|record| record.version).max().unwrap_or(0);
                }
                for server in &mut state.servers {
                    if matches!(server.task, Task::Unconfirmed(_)) {
                        server.task = Task::Idle;
                    }
                }
            }
        }
        Some(())
    }

    fn send(&self, state: &mut State, server: usize, tag: usize, request: Request, waits: bool) {
        let run = state.servers[server].run;
        let request = Request { tag: tag as u8, life: state.life, server: server as u8, run, ..request };
        if waits {
            state.servers[server].task = Task::Waiting(request);
        }
        if self.rules.is_broken(Break::UsedBeforeStored) && request.range.first < request.range.end {
            self.confirm(state, server, &request);
        }
        state.network.send(request);
    }

    fn store(&self, state: &mut State, tag: usize, record: TagRecord) {
        state.versions += 1;
        state.registry[tag] = TagRecord { version: state.versions, ..record };
    }

    fn deliver(&self, state: &mut State, sent: &Request) {
        let tag = usize::from(sent.tag);
        let is_done = self.rules.is_expected(sent, state.registry[tag], state.life);
        if is_done {
            self.store(state, tag, sent.new);
        }
        let server = usize::from(sent.server);
        let it = &mut state.servers[server];
        match it.task {
            Task::Waiting(waited) if waited == *sent && !is_done => it.task = Task::Idle,
            Task::Waiting(waited) if waited == *sent && self.budget.failovers > 0 => {
                it.task = Task::Unconfirmed(*sent);
            }
            Task::Waiting(waited) if waited == *sent => self.confirm(state, server, sent),
            Task::Waiting(waited) if is_done && it.run == sent.run && self.rules.is_broken(Break::AnswerOfAnother) => {
                self.confirm(state, server, &waited);
            }
            _ => {}
        }
    }

    /// The registry has said that it is stored.
    fn confirm(&self, state: &mut State, server: usize, sent: &Request) {
        let tag = usize::from(sent.tag);
        state.highest[tag] = state.highest[tag].max(sent.range.end);
        let it = &mut state.servers[server];
        it.task = Task::Idle;
        if sent.range.first < sent.range.end && it.held[tag].after.is_none() {
            it.held[tag].after = Some(sent.range);
        }
    }

    /// One step of putting the next range in place.
    fn advance(&self, held: &mut Held) -> Option<()> {
        let after = held.after?;
        match (held.is_moving, self.rules.is_broken(Break::EndFirst)) {
            (false, false) => held.current.first = after.first,
            (false, true) => held.current.end = after.end,
            (true, false) => held.current.end = after.end,
            (true, true) => held.current.first = held.current.first.max(after.first),
        }
        held.is_moving = !held.is_moving;
        if !held.is_moving {
            held.after = None;
        }
        Some(())
    }

    /// A run is over.
    fn end(&self, state: &mut State, server: usize) {
        let held = state.servers[server].held;
        let kept = if self.rules.is_broken(Break::Persisted) { held } else { Default::default() };
        state.servers[server] = Server { held: kept, ..Server::default() };
    }

    fn begin(&self, state: &mut State, server: usize) {
        state.runs += 1;
        let held = state.servers[server].held;
        state.servers[server] = Server { phase: Phase::Up, run: state.runs, held, task: Task::Idle };
    }

    fn stop(&self, state: &mut State, server: usize) {
        state.left.stops -= 1;
        for tag in 0..self.tags {
            let held = &mut state.servers[server].held[tag];
            if held.is_moving {
                // Under the lock, there is no half of it.
                (held.current, held.after, held.is_moving) = (held.after.unwrap_or_default(), None, false);
            }
            let held = *held;
            if let Some(request) = self.rules.give_back(state.registry[tag], &held) {
                self.send(state, server, tag, request, false);
            }
        }
        if self.rules.is_broken(Break::NotClosed) {
            state.servers[server].phase = Phase::Stopping;
        } else {
            self.end(state, server);
            state.servers[server].held = Default::default();
        }
    }

    /// A request that cannot succeed any more is as good as lost.
    fn forget_requests(&self, state: &mut State) {
        if self.rules.broken.is_some() {
            return;
        }
        let (registry, durable, life) = (state.registry, state.durable, state.life);
        let may_fail_over = self.budget.failovers > 0;
        let may_come = |request: &Request| {
            let tag = usize::from(request.tag);
            let is_expected = |record: TagRecord| request.expected.version == record.version;
            let is_of_backup = state.backup.is_some_and(|backup| is_expected(backup[tag]));
            request.life == life
                && (is_expected(registry[tag]) || may_fail_over && is_expected(durable[tag]) || is_of_backup)
        };
        let mut network = state.network;
        network.retain(may_come);
        for server in &mut state.servers {
            if matches!(server.task, Task::Waiting(sent) if !network.contains(&sent)) {
                server.task = Task::Idle;
            }
        }
        state.network = network;
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |server: usize| ["s1", "s2"][server];
        let t = |tag: usize| ["a", "b"][tag];
        match *self {
            Self::Ask { server, tag, size } => write!(f, "{} asks for {size} of {}", s(server), t(tag)),
            Self::Restore { server, tag } => write!(f, "{} tells what is missing of {}", s(server), t(tag)),
            Self::Create { server, tag } => write!(f, "{} asks to create {}", s(server), t(tag)),
            Self::Drop { server, tag } => write!(f, "{} asks to drop {}", s(server), t(tag)),
            Self::Deliver { request, again } => {
                write!(f, "request #{request} reaches the registry{}", if again { ", and will again" } else { "" })
            }
            Self::Lose { request } => write!(f, "request #{request} is lost"),
            Self::GiveUp { server } => write!(f, "{} waits no longer", s(server)),
            Self::ReadBack { server } => write!(f, "{} hears no answer, and reads the record", s(server)),
            Self::Move { server, tag } => write!(f, "{} goes on to the next range of {}, by a step", s(server), t(tag)),
            Self::Claim { server, tag } => write!(f, "{} takes a number of {}", s(server), t(tag)),
            Self::Crash { server } => write!(f, "{} crashes", s(server)),
            Self::Start { server } => write!(f, "{} starts", s(server)),
            Self::Copy { from, to } => write!(f, "{}'s data is copied, and started as {}", s(from), s(to)),
            Self::Fork { from, to } => write!(f, "{}'s machine is copied with its memory: {}", s(from), s(to)),
            Self::Stop { server } => write!(f, "{} stops, and gives back", s(server)),
            Self::Wipe => write!(f, "the registry is wiped"),
            Self::Repair { tag } => write!(f, "somebody creates {} above all that was used", t(tag)),
            Self::Careless { tag } => write!(f, "somebody creates {} at its first number", t(tag)),
            Self::Backup => write!(f, "a backup of the registry is made"),
            Self::Rollback => write!(f, "the backup is restored"),
            Self::Sync => write!(f, "what the registry shows is durable, and it says so"),
            Self::Failover => write!(f, "the registry fails over, and loses what was not durable"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |range: Range| format!("{}..{}", range.first, range.end);
        let record = |record: &TagRecord| format!("v{} {}", record.version, record.next);
        let held = |held: &Held| format!("{} {}", range(held.current), held.after.map_or("-".to_owned(), range));
        let registry: Vec<_> = self.registry.iter().map(record).collect();
        let servers: Vec<_> =
            self.servers.iter().map(|server| server.held.iter().map(held).collect::<Vec<_>>().join(", ")).collect();
        write!(f, "{} | {}", registry.join(", "), servers.join(" | "))
    }
}
