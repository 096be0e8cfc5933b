//! The line with one caller: what a claim gets at each distance from the clock, and what holds for every claim whatever
//! the clock does. `loom.rs` has several callers at once.

use proptest::prelude::*;
use snowflake_core::{
    Claim, Layout, Line, Micros, MonotonicMicros, Pace, Policy, Position, Reach, Refusal, Tick, Ticks, UnixMicros,
    WorkerBits,
};

/// A line with its clocks: `monotonic` shows how much real time has passed, `wall` may be set to anything.
struct Server {
    layout: Layout,
    line: Line,
    pace: Pace,
    wall: UnixMicros,
    monotonic: MonotonicMicros,
    reach: Reach,
    /// Whether the last claim had to open a tick.
    opened: bool,
}

impl Server {
    fn new(layout: &str, max_burst: i64, max_lead: i64) -> Self {
        let layout: Layout = layout.parse().unwrap();
        let (line, pace) = (Line::new(), Pace::default());
        let limit = layout.last_tick();
        let policy = Policy { max_burst: Ticks(max_burst), max_lead: Ticks(max_lead), spread: 1 };
        let reach = Reach { policy, limit, now: Tick(0), gives_way: false };
        line.switch_worker(&layout, layout.place_worker(None, Some(1)).unwrap());
        let (wall, monotonic) = (layout.start_of(Tick(1000)), MonotonicMicros(0));
        Self { layout, line, pace, wall, monotonic, reach, opened: false }
    }

    fn claim(&mut self, want: u64) -> Result<Claim, Refusal> {
        self.reach.now = self.layout.tick_at(self.wall);
        let claim = self.line.claim(&self.layout, &self.reach, want);
        self.opened = claim == Err(Refusal::Behind);
        match claim {
            Err(Refusal::Behind) => self.line.open(&self.layout, &self.reach, want, &mut self.pace, self.monotonic),
            done => done,
        }
    }

    /// Claims until a claim is refused. Returns how many positions were claimed, and the refusal.
    fn drain(&mut self) -> (u64, Refusal) {
        let mut count = 0;
        loop {
            match self.claim(1000) {
                Ok(claim) => count += claim.count,
                Err(refusal) => return (count, refusal),
            }
        }
    }

    fn pass(&mut self, micros: i64) {
        self.wall = self.wall + Micros(micros);
        self.monotonic = self.monotonic + Micros(micros);
    }

    fn tick(&self, position: Position) -> i64 {
        self.layout.tick_of(position).0
    }
}

const DEFAULT: &str = "default";

/// The last tick of the default layout.
const LAST: i64 = (1 << 41) - 1;

/// A line whose next position is the first of a tick, and a reach of a clock at tick 100: ten ticks of burst, a lead of fifty.
fn next_is(tick: i64) -> (Layout, Line, Reach) {
    let (layout, line): (Layout, Line) = (DEFAULT.parse().unwrap(), Line::new());
    line.raise(&layout, Tick(tick));
    let policy = Policy { max_burst: Ticks(10), max_lead: Ticks(50), spread: 1 };
    let reach = Reach { policy, limit: layout.last_tick(), now: Tick(100), gives_way: false };
    (layout, line, reach)
}

#[test]
fn a_claim_gets_all_that_it_wants_where_there_is_room() {
    let (layout, line, reach) = next_is(100);
    assert_eq!(line.claim(&layout, &reach, 5000).map(|claim| claim.count), Ok(5000));
}

#[test]
fn each_refusal_begins_at_its_tick() {
    let refused = |next, limit| {
        let (layout, line, mut reach) = next_is(next);
        reach.limit = limit;
        line.claim(&layout, &reach, 1).unwrap_err()
    };
    // As far ahead as the burst: that is no reason to wait for the clock.
    assert_eq!(refused(110, Tick(105)), Refusal::Limit { needs: Tick(110) });
    assert_eq!(refused(111, Tick(120)), Refusal::Full { until: Tick(101) });
    assert_eq!(refused(150, Tick(150)), Refusal::Behind);
    assert_eq!(refused(151, Tick(160)), Refusal::TooFarAhead { lead: Ticks(51) });
    let (layout, line, mut reach) = next_is(LAST);
    (reach.now, reach.limit) = (Tick(LAST - 5), Tick(LAST - 1));
    assert_eq!(line.claim(&layout, &reach, 1), Err(Refusal::Limit { needs: Tick(LAST) }), "the layout has that tick");
    // Within the last tick that is reserved.
    let (layout, line, mut reach) = next_is(150);
    reach.now = Tick(150);
    line.claim(&layout, &reach, 5).unwrap();
    (reach.now, reach.limit) = (Tick(100), Tick(150));
    assert_eq!(line.claim(&layout, &reach, 1).map(|claim| layout.tick_of(claim.first)), Ok(Tick(150)));
    reach.limit = Tick(149);
    assert_eq!(line.claim(&layout, &reach, 1), Err(Refusal::Limit { needs: Tick(150) }));
}

