//! The parts of connections: the two directions of a TCP stream, plain or under TLS. The halves that calls read and
//! write, streams of HTTP/2 and HTTP/3 among it, is in [`crate::halves`].
//!
//! The halves of a TLS connection share it, as each direction of TLS may have to write and to read.

mod handshake;
mod hello;
mod tcp;
mod tls;

pub use handshake::{accept, connect};
pub use hello::{ClientHello, read_hello};
pub use tcp::{TcpRead, TcpWrite};
pub use tls::TlsStream;

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The direction from a socket.
pub enum SocketRead {
    Tcp(TcpRead),
    Tls(Rc<TlsStream>),
}

/// The direction to a socket. A write that was not complete is tried again with the same bytes.
pub enum SocketWrite {
    Tcp(TcpWrite),
    Tls(Rc<TlsStream>),
}

impl AsyncRead for SocketRead {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => half.poll_read(context, space),
            Self::Tls(stream) => stream.poll_read(context, space),
        }
    }
}

impl AsyncWrite for SocketWrite {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(half) => half.poll_write(context, bytes),
            Self::Tls(stream) => stream.poll_write(context, &[IoSlice::new(bytes)]),
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
        }
    }
}
