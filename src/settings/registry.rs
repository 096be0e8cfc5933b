//! The parameters of the registry.

use super::{REGISTRY, REGISTRY_NAMESPACE, REGISTRY_PASSWORD_FILE, REGISTRY_WINDOW};
use pgrx::GucSetting;
use snowflake_core::Micros;
use snowflake_registry::{Password, Url, UrlError};
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn text(setting: &GucSetting<Option<CString>>) -> String {
    setting.get().map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

/// Whether `pg_snowflake.registry` is set.
pub fn is_set() -> bool {
    REGISTRY.get().is_some_and(|text| !text.is_empty())
}

/// `pg_snowflake.registry` without its password; `None` where it is not set.
pub fn without_password() -> Option<String> {
    is_set().then(|| text(&REGISTRY).parse::<Url>().map_or_else(|_| String::new(), |url| url.without_password()))
}

/// The registry, with the password of the file where one is named.
///
/// # Errors
/// Where the file cannot be read, or others may read it.
pub fn url_with_password() -> Result<Url, String> {
    let url: Url = text(&REGISTRY).parse().map_err(|error: UrlError| error.to_string())?;
    match text(&REGISTRY_PASSWORD_FILE).as_str() {
        "" => Ok(url),
        file => Ok(url.with_password(password(file)?)),
    }
}

/// The first line of a file that only its owner may read, as of `.pgpass`.
fn password(file: &str) -> Result<Password, String> {
    let problem = |what: String| format!("pg_snowflake.registry_password_file \"{file}\" {what}");
    let metadata = fs::metadata(file).map_err(|error| problem(format!("cannot be read: {error}")))?;
    if !metadata.is_file() {
        return Err(problem("is no plain file".to_owned()));
    }
    // As for the key of a certificate: root may own the file, and let the group of the server read it.
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.permissions().mode() & forbidden != 0 {
        return Err(problem("can be read by others: its mode must be 0600".to_owned()));
    }
    let content = fs::read_to_string(file).map_err(|error| problem(format!("cannot be read: {error}")))?;
    match content.lines().next() {
        Some(line) => Password::new(line).map_err(|_| problem("has no password in its first line".to_owned())),
        None => Err(problem("is empty".to_owned())),
    }
}

/// `pg_snowflake.registry_namespace`.
pub fn namespace() -> String {
    text(&REGISTRY_NAMESPACE)
}

/// `pg_snowflake.registry_window`.
pub fn window() -> Micros {
    Micros::from_millis(REGISTRY_WINDOW.get().into())
}