/// Also where a tick has just ended: no two switches leave the line where it was.
#[test]
fn a_switch_gives_up_a_tick() {
    let (layout, line, _) = next_is(100);
    for tick in 100..103 {
        line.switch_worker(&layout, layout.place_worker(None, Some(1)).unwrap());
        assert_eq!(line.last(), layout.last_position(Tick(tick)));
    }
}

#[test]
fn a_burst_runs_ahead_of_the_clock_then_waits_for_it() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    let first = server.claim(1).unwrap();
    assert_eq!((server.tick(first.first), first.count), (1000, 1));
    assert_eq!(server.drain(), (101 * 4096 - 1, Refusal::Full { until: Tick(1001) }));
    server.pass(999);
    assert_eq!(server.drain(), (0, Refusal::Full { until: Tick(1001) }));
    server.pass(1);
    assert_eq!(server.drain(), (4096, Refusal::Full { until: Tick(1002) }));
    server.pass(10_000);
    assert_eq!(server.drain(), (40_960, Refusal::Full { until: Tick(1012) }), "a long sleep loses no position");
}

/// Who uses up what belongs to all leaves an eighth of it to those who want little.
#[test]
fn who_gives_way_leaves_the_last_eighth_to_others() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    let drained_by = |server: &mut Server, gives_way| {
        server.reach.gives_way = gives_way;
        server.drain()
    };
    let (all, left) = (101 * 4096, 101 * 512);
    assert_eq!(drained_by(&mut server, true), (all - left, Refusal::Full { until: Tick(1001) }));
    assert_eq!(drained_by(&mut server, true), (0, Refusal::Full { until: Tick(1001) }));
    // What others have taken is made up for first: by as many ticks, and a part of one.
    assert_eq!(drained_by(&mut server, false), (left, Refusal::Full { until: Tick(1001) }));
    assert_eq!(drained_by(&mut server, true), (0, Refusal::Full { until: Tick(1013) }));
    server.pass(12_000);
    assert_eq!(drained_by(&mut server, true), (0, Refusal::Full { until: Tick(1013) }));
    server.pass(1000);
    let (taken, refusal) = drained_by(&mut server, true);
    assert_eq!((taken, refusal), (13 * 4096 - left, Refusal::Full { until: Tick(1014) }));
    // None of it is lost.
    server.pass(1000);
    assert_eq!(drained_by(&mut server, true), (4096, Refusal::Full { until: Tick(1015) }));
    // A limit is one for all.
    server.pass(1000);
    server.reach.limit = Tick(server.tick(server.line.last()));
    let needs = server.reach.limit + Ticks(1);
    assert!(matches!(drained_by(&mut server, true), (0..4096, Refusal::Limit { .. })), "{needs:?}");
}

/// Also of a single tick, and of few numbers.
#[test]
fn an_eighth_of_a_tick_is_left_and_none_of_very_few() {
    let mut server = Server::new(DEFAULT, 0, 600_000);
    server.reach.gives_way = true;
    assert_eq!(server.drain(), (3584, Refusal::Full { until: Tick(1001) }));
    server.reach.gives_way = false;
    assert_eq!(server.drain(), (512, Refusal::Full { until: Tick(1001) }));
    let mut server = Server::new("timestamp=41 worker=3 sequence=2", 0, 600_000);
    server.reach.gives_way = true;
    assert_eq!(server.drain(), (4, Refusal::Full { until: Tick(1001) }));
    let mut server = Server::new("timestamp=41 worker=3 sequence=2", 1, 600_000);
    server.reach.gives_way = true;
    assert_eq!(server.drain(), (7, Refusal::Full { until: Tick(1001) }));
    server.pass(1000);
    assert_eq!(server.drain(), (4, Refusal::Full { until: Tick(1002) }));
}

