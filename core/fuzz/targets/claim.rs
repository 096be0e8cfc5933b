//! Any steps of the clock, the reach and the worker: what holds for every claim. The steps are those of
//! `tests/line.rs`, with other ranges.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use snowflake_core::{
    Reach, Field, Layout, Line, Micros, MonotonicMicros, Pace, Policy, Position, Refusal, Tick, Ticks, UnixMicros,
};
use std::ops::RangeInclusive;

#[derive(Arbitrary, Debug)]
struct Input {
    #[arbitrary(with = within(25..=31))]
    timestamp: u32,
    #[arbitrary(with = within(1..=20))]
    sequence: u32,
    worker_first: bool,
    #[arbitrary(with = within(0..=3))]
    tick: usize,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Pass(u32),
    Jump(i32),
    JumpTicks(i8),
    Set(i64),
    Claim(u16),
    ClaimAll,
    Switch(#[arbitrary(with = within(0..=7))] u32),
    Policy(u8, u8, #[arbitrary(with = within(0..=20))] u32),
    Limit(i16),
    Raise(i16),
    RaiseTo(i64),
}

fn within<T: arbitrary::unstructured::Int>(
    range: RangeInclusive<T>,
) -> impl Fn(&mut Unstructured) -> arbitrary::Result<T> {
    move |bytes| bytes.int_in_range(range.clone())
}

fuzz_target!(|input: Input| {
    let (sequence, tick) = (input.sequence, ["1ms", "10ms", "1s", "10us"][input.tick]);
    let rest = match input.worker_first {
        true => format!("worker=3 sequence={sequence}"),
        false => format!("sequence={sequence} worker=3"),
    };
    let layout: Layout = format!("timestamp={} {rest} tick={tick}", input.timestamp).parse().unwrap();
    let (line, mut pace) = (Line::new(), Pace::default());
    line.switch_worker(&layout, layout.place_worker(None, Some(1)).unwrap());
    let tick_of = |position: Position| layout.tick_of(position).0;

    let mut wall = layout.start_of(Tick(1000));
    let mut monotonic = MonotonicMicros(0);
    let policy = Policy { max_burst: Ticks(100), max_lead: Ticks(600_000), spread: 1 };
    let mut reach = Reach { policy, limit: layout.last_tick(), now: Tick(0), gives_way: false };
    let mut last_id = -1;
    let mut opened_at: Option<MonotonicMicros> = None;
    for step in input.steps {
        let before = line.last();
        let want = match step {
            Step::Pass(micros) => {
                wall = wall.saturating_add(Micros(micros.into()));
                monotonic = monotonic + Micros(micros.into());
                continue;
            }
            Step::Jump(micros) => {
                wall = wall.saturating_add(Micros(micros.into()));
                continue;
            }
            Step::JumpTicks(ticks) => {
                wall = wall.saturating_add(layout.length_of(Ticks(ticks.into())));
                continue;
            }
            Step::Set(micros) => {
                wall = UnixMicros(micros);
                continue;
            }
            Step::Switch(worker) => {
                line.switch_worker(&layout, layout.place_worker(None, Some(worker)).unwrap());
                assert!(line.last() > before);
                continue;
            }
            Step::Policy(max_burst, max_lead, spread) => {
                reach.policy = Policy {
                    max_burst: Ticks(max_burst.into()),
                    max_lead: Ticks(max_lead.into()),
                    spread: (1 << spread).min(layout.max(Field::Sequence) + 1),
                };
                continue;
            }
            Step::Limit(ahead) => {
                reach.limit = Tick(tick_of(before) + i64::from(ahead)).min(layout.last_tick());
                continue;
            }
            Step::Raise(ahead) => {
                raise(&line, &layout, Tick(tick_of(before) + i64::from(ahead)));
                continue;
            }
            Step::RaiseTo(tick) => {
                raise(&line, &layout, Tick(tick));
                continue;
            }
            Step::Claim(want) => u64::from(want) + 1,
            Step::ClaimAll => u64::MAX,
        };

        reach.now = layout.tick_at(wall);
        let mut claimed = line.claim(&layout, &reach, want);
        let must_open = claimed == Err(Refusal::Behind);
        if must_open {
            claimed = line.open(&layout, &reach, want, &mut pace, monotonic);
        }
        let claim = match claimed {
            Ok(claim) => claim,
            Err(refusal) => {
                assert_ne!(refusal, Refusal::Behind, "open never says Behind");
                assert_eq!(line.last(), before, "a refusal claims nothing");
                if let Refusal::TooEarly { wait } = refusal {
                    assert!((Micros(1)..=layout.tick_length()).contains(&wait));
                }
                continue;
            }
        };
        assert!(claim.first > before);
        assert!((1..=want).contains(&claim.count));
        let last = Position(claim.first.0 + claim.count - 1);
        assert_eq!(line.last(), last);
        let id = layout.compose(claim.first, claim.worker);
        assert!(id > last_id, "{id} after {last_id}");
        last_id = layout.compose(last, claim.worker);
        assert!((0..=layout.max_id()).contains(&last_id));

        assert!(tick_of(claim.first) >= reach.now.0);
        assert!(tick_of(last).saturating_sub(reach.now.0) <= reach.policy.max_burst.max(reach.policy.max_lead).0);
        assert!(tick_of(last) <= reach.limit.0);
        if must_open {
            assert_eq!(tick_of(last), tick_of(before) + 1);
            assert!(opened_at.is_none_or(|opened_at| monotonic - opened_at >= layout.tick_length()));
            opened_at = Some(monotonic);
        }
    }
});

fn raise(line: &Line, layout: &Layout, tick: Tick) {
    let before = line.last();
    line.raise(layout, tick);
    assert!(line.last() >= before);
    assert!(tick > layout.last_tick() || line.last().0 + 1 >= layout.position(tick.max(Tick(0)), 0).0);
}
