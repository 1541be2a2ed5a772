//! `request-validator`: checks bodies and parameters against schemas, in Kong's own language or in JSON Schema.

mod own_schema;

use super::enterprise_fields::flag;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};
use own_schema::to_json_schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::lenient_json;
use weir_plugins::request_validator::{Config, ParameterConfig, check_schema, is_media_type, style_fits};

/// The definition of `request-validator`.
pub const DEFINITION: Definition = Definition {
    name: "request-validator",
    priority: 999,
    config: Record::of(&[
        Field::new("body_schema", Kind::String),
        Field::new("allowed_content_types", Kind::Set(&MEDIA_TYPE)).or(Default::Texts(&["application/json"])),
        Field::new("version", Kind::String)
            .required()
            .or(Default::Text("kong"))
            .check(&[Check::OneOf(&["kong", "draft4"])]),
        Field::new("parameter_schema", Kind::Array(&PARAMETER)),
        Field::new("verbose_response", Kind::Boolean)
            .required()
            .or(Default::Boolean(false)),
        flag("content_type_parameter_validation", true),
    ]),
    checks: &[
        EntityCheck::AtLeastOneOf(&["config.body_schema", "config.parameter_schema"]),
        EntityCheck::Fields(check_schemas),
    ],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "request-validator",
    translate,
};

const MEDIA_TYPE: Field = Field::element(Kind::String)
    .required()
    .check(&[Check::Text(check_media_type)]);
const PARAMETER: Field = Field::element(Kind::Record(&PARAMETER_FIELDS));
static PARAMETER_FIELDS: Record = Record::of(&[
    Field::new("in", Kind::String)
        .required()
        .check(&[Check::OneOf(&["query", "header", "path"])]),
    Field::new("name", Kind::String).required(),
    Field::new("required", Kind::Boolean).required(),
    Field::new("style", Kind::String).check(&[Check::OneOf(&[
        "label",
        "form",
        "matrix",
        "simple",
        "spaceDelimited",
        "pipeDelimited",
        "deepObject",
    ])]),
    Field::new("explode", Kind::Boolean),
    Field::new("schema", Kind::String),
]);

fn check_media_type(text: &str) -> Result<(), String> {
    match is_media_type(text) {
        true => Ok(()),
        false => Err(format!("invalid value: {text}")),
    }
}

/// A schema's text as the original's parser reads it, with what that says of a text that is no JSON.
pub fn decode_schema(text: &str) -> Result<Value, String> {
    lenient_json::parse(text.as_bytes()).map_err(|fault| format!("failed decoding schema: {fault}"))
}

/// The body's schema as JSON Schema.
fn body_schema(text: &str, version: &str) -> Result<Value, String> {
    let schema = decode_schema(text)?;
    let schema = match version {
        "draft4" => schema,
        _ => to_json_schema(&schema).map_err(|message| format!("schema violation: {message}"))?,
    };
    check_schema(&schema).map_err(|message| format!("not a valid JSONSchema draft 4 schema: {message}"))?;
    Ok(schema)
}

fn parameter_schema(text: &str) -> Result<Value, String> {
    let schema = decode_schema(text)?;
    check_schema(&schema).map_err(|message| format!("not a valid JSONSchema draft 4 schema: {message}"))?;
    Ok(schema)
}

fn check_schemas(instance: &Fields) -> Vec<(&'static str, String)> {
    let Some(config) = instance.get("config") else {
        return Vec::new();
    };
    let mut complaints = Vec::new();
    let version = config["version"].as_str().unwrap_or("kong");
    if let Some(Err(message)) = config["body_schema"]
        .as_str()
        .map(|text| body_schema(text, version))
    {
        complaints.push(("config.body_schema", message));
    }
    for parameter in config["parameter_schema"].as_array().into_iter().flatten() {
        let place = parameter["in"].as_str().unwrap_or_default();
        let name = parameter["name"].as_str().unwrap_or_default();
        if let Some(Err(message)) = parameter["schema"].as_str().map(parameter_schema) {
            complaints.push(("config.parameter_schema", format!("{name}: {message}")));
        }
        if let Some(style) = parameter["style"]
            .as_str()
            .filter(|style| !style_fits(style, place))
        {
            complaints.push((
                "config.parameter_schema",
                format!("{name}: style '{style}' not supported '{place}' parameter"),
            ));
        }
    }
    complaints
}

