//! Settings of the planner, at random.

use super::derived::ZONES;
use fastrand::Rng;
use postgres::Client;
use std::collections::HashSet;

/// A parameter, how often of 100 it is set, and to what.
const PLANNER: [(&str, u8, &[&str]); 25] = [
    ("enable_seqscan", 35, &["off"]),
    ("enable_indexscan", 15, &["off"]),
    ("enable_indexonlyscan", 10, &["off"]),
    ("enable_bitmapscan", 30, &["off"]),
    ("enable_sort", 25, &["off"]),
    ("enable_incremental_sort", 15, &["off"]),
    ("enable_presorted_aggregate", 15, &["off"]),
    ("enable_hashagg", 25, &["off"]),
    ("enable_hashjoin", 25, &["off"]),
    ("enable_nestloop", 20, &["off"]),
    ("enable_mergejoin", 15, &["off"]),
    ("enable_material", 10, &["off"]),
    ("enable_memoize", 10, &["off"]),
    ("enable_gathermerge", 10, &["off"]),
    ("enable_partition_pruning", 10, &["off"]),
    ("enable_partitionwise_join", 30, &["on"]),
    ("enable_partitionwise_aggregate", 30, &["on"]),
    ("random_page_cost", 50, &["0.1", "1", "10"]),
    ("cpu_operator_cost", 10, &["0", "0.1"]),
    ("work_mem", 10, &["64kB"]),
    ("from_collapse_limit", 10, &["1"]),
    ("join_collapse_limit", 10, &["1"]),
    ("geqo_threshold", 10, &["2"]),
    ("constraint_exclusion", 10, &["on", "off"]),
    ("cursor_tuple_fraction", 20, &["0.001", "1"]),
];

/// Parallel plans for small tables. Starting the workers takes most of the time of such a query.
const PARALLEL: [(&str, &str); 5] = [
    ("max_parallel_workers_per_gather", "2"),
    ("parallel_setup_cost", "0"),
    ("parallel_tuple_cost", "0"),
    ("min_parallel_table_scan_size", "0"),
    ("min_parallel_index_scan_size", "0"),
];

/// All parameters of this server.
pub fn known(client: &mut Client) -> HashSet<String> {
    client.query("SELECT name FROM pg_settings", &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

/// Changes what stable expressions depend on.
pub fn change(rng: &mut Rng) -> String {
    if rng.u8(..3) > 0 {
        format!("SET LOCAL timezone = '{}'", ZONES[rng.usize(..ZONES.len())])
    } else {
        format!("SET LOCAL test.bound = '2024-0{}-10 00:00:0{}+00'", rng.u8(2..5), rng.u8(..6))
    }
}

/// Settings for one query, those that the server knows; and its time zone.
pub fn random(rng: &mut Rng, known: &HashSet<String>) -> (Vec<(String, String)>, &'static str) {
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let zone = ZONES[rng.usize(..ZONES.len())];
    let mode = ["auto", "force_generic_plan", "force_custom_plan"][rng.usize(..3)];
    let mut settings =
        vec![set("timezone", zone), set("plan_cache_mode", mode), set("test.bound", "2024-03-10 00:00:01.5+00")];
    // Half of all queries run as the planner would have it, but for its costs.
    let enabled = rng.bool();
    for (name, percent, values) in PLANNER {
        if rng.u8(..100) < percent && known.contains(name) && (enabled || !name.starts_with("enable_")) {
            settings.push(set(name, values[rng.usize(..values.len())]));
        }
    }
    if rng.u8(..100) < 5 {
        settings.extend(PARALLEL.map(|(name, value)| set(name, value)));
    } else {
        settings.push(set("max_parallel_workers_per_gather", "0"));
    }
    if rng.u8(..100) < 20 {
        settings.push(set("role", "reader"));
    }
    (settings, zone)
}
