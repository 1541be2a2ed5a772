//! Upgraded connections (WebSocket and the like): bytes both ways until one side ends.

use crate::connection::Client;
use crate::pool::UpstreamConnection;
use crate::reader::Reader;
use crate::timer::Timer;
use crate::transport::WriteHalf;
use crate::worker::Worker;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::AsyncWrite;

/// Bytes that a tunnel carried.
#[derive(Debug, Default, Clone, Copy)]
pub struct Carried {
    pub from_client: u64,
    pub from_upstream: u64,
}

/// One direction. It holds a buffer only while bytes wait to be written.
#[derive(Default)]
struct Direction {
    carried: u64,
    is_over: bool,
}

/// Carries bytes until both directions have ended, one fails, or nothing moves for the tunnel time-out.
pub async fn run(worker: &Worker, client: &mut Client, upstream: UpstreamConnection) -> Carried {
    let timeout = worker.shared.limits.tunnel_timeout;
    let mut timer = Timer::new(Instant::now(), timeout);
    let (mut up, mut down) = (Direction::default(), Direction::default());
    let UpstreamConnection {
        read,
        write,
        inbox,
        open: _counted_open,
        ..
    } = upstream;
    let Some(mut upstream_write) = write else {
        return Carried::default();
    };
    let mut upstream_reader = Reader::new(read, inbox);
    std::future::poll_fn(|context| {
        let before = up.carried + down.carried;
        let upward = up.poll(&mut client.reader, &mut upstream_write, context, worker);
        let downward = down.poll(&mut upstream_reader, &mut client.write, context, worker);
        if up.carried + down.carried != before {
            timer.set(Instant::now(), timeout);
        }
        match (upward, downward) {
            (Poll::Ready(Err(_)), _) | (_, Poll::Ready(Err(_))) => Poll::Ready(()),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(()),
            _ => timer.poll_expired(context),
        }
    })
    .await;
    Carried {
        from_client: up.carried,
        from_upstream: down.carried,
    }
}

impl Direction {
    fn poll(
        &mut self,
        from: &mut Reader,
        to: &mut WriteHalf,
        context: &mut Context<'_>,
        worker: &Worker,
    ) -> Poll<io::Result<()>> {
        while !self.is_over {
            if from.inbox.is_empty() {
                from.inbox.release(&worker.buffers);
                if !ready!(from.poll_readable(context))
                    || ready!(from.poll_fill(context, &worker.buffers, 0))? == 0
                {
                    ready!(Pin::new(&mut *to).poll_shutdown(context))?;
                    self.is_over = true;
                }
            } else {
                let count = ready!(Pin::new(&mut *to).poll_write(context, from.inbox.bytes()))?;
                from.inbox.consume(count);
                self.carried += count as u64;
            }
        }
        Poll::Ready(Ok(()))
    }
}