/// The clock went back: whoever gives way gets no more than others, and no less.
#[test]
fn behind_the_line_all_are_equal() {
    for gives_way in [false, true] {
        let (layout, line, reach) = next_is(140);
        let reach = Reach { gives_way, ..reach };
        assert_eq!(line.claim(&layout, &reach, 5000), Err(Refusal::Behind));
        let mut pace = Pace::default();
        let claim = line.open(&layout, &reach, 5000, &mut pace, MonotonicMicros(0)).unwrap();
        assert_eq!((layout.tick_of(claim.first), claim.count), (Tick(140), 4096));
    }
}

#[test]
fn without_burst_a_tick_holds_what_its_sequence_holds() {
    let mut server = Server::new(DEFAULT, 0, 600_000);
    assert_eq!(server.drain(), (4096, Refusal::Full { until: Tick(1001) }));
}

#[test]
fn a_clock_that_went_back_gets_one_tick_per_tick() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    let last = server.claim(1).unwrap().first;
    server.wall.0 -= 5_000_000;
    let next = server.claim(1).unwrap();
    assert_eq!(next.first.0, last.0 + 1, "claims go on within the last tick");
    let (rest, refusal) = server.drain();
    assert_eq!((rest, refusal), (4094 + 4096, Refusal::TooEarly { wait: Micros(1000) }), "and open one more");
    for _ in 0..10 {
        server.pass(999);
        assert_eq!(server.drain(), (0, Refusal::TooEarly { wait: Micros(1) }));
        server.pass(1);
        assert_eq!(server.drain(), (4096, Refusal::TooEarly { wait: Micros(1000) }));
    }
    server.pass(5_000_000);
    assert_eq!(server.tick(server.line.last()), 1000 + 11);
    let caught_up = server.claim(1).unwrap();
    assert_eq!(server.tick(caught_up.first), 1000 + 12, "the clock reads 1010, so the burst reaches it");
}

#[test]
fn a_tick_that_is_opened_gives_as_many_as_are_wanted() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    server.claim(1).unwrap();
    server.wall.0 -= 5_000_000;
    server.drain();
    server.pass(1000);
    let claim = server.claim(1000).unwrap();
    assert_eq!((claim.count, server.opened), (1000, true));
    server.drain();
    server.pass(1000);
    assert_eq!(server.claim(5000).unwrap().count, 4096, "and at most those of the tick");
}

#[test]
fn strict_settings_refuse_a_clock_that_went_back() {
    let mut server = Server::new(DEFAULT, 0, 0);
    server.claim(1).unwrap();
    server.wall.0 -= 1000;
    assert_eq!(server.claim(1), Err(Refusal::TooFarAhead { lead: Ticks(1) }));
    server.pass(1000);
    assert!(server.claim(1).is_ok());
}

#[test]
fn the_lead_is_bounded() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    server.claim(1).unwrap();
    server.wall.0 -= 600_001_000;
    assert_eq!(server.claim(1), Err(Refusal::TooFarAhead { lead: Ticks(600_001) }));
    server.wall.0 += 1000;
    assert_eq!(server.drain(), (4095, Refusal::TooFarAhead { lead: Ticks(600_001) }), "the next tick would be too far");
}

#[test]
fn a_clock_before_the_epoch_is_a_clock_behind() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    server.wall = UnixMicros(0);
    let lead = server.layout.epoch().0 / 1000;
    assert!(matches!(server.claim(1), Err(Refusal::TooFarAhead { lead: found }) if found.0 >= lead));
    for wall in [i64::MIN, i64::MIN + 1, -1] {
        server.wall = UnixMicros(wall);
        assert!(matches!(server.claim(1), Err(Refusal::TooFarAhead { .. })), "{wall}");
    }
}

