//! The servers, the registry, and the time: one event after the other.

use super::chance::Chance;
use super::registry::Registry;
use super::report::Report;
use super::scenarios::{Happening, Scenario};
use super::server::{Claimed, Phase, Server, Used};
use snowflake_core::lease::{Answer, Event, Found, Next, Stored};
use snowflake_core::{Layout, Micros, Position, UnixMicros};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What a message takes on its way.
const NETWORK: Micros = Micros(500);
/// After this, a request without an answer counts as failed.
const DEADLINE: Micros = Micros::from_secs(3);
/// A stop waits so long for the registry.
const STOP_WITHIN: Micros = Micros::from_secs(5);
/// A session claims again after twice this at most.
const CLAIM_EVERY: Micros = Micros::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Occurrence {
    /// The lessee of a server is to be asked; the number is that of its alarm.
    Alarm(usize, u64),
    Arrival(Request),
    Answer(usize, u64, Answer),
    Claim(usize, u64),
    Start(usize),
    Happening(usize),
}

/// A request to the registry, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    server: usize,
    number: u64,
    what: Next,
    is_answer_lost: bool,
}

struct Entry(Micros, u64, Occurrence);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

struct World<'a> {
    scenario: &'a Scenario,
    layout: Layout,
    start: UnixMicros,
    chance: Chance,
    now: Micros,
    numbers: u64,
    queue: BinaryHeap<Reverse<Entry>>,
    registry: Registry,
    registry_down_until: Micros,
    servers: Vec<Server>,
    used: Vec<Used>,
    report: Report,
}

/// Runs a scenario.
pub fn run(scenario: &Scenario, seed: u64) -> Report {
    let layout: Layout = scenario.layout.parse().expect("a layout");
    let servers = (0..scenario.servers).map(|i| Server::new(i, i as u64 + 1, layout, scenario.terms)).collect();
    let mut world = World {
        scenario,
        layout,
        start: UnixMicros::parse("2026-01-01T00:00:00Z").expect("an instant"),
        chance: Chance(seed),
        now: Micros(0),
        numbers: 0,
        queue: BinaryHeap::new(),
        registry: Registry::new(scenario.is_registry_broken),
        registry_down_until: Micros(0),
        servers,
        used: Vec::new(),
        report: Report::new(scenario.name),
    };
    for (i, (at, _)) in scenario.happenings.iter().enumerate() {
        world.at(*at, Occurrence::Happening(i));
    }
    while let Some(Reverse(Entry(at, _, occurrence))) = world.queue.pop() {
        if at > scenario.length {
            break;
        }
        world.now = at;
        world.occur(occurrence);
    }
    world.finish()
}

