//! Texts in shared memory, where nothing can be allocated.

use std::fmt;

/// A text of limited length.
pub struct FixedText {
    length: usize,
    bytes: [u8; Self::LONGEST],
}

impl Default for FixedText {
    fn default() -> Self {
        Self { length: 0, bytes: [0; Self::LONGEST] }
    }
}

impl FixedText {
    const LONGEST: usize = 1000;

    /// Stores a text, without what is beyond the length.
    pub fn set(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(Self::LONGEST)];
        self.bytes[..text.len()].copy_from_slice(text.as_bytes());
        self.length = text.len();
    }

    /// Stores no text.
    pub fn clear(&mut self) {
        self.length = 0;
    }
}

impl fmt::Display for FixedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes[..self.length]))
    }
}
