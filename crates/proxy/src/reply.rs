//! Answers that the gateway makes itself: refusals in the route's dialect, and what filters answer.

use crate::forward::Background;
use crate::forwarded;
use crate::grpc;
use crate::halves::WriteHalf;
use crate::outcome::{ConnectionFate, ShortCircuit};
use crate::serve::RequestContext;
use std::io;
use std::task::Context;
use std::time::SystemTime;
use weir_http1::body::BodyCursor;
use weir_http1::fields::push_header;
use weir_http1::status;
use weir_plugin::{Headers, NotOpen, Refusal, RefusalKind, Reply};
use weir_snapshot::{Chain, ForwardedHeaderPolicy, Route};
use weir_telemetry::metrics;

/// Most bytes of a request body that are read only to keep the connection.
const MAX_DRAIN: u64 = 64 * 1024;
/// A body up to this size is copied to the end of its head; a larger one is written by itself.
const MAX_COPIED: usize = 8 * 1024;

impl RequestContext<'_> {
    /// Puts a refusal into words.
    pub fn render(&mut self, refusal: &Refusal) -> Reply {
        self.exchange.ensure_request_id();
        self.report.error = Some(refusal.kind.cause());
        let reason = metric_of(&refusal.kind);
        self.worker.metrics.refusal(reason);
        (self.report.refusal, self.report.refused_by) = (Some(reason), plugin_of(&refusal.kind));
        if let Some(error) = protocol_error_of(&refusal.kind, self.head.length > 0) {
            self.worker.metrics.protocol_error(error);
        }
        self.error_renderer().render(refusal, self.exchange)
    }

    /// Sends an answer of the gateway's own, after the chain's response work.
    pub async fn send_reply(&mut self, reply: Reply, chain: &Chain, route: Option<&Route>) -> ConnectionFate {
        let shared = reply.shared.as_ref();
        let length = shared.map_or(reply.body.len(), |shared| shared.part().len());
        self.begin_reply(&reply, Some(length as u64));
        self.exchange.merge_response_headers();
        self.run_response_work(chain);
        if self.exchange.response.waits {
            return Box::pin(self.send_waiting_reply(reply, chain, route)).await;
        }
        let replaced = self.exchange.response.replaced_body.take();
        let is_filtered = !self.exchange.response.body_filters.is_empty() && !self.is_head();
        let response = &mut self.exchange.response;
        match (replaced, shared) {
            (None, Some(shared)) if is_filtered => {
                let body = response.filter_whole(shared.part().to_vec());
                self.write_reply(&body, route).await
            }
            (None, Some(shared)) => self.write_reply(shared.part(), route).await,
            (replaced, _) => {
                let body = replaced.unwrap_or(reply.body);
                let body = match is_filtered {
                    true => response.filter_whole(body),
                    false => body,
                };
                self.write_reply(&body, route).await
            }
        }
    }

    /// Sends an answer with which filters wait. They see its body, and may replace it.
    #[cold]
    async fn send_waiting_reply(
        &mut self,
        reply: Reply,
        chain: &Chain,
        route: Option<&Route>,
    ) -> ConnectionFate {
        let is_head = self.is_head();
        let response = &mut self.exchange.response;
        let own = match &reply.shared {
            Some(shared) => shared.part().to_vec(),
            None => reply.body,
        };
        let body = response.replaced_body.take().unwrap_or(own);
        response.replaced_body = Some(match is_head {
            true => body,
            false => response.filter_whole(body),
        });
        match self.run_response_waits(chain).await {
            Err(ShortCircuit::Gone) => return ConnectionFate::Close,
            Err(answer) if self.exchange.response.is_from_cache => {
                return Box::pin(self.stop(answer, chain, route)).await;
            }
            Ok(()) | Err(_) => {}
        }
        let body = self.exchange.response.replaced_body.take().unwrap_or_default();
        self.write_reply(&body, route).await
    }

    /// Begins a response with the head of an answer.
    pub fn begin_reply(&mut self, reply: &Reply, length: Option<u64>) {
        let response = &mut self.exchange.response;
        response.clear();
        response.status = reply.status;
        response.is_gateway = true;
        if let Some(shared) = &reply.shared {
            response.headers.copy_from(&shared.headers);
            response.is_kept = true;
            response.is_from_cache = true;
        }
        response.content_length = length;
        if !reply.content_type.is_empty() {
            response
                .headers
                .append(b"Content-Type", reply.content_type.as_bytes());
        }
        for (name, value) in &reply.headers {
            // There is one, and what was named as a header counts.
            match name.eq_ignore_ascii_case("content-type") {
                true => response.headers.set(name.as_bytes(), value),
                false => response.headers.append(name.as_bytes(), value),
            }
        }
    }

    /// Writes the response's head, up to how its body ends.
    pub fn write_reply_head(&mut self, route: Option<&Route>, out: &mut Vec<u8>) {
        self.start_head(out);
        // What was made by another server, and kept, has that one's date (RFC 9110, 6.6.1).
        if !self.exchange.response.headers.contains(b"date") {
            let date = self.worker.date.at(SystemTime::now());
            push_header(out, b"Date", &date);
        }
        self.exchange.response.headers.write_lines(out);
        if let Some(route) = route {
            self.write_gateway_headers(&route.rules.response_headers, out);
            if let Some(via) = route
                .rules
                .forwarded
                .via
                .as_ref()
                .filter(|_| self.report.upstream_time.is_some())
            {
                push_via((1, 1), via, out);
            }
        }
    }

    /// Writes the response's head and this body.
    pub async fn write_reply(&mut self, body: &[u8], route: Option<&Route>) -> ConnectionFate {
        let after = self.after_reply();
        let status = self.exchange.response.status;
        let ends_grpc = self.ends_grpc(status);
        let is_bodyless = status == 204 || status == 304 || status < 200 || ends_grpc;
        let mut out = self.worker.runtime.buffers.acquire_output();
        self.write_reply_head(route, &mut out);
        if !is_bodyless {
            push_header(
                &mut out,
                b"Content-Length",
                itoa::Buffer::new().format(body.len()).as_bytes(),
            );
        }
        let body = if is_bodyless || self.is_head() { &[] } else { body };
        if let Err(error) = self.finish_head(after == ConnectionFate::KeepAlive, body.is_empty(), &mut out) {
            tracing::debug!(%error, "a response cannot be written to the client");
            return ConnectionFate::Close;
        }
        let written = match body.len() <= MAX_COPIED {
            true => {
                out.extend_from_slice(body);
                self.write_last(&mut out, &[], &mut Background::Nothing).await
            }
            false => self.write_large(&out, body).await,
        };
        self.worker.runtime.buffers.release_output(out);
        // The record of the call has the intended status.
        self.exchange.response.status = status;
        if self.client.stream().is_some() {
            return if written.is_ok() {
                ConnectionFate::KeepAlive
            } else {
                ConnectionFate::Close
            };
        }
        match (written, after) {
            (Err(_), _) => ConnectionFate::Close,
            (Ok(()), ConnectionFate::KeepAlive) => match self.drain_request_body().await {
                Ok(()) => ConnectionFate::KeepAlive,
                Err(_) => ConnectionFate::Close,
            },
            (Ok(()), after) => after,
        }
    }

    /// Whether the connection can go on after an answer that did not need the request's body.
    fn after_reply(&self) -> ConnectionFate {
        let is_read = self.body.cursor.is_done();
        let allowed = self.body.limit.saturating_sub(self.body.received).min(MAX_DRAIN);
        let is_short = matches!(&self.body.cursor, BodyCursor::Length(left) if *left <= allowed);
        // A client that waits for `100 Continue` may or may not send its body now; only closing is clear.
        let is_clear = is_read || (is_short && !self.head.expects_continue);
        if is_clear && self.head.keep_alive && !self.worker.is_draining() {
            ConnectionFate::KeepAlive
        } else if is_read {
            ConnectionFate::Close
        } else {
            ConnectionFate::Linger
        }
    }

    /// Makes a refusal of a gRPC call the end of that call: a good response carries its failure in fields.
    fn ends_grpc(&mut self, status: u16) -> bool {
        let is_grpc = self.client.stream().is_some() && grpc::is_call(self.exchange);
        let ends = is_grpc && grpc::end_call(status, &mut self.exchange.response.headers);
        if ends {
            self.exchange.response.status = 200;
        }
        ends
    }

    /// Begins a head: HTTP/1.1 has a line for the status.
    pub fn start_head(&self, out: &mut Vec<u8>) {
        if self.client.stream().is_none() {
            let response = &self.exchange.response;
            status::write_line(response.status, &response.reason, 1, out);
        }
    }

    /// Ends a head. A stream gets it at once; `is_whole`: nothing follows it.
    pub fn finish_head(&mut self, keeps: bool, is_whole: bool, out: &mut Vec<u8>) -> io::Result<()> {
        match &self.client.write {
            WriteHalf::Tcp(_) => {
                self.write_connection_header(keeps, out);
                out.extend_from_slice(b"\r\n");
            }
            WriteHalf::Tls(_) => {
                self.write_alternative(out);
                self.write_connection_header(keeps, out);
                out.extend_from_slice(b"\r\n");
            }
            WriteHalf::Stream(stream) => {
                self.write_alternative(out);
                stream.send_head(self.exchange.response.status, out, is_whole)?;
                self.report.bytes_out += out.len() as u64;
                out.clear();
            }
        }
        Ok(())
    }

    /// Announces HTTP/3, unless the answer has an `Alt-Svc` of its own.
    fn write_alternative(&self, out: &mut Vec<u8>) {
        if let Some(tls) = &self.client.tls
            && let Some(line) = &tls.alternative
            && !self.exchange.response.headers.contains(b"alt-svc")
        {
            out.extend_from_slice(line);
        }
    }

    /// Writes what is left of an answer, and its end with it.
    pub async fn write_last(
        &mut self,
        out: &mut Vec<u8>,
        trailers: &[u8],
        watch: &mut Background<'_>,
    ) -> io::Result<()> {
        self.report.bytes_out += (out.len() + trailers.len()) as u64;
        if let Some(stream) = self.client.stream()
            && trailers.is_empty()
        {
            stream.end_with_next_write();
        }
        if !out.is_empty() {
            // Nearly always the client takes all of it at once.
            let written = match self.client.write.try_write(out) {
                Ok(count) if count == out.len() => Ok(()),
                Ok(count) => self.write_to_client(&out[count..], &[], watch).await,
                Err(error) => Err(error),
            };
            out.clear();
            written?;
        }
        match self.client.stream() {
            Some(stream) => stream.end(trailers),
            None => Ok(()),
        }
    }

    /// Writes the head, and then a large body without copying it, and ends the answer.
    async fn write_large(&mut self, head: &[u8], body: &[u8]) -> io::Result<()> {
        self.report.bytes_out += (head.len() + body.len()) as u64;
        if let Some(stream) = self.client.stream() {
            stream.end_with_next_write();
        }
        self.write_to_client(head, body, &mut Background::Nothing).await?;
        match self.client.stream() {
            Some(stream) => stream.end(&[]),
            None => Ok(()),
        }
    }

    /// Writes `first` and then `second` to the client; what `watch` watches goes on meanwhile.
    pub async fn write_to_client(
        &mut self,
        first: &[u8],
        second: &[u8],
        watch: &mut Background<'_>,
    ) -> io::Result<()> {
        let timeout = self.worker.shared.limits.write_timeout;
        let progress = |context: &mut Context<'_>| watch.poll_progress(context);
        self.client.write(first, second, timeout, progress).await
    }

    async fn drain_request_body(&mut self) -> io::Result<()> {
        while !self.body.cursor.is_done() {
            self.read_body_piece(|_| ())
                .await
                .map_err(|_| io::ErrorKind::UnexpectedEof)?;
        }
        Ok(())
    }

    /// Writes `Connection`: what becomes of the connection, unless a client of HTTP/1.1 takes it for granted.
    pub fn write_connection_header(&self, keep_alive: bool, out: &mut Vec<u8>) {
        match (keep_alive, self.head.minor_version) {
            (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
            (true, 0) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            _ => {}
        }
    }
}