#[derive(Deserialize)]
struct Options {
    body_schema: Option<String>,
    allowed_content_types: Option<Vec<String>>,
    version: String,
    parameter_schema: Option<Vec<Parameter>>,
    verbose_response: bool,
    content_type_parameter_validation: bool,
}

#[derive(Deserialize)]
struct Parameter {
    #[serde(rename = "in")]
    place: String,
    name: String,
    required: bool,
    style: Option<String>,
    explode: Option<bool>,
    schema: Option<String>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let unfit = |field: &'static str| move |what: String| UnsupportedOption { field, what };
    let version = options.version.as_str();
    let body = options
        .body_schema
        .map(|text| body_schema(&text, version))
        .transpose();
    let mut parameters = Vec::new();
    for parameter in options.parameter_schema.into_iter().flatten() {
        let schema = parameter.schema.map(|text| parameter_schema(&text)).transpose();
        parameters.push(ParameterConfig {
            name: parameter.name,
            place: parameter.place,
            required: parameter.required,
            style: parameter.style,
            explode: parameter.explode,
            schema: schema.map_err(unfit("parameter_schema"))?,
        });
    }
    Ok(untyped(Config {
        body: body.map_err(unfit("body_schema"))?,
        parameters,
        content_types: options.allowed_content_types.unwrap_or_default(),
        check_content_type_parameters: options.content_type_parameter_validation,
        max_body_bytes: 8 << 20,
        verbose: options.verbose_response,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn own_schemas_become_json_schemas() {
        let own = r#"[
            {"name": {"type": "string", "required": true, "len_min": 2, "match": "^%a+$"}},
            {"age": {"type": "integer", "between": [1, 9]}},
            {"tags": {"type": "set", "elements": {"type": "string", "one_of": ["a", "b"]}}},
            {"at": {"type": "record", "fields": [{"x": {"type": "number", "gt": 0, "required": true}}]}},
            {"by": {"type": "map", "keys": {"type": "string"}, "values": {"type": "boolean"}}}
        ]"#;
        assert_eq!(
            body_schema(own, "kong"),
            Ok(json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 2, "pattern": "^[A-Za-z]+$"},
                    "age": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
                    "tags": {"type": ["array", "null"], "items": {"type": "string", "enum": ["a", "b"]}, "uniqueItems": true},
                    "at": {"type": ["object", "null"], "properties": {"x": {"type": "number", "exclusiveMinimum": 0}},
                        "required": ["x"], "additionalProperties": false},
                    "by": {"type": ["object", "null"], "additionalProperties": {"type": "boolean"}},
                },
                "required": ["name"],
                "additionalProperties": false,
            }))
        );
        for (text, expected) in [
            (
                "{",
                "failed decoding schema: Expected object key string but found T_END at character 2",
            ),
            (
                "[}",
                "failed decoding schema: Expected value but found T_OBJ_END at character 2",
            ),
            (
                "no",
                "failed decoding schema: Expected value but found invalid token at character 1",
            ),
            ("{}", "schema violation: expected a list of fields"),
            (
                r#"[{"a": {"type": "x"}}]"#,
                "schema violation: a: the type 'x' is not known",
            ),
            (r#"[{"a": {}}]"#, "schema violation: a: expected a type"),
        ] {
            assert_eq!(body_schema(text, "kong"), Err(expected.to_owned()), "{text}");
        }
    }
}
