//! The parameters of the registry.

use super::definitions::{REGISTRY, REGISTRY_NAMESPACE, REGISTRY_PASSWORD_FILE, REGISTRY_TRUSTED, REGISTRY_WINDOW};
use super::url;
use snowflake_core::Micros;
use snowflake_registry::file::{open_plain, read_to_end};
use snowflake_registry::{Password, Url};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Whether `pg_snowflake.registry` is set.
pub fn is_set() -> bool {
    REGISTRY.get().is_some_and(|text| !text.is_empty())
}

/// `pg_snowflake.registry` without its password; `None` where it is not set.
pub fn without_password() -> Option<String> {
    is_set().then(|| REGISTRY.text())
}

/// The registry, with the password of the file where one is named.
///
/// # Errors
/// Where the file cannot be read, or others may read it.
pub fn url_with_password() -> Result<Url, String> {
    let url = url::whole().map_err(|error| error.to_string())?;
    match REGISTRY_PASSWORD_FILE.text().as_str() {
        "" => Ok(url),
        file => Ok(url.with_password(password(file)?)),
    }
}

/// How many bytes a file with a password has at most.
const LONGEST_FILE: u64 = 1 << 16;

/// The first line of a file that only its owner may read, as of `.pgpass`.
fn password(file: &str) -> Result<Password, String> {
    let problem = |what: String| format!("pg_snowflake.registry_password_file \"{file}\" {what}");
    let unreadable = |error: io::Error| problem(format!("cannot be read: {error}"));
    let opened = open_plain(Path::new(file)).map_err(unreadable)?;
    let metadata = opened.metadata().map_err(unreadable)?;
    // As for the key of a certificate: root may own the file, and let the group of the server read it.
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.permissions().mode() & forbidden != 0 {
        return Err(problem("can be read by others: its mode must be 0600, or 0640 if root owns it".to_owned()));
    }
    let content = read_to_end(&opened, LONGEST_FILE).map_err(unreadable)?;
    let content = String::from_utf8(content).map_err(|_| problem("is not text in UTF-8".to_owned()))?;
    match content.lines().next() {
        Some(line) => Password::new(line).map_err(|_| problem("has no password in its first line".to_owned())),
        None => Err(problem("is empty".to_owned())),
    }
}

/// `pg_snowflake.registry_namespace`.
pub fn namespace() -> String {
    REGISTRY_NAMESPACE.text()
}

/// `pg_snowflake.registry_trusted`.
pub fn is_trusted() -> bool {
    REGISTRY_TRUSTED.get()
}

/// `pg_snowflake.registry_window`.
pub fn window() -> Micros {
    Micros::from_millis(REGISTRY_WINDOW.get().into())
}
