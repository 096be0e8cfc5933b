//! The decisions about the reservation, with a model of the extension that acts on them. Sessions of several databases
//! plan, write, flush and claim; the server crashes between any two of these steps, loses any part of the log that was
//! not flushed, is stopped, gets copies by `setval`, and has its clock set to anything. No position is ever given
//! twice.

use proptest::prelude::*;
use snowflake_core::reservation::{self, CopyTooFar, DatabaseCopy, Reserved, Situation};
use snowflake_core::{
    Layout, Line, Micros, MonotonicMicros, Pace, Policy, Position, Reach, Refusal, Tick, Ticks, UnixMicros,
};
use std::collections::HashSet;

/// Of ticks much shorter than what is reserved, and longer.
const LAYOUTS: [&str; 3] =
    ["default", "timestamp=31 worker=22 sequence=10 tick=1s", "timestamp=31 worker=20 sequence=12 tick=60s"];
const DATABASES: usize = 3;
const SESSIONS: usize = 4;
const AHEAD: Micros = Micros::from_secs(1);
const NEVER: DatabaseCopy = DatabaseCopy { until: UnixMicros(0), generation: 0, used: false };

// The decisions one by one, in seconds of the default layout.

fn default() -> Layout {
    "default".parse().unwrap()
}

fn millis(number: i64) -> UnixMicros {
    default().epoch() + Micros::from_millis(number)
}

fn reserved(until: i64) -> Reserved {
    Reserved { until: millis(until), generation: 7 }
}

/// The line is at second 1, and second 2 is needed; a quarter of what is reserved is a second.
fn needs_second_2(reserved: Reserved, copy: DatabaseCopy, now: UnixMicros) -> Situation {
    let (ahead, explained) = (Micros::from_secs(4), Micros::from_secs(1));
    Situation { reserved, copy, last: Tick(1000), needs: Tick(2000), now, ahead, explained }
}

fn copy_of(reserved: Reserved) -> DatabaseCopy {
    DatabaseCopy { until: reserved.until, generation: 7, used: true }
}

#[test]
fn what_is_reserved_is_enough_while_more_than_a_quarter_is_left() {
    let prepare = |until| {
        let reserved = reserved(until);
        reservation::prepare(&default(), &needs_second_2(reserved, copy_of(reserved), millis(1000))).unwrap()
    };
    let enough = prepare(3001);
    assert_eq!((enough.raise, enough.register, enough.copy, enough.reserved), (None, None, None, reserved(3001)));
    let extended = prepare(3000);
    assert_eq!((extended.raise, extended.register), (None, Some(reserved(6000))));
    assert_eq!((extended.copy, extended.reserved), (Some(copy_of(reserved(6000))), reserved(6000)));
}

/// Only what a restore has set, and only where it is too far.
#[test]
fn a_database_in_use_leaves_out_what_a_restore_has_set_too_far_ahead() {
    let left = |until, generation| {
        let copy = DatabaseCopy { until: millis(until), generation, used: true };
        let mut situation = needs_second_2(reserved(6000), copy, millis(1000));
        let left = situation.leave_what_is_too_far(&default());
        (
            left.is_some(),
            reservation::prepare(&default(), &situation).map(|todo| (todo.raise, todo.register, todo.copy)),
        )
    };
    // As if it were not there: it is written over.
    assert_eq!(left(8000, 0), (true, Ok((None, None, Some(copy_of(reserved(6000)))))));
    // Near enough, or known before: as ever.
    assert_eq!(left(2000, 0), (false, Ok((Some(Tick(2000)), None, Some(copy_of(reserved(6000)))))));
    assert_eq!(left(500, 0), (false, Ok((None, None, Some(copy_of(reserved(6000)))))));
    assert_eq!(left(8000, 7), (false, Ok((None, None, Some(copy_of(reserved(6000)))))));
    // A register that was lost: the copy is all that is known.
    let too_far = CopyTooFar { ahead: Micros::from_secs(7), wait: Micros::from_secs(6) };
    assert_eq!(left(8000, 9), (false, Err(too_far)));
}

