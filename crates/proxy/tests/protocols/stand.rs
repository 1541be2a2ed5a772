//! A gateway that listens for every protocol, in front of an upstream whose every byte a test decides.

use super::client::{ALL, Client, Protocol};
use super::support::{TestGateway, Upstream, patch, server_config, simple_model};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use weir_proxy::{GatewayOptions, Http3};

/// A gateway and its upstream.
pub struct Stand {
    pub gateway: TestGateway,
    pub upstream: Upstream,
}

/// Has a gateway listen for every protocol.
pub fn listen_for_all(options: &mut GatewayOptions) {
    options.listen_tls = vec![(Ipv4Addr::LOCALHOST, 0).into()];
    options.fallback_tls = Some(server_config());
    options.http3 = Some(Http3::default());
}

/// The address of a gateway's listener for a protocol.
pub fn address(gateway: &TestGateway, protocol: Protocol) -> SocketAddr {
    let bound = gateway.gateway().bound();
    match protocol {
        Protocol::Http1 | Protocol::Http2 => bound.plain[0],
        Protocol::Http1Tls | Protocol::Http2Tls => bound.tls[0],
        Protocol::Http3 => bound.http3[0],
    }
}

impl Stand {
    pub fn new() -> Self {
        Self::with(&Value::Null, |_| ())
    }

    /// With these changes of the simple model and of the options.
    pub fn with(changes: &Value, change: impl Fn(&mut GatewayOptions)) -> Self {
        let upstream = Upstream::bind();
        let model = simple_model(upstream.address);
        let model = match changes {
            Value::Null => model,
            changes => patch(model, changes),
        };
        Self {
            gateway: start(&model, change),
            upstream,
        }
    }

    /// With this model, and with an upstream that it need not use.
    pub fn of(model: Value, change: impl Fn(&mut GatewayOptions)) -> Self {
        Self {
            gateway: start(&model, change),
            upstream: Upstream::bind(),
        }
    }

    pub fn client(&self, protocol: Protocol) -> Client {
        Client::new(protocol, address(&self.gateway, protocol))
    }
}

/// Starts a gateway. If another process has the UDP port of a free TCP port, another port is looked for.
pub fn start(model: &Value, change: impl Fn(&mut GatewayOptions)) -> TestGateway {
    loop {
        let gateway = TestGateway::with(model.clone(), |options| {
            listen_for_all(options);
            change(options);
        });
        if !gateway.gateway().bound().http3.is_empty() {
            return gateway;
        }
    }
}

/// Runs a case over every protocol, each with a stand of its own.
pub fn over_all(case: impl Fn(Protocol, Stand)) {
    for protocol in ALL {
        case(protocol, Stand::new());
    }
}
