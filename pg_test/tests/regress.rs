//! Runs PostgreSQL's pg_regress on every file of `pg_test/sql`, each in a database of its own, all in one cluster. What
//! a file prints must equal the file of the same name in `pg_test/expected`. Files of `pg_test/sql/include` are for
//! others to include.
//!
//! `ONLY="next decode"` in the environment names some of them. To accept a change, look at the difference that is printed, then copy `target/regress/NAME/results/NAME.out`.

use libtest_mimic::{Arguments, Failed, Trial};
use snowflake_test::{Cluster, Installation};
use std::path::{Path, PathBuf};
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

fn regress(cluster: &Cluster, here: &Path, name: &str) -> Result<(), Failed> {
    // Without it, pg_regress skips the file and succeeds.
    if !here.join("expected").join(name).with_extension("out").exists() {
        return Err(format!("pg_test/expected/{name}.out is missing").into());
    }
    let database = format!("regress_{name}");
    cluster.client().batch_execute(&format!("CREATE DATABASE {database}"))?;
    let output: PathBuf = here.join("../target/regress").join(name);
    std::fs::create_dir_all(&output)?;
    let installation = Installation::under_test();
    let done = Command::new(installation.pgxs("src/test/regress/pg_regress"))
        .current_dir(here) // where \i looks
        .args(["--use-existing", "--user=postgres"])
        .arg(format!("--dbname={database}"))
        .arg(format!("--host={}", cluster.socket().display()))
        .arg(format!("--bindir={}", installation.bin().display()))
        .arg(format!("--inputdir={}", here.display()))
        .arg(format!("--outputdir={}", output.display()))
        .arg(name)
        .output()?;
    if done.status.success() {
        return Ok(());
    }
    let differences = std::fs::read_to_string(output.join("regression.diffs")).unwrap_or_default();
    Err(format!("{}{}{differences}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
        .into())
}
