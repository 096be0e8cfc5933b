//! Runs a check, and prints what came of it.

use super::state::{Phase, Record, State};
use super::suite::Check;
use super::world::REPEATED;
use stateright::{Checker, HasDiscoveries, Model};
use std::time::{Duration, Instant};

/// The time that a check has. Most need minutes; with three workers or three servers and two workers, more than half an hour on
/// a machine with other work.
pub const LONGEST: Duration = Duration::from_secs(7200);

/// Runs a check, and prints a line about it; where an ID repeats that must not, or `is_wordy`, also how. Returns whether
/// the check came out as it must: every state seen and each named event reached at least once, or an ID repeated. A check
/// that is not over after the time `longest` has not.
pub fn run(check: &Check, is_wordy: bool, longest: Duration) -> bool {
    let started = Instant::now();
    let explore = |threads: usize, depth: Option<usize>| {
        let builder = check.world.clone().checker().threads(threads).timeout(longest);
        let builder = builder.finish_when(HasDiscoveries::AnyFailures);
        match depth {
            Some(depth) => builder.target_max_depth(depth).spawn_bfs().join(),
            None => builder.spawn_bfs().join(),
        }
    };
    let checker = explore(if check.is_safe { 2 } else { 1 }, None);
    let mut trace = checker.discovery(REPEATED);
    let elapsed = started.elapsed();
    // The checker keeps the last way of a block of states, not the shortest. To find that takes much longer.
    while let Some(path) = trace.as_ref().filter(|_| is_wordy) {
        let shorter = explore(1, Some(path.clone().into_actions().len())).discovery(REPEATED);
        if shorter.is_none() {
            break;
        }
        trace = shorter;
    }
    let mut missed: Vec<_> = check.world.properties().iter().map(|property| property.name).collect();
    missed.retain(|&name| trace.is_none() && name != REPEATED && checker.discovery(name).is_none());
    // The checker calls itself done when its time is over, too.
    let is_over = trace.is_some() || (checker.is_done() && elapsed < longest);
    let is_right = check.is_safe == trace.is_none() && missed.is_empty() && is_over;
    let outcome = match &trace {
        Some(path) => format!("an ID repeats in {} steps", path.clone().into_actions().len()),
        None if is_over => "safe".to_owned(),
        None => "not over".to_owned(),
    };
    println!(
        "{} {:<56} {:>10} states {:>11} transitions  depth {:>2}  {:>6.1} s  {outcome}",
        if is_right { "ok  " } else { "BAD " },
        check.name,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        elapsed.as_secs_f64(),
    );
    if !missed.is_empty() {
        println!("       never: {missed:?}");
    }
    if let Some(path) = trace.filter(|_| is_wordy || check.is_safe) {
        for (state, action) in path.into_vec() {
            match action {
                Some(action) => println!("       {action}    [{}]", describe(&state, check.world.workers)),
                None => println!("       [{}]", describe(&state, check.world.workers)),
            }
        }
    }
    is_right
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
            format!("line {} w{worker} up to {}", server.last, server.ceiling.unwrap_or(0))
        })
        .collect();
    format!("{} | {} | {}", registry.join(" "), servers.join(", "), network.join(", "))
}
