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
//! If a service's body is changed in part (`filters`, `json`), it is read as a whole first, up to `max_body_bytes`; the
//! head waits for that if the length is not known. Bodies in `gzip` and `br` are decompressed. `before` and `after` are
//! added while the body passes.
//!
//! Security: a changed status may turn a refusal of the gateway into what looks like success; `when` limits it. A body
//! that is too large, or that is in another content coding, is answered with 502 and never passed on unchanged; with
//! `excess: cut`, the first `max_body_bytes` are changed and the rest is left out. The same holds for a body that `filters`
//! make larger than 64 MiB.

mod body;

pub use crate::buffered_body::OversizePolicy;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use body::{BodyRewrite, BodyWrapper, Change};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, Predicate};
use weir_plugin::{BuildContext, Condition, Exchange, Filter, Phases, Plugin, parse_config};
use weir_plugins_shared::field_edits::FieldEdit;
use weir_plugins_shared::header_edits::{HeaderEdit, HeaderEdits, HeaderTarget};
use weir_plugins_shared::path_captures::RegexMatch;

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
    /// The new body, as it is. Headers that describe the old one (`Content-Encoding`, `ETag`, `Last-Modified`) are
    /// removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether `body` is Base64.
    pub body_is_base64: bool,
    /// Put before the body, whosever it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// A text that is appended to the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Replacements in the body, each working on what the one before it left. Compressed bodies are unpacked first. What
    /// they make is at most 64 MiB. Not together with `body`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Replacement>,
    /// Changes of the members of a body that is an object in JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub json: Vec<FieldEdit>,
    /// The largest body that is changed in part, in bytes, at most 67108864.
    #[schemars(range(max = 67_108_864))]
    pub max_body_bytes: usize,
    /// What happens to a larger body.
    #[serde(skip_serializing_if = "is_default")]
    pub excess: OversizePolicy,
    /// Changes of the headers. Values may hold variables.
    pub headers: Vec<HeaderEdit>,
    /// Whether `$` in header values marks a variable; otherwise it is literal.
    pub variables: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            when: None,
            status: None,
            body: None,
            body_is_base64: false,
            before: None,
            after: None,
            filters: Vec::new(),
            json: Vec::new(),
            max_body_bytes: 16 << 20,
            excess: OversizePolicy::default(),
            headers: Vec::new(),
            variables: true,
        }
    }
}

/// A replacement in the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// A regular expression.
    pub pattern: String,
    /// The replacement for the match, with `$1` for its groups.
    pub replacement: String,
    /// Every place that it finds rather than the first.
    #[serde(default)]
    pub all: bool,
}

/// The most that `max_body_bytes` may be, and the largest body that `filters` make.
const MAX_BODY: usize = 64 << 20;

fn is_default(excess: &OversizePolicy) -> bool {
    *excess == OversizePolicy::default()
}

/// The plugin `response-rewrite`.
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
        if !config.filters.is_empty() && config.body.is_some() {
            return Err(fault(
                "filters",
                "expected either 'body' or 'filters', not both".to_owned(),
            ));
        }
        if config.max_body_bytes > MAX_BODY {
            return Err(fault(
                "max_body_bytes",
                format!("expected at most {MAX_BODY} bytes"),
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
        let root = DocPath::root();
        let change = Change::compile(
            &config.filters,
            &config.json,
            (config.max_body_bytes, config.excess),
        )?;
        Ok(Arc::new(RewriteFilter {
            condition: condition.map_err(|message| fault("when", message))?,
            status: config.status,
            body,
            around: (config.before.is_some() || config.after.is_some()).then(|| {
                Arc::new(BodyWrapper {
                    before: config.before.unwrap_or_default().into_bytes(),
                    after: config.after.unwrap_or_default().into_bytes(),
                })
            }),
            change: change.map(Arc::new),
            headers: HeaderEdits::compile(&config.headers, config.variables, &root.field("headers"))?,
        }))
    }
}

/// An instance of `response-rewrite`.
struct RewriteFilter {
    condition: Option<Condition>,
    status: Option<u16>,
    body: Option<Vec<u8>>,
    around: Option<Arc<BodyWrapper>>,
    change: Option<Arc<Change>>,
    headers: HeaderEdits,
}

/// Headers that describe the replaced body.
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

    fn rewrites_responses(&self) -> bool {
        true
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
        if let Some(change) = &self.change {
            BodyRewrite::begin(change, response);
        }
        if let Some(around) = &self.around {
            for name in ABOUT_THE_BODY {
                if name == b"Content-Encoding" {
                    continue;
                }
                response.headers.remove(name);
            }
            response.body_filters.push(around.passing());
        }
        self.headers
            .apply(exchange, HeaderTarget::Response, &RegexMatch::default());
    }
}

#[cfg(test)]
mod tests;
