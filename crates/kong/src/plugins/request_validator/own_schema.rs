//! Kong's own language for schemas of bodies, as JSON Schema.

use serde_json::{Map, Value, json};

/// How deep records may be in each other.
const MAX_DEPTH: usize = 50;

/// The JSON Schema of a list of fields.
///
/// # Errors
/// What is wrong with the list.
pub fn to_json_schema(fields: &Value) -> Result<Value, String> {
    record(fields, 0)
}

fn record(fields: &Value, depth: usize) -> Result<Value, String> {
    let fields = fields.as_array().ok_or("expected a list of fields")?;
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields {
        let field = field.as_object().and_then(|field| field.iter().next());
        let (name, field) = field.ok_or("expected fields of the form {\"name\": {…}}")?;
        let made = value(field, depth).map_err(|message| format!("{name}: {message}"))?;
        if field["required"] == Value::Bool(true) {
            required.push(Value::from(name.as_str()));
        }
        properties.insert(name.clone(), made);
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = Value::Array(required);
    }
    schema["additionalProperties"] = Value::Bool(false);
    Ok(schema)
}

fn value(field: &Value, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err("nested too deep".to_owned());
    }
    let kind = field["type"].as_str().ok_or("expected a type")?;
    let name = match kind {
        "string" | "integer" | "number" | "boolean" => kind,
        "array" | "set" => "array",
        "map" | "record" => "object",
        _ => return Err(format!("the type '{kind}' is not known")),
    };
    let mut schema = json!({});
    let is_required = field["required"] == Value::Bool(true);
    schema["type"] = match is_required {
        true => json!(name),
        false => json!([name, "null"]),
    };
    constraints(field, &mut schema)?;
    match kind {
        "array" | "set" => {
            if let Some(elements) = field.get("elements") {
                schema["items"] = element(elements, depth)?;
            }
            if kind == "set" {
                schema["uniqueItems"] = Value::Bool(true);
            }
        }
        "map" => {
            if let Some(values) = field.get("values") {
                schema["additionalProperties"] = element(values, depth)?;
            }
        }
        "record" => {
            let made = record(&field["fields"], depth + 1)?;
            for word in ["properties", "required", "additionalProperties"] {
                if let Some(part) = made.get(word) {
                    schema[word] = part.clone();
                }
            }
        }
        _ => {}
    }
    Ok(schema)
}

/// An element of a list or a map cannot be left out.
fn element(field: &Value, depth: usize) -> Result<Value, String> {
    let mut made = value(field, depth + 1)?;
    if let Some(name) = made["type"].as_array().and_then(|kinds| kinds.first()).cloned() {
        made["type"] = name;
        if let Some(Value::Array(options)) = made.get_mut("enum") {
            options.retain(|option| !option.is_null());
        }
    }
    Ok(made)
}

