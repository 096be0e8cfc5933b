//! The packages in `clients/` give the answers of the library in PostgreSQL, over random layouts, IDs, times and texts, and their own
//! tests pass. Needs python3 and node, and none of their packages.

use postgres::Client;
use postgres::types::ToSql;
use serde_json::{Value, json};
use snowflake_test::packages::{program, succeeds};
use snowflake_test::{Cluster, draws, variable};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const FORMS: [&str; 9] =
    ["decimal", "hex", "base32", "base36", "base58", "base58-bwmarrin", "base62", "base64url", "shortcode"];

/// Texts that are no layouts, or that are one in an unusual form.
const NOTATIONS: [&str; 40] = [
    "",
    " ",
    "twiter",
    "Default",
    "=",
    "timestamp=41 worker=x sequence=12",
    "timestamp=41 worker=+9 sequence=12",
    "timestamp=41 worker=09 sequence=12",
    "timestamp=41 worker= sequence=12",
    "timestamp=41 worker=4294967296 sequence=12",
    "timestamp=4294967295 sequence=4294967295",
    "timestamp=41 sequence=12 tick=01ms",
    "timestamp=41 sequence=12 tick=1h",
    "timestamp=41 sequence=12 tick=ms",
    "timestamp=41 sequence=12 tick=0ms",
    "timestamp=41 sequence=12 tick=61s",
    "timestamp=41 sequence=12 tick=9223372036854775807s",
    "timestamp=41 sequence=12 tick=60000ms epoch=2020-02-29T00:00:00.001Z",
    "timestamp=41 worker sequence=12",
    "timestamp=41 shard=9 sequence=12",
    "timestamp=41 sequence=12 tick=1ms tick=1ms",
    "timestamp=41 sequence=12 epoch=2024-01-01T00:00:00Z epoch=2024-01-01T00:00:00Z",
    "timestamp=41 sequence=12 epoch=2024-01-01",
    "timestamp=41 sequence=12 epoch=2023-02-29T00:00:00Z",
    "timestamp=41 sequence=12 epoch=2024-01-01T24:00:00Z",
    "timestamp=41 sequence=12 epoch=2024-01-01T00:00:60Z",
    "timestamp=41 sequence=12 epoch=2024-01-01T00:00:00.000Z",
    "timestamp=41 sequence=12 epoch=2024-01-01T00:00:00.120000Z",
    "timestamp=41 sequence=12 epoch=1969-12-31T23:59:59Z",
    "timestamp=10 sequence=12 epoch=9999-12-31T23:59:59.999999Z",
    "timestamp=41 tick=1ms sequence=12",
    "timestamp=41 worker=11 sequence=12",
    "worker=10 sequence=12",
    "timestamp=41 worker=10 sequence=0",
    "worker=10 timestamp=41 sequence=12",
    "timestamp=20 worker=32 sequence=1",
    "timestamp=40 worker=1 worker=2 sequence=1",
    "timestamp=62 sequence=1",
    "ü=1 timestamp=41",
    "\u{1F600} worker=1",
];

/// Texts that are no IDs in most forms, and those that are read in an unusual form.
const TEXTS: [&str; 16] = [
    "",
    "0",
    "00",
    "1",
    "-1",
    "8000000000000000",
    "7FFFFFFFFFFFFFFF",
    "o123456789abc",
    "0123456789ABU",
    "9223372036854775808",
    "NQm6nKp8qFD",
    "f_________9",
    "AzL8n0Y58m8",
    "zzzzzzzzzzzzzzzzzzzzzzzzz",
    "ÄÖÜ\u{1F600}",
    "00000000000000000000000000000000000000000000000000000000000000000",
];

// The library's answers.

