//! `redirect`: redirects callers to another address.
//!
//! ```yaml
//! location: https://new.example$request_uri
//! status: 301
//! ```
//!
//! Security: if a `location` begins with text from callers, they decide where others are sent. An address that begins with
//! `//` or `/\`, which browsers take for the name of a host, gets `/.` in front, unless it is configured so. Characters that a
//! header cannot hold are removed from the address.

use regex::bytes::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::uri::escape_path;
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, Reply, parse_config,
};
use weir_plugins_shared::path_captures::{CaptureTemplate, RegexMatch};

/// Configuration of `redirect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The new address, with variables. Exactly one of `location`, `pattern` and `to_https` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Redirects only calls whose path matches the pattern; `$1` in the replacement is the match of its first group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Replacement>,
    /// Calls that are not over TLS are sent to the same place over TLS: GET and HEAD with 301, others with 308, whatever
    /// `status` says.
    pub to_https: bool,
    /// The port for `to_https`; absent or 443: none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_port: Option<u16>,
    /// With `to_https`, calls with `https` in `X-Forwarded-Proto` count as TLS. Use it only if that header is accepted
    /// from trusted proxies alone.
    pub trust_forwarded_proto: bool,
    /// Whether the call's path and query replace those of `location`.
    pub keep_path: bool,
    /// Whether the call's query is appended to that of the new address.
    pub append_query: bool,
    /// Whether characters that are not allowed in an address are escaped.
    pub escape: bool,
    /// Whether `$` in `location` marks a variable; otherwise it is literal.
    pub variables: bool,
    /// Status of the response, 200 to 599.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The body of the response; absent: the usual one for the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            location: None,
            pattern: None,
            to_https: false,
            https_port: None,
            trust_forwarded_proto: false,
            keep_path: false,
            append_query: false,
            escape: false,
            variables: true,
            status: 302,
            body: None,
        }
    }
}

/// A replacement of the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// A regular expression that is looked for in the path.
    pub pattern: String,
    /// The replacement for the match, with `$1` for its groups.
    pub replacement: String,
}

/// The plugin `redirect`.
pub struct Redirect;

impl Plugin for Redirect {
    fn name(&self) -> &'static str {
        "redirect"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root();
        let mut faults = Vec::new();
        let mut fault = |field: &str, message: &str| {
            faults.push(Diagnostic::error(root.field(field), message));
        };
        if !(200..=599).contains(&config.status) {
            fault("status", "expected a status from 200 to 599");
        }
        let given = [
            config.location.is_some(),
            config.pattern.is_some(),
            config.to_https,
        ];
        if given.into_iter().filter(|given| *given).count() != 1 {
            fault(
                "location",
                "expected exactly one of 'location', 'pattern' and 'to_https'",
            );
        }
        let written = config.location.as_ref();
        let written = written.or(config.pattern.as_ref().map(|it| &it.replacement));
        let names_host = written.is_some_and(|written| {
            let plain = written.split('$').next().unwrap_or_default();
            begins_with_host(plain.as_bytes())
        });
        let to = if config.to_https {
            Some(RedirectTarget::Https {
                port: config.https_port.filter(|port| *port != 443),
                believes: config.trust_forwarded_proto,
            })
        } else if let Some(Replacement { pattern, replacement }) = &config.pattern {
            match weir_plugins_shared::regex_list::compile(pattern, root.field("pattern").field("pattern")) {
                Ok(regex) => Some(RedirectTarget::Pattern(
                    regex,
                    CaptureTemplate::parse(replacement),
                )),
                Err(found) => {
                    faults.push(found);
                    None
                }
            }
        } else {
            config.location.map(|mut location| {
                if config.keep_path {
                    location.truncate(end_of_origin(&location));
                }
                match config.variables && location.contains('$') {
                    true => RedirectTarget::Template(CaptureTemplate::parse(&location)),
                    false => RedirectTarget::Fixed(location.into_bytes()),
                }
            })
        };
        match (to, faults.is_empty()) {
            (Some(to), true) => Ok(Arc::new(RedirectFilter {
                to,
                names_host: names_host && !config.keep_path,
                keep_path: config.keep_path,
                append_query: config.append_query,
                escape: config.escape,
                status: config.status,
                body: config.body,
            })),
            _ => Err(faults),
        }
    }
}

/// Where the path of an address begins.
fn end_of_origin(address: &str) -> usize {
    let host = address.find("://").map_or(0, |scheme| scheme + 3);
    address[host..]
        .find(['/', '?', '#'])
        .map_or(address.len(), |end| host + end)
}

/// Whether browsers take what stands behind the first two characters for the name of a host: `\` is a `/` to them, and
/// tabs are nothing.
fn begins_with_host(address: &[u8]) -> bool {
    let mut letters = address.iter().filter(|byte| !matches!(byte, b'\t' | b' '));
    let mut is_slash = || letters.next().is_some_and(|byte| matches!(byte, b'/' | b'\\'));
    is_slash() && is_slash()
}

