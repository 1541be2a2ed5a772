//! Passing a response on to the client: head and body, as they come. Requesting it is in a file of its own.

use super::ForwardPlan;
use super::attempt::Attempt;
use super::error::RelayError;
use super::pump::{Background, Pump};
use crate::buffer::BUFFER_BYTES;
use crate::multiplex::stream::Stream;
use crate::outcome::{ConnectionFate, ShortCircuit};
use crate::reply::{extend_via, push_via};
use crate::serve::RequestContext;
use std::io;
use weir_http1::Framing;
use weir_http1::body::BodyCursor;
use weir_http1::chunked::{self, ChunkEvent};
use weir_http1::fields::push_header;
use weir_http1::response::ResponseHead;
use weir_plugin::RefusalKind;
use weir_telemetry::metrics::ProtocolError;

/// Data up to this size is copied to the end of what is to be written; more is written by itself.
const MAX_COPIED: usize = 8 * 1024;
/// Chunks are written once so many bytes have gathered.
const FLUSH_BYTES: usize = 64 * 1024;

/// The state after the exchange of a whole response.
#[derive(Debug, Clone, Copy)]
pub struct Relayed {
    /// Whether the upstream's connection can carry another call.
    pub upstream_keeps: bool,
    /// Whether the client's can.
    pub client_keeps: bool,
}