#[test]
fn a_copy_from_elsewhere_raises_the_line_to_where_it_ends() {
    let elsewhere = DatabaseCopy { until: millis(8000), generation: 0, used: true };
    let prepare = |until, now| reservation::prepare(&default(), &needs_second_2(reserved(until), elsewhere, now));
    // The first tick after it is needed, and nothing is lost between.
    let raised = prepare(9001, millis(7000)).unwrap();
    assert_eq!((raised.raise, raised.register), (Some(Tick(8000)), None));
    assert_eq!(raised.copy, Some(copy_of(reserved(9001))));
    assert_eq!(prepare(9000, millis(7000)).unwrap().register, Some(reserved(12_000)));
    let too_far = CopyTooFar { ahead: Micros(1_000_001), wait: Micros(1) };
    assert_eq!(prepare(9000, millis(7000) - Micros(1)), Err(too_far));
}

#[test]
fn a_copy_that_ends_with_the_tick_of_the_line_raises_it_over_the_rest_of_that_tick() {
    let until = |number| DatabaseCopy { until: millis(number), generation: 0, used: true };
    let judge = |number| reservation::judge(&default(), &needs_second_2(reserved(9001), until(number), millis(1000)));
    assert_eq!(judge(1000), Ok(None));
    assert_eq!(judge(1001), Ok(Some(Tick(1001))));
}

#[test]
fn sessions_leave_a_quarter_to_the_next_reservation() {
    let limit = |needs| reservation::limit(&default(), reserved(10_000), Micros::from_secs(4), Tick(needs)).0;
    assert_eq!([0, 9500, 20_000].map(limit), [8999, 9500, 9999]);
}

#[test]
fn what_is_given_back_ends_above_the_line() {
    let layout = default();
    let give_back = |last| {
        reservation::give_back(&layout, Reserved { until: layout.end() + Micros::from_secs(9), ..reserved(0) }, last)
    };
    assert_eq!(give_back(Tick(1000)), Some(reserved(1001)));
    let end = layout.start_of(layout.last_tick() + Ticks(1));
    assert_eq!(give_back(layout.last_tick()).map(|new| new.until), Some(reservation::whole_millis(end)));
    assert_eq!(reservation::give_back(&layout, reserved(1001), Tick(1000)), None);
}

#[test]
fn copies_are_explained_up_to_the_burst_and_what_is_reserved() {
    let explained = reservation::explained(&default(), Micros::from_secs(1), Micros::from_millis(100));
    assert_eq!(explained, Micros::from_millis(1102));
    assert_eq!([1000, 1001].map(|micros| reservation::whole_millis(UnixMicros(micros)).0), [1000, 2000]);
}

#[test]
fn a_register_holds_instants_beyond_every_layout() {
    let latest = Reserved { until: UnixMicros(i64::MAX / 1000 * 1000), generation: 5 };
    assert_eq!(latest.to_register(), 0xffff_ffff_ffff_0005);
}

/// A record of the log.
#[derive(Clone, Copy, Debug)]
enum Logged {
    Register(u64),
    Copy(usize, DatabaseCopy),
    /// A row of this database, and the position of its ID.
    Row(usize, Position),
}

/// What is on disk after the log is replayed.
#[derive(Clone, Debug)]
struct Durable {
    register: u64,
    copies: [DatabaseCopy; DATABASES],
    rows: Vec<(usize, Position)>,
}

impl Durable {
    fn replay(&mut self, record: Logged) {
        match record {
            Logged::Register(number) => self.register = number,
            Logged::Copy(database, copy) => self.copies[database] = copy,
            Logged::Row(database, position) => self.rows.push((database, position)),
        }
    }
}

/// The state of a session.
#[derive(Clone, Copy, Debug)]
enum Session {
    /// Not admitted in this run.
    New,
    /// May claim up to this tick.
    Admitted(Tick),
    /// Has planned and logged. Must flush so many records of the log before it may claim up to the tick.
    Logged(usize, Tick),
}

