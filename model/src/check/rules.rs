//! The core's functions on the check's small numbers; and how each rule is broken. A broken rule changes what a function
//! of the core is told or what it has returned, or leaves a step out.

use super::state::{Grant, Installation, Instant, LOST, Record, Request, Server, Tick, Worker};
use snowflake_core::lease::{
    self, Action, Holder, Identity, Published, Seen, Stored, Terms, Token, Version, WorkerNumber,
};
use snowflake_core::{Layout, Line, Micros, OpenRange, Policy, Position, Reach, Ticks, UnixMicros};

/// What a request must find in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Nobody has changed the record since it was read.
    Version,
    /// The record is as it was read, which is as safe: it does not come back with the same reach.
    Record,
    /// Its owner is. Breaks rule 2.
    Owner,
}

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// 1: the start of a grant is rounded down to a tick.
    StartRoundedDown,
    /// 1: what was used is rounded down to the start of the last tick.
    UsedRoundedDown,
    /// 2: a renewal does not look whether the record is still this run's own.
    OwnerUnchecked,
    /// 3: records do not say where grants began.
    StartForgotten,
    /// 4: a grant is installed before it is stored.
    UsedBeforeStored,
    /// 4: the worker is switched before the line is raised.
    SwitchedFirst,
    /// 4: the end is published before the worker is switched.
    PublishedFirst,
    /// 5: a grant may end before a published end.
    Shrinks,
    /// 6: what was used is given back while sessions claim.
    NotClosed,
    /// 6: a grant that was not used is given back below its start.
    GivenBackBelowStart,
    /// 7: a worker is handed back that is beside the line.
    HandedBackInUse,
    /// 11: the line is lowered by hand to anything.
    LoweredBelowStart,
    /// 11: the grant's start is put on record when its end is, after the switch.
    StartRecordedLate,
    /// 12: after a session's crash, what was used before is taken for what is used since.
    CrashForgotten,
    /// 13: a record that is read back counts as stored.
    ReadCounts,
    /// 2: after a failover, versions come again.
    VersionsAgain,
    /// 14: nobody puts on record from when on new leases are safe.
    LossIgnored,
    /// 14: nobody looks whether the registry is another one than before.
    IdentityIgnored,
    /// 14: a new lease may begin before that.
    BegunBefore,
    /// 14: a grant that is over by the clock is stored again.
    StoredWhenOver,
    /// 14: a grant that was given back is stored again.
    StoredWhenGivenBack,
    /// 14: a write does not expect the namespace's record.
    NamespaceUnchecked,
    /// 15: a grant is shortened whose server lives.
    ShortenedWhileUsed,
    /// 12: the grant that outlives a session's crash is kept when the line is closed.
    KeptWhenClosed,
    /// Not a rule, but an idea that was dropped: a restarted server goes on with its system's old grant, above its own
    /// reservation.
    ReservationTrusted,
}

/// The core's functions, with what they need to know.
#[derive(Clone, Debug)]
pub struct Rules {
    pub layout: Layout,
    pub compare: Compare,
    pub broken: Option<Break>,
}

const TERMS: Terms = Terms { window: Micros(1), max_lead: Micros(0), max_jump: Micros(0) };
/// All requests under way expect the record as it stands.
const VERSION: Version = Version(1);

fn instant(small: Instant) -> UnixMicros {
    UnixMicros(small.into())
}

fn small(instant: UnixMicros) -> Instant {
    Instant::try_from(instant.0).expect("an instant of the check")
}

fn number(worker: Worker) -> WorkerNumber {
    WorkerNumber(worker.into())
}

/// A line that stands there.
fn line(server: &Server) -> Line {
    let line = Line::new();
    let all_before = OpenRange { floor: Position(0), end: Position(u64::from(server.last) + 1), spread_mask: 0 };
    line.claim_in(&all_before, u64::MAX);
    line
}

fn published(server: &Server) -> Published {
    Published {
        worker: server.worker.map(number),
        from: server.from.map(instant),
        end: server.end.map(instant),
        closed: server.closed.map(|last| Position(last.into())),
        resumed: server.is_resumed,
        rewound_to: None,
    }
}

fn identity(token: super::state::Token) -> Identity {
    Identity { token: Token(token.into()), holder: Holder::default() }
}

fn stored(record: Record) -> Option<Stored> {
    (record != Record::default()).then(|| Stored {
        version: VERSION,
        record: lease::Record {
            owner: (record.owner != 0).then(|| Token(record.owner.into())),
            granted_from: instant(record.from),
            granted_until: instant(record.until),
            holder: Holder::default(),
        },
    })
}

