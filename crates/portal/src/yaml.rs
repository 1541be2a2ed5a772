//! Values as YAML, for documents that are downloaded. Texts are quoted unless they are plain words, so no text becomes a
//! number, a date or `null` when it is read.
//!
//! **What it is not**: it reads nothing.

use serde_json::Value;

/// Words that mean something else than themselves to some readers.
const RESERVED: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

fn is_plain(text: &str) -> bool {
    let mut letters = text.bytes();
    let begins_well = letters.next().is_some_and(|it| it.is_ascii_alphabetic());
    let goes_on_well = letters.all(|it| it.is_ascii_alphanumeric() || b"_-./".contains(&it));
    begins_well && goes_on_well && !RESERVED.contains(&text.to_ascii_lowercase().as_str())
}

/// JSON's way to quote is YAML's.
fn text(value: &str) -> String {
    match is_plain(value) {
        true => value.to_owned(),
        false => Value::from(value).to_string(),
    }
}

/// A value that fits after a key or a dash.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Object(fields) if !fields.is_empty() => None,
        Value::Array(items) if !items.is_empty() => None,
        Value::String(value) => Some(text(value)),
        other => Some(other.to_string()),
    }
}

fn write(value: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(fields) => {
            for (name, below) in fields {
                *out += &format!("{pad}{}:", text(name));
                match scalar(below) {
                    Some(scalar) => *out += &format!(" {scalar}\n"),
                    None => {
                        out.push('\n');
                        write(below, indent + 2, out);
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                match scalar(item) {
                    Some(scalar) => *out += &format!("{pad}- {scalar}\n"),
                    None => {
                        let mut below = String::new();
                        write(item, indent + 2, &mut below);
                        *out += &format!("{pad}- {}", &below[indent + 2..]);
                    }
                }
            }
        }
        _ => {}
    }
}

/// A value as a YAML document.
pub fn of(value: &Value) -> String {
    match scalar(value) {
        Some(scalar) => format!("{scalar}\n"),
        None => {
            let mut out = String::new();
            write(value, 0, &mut out);
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_so_that_they_are_read_as_they_are() {
        let value = json!({
            "openapi": "3.1.0",
            "info": { "title": "Pets: all of them", "version": "1.0", "x": null, "empty": {}, "none": [] },
            "paths": { "/pets/{id}": { "get": { "tags": ["a", "no", "12"], "deprecated": true, "responses": { "200": { "description": "two\nlines # \"x\"" } } } } },
            "servers": [{ "url": "https://api.test/v1", "list": [[1, 2], [{ "a": 1 }]] }],
        });
        let expected = "\
openapi: \"3.1.0\"
info:
  title: \"Pets: all of them\"
  version: \"1.0\"
  x: null
  empty: {}
  none: []
paths:
  \"/pets/{id}\":
    get:
      tags:
        - a
        - \"no\"
        - \"12\"
      deprecated: true
      responses:
        \"200\":
          description: \"two\\nlines # \\\"x\\\"\"
servers:
  - url: \"https://api.test/v1\"
    list:
      - - 1
        - 2
      - - a: 1
";
        assert_eq!(of(&value), expected);
        assert_eq!(of(&json!([])), "[]\n");
        assert_eq!(of(&json!("yes")), "\"yes\"\n");
    }
}
