//! `forward-auth`: asks another server whether a call may go on.
//!
//! ```yaml
//! url: http://auth.internal:9000/check
//! request_headers: [Authorization, Cookie]
//! upstream_headers: [X-User]
//! ```
//!
//! The server gets `X-Forwarded-Method`, `-Proto`, `-Host`, `-Uri` and `-For`, and the headers that are named here. If
//! it answers with a status below 300 the call goes on; any other response is sent to the caller.
//!
//! Security: the server's headers about the caller (`upstream_headers`) replace those that callers send themselves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, Headers, Indeterminate, Outcome, Phases, Plugin, Refusal, RefusalKind,
    Reply, Subrequest, SubrequestResponse, Template, Verify, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::HttpServer;
use weir_plugins_shared::request_uri::{UriForm, with_uri};

/// Configuration of `forward-auth`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The address of the server, with the path.
    pub url: String,
    /// Whether it is called with `POST` and the call's body, instead of `GET`.
    #[serde(default)]
    pub send_body: bool,
    /// The most bytes of a body that is sent; calls with a larger one are refused with status 413.
    #[serde(default = "standard_body_limit")]
    pub max_body_bytes: usize,
    /// Whether the server's certificate is verified, over TLS.
    #[serde(default = "weir_plugins_shared::yes")]
    pub verify_tls: bool,
    /// Headers of the call that the server gets too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request_headers: Vec<String>,
    /// Further headers that it gets, with variables (`$remote_addr`); they replace those about the call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_headers: BTreeMap<String, String>,
    /// Headers of its answer that the upstream gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstream_headers: Vec<String>,
    /// Headers of its answer that the caller gets when the call may not go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_headers: Vec<String>,
    /// The longest that the server may take, in milliseconds.
    #[serde(default = "three_seconds")]
    pub timeout_ms: u64,
    /// Idle connections to the server that each worker keeps; 0: none.
    #[serde(default = "some_connections")]
    pub pool_size: u32,
    /// How long they are kept, in milliseconds.
    #[serde(default = "one_minute")]
    pub pool_idle_timeout_ms: u64,
    /// Whether calls go on while the server gives no answer.
    #[serde(default)]
    pub pass_on_failure: bool,
    /// Status of the response to callers while the server does not answer, 200 to 599.
    #[serde(default = "forbidden")]
    #[schemars(range(min = 200, max = 599))]
    pub failure_status: u16,
    /// The form in which path and query are sent to the server.
    #[serde(default)]
    pub uri: UriForm,
}

impl Config {
    /// The defaults of all options, with this server.
    pub fn new(url: String) -> Self {
        Self {
            url,
            send_body: false,
            max_body_bytes: standard_body_limit(),
            verify_tls: true,
            request_headers: Vec::new(),
            extra_headers: BTreeMap::new(),
            upstream_headers: Vec::new(),
            client_headers: Vec::new(),
            timeout_ms: three_seconds(),
            pool_size: some_connections(),
            pool_idle_timeout_ms: one_minute(),
            pass_on_failure: false,
            failure_status: forbidden(),
            uri: UriForm::default(),
        }
    }
}

fn standard_body_limit() -> usize {
    1 << 20
}

fn three_seconds() -> u64 {
    3_000
}

fn some_connections() -> u32 {
    16
}

fn one_minute() -> u64 {
    60_000
}

fn forbidden() -> u16 {
    403
}

/// The most bytes of an answer's body that callers get.
const MAX_ANSWER: usize = 1 << 20;

/// The plugin `forward-auth`.
pub struct ForwardAuth;

impl Plugin for ForwardAuth {
    fn name(&self) -> &'static str {
        "forward-auth"
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
        faults.check_names("request_headers", &config.request_headers);
        faults.check_names("upstream_headers", &config.upstream_headers);
        faults.check_names("client_headers", &config.client_headers);
        let extra: Vec<String> = config.extra_headers.keys().cloned().collect();
        faults.check_names("extra_headers", &extra);
        faults.check_status("failure_status", config.failure_status);
        if config.timeout_ms == 0 {
            faults.add("timeout_ms", "expected at least 1 millisecond");
        }
        faults.done()?;
        let extra_headers = config.extra_headers.iter();
        Ok(Arc::new(ForwardAuthFilter {
            server: server.expect("invariant: its absence has been reported"),
            extra_headers: extra_headers
                .map(|(name, text)| (name.clone().into_bytes(), Template::parse(text)))
                .collect(),
            config,
        }))
    }
}

/// An instance of `forward-auth`.
struct ForwardAuthFilter {
    server: HttpServer,
    config: Config,
    extra_headers: Vec<(Vec<u8>, Template)>,
}

impl ForwardAuthFilter {
    fn subrequest(&self, exchange: &Exchange) -> Subrequest {
        let config = &self.config;
        Subrequest {
            host: self.server.host.clone(),
            port: self.server.port,
            tls: self.server.is_https.then_some(match config.verify_tls {
                true => Verify::Yes,
                false => Verify::No,
            }),
            message: self.message(exchange),
            timeout: Duration::from_millis(config.timeout_ms),
            keep: (config.pool_size > 0).then(|| {
                (
                    config.pool_size,
                    Duration::from_millis(config.pool_idle_timeout_ms),
                )
            }),
            max_body_bytes: MAX_ANSWER,
            connector: None,
        }
    }