/// An instance of `redirect`.
struct RedirectFilter {
    to: RedirectTarget,
    /// Whether the address begins with `//` by configuration.
    names_host: bool,
    keep_path: bool,
    append_query: bool,
    escape: bool,
    status: u16,
    body: Option<String>,
}

/// Where callers are sent.
enum RedirectTarget {
    Fixed(Vec<u8>),
    Template(CaptureTemplate),
    Pattern(Regex, CaptureTemplate),
    Https {
        port: Option<u16>,
        /// Whether `X-Forwarded-Proto` counts.
        believes: bool,
    },
}

impl RedirectFilter {
    /// The new address and the status; `None`: the call goes on.
    fn address(&self, exchange: &Exchange) -> Option<(Vec<u8>, u16)> {
        let request = &exchange.request;
        let mut address = Vec::new();
        let mut status = self.status;
        let mut by_owner = self.names_host;
        match &self.to {
            RedirectTarget::Fixed(fixed) => address.extend_from_slice(fixed),
            RedirectTarget::Template(template) => {
                template.render(exchange, &RegexMatch::default(), &mut address)
            }
            RedirectTarget::Pattern(regex, template) => {
                let captures = regex.captures(&request.path)?;
                let groups = captures
                    .iter()
                    .map(|group| group.map(|group| group.range()))
                    .collect();
                let text = request.path.clone();
                let matched = captures.get(0)?.range();
                by_owner &= matched.start == 0;
                let found = RegexMatch { text, groups };
                address.extend_from_slice(&request.path[..matched.start]);
                template.render(exchange, &found, &mut address);
                address.extend_from_slice(&request.path[matched.end..]);
            }
            RedirectTarget::Https { port, believes } => {
                let proto = request.headers.get(b"x-forwarded-proto").filter(|_| *believes);
                if proto.map_or(request.is_tls, |scheme| scheme == b"https") {
                    return None;
                }
                address.extend_from_slice(b"https://");
                address.extend_from_slice(&request.host);
                if let Some(port) = port {
                    address.push(b':');
                    address.extend_from_slice(itoa::Buffer::new().format(*port).as_bytes());
                }
                address.extend_from_slice(&request.path);
                push_query(request.query.as_deref(), &mut address);
                status = match request.method.as_slice() {
                    b"GET" | b"HEAD" => 301,
                    _ => 308,
                };
            }
        }
        if self.keep_path {
            address.extend_from_slice(&request.path);
            push_query(request.query.as_deref(), &mut address);
        }
        if self.escape {
            let plain = std::mem::take(&mut address);
            escape_address(&plain, &mut address);
        }
        if self.append_query {
            push_query(
                request.query.as_deref().filter(|query| !query.is_empty()),
                &mut address,
            );
        }
        address.retain(|byte| *byte == b'\t' || (*byte >= 0x20 && *byte != 0x7f));
        if !by_owner && begins_with_host(&address) {
            address.splice(..0, *b"/.");
        }
        Some((address, status))
    }
}

/// Puts a query behind an address, which may have one.
fn push_query(query: Option<&[u8]>, address: &mut Vec<u8>) {
    if let Some(query) = query {
        address.push(if address.contains(&b'?') { b'&' } else { b'?' });
        address.extend_from_slice(query);
    }
}

/// Escapes what cannot stand in an address; escapes that are there stay.
fn escape_address(address: &[u8], out: &mut Vec<u8>) {
    for part in address.split_inclusive(|byte| matches!(byte, b'%' | b'?' | b'#')) {
        match part.split_last() {
            Some((last @ (b'%' | b'?' | b'#'), text)) => {
                escape_path(text, out);
                out.push(*last);
            }
            _ => escape_path(part, out),
        }
    }
}

impl Filter for RedirectFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        match &self.to {
            RedirectTarget::Template(template) | RedirectTarget::Pattern(_, template) => {
                template.needs_body()
            }
            RedirectTarget::Fixed(_) | RedirectTarget::Https { .. } => false,
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let Some((address, status)) = self.address(exchange) else {
            return Outcome::Continue;
        };
        match &self.body {
            Some(body) => {
                let reply = Reply::new(status, "", body.as_bytes()).with_header("Location", address);
                Outcome::Reply(Box::new(reply))
            }
            None => {
                let mut refusal = Refusal::with_status(RefusalKind::Answered { plugin: "redirect" }, status);
                let address = String::from_utf8_lossy(&address).into_owned();
                refusal.headers.push(("Location".into(), address));
                Outcome::Refuse(Box::new(refusal))
            }
        }
    }
}

#[cfg(test)]
mod tests;
