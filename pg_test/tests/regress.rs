//! Runs `scripts/installcheck` for every file of `pg_test/sql`, all in one cluster. What a file prints must equal the file of the same name in
//! `pg_test/expected`. Files of `pg_test/sql/include` are for others to include.
//!
//! `ONLY="next decode"` in the environment names some of them. To accept a change, look at the difference that is printed, then copy `target/regress/NAME/results/NAME.out`.

use libtest_mimic::{Arguments, Failed, Trial};
use snowflake_test::{Cluster, Installation};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<String> = std::fs::read_dir(here.join("sql"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort_unstable();
    // The test's own arguments take one name.
    if let Ok(only) = std::env::var("ONLY").map(|only| only.split_whitespace().map(str::to_owned).collect::<Vec<_>>()) {
        names.retain(|name| only.is_empty() || only.contains(name));
    }
    assert!(!names.is_empty(), "no regress files");

    let major = Installation::under_test().major();
    let cluster = Arc::new(Cluster::options().start());
    let trials = names
        .into_iter()
        .map(|name| {
            let cluster = Arc::clone(&cluster);
            Trial::test(format!("{name} (PostgreSQL {major})"), move || regress(&cluster, here, &name))
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    drop(cluster); // stops the server; exiting would not
    conclusion.exit_code()
}

/// As `make installcheck` does it.
fn regress(cluster: &Cluster, here: &Path, name: &str) -> Result<(), Failed> {
    let done = Command::new(here.join("../scripts/installcheck"))
        .env("ONLY", name)
        .env("PGHOST", cluster.socket())
        .env("PGPORT", cluster.port().to_string())
        .env("PGUSER", "postgres")
        .output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)).into())
}
