//! Expressions in templates: the part of Lua's expressions that templates are written in, without statements and
//! without function bodies.
//!
//! Literals, names, `.name`, `[…]`, calls of a few functions, `and`, `or`, `not`, comparisons, `..`, arithmetic and `#`.
//! Evaluation takes bounded time and memory: there are no loops, and texts have a greatest length.

mod builtin;
mod eval;
mod format;
mod parse;
mod pattern;
mod value;

pub use eval::{Evaluation, Scope};
pub use parse::Expression;
pub use value::{EvaluationError, Value};

use weir_plugin::{Exchange, WorkBudget};

/// A text in which `$(…)` stands for an expression.
#[derive(Debug)]
pub struct Interpolated(Vec<Segment>);

#[derive(Debug)]
enum Segment {
    Text(Vec<u8>),
    Expression(Expression),
}

impl Interpolated {
    /// Reads a template.
    ///
    /// # Errors
    /// Says what cannot be read in which expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("$(") {
            if start > 0 {
                parts.push(Segment::Text(rest.as_bytes()[..start].to_vec()));
            }
            let behind = &rest[start + 2..];
            let Some(length) = parse::closing(behind) else {
                if has_closing(behind) {
                    return Err(format!("'$({behind}' has no closing quote"));
                }
                // What nothing closes is a text like any other.
                parts.push(Segment::Text(b"$(".to_vec()));
                rest = behind;
                continue;
            };
            parts.push(Segment::Expression(Expression::parse(&behind[..length])?));
            rest = &behind[length + 1..];
        }
        if !rest.is_empty() {
            parts.push(Segment::Text(rest.as_bytes().to_vec()));
        }
        Ok(Self(parts))
    }

    /// Writes the text for this call behind what `out` holds.
    ///
    /// # Errors
    /// When an expression cannot be evaluated, such as one that looks into nothing.
    pub fn render(&self, scope: &dyn Scope, out: &mut Vec<u8>) -> Result<(), EvaluationError> {
        for part in &self.0 {
            match part {
                Segment::Text(text) => out.extend_from_slice(text),
                Segment::Expression(expression) => {
                    let value = Evaluation::new(scope).of(expression)?;
                    value.write(out);
                    scope.work().spend(value.weight())?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a `)` closes what was opened before this text, quotes aside.
fn has_closing(text: &str) -> bool {
    let mut depth = 1usize;
    text.bytes().any(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

/// What expressions in rewrites of requests know: `headers`, `query_params`, `uri_captures` and `shared`.
pub struct RequestScope<'x>(pub &'x Exchange);

impl Scope for RequestScope<'_> {
    fn work(&self) -> &WorkBudget {
        &self.0.request.work
    }

    fn name(&self, name: &str) -> Value {
        match name {
            "headers" | "query_params" | "uri_captures" => Value::Table(match name {
                "headers" => "headers",
                "query_params" => "query_params",
                _ => "uri_captures",
            }),
            "shared" => Value::Table("shared"),
            "type" => Value::Function("type"),
            _ => Value::Nil,
        }
    }

    fn member(&self, table: &str, key: &Value) -> Value {
        let name = key.text().unwrap_or_default();
        let request = &self.0.request;
        match table {
            "headers" => {
                let mut values = request.headers.get_all(&name).map(<[u8]>::to_vec).peekable();
                if values.peek().is_some() {
                    return join_values(values);
                }
                // Names are written as they are in Lua, too.
                let name: Vec<u8> = name
                    .iter()
                    .map(|byte| if *byte == b'_' { b'-' } else { *byte })
                    .collect();
                join_values(request.headers.get_all(&name).map(<[u8]>::to_vec))
            }
            "query_params" => {
                let query = request.query.as_deref().unwrap_or_default();
                let pairs = weir_plugin::uri::query_pairs(query);
                let mut values = pairs
                    .filter(|(key, _)| weir_plugin::uri::decode_form(key).as_ref() == name.as_ref())
                    .map(|(_, value)| value.map(|value| weir_plugin::uri::decode_form(value).into_owned()))
                    .peekable();
                match values.peek() {
                    Some(None) => Value::Bool(true),
                    _ => join_values(values.flatten()),
                }
            }
            "uri_captures" => {
                let mut captures = self.0.captures.iter();
                let found = captures.find(|(capture, _)| capture.as_bytes() == name.as_ref());
                found.map_or(Value::Nil, |(_, value)| {
                    Value::Text(weir_plugin::uri::unescape(value).into_owned())
                })
            }
            _ => Value::Nil,
        }
    }
}

/// The value of what may come several times: the first and the others in one text.
fn join_values(values: impl Iterator<Item = Vec<u8>>) -> Value {
    let all: Vec<Vec<u8>> = values.collect();
    match all.len() {
        0 => Value::Nil,
        _ => Value::Text(all.join(&b", "[..])),
    }
}

#[cfg(test)]
mod tests;
