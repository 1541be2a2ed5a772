//! Upgraded connections (WebSocket and the like): what passes goes both ways until one side ends. This is the loop that all
//! tunnels have in common; how one direction carries is that direction's: [bytes] as they come, or [messages] that filters
//! look at.

pub mod bytes;
pub mod messages;

use crate::client::Client;
use crate::halves::WriteHalf;
use crate::limits::LINGER;
use crate::pool::{OpenConnectionGuard, UpstreamConnection};
use crate::reader::Reader;
use crate::timer::Timer;
use crate::worker::{ConnectionGuard, Worker};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

/// Bytes that a tunnel carried.
#[derive(Debug, Default, Clone, Copy)]
pub struct TunnelStats {
    pub from_client: u64,
    pub from_upstream: u64,
}

/// One direction of a tunnel.
trait Direction {
    /// The bytes that it has carried.
    fn carried(&self) -> u64;

    /// Whether nothing more is to come, although the connection may still be open.
    fn is_at_its_end(&self) -> bool;

    /// Whether the whole tunnel ends at once.
    fn is_cut(&self, worker: &Worker) -> bool;

    /// Carries what there is.
    fn poll(
        &mut self,
        from: &mut Reader,
        to: &mut WriteHalf,
        context: &mut Context<'_>,
        worker: &Worker,
    ) -> Poll<io::Result<()>>;
}

/// Two directions between two connections.
struct Tunnel<'t, D> {
    worker: &'t Rc<Worker>,
    client: &'t mut Client,
    upstream_reader: Reader,
    upstream_write: WriteHalf,
    up: D,
    down: D,
    timer: Timer,
    /// Draining wakes connections; a stream is not one by itself.
    _registration: Option<ConnectionGuard>,
    _counted_open: Option<OpenConnectionGuard>,
}

impl<'t, D: Direction> Tunnel<'t, D> {
    /// A tunnel that has carried nothing yet; `None`: the upstream cannot be written to.
    async fn open(
        worker: &'t Rc<Worker>,
        client: &'t mut Client,
        upstream: UpstreamConnection,
        up: D,
        down: D,
    ) -> Option<Self> {
        let registration = client
            .stream()
            .is_some()
            .then(|| ConnectionGuard::uncounted(worker));
        if let Some(registration) = &registration {
            registration.attach().await;
        }
        Some(Self {
            upstream_reader: Reader::new(upstream.read, upstream.inbox),
            upstream_write: upstream.write?,
            up,
            down,
            timer: Timer::new(Instant::now(), worker.shared.limits.tunnel_timeout),
            _registration: registration,
            _counted_open: upstream.open,
            worker,
            client,
        })
    }

    /// Carries until both directions have ended, one fails, the tunnel is cut, or nothing moves for the tunnel
    /// time-out. Returns whether both sides had said that nothing more comes: then the tunnel ends soon, whether or not
    /// they end their connections.
    async fn relay(&mut self) -> bool {
        let Self {
            worker,
            client,
            upstream_reader,
            upstream_write,
            up,
            down,
            timer,
            ..
        } = self;
        let timeout = worker.shared.limits.tunnel_timeout;
        let mut is_leaving = false;
        std::future::poll_fn(|context| {
            let before = up.carried() + down.carried();
            let upward = up.poll(&mut client.reader, upstream_write, context, worker);
            let downward = down.poll(upstream_reader, &mut client.write, context, worker);
            if !is_leaving && up.is_at_its_end() && down.is_at_its_end() {
                // The server ends the connection (RFC 6455, 7.1.1), but not all do.
                is_leaving = true;
                timer.set(Instant::now(), LINGER);
            } else if !is_leaving && up.carried() + down.carried() != before {
                timer.set(Instant::now(), timeout);
            }
            match (upward, downward) {
                _ if up.is_cut(worker) || down.is_cut(worker) => Poll::Ready(()),
                (Poll::Ready(Err(_)), _) | (_, Poll::Ready(Err(_))) => Poll::Ready(()),
                (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(()),
                _ => timer.poll_expired(context),
            }
        })
        .await;
        is_leaving
    }

    /// The counts of what it has carried.
    fn stats(&self) -> TunnelStats {
        TunnelStats {
            from_client: self.up.carried(),
            from_upstream: self.down.carried(),
        }
    }
}
