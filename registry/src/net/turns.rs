//! The hosts of a registry, tried in turn.

use super::allowance::Allowance;
use super::deadline::Deadline;
use super::fault::Fault;
use super::stream::Stream;
use crate::address::{Address, Host, Verify};
use crate::error::{Attempt, Attempts, Error};
use crate::password::Password;
use crate::{Options, Protection};
use std::sync::Weak;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How one kind of registry talks to a host.
pub(crate) trait Protocol {
    /// A connection that is authenticated and ready for requests. Dropped, it leaves nothing behind that waits.
    type Session;

    /// Encrypts and authenticates a connection with this host.
    async fn open(&self, stream: Stream, host: &Host) -> Result<Self::Session, Fault>;

    /// The rights that the user needs, as a part of a sentence; empty where the server's own errors name what is missing.
    fn needs(&self) -> &str {
        ""
    }

    /// Whether the session has TLS.
    fn is_encrypted(&self, session: &Self::Session) -> bool;

    /// Says good-bye, as far as that needs no waiting.
    async fn close(session: Self::Session) {
        drop(session);
    }
}

/// A registry's hosts, and the session with one of them.
pub(crate) struct Turns<P: Protocol> {
    hosts: Hosts<P>,
    /// One thread: the caller's. The tasks of the clients stand still between calls.
    runtime: Runtime,
}

struct Hosts<P: Protocol> {
    protocol: P,
    hosts: Vec<Host>,
    connect_timeout: Option<Duration>,
    password: Option<Password>,
    verify: Verify,
    options: Options,
    /// How long calls may take for now, where that is less.
    longest: Option<Duration>,
    /// How the last connection that was made is protected.
    protection: Option<Protection>,
    /// The host to begin with: the one that answered last.
    first: usize,
    session: Option<KeptSession<P>>,
}

/// A session, and the [witness](Stream::witness) of its connection.
struct KeptSession<P: Protocol> {
    session: P::Session,
    connection: Weak<Allowance>,
}

/// Whether a request changes something. Only what changes nothing may be sent twice.
#[derive(Clone, Copy, PartialEq)]
enum RequestKind {
    Read,
    Change,
}

impl<P: Protocol> Turns<P> {
    /// Connects with nobody yet.
    ///
    /// # Errors
    /// [`Error::Invalid`], where the system has no more file descriptors.
    pub fn new(protocol: P, address: &Address, options: &Options) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| Error::Invalid(format!("connections cannot be waited for: {error}")))?;
        let hosts = Hosts {
            protocol,
            hosts: address.hosts.clone(),
            connect_timeout: address.connect_timeout,
            password: address.password.clone(),
            verify: address.tls.verify,
            options: options.clone(),
            longest: None,
            protection: None,
            first: 0,
            session: None,
        };
        Ok(Self { hosts, runtime })
    }

    /// Asks the hosts in turn, until one answers.
    pub fn read<T>(&mut self, ask: impl AsyncFn(&mut P::Session) -> Result<T, Fault>) -> Result<T, Error> {
        self.runtime.block_on(self.hosts.call(RequestKind::Read, Allowance::ONE, ask))
    }

    /// The same, for all records of a namespace.
    pub fn read_all<T>(&mut self, ask: impl AsyncFn(&mut P::Session) -> Result<T, Fault>) -> Result<T, Error> {
        self.runtime.block_on(self.hosts.call(RequestKind::Read, Allowance::ALL, ask))
    }

    /// From now on, calls take at most so long, and never longer than the options say. Returns how long that is.
    pub fn limit(&mut self, longest: Option<Duration>) -> Duration {
        self.hosts.longest = longest;
        self.hosts.longest()
    }

    /// How the last connection that was made is protected.
    pub fn protection(&self) -> Option<Protection> {
        self.hosts.protection
    }

    /// Tells the first host that takes it. It is sent to one host, and to another only where that one says that it did nothing.
    pub fn change<T>(&mut self, tell: impl AsyncFn(&mut P::Session) -> Result<T, Fault>) -> Result<T, Error> {
        self.runtime.block_on(self.hosts.call(RequestKind::Change, Allowance::ONE, tell))
    }
}

impl<P: Protocol> Drop for Turns<P> {
    fn drop(&mut self) {
        if let Some(KeptSession { session, .. }) = self.hosts.session.take() {
            self.runtime.block_on(P::close(session));
        }
    }
}

/// Lets the clients see what has arrived, and send what can be sent, without waiting for more.
pub(crate) async fn settle() {
    // The first lets the runtime look at its sockets; then those run whose socket is ready, and those whom these wake.
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
}

impl<P: Protocol> KeptSession<P> {
    /// Sends a request, and reads no more than so much of the answer.
    async fn ask<T>(
        &mut self,
        allowed: usize,
        request: &impl AsyncFn(&mut P::Session) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if let Some(allowance) = self.connection.upgrade() {
            allowance.renew(allowed);
        }
        request(&mut self.session).await
    }
}