impl Rules {
    pub fn is_broken(&self, rule: Break) -> bool {
        self.broken == Some(rule)
    }

    /// The first position of a tick, and the tick of a position.
    pub fn first_position(&self, tick: Tick) -> super::state::Position {
        self.layout.position(snowflake_core::Tick(tick.into()), 0).0 as u8
    }

    pub fn tick_of(&self, position: super::state::Position) -> Tick {
        self.layout.tick_of(Position(position.into())).0 as u8
    }

    pub fn first_tick_from(&self, small: Instant) -> Tick {
        self.layout.first_tick_from(instant(small)).0 as u8
    }

    fn seen(&self, server: &Server) -> Seen {
        let mut seen = published(server).look(&self.layout, &line(server));
        match self.broken {
            Some(Break::Shrinks) => seen.end = None,
            Some(Break::NotClosed | Break::HandedBackInUse) => seen.is_closed = true,
            Some(Break::UsedRoundedDown) => seen.used = seen.used.map(|used| used - self.layout.tick_length()),
            Some(Break::CrashForgotten) => seen.used = Some(seen.used.unwrap_or(seen.line)),
            _ => {}
        }
        seen
    }

    fn request(&self, found: Record, write: &lease::Write, owner: &Server) -> Request {
        assert_eq!(write.expected.is_some(), found != Record::default());
        let record = &write.record;
        let new = Record {
            owner: record.owner.map_or(0, |token| token.0 as u8),
            from: small(record.granted_from),
            until: small(record.granted_until),
            system: if self.is_broken(Break::ReservationTrusted) { owner.system } else { 0 },
        };
        let expects_none = found == Record::default();
        let expected = match self.compare {
            Compare::Version if self.is_broken(Break::NamespaceUnchecked) && expects_none => LOST,
            Compare::Version => Record::default(),
            Compare::Record | Compare::Owner => found,
        };
        Request { worker: write.worker.0 as u8, expected, new }
    }

    /// The request with which a server leases or renews a worker, and the grant that it is if it succeeds.
    pub fn lease(
        &self,
        server: &Server,
        found: Record,
        (leases_from, time): (Instant, Instant),
        (worker, now): (Worker, Instant),
    ) -> (Request, Grant) {
        let is_taken_for_own = self.is_broken(Break::OwnerUnchecked) && server.worker == Some(worker);
        let me = identity(if is_taken_for_own { found.owner } else { server.token });
        let (number, was) = (number(worker), stored(found));
        let seen = self.seen(server);
        let begins = Some(instant(leases_from)).filter(|_| !self.is_broken(Break::BegunBefore));
        let goes_on = found.owner == server.token && found.until > time;
        let begins = begins.filter(|_| !goes_on);
        let mut write = lease::lease(&self.layout, &me, (number, was.as_ref()), begins, &TERMS, instant(now), &seen);
        // There is no clock here: whether a grant is over is a choice of the check.
        if let Some(begins) = begins.filter(|_| found.owner == server.token) {
            write.record.granted_from = write.record.granted_from.max(begins);
        }
        let mut request = self.request(found, &write, server);
        request.new.owner = server.token;
        let mut grant = Grant { worker, from: request.new.from, until: request.new.until };
        let is_own = found.owner == server.token;
        if self.is_broken(Break::StartForgotten) {
            request.new.from = 0;
            grant.from = if is_own { 0 } else { grant.from };
        }
        let is_of_system = found.owner != 0 && found.system == server.system;
        if self.is_broken(Break::ReservationTrusted) && is_of_system && !is_own {
            request.new.from = found.from;
            grant.from = found.from.max(small(seen.line).min(found.until));
        }
        (request, grant)
    }

    /// The request that gives a worker back; `None` where that cannot be.
    pub fn give_back(&self, server: &Server, found: Record, worker: Worker) -> Option<Request> {
        let (me, was) = (identity(server.token), stored(found)?);
        let seen = self.seen(server);
        let mut write = lease::give_back(&me, number(worker), &was, &seen)?;
        if let Some(used) = seen.used.filter(|_| self.is_broken(Break::GivenBackBelowStart)) {
            (write.record.granted_from, write.record.granted_until) = (used, used);
        }
        Some(self.request(found, &write, server))
    }

    /// The request that shortens a grant; `None` where it is not longer than that.
    pub fn shorten(&self, server: &Server, found: Record, worker: Worker, to: Instant) -> Option<Request> {
        let write = lease::shorten(number(worker), &stored(found)?, instant(to))?;
        Some(self.request(found, &write, server))
    }

