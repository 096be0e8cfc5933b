//! `SEED=1 MINUTES=10 FAULTS=1000 IDS=100000000 scripts/soak`, or with leases `REGISTRY=etcd` (`postgres`, `redis`): causes faults until all
//! three are reached, or with `SCENARIO=failover` repeats one history, which [`Scenario`] describes; then has the record checked, and prints
//! what is in it. With `RECORD=directory`, the record stays there; else it stays only where something is wrong.

use snowflake_test::history::check::check;
use snowflake_test::registries::Kind;
use snowflake_test::soak::{self, Scenario, Wanted};
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn main() -> ExitCode {
    let variable = |name: &str| env::var(name).ok().filter(|text| !text.is_empty());
    let number = |name: &str, default: f64| match variable(name) {
        Some(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        None => default,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let minutes = number("MINUTES", 5.0);
    let registry = variable("REGISTRY").filter(|name| name != "none").map(|name| {
        let named = Kind::ALL.into_iter().find(|kind| kind.scheme(false) == name);
        named.unwrap_or_else(|| panic!("REGISTRY={name} is none of postgres, etcd and redis"))
    });
    let scenario = variable("SCENARIO").map(|name| {
        let named = Scenario::ALL.into_iter().find(|scenario| scenario.name() == name);
        let all = Scenario::ALL.map(Scenario::name).join(", ");
        named.unwrap_or_else(|| panic!("SCENARIO={name} is none of {all}"))
    });
    // It has no other history, and no registry.
    let scenario = match variable("EDITION").as_deref() {
        Some("sql") => Some(Scenario::Sql),
        Some(other) => panic!("EDITION={other} is not sql"),
        None => scenario,
    };
    let kept = variable("RECORD").map(PathBuf::from);
    let record = kept.clone().unwrap_or_else(|| env::temp_dir().join(format!("soak-{}", now.as_micros())));
    let wanted = Wanted {
        seed: number("SEED", f64::from(now.subsec_micros())) as u64,
        length: Duration::from_secs_f64(minutes * 60.0),
        faults: number("FAULTS", 0.0) as usize,
        ids: number("IDS", 0.0) as u64,
        groups: number("SETS", 5.0) as usize,
        registry,
        record: record.clone(),
    };
    println!("soak: SEED={} MINUTES={minutes}, record in {}", wanted.seed, record.display());
    let records = match scenario {
        Some(scenario) => {
            soak::run_scenario(scenario, &wanted);
            scenario.records(&wanted)
        }
        None => {
            soak::run(&wanted);
            vec![record.clone()]
        }
    };
    let mut is_wrong = false;
    for record in &records {
        let report = check(record).unwrap();
        println!("{report}");
        println!("soak: SEED={}: {} faults survived, {} IDs", wanted.seed, report.all_faults(), report.ids);
        is_wrong |= !report.wrong.is_empty();
    }
    if is_wrong {
        println!("the record stays in {}", record.display());
        return ExitCode::FAILURE;
    }
    if kept.is_none() {
        std::fs::remove_dir_all(&record).unwrap();
    }
    ExitCode::SUCCESS
}
