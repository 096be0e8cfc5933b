//! A cluster under Patroni: three servers, each with a Patroni of its own, and an etcd.

use crate::load::connect;
use postgres::Client;
use snowflake_test::check::wait_for;
use snowflake_test::directories::server_directory;
use snowflake_test::packages::{installed, program, succeeds};
use snowflake_test::ports::free_port;
use snowflake_test::programs::{
    Installation, Output, as_server_user, continue_process, kill, output, run, runs, stop_family,
};
use snowflake_test::registries::{Kind, Server, Setup};
use snowflake_test::seconds;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// How the servers get their worker IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// One in the local configuration of each member.
    PerMember,
    /// By leases from the cluster's etcd.
    Leases,
    /// One in the dynamic configuration, for all members: not as it should be.
    Shared,
}

/// How a cluster is made.
#[derive(Clone, Debug)]
pub struct Options {
    numbering: Numbering,
    failsafe: bool,
    parameters: Vec<String>,
}

impl Options {
    /// A cluster of three.
    pub fn new(numbering: Numbering) -> Self {
        Self { numbering, failsafe: false, parameters: Vec::new() }
    }

    /// The primary remains one when etcd is away and the other members answer.
    #[must_use]
    pub fn failsafe(mut self) -> Self {
        self.failsafe = true;
        self
    }

    /// Adds a line to the parameters of the dynamic configuration.
    #[must_use]
    pub fn parameter(mut self, line: &str) -> Self {
        self.parameters.push(line.to_owned());
        self
    }

    /// Makes and starts it. Returns when two standbys stream from a primary, which has the extension.
    pub fn start(self) -> Cluster {
        let directory = server_directory("patroni-");
        let etcd = Setup::of(Kind::Etcd).start();
        let members = (1..=3).map(|number| Member::new(&self, number, &etcd, directory.path())).collect();
        let mut cluster = Cluster { etcd, members, _directory: directory };
        // As with real ones: the first bootstraps, the others copy it.
        cluster.members[0].start();
        cluster.wait_for_primary(|_| true);
        cluster.members[1..].iter_mut().for_each(Member::start);
        cluster.wait_until_healthy();
        cluster.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
        cluster
    }
}

/// Debian's, which the servers' user can run, too. A `python3` of the PATH may be one that only this user can.
const PYTHON: &str = "/usr/bin/python3";

/// The directory with Patroni's programs, which are installed where they are missing.
fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").display().to_string();
        let folder = installed("pg_test/clusters/patroni", &target, "requirements.txt", |folder| {
            succeeds(program(Path::new(PYTHON), folder).args(["-m", "venv", "--clear", "venv"]));
            let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--prefer-binary"];
            let mut install = program(&folder.join("venv/bin/python"), folder);
            succeeds(install.args(pip).args(["--no-deps", "--requirement", "requirements.txt"]));
        });
        let programs = folder.join("venv/bin").canonicalize().unwrap();
        let version = output(as_server_user(Command::new(programs.join("patroni")).arg("--version")));
        assert!(version.success, "the servers' user cannot run {}: {version:?}", programs.display());
        programs
    })
}

/// A member: a Patroni and its server.
pub struct Member {
    /// Its name in the cluster.
    pub name: String,
    /// Where the server listens.
    pub port: u16,
    /// Where Patroni answers.
    rest: u16,
    directory: PathBuf,
    patroni: Option<Child>,
}

impl Member {
    fn new(options: &Options, number: u32, etcd: &Server, parent: &Path) -> Self {
        let name = format!("node{number}");
        let directory = parent.join(&name);
        run(as_server_user(Command::new("mkdir").arg(&directory)));
        let member = Self { name, port: free_port(), rest: free_port(), directory, patroni: None };
        std::fs::write(member.configuration(), member.yaml(options, number, etcd)).unwrap();
        member
    }

