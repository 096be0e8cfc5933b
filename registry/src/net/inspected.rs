//! A stream whose bytes are looked at before the client gets them.

use super::fault::Fault;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Looks at bytes.
pub(crate) trait Inspect: Unpin {
    /// The next bytes that were read.
    ///
    /// # Errors
    /// Why the client does not get them.
    fn inspect(&mut self, bytes: &[u8]) -> Result<(), Fault>;
}

/// A stream with its inspector.
pub(crate) struct Inspected<S, I> {
    pub stream: S,
    pub inspector: I,
}

impl<S: AsyncRead + Unpin, I: Inspect> AsyncRead for Inspected<S, I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        Poll::Ready(self.inspector.inspect(&buf.filled()[before..]).map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin, I: Inspect> AsyncWrite for Inspected<S, I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
