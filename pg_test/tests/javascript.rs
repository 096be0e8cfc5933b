//! What Node's PostgreSQL client reads: IDs of 53 bits are exact as JavaScript's numbers, those of 63 bits only as
//! strings and as BigInt.

use snowflake_test::packages::{connected, installed, npm_install};
use snowflake_test::programs::{Output, output};
use snowflake_test::{Cluster, value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How many IDs are made.
const IDS: i64 = 5000;

/// What `read.mjs` found.
struct Verdict {
    values: BTreeMap<String, String>,
    /// All that is to be seen where a test fails.
    everything: String,
}

impl Verdict {
    fn text(&self, key: &str) -> &str {
        self.values.get(key).unwrap_or_else(|| panic!("no {key} in {}", self.everything))
    }

    fn number(&self, key: &str) -> i64 {
        self.text(key).parse().unwrap_or_else(|error| panic!("{key}: {error}: {}", self.everything))
    }

    /// All of the IDs count in each of these.
    fn all(&self, keys: &[&str]) {
        for key in keys {
            assert_eq!(self.number(key), self.number("ids"), "{key}: {}", self.everything);
        }
    }

    /// Some of the IDs do not count in any of these.
    fn not_all(&self, keys: &[&str]) {
        for key in keys {
            assert!(self.number(key) < self.number("ids"), "{key}: {}", self.everything);
        }
    }
}

/// The folder of the Node program, with the packages that it needs.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let install = || installed("pg_test/javascript", env!("CARGO_TARGET_TMPDIR"), "package-lock.json", npm_install);
    FOLDER.get_or_init(install)
}

/// Runs the Node program on the table `ids`, whose IDs have these bits.
fn read(cluster: &Cluster, epoch: &str, worker_bits: u32, sequence_bits: u32) -> Verdict {
    let mut command = connected(Path::new("node"), folder(), cluster);
    command.arg("read.mjs").arg(epoch).args([worker_bits, sequence_bits].map(|bits| bits.to_string()));
    let Output { output: printed, errors, success } = output(&mut command);
    let everything = format!("{command:?}:\n{printed}{errors}\nThe server:\n{}", cluster.log());
    assert!(success, "{everything}");
    // The server reads JSON.
    let rows = cluster.client().query("SELECT key, value FROM json_each_text($1::text::json)", &[&printed]);
    let rows = rows.unwrap_or_else(|error| panic!("{error}: {everything}"));
    Verdict { values: rows.iter().map(|row| (row.get(0), row.get(1))).collect(), everything }
}

/// Makes the table `ids`, and returns the sum of its IDs.
fn make_ids(cluster: &Cluster, further: &[&str]) -> String {
    let mut client = cluster.client();
    client.batch_execute("CREATE TABLE ids (id bigint PRIMARY KEY)").unwrap();
    client.batch_execute(&format!("INSERT INTO ids SELECT snowflake_next({IDS})")).unwrap();
    for id in further {
        client.batch_execute(&format!("INSERT INTO ids SELECT {id}")).unwrap();
    }
    value(&mut client, "SELECT sum(id)::text FROM ids")
}

#[test]
fn ids_of_53_bits_are_exact_as_numbers() {
    let cluster = Cluster::options().set("pg_snowflake.layout = 'cosid-js'").start();
    // The last ID that the layout will ever have is the last safe integer.
    let last = "snowflake_encode('2089-08-30T07:47:35.551Z', 7, 511)";
    let sum = make_ids(&cluster, &[last]);
    let verdict = read(&cluster, "2019-12-24T16:00:00Z", 3, 9);
    assert_eq!(verdict.number("ids"), IDS + 1, "{}", verdict.everything);
    verdict.all(&["numbers", "safe_numbers", "distinct_numbers", "numbers_through_json", "server_json_numbers"]);
    verdict.all(&["strings", "bigints", "strings_through_json", "server_json_strings"]);
    verdict.all(&["found_by_numbers", "found_by_strings", "found_by_bigints", "decoded"]);
    assert_eq!(verdict.text("sum_of_numbers"), sum, "{}", verdict.everything);
    assert_eq!(verdict.text("sum_of_bigints"), sum, "{}", verdict.everything);
    let highest: i64 = value(&mut cluster.client(), "SELECT max(id) FROM ids");
    assert_eq!(highest, (1 << 53) - 1, "what was read goes to the limit");
}

#[test]
fn ids_of_63_bits_are_exact_as_strings_and_bigints_only() {
    let cluster = Cluster::options().start();
    // The first ID and one of the last; not the very last, as its number is no bigint any more.
    let first = "snowflake_encode('2024-01-01T00:00:00Z', 0)";
    let late = "snowflake_encode('2093-09-06T15:47:35.550Z', 1023, 4095)";
    let sum = make_ids(&cluster, &[first, late]);
    let verdict = read(&cluster, "2024-01-01T00:00:00Z", 10, 12);
    assert_eq!(verdict.number("ids"), IDS + 2, "{}", verdict.everything);
    verdict.all(&["strings", "bigints", "strings_through_json", "server_json_strings"]);
    verdict.all(&["found_by_strings", "found_by_bigints", "decoded"]);
    assert_eq!(verdict.text("sum_of_bigints"), sum, "{}", verdict.everything);
    // The reason for the advice to send such IDs as text: as numbers they are other IDs, several the same one.
    verdict.not_all(&["numbers", "safe_numbers", "distinct_numbers", "numbers_through_json", "server_json_numbers"]);
    verdict.not_all(&["found_by_numbers"]);
}
