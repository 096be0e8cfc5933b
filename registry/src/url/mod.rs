//! A registry's URL. Neither `Display` nor `Debug` nor an error of parsing shows a password.
//!
//! # Why no crate parses it
//!
//! A registry has several hosts, each with a port of its own, and that is in none of the grammars that crates implement:
//!
//! * The crate [`url`](https://docs.rs/url) follows the standard of WHATWG, where a URL has one host and one port. It refuses
//!   `etcd://a:1,b:2` with "invalid port number", and takes `etcd://a,b` for one host, named `a,b`. The standard
//!   [will not have several](https://github.com/whatwg/url/issues/398). RFC 3986, which `http::Uri` and other crates follow, has
//!   one host, too.
//! * `tokio_postgres::Config` knows several hosts, but only the two schemes of PostgreSQL. It takes the first `@` for the end of
//!   the password, knows neither `verify-ca` and `verify-full` nor `sslrootcert`, and cannot be written as a URL again.
//! * The URLs of the crate `redis` are those of `url`; `etcd-client` takes a list of endpoints, each a URL.
//!
//! Nor would one of them show a URL without its password: `Display` and `Debug` of `url::Url` show it. The parts that crates read well are
//! read by crates: percent encoding by `percent-encoding`, on which `url` is built, and addresses by the standard library.
//!
//! # The modules
//!
//! `parameters`, `hosts` and `encoding` read the parts. A [`RegistryKind`] says what is different from one kind of
//! registry to another.

pub(crate) mod encoding;
pub(crate) mod error;
mod hosts;
pub(crate) mod parameters;

use crate::address::{Address, TlsOptions, UseTls};
use crate::kind::RegistryKind;
use crate::kinds;
use crate::password::Password;
use encoding::{decoded, encoded};
use error::UrlError;
use hosts::parse_hosts;
use parameters::Parameters;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// A registry's URL, parsed.
///
/// ```
/// use snowflake_registry::Url;
///
/// let url: Url = "postgres://ids:s3cret@db1,db2:5433/registry?sslmode=verify-full".parse()?;
/// assert_eq!(url.without_password(), "postgres://ids@db1:5432,db2:5433/registry?sslmode=verify-full");
/// assert!(!format!("{url:?}").contains("s3cret"));
/// # Ok::<(), snowflake_registry::UrlError>(())
/// ```
///
/// Schemes, ports, the path, and parameters that one kind of registry alone has are described by the module of each:
/// [`postgres`](mod@crate::postgres), [`etcd`](mod@crate::etcd), [`redis`](mod@crate::redis).
///
/// Hosts are names or addresses, separated by commas, each with a port or without; no sockets of the file system.
///
/// In user, password and path, other characters than letters, digits and `-._~!$&'()*+,;=` are written as `%` and two
/// hexadecimal digits.
///
/// | parameter | meaning |
/// |---|---|
/// | `connect_timeout` | how long one host may take to connect and authenticate, in seconds; within the call's deadline |
/// | `sslrootcert` | a PEM file of the root certificates to trust, in place of the system's |
/// | `sslcert`, `sslkey` | PEM files: the certificate to show to the server, and its key |
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    pub(crate) kind: &'static RegistryKind,
    pub(crate) address: Address,
    /// The parameters as they were written.
    parameters: String,
}

impl Url {
    /// Which kind of registry it is.
    pub fn kind(&self) -> &'static RegistryKind {
        self.kind
    }

    /// Whether it has a password.
    pub fn has_password(&self) -> bool {
        self.address.password.is_some()
    }

    /// The same with this password, which replaces the URL's own.
    #[must_use]
    pub fn with_password(mut self, password: Password) -> Self {
        self.address.password = Some(password);
        self
    }

    /// The URL for people and logs: all but the password.
    pub fn without_password(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { user, hosts, path, use_tls, .. } = &self.address;
        write!(f, "{}://", self.kind.scheme(*use_tls))?;
        if let Some(user) = user {
            write!(f, "{}@", encoded(user))?;
        }
        for (number, host) in hosts.iter().enumerate() {
            write!(f, "{}{host}", if number > 0 { "," } else { "" })?;
        }
        if !path.is_empty() {
            write!(f, "/{}", encoded(path))?;
        }
        if !self.parameters.is_empty() {
            write!(f, "?{}", self.parameters)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let no_scheme = || UrlError::Scheme(kinds::schemes());
        let (scheme, rest) = text.split_once("://").ok_or_else(no_scheme)?;
        let kind = kinds::of_scheme(scheme).ok_or_else(no_scheme)?;
        let Parts { credentials, hosts, path, query } = Parts::of(rest)?;
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(Password::new(decoded(password, "the password")?)?)),
            None => (credentials, None),
        };
        let user = Some(decoded(user, "the user")?).filter(|user| !user.is_empty());
        let parameters = Parameters::parse(query, &kind.known_parameters())?;
        let path = (kind.path)(path, user.as_deref())?;
        let (use_tls, verify) = kind.use_tls(scheme, &parameters)?;
        let tls = TlsOptions {
            verify,
            roots: parameters.get("sslrootcert").map(PathBuf::from),
            own: parameters.own_certificate()?,
        };
        if use_tls == UseTls::Never
            && let Some(name) = ["sslrootcert", "sslcert"].into_iter().find(|name| parameters.get(name).is_some())
        {
            return Err(UrlError::NoTls { name, instead: kind.asks_for_tls() });
        }
        let hosts = parse_hosts(hosts, kind.default_port)?;
        let connect_timeout = parameters
            .number("connect_timeout", 1..=60, "a number of seconds from 1 to 60")?
            .map(|seconds| Duration::from_secs(u64::from(seconds)));
        (kind.check)(&parameters)?;
        let address = Address { user, password, hosts, path, use_tls, tls, connect_timeout, parameters };
        Ok(Self { kind, address, parameters: query.to_owned() })
    }
}

