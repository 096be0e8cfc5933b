//! Throw-away registries of worker IDs: real servers on the loopback, which can be killed, paused, restarted and wiped.

mod backup;
mod etcd;
mod postgres;
mod redis;
pub mod rights;

pub use backup::Backup;

use crate::Cluster;
use crate::certificates::Certificate;
use crate::check::wait_for;
use crate::cluster::Stop;
use crate::directories::directory;
use crate::ports::free_port;
use crate::programs::{continue_process, run, stop_process};
use std::fs::File;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use tempfile::TempDir;

/// Which registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A table in PostgreSQL.
    Postgres,
    /// etcd.
    Etcd,
    /// Redis.
    Redis,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Postgres, Self::Etcd, Self::Redis];

    fn described(self) -> &'static Described {
        match self {
            Self::Postgres => &postgres::KIND,
            Self::Etcd => &etcd::KIND,
            Self::Redis => &redis::KIND,
        }
    }

    /// The user who may change everything; for Redis, the one without a name.
    pub fn user(self) -> &'static str {
        self.described().user
    }

    /// The scheme of its URLs.
    pub fn scheme(self, with_tls: bool) -> &'static str {
        self.described().schemes[usize::from(with_tls)]
    }

    /// A URL with these hosts, and these credentials as they stand before the `@`.
    pub fn url(self, with_tls: bool, credentials: &str, hosts: &str) -> String {
        let credentials = if credentials.is_empty() { self.described().credentials } else { credentials };
        let end = if credentials.is_empty() { "" } else { "@" };
        format!("{}://{credentials}{end}{hosts}", self.scheme(with_tls))
    }
}

