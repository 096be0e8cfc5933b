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

const WAYS: usize = 60;

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

/// So a state in which the watched ID counts as claimed for the last time can be left: what comes after it comes where no
/// ID is watched, too.
#[test]
fn what_is_over_is_over() {
    let mut over = 0;
    on_ways(|check, state| {
        let world = &check.world;
        let unwatched = |state: &State| State { watched: None, is_claimed_twice: false, ..*state };
        let without_a_choice = |state: &State| -> BTreeSet<State> {
            let next = successors(world, state).into_iter();
            let next = next.filter(|(action, _)| !matches!(action, Action::Claim { watches: true, .. }));
            next.map(|(_, next)| unwatched(&next)).collect()
        };
        if state.is_claimed_twice {
            return;
        }
        assert_eq!(without_a_choice(state), without_a_choice(&unwatched(state)), "{}: {state:?}", check.name);
        if world.is_over(state) {
            over += 1;
            for (action, next) in successors(world, state) {
                let is_over = next.watched.is_none() || world.is_over(&next);
                assert!(is_over && !next.is_claimed_twice, "{}: {action:?} {state:?}", check.name);
            }
        }
    });
    assert!(over > 3_000, "{over}");
}

/// What a world can reach, by the states that stand for it.
fn reach(world: &World, goes_on_from: impl Fn(&State) -> State) -> HashSet<u64> {
    let mut open: Vec<_> = world.init_states().iter().map(&goes_on_from).collect();
    let (mut seen, mut reached) = (HashSet::new(), HashSet::new());
    while let Some(state) = open.pop() {
        if seen.insert(fingerprint(&state)) {
            reached.insert(fingerprint(&world.normal(&state)));
            open.extend(successors(world, &state).iter().map(|(_, next)| goes_on_from(next)));
        }
    }
    reached
}

#[test]
fn the_same_states_are_reached() {
    let mut sizes = Vec::new();
    for check in suite().into_iter().filter(|check| check.is_short && check.is_safe) {
        let layout_ends = check.world.end - check.world.start;
        let world = World { end: check.world.end - u8::from(layout_ends > 2), ..check.world };
        let reached = reach(&world, |state| world.normal(state));
        assert_eq!(reach(&world, |state| *state), reached, "{}", check.name);
        sizes.push(reached.len());
        for form in [Form::Normal, Form::Short] {
            let (whole, found) = (explore::all(&world, Form::Whole, 1, LONG), explore::all(&world, form, 2, LONG));
            assert_eq!((whole.repeated, &whole.reached), (found.repeated, &found.reached), "{}", check.name);
            assert!(whole.is_over && found.is_over && found.states < whole.states);
        }
    }
    println!("{sizes:?}");
}

/// As near as where nothing is left out.
#[test]
fn repeated_ids_are_as_near() {
    for check in suite().into_iter().filter(|check| !check.is_safe) {
        let [whole, normal, short] =
            [Form::Whole, Form::Normal, Form::Short].map(|form| explore::nearest(&check.world, form, LONG));
        println!("{} {} {}", check.name, whole.states, short.states);
        assert!(
            whole.repeated.is_some() && whole.repeated == normal.repeated && normal.repeated == short.repeated,
            "{}",
            check.name
        );
    }
}
