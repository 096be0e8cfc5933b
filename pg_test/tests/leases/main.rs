//! Worker IDs that servers lease from a registry: whatever happens to the servers, to the registry, or between them, no two servers make
//! the same ID. The same tests run against PostgreSQL, etcd and Redis.

mod clocks;
mod failover;
mod faults;
mod forgotten;
mod procedures;
mod restored;
mod rights;
mod secrets;
mod segments;
mod servers;
mod single;
mod trouble;
mod trust;

use postgres::Client;
use snowflake_test::programs::{run, server_user};
use snowflake_test::registries::{Kind, Server, Setup};
pub(crate) use snowflake_test::with_each_registry;
use snowflake_test::{Cluster, Options, query};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A registry.
fn registry(kind: Kind) -> Server {
    Setup::of(kind).start()
}

/// Options for a cluster that leases its worker ID from a registry.
fn leasing(url: &str) -> Options {
    Cluster::options()
        .own_identifier()
        .set("pg_snowflake.worker_id = -1")
        .set(&format!("pg_snowflake.registry = '{url}'"))
        .set("pg_snowflake.registry_window = '60s'")
}

/// The worker ID of a server, once it has one.
fn worker(client: &mut Client) -> i32 {
    query::next(client);
    query::value(client, "SELECT worker_id FROM snowflake_status()")
}

/// A column of `snowflake_status()` as text; empty where it is NULL.
fn status(client: &mut Client, column: &str) -> String {
    query::value(client, &format!("SELECT coalesce({column}::text, '') FROM snowflake_status()"))
}

/// A file with a password, which the server alone may read.
fn secret_file(cluster: &Cluster, password: &str) -> PathBuf {
    let file = cluster.new_file("password");
    std::fs::write(&file, format!("{password}\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    if let Some(user) = server_user() {
        run(Command::new("chown").arg(user).arg(&file));
    }
    file
}