#[test]
fn the_last_tick_is_used_up_and_no_more() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    server.wall = UnixMicros(server.layout.end().0 - 1);
    let mut last = Position(0);
    let mut count = 0;
    let refusal = loop {
        match server.claim(1000) {
            Ok(claim) => (count, last) = (count + claim.count, Position(claim.first.0 + claim.count - 1)),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!((count, refusal), (4096, Refusal::Exhausted));
    assert_eq!(server.layout.compose(last, WorkerBits(1023 << 12)), i64::MAX);
    for wall in [server.layout.end().0, i64::MAX - 1, i64::MAX] {
        server.wall = UnixMicros(wall);
        assert_eq!(server.claim(1), Err(Refusal::Exhausted), "{wall}");
    }
}

#[test]
fn the_limit_bounds_every_claim() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    server.reach.limit = Tick(1002);
    assert_eq!(server.drain(), (3 * 4096, Refusal::Limit { needs: Tick(1003) }));
    server.wall.0 -= 5_000_000;
    assert_eq!(server.claim(1), Err(Refusal::Limit { needs: Tick(1003) }), "also while the clock is behind");
    server.reach.limit = Tick(1001);
    assert_eq!(server.claim(1), Err(Refusal::Limit { needs: Tick(1003) }));
}

#[test]
fn a_limit_taken_back_below_the_line_bounds_the_last_tick_too() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    server.claim(1).unwrap();
    server.reach.limit = Tick(999);
    assert_eq!(server.claim(1), Err(Refusal::Limit { needs: Tick(1000) }));
    server.wall.0 -= 5_000_000;
    assert_eq!(server.claim(1), Err(Refusal::Limit { needs: Tick(1000) }));
}

#[test]
fn rare_ids_spread_over_the_sequences() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    for (spread, distinct) in [(64, 64), (1, 1)] {
        server.reach.policy.spread = spread;
        let sequences: std::collections::HashSet<u64> = (0..256)
            .map(|_| {
                server.pass(1000);
                server.claim(1).unwrap().first.0 % 4096
            })
            .collect();
        assert_eq!(sequences.len(), distinct);
    }
}

#[test]
fn ids_rise_when_the_worker_number_falls() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    let id = |claim: Claim, layout: &Layout| layout.compose(claim.first, claim.worker);
    let mut last = 0;
    for worker in [1023, 5, 0, 7, 6] {
        let bits = server.layout.place_worker(None, Some(worker)).unwrap();
        server.line.switch_worker(&server.layout, bits);
        for _ in 0..3 {
            let claim = server.claim(1).unwrap();
            assert_eq!(claim.worker, bits);
            assert!(id(claim, &server.layout) > last);
            last = id(claim, &server.layout);
        }
    }
}

#[test]
fn a_raised_line_goes_on_above() {
    let mut server = Server::new(DEFAULT, 100, 600_000);
    let last = server.claim(1).unwrap().first;
    let fresh = Line::new();
    fresh.raise(&server.layout, Tick(0));
    assert_eq!(fresh.last(), Position(0));
    fresh.raise(&server.layout, Tick(1));
    assert_eq!(fresh.last(), server.layout.last_position(Tick(0)));
    fresh.raise(&server.layout, Tick(50));
    fresh.lower(&server.layout, Tick(60));
    assert_eq!(fresh.last(), server.layout.last_position(Tick(49)), "lowered to where it is not");
    fresh.lower(&server.layout, Tick(40));
    assert_eq!(fresh.last(), server.layout.last_position(Tick(39)));
    let fresh = Line::new();
    assert_eq!(fresh.close(&server.layout, Tick(0)), Position(0));
    assert_eq!(fresh.last(), server.layout.last_position(Tick(0)));
    server.line.raise(&server.layout, Tick(1000));
    assert_eq!(server.claim(1).unwrap().first.0, last.0 + 1, "a tick below the line changes nothing");
    server.line.raise(&server.layout, Tick(1050));
    assert_eq!(server.claim(1).unwrap().first, server.layout.position(Tick(1050), 0));
    server.line.raise(&server.layout, Tick(5000));
    assert_eq!(
        server.claim(1).unwrap().first,
        server.layout.position(Tick(5000), 0),
        "beyond the burst, a tick is opened"
    );
    for below_all in [Tick(0), Tick(-1), Tick(i64::MIN)] {
        let before = server.line.last();
        server.line.raise(&server.layout, below_all);
        assert_eq!(server.line.last(), before);
    }
    server.line.raise(&server.layout, Tick(i64::MAX));
    assert_eq!(server.claim(1), Err(Refusal::Exhausted));
    assert_eq!(server.line.last(), server.layout.last_position(server.layout.last_tick()));
}

