//! One try: sends the request on a connection, waits for the response's head, and passes the answer on.

use super::error::RelayError;
use super::pump::{Background, Pump, write_all};
use super::relay::Relayed;
use super::{AttemptResult, Failure, ForwardPlan, InFlightGuard};
use crate::body_rate::BodyRate;
use crate::buffer::Inbox;
use crate::grpc;
use crate::halves::ReadHalf;
use crate::multiplex::stream::Stream;
use crate::outcome::{ConnectionFate, ShortCircuit};
use crate::pool::{PoolKey, UpstreamConnection};
use crate::serve::RequestContext;
use crate::worker::Worker;
use std::io;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use weir_http1::Framing;
use weir_http1::body::BodyCursor;
use weir_http1::response::{self, ResponseHead};
use weir_plugin::{RefusalKind, Response};
use weir_snapshot::Target;
use weir_telemetry::metrics::ProtocolError;

/// Largest request body that is sent in one write with its head.
const MAX_JOINED_BODY: u64 = 16 * 1024;
/// Most interim (1xx) responses to one request.
const MAX_INTERIM: usize = 16;

/// A response's head, or the reason why there is none.
pub(super) enum AttemptHead {
    Head(ResponseHead),
    Failed(Failure),
    /// The client went, or its body cannot be read on.
    Cancelled(ShortCircuit),
}

/// A connection in use, with what bounds the waits on it.
pub(super) struct Attempt {
    pub connection: Box<UpstreamConnection>,
    pub read_timeout: Duration,
    /// When the call must be over.
    pub deadline: Option<Instant>,
    /// The minimum rate of the response's body, if it has one.
    pub rate: Option<Box<BodyRate>>,
    pub is_reused: bool,
}

