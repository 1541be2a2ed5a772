//! Whether a value keeps to a schema: the assertions of JSON Schema that API descriptions use. Formats are not checked,
//! and references to schemas of the document are followed to a depth.
//!
//! Ten lines of schemas that refer to each other can stand for more comparisons than a life has seconds. So the steps are
//! counted, and when they are used up nothing more is found.

use regex::Regex;
use serde_json::{Map, Value};
use std::cell::Cell;

/// How deep references and nested schemas are followed.
const MAX_DEPTH: usize = 64;
/// The largest regular expression, compiled.
const MAX_REGEX_BYTES: usize = 1 << 20;
/// Steps for all values that are checked by the schemas of a document.
const MAX_STEPS: usize = 2_000_000;
/// Steps for one value.
const MAX_STEPS_OF_VALUE: usize = 100_000;
/// The cost of a regular expression: it is compiled for each value.
const STEPS_OF_REGEX: usize = 200;

/// Checks a value. `schemas` are those of `#/components/schemas/`.
///
/// # Errors
/// What is wrong and where, in a few words.
pub fn check(schemas: &Map<String, Value>, schema: &Value, value: &Value) -> Result<(), String> {
    SchemaChecker::new(schemas).check(schema, value)
}

/// Whether a value is of a type, or of one of a list of types.
pub fn is_of_type(kind: &Value, value: &Value) -> bool {
    match kind {
        Value::String(kind) => match kind.as_str() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
            "string" => value.is_string(),
            _ => true,
        },
        Value::Array(kinds) => kinds.iter().any(|kind| is_of_type(kind, value)),
        _ => true,
    }
}

/// Checks values by the schemas of one document.
pub struct SchemaChecker<'s> {
    schemas: &'s Map<String, Value>,
    /// Steps that are left for all values, and for this one.
    left: Cell<(usize, usize)>,
}

impl<'s> SchemaChecker<'s> {
    /// `schemas` are those of `#/components/schemas/`.
    pub fn new(schemas: &'s Map<String, Value>) -> Self {
        Self {
            schemas,
            left: Cell::new((MAX_STEPS, 0)),
        }
    }

