//! Connections to servers that filters ask: names, TLS by the rules of a filter, and proxies on the way. What is said over
//! them is in [`crate::subrequest`] and [`crate::conversation`].

use crate::halves::{self, ReadHalf, WriteHalf};
use crate::pool::PoolKey;
use crate::transport;
use crate::worker::{Worker, WorkerSnapshot};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::any::Any;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_plugin::{Connector, HttpProxy, Verify};
use weir_snapshot::ClientTls;

/// Most bytes of a proxy's answer to `CONNECT`.
const MAX_CONNECT_ANSWER: usize = 16 * 1024;

/// How a server is met over TLS.
#[derive(Clone)]
pub struct TlsTarget {
    /// Distinguishes connections that were made by different rules.
    pub id: u64,
    pub name: ServerName<'static>,
    pub config: Arc<ClientConfig>,
}

/// The first address of a connection, and how the server is reached from there.
pub struct ConnectTarget {
    pub address: SocketAddr,
    pub tls: Option<TlsTarget>,
    /// The proxy, if the address is its own, and the server that it connects to.
    pub proxy: Option<ProxyTarget>,
}

/// A proxy on the way.
pub struct ProxyTarget {
    pub rules: HttpProxy,
    /// The server: `host:port`.
    pub server: String,
}

impl ConnectTarget {
    /// The key for pooling connections that lead the same way.
    pub fn pool_key(&self) -> PoolKey {
        PoolKey {
            address: self.address,
            tls: self.tls.as_ref().map(|tls| (tls.id, tls.name.clone())),
        }
    }

    /// Finds the way to a server.
    pub async fn find(
        worker: &Worker,
        serving: &WorkerSnapshot,
        (host, port): (&str, u16),
        tls: Option<Verify>,
        connector: Option<&Connector>,
    ) -> io::Result<Self> {
        let tls = tls
            .map(|verify| tls_way(serving, host, verify, connector))
            .transpose()?;
        let proxy = connector.and_then(|connector| connector.proxy.as_ref());
        let (first_host, first_port) = match proxy {
            Some(proxy) => (proxy.host.as_str(), proxy.port),
            None => (host, port),
        };
        let ip = match first_host.parse() {
            Ok(ip) => ip,
            Err(_) => {
                let resolved = worker.resolver.resolve(first_host, Instant::now()).await;
                resolved.map_err(|_| io::ErrorKind::NotFound)?
            }
        };
        Ok(Self {
            address: SocketAddr::new(ip, first_port),
            tls,
            proxy: proxy.map(|proxy| ProxyTarget {
                rules: proxy.clone(),
                server: match host.contains(':') {
                    true => format!("[{host}]:{port}"),
                    false => format!("{host}:{port}"),
                },
            }),
        })
    }

    /// Opens a connection, with TLS if the server is met over it.
    pub async fn open(&self) -> io::Result<(ReadHalf, WriteHalf)> {
        let mut stream = self.dial().await?;
        let Some(tls) = &self.tls else {
            return Ok(halves::plain(stream));
        };
        if let Some(proxy) = &self.proxy {
            tunnel(&mut stream, proxy).await?;
        }
        secure(stream, tls).await
    }

