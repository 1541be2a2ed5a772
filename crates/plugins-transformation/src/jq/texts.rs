//! Functions of texts, regular expressions and formats.

use super::budget::{Budget, Interrupt, described, fail, number};
use super::value::{Members, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex, RegexBuilder};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

type ValueResult = Result<Value, Interrupt>;

/// The most memory that a regular expression may take.
const MAX_REGEX: usize = 1 << 18;
/// Steps for making one.
const REGEX_STEPS: usize = 500;
/// How many of them a run keeps.
const MAX_PATTERNS: usize = 16;
/// Bytes that a search for a further match may go through for one step.
const SEARCHED_PER_STEP: usize = 64;

fn text<'v>(value: &'v Value, what: &str) -> Result<&'v Arc<str>, Interrupt> {
    match value {
        Value::Text(text) => Ok(text),
        other => fail(format!("{} {what}", described(other))),
    }
}

/// Functions of the input alone.
pub fn plain(budget: &Budget, name: &str, value: &Value) -> ValueResult {
    match name {
        "tostring" => {
            budget.spend(value.size())?;
            Ok(Value::text(value.to_text()))
        }
        "tojson" => {
            budget.spend(value.size())?;
            Ok(Value::text(value.to_json(false).to_string()))
        }
        "fromjson" => {
            let text = text(value, "only strings can be parsed")?;
            budget.spend(text.len())?;
            match serde_json::from_str(text) {
                Ok(json) => Ok(Value::of_json(&json)?),
                Err(error) => fail(format!("{error} (while parsing '{}')", abridged(text))),
            }
        }
        "tonumber" => match value {
            Value::Number(_) => Ok(value.clone()),
            Value::Text(text) => match text.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Value::number(number)),
                _ => fail(format!("Cannot parse '{}' as JSON", abridged(text))),
            },
            other => fail(format!("{} cannot be parsed as a number", described(other))),
        },
        "utf8bytelength" => {
            let text = text(value, "only strings have UTF-8 byte length")?;
            Ok(Value::count(text.len()))
        }
        "explode" => {
            let text = text(value, "cannot be exploded")?;
            budget.spend(text.len())?;
            let points = text.chars().map(|it| Value::number(f64::from(u32::from(it))));
            Ok(Value::list(points.collect())?)
        }
        "implode" => implode(value),
        "_joined" => match value {
            Value::List(list) => joined(budget, list.items.iter()),
            other => fail(format!("Cannot iterate over {}", described(other))),
        },
        "ascii_downcase" => Ok(Value::text(
            text(value, "explode input must be a string")?.to_ascii_lowercase(),
        )),
        "ascii_upcase" => Ok(Value::text(
            text(value, "explode input must be a string")?.to_ascii_uppercase(),
        )),
        "trim" => Ok(Value::text(text(value, "trim input must be a string")?.trim())),
        "ltrim" => Ok(Value::text(
            text(value, "trim input must be a string")?.trim_start(),
        )),
        "rtrim" => Ok(Value::text(
            text(value, "trim input must be a string")?.trim_end(),
        )),
        "ascii" => {
            let point = char::from_u32(number(value)? as u32).filter(char::is_ascii);
            Ok(Value::text(point.unwrap_or('?').to_string()))
        }
        _ => fail(format!("{name} is not defined")),
    }
}

