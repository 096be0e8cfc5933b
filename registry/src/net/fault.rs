//! Faults of one host.

use std::io;
use thiserror::Error;

/// Why one host did not do what it was asked. The clients return it; [`Turns`](super::Turns) makes an
/// [`Error`](crate::Error) of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Fault {
    /// No connection, or it broke.
    #[error("{0}")]
    Broken(String),
    /// The time is over.
    #[error("no answer in time")]
    Timeout,
    /// The caller wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// No TLS that can be trusted.
    #[error("{0}")]
    Tls(String),
    /// The user or the password is refused.
    #[error("{0}")]
    Credentials(String),
    /// The user may not do that, on any host.
    #[error("{0}")]
    Denied(String),
    /// This host did not do it, and another may: it is a standby, or still starts.
    #[error("{0}")]
    NotHere(String),
    /// The server did not do it, as what it has is not what the session has seen. A new session sees it.
    #[error("{0}")]
    Stale(String),
    /// The server did not do it, nor would another host of the registry.
    #[error("{0}")]
    Refused(String),
    /// The server may have done it.
    #[error("{0}")]
    Unclear(String),
    /// The content that stands there is not ours.
    #[error("{what}")]
    Unexpected {
        /// The key or the table.
        place: String,
        /// A description of what is wrong with it.
        what: String,
    },
    /// The place for our content is somebody else's, or could run somebody else's code.
    #[error("{what}")]
    Untrusted {
        /// Whose it is, and what was found.
        what: String,
        /// What people can do.
        remedy: String,
    },
}

impl Fault {
    /// The fault that a client's error of a connection means: the one of its causes that tells most, of TLS or of the system; else the last
    /// one.
    pub fn of_connection(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut cause = error;
        loop {
            if let Some(fault) = cause.downcast_ref::<Self>() {
                return fault.clone();
            }
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                return Self::Tls(tls.to_string());
            }
            let next = match cause.downcast_ref::<io::Error>() {
                Some(io) => match io.get_ref() {
                    Some(inner) => Some(inner as &(dyn std::error::Error + 'static)),
                    None => return Self::Broken(plain(io)),
                },
                None => cause.source(),
            };
            match next {
                Some(next) => cause = next,
                None => return Self::Broken(cause.to_string()),
            }
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::of_connection(&error)
    }
}

/// Without the number that std adds.
fn plain(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "the server closed the connection".to_owned();
    }
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_that_tells_most_is_found() {
        let io = |inner: Fault| io::Error::other(io::Error::other(inner));
        assert_eq!(Fault::from(io(Fault::Timeout)), Fault::Timeout);
        let tls = io::Error::other(rustls::Error::HandshakeNotComplete);
        assert!(matches!(Fault::from(tls), Fault::Tls(_)));
        let system = io::Error::from_raw_os_error(111);
        assert_eq!(Fault::from(system), Fault::Broken("Connection refused".to_owned()));
        let closed = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(Fault::from(closed), Fault::Broken("the server closed the connection".to_owned()));
        assert_eq!(Fault::from(io::Error::other("x")), Fault::Broken("x".to_owned()));
    }
}