/// The parts after the scheme, as they are written.
struct Parts<'a> {
    credentials: &'a str,
    hosts: &'a str,
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(rest: &'a str) -> Result<Self, UrlError> {
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if !authority.contains('@') && tail.contains('@') {
            return Err(UrlError::Separator);
        }
        if tail.contains('#') {
            return Err(UrlError::Fragment);
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let (credentials, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        Ok(Self { credentials, hosts, path: path.strip_prefix('/').unwrap_or(path), query })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Verify;
    use crate::password::PasswordError;

    fn parsed(text: &str) -> Url {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn parts_are_found_and_written_again() {
        for (text, written) in [
            ("postgres://u:p@h", "postgres://u@h:5432/u"),
            ("postgresql://u@h1:1,[::1]:2,10.0.0.1/d", "postgres://u@h1:1,[::1]:2,10.0.0.1:5432/d"),
            ("postgres://a%40b:p%3Aq@h/d%2Fe", "postgres://a%40b@h:5432/d%2Fe"),
            (
                "postgres://u:p@h/?sslmode=require&connect_timeout=2",
                "postgres://u@h:5432/u?sslmode=require&connect_timeout=2",
            ),
            ("etcd://h1,h2:23790", "etcd://h1:2379,h2:23790"),
            ("etcds://u:p@h/", "etcds://u@h:2379"),
            ("redis://:p@h/3", "redis://h:6379/3"),
            ("rediss://u:p@h?wait_replicas=1", "rediss://u@h:6379/0?wait_replicas=1"),
        ] {
            assert_eq!(parsed(text).without_password(), written, "{text}");
        }
        let url = parsed("postgres://a%40b:p%3A%2F@h/d");
        assert_eq!(url.address.user.as_deref(), Some("a@b"));
        assert_eq!(url.address.password.as_ref().unwrap().reveal(), "p:/");
        assert_eq!(parsed("redis://:a@b@h").address.password.unwrap().reveal(), "a@b");
        assert_eq!(parsed("redis://:a:b@h").address.password.unwrap().reveal(), "a:b");
    }

    #[test]
    fn tls_is_as_libpq_means_it() {
        let of = |query: &str| {
            let url = parsed(&format!("postgres://u@h?{query}"));
            (url.address.use_tls, url.address.tls.verify)
        };
        assert_eq!(of("sslmode=disable").0, UseTls::Never);
        assert_eq!(of(""), (UseTls::IfOffered, Verify::Nothing));
        assert_eq!(of("sslmode=prefer"), (UseTls::IfOffered, Verify::Nothing));
        assert_eq!(of("sslmode=require"), (UseTls::Always, Verify::Nothing));
        assert_eq!(of("sslmode=require&sslrootcert=/r"), (UseTls::Always, Verify::Chain));
        assert_eq!(of("sslmode=verify-ca"), (UseTls::Always, Verify::Chain));
        assert_eq!(of("sslmode=verify-full"), (UseTls::Always, Verify::Name));
        for text in ["etcds://h", "rediss://h"] {
            assert_eq!((parsed(text).address.use_tls, parsed(text).address.tls.verify), (UseTls::Always, Verify::Name));
        }
    }

    #[test]
    fn errors_name_the_cause_and_repeat_nothing() {
        use UrlError::*;
        let value = |name, must_be| Value { name, must_be };
        for (text, error) in [
            ("", Scheme(kinds::schemes())),
            ("s3cret@h", Scheme(kinds::schemes())),
            ("mysql://u:s3cret@h", Scheme(kinds::schemes())),
            ("postgres://u:s3c/ret@h/d", Separator),
            ("postgres://u:s3c?ret@h/d", Separator),
            ("postgres://u:s3c#ret@h/d", Separator),
            ("postgres://u:s3cret%@h", Percent("the password")),
            ("postgres://u:s3cret%4@h", Percent("the password")),
            ("postgres://u:s3cret%zz@h", Percent("the password")),
            ("postgres://u:s3cret%FF@h", Text("the password")),
            ("postgres://u:s3cret%00@h", Text("the password")),
            ("postgres://u%00:s3cret@h", Text("the user")),
            ("postgres://u:@h", Password(PasswordError)),
            ("postgres://u:s3cret@", NoHost(1)),
            ("postgres://u:s3cret@h,,i", NoHost(2)),
            ("postgres://u:s3cret@a b", Host(1)),
            ("postgres://u:s3cret@::1", NoHost(1)),
            ("postgres://u:s3cret@fe80::1", Host(1)),
            ("postgres://u:s3cret@[s3cret]", Host(1)),
            ("postgres://u:s3cret@[::1", Host(1)),
            ("postgres://u:s3cret@[::1]s3cret", Host(1)),
            ("postgres://u:s3cret@h:s3cret", Port(1)),
            ("postgres://u:s3cret@h,i:0", Port(2)),
            ("postgres://u:s3cret@h:65536", Port(1)),
            // Somebody who forgot the host.
            ("etcd://u:s3cret", Port(1)),
            ("postgres://u:s3cret", Rule("a URL of PostgreSQL names the user: postgres://user@host/database")),
            ("postgres://h/d", Rule("a URL of PostgreSQL names the user: postgres://user@host/database")),
            ("etcd://h/s3cret", Rule("a URL of etcd has no path after the hosts")),
            ("redis://h/s3cret", Rule("the path of a Redis URL is the number of a database")),
            ("redis://h/70000", Rule("the path of a Redis URL is the number of a database")),
            ("postgres://u:s3cret@h/d#e", Fragment),
            ("redis://h?wait_replicas=1&wait_replicas=2", Twice("wait_replicas")),
            ("redis://h?wait_replicas=s3cret", value("wait_replicas", "a number from 0 to 100")),
            ("etcd://h?connect_timeout=0", value("connect_timeout", "a number of seconds from 1 to 60")),
            ("postgres://u@h?sslmode=allow", value("sslmode", "disable, prefer, require, verify-ca or verify-full")),
            ("postgres://u@h?sslkey=k", value("sslcert", "set where sslkey is set")),
            ("postgres://u@h?sslcert=k", value("sslkey", "set where sslcert is set")),
            ("redis://h?sslrootcert=r", NoTls { name: "sslrootcert", instead: "rediss://".to_owned() }),
            ("etcd://h?sslcert=c&sslkey=k", NoTls { name: "sslcert", instead: "etcds://".to_owned() }),
            (
                "postgres://u@h?sslmode=disable&sslrootcert=r",
                NoTls { name: "sslrootcert", instead: "sslmode=verify-full".to_owned() },
            ),
        ] {
            let found = text.parse::<Url>().unwrap_err();
            assert_eq!(found, error, "{text}");
            assert!(!format!("{found} {found:?}").contains("s3c"), "{text}: {found}");
        }
        let unknown = "etcd://h?sslrootcert=r&s3cret=1".parse::<Url>();
        assert!(unknown.is_err());
        for (text, known) in [
            ("postgres://u@h?s3cret=1", "sslmode, sslrootcert, sslcert, sslkey, connect_timeout"),
            ("etcd://h?s3cret=1", "sslrootcert, sslcert, sslkey, connect_timeout"),
            ("redis://h?s3cret=1", "sslrootcert, sslcert, sslkey, connect_timeout, wait_replicas"),
        ] {
            let error = text.parse::<Url>().unwrap_err();
            assert_eq!(error.to_string(), format!("parameter 1 is unknown; the known ones are {known}"));
        }
    }

    #[test]
    fn passwords_do_not_show() {
        let url = parsed("postgres://u:s3cret@h/d").with_password(super::Password::new("0ther").unwrap());
        for text in [url.to_string(), url.without_password(), format!("{url:?} {:?}", url.address.password)] {
            assert!(!text.contains("s3cret") && !text.contains("0ther"), "{text}");
        }
        assert_eq!(url.address.password.as_ref().unwrap().removed_from("AUTH 0ther is unknown"), "AUTH … is unknown");
    }
}
