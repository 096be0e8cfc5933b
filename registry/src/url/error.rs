//! Errors of parsing. None repeats the text that is wrong: where a password has a character that should have been encoded, any part
//! of the URL may be a part of the password.

use crate::password::PasswordError;
use thiserror::Error;

/// Why a text is no URL of a registry. Says where it is wrong, and does not repeat what is there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UrlError {
    /// Another scheme, or none. Names those that there are.
    #[error("a registry's URL begins with {0}")]
    Scheme(String),
    /// The `@` after a password comes later than the hosts seem to end.
    #[error("the user or the password has a \"/\", \"?\" or \"#\": write %2F, %3F, %23")]
    Separator,
    /// A `%` without two hexadecimal digits.
    #[error("{0} has a \"%\" without two hexadecimal digits after it: write %25 for the character itself")]
    Percent(&'static str),
    /// Not UTF-8, or a zero byte.
    #[error("{0} is not text in UTF-8 without zero bytes")]
    Text(&'static str),
    /// A password that is empty. Leave out the `:`, where there is none.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// No host, or an empty one.
    #[error("host {0} is empty")]
    NoHost(usize),
    /// A character that host names do not have.
    #[error("host {0} is neither a name nor an address; an IPv6 address stands in brackets: [::1]")]
    Host(usize),
    /// A port that is none.
    #[error("the port of host {0} is not a number from 1 to 65535")]
    Port(usize),
    /// A rule that only this kind of registry has: of its user, or of the path.
    #[error("{0}")]
    Rule(&'static str),
    /// A `#`.
    #[error("a registry's URL has no part after \"#\"; write %23 for the character itself")]
    Fragment,
    /// A parameter that this kind of registry does not have.
    #[error("parameter {number} is unknown; the known ones are {known}")]
    Parameter {
        /// The first is 1.
        number: usize,
        /// Those that there are.
        known: String,
    },
    /// A parameter twice.
    #[error("parameter {0} is there twice")]
    Twice(&'static str),
    /// A value that a parameter cannot have.
    #[error("{name} must be {must_be}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The values that it can have.
        must_be: &'static str,
    },
    /// Certificates for a connection without TLS.
    #[error("{name} is for TLS: use {instead}")]
    NoTls {
        /// The parameter.
        name: &'static str,
        /// The scheme or the parameter that asks for TLS.
        instead: String,
    },
}
