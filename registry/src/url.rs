//! Where a registry is: its URL. Neither `Display` nor `Debug` nor an error of parsing shows a password.
//!
//! An error does not repeat the text that is wrong either: where a password has a character that should have been encoded, any
//! part of the URL may be a part of the password.

use crate::password::{Password, PasswordError};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

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
/// | scheme | TLS | port | path | user |
/// |---|---|---|---|---|
/// | `postgres`, `postgresql` | by `sslmode` | 5432 | the database; the user's name where there is none | needed |
/// | `etcd`, `etcds` | `etcds` | 2379 | none | where the server asks for one |
/// | `redis`, `rediss` | `rediss` | 6379 | the database's number, or none for 0 | may be empty: `redis://:password@host` |
///
/// Hosts are names or addresses, separated by commas, each with a port or without; no sockets of the file system.
///
/// In user, password and database, other characters than letters, digits and `-._~!$&'()*+,;=` are written as `%` and two
/// hexadecimal digits.
///
/// | parameter | meaning |
/// |---|---|
/// | `connect_timeout` | how long one host may take to connect and authenticate, in seconds; within the call's deadline |
/// | `sslmode` | PostgreSQL only: how TLS is used |
/// | `sslrootcert` | a PEM file of the root certificates to trust, in place of the system's |
/// | `sslcert`, `sslkey` | PEM files: the certificate to show to the server, and its key |
/// | `wait_replicas` | Redis only: how many replicas must have received a change |
///
/// | `sslmode` | TLS | the server's certificate |
/// |---|---|---|
/// | `disable` | never; a password is sent in clear text, if the server asks for that | |
/// | `prefer`, the default | if the server has it; otherwise no password is sent in clear text, but on the same machine | is not verified |
/// | `require` | always | is not verified; with `sslrootcert`, as with `verify-ca` |
/// | `verify-ca` | always | must be trusted |
/// | `verify-full` | always | must be trusted, and be for the host's name |
///
/// libpq's `allow` is refused. With `etcds` and `rediss`, the server is verified as with `verify-full`.
#[derive(Clone, PartialEq, Eq)]
pub struct Url {
    pub(crate) kind: Kind,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Password>,
    pub(crate) hosts: Vec<Host>,
    /// PostgreSQL: its name. Redis: its number. etcd: empty.
    pub(crate) database: String,
    pub(crate) use_tls: UseTls,
    pub(crate) tls: TlsOptions,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) wait_replicas: u32,
    /// The parameters as they were written.
    parameters: String,
}

/// Which registry it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A table in a PostgreSQL database.
    Postgres,
    /// etcd, version 3.
    Etcd,
    /// Redis.
    Redis,
}

/// Its name.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Postgres => "PostgreSQL",
            Self::Etcd => "etcd",
            Self::Redis => "Redis",
        })
    }
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

/// What of a server's certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    Nothing,
    /// That a trusted root has signed it.
    Chain,
    /// That, and that it is for the host's name.
    Name,
}

