//! TLS handshakes, with clients and with upstreams.

use super::tls::{TlsStream, Wire, flush_records, read_records};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{Accepted, Acceptor, ClientHello};
use rustls::{CipherSuite, ClientConfig, Connection, ProtocolVersion, ServerConfig};
use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};
use tokio::net::TcpStream;
use weir_plugin::TlsAgreement;

/// A handshake with a client that went well.
pub struct Handshake {
    /// The connection.
    pub stream: TlsStream,
    /// The server name that the client asked for, in lower case.
    pub server_name: Option<Arc<str>>,
    /// The protocol that was agreed on.
    pub protocol: Option<Vec<u8>>,
    /// The certificates that the client showed; its own is the first.
    pub client_certificates: Vec<CertificateDer<'static>>,
    /// The version and the cipher suite.
    pub agreement: Option<TlsAgreement>,
}

/// Shakes hands with a client; `choose` gives the configuration for what it says and the server name, in lower case,
/// that it asks for.
///
/// # Errors
/// The connection is lost, the client speaks no TLS, or nothing is configured for it.
pub async fn accept(
    mut tcp: TcpStream,
    choose: impl FnOnce(&ClientHello<'_>, Option<&str>) -> Option<Arc<ServerConfig>>,
) -> io::Result<Handshake> {
    let accepted = read_hello(&mut tcp).await?;
    let hello = accepted.client_hello();
    let server_name = hello.server_name().map(|name| name.to_ascii_lowercase().into());
    let Some(config) = choose(&hello, server_name.as_deref()) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no certificate for the server name",
        ));
    };
    finish(tcp, accepted, server_name, config).await
}

/// Goes on with a handshake whose first message was read.
///
/// # Errors
/// The connection is lost, or the two sides have nothing in common.
pub(super) async fn finish(
    mut tcp: TcpStream,
    accepted: Accepted,
    server_name: Option<Arc<str>>,
    config: Arc<ServerConfig>,
) -> io::Result<Handshake> {
    let tls = match accepted.into_connection(config) {
        Ok(tls) => tls,
        Err((error, mut alert)) => {
            std::future::poll_fn(|context| {
                // If the client takes nothing, it will see the end of the connection.
                let tcp = &mut tcp;
                let _is_told = alert.write(&mut Wire { tcp, context });
                Poll::Ready(())
            })
            .await;
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
    };
    let mut tls = Connection::Server(tls);
    let readable = complete(&mut tcp, &mut tls).await?;
    Ok(Handshake {
        server_name,
        protocol: tls.alpn_protocol().map(<[u8]>::to_vec),
        client_certificates: tls.peer_certificates().unwrap_or_default().to_vec(),
        agreement: tls
            .protocol_version()
            .zip(tls.negotiated_cipher_suite())
            .map(|(version, suite)| agreement(version, suite.suite())),
        stream: TlsStream::new(tcp, tls, readable),
    })
}

/// What was agreed on, as OpenSSL names it.
pub fn agreement(version: ProtocolVersion, suite: CipherSuite) -> TlsAgreement {
    TlsAgreement {
        version: match version {
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "TLSv1.2",
        },
        cipher: match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
            CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
            CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
            CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
            CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
            // The provider has no others.
            _ => "",
        },
    }
}

/// Shakes hands with a server of this name.
///
/// # Errors
/// The connection is lost, the server speaks no TLS, or its certificate is not good.
pub async fn connect(
    mut tcp: TcpStream,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
) -> io::Result<TlsStream> {
    let tls = rustls::ClientConnection::new(config, name)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let mut tls = Connection::Client(tls);
    let readable = complete(&mut tcp, &mut tls).await?;
    Ok(TlsStream::new(tcp, tls, readable))
}

/// The first message, once it is whole. A peer that sends an invalid one gets an alert.
pub(super) fn accepted(acceptor: &mut Acceptor, wire: &mut Wire<'_, '_>) -> io::Result<Option<Accepted>> {
    acceptor.accept().map_err(|(error, mut alert)| {
        let _is_told = alert.write(wire);
        io::Error::new(io::ErrorKind::InvalidData, error)
    })
}

async fn read_hello(tcp: &mut TcpStream) -> io::Result<Accepted> {
    let mut acceptor = Acceptor::default();
    std::future::poll_fn(|context| {
        loop {
            let wire = &mut Wire { tcp, context };
            match acceptor.read_tls(wire) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
            if let Some(accepted) = accepted(&mut acceptor, wire)? {
                return Poll::Ready(Ok(accepted));
            }
        }
    })
    .await
}

/// Goes on until both sides are done; gives the number of decrypted bytes that came with it.
async fn complete(tcp: &mut TcpStream, tls: &mut Connection) -> io::Result<usize> {
    std::future::poll_fn(|context| {
        let mut readable = 0;
        loop {
            ready!(flush_records(tcp, tls, context))?;
            if !tls.is_handshaking() {
                return Poll::Ready(Ok(readable));
            }
            readable = match ready!(read_records(tcp, tls, context))? {
                Some(readable) => readable,
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            };
        }
    })
    .await
}
