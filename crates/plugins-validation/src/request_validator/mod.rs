//! `request-validator`: lets calls pass whose body and parameters match schemas.
//!
//! ```yaml
//! body: {type: object, required: [name], properties: {name: {type: string}}}
//! parameters:
//!   - {name: page, in: query, schema: {type: integer, minimum: 1}}
//! content_types: [application/json]
//! ```
//!
//! Parameters have OpenAPI's styles. Bodies are checked if they are JSON; bodies of other types that are allowed pass as they
//! are. `request-validation` also fills in defaults and checks forms.
//!
//! Security: a schema allows what it does not forbid: without `additionalProperties: false` and bounds on texts and
//! lists, a call can carry anything besides.

use crate::media_types::MediaType;
use crate::parameters::{Parameter, ParameterLocation, Query, Source, Style};
use crate::refuse::refuse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Request, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::json_schema::{SchemaId, SchemaSet, SchemaSetBuilder};

const PLUGIN: &str = "request-validator";
const BODY: &str = "request body doesn't conform to schema";
const PARAMETER: &str = "request param doesn't conform to schema";
const TYPE: &str = "specified Content-Type is not allowed";

/// Configuration of `request-validator`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// JSON Schema of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Parameters that are checked.
    pub parameters: Vec<ParameterConfig>,
    /// Media types of accepted bodies, such as `application/json`, `text/*` or `*/*`. Checked only together with a
    /// schema of the body.
    pub content_types: Vec<String>,
    /// Whether parameters of media types (`charset=utf-8`) must be the same. A list without them then takes only calls
    /// without them.
    pub check_content_type_parameters: bool,
    /// The most bytes of a body that are read; calls with a larger body are refused.
    pub max_body_bytes: usize,
    /// Whether responses describe the fault.
    pub verbose: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            body: None,
            parameters: Vec::new(),
            content_types: vec!["application/json".into()],
            check_content_type_parameters: true,
            max_body_bytes: 1 << 20,
            verbose: false,
        }
    }
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterConfig {
    /// Its name.
    pub name: String,
    /// Its location: `path`, `query`, `header` or `cookie`. Those in paths are groups of the route's path.
    #[serde(rename = "in")]
    pub place: String,
    /// Whether it must be there.
    #[serde(default)]
    pub required: bool,
    /// How its value is written: `simple`, `label`, `matrix`, `form`, `spaceDelimited`, `pipeDelimited` or `deepObject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
    /// Whether the parts of its value are written separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explode: Option<bool>,
    /// JSON Schema of its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// Whether a schema can be used.
///
/// # Errors
/// What is wrong with it.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    SchemaSetBuilder::new(schema).add(schema).map(drop)
}

/// Whether a style exists for parameters in a place.
pub fn style_fits(style: &str, place: &str) -> bool {
    let style = Style::named(style).zip(ParameterLocation::named(place));
    style.is_some_and(|(style, place)| style.fits(place))
}

/// Whether a text is a media type, with or without parameters.
pub fn is_media_type(text: &str) -> bool {
    MediaType::parse(text.as_bytes()).is_some()
}

/// The plugin `request-validator`.
pub struct RequestValidator;