struct Server {
    layout: Layout,
    clock: UnixMicros,
    explained: Micros,
    // What is on disk, and the log since then, of which the first `flushed` records are on disk too.
    durable: Durable,
    log: Vec<Logged>,
    flushed: usize,
    // In memory.
    line: Line,
    reserved: Option<Reserved>,
    copies: [DatabaseCopy; DATABASES],
    sessions: [Session; SESSIONS],
    /// All positions that were ever given out, with their databases.
    given: Vec<(usize, Position)>,
}

impl Server {
    fn new(clock: Micros, explained: Micros, layout: Layout) -> Self {
        let register = Reserved { until: UnixMicros::from_millis(1), generation: 7 }.to_register();
        let durable = Durable { register, copies: [NEVER; DATABASES], rows: Vec::new() };
        let mut server = Self {
            layout,
            clock: layout.epoch() + clock,
            explained,
            durable: durable.clone(),
            log: Vec::new(),
            flushed: 0,
            line: Line::new(),
            reserved: None,
            copies: durable.copies,
            sessions: [Session::New; SESSIONS],
            given: Vec::new(),
        };
        server.start();
        server
    }

    /// A new run: memory is made anew from what is on disk.
    fn start(&mut self) {
        for record in self.log.drain(..) {
            self.durable.replay(record);
        }
        self.flushed = 0;
        self.line = Line::new();
        self.line.switch_worker(&self.layout, self.layout.place_worker(None, Some(1)).unwrap());
        self.reserved = None;
        self.copies = self.durable.copies;
        self.sessions = [Session::New; SESSIONS];
    }

    /// Loses the end of what was not flushed: all but `kept` records, modulo how many there are.
    fn crash(&mut self, kept: usize) {
        let unflushed = self.log.len() - self.flushed;
        self.log.truncate(self.flushed + kept % (unflushed + 1));
        self.start();
    }

    /// A clean stop: all of the log is kept.
    fn stop(&mut self) {
        if let Some(reserved) = self.reserved
            && let Some(new) = reservation::give_back(&self.layout, reserved, self.last())
        {
            assert!(new.until < reserved.until);
            self.log.push(Logged::Register(new.to_register()));
        }
        self.start();
    }

    fn last(&self) -> Tick {
        self.layout.tick_of(self.line.last())
    }

    fn situation(&self, database: usize, needs: Tick) -> Situation {
        Situation {
            reserved: self.reserved.unwrap(),
            copy: self.copies[database],
            last: self.last(),
            needs,
            now: self.clock,
            ahead: AHEAD,
            explained: self.explained,
        }
    }

    /// One step of a session: admission, or planning and logging, or the flush and a claim.
    fn step(&mut self, number: usize, database: usize) {
        match self.sessions[number] {
            Session::New => {
                if self.reserved.is_none() {
                    let reserved = Reserved::from_register(self.durable.register).unwrap();
                    self.line.raise(&self.layout, self.layout.first_tick_from(reserved.until));
                    self.reserved = Some(reserved);
                }
                match reservation::judge(&self.layout, &self.situation(database, Tick(0))) {
                    Ok(tick) => {
                        self.raise(tick);
                        self.sessions[number] = Session::Admitted(Tick(-1));
                    }
                    Err(CopyTooFar { ahead, wait }) => {
                        assert!(ahead > self.explained && ahead - wait == self.explained)
                    }
                }
            }
            Session::Logged(position, limit) => {
                self.flushed = self.flushed.max(position);
                self.sessions[number] = Session::Admitted(limit);
            }
            Session::Admitted(limit) => {
                let now = self.layout.tick_at(self.clock);
                let policy = Policy { max_burst: Ticks(100), max_lead: Ticks(i64::MAX), spread: 1 };
                let reach = Reach { policy, limit, now, gives_way: false };
                let claim = match self.line.claim(&self.layout, &reach, 3) {
                    // With a new pace each time, so that a tick is opened for every claim that needs one.
                    Err(Refusal::Behind) => {
                        self.line.open(&self.layout, &reach, 3, &mut Pace::default(), MonotonicMicros(0))
                    }
                    claim => claim,
                };
                match claim {
                    Ok(claim) => {
                        let positions = (claim.first.0..claim.first.0 + claim.count).map(Position);
                        self.given.extend(positions.map(|position| (database, position)));
                        self.log.push(Logged::Row(database, claim.first));
                    }
                    Err(Refusal::Limit { needs }) => self.reserve(number, database, needs),
                    Err(_) => {}
                }
            }
        }
    }