    /// Closes the line.
    pub fn close(&self, server: &mut Server) {
        let (mut published, line) = (published(server), line(server));
        published.close(&self.layout, &line);
        server.last = line.last().0 as u8;
        server.closed = published.closed.map(|last| last.0 as u8);
        server.kept = server.kept.filter(|_| self.is_broken(Break::KeptWhenClosed));
    }

    /// The steps that bring a grant to the sessions; `None` where it must be renewed first.
    pub fn plan(&self, server: &Server, grant: Grant) -> Option<Installation> {
        let mut published = published(server);
        if self.is_broken(Break::Shrinks) {
            published.end = None;
        }
        let wide =
            lease::Grant { worker: number(grant.worker), from: instant(grant.from), until: instant(grant.until) };
        let steps = published.actions(&self.layout, &line(server), &wide).ok()?;
        let mut plan = Installation { raise: None, switches: false, grant };
        for step in steps.into_iter().flatten() {
            match step {
                Action::Raise(tick) => plan.raise = Some(tick.0 as u8),
                Action::Switch(..) => plan.switches = true,
                Action::Publish(_) => {}
            }
        }
        if self.is_broken(Break::StartRoundedDown) {
            plan.raise = plan.raise.map(|_| self.layout.tick_at(instant(grant.from)).0 as u8);
        }
        Some(plan)
    }

    /// The steps of a plan, in their order.
    fn steps(&self, plan: &Installation) -> [Option<Action>; 3] {
        let number = number(plan.grant.worker);
        let bits = self.layout.place_number(number.0).expect("a worker of the layout");
        let raise = plan.raise.map(|tick| Action::Raise(snowflake_core::Tick(tick.into())));
        let grant = lease::Grant { worker: number, from: instant(plan.grant.from), until: instant(plan.grant.until) };
        let switch = plan.switches.then_some(Action::Switch(grant, bits));
        let publish = Some(Action::Publish(grant));
        match self.broken {
            Some(Break::SwitchedFirst) => [switch, raise, publish],
            Some(Break::PublishedFirst) => [publish, raise, switch],
            _ => [raise, switch, publish],
        }
    }

    /// The number of the next step that has anything to do; `None` at the end.
    pub fn next_step(&self, plan: &Installation, from: u8) -> Option<u8> {
        let steps = self.steps(plan);
        (from..3).find(|&step| steps[usize::from(step)].is_some())
    }

    /// Does a step of a plan.
    pub fn install(&self, server: &mut Server, plan: &Installation, step: u8, keeps_from: bool) {
        let Some(step) = self.steps(plan)[usize::from(step)] else { return };
        let (mut published, line) = (published(server), line(server));
        let before = published.from;
        published.apply(&self.layout, &line, step);
        if self.is_broken(Break::StartRecordedLate) && matches!(step, Action::Switch(..)) {
            published.from = before;
        }
        server.last = line.last().0 as u8;
        server.worker = published.worker.map(|worker| worker.0 as u8);
        server.from = published.from.filter(|_| keeps_from).map(small);
        // Sessions keep their copies of a higher one.
        server.end = server.end.max(published.end.map(small));
        server.closed = published.closed.map(|last| last.0 as u8);
    }

    /// What a session claims that reads this tick off the clock, with the highest end that it can have copied.
    pub fn claim(&self, server: &Server, now: Tick) -> Option<super::state::Position> {
        let copied = Published { closed: None, ..published(server) };
        let limit = copied.limit(&self.layout)?;
        let policy = Policy { max_burst: Ticks(0), max_lead: Ticks(0), spread: 1 };
        let reach = Reach { policy, limit, now: snowflake_core::Tick(now.into()), gives_way: false };
        let claim = line(server).claim_in(&reach.open_range(&self.layout), 1)?;
        Some(claim.first.0 as u8)
    }

    /// Raises the line to the reservation, as the first claim of a run does.
    pub fn resume(&self, server: &mut Server) {
        let line = line(server);
        line.raise(&self.layout, snowflake_core::Tick(server.reserved.into()));
        server.last = line.last().0 as u8;
        (server.is_raised, server.is_resumed) = (true, true);
    }

    /// The lowest tick to which the line may be lowered by hand.
    pub fn lowest_tick(&self, server: &Server) -> Option<Tick> {
        let lowest = published(server).lowest_tick(&self.layout)?.0 as u8;
        Some(if self.is_broken(Break::LoweredBelowStart) { 0 } else { lowest })
    }

    /// Lowers the line by hand.
    pub fn lower(&self, server: &mut Server, to: Tick) {
        let line = line(server);
        line.lower(&self.layout, snowflake_core::Tick(to.into()));
        server.last = line.last().0 as u8;
    }
}
