//! etcd.

use super::{Described, Engine, Kind, Server, ServerKind, Setup};
use crate::certificates::Certificate;
use crate::directories::directory;
use crate::links::Links;
use crate::ports::free_port;
use crate::programs::{Output, output};
use std::path::Path;
use std::process::Command;

pub(super) static KIND: Described = Described {
    user: "root",
    credentials: "",
    schemes: ["etcd", "etcds"],
    server: ServerKind::Process {
        command,
        is_ready: |server| server.try_etcdctl(&["get", "x"]).success,
        set_password: |server, password| {
            server.etcdctl(&["user", "add", "root", "--new-user-password", password]);
            server.etcdctl(&["role", "add", "root"]);
            server.etcdctl(&["user", "grant-role", "root", "root"]);
            server.etcdctl(&["auth", "enable"]);
        },
    },
};

fn command(setup: &Setup, directory: &Path, port: u16, peers: u16) -> Command {
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

impl Server {
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
}