/// Writes `Via` (RFC 9110, 7.6.3).
pub fn push_via(version: (u8, u8), pseudonym: &[u8], out: &mut Vec<u8>) {
    let start = via_start(version);
    out.reserve(start.len() + pseudonym.len() + 2);
    out.extend_from_slice(start);
    out.extend_from_slice(pseudonym);
    out.extend_from_slice(b"\r\n");
}

/// Adds the gateway to the `Via` that other hops have written. Returns whether there was one. Called only if there may
/// be one: it looks through the list.
#[cold]
pub fn extend_via(forwarded: &ForwardedHeaderPolicy, version: (u8, u8), headers: &mut Headers) -> bool {
    let Some(pseudonym) = &forwarded.via else {
        return false;
    };
    let Some(mut list) = forwarded::list_so_far(forwarded, headers, b"via") else {
        return false;
    };
    list.extend_from_slice(protocol(version));
    list.extend_from_slice(pseudonym);
    headers.set(b"Via", &list);
    true
}

/// The text before the pseudonym in a line `Via` about this version of HTTP.
#[inline]
fn via_start(version: (u8, u8)) -> &'static [u8] {
    match version {
        (1, 0) => b"Via: 1.0 ",
        (2, _) => b"Via: 2 ",
        (3, _) => b"Via: 3 ",
        _ => b"Via: 1.1 ",
    }
}

