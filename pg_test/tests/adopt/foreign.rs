//! Schemas that others have made: their tables get IDs, are written, and are released, and the schema is what it was. Those in
//! `pg_test/schemas` are written for this, in the manner of well-known ones; `scripts/test-schemas` fetches packages of programs that bring
//! theirs, and takes more from a directory:
//!
//! * `SCHEMAS=directory`: each file `*.sql` of it, as psql reads it

use super::round::{Calls, there_and_back};
use snowflake_test::Cluster;
use std::path::{Path, PathBuf};

#[test]
fn schemas_of_others_move_in_and_out() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let mut files = scripts(&own);
    assert!(files.len() >= 4, "{files:?}");
    files.extend(std::env::var("SCHEMAS").into_iter().flat_map(|directory| scripts(Path::new(&directory))));
    // For hundreds of tables in one transaction.
    let cluster = Cluster::options().set("max_locks_per_transaction = 1024").start();
    let without_marks = cannot_rebuild_marked_indexes(&cluster);
    for file in &files {
        for calls in [Calls::Each, Calls::Together] {
            one(&cluster, file, calls, file.starts_with(&own), without_marks);
        }
    }
}

/// Early releases of PostgreSQL 14, such as 14.1, cannot change the type of a key that a foreign key refers to where its index is the one
/// that the table is clustered by, or its replica identity: `relation 16384 has multiple clustered indexes`.
fn cannot_rebuild_marked_indexes(cluster: &Cluster) -> bool {
    let by_hand = "BEGIN; CREATE TABLE a (id integer PRIMARY KEY); ALTER TABLE a CLUSTER ON a_pkey; CREATE TABLE b (a integer REFERENCES a);
        ALTER TABLE a ALTER id TYPE bigint; ROLLBACK";
    let result = cluster.client().batch_execute(by_hand);
    result.is_err_and(|error| error.as_db_error().unwrap().message().ends_with("has multiple clustered indexes"))
}

fn scripts(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sql"));
    files.sort();
    files
}

fn one(cluster: &Cluster, file: &Path, calls: Calls, is_own: bool, without_marks: bool) {
    let name = file.file_stem().unwrap().to_str().unwrap().to_lowercase();
    let database = format!("{name}_{calls:?}").to_lowercase();
    let mut client = cluster.client();
    client.batch_execute(&format!("CREATE DATABASE \"{database}\"")).unwrap();
    // Some scripts make a database of their own, and go there.
    let text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
    let begins = |line: &str, word: &str| line.trim_start().to_uppercase().starts_with(word);
    let is_elsewhere = |line: &&str| ["CREATE DATABASE", "DROP DATABASE", "\\C "].iter().any(|word| begins(line, word));
    let marks =
        |line: &&str| without_marks && [" CLUSTER ON ", " REPLICA IDENTITY "].iter().any(|mark| line.contains(mark));
    let text: String =
        text.lines().filter(|line| !is_elsewhere(line) && !marks(line)).map(|line| format!("{line}\n")).collect();
    let copy = cluster.new_file(&format!("{database}.sql"));
    std::fs::write(&copy, text).unwrap();
    let mut psql = cluster.program("psql");
    psql.args(["--no-psqlrc", "--quiet", "--output=/dev/null", "--dbname", &database, "--file"]).arg(&copy);
    let loaded = snowflake_test::programs::output(&mut psql);
    let errors = loaded.errors.lines().filter(|line| line.contains("ERROR"));
    let errors: Vec<&str> = errors.collect();
    assert!(!is_own || errors.is_empty(), "{}: {errors:#?}", file.display());
    cluster.client_of("postgres", &database).batch_execute("CREATE EXTENSION IF NOT EXISTS pg_snowflake").unwrap();
    let round = there_and_back(cluster, &database, calls);
    println!(
        "{name}, {calls:?}: {} tables moved, {} have something in the way, {} no column for IDs, {} rows written; {} statements of the \
         script failed",
        round.moved.len(),
        round.hindered.len(),
        round.unfit.len(),
        round.written,
        errors.len()
    );
    round.hindered.iter().for_each(|text| println!("    in the way: {text}"));
    assert!(!round.moved.is_empty() && round.written >= round.moved.len(), "{round:#?}");
    client.batch_execute(&format!("DROP DATABASE \"{database}\"")).unwrap();
}