impl RequestContext<'_> {
    /// Passes head and body on, after the chain's response work.
    ///
    /// # Errors
    /// How the client's connection is to end, as it cannot get the whole answer; or the error that it gets instead.
    pub(super) async fn relay_response(
        &mut self,
        plan: &ForwardPlan<'_>,
        head: &ResponseHead,
        attempt: &mut Attempt,
        pump: Option<&mut Pump>,
    ) -> Result<Relayed, RelayError> {
        let mut watch = pump.map_or(Background::Nothing, Background::Pump);
        if let Some(cookie) = &plan.cookie {
            cookie.replace_in(&mut self.exchange.response.headers);
        }
        self.exchange.merge_response_headers();
        if let Framing::Length(length) = head.framing {
            self.exchange.response.content_length = Some(length);
        }
        self.run_response_work(&plan.route.chain);
        let mut begun = None;
        let replaced = match self.exchange.response.hold.take() {
            Some(hold) if self.exchange.response.replaced_body.is_none() => {
                let held = Box::pin(self.hold(hold, head, attempt, &mut watch)).await?;
                match held.rest {
                    Some(rest) if !self.is_bodyless() => {
                        begun = Some(Box::new((held.body, rest)));
                        None
                    }
                    _ => Some(held.body),
                }
            }
            _ => (self.replacement(head)).map(|body| self.exchange.response.filter_whole(body)),
        };
        let replaced = match self.exchange.response.waits {
            true => Box::pin(self.wait_before_head(plan, head, replaced)).await?,
            false => replaced,
        };
        let framing = self.outgoing_framing(head, replaced.as_deref());
        if !plan.route.chain.steps.is_empty() {
            self.forget_response_framing(framing);
        }
        // A client that still waits for `100 Continue` may or may not send its body now; only closing is clear. Other
        // bodies may yet end in time, as when both directions stream at once.
        let is_clear = !(self.head.expects_continue && watch.is_sending());
        let keeps = self.head.keep_alive && is_clear && framing != Framing::UntilClose;
        let client_keeps = keeps && !self.worker.is_draining();
        // Behind an empty body trailers may yet come on a stream.
        let is_over = attempt.connection.read.stream().is_none_or(Stream::is_read);
        let is_whole = framing.is_empty() && (replaced.is_some() || is_over);
        let mut out = self.worker.runtime.buffers.acquire_output();
        let written =
            self.write_response_head(plan, (framing, head.has_via), client_keeps, is_whole, &mut out);
        watch.note_answer();
        let relayed = match replaced {
            _ if written.is_err() => Err(io::ErrorKind::BrokenPipe.into()),
            Some(body) => self.send_replacement(&body, head, &mut out, &mut watch).await,
            None => {
                self.relay_body(head, framing, begun, attempt, &mut out, &mut watch)
                    .await
            }
        };
        self.worker.runtime.buffers.release_output(out);
        match relayed {
            Ok(is_whole) => Ok(Relayed {
                upstream_keeps: is_whole && head.keep_alive,
                client_keeps,
            }),
            // If the end of the connection would be the end of the body, only a reset shows that it is not.
            Err(_) if framing == Framing::UntilClose => Err(ConnectionFate::Reset.into()),
            Err(_) => Err(ConnectionFate::Close.into()),
        }
    }

    /// Lets filters wait, who see and may replace a body that is whole. A part of one that has passed already goes first. They may
    /// also have made the answer one without a body.
    async fn wait_before_head(
        &mut self,
        plan: &ForwardPlan<'_>,
        head: &ResponseHead,
        replaced: Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, RelayError> {
        self.exchange.response.replaced_body = replaced;
        match self.run_response_waits(&plan.route.chain).await {
            Ok(()) => Ok(self.replacement(head)),
            Err(ShortCircuit::Gone) => Err(RelayError::Cut(ConnectionFate::Close)),
            Err(answer) => Err(RelayError::Refused(answer)),
        }
    }

    /// Whether the answer that the client gets can have no body, as it stands after the filters' work.
    fn is_bodyless(&self) -> bool {
        self.is_head() || matches!(self.exchange.response.status, 204 | 304)
    }

    /// The body in place of the upstream's: a filter's, or an empty one if the upstream's does not fit the answer.
    fn replacement(&mut self, head: &ResponseHead) -> Option<Vec<u8>> {
        let replaced = self.exchange.response.replaced_body.take();
        match (head.framing == Framing::None, self.is_bodyless()) {
            // A filter has changed the method or the status since the upstream was asked.
            (true, false) => Some(replaced.unwrap_or_default()),
            (false, true) => Some(Vec::new()),
            _ => replaced,
        }
    }

    /// Framing is the gateway's own, whatever a filter has set. A length that only describes another message (that
    /// of a HEAD or 304 answer) stays.
    fn forget_response_framing(&mut self, framing: Framing) {
        let headers = &mut self.exchange.response.headers;
        let described = match framing {
            Framing::None => headers.get(b"content-length").map(<[u8]>::to_vec),
            _ => None,
        };
        weir_http1::fields::forget_framing(headers);
        if let Some(length) = described.filter(|length| length.iter().all(u8::is_ascii_digit)) {
            headers.append(b"Content-Length", &length);
        }
    }

    fn outgoing_framing(&self, head: &ResponseHead, replaced: Option<&[u8]>) -> Framing {
        if self.is_bodyless() {
            return Framing::None;
        }
        match (head.framing, replaced) {
            (_, Some(body)) => Framing::Length(body.len() as u64),
            (Framing::None, None) => Framing::Length(0),
            (Framing::Length(length), _) if self.exchange.response.body_filters.keep_length() => {
                Framing::Length(length)
            }
            _ if self.head.minor_version == 0 || self.client.stream().is_some() => Framing::UntilClose,
            _ => Framing::Chunked,
        }
    }

    fn write_response_head(
        &mut self,
        plan: &ForwardPlan<'_>,
        (framing, head_has_via): (Framing, bool),
        keeps: bool,
        is_whole: bool,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        self.start_head(out);
        let version = plan.upstream_version();
        let response = &mut self.exchange.response;
        let may_have_via = head_has_via || !plan.route.chain.steps.is_empty();
        let has_via = may_have_via && extend_via(&plan.route.rules.forwarded, version, &mut response.headers);
        response.headers.write_lines(out);
        if let Some(via) = plan.route.rules.forwarded.via.as_ref().filter(|_| !has_via) {
            push_via(version, via, out);
        }
        // The end of a stream shows by itself that there is no body.
        let ends_with_headers = framing == Framing::Length(0) && self.client.stream().is_some();
        if !plan.route.rules.response_headers.is_empty() {
            self.write_gateway_headers(&plan.route.rules.response_headers, out);
        }
        match framing {
            Framing::Length(_) if ends_with_headers => {}
            Framing::Length(length) => {
                push_header(
                    out,
                    b"Content-Length",
                    itoa::Buffer::new().format(length).as_bytes(),
                );
            }
            Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Framing::None | Framing::UntilClose => {}
        }
        self.finish_head(keeps, is_whole, out)
    }

    async fn send_replacement(
        &mut self,
        body: &[u8],
        head: &ResponseHead,
        out: &mut Vec<u8>,
        watch: &mut Background<'_>,
    ) -> io::Result<bool> {
        if !self.is_bodyless() {
            out.extend_from_slice(body);
        }
        self.write_last(out, &[], watch).await?;
        // The upstream's own body is not read; its connection is of no further use unless there was none.
        Ok(head.framing.is_empty())
    }

    /// Passes the body on as it comes, after what of it was held back. Returns whether its end was seen.
    async fn relay_body(
        &mut self,
        head: &ResponseHead,
        framing: Framing,
        begun: Option<Box<(Vec<u8>, BodyCursor)>>,
        attempt: &mut Attempt,
        out: &mut Vec<u8>,
        watch: &mut Background<'_>,
    ) -> io::Result<bool> {
        let mut cursor = match begun {
            None => BodyCursor::new(head.framing),
            Some(begun) => {
                let (body, rest) = *begun;
                // An empty chunk would be the last one.
                if !body.is_empty() {
                    self.send_data(&body, framing, out, watch).await?;
                }
                rest
            }
        };
        let mut relayed = 0usize;
        while !cursor.is_done() {
            let piece = cursor
                .next(attempt.connection.inbox.bytes())
                .map_err(|error| self.blame_upstream(io::Error::new(io::ErrorKind::InvalidData, error)))?;
            match piece {
                ChunkEvent::End => break,
                ChunkEvent::Skip(0) => {
                    // The client should have this part before more is awaited. A body of known length is no
                    // stream of events: it is on its way as a whole, and is compressed better as one.
                    if !matches!(head.framing, Framing::Length(_)) {
                        self.pause_filters(framing, out);
                    }
                    self.flush(out, watch).await?;
                    if cursor.is_long(BUFFER_BYTES as u64) || relayed >= BUFFER_BYTES / 2 {
                        attempt.connection.inbox.enlarge(&self.worker.runtime.buffers);
                    }
                    match self.fill_answer(attempt, watch).await? {
                        0 if head.framing == Framing::UntilClose => break,
                        0 => {
                            self.worker
                                .metrics
                                .protocol_error(ProtocolError::UpstreamTruncated);
                            return Err(self.blame_upstream(io::ErrorKind::UnexpectedEof.into()));
                        }
                        _ => {}
                    }
                }
                ChunkEvent::Skip(count) => attempt.connection.inbox.consume(count),
                ChunkEvent::Data(count) if attempt.rate.is_some() => {
                    self.send_at_rate(count, framing, attempt, out, watch).await?;
                }
                ChunkEvent::Data(count) => {
                    relayed = relayed.saturating_add(count);
                    let data = &attempt.connection.inbox.bytes()[..count];
                    if self.exchange.response.body_filters.is_empty() {
                        self.send_data(data, framing, out, watch).await?;
                    } else {
                        self.send_filtered(data, framing, out, watch).await?;
                    }
                    attempt.connection.inbox.consume(count);
                }
            }
        }
        let mut trailers = match attempt.connection.read.stream() {
            None => cursor.take_trailers(),
            Some(_) => self.await_trailers(attempt, out, watch).await?,
        };
        self.end_filters(framing, &mut trailers, out);
        if framing == Framing::Chunked {
            let wants = |te: &[u8]| te.eq_ignore_ascii_case(b"trailers");
            match self.exchange.request.headers.get(b"te").is_some_and(wants) {
                true => chunked::write_last(&trailers, out),
                false => out.extend_from_slice(chunked::LAST_CHUNK),
            }
        }
        self.write_last(out, &trailers, watch).await?;
        Ok(head.framing != Framing::UntilClose)
    }

    /// Reads more of the upstream's answer: the number of bytes, 0 at its end.
    pub(super) async fn fill_answer(
        &mut self,
        attempt: &mut Attempt,
        watch: &mut Background<'_>,
    ) -> io::Result<usize> {
        let (timeout, deadline) = (attempt.read_timeout, attempt.deadline);
        attempt.connection.timer.set_within(timeout, deadline);
        let filled = match watch {
            Background::Nothing => {
                let mut watch = Background::Client(&mut *self.client);
                attempt.fill(self.worker, &mut watch, 0).await
            }
            Background::Client(_) | Background::Pump(_) => attempt.fill(self.worker, watch, 0).await,
        };
        match filled {
            Ok(Ok(count)) => Ok(count),
            Ok(Err(error)) => Err(self.blame_upstream(error)),
            Err(_) => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Reads an upstream's stream to its end, after the body's; returns the trailers, as header lines.
    pub(super) async fn await_trailers(
        &mut self,
        attempt: &mut Attempt,
        out: &mut Vec<u8>,
        watch: &mut Background<'_>,
    ) -> io::Result<Vec<u8>> {
        let is_read = |attempt: &Attempt| attempt.connection.read.stream().is_none_or(Stream::is_read);
        if !is_read(attempt) {
            self.flush(out, watch).await?;
            while !is_read(attempt) && self.fill_answer(attempt, watch).await? > 0 {
                attempt
                    .connection
                    .inbox
                    .consume(attempt.connection.inbox.bytes().len());
            }
        }
        let stream = attempt.connection.read.stream();
        Ok(stream.map(Stream::take_trailers).unwrap_or_default())
    }

    pub async fn send_data(
        &mut self,
        data: &[u8],
        framing: Framing,
        out: &mut Vec<u8>,
        watch: &mut Background<'_>,
    ) -> io::Result<()> {
        if framing == Framing::Chunked {
            chunked::write_size_line(data.len(), out);
            out.extend_from_slice(data);
            out.extend_from_slice(b"\r\n");
            if out.len() >= FLUSH_BYTES {
                self.flush(out, watch).await?;
            }
            return Ok(());
        }
        if data.len() <= MAX_COPIED {
            out.extend_from_slice(data);
            return Ok(());
        }
        self.report.bytes_out += (out.len() + data.len()) as u64;
        let written = self.write_to_client(out, data, watch).await;
        out.clear();
        written
    }

    /// Notes that it is not the client's fault that it does not get the whole answer.
    fn blame_upstream(&mut self, error: io::Error) -> io::Error {
        let refusal = match error.kind() {
            io::ErrorKind::TimedOut => RefusalKind::UpstreamTimeout,
            _ => RefusalKind::UpstreamFailed,
        };
        self.report.error = Some(refusal.as_str());
        error
    }

    pub async fn flush(&mut self, out: &mut Vec<u8>, watch: &mut Background<'_>) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        self.report.bytes_out += out.len() as u64;
        let written = self.write_to_client(out, &[], watch).await;
        out.clear();
        written
    }
}
