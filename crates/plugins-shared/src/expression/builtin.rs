//! The functions that expressions may call.

use super::format::formatted;
use super::pattern::Matcher;
use super::value::{EvaluationError, MAX_TEXT, Value};
use weir_plugin::WorkBudget;

/// Functions of texts, which are methods of theirs too.
const TEXTS: [&str; 10] = [
    "upper", "lower", "len", "sub", "rep", "reverse", "gsub", "match", "find", "format",
];
/// Functions that belong to no library.
const PLAIN: [&str; 5] = ["tostring", "tonumber", "type", "_escape_json", "_escape_xml"];
const MATHS: [&str; 4] = ["floor", "ceil", "abs", "tostring"];

/// The method of this name that texts have.
pub(super) fn of_texts(name: &str) -> Option<&'static str> {
    TEXTS.into_iter().find(|known| *known == name)
}

/// Whether a function without a library has this name.
pub(super) fn is_function(name: &str) -> bool {
    PLAIN.contains(&name)
}

/// The function of this name in a library.
pub(super) fn of_library(library: &str, name: &str) -> Option<&'static str> {
    match library {
        "string" => of_texts(name),
        "math" => MATHS[..3].iter().copied().find(|known| *known == name),
        "table" => (name == "concat").then_some("concat"),
        _ => None,
    }
}

/// Calls a function.
///
/// # Errors
/// Where the arguments do not fit.
pub(super) fn call(name: &str, arguments: &[Value], work: &WorkBudget) -> Result<Value, EvaluationError> {
    let first = arguments.first().unwrap_or(&Value::Nil);
    let number = |at: usize| arguments.get(at).and_then(Value::number);
    let text = || {
        first
            .text()
            .ok_or(EvaluationError("a text is wanted"))
            .map(|text| text.into_owned())
    };
    let calculated = |work: fn(f64) -> f64| {
        first
            .number()
            .map(|number| Value::Number(work(number)))
            .ok_or(EvaluationError("a number is wanted"))
    };
    Ok(match name {
        "type" => Value::Text(first.kind().as_bytes().to_vec()),
        "tostring" => match first {
            Value::Nil => Value::Text(b"nil".to_vec()),
            other => {
                let mut out = Vec::new();
                other.write(&mut out);
                Value::Text(out)
            }
        },
        "tonumber" => first.number().map_or(Value::Nil, Value::Number),
        "upper" => Value::Text(text()?.to_ascii_uppercase()),
        "lower" => Value::Text(text()?.to_ascii_lowercase()),
        "len" => Value::Number(text()?.len() as f64),
        "reverse" => Value::Text(text()?.into_iter().rev().collect()),
        "sub" => {
            let text = text()?;
            Value::Text(part(&text, number(1).unwrap_or(1.0), number(2).unwrap_or(-1.0)).to_vec())
        }
        "rep" => {
            let (text, times) = (text()?, number(1).unwrap_or(0.0).max(0.0) as usize);
            match text
                .len()
                .checked_mul(times)
                .is_some_and(|length| length <= MAX_TEXT)
            {
                true => Value::Text(text.repeat(times)),
                false => return Err(EvaluationError("a text is too long")),
            }
        }
        "format" => Value::Text(formatted(&text()?, &arguments[1..])?),
        "gsub" => Value::Text(replaced(&text()?, arguments, work)?),
        "match" | "find" => found(name, &text()?, arguments, work)?,
        "floor" => calculated(f64::floor)?,
        "ceil" => calculated(f64::ceil)?,
        "abs" => calculated(f64::abs)?,
        "concat" => concat(first, arguments.get(1))?,
        "_escape_json" => {
            let json = match first {
                Value::Json(json) => json.to_string(),
                Value::Text(text) => serde_json::Value::from(String::from_utf8_lossy(text)).to_string(),
                Value::Nil => "null".to_owned(),
                other => {
                    let mut out = Vec::new();
                    other.write(&mut out);
                    String::from_utf8_lossy(&out).into_owned()
                }
            };
            Value::Text(json.into_bytes())
        }
        "_escape_xml" => Value::Text(escaped(&text()?)),
        _ => return Err(EvaluationError("an unknown function is called")),
    })
}

/// The second argument of a function that looks for a pattern.
fn pattern(arguments: &[Value]) -> Result<Vec<u8>, EvaluationError> {
    let text = arguments.get(1).and_then(Value::text);
    text.map(|text| text.into_owned())
        .ok_or(EvaluationError("a text is wanted"))
}

fn replaced(text: &[u8], arguments: &[Value], work: &WorkBudget) -> Result<Vec<u8>, EvaluationError> {
    let by = arguments.get(2).and_then(Value::text);
    let by = by.ok_or(EvaluationError("a text is wanted"))?;
    let most = arguments.get(3).and_then(Value::number).unwrap_or(f64::INFINITY);
    Matcher::new(text, &pattern(arguments)?, work)?.replace(&by, most)
}

/// What a pattern finds, or where. Of several values there is only the first.
fn found(name: &str, text: &[u8], arguments: &[Value], work: &WorkBudget) -> Result<Value, EvaluationError> {
    let pattern = pattern(arguments)?;
    let length = text.len();
    let from = arguments.get(2).and_then(Value::number).unwrap_or(1.0);
    let from = match from < 0.0 {
        true => length.saturating_sub(-from as usize),
        false => (from as usize).saturating_sub(1).min(length),
    };
    let place = |at: usize| Value::Number((at + 1) as f64);
    if name == "find" && arguments.get(3).is_some_and(Value::is_true) {
        // Once through the text, which may be a body, is never too much.
        work.allow_body(length);
        work.spend_bytes((length - from).saturating_mul(pattern.len()))?;
        let at = (from..=length).find(|at| text[*at..].starts_with(&pattern));
        return Ok(at.map_or(Value::Nil, place));
    }
    let mut matcher = Matcher::new(text, &pattern, work)?;
    match (matcher.find(from)?, name) {
        (None, _) => Ok(Value::Nil),
        (Some((start, _)), "find") => Ok(place(start)),
        (Some((start, end)), _) => matcher.first(start..end),
    }
}

/// The part between two places, counted from 1 or, below 0, from the end.
fn part(text: &[u8], from: f64, to: f64) -> &[u8] {
    let length = text.len() as f64;
    let from = if from < 0.0 {
        (length + from + 1.0).max(1.0)
    } else {
        from.max(1.0)
    };
    let to = if to < 0.0 {
        length + to + 1.0
    } else {
        to.min(length)
    };
    match from <= to {
        true => &text[from as usize - 1..to as usize],
        false => &[],
    }
}

fn concat(list: &Value, between: Option<&Value>) -> Result<Value, EvaluationError> {
    let Value::Json(serde_json::Value::Array(items)) = list else {
        return Err(EvaluationError("a list is wanted"));
    };
    let between = between.and_then(Value::text).unwrap_or_default();
    let mut out = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(&between);
        }
        Value::of(item).write(&mut out);
        if out.len() > MAX_TEXT {
            return Err(EvaluationError("a text is too long"));
        }
    }
    Ok(Value::Text(out))
}

/// A text in which what XML and HTML take for their own is escaped.
pub fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'\'' => out.extend_from_slice(b"&apos;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            other => out.push(*other),
        }
    }
    out
}
