//! Reading a document's text (YAML 1.2, and so JSON) into plain values, and finding places in it again.
//!
//! Values carry no positions: a document is read once for its values, and only when there is something to
//! report is its text walked again for the line of a [`DocPath`].

mod lines;

pub use lines::line_of;

use crate::diagnostic::{Diagnostic, DocPath};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;

/// Deepest nesting of lists and maps.
const MAX_DEPTH: usize = 128;
/// Most values that a document may stand for once its aliases are followed.
const MAX_VALUES: usize = 5_000_000;
/// Up to so many entries, a map's keys are compared with each other; beyond, they are hashed.
const SMALL_MAP: usize = 16;

/// Reads one YAML or JSON document. Of a key given twice, the last holds.
///
/// # Errors
/// A diagnostic with the line of the syntax error. Several documents in one text, non-scalar keys,
/// and aliases that blow up are refused.
pub fn parse(text: &str) -> Result<Value, Diagnostic> {
    parse_noting_repeats(text).map(|(value, _)| value)
}

/// Like [`parse`], and says with a warning of each key that is given again in its map: what stood there before is
/// lost without a trace.
///
/// # Errors
/// As [`parse`].
pub fn parse_noting_repeats(text: &str) -> Result<(Value, Vec<Diagnostic>), Diagnostic> {
    let mut events = Events {
        parser: Parser::new_from_str(text),
        anchors: Vec::new(),
        values: 0,
        items: Vec::new(),
        entries: Vec::new(),
        repeats: Vec::new(),
    };
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::StreamEnd, _) => return Ok((Value::Null, events.repeats)),
            (event, span) => {
                let value = events.value(event, span, 0)?;
                return events.expect_end().map(|()| (value, events.repeats));
            }
        }
    }
}

fn syntax_error(line: usize, message: impl Into<String>) -> Diagnostic {
    Diagnostic {
        line: Some(line),
        ..Diagnostic::error(DocPath::root(), message)
    }
}

struct Events<'t> {
    parser: Parser<'t, saphyr_parser::StrInput<'t>>,
    anchors: Vec<(usize, Value, usize)>,
    values: usize,
    /// Items of the lists that are being read, the innermost's last. A list that is complete takes its own in one
    /// piece: thousands of small lists and maps that grow one by one cost more than all the rest of reading.
    items: Vec<Value>,
    /// Likewise the entries of maps, each with the line of its key.
    entries: Vec<(String, Value, usize)>,
    /// Keys that were given again.
    repeats: Vec<Diagnostic>,
}

impl<'t> Events<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Diagnostic> {
        match self.parser.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(syntax_error(
                error.marker().line(),
                format!("not YAML: {}", error.info()),
            )),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn expect_end(&mut self) -> Result<(), Diagnostic> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentEnd, _) => {}
                (_, span) => {
                    return Err(syntax_error(
                        span.start.line(),
                        "expected one document, found a second",
                    ));
                }
            }
        }
    }

    fn count(&mut self, more: usize, span: Span) -> Result<(), Diagnostic> {
        self.values = self.values.saturating_add(more);
        if self.values > MAX_VALUES {
            return Err(syntax_error(
                span.start.line(),
                format!("more than {MAX_VALUES} values"),
            ));
        }
        Ok(())
    }

    fn value(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Value, Diagnostic> {
        if depth > MAX_DEPTH {
            return Err(syntax_error(
                span.start.line(),
                format!("nested deeper than {MAX_DEPTH}"),
            ));
        }
        self.count(1, span)?;
        let before = self.values;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.suffix == "str" || tag.suffix == "!str");
                let plain = style == ScalarStyle::Plain && !is_text;
                (
                    if plain {
                        plain_scalar(&text)
                    } else {
                        Value::String(text.into_owned())
                    },
                    anchor,
                )
            }
            Event::SequenceStart(anchor, _) => (self.sequence(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.mapping(depth)?, anchor),
            Event::Alias(anchor) => {
                let Some((_, value, size)) = self.anchors.iter().rev().find(|(id, _, _)| *id == anchor)
                else {
                    return Err(syntax_error(span.start.line(), "an alias inside its own anchor"));
                };
                let (value, size) = (value.clone(), *size);
                self.count(size, span)?;
                (value, 0)
            }
            _ => return Err(syntax_error(span.start.line(), "expected a value")),
        };
        if anchor != 0 {
            self.anchors
                .push((anchor, value.clone(), self.values - before + 1));
        }
        Ok(value)
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, Diagnostic> {
        let start = self.items.len();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(self.items.drain(start..).collect()),
                (event, span) => {
                    let item = self.value(event, span, depth + 1)?;
                    self.items.push(item);
                }
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, Diagnostic> {
        let start = self.entries.len();
        loop {
            let (key, span) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Object(self.take_entries(start))),
                (event, span) => (self.value(event, span, depth + 1)?, span),
            };
            let key_line = span.start.line();
            let key = scalar_text(key)
                .ok_or_else(|| syntax_error(key_line, "expected a text as key, found a list or a map"))?;
            let (event, span) = self.next()?;
            let value = self.value(event, span, depth + 1)?;
            self.entries.push((key, value, key_line));
        }
    }

    fn take_entries(&mut self, start: usize) -> Map<String, Value> {
        self.note_repeats(start);
        let mut map = Map::with_capacity(self.entries.len() - start);
        for (key, value, _) in self.entries.drain(start..) {
            match (key.as_str(), value) {
                ("<<", Value::Object(merged)) => {
                    for (key, value) in merged {
                        map.entry(key).or_insert(value);
                    }
                }
                (_, value) => {
                    map.insert(key, value);
                }
            }
        }
        map
    }

    fn note_repeats(&mut self, start: usize) {
        let entries = &self.entries[start..];
        let mut note = |key: &str, line: usize, first: usize| {
            // Several maps may be merged into one.
            if key != "<<" {
                self.repeats.push(Diagnostic {
                    line: Some(line),
                    ..Diagnostic::warning(
                        DocPath::root(),
                        format!("the key '{key}' is here a second time, and line {first} does not count: join them"),
                    )
                });
            }
        };
        if entries.len() <= SMALL_MAP {
            for (position, (key, _, line)) in entries.iter().enumerate() {
                if let Some((_, _, first)) = entries[..position].iter().rfind(|(other, ..)| other == key) {
                    note(key, *line, *first);
                }
            }
        } else {
            let mut lines = HashMap::with_capacity(entries.len());
            for (key, _, line) in entries {
                if let Some(first) = lines.insert(key.as_str(), *line) {
                    note(key, *line, first);
                }
            }
        }
    }
}

