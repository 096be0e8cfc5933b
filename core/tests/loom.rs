//! The line, and the counter of a segment, in all interleavings of two and three threads. Only in a build in which loom replaces the atomics:
//! `RUSTFLAGS="--cfg loom" cargo test -p snowflake_core --profile model --test loom`
#![cfg(loom)]

use loom::sync::{Arc, Mutex};
use loom::thread;
use snowflake_core::segment::{Counter, Range};
use snowflake_core::{Layout, Line, MonotonicMicros, Pace, Policy, Reach, Refusal, Tick, Ticks, WorkerBits};

/// One bit of sequence, so two IDs a tick: few claims suffice to reach the next tick.
fn layout() -> Layout {
    "timestamp=10 worker=2 sequence=1".parse().unwrap()
}

fn reach(now: i64) -> Reach {
    let policy = Policy { max_burst: Ticks(5), max_lead: Ticks(100), spread: 1 };
    Reach { policy, limit: Tick(1000), now: Tick(now), gives_way: false }
}

fn worker(layout: &Layout, number: u32) -> WorkerBits {
    layout.place_worker(None, Some(number)).unwrap()
}

/// A new line with worker 3.
fn line(layout: &Layout) -> Arc<Line> {
    let line = Line::new();
    line.switch_worker(layout, worker(layout, 3));
    Arc::new(line)
}

/// The IDs of each thread rise, and no two IDs of all threads are equal. Returns how many there are.
fn check(threads: Vec<Vec<i64>>) -> usize {
    for ids in &threads {
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    }
    let mut all = threads.concat();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    count
}

fn claims(layout: &Layout, line: &Line, now: i64, wants: &[u64]) -> Vec<i64> {
    let mut ids = Vec::new();
    for &want in wants {
        let reach = reach(now);
        let claim = line.claim_in(&reach.open_range(layout), want);
        if let Some(claim) = claim.or_else(|| line.claim(layout, &reach, want).ok()) {
            let at = |n| layout.compose(snowflake_core::Position(claim.first.0 + n), claim.worker);
            ids.extend((0..claim.count).map(at));
        }
    }
    ids
}

/// [`claims`] in a thread of its own.
fn spawn_claims(layout: Layout, line: &Arc<Line>, now: i64, wants: &'static [u64]) -> thread::JoinHandle<Vec<i64>> {
    let line = Arc::clone(line);
    thread::spawn(move || claims(&layout, &line, now, wants))
}

#[test]
fn two_threads_claim_one_and_many() {
    loom::model(|| {
        let layout = layout();
        let line = line(&layout);
        let other = spawn_claims(layout, &line, 10, &[1, 2]);
        let mine = claims(&layout, &line, 11, &[1, 1]);
        assert_eq!(check(vec![mine, other.join().unwrap()]), 5);
    });
}

#[test]
fn three_threads_with_clocks_apart() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let layout = layout();
        let line = line(&layout);
        let others: Vec<_> = [9, 11].into_iter().map(|now| spawn_claims(layout, &line, now, &[1, 1])).collect();
        let mut threads = vec![claims(&layout, &line, 10, &[1, 2])];
        threads.extend(others.into_iter().map(|other| other.join().unwrap()));
        check(threads);
    });
}

/// IDs rise in the order of their claims, also across a switch to a lower worker: claims after the switch have a later
/// tick, and no claim gets a worker that was not in use when it was made.
#[test]
fn a_switch_of_the_worker_divides_the_line() {
    loom::model(|| {
        let layout = layout();
        let line = line(&layout);
        let other = spawn_claims(layout, &line, 10, &[1, 1]);
        line.switch_worker(&layout, worker(&layout, 1));
        line.switch_worker(&layout, worker(&layout, 2));
        let mine = claims(&layout, &line, 10, &[1]);
        let theirs = other.join().unwrap();
        let mut by_position: Vec<(u64, i64)> = [mine.clone(), theirs.clone()]
            .concat()
            .into_iter()
            .map(|id| ((id as u64) >> 3 << 1 | id as u64 & 1, id))
            .collect();
        by_position.sort_unstable();
        assert!(by_position.is_sorted_by(|a, b| a.1 < b.1), "{by_position:?}");
        assert_eq!(layout.field(mine[0], snowflake_core::Field::Worker), Ok(Some(2)));
        check(vec![mine, theirs]);
    });
}

/// A raise is not undone by a claim that began before it: all claims after it are above.
#[test]
fn a_raise_is_a_floor_for_all_later_claims() {
    loom::model(|| {
        let layout = layout();
        let line = line(&layout);
        let other = spawn_claims(layout, &line, 10, &[1, 2]);
        line.raise(&layout, Tick(12));
        let mine = claims(&layout, &line, 10, &[1]);
        assert!(mine[0] >= 12 << 3, "{mine:?}");
        check(vec![mine, other.join().unwrap()]);
    });
}

/// A claim that sees a raise sees the worker of the switch before it, too, although the raise is relaxed.
#[test]
fn a_raise_does_not_hide_a_switch_of_the_worker() {
    loom::model(|| {
        let layout = layout();
        let line = line(&layout);
        let other = spawn_claims(layout, &line, 10, &[1, 1]);
        line.switch_worker(&layout, worker(&layout, 1));
        line.raise(&layout, Tick(12));
        let theirs = other.join().unwrap();
        for &id in &theirs {
            let is_raised = id >= 12 << 3;
            let of = layout.field(id, snowflake_core::Field::Worker).unwrap();
            assert!(of == Some(1) || of == Some(3) && !is_raised, "{theirs:?}");
        }
        check(vec![theirs]);
    });
}

