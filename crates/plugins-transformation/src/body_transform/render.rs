//! Filling templates in with what a call and its body hold, within bounds of work and size.

use super::decode;
use super::template::{Node, Template};
use serde_json::Value as Json;
use weir_plugin::{Exchange, Variable, WorkBudget};
use weir_plugins_shared::expression::{Evaluation, EvaluationError, Scope, Value};

/// The most bytes that a template makes.
const MAX_OUTPUT: usize = 64 << 20;

/// What is known of a call, found before its body is there.
pub(super) struct CallFacts {
    /// The arguments of the query.
    pub(super) args: Json,
    variables: Vec<(String, Option<Vec<u8>>)>,
}

impl CallFacts {
    /// The values that a template needs.
    pub(super) fn of(template: &Template, exchange: &Exchange) -> Self {
        let read = |name: &String| {
            let value = Variable::parse(name).read(exchange);
            (name.clone(), value.map(|value| value.into_owned()))
        };
        Self {
            args: decode::pairs(exchange.request.query.as_deref().unwrap_or_default()),
            variables: template.variables.iter().map(read).collect(),
        }
    }
}

/// The names that expressions in a template know.
struct Names<'n> {
    root: &'n Json,
    body: Option<&'n [u8]>,
    facts: &'n CallFacts,
    work: &'n WorkBudget,
    /// Names that statements have given values; the last one of a name counts.
    locals: Vec<(String, Value)>,
}

impl Scope for Names<'_> {
    fn work(&self) -> &WorkBudget {
        self.work
    }

    fn json(&self, name: &str) -> Option<&Json> {
        match self.locals.iter().rev().find(|(known, _)| known == name) {
            Some((_, Value::Json(json))) => Some(json),
            Some(_) => None,
            None if name == "context" => Some(self.root),
            None => self.root.get(name),
        }
    }

    fn name(&self, name: &str) -> Value {
        if let Some((_, value)) = self.locals.iter().rev().find(|(known, _)| known == name) {
            return value.clone();
        }
        match name {
            "_ctx" => Value::Table("_ctx"),
            "_body" => self.body.map_or(Value::Nil, |body| Value::Text(body.to_vec())),
            "_escape_json" => Value::Function("_escape_json"),
            "_escape_xml" => Value::Function("_escape_xml"),
            "context" => Value::of(self.root),
            _ => match self.root.get(name) {
                Some(member) => Value::of(member),
                None => match name {
                    "string" => Value::Table("string"),
                    "math" => Value::Table("math"),
                    "table" => Value::Table("table"),
                    "tostring" => Value::Function("tostring"),
                    "tonumber" => Value::Function("tonumber"),
                    "type" => Value::Function("type"),
                    _ => Value::Nil,
                },
            },
        }
    }

    fn member(&self, table: &str, key: &Value) -> Value {
        let name = key.text().unwrap_or_default();
        match table {
            "_ctx" if name.as_ref() == b"var" => Value::Table("_ctx.var"),
            "_ctx.var" => {
                let mut variables = self.facts.variables.iter();
                let found = variables.find(|(known, _)| known.as_bytes() == name.as_ref());
                found
                    .and_then(|(_, value)| value.clone())
                    .map_or(Value::Nil, Value::Text)
            }
            _ => Value::Nil,
        }
    }
}

/// Fills a template in.
///
/// # Errors
/// When an expression cannot be evaluated, or there is too much to do.
pub(super) fn render(
    template: &Template,
    root: &Json,
    body: Option<&[u8]>,
    facts: &CallFacts,
    work: &WorkBudget,
    out: &mut Vec<u8>,
) -> Result<(), EvaluationError> {
    let mut names = Names {
        root,
        body,
        facts,
        work,
        locals: Vec::new(),
    };
    write(&template.nodes, &mut names, out)
}

fn write(nodes: &[Node], names: &mut Names<'_>, out: &mut Vec<u8>) -> Result<(), EvaluationError> {
    let outer = names.locals.len();
    for node in nodes {
        if out.len() > MAX_OUTPUT {
            return Err(EvaluationError("a body is too long"));
        }
        names.work.spend(1)?;
        match node {
            Node::Text(text) => {
                names.work.spend(text.len() / 64)?;
                out.extend_from_slice(text.as_bytes());
            }
            Node::Value(expression, escaped) => {
                let value = Evaluation::new(names).of(expression)?;
                match (&value, escaped) {
                    (Value::Text(text), true) => escape(text, out),
                    _ => value.write(out),
                }
                names.work.spend(value.weight())?;
            }
            Node::Local(name, expression) => {
                let value = Evaluation::new(names).of(expression)?;
                names.locals.push((name.clone(), value));
            }
            Node::If(branches) => {
                for (test, nodes) in branches {
                    let taken = match test {
                        Some(test) => Evaluation::new(names).of(test)?.is_true(),
                        None => true,
                    };
                    if taken {
                        write(nodes, names, out)?;
                        break;
                    }
                }
            }
            Node::Each {
                key,
                value,
                of,
                is_any,
                nodes,
            } => {
                for (each_key, each) in members(Evaluation::new(names).of(of)?, *is_any)? {
                    let locals = [(key.clone(), each_key), (value.clone(), each)];
                    round(locals, nodes, names, out)?;
                }
            }
            Node::Count { name, bounds, nodes } => {
                let numbers = bounds.iter().map(|bound| {
                    let number = Evaluation::new(names).of(bound)?.number();
                    number.ok_or(EvaluationError("a loop has a bound that is not a valid number"))
                });
                let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
                let step = numbers.get(2).copied().unwrap_or(1.0);
                let mut at = numbers[0];
                while (step > 0.0 && at <= numbers[1]) || (step < 0.0 && at >= numbers[1]) {
                    round([(name.clone(), Value::Number(at))], nodes, names, out)?;
                    at += step;
                }
            }
        }
    }
    names.locals.truncate(outer);
    Ok(())
}

/// One round of a loop, with its own names.
fn round<const N: usize>(
    locals: [(String, Value); N],
    nodes: &[Node],
    names: &mut Names<'_>,
    out: &mut Vec<u8>,
) -> Result<(), EvaluationError> {
    names.work.spend(1)?;
    let outer = names.locals.len();
    names.locals.extend(locals);
    let written = write(nodes, names, out);
    names.locals.truncate(outer);
    written
}

/// The members of a list, or of a map too.
fn members(of: Value, is_any: bool) -> Result<Vec<(Value, Value)>, EvaluationError> {
    match of {
        Value::Json(Json::Array(items)) => {
            let numbered = items.iter().zip(1..);
            Ok(numbered
                .map(|(item, at)| (Value::Number(f64::from(at)), Value::of(item)))
                .collect())
        }
        Value::Json(Json::Object(map)) if is_any => {
            let named = map.iter();
            Ok(named
                .map(|(name, value)| (Value::Text(name.as_bytes().to_vec()), Value::of(value)))
                .collect())
        }
        Value::Json(_) => Ok(Vec::new()),
        _ => Err(EvaluationError("a loop needs a table")),
    }
}

/// Escapes what HTML takes for its own.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'/' => out.extend_from_slice(b"&#47;"),
            other => out.push(*other),
        }
    }
}
