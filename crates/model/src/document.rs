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
/// Most bytes of texts that anchors and aliases may make copies of.
const MAX_COPIED_BYTES: usize = 64 << 20;
/// So many values anchors and aliases may make copies of in any document; a longer text may have more of them, one for
/// each of its bytes. Memory grows with the text then, and not with what aliases stand for.
const FREE_COPIES: usize = 50_000;
/// The same for bytes of copied texts, of which there may be eight for each byte.
const FREE_COPIED_BYTES: usize = 4 << 20;
const COPIED_BYTES_PER_BYTE: usize = 8;
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
        text_bytes: 0,
        copied_values: 0,
        copied_bytes: 0,
        max_copied_values: FREE_COPIES.saturating_add(text.len()).min(MAX_VALUES),
        max_copied_bytes: FREE_COPIED_BYTES
            .saturating_add(text.len().saturating_mul(COPIED_BYTES_PER_BYTE))
            .min(MAX_COPIED_BYTES),
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

/// A value that aliases may stand for.
struct Anchor {
    id: usize,
    value: Value,
    /// How many values it is, and how long all of its texts are.
    values: usize,
    text_bytes: usize,
}

struct Events<'t> {
    parser: Parser<'t, saphyr_parser::StrInput<'t>>,
    anchors: Vec<Anchor>,
    values: usize,
    /// Of all texts so far.
    text_bytes: usize,
    /// What anchors and aliases have made copies of.
    copied_values: usize,
    copied_bytes: usize,
    /// How many of them there may be.
    max_copied_values: usize,
    max_copied_bytes: usize,
    /// Items of the lists that are being read, the innermost's last. A list that is complete takes its own in one
    /// piece: thousands of small lists and maps that grow one by one cost more than all the rest of reading.
    items: Vec<Value>,
    /// The entries of the maps that are being read, each with the line of its key.
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

    /// Counts a copy of a value.
    fn count_copy(&mut self, values: usize, text_bytes: usize, span: Span) -> Result<(), Diagnostic> {
        self.copied_values = self.copied_values.saturating_add(values);
        self.copied_bytes = self.copied_bytes.saturating_add(text_bytes);
        if self.copied_values > self.max_copied_values || self.copied_bytes > self.max_copied_bytes {
            return Err(syntax_error(
                span.start.line(),
                format!(
                    "anchors and aliases expand to more than {} values or {} bytes",
                    self.max_copied_values, self.max_copied_bytes
                ),
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
        let before = (self.values, self.text_bytes);
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.text_bytes = self.text_bytes.saturating_add(text.len());
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
                let Some(place) = self.anchors.iter().rposition(|it| it.id == anchor) else {
                    return Err(syntax_error(span.start.line(), "an alias inside its own anchor"));
                };
                let (values, text_bytes) = (self.anchors[place].values, self.anchors[place].text_bytes);
                self.count_copy(values, text_bytes, span)?;
                self.count(values, span)?;
                self.text_bytes = self.text_bytes.saturating_add(text_bytes);
                (self.anchors[place].value.clone(), 0)
            }
            _ => return Err(syntax_error(span.start.line(), "expected a value")),
        };
        if anchor != 0 {
            let (values, text_bytes) = (self.values - before.0 + 1, self.text_bytes - before.1);
            self.count_copy(values, text_bytes, span)?;
            self.anchors.push(Anchor {
                id: anchor,
                value: value.clone(),
                values,
                text_bytes,
            });
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
mod tests;
