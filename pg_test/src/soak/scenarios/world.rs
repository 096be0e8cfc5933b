//! Servers that lease from one registry, each behind a proxy of its own.

use super::super::load::SEGMENT;
use super::super::witness;
use crate::check::wait_for;
use crate::history::About;
use crate::load::TABLE;
use crate::proxy::Proxy;
use crate::registries::{Kind, Server};
use crate::{Cluster, Options};

/// How far leases reach, in seconds.
pub(super) const WINDOW: u64 = 5;
/// `pg_snowflake.max_lead`, in seconds: longer than a lease.
pub(super) const LEAD: u64 = 6;
/// How long new leases wait, after the registry has become another one, in nanoseconds.
pub(super) const UNSAFE: u64 = (WINDOW + LEAD) * 1_000_000_000;
/// Twice as many workers as servers, or more.
const WORKER_BITS: u32 = 3;

/// How IDs are made up.
pub(super) fn about() -> About {
    let window = WINDOW * 1_000_000_000;
    About { worker_bits: WORKER_BITS, sequence_bits: 6, tick: 1000, epoch: 1_704_067_200_000_000, window }
}

/// A server that leases from this registry.
pub(super) fn options(url: &str) -> Options {
    Cluster::options()
        .own_identifier()
        .set(&format!("pg_snowflake.layout = 'timestamp=41 worker={WORKER_BITS} sequence=6'"))
        .set("pg_snowflake.worker_id = -1\npg_snowflake.max_wait = '20s'")
        .set(&format!("pg_snowflake.registry = '{url}'"))
        .set(&format!("pg_snowflake.registry_window = '{WINDOW}s'\npg_snowflake.max_lead = '{LEAD}s'"))
        // Ranges are granted every few seconds.
        .set("pg_snowflake.segment_duration = '10s'")
        .set("wal_retrieve_retry_interval = '200ms'")
}

/// The URL of a registry behind a proxy.
pub(super) fn url(kind: Kind, proxy: &Proxy) -> String {
    kind.url(false, "", &format!("127.0.0.1:{}", proxy.port()))
}

pub(super) fn makes_ids(server: &Cluster) {
    wait_for("it makes IDs", || {
        server.try_client_of("postgres").is_ok_and(|mut client| client.query("SELECT snowflake_next()", &[]).is_ok())
    });
}

pub(super) fn create_tag(server: &Cluster, tag: &str, arguments: &str) {
    let create = format!("SELECT snowflake_segment_create('{tag}'{arguments})");
    wait_for("the tag is created", || {
        // Where the answer was lost, it is there.
        let is_there = |error: &postgres::Error| error.code().is_some_and(|code| code.code() == "42710");
        server
            .try_client_of("postgres")
            .and_then(|mut client| client.query(&create, &[]))
            .map_or_else(|error| is_there(&error), |_| true)
    });
}

/// Servers, and what stands between each and its registry.
pub(super) struct World {
    pub proxies: Vec<Proxy>,
    pub servers: Vec<Cluster>,
}

/// Servers with these lines in their configuration, in which `{url}` is that of this registry. The first tag is there.
pub(super) fn world(registry: &Server, lines: &[&str]) -> World {
    let proxies: Vec<Proxy> = lines.iter().map(|_| Proxy::before(registry.port())).collect();
    let servers: Vec<Cluster> = proxies
        .iter()
        .zip(lines)
        .map(|(proxy, lines)| {
            let url = url(registry.kind(), proxy);
            options(&url).set(&lines.replace("{url}", &url)).start()
        })
        .collect();
    for server in &servers {
        server.client().batch_execute(TABLE).unwrap();
        makes_ids(server);
    }
    witness::begin(registry);
    create_tag(&servers[0], SEGMENT, "");
    World { proxies, servers }
}