fn scalar_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null => Some(String::new()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// The value of a plain (unquoted) scalar by YAML 1.2's core schema.
fn plain_scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Value::String(text.to_owned());
    }
    if let Some(hex) = text
        .strip_prefix("0x")
        .and_then(|hex| u64::from_str_radix(hex, 16).ok())
    {
        return hex.into();
    }
    if let Some(octal) = text
        .strip_prefix("0o")
        .and_then(|octal| u64::from_str_radix(octal, 8).ok())
    {
        return octal.into();
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = unsigned.parse::<i64>() {
        return number.into();
    }
    if let Ok(number) = unsigned.parse::<u64>() {
        return number.into();
    }
    let is_float = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'))
        && digits.bytes().any(|byte| byte.is_ascii_digit());
    match unsigned
        .parse::<f64>()
        .ok()
        .filter(|_| is_float)
        .and_then(Number::from_f64)
    {
        Some(number) => Value::Number(number),
        None => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        for (text, value) in [
            ("1", json!(1)),
            ("-3", json!(-3)),
            ("0x10", json!(16)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000.0)),
            ("1.2.3", json!("1.2.3")),
            ("127.0.0.1:80", json!("127.0.0.1:80")),
            ("yes", json!("yes")),
            ("~", json!(null)),
            ("true", json!(true)),
            ("'1'", json!("1")),
            ("!!str 1", json!("1")),
            ("-", json!([null])),
        ] {
            assert_eq!(parse(text).expect("valid"), value, "{text}");
        }
    }

    #[test]
    fn documents_read_into_values() {
        let text = "a: &x {b: [1, two]}\nc: *x\nd:\n  <<: *x\n  e: f\n";
        assert_eq!(
            parse(text).expect("valid"),
            json!({"a": {"b": [1, "two"]}, "c": {"b": [1, "two"]}, "d": {"b": [1, "two"], "e": "f"}})
        );
        assert_eq!(parse("").expect("valid"), Value::Null);
    }

    #[test]
    fn syntax_errors_carry_their_line() {
        assert_eq!(parse("a: 1\nb: [1\nc: 2\n").expect_err("refused").line, Some(3));
        assert!(parse("a: 1\n---\nb: 2\n").is_err());
        assert!(parse(&"[".repeat(1000)).is_err());
    }

    #[test]
    fn repeated_keys_are_told() {
        let large: String = (0..40).map(|it| format!("k{it}: 1\n")).collect();
        for (text, repeats) in [
            ("a: 1\nb: {c: 1}\nc: 2\n", vec![]),
            ("a: 1\nb: 2\na: 3\n", vec![(3, "'a'", "line 1")]),
            ("- b: 1\n  c: {d: 1, d: 2}\n- b: 1\n", vec![(2, "'d'", "line 2")]),
            (
                "1: a\n'1': b\n0x1: c\n",
                vec![(2, "'1'", "line 1"), (3, "'1'", "line 2")],
            ),
            ("&x a: 1\n*x : 2\n", vec![(2, "'a'", "line 1")]),
            (
                "x: &x {a: 1}\ny: &y {b: 1}\nz:\n  <<: *x\n  <<: *y\n  a: 2\n",
                vec![],
            ),
            (&format!("{large}k0: 2\n"), vec![(41, "'k0'", "line 1")]),
        ] {
            let (_, found) = parse_noting_repeats(text).expect("valid");
            assert_eq!(found.len(), repeats.len(), "{text}: {found:?}");
            for (found, (line, key, first)) in found.iter().zip(repeats) {
                assert_eq!(found.line, Some(line), "{text}");
                assert!(
                    found.message.contains(key) && found.message.contains(first),
                    "{found:?}"
                );
            }
        }
    }

    #[test]
    fn aliases_cannot_blow_up() {
        let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(",");
            text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(parse(&text).is_err());
    }
}
