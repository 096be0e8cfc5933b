//! Characters that mean something in a URL, as `%` and two hexadecimal digits.

use super::error::UrlError;
use percent_encoding::{AsciiSet, CONTROLS, PercentEncode, percent_decode_str, utf8_percent_encode};

/// All but RFC 3986's unreserved characters and those that separate nothing in a user's name.
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

/// Encodes a user or a path.
pub(crate) fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED)
}

/// Decodes a part of a URL, which an error calls by this name.
///
/// # Errors
/// [`UrlError::Percent`], [`UrlError::Text`].
pub(crate) fn decoded(text: &str, part: &'static str) -> Result<String, UrlError> {
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
