//! `make bench`: makes its own servers, measures pg_snowflake side by side with what else one would use, and prints
//! tables.
//!
//! * `QUICK=1`: a short run of less than a minute, with rough figures
//! * `ONLY=analytics,planning`: only these of the measures, which have the names of the modules in `measures`, with hyphens
//! * `RESULTS=directory`: where `results.md`, `results.json` and the charts go; `target/bench` by default

mod charts;
mod contenders;
mod measures;
mod plan;
mod report;
mod results;
mod rounds;
mod servers;

use plan::Plan;
use results::Results;
use servers::Servers;
use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let plan = if set("QUICK").is_some_and(|quick| quick != "0") { Plan::QUICK } else { Plan::FULL };
    let chosen = measures::chosen(&set("ONLY").unwrap_or_default())?;
    let out = PathBuf::from(set("RESULTS").unwrap_or_else(|| "target/bench".to_owned()));
    fs::create_dir_all(&out)?;

    let start = Instant::now();
    let servers = Servers::start();
    let mut results = Results {
        quick: plan.quick,
        conditions: servers::conditions(&servers),
        skipped: Vec::new(),
        groups: Vec::new(),
    };
    let contenders = contenders::create(&mut servers.wide.client(), &mut results.skipped);
    // The same contenders are missing there.
    contenders::create(&mut servers.default.client(), &mut Vec::new());

    for measure in chosen {
        let group = (measure.group)(&servers, &plan, &contenders);
        println!("{}", report::section(&group));
        results.groups.push(group);
        // Each time, as somebody may end it.
        fs::write(out.join("results.md"), report::markdown(&results))?;
        fs::write(out.join("results.json"), serde_json::to_string_pretty(&results)? + "\n")?;
    }
    charts::draw(&results, plan.clients, &out)?;
    for ratio in results.groups.iter().flat_map(|group| &group.ratios).filter(|ratio| !ratio.met) {
        println!("not met: {} is {:.3}, should be {}", ratio.what, ratio.ratio, ratio.goal);
    }
    if plan.quick {
        println!("a quick run: the figures are rough");
    }
    println!("{:.0} s; tables, JSON and charts are in {}", start.elapsed().as_secs_f64(), out.display());
    Ok(())
}
