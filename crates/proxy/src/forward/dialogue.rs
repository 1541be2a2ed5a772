//! Protocols other than HTTP that a filter speaks with the target of a call. The target is chosen, connected to and looked
//! after as for any other call; what is said is the filter's.

use super::{AttemptResult, Failure, ForwardPlan, InFlightGuard, UpstreamProtocol};
use crate::conversation::go_on;
use crate::outcome::ShortCircuit;
use crate::pool::PoolKey;
use crate::serve::RequestContext;
use std::io;
use std::task::Poll;
use std::time::{Duration, Instant};
use weir_plugin::{RefusalKind, Reply, UpstreamDialogue};
use weir_snapshot::Target;

impl RequestContext<'_> {
    /// Speaks with a target over a connection of its own, as long as the client waits.
    pub(super) async fn speak(
        &mut self,
        plan: &ForwardPlan<'_>,
        target: &Target,
        key: &PoolKey,
        mut spoken: UpstreamDialogue,
    ) -> AttemptResult {
        let mut connection = match self.connect(plan, key, UpstreamProtocol::Http1).await {
            Ok(Some(connection)) => connection,
            Ok(None) => return AttemptResult::Stopped(ShortCircuit::Gone),
            Err(error) => {
                // The next target is told the same.
                self.exchange.upstream_dialogue = Some(spoken);
                return AttemptResult::Failed(match error.kind() {
                    io::ErrorKind::TimedOut => Failure::ConnectTimeout,
                    _ => Failure::Connect,
                });
            }
        };
        let busy = InFlightGuard::new(plan.upstream, target);
        let started = Instant::now();
        let dialogue = spoken.dialogue.as_mut();
        let first = dialogue.begin(true);
        let timeouts = &plan.timeouts;
        let longest = timeouts.write_ms.saturating_add(timeouts.read_ms);
        let longest = plan.within(Duration::from_millis(longest));
        let (client, worker) = (&mut *self.client, self.worker);
        let ended = {
            let talk = go_on(&worker.runtime.buffers, &mut connection, dialogue, first);
            let mut talk = std::pin::pin!(tokio::time::timeout(longest, talk));
            std::future::poll_fn(|context| match talk.as_mut().poll(context) {
                Poll::Ready(Ok(Ok(_))) => Poll::Ready(Ok(None)),
                Poll::Ready(Ok(Err(_))) => Poll::Ready(Ok(Some(Failure::NoResponse))),
                Poll::Ready(Err(_)) => Poll::Ready(Ok(Some(Failure::ResponseTimeout))),
                Poll::Pending => client
                    .reader
                    .poll_closed(context, &worker.runtime)
                    .map(|()| Err(ShortCircuit::Gone)),
            })
            .await
        };
        let now = Instant::now();
        self.report.upstream_time = Some(now.saturating_duration_since(plan.started));
        let reply = match ended {
            Err(gone) => return AttemptResult::Stopped(gone),
            Ok(Some(failure)) => {
                self.note_failure(plan, target, failure);
                None
            }
            Ok(None) => spoken.dialogue.finish().downcast::<Option<Reply>>().ok(),
        };
        AttemptResult::Stopped(match reply.and_then(|reply| *reply) {
            Some(reply) => {
                let latency = now.saturating_duration_since(started);
                plan.note_latency(latency, now);
                if busy.is_counting() {
                    busy.note_latency(latency, self.exchange.unix_ms());
                }
                ShortCircuit::Reply(Box::new(reply))
            }
            None => no_answer(spoken.plugin, "the target gives no answer that can be used"),
        })
    }
}

/// The refusal of a call whose target has not said what the filter needs.
pub(super) fn no_answer(plugin: &'static str, reason: &'static str) -> ShortCircuit {
    RefusalKind::PluginFailed { plugin, reason }.into()
}
