//! Values in the notation of the original's language, which some of its messages are written in.

use serde_json::Value;
use std::fmt::Write as _;

/// A value on one line: fields in the order of their names, `{key-set="x"}` as `{["key-set"]="x"}`.
pub fn inline(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out, None);
    out
}

/// A value over several lines, each level two blanks deeper.
pub fn indented(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out, Some(0));
    out
}

fn write(value: &Value, out: &mut String, depth: Option<usize>) {
    match value {
        Value::Null => out.push_str("null"),
        Value::String(text) => quote(text, out),
        Value::Array(items) => {
            let without_holes = items.iter().take_while(|item| !item.is_null()).count();
            let items = items.iter().enumerate().filter(|(_, item)| !item.is_null());
            table(out, depth, items, |(index, item), out, depth| {
                if *index >= without_holes {
                    let _ = write!(out, "[{}]{}", index + 1, equals(depth));
                }
                write(item, out, depth);
            });
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            table(out, depth, fields.into_iter(), |(name, value), out, depth| {
                if is_identifier(name) {
                    out.push_str(name);
                } else {
                    out.push('[');
                    quote(name, out);
                    out.push(']');
                }
                out.push_str(equals(depth));
                write(value, out, depth);
            });
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn equals(depth: Option<usize>) -> &'static str {
    if depth.is_some() { " = " } else { "=" }
}

fn table<I>(
    out: &mut String,
    depth: Option<usize>,
    items: impl Iterator<Item = I>,
    mut write_item: impl FnMut(&I, &mut String, Option<usize>),
) {
    out.push('{');
    let inner = depth.map(|depth| depth + 1);
    let mut is_first = true;
    for item in items {
        if !is_first {
            out.push(',');
        }
        is_first = false;
        line(out, inner);
        write_item(&item, out, inner);
    }
    if !is_first {
        line(out, depth);
    }
    out.push('}');
}

fn line(out: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        out.push('\n');
        for _ in 0..depth {
            out.push_str("  ");
        }
    }
}

fn is_identifier(name: &str) -> bool {
    const KEYWORDS: [&str; 22] = [
        "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
        "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
    ];
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !KEYWORDS.contains(&name)
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            character => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_as_in_the_original() {
        for (value, expected) in [
            (json!({"id": "x"}), r#"{id="x"}"#),
            (json!({"b": null, "a": {"id": "y"}}), r#"{a={id="y"},b=null}"#),
            (json!([null, "x", {"end": 1}]), r#"{[2]="x",[3]={["end"]=1}}"#),
            (json!(["x", null, "y"]), r#"{"x",[3]="y"}"#),
            (json!({"@entity": ["a \"b\""]}), r#"{["@entity"]={"a \"b\""}}"#),
            (json!({}), "{}"),
        ] {
            assert_eq!(inline(&value), expected);
        }
        assert_eq!(indented(&json!({"a": ["x"]})), "{\n  a = {\n    \"x\"\n  }\n}");
    }
}
