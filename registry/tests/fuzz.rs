//! Clients that get damaged answers: each call ends in time, with an error or with the right answer; and no answer counts as the
//! confirmation of a change that is not what was asked for.
//!
//! `ROUNDS=5000 SEED=7 cargo test -p snowflake_registry --all-features --test fuzz` for more and others. Round n has the seed
//! SEED + n, and is run again by that seed and ROUNDS=1.

mod common;
mod fakes;

use common::*;
use fakes::{Damage, Fake};
use fastrand::Rng;
use snowflake_core::lease::Version;
use snowflake_registry::{Error, Registry, Swap};
use snowflake_test::registries::Kind;
use snowflake_test::with_each_registry;
use std::cell::Cell;
use std::fmt::Debug;
use std::sync::Once;
use std::time::Duration;

with_each_registry!(damaged_answers);

/// The client panicked.
#[test]
fn a_text_of_postgresql_that_is_not_utf8_is_an_error() {
    count_panics();
    let fake = Fake::start(Kind::Postgres);
    fake.begin(None);
    converse(&fake, Kind::Postgres, PATIENCE);
    let answers = fake.state.lock().unwrap().answers.clone();
    let host = |answer: &Vec<u8>| answer.windows(7).position(|window| window == b"o'clock");
    let places = answers.iter().enumerate().filter_map(|(number, answer)| host(answer).map(|at| (number, at)));
    for (number, at) in places {
        fake.begin(Some((number, Damage::Overwritten { at, bytes: vec![0xff] })));
        let wrong = converse(&fake, Kind::Postgres, DEADLINE);
        assert!(wrong.iter().all(Option::is_none), "answer {number}: {wrong:?}");
    }
    assert_eq!(PANICS.get(), 0);
}

/// The change was said to be refused.
#[test]
fn a_status_of_etcd_without_a_text_refuses_nothing() {
    let fake = Fake::start(Kind::Etcd);
    fake.begin(None);
    converse(&fake, Kind::Etcd, PATIENCE);
    let answers = fake.state.lock().unwrap().answers.clone();
    let with_status = answers.iter().enumerate().filter(|(_, answer)| answer.ends_with(b"grpc-status\x010"));
    let with_status: Vec<_> = with_status.map(|(number, answer)| (number, answer.len() - 1)).collect();
    assert!(with_status.len() > 5, "{answers:?}");
    for (number, at) in with_status {
        // FAILED_PRECONDITION.
        fake.begin(Some((number, Damage::Overwritten { at, bytes: b"9".to_vec() })));
        let wrong = converse(&fake, Kind::Etcd, DEADLINE);
        assert!(wrong.iter().all(Option::is_none), "answer {number}: {wrong:?}");
    }
}

/// The client panicked.
#[test]
fn a_part_of_a_transaction_of_etcd_that_is_of_no_kind_is_an_error() {
    count_panics();
    let fake = Fake::start(Kind::Etcd);
    fake.begin(None);
    converse(&fake, Kind::Etcd, PATIENCE);
    let answers = fake.state.lock().unwrap().answers.clone();
    // The third field of a transaction's answer is a part, whose only field is what a get or a put answers.
    let is_part = |bytes: &[u8]| bytes[0] == 0x1a && matches!(bytes[2], 0x0a | 0x12);
    let parts = |answer: &[u8]| -> Vec<usize> {
        (0..answer.len().saturating_sub(2)).filter(|&at| is_part(&answer[at..])).collect()
    };
    let places: Vec<_> = answers
        .iter()
        .enumerate()
        .flat_map(|(number, answer)| parts(answer).into_iter().map(move |at| (number, at + 2)))
        .collect();
    assert!(places.len() > 3, "{answers:?}");
    for (number, at) in places {
        fake.begin(Some((number, Damage::Overwritten { at, bytes: vec![0x7a] })));
        let wrong = converse(&fake, Kind::Etcd, DEADLINE);
        assert!(wrong.iter().all(Option::is_none), "answer {number}: {wrong:?}");
        assert_eq!(PANICS.get(), 0, "answer {number}, at {at}");
    }
}