#[derive(Clone, Debug)]
enum Step {
    Pass(i64),
    Jump(i64),
    Set(i64),
    Claim(u64),
    Switch(u32),
    Policy { max_burst: i64, max_lead: i64, spread: u32 },
    Limit(i64),
    Raise(i64),
    GiveWay(bool),
}

fn any_step() -> impl Strategy<Value = Step> {
    let second = 1_000_000_i64;
    prop_oneof![
        4 => (0..=3000_i64).prop_map(Step::Pass),
        1 => (0..=60 * second).prop_map(Step::Pass),
        1 => (-second..=second).prop_map(Step::Jump),
        1 => (-3600 * second..=3600 * second).prop_map(Step::Jump),
        1 => any::<i64>().prop_map(Step::Set),
        12 => prop_oneof![Just(1_u64), 1..=10_000_u64, Just(u64::MAX)].prop_map(Step::Claim),
        1 => (0..=7_u32).prop_map(Step::Switch),
        1 => (0..=200_i64, 0..=10_000_i64, 0..=12_u32).prop_map(|(max_burst, max_lead, spread)| {
            Step::Policy { max_burst, max_lead, spread }
        }),
        1 => (-10..=1000_i64).prop_map(Step::Limit),
        1 => (-1000..=1000_i64).prop_map(Step::Raise),
        1 => any::<bool>().prop_map(Step::GiveWay),
    ]
}