    fn reserve(&mut self, number: usize, database: usize, needs: Tick) {
        let Ok(todo) = reservation::prepare(&self.layout, &self.situation(database, needs)) else { return };
        self.raise(todo.raise);
        if let Some(new) = todo.register {
            self.log.push(Logged::Register(new.to_register()));
            self.reserved = Some(new);
        }
        let position = self.log.len();
        if let Some(copy) = todo.copy {
            self.log.push(Logged::Copy(database, copy));
            self.copies[database] = copy;
        }
        assert_eq!(self.reserved, Some(todo.reserved));
        let limit = reservation::limit(&self.layout, todo.reserved, AHEAD, needs);
        assert!(self.layout.start_of(limit) < todo.reserved.until);
        self.sessions[number] = Session::Logged(position, limit);
    }

    /// As a copy asks for: never further ahead of the clock than a crash explains, however often a copy is set, and each
    /// time from where the line is. All databases share the line.
    fn raise(&self, tick: Option<Tick>) {
        let Some(tick) = tick else { return };
        let ahead = self.layout.start_of(tick).saturating_since(self.clock);
        assert!(ahead.0 <= self.explained.0.saturating_add(self.layout.tick_length().0), "{ahead:?} ahead");
        self.line.raise(&self.layout, tick);
    }

    fn set_copy(&mut self, database: usize, millis: i64) {
        let copy = DatabaseCopy { until: UnixMicros::from_millis(millis), generation: 0, used: true };
        self.log.push(Logged::Copy(database, copy));
        self.copies[database] = copy;
    }

    fn apply(&mut self, op: Op) {
        match op {
            // A session stays in its database.
            Op::Step { session } => self.step(session, session % DATABASES),
            Op::Crash { kept } => self.crash(kept),
            Op::Stop => self.stop(),
            Op::Pass { micros } => self.clock = self.clock + Micros(micros),
            Op::Set { clock } => self.clock = self.layout.epoch() + clock,
            Op::SetCopy { database, millis } => self.set_copy(database, millis),
            Op::SetCopyAhead { database, millis } => {
                let last = self.layout.start_of(self.last());
                self.set_copy(database, last.0 / 1000 + millis);
            }
        }
    }

    /// Where a dump of a database is restored on another server, none of its IDs is made again, whatever the clock says
    /// there.
    fn check_move(&self, database: usize, clock: Micros) {
        let mut new = Self::new(clock, Micros(i64::MAX), self.layout);
        // Its line may be within the tick that the copy ends with.
        for _ in 0..4 {
            new.step(1, 1);
        }
        new.given.clear();
        new.set_copy(0, self.copies[database].until.0 / 1000);
        for _ in 0..12 {
            new.step(0, 0);
            // Where the copy ends just as far ahead as claims may be, they wait for the clock.
            new.apply(Op::Pass { micros: 10_000 });
        }
        assert!(!new.given.is_empty());
        // Rows that a crash has taken out of the log do not count.
        let mut now = self.durable.clone();
        self.log.iter().for_each(|&record| now.replay(record));
        let old: HashSet<Position> =
            now.rows.iter().filter(|(of, _)| *of == database).map(|&(_, position)| position).collect();
        assert!(new.given.iter().all(|(_, position)| !old.contains(position)));
    }
}

#[derive(Clone, Debug)]
enum Op {
    Step {
        session: usize,
    },
    Crash {
        kept: usize,
    },
    Stop,
    Pass {
        micros: i64,
    },
    Set {
        clock: Micros,
    },
    SetCopy {
        database: usize,
        millis: i64,
    },
    /// So many milliseconds above the line.
    SetCopyAhead {
        database: usize,
        millis: i64,
    },
}

