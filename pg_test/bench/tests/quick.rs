//! The benchmark runs to its end and writes all its results. The figures themselves are not checked.

use std::process::Command;

#[test]
fn the_quick_run_gives_all_its_results() {
    let results = tempfile::tempdir().unwrap();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_snowflake_bench"));
    let output = bench.env("QUICK", "1").env("RESULTS", results.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));

    let json = std::fs::read_to_string(results.path().join("results.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let groups = json["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 27);
    for group in groups {
        let title = group["title"].as_str().unwrap();
        assert!(printed.contains(&format!("## {title}\n")), "{title} is not printed");
        let rows = group["rows"].as_array().unwrap();
        assert!(!rows.is_empty(), "{group}");
        for row in rows {
            for figure in row["figures"].as_array().unwrap() {
                let median = figure["median"].as_f64();
                assert!(median.is_some_and(f64::is_finite), "{title}: {row}");
            }
        }
    }
    let said = |name: &str| json["conditions"].as_array().unwrap().iter().any(|condition| condition[0] == name);
    assert!(said("processor") && said("PostgreSQL") && said("settings"));
    assert!(std::fs::read_to_string(results.path().join("results.md")).unwrap().contains("goals are met"));
    for chart in ["one-call", "clients", "insert", "index-size"] {
        let svg = std::fs::read_to_string(results.path().join(format!("{chart}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("snowflake_next()"), "{chart}");
    }
}
