//! Texts in shared memory, where nothing can be allocated.

use std::fmt;

/// A text of limited length, in bytes.
#[derive(Clone, Copy)]
pub struct FixedText<const LONGEST: usize = 1000> {
    length: usize,
    bytes: [u8; LONGEST],
}

impl<const LONGEST: usize> Default for FixedText<LONGEST> {
    fn default() -> Self {
        Self { length: 0, bytes: [0; LONGEST] }
    }
}

impl<const LONGEST: usize> FixedText<LONGEST> {
    /// Stores a text, without what is beyond the length.
    pub fn set(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        self.bytes[..text.len()].copy_from_slice(text.as_bytes());
        self.length = text.len();
    }

    /// Stores no text.
    pub fn clear(&mut self) {
        self.length = 0;
    }
}

impl<const LONGEST: usize> fmt::Display for FixedText<LONGEST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes[..self.length]))
    }
}
