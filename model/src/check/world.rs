//! What can happen: servers, the registry, and the network between them.

use super::rules::{Break, Compare, Rules};
use super::state::*;
use stateright::{Model, Property};
use std::fmt;

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
    pub budget: Budget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Lease {
        server: usize,
        worker: Worker,
        now: Instant,
    },
    Deliver {
        request: usize,
        again: bool,
    },
    Lose {
        request: usize,
    },
    Forget {
        server: usize,
    },
    Install {
        server: usize,
    },
    /// With the choice to watch that ID from now on.
    Claim {
        server: usize,
        now: Tick,
        watches: bool,
    },
    Resume {
        server: usize,
    },
    Crash {
        server: usize,
        reserved: Tick,
    },
    SessionCrash {
        server: usize,
        reserved: Tick,
    },
    Restore {
        server: usize,
    },
    Start {
        server: usize,
    },
    CopyDirectory {
        server: usize,
        to: usize,
        reserved: Tick,
    },
    Fork {
        server: usize,
        to: usize,
    },
    Stop {
        server: usize,
    },
    Close {
        server: usize,
    },
    HandBack {
        server: usize,
        worker: Worker,
    },
    Rewind {
        server: usize,
        to: Tick,
    },
    Shorten {
        server: usize,
        worker: Worker,
        to: Instant,
    },
    Wipe,
    Look {
        server: usize,
    },
    StoreAgain {
        server: usize,
        now: Instant,
    },
    Sync,
    ReadBack {
        server: usize,
    },
    Failover,
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

    /// A grant that the registry has stored, on its way to the sessions.
    fn stored(&self, server: &Server, grant: Grant) -> Task {
        let plan = self.rules.plan(server, grant);
        plan.map_or(Task::Idle, |plan| Task::Installing(plan, self.rules.next_step(&plan, 0).unwrap_or(3)))
    }

    fn deliver(&self, state: &mut State, at: usize, again: bool) {
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
    fn lose(&self, state: &mut State, at: usize) {
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
    fn look(&self, state: &mut State, at: usize) {
        let known = state.servers[at].known;
        let before = state.namespace;
        let has_forgotten = known != 0 && known != before.life && !self.rules.is_broken(Break::LossIgnored);
        if before.life == 0 {
            state.lives += 1;
            state.namespace = Namespace { life: state.lives, leases_from: 0 };
        }
        if has_forgotten && before.leases_from == 0 {
            state.namespace.leases_from = state.highest;
        }
        if state.namespace != before {
            self.drop_requests(state);
        }
        state.servers[at].known = state.namespace.life;
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

    /// The record of the worker in use, as it was confirmed. The process that has closed the line knows of none.
    fn held(&self, server: &Server) -> Option<(Worker, Record)> {
        if server.closed.is_some() && !self.rules.is_broken(Break::StoredWhenGivenBack) {
            return None;
        }
        let record = Record { owner: server.token, from: server.from?, until: server.end?, system: 0 };
        server.worker.map(|worker| (worker, record))
    }

    /// Whether what the registry shows may be lost by a failover.
    fn is_lagging(&self) -> bool {
        self.budget.failovers > 0
    }

    /// What the registry shows is durable: it says so to those who wait for that.
    fn sync(&self, state: &mut State) {
        state.durable = state.registry;
        for server in &mut state.servers {
            if let Task::Unconfirmed(grant) = server.task {
                server.task = self.stored(server, grant);
            }
        }
    }

    /// What is not durable is lost, and with it what was to be made of it.
    fn fail_over(&self, state: &mut State) {
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
            namespace: Namespace { life: u8::from(self.is_known), leases_from: 0 },
            lives: u8::from(self.is_known),
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
            let knows = !self.remembers || server.known == state.namespace.life && server.known != 0;
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

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
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
                state.namespace = Namespace::default();
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

    fn properties(&self) -> Vec<Property<Self>> {
        fn claimed(state: &State, born: Born) -> bool {
            let is_so = |watched: Watched| state.servers.iter().any(|s| s.born == born && s.token == watched.by);
            state.watched.is_some_and(is_so)
        }
        /// The record of the worker whose ID is watched, where that is still the one under which it was claimed.
        fn claimed_of(state: &State) -> Option<Record> {
            let watched = state.watched?;
            Some(state.registry[watched.worker as usize]).filter(|record| record.owner == watched.by)
        }
        fn is_claimed_above_another(state: &State) -> bool {
            claimed_of(state).is_some_and(|record| record.from > 0)
        }
        fn is_opened_again(state: &State) -> bool {
            let by = state.watched.map(|watched| watched.by);
            let is_so = |s: &Server| s.closed.is_none() && by == Some(s.token);
            state.left.closings == 0 && state.servers.iter().any(is_so) && is_claimed_above_another(state)
        }
        let mut properties = vec![
            Property::always(REPEATED, |_, state: &State| !state.is_claimed_twice),
            Property::sometimes("claimed after a take-over", |_, state| is_claimed_above_another(state)),
        ];
        let budget = &self.budget;
        if budget.crashes + budget.session_crashes > 0 {
            properties.push(Property::sometimes("claimed after a crash", |_, s| claimed(s, Born::AfterCrash)));
        }
        if budget.stops > 0 {
            properties.push(Property::sometimes("claimed after a stop", |_, s| claimed(s, Born::AfterStop)));
        }
        if budget.copies + budget.forks > 0 {
            properties.push(Property::sometimes("claimed by a copy", |_, s| claimed(s, Born::Copied)));
        }
        if budget.closings > 0 {
            properties.push(Property::sometimes("claimed after a line was closed", |_, s| is_opened_again(s)));
        }
        if budget.hand_backs > 0 {
            properties.push(Property::sometimes("claimed after a hand-back", |_, state: &State| {
                state.left.hand_backs == 0 && is_claimed_above_another(state)
            }));
        }
        if self.remembers && self.is_known && budget.wipes > 0 {
            properties.push(Property::sometimes("claimed by a new lease after a loss", |_, state: &State| {
                let from = state.namespace.leases_from;
                from > 0 && claimed_of(state).is_some_and(|record| record.from >= from)
            }));
            properties.push(Property::sometimes("claimed by a lease that was stored again", |_, state: &State| {
                let from = state.namespace.leases_from;
                claimed_of(state).is_some_and(|record| record.from < from && record.until > from)
            }));
        }
        if budget.failovers > 0 {
            properties.push(Property::sometimes("claimed after a failover", |_, state: &State| {
                state.left.failovers == 0 && is_claimed_above_another(state)
            }));
        }
        if budget.rewinds > 0 {
            properties.push(Property::sometimes("claimed after a rewind", |_, state: &State| {
                state.left.rewinds == 0 && state.watched.is_some()
            }));
        }
        properties
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |server: usize| ["s1", "s2", "s3"][server];
        match *self {
            Self::Lease { server, worker, now } => {
                write!(f, "{} reads worker {worker}, and asks for it at {now}", name(server))
            }
            Self::Deliver { request, again } => {
                write!(f, "request #{request} reaches the registry{}", if again { ", and will again" } else { "" })
            }
            Self::Lose { request } => write!(f, "request #{request} is lost"),
            Self::Forget { server } => write!(f, "{}'s process for the registry starts anew", name(server)),
            Self::Install { server } => write!(f, "{} does the next step of the installation", name(server)),
            Self::Claim { server, now, watches } => {
                let watched = if watches { ", an ID that is watched" } else { "" };
                write!(f, "a session of {} claims at tick {now}{watched}", name(server))
            }
            Self::Resume { server } => write!(f, "{} raises its line to the reservation", name(server)),
            Self::Crash { server, reserved } => write!(f, "{} crashes, with reservation {reserved}", name(server)),
            Self::SessionCrash { server, reserved } => {
                write!(f, "a session of {} crashes, with reservation {reserved}; the postmaster lives", name(server))
            }
            Self::Restore { server } => write!(f, "{} goes on with the grant from before the crash", name(server)),
            Self::Start { server } => write!(f, "{} starts", name(server)),
            Self::CopyDirectory { server, to, reserved } => {
                write!(f, "{}'s data is copied to {}, with reservation {reserved}", name(server), name(to))
            }
            Self::Fork { server, to } => {
                write!(f, "{}'s machine is copied with its memory: {}", name(server), name(to))
            }
            Self::Stop { server } => write!(f, "{} stops, and sends its worker back", name(server)),
            Self::Close { server } => write!(f, "{} closes its line, and sends its worker back", name(server)),
            Self::HandBack { server, worker } => write!(f, "{} sends worker {worker} back", name(server)),
            Self::Rewind { server, to } => write!(f, "{}'s line is lowered to tick {to} by hand", name(server)),
            Self::Shorten { server, worker, to } => {
                write!(f, "{} shortens the grant of worker {worker} to {to} by hand", name(server))
            }
            Self::Wipe => write!(f, "the registry is wiped"),
            Self::Look { server } => write!(f, "{} looks at the namespace's record", name(server)),
            Self::StoreAgain { server, now } => {
                write!(f, "{} finds no record of its worker, and asks for it at {now}", name(server))
            }
            Self::Sync => write!(f, "what the registry shows is durable, and it says so"),
            Self::ReadBack { server } => write!(f, "{} hears no answer, and reads its record back", name(server)),
            Self::Failover => write!(f, "the registry fails over, and loses what was not durable"),
        }
    }
}