fn constraints(field: &Value, schema: &mut Value) -> Result<(), String> {
    let is_text = field["type"] == "string";
    let (least, most) = match is_text {
        true => ("minLength", "maxLength"),
        false => ("minItems", "maxItems"),
    };
    for (word, own) in [("len_min", least), ("len_max", most)] {
        if let Some(number) = field[word].as_u64() {
            schema[own] = json!(number);
        }
    }
    if let Some(number) = field["len_eq"].as_u64() {
        schema[least] = json!(number);
        schema[most] = json!(number);
    }
    if let Some([low, high]) = field["between"].as_array().map(Vec::as_slice) {
        schema["minimum"] = low.clone();
        schema["maximum"] = high.clone();
    }
    if let Some(bound) = field.get("gt").filter(|bound| bound.is_number()) {
        schema["exclusiveMinimum"] = bound.clone();
    }
    if let Some(options) = field.get("one_of").filter(|options| options.is_array()) {
        schema["enum"] = options.clone();
        // A field that may be left out may be null.
        if let (Some(list), true) = (schema["enum"].as_array().cloned(), schema["type"].is_array()) {
            schema["enum"] = list.into_iter().chain([Value::Null]).collect();
        }
    }
    let mut all = Vec::new();
    let patterns = [field.get("match")].into_iter().flatten();
    let every = field["match_all"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("pattern"));
    for pattern in patterns.chain(every).filter_map(Value::as_str) {
        all.push(json!({"pattern": expression(pattern)?}));
    }
    if let Some(starts) = field["starts_with"].as_str() {
        all.push(json!({"pattern": format!("^{}", regex::escape(starts))}));
    }
    let any: Result<Vec<Value>, String> = field["match_any"]["patterns"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|pattern| Ok(json!({"pattern": expression(pattern)?})))
        .collect();
    let any = any?;
    if !any.is_empty() {
        all.push(json!({"anyOf": any}));
    }
    let none: Result<Vec<Value>, String> = field["match_none"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["pattern"].as_str())
        .map(|pattern| Ok(json!({"pattern": expression(pattern)?})))
        .collect();
    let none = none?;
    if !none.is_empty() {
        all.push(json!({"not": {"anyOf": none}}));
    }
    match all.as_slice() {
        [] => {}
        [one] if one.get("pattern").is_some() => schema["pattern"] = one["pattern"].clone(),
        _ => schema["allOf"] = Value::Array(all),
    }
    Ok(())
}

/// A pattern of Lua as a regular expression.
fn expression(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut letters = pattern.chars().peekable();
    let mut in_set = false;
    while let Some(character) = letters.next() {
        match character {
            '%' => {
                let class = letters.next().ok_or("a pattern ends with '%'")?;
                let made = match class.to_ascii_lowercase() {
                    'a' => "A-Za-z",
                    'd' => "0-9",
                    'l' => "a-z",
                    'u' => "A-Z",
                    's' => r"\s",
                    'w' => "A-Za-z0-9",
                    'x' => "A-Fa-f0-9",
                    'p' => r"!-/:-@\[-`{-~",
                    'c' => r"\x00-\x1f\x7f",
                    'b' | 'f' if !in_set => {
                        return Err(format!("'%{class}' in a pattern is not available"));
                    }
                    _ => {
                        out.push_str(&regex::escape(&class.to_string()));
                        continue;
                    }
                };
                match (class.is_ascii_uppercase(), in_set) {
                    (false, true) => out.push_str(made),
                    (false, false) => out.push_str(&format!("[{made}]")),
                    (true, true) => out.push_str(&format!("[^{made}]")),
                    (true, false) => out.push_str(&format!("[^{made}]")),
                }
            }
            '[' if !in_set => {
                in_set = true;
                out.push('[');
                if letters.peek() == Some(&'^') {
                    letters.next();
                    out.push('^');
                }
            }
            ']' if in_set => {
                in_set = false;
                out.push(']');
            }
            '-' if !in_set => out.push_str("*?"),
            '^' if out.is_empty() => out.push('^'),
            '$' if letters.peek().is_none() => out.push('$'),
            '.' | '*' | '+' | '?' | '(' | ')' if !in_set => out.push(character),
            '-' => out.push('-'),
            '[' | '\\' | '&' | '~' => out.push_str(&format!("\\{character}")),
            _ if in_set => out.push(character),
            _ => out.push_str(&regex::escape(&character.to_string())),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_lua_become_expressions() {
        for (pattern, text, matches) in [
            ("^%a+$", "abc", true),
            ("^%a+$", "ab1", false),
            ("^%d%d-%.$", "1.", true),
            ("^[%w_-]+$", "a-b_1", true),
            ("^%S+$", "a b", false),
            ("^[^/]+$", "a/b", false),
            ("a.c", "xabcx", true),
            ("{}|", "{}|", true),
        ] {
            let made = expression(pattern).expect("a pattern");
            let regex = regex::Regex::new(&made).expect("an expression");
            assert_eq!(regex.is_match(text), matches, "{pattern}: {made}");
        }
        assert!(expression("%").is_err() && expression("%bxy").is_err());
    }
}