    /// Opens a connection without TLS.
    pub async fn dial(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Goes on under TLS.
pub async fn secure(stream: TcpStream, tls: &TlsTarget) -> io::Result<(ReadHalf, WriteHalf)> {
    let stream = transport::connect(stream, Arc::clone(&tls.config), tls.name.clone()).await?;
    Ok(halves::secure(stream))
}

/// The rules for a server that is met by this name.
pub fn tls_way(
    serving: &WorkerSnapshot,
    host: &str,
    verify: Verify,
    connector: Option<&Connector>,
) -> io::Result<TlsTarget> {
    let ad_hoc_tls = &serving.published.snapshot.ad_hoc_tls;
    let own;
    let rules = match connector {
        None => ad_hoc_tls.tls(verify == Verify::Yes)?,
        Some(connector) => {
            own = prepared(serving, connector)?;
            &own
        }
    };
    let name = match &rules.name {
        Some(name) => name.clone(),
        None => ServerName::try_from(host.to_owned()).map_err(|_| io::ErrorKind::InvalidInput)?,
    };
    Ok(TlsTarget {
        id: rules.id,
        name,
        config: Arc::clone(&rules.config),
    })
}

/// A connector's rules, made once.
fn prepared(serving: &WorkerSnapshot, connector: &Connector) -> io::Result<Arc<ClientTls>> {
    let place = connector.prepared();
    let made = match place.get() {
        Some(made) => made,
        None => {
            let ad_hoc_tls = &serving.published.snapshot.ad_hoc_tls;
            let made = ad_hoc_tls.own(&connector.tls, connector.id()).map_err(|fault| {
                tracing::warn!(
                    field = %fault.path,
                    reason = fault.message,
                    "the TLS settings of a plugin are invalid; its server is not called"
                );
                io::ErrorKind::InvalidInput
            })?;
            place.get_or_init(|| Arc::new(made) as Arc<dyn Any + Send + Sync>)
        }
    };
    let made = Arc::clone(made).downcast::<ClientTls>();
    made.map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Makes a proxy connect to the server (RFC 9110, 9.3.6). Nothing comes after its answer before the TLS handshake
/// begins.
async fn tunnel(stream: &mut TcpStream, proxy: &ProxyTarget) -> io::Result<()> {
    let server = &proxy.server;
    let mut message = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n");
    if let Some(authorization) = &proxy.rules.authorization {
        message.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    message.push_str("\r\n");
    stream.write_all(message.as_bytes()).await?;
    let mut answer = Vec::with_capacity(256);
    while !answer.ends_with(b"\r\n\r\n") {
        let mut some = [0; 1024];
        let count = stream.read(&mut some).await?;
        if count == 0 || answer.len() + count > MAX_CONNECT_ANSWER {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        answer.extend_from_slice(&some[..count]);
    }
    match answer.as_slice() {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', _, b' ', b'2', ..] => Ok(()),
        _ => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

/// A message for a proxy that forwards it: the target names the server (RFC 9112, 3.2.2).
pub fn absolute_form(message: &[u8], proxy: &ProxyTarget) -> Vec<u8> {
    let method = message.iter().position(|byte| *byte == b' ').unwrap_or(0);
    let (method, rest) = message.split_at((method + 1).min(message.len()));
    let line = rest
        .windows(2)
        .position(|pair| pair == b"\r\n")
        .map_or(0, |at| at + 2);
    let (line, rest) = rest.split_at(line);
    let authorization = match &proxy.rules.authorization {
        Some(value) => format!("Proxy-Authorization: {value}\r\n"),
        None => String::new(),
    };
    let server = proxy.server.as_bytes();
    [method, b"http://", server, line, authorization.as_bytes(), rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_asked_for_the_server() {
        let proxy = |authorization: Option<&str>| ProxyTarget {
            rules: HttpProxy {
                host: "proxy".into(),
                port: 3128,
                authorization: authorization.map(str::to_owned),
            },
            server: "api:8080".into(),
        };
        let message = b"POST /a?b HTTP/1.1\r\nHost: api\r\n\r\nx\r\ny";
        for (authorization, expected) in [
            (
                None,
                "POST http://api:8080/a?b HTTP/1.1\r\nHost: api\r\n\r\nx\r\ny",
            ),
            (
                Some("Basic eA=="),
                "POST http://api:8080/a?b HTTP/1.1\r\nProxy-Authorization: Basic eA==\r\nHost: api\r\n\r\nx\r\ny",
            ),
        ] {
            let head = absolute_form(message, &proxy(authorization));
            assert_eq!(String::from_utf8_lossy(&head), expected);
        }
    }
}
