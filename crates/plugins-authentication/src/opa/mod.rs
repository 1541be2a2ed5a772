//! `opa`: asks an Open Policy Agent whether a call may go on.
//!
//! ```yaml
//! url: http://127.0.0.1:8181/v1/data/example
//! upstream_headers: [X-User]
//! ```
//!
//! The agent is sent what is known of the call as `input`, and answers with `result`: `true` or `false`, or an object with
//! `allow`, and perhaps `status_code`, `headers` and `reason`.
//!
//! Security: calls are refused while the agent gives no answer that can be read. What the agent says about the caller
//! (`upstream_headers`) replaces what callers send themselves.

mod input;

use crate::http_rules::HttpRules;
use crate::shared_fetch::{FetchRequest, FetchResult, KeyParts, good};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_model::Diagnostic;
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, Reply, SubrequestResponse,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules};

/// Configuration of `opa`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The address of the decision, such as `http://127.0.0.1:8181/v1/data/example/allow`.
    pub url: String,
    /// The form of what the agent is sent.
    #[serde(default)]
    pub input: InputForm,
    /// Whether it is sent the body of the call, and how.
    #[serde(default)]
    pub body: BodyForm,
    /// The most bytes of a body that is sent; calls with a larger one are refused with status 413.
    #[serde(default = "standard_body_limit")]
    pub max_body_bytes: usize,
    /// Whether the agent gets the route.
    #[serde(default)]
    pub route: bool,
    /// Whether the agent gets the service.
    #[serde(default)]
    pub service: bool,
    /// The document that describes the route, instead of the one in its label `route_document`, or of its name and labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_document: Option<Value>,
    /// The document that describes the service, instead of the one in the route's label `service_document`, or of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_document: Option<Value>,
    /// Whether the agent gets the consumer, with all that is written about it but its plugins, credentials and times.
    #[serde(default)]
    pub consumer: bool,
    /// Whether the agent gets the captures of the expression that the route matches the path with (`uri_captures`).
    #[serde(default)]
    pub captures: bool,
    /// How long a decision is reused for calls for which the agent would get the same input, apart from the caller's
    /// port and the time, in seconds; 0: the agent is asked each time.
    #[serde(default)]
    pub cache_seconds: u64,
    /// Headers of the agent's response that the upstream gets. Copies that callers send never get through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstream_headers: Vec<String>,
    /// Whether the upstream gets all headers of the agent's response.
    #[serde(default)]
    pub all_headers: bool,
    /// Status of the response to callers while the agent does not answer, 200 to 599.
    #[serde(default = "unavailable")]
    #[schemars(range(min = 200, max = 599))]
    pub failure_status: u16,
    /// Status of the response to callers if the agent's response is not valid, 200 to 599.
    #[serde(default = "unavailable")]
    #[schemars(range(min = 200, max = 599))]
    pub invalid_status: u16,
    /// The HTTP settings for calls to the agent.
    #[serde(default)]
    pub http: HttpRules,
}

impl Config {
    /// The defaults of all options, with this address.
    pub fn new(url: String) -> Self {
        Self {
            url,
            input: InputForm::default(),
            body: BodyForm::default(),
            max_body_bytes: standard_body_limit(),
            route: false,
            service: false,
            route_document: None,
            service_document: None,
            consumer: false,
            captures: false,
            cache_seconds: 0,
            upstream_headers: Vec::new(),
            all_headers: false,
            failure_status: unavailable(),
            invalid_status: unavailable(),
            http: HttpRules::default(),
        }
    }
}

/// The form of what the agent is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InputForm {
    /// `request` with `method`, `path`, `headers` and `query`, and `var` with addresses and the time.
    #[default]
    Flat,
    /// `request.http` with `method`, `path`, `headers` and `querystring`, and `client_ip`.
    Nested,
}

/// Whether and how a body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BodyForm {
    /// It is not sent.
    #[default]
    None,
    /// As a text.
    Text,
    /// As the parsed JSON value.
    Json,
}

fn standard_body_limit() -> usize {
    1 << 20
}

fn unavailable() -> u16 {
    503
}

const NAME: &str = "opa";

/// The most bytes of the decisions that are kept.
const CACHE_BYTES: usize = 16 << 20;
/// What a decision takes besides its answer.
const DECISION_BYTES: usize = 256;

/// Decisions by all that they depend on.
type Decisions = ExpiringMap<Arc<Decision>>;

/// The plugin `opa`.
pub struct Opa(Arc<Decisions>);

impl Default for Opa {
    fn default() -> Self {
        Self(ExpiringMap::new(CACHE_BYTES))
    }
}

impl Plugin for Opa {
    fn name(&self) -> &'static str {
        "opa"
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
        faults.check_names("upstream_headers", &config.upstream_headers);
        faults.check_status("failure_status", config.failure_status);
        faults.check_status("invalid_status", config.invalid_status);
        config.http.check(&mut faults);
        faults.done()?;
        Ok(Arc::new(PolicyFilter {
            server: server.expect("invariant: its absence has been reported"),
            rules: config.http.rules(),
            decisions: Arc::clone(&self.0),
            key: KeyParts::of(&[&serde_json::to_string(&config).unwrap_or_default()]),
            config,
        }))
    }
}

/// An instance of `opa`.
struct PolicyFilter {
    server: HttpServer,
    rules: ServerCallRules,
    decisions: Arc<Decisions>,
    /// Tells its decisions from those of other instances.
    key: KeyParts,
    config: Config,
}

/// What an agent has decided.
#[derive(Debug)]
struct Decision {
    allows: bool,
    status: Option<u16>,
    headers: Map<String, Value>,
    reason: Option<Value>,
}

