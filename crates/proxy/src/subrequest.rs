//! Asking other servers for filters: one call with a bounded answer, over the worker's pool.

use crate::buffer::Buffers;
use crate::outcome::ShortCircuit;
use crate::pool::{PoolKey, TaggedPoolKey, UpstreamConnection};
use crate::serve::RequestContext;
use crate::side_connection::{ConnectTarget, absolute_form};
use crate::timer::Timer;
use crate::worker::Worker;
use std::borrow::Cow;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;
use tokio::io::AsyncWriteExt;
use weir_http1::body::BodyCursor;
use weir_http1::chunked::ChunkEvent;
use weir_http1::response;
use weir_model::KeepalivePool;
use weir_plugin::{Response, Subrequest, SubrequestResponse};

/// Most bytes of an answer's head.
const MAX_HEAD: usize = 64 * 1024;
/// Most interim (1xx) answers to one subrequest.
const MAX_INTERIM: usize = 16;

impl RequestContext<'_> {
    /// Asks another server, as long as the client waits. `None`: there is no answer.
    pub async fn send_subrequest(
        &mut self,
        subrequest: &Subrequest,
    ) -> Result<Option<SubrequestResponse>, ShortCircuit> {
        let (client, worker) = (&mut *self.client, self.worker);
        let answer = tokio::time::timeout(subrequest.timeout, answer(worker, self.serving, subrequest));
        let mut answer = std::pin::pin!(answer);
        std::future::poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(Ok(Ok(answer))) => Poll::Ready(Ok(Some(answer))),
            Poll::Ready(_) => {
                tracing::debug!(host = subrequest.host, "a plugin's subrequest was not answered");
                Poll::Ready(Ok(None))
            }
            Poll::Pending => client
                .reader
                .poll_closed(context, &worker.runtime)
                .map(|()| Err(ShortCircuit::Gone)),
        })
        .await
    }
}

async fn answer(
    worker: &Rc<Worker>,
    serving: &crate::worker::WorkerSnapshot,
    subrequest: &Subrequest,
) -> io::Result<SubrequestResponse> {
    let now = Instant::now();
    let server = (subrequest.host.as_str(), subrequest.port);
    let way = ConnectTarget::find(
        worker,
        serving,
        server,
        subrequest.tls,
        subrequest.connector.as_deref(),
    )
    .await?;
    let place = match &way.proxy {
        None => PoolSlot::Usual(way.pool_key()),
        Some(proxy) => PoolSlot::Tagged(TaggedPoolKey {
            end: way.pool_key(),
            tag: format!("http {}", proxy.server),
        }),
    };
    let message = match &way.proxy {
        Some(proxy) if way.tls.is_none() => Cow::Owned(absolute_form(&subrequest.message, proxy)),
        _ => Cow::Borrowed(subrequest.message.as_slice()),
    };
    let bounds = subrequest.keep.map(|(size, time)| KeepalivePool {
        size,
        idle_timeout_ms: time.as_millis().try_into().unwrap_or(u64::MAX),
        requests: 0,
    });
    let (buffers, most) = (&worker.runtime.buffers, subrequest.max_body_bytes);
    if let Some(bounds) = &bounds
        && let Some(mut connection) = place.take(worker, bounds, now)
    {
        match exchange(buffers, &mut connection, &message, most).await {
            Ok((answer, keeps)) => {
                place.keep(worker, connection, Some(bounds).filter(|_| keeps));
                return Ok(answer);
            }
            // The server may have closed the connection just before.
            Err(SubrequestError::BeforeAnswer(_)) => {}
            Err(SubrequestError::InAnswer(error)) => return Err(error),
        }
    }
    let timer = Timer::new(now, subrequest.timeout);
    let mut connection = UpstreamConnection::of(way.open().await?, timer, &worker.metrics);
    match exchange(buffers, &mut connection, &message, most).await {
        Ok((answer, keeps)) => {
            place.keep(worker, connection, bounds.as_ref().filter(|_| keeps));
            Ok(answer)
        }
        Err(SubrequestError::BeforeAnswer(error) | SubrequestError::InAnswer(error)) => Err(error),
    }
}

/// The pool that keeps a connection.
enum PoolSlot {
    /// With those of calls to the same server.
    Usual(PoolKey),
    /// With those through the same proxy to the same server.
    Tagged(TaggedPoolKey),
}

