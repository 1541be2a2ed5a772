//! Speaking other protocols than HTTP for filters: the engine's side of a [`ProtocolDriver`]. What is said is the filter's.

use crate::buffer::Buffers;
use crate::outcome::ShortCircuit;
use crate::pool::{TaggedPoolKey, UpstreamConnection};
use crate::serve::RequestContext;
use crate::side_connection::{ConnectTarget, secure, tls_way};
use crate::timer::Timer;
use crate::worker::{Worker, WorkerSnapshot};
use std::any::Any;
use std::io;
use std::task::Poll;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_model::KeepalivePool;
use weir_plugin::{Conversation, ConversationTls, ProtocolDriver, Received, Step};

/// Most bytes that a dialogue may leave unread.
const MAX_UNREAD: usize = 1 << 20;
/// Most steps of a conversation, so that a dialogue that makes no progress ends.
const MAX_STEPS: usize = 10_000;

impl RequestContext<'_> {
    /// Speaks with another server, as long as the client waits. `None`: it came to nothing.
    pub async fn converse(
        &mut self,
        mut conversation: Box<Conversation>,
    ) -> Result<Option<Box<dyn Any>>, ShortCircuit> {
        let (client, worker) = (&mut *self.client, self.worker);
        let timeout = conversation.timeout;
        let is_done = {
            let spoken = tokio::time::timeout(timeout, speak(worker, self.serving, &mut conversation));
            let mut spoken = std::pin::pin!(spoken);
            std::future::poll_fn(|context| match spoken.as_mut().poll(context) {
                Poll::Ready(Ok(Ok(()))) => Poll::Ready(Ok(true)),
                Poll::Ready(_) => Poll::Ready(Ok(false)),
                Poll::Pending => client
                    .reader
                    .poll_closed(context, &worker.runtime)
                    .map(|()| Err(ShortCircuit::Gone)),
            })
            .await?
        };
        if !is_done {
            tracing::debug!(
                host = conversation.host,
                "connection of a plugin to its server failed"
            );
        }
        Ok(is_done.then(|| conversation.dialogue.finish()))
    }
}

async fn speak(worker: &Worker, serving: &WorkerSnapshot, conversation: &mut Conversation) -> io::Result<()> {
    let connector = conversation.connector.as_deref();
    let (at_once, later) = match conversation.tls {
        ConversationTls::None => (None, None),
        ConversationTls::AtOnce(verify) => (Some(verify), None),
        ConversationTls::OnRequest(verify) => (None, Some(verify)),
    };
    let host = conversation.host.clone();
    let mut way =
        ConnectTarget::find(worker, serving, (&host, conversation.port), at_once, connector).await?;
    let later = later
        .map(|verify| tls_way(serving, &host, verify, connector))
        .transpose()?;
    if way.proxy.take().is_some() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut end = way.pool_key();
    end.tls = end
        .tls
        .or_else(|| later.as_ref().map(|tls| (tls.id, tls.name.clone())));
    let key = TaggedPoolKey {
        end,
        tag: conversation.tag.clone(),
    };
    let bounds = conversation.keep.map(|(size, time)| KeepalivePool {
        size,
        idle_timeout_ms: time.as_millis().try_into().unwrap_or(u64::MAX),
        requests: 0,
    });
    let buffers = &worker.runtime.buffers;
    let dialogue = conversation.dialogue.as_mut();
    let now = Instant::now();
    let idle = (bounds.as_ref()).and_then(|bounds| worker.tagged_pool.take(&key, bounds, now));
    if let Some(mut connection) = idle {
        let first = dialogue.begin(false);
        match go_on(buffers, &mut connection, dialogue, first).await {
            Ok(is_clean) => {
                keep(worker, &key, connection, bounds.filter(|_| is_clean));
                return Ok(());
            }
            // The server may have closed the connection just before.
            Err(error) if connection.calls > 0 && is_closed(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let mut stream = way.dial().await?;
    let mut first = dialogue.begin(true);
    let halves = match (&way.tls, &later) {
        (Some(tls), _) => secure(stream, tls).await?,
        (None, Some(tls)) => {
            until_tls(&mut stream, dialogue, first).await?;
            let halves = secure(stream, tls).await?;
            first = dialogue.next(&mut Received::new(b""));
            halves
        }
        (None, None) => crate::halves::plain(stream),
    };
    let timer = Timer::new(Instant::now(), conversation.timeout);
    let mut connection = UpstreamConnection::of(halves, timer, &worker.metrics);
    let is_clean = go_on(buffers, &mut connection, dialogue, first).await?;
    keep(worker, &key, connection, bounds.filter(|_| is_clean));
    Ok(())
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof
    )
}

fn keep(
    worker: &Worker,
    key: &TaggedPoolKey,
    connection: Box<UpstreamConnection>,
    bounds: Option<KeepalivePool>,
) {
    if let Some(bounds) = bounds {
        let buffers = &worker.runtime.buffers;
        (worker.tagged_pool).put(key, connection, &bounds, Instant::now(), buffers);
    }
}

/// The dialogue before TLS begins. It never goes on without TLS.
async fn until_tls(stream: &mut TcpStream, dialogue: &mut dyn ProtocolDriver, first: Step) -> io::Result<()> {
    let mut unread = Vec::new();
    let mut step = first;
    for _ in 0..MAX_STEPS {
        match step {
            Step::StartTls if unread.is_empty() => return Ok(()),
            Step::Write(bytes) => stream.write_all(&bytes).await?,
            Step::Read => {
                let count = stream.read_buf(&mut unread).await?;
                if count == 0 || unread.len() > MAX_UNREAD {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        let mut received = Received::new(&unread);
        step = dialogue.next(&mut received);
        let consumed = received.consumed();
        unread.drain(..consumed);
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// The conversation over a connection; says whether that can be used again.
pub async fn go_on(
    buffers: &Buffers,
    connection: &mut UpstreamConnection,
    dialogue: &mut dyn ProtocolDriver,
    first: Step,
) -> io::Result<bool> {
    let mut step = first;
    for _ in 0..MAX_STEPS {
        match step {
            Step::Done => {
                connection.calls += 1;
                return Ok(connection.inbox.is_empty());
            }
            Step::Write(bytes) => write(connection, &bytes).await?,
            Step::Close(bytes) => {
                // The server may be gone already.
                let _is_told = write(connection, &bytes).await;
                return Ok(false);
            }
            Step::Read => {
                let UpstreamConnection { read, inbox, .. } = connection;
                let count =
                    std::future::poll_fn(|context| inbox.poll_fill(&mut *read, context, buffers, MAX_UNREAD));
                if count.await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Step::StartTls | Step::Fail => return Err(io::ErrorKind::InvalidData.into()),
        }
        let mut received = Received::new(connection.inbox.bytes());
        step = dialogue.next(&mut received);
        let consumed = received.consumed();
        connection.inbox.consume(consumed);
    }
    Err(io::ErrorKind::InvalidData.into())
}

async fn write(connection: &mut UpstreamConnection, bytes: &[u8]) -> io::Result<()> {
    let write = connection.write.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    write.write_all(bytes).await?;
    write.flush().await
}
