//! `mirror`: sends a copy of calls to another server, and ignores its responses.
//!
//! ```yaml
//! to: http://shadow.internal:8080
//! sample: 0.1
//! ```
//!
//! It runs last in a chain, so that copies carry the headers that the service gets; their target is the one that the
//! client requested. Refused calls are not copied, nor are calls with a body above `max_body_bytes`.
//!
//! Security: copies carry credentials, cookies and bodies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_value;
use weir_plugin::uri::{escape_controls, escape_path};
use weir_plugin::{
    BackgroundRequest, BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Request, parse_config,
};

/// Configuration of `mirror`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `http://host:port` of the server that gets the copies.
    pub to: String,
    /// The path in the copies; absent: the call's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `path` is put before the call's own path rather than in its place.
    pub prefix: bool,
    /// The share of calls that is copied, from 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub sample: f64,
    /// The largest body that is copied, in bytes.
    pub max_body_bytes: usize,
    /// Milliseconds that a copy may take, its answer included.
    pub timeout_ms: u64,
    /// Whether the paths of this chain's calls are decoded before they are matched.
    pub decoded_paths: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            to: String::new(),
            path: None,
            prefix: false,
            sample: 1.0,
            max_body_bytes: 1 << 20,
            timeout_ms: 60_000,
            decoded_paths: false,
        }
    }
}

/// The plugin `mirror`.
pub struct Mirror;

impl Plugin for Mirror {
    fn name(&self) -> &'static str {
        "mirror"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        let mut fault = |field: &str, message: &str| {
            faults.push(Diagnostic::error(DocPath::root().field(field), message));
        };
        let server = server(&config.to);
        if server.is_none() {
            fault("to", "expected http://host:port");
        }
        if !(0.0..=1.0).contains(&config.sample) {
            fault("sample", "expected from 0 to 1");
        }
        if config.path.as_ref().is_some_and(|path| !path.starts_with('/')) {
            fault("path", "expected a path that begins with '/'");
        }
        if config.max_body_bytes > MAX_BODY {
            fault("max_body_bytes", "expected at most 16777216 bytes");
        }
        match (server, faults.is_empty()) {
            (Some((host, port)), true) => Ok(Arc::new(MirrorFilter {
                host,
                port,
                threshold: (config.sample * f64::from(u32::MAX)) as u64,
                timeout: Duration::from_millis(config.timeout_ms),
                config,
            })),
            _ => Err(faults),
        }
    }
}

/// The most that `max_body_bytes` may be.
const MAX_BODY: usize = 16 << 20;

/// Host and port of `http://host:port`.
fn server(address: &str) -> Option<(String, u16)> {
    let origin = address.strip_prefix("http://")?.trim_end_matches('/');
    let (host, port) = match origin.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (origin, 80),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_host = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']) && is_value(host.as_bytes());
    is_host.then(|| (host.to_owned(), port))
}

/// An instance of `mirror`.
struct MirrorFilter {
    host: String,
    port: u16,
    /// The number of calls that are copied, out of 2^32 - 1.
    threshold: u64,
    timeout: Duration,
    config: Config,
}

impl MirrorFilter {
    fn write_target(&self, request: &Request, out: &mut Vec<u8>) {
        match (&self.config.path, self.config.prefix) {
            (Some(path), false) => out.extend_from_slice(path.as_bytes()),
            (prefix, _) => {
                out.extend_from_slice(prefix.as_deref().unwrap_or_default().as_bytes());
                match self.config.decoded_paths {
                    true => escape_path(request.forwarded_path(), out),
                    false => escape_controls(request.forwarded_path(), out),
                }
            }
        }
        if let Some(query) = request.query.as_deref().filter(|query| !query.is_empty()) {
            out.push(b'?');
            out.extend_from_slice(query);
        }
    }