fn instant(micros: i64) -> SystemTime {
    let distance = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

fn number<T: std::str::FromStr>(case: &Value, key: &str) -> Option<T> {
    case[key].as_str().map(|text| text.parse().unwrap_or_else(|_| panic!("{case}: {key}")))
}

/// A detail as the core words it, without the capital and the full stop that PostgreSQL's messages have.
fn worded(detail: &str) -> String {
    let detail = detail.strip_suffix('.').unwrap_or(detail);
    match detail.split_at_checked(2) {
        Some((start, rest)) if !start.ends_with(char::is_uppercase) => start.to_lowercase() + rest,
        _ => detail.to_owned(),
    }
}

/// What a package says of an error of the library, or a part of it.
fn reason(error: &postgres::Error) -> String {
    let error = error.as_db_error().unwrap_or_else(|| panic!("{error:?}"));
    let (message, detail) = (error.message(), error.detail().map(worded).unwrap_or_default());
    if message.ends_with(" is not a layout") {
        detail
    } else if message.contains(" is outside the time ") {
        " is outside the time ".to_owned()
    } else if detail.is_empty() || detail.starts_with("the layout is ") {
        message.to_owned()
    } else {
        format!("{message}: {detail}")
    }
}

/// The case with the library's answer, or its error.
fn answered(client: &mut Client, mut case: Value) -> Value {
    let layout = case["layout"].as_str().map(str::to_owned);
    let id: Option<i64> = number(&case, "id");
    let time = |key| number(&case, key).map(instant);
    let text = |key: &str| case[key].as_str().map(str::to_owned);
    let (at, since, until) = (time("at"), time("since"), time("until"));
    let (words, form) = (text("text"), text("form"));
    let [worker, sequence, datacenter] = ["worker", "sequence", "datacenter"].map(|key| number::<i32>(&case, key));
    type Arguments<'a> = Vec<&'a (dyn ToSql + Sync)>;
    let (query, arguments): (_, Arguments) = match case["call"].as_str().unwrap() {
        // The error names the layout in full, and its highest ID.
        "layout" => ("snowflake_timestamp(-1, $1)::text", vec![&layout]),
        "decode" => (
            "(extract(epoch FROM snowflake_timestamp($1, $2)) * 1000000)::bigint::text, \
             snowflake_datacenter($1, $2)::text, snowflake_worker($1, $2)::text, snowflake_sequence($1, $2)::text",
            vec![&id, &layout],
        ),
        "encode" => ("snowflake_encode($1, $2, $3, $4, $5)::text", vec![&at, &worker, &sequence, &datacenter, &layout]),
        "bounds" => (
            "snowflake_min_id($1, $2)::text, snowflake_max_id($1, $2)::text, snowflake_max_id_before($1, $2)::text",
            vec![&at, &layout],
        ),
        "between" => ("snowflake_between($1, $2, $3, $4)::text", vec![&id, &since, &until, &layout]),
        "to_text" => ("snowflake_to_text($1, $2)", vec![&id, &form]),
        "from_text" => ("snowflake_from_text($1, $2)::text", vec![&words, &form]),
        call => panic!("{call}"),
    };
    let answer = client.query_one(&format!("SELECT {query}"), &arguments);
    match answer {
        Ok(row) => {
            let columns = (0..row.len()).map(|column| row.get::<_, Option<String>>(column));
            case["answer"] = columns.collect::<Vec<_>>().into();
        }
        Err(error) => {
            let reason = reason(&error);
            let layout = reason.strip_prefix("-1 is not a snowflake ID: IDs of the layout \"");
            match layout.and_then(|text| text.split_once("\" range from 0 to ")) {
                Some((layout, highest)) if case["call"] == "layout" => case["answer"] = json!([layout, highest]),
                _ => case["error"] = reason.into(),
            }
        }
    }
    case
}

// The questions.

/// Cases of a layout: the layout itself, IDs, parts, times.
fn draw_cases_of(draw: &mut fastrand::Rng, layout: &str, notation: &str, cases: &mut Vec<Value>) {
    cases.push(json!({ "call": "layout", "layout": layout }));
    for _ in 0..4 {
        let (id, at) = (draws::id(draw).to_string(), draws::time(draw).to_string());
        cases.push(json!({ "call": "decode", "layout": layout, "id": id }));
        cases.push(json!({ "call": "bounds", "layout": layout, "at": at }));
        let mut range = [draws::time(draw), draws::time(draw)];
        if draw.u8(0..4) > 0 {
            range.sort_unstable();
        }
        let [since, until] = range.map(|at| at.to_string());
        cases.push(json!({ "call": "between", "layout": layout, "id": id, "since": since, "until": until }));
        // Parts that fit, and at times one that does not.
        let fits = |field: &str| notation.contains(&format!("{field}=")).then_some("1");
        let mut parts = [fits("worker"), fits("datacenter"), Some(fits("sequence").unwrap_or("0"))];
        let mut at = (1_704_067_200_000_000 + draw.i64(0..1_000_000_000_000_000)).to_string();
        match draw.u8(0..8) {
            0 => at = draws::time(draw).to_string(),
            1 => parts[0] = draw.choice([None, Some("0"), Some("7"), Some("-1"), Some("70000")]).unwrap(),
            2 => parts[1] = draw.choice([None, Some("1"), Some("-3"), Some("33")]).unwrap(),
            3 => parts[2] = draw.choice(["0", "3", "-2", "2000000000"]),
            _ => {}
        }
        let [worker, datacenter, sequence] = parts;
        cases.push(json!({
            "call": "encode", "layout": layout, "at": at, "worker": worker, "sequence": sequence, "datacenter": datacenter
        }));
    }
}

fn draw_texts(draw: &mut fastrand::Rng, count: usize, cases: &mut Vec<Value>) {
    for form in FORMS {
        for _ in 0..count {
            cases.push(json!({ "call": "to_text", "id": draws::id(draw).to_string(), "form": form }));
        }
    }
}

/// Around the ticks of IDs that were read: their times, and a microsecond before and after.
fn edges(cases: &[Value]) -> Vec<Value> {
    let decoded = cases.iter().filter(|case| case["call"] == "decode" && case["answer"].is_array());
    let around = decoded.flat_map(|case| {
        let at: i64 = case["answer"][0].as_str().unwrap().parse().unwrap();
        [-1, 0, 1].map(|shift| (case["layout"].clone(), at + shift))
    });
    let in_python = around.filter(|(_, at)| *at <= 253_402_300_799_999_999);
    in_python.map(|(layout, at)| json!({ "call": "bounds", "layout": layout, "at": at.to_string() })).collect()
}

/// Each text that was written is read, and with one character changed, too.
fn readings(draw: &mut fastrand::Rng, cases: &[Value]) -> Vec<Value> {
    let written = cases.iter().filter(|case| case["call"] == "to_text" && case["answer"].is_array());
    let read = written.flat_map(|case| {
        let text = case["answer"][0].as_str().unwrap();
        let mut changed = text.as_bytes().to_vec();
        changed[draw.usize(0..text.len())] = *draw.choice(b"0aZ_-!il").unwrap();
        [text.to_owned(), String::from_utf8(changed).unwrap()].map(|text| (text, case["form"].clone()))
    });
    read.map(|(text, form)| json!({ "call": "from_text", "text": text, "form": form })).collect()
}

/// Cases with their answers: so many random layouts, and all that is listed here.
fn cases(seed: u64, layouts: usize, texts: usize) -> Vec<Value> {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let mut draw = fastrand::Rng::with_seed(seed);
    let mut cases = Vec::new();
    for row in client.query("SELECT name, layout FROM snowflake_layouts()", &[]).unwrap() {
        draw_cases_of(&mut draw, row.get(0), row.get(1), &mut cases);
    }
    for _ in 0..layouts {
        let layout = draws::layout(&mut draw);
        draw_cases_of(&mut draw, &layout, &layout, &mut cases);
    }
    let long = ["ü".repeat(128), "ü".repeat(129), "x=".repeat(100), format!("{}x=1", " ".repeat(250))];
    let notations = NOTATIONS.into_iter().map(str::to_owned).chain(long);
    cases.extend(notations.map(|layout| json!({ "call": "layout", "layout": layout })));
    draw_texts(&mut draw, texts, &mut cases);
    cases.push(json!({ "call": "to_text", "id": "-1", "form": "hex" }));
    cases.push(json!({ "call": "to_text", "id": "1", "form": "base16" }));
    for form in FORMS {
        cases.extend(TEXTS.map(|text| json!({ "call": "from_text", "text": text, "form": form })));
    }
    let mut answers: Vec<Value> = cases.into_iter().map(|case| answered(&mut client, case)).collect();
    let more = [edges(&answers), readings(&mut draw, &answers)].concat();
    answers.extend(more.into_iter().map(|case| answered(&mut client, case)));
    answers
}

// The packages.

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn python() -> Command {
    let folder = root().join("clients/python");
    let mut command = program(Path::new("python3"), &folder);
    // Nothing is written beside the sources.
    command.env("PYTHONPATH", folder.join("src")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn javascript() -> Command {
    program(Path::new("node"), &root().join("clients/javascript"))
}

/// Has a program compare its answers with these.
fn compare(mut command: Command, cases: &[Value]) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(serde_json::to_string(cases).unwrap().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed == format!("{} compared\n", cases.len()), "{command:?}:\n{printed}");
}

#[test]
fn answers_are_those_of_the_library() {
    let seed = variable("SEED").unwrap_or(30);
    let cases = cases(seed, 300, 40);
    // Neither do all fail, nor none.
    for call in ["decode", "encode", "from_text", "layout"] {
        let of_call = cases.iter().filter(|case| case["call"] == call);
        let (failed, passed): (Vec<_>, Vec<_>) = of_call.partition(|case| case["error"].is_string());
        assert!(failed.len() > 30 && passed.len() > 150, "{call}: {} fail, {} pass", failed.len(), passed.len());
    }
    let count = |answer: Value| cases.iter().filter(|case| case["answer"] == answer).count();
    assert!(count(json!(["true"])) > 50 && count(json!(["false"])) > 50);
    let mut command = python();
    command.args(["-m", "tests.answers"]);
    compare(command, &cases);
    let mut command = javascript();
    command.arg("test/answers.mjs");
    compare(command, &cases);
}

/// `clients/vectors.json` has such cases, for tests without a server. A line for each, so that a change is easy to see.
#[test]
fn the_vectors_are_those_of_the_library() {
    let lines: Vec<String> = cases(30, 10, 2).iter().map(Value::to_string).collect();
    let expected = format!("[\n{}\n]\n", lines.join(",\n"));
    if std::fs::read_to_string(root().join("clients/vectors.json")).ok().as_ref() != Some(&expected) {
        let new = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vectors.json");
        std::fs::write(&new, expected).unwrap();
        panic!("clients/vectors.json is not what the library says: see {}", new.display());
    }
}

#[test]
fn the_package_of_python_passes_its_tests() {
    let output = snowflake_test::programs::output(python().args(["-W", "error", "-m", "unittest", "-v"]));
    assert!(output.success && output.errors.contains("Ran 13 tests"), "{output:?}");
}

#[test]
fn the_package_of_javascript_passes_its_tests() {
    let output = succeeds(javascript().args(["--test", "--test-reporter=tap", "test/snowflake-ids.test.mjs"]));
    assert!(output.contains("# pass 11\n"), "{output}");
}

/// They are released together.
#[test]
fn versions_and_licenses_are_those_of_the_extension() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert!(read("clients/python/pyproject.toml").contains(&format!("\nversion = \"{version}\"\n")));
    assert!(read("clients/javascript/package.json").contains(&format!("\n  \"version\": \"{version}\",\n")));
    for package in ["python", "javascript"] {
        assert_eq!(read(&format!("clients/{package}/LICENSE")), read("LICENSE"), "{package}");
    }
}
