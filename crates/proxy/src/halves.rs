//! The halves that calls read from and write to: the two directions of a connection, plain or under TLS, or of a stream
//! of HTTP/2 or HTTP/3. The engine does not know which they are.

use crate::buffer::{Buffers, Inbox};
use crate::multiplex::stream::Stream;
use crate::transport::{SocketRead, SocketWrite, TcpRead, TcpWrite, TlsStream};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The half that receives from a peer.
pub enum ReadHalf {
    Tcp(TcpRead),
    Tls(Rc<TlsStream>),
    /// A stream of a connection of HTTP/2 or HTTP/3.
    Stream(Rc<Stream>),
}

/// The half that sends to a peer. A write that was not complete is tried again with the same bytes.
pub enum WriteHalf {
    Tcp(TcpWrite),
    Tls(Rc<TlsStream>),
    Stream(Rc<Stream>),
}

/// The socket below two halves; `None`: they are a stream of HTTP/2 or HTTP/3.
pub fn into_socket((read, write): (ReadHalf, WriteHalf)) -> Option<(SocketRead, SocketWrite)> {
    let read = match read {
        ReadHalf::Tcp(half) => SocketRead::Tcp(half),
        ReadHalf::Tls(stream) => SocketRead::Tls(stream),
        ReadHalf::Stream(_) => return None,
    };
    let write = match write {
        WriteHalf::Tcp(half) => SocketWrite::Tcp(half),
        WriteHalf::Tls(stream) => SocketWrite::Tls(stream),
        WriteHalf::Stream(_) => return None,
    };
    Some((read, write))
}

/// The halves of a plain connection.
pub fn plain(stream: TcpStream) -> (ReadHalf, WriteHalf) {
    let (read, write) = stream.into_split();
    (
        ReadHalf::Tcp(TcpRead::new(read)),
        WriteHalf::Tcp(TcpWrite::new(write)),
    )
}

/// The halves of a connection under TLS.
pub fn secure(stream: TlsStream) -> (ReadHalf, WriteHalf) {
    let stream = Rc::new(stream);
    (ReadHalf::Tls(Rc::clone(&stream)), WriteHalf::Tls(stream))
}

impl ReadHalf {
    /// The stream of a connection of HTTP/2 or HTTP/3, if it is one.
    #[inline]
    pub fn stream(&self) -> Option<&Stream> {
        match self {
            Self::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// Whether both sides have agreed on HTTP/2 in a TLS handshake.
    pub fn speaks_http2(&self) -> bool {
        matches!(self, Self::Tls(stream) if stream.speaks_http2())
    }

    /// Ready when a read may give something.
    #[inline]
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(half) => half.poll_readable(context),
            Self::Tls(stream) => stream.poll_readable(context),
            Self::Stream(stream) => stream.poll_readable(context),
        }
    }

    /// Reads once into `inbox`, as [`Inbox::poll_fill`] does; a buffer is taken only once there may be something for it.
    #[inline]
    pub fn poll_fill(
        &mut self,
        inbox: &mut Inbox,
        context: &mut Context<'_>,
        buffers: &Buffers,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        if let Self::Tcp(half) = self
            && !inbox.holds_buffer()
        {
            ready!(half.poll_readable_fairly(context))?;
        }
        inbox.poll_fill(self, context, buffers, limit)
    }

    /// Whether the peer of an idle connection has closed it, or sent data without a request. Costs no system call
    /// unless the runtime has seen an event on it.
    pub fn is_dead(&self) -> bool {
        match self {
            Self::Tcp(half) => half.is_dead(),
            Self::Tls(stream) => stream.is_dead(),
            // A stream carries one call.
            Self::Stream(_) => true,
        }
    }
}

impl AsyncRead for ReadHalf {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => half.poll_read(context, space),
            Self::Tls(stream) => stream.poll_read(context, space),
            Self::Stream(stream) => stream.poll_read(context, space),
        }
    }
}

impl AsyncWrite for WriteHalf {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(half) => half.poll_write(context, bytes),
            Self::Tls(stream) => stream.poll_write(context, &[IoSlice::new(bytes)]),
            Self::Stream(stream) => stream.poll_write(context, &[IoSlice::new(bytes)]),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(half) => half.poll_write_vectored(context, parts),
            Self::Tls(stream) => stream.poll_write(context, parts),
            Self::Stream(stream) => stream.poll_write(context, parts),
        }
    }

    /// Writes leave nothing to flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => half.poll_shutdown(context),
            Self::Tls(stream) => stream.poll_shutdown(context),
            Self::Stream(stream) => Poll::Ready(stream.end(&[])),
        }
    }
}

impl WriteHalf {
    /// Writes what a plain connection takes at once; the number of bytes. What is not written is for `poll_write`.
    ///
    /// # Errors
    /// An error of the system, other than that it takes nothing now.
    #[inline]
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(half) => half.try_write(bytes),
            Self::Tls(_) | Self::Stream(_) => Ok(0),
        }
    }

    /// Ends the connection with a reset once all of it is dropped: the peer must not take what it got for the whole.
    pub fn reset(self) {
        let set = match self {
            Self::Tcp(half) => half.reset(),
            Self::Tls(stream) => stream.set_reset(),
            Self::Stream(stream) => {
                stream.reset();
                Ok(())
            }
        };
        if let Err(error) = set {
            tracing::debug!(%error, "a connection cannot be reset");
        }
    }
}
