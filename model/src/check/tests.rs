//! What the check leaves out hides nothing: compared with the same worlds where nothing is left out.

use super::explore::{self, Form, fingerprint};
use super::state::State;
use super::suite::{Check, suite};
use super::world::{Action, World};
use crate::simulation::chance::Chance;
use stateright::Model;
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(600);
/// In each world.
const WAYS: usize = 60;

fn successors(world: &World, state: &State) -> Vec<(Action, State)> {
    let mut actions = Vec::new();
    world.actions(state, &mut actions);
    actions.into_iter().filter_map(|action| Some((action, world.next_state(state, action)?))).collect()
}

/// States of all worlds of the suite, on ways by chance.
fn on_ways(mut each: impl FnMut(&Check, &State)) {
    for (seed, check) in suite().into_iter().enumerate() {
        let mut chance = Chance(seed as u64);
        for _ in 0..WAYS {
            let mut state = check.world.init_states()[0];
            for _ in 0..100 {
                each(&check, &state);
                let next = successors(&check.world, &state);
                if next.is_empty() {
                    break;
                }
                // There are more claims than anything else. They end a way, as the line gets to its end.
                let is_claim = |at: &usize| matches!(next[*at].0, Action::Claim { .. });
                let drawn = chance.below(next.len());
                let drawn = if is_claim(&drawn) && chance.one_in(2) { chance.below(next.len()) } else { drawn };
                state = next[drawn].1;
            }
        }
    }
}

/// So all that can be reached from a state can be reached from the one that stands for it, and nothing else.
#[test]
fn what_stands_for_a_state_has_the_same_future() {
    let (mut seen, mut changed) = (0, 0);
    on_ways(|check, state| {
        let world = &check.world;
        let future = |state: &State| -> BTreeSet<State> {
            successors(world, state).iter().map(|(_, next)| world.normal(next)).collect()
        };
        let normal = world.normal(state);
        assert_eq!(world.normal(&normal), normal, "{}", check.name);
        assert_eq!(normal.is_claimed_twice, state.is_claimed_twice, "{}", check.name);
        seen += 1;
        changed += usize::from(normal != *state);
        assert_eq!(future(state), future(&normal), "{}: {state:?}", check.name);
    });
    assert!(seen > 50_000 && changed > seen / 2, "{seen} {changed}");
}

/// The safe worlds of the short form, and smaller ones.
fn small_worlds() -> impl Iterator<Item = (&'static str, World)> {
    suite().into_iter().filter(|check| check.is_short && check.is_safe).map(|check| {
        let is_long = check.world.end - check.world.start > 2;
        (check.name, World { end: check.world.end - u8::from(is_long), ..check.world })
    })
}

/// Each state that a world can reach, where it goes on from those that stand for others.
fn each_state(world: &World, goes_on_from: impl Fn(&State) -> State, mut each: impl FnMut(&State)) {
    let mut open: Vec<_> = world.init_states().iter().map(&goes_on_from).collect();
    let mut seen = HashSet::new();
    while let Some(state) = open.pop() {
        if seen.insert(fingerprint(&state)) {
            each(&state);
            open.extend(successors(world, &state).iter().map(|(_, next)| goes_on_from(next)));
        }
    }
}

/// So a state in which the watched ID counts as claimed for the last time can be left: what comes after it comes where no
/// ID is watched, too.
#[test]
fn what_is_over_is_over() {
    let mut over = 0;
    let mut check_one = |name: &str, world: &World, state: &State| {
        let unwatched = |state: &State| State { watched: None, is_claimed_twice: false, ..*state };
        let without_a_choice = |state: &State| -> BTreeSet<State> {
            let next = successors(world, state).into_iter();
            let next = next.filter(|(action, _)| !matches!(action, Action::Claim { watches: true, .. }));
            next.map(|(_, next)| unwatched(&next)).collect()
        };
        if state.is_claimed_twice {
            return;
        }
        assert_eq!(without_a_choice(state), without_a_choice(&unwatched(state)), "{name}: {state:?}");
        if world.is_over(state) {
            over += 1;
            for (action, next) in successors(world, state) {
                let is_over = next.watched.is_none() || world.is_over(&next);
                assert!(is_over && !next.is_claimed_twice, "{name}: {action:?} {state:?}");
            }
        }
    };
    on_ways(|check, state| check_one(check.name, &check.world, state));
    for (name, world) in small_worlds() {
        each_state(&world, |state| world.normal(state), |state| check_one(name, &world, state));
    }
    assert!(over > 10_000, "{over}");
}

#[test]
fn the_same_states_are_reached() {
    for (name, world) in small_worlds() {
        let reach = |goes_on_from: &dyn Fn(&State) -> State| {
            let mut reached = HashSet::new();
            each_state(&world, goes_on_from, |state| {
                reached.insert(world.normal(state));
            });
            reached
        };
        let reached = reach(&|state| world.normal(state));
        assert!(reach(&|state| *state) == reached && reached.len() > 500, "{name}");
        let whole = explore::all(&world, Form::Whole, 1, LONG);
        for form in [Form::Normal, Form::Short] {
            let found = explore::all(&world, form, 2, LONG);
            assert_eq!((found.repeated, &found.reached), (whole.repeated, &whole.reached), "{name}");
            assert!(whole.is_over && found.is_over && found.states < whole.states, "{name}");
        }
    }
}

/// As near as where nothing is left out.
#[test]
fn repeated_ids_are_as_near() {
    for check in suite().into_iter().filter(|check| !check.is_safe) {
        let nearest = |form| explore::nearest(&check.world, form, LONG).repeated;
        let (whole, normal, short) = (nearest(Form::Whole), nearest(Form::Normal), nearest(Form::Short));
        assert!(whole.is_some() && whole == normal && whole == short, "{}: {whole:?} {normal:?} {short:?}", check.name);
    }
}
