//! Proxies on the way to an upstream: where a call goes through one in place of directly, and what it tells then.

use crate::connector::HttpProxy;

/// The proxies that a call goes through on its way to its service's targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamProxy {
    /// For targets in the clear: they are named in the request's target (RFC 9112, 3.2.2).
    pub plain: HttpProxy,
    /// For targets over TLS, through a tunnel (RFC 9110, 9.3.6).
    pub tunnel: HttpProxy,
    /// Whether certificates of targets must be good; `None`: as the service says.
    pub verify_tls: Option<bool>,
    /// What the call tells of its client.
    pub forwarded: ProxiedForwarding,
}

/// What calls through a proxy tell of their clients in `X-Forwarded-*`, `X-Real-IP` and `Forwarded`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxiedForwarding {
    /// What the route tells.
    #[default]
    Usual,
    /// What the client has told, and nothing else.
    AsReceived,
    /// Nothing.
    Nothing,
}
