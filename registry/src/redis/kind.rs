//! Redis as a kind of registry.

use crate::kind::{Open, RegistryKind, TlsBy};
use crate::url::error::UrlError;
use crate::url::parameters::Parameters;

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

const WAIT_REPLICAS: &str = "wait_replicas";

/// The number of the database, of the path.
pub(super) fn database(path: &str) -> Result<u16, UrlError> {
    match path.is_empty() {
        true => Ok(0),
        false => path.parse().map_err(|_| UrlError::Rule("the path of a Redis URL is the number of a database")),
    }
}

/// How many replicas must have received a change.
pub(super) fn wait_replicas(parameters: &Parameters) -> Result<u32, UrlError> {
    Ok(parameters.number(WAIT_REPLICAS, 0..=100, "a number from 0 to 100")?.unwrap_or(0))
}