fn implode(value: &Value) -> ValueResult {
    let Value::List(list) = value else {
        return fail(format!("{} cannot be imploded", described(value)));
    };
    let mut made = String::new();
    for point in &list.items {
        let point = number(point)?;
        made.push(char::from_u32(point as u32).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    Ok(Value::text(made))
}

fn abridged(text: &str) -> String {
    text.chars().take(20).collect()
}

/// Functions of the input and one value.
pub fn of_one(budget: &Budget, name: &str, value: &Value, one: &Value) -> ValueResult {
    match (name, value, one) {
        ("startswith" | "endswith", Value::Text(text), Value::Text(part)) => Ok(Value::Bool(match name {
            "startswith" => text.starts_with(&**part),
            _ => text.ends_with(&**part),
        })),
        ("startswith" | "endswith", ..) => fail(format!("{name}() requires string inputs")),
        ("ltrimstr", Value::Text(text), Value::Text(part)) => {
            Ok(Value::text(text.strip_prefix(&**part).unwrap_or(text)))
        }
        ("rtrimstr", Value::Text(text), Value::Text(part)) => {
            Ok(Value::text(text.strip_suffix(&**part).unwrap_or(text)))
        }
        ("ltrimstr" | "rtrimstr", ..) => Ok(value.clone()),
        ("split", Value::Text(text), Value::Text(by)) => {
            budget.spend(text.len() / 8)?;
            let parts: Vec<Value> = match (text.is_empty(), by.is_empty()) {
                (true, _) => Vec::new(),
                (false, true) => text.chars().map(|it| Value::text(it.to_string())).collect(),
                (false, false) => text.split(&**by).map(Value::text).collect(),
            };
            budget.spend(parts.len())?;
            Ok(Value::list(parts)?)
        }
        ("split", ..) => fail("split input and separator must be strings"),
        ("join", Value::List(list), Value::Text(between)) => join(budget, &list.items, between),
        ("index" | "rindex" | "indices", ..) => {
            let found = found(budget, value, one)?;
            let place = |place: Option<&usize>| place.map_or(Value::Null, |place| Value::count(*place));
            match name {
                "index" => Ok(place(found.first())),
                "rindex" => Ok(place(found.last())),
                _ => Ok(Value::list(found.into_iter().map(Value::count).collect())?),
            }
        }
        _ => fail(format!(
            "{name}: {} and {} do not fit",
            described(value),
            described(one)
        )),
    }
}

/// Texts, one behind the other.
pub fn joined<'v>(budget: &Budget, items: impl Iterator<Item = &'v Value>) -> ValueResult {
    let mut joined = String::new();
    for item in items {
        budget.spend(item.weight())?;
        match item {
            Value::Null => {}
            Value::Text(text) => joined.push_str(text),
            other => {
                let first = Value::text(abridged(&joined));
                return fail(format!(
                    "{} and {} cannot be added",
                    described(&first),
                    described(other)
                ));
            }
        }
    }
    Ok(Value::text(joined))
}

fn join(budget: &Budget, items: &[Value], between: &str) -> ValueResult {
    let mut joined = String::new();
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            budget.hold(between.len())?;
            joined.push_str(between);
        }
        match item {
            Value::Null => {}
            Value::Text(_) | Value::Number(_) | Value::Bool(_) => {
                budget.spend(item.size())?;
                budget.hold(item.bytes())?;
                joined.push_str(&item.to_text());
            }
            other => {
                return fail(format!(
                    "{} and {} cannot be added",
                    abridged(&joined),
                    described(other)
                ));
            }
        }
        budget.spend(1 + between.len() / 64)?;
    }
    budget.spend(joined.len() / 64)?;
    Ok(Value::text(joined))
}

/// Where a part stands in a text or a list.
fn found(budget: &Budget, value: &Value, part: &Value) -> Result<Vec<usize>, Interrupt> {
    budget.spend(value.weight())?;
    match (value, part) {
        (Value::Null, _) => Ok(Vec::new()),
        (Value::Text(text), Value::Text(part)) if !part.is_empty() => {
            budget.spend(text.len() / 8)?;
            let (mut places, mut from, mut characters) = (Vec::new(), 0, 0);
            let searcher = memchr::memmem::Finder::new(part.as_bytes());
            while let Some(at) = searcher.find(&text.as_bytes()[from..]) {
                characters += text[from..from + at].chars().count();
                places.push(characters);
                let step = text[from + at..].chars().next().map_or(1, char::len_utf8);
                from += at + step;
                characters += 1;
                // Each match is compared with the whole part.
                budget.spend(1 + part.len() / 16)?;
            }
            Ok(places)
        }
        (Value::Text(_), Value::Text(_)) => Ok(Vec::new()),
        (Value::List(list), Value::List(part)) => places(budget, &list.items, &part.items),
        (Value::List(list), one) => places(budget, &list.items, std::slice::from_ref(one)),
        (value, part) => fail(format!(
            "Cannot determine indices of {} in {}",
            described(part),
            described(value)
        )),
    }
}

