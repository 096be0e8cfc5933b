//! PostgreSQL.

use super::{Described, ServerKind, Setup};
use crate::Cluster;
use crate::certificates::Certificate;
use crate::cluster::Stop;
use crate::programs::{Installation, run, server_user};
use std::process::Command;

pub(super) static KIND: Described = Described {
    user: "postgres",
    credentials: "postgres",
    schemes: ["postgres"; 2],
    server: ServerKind::Cluster(create),
};

fn create(setup: &Setup) -> Cluster {
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