    fn message(&self, exchange: &Exchange) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        let body = exchange.request.body.as_deref().filter(|_| self.config.send_body);
        let method: &[u8] = if self.config.send_body { b"POST " } else { b"GET " };
        for part in [
            method,
            self.server.target.as_bytes(),
            b" HTTP/1.1\r\nHost: ",
            self.server.authority.as_bytes(),
            b"\r\nUser-Agent: weir\r\n",
        ] {
            out.extend_from_slice(part);
        }
        self.headers(exchange).write_lines(&mut out);
        if self.config.send_body {
            out.extend_from_slice(b"Content-Length: ");
            let length = body.map_or(0, <[u8]>::len);
            out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if self.config.pool_size == 0 {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body.unwrap_or_default());
        out
    }

    fn headers(&self, exchange: &Exchange) -> Headers {
        let request = &exchange.request;
        let mut headers = Headers::default();
        headers.append(b"X-Forwarded-Proto", request.scheme().as_bytes());
        headers.append(b"X-Forwarded-Method", &request.method);
        headers.append(b"X-Forwarded-Host", &request.host);
        with_uri(self.config.uri, request, |uri| {
            headers.append(b"X-Forwarded-Uri", uri)
        });
        let client = request.client.to_canonical().to_string();
        headers.append(b"X-Forwarded-For", client.as_bytes());
        if self.config.send_body
            && let Some(coding) = request.headers.get(b"content-encoding")
        {
            headers.append(b"Content-Encoding", coding);
        }
        for (name, template) in &self.extra_headers {
            let mut value = Vec::new();
            template.render(exchange, &mut value);
            headers.set(name, &value);
        }
        for name in &self.config.request_headers {
            let name = name.as_bytes();
            let is_framing = [
                &b"host"[..],
                b"content-length",
                b"transfer-encoding",
                b"connection",
            ]
            .iter()
            .any(|framing| name.eq_ignore_ascii_case(framing));
            if !is_framing && !headers.contains(name) {
                // All copies: the server that decides must see what the upstream will.
                for value in request.headers.get_all(name) {
                    headers.append(name, value);
                }
            }
        }
        headers
    }

    fn evaluate(&self, answer: Option<SubrequestResponse>, exchange: &mut Exchange) -> Outcome {
        let Some(answer) = answer else {
            let plugin = "forward-auth";
            return match self.config.pass_on_failure {
                true => {
                    // What the caller says of itself has not been verified.
                    for name in &self.config.upstream_headers {
                        exchange.request.headers.remove_owned(name.as_bytes());
                    }
                    Outcome::Continue
                }
                false => Outcome::Refuse(Box::new(Refusal::with_status(
                    RefusalKind::Forbidden { plugin },
                    self.config.failure_status,
                ))),
            };
        };
        if answer.status >= 300 {
            let mut reply = Reply::new(answer.status, "text/plain", answer.body);
            for name in &self.config.client_headers {
                for value in answer.headers.get_all(name.as_bytes()) {
                    match name.eq_ignore_ascii_case("content-type") {
                        true => reply.content_type = String::from_utf8_lossy(value).into_owned().into(),
                        false => reply.headers.push((name.clone(), value.to_vec())),
                    }
                }
            }
            return Outcome::Reply(Box::new(reply));
        }
        self.mark(exchange, &answer.headers);
        for name in &self.config.upstream_headers {
            let name = name.as_bytes();
            match answer.headers.get(name) {
                Some(value) => exchange.request.headers.set_owned(name, value),
                None => exchange.request.headers.remove_owned(name),
            }
        }
        Outcome::Continue
    }
}

impl ForwardAuthFilter {
    /// Notes what the caller was known by, and what the server says of it.
    fn mark(&self, exchange: &mut Exchange, answer: &Headers) {
        let mut marks = Vec::new();
        let request = &exchange.request.headers;
        for (names, headers) in [
            (&self.config.request_headers, request),
            (&self.config.upstream_headers, answer),
        ] {
            for name in names {
                for value in headers.get_all(name.as_bytes()) {
                    marks.extend_from_slice(value);
                    marks.push(b'\n');
                }
                marks.push(b'\n');
            }
        }
        exchange.add_fingerprint(&marks);
    }
}

impl Filter for ForwardAuthFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.extra_headers
            .iter()
            .any(|(_, template)| template.needs_body())
    }

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        let mut texts = self.extra_headers.iter();
        texts.find_map(|(_, template)| template.indeterminate(exchange))
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(answer) = exchange.subrequest_response.take() {
            return self.evaluate(answer, exchange);
        }
        let request = &exchange.request;
        if self.config.send_body && request.body.is_none() && request.has_body {
            return Outcome::NeedBody {
                max_bytes: self.config.max_body_bytes,
            };
        }
        Outcome::Subrequest(Box::new(self.subrequest(exchange)))
    }
}

#[cfg(test)]
mod tests;
