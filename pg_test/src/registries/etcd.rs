//! etcd.

use super::{Described, Engine, Kind, Server, ServerKind, Setup};
use crate::certificates::Certificate;
use crate::check::wait_for;
use crate::directories::directory;
use crate::links::Links;
use crate::ports::free_port;
use crate::programs::{Output, output, run};
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

    /// A further member of the cluster of these, under this name. It is added by the first of them, and starts with no data.
    pub fn another_etcd_member(members: &[&Self], name: &str) -> Self {
        let (port, peers) = (free_port(), free_port());
        let url = format!("http://127.0.0.1:{peers}");
        let added = members[0].changed_members(&["member", "add", name, &format!("--peer-urls={url}")]);
        let cluster = added.lines().find_map(|line| line.strip_prefix("ETCD_INITIAL_CLUSTER=")).expect(&added);
        let cluster = cluster.trim_matches('"');
        let setup = ["--name", name, "--initial-cluster", cluster, "--initial-advertise-peer-urls", &url]
            .into_iter()
            .chain(["--initial-cluster-state", "existing"])
            .fold(Setup::of(Kind::Etcd), Setup::argument);
        let mut member =
            Self { setup, engine: Engine::Process { directory: directory("registry-"), port, peers, child: None } };
        member.start();
        member
    }

    /// Takes the member of this name out of the cluster that this one is of.
    pub fn remove_etcd_member(&self, name: &str) {
        let list = self.etcdctl(&["member", "list"]);
        let line = list.lines().find(|line| line.contains(&format!(", {name}, "))).expect(&list);
        self.changed_members(&["member", "remove", line.split(',').next().unwrap()]);
    }

    /// Changes the members of its cluster, as soon as that allows it: not before they have seen each other for five seconds.
    fn changed_members(&self, arguments: &[&str]) -> String {
        let mut said = String::new();
        wait_for("the members are changed", || {
            let Output { output, success, .. } = self.try_etcdctl(arguments);
            said = output;
            success
        });
        said
    }

    /// Whether this member of a cluster of etcd leads it.
    pub fn leads(&self) -> bool {
        self.try_etcdctl(&["endpoint", "status"]).output.split(", ").nth(4) == Some("true")
    }

    /// Puts a snapshot in the place of its data, with this token of the cluster.
    pub fn restore_snapshot(&mut self, snapshot: &Path, token: &str) {
        self.kill();
        let Engine::Process { directory, peers, .. } = &self.engine else { unreachable!("a process") };
        let (data, peers) = (directory.path().join("data"), format!("http://127.0.0.1:{peers}"));
        std::fs::remove_dir_all(&data).unwrap();
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["snapshot", "restore"]).arg(snapshot).arg("--data-dir").arg(data);
        command.args(["--name", "registry", "--initial-cluster", &format!("registry={peers}")]);
        run(command.args(["--initial-advertise-peer-urls", &peers, "--initial-cluster-token", token]));
        self.start();
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
