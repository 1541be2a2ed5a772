//! Reading a document's text (YAML 1.2, and so JSON) into plain values, and finding places in it again.
//!
//! Values carry no positions: a document is read once for its values, and only when there is something to
//! report is its text walked again for the line of a [`DocPath`].

use crate::diagnostic::{Diagnostic, DocPath, PathStep};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};

/// Deepest nesting of lists and maps.
const MAX_DEPTH: usize = 128;
/// Most values that a document may stand for once its aliases are followed.
const MAX_VALUES: usize = 5_000_000;

/// Reads one YAML or JSON document. Of a key given twice, the last holds.
///
/// # Errors
/// A diagnostic with the line of the syntax error. Several documents in one text, non-scalar keys,
/// and aliases that blow up are refused.
pub fn parse(text: &str) -> Result<Value, Diagnostic> {
    let mut events = Events {
        parser: Parser::new_from_str(text),
        anchors: Vec::new(),
        values: 0,
    };
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::StreamEnd, _) => return Ok(Value::Null),
            (event, span) => {
                let value = events.value(event, span, 0)?;
                return events.expect_end().map(|()| value);
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
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, span) => items.push(self.value(event, span, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, Diagnostic> {
        let mut map = Map::new();
        loop {
            let (key, span) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Object(map)),
                (event, span) => (self.value(event, span, depth + 1)?, span),
            };
            let key = scalar_text(&key).ok_or_else(|| {
                syntax_error(span.start.line(), "expected a text as key, found a list or a map")
            })?;
            let (event, span) = self.next()?;
            let value = self.value(event, span, depth + 1)?;
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
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
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

/// The line (from 1) on which the value at `path` begins, or the nearest of its parents that exists.
/// `None` where the text cannot be read or the path is the root.
pub fn line_of(text: &str, path: &DocPath) -> Option<usize> {
    if path.0.is_empty() {
        return None;
    }
    let mut walk = Walk {
        parser: Parser::new_from_str(text),
        found: None,
    };
    loop {
        match walk.parser.next()?.ok()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (event, span) => {
                walk.visit(&event, span, Some(&path.0))?;
                return walk.found;
            }
        }
    }
}

struct Walk<'t> {
    parser: Parser<'t, saphyr_parser::StrInput<'t>>,
    found: Option<usize>,
}

impl Walk<'_> {
    /// Walks one value; `wanted` is what is left of the path, `None` when this value is not on it.
    fn visit(&mut self, event: &Event<'_>, _span: Span, wanted: Option<&[PathStep]>) -> Option<()> {
        match event {
            Event::SequenceStart(..) => {
                let mut index = 0;
                loop {
                    let (event, span) = self.parser.next()?.ok()?;
                    if matches!(event, Event::SequenceEnd) {
                        return Some(());
                    }
                    let below = match wanted {
                        Some([PathStep::Index(wanted), rest @ ..]) if *wanted == index => Some(rest),
                        _ => None,
                    };
                    self.reached(below, span);
                    self.visit(&event, span, below)?;
                    index += 1;
                }
            }
            Event::MappingStart(..) => loop {
                let (key, key_span) = self.parser.next()?.ok()?;
                let below = match (&key, wanted) {
                    (Event::MappingEnd, _) => return Some(()),
                    (Event::Scalar(text, ..), Some([PathStep::Field(wanted), rest @ ..]))
                        if text == wanted =>
                    {
                        Some(rest)
                    }
                    (Event::Scalar(..), _) => None,
                    _ => {
                        self.visit(&key, key_span, None)?;
                        None
                    }
                };
                self.reached(below, key_span);
                let (event, span) = self.parser.next()?.ok()?;
                self.visit(&event, span, below)?;
            },
            _ => Some(()),
        }
    }

    fn reached(&mut self, below: Option<&[PathStep]>, span: Span) {
        if below.is_some() {
            self.found = Some(span.start.line());
        }
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
    fn aliases_cannot_blow_up() {
        let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(",");
            text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(parse(&text).is_err());
    }

    #[test]
    fn places_are_found_again() {
        let text = "services:\n- name: a\n  routes:\n  - paths:\n    - /x\n    - /y\n- name: b\n";
        let place = |steps: &[PathStep]| line_of(text, &DocPath(steps.to_vec()));
        let field = |name: &str| PathStep::Field(name.to_owned());
        for (steps, line) in [
            (
                vec![field("services"), PathStep::Index(1), field("name")],
                Some(7),
            ),
            (
                vec![
                    field("services"),
                    PathStep::Index(0),
                    field("routes"),
                    PathStep::Index(0),
                    field("paths"),
                    PathStep::Index(1),
                ],
                Some(6),
            ),
            (
                vec![field("services"), PathStep::Index(1), field("absent")],
                Some(7),
            ),
            (vec![field("absent")], None),
        ] {
            assert_eq!(place(&steps), line, "{steps:?}");
        }
    }
}
