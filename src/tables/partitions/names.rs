//! Names, as bytes in the server's encoding. Error messages need UTF-8; in a database of another encoding, they show `?` for
//! bytes that are not UTF-8.

use crate::postgres::catalog;
use std::ffi::{CStr, CString};

/// A C string of names and numbers, which contain no NUL.
pub fn c_string(bytes: Vec<u8>) -> CString {
    CString::new(bytes).unwrap_or_default()
}

/// A name for an error message.
pub fn shown(name: &CStr) -> String {
    name.to_str().map_or_else(|_| name.to_string_lossy().replace(char::REPLACEMENT_CHARACTER, "?"), str::to_owned)
}

/// A name, quoted where necessary.
pub fn identifier(name: &CStr) -> CString {
    catalog::quoted_identifier(name).unwrap_or_default()
}
