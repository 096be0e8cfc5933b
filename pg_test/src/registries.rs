//! Throw-away registries of worker IDs: real servers on the loopback, which can be killed, paused, restarted and wiped.

use crate::Cluster;
use crate::certificates::Certificate;
use crate::check::wait_for;
use crate::cluster::Stop;
use crate::directories::directory;
use crate::links::Links;
use crate::ports::free_port;
use crate::programs::{Installation, Output, continue_process, output, run, server_user, stop_process};
use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
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

    /// The user who may change everything; for Redis, the one without a name.
    pub fn user(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Etcd => "root",
            Self::Redis => "",
        }
    }

    /// The scheme of its URLs.
    pub fn scheme(self, with_tls: bool) -> &'static str {
        match (self, with_tls) {
            (Self::Postgres, _) => "postgres",
            (Self::Etcd, false) => "etcd",
            (Self::Etcd, true) => "etcds",
            (Self::Redis, false) => "redis",
            (Self::Redis, true) => "rediss",
        }
    }

    /// A URL with these hosts, and these credentials as they stand before the `@`.
    pub fn url(self, with_tls: bool, credentials: &str, hosts: &str) -> String {
        let credentials = match (self, credentials) {
            (Self::Postgres, "") => "postgres@".to_owned(),
            (_, "") => String::new(),
            (_, credentials) => format!("{credentials}@"),
        };
        format!("{}://{credentials}{hosts}", self.scheme(with_tls))
    }
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
        let engine = match self.kind {
            Kind::Postgres => Engine::Postgres(postgres(&self)),
            Kind::Etcd | Kind::Redis => {
                let directory = directory("registry-");
                Engine::Process { directory, port: free_port(), peers: free_port(), child: None }
            }
        };
        let mut server = Server { setup: self, engine };
        server.start();
        if server.setup.kind == Kind::Etcd
            && let Some(password) = server.setup.password.take()
        {
            server.etcdctl(&["user", "add", "root", "--new-user-password", &password]);
            server.etcdctl(&["role", "add", "root"]);
            server.etcdctl(&["user", "grant-role", "root", "root"]);
            server.etcdctl(&["auth", "enable"]);
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

/// What [`Server::back_up`] has made.
pub enum Backup {
    /// A script.
    Dump(String),
    /// A copy of the data directory.
    Files(TempDir),
}

enum Engine {
    Postgres(Cluster),
    Process { directory: TempDir, port: u16, peers: u16, child: Option<Child> },
}

fn postgres(setup: &Setup) -> Cluster {
    let mut options = Cluster::options().not_preloaded().listening();
    for line in &setup.arguments {
        options = options.set(line);
    }
    if setup.certificate.is_some() {
        options = options
            .on(Installation::with_tls())
            .set("ssl = on\nssl_cert_file = 'registry.crt'\nssl_key_file = 'registry.key'");
        options = options.set("ssl_ca_file = 'root.crt'");
    }
    let cluster = options.create();
    if let Some(Certificate { certificate, key, root }) = &setup.certificate {
        // The server reads a key only that nobody else may read.
        for (from, to) in [(certificate, "registry.crt"), (key, "registry.key"), (root, "root.crt")] {
            let to = cluster.data().join(to);
            std::fs::copy(from, &to).unwrap();
            run(Command::new("chmod").arg("600").arg(&to));
            if let Some(user) = server_user() {
                run(Command::new("chown").arg(user).arg(&to));
            }
        }
    }
    let line = if setup.certificate.is_some() { "hostssl" } else { "host" };
    let method = if setup.password.is_some() { "scram-sha-256" } else { "trust" };
    let option = if setup.wants_certificate { " clientcert=verify-ca" } else { "" };
    let rules =
        format!("local all all trust\nlocal replication all trust\n{line} all all 127.0.0.1/32 {method}{option}\n");
    std::fs::write(cluster.data().join("pg_hba.conf"), rules).unwrap();
    if let Some(password) = &setup.password {
        cluster.start();
        let password = password.replace('\'', "''");
        cluster.client().batch_execute(&format!("ALTER ROLE postgres PASSWORD '{password}'")).unwrap();
        cluster.stop(Stop::Fast);
    }
    cluster
}

impl Server {
    /// Which registry it is.
    pub fn kind(&self) -> Kind {
        self.setup.kind
    }

    /// The port that it listens at, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        match &self.engine {
            Engine::Postgres(cluster) => cluster.port(),
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
            Engine::Postgres(cluster) => cluster,
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
            Engine::Postgres(_) => panic!("a PostgreSQL"),
        }
    }

    /// Three members of one cluster of etcd, and the links between them.
    pub fn etcd_members() -> (Vec<Self>, Links) {
        let ports: Vec<_> = (0..3).map(|_| (free_port(), free_port())).collect();
        let links = Links::default();
        let proxies = ports.iter().enumerate().map(|(i, (_, peers))| links.before(i, *peers));
        let urls: Vec<_> = proxies.map(|port| format!("http://127.0.0.1:{port}")).collect();
        let cluster: Vec<_> = urls.iter().enumerate().map(|(i, url)| format!("m{i}={url}")).collect();
        let member = |(i, (port, peers)): (usize, &(u16, u16))| {
            let (name, cluster) = (format!("m{i}"), cluster.join(","));
            // The last of several values counts.
            let setup = ["--name", &name, "--initial-cluster", &cluster, "--initial-advertise-peer-urls", &urls[i]]
                .into_iter()
                .fold(Setup::of(Kind::Etcd), Setup::argument);
            let engine = Engine::Process { directory: directory("registry-"), port: *port, peers: *peers, child: None };
            Self { setup, engine }
        };
        let mut members: Vec<_> = ports.iter().enumerate().map(member).collect();
        // None of them answers before there is a majority.
        members.iter_mut().for_each(Self::spawn);
        members.iter_mut().for_each(Self::wait_until_it_answers);
        let list = members[0].etcdctl(&["member", "list"]);
        let number =
            |i| list.lines().find(|line| line.contains(&format!(", m{i}, "))).unwrap().split(',').next().unwrap();
        links.know((0..3).map(|i| number(i).to_owned()).collect());
        (members, links)
    }

    /// Whether this member of a cluster of etcd leads it.
    pub fn leads(&self) -> bool {
        self.try_etcdctl(&["endpoint", "status"]).output.split(", ").nth(4) == Some("true")
    }

    /// Starts it, or starts it again with what it stored. Returns when it answers.
    pub fn start(&mut self) {
        self.spawn();
        if let Engine::Process { .. } = &self.engine {
            self.wait_until_it_answers();
        }
    }

    fn spawn(&mut self) {
        let kind = self.setup.kind;
        match &mut self.engine {
            Engine::Postgres(cluster) => cluster.start(),
            Engine::Process { directory, port, peers, child } => {
                let mut command = match kind {
                    Kind::Redis => redis(&self.setup, directory.path().to_owned(), *port),
                    _ => etcd(&self.setup, directory.path().to_owned(), *port, *peers),
                };
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
            // A server with TLS or with authentication refuses these clients, which is an answer, too.
            match self.setup.kind {
                Kind::Etcd if self.setup.certificate.is_none() && self.setup.password.is_none() => {
                    self.try_etcdctl(&["get", "x"]).success
                }
                Kind::Redis if self.setup.certificate.is_none() && self.setup.password.is_none() => {
                    self.try_redis_cli(&["ping"]).output.trim() == "PONG"
                }
                _ => TcpStream::connect(("127.0.0.1", self.port())).is_ok(),
            }
        });
    }

    /// Ends all its processes by SIGKILL.
    pub fn kill(&mut self) {
        match &mut self.engine {
            Engine::Postgres(cluster) => cluster.stop(Stop::Kill),
            Engine::Process { child, .. } => {
                if let Some(mut child) = child.take() {
                    child.kill().unwrap();
                    child.wait().unwrap();
                }
            }
        }
    }

    /// Ends it in good order.
    pub fn stop(&mut self) {
        match &mut self.engine {
            Engine::Postgres(cluster) => cluster.stop(Stop::Fast),
            Engine::Process { child, .. } => {
                if let Some(mut child) = child.take() {
                    run(Command::new("kill").arg(child.id().to_string()));
                    child.wait().unwrap();
                }
            }
        }
    }

    /// Stops all its processes by SIGSTOP: it takes connections, and does not answer.
    pub fn pause(&self) {
        match &self.engine {
            Engine::Postgres(cluster) => cluster.pause(),
            Engine::Process { child, .. } => stop_process(child.as_ref().expect("it runs").id()),
        }
    }

    /// Lets it go on.
    pub fn resume(&self) {
        match &self.engine {
            Engine::Postgres(cluster) => cluster.resume(),
            Engine::Process { child, .. } => continue_process(child.as_ref().expect("it runs").id()),
        }
    }

    /// Loses all that it stores: for PostgreSQL the schema, for the others the data directory, from which they are started
    /// again.
    pub fn wipe(&mut self) {
        if let Engine::Postgres(cluster) = &self.engine {
            cluster.client().batch_execute("DROP SCHEMA IF EXISTS snowflake_registry CASCADE").unwrap();
            return;
        }
        self.kill();
        self.remove_files();
        self.start();
    }

    /// A backup of all that it stores.
    pub fn back_up(&mut self) -> Backup {
        if let Engine::Postgres(cluster) = &self.engine {
            let mut dump = cluster.program("pg_dump");
            return Backup::Dump(run(dump.args(["--schema=snowflake_registry", "--clean", "--if-exists"])));
        }
        let copy = directory("backup-");
        self.kill();
        if let Engine::Process { directory, .. } = &self.engine {
            run(Command::new("cp").arg("-a").arg(directory.path().join(".")).arg(copy.path()));
        }
        self.start();
        Backup::Files(copy)
    }

    /// Goes back to a backup.
    pub fn restore(&mut self, backup: &Backup) {
        match backup {
            Backup::Dump(dump) => {
                if let Engine::Postgres(cluster) = &self.engine {
                    let file = cluster.new_file("dump.sql");
                    std::fs::write(&file, dump).unwrap();
                    run(cluster.program("psql").args(["--quiet", "--set=ON_ERROR_STOP=1", "--file"]).arg(file));
                }
            }
            Backup::Files(copy) => {
                self.kill();
                self.remove_files();
                if let Engine::Process { directory, .. } = &self.engine {
                    run(Command::new("cp").arg("-a").arg(copy.path().join(".")).arg(directory.path()));
                }
                self.start();
            }
        }
    }

    fn remove_files(&self) {
        if let Engine::Process { directory, .. } = &self.engine {
            for entry in std::fs::read_dir(directory.path()).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
            }
        }
    }

    /// Runs etcdctl(1) against it, and returns what it writes.
    ///
    /// # Panics
    /// Where it fails.
    pub fn etcdctl(&self, arguments: &[&str]) -> String {
        let Output { output, errors, success } = self.try_etcdctl(arguments);
        assert!(success, "{arguments:?}: {output}{errors}");
        output
    }

    fn try_etcdctl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints=http://{}", self.address()));
        if let Some(password) = &self.setup.password {
            command.arg(format!("--user=root:{password}"));
        }
        output(command.args(arguments))
    }

    /// Runs redis-cli(1) against it, and returns what it writes.
    ///
    /// # Panics
    /// Where it fails.
    pub fn redis_cli(&self, arguments: &[&str]) -> String {
        let Output { output, errors, success } = self.try_redis_cli(arguments);
        assert!(success, "{arguments:?}: {output}{errors}");
        output
    }

    fn try_redis_cli(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("redis-cli");
        command.args(["-e", "-p", &self.port().to_string()]);
        if let Some(password) = &self.setup.password {
            command.env("REDISCLI_AUTH", password);
        }
        output(command.args(arguments))
    }
}

