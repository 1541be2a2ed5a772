//! Passing a response's body on at a bounded rate. What comes faster waits in the upstream's connection: nothing is read
//! that cannot be passed on soon.

use super::attempt::Attempt;
use super::pump::Background;
use crate::serve::RequestContext;
use crate::timer::Timer;
use crate::worker::Worker;
use std::io;
use std::task::Poll;
use std::time::Instant;
use weir_http1::Framing;

impl RequestContext<'_> {
    /// Sends so many bytes of the answer in pieces, and waits after each.
    pub(super) async fn send_at_rate(
        &mut self,
        count: usize,
        framing: Framing,
        attempt: &mut Attempt,
        out: &mut Vec<u8>,
        watch: &mut Background<'_>,
    ) -> io::Result<()> {
        let most = attempt.rate.as_ref().map_or(count, |rate| rate.piece());
        let mut left = count;
        while left > 0 {
            let piece = left.min(most);
            let data = &attempt.connection.inbox.bytes()[..piece];
            if self.exchange.response.body_filters.is_empty() {
                self.send_data(data, framing, out, watch).await?;
            } else {
                self.send_filtered(data, framing, out, watch).await?;
            }
            attempt.connection.inbox.consume(piece);
            left -= piece;
            self.flush(out, watch).await?;
            if let Some(rate) = &mut attempt.rate {
                let delay = rate.pass(piece);
                self.pause(Timer::new(Instant::now(), delay), watch).await?;
            }
        }
        Ok(())
    }

    /// Waits for a while; an error: the client no longer waits for the answer.
    async fn pause(&mut self, timer: Timer, watch: &mut Background<'_>) -> io::Result<()> {
        match watch {
            Background::Nothing => {
                let mut watch = Background::Client(&mut *self.client);
                pause(timer, self.worker, &mut watch).await
            }
            watch => pause(timer, self.worker, watch).await,
        }
    }
}

async fn pause(mut timer: Timer, worker: &Worker, watch: &mut Background<'_>) -> io::Result<()> {
    std::future::poll_fn(|context| {
        watch.poll_progress(context);
        if watch.poll_cancelled(context, worker).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        timer.poll_expired(context).map(Ok)
    })
    .await
}
