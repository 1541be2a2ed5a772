//! The first message of a TLS handshake, kept as it came: it says who it is for, and then it is
//! answered here or passed on.

use super::handshake::{Handshake, accepted, finish};
use super::tls::Wire;
use rustls::ServerConfig;
use rustls::server::{Accepted, Acceptor};
use std::io::{self, Read};
use std::sync::Arc;
use std::task::Poll;
use tokio::net::TcpStream;

/// The most that is read for it. The largest that TLS allows is 64 KiB; those of clients are a few hundred bytes, and
/// a few thousand with keys that withstand quantum computers.
const MAX_BYTES: usize = 64 * 1024;

/// A client's first message.
pub struct ClientHello {
    accepted: Accepted,
    /// All that was read of the connection.
    pub bytes: Vec<u8>,
}

impl ClientHello {
    /// The server name that the client asks for, in lower case.
    pub fn server_name(&self) -> Option<Arc<str>> {
        let hello = self.accepted.client_hello();
        hello.server_name().map(|name| name.to_ascii_lowercase().into())
    }

    /// Answers it, and goes on with the handshake.
    ///
    /// # Errors
    /// The connection is lost, or the two sides have nothing in common.
    pub async fn answer(self, tcp: TcpStream, config: Arc<ServerConfig>) -> io::Result<Handshake> {
        let name = self.server_name();
        finish(tcp, self.accepted, name, config).await
    }
}

/// Keeps what is read.
struct RecordingReader<'k, R> {
    from: R,
    kept: &'k mut Vec<u8>,
}

impl<R: Read> Read for RecordingReader<'_, R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(space)?;
        self.kept.extend_from_slice(&space[..count]);
        Ok(count)
    }
}

/// Reads the first message of a handshake. The caller bounds the time.
///
/// # Errors
/// The connection is lost, or the client speaks no TLS.
pub async fn read_hello(tcp: &mut TcpStream) -> io::Result<ClientHello> {
    let mut acceptor = Acceptor::default();
    let mut bytes = Vec::new();
    let accepted = std::future::poll_fn(|context| {
        loop {
            let mut wire = Wire { tcp, context };
            let keeping = &mut RecordingReader {
                from: &mut wire,
                kept: &mut bytes,
            };
            match acceptor.read_tls(keeping) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) if bytes.len() > MAX_BYTES => {
                    return Poll::Ready(Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the first message is too long",
                    )));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
            if let Some(accepted) = accepted(&mut acceptor, &mut wire)? {
                return Poll::Ready(Ok(accepted));
            }
        }
    })
    .await?;
    Ok(ClientHello { accepted, bytes })
}
