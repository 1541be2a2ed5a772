//! Calls over HTTP/3, all on one connection.

use super::client::{Call, CallResult, ClientError, Head, stream_head};
use super::http2::{runtime, wait};
use super::support::{client_config, list};
use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::Code;
use h3_quinn::{OpenStreams, RecvStream, SendStream};
use http::HeaderMap;
use quinn::crypto::rustls::QuicClientConfig;
use rustls::ClientConfig;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

pub struct Client {
    sender: Mutex<SendRequest<OpenStreams, Bytes>>,
    runtime: Runtime,
}

/// A QUIC connection that offers this, with what keeps it going.
pub fn connect(
    address: SocketAddr,
    name: &str,
    config: Arc<ClientConfig>,
) -> (Runtime, Result<quinn::Connection, quinn::ConnectionError>) {
    let runtime = runtime();
    let connection = wait(&runtime, async {
        let mut endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let config = QuicClientConfig::try_from(config).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
        endpoint.connect(address, name).unwrap().await
    });
    (runtime, connection)
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let (runtime, connection) = connect(address, "localhost", client_config(&[b"h3"]));
        Self::over(runtime, connection.unwrap())
    }

    /// One that uses this connection.
    pub fn over(runtime: Runtime, connection: quinn::Connection) -> Self {
        let sender = wait(&runtime, async {
            let view = h3_quinn::Connection::new(connection);
            let (mut driver, sender) = h3::client::new(view).await.unwrap();
            tokio::spawn(async move { std::future::poll_fn(|context| driver.poll_close(context)).await });
            sender
        });
        Self {
            sender: Mutex::new(sender),
            runtime,
        }
    }

    pub fn begin(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        has_body: bool,
    ) -> CallResult<'_> {
        let request = stream_head(method, "https", target, fields);
        let mut sender = self.sender.lock().unwrap();
        let stream = wait(&self.runtime, async {
            let mut stream = sender.send_request(request).await.map_err(|_| ClientError)?;
            if !has_body {
                // An answer may have made it needless.
                let _ended = stream.finish().await;
            }
            Ok(stream)
        })?;
        let (send, receive) = stream.split();
        Ok(Box::new(Calling {
            runtime: &self.runtime,
            send,
            receive,
            trailers: HeaderMap::new(),
        }))
    }
}

struct Calling<'c> {
    runtime: &'c Runtime,
    send: RequestStream<SendStream<Bytes>, Bytes>,
    receive: RequestStream<RecvStream, Bytes>,
    trailers: HeaderMap,
}

impl Call for Calling<'_> {
    fn send(&mut self, data: &[u8]) -> Result<(), ClientError> {
        let data = Bytes::copy_from_slice(data);
        wait(self.runtime, async {
            self.send.send_data(data).await.map_err(|_| ClientError)
        })
    }

    fn finish(&mut self, trailers: &[(&str, &str)]) {
        wait(self.runtime, async {
            if !trailers.is_empty() {
                // The test may have ended.
                let _sent = self.send.send_trailers(list(trailers)).await;
            }
            let _sent = self.send.finish().await;
        });
    }

    fn next_head(&mut self) -> Result<Head, ClientError> {
        let response = wait(self.runtime, async { self.receive.recv_response().await });
        let (parts, ()) = response.map_err(|_| ClientError)?.into_parts();
        Ok(Head {
            status: parts.status.as_u16(),
            fields: parts.headers,
        })
    }

    fn piece(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        wait(self.runtime, async {
            match self.receive.recv_data().await {
                Ok(Some(mut data)) => Ok(Some(data.copy_to_bytes(data.remaining()).to_vec())),
                Ok(None) => {
                    let trailers = self.receive.recv_trailers().await.map_err(|_| ClientError)?;
                    self.trailers = trailers.unwrap_or_default();
                    Ok(None)
                }
                Err(_) => Err(ClientError),
            }
        })
    }

    fn trailers(&mut self) -> HeaderMap {
        std::mem::take(&mut self.trailers)
    }

    fn cancel(mut self: Box<Self>) {
        let _guard = self.runtime.enter();
        self.send.stop_stream(Code::H3_REQUEST_CANCELLED);
        // Dropping it cancels the answer; h3-quinn has no way to cancel while it waits for some.
        drop(self.receive);
    }
}
