//! A TLS connection: rustls between the engine and a TCP stream.
//!
//! One task uses a connection at a time, so both halves wake the same one. A write is reported as done when the
//! records that it became have been given to the kernel; until then it has to be tried again with the same bytes.

use rustls::Connection;
use std::cell::RefCell;
use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Most plain bytes that become records in one go: as many as a usual buffer has, so that a slow peer holds little.
const MAX_PENDING: usize = 64 * 1024;

/// A connection under TLS whose handshake is over.
pub struct TlsStream(RefCell<State>);

struct State {
    tcp: TcpStream,
    tls: Connection,
    /// Decrypted bytes that nobody has read yet.
    readable: usize,
    /// Plain bytes of the current write whose records are not all written yet.
    accepted: usize,
    /// Dropped without a good-bye.
    is_reset: bool,
}

impl TlsStream {
    /// A connection after its handshake; `readable` decrypted bytes may have come with it.
    pub(super) fn new(tcp: TcpStream, mut tls: Connection, readable: usize) -> Self {
        tls.set_buffer_limit(Some(MAX_PENDING));
        Self(RefCell::new(State {
            tcp,
            tls,
            readable,
            accepted: 0,
            is_reset: false,
        }))
    }

    /// Whether both sides have agreed on HTTP/2.
    pub fn speaks_http2(&self) -> bool {
        self.0.borrow().tls.alpn_protocol() == Some(b"h2")
    }

    /// Ready when a read may give something.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = self.0.borrow();
        if state.readable > 0 {
            return Poll::Ready(Ok(()));
        }
        state.tcp.poll_read_ready(context)
    }

    /// Reads once; nothing at the end of the stream.
    pub fn poll_read(&self, context: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_read(context, space)
    }

    /// Writes once.
    pub fn poll_write(&self, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut state = self.0.borrow_mut();
        if state.accepted == 0 {
            state.accepted = state.tls.writer().write_vectored(parts)?;
        }
        ready!(state.poll_flush(context))?;
        Poll::Ready(Ok(std::mem::take(&mut state.accepted)))
    }

    /// Says good-bye.
    pub fn poll_shutdown(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.borrow_mut();
        state.tls.send_close_notify();
        ready!(state.poll_flush(context))?;
        Pin::new(&mut state.tcp).poll_shutdown(context)
    }

    /// See [`super::ReadHalf::is_dead`]. What is no data, such as a session ticket, is taken in.
    pub fn is_dead(&self) -> bool {
        let mut state = self.0.borrow_mut();
        let mut byte = [0];
        let mut space = ReadBuf::new(&mut byte);
        state
            .poll_read(&mut Context::from_waker(Waker::noop()), &mut space)
            .is_ready()
    }

    /// The connection ends with a reset when it is dropped.
    pub fn set_reset(&self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.is_reset = true;
        state.tcp.set_zero_linger()
    }
}

impl Drop for TlsStream {
    fn drop(&mut self) {
        let state = self.0.get_mut();
        if !state.is_reset {
            state.tls.send_close_notify();
            // If the peer takes no more, it will not miss it.
            let _is_told = state.poll_flush(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl State {
    fn poll_read(&mut self, context: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.tls.reader().read(space.initialize_unfilled()) {
                Ok(count) => {
                    space.advance(count);
                    self.readable = self.readable.saturating_sub(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            self.readable = ready!(read_records(&mut self.tcp, &mut self.tls, context))?.unwrap_or_default();
            if self.tls.wants_write() && self.accepted == 0 {
                // An answer of TLS's own, such as to a change of keys. What cannot go now goes with the next write.
                let _is_flushed = self.poll_flush(context)?;
            }
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        give_out(&mut self.tcp, &mut self.tls, context)
    }
}

/// Reads once from the network and decrypts what came; gives the number of decrypted bytes that wait, and `None` at
/// the end of the stream.
pub(super) fn read_records(
    tcp: &mut TcpStream,
    tls: &mut Connection,
    context: &mut Context<'_>,
) -> Poll<io::Result<Option<usize>>> {
    match tls.read_tls(&mut Wire { tcp, context }) {
        Ok(0) => return Poll::Ready(Ok(None)),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
        Err(error) => return Poll::Ready(Err(error)),
    }
    match tls.process_new_packets() {
        Ok(state) => Poll::Ready(Ok(Some(state.plaintext_bytes_to_read()))),
        Err(error) => {
            // The peer should learn why, if it still listens.
            let _is_told = give_out(tcp, tls, context);
            Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)))
        }
    }
}

/// Writes all records that wait.
pub(super) fn give_out(
    tcp: &mut TcpStream,
    tls: &mut Connection,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while tls.wants_write() {
        match tls.write_tls(&mut Wire { tcp, context }) {
            Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
    Poll::Ready(Ok(()))
}

/// The TCP stream as rustls wants it; whoever would have to wait is woken.
pub(super) struct Wire<'w, 'c> {
    pub tcp: &'w mut TcpStream,
    pub context: &'w mut Context<'c>,
}

fn or_would_block<T>(poll: Poll<io::Result<T>>) -> io::Result<T> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl Read for Wire<'_, '_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let mut space = ReadBuf::new(space);
        or_would_block(Pin::new(&mut *self.tcp).poll_read(self.context, &mut space))?;
        Ok(space.filled().len())
    }
}

impl Write for Wire<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        or_would_block(Pin::new(&mut *self.tcp).poll_write(self.context, bytes))
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match parts {
            // One part goes with the cheaper call.
            [part] => self.write(part),
            parts => or_would_block(Pin::new(&mut *self.tcp).poll_write_vectored(self.context, parts)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
