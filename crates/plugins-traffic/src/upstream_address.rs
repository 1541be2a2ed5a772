//! `upstream-address`: computes the upstream's host, port and path from the call.
//!
//! ```yaml
//! host: $(headers["x-tenant"]).internal.example
//! port: "8080"
//! path: /v2$(query_params.path)
//! ```
//!
//! `$(…)` is an expression over `headers`, `query_params` and `uri_captures`. A call is refused if an expression cannot
//! be evaluated, if the result has no host, or if the path would lead to a parent directory (`..`).
//!
//! Security: a caller controls the values of the expressions. Do not use a whole header as `host` unless callers may
//! reach everything that the gateway reaches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, RefusalKind, TargetOverride, parse_config,
};
use weir_plugins_shared::path_captures::RegexMatch;
use weir_plugins_shared::text_template::{TemplateSyntax, TextTemplate};

/// Configuration of `upstream-address`. Parts that are left out are taken from the service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A name or an address, with expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// A port, as a number or as a text with expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The path, with expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether characters that are not allowed in a path are escaped in `path`; `%` counts among them.
    pub escape_path: bool,
}

/// The plugin `upstream-address`.
pub struct UpstreamAddress;

impl Plugin for UpstreamAddress {
    fn name(&self) -> &'static str {
        "upstream-address"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        if config.host.is_none() && config.port.is_none() && config.path.is_none() {
            let message = "expected at least one of 'host', 'port' and 'path'";
            faults.push(Diagnostic::error(DocPath::root(), message));
        }
        let mut template = |field: &str, text: &Option<String>| {
            let parsed = TextTemplate::parse(text.as_deref()?, TemplateSyntax::Expressions);
            parsed
                .map_err(|message| faults.push(Diagnostic::error(DocPath::root().field(field), message)))
                .ok()
        };
        let filter = AddressFilter {
            host: template("host", &config.host),
            port: template("port", &config.port),
            path: template("path", &config.path),
            escape_path: config.escape_path,
        };
        match faults.is_empty() {
            true => Ok(Arc::new(filter)),
            false => Err(faults),
        }
    }
}

/// An instance of `upstream-address`.
struct AddressFilter {
    host: Option<TextTemplate>,
    port: Option<TextTemplate>,
    path: Option<TextTemplate>,
    escape_path: bool,
}

/// A host that can be looked up or connected to.
pub(crate) fn host_of(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b'_');
    let is_name = !text.is_empty() && text.len() <= 253 && text.bytes().all(is_letter);
    (is_name || inner.parse::<std::net::IpAddr>().is_ok()).then(|| inner.to_owned())
}

fn port_of(text: &[u8]) -> Option<u16> {
    let port = std::str::from_utf8(text).ok()?.parse().ok()?;
    (port != 0).then_some(port)
}

