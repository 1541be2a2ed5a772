//! The head of a request as its target gets it.

use super::{ForwardPlan, own_host, through_proxy};
use crate::forwarded;
use crate::reply::push_via;
use crate::serve::RequestContext;
use weir_http1::Framing;
use weir_http1::fields::push_header;
use weir_model::UpstreamHost;
use weir_plugin::Exchange;
use weir_plugin::headers::is_value;
use weir_snapshot::Target;

impl RequestContext<'_> {
    /// Writes the request's target as the route's paths have it.
    pub(super) fn write_target(&self, plan: &ForwardPlan<'_>, out: &mut Vec<u8>) {
        forwarded::write_target(
            &plan.forward.path,
            plan.found.matched_len,
            plan.is_decoded,
            self.exchange,
            out,
        );
    }

    /// Writes the request's head as this target gets it.
    pub(super) fn write_request_head(&mut self, plan: &ForwardPlan<'_>, target: &Target, out: &mut Vec<u8>) {
        let request = &self.exchange.request;
        out.extend_from_slice(&request.method);
        out.push(b' ');
        let proxy = through_proxy::named_to(plan);
        if proxy.is_some() {
            through_proxy::write_origin(target, out);
        }
        self.write_target(plan, out);
        out.extend_from_slice(b" HTTP/1.1\r\n");
        self.write_request_fields(plan, target, out);
        if let Some(proxy) = proxy {
            through_proxy::write_authorization(proxy, out);
        }
        match (&self.exchange.request.body, self.head.framing) {
            (None, Framing::Length(length)) => {
                push_header(
                    out,
                    b"Content-Length",
                    itoa::Buffer::new().format(length).as_bytes(),
                );
            }
            (Some(body), _) => push_header(
                out,
                b"Content-Length",
                itoa::Buffer::new().format(body.len()).as_bytes(),
            ),
            (None, Framing::Chunked | Framing::UntilClose) => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            }
            (None, Framing::None) => {}
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes the fields of the request's head but those that frame it.
    pub(super) fn write_request_fields(
        &mut self,
        plan: &ForwardPlan<'_>,
        target: &Target,
        out: &mut Vec<u8>,
    ) {
        self.write_host(plan, target, out);
        self.exchange.request.headers.write_lines(out);
        if plan.tells_plainly {
            let lines = &self.client.forwarded_lines;
            forwarded::write_plain(
                &plan.route.rules.forwarded,
                plan.stripped,
                self.exchange,
                lines,
                out,
            );
        }
        if let Some(via) = plan.route.rules.forwarded.via.as_ref().filter(|_| !plan.has_via) {
            push_via(self.exchange.request.version, via, out);
        }
        self.write_gateway_headers(&plan.route.rules.request_headers, out);
        if let Some(protocol) = self.head.upgrade.as_ref().filter(|_| plan.route.rules.upgrade) {
            out.extend_from_slice(b"Connection: Upgrade\r\n");
            push_header(out, b"Upgrade", protocol);
        }
        if self.head.expects_continue && !self.answers_expect() {
            out.extend_from_slice(b"Expect: 100-continue\r\n");
        }
    }

    /// Writes `Host`, and takes the client's own, and a length that no longer holds, out of the header list.
    fn write_host(&mut self, plan: &ForwardPlan<'_>, target: &Target, out: &mut Vec<u8>) {
        let Exchange {
            request,
            upstream_host,
            upstream_host_yields,
            ..
        } = &mut *self.exchange;
        let own = own_host(upstream_host.as_deref(), *upstream_host_yields, plan.forward);
        let headers = &mut request.headers;
        let (host, port) = match (own, &plan.forward.upstream_host) {
            // A filter may have made it of anything.
            (Some(host), _) if is_value(host) => (host, None),
            (Some(_), _) => (target.host_header.as_slice(), None),
            (None, UpstreamHost::Fixed(host)) => (host.as_bytes(), None),
            (None, UpstreamHost::WithTargetPort(host)) => (host.as_bytes(), Some(target.port)),
            (None, UpstreamHost::Target) => (target.host_header.as_slice(), None),
            (None, UpstreamHost::Client) if self.head.minor_version > 0 || headers.contains(b"host") => {
                return;
            }
            // HTTP/1.0 does without the field, HTTP/1.1 does not.
            (None, UpstreamHost::Client) if request.host.is_empty() => (target.host_header.as_slice(), None),
            (None, UpstreamHost::Client) => (request.host.as_slice(), request.host_port),
        };
        // As most clients write it: such a name is found at once.
        headers.remove(b"Host");
        out.extend_from_slice(b"Host: ");
        out.extend_from_slice(host);
        if let Some(port) = port.filter(|port| *port != 80) {
            out.push(b':');
            out.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
}
