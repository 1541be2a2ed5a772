//! `remote-function`: calls a cloud function to answer calls, instead of the upstream.
//!
//! ```yaml
//! url: https://shop.azurewebsites.net/api/prices
//! headers: {x-functions-key: "{vault://env/function-key}"}
//! ```
//!
//! `request: forward` sends the call as it is; `action` sends its body to an action of OpenWhisk; `invoke` calls a function of
//! AWS Lambda with a description of the call. With `sign`, requests carry AWS's Signature Version 4.
//!
//! Security: callers' headers reach the function with `forward`, but for those about the connection. A key in `headers`
//! replaces a caller's own unless `headers_yield_to` says otherwise.

mod payload;
mod response;
mod signature;

use response::{AnswerForm, reply};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use signature::Signer;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use weir_model::{Diagnostic, UpstreamTls};
use weir_plugin::headers::is_value;
use weir_plugin::{
    BuildContext, Connector, Exchange, Filter, Headers, Outcome, Phases, Plugin, Refusal, RefusalKind,
    Subrequest, Verify, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{HttpServer, http_proxy};

pub use payload::Payload;
pub use signature::AwsSignature;

/// Configuration of `remote-function`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The function's address, `http://` or `https://`.
    pub url: String,
    /// The form of the request to the function.
    #[serde(default)]
    pub request: RequestForm,
    /// Headers of the request; they replace those of the call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// If the call has one of these headers, `headers` are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers_yield_to: Vec<String>,
    /// Signs requests for AWS, unless `headers` were set or the call has an `Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<AwsSignature>,
    /// How the function's answer becomes the response.
    #[serde(default)]
    pub answer: AnswerForm,
    /// The value that the gateway adds to the `Via` of the response (RFC 9110, 7.6.3), such as `1.1 gateway`. Absent:
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// An HTTP proxy for these calls: `http://host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Whether the server's certificate is verified.
    #[serde(default = "weir_plugins_shared::yes")]
    pub verify_tls: bool,
    /// The longest that the function may take, in milliseconds.
    #[serde(default = "three_seconds")]
    pub timeout_ms: u64,
    /// Idle connections that each worker keeps; 0: none.
    #[serde(default = "some_connections")]
    pub pool_size: u32,
    /// How long they are kept, in milliseconds.
    #[serde(default = "one_minute")]
    pub pool_idle_timeout_ms: u64,
    /// The most bytes of a call's body; calls with a larger one are refused with 413.
    #[serde(default = "one_mebibyte")]
    pub max_body_bytes: usize,
    /// The most bytes of an answer's body.
    #[serde(default = "six_mebibytes")]
    pub max_answer_bytes: usize,
    /// Status of the response while there is no answer.
    #[serde(default = "unavailable")]
    #[schemars(range(min = 500, max = 599))]
    pub failure_status: u16,
}

impl Config {
    /// The defaults of all options, with this address.
    pub fn new(url: String) -> Self {
        Self {
            url,
            request: RequestForm::default(),
            headers: BTreeMap::new(),
            headers_yield_to: Vec::new(),
            sign: None,
            answer: AnswerForm::default(),
            via: None,
            proxy: None,
            verify_tls: true,
            timeout_ms: three_seconds(),
            pool_size: some_connections(),
            pool_idle_timeout_ms: one_minute(),
            max_body_bytes: one_mebibyte(),
            max_answer_bytes: six_mebibytes(),
            failure_status: unavailable(),
        }
    }
}

fn three_seconds() -> u64 {
    3_000
}

fn some_connections() -> u32 {
    5
}

fn one_minute() -> u64 {
    60_000
}

fn one_mebibyte() -> usize {
    1 << 20
}

/// What AWS Lambda answers at most.
fn six_mebibytes() -> usize {
    6 << 20
}

fn unavailable() -> u16 {
    503
}

/// The form of the request to a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RequestForm {
    /// The call as it is: method, query, headers and body.
    Forward {
        /// Whether the part of the path that the end of the route's path matches (a prefix, or a wildcard) is added to
        /// the address's path.
        #[serde(default)]
        append_rest: bool,
    },
    /// A `POST` with the call's body alone.
    Action,
    /// A `POST` with a description of the call, in JSON.
    Invoke(Payload),
}

impl Default for RequestForm {
    fn default() -> Self {
        Self::Forward { append_rest: false }
    }
}

pub use payload::PayloadForm as FunctionPayload;
pub use response::AnswerForm as FunctionAnswer;

/// The plugin `remote-function`.
pub struct RemoteFunction;

impl Plugin for RemoteFunction {
    fn name(&self) -> &'static str {
        "remote-function"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let server = HttpServer::parse(&config.url);
        if server.is_none() {
            faults.add("url", "expected an address that begins with http:// or https://");
        }
        let names: Vec<String> = config.headers.keys().cloned().collect();
        faults.check_names("headers", &names);
        faults.check_names("headers_yield_to", &config.headers_yield_to);
        if config.headers.values().any(|value| !is_value(value.as_bytes())) {
            faults.add("headers", "expected values of headers");
        }
        if config.via.as_ref().is_some_and(|via| !is_value(via.as_bytes())) {
            faults.add("via", "expected a value of a header");
        }
        faults.check_status("failure_status", config.failure_status);
        if config.timeout_ms == 0 {
            faults.add("timeout_ms", "expected at least 1 millisecond");
        }
        let proxy = config.proxy.as_deref().map(|proxy| http_proxy(proxy, None));
        if matches!(proxy, Some(None)) {
            faults.add("proxy", "expected an address that begins with http://");
        }
        faults.done()?;
        let tls = UpstreamTls {
            verify: config.verify_tls,
            ..UpstreamTls::default()
        };
        let proxy = proxy.flatten();
        Ok(Arc::new(FunctionFilter {
            connector: proxy.map(|proxy| Arc::new(Connector::new(tls, Some(proxy)))),
            server: server.expect("invariant: its absence has been reported"),
            signer: config.sign.clone().map(Signer::new),
            config,
        }))
    }
}

