//! Looks at every state that a world can reach, once, the nearest first.

use super::state::State;
use super::suite::Check;
use super::world::{Action, World};
use crate::check::{Manner, Outcome};
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

/// A state, and the way to it.
struct Visited {
    state: State,
    from: Option<(usize, Action)>,
}

/// What was found.
struct Found {
    visited: Vec<Visited>,
    transitions: usize,
    /// The first state in which a number was taken twice.
    repeated: Option<usize>,
    /// After which happenings numbers were taken.
    reached: BTreeSet<&'static str>,
    is_over: bool,
}

fn explore(world: &World, manner: &Manner) -> Found {
    let started = Instant::now();
    let hash = |state: &State| {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        hasher.finish()
    };
    let start = world.start();
    let mut seen = HashSet::from([hash(&start)]);
    let visited = vec![Visited { state: start, from: None }];
    let mut found = Found { visited, transitions: 0, repeated: None, reached: BTreeSet::new(), is_over: false };
    let mut actions = Vec::new();
    let mut at = 0;
    while at < found.visited.len() {
        if at.is_multiple_of(1024) && started.elapsed() > manner.longest {
            return found;
        }
        let state = found.visited[at].state;
        actions.clear();
        world.actions(&state, &mut actions);
        for &action in &actions {
            let Some(next) = world.next_state(&state, action) else { continue };
            found.transitions += 1;
            if matches!(action, Action::Claim { .. }) {
                found.reached.extend(happened(world, &next));
            }
            if seen.insert(hash(&next)) {
                found.visited.push(Visited { state: next, from: Some((at, action)) });
                if next.is_taken_twice {
                    found.repeated = Some(found.visited.len() - 1);
                    found.is_over = true;
                    return found;
                }
            }
        }
        at += 1;
    }
    found.is_over = true;
    found
}

/// All that may happen in a world.
fn named(world: &World) -> Vec<(&'static str, u8)> {
    let budget = &world.budget;
    let all = [
        ("crash", budget.crashes),
        ("stop", budget.stops),
        ("copy", budget.copies),
        ("drop", budget.drops),
        ("repair", budget.repairs),
        ("recreation", budget.recreations),
        ("rollback", budget.rollbacks),
        ("failover", budget.failovers),
        ("duplicate", budget.duplicates),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// What has happened before this state, in which a number was taken.
fn happened(world: &World, state: &State) -> Vec<&'static str> {
    let left = World { budget: state.left, ..world.clone() };
    let left: Vec<_> = named(&left).into_iter().map(|(name, _)| name).collect();
    named(world).into_iter().map(|(name, _)| name).filter(|name| !left.contains(name)).collect()
}

/// Runs a check, and prints a line about it; where a number repeats that must not, or it is to be wordy, also how.
pub fn run(check: &Check, manner: &Manner) -> Outcome {
    let started = Instant::now();
    let found = explore(&check.world, manner);
    let is_repeated = found.repeated.is_some();
    let missed: Vec<_> =
        named(&check.world).into_iter().map(|(name, _)| name).filter(|name| !found.reached.contains(name)).collect();
    let is_right = check.is_safe != is_repeated && (is_repeated || missed.is_empty()) && found.is_over;
    let way = found.repeated.map(|at| way(&found.visited, at));
    let outcome = match &way {
        Some(way) => format!("a number repeats in {} steps", way.len()),
        None if found.is_over => "safe".to_owned(),
        None => "not over".to_owned(),
    };
    println!(
        "{} {:<56} {:>10} states {:>11} transitions {:>6.1} s  {outcome}",
        if is_right { "ok  " } else { "BAD " },
        check.name,
        found.visited.len(),
        found.transitions,
        started.elapsed().as_secs_f64(),
    );
    if !is_repeated && !missed.is_empty() {
        println!("       no number was taken after: {missed:?}");
    }
    if let Some(way) = way.filter(|_| manner.is_wordy || check.is_safe) {
        for (action, state) in way {
            println!("       {action}    [{state}]");
        }
    }
    Outcome { is_right, states: found.visited.len() }
}

fn way(visited: &[Visited], mut at: usize) -> Vec<(Action, State)> {
    let mut way = Vec::new();
    while let Some((from, action)) = visited[at].from {
        way.push((action, visited[at].state));
        at = from;
    }
    way.reverse();
    way
}
