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

/// Read from the network in one go: a whole record of the largest size (RFC 5246, 6.2.3) with its header.
const MAX_RECORD: usize = 5 + 16 * 1024 + 2048;
/// Decrypted bytes that wait from which on rustls takes no further records.
const MAX_READABLE: usize = 16 * 1024;

thread_local! {
    /// The buffer into which a worker reads records. Between reads it holds nothing.
    static RECORDS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A connection under TLS whose handshake is over.
pub struct TlsStream(RefCell<State>);

struct State {
    tcp: TcpStream,
    tls: Connection,
    /// Decrypted bytes that were not read yet.
    readable: usize,
    /// Bytes from the network for which rustls had no room yet.
    undecrypted: Vec<u8>,
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
            undecrypted: Vec::new(),
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
        if state.readable > 0 || !state.undecrypted.is_empty() {
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

    /// Sends the closing alert.
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
            self.readable = match self.undecrypted.is_empty() {
                true => ready!(self.receive(context))?,
                false => {
                    let waiting = std::mem::take(&mut self.undecrypted);
                    self.decrypt(&waiting, context)?
                }
            };
            if self.tls.wants_write() && self.accepted == 0 {
                // An answer of TLS's own, such as to a change of keys. What cannot go now goes with the next write.
                let _is_flushed = self.poll_flush(context)?;
            }
        }
    }

    /// Reads once from the network, up to a whole record, and decrypts what came; gives the number of decrypted bytes that
    /// wait. By itself rustls would read 4 KiB at a time.
    fn receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        RECORDS.with_borrow_mut(|space| {
            space.resize(MAX_RECORD, 0);
            let mut space = ReadBuf::new(space);
            ready!(Pin::new(&mut self.tcp).poll_read(context, &mut space))?;
            Poll::Ready(match space.filled() {
                // It has to know that the stream has ended.
                [] => self.tls.read_tls(&mut io::empty()),
                came => self.decrypt(came, context),
            })
        })
    }

    /// Decrypts what came from the network, as far as there is room; gives the number of decrypted bytes that wait.
    fn decrypt(&mut self, mut came: &[u8], context: &mut Context<'_>) -> io::Result<usize> {
        let mut readable = 0;
        while !came.is_empty() {
            if readable > MAX_READABLE {
                self.undecrypted = came.to_vec();
                break;
            }
            // Nothing is taken any more once the peer has said good-bye.
            if self.tls.read_tls(&mut came)? == 0 {
                break;
            }
            readable = process(&mut self.tcp, &mut self.tls, context)?;
        }
        Ok(readable)
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        flush_records(&mut self.tcp, &mut self.tls, context)
    }
}

/// Decrypts the records that are whole; gives the number of decrypted bytes that wait.
fn process(tcp: &mut TcpStream, tls: &mut Connection, context: &mut Context<'_>) -> io::Result<usize> {
    tls.process_new_packets()
        .map(|state| state.plaintext_bytes_to_read())
        .map_err(|error| {
            // The peer should learn why, if it still listens.
            let _is_told = flush_records(tcp, tls, context);
            io::Error::new(io::ErrorKind::InvalidData, error)
        })
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
    Poll::Ready(process(tcp, tls, context).map(Some))
}

/// Writes all records that wait.
pub(super) fn flush_records(
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

/// The TCP stream as rustls wants it; a task that would have to wait is woken.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{accept, connect};
    use rustls::pki_types::{PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore, ServerConfig};
    use std::sync::Arc;
    use tokio::net::TcpListener;

    async fn pair() -> (TlsStream, TlsStream) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("an authority");
        let provider = || Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let server = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a pair");
        let client = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let accepting = async {
            let (tcp, _) = listener.accept().await.expect("accepted");
            let server = Arc::new(server);
            accept(tcp, |_, _| Some(server))
                .await
                .expect("a handshake")
                .stream
        };
        let connecting = async {
            let tcp = TcpStream::connect(address).await.expect("connected");
            let name = ServerName::try_from("localhost").expect("a name");
            connect(tcp, Arc::new(client), name).await.expect("a handshake")
        };
        tokio::join!(accepting, connecting)
    }

    #[tokio::test]
    async fn records_of_all_sizes_come_whole_and_in_order() {
        let (server, client) = pair().await;
        // Parts that are less than a record, a whole one, and several; many small ones come in one read.
        let sizes = [1, 16 * 1024, 5_000, 100_000, 16 * 1024 + 1].into_iter();
        let sizes: Vec<usize> = sizes.chain(std::iter::repeat_n(3_000, 40)).collect();
        let sent: Vec<u8> = (0..sizes.iter().sum::<usize>())
            .map(|at| (at % 251) as u8)
            .collect();
        let sending = async {
            let mut rest = sent.as_slice();
            for size in &sizes {
                let (mut part, behind) = rest.split_at(*size);
                rest = behind;
                while !part.is_empty() {
                    let written =
                        std::future::poll_fn(|context| server.poll_write(context, &[IoSlice::new(part)]));
                    part = &part[written.await.expect("written")..];
                }
            }
            std::future::poll_fn(|context| server.poll_shutdown(context))
                .await
                .expect("ended");
        };
        let receiving = async {
            let mut received = Vec::new();
            // Less than a record at a time, so that decrypted bytes wait.
            let mut space = [0; 700];
            loop {
                let mut space = ReadBuf::new(&mut space);
                let read = std::future::poll_fn(|context| client.poll_read(context, &mut space));
                read.await.expect("read");
                match space.filled() {
                    [] => return received,
                    part => received.extend_from_slice(part),
                }
            }
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    }
}