impl Decision {
    /// Reads an answer; `None`: it says nothing.
    fn read(body: &[u8]) -> Option<Self> {
        let mut answer: Map<String, Value> = serde_json::from_slice(body).ok()?;
        let mut object = match answer.remove("result")? {
            Value::Bool(allows) => {
                return Some(Self {
                    allows,
                    status: None,
                    headers: Map::new(),
                    reason: None,
                });
            }
            Value::Object(object) => object,
            _ => return None,
        };
        // What is not said is not allowed.
        let allows = object.get("allow") == Some(&Value::Bool(true));
        let status = object.get("status_code").or_else(|| object.get("status"));
        let status = status
            .and_then(Value::as_u64)
            .and_then(|status| u16::try_from(status).ok());
        Some(Self {
            allows,
            status: status.filter(|status| (200..600).contains(status)),
            reason: object.remove("reason").or_else(|| object.remove("message")),
            headers: match object.remove("headers") {
                Some(Value::Object(headers)) => headers,
                _ => Map::new(),
            },
        })
    }

    /// Its headers that can stand in a message.
    fn headers(&self) -> impl Iterator<Item = (&str, String)> {
        let texts = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), text(value)));
        texts.filter(|(name, value)| is_name(name.as_bytes()) && is_value(value.as_bytes()))
    }
}

/// A text, or the JSON of another value.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl PolicyFilter {
    fn refuse(status: u16) -> Outcome {
        let kind = RefusalKind::Forbidden { plugin: NAME };
        Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
    }

    /// Refuses a call that there is no decision for.
    fn undecided(status: u16, reason: &'static str) -> Outcome {
        if status < 500 {
            return Self::refuse(status);
        }
        let kind = RefusalKind::PluginFailed { plugin: NAME, reason };
        Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
    }

    fn unanswered(&self) -> Outcome {
        Self::undecided(self.config.failure_status, "the policy agent does not answer")
    }

    fn evaluate(&self, answer: Option<SubrequestResponse>, exchange: &mut Exchange) -> Outcome {
        let Some(answer) = answer else {
            return self.unanswered();
        };
        match Decision::read(&answer.body).filter(|_| answer.status == 200) {
            Some(decision) => self.apply(&decision, exchange),
            None => Self::undecided(
                self.config.invalid_status,
                "the policy agent's answer is no decision",
            ),
        }
    }

    fn ask(&self, exchange: &mut Exchange) -> Outcome {
        let input = input::of(&self.config, exchange).to_string();
        let request = HttpRequest {
            method: "POST",
            headers: &[("Content-Type", "application/json")],
            body: Some(input.as_bytes()),
            ..HttpRequest::GET
        };
        Outcome::Subrequest(Box::new(self.server.request(request, &self.rules)))
    }

    /// Judges by a decision that may have been made for another call.
    fn evaluate_cached(&self, exchange: &mut Exchange) -> Outcome {
        let key = input::key(&self.config, &self.key, exchange);
        let wanted = FetchRequest {
            map: &self.decisions,
            key: &key,
            since_ms: 0,
            retry_ms: 1,
            timeout: self.rules.timeout,
        };
        let lifetime = Lifetime::fresh(self.config.cache_seconds.saturating_mul(1_000));
        let found = wanted.find(
            self,
            exchange,
            |exchange| self.ask(exchange),
            |exchange| {
                let answer = good(exchange.subrequest_response.take()?)?;
                let decision = Decision::read(&answer.body)?;
                Some((Arc::new(decision), DECISION_BYTES + answer.body.len(), lifetime))
            },
        );
        match found {
            FetchResult::Wait(outcome) => outcome,
            FetchResult::Value(decision) => self.apply(&decision, exchange),
            FetchResult::Nothing => self.unanswered(),
        }
    }

    fn apply(&self, decision: &Decision, exchange: &mut Exchange) -> Outcome {
        if !decision.allows {
            let status = decision.status.unwrap_or(403);
            if decision.reason.is_none() && decision.headers.is_empty() {
                return Self::refuse(status);
            }
            let (content_type, body) = match &decision.reason {
                Some(Value::String(words)) => ("text/plain", words.clone()),
                Some(other) => ("application/json", other.to_string()),
                None => ("", String::new()),
            };
            let mut reply = Reply::new(status, content_type, body);
            for (name, value) in decision.headers() {
                match name.eq_ignore_ascii_case("content-type") {
                    true => reply.content_type = value.into(),
                    false => reply.headers.push((name.to_owned(), value.into_bytes())),
                }
            }
            return Outcome::Reply(Box::new(reply));
        }
        for name in &self.config.upstream_headers {
            exchange.request.headers.remove_owned(name.as_bytes());
        }
        let mut marks = Vec::new();
        for (name, value) in decision.headers() {
            let is_named = |it: &String| it.eq_ignore_ascii_case(name);
            if self.config.all_headers || self.config.upstream_headers.iter().any(is_named) {
                exchange
                    .request
                    .headers
                    .set_owned(name.as_bytes(), value.as_bytes());
                marks.extend_from_slice(value.as_bytes());
                marks.push(b'\n');
            }
        }
        exchange.add_fingerprint(&marks);
        Outcome::Continue
    }
}

impl Filter for PolicyFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let is_kept = self.config.cache_seconds > 0;
        if !is_kept && let Some(answer) = exchange.subrequest_response.take() {
            return self.evaluate(answer, exchange);
        }
        let request = &exchange.request;
        if self.config.body != BodyForm::None && request.body.is_none() && request.has_body {
            return Outcome::NeedBody {
                max_bytes: self.config.max_body_bytes,
            };
        }
        match is_kept {
            true => self.evaluate_cached(exchange),
            false => self.ask(exchange),
        }
    }
}

#[cfg(test)]
mod tests;
