//! A cluster: its data directory, its server, its clock.

use crate::check::wait_for;
use crate::directories::server_directory;
use crate::hostile;
use crate::ports::free_port;
use crate::preloaded;
use crate::programs::{self, Installation, continue_process, exists, kill, run, stop_family, stop_process};
use crate::query::{NEXT, value};
use crate::template;
use postgres::{Client, NoTls};
use std::fmt::Write as _;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server on a slow machine may take to do what it was told.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a server is stopped.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// Sessions are ended; a checkpoint is made.
    Fast,
    /// No checkpoint: the next start recovers.
    Immediate,
    /// The postmaster gets SIGKILL, and then all its child processes.
    Kill,
}

/// How a cluster is made.
#[derive(Clone)]
pub struct Options {
    installation: Installation,
    preload: bool,
    clock: bool,
    listens: bool,
    own_identifier: bool,
    is_hostile: bool,
    initdb: Vec<String>,
    configuration: String,
    variables: Vec<(String, String)>,
}

impl Options {
    /// Adds a variable to the server's environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a line to postgresql.conf.
    #[must_use]
    pub fn set(mut self, line: &str) -> Self {
        writeln!(self.configuration, "{line}").unwrap();
        self
    }

    /// Does not preload the library, nor set a worker ID.
    #[must_use]
    pub fn not_preloaded(mut self) -> Self {
        self.preload = false;
        self
    }

    /// Gives the server a clock that [`Cluster::step_clock`] can set.
    #[must_use]
    pub fn with_clock(mut self) -> Self {
        self.clock = true;
        self
    }

    /// Gives the server a clock, and has calls wait for up to 20 s: long enough for IDs after the clock went back by
    /// about as much as `pg_snowflake.max_lead` allows.
    #[must_use]
    pub fn patient(self) -> Self {
        self.with_clock().set("pg_snowflake.max_wait = '20s'")
    }

    /// A layout of 64 IDs a millisecond: a load uses most of them, so that two claims for one tick are certain to
    /// collide. As in the default layout, the tick is above 22 other bits.
    #[must_use]
    pub fn narrow(self) -> Self {
        self.set("pg_snowflake.layout = 'timestamp=41 worker=16 sequence=6'")
    }

    /// Has the server listen on the loopback, too, at [`Cluster::port`].
    #[must_use]
    pub fn listening(mut self) -> Self {
        self.listens = true;
        self
    }

    /// Gives the cluster a system identifier of its own. Otherwise all clusters of a test program have the same one, and leases of
    /// worker IDs would take them for copies of one server.
    #[must_use]
    pub fn own_identifier(mut self) -> Self {
        self.own_identifier = true;
        self
    }

    /// Makes all databases of the cluster [hostile](crate::hostile), to the users that are named there.
    #[must_use]
    pub fn hostile(mut self) -> Self {
        self.is_hostile = true;
        self
    }

    /// Adds an argument for initdb.
    #[must_use]
    pub fn initdb(mut self, argument: &str) -> Self {
        self.initdb.push(argument.to_owned());
        self
    }

    /// Uses another PostgreSQL than the one under test.
    #[must_use]
    pub fn on(mut self, installation: Installation) -> Self {
        self.installation = installation;
        self
    }

    /// Makes the cluster, starts it, and creates the extension.
    pub fn start(self) -> Cluster {
        let cluster = self.create();
        cluster.start();
        cluster.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
        for name in variable("EXTENSIONS").split_whitespace() {
            // In a session of its own, as some must be created by its first statement.
            cluster.client().batch_execute(&format!("CREATE EXTENSION {name} CASCADE")).unwrap();
        }
        cluster
    }

