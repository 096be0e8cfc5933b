//! Which time is believed when the clock is set, or leaps.

use proptest::prelude::*;
use snowflake_core::clock::{BelievedClock, ClockStep, Look};
use snowflake_core::{Micros, MonotonicMicros, UnixMicros};

const SECOND: i64 = 1_000_000;
const YEAR: i64 = 31_536_000 * SECOND;
const MAX_JUMP: i64 = 10 * SECOND;
const START: i64 = 1_700_000_000 * SECOND;

/// A server whose monotonic clock counts from 0, and whose clock is ahead of the right time by `offset` microseconds.
struct Server {
    clock: BelievedClock,
    monotonic: i64,
    offset: i64,
    line: UnixMicros,
}

impl Server {
    fn new() -> Self {
        let clock = BelievedClock::new(UnixMicros(START), MonotonicMicros(0));
        Self { clock, monotonic: 0, offset: 0, line: UnixMicros(0) }
    }

    /// What both clocks say.
    fn clocks(&self) -> Look {
        let clock = UnixMicros(START + self.monotonic + self.offset);
        let (monotonic, max_jump) = (MonotonicMicros(self.monotonic), Micros(MAX_JUMP));
        Look { clock, monotonic, line: self.line, max_jump }
    }

    /// By how many microseconds the time to go by is ahead of the right one, where a look changes nothing.
    fn peek(&self) -> Option<i64> {
        Some(self.clock.peek(&self.clocks())?.0 - START - self.monotonic)
    }

    /// By how many microseconds the time to go by is ahead of the right one, and what has changed.
    fn look(&mut self) -> (i64, ClockStep) {
        let look = self.clocks();
        let peeked = self.clock.peek(&look);
        let before = self.clock;
        let (now, change) = self.clock.look(&look);
        if let Some(peeked) = peeked {
            assert_eq!((peeked, ClockStep::None), (now, change));
            assert!(self.clock.offset.0.abs_diff(before.offset.0) < 1000 && self.clock.leap == before.leap);
        }
        (now.0 - START - self.monotonic, change)
    }

    fn pass(&mut self, micros: i64) -> &mut Self {
        self.monotonic += micros;
        self
    }

    fn set(&mut self, offset: i64) -> &mut Self {
        self.offset = offset;
        self
    }
}

#[test]
fn a_leap_that_ends_within_a_minute_is_never_believed() {
    let mut server = Server::new();
    assert_eq!(server.pass(SECOND).look(), (0, ClockStep::None));
    assert_eq!(server.set(YEAR).look(), (0, ClockStep::Leapt(Micros(YEAR))));
    assert_eq!(server.pass(59 * SECOND).look(), (0, ClockStep::None));
    assert_eq!(server.set(0).look(), (0, ClockStep::None));
    // The minute of the next leap starts anew.
    assert_eq!(server.set(YEAR).look(), (0, ClockStep::Leapt(Micros(YEAR))));
    assert_eq!(server.pass(59 * SECOND).look(), (0, ClockStep::None));
}

/// Which is most of the time: nobody waits for another session's look.
#[test]
fn a_look_that_changes_nothing_is_known_without_a_change() {
    let mut server = Server::new();
    for (offset, peeked) in
        [(0, Some(0)), (999, Some(999)), (-999, Some(-999)), (1000, None), (-1000, None), (YEAR, None)]
    {
        assert_eq!(server.set(offset).peek(), peeked, "{offset}");
    }
    server.look();
    assert_eq!(server.peek(), Some(0), "a leap that is known");
    assert_eq!(server.pass(59 * SECOND).peek(), Some(0));
    assert_eq!(server.set(2 * YEAR).peek(), None, "another leap");
    assert_eq!(server.set(0).peek(), None, "the clock is right again, and the leap to be forgotten");
    assert_eq!(server.set(YEAR).pass(SECOND).peek(), None, "the leap has lasted");
}