    fn message(&self, exchange: &Exchange) -> Vec<u8> {
        let request = &exchange.request;
        let mut out = Vec::with_capacity(512 + request.body.as_ref().map_or(0, Vec::len));
        out.extend_from_slice(&request.method);
        out.push(b' ');
        self.write_target(request, &mut out);
        out.extend_from_slice(b" HTTP/1.1\r\n");
        let mut line = |name: &[u8], value: &[u8]| {
            for part in [name, b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        };
        let own_host = exchange.upstream_host.as_deref().filter(|host| is_value(host));
        line(
            b"Host",
            own_host.or(request.headers.get(b"host")).unwrap_or_default(),
        );
        for header in request.headers.iter() {
            let name = header.name.to_ascii_lowercase();
            if !matches!(
                name.as_slice(),
                b"host" | b"content-length" | b"transfer-encoding" | b"expect"
            ) {
                line(header.name, header.value);
            }
        }
        if let Some(body) = &request.body {
            line(
                b"Content-Length",
                itoa::Buffer::new().format(body.len()).as_bytes(),
            );
        }
        line(b"Connection", b"close");
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(request.body.as_deref().unwrap_or_default());
        out
    }
}

/// Marks a call that was chosen for a copy and waits for its body.
struct Chosen;

impl Filter for MirrorFilter {
    fn is_observer(&self) -> bool {
        true
    }

    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let has_asked = exchange.filter_state.take::<_, Chosen>(self).is_some();
        if !has_asked && u64::from(exchange.random_u64() as u32) > self.threshold {
            return Outcome::Continue;
        }
        if exchange.request.has_body && exchange.request.body.is_none() {
            if has_asked {
                // Too large to be copied.
                return Outcome::Continue;
            }
            exchange.filter_state.put(self, Chosen);
            return Outcome::NeedBody {
                max_bytes: self.config.max_body_bytes,
            };
        }
        let message = self.message(exchange);
        exchange.background_requests.push(BackgroundRequest {
            host: self.host.clone(),
            port: self.port,
            message,
            timeout: self.timeout,
        });
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn calls_are_copied() {
        for (config, call, expected) in [
            (json!({}), "GET /m?a=1", Some("GET /m?a=1 HTTP/1.1")),
            (json!({"path": "/x"}), "GET /m?a=1", Some("GET /x?a=1 HTTP/1.1")),
            (
                json!({"path": "/x", "prefix": true}),
                "PUT /m",
                Some("PUT /x/m HTTP/1.1"),
            ),
            (json!({"sample": 0}), "GET /m", None),
        ] {
            let mut config = config;
            config["to"] = json!("http://127.0.0.1:1982");
            let filter = build(&Mirror, &config).expect("valid");
            let mut exchange = exchange();
            prepare(
                &mut exchange,
                call,
                &[("Host", "h"), ("X-A", "1"), ("Content-Length", "9")],
            );
            exchange.request.body = Some(b"body".to_vec());
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
            let found = exchange.background_requests.pop().map(|copy| {
                assert_eq!((copy.host.as_str(), copy.port), ("127.0.0.1", 1982));
                String::from_utf8(copy.message).expect("text")
            });
            let rest = "\r\nHost: h\r\nX-A: 1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
            assert_eq!(found, expected.map(|line| format!("{line}{rest}")), "{config}");
        }
    }

    #[test]
    fn bodies_are_asked_for_once() {
        let filter = build(&Mirror, &json!({"to": "http://shadow"})).expect("valid");
        let mut exchange = exchange();
        exchange.request.has_body = true;
        for expected in ["body", "continue"] {
            assert_eq!(word(&filter.on_request(&mut exchange)), expected);
        }
        assert!(exchange.background_requests.is_empty());
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&Mirror, &example(include_str!("mod.rs"))).is_ok());
        for (config, places) in [
            (json!({}), vec!["to"]),
            (json!({"to": "https://a"}), vec!["to"]),
            (json!({"to": "http://a/b"}), vec!["to"]),
            (
                json!({"to": "http://[::1]:1", "sample": 2, "path": "x"}),
                vec!["sample", "path"],
            ),
        ] {
            assert_eq!(refused_at(&Mirror, &config), places, "{config}");
        }
    }
}