impl PoolSlot {
    fn take(&self, worker: &Worker, bounds: &KeepalivePool, now: Instant) -> Option<Box<UpstreamConnection>> {
        match self {
            Self::Usual(key) => worker.pool.take(key, bounds, now),
            Self::Tagged(key) => worker.tagged_pool.take(key, bounds, now),
        }
    }

    fn keep(&self, worker: &Worker, connection: Box<UpstreamConnection>, bounds: Option<&KeepalivePool>) {
        let (now, buffers) = (Instant::now(), &worker.runtime.buffers);
        match (self, bounds) {
            (_, None) => {}
            (Self::Usual(key), Some(bounds)) => worker.pool.put(key, connection, bounds, now, buffers),
            (Self::Tagged(key), Some(bounds)) => {
                worker.tagged_pool.put(key, connection, bounds, now, buffers);
            }
        }
    }
}

/// Why a connection gave no answer.
pub enum SubrequestError {
    /// Not a byte of it has come.
    BeforeAnswer(io::Error),
    InAnswer(io::Error),
}

/// Sends the subrequest and reads the answer; says also whether the connection can be used again.
pub async fn exchange(
    buffers: &Buffers,
    connection: &mut UpstreamConnection,
    message: &[u8],
    max_body_bytes: usize,
) -> Result<(SubrequestResponse, bool), SubrequestError> {
    connection.calls += 1;
    let write = connection.write.as_mut();
    let write = write.ok_or_else(|| SubrequestError::BeforeAnswer(io::ErrorKind::NotConnected.into()))?;
    write
        .write_all(message)
        .await
        .map_err(SubrequestError::BeforeAnswer)?;
    let is_head = message.starts_with(b"HEAD ");
    let mut response = Response::default();
    let mut interim = 0;
    let head = loop {
        match response::parse(connection.inbox.bytes(), is_head, &mut response) {
            Ok(Some(head)) if (100..200).contains(&response.status) => {
                if interim == MAX_INTERIM || response.status == 101 {
                    return Err(SubrequestError::InAnswer(io::ErrorKind::InvalidData.into()));
                }
                connection.inbox.consume(head.length);
                interim += 1;
            }
            Ok(Some(head)) => break head,
            Ok(None) => {
                let is_first = connection.inbox.is_empty() && interim == 0;
                fill(buffers, connection).await.map_err(match is_first {
                    true => SubrequestError::BeforeAnswer,
                    false => SubrequestError::InAnswer,
                })?;
            }
            Err(invalid) => {
                return Err(SubrequestError::InAnswer(io::Error::new(
                    io::ErrorKind::InvalidData,
                    invalid,
                )));
            }
        }
    };
    connection.inbox.consume(head.length);
    let body = read_body(buffers, connection, BodyCursor::new(head.framing), max_body_bytes)
        .await
        .map_err(SubrequestError::InAnswer)?;
    let answer = SubrequestResponse {
        status: response.status,
        headers: response.headers,
        body,
    };
    Ok((answer, head.keep_alive))
}

async fn read_body(
    buffers: &Buffers,
    connection: &mut UpstreamConnection,
    mut cursor: BodyCursor,
    most: usize,
) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    while !cursor.is_done() {
        let piece = cursor.next(connection.inbox.bytes());
        match piece.map_err(|_| io::ErrorKind::InvalidData)? {
            ChunkEvent::End => break,
            ChunkEvent::Skip(0) => match fill(buffers, connection).await {
                Ok(()) => {}
                Err(error)
                    if error.kind() == io::ErrorKind::UnexpectedEof
                        && matches!(cursor, BodyCursor::UntilClose) =>
                {
                    break;
                }
                Err(error) => return Err(error),
            },
            ChunkEvent::Skip(count) => connection.inbox.consume(count),
            ChunkEvent::Data(count) => {
                if body.len() + count > most {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                body.extend_from_slice(&connection.inbox.bytes()[..count]);
                connection.inbox.consume(count);
            }
        }
    }
    Ok(body)
}

async fn fill(buffers: &Buffers, connection: &mut UpstreamConnection) -> io::Result<()> {
    let UpstreamConnection { read, inbox, .. } = connection;
    let count =
        std::future::poll_fn(|context| inbox.poll_fill(&mut *read, context, buffers, MAX_HEAD)).await?;
    match count {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
