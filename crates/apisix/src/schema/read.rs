//! Shapes read from JSON Schema: of what Weir checks, but does not work with itself.

use super::pattern::Pattern;
use super::{Kind, Schema};
use serde_json::{Map, Value};

impl Schema {
    /// The shape that a JSON Schema describes, as far as APISIX's own schemas go.
    pub fn from_json_schema(schema: &'static Value) -> Self {
        let Value::Object(schema) = schema else {
            return Self::default();
        };
        let (closed, others) = other_fields(schema);
        Self {
            kind: schema.get("type").and_then(Value::as_str).and_then(Kind::named),
            // Those of plugins are not shown.
            description: None,
            default: schema.get("default").cloned(),
            options: items(schema, "enum").to_vec(),
            exactly: schema.get("const").cloned(),
            minimum: number(schema, "minimum"),
            above: number(schema, "exclusiveMinimum"),
            maximum: number(schema, "maximum"),
            length: (count(schema, "minLength"), count(schema, "maxLength")),
            pattern: text(schema, "pattern").map(Pattern::new),
            fields: named(schema, "properties"),
            required: texts(items(schema, "required")),
            closed,
            other_fields: others,
            field_count: (count(schema, "minProperties"), count(schema, "maxProperties")),
            dependents: named(schema, "dependencies"),
            needed: needed(schema),
            item: within(schema, "items"),
            contains: within(schema, "contains"),
            min_items: count(schema, "minItems"),
            max_items: count(schema, "maxItems"),
            unique: schema.get("uniqueItems") == Some(&Value::Bool(true)),
            all_of: list(schema, "allOf"),
            any_of: list(schema, "anyOf"),
            one_of: list(schema, "oneOf"),
            not: within(schema, "not"),
            condition: condition(schema),
            is_address: false,
        }
    }
}

impl Kind {
    fn named(name: &str) -> Option<Self> {
        [
            Self::Object,
            Self::Array,
            Self::Text,
            Self::Integer,
            Self::Number,
            Self::Boolean,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == name)
    }
}

type JsonObject = Map<String, Value>;

fn items(schema: &'static JsonObject, keyword: &str) -> &'static [Value] {
    schema
        .get(keyword)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn texts(items: &'static [Value]) -> Vec<&'static str> {
    items.iter().filter_map(Value::as_str).collect()
}

fn text(schema: &'static JsonObject, keyword: &str) -> Option<&'static str> {
    schema.get(keyword).and_then(Value::as_str)
}

fn number(schema: &'static JsonObject, keyword: &str) -> Option<f64> {
    schema.get(keyword).and_then(Value::as_f64)
}

fn count(schema: &'static JsonObject, keyword: &str) -> Option<usize> {
    let count = schema.get(keyword).and_then(Value::as_u64)?;
    usize::try_from(count).ok()
}

fn within(schema: &'static JsonObject, keyword: &str) -> Option<Box<Schema>> {
    let inner = schema.get(keyword).filter(|inner| inner.is_object())?;
    Some(Box::new(Schema::from_json_schema(inner)))
}

fn list(schema: &'static JsonObject, keyword: &str) -> Vec<Schema> {
    items(schema, keyword)
        .iter()
        .map(Schema::from_json_schema)
        .collect()
}

fn named(schema: &'static JsonObject, keyword: &str) -> Vec<(&'static str, Schema)> {
    let inner = schema.get(keyword).and_then(Value::as_object);
    inner
        .into_iter()
        .flatten()
        .filter(|(_, schema)| schema.is_object())
        .map(|(name, schema)| (name.as_str(), Schema::from_json_schema(schema)))
        .collect()
}

/// `dependencies` that name fields.
fn needed(schema: &'static JsonObject) -> Vec<(&'static str, Vec<&'static str>)> {
    let inner = schema.get("dependencies").and_then(Value::as_object);
    inner
        .into_iter()
        .flatten()
        .filter_map(|(name, fields)| Some((name.as_str(), texts(fields.as_array()?))))
        .collect()
}

/// Whether other fields are forbidden, and what others must look like.
fn other_fields(schema: &'static JsonObject) -> (bool, Vec<(Pattern, Schema)>) {
    let additional = schema.get("additionalProperties");
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let patterns = patterns
        .into_iter()
        .flatten()
        .map(|(names, shape)| (names.as_str(), shape));
    let others = additional
        .filter(|shape| shape.is_object())
        .map(|shape| ("", shape));
    let shapes = patterns
        .chain(others)
        .map(|(names, shape)| (Pattern::new(names), Schema::from_json_schema(shape)))
        .collect();
    (additional == Some(&Value::Bool(false)), shapes)
}

fn condition(schema: &'static JsonObject) -> Option<Box<(Schema, Schema, Schema)>> {
    let part = |keyword| {
        schema
            .get(keyword)
            .map_or_else(Schema::default, Schema::from_json_schema)
    };
    schema.get("if")?;
    Some(Box::new((part("if"), part("then"), part("else"))))
}

#[cfg(test)]
mod tests {
    use super::Schema;
    use serde_json::{Value, json};

    fn shape(schema: Value) -> Schema {
        Schema::from_json_schema(Box::leak(Box::new(schema)))
    }

    #[test]
    fn schemas_are_read_and_printed() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "default": 2, "exclusiveMinimum": 0},
                "b": {"type": "array", "items": {"type": "string", "pattern": "^x"}, "contains": {"const": "xy"}}
            },
            "required": ["a"],
            "patternProperties": {"^c": {"type": "number", "maximum": 0.5}, "^d": {"type": "string"}},
            "dependencies": {"a": ["b"]},
            "oneOf": [{"required": ["b"]}],
            "not": {"required": ["c"]},
            "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {}
        });
        assert_eq!(shape(schema.clone()).to_json_schema(), schema);
    }

    #[test]
    fn violations_are_reported_in_the_originals_words() {
        for (schema, mut value, message) in [
            (json!({"const": "a"}), json!("b"), "failed to check const value"),
            (
                json!({"contains": {"const": 1}}),
                json!([2, 3]),
                "failed to check contains",
            ),
            (
                json!({"patternProperties": {"a": {}, "b": {"type": "string"}}, "additionalProperties": false}),
                json!({"a": 1, "b": 1}),
                "failed to validate b (matching \"b\"): wrong type: expected string, got number",
            ),
            (
                json!({"patternProperties": {"a": {}, "b": {"type": "string"}}, "additionalProperties": false}),
                json!({"a": 1, "c": 1}),
                "additional properties forbidden, found c",
            ),
            (
                json!({"contains": {"const": 1}}),
                json!([]),
                "check contains: empty array is invalid",
            ),
            (
                json!({"properties": {"a": {}}, "dependencies": {"a": ["b"]}}),
                json!({"a": 1}),
                "property \"b\" is required when \"a\" is set",
            ),
            (
                json!({"dependencies": {"a": ["b"]}}),
                json!({"a": 1}),
                "property \"b\" is required when \"a\" is set",
            ),
        ] {
            assert_eq!(shape(schema).check(&mut value), Err(message.to_owned()));
        }
    }

    #[test]
    fn what_fits_passes() {
        let shape = shape(json!({
            "contains": {"const": 1}, "dependencies": {"a": ["b"]}
        }));
        for mut value in [json!([1, 2]), json!({"a": 1, "b": 2}), json!({"c": 1})] {
            assert_eq!(shape.check(&mut value), Ok(()), "{value}");
        }
    }
}