    /// Makes the cluster, and does not start it.
    pub fn create(self) -> Cluster {
        let mut cluster = Cluster::empty(self.installation, self.clock);
        cluster.variables = self.variables;
        cluster.port = self.listens.then(free_port);
        if self.is_hostile {
            run(Command::new("cp")
                .arg("--archive")
                .arg(hostile::template(&cluster.installation).data())
                .arg(cluster.data()));
        } else {
            template::copy(&cluster.installation, &self.initdb, &cluster.data());
            if self.own_identifier {
                template::renew_identifier(&cluster.installation, &cluster.data());
            }
        }
        // JIT takes longer than the queries of tests: it was an eighth of their time. A test of JIT turns it on.
        let mut configuration =
            "listen_addresses = ''\nfsync = off\njit = off\nmax_connections = 100\ntimezone = 'UTC'\n\
             wal_log_hints = on\nwal_keep_size = 256MB\nlogging_collector = off\n"
                .to_owned();
        if self.preload {
            writeln!(configuration, "shared_preload_libraries = '{}'\npg_snowflake.worker_id = 1", libraries())
                .unwrap();
        }
        configuration.push_str(&self.configuration);
        configuration.push_str(&variable("CONFIGURATION"));
        cluster.append("postgresql.conf", &configuration);
        cluster
    }
}

/// What is preloaded: the library, after those that the variable `PRELOAD_BEFORE` names, and before those of `PRELOAD_AFTER`. So any
/// test can be run beside libraries of others. `EXTENSIONS` names those of their extensions that are created, and `CONFIGURATION` has lines for
/// postgresql.conf.
fn libraries() -> String {
    let names = [variable("PRELOAD_BEFORE"), "pg_snowflake".to_owned(), variable("PRELOAD_AFTER")];
    names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")
}

/// A variable of the tests' environment, which may be absent.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// A PostgreSQL cluster that belongs to one test.
pub struct Cluster {
    installation: Installation,
    directory: TempDir,
    has_clock: bool,
    /// Where it listens, if not on its socket alone.
    port: Option<u16>,
    variables: Vec<(String, String)>,
    /// Where its data is, if not at the usual place.
    data: Option<PathBuf>,
}

impl Cluster {
    /// Options for a cluster that preloads the library and has worker ID 1.
    pub fn options() -> Options {
        Options {
            installation: Installation::under_test(),
            preload: true,
            clock: false,
            listens: false,
            own_identifier: false,
            is_hostile: false,
            initdb: Vec::new(),
            variables: Vec::new(),
            configuration: String::new(),
        }
    }

    /// A directory for a cluster, without its data directory.
    pub fn empty(installation: Installation, with_clock: bool) -> Self {
        let directory = server_directory("");
        let cluster =
            Self { installation, directory, has_clock: with_clock, port: None, variables: Vec::new(), data: None };
        if with_clock {
            cluster.step_clock("+0s");
        }
        cluster
    }

    /// A running standby of this cluster, which streams from it. Its clock, where it has one, is its own.
    pub fn standby(&self) -> Self {
        let mut standby = Self::empty(self.installation.clone(), self.has_clock);
        standby.port = self.port.map(|_| free_port());
        standby.copy_from(self, &["--write-recovery-conf"]);
        standby.start();
        wait_for("the standby streams", || {
            value(&mut standby.client(), "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')")
        });
        standby
    }

