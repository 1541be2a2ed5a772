//! `body-transformer`: `body-transform` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, boolean, having, integer, object, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::body_transform::{Config, Input, OversizePolicy, Transform};

/// The plugin `body-transformer`.
pub struct BodyTransformer;

#[derive(Deserialize)]
struct Options {
    request: Option<TransformOptions>,
    response: Option<TransformOptions>,
    max_req_body_size: u64,
    max_resp_body_size: u64,
}

#[derive(Deserialize)]
struct TransformOptions {
    input_format: Option<Input>,
    template: String,
    #[serde(default)]
    template_is_base64: bool,
}

impl TransformOptions {
    /// Templates of most formats may be in Base64 without being said to.
    fn transform(self) -> Transform {
        let decoded = STANDARD.decode(self.template.trim()).ok();
        let template = decoded
            .and_then(|decoded| String::from_utf8(decoded).ok())
            .filter(|decoded| match self.input_format {
                _ if self.template_is_base64 => true,
                Some(input) => !matches!(input, Input::Encoded | Input::Args),
                // The format is that of the content type then, which most calls have. Base64 itself holds nothing that
                // is filled in.
                None => decoded.contains('{'),
            });
        Transform {
            template: template.unwrap_or(self.template),
            input: self.input_format,
        }
    }
}

impl PluginAdapter for BodyTransformer {
    fn name(&self) -> &'static str {
        "body-transformer"
    }

    fn priority(&self) -> i64 {
        1080
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let transform = || {
                object([
                    (
                        "input_format",
                        text().options(["xml", "json", "encoded", "args", "plain", "multipart"]),
                    ),
                    ("template", text()),
                    ("template_is_base64", boolean()),
                ])
                .required(["template"])
            };
            object([
                ("request", transform()),
                ("response", transform()),
                ("max_req_body_size", integer().at_least(1).or(64 << 20)),
                ("max_resp_body_size", integer().at_least(1).or(64 << 20)),
                ("_meta", meta::shape()),
            ])
            .any_of([
                having(["request"]),
                having(["response"]),
                having(["request", "response"]),
            ])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "body-transform"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let bytes = |size: u64| size.min(64 << 20) as usize;
        serde_json::to_value(Config {
            request: options.request.map(TransformOptions::transform),
            response: options.response.map(TransformOptions::transform),
            max_request_bytes: bytes(options.max_req_body_size),
            max_response_bytes: bytes(options.max_resp_body_size),
            excess: OversizePolicy::Cut,
        })
    }
}
