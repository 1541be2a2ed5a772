//! Rows of a JSON Schema. Types in it may refer to each other.

use super::{Field, bounds, display_default, display_plain, many};
use serde_json::Value;

/// The fields of a JSON Schema.
pub fn of_json_schema(schema: &Value) -> Vec<Field> {
    let mut reader = Reader {
        root: schema,
        inside: Vec::new(),
        fields: Vec::new(),
    };
    reader.read_map(schema, "", None);
    reader.fields
}

struct Reader<'s> {
    root: &'s Value,
    /// The references that led here, so that a type that holds itself is read once.
    inside: Vec<&'s str>,
    fields: Vec<Field>,
}

impl<'s> Reader<'s> {
    /// Adds the fields of a map; `default` is the default of the whole.
    fn read_map(&mut self, schema: &'s Value, prefix: &str, default: Option<&'s Value>) {
        let required = schema["required"].as_array();
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let default = default
                .and_then(|it| it.get(name))
                .or_else(|| field.get("default"));
            self.add(field, format!("{prefix}{name}"), is_required(name), default, "");
        }
    }

    fn add(
        &mut self,
        field: &'s Value,
        path: String,
        is_required: bool,
        default: Option<&'s Value>,
        of_variant: &str,
    ) {
        let at = self.fields.len();
        let is = self.describe(field);
        let own = [&field["description"], &self.resolve(field)["description"]];
        let own = own.iter().find_map(|it| it.as_str()).unwrap_or(of_variant);
        let meaning = [text(own), self.words(field)].join(" ").trim().to_owned();
        self.fields.push(Field {
            path: path.clone(),
            is,
            default: String::new(),
            meaning,
        });
        self.read_inside(field, &path, default);
        // The defaults of a map stand with its fields.
        let is_listed_below = self.fields.len() > at + 1 && default.is_some_and(Value::is_object);
        self.fields[at].default = match default {
            Some(default) if !default.is_null() && !is_listed_below => display_default(default),
            _ if is_required => "required".to_owned(),
            _ => String::new(),
        };
    }

    /// Adds the fields inside of a field.
    fn read_inside(&mut self, field: &'s Value, path: &str, default: Option<&'s Value>) {
        let depth = self.inside.len();
        if let Some(reference) = reference(field) {
            if self.inside.contains(&reference) {
                return;
            }
            self.inside.push(reference);
        }
        let schema = self.resolve(field);
        match alternatives(schema) {
            Some(alternatives) => {
                for alternative in alternatives {
                    self.read_alternative(alternative, path, default);
                }
            }
            None => {
                self.read_map(schema, &format!("{path}."), default);
                for (sign, inner) in insides(schema) {
                    self.read_inside(inner, &format!("{path}{sign}"), None);
                }
            }
        }
        self.inside.truncate(depth);
    }

    /// Adds the fields of one of several forms of a field.
    fn read_alternative(&mut self, alternative: &'s Value, path: &str, default: Option<&'s Value>) {
        match tag(alternative) {
            Some((name, value)) => {
                let meaning = alternative["description"].as_str().unwrap_or_default();
                let path = format!("{path}.{name}");
                let default = default
                    .and_then(|it| it.get(name))
                    .or_else(|| value.get("default"));
                self.add(value, path, false, default, meaning);
            }
            None => self.read_inside(alternative, path, default),
        }
    }

    /// Follows a reference, also one that may be `null`.
    fn resolve(&self, mut schema: &'s Value) -> &'s Value {
        while let Some(path) = reference(schema) {
            match self.root.pointer(path.trim_start_matches('#')) {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema
    }

    /// The type of values.
    fn describe(&self, field: &'s Value) -> String {
        let schema = self.resolve(field);
        if let Some(alternatives) = alternatives(schema) {
            let mut words: Vec<String> = Vec::new();
            for alternative in alternatives {
                let word = match tag(alternative) {
                    Some((name, _)) => format!("`{{{name}: …}}`"),
                    None => self.describe(alternative),
                };
                if !word.is_empty() && !words.contains(&word) {
                    words.push(word);
                }
            }
            return words.join(", ");
        }
        if let Some(constant) = schema.get("const") {
            return display_plain(constant);
        }
        if let Some(options) = schema["enum"].as_array() {
            let options: Vec<String> = options.iter().map(display_plain).collect();
            return options.join(", ");
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let kinds: Vec<String> = types.iter().map(|kind| self.kind(kind, schema)).collect();
        let kinds: Vec<String> = kinds.into_iter().filter(|kind| !kind.is_empty()).collect();
        match kinds.is_empty() {
            false => kinds.join(" or "),
            true if schema.get("properties").is_some() => "map".to_owned(),
            true => "anything".to_owned(),
        }
    }

    fn kind(&self, kind: &str, schema: &'s Value) -> String {
        match kind {
            "string" => format!("text{}", length(schema)),
            "integer" | "number" => format!("number{}", range(schema)),
            "boolean" => "`true`, `false`".to_owned(),
            "array" => {
                let count = bounds(
                    schema["minItems"].as_f64().filter(|it| *it > 0.0),
                    schema["maxItems"].as_f64(),
                );
                match schema.get("items").map(|items| self.describe(items)) {
                    Some(items) if items != "anything" => format!("list of {}{count}", many(&items)),
                    _ => format!("list{count}"),
                }
            }
            "object" => match insides(schema).first().map(|(_, inner)| self.describe(inner)) {
                Some(values) if values != "anything" => format!("map of {}", many(&values)),
                _ => "map".to_owned(),
            },
            _ => String::new(),
        }
    }

    /// The meaning of the values that can be written, if the schema says so.
    fn words(&self, field: &'s Value) -> String {
        let schema = self.resolve(field);
        let schema = match schema.get("items") {
            Some(items) => self.resolve(items),
            None => schema,
        };
        let described = alternatives(schema)
            .into_iter()
            .flatten()
            .filter_map(|alternative| {
                let word = alternative.get("const")?;
                let meaning = text(alternative["description"].as_str()?);
                Some(format!(
                    "{}: {}.",
                    display_plain(word),
                    meaning.trim_end_matches('.')
                ))
            });
        described.collect::<Vec<_>>().join(" ")
    }
}

/// The schema that another refers to, also if that one may be `null`.
fn reference(schema: &Value) -> Option<&str> {
    let may_be_null = schema["anyOf"].as_array();
    let other = may_be_null.and_then(|forms| match &forms[..] {
        [form, null] if null["type"] == "null" => Some(form),
        _ => None,
    });
    other.unwrap_or(schema)["$ref"].as_str()
}

/// The forms that a value may have. What only demands more of the same value is no form.
fn alternatives(schema: &Value) -> Option<impl Iterator<Item = &Value>> {
    let forms = schema["oneOf"]
        .as_array()
        .or_else(|| schema["anyOf"].as_array())?;
    let is_form = |form: &&Value| {
        ["type", "const", "enum", "$ref", "oneOf", "anyOf"]
            .iter()
            .any(|it| form.get(it).is_some())
    };
    // If the map itself has fields, its forms only say which of them go together.
    (forms.iter().all(|form| is_form(&form)) && schema.get("properties").is_none())
        .then(|| forms.iter().filter(|form| form["type"] != "null"))
}

/// A map with one field that is always there: the field's name is the form's.
fn tag(schema: &Value) -> Option<(&String, &Value)> {
    let fields = schema["properties"]
        .as_object()
        .filter(|fields| fields.len() == 1)?;
    let (name, value) = fields.iter().next()?;
    (schema["required"] == Value::from(vec![name.as_str()])).then_some((name, value))
}

/// The items of a list, and the values of a map whose names are free.
fn insides(schema: &Value) -> Vec<(&'static str, &Value)> {
    let items = schema.get("items").map(|items| ("[]", items));
    let values = schema.get("additionalProperties").filter(|it| it.is_object());
    let patterns = schema["patternProperties"]
        .as_object()
        .and_then(|it| it.values().next());
    let values = values.or(patterns).map(|values| (".*", values));
    items.into_iter().chain(values).collect()
}

/// A description on one line.
fn text(description: &str) -> String {
    description.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn range(schema: &Value) -> String {
    let above = schema["exclusiveMinimum"].as_f64();
    match (above, schema["maximum"].as_f64()) {
        (Some(above), None) => format!(" above {above}"),
        (Some(above), Some(most)) => format!(" above {above}, at most {most}"),
        // Numbers without a sign begin with 0 anyway.
        (None, most) => bounds(
            schema["minimum"]
                .as_f64()
                .filter(|it| *it != 0.0 || most.is_some()),
            most,
        ),
    }
}

fn length(schema: &Value) -> String {
    let least = schema["minLength"].as_f64().filter(|it| *it > 1.0);
    match bounds(least, schema["maxLength"].as_f64()) {
        none if none.is_empty() => none,
        bounds => format!("{bounds} characters"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;
    use serde_json::json;

    #[test]
    fn json_schemas_become_rows() {
        let schema = json!({
            "properties": {
                "limits": {"type": "array", "items": {"$ref": "#/$defs/Limit"}, "minItems": 1, "maxItems": 8, "description": "How\nmany."},
                "by": {"$ref": "#/$defs/By", "description": "What counts.", "default": "ip"},
                "status": {"type": "integer", "minimum": 200, "maximum": 599, "default": 429},
                "message": {"type": ["string", "null"], "default": null},
                "batch": {"$ref": "#/$defs/Batch", "default": {"delay": 5, "names": ["a"]}},
                "pages": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Batch"}},
                "store": {"anyOf": [{"$ref": "#/$defs/Store"}, {"type": "null"}]},
                "any": true
            },
            "required": ["limits"],
            "$defs": {
                "Limit": {"type": "object", "properties": {"count": {"type": "number", "exclusiveMinimum": 0}}, "required": ["count"]},
                "By": {"description": "The key.", "oneOf": [
                    {"type": "string", "const": "ip", "description": "The address."},
                    {"type": "object", "properties": {"header": {"type": "string"}}, "required": ["header"], "description": "This header."}
                ]},
                "Batch": {"type": "object", "properties": {
                    "delay": {"type": "integer", "minimum": 0},
                    "names": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}
                }},
                "Store": {"type": "object", "description": "Where.", "properties": {"store": {"$ref": "#/$defs/Store"}}}
            }
        });
        assert_eq!(
            rows(&of_json_schema(&schema)),
            [
                ["limits", "list of maps, 1 to 8", "required", "How many."],
                ["limits[].count", "number above 0", "required", ""],
                [
                    "by",
                    "`ip`, `{header: …}`",
                    "`\"ip\"`",
                    "What counts. `ip`: The address."
                ],
                ["by.header", "text", "", "This header."],
                ["status", "number, 200 to 599", "`429`", ""],
                ["message", "text", "", ""],
                ["batch", "map", "", ""],
                ["batch.delay", "number", "`5`", ""],
                ["batch.names", "list of `a`, `b`", "`[\"a\"]`", ""],
                ["pages", "map of maps", "", ""],
                ["pages.*.delay", "number", "", ""],
                ["pages.*.names", "list of `a`, `b`", "", ""],
                ["store", "map", "", "Where."],
                ["store.store", "map", "", "Where."],
                ["any", "anything", "", ""],
            ]
        );
    }

    #[test]
    fn a_type_that_holds_itself_is_read_once() {
        let schema = json!({"properties": {"a": {"$ref": "#"}}});
        assert_eq!(of_json_schema(&schema).len(), 2);
    }

    /// Nothing to be said of a map that has no fields.
    #[test]
    fn an_empty_schema_has_no_fields() {
        assert_eq!(of_json_schema(&json!({})), []);
    }
}