impl RequestContext<'_> {
    /// Makes one try on `connection`.
    pub(super) async fn attempt(
        &mut self,
        plan: &ForwardPlan<'_>,
        target: &Target,
        key: &PoolKey,
        mut connection: Box<UpstreamConnection>,
        is_reused: bool,
    ) -> AttemptResult {
        connection.calls += 1;
        // The connection's timer may be set for the task that it served last; the client's wakes this one.
        std::mem::swap(&mut self.client.timer, &mut connection.timer);
        let mut busy = InFlightGuard::new(plan.upstream, target);
        let timeouts = &plan.timeouts;
        let (read_timeout, write_timeout) = (
            plan.within(Duration::from_millis(timeouts.read_ms)),
            plan.within(Duration::from_millis(timeouts.write_ms)),
        );
        // The clock is read for a first try when its request has arrived, and not again.
        let started = if self.report.retries == 0 && is_reused {
            plan.started
        } else {
            Instant::now()
        };
        connection.timer.set(started, write_timeout);
        let mut attempt = Attempt {
            connection,
            read_timeout,
            deadline: plan.deadline,
            rate: BodyRate::of_response(plan.route),
            is_reused,
        };
        let mut pump = match self.send(plan, target, &mut attempt, write_timeout).await {
            Ok(pump) => pump,
            Err(error) => return AttemptResult::Failed(attempt.failure(&error)),
        };
        attempt.connection.timer.set(started, read_timeout);
        let won = match plan.hedge() {
            Some(hedge) if pump.is_none() && self.may_hedge(&attempt) => {
                Box::pin(self.hedge(plan, hedge, &mut attempt)).await
            }
            _ => None,
        };
        let (target, key) = match &won {
            Some(won) => (won.target, &won.key),
            None => (target, key),
        };
        if won.is_some() {
            busy = InFlightGuard::new(plan.upstream, target);
        }
        let head = match self.await_final_head(&mut attempt, &mut pump).await {
            Ok(head) => head,
            Err(result) => return result,
        };
        attempt.connection.inbox.consume(head.length);
        let answered_at = self.note_answer(&busy, plan, started);
        if let Some(checks) = plan.passive_checks() {
            self.note_status(checks, target);
        }
        if pump.is_none() && self.is_tried_again(plan) {
            self.forget_answer(plan, key, attempt.connection, &head, answered_at);
            return AttemptResult::Again;
        }
        if pump.is_none() && self.exchange.repeat_on.is_some() && self.is_repeated(plan) {
            self.forget_answer(plan, key, attempt.connection, &head, answered_at);
            return AttemptResult::Repeat;
        }
        self.keep_sticky(plan);
        if self.exchange.response.status == 101 {
            // In the middle of a body it is unknown which byte belongs to what.
            return match self.take_back(pump, &mut attempt.connection) {
                true => self.switch_protocols(plan, &head, attempt.connection).await,
                false => AttemptResult::Stopped(RefusalKind::UpstreamFailed.into()),
            };
        }
        let relayed = self
            .relay_response(plan, &head, &mut attempt, pump.as_mut())
            .await;
        let is_sent = self.take_back(pump, &mut attempt.connection);
        self.release_connections(plan, key, attempt.connection, relayed, is_sent, answered_at)
    }

    /// Waits for the final response's head, and passes on those before it.
    async fn await_final_head(
        &mut self,
        attempt: &mut Attempt,
        pump: &mut Option<Pump>,
    ) -> Result<ResponseHead, AttemptResult> {
        let mut interim = 0;
        loop {
            let result = match self.await_head(attempt, pump.as_mut()).await {
                AttemptHead::Head(head) if is_interim(&self.exchange.response) => {
                    attempt.connection.inbox.consume(head.length);
                    interim += 1;
                    let stop = match interim > MAX_INTERIM {
                        true => RefusalKind::UpstreamFailed.into(),
                        false if self.relay_interim().await.is_ok() => continue,
                        false => ShortCircuit::Gone,
                    };
                    AttemptResult::Stopped(stop)
                }
                AttemptHead::Head(head) => return Ok(head),
                AttemptHead::Failed(failure) => AttemptResult::Failed(failure),
                AttemptHead::Cancelled(stop) => {
                    // What is left of the body is not worth waiting for.
                    self.head.keep_alive = false;
                    AttemptResult::Stopped(stop)
                }
            };
            self.take_back(pump.take(), &mut attempt.connection);
            return Err(result);
        }
    }

    /// Whether another try is made in place of an answer of this status.
    fn is_tried_again(&self, plan: &ForwardPlan<'_>) -> bool {
        let statuses = &plan.forward.retry_statuses;
        statuses.contains(&self.exchange.response.status) && self.may_retry(plan, Failure::Status)
    }

    /// Whether a filter wants the call sent once more in place of an answer of this status, and that is within all bounds.
    #[cold]
    fn is_repeated(&mut self, plan: &ForwardPlan<'_>) -> bool {
        let statuses = self.exchange.repeat_on.as_ref();
        let is_wanted = statuses.is_some_and(|it| it.contains(&self.exchange.response.status));
        let is_in_time = plan.deadline.is_none_or(|deadline| Instant::now() < deadline);
        let budget = &plan.upstream.retry_budget;
        is_wanted
            && is_in_time
            && self.is_replayable()
            && budget
                .as_ref()
                .is_none_or(|budget| budget.left.take(budget.rules))
    }

    /// Keeps the connection of an answer that is not passed on, if the rest of it is there.
    fn forget_answer(
        &mut self,
        plan: &ForwardPlan<'_>,
        key: &PoolKey,
        mut connection: Box<UpstreamConnection>,
        head: &ResponseHead,
        now: Instant,
    ) {
        let is_read = match head.framing {
            Framing::None => true,
            Framing::Length(length) if connection.inbox.bytes().len() as u64 >= length => {
                connection.inbox.consume(length as usize);
                true
            }
            _ => false,
        };
        let relayed = Relayed {
            upstream_keeps: is_read && head.keep_alive,
            client_keeps: true,
        };
        let _fate = self.release_connections(plan, key, connection, Ok(relayed), true, now);
    }

    /// Sends the head, and the body with it if all of it is at hand; otherwise starts to pump it.
    async fn send(
        &mut self,
        plan: &ForwardPlan<'_>,
        target: &Target,
        attempt: &mut Attempt,
        write_timeout: Duration,
    ) -> io::Result<Option<Pump>> {
        let mut out = self.worker.runtime.buffers.acquire_output();
        let is_stream = attempt.connection.read.stream().is_some();
        let is_whole = match is_stream {
            false => {
                self.write_request_head(plan, target, &mut out);
                self.join_body(&mut out)
            }
            true => self.send_stream_head(plan, target, attempt, &mut out)?,
        };
        let UpstreamConnection {
            write: Some(write),
            timer,
            ..
        } = &mut *attempt.connection
        else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        // Nearly always the upstream takes all of it at once.
        let sent = match write.try_write(&out) {
            Ok(count) if count == out.len() => Ok(()),
            Ok(count) => write_all(write, &out[count..], timer, write_timeout).await,
            Err(error) => Err(error),
        };
        self.worker.runtime.buffers.release_output(out);
        match sent {
            // The answer may be there already. If it is not, waiting for it shows why the stream ended.
            Err(error) if is_stream && error.kind() != io::ErrorKind::TimedOut => {}
            sent => sent?,
        }
        if !is_whole && self.head.expects_continue && self.answers_expect() {
            self.head.expects_continue = false;
            // A client that cannot get `100 Continue` has gone; the pump will find that out.
            let _told = self.invite_body().await;
        }
        if is_whole {
            // The answer's bytes can use the same, still warm, buffer.
            self.client.reader.inbox.release(&self.worker.runtime.buffers);
            return Ok(None);
        }
        let reader = std::mem::take(&mut self.client.reader);
        let away = self.body.away();
        let mut body = std::mem::replace(&mut self.body, away);
        if is_stream && grpc::is_call(self.exchange) {
            body.pace = body.pace.without_rate();
        }
        let is_chunked = !is_stream && matches!(self.head.framing, Framing::Chunked | Framing::UntilClose);
        Ok(attempt.connection.write.take().map(|write| {
            self.report.bytes_in -= body.received.min(self.report.bytes_in);
            let rate = BodyRate::of_request(plan.route);
            Pump::new(
                self.worker,
                reader,
                body,
                write,
                is_chunked,
                (write_timeout, rate),
            )
        }))
    }

    /// Appends the body to the head if all of it is at hand and small. Returns whether the request is whole.
    pub(super) fn join_body(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(body) = &self.exchange.request.body {
            out.extend_from_slice(body);
            return true;
        }
        let Framing::Length(length) = self.head.framing else {
            return self.head.framing == Framing::None;
        };
        let reader = &mut self.client.reader;
        let is_at_hand = length <= MAX_JOINED_BODY && reader.inbox.bytes().len() as u64 >= length;
        let fits = is_at_hand
            && self.body.received == 0
            && !self.head.expects_continue
            // Behind the body of a stream trailers may yet come.
            && reader.stream().is_none_or(Stream::is_read);
        if fits && length > 0 {
            // Kept, so that another try can send it again.
            let body = &reader.inbox.bytes()[..length as usize];
            out.extend_from_slice(body);
            self.exchange.request.keep_body(body);
            reader.inbox.consume(length as usize);
            self.body.cursor = BodyCursor::Length(0);
            self.body.received = length;
            self.report.bytes_in += length;
        }
        fits
    }

    /// Takes back what a pump was lent. Returns whether the request has been sent whole.
    fn take_back(&mut self, pump: Option<Pump>, connection: &mut UpstreamConnection) -> bool {
        let Some(pump) = pump else { return true };
        let pumped = *pump.finish();
        self.client.reader = pumped.reader;
        self.body = pumped.body;
        self.report.bytes_in += self.body.received;
        connection.write = Some(pumped.write);
        pumped.result.is_ok()
    }

    /// Decides what becomes of both connections after the answer has been passed on.
    fn release_connections(
        &mut self,
        plan: &ForwardPlan<'_>,
        key: &PoolKey,
        mut connection: Box<UpstreamConnection>,
        relayed: Result<Relayed, RelayError>,
        is_sent: bool,
        now: Instant,
    ) -> AttemptResult {
        std::mem::swap(&mut self.client.timer, &mut connection.timer);
        let relayed = match relayed {
            Ok(relayed) => relayed,
            Err(RelayError::Cut(after)) => {
                self.report.aborted = self.report.error.is_none();
                return AttemptResult::Done(after);
            }
            Err(RelayError::Refused(stop)) => {
                self.head.keep_alive &= is_sent;
                return AttemptResult::Stopped(stop);
            }
        };
        if connection.read.stream().is_some() {
            self.worker.streams.give(connection, &self.worker.runtime.buffers);
        } else if relayed.upstream_keeps && is_sent {
            let bounds = &plan.upstream.keepalive;
            self.worker
                .pool
                .put(key, connection, bounds, now, &self.worker.runtime.buffers);
        } else {
            connection.inbox.consume(connection.inbox.bytes().len());
            connection.inbox.release(&self.worker.runtime.buffers);
        }
        // What a filter has put in place of an unread body must not leave that to be the next request.
        let is_read = self.body.cursor.is_done();
        AttemptResult::Done(match (is_sent && is_read, relayed.client_keeps) {
            (false, _) => ConnectionFate::Linger,
            (true, true) => ConnectionFate::KeepAlive,
            (true, false) => ConnectionFate::Close,
        })
    }

    fn note_answer(&mut self, busy: &InFlightGuard<'_>, plan: &ForwardPlan<'_>, started: Instant) -> Instant {
        let now = Instant::now();
        self.report.upstream_time = Some(now.saturating_duration_since(plan.started));
        self.report.answered = Some(self.exchange.response.status);
        self.report.answered_at = Some(now);
        let latency = now.saturating_duration_since(started);
        plan.note_latency(latency, now);
        if busy.is_counting() {
            let now_ms = self.exchange.unix_ms();
            busy.note_latency(latency, now_ms);
        }
        now
    }

    /// Reads until a response's head is complete.
    async fn await_head(&mut self, attempt: &mut Attempt, pump: Option<&mut Pump>) -> AttemptHead {
        if attempt.connection.read.stream().is_some() {
            return self.await_stream_head(attempt, pump).await;
        }
        let limit = self.worker.shared.limits.max_head_bytes;
        let to_head = self.exchange.request.method == b"HEAD";
        let mut looked_at = 0;
        let mut watch = match pump {
            Some(pump) => Background::Pump(pump),
            None => Background::Client(&mut *self.client),
        };
        loop {
            let UpstreamConnection { inbox, last_head, .. } = &mut *attempt.connection;
            let bytes = inbox.bytes();
            if !bytes.is_empty() && (looked_at == 0 || weir_http1::ends_a_head(bytes, looked_at)) {
                let heads = &mut self.worker.response_heads.borrow_mut();
                match response::parse_known(bytes, to_head, &mut self.exchange.response, heads, last_head) {
                    Ok(Some(head)) => return AttemptHead::Head(head),
                    Ok(None) => {}
                    Err(error) => {
                        self.worker
                            .metrics
                            .protocol_error(ProtocolError::UpstreamMalformed);
                        tracing::debug!(%error, "an upstream's answer is not valid HTTP/1.1");
                        return AttemptHead::Failed(Failure::NoResponse);
                    }
                }
            }
            looked_at = inbox.bytes().len();
            if !inbox.has_room(limit) {
                return AttemptHead::Failed(Failure::NoResponse);
            }
            match attempt.fill(self.worker, &mut watch, limit).await {
                Ok(Ok(0)) if attempt.is_reused => return AttemptHead::Failed(Failure::StaleConnection),
                Ok(Ok(0)) => return AttemptHead::Failed(Failure::NoResponse),
                // A connection that answers is alive, however the answer goes on.
                Ok(Ok(_)) => attempt.is_reused = false,
                Ok(Err(error)) => return AttemptHead::Failed(attempt.failure(&error)),
                Err(stop) => return AttemptHead::Cancelled(stop),
            }
        }
    }
}

