//! `body-transform`: makes new bodies of what old ones hold, by templates.
//!
//! ```yaml
//! request:
//!   input: xml
//!   template: '{"city": "{{ order.city }}"}'
//! ```
//!
//! In a template `{{ … }}` stands for a value, escaped as in HTML, `{* … *}` for one as it is, and `{% … %}` for `if`,
//! `for` and `local`; the expressions are Lua's. The members of the old body are names; besides there are `_body`,
//! `_ctx.var.NAME` for variables, `_escape_json` and `_escape_xml`.
//!
//! Responses in `gzip` and `br` are unpacked first.
//!
//! Security: a response that cannot be changed, as it is too large, in another content coding, or not what the template
//! needs, is answered with 502 and never passed on unchanged. With `excess: cut`, a large one is cut to
//! `max_response_bytes`, and one that cannot be changed passes as it is.

mod decode;
mod render;
mod template;

use crate::buffered_body::BufferedBody;
pub use crate::buffered_body::OversizePolicy;
use crate::buffered_rewrite::{BufferedRewrite, Rewrite, remove_validators};
use decode::decoded;
use render::CallFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use template::Template;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Exhausted, Filter, Outcome, Phases, Plugin, Reply, WorkBudget, parse_config,
};

const PLUGIN: &str = "body-transform";

/// Configuration of `body-transform`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The change of request bodies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Transform>,
    /// The change of response bodies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Transform>,
    /// The largest request body, in bytes, at most 67108864; larger ones are refused.
    #[schemars(range(max = 67_108_864))]
    pub max_request_bytes: usize,
    /// The largest response body that is changed, in bytes, at most 67108864.
    #[schemars(range(max = 67_108_864))]
    pub max_response_bytes: usize,
    /// What happens to a larger response body.
    #[serde(skip_serializing_if = "is_default")]
    pub excess: OversizePolicy,
}

fn is_default(excess: &OversizePolicy) -> bool {
    *excess == OversizePolicy::default()
}

impl Default for Config {
    fn default() -> Self {
        Self {
            request: None,
            response: None,
            max_request_bytes: 1 << 20,
            max_response_bytes: 1 << 20,
            excess: OversizePolicy::default(),
        }
    }
}

/// The change of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transform {
    /// The template of the new body.
    pub template: String,
    /// The format of the old body; absent: as its `Content-Type` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
}

/// The format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// XML: elements by name, several of one name as a list, attributes below `_attr`.
    Xml,
    /// JSON.
    Json,
    /// An urlencoded form.
    Encoded,
    /// The arguments of the query.
    Args,
    /// A text: only `_body` has it.
    Plain,
    /// A form in parts.
    Multipart,
}

/// The most that a body may have.
const MOST: usize = 64 << 20;

/// The plugin `body-transform`.
pub struct BodyTransform;

impl Plugin for BodyTransform {
    fn name(&self) -> &'static str {
        "body-transform"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root();
        let mut faults = Vec::new();
        if config.request.is_none() && config.response.is_none() {
            faults.push(Diagnostic::error(
                root.clone(),
                "expected 'request', 'response' or both",
            ));
        }
        let bounds = [
            ("max_request_bytes", config.max_request_bytes),
            ("max_response_bytes", config.max_response_bytes),
        ];
        for (field, bytes) in bounds {
            if bytes > MOST {
                faults.push(Diagnostic::error(
                    root.field(field),
                    format!("expected at most {MOST} bytes"),
                ));
            }
        }
        let mut work = |side: &str, transform: Option<Transform>, max_bytes: usize| {
            let transform = transform?;
            match Template::parse(&transform.template) {
                Ok(template) => Some(Arc::new(Work {
                    template,
                    input: transform.input,
                    max_bytes,
                })),
                Err(message) => {
                    let place = root.field(side).field("template");
                    faults.push(Diagnostic::error(place, message));
                    None
                }
            }
        };
        let filter = TransformFilter {
            request: work("request", config.request, config.max_request_bytes),
            response: work("response", config.response, config.max_response_bytes),
            excess: config.excess,
        };
        match faults.is_empty() {
            true => Ok(Arc::new(filter)),
            false => Err(faults),
        }
    }
}

/// An instance of `body-transform`.
struct TransformFilter {
    request: Option<Arc<Work>>,
    response: Option<Arc<Work>>,
    excess: OversizePolicy,
}

/// The work on one side's bodies.
struct Work {
    template: Template,
    input: Option<Input>,
    max_bytes: usize,
}

