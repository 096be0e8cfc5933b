//! A password, which shows nowhere.

use std::fmt;
use thiserror::Error;

/// A password. Neither `Debug` nor an error shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

/// A text that cannot be a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the password is empty or has a zero byte")]
pub struct PasswordError;

impl Password {
    /// # Errors
    /// Where it is empty, or has a zero byte, which PostgreSQL's protocol cannot carry.
    pub fn new(password: impl Into<String>) -> Result<Self, PasswordError> {
        let password = password.into();
        match password.is_empty() || password.contains('\0') {
            true => Err(PasswordError),
            false => Ok(Self(password)),
        }
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text of a server that may repeat the password.
    pub(crate) fn removed_from(&self, text: &str) -> String {
        text.replace(&self.0, "…")
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}
