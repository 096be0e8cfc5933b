//! Names, as bytes in the server's encoding. Error messages need UTF-8; in a database of another encoding, they show `?` for
//! bytes that are not UTF-8.

use pgrx::pg_sys;
use std::ffi::{CStr, CString, c_char};

/// The schema and the name of a relation; `None` where there is none.
pub fn names(relation: pg_sys::Oid) -> Option<(CString, CString)> {
    // SAFETY: look-ups in the catalog, which return NULL if there is no such object.
    unsafe {
        let schema = owned(pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relation)))?;
        Some((schema, owned(pg_sys::get_rel_name(relation))?))
    }
}

/// A name, quoted where necessary.
pub fn identifier(name: &CStr) -> CString {
    // SAFETY: it is NUL-terminated, and so is what it returns.
    unsafe { owned(pg_sys::quote_identifier(name.as_ptr())) }.unwrap_or_default()
}

/// `schema.name`, quoted where necessary.
pub fn quoted(schema: &CStr, name: &CStr) -> CString {
    // SAFETY: both are NUL-terminated, and so is what it returns.
    unsafe { owned(pg_sys::quote_qualified_identifier(schema.as_ptr(), name.as_ptr())) }.unwrap_or_default()
}

/// A copy of a C string; `None` for NULL.
///
/// # Safety
/// It must be NUL-terminated, or NULL.
pub unsafe fn owned(string: *const c_char) -> Option<CString> {
    // SAFETY: the caller ensures it.
    (!string.is_null()).then(|| unsafe { CStr::from_ptr(string) }.to_owned())
}

/// A C string of names and numbers, which contain no NUL.
pub fn c_string(bytes: Vec<u8>) -> CString {
    CString::new(bytes).unwrap_or_default()
}

/// A name for an error message.
pub fn shown(name: &CStr) -> String {
    name.to_str().map_or_else(|_| name.to_string_lossy().replace(char::REPLACEMENT_CHARACTER, "?"), str::to_owned)
}