/// An instance of `remote-function`.
struct FunctionFilter {
    server: HttpServer,
    connector: Option<Arc<Connector>>,
    signer: Option<Signer>,
    config: Config,
}

/// Headers about a connection or a message's framing, and the host of the call.
const OWN: [&[u8]; 7] = [
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"connection",
    b"keep-alive",
    b"upgrade",
    b"expect",
];

impl FunctionFilter {
    fn subrequest(&self, exchange: &mut Exchange) -> Subrequest {
        let now = exchange.unix_ms();
        let config = &self.config;
        let (mut headers, body, target, method) = match &config.request {
            RequestForm::Forward { append_rest } => {
                let mut headers = Headers::default();
                for header in exchange.request.headers.iter() {
                    if !OWN.iter().any(|own| header.name.eq_ignore_ascii_case(own)) {
                        headers.append(header.name, header.value);
                    }
                }
                let body = exchange.request.body.clone().unwrap_or_default();
                let target = self.target(exchange, *append_rest);
                (headers, body, target, exchange.request.method.clone())
            }
            RequestForm::Action => {
                let mut headers = Headers::default();
                headers.append(b"Content-Type", b"application/json");
                let body = exchange.request.body.clone().unwrap_or_default();
                (
                    headers,
                    body,
                    self.server.target.clone().into_bytes(),
                    b"POST".to_vec(),
                )
            }
            RequestForm::Invoke(payload) => {
                let body = payload.of(exchange, now).to_string().into_bytes();
                let target = self.server.target.clone().into_bytes();
                (Headers::default(), body, target, b"POST".to_vec())
            }
        };
        let yields = config
            .headers_yield_to
            .iter()
            .any(|name| headers.contains(name.as_bytes()));
        let sets = !yields && !config.headers.is_empty();
        if sets {
            for (name, value) in &config.headers {
                headers.set(name.as_bytes(), value.as_bytes());
            }
        }
        let is_invoked = matches!(config.request, RequestForm::Invoke(_));
        if let Some(signer) = &self.signer
            && (is_invoked || !sets)
            && !headers.contains(b"authorization")
        {
            signer.sign(&method, &self.server.authority, &target, &mut headers, &body, now);
        }
        let mut message = Vec::with_capacity(512 + body.len());
        for part in [
            &method[..],
            b" ",
            &target,
            b" HTTP/1.1\r\nHost: ",
            self.server.authority.as_bytes(),
            b"\r\n",
        ] {
            message.extend_from_slice(part);
        }
        headers.write_lines(&mut message);
        if !body.is_empty() || !matches!(&method[..], b"GET" | b"HEAD") {
            message.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        if config.pool_size == 0 {
            message.extend_from_slice(b"Connection: close\r\n");
        }
        message.extend_from_slice(b"\r\n");
        message.extend_from_slice(&body);
        Subrequest {
            host: self.server.host.clone(),
            port: self.server.port,
            tls: self.server.is_https.then_some(match config.verify_tls {
                true => Verify::Yes,
                false => Verify::No,
            }),
            message,
            timeout: Duration::from_millis(config.timeout_ms),
            keep: (config.pool_size > 0).then(|| {
                (
                    config.pool_size,
                    Duration::from_millis(config.pool_idle_timeout_ms),
                )
            }),
            max_body_bytes: config.max_answer_bytes,
            connector: self.connector.clone(),
        }
    }

    /// The address's path with what is appended to it, and the call's query.
    fn target(&self, exchange: &Exchange, append_rest: bool) -> Vec<u8> {
        let (path, own_query) = match self.server.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.server.target.as_str(), None),
        };
        let mut target = path.as_bytes().to_vec();
        let rest = exchange.route.as_ref().filter(|_| append_rest);
        let rest = rest.and_then(|_| exchange.request.path.get(exchange.matched_len..));
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            if !target.ends_with(b"/") && !rest.starts_with(b"/") {
                target.push(b'/');
            }
            weir_plugin::uri::escape_path(rest, &mut target);
        }
        let query = [own_query.map(str::as_bytes), exchange.request.query.as_deref()];
        let query: Vec<&[u8]> = query
            .into_iter()
            .flatten()
            .filter(|query| !query.is_empty())
            .collect();
        if !query.is_empty() {
            target.push(b'?');
            // What cannot stand in a request line is escaped.
            weir_plugin::uri::escape_controls(&query.join(&b"&"[..]), &mut target);
        }
        target
    }

    fn failed(&self, reason: &'static str) -> Outcome {
        let kind = RefusalKind::PluginFailed {
            plugin: "remote-function",
            reason,
        };
        Outcome::Refuse(Box::new(Refusal::with_status(kind, self.config.failure_status)))
    }
}

impl Filter for FunctionFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(answer) = exchange.subrequest_response.take() {
            return match answer {
                None => self.failed("the function gave no answer"),
                Some(answer) => match reply(&self.config.answer, answer) {
                    Ok(mut reply) => {
                        if let Some(via) = &self.config.via {
                            response::add_via(&mut reply, via);
                        }
                        Outcome::Reply(Box::new(reply))
                    }
                    Err(reason) => self.failed(reason),
                },
            };
        }
        let request = &exchange.request;
        if request.body.is_none() && request.has_body {
            return Outcome::NeedBody {
                max_bytes: self.config.max_body_bytes,
            };
        }
        Outcome::Subrequest(Box::new(self.subrequest(exchange)))
    }
}

#[cfg(test)]
mod tests;