/// What is wrong with a URL. Says where, and does not repeat what is there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UrlError {
    /// Another scheme, or none.
    #[error("a registry's URL begins with postgres://, etcd://, etcds://, redis:// or rediss://")]
    Scheme,
    /// The `@` after a password comes later than the hosts seem to end.
    #[error("the user or the password has a \"/\", \"?\" or \"#\": write %2F, %3F, %23")]
    Separator,
    /// A `%` without two hexadecimal digits.
    #[error("{0} has a \"%\" without two hexadecimal digits after it: write %25 for the character itself")]
    Percent(&'static str),
    /// Not UTF-8, or a zero byte.
    #[error("{0} is not text in UTF-8 without zero bytes")]
    Text(&'static str),
    /// A password that is empty. Leave out the `:`, where there is none.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// No host, or an empty one.
    #[error("host {0} is empty")]
    NoHost(usize),
    /// A character that host names do not have.
    #[error("host {0} is neither a name nor an address; an IPv6 address stands in brackets: [::1]")]
    Host(usize),
    /// A port that is none.
    #[error("the port of host {0} is not a number from 1 to 65535")]
    Port(usize),
    /// PostgreSQL needs a user.
    #[error("a URL of PostgreSQL names the user: postgres://user@host/database")]
    NoUser,
    /// An etcd URL with a path, or a number of a Redis database that is none.
    #[error("{0}")]
    Path(&'static str),
    /// A `#`.
    #[error("a registry's URL has no part after \"#\"; write %23 for the character itself")]
    Fragment,
    /// A parameter that this registry does not have.
    #[error("parameter {number} is unknown; there are {known}")]
    Parameter {
        /// The first is 1.
        number: usize,
        /// Those that there are.
        known: String,
    },
    /// A parameter twice.
    #[error("parameter {0} is there twice")]
    Twice(&'static str),
    /// A value that a parameter cannot have.
    #[error("{name} must be {must_be}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What it can be.
        must_be: &'static str,
    },
    /// Certificates for a connection without TLS.
    #[error("{name} is for TLS: use {instead}")]
    NoTls {
        /// The parameter.
        name: &'static str,
        /// The scheme or mode that has TLS.
        instead: &'static str,
    },
}

impl Url {
    /// Which registry it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it has a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// The same with this password, which replaces the URL's own.
    #[must_use]
    pub fn with_password(mut self, password: Password) -> Self {
        self.password = Some(password);
        self
    }

    /// The URL for people and logs: all but the password.
    pub fn without_password(&self) -> String {
        self.to_string()
    }

    fn scheme(&self) -> &'static str {
        match (self.kind, self.use_tls) {
            (Kind::Postgres, _) => "postgres",
            (Kind::Etcd, UseTls::Always) => "etcds",
            (Kind::Etcd, _) => "etcd",
            (Kind::Redis, UseTls::Always) => "rediss",
            (Kind::Redis, _) => "redis",
        }
    }
}

/// What stands for itself in a user's name: RFC 3986's unreserved characters.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b':')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'@')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        if let Some(user) = &self.user {
            write!(f, "{}@", utf8_percent_encode(user, ENCODED))?;
        }
        for (number, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if number > 0 { "," } else { "" })?;
        }
        if !self.database.is_empty() {
            write!(f, "/{}", utf8_percent_encode(&self.database, ENCODED))?;
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
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let (kind, is_tls) = match scheme {
            "postgres" | "postgresql" => (Kind::Postgres, false),
            "etcd" => (Kind::Etcd, false),
            "etcds" => (Kind::Etcd, true),
            "redis" => (Kind::Redis, false),
            "rediss" => (Kind::Redis, true),
            _ => return Err(UrlError::Scheme),
        };
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if !authority.contains('@') && tail.contains('@') {
            return Err(UrlError::Separator);
        }
        let (tail, fragment) = tail.split_once('#').map_or((tail, None), |(tail, fragment)| (tail, Some(fragment)));
        if fragment.is_some() {
            return Err(UrlError::Fragment);
        }
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let (credentials, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(Password::new(decoded(password, "the password")?)?)),
            None => (credentials, None),
        };
        let user = Some(decoded(user, "the user")?).filter(|user| !user.is_empty());
        let parameters = Parameters::parse(query, known(kind))?;
        let database = database(kind, path.strip_prefix('/').unwrap_or(path), user.as_deref())?;
        let (use_tls, verify) = match kind {
            Kind::Postgres => sslmode(&parameters)?,
            Kind::Etcd | Kind::Redis if is_tls => (UseTls::Always, Verify::Name),
            Kind::Etcd | Kind::Redis => (UseTls::Never, Verify::Name),
        };
        let tls = TlsOptions {
            verify,
            roots: parameters.get("sslrootcert").map(PathBuf::from),
            own: own_certificate(&parameters)?,
        };
        if use_tls == UseTls::Never
            && let Some(name) = ["sslrootcert", "sslcert"].into_iter().find(|name| parameters.get(name).is_some())
        {
            let instead = match kind {
                Kind::Postgres => "sslmode=verify-full",
                Kind::Etcd => "etcds://",
                Kind::Redis => "rediss://",
            };
            return Err(UrlError::NoTls { name, instead });
        }
        Ok(Self {
            kind,
            user,
            password,
            hosts: parse_hosts(hosts, kind)?,
            database,
            use_tls,
            tls,
            connect_timeout: parameters
                .number("connect_timeout", 1..=60, "a number of seconds from 1 to 60")?
                .map(|seconds| Duration::from_secs(u64::from(seconds))),
            wait_replicas: parameters.number("wait_replicas", 0..=100, "a number from 0 to 100")?.unwrap_or(0),
            parameters: query.to_owned(),
        })
    }
}

