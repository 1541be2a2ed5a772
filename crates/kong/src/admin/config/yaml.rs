//! Values as YAML, for people to read. It writes only; documents are read by the model's reader.

use serde_json::Value;
use std::fmt::Write as _;

/// A value as a document.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

/// Writes a value that begins on a line of its own.
fn block(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (index, (name, value)) in fields.iter().enumerate() {
                // The first field of a list's item stands behind its dash.
                if index > 0 || !out.ends_with("- ") {
                    indent(depth, out);
                }
                out.push_str(&scalar(name));
                out.push(':');
                inner(value, depth + 1, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                indent(depth, out);
                out.push_str("- ");
                match item {
                    Value::Object(fields) if !fields.is_empty() => block(item, depth + 1, out),
                    other => line(other, out),
                }
            }
        }
        other => line(other, out),
    }
}

fn inner(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            block(value, depth, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            block(value, depth - 1, out);
        }
        other => {
            out.push(' ');
            line(other, out);
        }
    }
}

/// A value on the rest of a line; lists and records in their JSON form, which is YAML too.
fn line(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => out.push_str(&scalar(text)),
        other => {
            let _ = write!(out, "{other}");
        }
    }
    out.push('\n');
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// A text; quoted, unless it can be nothing but a text.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '/'))
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
        );
    if is_plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_reads_back_as_it_was() {
        let value = json!({
            "_format_version": "3.0",
            "a": [{"b": [1, "2", {"c": null}], "d": {}}, [], "x: y", ["n", [true]]],
            "e": {"f g": "line\nbreak", "h": {"i": -1.5}},
        });
        let text = write(&value);
        assert_eq!(weir_model::document::parse(&text).expect("YAML"), value, "{text}");
    }
}
