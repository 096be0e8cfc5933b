//! Runs the checks of leases and segments, or their simulation:
//!
//!     cargo run --profile model -p snowflake_model                 all checks
//!     cargo run --profile model -p snowflake_model -- check TEXT   those whose name contains TEXT, with their ways
//!     cargo run --profile model -p snowflake_model -- check --whole TEXT   the same, with every state
//!     cargo run --profile model -p snowflake_model -- simulation   all scenarios; with a number, from that seed; with
//!                                                                  "segments", those of segments alone; with "contention",
//!                                                                  that of servers which use one tag as fast as they can

use snowflake_model::check::{self, Manner};
use snowflake_model::{segments, simulation};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usual = Manner::default();
    let is_right = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["check"] => checks(|_, _| true, usual),
        ["check", "--short"] => checks(|_, is_short| is_short, usual),
        ["check", "--whole", text] => checks(|name, _| name.contains(text), Manner { is_whole: true, ..usual }),
        ["check", text] => checks(|name, _| name.contains(text), Manner { is_wordy: true, ..usual }),
        ["simulation"] => simulations(1),
        ["simulation", "segments"] => {
            segment_days(1);
            contention(1);
            true
        }
        ["simulation", "contention"] => {
            contention(1);
            true
        }
        ["simulation", seed] if seed.parse::<u64>().is_ok() => simulations(seed.parse().unwrap_or(1)),
        _ => {
            eprintln!(
                "usage: snowflake_model [check [--short | [--whole] TEXT] | simulation [SEED | segments | contention]]"
            );
            false
        }
    };
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn checks(is_wanted: impl Fn(&str, bool) -> bool, manner: Manner) -> bool {
    let started = Instant::now();
    let mut outcomes = Vec::new();
    for check in check::suite().into_iter().filter(|check| is_wanted(check.name, check.is_short)) {
        outcomes.push(check::run(&check, &manner));
    }
    for check in segments::suite().into_iter().filter(|check| is_wanted(check.name, check.is_short)) {
        outcomes.push(segments::run(&check, &manner));
    }
    let wrong = outcomes.iter().filter(|outcome| !outcome.is_right).count();
    let states: usize = outcomes.iter().map(|outcome| outcome.states).sum();
    println!(
        "{} checks of {states} states in {:.0} s, {wrong} of them wrong",
        outcomes.len(),
        started.elapsed().as_secs_f64()
    );
    !outcomes.is_empty() && wrong == 0
}

fn simulations(seed: u64) -> bool {
    println!("{}", simulation::Report::HEADING);
    let mut is_right = true;
    for scenario in simulation::long() {
        let report = simulation::run(&scenario, seed);
        println!("{report}");
        is_right &= report.repeated == 0 && report.ranges > 0;
    }
    segment_days(seed);
    is_right
}

fn segment_days(seed: u64) {
    use simulation::segments::{Report, Scenario, day, leaf, ours};
    let minutes = |minutes: i64| Scenario { duration: snowflake_core::Micros::from_secs(60 * minutes), ..day() };
    println!("\n{}", Report::HEADING);
    println!("{}", ours(&minutes(10), seed));
    println!("{}", ours(&minutes(30), seed));
    println!("{}", leaf(&day(), seed, 1000));
    println!("{}", leaf(&day(), seed, 10));
}

/// Servers that use one tag as fast as they can.
fn contention(seed: u64) {
    println!("{}", simulation::contention::Report::HEADING);
    for scenario in simulation::contention::all() {
        println!("{}", simulation::contention::run(&scenario, seed));
    }
}