/// Where a list stands in another one.
pub fn places(budget: &Budget, items: &[Value], part: &[Value]) -> Result<Vec<usize>, Interrupt> {
    let mut places = Vec::new();
    if part.is_empty() || part.len() > items.len() {
        return Ok(places);
    }
    for (place, window) in items.windows(part.len()).enumerate() {
        budget.spend(1)?;
        let mut is_it = true;
        for (one, other) in window.iter().zip(part) {
            is_it = is_it && budget.order(one, other)?.is_eq();
            if !is_it {
                break;
            }
        }
        if is_it {
            places.push(place);
        }
    }
    Ok(places)
}

/// A regular expression with its flags.
pub struct Pattern {
    regex: Regex,
    is_global: bool,
    skips_empty: bool,
    /// It has no signs that stand for anything else, so no search goes far beyond what it finds.
    is_literal: bool,
}

/// The regular expressions of a run: a program uses the same one for many texts.
#[derive(Default)]
pub struct Patterns(RefCell<Vec<CachedPattern>>);

/// An expression with its flags, and what is made of them.
type CachedPattern = (Arc<str>, Arc<str>, Rc<Pattern>);

impl Patterns {
    /// The expression, which is compiled if it is not known.
    pub fn get(&self, budget: &Budget, pattern: &Value, flags: &Value) -> Result<Rc<Pattern>, Interrupt> {
        let (pattern, flags) = match (pattern, flags) {
            (Value::List(both), _) => {
                let part = |place: usize| both.items.get(place).cloned().unwrap_or(Value::Null);
                (part(0), part(1))
            }
            (pattern, flags) => (pattern.clone(), flags.clone()),
        };
        let pattern = Arc::clone(text(&pattern, "cannot be matched, as it is not a string")?);
        let flags = match &flags {
            Value::Null => Arc::from(""),
            flags => Arc::clone(text(flags, "is not a string")?),
        };
        budget.spend(1 + (pattern.len() + flags.len()) / 64)?;
        let known =
            |(known, with, _): &&(Arc<str>, Arc<str>, Rc<Pattern>)| *known == pattern && *with == flags;
        if let Some((_, _, compiled)) = self.0.borrow().iter().find(known) {
            return Ok(Rc::clone(compiled));
        }
        let compiled = Rc::new(compile(budget, &pattern, &flags)?);
        let mut patterns = self.0.borrow_mut();
        if patterns.len() >= MAX_PATTERNS {
            patterns.remove(0);
        }
        patterns.push((pattern, flags, Rc::clone(&compiled)));
        Ok(compiled)
    }
}

fn compile(budget: &Budget, pattern: &str, flags: &str) -> Result<Pattern, Interrupt> {
    if let Some(other) = flags.chars().find(|flag| !"gimnsxl".contains(*flag)) {
        return fail(format!("{other} is not a valid modifier string"));
    }
    budget.spend(REGEX_STEPS + pattern.len() * 4)?;
    let has = |flag: char| flags.contains(flag);
    let built = RegexBuilder::new(pattern)
        .case_insensitive(has('i'))
        .ignore_whitespace(has('x'))
        .dot_matches_new_line(has('s'))
        .size_limit(MAX_REGEX)
        .dfa_size_limit(MAX_REGEX)
        .build();
    match built {
        Ok(regex) => Ok(Pattern {
            regex,
            is_global: has('g'),
            skips_empty: has('n'),
            is_literal: regex::escape(pattern) == pattern,
        }),
        Err(_) => fail(format!(
            "{} (at offset 0) is not a valid regex",
            abridged(pattern)
        )),
    }
}

