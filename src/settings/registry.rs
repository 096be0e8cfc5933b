//! The parameters of the registry.

use super::{REGISTRY, REGISTRY_NAMESPACE, REGISTRY_PASSWORD_FILE, REGISTRY_TRUSTED, REGISTRY_WINDOW};
use pgrx::GucSetting;
use snowflake_core::Micros;
use snowflake_registry::file::{open_plain, read_to_end};
use snowflake_registry::{Password, Url, UrlError};
use std::ffi::{CStr, CString, c_char};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

fn text(setting: &GucSetting<Option<CString>>) -> String {
    setting.get().map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

/// Whether `pg_snowflake.registry` is set.
pub fn is_set() -> bool {
    REGISTRY.get().is_some_and(|text| !text.is_empty())
}

/// `pg_snowflake.registry` without its password; `None` where it is not set.
pub fn without_password() -> Option<String> {
    is_set().then(|| text(&REGISTRY))
}

/// The URL with the password that it may have, as [`assign`] got it; null where none is set.
static WHOLE: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// Whether the parameter keeps its value until the server is started again.
static FIXED: AtomicBool = AtomicBool::new(false);

/// Takes the whole URL over.
///
/// # Safety
/// It is NUL-terminated, or null, and stays until the next one is assigned.
pub unsafe fn assign(whole: *mut c_char) {
    WHOLE.store(whole, Relaxed);
}

/// From now on, the parameter has the value that the server was started with.
pub fn fix() {
    FIXED.store(true, Relaxed);
}

/// The value of the parameter that is shown: the URL without its password.
///
/// Where only the password in the configuration has changed since the start, PostgreSQL must see another value, to say that a restart is
/// needed. It does not keep that value.
pub fn shown(url: &Url) -> String {
    let shown = url.without_password();
    let is_new = FIXED.load(Relaxed) && whole().is_ok_and(|used| used.without_password() == shown && used != *url);
    if is_new { format!("{shown} with another password") } else { shown }
}

fn whole() -> Result<Url, UrlError> {
    let whole = WHOLE.load(Relaxed);
    // SAFETY: as `assign` has promised.
    let text = if whole.is_null() { c"" } else { unsafe { CStr::from_ptr(whole) } };
    text.to_string_lossy().parse()
}

/// The registry, with the password of the file where one is named.
///
/// # Errors
/// Where the file cannot be read, or others may read it.
pub fn url_with_password() -> Result<Url, String> {
    let url = whole().map_err(|error| error.to_string())?;
    match text(&REGISTRY_PASSWORD_FILE).as_str() {
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
        return Err(problem("can be read by others: its mode must be 0600".to_owned()));
    }
    let content = read_to_end(&opened, LONGEST_FILE).map_err(unreadable)?;
    let content = String::from_utf8(content).map_err(|_| problem("is no text in UTF-8".to_owned()))?;
    match content.lines().next() {
        Some(line) => Password::new(line).map_err(|_| problem("has no password in its first line".to_owned())),
        None => Err(problem("is empty".to_owned())),
    }
}

/// `pg_snowflake.registry_namespace`.
pub fn namespace() -> String {
    text(&REGISTRY_NAMESPACE)
}

/// `pg_snowflake.registry_trusted`.
pub fn is_trusted() -> bool {
    REGISTRY_TRUSTED.get()
}

/// `pg_snowflake.registry_window`.
pub fn window() -> Micros {
    Micros::from_millis(REGISTRY_WINDOW.get().into())
}