fn given(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

thread_local! {
    /// Those of this test's client: also of its tasks, where a panic ends nothing else. They run on the thread that calls.
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            report(panic);
        }));
    });
}

/// How long one call may take.
const DEADLINE: Duration = Duration::from_millis(200);

fn damaged_answers(kind: Kind) {
    count_panics();
    let fake = Fake::start(kind);
    // Undamaged, all of it is right.
    fake.begin(None);
    let undamaged = converse(&fake, kind, PATIENCE);
    assert!(undamaged.iter().all(Option::is_none), "{undamaged:?}");
    let answers = fake.state.lock().unwrap().answers.clone();
    let (mut wrong, mut damaged) = (Vec::new(), 0);
    let mut meet = |at: usize, damage: Damage, round: &str| {
        damaged += 1;
        let told = format!("{kind:?}{round}: answer {at}: {damage:?}");
        fake.begin(Some((at, damage)));
        converse(&fake, kind, DEADLINE).into_iter().flatten().for_each(|what| wrong.push(format!("{told}: {what}")));
        assert_eq!(PANICS.get(), 0, "{told}");
    };
    // An answer to another request confirms nothing.
    (1..answers.len()).for_each(|at| meet(at, Damage::Earlier(1), ""));
    let (seed, rounds) = (given("SEED", 1), given("ROUNDS", 100));
    for round in seed..seed + rounds {
        let mut rng = Rng::with_seed(round);
        let at = rng.usize(..answers.len());
        let damage = damage(&mut rng, &answers[..=at]);
        meet(at, damage, &format!(", SEED={round} ROUNDS=1"));
    }
    println!("{kind:?}: {damaged} conversations with a damaged answer, {} calls are wrong", wrong.len());
    assert!(wrong.is_empty(), "{} calls: {}", wrong.len(), wrong.join("\n"));
}

/// How the last of these answers is damaged.
fn damage(rng: &mut Rng, answers: &[Vec<u8>]) -> Damage {
    let bytes = |rng: &mut Rng| {
        let length = rng.usize(1..9);
        match rng.u8(..4) {
            0 => vec![0xff; length],
            1 => vec![b'9'; length],
            2 => vec![0; length],
            _ => (0..length).map(|_| rng.u8(..)).collect(),
        }
    };
    let some = answers[answers.len() - 1].len().max(1);
    match rng.u8(..16) {
        0..=3 => Damage::Flips((0..rng.usize(1..4)).map(|_| rng.usize(..some * 8)).collect()),
        4 => Damage::Cut { at: rng.usize(..some), closes: true },
        5 => Damage::Cut { at: rng.usize(..some), closes: false },
        6 => Damage::Repeated { from: rng.usize(..some), length: rng.usize(1..=some) },
        7 => Damage::Removed { from: rng.usize(..some), length: rng.usize(1..=some) },
        8 => Damage::Inserted { at: rng.usize(..some), bytes: bytes(rng) },
        9 | 10 => Damage::Overwritten { at: rng.usize(..some), bytes: bytes(rng) },
        11 => Damage::Times(rng.usize(2..5)),
        12 => Damage::Earlier(rng.usize(1..4)),
        13 => Damage::Late,
        14 => Damage::Drip(Duration::from_millis(rng.u64(50..1000))),
        _ => match rng.bool() {
            true => {
                Damage::Endless(rng.choice(answers).filter(|answer| !answer.is_empty()).cloned().unwrap_or(vec![0]))
            }
            false => Damage::Endless(bytes(rng)),
        },
    }
}

