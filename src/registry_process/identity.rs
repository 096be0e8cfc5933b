//! The identity of this server in a registry.

use super::incarnation;
use once_cell::sync::OnceCell;
use pgrx::prelude::*;
use snowflake_core::lease::{Holder, Identity, Token};
use std::ffi::CStr;

/// The token of this run. In the private memory of the postmaster, from which its processes inherit it: so it survives the crash of a
/// session, and is in no copy of the data directory.
static TOKEN: OnceCell<Token> = OnceCell::new();

/// Draws the token. Called in the postmaster.
pub fn init() {
    let drawn = random().map(u128::from_ne_bytes);
    if drawn.is_none() {
        ereport!(FATAL, PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, "could not draw a random number");
    }
    TOKEN.get_or_init(|| Token(drawn.unwrap_or_default().max(1)));
}

/// Bytes that nobody can guess; `None` where the system has none.
pub fn random<const LENGTH: usize>() -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    // SAFETY: fills so many bytes, which are there.
    let is_random = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
    is_random.then_some(bytes)
}

/// The token and the server, as people know it.
pub fn identity() -> Identity {
    // SAFETY: set by the postmaster before any process starts; C strings that stay.
    let holder = unsafe {
        let text = |text: *const std::ffi::c_char| match text.is_null() {
            true => String::new(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        };
        Holder {
            host: host_name(),
            data_directory: text(pg_sys::DataDir),
            port: u16::try_from(pg_sys::PostPortNumber).unwrap_or(0),
            cluster_name: text(pg_sys::cluster_name),
            system_identifier: pg_sys::GetSystemIdentifier(),
            process: u32::try_from(pg_sys::PostmasterPid).map(incarnation::of).unwrap_or_default(),
        }
    };
    Identity { token: TOKEN.get().copied().unwrap_or(Token(1)), holder }
}

/// The name of this machine.
pub fn host_name() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the name is cut off where it is longer; then its end is not marked.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    if failed {
        String::new()
    } else {
        CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned()
    }
}