/// A version of HTTP as `Via` names it, with the space after it.
fn protocol(version: (u8, u8)) -> &'static [u8] {
    &via_start(version)[b"Via: ".len()..]
}

/// The client's protocol error, if it is the reason of the refusal.
fn protocol_error_of(kind: &RefusalKind, has_head: bool) -> Option<metrics::ProtocolError> {
    use metrics::ProtocolError as Metric;
    Some(match kind {
        RefusalKind::BadRequest(_) => Metric::BadRequest,
        RefusalKind::UriTooLong => Metric::TargetTooLong,
        RefusalKind::HeadTooLarge => Metric::HeadTooLarge,
        RefusalKind::BodyTooLarge => Metric::BodyTooLarge,
        RefusalKind::MethodNotAllowed
        | RefusalKind::ExpectationFailed
        | RefusalKind::NotImplemented
        | RefusalKind::VersionNotSupported => Metric::Unsupported,
        RefusalKind::RequestTimeout if has_head => Metric::BodyTimeout,
        RefusalKind::RequestTimeout => Metric::HeadTimeout,
        _ => return None,
    })
}

/// The plugin that wanted a refusal.
fn plugin_of(kind: &RefusalKind) -> Option<&'static str> {
    match kind {
        RefusalKind::Unauthenticated { plugin, .. }
        | RefusalKind::Forbidden { plugin }
        | RefusalKind::Unacceptable { plugin }
        | RefusalKind::Answered { plugin }
        | RefusalKind::NotOpen { plugin, .. }
        | RefusalKind::PluginFailed { plugin, .. } => Some(plugin),
        _ => None,
    }
}

