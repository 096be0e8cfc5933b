//! PostgreSQL's programs: where they are, and as which user they run.

use crate::check;
use std::collections::HashMap;
use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

/// An installed PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Installation {
    pg_config: String,
}

impl Installation {
    /// That of the environment's `PG_CONFIG`, else the default, which `scripts/pg-config` knows.
    pub fn under_test() -> Self {
        static UNDER_TEST: LazyLock<Installation> = LazyLock::new(|| match env::var("PG_CONFIG") {
            // The script is not there where a program runs that was built on another machine.
            Ok(named) if !named.is_empty() => Installation::of(&named),
            _ => Installation::of(run(&mut which_pg_config()).trim()),
        });
        UNDER_TEST.clone()
    }

    /// One whose server speaks TLS: the one under test, or the default if that was built without it, as the wheels of
    /// `scripts/fetch-postgres` were.
    pub fn with_tls() -> Self {
        static WITH_TLS: LazyLock<Installation> = LazyLock::new(|| {
            let under_test = Installation::under_test();
            if under_test.ask("--configure").contains("openssl") {
                return under_test;
            }
            Installation::of(run(which_pg_config().env_remove("PG_CONFIG")).trim())
        });
        WITH_TLS.clone()
    }

    /// The one that this `pg_config` belongs to.
    pub fn of(pg_config: &str) -> Self {
        Self { pg_config: pg_config.to_owned() }
    }

    /// What `pg_config` answers, which it is asked once: tests ask for each program that they run.
    fn ask(&self, option: &str) -> String {
        type Answers = HashMap<(String, String), String>;
        static ANSWERS: LazyLock<Mutex<Answers>> = LazyLock::new(Mutex::default);
        let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = || output(Command::new(&self.pg_config).arg(option)).output.trim().to_owned();
        answers.entry((self.pg_config.clone(), option.to_owned())).or_insert_with(ask).clone()
    }

    /// The directory of its programs.
    pub fn bin(&self) -> PathBuf {
        self.ask("--bindir").into()
    }

    /// One of its directories, by the option of `pg_config` that says it.
    pub fn directory(&self, option: &str) -> PathBuf {
        self.ask(option).into()
    }

    /// A program that it has for extensions, by its path below `pgxs`.
    pub fn pgxs(&self, path: &str) -> PathBuf {
        PathBuf::from(self.ask("--pkglibdir")).join("pgxs").join(path)
    }

    /// Where its headers are, for what is compiled for it.
    pub fn headers(&self) -> PathBuf {
        self.ask("--includedir-server").into()
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        let version = self.ask("--version");
        let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    }

    /// One of its programs, to be run as the server's user, with these variables added to the environment. Variables
    /// that would change what the tests see are removed.
    pub fn program(&self, name: &str, variables: &[(String, String)]) -> Command {
        let mut command = Command::new(self.bin().join(name));
        if let Some(user) = server_user() {
            become_user(&mut command, user);
        }
        for (variable, _) in env::vars_os() {
            let name = variable.to_string_lossy();
            if name.starts_with("PG") || name.starts_with("LC_") || name == "RUST_BACKTRACE" {
                command.env_remove(&variable);
            }
        }
        command.envs(variables.iter().map(|(name, value)| (name, value))).current_dir("/");
        command
    }
}

/// The script that knows which PostgreSQL is meant.
fn which_pg_config() -> Command {
    Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/pg-config"))
}

/// The user that servers run as, if that is not the user who runs the tests: a server refuses to run as root. It is postgres, or nobody on a
/// machine that knows no postgres.
pub fn server_user() -> Option<&'static str> {
    static USER: OnceLock<Option<&str>> = OnceLock::new();
    *USER.get_or_init(|| {
        let root = run(Command::new("id").arg("-u")).trim() == "0";
        let known = root && output(Command::new("id").args(["-u", "postgres"])).success;
        root.then_some(if known { "postgres" } else { "nobody" })
    })
}

/// Has a command run as a user.
fn become_user(command: &mut Command, user: &str) {
    static IDS: OnceLock<(u32, u32)> = OnceLock::new();
    let id = |option| run(Command::new("id").args([option, user])).trim().parse().unwrap();
    let (user, group) = *IDS.get_or_init(|| (id("-u"), id("-g")));
    command.uid(user).gid(group);
}

/// Has a command run as the server's user, with nothing in between: the process that is spawned is the program itself. Its
/// environment has only what programs need to run at all.
pub fn as_server_user(command: &mut Command) -> &mut Command {
    let path = env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("LC_ALL", "C.UTF-8").current_dir("/");
    if let Some(user) = server_user() {
        become_user(command, user);
    }
    command
}

/// Runs a command to its end.
///
/// # Panics
/// Where it fails, with all that it wrote.
pub fn run(command: &mut Command) -> String {
    let Output { output, errors, success } = output(command);
    assert!(success, "{command:?}:\n{output}{errors}");
    output + &errors
}

/// What a program wrote to its standard output and error, and whether it succeeded.
#[derive(Debug, PartialEq)]
pub struct Output {
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
    /// Whether its exit status is 0.
    pub success: bool,
}

/// Runs a command to its end, whatever that is.
///
/// # Panics
/// Where it cannot be run at all.
pub fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output { output: text(&output.stdout), errors: text(&output.stderr), success: output.status.success() }
}

/// Ends a process by SIGKILL. Returns whether it was there.
pub fn kill(pid: u32) -> bool {
    output(Command::new("sh").args(["-c", "kill -KILL $0", &pid.to_string()])).success
}

/// The processor time that a process has used so far, in microseconds: to the nanosecond, where the kernel counts it.
pub fn cpu_micros(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap() / 1000.0
}

/// Whether a process is there, if only as a zombie.
pub fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether a process is there, and no zombie.
pub fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state comes after the name, which stands in parentheses.
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Stops a process by SIGSTOP, and waits until it has stopped or is gone.
pub fn stop_process(pid: u32) {
    run(Command::new("sh").args(["-c", "kill -STOP $0 || true", &pid.to_string()]));
    let runs = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        state.is_some_and(|state| !state.contains("stopped") && !state.contains("zombie"))
    };
    check::wait_for(&format!("process {pid} stops"), || !runs());
}

/// Lets a process go on that was stopped by SIGSTOP.
pub fn continue_process(pid: u32) {
    run(Command::new("sh").args(["-c", "kill -CONT $0 || true", &pid.to_string()]));
}

/// Stops a process by SIGSTOP, then its child processes, and returns all of them, itself first. It is stopped first because
/// a child that it starts after its children were listed would be missed.
pub fn stop_family(pid: u32) -> Vec<u32> {
    stop_process(pid);
    let children = output(Command::new("ps").args(["--ppid", &pid.to_string(), "-o", "pid="]));
    let children = children.output.split_whitespace().map(|child| child.parse::<u32>().unwrap());
    let pids: Vec<u32> = [pid].into_iter().chain(children).collect();
    pids[1..].iter().copied().for_each(stop_process);
    pids
}
