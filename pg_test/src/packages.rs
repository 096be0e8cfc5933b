//! Programs of Python and Node, with the packages that a lock file names.

use crate::programs::Output;
use crate::{Cluster, programs};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use std::{env, fs};

/// Copies a folder of the repository into a directory, and installs the packages that its programs need, if the lock file
/// has changed or an earlier installation was interrupted. Returns the copy.
pub fn installed(folder: &str, directory: &str, lock: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let copy = copied(folder, directory);
    let lock = fs::read_to_string(copy.join(lock)).unwrap();
    let done = copy.join(".installed");
    if !fs::read_to_string(&done).is_ok_and(|text| text == lock) {
        install(&copy);
        fs::write(done, lock).unwrap();
    }
    copy
}

/// Copies a folder of the repository into a directory, which keeps what else it has: packages, and what programs wrote.
/// Returns the copy.
pub fn copied(folder: &str, directory: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(folder);
    let copy = Path::new(directory).join(folder);
    copy_files(&source, &copy);
    copy
}

fn copy_files(source: &Path, copy: &Path) {
    fs::create_dir_all(copy).unwrap();
    for file in fs::read_dir(source).unwrap() {
        let file = file.unwrap();
        let target = copy.join(file.file_name());
        if file.file_type().unwrap().is_file() {
            // Another test may be reading the copy.
            let text = fs::read(file.path()).unwrap();
            if fs::read(&target).ok().as_ref() != Some(&text) {
                fs::copy(file.path(), target).unwrap();
            }
        } else if !["node_modules", "venv", "__pycache__"].iter().any(|name| file.file_name() == *name) {
            // Without the files that the source has no more.
            let _ = fs::remove_dir_all(&target);
            copy_files(&file.path(), &target);
        }
    }
}

/// Makes a virtual environment of Python, `venv`, and installs the packages of `requirements.txt` there.
pub fn pip_install(folder: &Path) {
    // Without a pip of its own, and without compiling what is not used: that would take most of the time.
    succeeds(program(Path::new("python3"), folder).args(["-m", "venv", "--clear", "--without-pip", "venv"]));
    let mut pip = program(Path::new("python3"), folder);
    pip.args(["-m", "pip", "--python", "venv", "install", "--disable-pip-version-check", "--no-input", "--no-compile"]);
    downloads(pip.args(["--only-binary=:all:", "--no-deps", "--requirement", "requirements.txt"]));
}

/// Installs the packages of `package-lock.json` by npm.
pub fn npm_install(folder: &Path) {
    downloads(program(Path::new("npm"), folder).args([
        "ci",
        "--omit=dev",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
    ]));
}

/// Runs a program that downloads, up to three times: both tools give up where a transfer breaks off in the middle.
fn downloads(command: &mut Command) {
    for _ in 1..3 {
        if programs::output(command).success {
            return;
        }
        sleep(Duration::from_secs(5));
    }
    succeeds(command);
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
    command.env("PGHOST", cluster.socket()).env("PGPORT", cluster.port().to_string());
    command.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
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
