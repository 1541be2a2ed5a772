//! As whom a target is met over TLS, and by which key its connections are kept.

use super::target_override::NO_TARGET;
use super::{ForwardPlan, own_host};
use crate::pool::PoolKey;
use crate::serve::RequestContext;
use crate::worker::{NamedTarget, TargetPosition};
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::rc::Rc;
use weir_model::UpstreamHost;
use weir_snapshot::Target;

impl RequestContext<'_> {
    /// A target over TLS whose name no call changes: its key is made once for each address, and not for each call.
    /// `None`: the target is not one of these.
    pub(super) fn named_target(
        &self,
        plan: &ForwardPlan<'_>,
        target: &Target,
        index: usize,
        address: SocketAddr,
    ) -> Option<Rc<NamedTarget>> {
        let tls = plan.forward.tls.as_ref().filter(|_| plan.place != NO_TARGET)?;
        let is_by_target =
            plan.forward.upstream_host == UpstreamHost::Target && self.exchange.upstream_host.is_none();
        if tls.name.is_none() && !is_by_target {
            return None;
        }
        let place = TargetPosition {
            upstream: plan.place,
            target: index,
            tls: tls.id,
            address,
        };
        self.serving.named_target(place, || {
            let name = tls.name.clone().or_else(|| self.server_name(plan, target))?;
            let tls = Some((tls.id, name));
            let key = PoolKey { address, tls };
            Some(NamedTarget {
                idle: self.worker.pool.list(&key),
                key,
            })
        })
    }

    /// The name in the TLS handshake with a target: the one in its `Host`, without the port.
    pub(super) fn server_name(&self, plan: &ForwardPlan<'_>, target: &Target) -> Option<ServerName<'static>> {
        let request = &self.exchange.request;
        let exchange = &self.exchange;
        let own = own_host(
            exchange.upstream_host.as_deref(),
            exchange.upstream_host_yields,
            plan.forward,
        );
        let server_name = match (own, &plan.forward.upstream_host) {
            (Some(host), _) => host,
            (None, UpstreamHost::Fixed(host) | UpstreamHost::WithTargetPort(host)) => host.as_bytes(),
            (None, UpstreamHost::Target) => target.host.as_bytes(),
            (None, UpstreamHost::Client) => request.host.as_slice(),
        };
        [server_name, target.host.as_bytes()]
            .into_iter()
            .find_map(|host| {
                let host = match host.first()? {
                    b'[' => &host[1..memchr::memchr(b']', host)?],
                    _ => &host[..memchr::memchr(b':', host).unwrap_or(host.len())],
                };
                let name = std::str::from_utf8(host).ok()?;
                ServerName::try_from(name.to_owned()).ok()
            })
    }
}