fn decoded(text: &str, part: &'static str) -> Result<String, UrlError> {
    let is_hexadecimal = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices('%') {
        if !is_hexadecimal(bytes.get(at + 1)) || !is_hexadecimal(bytes.get(at + 2)) {
            return Err(UrlError::Percent(part));
        }
    }
    let decoded = percent_decode_str(text).decode_utf8().map_err(|_| UrlError::Text(part))?;
    if decoded.contains('\0') {
        return Err(UrlError::Text(part));
    }
    Ok(decoded.into_owned())
}

fn parse_hosts(text: &str, kind: Kind) -> Result<Vec<Host>, UrlError> {
    let default_port = match kind {
        Kind::Postgres => 5432,
        Kind::Etcd => 2379,
        Kind::Redis => 6379,
    };
    let parse = |(index, text): (usize, &str)| {
        let number = index + 1;
        let (name, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((address, port))) => {
                address.parse::<Ipv6Addr>().map_err(|_| UrlError::Host(number))?;
                (
                    address,
                    if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(UrlError::Host(number))?) },
                )
            }
            Some(None) => return Err(UrlError::Host(number)),
            None => text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
        };
        if name.is_empty() {
            return Err(UrlError::NoHost(number));
        }
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || "-._:".contains(c)) {
            return Err(UrlError::Host(number));
        }
        let port = match port {
            None => default_port,
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().ok().filter(|port| *port > 0).ok_or(UrlError::Port(number))?
            }
            // More than one colon: an IPv6 address without brackets.
            Some(port) if port.contains(':') => return Err(UrlError::Host(number)),
            Some(_) => return Err(UrlError::Port(number)),
        };
        Ok(Host { name: name.to_owned(), port })
    };
    text.split(',').enumerate().map(parse).collect()
}

fn database(kind: Kind, path: &str, user: Option<&str>) -> Result<String, UrlError> {
    match kind {
        Kind::Postgres => {
            let user = user.ok_or(UrlError::NoUser)?;
            let name = decoded(path, "the database")?;
            Ok(if name.is_empty() { user.to_owned() } else { name })
        }
        Kind::Etcd if path.is_empty() => Ok(String::new()),
        Kind::Etcd => Err(UrlError::Path("a URL of etcd has no path after the hosts")),
        Kind::Redis if path.is_empty() => Ok("0".to_owned()),
        Kind::Redis => {
            let number = path
                .parse::<u16>()
                .map_err(|_| UrlError::Path("the path of a Redis URL is the number of a database"))?;
            Ok(number.to_string())
        }
    }
}

/// The parameters that a registry's URL can have.
fn known(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Postgres => &["sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout"],
        Kind::Etcd => &["sslrootcert", "sslcert", "sslkey", "connect_timeout"],
        Kind::Redis => &["sslrootcert", "sslcert", "sslkey", "connect_timeout", "wait_replicas"],
    }
}

struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    fn parse(query: &str, known: &'static [&'static str]) -> Result<Self, UrlError> {
        let mut parameters: Vec<(&'static str, String)> = Vec::new();
        for (index, text) in query.split('&').filter(|_| !query.is_empty()).enumerate() {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            let Some(name) = known.iter().find(|known| **known == name) else {
                return Err(UrlError::Parameter { number: index + 1, known: known.join(", ") });
            };
            if parameters.iter().any(|(other, _)| other == name) {
                return Err(UrlError::Twice(name));
            }
            parameters.push((name, decoded(value, "a parameter")?));
        }
        Ok(Self(parameters))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
    }

    fn number(
        &self,
        name: &'static str,
        range: std::ops::RangeInclusive<u32>,
        must_be: &'static str,
    ) -> Result<Option<u32>, UrlError> {
        let number = |value: &str| value.parse().ok().filter(|number| range.contains(number));
        self.get(name).map(|value| number(value).ok_or(UrlError::Value { name, must_be })).transpose()
    }
}

/// The modes of libpq.
fn sslmode(parameters: &Parameters) -> Result<(UseTls, Verify), UrlError> {
    Ok(match parameters.get("sslmode") {
        Some("disable") => (UseTls::Never, Verify::Nothing),
        None | Some("prefer") => (UseTls::IfOffered, Verify::Nothing),
        Some("require") if parameters.get("sslrootcert").is_some() => (UseTls::Always, Verify::Chain),
        Some("require") => (UseTls::Always, Verify::Nothing),
        Some("verify-ca") => (UseTls::Always, Verify::Chain),
        Some("verify-full") => (UseTls::Always, Verify::Name),
        Some(_) => {
            let must_be = "disable, prefer, require, verify-ca or verify-full";
            return Err(UrlError::Value { name: "sslmode", must_be });
        }
    })
}

