//! Writing plain values as YAML that people like to read.
//!
//! Maps and lists stand in block style; small ones that stand deep enough are written in a line. A text that a
//! YAML reader (of version 1.1 or 1.2) could take for something else is quoted. What is written here reads
//! back as the same value with `weir_model::document::parse`. It is not a general YAML writer: it knows no
//! anchors, no tags and no comments.

use serde_json::{Map, Value};

/// Longest line into which a small list or map is folded.
const INLINE_WIDTH: usize = 64;
/// Lists and maps nested deeper than this are never folded.
const INLINE_DEPTH: usize = 2;
/// Longest key that YAML lets stand before its colon in one line.
const PLAIN_KEY_WIDTH: usize = 512;

/// The YAML text of `value`, with a line end behind it.
pub fn to_text(value: &Value) -> String {
    let mut writer = Writer { out: String::new() };
    match value {
        Value::Object(map) if !map.is_empty() => writer.map(map, 0),
        Value::Array(items) if !items.is_empty() => writer.list(items, 0),
        scalar => {
            writer.node(scalar, 0);
            writer.out.push('\n');
        }
    }
    writer.out
}

struct Writer {
    out: String,
}

impl Writer {
    fn map(&mut self, map: &Map<String, Value>, level: usize) {
        for (position, (key, value)) in map.iter().enumerate() {
            if position > 0 {
                self.indent(level);
            }
            self.key(key, level);
            self.behind_key(value, level);
        }
    }

    fn key(&mut self, key: &str, level: usize) {
        let key = scalar(key);
        if key.chars().count() > PLAIN_KEY_WIDTH {
            self.out.push_str("? ");
            self.out.push_str(&key);
            self.out.push('\n');
            self.indent(level);
        } else {
            self.out.push_str(&key);
        }
        self.out.push(':');
    }

    fn behind_key(&mut self, value: &Value, level: usize) {
        match block(value, level + 1) {
            Some(Block::Map(map)) => {
                self.out.push('\n');
                self.indent(level + 1);
                self.map(map, level + 1);
            }
            Some(Block::List(items)) => {
                self.out.push('\n');
                self.indent(level + 1);
                self.list(items, level + 1);
            }
            None => {
                self.out.push(' ');
                self.node(value, level + 1);
                self.out.push('\n');
            }
        }
    }

    fn list(&mut self, items: &[Value], level: usize) {
        for (position, item) in items.iter().enumerate() {
            if position > 0 {
                self.indent(level);
            }
            self.out.push_str("- ");
            match (block(item, level + 1), item) {
                (Some(Block::Map(map)), _) => self.map(map, level + 1),
                (Some(Block::List(items)), _) => self.list(items, level + 1),
                // `- key: value` needs no braces.
                (None, Value::Object(map)) if map.len() == 1 => self.map(map, level + 1),
                (None, _) => {
                    self.node(item, level + 1);
                    self.out.push('\n');
                }
            }
        }
    }

    /// A value that begins in the current line: a scalar, or a folded list or map.
    fn node(&mut self, value: &Value, level: usize) {
        match value {
            Value::String(text) => match literal_lines(text) {
                Some((header, lines)) => {
                    self.out.push_str(header);
                    for line in lines {
                        self.out.push('\n');
                        if !line.is_empty() {
                            self.indent(level.max(1));
                            self.out.push_str(line);
                        }
                    }
                }
                None => self.out.push_str(&scalar(text)),
            },
            value => inline(value, &mut self.out),
        }
    }

    fn indent(&mut self, level: usize) {
        for _ in 0..level {
            self.out.push_str("  ");
        }
    }
}

/// What has to be written over several lines.
enum Block<'v> {
    Map(&'v Map<String, Value>),
    List(&'v [Value]),
}

fn block(value: &Value, level: usize) -> Option<Block<'_>> {
    let found = match value {
        Value::Object(map) if !map.is_empty() => Block::Map(map),
        Value::Array(items) if !items.is_empty() => Block::List(items),
        _ => return None,
    };
    // Resources stand on the second level; each of their fields has a line of its own.
    let foldable = level > 2 && depth(value) <= INLINE_DEPTH && !has_long_text(value);
    if foldable {
        let mut line = String::new();
        inline(value, &mut line);
        if line.len() <= INLINE_WIDTH {
            return None;
        }
    }
    Some(found)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn has_long_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() > INLINE_WIDTH || text.contains('\n'),
        Value::Array(items) => items.iter().any(has_long_text),
        Value::Object(map) => map.values().any(has_long_text),
        _ => false,
    }
}

fn inline(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => out.push_str(&scalar(text)),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                inline(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (position, (key, item)) in map.iter().enumerate() {
                if position > 0 {
                    out.push_str(", ");
                }
                out.push_str(&scalar(key));
                out.push_str(": ");
                inline(item, out);
            }
            out.push('}');
        }
    }
}

