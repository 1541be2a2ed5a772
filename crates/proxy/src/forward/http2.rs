//! One try over HTTP/2: sending the request's head on a stream, and waiting for that of the response.

use super::attempt::{Attempt, AttemptHead};
use super::pump::{Background, Pump};
use super::{Failure, ForwardPlan};
use crate::halves::ReadHalf;
use crate::multiplex::event::StreamEvent;
use crate::multiplex::fields;
use crate::serve::RequestContext;
use std::io;
use std::task::Poll;
use weir_http1::Framing;
use weir_http1::fields::push_header;
use weir_http2::RequestHead;
use weir_snapshot::Target;
use weir_telemetry::metrics::ProtocolError;

impl RequestContext<'_> {
    /// Sends the head. Leaves in `out` what is at hand of the body, and says whether the request is whole with it.
    pub(super) fn send_stream_head(
        &mut self,
        plan: &ForwardPlan<'_>,
        target: &Target,
        attempt: &Attempt,
        out: &mut Vec<u8>,
    ) -> io::Result<bool> {
        self.write_target(plan, out);
        let target_len = out.len();
        self.write_request_fields(plan, target, out);
        let mut body = self.worker.runtime.buffers.acquire_output();
        let is_whole = self.join_body(&mut body);
        // A stream's end shows the length as well; it is passed on only if the sender stated one.
        let length = match (is_whole, self.head.framing) {
            (true, _) => body.len() as u64,
            (false, Framing::Length(length)) => length,
            _ => 0,
        };
        let declares_length =
            self.exchange.request.version.0 < 2 || self.exchange.request.content_length.is_some();
        if declares_length && (length > 0 || self.exchange.request.content_length == Some(0)) {
            push_header(
                out,
                b"content-length",
                itoa::Buffer::new().format(length).as_bytes(),
            );
        }
        let scheme = if plan.forward.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let (target, lines) = out.split_at(target_len);
        let request = RequestHead {
            method: &self.exchange.request.method,
            target,
            scheme,
            authority: host_of(lines),
            lines,
        };
        let Some(stream) = attempt.connection.read.stream() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let sent = stream.send_request(request, is_whole && body.is_empty());
        out.clear();
        std::mem::swap(out, &mut body);
        self.worker.runtime.buffers.release_output(body);
        sent?;
        if is_whole {
            stream.end_with_next_write();
        }
        Ok(is_whole)
    }

    /// Waits for a head.
    pub(super) async fn await_stream_head(
        &mut self,
        attempt: &mut Attempt,
        pump: Option<&mut Pump>,
    ) -> AttemptHead {
        let mut watch = match pump {
            Some(pump) => Background::Pump(pump),
            None => Background::Client(&mut *self.client),
        };
        let came = attempt
            .wait(self.worker, &mut watch, |read, _, context| match read.stream() {
                Some(stream) => stream.poll_head(context),
                None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            })
            .await;
        let came = match came {
            Ok(Ok(came)) => came,
            Ok(Err(error)) => {
                if error.kind() == io::ErrorKind::TimedOut {
                    give_up(&attempt.connection.read);
                }
                return AttemptHead::Failed(attempt.failure(&error));
            }
            Err(stop) => return AttemptHead::Cancelled(stop),
        };
        // A connection that answers is alive, however the answer goes on.
        attempt.is_reused = false;
        let to_head = self.exchange.request.method == b"HEAD";
        let (list, is_whole) = match came {
            StreamEvent::Interim(list) => (list, false),
            StreamEvent::Final(list, is_whole) => (list, is_whole),
        };
        let read = fields::read_response(&list, is_whole, to_head, &mut self.exchange.response);
        self.worker.runtime.lists.give(list);
        match read {
            Ok(head) => AttemptHead::Head(head),
            Err(error) => {
                self.worker
                    .metrics
                    .protocol_error(ProtocolError::UpstreamMalformed);
                tracing::debug!(%error, "an upstream's HTTP/2 answer is not a valid response");
                AttemptHead::Failed(Failure::NoResponse)
            }
        }
    }
}

/// The value of `Host` among header lines.
fn host_of(mut lines: &[u8]) -> &[u8] {
    loop {
        let end = memchr::memchr(b'\n', lines).map_or(lines.len(), |end| end + 1);
        let (line, behind) = lines.split_at(end);
        match line.split_at_checked(5) {
            Some((name, value)) if name.eq_ignore_ascii_case(b"host:") => return value.trim_ascii(),
            _ if behind.is_empty() => return b"",
            _ => lines = behind,
        }
    }
}

/// A connection on which nothing comes in time may be dead; it gets no further calls.
fn give_up(read: &ReadHalf) {
    if let Some(stream) = read.stream() {
        stream.close_connection();
    }
}
