//! What documents say of speed is what the benchmark found whose results are in docs/bench.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// What a run of the benchmark has found.
struct Results(Value);

impl Results {
    fn read(path: &str) -> Self {
        Self(serde_json::from_str(&read(path)).unwrap())
    }

    /// The names of all that is measured in several ways, without the way, which they end with.
    fn names(&self, title: &str, way: &str) -> Vec<String> {
        let rows = self.group(title)["rows"].as_array().unwrap();
        rows.iter().filter_map(|row| row["name"].as_str()?.strip_suffix(way).map(str::to_owned)).collect()
    }

    fn group(&self, title: &str) -> &Value {
        let found = self.0["groups"].as_array().unwrap().iter().find(|group| group["title"] == title);
        found.unwrap_or_else(|| panic!("there is no group \"{title}\""))
    }

    /// The median of a contender, by its group: its first figure, or the one of a unit.
    fn of(&self, title: &str, name: &str, unit: &str) -> f64 {
        let rows = self.group(title)["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name);
        let figures = row.unwrap_or_else(|| panic!("{title}: there is no \"{name}\""))["figures"].as_array().unwrap();
        let figure = figures.iter().find(|figure| figure["unit"] == unit);
        figure.unwrap_or_else(|| panic!("{title}: {name} has nothing in {unit}"))["median"].as_f64().unwrap()
    }

    /// One contender as a multiple of another, by the text of the ratio.
    fn ratio(&self, title: &str, what: &str) -> f64 {
        let all = self.group(title)["ratios"].as_array().unwrap();
        let found = all.iter().find(|ratio| ratio["what"] == what);
        found.unwrap_or_else(|| panic!("{title}: there is no \"{what}\""))["ratio"].as_f64().unwrap()
    }

    /// How many ratios are as they should be, and how many there are.
    fn goals(&self) -> (usize, usize) {
        let groups = self.0["groups"].as_array().unwrap();
        let all: Vec<&Value> = groups.iter().flat_map(|group| group["ratios"].as_array().unwrap()).collect();
        (all.iter().filter(|ratio| ratio["met"] == true).count(), all.len())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A figure with two digits that count, or all before the point.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 9.5 => 0,
        value if value >= 0.95 => 1,
        _ => 2,
    };
    if digits == 0 { thousands(value) } else { format!("{value:.digits$}") }
}

/// A whole number, with a comma before each three digits.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|three| std::str::from_utf8(three).unwrap()).collect();
    groups.join(",")
}

/// So many per cent less than 1.
fn less(ratio: f64) -> String {
    format!("{:.0} % less", (1.0 - ratio) * 100.0)
}