impl<P: Protocol> Hosts<P> {
    async fn call<T>(
        &mut self,
        kind: RequestKind,
        allowed: usize,
        request: impl AsyncFn(&mut P::Session) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let deadline = Deadline::new(self.longest(), &self.options.stop);
        let count = self.hosts.len();
        let mut attempts = Vec::new();
        let mut worst = Rank::Unreachable;
        // A server that went away meanwhile is not sent a change whose outcome would be unknown.
        settle().await;
        let mut kept = self.session.take().filter(|kept| kept.connection.strong_count() > 0);
        let start = self.first;
        let mut turn = 0;
        while turn < count {
            let index = (start + turn) % count;
            let host = self.hosts[index].clone();
            let was_kept = kept.is_some();
            let session = match kept.take() {
                Some(session) => Ok(session),
                None => {
                    let share = deadline.share(count - turn, self.connect_timeout);
                    share.wait_for(self.open(&host, &share)).await
                }
            };
            let fault = match session {
                Err(fault) => fault,
                Ok(mut kept) => match deadline.wait_for(kept.ask(allowed, &request)).await {
                    Ok(answer) => {
                        self.first = index;
                        self.session = Some(kept);
                        return Ok(answer);
                    }
                    Err(fault) if kind == RequestKind::Change && fault.is_unclear() => {
                        self.first = (index + 1) % count;
                        attempts.push(self.attempt(&host, &fault));
                        return Err(Error::Unanswered(Box::new(fault.error(Attempts(attempts)))));
                    }
                    // A connection from before may have been cut without a word, and what it was authenticated by may
                    // have expired.
                    Err(Fault::Broken(_) | Fault::Credentials(_) | Fault::Stale(_)) if was_kept => continue,
                    Err(fault) => fault,
                },
            };
            attempts.push(self.attempt(&host, &fault));
            if fault.is_final() {
                self.first = index;
                return Err(fault.error(Attempts(attempts)));
            }
            worst = worst.max(fault.rank());
            turn += 1;
            // The next call begins with the host that this one did not come to.
            self.first = (index + 1) % count;
            if deadline.left().is_zero() {
                break;
            }
        }
        Err(worst.error(Attempts(attempts)))
    }

    fn longest(&self) -> Duration {
        let longest = self.options.deadline();
        self.longest.map_or(longest, |for_now| for_now.min(longest))
    }

    async fn open(&mut self, host: &Host, deadline: &Deadline) -> Result<KeptSession<P>, Fault> {
        let stream = Stream::connect(host, deadline, &self.options.resolver).await?;
        let (connection, is_local) = (stream.witness(), stream.is_local());
        let session = self.protocol.open(stream, host).await?;
        self.protection = Some(match (self.protocol.is_encrypted(&session), self.verify) {
            _ if is_local => Protection::Local,
            (false, _) => Protection::Nothing,
            (true, Verify::Nothing) => Protection::Unverified,
            (true, Verify::Chain | Verify::Name) => Protection::Verified,
        });
        Ok(KeptSession { session, connection })
    }

    fn attempt(&self, host: &Host, fault: &Fault) -> Attempt {
        let needs = self.protocol.needs();
        let what = match fault {
            Fault::Denied(text) if !needs.is_empty() => format!("{text}: {needs}"),
            _ => fault.to_string(),
        };
        Attempt::new(&host.to_string(), &what, self.password.as_ref())
    }
}

/// Which error tells most, where each host has its own: the last of these.
#[derive(Clone, Copy, PartialEq, PartialOrd, Eq, Ord)]
enum Rank {
    Unreachable,
    Timeout,
    Server,
    Tls,
    Credentials,
}

impl Rank {
    fn error(self, attempts: Attempts) -> Error {
        match self {
            Self::Unreachable => Error::Unreachable(attempts),
            Self::Timeout => Error::Timeout(attempts),
            Self::Server => Error::Server(attempts),
            Self::Tls => Error::Tls(attempts),
            Self::Credentials => Error::Credentials(attempts),
        }
    }
}

impl Fault {
    fn rank(&self) -> Rank {
        match self {
            Self::Broken(_) => Rank::Unreachable,
            Self::Timeout | Self::Interrupted => Rank::Timeout,
            Self::Denied(_)
            | Self::NotHere(_)
            | Self::Stale(_)
            | Self::Refused(_)
            | Self::Unclear(_)
            | Self::Unexpected { .. }
            | Self::Untrusted { .. } => Rank::Server,
            Self::Tls(_) => Rank::Tls,
            Self::Credentials(_) => Rank::Credentials,
        }
    }

    /// The error, where the last of these attempts ended the call.
    fn error(self, attempts: Attempts) -> Error {
        match self {
            Self::Interrupted => Error::Interrupted,
            Self::Unexpected { place, what } => Error::unexpected(&place, &what),
            Self::Untrusted { what, remedy } => Error::untrusted(&what, &remedy),
            other => other.rank().error(attempts),
        }
    }

    /// Whether no other host would say otherwise.
    fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Interrupted | Self::Denied(_) | Self::Refused(_) | Self::Unexpected { .. } | Self::Untrusted { .. }
        )
    }

    /// Whether a change that was sent before may have been made.
    fn is_unclear(&self) -> bool {
        match self {
            Self::Broken(_) | Self::Timeout | Self::Interrupted | Self::Tls(_) | Self::Unclear(_) => true,
            Self::Credentials(_)
            | Self::Denied(_)
            | Self::NotHere(_)
            | Self::Stale(_)
            | Self::Refused(_)
            | Self::Unexpected { .. }
            | Self::Untrusted { .. } => false,
        }
    }
}
