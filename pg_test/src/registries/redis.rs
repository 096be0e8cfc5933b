//! Redis.

use super::{Described, Server, ServerKind, Setup};
use crate::certificates::Certificate;
use crate::programs::{Output, output};
use std::path::Path;
use std::process::Command;

pub(super) static KIND: Described = Described {
    user: "",
    credentials: "",
    schemes: ["redis", "rediss"],
    server: ServerKind::Process {
        command,
        is_ready: |server| server.try_redis_cli(&["ping"]).output.trim() == "PONG",
        set_password: |_, _| {},
    },
};

fn command(setup: &Setup, directory: &Path, port: u16, _peers: u16) -> Command {
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

impl Server {
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
