//! `dubbo`: invokes a method of a Dubbo service instead of forwarding calls over HTTP.
//!
//! ```yaml
//! service: org.example.Shop
//! method: sell
//! parameter_types: "Ljava/lang/Long;Ljava/lang/String;"
//! ```
//!
//! The service's targets speak version 2 of Dubbo's protocol, with values in JSON (fastjson). A call's body has the
//! arguments, as a list; the value that the method gives back is the body of the answer.
//!
//! Security: whatever the caller sends, it is always this method that is invoked, with as many arguments as it has
//! parameters. With `serialized`, the body's lines are the arguments, and fastjson may make objects of other classes of
//! what is in them: let only callers send them whom you trust.

mod wire;

pub use wire::fuzz_answer;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, UpstreamDialogue,
    UpstreamTimeouts, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use wire::{Invocation, Method, invocation, parameter_count};

const NAME: &str = "dubbo";
/// The most bytes of a body that a configuration can allow.
pub const MAX_BODY: usize = 8 << 20;
/// The most bytes of an answer that a configuration can allow.
pub const MAX_ANSWER: usize = 8 << 20;
/// The most milliseconds that a configuration lets a step take.
pub const MAX_TIMEOUT_MS: u64 = 600_000;

/// Configuration of `dubbo`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The name of the service, which is that of its interface.
    pub service: String,
    /// Its version.
    #[serde(default = "no_version")]
    pub version: String,
    /// The method.
    pub method: String,
    /// The types of its parameters, as Java describes them, such as `Ljava/lang/Long;I`. A call has as many arguments.
    #[serde(default)]
    pub parameter_types: String,
    /// Whether bodies are arguments in JSON, one a line. Otherwise they are a JSON list of them, or a map, whose values count.
    #[serde(default)]
    pub serialized: bool,
    /// A request header that says instead whether a body is so: `true`, or anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serialized_header: Option<String>,
    /// The most bytes of a body; calls with a larger one are refused with 413. At most 8 MiB.
    #[serde(default = "one_mebibyte")]
    #[schemars(range(max = 8_388_608))]
    pub max_body_bytes: usize,
    /// The most bytes of a result, at most 8 MiB.
    #[serde(default = "eight_mebibytes")]
    #[schemars(range(min = 1, max = 8_388_608))]
    pub max_answer_bytes: usize,
    /// The longest that a connection may take, in milliseconds.
    #[serde(default = "six_seconds")]
    #[schemars(range(min = 1, max = 600_000))]
    pub connect_timeout_ms: u64,
    /// The longest that sending may take, in milliseconds.
    #[serde(default = "six_seconds")]
    #[schemars(range(min = 1, max = 600_000))]
    pub write_timeout_ms: u64,
    /// The longest that the result may take after that, in milliseconds.
    #[serde(default = "six_seconds")]
    #[schemars(range(min = 1, max = 600_000))]
    pub read_timeout_ms: u64,
}

fn no_version() -> String {
    "0.0.0".to_owned()
}

fn one_mebibyte() -> usize {
    1 << 20
}

fn eight_mebibytes() -> usize {
    MAX_ANSWER
}

fn six_seconds() -> u64 {
    6_000
}

/// The plugin `dubbo`.
#[derive(Debug)]
pub struct Dubbo;

impl Plugin for Dubbo {
    fn name(&self) -> &'static str {
        "dubbo"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        for (field, text) in [("service", &config.service), ("method", &config.method)] {
            if text.is_empty() {
                faults.add(field, "expected a name");
            }
        }
        let parameter_count = parameter_count(&config.parameter_types);
        if parameter_count.is_none() {
            faults.add(
                "parameter_types",
                "expected types as Java describes them, such as 'Ljava/lang/Long;I'",
            );
        }
        if let Some(name) = &config.serialized_header {
            faults.check_name("serialized_header", name);
        }
        if config.max_body_bytes > MAX_BODY {
            faults.add("max_body_bytes", format!("expected at most {MAX_BODY} bytes"));
        }
        if !(1..=MAX_ANSWER).contains(&config.max_answer_bytes) {
            faults.add("max_answer_bytes", format!("expected 1 to {MAX_ANSWER} bytes"));
        }
        for (field, time) in [
            ("connect_timeout_ms", config.connect_timeout_ms),
            ("write_timeout_ms", config.write_timeout_ms),
            ("read_timeout_ms", config.read_timeout_ms),
        ] {
            if !(1..=MAX_TIMEOUT_MS).contains(&time) {
                faults.add(field, format!("expected 1 to {MAX_TIMEOUT_MS} milliseconds"));
            }
        }
        faults.done()?;
        Ok(Arc::new(InvokeFilter {
            method: Method {
                service: config.service,
                version: config.version,
                name: config.method,
                parameter_types: config.parameter_types,
                parameter_count: parameter_count.unwrap_or_default(),
            },
            serialized: config.serialized,
            serialized_header: config.serialized_header,
            max_body_bytes: config.max_body_bytes,
            max_answer_bytes: config.max_answer_bytes,
            timeouts: UpstreamTimeouts {
                connect_ms: Some(config.connect_timeout_ms),
                write_ms: Some(config.write_timeout_ms),
                read_ms: Some(config.read_timeout_ms),
                total_ms: None,
            },
        }))
    }
}

/// An instance.
struct InvokeFilter {
    method: Method,
    serialized: bool,
    serialized_header: Option<String>,
    max_body_bytes: usize,
    max_answer_bytes: usize,
    timeouts: UpstreamTimeouts,
}

fn refused(kind: RefusalKind, status: u16) -> Outcome {
    Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
}

impl Filter for InvokeFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let request = &exchange.request;
        if request.has_body && request.body.is_none() {
            if !exchange.filter_state.mark_body_requested(self) {
                return refused(RefusalKind::Answered { plugin: NAME }, 413);
            }
            return Outcome::NeedBody {
                max_bytes: self.max_body_bytes,
            };
        }
        let is_serialized = match &self.serialized_header {
            Some(name) => request.headers.get(name.as_bytes()) == Some(b"true"),
            None => self.serialized,
        };
        let body = request.body.as_deref().unwrap_or_default();
        if body.len() > self.max_body_bytes {
            return refused(RefusalKind::Answered { plugin: NAME }, 413);
        }
        let Ok(message) = invocation(&self.method, body, is_serialized) else {
            return refused(RefusalKind::Unacceptable { plugin: NAME }, 400);
        };
        exchange.upstream_dialogue = Some(UpstreamDialogue {
            plugin: NAME,
            dialogue: Box::new(Invocation::new(message, self.max_answer_bytes)),
        });
        let timeouts = &mut exchange.upstream_timeouts;
        *timeouts = UpstreamTimeouts {
            total_ms: timeouts.total_ms,
            ..self.timeouts
        };
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests;
