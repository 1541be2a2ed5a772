//! `forward-proxy`: calls go to their service through an HTTP proxy.
//!
//! ```yaml
//! http: {host: proxy.internal, port: 3128}
//! username: weir
//! password: secret
//! ```
//!
//! A service in the clear is named to the proxy in the request; to one over TLS the proxy opens a tunnel (`CONNECT`), so
//! that it sees nothing of the call. The proxy resolves the names of targets. Health checks and mirrored calls go to
//! their targets directly. A call with HTTP/2 in the clear (h2c, gRPC) cannot go through a proxy, and is refused with 502.
//!
//! Security: the password is sent to the proxy in the clear. A proxy that cannot be reached, or that refuses, is a failure
//! of the target: the call never goes there directly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, HttpProxy, Outcome, Phases, Plugin, ProxiedForwarding, UpstreamProxy,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `forward-proxy`. `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The proxy for services in the clear; absent: `https`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<ProxyServer>,
    /// The proxy for services over TLS; absent: `http`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https: Option<ProxyServer>,
    /// The user name for the proxies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The user's password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Whether the certificates of services are verified; absent: as the service's configuration says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_tls: Option<bool>,
    /// The client's details in `X-Forwarded-*`, `X-Real-IP` and `Forwarded`.
    pub x_headers: XHeaders,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("http", &self.http)
            .field("https", &self.https)
            .finish_non_exhaustive()
    }
}

/// An HTTP proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProxyServer {
    /// Name or address.
    pub host: String,
    /// Port.
    #[schemars(range(min = 1))]
    pub port: u16,
}

/// The client's details in forwarded calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum XHeaders {
    /// As the route is configured.
    #[default]
    Append,
    /// Only what the client itself has sent.
    Transparent,
    /// Nothing.
    Delete,
}

/// The plugin `forward-proxy`.
pub struct ForwardProxy;

impl Plugin for ForwardProxy {
    fn name(&self) -> &'static str {
        "forward-proxy"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let servers = [("http", &config.http), ("https", &config.https)];
        for (field, server) in servers {
            let Some(server) = server else { continue };
            if server.host.is_empty() || server.host.contains(['/', '@', ' ']) {
                faults.add_at(&[field, "host"], "expected a name or an address");
            }
            if server.port == 0 {
                faults.add_at(&[field, "port"], "expected a port");
            }
        }
        if config.http.is_none() && config.https.is_none() {
            faults.add("http", "expected a proxy in 'http', in 'https' or in both");
        }
        if config.password.is_some() && config.username.is_none() {
            faults.add("username", "expected the user of the password");
        }
        if config.username.as_ref().is_some_and(|name| name.contains(':')) {
            faults.add(
                "username",
                "expected a name without a colon (RFC 7617, section 2)",
            );
        }
        faults.done()?;
        let authorization = config.username.as_ref().map(|name| {
            let password = config.password.as_deref().unwrap_or_default();
            format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
        });
        let proxy = |first: &Option<ProxyServer>, other: &Option<ProxyServer>| {
            let server = first.as_ref().or(other.as_ref())?;
            Some(HttpProxy {
                host: server.host.clone(),
                port: server.port,
                authorization: authorization.clone(),
            })
        };
        let plain = proxy(&config.http, &config.https);
        let tunnel = proxy(&config.https, &config.http);
        let (plain, tunnel) = plain.zip(tunnel).expect("invariant: one of them is given");
        Ok(Arc::new(ForwardProxyFilter(Arc::new(UpstreamProxy {
            plain,
            tunnel,
            verify_tls: config.verify_tls,
            forwarded: match config.x_headers {
                XHeaders::Append => ProxiedForwarding::Usual,
                XHeaders::Transparent => ProxiedForwarding::AsReceived,
                XHeaders::Delete => ProxiedForwarding::Nothing,
            },
        }))))
    }
}

/// An instance of `forward-proxy`.
struct ForwardProxyFilter(Arc<UpstreamProxy>);

impl Filter for ForwardProxyFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        exchange.upstream_proxy = Some(Arc::clone(&self.0));
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn each_kind_of_service_has_its_proxy() {
        let server = |host: &str| json!({"host": host, "port": 3128});
        for (config, plain, tunnel, authorization) in [
            (json!({"http": server("a")}), "a", "a", None),
            (json!({"https": server("b")}), "b", "b", None),
            (
                json!({"http": server("a"), "https": server("b"), "username": "u", "password": "p"}),
                "a",
                "b",
                Some("Basic dTpw"),
            ),
        ] {
            let mut exchange = exchange();
            let filter = build(&ForwardProxy, &config).expect("valid");
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
            let proxy = exchange.upstream_proxy.expect("a proxy");
            assert_eq!(
                (proxy.plain.host.as_str(), proxy.tunnel.host.as_str()),
                (plain, tunnel)
            );
            assert_eq!(proxy.tunnel.authorization.as_deref(), authorization);
        }
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&ForwardProxy, &example(include_str!("forward_proxy.rs"))).is_ok());
        let server = json!({"host": "a", "port": 3128});
        for (config, places) in [
            (json!({}), vec!["http"]),
            (
                json!({"http": {"host": "a/b", "port": 0}}),
                vec!["http.host", "http.port"],
            ),
            (json!({"http": server, "password": "p"}), vec!["username"]),
            (json!({"http": server, "username": "a:b"}), vec!["username"]),
        ] {
            assert_eq!(refused_at(&ForwardProxy, &config), places, "{config}");
        }
    }
}