    /// Checks a value. What cannot be said within the bounds is taken for good.
    ///
    /// # Errors
    /// What is wrong and where, in a few words.
    pub fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        self.left.set((self.left.get().0, MAX_STEPS_OF_VALUE));
        let found = self.value(schema, value, "", 0);
        match self.is_spent() {
            true => Ok(()),
            false => found,
        }
    }

    fn is_spent(&self) -> bool {
        let (of_all, of_value) = self.left.get();
        of_all == 0 || of_value == 0
    }

    fn spend(&self, steps: usize) {
        let (of_all, of_value) = self.left.get();
        self.left
            .set((of_all.saturating_sub(steps), of_value.saturating_sub(steps)));
    }

    fn value(&self, schema: &Value, value: &Value, place: &str, depth: usize) -> Result<(), String> {
        self.spend(1);
        if depth > MAX_DEPTH || self.is_spent() {
            return Ok(());
        }
        let map = match schema {
            Value::Bool(false) => return Err(format!("{} is not allowed", quoted_place(place))),
            Value::Object(map) => map,
            _ => return Ok(()),
        };
        if let Some(target) = map.get("$ref").and_then(Value::as_str) {
            // The second is how 2.0 writes it.
            let name = target
                .strip_prefix("#/components/schemas/")
                .or_else(|| target.strip_prefix("#/definitions/"));
            if let Some(found) = name.and_then(|name| self.schemas.get(name)) {
                self.value(found, value, place, depth + 1)?;
            }
        }
        if value.is_null() && map.get("nullable") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        if map.get("type").is_some_and(|kind| !is_of_type(kind, value)) {
            return Err(format!("{} is not of type {}", quoted_place(place), map["type"]));
        }
        if let Some(Value::Array(allowed)) = map.get("enum") {
            self.spend(allowed.len() / 16);
            if !allowed.contains(value) {
                return Err(format!("{} is not one of {}", quoted_place(place), map["enum"]));
            }
        }
        if map.get("const").is_some_and(|it| it != value) {
            return Err(format!("{} is not {}", quoted_place(place), map["const"]));
        }
        match value {
            Value::String(text) => {
                self.spend(map.get("pattern").map_or(0, |_| STEPS_OF_REGEX));
                check_text(map, text, place)?;
            }
            Value::Number(_) => check_number(map, value, place)?,
            Value::Array(items) => self.items(map, items, place, depth)?,
            Value::Object(fields) => self.fields(map, fields, place, depth)?,
            _ => {}
        }
        self.combined(map, value, place, depth)
    }

    fn combined(
        &self,
        map: &Map<String, Value>,
        value: &Value,
        place: &str,
        depth: usize,
    ) -> Result<(), String> {
        let list = |word: &str| map.get(word).and_then(Value::as_array);
        for schema in list("allOf").into_iter().flatten() {
            self.value(schema, value, place, depth + 1)?;
        }
        let holds = |schema: &&Value| self.value(schema, value, place, depth + 1).is_ok();
        if list("anyOf").is_some_and(|all| !all.iter().any(|it| holds(&it))) {
            return Err(format!("{} matches none of 'anyOf'", quoted_place(place)));
        }
        if list("oneOf").is_some_and(|all| all.iter().filter(holds).count() != 1) {
            return Err(format!(
                "{} does not keep to exactly one of 'oneOf'",
                quoted_place(place)
            ));
        }
        if map.get("not").is_some_and(|schema| holds(&schema)) {
            return Err(format!("{} is excluded by 'not'", quoted_place(place)));
        }
        Ok(())
    }

    fn items(
        &self,
        map: &Map<String, Value>,
        items: &[Value],
        place: &str,
        depth: usize,
    ) -> Result<(), String> {
        let bound = |word: &str| map.get(word).and_then(Value::as_u64);
        let count = items.len() as u64;
        if bound("minItems").is_some_and(|it| count < it) || bound("maxItems").is_some_and(|it| count > it) {
            return Err(format!("{} has {count} items", quoted_place(place)));
        }
        let schema = map.get("items").unwrap_or(&Value::Null);
        for (index, item) in items.iter().enumerate() {
            self.value(schema, item, &format!("{place}/{index}"), depth + 1)?;
        }
        Ok(())
    }

    fn fields(
        &self,
        map: &Map<String, Value>,
        fields: &Map<String, Value>,
        place: &str,
        depth: usize,
    ) -> Result<(), String> {
        let required = map
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        if let Some(missing) = required
            .filter_map(Value::as_str)
            .find(|it| !fields.contains_key(*it))
        {
            return Err(format!("{} lacks '{missing}'", quoted_place(place)));
        }
        let none = Map::new();
        let properties = map.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let others = map
            .get("additionalProperties")
            .filter(|_| !map.contains_key("patternProperties"));
        for (name, value) in fields {
            let below = format!("{place}/{name}");
            if let Some(schema) = properties.get(name).or(others) {
                self.value(schema, value, &below, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn check_text(map: &Map<String, Value>, text: &str, place: &str) -> Result<(), String> {
    let bound = |word: &str| map.get(word).and_then(Value::as_u64);
    let length = text.chars().count() as u64;
    if bound("minLength").is_some_and(|it| length < it) || bound("maxLength").is_some_and(|it| length > it) {
        return Err(format!("{} has {length} characters", quoted_place(place)));
    }
    match map.get("pattern").and_then(Value::as_str).and_then(regex) {
        Some(pattern) if !pattern.is_match(text) => Err(format!(
            "{} does not match {}",
            quoted_place(place),
            map["pattern"]
        )),
        _ => Ok(()),
    }
}

/// A regular expression of bounded size; `None` for one that is not understood.
pub(super) fn regex(pattern: &str) -> Option<Regex> {
    regex::RegexBuilder::new(pattern)
        .size_limit(MAX_REGEX_BYTES)
        .build()
        .ok()
}

fn check_number(map: &Map<String, Value>, value: &Value, place: &str) -> Result<(), String> {
    let number = value.as_f64().unwrap_or_default();
    let bound = |word: &str| map.get(word).and_then(Value::as_f64);
    let is_wrong = bound("minimum").is_some_and(|it| number < it)
        || bound("maximum").is_some_and(|it| number > it)
        || bound("exclusiveMinimum").is_some_and(|it| number <= it)
        || bound("exclusiveMaximum").is_some_and(|it| number >= it);
    match is_wrong {
        true => Err(format!("{} is out of bounds: {value}", quoted_place(place))),
        false => Ok(()),
    }
}

fn quoted_place(place: &str) -> String {
    match place {
        "" => "it".to_owned(),
        place => format!("'{place}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_that_double_at_each_step_end() {
        let doubling = |word: &str| json!({"A": {word: [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/A"}]}});
        for word in ["allOf", "anyOf", "oneOf"] {
            let schemas = doubling(word);
            let schemas = schemas.as_object().expect("a map");
            let checker = SchemaChecker::new(schemas);
            let schema = json!({"$ref": "#/components/schemas/A"});
            // Without a bound on the steps, the first of these would not end.
            for _ in 0..1_000 {
                assert_eq!(checker.check(&schema, &json!(1)), Ok(()), "{word}");
            }
        }
    }

    #[test]
    fn a_value_that_used_up_its_steps_leaves_some_for_the_next() {
        let none = Map::new();
        let checker = SchemaChecker::new(&none);
        let schema = json!({"items": {"type": "string"}});
        let long: Vec<u32> = (0..MAX_STEPS_OF_VALUE as u32).collect();
        // Its first item is wrong, and that is found at once.
        assert!(checker.check(&schema, &json!(long)).is_err());
        let good: Vec<&str> = vec!["a"; MAX_STEPS_OF_VALUE];
        assert_eq!(checker.check(&schema, &json!(good)), Ok(()));
        assert!(checker.check(&schema, &json!([1])).is_err());
    }
}
