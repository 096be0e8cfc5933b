//! Texts that callers gave, as messages quote them: not longer than a message should be.
//!
//! ```
//! use snowflake_core::quote::shortened;
//!
//! assert_eq!(shortened("timestamp=41"), "timestamp=41");
//! assert_eq!(shortened(&"ü".repeat(1000)), format!("{}...", "ü".repeat(64)));
//! ```

use std::borrow::Cow;

/// A longer text is shortened to this many bytes, or to the few fewer that end with a whole character. Every layout is
/// shorter that is written without spare blanks.
const QUOTED: usize = 128;

/// The text, or its beginning with `...`.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.floor_char_boundary(QUOTED) {
        end if end == text.len() => text.into(),
        end => format!("{}...", &text[..end]).into(),
    }
}
