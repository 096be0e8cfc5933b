//! Errors of a registry, each of which says whether a change may have been made all the same.

use crate::password::Password;
use std::fmt;
use thiserror::Error;

/// Why a call of a registry failed. No message has a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// No host took a connection, or each broke it.
    #[error("the registry cannot be reached: {0}")]
    Unreachable(Attempts),
    /// A host refused the user or the password.
    #[error("the registry refuses the credentials: {0}")]
    Credentials(Attempts),
    /// TLS failed: the certificate is not trusted, or is for another name, or the server has no TLS.
    #[error("no trusted connection with the registry: {0}")]
    Tls(Attempts),
    /// The time for the call was over.
    #[error("the registry does not answer in time: {0}")]
    Timeout(Attempts),
    /// The caller wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The content of the registry is not ours, or of a newer version. It was left alone.
    #[error("unexpected content in the registry, at {place}: {what}")]
    Unexpected {
        /// The key or the table.
        place: String,
        /// A description of what is wrong with it.
        what: String,
    },
    /// The tables of the registry are somebody else's, or could run somebody else's code. They were not used.
    #[error("the registry has tables that are not to be trusted: {what}. What to do: {remedy}")]
    Untrusted {
        /// Whose they are, and what was found.
        what: String,
        /// What people can do.
        remedy: String,
    },
    /// The server answered, and did not do it.
    #[error("the registry says: {0}")]
    Server(Attempts),
    /// A change was sent, and what became of it is unknown: it was made, or was not, or will be. The caller then reads
    /// again, and then compares and swaps the version that it read: so no such change can be made later.
    #[error("it is unknown whether the registry made the change: {0}")]
    Unanswered(Box<Self>),
    /// The call itself cannot be served, whatever the registry.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    pub(crate) fn unexpected(place: &str, what: &str) -> Self {
        Self::Unexpected { place: one_line(place), what: one_line(what) }
    }

    pub(crate) fn untrusted(what: &str, remedy: &str) -> Self {
        Self::Untrusted { what: one_line(what), remedy: one_line(remedy) }
    }

    /// Whether a change was sent whose outcome is unknown. With every other error, no change was made, and none will be.
    pub fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unanswered(_))
    }

    /// Whether a password or a certificate may be why, which comes from a file that has another one by now: who has asked opens the
    /// registry anew, and reads it. A server that refuses a client's certificate may just end the connection. Not where a change was sent
    /// or a host kept silent: then the next host is asked first, which a registry that is opened anew does not know.
    pub fn may_be_of_old_files(&self) -> bool {
        matches!(self, Self::Credentials(_) | Self::Tls(_) | Self::Unreachable(_))
    }

    /// Why the call failed; where the outcome of a change is unknown, why that is so.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Unanswered(cause) => cause,
            cause => cause,
        }
    }
}

/// The hosts that were tried, in this order, each with what went wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempts(pub Vec<Attempt>);

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, attempt) in self.0.iter().enumerate() {
            let separator = if number > 0 { "; " } else { "" };
            write!(f, "{separator}{}: {}", attempt.host, attempt.what)?;
        }
        Ok(())
    }
}

/// An attempt with one host, which failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The host and its port.
    pub host: String,
    /// A short text, at most [`Attempt::LONGEST`] characters of one line.
    pub what: String,
}

impl Attempt {
    /// How many characters [`Attempt::what`] has at most.
    pub const LONGEST: usize = 300;

    /// A server may repeat what it was sent, and at any length.
    pub(crate) fn new(host: &str, what: &str, password: Option<&Password>) -> Self {
        let what = match password {
            Some(password) => password.removed_from(what),
            None => what.to_owned(),
        };
        Self { host: host.to_owned(), what: one_line(&what) }
    }
}

/// At most [`Attempt::LONGEST`] characters, none of them a control character: what others wrote must not make lines of a log.
fn one_line(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(Attempt::LONGEST).collect()
}