    /// The file that people write for each member.
    fn yaml(&self, options: &Options, number: u32, etcd: &Server) -> String {
        let Self { name, port, rest, directory, .. } = self;
        let (etcd, directory) = (etcd.address(), directory.display());
        let indented = |lines: &[String], depth: usize| -> String {
            lines.iter().map(|line| format!("{}{line}\n", " ".repeat(depth))).collect()
        };
        let mut dynamic = vec!["shared_preload_libraries: pg_snowflake".to_owned()];
        let mut local = vec![format!("unix_socket_directories: {directory}")];
        match options.numbering {
            Numbering::PerMember => local.push(format!("pg_snowflake.worker_id: {number}")),
            Numbering::Shared => dynamic.push("pg_snowflake.worker_id: 1".to_owned()),
            Numbering::Leases => dynamic.push(format!("pg_snowflake.registry: etcd://{etcd}")),
        }
        dynamic.extend(options.parameters.iter().cloned());
        format!(
            "scope: shop
name: {name}
restapi:
  listen: 127.0.0.1:{rest}
  connect_address: 127.0.0.1:{rest}
etcd3:
  host: {etcd}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    failsafe_mode: {failsafe}
    postgresql:
      use_pg_rewind: true
      parameters:
        fsync: off
        wal_log_hints: on
{dynamic}      pg_hba:
      - local all all trust
      - host all all 127.0.0.1/32 trust
      - host replication all 127.0.0.1/32 trust
  initdb:
  - encoding: UTF8
  - locale: C
  - no-sync
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {directory}/data
  bin_dir: {bin}
  pgpass: {directory}/pgpass
  authentication:
    superuser:
      username: postgres
    replication:
      username: postgres
  parameters:
{local}",
            failsafe = options.failsafe,
            dynamic = indented(&dynamic, 8),
            local = indented(&local, 4),
            bin = Installation::under_test().bin().display(),
        )
    }

    fn configuration(&self) -> PathBuf {
        self.directory.join("patroni.yml")
    }

    /// The data directory of its server.
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// What Patroni and its server have logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Starts Patroni, which starts the server.
    pub fn start(&mut self) {
        let log = File::options().create(true).append(true).open(self.directory.join("log")).unwrap();
        let mut command = Command::new(programs().join("patroni"));
        let command = as_server_user(command.arg(self.configuration())).current_dir(&self.directory);
        self.patroni = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    fn patroni(&self) -> u32 {
        self.patroni.as_ref().expect("Patroni runs").id()
    }

    /// The process ID of the server's postmaster, where there is one. A server that was killed leaves its file behind,
    /// and its number may be another process's by now: a postmaster works in its data directory.
    pub fn postmaster(&self) -> Option<u32> {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        let is_ours =
            |pid: &u32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place == self.data());
        file.lines().next()?.parse().ok().filter(is_ours)
    }

    /// Stops Patroni by SIGSTOP, and the server runs on.
    pub fn freeze_patroni(&self) {
        stop_family(self.patroni());
    }

    /// Stops Patroni and the server by SIGSTOP, all their processes.
    pub fn freeze(&self) {
        self.freeze_patroni();
        stop_family(self.postmaster().expect("the server runs"));
    }

    /// Lets all go on that was stopped.
    pub fn thaw(&self) {
        let postmaster = self.postmaster().map(stop_family).unwrap_or_default();
        postmaster.into_iter().chain(stop_family(self.patroni())).for_each(continue_process);
    }

    /// Ends the server by SIGKILL, all its processes.
    pub fn kill_server(&self) {
        let pids = self.postmaster().map(stop_family).unwrap_or_default();
        for &pid in &pids {
            kill(pid);
        }
        wait_for("the server is gone", || !pids.iter().any(|&pid| runs(pid)));
    }