/// The reason under which a refusal is counted.
fn metric_of(kind: &RefusalKind) -> metrics::Refusal {
    use RefusalKind as Kind;
    use metrics::Refusal as Metric;
    match kind {
        Kind::BadRequest(_)
        | Kind::MethodNotAllowed
        | Kind::RequestTimeout
        | Kind::BodyTooLarge
        | Kind::UriTooLong
        | Kind::ExpectationFailed
        | Kind::HeadTooLarge
        | Kind::NotImplemented
        | Kind::VersionNotSupported => Metric::Protocol,
        Kind::NoRoute => Metric::NoRoute,
        Kind::HttpsRequired => Metric::WrongProtocol,
        Kind::Unauthenticated { .. } => Metric::Unauthenticated,
        Kind::Forbidden { .. } => Metric::Forbidden,
        Kind::RateLimited | Kind::QuotaSpent => Metric::RateLimited,
        Kind::NotOpen { reason, .. } => match reason {
            NotOpen::NoSubscription => Metric::NoSubscription,
            NotOpen::SubscriptionPaused => Metric::SubscriptionPaused,
            NotOpen::SubscriptionStopped => Metric::SubscriptionStopped,
            NotOpen::SubscriptionEnded => Metric::SubscriptionEnded,
            NotOpen::SubscriptionNotBegun => Metric::SubscriptionNotBegun,
            NotOpen::NotInPlan => Metric::NotInPlan,
            NotOpen::Retired => Metric::Retired,
        },
        Kind::NoTarget | Kind::NameResolution => Metric::NoTarget,
        Kind::ConnectFailed => Metric::UpstreamConnect,
        Kind::UpstreamFailed => Metric::UpstreamInvalid,
        Kind::UpstreamTimeout => Metric::UpstreamTimeout,
        Kind::NoService | Kind::Overloaded => Metric::Unavailable,
        Kind::WorkLimit => Metric::WorkLimit,
        Kind::AnonymousConsumerMissing | Kind::PluginFailed { .. } => Metric::Internal,
        _ => Metric::Plugin,
    }
}