/// A time since the epoch. All lie in the same minute, so that the clock often comes back to where it was.
fn clock() -> impl Strategy<Value = Micros> {
    (3_600_000_000..3_660_000_000_i64).prop_map(Micros)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        30 => (0..SESSIONS).prop_map(|session| Op::Step { session }),
        3 => (0..9_usize).prop_map(|kept| Op::Crash { kept }),
        2 => Just(Op::Stop),
        6 => (0..2_000_000_i64).prop_map(|micros| Op::Pass { micros }),
        2 => clock().prop_map(|clock| Op::Set { clock }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_position_is_given_twice(
        start in clock(),
        ops in prop::collection::vec(op(), 1..200),
        elsewhere in clock(),
        layout in 0..LAYOUTS.len(),
    ) {
        let mut server = Server::new(start, Micros(i64::MAX), LAYOUTS[layout].parse().unwrap());
        for op in ops {
            server.apply(op);
        }
        let distinct: HashSet<Position> = server.given.iter().map(|&(_, position)| position).collect();
        prop_assert_eq!(distinct.len(), server.given.len());
        for database in 0..DATABASES {
            server.check_move(database, elsewhere);
        }
    }

    /// Whatever copies are set to by hand: no position is given twice on the server, and the line stays near the clock
    /// (see [`Server::raise`]).
    #[test]
    fn a_copy_set_by_hand_harms_no_other_database(
        start in clock(),
        ops in prop::collection::vec(prop_oneof![
            20 => op(),
            2 => (0..DATABASES, any::<i64>()).prop_map(|(database, millis)| {
                Op::SetCopy { database, millis: millis.rem_euclid(1 << 43) }
            }),
            4 => (0..DATABASES, 0..1_500_i64).prop_map(|(database, millis)| Op::SetCopyAhead { database, millis }),
        ], 1..200),
    ) {
        let explained = reservation::explained(&"default".parse().unwrap(), AHEAD, Micros::from_millis(100));
        let mut server = Server::new(start, explained, default());
        for op in ops {
            server.apply(op);
        }
        let distinct: HashSet<Position> = server.given.iter().map(|&(_, position)| position).collect();
        prop_assert_eq!(distinct.len(), server.given.len());
    }

    #[test]
    fn every_number_in_the_register_can_be_read(number: u64) {
        match Reserved::from_register(number) {
            None => prop_assert_eq!(number, 0),
            Some(reserved) if number >> 16 > 0 => prop_assert_eq!(reserved.to_register(), number),
            Some(reserved) => prop_assert_eq!(reserved.to_register() >> 16, 1),
        }
    }
}

#[test]
fn a_clean_stop_leaves_nothing_reserved_that_was_not_used() {
    let mut server = Server::new(Micros::from_secs(3600), Micros(0), default());
    for _ in 0..4 {
        server.step(0, 0);
    }
    let last = server.given.last().unwrap().1;
    server.stop();
    for _ in 0..4 {
        server.step(0, 0);
    }
    let first = server.given.iter().map(|&(_, position)| position).filter(|&position| position > last).min().unwrap();
    assert_eq!(server.layout.tick_of(first).0, server.layout.tick_of(last).0 + 1);
}

#[test]
fn a_copy_from_elsewhere_is_compared_with_the_line_and_not_with_the_reservation() {
    let layout: Layout = "default".parse().unwrap();
    let now = layout.epoch() + Micros::from_secs(3600);
    let reserved = Reserved { until: now + AHEAD, generation: 7 };
    let copy = |until, generation| DatabaseCopy { until, generation, used: true };
    let judge = |copy, explained| {
        let last = layout.tick_at(now);
        let situation = Situation { reserved, copy, last, needs: last, now, ahead: AHEAD, explained };
        reservation::judge(&layout, &situation)
    };
    let between = now + AHEAD / 2;
    assert_eq!(judge(copy(between, 0), AHEAD), Ok(Some(layout.tick_at(between))));
    assert_eq!(judge(copy(between, 8), AHEAD), Ok(Some(layout.tick_at(between))));
    assert_eq!(judge(copy(between, 7), AHEAD), Ok(None), "a copy of this register says nothing new");
    assert_eq!(judge(copy(between, 0), Micros(0)), Err(CopyTooFar { ahead: AHEAD / 2, wait: AHEAD / 2 }));
    assert_eq!(judge(copy(now - Micros(1), 0), Micros(0)), Ok(None));
}
