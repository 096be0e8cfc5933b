//! Programs of Python and Node, with the packages that a lock file names.

use crate::programs::Output;
use crate::{Cluster, programs};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Copies a folder below `pg_test` into a directory, and installs the packages that its programs need, if the lock file
/// has changed or an earlier installation was interrupted. Returns the copy.
pub fn installed(folder: &str, directory: &str, lock: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let copy = Path::new(directory).join(folder);
    fs::create_dir_all(&copy).unwrap();
    for file in fs::read_dir(source).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
    }
    let lock = fs::read_to_string(copy.join(lock)).unwrap();
    let done = copy.join(".installed");
    if !fs::read_to_string(&done).is_ok_and(|text| text == lock) {
        install(&copy);
        fs::write(done, lock).unwrap();
    }
    copy
}

/// Installs the packages of `package-lock.json` by npm.
pub fn npm_install(folder: &Path) {
    succeeds(program(Path::new("npm"), folder).args([
        "ci",
        "--omit=dev",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
    ]));
}

/// A program that runs in a folder. It has ten minutes and no input, so that one that asks something ends, too.
pub fn program(name: &Path, folder: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "600"]).arg(name).current_dir(folder).stdin(Stdio::null());
    for (variable, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(variable);
    }
    command
}

/// The same, with the environment variables that connect it to a server.
pub fn connected(name: &Path, folder: &Path, cluster: &Cluster) -> Command {
    let mut command = program(name, folder);
    command.env("PGHOST", cluster.socket()).env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    command
}

/// What a program writes to its standard output.
///
/// # Panics
/// Where it fails, or is not installed: a test that is left out in silence tests nothing.
pub fn succeeds(command: &mut Command) -> String {
    let Output { output, errors, success } = programs::output(command);
    assert!(success, "{command:?}:\n{output}{errors}\n`scripts/deps test` installs what the tests need");
    output
}
