//! Unary gRPC calls to a server that takes entries, one after another over an HTTP/2 connection that is kept.
//!
//! It is the client's half of <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>, with plain messages only.
//! The calls of clients do not pass here: those are forwarded as they come.

use super::connect::resolve;
use super::context::SinkContext;
use crate::halves::{ReadHalf, WriteHalf};
use crate::pool::dial;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request};
use rustls::pki_types::ServerName;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_plugin::LogGrpc;

/// Most bytes of an answer that are read.
const MAX_ANSWER: usize = 64 * 1024;

/// A connection that is kept.
pub struct Channel(SendRequest<Bytes>);

/// Both directions of a connection as one.
struct DuplexStream(ReadHalf, WriteHalf);

/// Sends a message, over the connection that was kept if it is still good, and gives the connection back.
///
/// # Errors
/// When the server has not taken the message.
pub async fn call(
    sink_context: &SinkContext,
    server: &LogGrpc,
    kept: Option<Channel>,
    message: &[u8],
) -> io::Result<Channel> {
    let kept = match kept {
        Some(Channel(sender)) => sender.ready().await.ok(),
        None => None,
    };
    let mut sender = match kept {
        Some(sender) => sender,
        None => connect(sink_context, server).await?,
    };
    let (answer, stream) = sender.send_request(request(server)?, false).map_err(failed)?;
    send(stream, frame(message)?).await?;
    good(answer).await?;
    Ok(Channel(sender))
}

async fn connect(sink_context: &SinkContext, server: &LogGrpc) -> io::Result<SendRequest<Bytes>> {
    let address = resolve(sink_context, &server.host, server.port).await?;
    let rules = match server.tls {
        None => None,
        Some(verify) => {
            let name = ServerName::try_from(server.host.clone()).map_err(|_| io::ErrorKind::InvalidInput)?;
            let published = sink_context.shared.published.load();
            let rules = published.snapshot.ad_hoc_tls.tls(verify)?;
            Some((Arc::clone(&rules.http2_config), name))
        }
    };
    let (read, write) = dial(address, rules).await?;
    let (sender, connection) = h2::client::handshake(DuplexStream(read, write))
        .await
        .map_err(failed)?;
    // It ends with the last sender; its errors reach the calls.
    tokio::task::spawn_local(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection for log entries has ended");
        }
    });
    sender.ready().await.map_err(failed)
}

fn request(server: &LogGrpc) -> io::Result<Request<()>> {
    let scheme = if server.tls.is_some() { "https" } else { "http" };
    let host = match server.host.contains(':') {
        true => format!("[{}]", server.host),
        false => server.host.clone(),
    };
    let mut request = Request::post(format!("{scheme}://{host}:{}{}", server.port, server.method))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", concat!("weir/", env!("CARGO_PKG_VERSION")));
    for (name, value) in &server.metadata {
        request = request.header(name, value);
    }
    request.body(()).map_err(io::Error::other)
}

/// The message after its flag (not compressed) and its length.
fn frame(message: &[u8]) -> io::Result<Bytes> {
    let length = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut framed = Vec::with_capacity(message.len() + 5);
    framed.push(0);
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(message);
    Ok(framed.into())
}

/// Sends as much at a time as the server has room for.
async fn send(mut stream: SendStream<Bytes>, mut body: Bytes) -> io::Result<()> {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        match poll_fn(|context| stream.poll_capacity(context)).await {
            Some(Ok(room)) => {
                let part = body.split_to(room.min(body.len()));
                stream.send_data(part, body.is_empty()).map_err(failed)?;
            }
            Some(Err(error)) => return Err(failed(error)),
            None => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
    Ok(())
}

/// Waits for the status, which stands in the trailers, or in the head of an answer that has nothing else.
async fn good(answer: ResponseFuture) -> io::Result<()> {
    let answer = answer.await.map_err(failed)?;
    if answer.status() != 200 {
        let message = format!("it has answered with status {}", answer.status().as_u16());
        return Err(io::Error::other(message));
    }
    if let Some(status) = status(answer.headers()) {
        return status;
    }
    let mut body = answer.into_body();
    discard(&mut body).await?;
    let trailers = body.trailers().await.map_err(failed)?.unwrap_or_default();
    status(&trailers).unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))
}

async fn discard(body: &mut RecvStream) -> io::Result<()> {
    let mut seen = 0;
    while let Some(data) = body.data().await {
        let length = data.map_err(failed)?.len();
        seen += length;
        if seen > MAX_ANSWER {
            return Err(io::ErrorKind::InvalidData.into());
        }
        body.flow_control().release_capacity(length).map_err(failed)?;
    }
    Ok(())
}

fn status(fields: &HeaderMap) -> Option<io::Result<()>> {
    let status = fields.get("grpc-status")?.as_bytes();
    Some(match status {
        b"0" => Ok(()),
        _ => {
            let status = String::from_utf8_lossy(&status[..status.len().min(8)]).into_owned();
            Err(io::Error::other(format!(
                "it has answered with gRPC status {status}"
            )))
        }
    })
}

fn failed(error: h2::Error) -> io::Error {
    match error.is_io() {
        true => error
            .into_io()
            .unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()),
        false => io::Error::other(error),
    }
}

impl AsyncRead for DuplexStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, space)
    }
}

impl AsyncWrite for DuplexStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.1).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.1).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.1).poll_shutdown(context)
    }
}
