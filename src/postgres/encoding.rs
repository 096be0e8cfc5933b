//! Text of the database. Rust's is UTF-8; the database's encoding may be another, in which names and definitions are no UTF-8.
//! In such a database, a `char` stands for each byte, so that nothing is lost on the way in and out, and what is ASCII is
//! the same: in all encodings of servers, a byte below 128 is an ASCII character.

use crate::postgres::process;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::{Datum, UnboxDatum};
use pgrx::prelude::*;
use std::borrow::Cow;
use std::ffi::{CStr, CString};

/// Text of the database, as [`read`] has it.
pub struct Text(pub String);

fn is_utf8() -> bool {
    process::encoding() == pg_sys::pg_enc::PG_UTF8 as i32
}

/// Text of these bytes of the database.
#[inline]
pub fn read(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => text.into(),
        _ => read_more_than_ascii(bytes),
    }
}

#[cold]
fn read_more_than_ascii(bytes: &[u8]) -> Cow<'_, str> {
    if is_utf8() { String::from_utf8_lossy(bytes) } else { bytes.iter().map(|&byte| char::from(byte)).collect() }
}

/// A name, or other text that ends with a NUL.
pub fn read_name(name: &CStr) -> String {
    read(name.to_bytes()).into_owned()
}

/// The bytes of a text that was [read](read), or is ASCII. Other characters become `?`.
fn bytes(text: &str) -> Cow<'_, [u8]> {
    if text.is_ascii() || is_utf8() {
        text.as_bytes().into()
    } else {
        text.chars().map(|char| u8::try_from(char).unwrap_or(b'?')).collect()
    }
}

/// A statement; it has no NUL, as names have none.
pub fn statement(text: &str) -> CString {
    CString::new(bytes(text)).unwrap_or_default()
}

/// Text that an error or a result can have: pgrx passes it on as UTF-8. In a database of another encoding, what is not ASCII
/// becomes `?`.
pub fn shown(text: &str) -> String {
    if is_utf8() { text.to_owned() } else { text.replace(|char: char| !char.is_ascii(), "?") }
}

pgrx::impl_sql_translatable!(Text, "text");

impl FromDatum for Text {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _type: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the caller's promise is that this is a text, which is stored as a bytea is.
        unsafe { <&[u8]>::from_datum(datum, is_null) }.map(|bytes| Self(read(bytes).into_owned()))
    }
}

impl IntoDatum for Text {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        // A text is stored as a bytea is.
        bytes(&self.0).into_owned().into_datum()
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

// SAFETY: a text is stored as a bytea is.
unsafe impl UnboxDatum for Text {
    type As<'src> = Self;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> Self
    where
        Self: 'src,
    {
        // SAFETY: the caller's promise is that this is a text.
        Self(read(unsafe { <&[u8]>::unbox(datum) }).into_owned())
    }
}

// SAFETY: the datum is a new text in the current memory context, which is that of the result.
unsafe impl BoxRet for Text {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: a text, as the declarations in SQL have it.
            Some(datum) => unsafe { call.return_raw_datum(datum) },
            None => call.return_null(),
        }
    }
}