/// Makes all calls, and says of each what is wrong with its result.
fn converse(fake: &Fake, kind: Kind, deadline: Duration) -> Vec<Option<String>> {
    let is_whole = deadline == PATIENCE;
    let mut registry = connect(&kind.url(false, "", &fake.address()), &options(deadline));
    let registry = &mut *registry;
    let (mut wrong, mut expected) = (Vec::new(), None);
    let mut note =
        |what: &str, problem: Option<String>| wrong.push(problem.map(|problem| format!("{what}: {problem}")));
    note("namespace", of_call(is_whole, || layout(registry, "twitter")));
    note("record", of_call(is_whole, || registry.record(WORKER)));
    for number in 1..4 {
        note("swap", of_swap(fake, registry, number, &mut expected, is_whole));
    }
    note("records", of_call(is_whole, || registry.records()));
    note("segment", of_call(is_whole, || registry.segment(&tag())));
    let mut expected = None;
    for number in 1..3 {
        note("swap of a segment", of_segment_swap(fake, registry, number, &mut expected, is_whole));
    }
    note(
        "segment",
        of_read(is_whole, Some(tag_record(2)), || Ok(registry.segment(&tag())?.map(|stored| stored.record))),
    );
    note(
        "segments",
        of_read(is_whole, vec![tag()], || Ok(registry.segments()?.into_iter().map(|(tag, _)| tag).collect())),
    );
    note("holdings", of_read(is_whole, vec![(tag(), WORKER, holding(2))], || registry.holdings()));
    note("warnings", of_call(is_whole, || registry.warnings()));
    note("record", of_call(is_whole, || registry.record(WORKER)));
    wrong
}

/// The problem with a call that only reads: a damaged value may be read.
fn of_call<T>(is_whole: bool, call: impl FnOnce() -> Result<T, Error>) -> Option<String> {
    let (result, took) = timed(call);
    match result {
        _ if took > PATIENCE => Some(format!("it took {took:?}")),
        Err(error) if is_whole => Some(format!("{error:?}")),
        _ => None,
    }
}

/// As [`of_call`]; what is read undamaged is this.
fn of_read<T: PartialEq + Debug>(is_whole: bool, right: T, call: impl FnOnce() -> Result<T, Error>) -> Option<String> {
    let mut read = None;
    let problem = of_call(is_whole, || call().map(|found| read = Some(found)));
    problem.or_else(|| (is_whole && read.as_ref() != Some(&right)).then(|| format!("{read:?}")))
}

/// The problem with a change. The fake makes each that it gets.
fn of_swap(
    fake: &Fake,
    registry: &mut dyn Registry,
    number: i64,
    expected: &mut Option<Version>,
    is_whole: bool,
) -> Option<String> {
    let namespace = namespace_record("twitter", 255, None);
    let before = *expected;
    let change = || registry.swap_within(Some(&namespace), WORKER, before, &record(number));
    of_change(fake, change, Fake::version, expected, is_whole)
}

/// As [`of_swap`], for a tag.
fn of_segment_swap(
    fake: &Fake,
    registry: &mut dyn Registry,
    number: u64,
    expected: &mut Option<Version>,
    is_whole: bool,
) -> Option<String> {
    let namespace = namespace_record("twitter", 255, None);
    let held = (WORKER, holding(number));
    let write = tag_write(number, *expected);
    let change = || registry.swap_segment_held(&namespace, &write, Some(&held));
    of_change(fake, change, Fake::version_of_tag, expected, is_whole)
}

fn of_change<S: Debug>(
    fake: &Fake,
    change: impl FnOnce() -> Result<Swap<S>, Error>,
    version: impl Fn(&Fake) -> u64,
    expected: &mut Option<Version>,
    is_whole: bool,
) -> Option<String> {
    let changes = || fake.state.lock().unwrap().changes;
    let before = changes();
    let (result, took) = timed(change);
    // The version that this change must have got, as all before it came, too.
    let version = version(fake);
    let was_made = changes() > before;
    match result {
        _ if took > PATIENCE => Some(format!("it took {took:?}")),
        Ok(Swap::Stored(stored)) if was_made && stored.0 == version => {
            *expected = Some(stored);
            None
        }
        Err(error) if is_whole => Some(format!("{error:?}")),
        Err(error) if was_made && !error.is_unanswered() => Some(format!("it was made, and {error:?}")),
        Err(_) => None,
        Ok(other) => Some(format!("{other:?}, with version {version}, made: {was_made}")),
    }
}
