//! `mocking`: answers calls with an example, or with one made up by a schema.
//!
//! ```yaml
//! content_type: application/json
//! schema:
//!   type: object
//!   properties:
//!     name: {type: string, example: Ann}
//!     age: {type: integer}
//! ```

mod sample;

use sample::Sample;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_value;
use weir_plugin::{
    BuildContext, Exchange, Filter, Headers, Outcome, Phases, Plugin, Reply, Suspend, Template, parse_config,
};
use weir_plugins_shared::header_edits::{HeaderEdit, HeaderEdits, HeaderTarget};
use weir_plugins_shared::path_captures::RegexMatch;

/// Configuration of `mocking`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Status of the response, 200 to 599.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// `Content-Type` of the response.
    pub content_type: String,
    /// Headers of the response, with variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderEdit>,
    /// The body, with variables. Goes before `schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// A JSON Schema from which the body is generated: from types, properties and items; an `example` is used as it is.
    /// The body is written as XML if `content_type` says so, otherwise as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Seconds to wait before the response, at most 3600.
    #[schemars(range(min = 0, max = 3600))]
    pub delay_seconds: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            status: 200,
            content_type: "application/json".to_owned(),
            headers: Vec::new(),
            example: None,
            schema: None,
            delay_seconds: 0,
        }
    }
}

/// The plugin `mocking`.
pub struct Mocking;

impl Plugin for Mocking {
    fn name(&self) -> &'static str {
        "mocking"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root();
        let mut faults = Vec::new();
        let mut fault = |field: &str, message: &str| {
            faults.push(Diagnostic::error(root.field(field), message));
        };
        if !(200..=599).contains(&config.status) {
            fault("status", "expected a status from 200 to 599");
        }
        if !is_value(config.content_type.as_bytes()) {
            fault("content_type", "expected a media type");
        }
        if config.delay_seconds > 3600 {
            fault("delay_seconds", "expected at most 3600 seconds");
        }
        let is_xml = config.content_type.contains("/xml");
        let body = match (&config.example, &config.schema) {
            (Some(example), _) => Some(MockBody::Example(Template::parse(example))),
            (None, Some(schema)) => match Sample::compile(schema) {
                Ok(sample) => Some(MockBody::Sample(sample, is_xml)),
                Err(message) => {
                    fault("schema", &message);
                    None
                }
            },
            (None, None) => {
                fault("example", "expected 'example' or 'schema'");
                None
            }
        };
        let headers = HeaderEdits::compile(&config.headers, true, &root.field("headers"));
        let headers = headers.map_err(|more| faults.extend(more));
        match (body, headers, faults.is_empty()) {
            (Some(body), Ok(headers), true) => Ok(Arc::new(MockFilter {
                status: config.status,
                content_type: config.content_type,
                headers,
                body,
                delay: Duration::from_secs(u64::from(config.delay_seconds)),
            })),
            _ => Err(faults),
        }
    }
}

/// An instance of `mocking`.
struct MockFilter {
    status: u16,
    content_type: String,
    headers: HeaderEdits,
    body: MockBody,
    delay: Duration,
}

enum MockBody {
    Example(Template),
    /// Made up; whether as XML.
    Sample(Sample, bool),
}

/// That a call has waited.
struct DelayDone;

impl MockFilter {
    fn reply(&self, exchange: &mut Exchange) -> Reply {
        let body = match &self.body {
            MockBody::Example(template) => {
                let mut body = Vec::new();
                template.render(exchange, &mut body);
                body
            }
            MockBody::Sample(sample, is_xml) => {
                let value = sample.draw(&mut || exchange.random_u64());
                match is_xml {
                    true => sample::xml(&value).into_bytes(),
                    false => value.to_string().into_bytes(),
                }
            }
        };
        let mut reply = Reply::new(self.status, self.content_type.clone(), body);
        if !self.headers.is_empty() {
            let mut own = Headers::default();
            std::mem::swap(&mut exchange.response.headers, &mut own);
            self.headers
                .apply(exchange, HeaderTarget::Response, &RegexMatch::default());
            std::mem::swap(&mut exchange.response.headers, &mut own);
            for header in own.iter() {
                reply = reply.with_header(String::from_utf8_lossy(header.name), header.value);
            }
        }
        reply
    }
}

impl Filter for MockFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.headers.need_body() || matches!(&self.body, MockBody::Example(template) if template.needs_body())
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if !self.delay.is_zero() && exchange.filter_state.take::<_, DelayDone>(self).is_none() {
            exchange.filter_state.put(self, DelayDone);
            return Outcome::Suspend(Suspend::time(self.delay));
        }
        Outcome::Reply(Box::new(self.reply(exchange)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    fn reply(config: &Value, call: &str) -> Reply {
        let filter = build(&Mocking, config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, call, &[]);
        match filter.on_request(&mut exchange) {
            Outcome::Reply(reply) => *reply,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn examples_are_filled_in() {
        let config =
            json!({"example": "$request_method $arg_a", "status": 201, "headers": [{"set": {"X": "$uri"}}]});
        let found = reply(&config, "GET /p?a=1");
        assert_eq!((found.status, found.body.as_slice()), (201, &b"GET 1"[..]));
        assert_eq!(found.headers, [("X".to_owned(), b"/p".to_vec())]);
    }

    #[test]
    fn schemas_are_followed() {
        let schema = json!({"type": "object", "properties": {
            "s": {"type": "string", "example": "abc"},
            "n": {"type": "number", "example": 1.5},
            "o": {"type": "object", "properties": {"b": {"type": "boolean", "example": true}}},
            "a": {"type": "array", "items": {"type": "integer"}},
        }});
        let found = reply(&json!({"schema": schema}), "GET /");
        let mut body: Value = serde_json::from_slice(&found.body).expect("JSON");
        let items = body["a"].take();
        assert!(
            items
                .as_array()
                .is_some_and(|items| (1..=3).contains(&items.len()))
        );
        assert!(items[0].is_u64());
        assert_eq!(body, json!({"s": "abc", "n": 1.5, "o": {"b": true}, "a": null}));
        for (schema, expected) in [
            (
                json!({"type": "object", "properties": {"s": {"type": "string", "example": "a<c"}}}),
                "<data>a&lt;c</data>",
            ),
            (
                json!({"type": "object", "properties": {
                    "s": {"type": "string", "example": "a"}, "b": {"type": "boolean", "example": false},
                }}),
                "<data><s>a</s><b>false</b></data>",
            ),
        ] {
            let config = json!({"schema": schema, "content_type": "text/xml"});
            assert_eq!(String::from_utf8_lossy(&reply(&config, "GET /").body), expected);
        }
    }

    #[test]
    fn answers_may_take_their_time() {
        let filter = build(&Mocking, &json!({"example": "x", "delay_seconds": 2})).expect("valid");
        let mut exchange = exchange();
        for expected in ["wait", "reply 200"] {
            assert_eq!(word(&filter.on_request(&mut exchange)), expected);
        }
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&Mocking, &example(include_str!("mod.rs"))).is_ok());
        for (config, places) in [
            (json!({}), vec!["example"]),
            (
                json!({"example": "", "status": 99, "delay_seconds": 9999}),
                vec!["status", "delay_seconds"],
            ),
            (json!({"schema": {"properties": {"a": 1}}}), vec!["schema"]),
        ] {
            assert_eq!(refused_at(&Mocking, &config), places, "{config}");
        }
    }
}
