//! Redis as a kind of registry.

use super::url::{WAIT_REPLICAS, database, wait_replicas};
use crate::kind::{Open, RegistryKind, TlsBy};

#[cfg(feature = "redis")]
const OPEN: Option<Open> =
    Some(|address, namespace, options| Ok(Box::new(super::client::Redis::open(address, namespace, options)?)));
#[cfg(not(feature = "redis"))]
const OPEN: Option<Open> = None;

/// Redis.
pub(crate) static KIND: RegistryKind = RegistryKind {
    name: "Redis",
    example: "redis://redis.example",
    tls: TlsBy::Scheme { plain: "redis", encrypted: "rediss" },
    default_port: 6379,
    path: |path, _user| database(path).map(|number| number.to_string()),
    parameters: &[WAIT_REPLICAS],
    check: |parameters| wait_replicas(parameters).map(drop),
    is_password_readable: true,
    open: OPEN,
};
