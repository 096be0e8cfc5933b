//! A connection with a host.

use super::allowance::Allowance;
use super::deadline::Deadline;
use super::fault::Fault;
use crate::Resolver;
use crate::address::Host;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// The bytes of a connection, with or without TLS, as the clients take them.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Transport for T {}

/// A TCP connection, from which no more is read than its [`Allowance`] says. The holder of the [`Stream::witness`] sees whether the
/// client still holds it: all clients let go of a connection that the server has closed.
pub(crate) struct Stream {
    tcp: TcpStream,
    allowance: Arc<Allowance>,
    is_local: bool,
}

impl Stream {
    /// Connects to the first of the host's addresses that takes it.
    ///
    /// The system resolves the name.
    pub async fn connect(host: &Host, deadline: &Deadline, resolver: &Resolver) -> Result<Self, Fault> {
        let addresses = addresses(host, resolver)
            .await
            .map_err(|error| Fault::Broken(format!("the name cannot be resolved: {error}")))?;
        let mut last = Fault::Broken("the name has no address".to_owned());
        for (number, address) in addresses.iter().enumerate() {
            let share = deadline.share(addresses.len() - number, None);
            match share.wait_for(async { Ok(TcpStream::connect(address).await?) }).await {
                Ok(tcp) => {
                    tcp.set_nodelay(true)?;
                    return Ok(Self {
                        tcp,
                        allowance: Arc::default(),
                        is_local: address.ip().to_canonical().is_loopback(),
                    });
                }
                Err(Fault::Interrupted) => return Err(Fault::Interrupted),
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    /// Can be upgraded until the connection is dropped.
    pub fn witness(&self) -> Weak<Allowance> {
        Arc::downgrade(&self.allowance)
    }

    /// The allowance of this connection.
    pub fn allowance(&self) -> Arc<Allowance> {
        self.allowance.clone()
    }

    /// Whether nothing leaves this machine.
    pub fn is_local(&self) -> bool {
        self.is_local
    }
}

/// Blocks, where nobody else is to wait for the system; what is an address already needs no waiting.
async fn addresses(host: &Host, resolver: &Resolver) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.name.parse::<IpAddr>() {
        return Ok(vec![(address, host.port).into()]);
    }
    let (name, port) = (host.name.clone(), host.port);
    let look_up = move || Ok((name.as_str(), port).to_socket_addrs()?.collect());
    let Some(start) = resolver.start() else { return look_up() };
    let (sender, receiver) = oneshot::channel();
    // Nobody receives it where the call has ended meanwhile.
    start(&host.name, Box::new(move || drop(sender.send(look_up()))))?;
    receiver.await.unwrap_or_else(|_| Err(io::Error::other("the look-up ended without an answer")))
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))?;
        Poll::Ready(self.allowance.spend(buf.filled().len() - before).map_err(io::Error::other))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
