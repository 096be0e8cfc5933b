//! The name under which the servers of one system share worker IDs.

use std::fmt;
use thiserror::Error;

/// The name of a namespace: 1 to 63 bytes of UTF-8 without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(String);

/// A name that no namespace can have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the name of a namespace has 1 to 63 bytes, and no control characters")]
pub struct NamespaceError;

impl Namespace {
    /// The longest name, in bytes.
    pub const LONGEST: usize = 63;

    /// # Errors
    /// Where the name is empty, too long, or has control characters.
    pub fn new(name: &str) -> Result<Self, NamespaceError> {
        match name.is_empty() || name.len() > Self::LONGEST || name.contains(char::is_control) {
            true => Err(NamespaceError),
            false => Ok(Self(name.to_owned())),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_length_and_are_printable() {
        for name in ["default", "o'clock \"x\" %/ é 雪", &"x".repeat(63), "*", "a/workers"] {
            assert_eq!(Namespace::new(name).unwrap().as_str(), name);
        }
        for name in ["", &"x".repeat(64), &"雪".repeat(22), "a\nb", "a\0", "\u{7f}"] {
            assert_eq!(Namespace::new(name), Err(NamespaceError), "{name:?}");
        }
    }
}
