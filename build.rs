//! `cfg(since_pg16)` and its like: true for that major of PostgreSQL and all later ones, so that a new major is a feature of Cargo.toml
//! and, where its API is the same, nothing else.

/// The majors after which a condition may be named.
const NAMED: std::ops::RangeInclusive<u32> = 15..=30;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let features = std::env::vars().filter_map(|(name, _)| name.strip_prefix("CARGO_FEATURE_PG")?.parse().ok());
    let major: u32 = features.max().unwrap_or_default();
    for since in NAMED {
        println!("cargo::rustc-check-cfg=cfg(since_pg{since})");
        if since <= major {
            println!("cargo::rustc-cfg=since_pg{since}");
        }
    }
}
