//! Evaluating expressions over values of a call, within bounds. They are read elsewhere.

use super::builtin;
use super::parse::Expression;
use super::value::{EvaluationError, MAX_TEXT, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_plugin::WorkBudget;

/// What names in expressions stand for.
pub trait Scope {
    /// The JSON value of a name, if it need not be copied.
    fn json(&self, name: &str) -> Option<&serde_json::Value> {
        let _ = name;
        None
    }

    /// The members of the JSON map of a name, if they are shared and need not be copied.
    fn json_parts(&self, name: &str) -> Option<&BTreeMap<String, Arc<serde_json::Value>>> {
        let _ = name;
        None
    }

    /// The value of a name; nil if it has none.
    fn name(&self, name: &str) -> Value;

    /// The budget of the call.
    fn work(&self) -> &WorkBudget;

    /// A member of one of the scope's tables.
    fn member(&self, table: &str, key: &Value) -> Value;
}

/// One evaluation.
pub struct Evaluation<'s> {
    scope: &'s dyn Scope,
}

impl<'s> Evaluation<'s> {
    /// An evaluation that has done no work yet.
    pub fn new(scope: &'s dyn Scope) -> Self {
        Self { scope }
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// When it does with a value what cannot be done with it.
    pub fn of(&self, expression: &Expression) -> Result<Value, EvaluationError> {
        self.scope.work().spend(1)?;
        let value = self.evaluate(expression)?;
        // Texts, lists and maps are copied.
        self.scope.work().spend(value.weight())?;
        Ok(value)
    }

    fn evaluate(&self, expression: &Expression) -> Result<Value, EvaluationError> {
        Ok(match expression {
            Expression::Literal(value) => value.clone(),
            Expression::Name(name) => self.scope.name(name),
            Expression::Member(of, key) => self.member(of, key)?,
            Expression::List(members) => list(self.all(members)?),
            Expression::Call(function, arguments) => {
                let Value::Function(name) = self.of(function)? else {
                    return Err(EvaluationError("a value is called that is not a function"));
                };
                builtin::call(name, &self.all(arguments)?, self.scope.work())?
            }
            Expression::Method(of, name, arguments) => {
                let mut values = vec![self.of(of)?];
                if !matches!(values[0], Value::Text(_)) {
                    return Err(EvaluationError("a method is called on what is not a text"));
                }
                values.extend(self.all(arguments)?);
                let name = builtin::of_texts(name).ok_or(EvaluationError("texts have no such method"))?;
                builtin::call(name, &values, self.scope.work())?
            }
            Expression::Unary(operator, of) => self.unary(operator, self.of(of)?)?,
            Expression::Binary(operator @ ("and" | "or"), left, right) => {
                let left = self.of(left)?;
                match left.is_true() == (*operator == "or") {
                    true => left,
                    false => self.of(right)?,
                }
            }
            Expression::Binary(operator, left, right) => binary(operator, &self.of(left)?, &self.of(right)?)?,
        })
    }

    fn all(&self, expressions: &[Expression]) -> Result<Vec<Value>, EvaluationError> {
        expressions.iter().map(|expression| self.of(expression)).collect()
    }

    fn member(&self, of: &Expression, key: &Expression) -> Result<Value, EvaluationError> {
        let key = self.of(key)?;
        // A member of a member of JSON: without copies of what lies between.
        if let Some(json) = self.json(of)? {
            return Ok(json_member(json, &key).map_or(Value::Nil, Value::of));
        }
        if let Some(parts) = self.parts(of) {
            return Ok(part(parts, &key).map_or(Value::Nil, Value::of));
        }
        match self.of(of)? {
            Value::Table(table @ ("string" | "math" | "table")) => {
                let name = key.text().unwrap_or_default();
                let name = std::str::from_utf8(&name).unwrap_or_default();
                Ok(builtin::of_library(table, name).map_or(Value::Nil, Value::Function))
            }
            Value::Table(table) => Ok(self.scope.member(table, &key)),
            Value::Json(json) => Ok(json_member(&json, &key).map_or(Value::Nil, Value::of)),
            Value::Text(_) => Ok(Value::Nil),
            _ => Err(EvaluationError("a member of nothing is asked for")),
        }
    }

    /// The list or map of an expression, if it need not be computed.
    fn json(&self, expression: &Expression) -> Result<Option<&'s serde_json::Value>, EvaluationError> {
        let found = match expression {
            Expression::Name(name) => self.scope.json(name),
            Expression::Member(of, key) => match (self.json(of)?, self.parts(of)) {
                (Some(json), _) => json_member(json, &self.of(key)?),
                (None, Some(parts)) => part(parts, &self.of(key)?),
                (None, None) => None,
            },
            _ => None,
        };
        Ok(found.filter(|json| json.is_array() || json.is_object()))
    }

