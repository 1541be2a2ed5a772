//! Calls over HTTP/2, all on one connection.

use super::client::{Call, CallResult, ClientError, Head, stream_head};
use super::support::{TIMEOUT, client_config, eventually, list};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use rustls::pki_types::ServerName;
use std::future::Future;
use std::net::SocketAddr;
use std::task::Poll;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

/// A runtime whose connections go on while the test does other things.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// Waits, for as long as a test may.
pub fn wait<T>(runtime: &Runtime, work: impl Future<Output = T>) -> T {
    runtime.block_on(async {
        tokio::time::timeout(TIMEOUT, work)
            .await
            .expect("it takes too long")
    })
}

pub struct Client {
    runtime: Runtime,
    sender: SendRequest<Bytes>,
    is_tls: bool,
}

impl Client {
    pub fn new(address: SocketAddr, is_tls: bool) -> Self {
        let runtime = runtime();
        let sender = wait(&runtime, async {
            let tcp = TcpStream::connect(address).await.unwrap();
            tcp.set_nodelay(true).unwrap();
            if is_tls {
                let name = ServerName::try_from("localhost").unwrap();
                let connector = TlsConnector::from(client_config(&[b"h2", b"http/1.1"]));
                let tls = connector.connect(name, tcp).await.unwrap();
                let (sender, connection) = h2::client::handshake(tls).await.unwrap();
                tokio::spawn(connection);
                sender
            } else {
                let (sender, connection) = h2::client::handshake(tcp).await.unwrap();
                tokio::spawn(connection);
                sender
            }
        });
        Self {
            runtime,
            sender,
            is_tls,
        }
    }

    pub fn begin(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        has_body: bool,
    ) -> CallResult<'_> {
        self.send(stream_head(method, self.scheme(), target, fields), has_body)
    }

    /// Begins a WebSocket (RFC 8441).
    pub fn websocket(&self, target: &str, fields: &[(&str, &str)]) -> Box<dyn Call + '_> {
        // Only then is it known that the gateway can do this.
        eventually("streams can become WebSockets", || {
            self.sender.is_extended_connect_protocol_enabled()
        });
        let mut request = stream_head("CONNECT", self.scheme(), target, fields);
        request
            .extensions_mut()
            .insert(Protocol::from_static("websocket"));
        self.send(request, true).unwrap()
    }

    fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    fn send(&self, request: Request<()>, has_body: bool) -> CallResult<'_> {
        let (response, stream) = wait(&self.runtime, async {
            let mut sender = self.sender.clone().ready().await.map_err(|_| ClientError)?;
            sender.send_request(request, !has_body).map_err(|_| ClientError)
        })?;
        Ok(Box::new(Calling {
            runtime: &self.runtime,
            response: Some(response),
            stream,
            body: None,
            trailers: HeaderMap::new(),
        }))
    }
}

struct Calling<'c> {
    runtime: &'c Runtime,
    response: Option<ResponseFuture>,
    stream: SendStream<Bytes>,
    body: Option<RecvStream>,
    trailers: HeaderMap,
}

impl Call for Calling<'_> {
    fn send(&mut self, data: &[u8]) -> Result<(), ClientError> {
        let mut data = Bytes::copy_from_slice(data);
        let stream = &mut self.stream;
        wait(self.runtime, async {
            while !data.is_empty() {
                stream.reserve_capacity(data.len());
                let room = match std::future::poll_fn(|context| stream.poll_capacity(context)).await {
                    Some(Ok(room)) => room,
                    _ => return Err(ClientError),
                };
                let piece = data.split_to(room.min(data.len()));
                stream.send_data(piece, false).map_err(|_| ClientError)?;
            }
            Ok(())
        })
    }

    fn finish(&mut self, trailers: &[(&str, &str)]) {
        // The test may have ended.
        let _sent = match trailers.is_empty() {
            true => self.stream.send_data(Bytes::new(), true),
            false => self.stream.send_trailers(list(trailers)),
        };
    }

    fn next_head(&mut self) -> Result<Head, ClientError> {
        let mut response = self.response.take().expect("a head is to come");
        let came = wait(self.runtime, async {
            std::future::poll_fn(|context| {
                if let Poll::Ready(Some(interim)) = response.poll_informational(context) {
                    return Poll::Ready(interim.map(|interim| (interim.into_parts().0, None)));
                }
                let final_one = std::task::ready!(std::pin::Pin::new(&mut response).poll(context));
                Poll::Ready(final_one.map(|it| {
                    let (parts, body) = it.into_parts();
                    (parts, Some(body))
                }))
            })
            .await
        });
        let (parts, body) = came.map_err(|_| ClientError)?;
        match body {
            Some(body) => self.body = Some(body),
            None => self.response = Some(response),
        }
        Ok(Head {
            status: parts.status.as_u16(),
            fields: parts.headers,
        })
    }

    fn piece(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        let body = self.body.as_mut().expect("a head came");
        let came = wait(self.runtime, async {
            loop {
                match body.data().await {
                    Some(Ok(data)) if data.is_empty() => {}
                    Some(Ok(data)) => {
                        let _released = body.flow_control().release_capacity(data.len());
                        return Ok(Ok(data.to_vec()));
                    }
                    Some(Err(_)) => return Err(ClientError),
                    None => return body.trailers().await.map(Err).map_err(|_| ClientError),
                }
            }
        })?;
        match came {
            Ok(data) => Ok(Some(data)),
            Err(trailers) => {
                self.trailers = trailers.unwrap_or_default();
                Ok(None)
            }
        }
    }

    fn trailers(&mut self) -> HeaderMap {
        std::mem::take(&mut self.trailers)
    }

    fn cancel(mut self: Box<Self>) {
        self.stream.send_reset(Reason::CANCEL);
    }
}