impl Attempt {
    /// The failure of an attempt by an error while the request was sent, or its answer awaited.
    pub fn failure(&self, error: &io::Error) -> Failure {
        // That a stream was reset, or its answer is invalid, says nothing about the connection.
        let is_lost = || self.connection.read.stream().is_none() || error.kind() == io::ErrorKind::BrokenPipe;
        match error.kind() {
            io::ErrorKind::TimedOut => Failure::ResponseTimeout,
            // Of streams only; a connection that cannot be made is another matter.
            io::ErrorKind::ConnectionRefused => Failure::Unprocessed,
            _ if self.is_reused && is_lost() => Failure::StaleConnection,
            _ => Failure::NoResponse,
        }
    }

    /// Reads once from the upstream; the outer error is a reason to give the call up.
    pub async fn fill(
        &mut self,
        worker: &Worker,
        watch: &mut Background<'_>,
        limit: usize,
    ) -> Result<io::Result<usize>, ShortCircuit> {
        let fill = |read: &mut ReadHalf, inbox: &mut Inbox, context: &mut Context<'_>| {
            read.poll_fill(inbox, context, &worker.runtime.buffers, limit)
        };
        self.wait(worker, watch, fill).await
    }

    /// Waits for what comes from the upstream; the outer error is a reason to give the call up.
    pub async fn wait<T>(
        &mut self,
        worker: &Worker,
        watch: &mut Background<'_>,
        mut poll: impl FnMut(&mut ReadHalf, &mut Inbox, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Result<io::Result<T>, ShortCircuit> {
        let UpstreamConnection {
            read, inbox, timer, ..
        } = &mut *self.connection;
        let (read_timeout, deadline) = (self.read_timeout, self.deadline);
        std::future::poll_fn(|context| {
            let was_sending = watch.is_sending();
            // An upstream that never stops answering must not keep the request's body waiting.
            watch.poll_progress(context);
            if let Poll::Ready(result) = poll(read, inbox, context) {
                return Poll::Ready(Ok(result));
            }
            // While the request is still being sent, its own time-outs hold; the upstream's begins after it.
            if let Poll::Ready(stop) = watch.poll_cancelled(context, worker) {
                return Poll::Ready(Err(stop));
            }
            if watch.is_sending() {
                let Some(deadline) = deadline else {
                    return Poll::Pending;
                };
                timer.set_to(deadline);
            } else if was_sending {
                timer.set_within(read_timeout, deadline);
            }
            timer
                .poll_expired(context)
                .map(|()| Ok(Err(io::ErrorKind::TimedOut.into())))
        })
        .await
    }
}

/// Whether a response is one of those that come before the final one.
fn is_interim(response: &Response) -> bool {
    (100..200).contains(&response.status) && response.status != 101
}