/// What closing a line returns is the last position that was claimed, or is ever claimed up to the tick, also by a
/// session that worked out its open range before.
#[test]
fn a_closed_line_stays_closed_for_old_open_ranges() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let layout = layout();
        let line = line(&layout);
        let others = [10, 12].map(|now| {
            let line = Arc::clone(&line);
            let open = Reach { limit: Tick(13), ..reach(now) }.open_range(&layout);
            thread::spawn(move || line.claim_in(&open, 3).map(|claim| claim.first.0 + claim.count - 1))
        });
        let last = line.close(&layout, Tick(13));
        let claimed = others.map(|other| other.join().unwrap());
        assert!(claimed.iter().flatten().all(|&position| position <= last.0), "{claimed:?} after {last:?}");
        assert_eq!(line.last(), layout.last_position(Tick(13)));
    });
}

/// While the clock is behind, only one of two threads opens the next tick.
#[test]
fn two_threads_open_one_tick() {
    loom::model(|| {
        let layout = layout();
        let line = line(&layout);
        assert_eq!(line.claim(&layout, &reach(50), 2).unwrap().count, 2);
        let pace = Arc::new(Mutex::new(Pace::default()));
        let open = move |line: &Line, pace: &Mutex<Pace>| {
            let now = reach(10); // 40 ticks behind the line
            match line.claim(&layout, &now, 2) {
                Err(Refusal::Behind) => line.open(&layout, &now, 2, &mut pace.lock().unwrap(), MonotonicMicros(7)),
                done => done,
            }
        };
        let other = {
            let (line, pace) = (Arc::clone(&line), Arc::clone(&pace));
            thread::spawn(move || open(&line, &pace))
        };
        let mine = open(&line, &pace);
        let claims = [mine, other.join().unwrap()];
        assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1, "{claims:?}");
        assert_eq!(layout.tick_of(line.last()), Tick(51));
    });
}

/// All numbers of these claims, each of which was claimed once.
fn numbers(claims: impl IntoIterator<Item = Option<Range>>) -> Vec<u64> {
    let mut all: Vec<u64> = claims.into_iter().flatten().flat_map(|range| range.first..range.end).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "{all:?}");
    all
}

/// As a session that finds nothing: under the lock, it puts the next range in place, if there still is one.
fn claim_or_install(counter: &Counter, after: &Mutex<Option<Range>>) -> Option<Range> {
    counter.claim(1).or_else(|| {
        let mut after = after.lock().unwrap();
        if let Some(range) = *after
            && counter.install(range)
        {
            *after = None;
        }
        drop(after);
        counter.claim(1)
    })
}

/// Nothing between two ranges is claimed, and nothing twice, while one takes the place of the other.
#[test]
fn a_range_takes_the_place_of_the_one_before() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let counter = Arc::new(Counter::new());
        counter.install(Range { first: 1, end: 3 });
        let after = Arc::new(Mutex::new(Some(Range { first: 7, end: 9 })));
        let others = [(); 2].map(|()| {
            let (counter, after) = (Arc::clone(&counter), Arc::clone(&after));
            thread::spawn(move || [claim_or_install(&counter, &after), claim_or_install(&counter, &after)])
        });
        let mine = claim_or_install(&counter, &after);
        let theirs = others.map(|other| other.join().unwrap());
        for [first, second] in theirs {
            assert!(first.is_none() || second.is_none_or(|second| second.first > first.unwrap().first));
        }
        let all = numbers([mine].into_iter().chain(theirs.into_iter().flatten()));
        assert!(all.iter().all(|number| [1, 2, 7, 8].contains(number)), "{all:?}");
        assert_eq!(all.len(), 4);
    });
}

/// What closing returns is not claimed, also by a session that has read the words before; and a range that opens the counter
/// again is above.
#[test]
fn what_is_left_of_a_closed_counter_is_nobodys() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let counter = Arc::new(Counter::new());
        counter.install(Range { first: 1, end: 4 });
        let others = [1, 2].map(|want| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || counter.claim(want))
        });
        let left = counter.close();
        counter.install(Range { first: 9, end: 10 });
        let all = numbers(others.map(|other| other.join().unwrap()));
        assert!(all.iter().all(|number| *number < left.first || *number == 9), "{all:?} {left:?}");
    });
}

/// A raise is a floor for all later claims, and for none before.
#[test]
fn a_raise_of_a_counter_is_a_floor() {
    loom::model(|| {
        let counter = Arc::new(Counter::new());
        counter.install(Range { first: 1, end: 9 });
        let other = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || [counter.claim(2), counter.claim(1)])
        };
        counter.raise(5);
        let mine = counter.claim(1);
        assert!(mine.unwrap().first >= 5);
        let theirs = other.join().unwrap();
        assert!(theirs[0].unwrap().first < theirs[1].unwrap().first);
        numbers([mine].into_iter().chain(theirs));
    });
}
