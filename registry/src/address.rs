//! Where the hosts of a registry are, and how to connect with them: all that a client needs to know of a URL.

use crate::password::Password;
use crate::url::parameters::Parameters;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The parts of a URL, whatever kind of registry it is of.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub user: Option<String>,
    pub password: Option<Password>,
    pub hosts: Vec<Host>,
    /// The part after the hosts, as the kind of registry has read it.
    pub path: String,
    pub use_tls: UseTls,
    pub tls: TlsOptions,
    pub connect_timeout: Option<Duration>,
    /// All of them. The client reads those that its kind alone has.
    pub parameters: Parameters,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// A name or an address; an IPv6 address without its brackets.
    pub name: String,
    pub port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

/// When a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UseTls {
    Never,
    /// Where the server has it.
    IfOffered,
    Always,
}

/// How TLS is used where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsOptions {
    pub verify: Verify,
    /// A file of roots; the system's where there is none.
    pub roots: Option<PathBuf>,
    /// Files of the certificate to show, and of its key.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// How much of a server's certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    Nothing,
    /// That a trusted root has signed it.
    Chain,
    /// That, and that it is for the host's name.
    Name,
}