impl World<'_> {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn at(&mut self, time: Micros, occurrence: Occurrence) {
        let number = self.number();
        self.queue.push(Reverse(Entry(time, number, occurrence)));
    }

    fn occur(&mut self, occurrence: Occurrence) {
        match occurrence {
            Occurrence::Alarm(server, alarm) => {
                if self.servers[server].alarm == alarm {
                    self.ask(server);
                }
            }
            Occurrence::Arrival(request) => self.arrive(request),
            Occurrence::Answer(server, number, answer) => self.answered(server, number, answer),
            Occurrence::Claim(server, run) => self.claim(server, run),
            Occurrence::Start(server) => self.start(server),
            Occurrence::Happening(i) => self.happen(&self.scenario.happenings[i].1.clone()),
        }
    }

    // The lessee.

    /// Wakes the lessee up after so long.
    fn alarm(&mut self, server: usize, after: Micros) {
        let alarm = self.number();
        self.servers[server].alarm = alarm;
        self.at(self.now + after, Occurrence::Alarm(server, alarm));
    }

    fn ask(&mut self, i: usize) {
        if let Some(rest) = self.pause_left(i) {
            return self.alarm(i, rest + Micros(1));
        }
        loop {
            let chance = self.chance.draw();
            let server = &mut self.servers[i];
            if server.phase == Phase::Down || server.pending.is_some() {
                return;
            }
            let moment = server.moment(&self.layout, self.start, self.now, chance);
            let next = server.lessee.next(&moment);
            let answer = match next {
                // Also a wait of 0 passes time, so that there is an end.
                Next::Wait(length) => {
                    self.note_events(i);
                    return self.alarm(i, length.max(Micros(1)));
                }
                Next::Install(grant) => Answer::Installed(server.published.install(&self.layout, &server.line, &grant)),
                Next::Remember(life) => {
                    server.known_life = Some(life);
                    Answer::Remembered
                }
                Next::Close => {
                    server.published.close(&self.layout, &server.line);
                    server.give_reservation_back(&self.layout);
                    Answer::Closed
                }
                Next::Done => return self.stopped(i),
                request => return self.send(i, request),
            };
            let moment = server.moment(&self.layout, self.start, self.now, chance);
            server.lessee.answer(&moment, answer);
            self.note_events(i);
        }
    }

    fn send(&mut self, server: usize, what: Next) {
        let number = self.number();
        self.servers[server].pending = Some(number);
        let faults = self.scenario.one_request_lost_in;
        let mut request = Request { server, number, what, is_answer_lost: false };
        let is_lost = self.now < self.registry_down_until || faults.is_some_and(|in_all| self.chance.one_in(in_all));
        let is_late = faults.is_some_and(|in_all| self.chance.one_in(in_all));
        request.is_answer_lost = faults.is_some_and(|in_all| self.chance.one_in(in_all));
        if is_lost {
            self.report.lost += 1;
            // Whether it arrived is known only in a minority of cases.
            let answer = match request.what {
                Next::Write(..) if !self.chance.one_in(4) => Answer::Unknown,
                _ => Answer::Failed,
            };
            self.at(self.now + DEADLINE, Occurrence::Answer(server, number, answer));
        } else if is_late {
            let delay = self.chance.within(Micros::from_secs(30));
            self.at(self.now + DEADLINE, Occurrence::Answer(server, number, Answer::Unknown));
            self.at(self.now + delay, Occurrence::Arrival(request));
        } else {
            self.at(self.now + NETWORK, Occurrence::Arrival(request));
        }
    }

    fn arrive(&mut self, request: Request) {
        let Request { server, number, what, is_answer_lost } = request;
        let done = self.registry.arrive(self.now, &what);
        self.report.slowest = self.report.slowest.max(done - self.now);
        let answer = self.registry.answer(what);
        // A request that waits for longer in the registry's queue is carried out all the same.
        if is_answer_lost || done - self.now > DEADLINE {
            self.at(self.now + DEADLINE, Occurrence::Answer(server, number, Answer::Unknown));
        } else {
            self.at(done + NETWORK, Occurrence::Answer(server, number, answer));
        }
    }

    fn answered(&mut self, i: usize, number: u64, mut answer: Answer) {
        if self.servers[i].pending != Some(number) {
            return;
        }
        if let Some(rest) = self.pause_left(i) {
            return self.at(self.now + rest + Micros(1), Occurrence::Answer(i, number, answer));
        }
        let chance = self.chance.draw();
        let server = &mut self.servers[i];
        server.pending = None;
        if let Answer::All(Found { records, gone, .. }) = &mut answer {
            // Of its older runs, a server knows that.
            let is_mine = |stored: &Stored| stored.record.holder == server.me.holder && !server.me.owns(&stored.record);
            gone.extend(records.iter().filter(|(_, stored)| is_mine(stored)).map(|(worker, _)| *worker));
        }
        let moment = server.moment(&self.layout, self.start, self.now, chance);
        server.lessee.answer(&moment, answer);
        self.note_events(i);
        self.ask(i);
    }

    fn note_events(&mut self, i: usize) {
        let server = &mut self.servers[i];
        let now = server.clock(self.start, self.now);
        for event in server.lessee.take_events() {
            match event {
                Event::Gained(grant) => {
                    let lead = grant.from.saturating_since(now);
                    self.report.gained(server.started_at, self.now, lead);
                }
                Event::Lost { .. } => self.report.taken_over += 1,
                Event::Expired(_) => self.report.expired += 1,
                Event::GivenBack { .. } => self.report.given_back += 1,
                Event::NoWorker(_) => self.report.refused += 1,
                Event::NotGivenBack(_) | Event::NotAnswering(_) | Event::Answering(_) => {}
                Event::ClockAhead(_) => {}
                Event::Shortened { .. } => unreachable!("nobody rewinds"),
                Event::Vanished(_)
                | Event::Forgotten(_)
                | Event::NotBefore(_)
                | Event::ClockBehind(_)
                | Event::OtherLayout(_)
                | Event::NoSuchWorker(_) => {
                    unreachable!("no registry is wiped, and all servers have one layout")
                }
            }
        }
    }

    // Sessions.

    fn claim(&mut self, i: usize, run: u64) {
        if self.servers[i].run != run || self.servers[i].phase != Phase::Up {
            return;
        }
        if let Some(rest) = self.pause_left(i) {
            // Before the lessee notices anything.
            return self.at(self.now + rest, Occurrence::Claim(i, run));
        }
        let want = 1 + self.chance.draw() % 8;
        let (start, now) = (self.start, self.now);
        let server = &mut self.servers[i];
        let (claimed, entry) = server.claim(&self.layout, (start, now), (i, want), self.scenario.terms.max_lead);
        self.used.extend(entry);
        match claimed {
            Claimed::Some | Claimed::WaitsForClock => {
                if let Some(since) = server.waits_since.take() {
                    self.report.waited(self.now - since);
                }
            }
            Claimed::NoLease => {
                server.waits_since.get_or_insert(now);
                // The session wakes the lessee up.
                self.ask(i);
            }
        }
        // A session without a lease tries again soon.
        let pause = if self.servers[i].waits_since.is_some() { Micros::from_millis(250) } else { CLAIM_EVERY };
        let next = self.now + self.chance.within(pause + pause) + Micros(1);
        self.at(next, Occurrence::Claim(i, run));
    }

    // What happens to servers.

    fn pause_left(&self, i: usize) -> Option<Micros> {
        let left = self.servers[i].paused_until - self.now;
        (left > Micros(0)).then_some(left)
    }

    fn start(&mut self, i: usize) {
        if self.servers[i].phase == Phase::Down {
            self.begin_run(i, true);
        }
    }

    fn begin_run(&mut self, i: usize, is_new_token: bool) {
        let run = self.number();
        let server = &mut self.servers[i];
        server.start(self.layout, self.scenario.terms, self.now, run, is_new_token);
        let first = self.chance.within(Micros::from_secs(1));
        self.at(self.now + first, Occurrence::Claim(i, run));
        self.alarm(i, Micros(0));
    }

    /// Ends a run; its requests go on.
    fn end_run(&mut self, i: usize) {
        let server = &mut self.servers[i];
        server.phase = Phase::Down;
        (server.pending, server.paused_until) = (None, Micros(0));
        self.used.extend(server.used.take());
        if let Some(since) = server.waits_since.take() {
            self.report.waited(self.now - since);
        }
    }

    fn crash(&mut self, i: usize) {
        if self.servers[i].phase != Phase::Down {
            self.end_run(i);
        }
    }

    fn stop(&mut self, i: usize) {
        if self.servers[i].phase == Phase::Up {
            let by = snowflake_core::MonotonicMicros((self.now + STOP_WITHIN).0);
            let server = &mut self.servers[i];
            server.phase = Phase::Stopping;
            // What was asked is not waited for.
            server.pending = None;
            server.lessee.stop(by);
            self.ask(i);
        }
    }

    fn stopped(&mut self, i: usize) {
        self.note_events(i);
        self.end_run(i);
    }

    fn start_after(&mut self, i: usize, after: Micros) {
        self.at(self.now + after, Occurrence::Start(i));
    }

    fn happen(&mut self, happening: &Happening) {
        let all = 0..self.servers.len();
        match *happening {
            Happening::StartAll { within } => {
                self.report.begin(self.now);
                for i in all {
                    let after = self.chance.within(within);
                    self.start_after(i, after);
                }
            }
            Happening::StopAll { within } => {
                for i in all {
                    self.stop(i);
                    let after = within + self.chance.within(within);
                    self.start_after(i, after);
                }
                self.report.begin(self.now + within);
            }
            Happening::CrashAll { back_after, within } => {
                for i in all {
                    self.crash(i);
                    let after = back_after + self.chance.within(within);
                    self.start_after(i, after);
                }
                self.report.begin(self.now + back_after);
            }
            Happening::Stop { share } => {
                for i in all.take(share) {
                    self.stop(i);
                }
            }
            Happening::RegistryDown { length } => self.registry_down_until = self.now + length,
            Happening::Measure => self.report.begin(self.now),
            Happening::SetClocks { one_in, most } => {
                for i in all {
                    if self.chance.one_in(one_in) {
                        self.servers[i].offset = self.chance.within(most + most) - most;
                    }
                }
            }
            Happening::SetClock { server, offset } => self.servers[server].offset = offset,
            Happening::Trouble { every } => {
                self.trouble();
                let (index, after) = (self.index_of(happening), self.chance.within(every + every));
                self.at(self.now + after + Micros(1), Occurrence::Happening(index));
            }
        }
    }

    fn index_of(&self, happening: &Happening) -> usize {
        self.scenario.happenings.iter().position(|(_, other)| other == happening).unwrap_or(0)
    }

    /// Something goes wrong with one server.
    fn trouble(&mut self) {
        let i = self.chance.below(self.servers.len());
        let back = Micros::from_secs(1) + self.chance.within(Micros::from_secs(90));
        match self.chance.below(6) {
            0 => {
                self.crash(i);
                self.start_after(i, back);
            }
            1 => {
                self.stop(i);
                self.start_after(i, back);
            }
            // A session crashes.
            2 if self.servers[i].phase == Phase::Up => {
                self.end_run(i);
                self.begin_run(i, false);
            }
            3 => self.servers[i].paused_until = self.now + back + back,
            4 => self.servers[i].offset = self.chance.within(Micros::from_secs(120)) - Micros::from_secs(60),
            // A copy is started beside its origin: under the origin's identity, but with another data directory.
            5 if self.servers.len() < self.scenario.servers + self.scenario.copies => {
                let number = self.servers.len();
                let system = self.servers[i].me.holder.system_identifier;
                let mut copy = Server::new(number, system, self.layout, self.scenario.terms);
                copy.copy_data(&self.servers[i]);
                self.servers.push(copy);
                self.start_after(number, back);
            }
            _ => {}
        }
    }

    fn finish(mut self) -> Report {
        self.report.waiting = self.servers.iter().filter(|server| server.waits_since.is_some()).count();
        for i in 0..self.servers.len() {
            if self.servers[i].phase != Phase::Down {
                self.end_run(i);
            }
        }
        self.report.seconds = std::mem::take(&mut self.registry.arrivals);
        self.report.repeated = repeated(&mut self.used);
        self.report.ranges = self.used.len();
        self.report
    }
}

/// How many ranges of used positions reach into another run's range of the same worker.
fn repeated(used: &mut [Used]) -> usize {
    used.sort_unstable();
    let mut ends: BTreeMap<_, Position> = BTreeMap::new();
    let mut count = 0;
    for range in used.iter() {
        match ends.get_mut(&range.worker) {
            None => drop(ends.insert(range.worker, range.last)),
            Some(end) => {
                count += usize::from(*end >= range.first);
                *end = range.last.max(*end);
            }
        }
    }
    count
}