/// The reason why there is no new body: the status and the message.
struct Failure(u16, String);

impl Work {
    /// The new body.
    fn make(
        &self,
        side: &str,
        input: Option<Input>,
        content_type: &[u8],
        body: Option<&[u8]>,
        facts: &CallFacts,
        steps: &WorkBudget,
    ) -> Result<Vec<u8>, Failure> {
        let bytes = body.map_or(0, <[u8]>::len);
        steps.allow_pass(bytes);
        let exhausted = |fault: Exhausted| Failure(400, fault.to_string());
        steps.spend_bytes(bytes).map_err(exhausted)?;
        let root = match (input, body) {
            (None | Some(Input::Plain), _) => json!({}),
            (Some(Input::Args), _) => facts.args.clone(),
            (Some(_), None) => json!({}),
            (Some(input), Some(body)) => decoded(input, content_type, body)
                .map_err(|fault| Failure(400, format!("{side} body decode: {fault}")))?,
        };
        let mut out = Vec::new();
        render::render(&self.template, &root, body, facts, steps, &mut out)
            .map_err(|fault| Failure(503, format!("{side} template rendering: {fault}")))?;
        Ok(out)
    }
}

/// What a `Content-Type` says that a body is.
fn input_format(content_type: &[u8]) -> Option<Input> {
    let lower = content_type.to_ascii_lowercase();
    let has = |text: &str| memchr::memmem::find(&lower, text.as_bytes()).is_some();
    if has("text/xml") {
        Some(Input::Xml)
    } else if has("application/json") {
        Some(Input::Json)
    } else if has("application/x-www-form-urlencoded") {
        Some(Input::Encoded)
    } else {
        has("multipart/").then_some(Input::Multipart)
    }
}

impl Filter for TransformFilter {
    fn phases(&self) -> Phases {
        Phases {
            request: self.request.is_some(),
            response: self.response.is_some(),
            log: false,
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let Some(work) = &self.request else {
            return Outcome::Continue;
        };
        if exchange.request.has_body && exchange.request.body.is_none() {
            if !exchange.filter_state.mark_body_requested(self) {
                return failed(&Failure(413, "request body is too large".to_owned()));
            }
            return Outcome::NeedBody {
                max_bytes: work.max_bytes,
            };
        }
        let facts = CallFacts::of(&work.template, exchange);
        let request = &exchange.request;
        let content_type = request.headers.get(b"content-type").unwrap_or_default();
        let input = match request.method.as_slice() {
            b"GET" => Some(Input::Args),
            _ => work.input.or_else(|| input_format(content_type)),
        };
        match work.make(
            "request",
            input,
            content_type,
            request.body.as_deref(),
            &facts,
            &request.work,
        ) {
            Ok(body) => {
                crate::request_rewrite::set_body(&mut exchange.request, body);
                Outcome::Continue
            }
            Err(failure) => failed(&failure),
        }
    }

    fn rewrites_responses(&self) -> bool {
        true
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let Some(work) = &self.response else { return };
        let Some(buffered) = BufferedBody::begin(&mut exchange.response, work.max_bytes, self.excess) else {
            return;
        };
        let facts = CallFacts::of(&work.template, exchange);
        let response = &mut exchange.response;
        let content_type = response.headers.get(b"content-type").unwrap_or_default().to_vec();
        let rewrite = ResponseWork {
            work: Arc::clone(work),
            input: work.input.or_else(|| input_format(&content_type)),
            content_type,
            facts,
        };
        remove_validators(&mut response.headers);
        BufferedRewrite::attach(response, buffered, rewrite);
    }
}

fn failed(Failure(status, message): &Failure) -> Outcome {
    let body = format!("{}\n", json!({ "message": message }));
    Outcome::Reply(Box::new(Reply::new(*status, "text/plain", body)))
}

/// The work on one response's body.
struct ResponseWork {
    work: Arc<Work>,
    input: Option<Input>,
    content_type: Vec<u8>,
    facts: CallFacts,
}

impl Rewrite for ResponseWork {
    fn rewrite(&mut self, body: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
        let steps = WorkBudget::default();
        let (input, content_type) = (self.input, &self.content_type);
        let made = self
            .work
            .make("response", input, content_type, Some(&body), &self.facts, &steps);
        made.map_err(|Failure(_, message)| {
            tracing::info!(plugin = PLUGIN, "no new body of a response: {message}");
            body
        })
    }
}

#[cfg(test)]
mod tests;
