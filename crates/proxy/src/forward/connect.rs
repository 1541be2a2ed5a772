//! Tunnels that clients ask for with `CONNECT`. They lead to targets of the route's upstream and nowhere else: a name or an
//! address that is not written in the configuration is never looked up or connected to.

use super::pump::Background;
use super::target_override::NO_TARGET;
use super::{Failure, ForwardPlan, UpstreamProtocol};
use crate::outcome::{ConnectionFate, ShortCircuit};
use crate::pool::PoolKey;
use crate::serve::RequestContext;
use crate::tunnel::bytes::{self, Content};
use std::io;
use weir_http1::{fields, status};
use weir_plugin::RefusalKind;
use weir_snapshot::Target;

impl RequestContext<'_> {
    /// Opens a tunnel to the target that the client names, and carries bytes until it ends.
    pub(super) async fn connect_through(
        &mut self,
        plan: &ForwardPlan<'_>,
        port: u16,
    ) -> Result<ConnectionFate, ShortCircuit> {
        let host = &self.exchange.request.host;
        let mut targets = plan.upstream.targets.iter();
        // An upstream that a plugin has made from the call would lead to any server that the client names, and a tunnel
        // past a proxy.
        let index = targets
            .position(|target| target.weight > 0 && is_named(target, host, port))
            .filter(|_| plan.place != NO_TARGET && plan.proxy.is_none());
        let Some(index) = index else {
            return Err(RefusalKind::Forbidden { plugin: "connect" }.into());
        };
        let target = &plan.upstream.targets[index];
        let address = match target.address {
            Some(address) => address,
            None => match self.resolve(plan, target).await {
                Ok(address) => address,
                Err(_) => return Err(Failure::NameResolution.refusal().into()),
            },
        };
        self.exchange.upstream = Some(address);
        self.report.target = Some((plan.place, index));
        // What the client speaks with the target is for them to protect.
        let key = PoolKey { address, tls: None };
        let connection = match self.connect(plan, &key, UpstreamProtocol::Http1).await {
            Ok(Some(connection)) => connection,
            Ok(None) => return Err(ShortCircuit::Gone),
            Err(error) => {
                let failure = match error.kind() {
                    io::ErrorKind::TimedOut => Failure::ConnectTimeout,
                    _ => Failure::Connect,
                };
                self.note_failure(plan, target, failure);
                return Err(failure.refusal().into());
            }
        };
        // An open tunnel is no load that the upstream answers to.
        if let Some(slot) = &plan.slot {
            slot.leave(None);
        }
        self.exchange.response.clear();
        self.exchange.response.status = 200;
        if let Some(checks) = plan.passive_checks() {
            self.note_status(checks, target);
        }
        self.exchange.merge_response_headers();
        self.run_response_work(&plan.route.chain);
        let mut out = self.worker.runtime.buffers.acquire_output();
        status::write_line(200, b"Connection established", 1, &mut out);
        // There is no body: what follows the head is the tunnel's (RFC 9110, 9.3.6).
        fields::forget_framing(&mut self.exchange.response.headers);
        self.exchange.response.headers.write_lines(&mut out);
        self.write_gateway_headers(&plan.route.rules.response_headers, &mut out);
        out.extend_from_slice(b"\r\n");
        self.report.bytes_out += out.len() as u64;
        let written = self.write_to_client(&out, &[], &mut Background::Nothing).await;
        self.worker.runtime.buffers.release_output(out);
        if written.is_err() {
            return Err(ShortCircuit::Gone);
        }
        let run = bytes::run(self.worker, self.client, *connection, Content::Other);
        let carried = Box::pin(run).await;
        self.report.bytes_in += carried.from_client;
        self.report.bytes_out += carried.from_upstream;
        Ok(ConnectionFate::Close)
    }
}

/// Whether a client means this target. Names are in lower case, and IPv6 addresses have brackets.
fn is_named(target: &Target, host: &[u8], port: u16) -> bool {
    let host = host.strip_prefix(b"[").unwrap_or(host);
    let host = host.strip_suffix(b"]").unwrap_or(host);
    let name = target.host.strip_suffix('.').unwrap_or(&target.host);
    target.port == port && name.as_bytes().eq_ignore_ascii_case(host)
}