    /// Ends Patroni and the server by SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut patroni) = self.patroni.take() {
            // Before the server: Patroni would start it again.
            stop_family(patroni.id()).into_iter().for_each(|pid| {
                kill(pid);
            });
            let _ = patroni.wait();
        }
        self.kill_server();
    }

    /// The status that Patroni's REST interface answers with; `None` where it does not answer.
    fn status(&self, path: &str) -> Option<u16> {
        let address = ([127, 0, 0, 1], self.rest).into();
        let mut stream = TcpStream::connect_timeout(&address, seconds(2)).ok()?;
        stream.set_read_timeout(Some(seconds(3))).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split_whitespace().nth(1)?.parse().ok()
    }

    /// Whether Patroni says that its server is the primary, and has the leader's key.
    pub fn is_primary(&self) -> bool {
        self.status("/primary") == Some(200)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A cluster of three members.
pub struct Cluster {
    /// What Patroni and, if they are used, leases depend on.
    pub etcd: Server,
    /// The members.
    pub members: Vec<Member>,
    _directory: TempDir,
}

impl Cluster {
    /// Where the servers listen.
    pub fn ports(&self) -> Vec<u16> {
        self.members.iter().map(|member| member.port).collect()
    }

    /// The primary, by its place among the members. A member that is frozen is none.
    pub fn primary(&self) -> Option<usize> {
        self.members.iter().position(Member::is_primary)
    }

    /// Waits for a primary of which this holds.
    ///
    /// # Panics
    /// With the members' logs, where there is none.
    pub fn wait_for_primary(&self, holds: impl Fn(usize) -> bool) -> usize {
        let mut found = None;
        self.wait("a primary", || {
            found = self.primary().filter(|&place| holds(place));
            found.is_some()
        });
        found.unwrap()
    }

    /// Waits until two standbys stream from the primary.
    ///
    /// # Panics
    /// With the members' logs, where they do not.
    pub fn wait_until_healthy(&self) {
        let streaming =
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name LIKE 'node%'";
        self.wait("two standbys stream", || {
            let count = |place: usize| -> Option<i64> {
                let mut client = connect(self.members[place].port).ok()?;
                Some(client.query_one(streaming, &[]).ok()?.get(0))
            };
            self.primary().and_then(count) == Some(2)
        });
    }

    /// Waits until a condition holds; asks a few times a second.
    ///
    /// # Panics
    /// With the members' logs, where it does not hold in two minutes.
    #[track_caller]
    pub fn wait(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let start = std::time::Instant::now();
        while !holds() {
            if start.elapsed() > seconds(120) {
                let ends: Vec<String> = self.members.iter().map(|member| end_of(&member.log())).collect();
                panic!("waited in vain: {what}\n{}", ends.join("\n----\n"));
            }
            thread::sleep(Duration::from_millis(500));
        }
    }

    /// A session of the primary.
    ///
    /// # Panics
    /// Where there is none.
    pub fn client(&self) -> Client {
        let primary = self.wait_for_primary(|_| true);
        connect(self.members[primary].port).unwrap()
    }

    /// Runs patronictl with the configuration of a member that is not frozen, the last.
    pub fn try_patronictl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(programs().join("patronictl"));
        command.arg("--config-file").arg(self.members[2].configuration()).args(arguments);
        output(as_server_user(&mut command))
    }

    /// The same, and it must succeed.
    ///
    /// # Panics
    /// With its output, where it fails.
    pub fn patronictl(&self, arguments: &[&str]) -> String {
        let Output { output, errors, success } = self.try_patronictl(arguments);
        assert!(success, "patronictl {arguments:?}:\n{output}{errors}");
        output
    }

    /// Sets a parameter in the dynamic configuration; `null` removes it.
    pub fn edit_config(&self, name: &str, value: &str) {
        self.patronictl(&["edit-config", "--force", "--pg", &format!("{name}={value}")]);
    }

    /// Waits until so many members have the flag that their server is to be restarted.
    ///
    /// Patroni reads the flag once, a second after each reload. A server on a busy machine may not have read its configuration
    /// by then, so Patroni is told to look again.
    ///
    /// # Panics
    /// With the members' logs, where it is another number for two minutes.
    #[track_caller]
    pub fn wait_for_pending_restarts(&self, count: usize) {
        self.wait(&format!("{count} are to be restarted"), || {
            let holds = self.pending_restart().len() == count;
            if !holds {
                self.try_patronictl(&["reload", "--force", "shop"]);
            }
            holds
        });
    }

    /// The members with the flag that their server is to be restarted.
    pub fn pending_restart(&self) -> Vec<String> {
        let table = self.patronictl(&["list", "--format", "tsv"]);
        let mut lines = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let heading = lines.next().unwrap_or_default();
        let Some(column) = heading.iter().position(|name| *name == "Pending restart") else { return Vec::new() };
        let flagged = lines.filter(|cells| cells.get(column).is_some_and(|cell| *cell == "*"));
        flagged.map(|cells| cells[1].to_owned()).collect()
    }
}

fn end_of(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