/// What an expression finds in a text. Each search may go through all that is left of it, unless the expression is plain
/// text, and is paid for so: otherwise a text of many matches would take time by the square of its length.
fn each_match<'t>(
    budget: &Budget,
    input: &'t str,
    pattern: &Pattern,
    mut take: impl FnMut(&Captures<'t>) -> Result<(), Interrupt>,
) -> Result<(), Interrupt> {
    budget.spend(input.len() / 4)?;
    let mut at = 0;
    for found in pattern.regex.captures_iter(input) {
        let Some(whole) = found.get(0) else { continue };
        let searched = match pattern.is_literal {
            true => whole.end() - at,
            false => input.len() - at,
        };
        budget.spend(4 * found.len() + searched / SEARCHED_PER_STEP)?;
        at = whole.end();
        if pattern.skips_empty && whole.is_empty() {
            continue;
        }
        take(&found)?;
        if !pattern.is_global {
            break;
        }
    }
    Ok(())
}

/// What an expression finds in the input, or whether it finds anything.
pub fn matches(budget: &Budget, value: &Value, pattern: &Pattern, tests: bool) -> ValueResult {
    let input = text(value, "cannot be matched, as it is not a string")?;
    if tests {
        budget.spend(input.len() / 4)?;
        return Ok(Value::Bool(pattern.regex.is_match(input)));
    }
    let mut all = Vec::new();
    // Characters before a byte, counted once from match to match.
    let (mut bytes, mut characters) = (0, 0);
    each_match(budget, input, pattern, |found| {
        let Some(whole) = found.get(0) else {
            return Ok(());
        };
        characters += input[bytes..whole.start()].chars().count();
        bytes = whole.start();
        budget.spend(whole.len() / 64)?;
        budget.hold(512 * found.len() + 2 * whole.len())?;
        let mut captures = Vec::new();
        for (place, name) in pattern.regex.capture_names().enumerate().skip(1) {
            let offset = |start: usize| characters + input[bytes.min(start)..start].chars().count();
            let mut members = match found.get(place) {
                Some(part) => described_match(offset(part.start()), part.as_str()),
                None => {
                    let mut members = Members::default();
                    members.insert("offset".into(), Value::number(-1.0));
                    members.insert("length".into(), Value::count(0));
                    members.insert("string".into(), Value::Null);
                    members
                }
            };
            members.insert("name".into(), name.map_or(Value::Null, Value::text));
            captures.push(Value::object(members)?);
        }
        let mut members = described_match(characters, whole.as_str());
        members.insert("captures".into(), Value::list(captures)?);
        all.push(Value::object(members)?);
        Ok(())
    })?;
    Ok(Value::list(all)?)
}

/// What stands between what an expression finds, and for each of these the named groups: a text, an object, a text and
/// so on.
pub fn pieces(budget: &Budget, value: &Value, pattern: &Pattern) -> ValueResult {
    let input = text(value, "cannot be matched, as it is not a string")?;
    let (mut all, mut from) = (Vec::new(), 0);
    budget.hold(input.len())?;
    each_match(budget, input, pattern, |found| {
        let Some(whole) = found.get(0) else {
            return Ok(());
        };
        all.push(Value::text(&input[from..whole.start()]));
        from = whole.end();
        budget.hold(256 * found.len() + 2 * whole.len())?;
        let mut members = Members::default();
        for (place, name) in pattern.regex.capture_names().enumerate() {
            if let Some(name) = name {
                let group = found.get(place).map(|part| Value::text(part.as_str()));
                members.insert(name.into(), group.unwrap_or(Value::Null));
            }
        }
        all.push(Value::object(members)?);
        Ok(())
    })?;
    all.push(Value::text(&input[from..]));
    Ok(Value::list(all)?)
}