fn own_certificate(parameters: &Parameters) -> Result<Option<(PathBuf, PathBuf)>, UrlError> {
    match (parameters.get("sslcert"), parameters.get("sslkey")) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some((certificate.into(), key.into()))),
        (None, Some(_)) => Err(UrlError::Value { name: "sslcert", must_be: "there where sslkey is" }),
        (Some(_), None) => Err(UrlError::Value { name: "sslkey", must_be: "there where sslcert is" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(url.user.as_deref(), Some("a@b"));
        assert_eq!(url.password.as_ref().unwrap().reveal(), "p:/");
        assert_eq!(parsed("redis://:a@b@h").password.unwrap().reveal(), "a@b");
        assert_eq!(parsed("redis://:a:b@h").password.unwrap().reveal(), "a:b");
    }

    #[test]
    fn tls_is_as_libpq_means_it() {
        let of = |query: &str| {
            let url = parsed(&format!("postgres://u@h?{query}"));
            (url.use_tls, url.tls.verify)
        };
        assert_eq!(of("sslmode=disable").0, UseTls::Never);
        assert_eq!(of(""), (UseTls::IfOffered, Verify::Nothing));
        assert_eq!(of("sslmode=prefer"), (UseTls::IfOffered, Verify::Nothing));
        assert_eq!(of("sslmode=require"), (UseTls::Always, Verify::Nothing));
        assert_eq!(of("sslmode=require&sslrootcert=/r"), (UseTls::Always, Verify::Chain));
        assert_eq!(of("sslmode=verify-ca"), (UseTls::Always, Verify::Chain));
        assert_eq!(of("sslmode=verify-full"), (UseTls::Always, Verify::Name));
        for text in ["etcds://h", "rediss://h"] {
            assert_eq!((parsed(text).use_tls, parsed(text).tls.verify), (UseTls::Always, Verify::Name));
        }
    }

    #[test]
    fn errors_name_the_cause_and_repeat_nothing() {
        use UrlError::*;
        let value = |name, must_be| Value { name, must_be };
        for (text, error) in [
            ("", Scheme),
            ("s3cret@h", Scheme),
            ("mysql://u:s3cret@h", Scheme),
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
            ("postgres://u:s3cret", NoUser),
            ("postgres://h/d", NoUser),
            ("etcd://h/s3cret", Path("a URL of etcd has no path after the hosts")),
            ("redis://h/s3cret", Path("the path of a Redis URL is the number of a database")),
            ("redis://h/70000", Path("the path of a Redis URL is the number of a database")),
            ("postgres://u:s3cret@h/d#e", Fragment),
            ("redis://h?wait_replicas=1&wait_replicas=2", Twice("wait_replicas")),
            ("redis://h?wait_replicas=s3cret", value("wait_replicas", "a number from 0 to 100")),
            ("etcd://h?connect_timeout=0", value("connect_timeout", "a number of seconds from 1 to 60")),
            ("postgres://u@h?sslmode=allow", value("sslmode", "disable, prefer, require, verify-ca or verify-full")),
            ("postgres://u@h?sslkey=k", value("sslcert", "there where sslkey is")),
            ("postgres://u@h?sslcert=k", value("sslkey", "there where sslcert is")),
            ("redis://h?sslrootcert=r", NoTls { name: "sslrootcert", instead: "rediss://" }),
            ("etcd://h?sslcert=c&sslkey=k", NoTls { name: "sslcert", instead: "etcds://" }),
        ] {
            let found = text.parse::<Url>().unwrap_err();
            assert_eq!(found, error, "{text}");
            assert!(!format!("{found} {found:?}").contains("s3c"), "{text}: {found}");
        }
        let unknown = "etcd://h?sslrootcert=r&s3cret=1".parse::<Url>();
        assert!(unknown.is_err());
        let error = "etcd://h?s3cret=1".parse::<Url>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "parameter 1 is unknown; there are sslrootcert, sslcert, sslkey, connect_timeout"
        );
    }

    #[test]
    fn passwords_do_not_show() {
        let url = parsed("postgres://u:s3cret@h/d").with_password(super::Password::new("0ther").unwrap());
        for text in [url.to_string(), url.without_password(), format!("{url:?} {:?}", url.password)] {
            assert!(!text.contains("s3cret") && !text.contains("0ther"), "{text}");
        }
        assert_eq!(url.password.as_ref().unwrap().removed_from("AUTH 0ther is unknown"), "AUTH … is unknown");
    }
}
