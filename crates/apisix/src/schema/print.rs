//! Shapes as JSON Schema, for those who ask the Admin API for it. Values are checked by the shapes themselves.

use super::Schema;
use serde_json::{Map, Number, Value, json};

impl Schema {
    /// The shape as a JSON Schema.
    pub fn to_json_schema(&self) -> Value {
        let mut schema = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema.insert(name.to_owned(), value);
            }
        };
        put("type", self.kind.map(|kind| json!(kind.as_str())));
        put("description", self.description.map(Value::from));
        put("default", self.default.clone());
        put("enum", (!self.options.is_empty()).then(|| json!(self.options)));
        put("const", self.exactly.clone());
        put("minimum", self.minimum.map(number));
        put("exclusiveMinimum", self.above.map(number));
        put("maximum", self.maximum.map(number));
        put("minLength", self.length.0.map(Value::from));
        put("maxLength", self.length.1.map(Value::from));
        put(
            "pattern",
            self.pattern.as_ref().map(|pattern| json!(pattern.text)),
        );
        if self.is_address {
            let kinds = ["ipv4", "ipv4-cidr", "ipv6", "ipv6-cidr"];
            put(
                "anyOf",
                Some(kinds.map(|kind| json!({"type": "string", "format": kind})).into()),
            );
        }
        put("properties", by_name(&self.fields));
        put(
            "required",
            (!self.required.is_empty()).then(|| json!(self.required)),
        );
        put("additionalProperties", self.closed.then(|| json!(false)));
        let mut by_pattern = Map::new();
        for (names, shape) in &self.other_fields {
            let shape = shape.to_json_schema();
            match names.text {
                "" => put("additionalProperties", Some(shape)),
                names => {
                    by_pattern.insert(names.to_owned(), shape);
                }
            }
        }
        let by_pattern = (!by_pattern.is_empty()).then_some(Value::Object(by_pattern));
        put("patternProperties", by_pattern);
        put("minProperties", self.field_count.0.map(Value::from));
        put("maxProperties", self.field_count.1.map(Value::from));
        put("dependencies", self.dependencies());
        let items = self.item.as_deref().map(Self::to_json_schema);
        put("items", items.filter(|items| *items != json!({})));
        put("contains", self.contains.as_deref().map(Self::to_json_schema));
        put("minItems", self.min_items.map(Value::from));
        put("maxItems", self.max_items.map(Value::from));
        put("uniqueItems", self.unique.then(|| json!(true)));
        put("allOf", list(&self.all_of));
        put("anyOf", list(&self.any_of));
        put("oneOf", list(&self.one_of));
        put("not", self.not.as_deref().map(Self::to_json_schema));
        if let Some((condition, then, otherwise)) = self.condition.as_deref() {
            put("if", Some(condition.to_json_schema()));
            put("then", Some(then.to_json_schema()));
            put("else", Some(otherwise.to_json_schema()));
        }
        Value::Object(schema)
    }

    fn dependencies(&self) -> Option<Value> {
        let mut all = by_name(&self.dependents).unwrap_or_else(|| json!({}));
        for (name, fields) in &self.needed {
            all[*name] = json!(fields);
        }
        (all != json!({})).then_some(all)
    }
}

fn by_name(shapes: &[(&'static str, Schema)]) -> Option<Value> {
    let named = shapes
        .iter()
        .map(|(name, shape)| ((*name).to_owned(), shape.to_json_schema()));
    (!shapes.is_empty()).then(|| Value::Object(named.collect()))
}

fn list(shapes: &[Schema]) -> Option<Value> {
    let schemas = shapes.iter().map(Schema::to_json_schema).collect();
    (!shapes.is_empty()).then_some(Value::Array(schemas))
}

/// A bound, without a fraction if it has none.
fn number(bound: f64) -> Value {
    if bound.fract() == 0.0 {
        return Value::from(bound as i64);
    }
    Number::from_f64(bound).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use crate::schema::{array, having, integer, object, text};
    use serde_json::json;

    #[test]
    fn shapes_are_printed() {
        let shape = object([
            ("a", integer().at_least(1).or(2)),
            ("b", array(text().options(["x"])).min_items(1).unique()),
        ])
        .required(["a"])
        .closed()
        .any_of([having(["a"])]);
        assert_eq!(
            shape.to_json_schema(),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "integer", "default": 2, "minimum": 1},
                    "b": {"type": "array", "items": {"type": "string", "enum": ["x"]}, "minItems": 1, "uniqueItems": true}
                },
                "required": ["a"],
                "additionalProperties": false,
                "anyOf": [{"required": ["a"]}]
            })
        );
    }
}
