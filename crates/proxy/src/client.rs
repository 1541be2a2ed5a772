//! A client's connection, or its stream, as a call has it: what is read from it and written to it. Heads are read in
//! [`crate::connection`].

use crate::forwarded;
use crate::halves::WriteHalf;
use crate::multiplex::stream::Stream;
use crate::reader::Reader;
use crate::timer::Timer;
use rustls::pki_types::CertificateDer;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use weir_http1::HeadSlot;
use weir_plugin::{ClientCertificates, Exchange, TlsAgreement};
use weir_snapshot::ServerIdentity;

/// Bytes that a client must take before the write time-out begins again: one now and then holds a call as none does.
const LEAST_TAKEN: usize = 1024;

/// The two directions of a client's connection.
pub struct Client {
    pub reader: Reader,
    pub write: WriteHalf,
    pub timer: Timer,
    /// The `X-Forwarded-*` lines of the last call that was forwarded.
    pub forwarded_lines: forwarded::Lines,
    /// The head of its last request.
    pub last_head: HeadSlot,
    pub peer: SocketAddr,
    pub local: SocketAddr,
    /// The TLS session.
    pub tls: Option<Rc<TlsSession>>,
}

/// Both ends of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    pub peer: SocketAddr,
    pub local: SocketAddr,
}

/// Facts about the client from the TLS handshake.
pub struct TlsSession {
    /// The server name that it asked for.
    pub server_name: Option<Arc<str>>,
    /// The version and the cipher suite; `None`: unknown.
    pub agreement: Option<TlsAgreement>,
    /// The certificates that it has shown.
    pub certificates: Option<Arc<ClientCertificates>>,
    /// The rules by which it was made; `None`: nothing is configured for its name.
    pub presented: Option<Arc<ServerIdentity>>,
    /// Whether HTTP/2 was agreed on.
    pub is_http2: bool,
    /// The line of a response's head that announces HTTP/3.
    pub alternative: Option<Rc<[u8]>>,
}

/// The certificates of a client, on a connection that was made by these rules.
pub fn presented_certificates(
    chain: &[CertificateDer<'static>],
    presented: Option<&ServerIdentity>,
) -> Option<Arc<ClientCertificates>> {
    let is_verified = presented.is_some_and(ServerIdentity::verifies_clients);
    (!chain.is_empty()).then(|| {
        let chain = chain.iter().map(|certificate| certificate.to_vec()).collect();
        Arc::new(ClientCertificates { chain, is_verified })
    })
}

impl Client {
    /// Sets the exchange's data about the client.
    pub fn fill_client_info(&self, exchange: &mut Exchange) {
        let request = &mut exchange.request;
        request.peer = self.peer;
        request.client = self.peer.ip();
        request.local = self.local;
        if let Some(tls) = &self.tls {
            request.is_tls = true;
            request.tls = tls.agreement;
            request.sni.clone_from(&tls.server_name);
            request.client_certificates.clone_from(&tls.certificates);
        }
    }

    /// The stream that the client is, if it speaks HTTP/2 or HTTP/3.
    #[inline]
    pub fn stream(&self) -> Option<&Stream> {
        match &self.write {
            WriteHalf::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// Ends the connection with a reset: the client must not take what it got for the whole.
    pub fn reset(self) {
        self.write.reset();
    }

    /// Writes `first` and then `second` to the client. While it waits, [`LEAST_TAKEN`] bytes or the rest must go within
    /// each `timeout`, and a stream's own time must not be over. `progress` is called meanwhile, for what is to go on.
    pub async fn write(
        &mut self,
        first: &[u8],
        second: &[u8],
        timeout: Duration,
        mut progress: impl FnMut(&mut Context<'_>),
    ) -> io::Result<()> {
        let (mut written, mut due): (usize, Option<usize>) = (0, None);
        std::future::poll_fn(|context| {
            while written < first.len() + second.len() {
                let write = Pin::new(&mut self.write);
                let attempted = match written.checked_sub(first.len()) {
                    Some(behind) => write.poll_write(context, &second[behind..]),
                    None if second.is_empty() => write.poll_write(context, &first[written..]),
                    None => {
                        let parts = [IoSlice::new(&first[written..]), IoSlice::new(second)];
                        write.poll_write_vectored(context, &parts)
                    }
                };
                match attempted {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => {
                        written += count;
                        due = due.filter(|due| written < *due);
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        if due.is_none() {
                            self.timer.set(Instant::now(), timeout);
                            due = Some(written + LEAST_TAKEN);
                        }
                        progress(context);
                        let stream = self.reader.stream();
                        if stream.is_none_or(|it| it.poll_closed(context).is_pending()) {
                            ready!(self.timer.poll_expired(context));
                        }
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }
}
