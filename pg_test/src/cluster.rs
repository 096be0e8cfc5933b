//! A cluster: its data directory, its server, its clock.

use crate::programs::{all, kill, output_of, program, run, server_user};
use postgres::{Client, NoTls, Row};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How a server is stopped.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// Sessions are ended; a checkpoint is made.
    Fast,
    /// No checkpoint: the next start recovers.
    Immediate,
    /// The postmaster gets SIGKILL, and then all that it leaves behind.
    Kill,
}

/// How a cluster is made.
pub struct Options {
    preload: bool,
    clock: bool,
    configuration: String,
}

impl Options {
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

    /// Makes the cluster, starts it, and creates the extension.
    pub fn start(self) -> Cluster {
        let cluster = self.create();
        cluster
            .start()
            .unwrap_or_else(|log| panic!("the server did not start:\n{log}"));
        cluster.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
        cluster
    }

    /// Makes the cluster, and does not start it.
    pub fn create(self) -> Cluster {
        let directory = tempfile::Builder::new().prefix("pgsf-").tempdir_in("/tmp").unwrap();
        if let Some(user) = server_user() {
            run(Command::new("chown").arg(user).arg(directory.path()));
        }
        let cluster = Cluster {
            directory,
            has_clock: self.clock,
        };
        let data = cluster.data();
        run(program("initdb", &[])
            .args(["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8"])
            .args(["--locale=C", "--pgdata", data.to_str().unwrap()]));
        let mut configuration = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nfsync = off\nmax_connections = 100\n\
             timezone = 'UTC'\nlogging_collector = off\n",
            cluster.directory.path().display()
        );
        if self.preload {
            configuration.push_str("shared_preload_libraries = 'pg_snowflake'\npg_snowflake.worker_id = 1\n");
        }
        configuration.push_str(&self.configuration);
        cluster.append("postgresql.conf", &configuration);
        if self.clock {
            cluster.step_clock("+0s");
        }
        cluster
    }
}

/// A PostgreSQL cluster of a test's own.
pub struct Cluster {
    directory: TempDir,
    has_clock: bool,
}

impl Cluster {
    /// Options for a cluster that preloads the library and has worker ID 1.
    pub fn options() -> Options {
        Options {
            preload: true,
            clock: false,
            configuration: String::new(),
        }
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// The directory of the server's socket: the `host` of clients.
    pub fn socket(&self) -> &Path {
        self.directory.path()
    }

    /// Adds lines to a file of the data directory.
    pub fn append(&self, file: &str, lines: &str) {
        let path = self.data().join(file);
        let mut text = std::fs::read_to_string(&path).unwrap_or_default();
        text.push_str(lines);
        std::fs::write(path, text).unwrap();
    }

    /// Starts the server.
    ///
    /// # Errors
    /// With the server's log where it does not start.
    pub fn start(&self) -> Result<(), String> {
        let log = self.directory.path().join("log");
        let start = Instant::now();
        loop {
            let before = self.log().len();
            let output = self.pg_ctl("start").arg("--log").arg(&log).output().unwrap();
            if output.status.success() {
                return Ok(());
            }
            let new = self.log().split_off(before);
            // What a killed postmaster leaves behind lives on for a moment.
            let remains = new.contains("postmaster.pid") || new.contains("shared memory block");
            if !remains || start.elapsed() > Duration::from_secs(20) {
                return Err(format!("{}{new}", all(&output)));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Stops the server.
    pub fn stop(&self, how: Stop) {
        match how {
            Stop::Fast => drop(run(self.pg_ctl("stop").arg("--mode=fast"))),
            Stop::Immediate => drop(run(self.pg_ctl("stop").arg("--mode=immediate"))),
            Stop::Kill => {
                let pid = self.postmaster();
                let children = output_of(Command::new("ps").args(["--ppid", &pid.to_string(), "-o", "pid="]));
                kill(pid);
                children
                    .split_whitespace()
                    .for_each(|child| kill(child.parse().unwrap()));
            }
        }
    }

    /// The process ID of the postmaster.
    pub fn postmaster(&self) -> u32 {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }

    fn pg_ctl(&self, action: &str) -> Command {
        let variables = if self.has_clock {
            self.clock_variables()
        } else {
            Vec::new()
        };
        let mut command = program("pg_ctl", &variables);
        command
            .args([action, "--wait", "--timeout=60", "--silent", "--pgdata"])
            .arg(self.data());
        command
    }

    /// All that the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
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

    /// Runs this in sessions of the superuser until it succeeds in one: for a server that is about to crash, or not
    /// up again yet.
    ///
    /// # Panics
    /// With the last error, after half a minute.
    pub fn retry<T>(&self, session: impl Fn(&mut Client) -> Result<T, postgres::Error>) -> T {
        let start = Instant::now();
        loop {
            match self
                .connect("postgres", "postgres")
                .and_then(|mut client| session(&mut client))
            {
                Ok(done) => return done,
                Err(error) if start.elapsed() > Duration::from_secs(30) => panic!("{error}"),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn connect(&self, user: &str, database: &str) -> Result<Client, postgres::Error> {
        let host = self.socket().display();
        Client::connect(&format!("host={host} user={user} dbname={database}"), NoTls)
    }

    /// One of PostgreSQL's client programs, connected to this cluster.
    pub fn program(&self, name: &str) -> Command {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let host = self.socket().to_str().unwrap();
        program(
            name,
            &[
                variable("PGHOST", host),
                variable("PGUSER", "postgres"),
                variable("PGDATABASE", "postgres"),
            ],
        )
    }

    /// Runs as many sessions at once as there are to be, each with its number, and returns what they return.
    pub fn sessions<T: Send>(&self, count: usize, session: impl Fn(usize, &mut Client) -> T + Sync) -> Vec<T> {
        thread::scope(|scope| {
            let session = &session;
            let threads: Vec<_> = (0..count)
                .map(|number| scope.spawn(move || session(number, &mut self.client())))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// Sets parameters as `ALTER SYSTEM` does, and has all processes read them.
    pub fn reload(&self, parameters: &[(&str, &str)]) {
        let mut client = self.client();
        for (name, value) in parameters {
            client
                .batch_execute(&format!("ALTER SYSTEM SET {name} = '{value}'"))
                .unwrap();
        }
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        // The postmaster passes the signal on; a session reads the files between two statements.
        let (name, value) = parameters[parameters.len() - 1];
        let start = Instant::now();
        let shown = format!("SELECT setting = $1 FROM pg_settings WHERE name = '{name}'");
        while !self.client().query_one(&shown, &[&value]).unwrap().get::<_, bool>(0) {
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "{name} did not become {value}"
            );
            thread::sleep(Duration::from_millis(10));
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
    }

    fn clock_variables(&self) -> Vec<(String, String)> {
        let library = glob("/usr/lib", "faketime/libfaketime.so.1").expect("libfaketime is not installed");
        [
            ("LD_PRELOAD", library.to_str().unwrap()),
            (
                "FAKETIME_TIMESTAMP_FILE",
                self.directory.path().join("clock").to_str().unwrap(),
            ),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Not `stop`: it panics where no server runs.
        let _ = self.pg_ctl("stop").arg("--mode=immediate").output();
    }
}

/// The first column of all rows.
pub fn ids(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row.get(0)).collect()
}

/// The file `path` in one of the directories below `root`.
fn glob(root: &str, path: &str) -> Option<PathBuf> {
    std::fs::read_dir(root)
        .ok()?
        .flatten()
        .map(|entry| entry.path().join(path))
        .find(|file| file.exists())
}
