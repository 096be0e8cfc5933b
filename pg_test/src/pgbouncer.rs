//! PgBouncer in front of a server.

use crate::Cluster;
use crate::check::wait_for;
use crate::directories::directory;
use crate::ports::free_port;
use crate::programs::{output, server_user};
use std::net::TcpStream;
use std::process::{Child, Command};
use tempfile::TempDir;

/// The program of the environment's `PGBOUNCER`, else where Debian has it.
fn program() -> Command {
    Command::new(std::env::var("PGBOUNCER").unwrap_or_else(|_| "/usr/sbin/pgbouncer".to_owned()))
}

/// For how long a client keeps a session of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Until it disconnects.
    Session,
    /// For a transaction.
    Transaction,
    /// For a statement; there are no transactions of several.
    Statement,
}

/// PgBouncer, which ends with its value.
pub struct PgBouncer {
    child: Child,
    port: u16,
    _directory: TempDir,
}

impl PgBouncer {
    /// In front of a cluster that listens on the loopback, with so many sessions of the server for each database.
    pub fn before(cluster: &Cluster, pool: Pool, sessions: usize) -> Self {
        let directory = directory("bouncer-");
        let port = free_port();
        let file = directory.path().join("pgbouncer.ini");
        let mode = format!("{pool:?}").to_lowercase();
        // From this version on, it can follow prepared statements from one session of the server to another.
        let prepared = if Self::version() >= (1, 21) { "max_prepared_statements = 100\n" } else { "" };
        // With auth_type any, the server's user is the one that is configured.
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 user=postgres port={server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n\
             default_pool_size = {sessions}\nserver_login_retry = 1\nignore_startup_parameters = extra_float_digits\n\
             {prepared}[users]\n",
            server = cluster.port()
        );
        std::fs::write(&file, configuration).unwrap();
        let mut command = program();
        if let Some(user) = server_user() {
            output(Command::new("chmod").args(["-R", "a+rX"]).arg(directory.path()));
            // It becomes this user by itself; so it is our own child process.
            command.args(["--user", user]);
        }
        let child = command.arg("--quiet").arg(file).current_dir(directory.path()).spawn().unwrap();
        wait_for("PgBouncer listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, port, _directory: directory }
    }

    /// Its port on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its major and minor version.
    ///
    /// # Panics
    /// Where it is not installed.
    pub fn version() -> (u32, u32) {
        let text = output(program().arg("--version")).output;
        let version = text.split_whitespace().nth(1).unwrap_or_else(|| panic!("{text}"));
        let mut numbers = version.split('.').map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
