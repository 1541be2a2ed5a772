//! `response-rewrite`: changes the response on its way to the client, the upstream's and the gateway's own.
//!
//! ```yaml
//! when: [status, "==", 404]
//! body: '{"error": "nothing here"}'
//! headers:
//!   - set: {Content-Type: application/json}
//!   - remove: [X-Powered-By]
//! ```
//!
//! What it cannot do is change an upstream's body in part: bodies are passed on as they come.
//!
//! Security: a changed status may turn a refusal of the gateway into what looks like success; `when` limits it.

use crate::captures::Found;
use crate::header_steps::{HeaderStep, HeaderSteps, Side};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, Predicate};
use weir_plugin::{BuildContext, Condition, Exchange, Filter, Phases, Plugin, parse_config};

/// Configuration of `response-rewrite`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Only responses are changed for which this holds; `status` is the response's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
    /// The new status, 200 to 598.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 200, max = 598))]
    pub status: Option<u16>,
    /// The new body, as it is. Headers that tell about the old one (`Content-Encoding`, `ETag`, `Last-Modified`) are
    /// taken out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether `body` is Base64.
    pub body_is_base64: bool,
    /// Changes of the headers. Values may hold variables.
    pub headers: Vec<HeaderStep>,
    /// Whether `$` in header values stands for variables rather than for itself.
    pub variables: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            when: None,
            status: None,
            body: None,
            body_is_base64: false,
            headers: Vec::new(),
            variables: true,
        }
    }
}

/// The plugin.
pub struct ResponseRewrite;

impl Plugin for ResponseRewrite {
    fn name(&self) -> &'static str {
        "response-rewrite"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let fault =
            |field: &str, message: String| vec![Diagnostic::error(DocPath::root().field(field), message)];
        if let Some(status) = config.status.filter(|status| !(200..=598).contains(status)) {
            return Err(fault(
                "status",
                format!("expected a status from 200 to 598, found {status}"),
            ));
        }
        let condition = config.when.as_ref().map(Condition::compile).transpose();
        let body = match config.body {
            Some(body) if config.body_is_base64 => {
                let decoded = STANDARD.decode(body.as_bytes());
                Some(decoded.map_err(|_| fault("body", "expected Base64".to_owned()))?)
            }
            body => body.map(String::into_bytes),
        };
        Ok(Arc::new(RewriteFilter {
            condition: condition.map_err(|message| fault("when", message))?,
            status: config.status,
            body,
            headers: HeaderSteps::compile(
                &config.headers,
                config.variables,
                &DocPath::root().field("headers"),
            )?,
        }))
    }
}

/// An instance of `response-rewrite`.
struct RewriteFilter {
    condition: Option<Condition>,
    status: Option<u16>,
    body: Option<Vec<u8>>,
    headers: HeaderSteps,
}

/// Headers that tell about the body that is replaced.
const ABOUT_THE_BODY: [&[u8]; 6] = [
    b"Content-Length",
    b"Content-Encoding",
    b"Content-Range",
    b"Accept-Ranges",
    b"ETag",
    b"Last-Modified",
];

impl Filter for RewriteFilter {
    fn phases(&self) -> Phases {
        Phases::RESPONSE
    }

    fn needs_body(&self) -> bool {
        self.headers.need_body() || self.condition.as_ref().is_some_and(Condition::needs_body)
    }

    fn on_response(&self, exchange: &mut Exchange) {
        if self
            .condition
            .as_ref()
            .is_some_and(|condition| !condition.holds(exchange))
        {
            return;
        }
        let response = &mut exchange.response;
        if let Some(status) = self.status {
            response.status = status;
            // The upstream's words for another status do not fit.
            response.reason.clear();
        }
        if let Some(body) = &self.body {
            for name in ABOUT_THE_BODY {
                response.headers.remove(name);
            }
            response.replaced_body = Some(body.clone());
        }
        self.headers.apply(exchange, Side::Response, &Found::default());
    }
}

#[cfg(test)]
mod tests;
