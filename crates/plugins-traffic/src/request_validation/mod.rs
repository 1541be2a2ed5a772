//! `request-validation`: validates headers and bodies of calls against JSON Schemas.
//!
//! ```yaml
//! body_schema:
//!   type: object
//!   required: [name]
//!   properties: {name: {type: string, minLength: 1}}
//! ```
//!
//! Bodies are JSON, or a form if `Content-Type` says so. Defaults of a schema are filled in, and the upstream gets the
//! JSON that was checked, serialized again: JSON that two parsers could read in different ways does not get through.
//!
//! Security: a schema allows what it does not forbid: without `additionalProperties: false` and bounds on texts and
//! lists, a call can carry anything besides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, Request, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::json_schema::Schema;
use weir_plugins_shared::lenient_json;

/// Configuration of `request-validation`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// JSON Schema of the headers: a map of names (in any case) to texts, or to lists of texts if a header occurs
    /// several times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_schema: Option<Map<String, Value>>,
    /// JSON Schema of the body. If set, calls without a body are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_schema: Option<Map<String, Value>>,
    /// The most bytes of a body that are read; calls with a larger body are refused.
    #[serde(default = "standard_body_limit")]
    pub max_body_bytes: usize,
    /// Status of the refusal, 200 to 599.
    #[serde(default = "bad_request")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message of a refusal, instead of a description of the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Default for Config {
    /// The defaults of all options, without a schema yet.
    fn default() -> Self {
        Self {
            header_schema: None,
            body_schema: None,
            max_body_bytes: standard_body_limit(),
            status: bad_request(),
            message: None,
        }
    }
}

fn standard_body_limit() -> usize {
    1 << 20
}

fn bad_request() -> u16 {
    400
}

/// Whether a schema can be used.
///
/// # Errors
/// What is wrong with it.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    Schema::read(schema, false).map(drop)
}

/// The plugin `request-validation`.
pub struct RequestValidation;

impl Plugin for RequestValidation {
    fn name(&self) -> &'static str {
        "request-validation"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_any(&[
            ("header_schema", config.header_schema.is_none()),
            ("body_schema", config.body_schema.is_none()),
        ]);
        faults.check_status("status", config.status);
        let mut read = |field: &str, schema: Option<Map<String, Value>>, fold_names: bool| {
            let read = Schema::read(&Value::Object(schema?), fold_names);
            read.map_err(|error| faults.add(field, error)).ok()
        };
        let header_schema = read("header_schema", config.header_schema, true);
        let body_schema = read("body_schema", config.body_schema, false);
        faults.done()?;
        Ok(Arc::new(SchemaFilter {
            header_schema,
            body_schema,
            max_body_bytes: config.max_body_bytes,
            status: config.status,
            message: config.message,
        }))
    }
}

/// An instance of `request-validation`.
struct SchemaFilter {
    header_schema: Option<Schema>,
    body_schema: Option<Schema>,
    max_body_bytes: usize,
    status: u16,
    message: Option<String>,
}

impl SchemaFilter {
    /// Refuses with the configured message, or else with a description of the fault, if the configuration asks for it.
    fn refuse(&self, wrong: Option<String>) -> Outcome {
        let kind = RefusalKind::Unacceptable {
            plugin: "request-validation",
        };
        let mut refusal = Refusal::with_status(kind, self.status);
        refusal.message = self.message.clone().or(wrong);
        Outcome::Refuse(Box::new(refusal))
    }

    fn check_body(&self, schema: &Schema, request: &mut Request) -> Result<(), Option<String>> {
        let body = request
            .body
            .as_deref()
            .filter(|body| !body.is_empty())
            .ok_or(None)?;
        // Of several, the upstream may believe another one.
        if request.headers.get_all(b"content-type").nth(1).is_some() {
            return Err(None);
        }
        let content_type = request.headers.get(b"content-type").unwrap_or_default();
        request.work.allow_pass(body.len());
        const FORM: &[u8] = b"application/x-www-form-urlencoded";
        let is_form = content_type
            .get(..FORM.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(FORM));
        if is_form {
            return schema.check(&mut form(body), &request.work).map_err(Some);
        }
        let mut value: Value = lenient_json::parse_whole(body, &request.work)?;
        schema.check(&mut value, &request.work)?;
        let written = value.to_string().into_bytes();
        request.forget_parsed_body();
        request.content_length = Some(written.len() as u64);
        request.body = Some(written);
        Ok(())
    }
}

impl Filter for SchemaFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(schema) = &self.header_schema
            && let Err(wrong) = schema.check(&mut headers(&exchange.request), &exchange.request.work)
        {
            return self.refuse(Some(wrong));
        }
        let Some(schema) = &self.body_schema else {
            return Outcome::Continue;
        };
        if exchange.request.body.is_none() && exchange.request.has_body {
            if !exchange.filter_state.mark_body_requested(self) {
                return self.refuse(None);
            }
            return Outcome::NeedBody {
                max_bytes: self.max_body_bytes,
            };
        }
        match self.check_body(schema, &mut exchange.request) {
            Ok(()) => Outcome::Continue,
            Err(wrong) => self.refuse(wrong),
        }
    }
}

/// The headers as a map.
fn headers(request: &Request) -> Value {
    let mut map = Map::new();
    for header in request.headers.iter() {
        let name = lossy(&header.name.to_ascii_lowercase());
        add(&mut map, name, Value::String(lossy(header.value)));
    }
    if let Some(length) = request.content_length {
        add(
            &mut map,
            "content-length".to_owned(),
            Value::String(length.to_string()),
        );
    }
    Value::Object(map)
}