/// A text in one line: plain if it cannot be misread, otherwise in quotes.
fn scalar(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if text.chars().all(is_printable) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        double_quoted(text)
    }
}

/// Words that some YAML reader takes for something other than a text.
const RESERVED: [&str; 10] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan"];

fn is_plain(text: &str) -> bool {
    let starts_well =
        text.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '/' | '_' | '$'));
    let bytes = text.as_bytes();
    let reads_on = bytes.iter().enumerate().all(|(at, byte)| match byte {
        b'/' | b'_' | b'-' | b'.' | b'+' | b'=' | b'~' | b'@' | b'%' | b'$' | b'*' | b';' | b'(' | b')'
        | b'?' | b'^' => true,
        // Before anything else a colon would end a key, here or inside a folded map.
        b':' => bytes
            .get(at + 1)
            .is_some_and(|next| next.is_ascii_alphanumeric() || *next == b'/'),
        b' ' => bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric),
        byte => byte.is_ascii_alphanumeric(),
    });
    starts_well && reads_on && !RESERVED.contains(&text.to_ascii_lowercase().as_str())
}

fn is_printable(character: char) -> bool {
    matches!(character, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            printable if is_printable(printable) => out.push(printable),
            other => match u32::from(other) {
                code @ 0..=0xff => out.push_str(&format!("\\x{code:02x}")),
                code @ 0x100..=0xffff => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
        }
    }
    out.push('"');
    out
}

/// The header and the lines of a text of several lines that can stand as a literal block, as keys and
/// certificates do.
fn literal_lines(text: &str) -> Option<(&'static str, Vec<&str>)> {
    let (header, body) = match text.strip_suffix('\n') {
        Some(body) => ("|", body),
        None => ("|-", text),
    };
    let lines: Vec<&str> = body.split('\n').collect();
    let can_stand = |line: &&str| line.chars().all(is_printable) && !line.ends_with(' ');
    let begins_well = lines
        .first()
        .is_some_and(|line| !line.is_empty() && !line.starts_with(' '));
    let ends_well = lines.last().is_some_and(|line| !line.is_empty());
    (text.contains('\n') && begins_well && ends_well && lines.iter().all(can_stand))
        .then_some((header, lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use weir_model::document;

    #[test]
    fn values_are_written_as_people_write_them() {
        for (value, text) in [
            (
                json!({"weir": 1, "a": "/hello", "b": []}),
                "weir: 1\na: /hello\nb: []\n",
            ),
            (
                json!({"routes": [{"name": "a", "paths": ["/a", "/b"], "deep": {"limits": [{"count": 5, "per": "minute"}]}}]}),
                "routes:\n  - name: a\n    paths: [/a, /b]\n    deep:\n      limits: [{count: 5, per: minute}]\n",
            ),
            (
                json!({"key": "-----BEGIN-----\nabc\n"}),
                "key: |\n  -----BEGIN-----\n  abc\n",
            ),
            (json!([[["x"]], {}]), "- - - x\n- {}\n"),
            (json!("1"), "'1'\n"),
        ] {
            assert_eq!(to_text(&value), text, "{value}");
            assert_eq!(document::parse(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn texts_that_could_be_misread_are_quoted() {
        for (text, written) in [
            ("plain", "plain"),
            ("http://127.0.0.1:1980/x", "http://127.0.0.1:1980/x"),
            ("two words", "two words"),
            ("", "''"),
            ("yes", "'yes'"),
            ("Null", "'Null'"),
            ("1e3", "'1e3'"),
            ("2024-01-01", "'2024-01-01'"),
            ("*", "'*'"),
            ("*.example.com", "'*.example.com'"),
            ("a: b", "'a: b'"),
            ("a:", "'a:'"),
            ("a #b", "'a #b'"),
            ("it's", "'it''s'"),
            ("- a", "'- a'"),
            ("{a}", "'{a}'"),
            (" a", "' a'"),
            ("a\tb", "\"a\\tb\""),
            ("\u{85}", "\"\\x85\""),
            ("\u{feff}", "\"\\ufeff\""),
            ("grün", "'grün'"),
        ] {
            assert_eq!(scalar(text), written);
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ -~]{0,12}",
            "[a-z:#&*!|>'\"%@`,\\[\\]{}\\n ?-]{0,10}",
            "[-+.0-9exo_]{1,6}",
            "(line|  more|\\n| ){0,6}",
            "(~|null|true|no|<|=|<<x|---|\\.\\.\\.|[.]inf)",
            "[a-z]{500,1100}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>()
                .prop_filter("finite", |number| number.is_finite())
                .prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::vec((text.clone(), inner), 0..5)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_reads_back(value in any_value()) {
            let text = to_text(&value);
            prop_assert_eq!(document::parse(&text), Ok(value), "{}", text);
        }
    }
}
