//! `oas-validator`: `openapi-validation` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, printed_shape, read};
use crate::schema::{Schema, is_secret_reference};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::lenient_json;
use weir_plugins::openapi_validation::{Action, BasePath, Config, SpecSource, check_spec};

/// The plugin `oas-validator`.
pub struct OasValidator;

const SCHEMAS: &str = include_str!("schemas/oas-validator.json");
/// How long a document is used that was fetched, in seconds, unless the metadata says otherwise.
const STANDARD_TTL: u64 = 3_600;

#[derive(Deserialize)]
struct Options {
    spec: Option<String>,
    spec_url: Option<String>,
    #[serde(default)]
    spec_url_request_headers: BTreeMap<String, String>,
    ssl_verify: bool,
    timeout: u64,
    max_req_body_size: usize,
    verbose_errors: bool,
    skip_request_body_validation: bool,
    skip_request_header_validation: bool,
    skip_query_param_validation: bool,
    skip_path_params_validation: bool,
    reject_if_not_match: bool,
    rejection_status_code: u16,
}

impl PluginAdapter for OasValidator {
    fn name(&self) -> &'static str {
        "oas-validator"
    }

    fn priority(&self) -> i64 {
        512
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| printed_shape(SCHEMAS, "schema"));
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| printed_shape(SCHEMAS, "metadata_schema"));
        Some(&SHAPE)
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let spec = config.get("spec").and_then(Value::as_str);
        let spec = spec.filter(|spec| !is_secret_reference(spec));
        match spec.map(|spec| lenient_json::parse(spec.as_bytes())) {
            Some(Err(fault)) => Err(format!("invalid JSON string provided, err: {fault}")),
            _ => Ok(()),
        }
    }

    fn plugin(&self) -> &'static str {
        "openapi-validation"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let mut options: Options = read(config)?;
        // A text in the document may hold line ends as they are; the engine's reader takes them escaped only.
        if let Some(Cow::Owned(escaped)) = options.spec.as_deref().map(lenient_json::escape_controls) {
            options.spec = Some(escaped);
        }
        if let Some(Err(message)) = options.spec.as_deref().map(check_spec) {
            notes.error("spec", format!("failed to compile openapi spec, err: {message}"));
        }
        let metadata = context.metadata.get(self.name());
        let ttl = metadata.and_then(|metadata| metadata.get("spec_url_ttl")?.as_u64());
        const MESSAGE: &str = "failed to validate request. ";
        serde_json::to_value(Config {
            spec: options.spec,
            spec_url: options.spec_url.map(|url| SpecSource {
                url,
                headers: options.spec_url_request_headers,
                verify_tls: options.ssl_verify,
                timeout_ms: options.timeout,
                ttl_seconds: ttl.unwrap_or(STANDARD_TTL),
            }),
            base_path: BasePath::Servers,
            check_path: !options.skip_path_params_validation,
            check_query: !options.skip_query_param_validation,
            check_headers: !options.skip_request_header_validation,
            check_body: !options.skip_request_body_validation,
            max_body_bytes: options.max_req_body_size,
            action: match options.reject_if_not_match {
                true => Action::Refuse,
                false => Action::Log,
            },
            status: options.rejection_status_code,
            verbose: options.verbose_errors,
            verbose_replaces: false,
            message: MESSAGE.to_owned(),
            no_document_message: "failed to parse openapi spec".to_owned(),
            ..Config::default()
        })
    }
}