/// The fields of a form; one without `=` holds `true`.
fn form(body: &[u8]) -> Value {
    let mut map = Map::new();
    for (name, value) in query_pairs(body) {
        let value = value.map_or(Value::Bool(true), |value| {
            Value::String(lossy(&decode_form(value)))
        });
        add(&mut map, lossy(&decode_form(name)), value);
    }
    Value::Object(map)
}

/// Several values of one name become a list.
fn add(map: &mut Map<String, Value>, name: String, value: Value) {
    match map.get_mut(&name) {
        None => drop(map.insert(name, value)),
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    fn call(config: &Value, headers: &[(&str, &str)], body: Option<&str>) -> (String, Exchange) {
        call_bytes(config, headers, body.map(str::as_bytes))
    }

    fn call_bytes(config: &Value, headers: &[(&str, &str)], body: Option<&[u8]>) -> (String, Exchange) {
        let filter = build(&RequestValidation, config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "POST /", headers);
        exchange.request.has_body = body.is_some();
        if body.is_some() {
            assert_eq!(word(&filter.on_request(&mut exchange)), "body");
        }
        exchange.request.body = body.map(<[u8]>::to_vec);
        let text = match filter.on_request(&mut exchange) {
            Outcome::Refuse(refusal) => {
                format!("{} {}", refusal.status, refusal.message.as_deref().unwrap_or("-"))
            }
            outcome => word(&outcome),
        };
        (text, exchange)
    }

    #[test]
    fn bodies_are_checked() {
        let schema = json!({"type": "object", "required": ["name"], "properties": {"a": {"default": 1}}});
        let config = json!({"body_schema": schema});
        let fixed = json!({"body_schema": schema, "status": 422, "message": "no"});
        let form = ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8");
        let json = ("Content-Type", "application/json");
        for (config, headers, body, expected) in [
            (&config, &[json][..], Some(r#"{"name": 1}"#), "continue"),
            (&config, &[], Some(r#"{"name": 1}"#), "continue"),
            (&config, &[json], Some("{}"), "400 property \"name\" is required"),
            (
                &config,
                &[json],
                Some("[]"),
                "400 wrong type: expected object, got table",
            ),
            (
                &config,
                &[json],
                Some("not json"),
                "400 Expected value but found invalid token at character 1",
            ),
            (&config, &[json], Some(""), "400 -"),
            (&config, &[], None, "400 -"),
            (&config, &[json, json], Some(r#"{"name": 1}"#), "400 -"),
            (&config, &[form], Some("name=jack"), "continue"),
            (&config, &[form], Some("x=1"), "400 property \"name\" is required"),
            (&fixed, &[json], Some("{}"), "422 no"),
        ] {
            assert_eq!(call(config, headers, body).0, expected, "{headers:?} {body:?}");
        }
        let (_, exchange) = call(&config, &[json], Some(r#"{"name": 1, "name": 2}"#));
        assert_eq!(
            exchange.request.body.as_deref(),
            Some(&br#"{"name":2,"a":1}"#[..])
        );
    }

    #[test]
    fn bodies_pass_whole_or_not_at_all() {
        let not_utf8 = "400 Expected value but found invalid token at character 1";
        for (body, expected, passed) in [
            (
                &b"{\"a\":\"\t\xc3\xa4\"}"[..],
                "continue",
                &b"{\"a\":\"\\t\xc3\xa4\"}"[..],
            ),
            (b"{\"a\":\"\xff\"}", not_utf8, b"{\"a\":\"\xff\"}"),
            (b"{\"a\":\"\t\xff\"}", not_utf8, b"{\"a\":\"\t\xff\"}"),
        ] {
            let (text, exchange) = call_bytes(&json!({"body_schema": {}}), &[], Some(body));
            assert_eq!(
                (&*text, exchange.request.body.as_deref()),
                (expected, Some(passed))
            );
        }
    }

    #[test]
    fn bodies_that_are_too_large_do_not_pass() {
        let filter = build(&RequestValidation, &json!({"body_schema": {}})).expect("valid");
        let mut exchange = exchange();
        exchange.request.has_body = true;
        assert_eq!(word(&filter.on_request(&mut exchange)), "body");
        assert_eq!(word(&filter.on_request(&mut exchange)), "unacceptable 400");
    }

    #[test]
    fn headers_are_checked() {
        let config =
            json!({"header_schema": {"required": ["X-A"], "properties": {"x-b": {"type": "array"}}}});
        for (headers, expected) in [
            (&[("x-a", "1")][..], "continue"),
            (&[("X-A", "1"), ("X-B", "1"), ("X-B", "2")], "continue"),
            (
                &[("X-A", "1"), ("X-B", "1")],
                "400 property \"x-b\" validation failed: wrong type: expected array, got string",
            ),
            (&[], "400 property \"X-A\" is required"),
        ] {
            assert_eq!(call(&config, headers, None).0, expected, "{headers:?}");
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [
            (json!({}), &[""][..]),
            (
                json!({"body_schema": {"type": "x"}, "header_schema": {"pattern": "("}, "status": 1}),
                &["status", "header_schema", "body_schema"],
            ),
        ] {
            assert_eq!(refused_at(&RequestValidation, &config), places, "{config}");
        }
        assert!(build(&RequestValidation, &example(include_str!("mod.rs"))).is_ok());
    }
}
