//! Runs a check, and prints what came of it.

use super::explore::{self, Form};
use super::state::{Phase, Record, State};
use super::suite::Check;
use super::world::{Action, REPEATED, World};
use stateright::{Checker, HasDiscoveries, Model};
use std::time::{Duration, Instant};

/// How a check is run.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Whether to print the way to each ID that repeats, also where one must.
    pub is_wordy: bool,
    /// Whether no state is left out, though another one stands for it.
    pub is_whole: bool,
    /// The time that a check has.
    pub longest: Duration,
}

impl Default for Manner {
    /// The longest check takes minutes; on a machine that does much else, half an hour.
    fn default() -> Self {
        Self { is_wordy: false, is_whole: false, longest: Duration::from_secs(7200) }
    }
}

/// How many of the machine's cores a check uses.
const THREADS: usize = 2;

/// What came of a check.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Whether it came out as it must: every state seen and each named event reached at least once, or an ID repeated. A check that is
    /// not over in its time has not.
    pub is_right: bool,
    /// How many states were seen.
    pub states: usize,
}

/// Runs a check, and prints a line about it; where an ID repeats that must not, or it is to be wordy, also how.
pub fn run(check: &Check, manner: &Manner) -> Outcome {
    let started = Instant::now();
    let world = &check.world;
    let form = |form: Form| if manner.is_whole { Form::Whole } else { form };
    let found = match check.is_safe {
        true => explore::all(world, form(Form::Short), THREADS, manner.longest),
        false => explore::nearest(world, form(Form::Normal), manner.longest),
    };
    let is_repeated = found.repeated.is_some();
    let is_named = |name: &&str| *name != REPEATED && !found.reached.contains(name);
    let missed: Vec<_> = world.properties().iter().map(|property| property.name).filter(is_named).collect();
    let is_right = check.is_safe != is_repeated && (is_repeated || missed.is_empty()) && found.is_over;
    let outcome = match found.repeated {
        Some(0) => "an ID repeats".to_owned(),
        Some(steps) => format!("an ID repeats in {steps} steps"),
        None if found.is_over => "safe".to_owned(),
        None => "not over".to_owned(),
    };
    println!(
        "{} {:<56} {:>10} states {:>11} transitions {:>6.1} s  {outcome}",
        if is_right { "ok  " } else { "BAD " },
        check.name,
        found.states,
        found.transitions,
        started.elapsed().as_secs_f64(),
    );
    if !is_repeated && !missed.is_empty() {
        println!("       never: {missed:?}");
    }
    if is_repeated && (manner.is_wordy || check.is_safe) {
        for (state, action) in way(world) {
            match action {
                Some(action) => println!("       {action}    [{}]", describe(&state, world.workers)),
                None => println!("       [{}]", describe(&state, world.workers)),
            }
        }
    }
    Outcome { is_right, states: found.states }
}

/// The shortest way to an ID that repeats.
fn way(world: &World) -> Vec<(State, Option<Action>)> {
    let explore = |depth: Option<usize>| {
        let builder = world.clone().checker().finish_when(HasDiscoveries::AnyFailures);
        let builder = depth.iter().fold(builder, |builder, &depth| builder.target_max_depth(depth));
        builder.spawn_bfs().join().discovery(REPEATED)
    };
    let mut found = explore(None).expect("an ID repeats");
    // The checker keeps the last way of a block of states, not the shortest.
    while let Some(shorter) = explore(Some(found.clone().into_actions().len())) {
        found = shorter;
    }
    found.into_vec()
}

/// The registry, the servers and the network.
fn describe(state: &State, workers: usize) -> String {
    let record = |record: &Record| format!("{}:{}..{}", record.owner, record.from, record.until);
    let registry: Vec<_> = state.registry.iter().take(workers).map(record).collect();
    let network: Vec<_> = state.network.iter().map(|sent| format!("w{} {}", sent.worker, record(&sent.new))).collect();
    let is_shown = |phase: Phase| matches!(phase, Phase::Up | Phase::Stopping);
    let servers: Vec<_> = state
        .servers
        .iter()
        .filter(|server| is_shown(server.phase))
        .map(|server| {
            let worker = server.worker.map_or("-".to_owned(), |worker| worker.to_string());
            format!("line {} w{worker} up to {}", server.last, server.end.unwrap_or(0))
        })
        .collect();
    format!("{} | {} | {}", registry.join(" "), servers.join(", "), network.join(", "))
}
