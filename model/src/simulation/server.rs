//! A server: its lessee, its line, and what of it survives which crash.

use snowflake_core::lease::{Holder, Identity, Lessee, Moment, Published, Terms, Token, Wanted, WorkerNumber};
use snowflake_core::{
    Layout, Line, Micros, MonotonicMicros, Pace, Policy, Position, Reach, Refusal, Tick, Ticks, UnixMicros,
};

/// How far a reservation is ahead of the line.
const RESERVE_AHEAD: Micros = Micros::from_secs(1);
/// How far claims may run ahead of the clock.
const MAX_BURST: Micros = Micros::from_millis(100);

/// The positions of a worker that a run has used of one lease and its renewals: from the first to the last, both
/// included. A run that has lost a worker may lease it again later, and another server has used it in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Used {
    pub worker: WorkerNumber,
    pub first: Position,
    pub last: Position,
    /// The run's number, and the server's.
    pub run: u64,
    pub server: usize,
    /// Where the lease began.
    pub from: Option<UnixMicros>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Down,
    Up,
    /// The sessions are gone, the lessee gives back.
    Stopping,
}

pub struct Server {
    pub phase: Phase,
    pub me: Identity,
    pub lessee: Lessee,
    pub line: Line,
    pub published: Published,
    pace: Pace,
    /// The clock, less the true time.
    pub offset: Micros,
    /// What is durable: no tick from this one on was claimed.
    reserved: Tick,
    /// Durable, too: which life of the namespace it has seen.
    pub known_life: Option<u64>,
    /// Whether the line was raised to it in this run.
    is_raised: bool,
    /// Stopped, as by SIGSTOP, up to this time.
    pub paused_until: Micros,
    /// The number of the request under way.
    pub pending: Option<u64>,
    /// The number of the wake-up that is waited for.
    pub alarm: u64,
    /// The number of the run: each start and each crash of a session begins a new one.
    pub run: u64,
    /// What this run has used of the worker in use.
    pub used: Option<Used>,
    /// Since when the server is up and its sessions find no lease.
    pub waits_since: Option<Micros>,
    /// When the server was started.
    pub started_at: Micros,
}

/// What came of a claim.
pub enum Claimed {
    Some,
    /// There is no lease, or it has ended.
    NoLease,
    /// The line is ahead of the clock, and waits for it.
    WaitsForClock,
}

impl Server {
    pub fn new(number: usize, system: u64, layout: Layout, terms: Terms) -> Self {
        let holder = Holder {
            host: format!("host{number}"),
            data_directory: "/var/lib/postgresql/15/main".to_owned(),
            port: 5432,
            cluster_name: String::new(),
            system_identifier: system,
            process: format!("of host{number}"),
        };
        let me = Identity { token: Token(u128::MAX), holder };
        Self {
            phase: Phase::Down,
            lessee: Lessee::new(layout, me.clone(), terms, Wanted::any(&layout), None),
            me,
            line: Line::new(),
            published: Published::new(true),
            pace: Pace::default(),
            offset: Micros(0),
            reserved: Tick(0),
            known_life: None,
            is_raised: false,
            paused_until: Micros(0),
            pending: None,
            alarm: 0,
            run: 0,
            used: None,
            waits_since: None,
            started_at: Micros(0),
        }
    }

    /// Starts, with a new token; or, where only a session has crashed, with the old one.
    pub fn start(&mut self, layout: Layout, terms: Terms, now: Micros, run: u64, is_new_token: bool) {
        if is_new_token {
            self.me.token = Token(u128::from(run));
        }
        self.phase = Phase::Up;
        self.lessee = Lessee::new(layout, self.me.clone(), terms, Wanted::any(&layout), self.known_life);
        self.line = Line::new();
        self.published = Published::new(is_new_token);
        self.pace = Pace::default();
        (self.is_raised, self.pending, self.run) = (false, None, run);
        (self.started_at, self.waits_since) = (now, Some(now));
    }

    /// Another directory with this one's data, of a moment ago.
    pub fn copy_data(&mut self, from: &Self) {
        (self.reserved, self.known_life) = (from.reserved, from.known_life);
    }

    /// The stop has closed the line: what is reserved ends above the last position.
    pub fn give_reservation_back(&mut self, layout: &Layout) {
        if let Some(last) = self.published.closed.filter(|_| self.is_raised) {
            self.reserved = layout.tick_of(last) + Ticks(1);
        }
    }

    pub fn clock(&self, start: UnixMicros, now: Micros) -> UnixMicros {
        start + now + self.offset
    }

    pub fn moment(&self, layout: &Layout, start: UnixMicros, now: Micros, chance: u64) -> Moment {
        Moment {
            now: self.clock(start, now),
            monotonic: MonotonicMicros(now.0),
            seen: self.published.look(layout, &self.line),
            chance,
        }
    }

    /// A session claims. Positions of another worker than before begin a new entry, and the old one is returned.
    pub fn claim(
        &mut self,
        layout: &Layout,
        (start, now): (UnixMicros, Micros),
        (server, want): (usize, u64),
        max_lead: Micros,
    ) -> (Claimed, Option<Used>) {
        if !self.is_raised {
            self.line.raise(layout, self.reserved);
            (self.is_raised, self.published.resumed) = (true, true);
        }
        let (Some(worker), Some(limit)) = (self.published.worker, self.published.limit(layout)) else {
            return (Claimed::NoLease, None);
        };
        let policy = Policy { max_burst: layout.ticks_in(MAX_BURST), max_lead: layout.ticks_in(max_lead), spread: 1 };
        let reach = Reach { policy, limit, now: layout.tick_at(self.clock(start, now)), gives_way: false };
        let claim = match self.line.claim(layout, &reach, want) {
            Err(Refusal::Behind) => self.line.open(layout, &reach, want, &mut self.pace, MonotonicMicros(now.0)),
            claim => claim,
        };
        match claim {
            Ok(claim) => {
                assert_eq!(Some(claim.worker), layout.place_number(worker.0));
                let last = Position(claim.first.0 + claim.count - 1);
                self.reserved = self.reserved.max(layout.tick_of(last) + Ticks(1) + layout.ticks_in(RESERVE_AHEAD));
                let new = Used { worker, first: claim.first, last, run: self.run, server, from: self.published.from };
                let before = match &mut self.used {
                    Some(used) if (used.worker, used.run, used.from) == (worker, self.run, new.from) => {
                        used.last = last;
                        None
                    }
                    used => used.replace(new),
                };
                (Claimed::Some, before)
            }
            Err(Refusal::Limit { .. }) => (Claimed::NoLease, None),
            Err(_) => (Claimed::WaitsForClock, None),
        }
    }
}
