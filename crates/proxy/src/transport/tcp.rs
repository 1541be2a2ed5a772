//! The two directions of a plain TCP connection.
//!
//! Both try first and ask afterwards: the runtime is asked to watch a socket only once that has nothing to give or no
//! room to take. Being told each time that it may be tried would cost more. The system calls are made without the C
//! library, whose wrappers look each time whether their thread is to be cancelled.

use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Reads that one task makes in a row before others get their turn.
const MAX_STREAK: u8 = 64;
/// Writes up to this size are tried without asking. Of a larger one a part may be left, and then the runtime should
/// know that there is no room.
const MAX_TRIED: usize = 16 * 1024;

/// What comes from a peer.
pub struct TcpRead {
    half: OwnedReadHalf,
    /// Reads that gave something since the last that did not.
    streak: u8,
}

impl TcpRead {
    pub fn new(half: OwnedReadHalf) -> Self {
        Self { half, streak: 0 }
    }

    #[inline]
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_read_ready(context)
    }

    /// Ready when a read may give something, as far as the runtime knows.
    #[inline]
    pub fn poll_promising(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.stream().try_io(Interest::READABLE, || Ok(())) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(_) => {
                self.streak = 0;
                self.poll_readable(context)
            }
        }
    }

    /// See [`super::ReadHalf::is_dead`].
    pub fn is_dead(&self) -> bool {
        // An event may be left over from the last response; only a read tells.
        let read = self.stream().try_read(&mut [0; 1]);
        !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    #[inline]
    pub fn poll_read(&mut self, context: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.streak >= MAX_STREAK {
            self.streak = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            match receive(self.stream(), space.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.streak = 0;
                    ready!(self.stream().poll_read_ready(context))?;
                }
                received => {
                    self.streak += 1;
                    return Poll::Ready(received.map(|count| space.advance(count)));
                }
            }
        }
    }

    fn stream(&self) -> &TcpStream {
        self.half.as_ref()
    }
}

impl AsRef<TcpStream> for TcpRead {
    fn as_ref(&self) -> &TcpStream {
        self.stream()
    }
}

/// Reads what is there.
#[inline]
fn receive(stream: &TcpStream, space: &mut [u8]) -> io::Result<usize> {
    let mut drained = None;
    let received = stream.try_io(Interest::READABLE, || {
        let (count, _) = recv(stream, &mut *space, RecvFlags::empty())?;
        if 0 < count && count < space.len() {
            // Less than there was room for: the next read has to wait for an event, which this tells the runtime.
            drained = Some(count);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(count)
    });
    drained.map_or(received, Ok)
}

/// What goes to a peer.
pub struct TcpWrite(OwnedWriteHalf);

impl TcpWrite {
    pub fn new(half: OwnedWriteHalf) -> Self {
        Self(half)
    }

    #[inline]
    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.len() <= MAX_TRIED {
            let stream: &TcpStream = self.0.as_ref();
            let sent = stream.try_io(Interest::WRITABLE, || {
                Ok(send(stream, bytes, SendFlags::NOSIGNAL)?)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    #[inline]
    pub fn poll_write_vectored(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, parts)
    }

    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    /// See [`super::WriteHalf::reset`].
    pub fn reset(self) -> io::Result<()> {
        let stream: &TcpStream = self.0.as_ref();
        let set = stream.set_zero_linger();
        // Without this the half would say a proper good-bye when it goes.
        self.0.forget();
        set
    }
}

impl AsRef<TcpStream> for TcpWrite {
    fn as_ref(&self) -> &TcpStream {
        self.0.as_ref()
    }
}
