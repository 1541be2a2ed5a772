//! A tunnel that carries bytes as they come.
//!
//! Both ends of a WebSocket get a frame that says so when the gateway drains, each between two frames of the
//! other. For that frames are followed as they pass; of other protocols nothing is known. Behind the last frames of both
//! sides the tunnel ends soon, whether or not they end their connections.

use super::{Direction, Tunnel, TunnelStats};
use crate::client::Client;
use crate::halves::WriteHalf;
use crate::pool::UpstreamConnection;
use crate::reader::Reader;
use crate::websocket::{Frames, good_bye};
use crate::worker::Worker;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// The content of a tunnel.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// Frames; with what a frame to the upstream is masked (RFC 6455, 5.3).
    WebSocket([u8; 4]),
    /// Unknown.
    Other,
}

/// One direction. It holds a buffer only while bytes wait to be written.
struct Bytes {
    carried: u64,
    is_over: bool,
    /// Follows the frames of a WebSocket.
    frames: Option<Frames>,
    /// Bytes of a write that is not complete: it must be tried again with the same ones.
    writing: usize,
    leaving: CloseState,
    /// The bytes to send when the gateway drains.
    good_bye: Vec<u8>,
}

/// How far the good-bye has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloseState {
    Not,
    /// So much of it is written.
    Saying(usize),
    /// Further bytes are not passed on.
    Said,
}

/// Carries bytes until both directions have ended, one fails, or nothing moves for the tunnel time-out.
pub async fn run(
    worker: &Rc<Worker>,
    client: &mut Client,
    upstream: UpstreamConnection,
    content: Content,
) -> TunnelStats {
    let (up, down) = (Bytes::new(content, true), Bytes::new(content, false));
    let Some(mut tunnel) = Tunnel::open(worker, client, upstream, up, down).await else {
        return TunnelStats::default();
    };
    if tunnel.relay().await {
        end(&mut tunnel.client.write, &mut tunnel.upstream_write).await;
    }
    tunnel.stats()
}

/// Ends both connections properly, as far as that needs no waiting.
async fn end(client: &mut WriteHalf, upstream: &mut WriteHalf) {
    std::future::poll_fn(|context| {
        for write in [&mut *client, &mut *upstream] {
            // A peer that has gone already needs no notice.
            let _ended = Pin::new(write).poll_shutdown(context);
        }
        Poll::Ready(())
    })
    .await;
}

impl Direction for Bytes {
    fn carried(&self) -> u64 {
        self.carried
    }

    fn is_cut(&self, _: &Worker) -> bool {
        false
    }

    /// The last frame has passed, or was said in its sender's place.
    fn is_at_its_end(&self) -> bool {
        let has_closed = |frames: &Frames| frames.has_closed() && frames.is_between();
        self.leaving == CloseState::Said || self.frames.as_ref().is_some_and(has_closed)
    }

    fn poll(
        &mut self,
        from: &mut Reader,
        to: &mut WriteHalf,
        context: &mut Context<'_>,
        worker: &Worker,
    ) -> Poll<io::Result<()>> {
        while !self.is_over {
            if worker.is_draining() && self.writing == 0 {
                ready!(self.poll_leave(from, to, context))?;
            }
            if from.inbox.is_empty() {
                from.inbox.release(&worker.runtime.buffers);
                if !ready!(from.poll_readable(context))
                    || ready!(from.poll_fill(context, &worker.runtime.buffers, 0))? == 0
                {
                    ready!(Pin::new(&mut *to).poll_shutdown(context))?;
                    self.is_over = true;
                }
            } else if self.leaving == CloseState::Said {
                self.take_last(from);
            } else {
                ready!(self.poll_pass(from, to, context, worker.is_draining()))?;
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Writes some of these bytes. A peer that takes none, and says no more, would be tried for ever.
pub(super) fn poll_some(
    to: &mut WriteHalf,
    context: &mut Context<'_>,
    bytes: &[u8],
) -> Poll<io::Result<usize>> {
    match ready!(Pin::new(to).poll_write(context, bytes))? {
        0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
        count => Poll::Ready(Ok(count)),
    }
}

impl Bytes {
    fn new(content: Content, is_up: bool) -> Self {
        let (frames, good_bye) = match content {
            Content::Other => (None, Vec::new()),
            Content::WebSocket(mask) => (Some(Frames::default()), good_bye(is_up.then_some(mask))),
        };
        Self {
            carried: 0,
            is_over: false,
            frames,
            writing: 0,
            leaving: CloseState::Not,
            good_bye,
        }
    }

    /// Writes what was read; when draining, only to the end of a frame.
    fn poll_pass(
        &mut self,
        from: &mut Reader,
        to: &mut WriteHalf,
        context: &mut Context<'_>,
        is_draining: bool,
    ) -> Poll<io::Result<()>> {
        if self.writing == 0 {
            let bytes = from.inbox.bytes();
            let whole = match &self.frames {
                Some(frames) if is_draining => frames.whole(bytes),
                _ => 0,
            };
            self.writing = if whole > 0 { whole } else { bytes.len() };
        }
        let bytes = &from.inbox.bytes()[..self.writing];
        let count = ready!(poll_some(to, context, bytes))?;
        if let Some(frames) = &mut self.frames {
            frames.follow(&bytes[..count]);
        }
        self.writing = 0;
        from.inbox.consume(count);
        self.carried += count as u64;
        Poll::Ready(Ok(()))
    }

    /// Sends the good-bye, once what was begun has come to its end.
    fn poll_leave(
        &mut self,
        from: &Reader,
        to: &mut WriteHalf,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(frames) = &self.frames else {
            return Poll::Ready(Ok(()));
        };
        if self.leaving == CloseState::Not
            && frames.is_between()
            && !frames.has_closed()
            && frames.whole(from.inbox.bytes()) == 0
        {
            self.leaving = CloseState::Saying(0);
        }
        while let CloseState::Saying(written) = self.leaving {
            let count = ready!(poll_some(to, context, &self.good_bye[written..]))?;
            self.leaving = match written + count < self.good_bye.len() {
                true => CloseState::Saying(written + count),
                false => CloseState::Said,
            };
        }
        Poll::Ready(Ok(()))
    }

    /// Behind the good-bye only the other's is waited for.
    fn take_last(&mut self, from: &mut Reader) {
        if let Some(frames) = &mut self.frames {
            frames.follow(from.inbox.bytes());
            self.is_over = frames.has_closed();
        }
        from.inbox.consume(from.inbox.bytes().len());
    }
}