/// A kind of registry, for tests.
struct Described {
    user: &'static str,
    /// The credentials of a URL that names none.
    credentials: &'static str,
    /// Without TLS, and with it.
    schemes: [&'static str; 2],
    server: ServerKind,
}

/// The server of a kind.
enum ServerKind {
    /// A cluster of ours.
    Cluster(fn(&Setup) -> Cluster),
    Process {
        /// Begins the command that runs it, in this directory, with this port, and this one for its peers.
        command: fn(&Setup, &Path, u16, u16) -> Command,
        /// Whether it answers, where it asks for no credentials and has no TLS.
        is_ready: fn(&Server) -> bool,
        /// Has it ask for the password, where its command does not.
        set_password: fn(&Server, &str),
    },
}

/// Runs each of these tests against each registry: `fn test(kind: Kind)`, in the module where this stands.
#[macro_export]
macro_rules! with_each_registry {
    ($($test:ident),+ $(,)?) => {
        mod by_postgres { $( #[test] fn $test() { super::$test($crate::registries::Kind::Postgres) } )+ }
        mod by_etcd { $( #[test] fn $test() { super::$test($crate::registries::Kind::Etcd) } )+ }
        mod by_redis { $( #[test] fn $test() { super::$test($crate::registries::Kind::Redis) } )+ }
    };
}

/// How a registry is made.
#[derive(Clone, Debug)]
pub struct Setup {
    kind: Kind,
    password: Option<String>,
    certificate: Option<Certificate>,
    wants_certificate: bool,
    arguments: Vec<String>,
}

impl Setup {
    /// A registry that keeps its promise, without a password and without TLS.
    pub fn of(kind: Kind) -> Self {
        Self { kind, password: None, certificate: None, wants_certificate: false, arguments: Vec::new() }
    }

    /// Asks for this password, of [`Kind::user`].
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Talks TLS, and nothing else.
    #[must_use]
    pub fn certificate(mut self, certificate: &Certificate) -> Self {
        self.certificate = Some(certificate.clone());
        self
    }

    /// Takes clients only that show a certificate of the same authority.
    #[must_use]
    pub fn wants_certificate(mut self) -> Self {
        self.wants_certificate = true;
        self
    }

    /// Adds an argument for the server; for PostgreSQL, a line of postgresql.conf.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Makes and starts it.
    pub fn start(self) -> Server {
        let engine = match self.kind.described().server {
            ServerKind::Cluster(create) => Engine::Cluster(create(&self)),
            ServerKind::Process { .. } => {
                let directory = directory("registry-");
                Engine::Process { directory, port: free_port(), peers: free_port(), child: None }
            }
        };
        let mut server = Server { setup: self, engine };
        server.start();
        // Until it is set, nobody is asked for it.
        if let ServerKind::Process { set_password, .. } = server.setup.kind.described().server
            && let Some(password) = server.setup.password.take()
        {
            set_password(&server, &password);
            server.setup.password = Some(password);
        }
        server
    }
}

/// The server of a registry. Stopped and removed when it is dropped.
pub struct Server {
    setup: Setup,
    engine: Engine,
}

enum Engine {
    Cluster(Cluster),
    Process { directory: TempDir, port: u16, peers: u16, child: Option<Child> },
}

impl Server {
    /// Which registry it is.
    pub fn kind(&self) -> Kind {
        self.setup.kind
    }

    /// The port that it listens at, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        match &self.engine {
            Engine::Cluster(cluster) => cluster.port(),
            Engine::Process { port, .. } => *port,
        }
    }

    /// Its address.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// Its URL, without a password.
    pub fn url(&self) -> String {
        self.setup.kind.url(self.setup.certificate.is_some(), "", &self.address())
    }

    /// The PostgreSQL cluster.
    ///
    /// # Panics
    /// Where it is another kind.
    pub fn cluster(&self) -> &Cluster {
        match &self.engine {
            Engine::Cluster(cluster) => cluster,
            Engine::Process { .. } => panic!("not a PostgreSQL"),
        }
    }

    /// Where etcd or Redis has its files.
    ///
    /// # Panics
    /// Where it is a PostgreSQL.
    pub fn directory(&self) -> &Path {
        match &self.engine {
            Engine::Process { directory, .. } => directory.path(),
            Engine::Cluster(_) => panic!("a PostgreSQL"),
        }
    }

    /// Another PostgreSQL, which was set up as this one was: its standby, which may have been promoted.
    pub(crate) fn of_cluster(&self, cluster: Cluster) -> Self {
        Self { setup: self.setup.clone(), engine: Engine::Cluster(cluster) }
    }

    /// Starts it, or starts it again with what it stored. Returns when it answers.
    pub fn start(&mut self) {
        self.spawn();
        if let Engine::Process { .. } = &self.engine {
            self.wait_until_it_answers();
        }
    }

    fn spawn(&mut self) {
        match &mut self.engine {
            Engine::Cluster(cluster) => cluster.start(),
            Engine::Process { directory, port, peers, child } => {
                let ServerKind::Process { command, .. } = self.setup.kind.described().server else {
                    unreachable!("a process")
                };
                let mut command = command(&self.setup, directory.path(), *port, *peers);
                let log = File::options().create(true).append(true).open(directory.path().join("log")).unwrap();
                command.args(&self.setup.arguments).stdout(log.try_clone().unwrap()).stderr(log).env_clear();
                command.current_dir(directory.path());
                *child = Some(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")));
            }
        }
    }

    fn wait_until_it_answers(&mut self) {
        wait_for(&format!("{:?} answers", self.setup.kind), || {
            if let Engine::Process { directory, child: Some(child), .. } = &mut self.engine
                && let Some(status) = child.try_wait().unwrap()
            {
                panic!("{status}: {}", std::fs::read_to_string(directory.path().join("log")).unwrap());
            }
            // A server with TLS or with authentication refuses the client, which is an answer, too.
            let is_open = self.setup.certificate.is_none() && self.setup.password.is_none();
            match self.setup.kind.described().server {
                ServerKind::Process { is_ready, .. } if is_open => is_ready(self),
                _ => TcpStream::connect(("127.0.0.1", self.port())).is_ok(),
            }
        });
    }

    /// Ends it in good order.
    pub fn stop(&mut self) {
        match &mut self.engine {
            Engine::Cluster(cluster) => cluster.stop(Stop::Fast),
            Engine::Process { child, .. } => {
                if let Some(mut child) = child.take() {
                    run(Command::new("kill").arg(child.id().to_string()));
                    child.wait().unwrap();
                }
            }
        }
    }

    /// Ends all its processes by SIGKILL.
    pub fn kill(&mut self) {
        match &mut self.engine {
            Engine::Cluster(cluster) => cluster.stop(Stop::Kill),
            Engine::Process { child, .. } => {
                if let Some(mut child) = child.take() {
                    child.kill().unwrap();
                    child.wait().unwrap();
                }
            }
        }
    }

    /// Stops all its processes by SIGSTOP: it takes connections, and does not answer.
    pub fn pause(&self) {
        match &self.engine {
            Engine::Cluster(cluster) => cluster.pause(),
            Engine::Process { child, .. } => stop_process(child.as_ref().expect("it runs").id()),
        }
    }

    /// Lets it go on.
    pub fn resume(&self) {
        match &self.engine {
            Engine::Cluster(cluster) => cluster.resume(),
            Engine::Process { child, .. } => continue_process(child.as_ref().expect("it runs").id()),
        }
    }

    /// Loses all that it stores: for PostgreSQL the schema, for the others the data directory, from which they are started
    /// again.
    pub fn wipe(&mut self) {
        if let Engine::Cluster(cluster) = &self.engine {
            cluster.client().batch_execute("DROP SCHEMA IF EXISTS snowflake_registry CASCADE").unwrap();
            return;
        }
        self.kill();
        self.remove_files();
        self.start();
    }

    fn remove_files(&self) {
        if let Engine::Process { directory, .. } = &self.engine {
            for entry in std::fs::read_dir(directory.path()).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Engine::Process { child: Some(child), .. } = &mut self.engine {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
