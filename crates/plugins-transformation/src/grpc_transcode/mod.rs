//! `grpc-transcode`: lets clients of HTTP and JSON call gRPC services.
//!
//! ```yaml
//! proto: {file: /etc/weir/shop.proto}
//! json: {names: proto}
//! ```
//!
//! The definitions say by the option `google.api.http` which calls are for which method; or one `method` takes all
//! calls of the route. The upstream's scheme is `grpc` or `grpcs`.

mod errors;
mod filter;
mod request;
mod rules;
mod template;

pub use template::PathTemplate;

use crate::grpc_frames;
use crate::protobuf::{Cache, Compiled, Definitions, JsonForm};
use filter::{Methods, TranscodeFilter};
use rules::{Body, Rules, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `grpc-transcode`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The definitions of the services. If they are absent (allowed with `refusals: text`), all calls are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto: Option<Definitions>,
    /// The method that all calls are for, as `package.Service/Method`; absent: the one whose rule in the definitions,
    /// `google.api.http`, the call fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The deadline that is sent to the service (`grpc-timeout`) in milliseconds, at most 99999999; 0: none.
    #[serde(default)]
    #[schemars(range(max = 99_999_999))]
    pub deadline_ms: u64,
    /// How messages are written as JSON, and read.
    #[serde(default)]
    pub json: JsonForm,
    /// How gRPC errors are returned.
    #[serde(default)]
    pub errors: Errors,
    /// How calls are refused that cannot be converted to messages.
    #[serde(default)]
    pub refusals: Refusals,
    /// Whether pages elsewhere may call, and an `OPTIONS` is answered here.
    #[serde(default)]
    pub any_origin: bool,
    /// Whether the messages of a stream follow each other directly, instead of one per line.
    #[serde(default)]
    pub joined: bool,
    /// The largest body of a call, in bytes, at most 67108864.
    #[serde(default = "usual_bytes")]
    #[schemars(range(max = 67_108_864))]
    pub max_request_bytes: usize,
    /// The largest message of an answer, in bytes, at most 67108864.
    #[serde(default = "usual_bytes")]
    #[schemars(range(max = 67_108_864))]
    pub max_message_bytes: usize,
}

/// As much as most gRPC servers take.
fn usual_bytes() -> usize {
    4 << 20
}

/// How gRPC errors are returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Errors {
    /// The content of the body.
    pub body: ErrorBody,
    /// The type of the details, for `details`; absent: they are written as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail_type: Option<String>,
    /// The status for `UNIMPLEMENTED`.
    pub unimplemented_status: u16,
    /// The status for codes that gRPC does not define.
    pub unknown_status: u16,
}

impl Default for Errors {
    fn default() -> Self {
        Self {
            body: ErrorBody::Status,
            detail_type: None,
            unimplemented_status: 501,
            unknown_status: 500,
        }
    }
}

/// The content of an error's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorBody {
    /// Nothing.
    None,
    /// `code`, `message` and `details`, as `google.rpc.Status`.
    Status,
    /// The service's details alone, in a member `error`; nothing if it has sent none.
    Details,
}

/// How calls are refused that cannot be converted to messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refusals {
    /// With 400, or 404 if no rule matches, and a description of the fault.
    #[default]
    Problem,
    /// With 400 and a plain text.
    Text,
    /// With 400 alone.
    Status,
}

/// As many digits as `grpc-timeout` may have.
const MAX_DEADLINE_MS: u64 = 99_999_999;

/// The plugin `grpc-transcode`.
#[derive(Default)]
pub struct GrpcTranscode {
    definitions: Cache,
}

impl Plugin for GrpcTranscode {
    fn name(&self) -> &'static str {
        "grpc-transcode"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        grpc_frames::check_sizes(config.max_request_bytes, config.max_message_bytes, &mut faults);
        if config.deadline_ms > MAX_DEADLINE_MS {
            faults.add(
                "deadline_ms",
                format!("expected at most {MAX_DEADLINE_MS} milliseconds"),
            );
        }
        faults.check_status("errors", config.errors.unimplemented_status);
        faults.check_status("errors", config.errors.unknown_status);
        let (definitions, methods) = match self.methods(&config) {
            Ok(found) => found,
            Err(found) => {
                faults.extend(vec![found]);
                (None, Methods::None)
            }
        };
        faults.done()?;
        config.proto = None;
        Ok(Arc::new(TranscodeFilter {
            errors: Arc::new(config.errors.clone()),
            config,
            _definitions: definitions,
            methods,
        }))
    }
}

impl GrpcTranscode {
    /// The definitions, and which of their methods calls are for.
    fn methods(&self, config: &Config) -> Result<(Option<Arc<Compiled>>, Methods), Diagnostic> {
        let root = DocPath::root();
        let proto = root.field("proto");
        let Some(given) = &config.proto else {
            return match config.refusals {
                Refusals::Text => Ok((None, Methods::None)),
                _ => Err(Diagnostic::error(proto, "expected definitions")),
            };
        };
        let definitions = self.definitions.compile(given, &proto)?;
        let methods = match &config.method {
            Some(name) => one_method(name, &definitions)
                .map_err(|message| Diagnostic::error(root.field("method"), message))?,
            None => {
                let rules = Rules::read(&definitions);
                Methods::ByRule(rules.map_err(|message| Diagnostic::error(proto, message))?)
            }
        };
        Ok((Some(definitions), methods))
    }
}

/// Checks whether the definitions of a configuration are valid and have the method that it names. Dialects call this
/// before they pass a configuration on.
///
/// # Errors
/// The fault, and its place in the configuration.
pub fn check(config: &Config) -> Result<(), Diagnostic> {
    GrpcTranscode::default().methods(config).map(|_| ())
}

fn one_method(name: &str, definitions: &Compiled) -> Result<Methods, String> {
    let method = definitions.method(name).ok_or_else(|| {
        let known: Vec<String> = definitions
            .methods()
            .take(5)
            .map(|method| format!("{}/{}", method.parent_service().full_name(), method.name()))
            .collect();
        format!(
            "expected a method of the definitions ({}), found '{name}'",
            known.join(", ")
        )
    })?;
    if method.is_client_streaming() {
        return Err(format!(
            "expected a method that takes one message, found '{name}'"
        ));
    }
    Ok(Methods::One(Target::new(method, Body::Whole)))
}

#[cfg(test)]
mod tests;
