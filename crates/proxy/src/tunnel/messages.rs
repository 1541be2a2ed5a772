//! A WebSocket whose messages filters look at. It is apart from the tunnel that carries [bytes](super::bytes).
//!
//! When a filter objects, the sender of the message gets the reason, the other side a normal close, and both
//! connections end.

use super::bytes::poll_some;
use super::{Direction, Tunnel, TunnelStats};
use crate::client::Client;
use crate::halves::WriteHalf;
use crate::limits::LINGER;
use crate::pool::UpstreamConnection;
use crate::reader::Reader;
use crate::websocket::inspector::{Inspector, closing};
use crate::worker::Worker;
use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::AsyncWrite;
use weir_plugin::{MessageFilter, MessageViolation, WebSocketSide};

/// The close frame for the side whose messages were good.
const OVER: MessageViolation = MessageViolation {
    code: 1001,
    reason: Cow::Borrowed(""),
};

/// One direction.
struct Messages {
    inspector: Inspector,
    /// Whole frames that may pass, and how much of them is written.
    out: Vec<u8>,
    written: usize,
    carried: u64,
    is_over: bool,
    fault: Option<MessageViolation>,
}

/// Carries messages until both directions have ended, one fails, a filter objects, the gateway drains, or nothing moves for the
/// tunnel time-out.
pub async fn run(
    worker: &Rc<Worker>,
    client: &mut Client,
    upstream: UpstreamConnection,
    filters: Vec<Arc<dyn MessageFilter>>,
    mask: [u8; 4],
) -> TunnelStats {
    let filters: Arc<[Arc<dyn MessageFilter>]> = filters.into();
    let up = Messages::new(Inspector::new(WebSocketSide::Client, &filters));
    let down = Messages::new(Inspector::new(WebSocketSide::Upstream, &filters));
    let Some(mut tunnel) = Tunnel::open(worker, client, upstream, up, down).await else {
        return TunnelStats::default();
    };
    tunnel.relay().await;
    if tunnel.up.is_cut(worker) || tunnel.down.is_cut(worker) {
        close(&mut tunnel, mask).await;
    }
    tunnel.stats()
}

/// Sends both sides the reason why the tunnel ends, and ends their connections.
async fn close(tunnel: &mut Tunnel<'_, Messages>, mask: [u8; 4]) {
    let Tunnel {
        client,
        upstream_write,
        up,
        down,
        timer,
        ..
    } = tunnel;
    let fault_of = |own: &Messages| own.fault.clone().unwrap_or(OVER);
    let (to_client, to_upstream) = (closing(&fault_of(up), None), closing(&fault_of(down), Some(mask)));
    timer.set(Instant::now(), LINGER);
    std::future::poll_fn(|context| {
        let upward = up.poll_end(&to_upstream, upstream_write, context);
        let downward = down.poll_end(&to_client, &mut client.write, context);
        match upward.is_ready() && downward.is_ready() {
            true => Poll::Ready(()),
            false => timer.poll_expired(context),
        }
    })
    .await;
}

impl Direction for Messages {
    fn carried(&self) -> u64 {
        self.carried
    }

    fn is_cut(&self, worker: &Worker) -> bool {
        self.fault.is_some() || worker.is_draining()
    }

    /// The last frame has passed.
    fn is_at_its_end(&self) -> bool {
        self.inspector.has_closed && self.out.is_empty()
    }

    fn poll(
        &mut self,
        from: &mut Reader,
        to: &mut WriteHalf,
        context: &mut Context<'_>,
        worker: &Worker,
    ) -> Poll<io::Result<()>> {
        while self.fault.is_none() {
            ready!(self.poll_flush(to, context))?;
            if self.is_over {
                return Poll::Ready(Ok(()));
            }
            if !from.inbox.is_empty() {
                let taken = self.inspector.take(from.inbox.bytes(), &mut self.out);
                self.fault = taken.err();
                from.inbox.consume(from.inbox.bytes().len());
                continue;
            }
            from.inbox.release(&worker.runtime.buffers);
            if !ready!(from.poll_readable(context))
                || ready!(from.poll_fill(context, &worker.runtime.buffers, 0))? == 0
            {
                ready!(Pin::new(&mut *to).poll_shutdown(context))?;
                self.is_over = true;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Messages {
    fn new(inspector: Inspector) -> Self {
        Self {
            inspector,
            out: Vec::new(),
            written: 0,
            carried: 0,
            is_over: false,
            fault: None,
        }
    }

    /// Writes what may pass.
    fn poll_flush(&mut self, to: &mut WriteHalf, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let count = ready!(poll_some(to, context, &self.out[self.written..]))?;
            self.written += count;
            self.carried += count as u64;
        }
        self.out.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Writes what may pass, the frame that closes, and ends the connection. The frame is added with the first call.
    fn poll_end(
        &mut self,
        closing: &[u8],
        to: &mut WriteHalf,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_over {
            self.is_over = true;
            if !self.inspector.has_closed {
                self.out.extend_from_slice(closing);
            }
        }
        ready!(self.poll_flush(to, context))?;
        Pin::new(&mut *to).poll_shutdown(context)
    }
}
