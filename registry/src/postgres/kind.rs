//! PostgreSQL as a kind of registry.

use crate::address::{UseTls, Verify};
use crate::kind::{Open, RegistryKind, TlsBy, TlsParameter};
use crate::url::encoding::decoded;
use crate::url::error::UrlError;
use crate::url::parameters::Parameters;

#[cfg(feature = "postgres")]
const OPEN: Option<Open> =
    Some(|address, namespace, options| Ok(Box::new(super::client::Postgres::open(address, namespace, options)?)));
#[cfg(not(feature = "postgres"))]
const OPEN: Option<Open> = None;

/// A table in a PostgreSQL database.
pub(crate) static KIND: RegistryKind = RegistryKind {
    name: "PostgreSQL",
    example: "postgres://snowflake@db.example/registry",
    tls: TlsBy::Parameter(TlsParameter {
        schemes: &["postgres", "postgresql"],
        name: "sslmode",
        verified: "sslmode=verify-full",
        read: sslmode,
    }),
    default_port: 5432,
    path: database,
    parameters: &[],
    check: |_| Ok(()),
    // It is not sent, or the URL has asked for that.
    is_password_readable: false,
    open: OPEN,
};

/// The database's name; that of the user, where there is none.
fn database(path: &str, user: Option<&str>) -> Result<String, UrlError> {
    let user = user.ok_or(UrlError::Rule("a URL of PostgreSQL names the user: postgres://user@host/database"))?;
    let name = decoded(path, "the database")?;
    Ok(if name.is_empty() { user.to_owned() } else { name })
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
