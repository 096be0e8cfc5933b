//! PostgreSQL's programs: where they are, and as which user they run.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Output};

/// What `pg_config` of the PostgreSQL under test says of one of its options, such as `--bindir`.
pub fn pg_config(option: &str) -> String {
    let pg_config = env::var("PG_CONFIG").unwrap_or_else(|_| "/usr/lib/postgresql/15/bin/pg_config".to_owned());
    let output = Command::new(&pg_config)
        .arg(option)
        .output()
        .unwrap_or_else(|error| panic!("{pg_config}: {error}"));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The major version of the PostgreSQL under test.
pub fn major_version() -> u32 {
    let version = pg_config("--version");
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

/// A program that PostgreSQL brings for extensions, by its path below `pgxs`.
pub fn pgxs(path: &str) -> PathBuf {
    PathBuf::from(pg_config("--pkglibdir")).join("pgxs").join(path)
}

/// The user that servers run as, where that is not the user who runs the tests: a server refuses to run as root.
pub fn server_user() -> Option<&'static str> {
    static ROOT: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    let root = ROOT.get_or_init(|| output_of(Command::new("id").arg("-u")).trim() == "0");
    root.then_some("postgres")
}

/// One of PostgreSQL's programs, to be run as the server's user with these variables added to the environment.
/// Variables that would change what the tests see are taken out.
pub fn program(name: &str, variables: &[(String, String)]) -> Command {
    let path = PathBuf::from(pg_config("--bindir")).join(name);
    // A variable such as LD_PRELOAD is for the program alone, not for what starts it: hence env(1).
    let mut command = match server_user() {
        Some(user) => {
            let mut command = Command::new("runuser");
            command.args(["-u", user, "--", "env"]);
            command
        }
        None => Command::new("env"),
    };
    command
        .args(variables.iter().map(|(name, value)| format!("{name}={value}")))
        .arg(path);
    for (variable, _) in env::vars_os() {
        let name = variable.to_string_lossy();
        if name.starts_with("PG") || name.starts_with("LC_") || name == "RUST_BACKTRACE" {
            command.env_remove(&variable);
        }
    }
    command.current_dir("/");
    command
}

/// Runs a command to its end.
///
/// # Panics
/// Where it fails; the message is all that it wrote.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        all(&output)
    );
    all(&output)
}

/// Ends a process by SIGKILL. One that is gone already is what was wanted.
pub fn kill(pid: u32) {
    let _ = Command::new("sh")
        .args(["-c", "kill -KILL $0", &pid.to_string()])
        .output();
}

/// All that a program wrote.
pub fn all(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes))
        .concat()
}

/// What a command writes to its standard output.
pub fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