/// Pages, and what they say.
fn said(results: &Results) -> Vec<(&'static str, String)> {
    const CALL: &str = "One call";
    const ROWS: &str = "Rows of one INSERT";
    const MIXED: &str = "Rows of 64 clients, keys mixed";
    const COSTS: &str = "What created_at and its index cost";
    const ONCE: &str = "What is paid once";
    const HOSTED: &str = "In SQL: one call";
    const READING: &str = "In SQL: reading IDs";
    const COLUMN: &str = "created_at and its index";
    let call = |name| format!("{:.0}", results.of(CALL, name, "ns"));
    let micros = |title, name| short(results.of(title, name, "ns") / 1000.0);
    let rows = |other| results.ratio(ROWS, &format!("snowflake_next() / {other}, s"));
    let times = |name| short(results.of(ROWS, name, "s") / results.of(ROWS, "bigserial", "s"));
    let smaller =
        format!("{:.0} % smaller", (1.0 - results.ratio(COSTS, &format!("snowflake key / {COLUMN}, MiB"))) * 100.0);
    let waited = |commit: &str| {
        let of = |name| format!("{name}, synchronous_commit {commit}");
        format!("{:.2}", results.ratio(MIXED, &format!("{} / {}, mean ms", of("snowflake_next()"), of("bigserial"))))
    };
    let (met, all) = results.goals();
    let once = |name| short(results.of(ONCE, name, "first µs") / 1000.0);
    let in_sql = |name| short(results.ratio(READING, &format!("{name} in SQL / {name}")));
    let mut said = vec![
        ("README.md", format!("A call takes {} ns.", call("snowflake_next()"))),
        ("README.md", format!("Without them, the table and its indexes are {smaller}.")),
        (
            "README.md",
            format!(
                "| a million rows take, compared with `bigserial` | 1 | {} times as long | {} times (SQL function) | {} time |",
                times("gen_random_uuid()"),
                times("UUIDv7 in SQL"),
                less(rows("bigserial")),
            ),
        ),
        ("docs/questions.md", format!("A call takes {} ns:", call("snowflake_next()"))),
        (
            "docs/comparison.md",
            format!(
                "| a call takes | {} µs | {} µs | {} µs | {} ns |",
                micros(CALL, "Instagram's, in PL/pgSQL"),
                micros(CALL, "UUIDv7 in SQL"),
                micros(HOSTED, "snowflake_next() in SQL"),
                call("snowflake_next()"),
            ),
        ),
        (
            "docs/hosted-promise.md",
            format!(
                "a call takes {} µs, {} than",
                micros(HOSTED, "snowflake_next() in SQL"),
                less(results.ratio(HOSTED, "snowflake_next() in SQL / Instagram's, in PL/pgSQL")),
            ),
        ),
        ("docs/hosted-promise.md", format!("`nextval` takes {} µs.", micros(HOSTED, "nextval"))),
        (
            "docs/hosted-promise.md",
            format!(
                "Reading the time of a million IDs takes {} times as long as by the library, reading all parts {} times",
                in_sql("snowflake_timestamp(id)"),
                in_sql("(snowflake_decode(id)).*"),
            ),
        ),
        ("docs/performance.md", format!("In this run, of 0.3.0, {met} of {all} were met.")),
        (
            "docs/performance.md",
            format!(
                "A call of `snowflake_next()` takes {} ns in the server, and one of `clock_timestamp()` {} ns",
                call("snowflake_next()"),
                call("clock_timestamp()"),
            ),
        ),
        (
            "docs/performance.md",
            format!("each call reads the clock and takes {} ns", call("snowflake_next(), clock_source = system")),
        ),
        (
            "docs/performance.md",
            format!(
                "A million rows in one statement take {} time than with `bigserial`, and {} than with random UUIDs.",
                less(rows("bigserial")),
                less(rows("gen_random_uuid()")),
            ),
        ),
        (
            "docs/performance.md",
            format!(
                "the mean latency is {} of that with `bigserial` with `synchronous_commit` off, and {} with it on",
                waited("off"),
                waited("on"),
            ),
        ),
        (
            "docs/performance.md",
            format!(
                "| size of the table with its indexes | {} MiB | {} MiB | {:.2} |",
                short(results.of(COSTS, "snowflake key", "MiB")),
                short(results.of(COSTS, COLUMN, "MiB")),
                results.ratio(COSTS, &format!("snowflake key / {COLUMN}, MiB")),
            ),
        ),
        (
            "docs/performance.md",
            format!(
                "A session's first call takes {} ms, and its first `nextval` {} ms. Renewing the reservation takes {} ms",
                once("snowflake_next() in a new session"),
                once("nextval in a new session"),
                once("snowflake_next() that renews the reservation"),
            ),
        ),
    ];
    const SEGMENT: &str = "snowflake_segment_next('orders')";
    const NUMBERS: &str = "Clients that take numbers of a segment";
    said.push((
        "docs/performance.md",
        format!(
            "A call of `snowflake_segment_next()` takes {} ns, {:.2} of the time of `nextval`. 64 clients take {} times as many numbers a second",
            short(results.of("Numbers of a segment", SEGMENT, "ns")),
            results.ratio("Numbers of a segment", &format!("{SEGMENT} / nextval")),
            short(results.ratio(NUMBERS, &format!("{SEGMENT} x 64 / nextval, CACHE 1000 x 64, million numbers/s"))),
        ),
    ));
    // Tables, of all that was measured.
    const TEN: &str = "The analyst's ten";
    for name in results.names(TEN, ": snowflake key") {
        let [ours, theirs] = ["snowflake key", COLUMN].map(|side| format!("{name}: {side}"));
        said.push((
            "docs/performance.md",
            format!(
                "| {name} | {} ms | {} ms | {:.2} |",
                short(results.of(TEN, &ours, "ms")),
                short(results.of(TEN, &theirs, "ms")),
                results.ratio(TEN, &format!("{ours} / {theirs}")),
            ),
        ));
    }
    const GROWTH: &str = "Growth of planning";
    let ratios = results.names(GROWTH, ", on").into_iter();
    let ratios: Vec<f64> =
        ratios.map(|name| results.ratio(GROWTH, &format!("{name}, on / {name}, {COLUMN}"))).collect();
    let [lowest, highest] = [f64::min, f64::max].map(|of| ratios.iter().copied().reduce(of).unwrap());
    said.push(("docs/performance.md", format!("takes {lowest:.2} to {highest:.2} of the time of a column")));
    said
}

/// The table of what planning takes.
fn said_of_instructions(results: &Results) -> Vec<(&'static str, String)> {
    const TITLE: &str = "Instructions of planning";
    const UNIT: &str = "thousand instructions";
    let row = |name: String| {
        let ways = ["on", "off", "created_at and its index"].map(|way| format!("{name}, {way}"));
        let [on, off, column] = ways.each_ref().map(|way| thousands(results.of(TITLE, way, UNIT)));
        let ratio = results.ratio(TITLE, &format!("{} / {}, {UNIT}", ways[0], ways[2]));
        ("docs/planner.md", format!("| {name} | {on} | {off} | {column} | {ratio:.2} |"))
    };
    let [on, column] = ["on", "created_at and its index"]
        .map(|way| thousands(1000.0 * results.of(TITLE, &format!("a range of an hour, {way}"), "thousand misses")));
    let misses = ("docs/planner.md", format!("{on} times for a range, and {column} times by `created_at`"));
    results.names(TITLE, ", on").into_iter().map(row).chain([misses]).collect()
}

#[test]
fn are_those_of_the_benchmark() {
    const RESULTS: &str = "docs/bench/results.json";
    const INSTRUCTIONS: &str = "docs/bench/planning.json";
    let all = said(&Results::read(RESULTS)).into_iter().map(|said| (RESULTS, said));
    let of_planning = said_of_instructions(&Results::read(INSTRUCTIONS)).into_iter().map(|said| (INSTRUCTIONS, said));
    let missing: Vec<String> = all
        .chain(of_planning)
        .filter(|(_, (page, text))| {
            // Lines are wrapped.
            let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            !plain(&read(page)).contains(&plain(text))
        })
        .map(|(results, (page, text))| format!("{page}, by {results}: {text}"))
        .collect();
    assert!(missing.is_empty(), "the benchmark says:\n{}", missing.join("\n"));
}