    /// Fills this empty directory by `pg_basebackup` of a running cluster, with further options.
    pub fn copy_from(&self, source: &Self, options: &[&str]) {
        let mut backup = source.program("pg_basebackup");
        run(backup.args(["--checkpoint=fast", "--no-sync"]).args(options).arg("--pgdata").arg(self.data()));
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| self.directory.path().join("data"))
    }

    /// A copy of this running server, which is not started yet, and has all that a cloned machine has: its data directory has
    /// the name that this one's has, which is moved.
    pub fn clone_in_place(&mut self) -> Self {
        let mut copy = Self::empty(self.installation.clone(), self.has_clock);
        copy.copy_from(self, &[]);
        let (name, moved) = (self.data(), self.directory.path().join("original"));
        std::fs::rename(&name, &moved).unwrap();
        std::fs::rename(copy.data(), &name).unwrap();
        (self.data, copy.data) = (Some(moved), Some(name));
        copy
    }

    /// The directory of the server's socket: the `host` of clients.
    pub fn socket(&self) -> &Path {
        self.directory.path()
    }

    /// The port: in the name of the socket, and on the loopback where the server listens there.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(5432)
    }

    /// Adds lines to a file of the data directory.
    pub fn append(&self, file: &str, lines: &str) {
        let path = self.data().join(file);
        let mut text = std::fs::read_to_string(&path).unwrap_or_default();
        text.push_str(lines);
        std::fs::write(path, text).unwrap();
    }

    /// A file in the directory of the socket, where there is none of this name yet.
    pub fn new_file(&self, name: &str) -> PathBuf {
        let numbered = |number: u32| self.socket().join(format!("{number}.{name}"));
        (0..).map(numbered).find(|file| !file.exists()).unwrap()
    }

    /// Starts the server.
    ///
    /// # Panics
    /// With the server's log where it does not start.
    #[track_caller]
    pub fn start(&self) {
        if let Err(log) = self.try_start() {
            panic!("the server did not start:\n{log}");
        }
    }

    /// Starts the server.
    ///
    /// # Errors
    /// With the server's log where it does not start.
    pub fn try_start(&self) -> Result<(), String> {
        let log = self.directory.path().join("log");
        let start = Instant::now();
        loop {
            let before = self.log().len();
            let output = programs::output(self.pg_ctl("start").arg("--log").arg(&log));
            if output.success {
                return Ok(());
            }
            let new = self.log().split_off(before);
            // Child processes of a postmaster that was killed live on for a moment.
            let remains = new.contains("postmaster.pid") || new.contains("shared memory block");
            if !remains || start.elapsed() > PATIENCE {
                return Err(output.output + &output.errors + &new);
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// From its next start on, it runs on another installed PostgreSQL, of the same major version.
    pub fn move_to(&mut self, installation: Installation) {
        self.installation = installation;
    }

    /// Stops the server, and starts it again.
    ///
    /// # Panics
    /// With the server's log where it does not start.
    #[track_caller]
    pub fn restart(&self, how: Stop) {
        self.stop(how);
        self.start();
    }

    /// Stops the server.
    pub fn stop(&self, how: Stop) {
        match how {
            Stop::Fast => drop(run(self.pg_ctl("stop").arg("--mode=fast"))),
            Stop::Immediate => drop(run(self.pg_ctl("stop").arg("--mode=immediate"))),
            Stop::Kill => {
                let pids = stop_family(self.postmaster());
                for &pid in &pids {
                    kill(pid);
                }
                // Until they are gone, the data directory counts as in use.
                wait_for(&format!("{pids:?} are gone"), || !pids.iter().any(|&pid| exists(pid)));
            }
        }
    }

    /// Stops by SIGSTOP the processes that write the WAL by themselves, until the server is killed. Without autovacuum, nothing but a commit
    /// writes it then, however long a test takes: `wal_writer_delay` is at most 10 s.
    pub fn stop_writers(&self) {
        let writers = "SELECT array_agg(pid) FROM pg_stat_activity \
                       WHERE backend_type IN ('walwriter', 'background writer', 'checkpointer') HAVING count(*) = 3";
        // They may start a moment after the server takes its first session.
        let pids: Vec<i32> = self.retry(|client| Ok(client.query_one(writers, &[])?.get(0)));
        pids.into_iter().for_each(|pid| stop_process(pid.unsigned_abs()));
    }

    /// Stops the server's processes by SIGSTOP, all of them, until [`Cluster::resume`].
    pub fn pause(&self) {
        stop_family(self.postmaster());
    }

    /// Lets a server that was paused go on.
    pub fn resume(&self) {
        stop_family(self.postmaster()).into_iter().for_each(continue_process);
    }

    /// Ends the recovery of a standby.
    pub fn promote(&self) {
        run(&mut self.pg_ctl("promote"));
    }

    /// Makes a stopped server a standby of another that was promoted meanwhile.
    pub fn rewind_to(&self, source: &Self) {
        // pg_rewind takes a promoted server for a standby until its first checkpoint.
        source.client().batch_execute("CHECKPOINT").unwrap();
        let (host, port) = (source.socket().display(), source.port());
        let connection = format!("host={host} port={port} user=postgres dbname=postgres");
        let mut rewind = self.installation.program("pg_rewind", &[]);
        rewind.args(["--write-recovery-conf", "--no-sync", "--source-server", &connection, "--target-pgdata"]);
        run(rewind.arg(self.data()));
    }

    /// Waits until a standby has replayed all that its primary has logged.
    pub fn catch_up_with(&self, primary: &Self) {
        let mut client = primary.client();
        // What no transaction has committed, such as a sequence's new value, may not be flushed, and so not be sent. A
        // commit flushes it.
        client.batch_execute("SET synchronous_commit = local; SELECT pg_logical_emit_message(true, '', '')").unwrap();
        let target: String = value(&mut client, "SELECT pg_current_wal_flush_lsn()::text");
        let reached = format!("SELECT coalesce(pg_last_wal_replay_lsn() >= '{target}', false)");
        wait_for("the standby catches up", || self.retry(|client| Ok(client.query_one(&reached, &[])?.get(0))));
    }

    /// The process ID of the postmaster.
    pub fn postmaster(&self) -> u32 {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }

    fn pg_ctl(&self, action: &str) -> Command {
        let mut variables = if self.has_clock { self.clock_variables() } else { Vec::new() };
        variables.extend(self.variables.iter().cloned());
        let mut command = self.installation.program("pg_ctl", &variables);
        command.args([action, "--wait", "--timeout=60", "--silent", "--pgdata"]).arg(self.data());
        if action == "start" {
            // Not in the configuration, which a standby copies from its primary.
            let address = self.port.map(|port| format!("-h 127.0.0.1 -p {port} ")).unwrap_or_default();
            command.arg("--options").arg(format!("{address}-k {}", self.socket().display()));
        }
        command
    }

    /// All that the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// How long the log is, in bytes.
    pub fn log_length(&self) -> u64 {
        std::fs::metadata(self.directory.path().join("log")).map_or(0, |file| file.len())
    }

    /// What the server has logged since the log was so long.
    pub fn log_since(&self, length: u64) -> String {
        let mut bytes = Vec::new();
        let mut log = std::fs::File::open(self.directory.path().join("log")).unwrap();
        log.seek(SeekFrom::Start(length)).unwrap();
        log.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    // Clients.

    /// A session of the superuser.
    pub fn client(&self) -> Client {
        self.client_of("postgres", "postgres")
    }

    /// A session of any role in any database.
    pub fn client_of(&self, user: &str, database: &str) -> Client {
        self.connect(user, database).unwrap()
    }

    /// Makes a further database, and creates the extension in it.
    pub fn database(&self, name: &str) {
        self.client().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        self.client_of("postgres", name).batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    }

    /// Runs this in new sessions of the superuser until it succeeds in one: for a server that is about to crash, or not
    /// up again yet.
    ///
    /// # Panics
    /// With the last error, where it still fails after two minutes.
    pub fn retry<T>(&self, session: impl Fn(&mut Client) -> Result<T, postgres::Error>) -> T {
        let start = Instant::now();
        loop {
            match self.connect("postgres", "postgres").and_then(|mut client| session(&mut client)) {
                Ok(done) => return done,
                Err(error) if start.elapsed() > PATIENCE => panic!("{error:?}"),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// An ID of a server that is about to crash, or not up again yet.
    pub fn next_once_up(&self) -> i64 {
        self.retry(|client| Ok(client.query_one(NEXT, &[])?.get(0)))
    }

    /// A session of the superuser in any database, of a server that may still be starting.
    pub fn client_once_up(&self, database: &str) -> Client {
        let start = Instant::now();
        loop {
            match self.try_client_of(database) {
                Ok(client) => return client,
                Err(error) if start.elapsed() > PATIENCE => panic!("{error:?}"),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// A session of the superuser in any database.
    ///
    /// # Errors
    /// Where the server does not accept it.
    pub fn try_client_of(&self, database: &str) -> Result<Client, postgres::Error> {
        self.connect("postgres", database)
    }

    /// Kills a session of this database, and waits until the server has noticed, as [`Cluster::crash`] does.
    pub fn crash_session(&self, database: &str) {
        let mut victim = self.client_of("postgres", database);
        let pid: i32 = value(&mut victim, "SELECT pg_backend_pid()");
        assert!(self.crash(pid));
    }

    /// Kills any session but its own, and waits until the server has noticed, as [`Cluster::crash`] does.
    pub fn crash_any_session(&self) {
        let others = "SELECT pid FROM pg_stat_activity \
                      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1";
        // A session that has ended by itself is no crash.
        while !self.crash(self.retry(|client| Ok(client.query_one(others, &[])?.get(0)))) {}
    }

    /// Kills one of the server's processes, and waits until the server has noticed: it ends all sessions, and takes new
    /// ones once it has made its shared memory anew. Returns whether the process was there.
    pub fn crash(&self, pid: i32) -> bool {
        let mut witness = self.client();
        let killed = kill(pid.unsigned_abs());
        if killed {
            wait_for(&format!("the server notices that {pid} is gone"), || witness.batch_execute("SELECT 1").is_err());
        }
        killed
    }

    fn connect(&self, user: &str, database: &str) -> Result<Client, postgres::Error> {
        let host = self.socket().display();
        let port = self.port();
        Client::connect(&format!("host={host} port={port} user={user} dbname={database}"), NoTls)
    }

    /// One of PostgreSQL's client programs, connected to this cluster.
    pub fn program(&self, name: &str) -> Command {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let host = self.socket().to_str().unwrap();
        self.installation.program(
            name,
            &[
                variable("PGHOST", host),
                variable("PGPORT", &self.port().to_string()),
                variable("PGUSER", "postgres"),
                variable("PGDATABASE", "postgres"),
            ],
        )
    }

    /// Runs so many sessions at once, each with its number, and returns what they return.
    pub fn sessions<T: Send>(&self, count: usize, session: impl Fn(usize, &mut Client) -> T + Sync) -> Vec<T> {
        thread::scope(|scope| {
            let session = &session;
            let threads: Vec<_> =
                (0..count).map(|number| scope.spawn(move || session(number, &mut self.client()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// Sets parameters as `ALTER SYSTEM` does, and has all processes read them.
    pub fn reload(&self, parameters: &[(&str, &str)]) {
        let mut client = self.client();
        for (name, value) in parameters {
            client.batch_execute(&format!("ALTER SYSTEM SET {name} = '{value}'")).unwrap();
        }
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        // The postmaster reads the files, passes the signal on, and starts sessions only after that. A session that is
        // there reads the files between two statements.
        let (name, value) = parameters[parameters.len() - 1];
        let shown = format!("SELECT $1 IN (setting, current_setting(name)) FROM pg_settings WHERE name = '{name}'");
        wait_for(&format!("{name} is {value}"), || self.client().query_one(&shown, &[&value]).unwrap().get(0));
        // Whether anybody waits for standbys is what the checkpointer has read. It reads before it begins a checkpoint.
        if parameters.iter().any(|(name, _)| *name == "synchronous_standby_names") {
            client.batch_execute("CHECKPOINT").unwrap();
        }
    }

    // The clock.

    /// Steps the server's clock, at once and for all its processes, to an offset from the true time such as `-5s`. The
    /// monotonic clock goes on undisturbed, as it does on a machine whose clock is set.
    pub fn step_clock(&self, offset: &str) {
        assert!(self.has_clock, "made without with_clock()");
        let file = self.directory.path().join("clock");
        let new = self.directory.path().join("clock.new");
        std::fs::write(&new, offset).unwrap();
        // Readers find the old offset or the new one, never half of one.
        std::fs::rename(new, file).unwrap();
        // A session may use the processor's counter for up to a millisecond before it reads the clock again.
        thread::sleep(Duration::from_millis(2));
    }

    fn clock_variables(&self) -> Vec<(String, String)> {
        let file = self.directory.path().join("clock");
        [("LD_PRELOAD", preloaded::clock().to_str().unwrap()), ("PGSF_CLOCK", file.to_str().unwrap())]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // What is paused takes no signal.
        if let Some(pid) = std::fs::read_to_string(self.data().join("postmaster.pid"))
            .ok()
            .and_then(|file| file.lines().next()?.parse().ok())
        {
            continue_process(pid);
        }
        // Not `stop`: it panics where no server runs.
        let _ = self.pg_ctl("stop").arg("--mode=immediate").output();
    }
}
