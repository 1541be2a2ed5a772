//! Responses that come before the final one (1xx), and the one that comes in its place (101).

use super::pump::Background;
use super::{AttemptResult, ForwardPlan};
use crate::outcome::{ConnectionFate, ShortCircuit};
use crate::pool::UpstreamConnection;
use crate::serve::RequestContext;
use crate::tunnel::bytes::{self, Content};
use crate::tunnel::messages;
use std::io;
use weir_http1::fields::push_header;
use weir_http1::response::ResponseHead;
use weir_http1::status;
use weir_plugin::RefusalKind;

impl RequestContext<'_> {
    /// Passes an interim response on to a client that can take it.
    pub(super) async fn relay_interim(&mut self) -> io::Result<()> {
        let response = &self.exchange.response;
        let is_invitation = response.status == 100;
        if self.head.minor_version == 0 || (is_invitation && !self.head.expects_continue) {
            return Ok(());
        }
        let mut out = self.worker.runtime.buffers.acquire_output();
        self.start_head(&mut out);
        response.headers.write_lines(&mut out);
        let written = match self.client.stream() {
            Some(stream) => stream.send_interim(response.status, &out),
            None => {
                out.extend_from_slice(b"\r\n");
                self.write_to_client(&out, &[], &mut Background::Nothing).await
            }
        };
        self.worker.runtime.buffers.release_output(out);
        if is_invitation {
            self.head.expects_continue = false;
        }
        written
    }

    /// Answers with a switch to what the client has asked for, and carries bytes from then on.
    pub(super) async fn switch_protocols(
        &mut self,
        plan: &ForwardPlan<'_>,
        head: &ResponseHead,
        connection: Box<UpstreamConnection>,
    ) -> AttemptResult {
        let Some(protocol) = head
            .upgrade
            .as_ref()
            .filter(|_| plan.route.rules.upgrade && self.head.upgrade.is_some())
        else {
            return AttemptResult::Stopped(RefusalKind::UpstreamFailed.into());
        };
        self.exchange.merge_response_headers();
        self.run_response_work(&plan.route.chain);
        let mut out = self.worker.runtime.buffers.acquire_output();
        if self.client.stream().is_some() {
            // A stream switches with a success (RFC 8441, 5); the key was the gateway's own.
            self.exchange.response.status = 200;
            self.exchange.response.headers.remove(b"sec-websocket-accept");
        } else {
            status::write_line(101, b"", 1, &mut out);
            out.extend_from_slice(b"Connection: upgrade\r\n");
            push_header(&mut out, b"Upgrade", protocol);
        }
        self.exchange.response.headers.write_lines(&mut out);
        self.write_gateway_headers(&plan.route.rules.response_headers, &mut out);
        let written = match self.client.stream() {
            Some(stream) => stream.send_head(200, &out, false),
            None => {
                out.extend_from_slice(b"\r\n");
                self.write_to_client(&out, &[], &mut Background::Nothing).await
            }
        };
        self.worker.runtime.buffers.release_output(out);
        if written.is_err() {
            return AttemptResult::Stopped(ShortCircuit::Gone);
        }
        let is_websocket = protocol.eq_ignore_ascii_case(b"websocket");
        let mask = (self.exchange.random_u64() as u32).to_be_bytes();
        let filters = std::mem::take(&mut self.exchange.message_filters);
        let carried = match is_websocket && !filters.is_empty() {
            true => {
                let run = messages::run(self.worker, self.client, *connection, filters, mask);
                Box::pin(run).await
            }
            false => {
                let content = match is_websocket {
                    true => Content::WebSocket(mask),
                    false => Content::Other,
                };
                Box::pin(bytes::run(self.worker, self.client, *connection, content)).await
            }
        };
        self.report.bytes_in += carried.from_client;
        self.report.bytes_out += carried.from_upstream;
        AttemptResult::Done(ConnectionFate::Close)
    }
}