    /// The members of the map of an expression, if they are shared.
    fn parts(&self, expression: &Expression) -> Option<&'s BTreeMap<String, Arc<serde_json::Value>>> {
        match expression {
            Expression::Name(name) => self.scope.json_parts(name),
            _ => None,
        }
    }

    fn unary(&self, operator: &str, value: Value) -> Result<Value, EvaluationError> {
        Ok(match (operator, &value) {
            ("not", value) => Value::Bool(!value.is_true()),
            ("#", Value::Text(text)) => Value::Number(text.len() as f64),
            ("#", Value::Json(serde_json::Value::Array(items))) => Value::Number(items.len() as f64),
            ("#", Value::Json(_)) => Value::Number(0.0),
            ("-", value) => Value::Number(
                -value
                    .number()
                    .ok_or(EvaluationError("arithmetic on what is not a valid number"))?,
            ),
            _ => return Err(EvaluationError("the length of what has none")),
        })
    }
}

/// A new list. An empty one is a map, as which Lua's empty table is written.
fn list(members: Vec<Value>) -> Value {
    if members.is_empty() {
        return Value::Json(serde_json::Value::Object(serde_json::Map::new()));
    }
    let members = members.into_iter().map(|member| match member {
        Value::Json(json) => json,
        Value::Bool(truth) => truth.into(),
        Value::Number(number) => number.into(),
        Value::Text(text) => String::from_utf8_lossy(&text).into_owned().into(),
        Value::Nil | Value::Table(_) | Value::Function(_) => serde_json::Value::Null,
    });
    Value::Json(serde_json::Value::Array(members.collect()))
}

/// A member of a map whose members are shared.
fn part<'p>(
    parts: &'p BTreeMap<String, Arc<serde_json::Value>>,
    key: &Value,
) -> Option<&'p serde_json::Value> {
    parts
        .get(std::str::from_utf8(&key.text()?).ok()?)
        .map(Arc::as_ref)
}

/// A member of a list, by an index from 1, or of a map.
pub(super) fn json_member<'v>(json: &'v serde_json::Value, key: &Value) -> Option<&'v serde_json::Value> {
    match (json, key) {
        (serde_json::Value::Array(items), key) => {
            let index = key
                .number()
                .filter(|index| *index >= 1.0 && index.fract() == 0.0)?;
            items.get(index as usize - 1)
        }
        (serde_json::Value::Object(map), key) => map.get(std::str::from_utf8(&key.text()?).ok()?),
        _ => None,
    }
}

fn binary(operator: &str, left: &Value, right: &Value) -> Result<Value, EvaluationError> {
    match operator {
        "==" => return Ok(Value::Bool(left == right)),
        "~=" => return Ok(Value::Bool(left != right)),
        ".." => {
            let fault = EvaluationError("what is not a text cannot be joined with a text");
            let (left, right) = (left.text().ok_or(fault)?, right.text().ok_or(fault)?);
            if left.len() + right.len() > MAX_TEXT {
                return Err(EvaluationError("a text is too long"));
            }
            return Ok(Value::Text([left, right].concat()));
        }
        "<" | ">" | "<=" | ">=" => return order(operator, left, right),
        _ => {}
    }
    let fault = EvaluationError("arithmetic on what is not a valid number");
    let (left, right) = (left.number().ok_or(fault)?, right.number().ok_or(fault)?);
    Ok(Value::Number(match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        "%" => left - (left / right).floor() * right,
        _ => left.powf(right),
    }))
}

fn order(operator: &str, left: &Value, right: &Value) -> Result<Value, EvaluationError> {
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.partial_cmp(right),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        _ => return Err(EvaluationError("values that have no order are compared")),
    };
    Ok(Value::Bool(order.is_some_and(|order| match operator {
        "<" => order.is_lt(),
        ">" => order.is_gt(),
        "<=" => order.is_le(),
        _ => order.is_ge(),
    })))
}
