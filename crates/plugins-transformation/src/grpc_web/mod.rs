//! `grpc-web`: lets browsers call gRPC services, which they cannot do in gRPC's own protocol.
//!
//! ```yaml
//! cross_origin:
//!   allow_origin: https://app.example
//! proto: {file: /etc/weir/shop.proto}
//! ```
//!
//! Calls of the types `application/grpc-web`, `application/grpc-web-text` and theirs with `+proto` become gRPC; the
//! trailers of the answer come as a last message of its body. With definitions in `proto`, messages may be JSON: of the
//! types with `+json`, or one message alone as `application/json`. Other calls pass untouched, gRPC itself too.

mod body;
mod filter;
mod text;

pub use text::decode as decode_text;

use crate::grpc_frames;
use crate::protobuf::{Cache, Definitions, JsonForm};
use filter::WebFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `grpc-web`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The definitions of the services, for messages in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proto: Option<Definitions>,
    /// How messages are written as JSON, and read.
    pub json: JsonForm,
    /// The path for the service.
    pub path: Path,
    /// What happens to calls that are not gRPC-Web.
    pub others: NonGrpcPolicy,
    /// The CORS headers for browsers; absent: none, and `cors` sets them if needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cross_origin: Option<CrossOrigin>,
    /// Which trailers the last message has: all of them, or `grpc-status` and `grpc-message` alone.
    pub trailers: Trailers,
    /// Whether the gateway's own refusals are sent as `grpc-status`, as clients expect it.
    pub refusals_as_status: bool,
    /// The largest body in Base64 or JSON, in bytes, at most 67108864; others are not bounded by this.
    #[schemars(range(max = 67_108_864))]
    pub max_request_bytes: usize,
    /// The largest message of an answer that is made JSON, in bytes, at most 67108864.
    #[schemars(range(max = 67_108_864))]
    pub max_message_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            proto: None,
            json: JsonForm::default(),
            path: Path::default(),
            others: NonGrpcPolicy::default(),
            cross_origin: None,
            trailers: Trailers::default(),
            refusals_as_status: true,
            max_request_bytes: 4 << 20,
            max_message_bytes: 4 << 20,
        }
    }
}

/// The path for the service. gRPC's has two parts: the service, and the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// The route's own result.
    #[default]
    Route,
    /// The client's.
    Client,
    /// The part after the route's prefix; the whole path if that part is empty.
    Remainder,
}

/// What happens to calls that are not gRPC-Web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NonGrpcPolicy {
    /// They pass.
    #[default]
    Pass,
    /// They are refused with 400, or with 405 if the method is not POST.
    Refuse,
    /// They are refused with 400 and a message about the definitions.
    Explain,
}

/// Which trailers the last message has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trailers {
    /// All.
    #[default]
    All,
    /// `grpc-status` and `grpc-message`.
    Status,
}

/// What browsers learn about calls from pages elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CrossOrigin {
    /// `Access-Control-Allow-Origin`.
    pub allow_origin: String,
    /// Whether another plugin's `Access-Control-Allow-Origin` takes precedence.
    pub keep_existing: bool,
    /// `Access-Control-Allow-Methods`.
    pub allow_methods: String,
    /// `Access-Control-Allow-Headers`.
    pub allow_headers: String,
    /// `Access-Control-Expose-Headers`; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose_headers: Option<String>,
    /// How an `OPTIONS` is answered.
    pub preflight: Preflight,
}

impl Default for CrossOrigin {
    fn default() -> Self {
        Self {
            allow_origin: "*".to_owned(),
            keep_existing: true,
            allow_methods: "POST".to_owned(),
            allow_headers: "content-type,x-grpc-web,x-user-agent,grpc-timeout".to_owned(),
            expose_headers: Some("grpc-status,grpc-message".to_owned()),
            preflight: Preflight::default(),
        }
    }
}

/// How an `OPTIONS` is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Preflight {
    /// The status.
    pub status: u16,
    /// The body.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// `Content-Type`; empty: none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub content_type: String,
}

impl Default for Preflight {
    fn default() -> Self {
        Self {
            status: 204,
            body: String::new(),
            content_type: String::new(),
        }
    }
}

/// The plugin `grpc-web`.
#[derive(Default)]
pub struct GrpcWeb {
    definitions: Cache,
}

impl Plugin for GrpcWeb {
    fn name(&self) -> &'static str {
        "grpc-web"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        grpc_frames::check_sizes(config.max_request_bytes, config.max_message_bytes, &mut faults);
        if let Some(cross_origin) = &config.cross_origin {
            let values = [
                &cross_origin.allow_origin,
                &cross_origin.allow_methods,
                &cross_origin.allow_headers,
            ];
            let preflight = &cross_origin.preflight;
            let values = values.into_iter().chain(&cross_origin.expose_headers);
            for value in values.chain([&preflight.content_type]) {
                faults.check_value("cross_origin", Some(value));
            }
            faults.check_status("cross_origin", preflight.status);
        }
        let place = DocPath::root().field("proto");
        let proto = config.proto.as_ref();
        let definitions = match proto.map(|it| self.definitions.compile(it, &place)).transpose() {
            Ok(definitions) => definitions,
            Err(found) => {
                faults.extend(vec![found]);
                None
            }
        };
        faults.done()?;
        // What was compiled of it is all that is needed.
        config.proto = None;
        Ok(Arc::new(WebFilter::new(config, definitions)))
    }
}

#[cfg(test)]
mod tests;
