//! All that differs from one kind of registry to another, but for its client. Each kind describes itself in the file `kind.rs` of its
//! folder, and stands as one row in [`KINDS`](crate::KINDS).

use crate::address::{Address, UseTls, Verify};
use crate::error::Error;
use crate::url::error::UrlError;
use crate::url::parameters::{COMMON, Parameters};
use crate::{Namespace, Options, Registry};
use std::fmt;

/// A kind of registry.
pub struct RegistryKind {
    /// Its name, for people.
    pub(crate) name: &'static str,
    /// A URL, for people.
    pub(crate) example: &'static str,
    /// How a URL asks for TLS. Also says with which schemes it begins.
    pub(crate) tls: TlsBy,
    /// The port of a host without one.
    pub(crate) default_port: u16,
    /// Reads what stands after the hosts and their `/`, beside the user. It stands there again where the URL is shown.
    pub(crate) path: fn(path: &str, user: Option<&str>) -> Result<String, UrlError>,
    /// The parameters that only this kind has, but for that of TLS.
    pub(crate) parameters: &'static [&'static str],
    /// Refuses their values that cannot be.
    pub(crate) check: fn(&Parameters) -> Result<(), UrlError>,
    /// Whether the client sends the password as it is, without TLS, where everybody on the way can read it.
    pub(crate) is_password_readable: bool,
    /// Opens a registry; `None`, where the build has no client of this kind.
    pub(crate) open: Option<Open>,
}

/// Reads the files that an address names, and connects with nobody yet.
pub(crate) type Open = fn(&Address, &Namespace, &Options) -> Result<Box<dyn Registry>, Error>;

/// How a URL asks for TLS, with a server that is verified.
#[derive(Clone, Copy, Debug)]
pub enum TlsBy {
    /// By its scheme.
    Scheme {
        /// The scheme without TLS.
        plain: &'static str,
        /// The scheme with TLS.
        encrypted: &'static str,
    },
    /// By a parameter.
    Parameter(TlsParameter),
}

/// A parameter that says how TLS is used.
#[derive(Clone, Copy, Debug)]
pub struct TlsParameter {
    /// The schemes of the kind. The first one is shown.
    pub(crate) schemes: &'static [&'static str],
    /// The name of the parameter.
    pub(crate) name: &'static str,
    /// The parameter and its value for a server that is verified.
    pub(crate) verified: &'static str,
    /// Reads the parameter.
    pub(crate) read: fn(&Parameters) -> Result<(UseTls, Verify), UrlError>,
}

impl TlsParameter {
    /// The parameter as it asks for TLS with a server that is verified: `sslmode=verify-full`.
    pub fn verified(&self) -> &'static str {
        self.verified
    }
}

impl RegistryKind {
    /// A URL of this kind, as an example.
    pub fn example(&self) -> &'static str {
        self.example
    }

    /// How its URLs ask for TLS.
    pub fn tls(&self) -> &TlsBy {
        &self.tls
    }

    /// Whether this build has the client for such registries.
    pub fn is_built_in(&self) -> bool {
        self.open.is_some()
    }

    /// Whether everybody on the way can read the password, where the connection has no TLS and the URL did not ask for that.
    pub fn is_password_readable(&self) -> bool {
        self.is_password_readable
    }

    /// The schemes that are named to people.
    pub(crate) fn schemes(&self) -> Vec<&'static str> {
        match self.tls {
            TlsBy::Scheme { plain, encrypted } => vec![plain, encrypted],
            TlsBy::Parameter(TlsParameter { schemes, .. }) => schemes.iter().take(1).copied().collect(),
        }
    }

    /// Whether a URL with this scheme is of this kind.
    pub(crate) fn has_scheme(&self, scheme: &str) -> bool {
        match self.tls {
            TlsBy::Scheme { plain, encrypted } => [plain, encrypted].contains(&scheme),
            TlsBy::Parameter(TlsParameter { schemes, .. }) => schemes.contains(&scheme),
        }
    }

    /// The scheme of a URL that is shown.
    pub(crate) fn scheme(&self, use_tls: UseTls) -> &'static str {
        match self.tls {
            TlsBy::Scheme { encrypted, .. } if use_tls == UseTls::Always => encrypted,
            TlsBy::Scheme { plain, .. } => plain,
            TlsBy::Parameter(TlsParameter { schemes, .. }) => schemes[0],
        }
    }

    /// All parameters that a URL can have.
    pub(crate) fn known_parameters(&self) -> Vec<&'static str> {
        let of_tls = match self.tls {
            TlsBy::Scheme { .. } => None,
            TlsBy::Parameter(TlsParameter { name, .. }) => Some(name),
        };
        of_tls.into_iter().chain(COMMON).chain(self.parameters.iter().copied()).collect()
    }

    /// Whether a URL asks for TLS, and for which certificate of the server.
    pub(crate) fn use_tls(&self, scheme: &str, parameters: &Parameters) -> Result<(UseTls, Verify), UrlError> {
        match self.tls {
            TlsBy::Scheme { encrypted, .. } if scheme == encrypted => Ok((UseTls::Always, Verify::Name)),
            TlsBy::Scheme { .. } => Ok((UseTls::Never, Verify::Name)),
            TlsBy::Parameter(TlsParameter { read, .. }) => read(parameters),
        }
    }

    /// The part of a URL that asks for TLS.
    pub(crate) fn asks_for_tls(&self) -> String {
        match self.tls {
            TlsBy::Scheme { encrypted, .. } => format!("{encrypted}://"),
            TlsBy::Parameter(TlsParameter { verified, .. }) => verified.to_owned(),
        }
    }
}

/// Its name.
impl fmt::Display for RegistryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for RegistryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for RegistryKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RegistryKind {}