#[test]
fn a_leap_that_lasts_for_a_minute_is_believed() {
    let mut server = Server::new();
    server.set(YEAR).look();
    assert_eq!(server.pass(60 * SECOND).look(), (YEAR, ClockStep::Lasted(Micros(YEAR))));
    assert_eq!(server.pass(SECOND).look(), (YEAR, ClockStep::None));
    assert_eq!(server.set(0).look(), (0, ClockStep::Back(Micros(YEAR))));
}

#[test]
fn the_minute_starts_anew_with_another_leap() {
    let mut server = Server::new();
    server.set(YEAR).look();
    assert_eq!(server.pass(40 * SECOND).set(2 * YEAR).look(), (0, ClockStep::Leapt(Micros(2 * YEAR))));
    assert_eq!(server.pass(40 * SECOND).look(), (0, ClockStep::None));
    assert_eq!(server.pass(20 * SECOND).look(), (2 * YEAR, ClockStep::Lasted(Micros(2 * YEAR))));

    // A leap is another one where it differs by max_jump.
    let mut server = Server::new();
    server.set(YEAR).look();
    assert_eq!(server.pass(SECOND).set(YEAR + MAX_JUMP - 1).look(), (0, ClockStep::None));
    let longer = YEAR + MAX_JUMP;
    assert_eq!(server.set(longer).look(), (0, ClockStep::Leapt(Micros(longer))));
}

#[test]
fn steps_back_and_small_ones_forward_are_followed_at_once() {
    let mut server = Server::new();
    assert_eq!(server.set(9 * SECOND).look(), (9 * SECOND, ClockStep::None));
    assert_eq!(server.set(18 * SECOND).look(), (18 * SECOND, ClockStep::None));
    assert_eq!(server.set(-YEAR).look(), (-YEAR, ClockStep::Back(Micros(YEAR + 18 * SECOND))));
}

#[test]
fn a_leap_is_longer_than_max_jump() {
    let mut server = Server::new();
    assert_eq!(server.set(MAX_JUMP).look(), (MAX_JUMP, ClockStep::None));
    assert_eq!(server.set(2 * MAX_JUMP + 1).look(), (MAX_JUMP, ClockStep::Leapt(Micros(MAX_JUMP + 1))));
}

/// A clock that goes forward to about the time of the last ID does no harm.
#[test]
fn a_clock_that_is_set_right_is_followed_at_once() {
    let mut server = Server::new();
    server.line = UnixMicros(START);
    server.set(-YEAR).look();
    assert_eq!(server.set(0).look(), (0, ClockStep::None));
    server.set(-YEAR).look();
    assert_eq!(server.set(MAX_JUMP + 1).look(), (-YEAR, ClockStep::Leapt(Micros(YEAR + MAX_JUMP + 1))));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the clock does: the believed time goes ahead of the time believed before, or of the last ID, by no more
    /// than `max_jump` at once, unless the clock has said the same for a minute.
    #[test]
    fn no_other_leap_is_believed(
        steps in prop::collection::vec((0..30 * SECOND, prop_oneof![
            Just(0_i64), -YEAR..YEAR, -20 * SECOND..20 * SECOND, Just(YEAR), Just(YEAR + SECOND),
        ]), 1..60),
        line in -YEAR..YEAR,
    ) {
        let mut server = Server::new();
        server.line = UnixMicros(START + line);
        let mut believed = 0;
        let mut said: Vec<(i64, i64)> = vec![(0, 0)];
        for (passes, offset) in steps {
            server.pass(passes).set(offset);
            said.push((server.monotonic, offset));
            let (now, change) = server.look();
            prop_assert!(now == offset || now == believed);
            let reach = believed.max(server.line.0 - START - server.monotonic) + MAX_JUMP;
            if now > reach {
                prop_assert!(matches!(change, ClockStep::Lasted(_)));
                let since = server.monotonic - BelievedClock::LASTING.0;
                let minute = said.iter().rev().take_while(|&&(at, _)| at >= since);
                prop_assert!(minute.clone().all(|&(_, said)| said.abs_diff(offset) < 2 * MAX_JUMP.unsigned_abs()));
            }
            believed = now;
        }
    }
}