/// A path as it can stand on the wire.
fn path_of(text: &[u8], escapes: bool) -> Vec<u8> {
    let mut path = Vec::with_capacity(text.len() + 1);
    if text.first() != Some(&b'/') {
        path.push(b'/');
    }
    for byte in text {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(byte);
        match is_plain || (!escapes && *byte == b'%') {
            true => path.push(*byte),
            false => path.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    path
}

/// Whether servers may find another path in this one: by segments that lead up, by backslashes, or by escapes of these.
fn leads_elsewhere(path: &[u8]) -> bool {
    let mut form = Vec::with_capacity(path.len());
    for segment in path.split(|byte| *byte == b'/' || *byte == b'\\') {
        form.clear();
        let mut rest = segment;
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            match (first, behind.get(..2).map(<[u8]>::to_ascii_lowercase).as_deref()) {
                (b'%', Some(b"2e")) => {
                    form.push(b'.');
                    rest = &behind[2..];
                }
                (b'%', Some(b"2f" | b"5c")) => return true,
                (byte, _) => form.push(*byte),
            }
        }
        let name = form.split(|byte| *byte == b';').next();
        if matches!(name, Some(b"." | b"..")) {
            return true;
        }
    }
    false
}

impl AddressFilter {
    /// Where the call goes; `None`: nowhere.
    fn place(&self, exchange: &Exchange) -> Option<(TargetOverride, Option<Vec<u8>>)> {
        let mut memory = Vec::new();
        let mut value = |template: &Option<TextTemplate>| match template {
            None => Some(None),
            Some(template) => {
                let text = template.value(exchange, &RegexMatch::default(), &mut memory);
                text.ok().map(|text| Some(text.to_vec()))
            }
        };
        let host = match value(&self.host)? {
            None => None,
            Some(text) => Some(host_of(&text)?),
        };
        let port = match value(&self.port)? {
            None => None,
            Some(text) => Some(port_of(&text)?),
        };
        let path = match value(&self.path)? {
            None => None,
            Some(text) => Some(path_of(&text, self.escape_path)).filter(|path| !leads_elsewhere(path)),
        };
        if self.path.is_some() && path.is_none() {
            return None;
        }
        let elsewhere = TargetOverride {
            host,
            port,
            ..TargetOverride::default()
        };
        Some((elsewhere, path))
    }
}

impl Filter for AddressFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let Some((elsewhere, path)) = self.place(exchange) else {
            return Outcome::refuse(RefusalKind::PluginFailed {
                plugin: "upstream-address",
                reason: "the call leads to no host, port or path",
            });
        };
        if elsewhere != TargetOverride::default() {
            exchange.target_override = Some(Box::new(elsewhere));
        }
        if let Some(path) = path {
            exchange.upstream_path = Some(path);
        }
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    /// Where a call goes: `HOST:PORT PATH`, `-` for what is the service's own.
    fn place(config: &Value, line: &str, headers: &[(&str, &str)]) -> String {
        let filter = build(&UpstreamAddress, config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, line, headers);
        let outcome = word(&filter.on_request(&mut exchange));
        if outcome != "continue" {
            return outcome;
        }
        let elsewhere = exchange.target_override.take().unwrap_or_default();
        let text = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
        let path = exchange
            .upstream_path
            .as_deref()
            .map(|path| String::from_utf8_lossy(path).into());
        let port = elsewhere.port.map(|port| port.to_string());
        format!("{}:{} {}", text(elsewhere.host), text(port), text(path))
    }

    #[test]
    fn calls_lead_to_what_the_templates_say() {
        let host = json!({"host": "$(headers.tenant).example"});
        let port = json!({"port": "$(query_params.p)"});
        let path = json!({"path": "/a/$(headers.tenant)"});
        let escaped = json!({"path": "a/$(headers.tenant)", "escape_path": true});
        for (config, line, tenant, wanted) in [
            (
                json!({"host": "h", "port": "81", "path": "/x"}),
                "GET /",
                "",
                "h:81 /x",
            ),
            (host.clone(), "GET /", "blue", "blue.example:- -"),
            (host.clone(), "GET /", "evil.com/#", "plugin_failed 500"),
            (host, "GET /", "a:1@b", "plugin_failed 500"),
            (json!({"host": "[::1]"}), "GET /", "", "::1:- -"),
            (port.clone(), "GET /?p=99", "", "-:99 -"),
            (port.clone(), "GET /?p=0", "", "plugin_failed 500"),
            (port, "GET /?p=70000", "", "plugin_failed 500"),
            (path.clone(), "GET /", "b c", "-:- /a/b%20c"),
            (path.clone(), "GET /", "..", "plugin_failed 500"),
            (path.clone(), "GET /", "../../admin", "plugin_failed 500"),
            (path.clone(), "GET /", "b/./c", "plugin_failed 500"),
            (path.clone(), "GET /", "%2E%2e/c", "plugin_failed 500"),
            (path.clone(), "GET /", "b%2Fc", "plugin_failed 500"),
            (path.clone(), "GET /", "..;x/c", "plugin_failed 500"),
            (path.clone(), "GET /", "..a", "-:- /a/..a"),
            (path.clone(), "GET /", "b%2Dc", "-:- /a/b%2Dc"),
            (path, "GET /", "?x=1 HTTP/1.1", "-:- /a/%3Fx=1%20HTTP/1.1"),
            (escaped, "GET /", "b%2Fc", "-:- /a/b%252Fc"),
        ] {
            assert_eq!(
                place(&config, line, &[("tenant", tenant)]),
                wanted,
                "{config} {line} {tenant}"
            );
        }
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&UpstreamAddress, &example(include_str!("upstream_address.rs"))).is_ok());
        for (config, places) in [
            (json!({}), 1),
            (json!({"host": "$(a b)", "path": "$("}), 1),
            (json!({"host": "h"}), 0),
        ] {
            assert_eq!(refused_at(&UpstreamAddress, &config).len(), places, "{config}");
        }
    }
}
