//! Calls that go to their targets through an HTTP proxy: the address to connect to, the headers for the proxy, and the
//! key of their pooled connections. How a proxy is spoken to is in [`crate::side_connection`].

use super::{AttemptResult, Failure, ForwardPlan};
use crate::outcome::ShortCircuit;
use crate::pool::{IdleList, TaggedPoolKey, UpstreamConnection};
use crate::serve::RequestContext;
use crate::side_connection::{ConnectTarget, ProxyTarget, TlsTarget};
use crate::timer::Timer;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use weir_http1::fields::push_header;
use weir_plugin::{Headers, HttpProxy, ProxiedForwarding, UpstreamProxy};
use weir_snapshot::Target;

/// Headers with data about clients.
const FORWARDED: [&[u8]; 8] = [
    b"Forwarded",
    b"X-Forwarded-For",
    b"X-Forwarded-Proto",
    b"X-Forwarded-Host",
    b"X-Forwarded-Port",
    b"X-Forwarded-Path",
    b"X-Forwarded-Prefix",
    b"X-Real-IP",
];

/// Prepares the headers of a call that goes through a proxy. `false`: the route's own lines are added as usual.
pub(super) fn prepare(proxy: &UpstreamProxy, headers: &mut Headers) -> bool {
    // The next server has no business with the client's login at a proxy.
    headers.remove(b"Proxy-Authorization");
    match proxy.forwarded {
        ProxiedForwarding::Usual => false,
        ProxiedForwarding::AsReceived => true,
        ProxiedForwarding::Nothing => {
            for name in FORWARDED {
                headers.remove(name);
            }
            true
        }
    }
}

/// The proxy that is on the way, if the request names its target to it.
pub(super) fn named_to<'p>(plan: &'p ForwardPlan<'_>) -> Option<&'p HttpProxy> {
    let proxy = plan.proxy.as_ref().filter(|_| plan.forward.tls.is_none())?;
    Some(&proxy.plain)
}

/// `host:port` of a target.
fn authority(target: &Target) -> String {
    match target.host.contains(':') {
        true => format!("[{}]:{}", target.host, target.port),
        false => format!("{}:{}", target.host, target.port),
    }
}

/// Writes what stands before the path in a request to a proxy.
pub(super) fn write_origin(target: &Target, out: &mut Vec<u8>) {
    out.extend_from_slice(b"http://");
    out.extend_from_slice(authority(target).as_bytes());
}

/// Writes as whom the gateway asks a proxy.
pub(super) fn write_authorization(proxy: &HttpProxy, out: &mut Vec<u8>) {
    if let Some(authorization) = &proxy.authorization {
        push_header(out, b"Proxy-Authorization", authorization.as_bytes());
    }
}

impl RequestContext<'_> {
    /// Tries a target through a proxy.
    pub(super) async fn try_through(
        &mut self,
        plan: &ForwardPlan<'_>,
        index: usize,
        proxy: &UpstreamProxy,
    ) -> AttemptResult {
        let target = &plan.upstream.targets[index];
        let tls = match self.target_tls(plan, target, proxy) {
            Ok(tls) => tls,
            Err(failure) => return AttemptResult::Failed(failure),
        };
        // HTTP/2 is only spoken to what has chosen it over TLS; without that a proxy would have to know it.
        if tls.is_none() && plan.scheme.is_http2() {
            return AttemptResult::Failed(Failure::Connect);
        }
        let rules = match tls {
            None => &proxy.plain,
            Some(_) => &proxy.tunnel,
        };
        let Some(address) = self.address_of(rules).await else {
            return AttemptResult::Failed(Failure::NameResolution);
        };
        self.exchange.upstream = Some(address);
        let server = authority(target);
        let way = ConnectTarget {
            address,
            tls,
            proxy: Some(ProxyTarget {
                rules: rules.clone(),
                server: server.clone(),
            }),
        };
        let user = rules.authorization.as_deref().unwrap_or_default();
        let key = TaggedPoolKey {
            end: way.pool_key(),
            tag: format!("call {server} {user}"),
        };
        let list = self.worker.tagged_pool.list(&key);
        if let Some(connection) = IdleList::take(&list, &plan.upstream.keepalive, plan.started) {
            self.worker.metrics.upstream_connections_reused.increment();
            match self.attempt(plan, target, &key.end, connection, true).await {
                AttemptResult::Failed(Failure::StaleConnection)
                    if self.is_idempotent() && self.is_replayable() => {}
                other => return other,
            }
        }
        match self.open(plan, &way).await {
            Ok(Some(mut connection)) => {
                connection.home = Some(list);
                self.attempt(plan, target, &key.end, connection, false).await
            }
            Ok(None) => AttemptResult::Stopped(ShortCircuit::Gone),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                AttemptResult::Failed(Failure::ConnectTimeout)
            }
            Err(_) => AttemptResult::Failed(Failure::Connect),
        }
    }

    /// The TLS settings for the target that the proxy connects to; `None`: in the clear.
    fn target_tls(
        &self,
        plan: &ForwardPlan<'_>,
        target: &Target,
        proxy: &UpstreamProxy,
    ) -> Result<Option<TlsTarget>, Failure> {
        let Some(own) = &plan.forward.tls else {
            return Ok(None);
        };
        let name = own.name.clone().or_else(|| self.server_name(plan, target));
        let name = name.ok_or(Failure::Connect)?;
        let rules = match proxy.verify_tls {
            None => own,
            Some(verify) => own.verifying(verify).map_err(|_| Failure::Connect)?,
        };
        Ok(Some(TlsTarget {
            id: rules.id,
            name,
            config: Arc::clone(&rules.config),
        }))
    }

    async fn address_of(&self, proxy: &HttpProxy) -> Option<SocketAddr> {
        let ip = match proxy.host.parse() {
            Ok(ip) => ip,
            Err(_) => {
                let resolved = self.worker.resolver.resolve(&proxy.host, Instant::now()).await;
                resolved.ok()?
            }
        };
        Some(SocketAddr::new(ip, proxy.port))
    }

    /// Connects; `None` when the client went meanwhile.
    async fn open(
        &mut self,
        plan: &ForwardPlan<'_>,
        way: &ConnectTarget,
    ) -> io::Result<Option<Box<UpstreamConnection>>> {
        let timeout = plan.within(Duration::from_millis(plan.timeouts.connect_ms));
        let (client, worker) = (&mut *self.client, self.worker);
        let mut opening = std::pin::pin!(tokio::time::timeout(timeout, way.open()));
        let halves = std::future::poll_fn(|context| match opening.as_mut().poll(context) {
            Poll::Ready(Ok(opened)) => Poll::Ready(opened.map(Some)),
            Poll::Ready(Err(_)) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => client
                .reader
                .poll_closed(context, &worker.runtime)
                .map(|()| Ok(None)),
        });
        let timer = Timer::new(Instant::now(), timeout);
        let opened = halves.await?;
        Ok(opened.map(|halves| UpstreamConnection::of(halves, timer, &worker.metrics)))
    }
}
