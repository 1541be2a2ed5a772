//! The target of a call, instead of its service's own targets: another upstream, host or port. All else (timeouts, TLS,
//! the path before the call's) remains that of the service.

/// Another place for a call. What is left out is the service's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetOverride {
    /// The name of an upstream; if there is no such upstream, `host` and `port` count.
    pub upstream: Option<String>,
    /// A name or an address, IPv6 without brackets.
    pub host: Option<String>,
    /// A port.
    pub port: Option<u16>,
    /// The upstream is left out while too few of its targets are healthy.
    pub only_if_healthy: bool,
}
