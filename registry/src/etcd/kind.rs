//! etcd as a kind of registry.

use crate::kind::{Open, RegistryKind, TlsBy};
use crate::url::error::UrlError;

#[cfg(feature = "etcd")]
const OPEN: Option<Open> =
    Some(|address, namespace, options| Ok(Box::new(super::client::Etcd::open(address, namespace, options)?)));
#[cfg(not(feature = "etcd"))]
const OPEN: Option<Open> = None;

/// etcd, version 3.
pub(crate) static KIND: RegistryKind = RegistryKind {
    name: "etcd",
    example: "etcd://etcd1:2379,etcd2:2379",
    tls: TlsBy::Scheme { plain: "etcd", encrypted: "etcds" },
    default_port: 2379,
    path: no_path,
    parameters: &[],
    check: |_| Ok(()),
    is_password_readable: true,
    open: OPEN,
};

fn no_path(path: &str, _user: Option<&str>) -> Result<String, UrlError> {
    match path.is_empty() {
        true => Ok(String::new()),
        false => Err(UrlError::Rule("a URL of etcd has no path after the hosts")),
    }
}
