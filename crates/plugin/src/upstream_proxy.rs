//! Proxies on the way to an upstream: whether a call goes through one, and what it reveals about its client then.

use crate::connector::HttpProxy;

/// The proxies that a call goes through on its way to its service's targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamProxy {
    /// For targets in the clear: they are named in the request's target (RFC 9112, 3.2.2).
    pub plain: HttpProxy,
    /// For targets over TLS, through a tunnel (RFC 9110, 9.3.6).
    pub tunnel: HttpProxy,
    /// Whether the certificates of targets are verified; `None`: as the service says.
    pub verify_tls: Option<bool>,
    /// The client's details in the call.
    pub forwarded: ProxiedForwarding,
}

/// The client's details in `X-Forwarded-*`, `X-Real-IP` and `Forwarded`, for calls through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxiedForwarding {
    /// As the route is configured.
    #[default]
    Usual,
    /// Only what the client itself has sent.
    AsReceived,
    /// Nothing.
    Nothing,
}