fn any_server() -> impl Strategy<Value = Server> {
    let tick = prop::sample::select(vec!["1ms", "10ms", "1s", "10us"]);
    let order = prop::sample::select(vec!["worker=3 sequence=S", "sequence=S worker=3"]);
    (25_u32..=31, 1_u32..=12, tick, order).prop_map(|(timestamp, sequence, tick, order)| {
        let rest = order.replace('S', &sequence.to_string());
        let mut server = Server::new(&format!("timestamp={timestamp} {rest} tick={tick}"), 100, 600_000);
        server.reach.policy.spread = 1 << sequence.min(6);
        server
    })
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.layout, self.reach)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn ids_rise_and_stay_in_their_bounds_whatever_the_clock_does(mut server in any_server(), steps in prop::collection::vec(any_step(), 1..200)) {
        let layout = server.layout;
        let mut last_id = -1;
        let mut opened_at: Option<MonotonicMicros> = None;
        for step in steps {
            match step {
                Step::Pass(micros) => {
                    server.wall = server.wall.saturating_add(Micros(micros));
                    server.monotonic = server.monotonic + Micros(micros);
                }
                Step::Jump(micros) => server.wall = server.wall.saturating_add(Micros(micros)),
                Step::Set(micros) => server.wall = UnixMicros(micros),
                Step::Switch(worker) => {
                    server.line.switch_worker(&layout, layout.place_worker(None, Some(worker)).unwrap());
                }
                Step::Policy { max_burst, max_lead, spread } => {
                    let sequences = layout.max(snowflake_core::Field::Sequence) + 1;
                    server.reach.policy = Policy {
                        max_burst: Ticks(max_burst),
                        max_lead: Ticks(max_lead),
                        spread: (1_u64 << spread).min(sequences),
                    };
                }
                Step::GiveWay(gives_way) => server.reach.gives_way = gives_way,
                Step::Limit(ahead) => {
                    let last = server.tick(server.line.last());
                    server.reach.limit = Tick(last + ahead).min(layout.last_tick());
                }
                Step::Raise(ahead) => {
                    let last = server.line.last();
                    let tick = Tick(server.tick(last) + ahead);
                    server.line.raise(&layout, tick);
                    prop_assert!(server.line.last() >= last);
                    prop_assert!(server.line.last().0 + 1 >= layout.position(tick.max(Tick(0)), 0).0
                        || tick > layout.last_tick());
                }
                Step::Claim(want) => {
                    let before = server.line.last();
                    let reach = Reach { now: layout.tick_at(server.wall), ..server.reach };
                    let (max_burst, max_lead) = (reach.policy.max_burst.0, reach.policy.max_lead.0);
                    let ordinary = server.line.claim_in(&reach.open_range(&layout), want);
                    let claim = match ordinary {
                        Some(claim) => {
                            server.opened = false;
                            prop_assert!(server.tick(server.line.last()) - layout.tick_at(server.wall).0 <= max_burst);
                            Ok(claim)
                        }
                        None => {
                            prop_assert_eq!(server.line.last(), before);
                            server.claim(want)
                        }
                    };
                    if let (None, Ok(claim)) = (ordinary, claim) {
                        let ahead = server.tick(claim.first).saturating_sub(layout.tick_at(server.wall).0);
                        prop_assert!(ahead > max_burst, "{claim:?} is an ordinary claim");
                    }
                    let must_open = server.opened;
                    match claim {
                        Err(Refusal::Behind) => prop_assert!(false, "open never says Behind"),
                        Err(_) => prop_assert_eq!(server.line.last(), before, "a refusal claims nothing"),
                        Ok(claim) => {
                            prop_assert!(claim.first > before);
                            prop_assert!((1..=want).contains(&claim.count));
                            let last = Position(claim.first.0 + claim.count - 1);
                            prop_assert_eq!(server.line.last(), last);
                            let id = layout.compose(claim.first, claim.worker);
                            prop_assert!(id > last_id, "{id} after {last_id}");
                            last_id = layout.compose(last, claim.worker);

                            let now = layout.tick_at(server.wall).0;
                            let ahead = max_burst.max(max_lead);
                            prop_assert!(server.tick(claim.first) >= now);
                            prop_assert!(server.tick(last) - now <= ahead);
                            prop_assert!(server.tick(last) <= reach.limit.0);
                            prop_assert!(server.tick(last) <= layout.last_tick().0);
                            prop_assert!((0..=layout.max_id()).contains(&last_id));
                            if must_open {
                                prop_assert_eq!(server.tick(last), server.tick(before) + 1);
                                if let Some(opened_at) = opened_at {
                                    prop_assert!(server.monotonic - opened_at >= layout.tick_length());
                                }
                                opened_at = Some(server.monotonic);
                            }
                        }
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Nobody whose limit is at most the tick claims any more, whatever the clock and the settings say.
    #[test]
    fn a_closed_line_refuses_every_claim_up_to_its_limit(
        mut server in any_server(),
        (claims, beyond, limit) in (0..5_usize, -1..300_i64, 0..300_i64),
        (now, max_burst, max_lead) in (-200..400_i64, 0..200_i64, 0..1000_i64),
    ) {
        let layout = server.layout;
        for _ in 0..claims {
            let _ = server.claim(1000);
        }
        let (last, base) = (server.line.last(), server.tick(server.line.last()));
        let beyond = Tick(base + beyond);
        prop_assert_eq!(server.line.close(&layout, beyond), last, "what was used");
        let closed = server.line.last();
        // There is no tick before the first.
        let end = if beyond < Tick(0) { last } else { layout.last_position(beyond.min(layout.last_tick())) };
        prop_assert_eq!(closed, last.max(end));
        let policy = Policy { max_burst: Ticks(max_burst), max_lead: Ticks(max_lead), spread: 1 };
        let limit = Tick(base + limit).min(beyond).min(layout.last_tick());
        let reach = Reach { policy, limit, now: Tick(base + now), gives_way: false };
        prop_assert_eq!(server.line.claim_in(&reach.open_range(&layout), 1), None);
        let refused = server.line.open(&layout, &reach, 1, &mut Pace::default(), MonotonicMicros(0));
        prop_assert!(refused.is_err());
        prop_assert_eq!(server.line.last(), closed);
        // Beyond it, claims go on.
        server.reach.limit = layout.last_tick();
        server.wall = layout.start_of(beyond.max(Tick(base)) + Ticks(1));
        prop_assert!(server.claim(1).is_ok());
    }
}

#[test]
fn a_line_is_closed_to_the_layouts_end_and_not_beyond() {
    let server = Server::new(DEFAULT, 100, 600_000);
    let last = server.line.last();
    assert_eq!(server.line.close(&server.layout, Tick(-1)), last);
    assert_eq!(server.line.last(), last, "there is no tick to close");
    for beyond in [server.layout.last_tick(), Tick(i64::MAX)] {
        server.line.close(&server.layout, beyond);
        assert_eq!(server.line.last(), server.layout.last_position(server.layout.last_tick()));
    }
    let reach = Reach { limit: server.layout.last_tick(), now: server.layout.last_tick(), ..server.reach };
    assert_eq!(server.line.claim(&server.layout, &reach, 1), Err(Refusal::Exhausted));
}
