//! `make soak SEED=1 MINUTES=10`, or with leases `REGISTRY=etcd` (`postgres`, `redis`): prints the seed, and ends with what
//! was survived and made, or panics with the first duplicate.

use snowflake_test::registries::Kind;
use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn main() {
    let number = |name: &str, default: f64| match env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        _ => default,
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("SEED", f64::from(now.subsec_micros())) as u64;
    let minutes = number("MINUTES", 5.0);
    let registry = env::var("REGISTRY").ok().filter(|name| !name.is_empty()).map(|name| {
        let named = Kind::ALL.into_iter().find(|kind| kind.scheme(false) == name);
        named.unwrap_or_else(|| panic!("REGISTRY={name} is none of postgres, etcd and redis"))
    });
    println!("soak: SEED={seed} MINUTES={minutes}");
    let report = snowflake_test::soak::run(seed, Duration::from_secs_f64(minutes * 60.0), 0, registry);
    for (fault, count) in &report.survived {
        println!("{count:6} {fault:?}");
    }
    for (message, count) in &report.refused {
        println!("{count:6} calls: {message}");
    }
    let faults: usize = report.survived.values().sum();
    let snowflake_test::soak::Report { made, databases, .. } = report;
    println!("soak: SEED={seed}: {faults} faults survived, {databases} databases restored or copied");
    println!("soak: SEED={seed}: {made} IDs made, {made} of them distinct");
}
