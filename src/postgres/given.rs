//! Texts that callers give. They may have any length and, in a database that is not UTF-8, any bytes.

use crate::postgres::encoding;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::prelude::*;
use pgrx::varlena;
use snowflake_core::{notation, text};
use std::borrow::Cow;

/// A text that a caller gives, or its beginning, where it is longer than anything that is read: what reads it refuses it then, for its
/// length. The rest is neither copied nor fetched from where it is stored, nor uncompressed.
#[derive(Clone, Copy)]
pub struct Given<'a>(&'a [u8]);

/// How many bytes the beginning has.
const BEGINNING: usize = 512;

const _: () = assert!(BEGINNING > notation::LONGEST && BEGINNING > text::LONGEST);

impl<'a> Given<'a> {
    /// The bytes, in the database's encoding.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The text, as [`encoding::read`] has it.
    pub fn read(self) -> Cow<'a, str> {
        encoding::read(self.0)
    }
}

pgrx::impl_sql_translatable!(Given<'_>, "text");

impl FromDatum for Given<'_> {
    #[inline]
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _type: pg_sys::Oid) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: the caller's promise is that this is a text, wherever that is stored, which stays for as long as the call. A slice of a
        // stored text is made in the current memory context, which is that of the call.
        unsafe {
            let text: *mut pg_sys::varlena = datum.cast_mut_ptr();
            let is_plain = match varlena::varatt_is_1b(text) {
                true => !varlena::varatt_is_1b_e(text),
                false => varlena::varatt_is_4b_u(text),
            };
            let text = if is_plain { text } else { pg_sys::pg_detoast_datum_slice(text, 0, BEGINNING as i32) };
            let bytes = varlena::varlena_to_byte_slice(text);
            Some(Self(&bytes[..bytes.len().min(BEGINNING)]))
        }
    }
}

// SAFETY: a text that is not NULL has a `Given`.
unsafe impl<'call> ArgAbi<'call> for Given<'call> {
    #[inline]
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'call>) -> Self {
        // SAFETY: the caller's promise is that this is a text, and not NULL.
        unsafe { arg.unbox_arg_using_from_datum() }.unwrap_or(Self(&[]))
    }
}