fn described_match(offset: usize, text: &str) -> Members {
    let mut members = Members::default();
    members.insert("offset".into(), Value::count(offset));
    members.insert("length".into(), Value::count(text.chars().count()));
    members.insert("string".into(), Value::text(text));
    members
}

/// The parts of the input between what an expression finds.
pub fn split(budget: &Budget, value: &Value, pattern: &Pattern) -> ValueResult {
    let input = text(value, "cannot be matched, as it is not a string")?;
    let everywhere = Pattern {
        regex: pattern.regex.clone(),
        is_global: true,
        skips_empty: false,
        is_literal: pattern.is_literal,
    };
    let (mut parts, mut from) = (Vec::new(), 0);
    budget.hold(input.len())?;
    each_match(budget, input, &everywhere, |found| {
        if let Some(whole) = found.get(0) {
            parts.push(Value::text(&input[from..whole.start()]));
            from = whole.end();
            budget.hold(64)?;
        }
        Ok(())
    })?;
    parts.push(Value::text(&input[from..]));
    Ok(Value::list(parts)?)
}

/// Formats that there are.
pub const FORMATS: [&str; 9] = [
    "text", "json", "html", "uri", "csv", "tsv", "sh", "base64", "base64d",
];

/// A value as a format shows it.
pub fn format(budget: &Budget, name: &str, value: &Value) -> Result<String, Interrupt> {
    budget.spend(value.size())?;
    let shown = || value.to_text();
    let made = match name {
        "text" => shown(),
        "json" => value.to_json(false).to_string(),
        "html" => {
            let escape = |it: char| match it {
                '<' => "&lt;".to_owned(),
                '>' => "&gt;".to_owned(),
                '&' => "&amp;".to_owned(),
                '\'' => "&#39;".to_owned(),
                '"' => "&quot;".to_owned(),
                it => it.to_string(),
            };
            shown().chars().map(escape).collect()
        }
        "uri" => {
            let mut made = String::new();
            for byte in shown().bytes() {
                match byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                    true => made.push(char::from(byte)),
                    false => made.push_str(&format!("%{byte:02X}")),
                }
            }
            made
        }
        "csv" | "tsv" | "sh" => row(name, value)?,
        "base64" => STANDARD.encode(shown()),
        "base64d" => {
            let coded = shown();
            let trimmed = coded.trim_end_matches('=');
            let decoded = base64::engine::general_purpose::STANDARD_NO_PAD.decode(trimmed);
            match decoded {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(_) => return fail(format!("{} is not valid base64 data", described(value))),
            }
        }
        name => return fail(format!("{name} is not a valid format")),
    };
    budget.spend(1 + made.len() / 16)?;
    Ok(made)
}

/// The items of a list in one line.
fn row(name: &str, value: &Value) -> Result<String, Interrupt> {
    let items = match value {
        Value::List(list) => list.items.clone(),
        other if name == "sh" => vec![other.clone()],
        other => {
            return fail(format!(
                "{} cannot be {name}-formatted, only an array can be",
                described(other)
            ));
        }
    };
    let mut cells = Vec::with_capacity(items.len());
    for item in &items {
        cells.push(match (name, item) {
            (_, Value::List(_) | Value::Object(_)) => {
                return fail(format!("{} is not valid in a {name} row", described(item)));
            }
            ("sh", Value::Text(text)) => format!("'{}'", text.replace('\'', "'\\''")),
            ("csv", Value::Text(text)) => format!("\"{}\"", text.replace('"', "\"\"")),
            ("tsv", Value::Text(text)) => {
                let escaped = text.replace('\\', "\\\\").replace('\t', "\\t");
                escaped.replace('\n', "\\n").replace('\r', "\\r")
            }
            ("csv" | "tsv", Value::Null) => String::new(),
            (_, item) => item.to_text(),
        });
    }
    Ok(cells.join(match name {
        "csv" => ",",
        "tsv" => "\t",
        _ => " ",
    }))
}
