//! `openapi-validation`: lets calls pass that an OpenAPI document describes, and checks responses too if asked to.
//!
//! ```yaml
//! spec: |
//!   openapi: 3.1.0
//!   info: {title: Pets, version: "1"}
//!   paths:
//!     /pets/{id}:
//!       get:
//!         parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
//!         responses: {"200": {description: a pet}}
//! ```
//!
//! A call matches an operation by method and path. Its parameters in path, query, headers and cookies and its body must
//! match their schemas. The document is made ready when the configuration is loaded; one that is fetched, with the first
//! call. References lead into the same document only.
//!
//! Security: a document allows what it does not forbid. Without `additionalProperties: false`, `unknown_query: refuse` and
//! bounds on texts and lists, a call can carry anything besides. With `action: log`, nothing is stopped.

mod fetch;
mod filter;

use crate::openapi::{Api, Base};
use fetch::{FetchedSpec, SpecUrl};
use filter::ValidationFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_flow::expiring::ExpiringMap;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

pub use fetch::SpecUrl as SpecSource;

/// Configuration of `openapi-validation`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The document, in JSON or YAML: Swagger 2.0, or OpenAPI 3.0 to 3.2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// The address of the document, instead of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_url: Option<SpecUrl>,
    /// Which base path is put before the document's paths: `none`, `servers` (the paths of its servers), or the
    /// given `path`.
    pub base_path: BasePath,
    /// Whether parameters in the path are checked.
    pub check_path: bool,
    /// Whether parameters in the query are checked.
    pub check_query: bool,
    /// Whether headers and cookies are checked.
    pub check_headers: bool,
    /// Whether bodies of requests are checked.
    pub check_body: bool,
    /// Whether bodies of upstreams' responses are checked. Upstreams are then asked for bodies without a content coding.
    pub check_response: bool,
    /// What happens to calls with headers that the operation does not describe.
    pub unknown_headers: Unknown,
    /// Headers that are never unknown.
    pub allowed_headers: Vec<String>,
    /// What happens to calls with query arguments that the operation does not describe.
    pub unknown_query: Unknown,
    /// The most bytes of a body that are read; calls with a larger body are refused.
    pub max_body_bytes: usize,
    /// What happens to calls that do not match.
    pub action: Action,
    /// What happens to responses that do not match.
    pub response_action: Action,
    /// Status of a refusal of a call that does not match, 400 to 599.
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    /// Status of the response that replaces one that does not match, 400 to 599.
    #[schemars(range(min = 400, max = 599))]
    pub response_status: u16,
    /// Whether responses describe the fault.
    pub verbose: bool,
    /// The message of a refused call; with `verbose`, the description of the fault follows or replaces it.
    pub message: String,
    /// The message instead of a refused response.
    pub response_message: String,
    /// Whether descriptions of faults replace the messages instead of following them.
    pub verbose_replaces: bool,
    /// The message while there is no document.
    pub no_document_message: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            spec: None,
            spec_url: None,
            base_path: BasePath::default(),
            check_path: true,
            check_query: true,
            check_headers: true,
            check_body: true,
            check_response: false,
            unknown_headers: Unknown::Allow,
            allowed_headers: Vec::new(),
            unknown_query: Unknown::Allow,
            max_body_bytes: 1 << 20,
            action: Action::Refuse,
            response_action: Action::Refuse,
            status: 400,
            response_status: 502,
            verbose: false,
            message: "request doesn't conform to its description".into(),
            response_message: "response doesn't conform to its description".into(),
            verbose_replaces: true,
            no_document_message: "there is no description of this API".into(),
        }
    }
}

/// The base path before the paths of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BasePath {
    /// None.
    None,
    /// Those of the document's servers.
    #[default]
    Servers,
    /// This one.
    Path(String),
}

/// What happens to parts that are not described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// They pass.
    #[default]
    Allow,
    /// The call does not match.
    Refuse,
}

/// What happens to calls and responses that do not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is refused.
    #[default]
    Refuse,
    /// It passes, and the log reports it.
    Log,
}

/// Whether a document can be used.
///
/// # Errors
/// What is wrong with it.
pub fn check_spec(spec: &str) -> Result<(), String> {
    Api::compile(spec, &Base::Servers, false).map(drop)
}

/// Documents that were fetched may take so many bytes, counted by their texts.
const FETCHED_BYTES: usize = 64 << 20;

/// The plugin. Documents that it has fetched outlive a reload.
pub struct OpenapiValidation {
    fetched: Arc<ExpiringMap<FetchedSpec>>,
}

impl Default for OpenapiValidation {
    fn default() -> Self {
        Self {
            fetched: ExpiringMap::new(FETCHED_BYTES),
        }
    }
}

impl Plugin for OpenapiValidation {
    fn name(&self) -> &'static str {
        "openapi-validation"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if config.spec.is_some() == config.spec_url.is_some() {
            faults.add("spec", "expected either 'spec' or 'spec_url'");
        }
        for (field, status) in [
            ("status", config.status),
            ("response_status", config.response_status),
        ] {
            if !(400..=599).contains(&status) {
                faults.add(
                    field,
                    format!("expected a status from 400 to 599, found {status}"),
                );
            }
        }
        faults.check_names("allowed_headers", &config.allowed_headers);
        let base = match &config.base_path {
            BasePath::None => Base::None,
            BasePath::Servers => Base::Servers,
            BasePath::Path(path) if path.starts_with('/') || path.is_empty() => Base::Own(path.clone()),
            BasePath::Path(_) => {
                faults.add("base_path", "expected a path that begins with '/'");
                Base::None
            }
        };
        let api = config
            .spec
            .as_deref()
            .map(|spec| Api::compile(spec, &base, false));
        let api = api.transpose().unwrap_or_else(|message| {
            faults.add("spec", message);
            None
        });
        let source = config
            .spec_url
            .as_ref()
            .map(|url| url.compile(&base, &self.fetched));
        let source = source.transpose().unwrap_or_else(|(field, message)| {
            faults.add_at(&["spec_url", field], message);
            None
        });
        faults.done()?;
        Ok(Arc::new(ValidationFilter::new(config, api.map(Arc::new), source)))
    }
}

#[cfg(test)]
mod tests;