impl Plugin for RequestValidator {
    fn name(&self) -> &'static str {
        "request-validator"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_any(&[
            ("body", config.body.is_none()),
            ("parameters", config.parameters.is_empty()),
        ]);
        let nothing = Value::Null;
        let root = config.body.as_ref().unwrap_or(&nothing);
        let mut schemas = SchemaSetBuilder::new(root);
        let body = config.body.as_ref().map(|body| schemas.add(body));
        let body = body.transpose().unwrap_or_else(|message| {
            faults.add("body", message);
            None
        });
        let mut parameters = Vec::new();
        for parameter in &config.parameters {
            let written = json!({
                "name": parameter.name,
                "in": parameter.place,
                "style": parameter.style,
                "explode": parameter.explode,
                "required": parameter.required,
                "schema": parameter.schema,
            });
            let mut written = written;
            if let Value::Object(map) = &mut written {
                map.retain(|_, value| !value.is_null());
            }
            match Parameter::read(&written, root, &mut schemas) {
                Ok(parameter) => parameters.push(parameter),
                Err(message) => faults.add("parameters", message),
            }
        }
        let types: Option<Vec<MediaType>> = config
            .content_types
            .iter()
            .map(|it| MediaType::parse(it.as_bytes()))
            .collect();
        if types.is_none() {
            faults.add("content_types", "expected media types, such as application/json");
        }
        faults.done()?;
        Ok(Arc::new(SchemaFilter {
            schemas: schemas.finish(),
            body,
            parameters,
            content_types: types.unwrap_or_default(),
            check_content_type_parameters: config.check_content_type_parameters,
            max_body_bytes: config.max_body_bytes,
            verbose: config.verbose,
        }))
    }
}

/// An instance of `request-validator`.
struct SchemaFilter {
    schemas: SchemaSet,
    body: Option<SchemaId>,
    parameters: Vec<Parameter>,
    content_types: Vec<MediaType>,
    check_content_type_parameters: bool,
    max_body_bytes: usize,
    verbose: bool,
}

impl SchemaFilter {
    fn refuse(&self, plain: &'static str, fault: &str) -> Outcome {
        let message = match self.verbose {
            true => fault.to_owned(),
            false => plain.to_owned(),
        };
        refuse(PLUGIN, 400, message, fault)
    }

    /// Whether the body's type is let in.
    fn takes_type(&self, request: &Request) -> bool {
        let Some(given) = request.headers.get(b"content-type") else {
            return true;
        };
        let Some(given) = MediaType::parse(given) else {
            return false;
        };
        let mut types = self.content_types.iter();
        types.any(|wanted| wanted.takes(&given, self.check_content_type_parameters))
    }

    fn check_parameters(&self, exchange: &Exchange) -> Result<(), String> {
        let request = &exchange.request;
        let query = Query::read(request.query.as_deref());
        let captures: Vec<(&str, &[u8])> = exchange
            .captures
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let source = Source {
            request,
            query: &query,
            path: &captures,
        };
        for parameter in &self.parameters {
            let checked = parameter.check(&source, &self.schemas, &request.work);
            checked.map_err(|message| {
                let place = parameter.place.as_str();
                format!("{place} '{}' validation failed, {message}", parameter.name)
            })?;
        }
        Ok(())
    }

    fn check_body(&self, schema: SchemaId, request: &Request) -> Result<(), String> {
        let body = request.body.as_deref().unwrap_or_default();
        let content_type = request.headers.get(b"content-type").and_then(MediaType::parse);
        // Without a type, it is taken for JSON.
        if content_type.is_some_and(|given| !given.is_json()) {
            return Ok(());
        }
        request.work.allow_pass(body.len());
        let checked = self.schemas.check_text(schema, body, &request.work);
        checked.map_err(|fault| fault.message().to_owned())
    }
}

impl Filter for SchemaFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let has_asked = exchange.filter_state.is_body_requested(self);
        if !has_asked {
            if let Err(fault) = self.check_parameters(exchange) {
                return self.refuse(PARAMETER, &fault);
            }
            let types = exchange.request.headers.get_all(b"content-type").count();
            if self.body.is_some() && (types > 1 || !self.takes_type(&exchange.request)) {
                return refuse(PLUGIN, 400, TYPE, TYPE);
            }
        }
        let Some(schema) = self.body else {
            return Outcome::Continue;
        };
        if exchange.request.body.is_none() && exchange.request.has_body {
            if !exchange.filter_state.mark_body_requested(self) {
                return self.refuse(BODY, "the body is too large");
            }
            return Outcome::NeedBody {
                max_bytes: self.max_body_bytes,
            };
        }
        match self.check_body(schema, &exchange.request) {
            Ok(()) => Outcome::Continue,
            Err(fault) => self.refuse(BODY, &fault),
        }
    }
}

#[cfg(test)]
mod tests;