fn redis(setup: &Setup, directory: PathBuf, port: u16) -> Command {
    let mut command = Command::new("/usr/bin/redis-server");
    let plain = if setup.certificate.is_some() { 0 } else { port };
    command.args(["--bind", "127.0.0.1", "--port", &plain.to_string(), "--dir"]).arg(directory);
    command.args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
    if let Some(password) = &setup.password {
        command.args(["--requirepass", password]);
    }
    if let Some(Certificate { certificate, key, root }) = &setup.certificate {
        command.args(["--tls-port", &port.to_string(), "--tls-cert-file"]).arg(certificate);
        command.arg("--tls-key-file").arg(key).arg("--tls-ca-cert-file").arg(root);
        command.args(["--tls-auth-clients", if setup.wants_certificate { "yes" } else { "no" }]);
    }
    command
}

fn etcd(setup: &Setup, directory: PathBuf, port: u16, peers: u16) -> Command {
    let mut command = Command::new("/usr/bin/etcd");
    let scheme = if setup.certificate.is_some() { "https" } else { "http" };
    let clients = format!("{scheme}://127.0.0.1:{port}");
    let peers = format!("http://127.0.0.1:{peers}");
    command.args(["--name", "registry", "--log-level", "error", "--data-dir"]).arg(directory.join("data"));
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("registry={peers}")]);
    if let Some(Certificate { certificate, key, root }) = &setup.certificate {
        command.arg("--cert-file").arg(certificate).arg("--key-file").arg(key);
        if setup.wants_certificate {
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(root);
        }
    }
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Engine::Process { child: Some(child), .. } = &mut self.engine {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
