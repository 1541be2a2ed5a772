//! Conditions: [`Predicate`]s made ready to be evaluated for many calls.

use crate::exchange::Exchange;
use crate::line_end::newline_tolerant;
use crate::variable::{Variable, VariableValue, scalar_text};
use ipnet::IpNet;
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;
use std::cmp::Ordering;
use std::net::IpAddr;
use weir_model::{Comparison, Operator, Predicate};

/// Texts up to so many bytes are compared without an account of the work.
const SHORT: usize = 256;

/// A compiled [`Predicate`].
#[derive(Debug, Clone)]
pub enum Condition {
    /// Every one holds.
    All(Vec<Condition>),
    /// At least one holds.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// A test on a variable.
    Test(Variable, Test),
}

/// What a variable's value is tested for.
#[derive(Debug, Clone)]
pub enum Test {
    /// Equal to a text.
    Equal(Vec<u8>),
    /// Equal to a number.
    EqualNumber(f64),
    /// Equal to a truth value, or to its word.
    EqualBool(bool),
    /// Absent.
    Absent,
    /// There and different from a text, or absent.
    NotEqual(Box<Test>),
    /// Compares as numbers if the bound is a number, otherwise as texts.
    Order {
        /// The order of value and bound for which the test holds.
        wanted: Ordering,
        /// Whether it holds for equal ones too.
        or_equal: bool,
        /// The bound.
        bound: Bound,
    },
    /// A regular expression finds something.
    Matches(Regex),
    /// One of these values. A text is never equal to a number.
    In(Vec<Value>),
    /// A list in which this value is.
    Has(Value),
    /// An address in one of these networks.
    IpIn(Vec<IpNet>),
    /// Never holds.
    Never,
}

/// A bound of an ordering.
#[derive(Debug, Clone)]
pub enum Bound {
    /// A number; the test fails for values that are not numbers.
    Number(f64),
    /// A text, compared by bytes.
    Text(Vec<u8>),
}

impl Condition {
    /// Compiles a predicate.
    ///
    /// # Errors
    /// A sentence about a regular expression or a network that cannot be read.
    pub fn compile(predicate: &Predicate) -> Result<Self, String> {
        let list = |list: &[Predicate]| list.iter().map(Self::compile).collect::<Result<Vec<_>, _>>();
        Ok(match predicate {
            Predicate::All(predicates) => Self::All(list(predicates)?),
            Predicate::Any(predicates) => Self::Any(list(predicates)?),
            Predicate::Not(inner) => Self::Not(Box::new(Self::compile(inner)?)),
            Predicate::Compare(comparison) => {
                Self::Test(Variable::parse(&comparison.variable), Test::compile(comparison)?)
            }
        })
    }

    /// Whether it holds for this call.
    pub fn holds(&self, exchange: &Exchange) -> bool {
        match self {
            Self::All(list) => list.iter().all(|condition| condition.holds(exchange)),
            Self::Any(list) => list.iter().any(|condition| condition.holds(exchange)),
            Self::Not(inner) => !inner.holds(exchange),
            Self::Test(variable, test) => {
                if let Some(holds) = test.holds_for_client(variable, exchange) {
                    return holds;
                }
                let value = variable.find(exchange);
                let length = match &value {
                    Some(VariableValue::Text(text)) => text.len(),
                    Some(VariableValue::Json(Value::String(text))) => text.len(),
                    _ => 0,
                };
                if length > SHORT && exchange.request.work.spend_bytes(length).is_err() {
                    return false;
                }
                test.holds(value.as_ref())
            }
        }
    }

    /// Whether any of its variables is in the request's body.
    pub fn needs_body(&self) -> bool {
        match self {
            Self::All(list) | Self::Any(list) => list.iter().any(Self::needs_body),
            Self::Not(inner) => inner.needs_body(),
            Self::Test(variable, _) => variable.needs_body(),
        }
    }

    /// Whether it cannot be decided for this call before the request's body has been read. What comes before
    /// decides mostly.
    pub fn awaits_body(&self, exchange: &Exchange) -> bool {
        // The first that waits, unless one before it has decided.
        let waits = |list: &[Self], deciding: bool| {
            list.iter()
                .find_map(|condition| match condition.awaits_body(exchange) {
                    true => Some(true),
                    false => (condition.holds(exchange) == deciding).then_some(false),
                })
                .unwrap_or(false)
        };
        match self {
            Self::All(list) => waits(list, false),
            Self::Any(list) => waits(list, true),
            Self::Not(inner) => inner.awaits_body(exchange),
            Self::Test(variable, _) => variable.awaits_body(&exchange.request),
        }
    }
}

impl Test {
    /// Whether the client's address passes, without its text.
    fn holds_for_client(&self, variable: &Variable, exchange: &Exchange) -> Option<bool> {
        match (variable, self) {
            (Variable::RemoteAddr, Self::IpIn(networks)) => {
                let client = exchange.request.client;
                Some(networks.iter().any(|network| network.contains(&client)))
            }
            _ => None,
        }
    }

    fn compile(comparison: &Comparison) -> Result<Self, String> {
        let value = &comparison.value;
        Ok(match comparison.operator {
            Operator::Equal => Self::equal(value),
            Operator::NotEqual => Self::NotEqual(Box::new(Self::equal(value))),
            Operator::Greater => Self::order(Ordering::Greater, false, value),
            Operator::GreaterOrEqual => Self::order(Ordering::Greater, true, value),
            Operator::Less => Self::order(Ordering::Less, false, value),
            Operator::LessOrEqual => Self::order(Ordering::Less, true, value),
            Operator::Matches => Self::Matches(regex(value, false)?),
            Operator::MatchesIgnoreCase => Self::Matches(regex(value, true)?),
            Operator::In => match value {
                Value::Array(items) => Self::In(items.clone()),
                _ => return Err(format!("expected a list after 'in', found {value}")),
            },
            Operator::Has => match value {
                Value::Null => Self::Never,
                value => Self::Has(value.clone()),
            },
            Operator::IpIn => Self::IpIn(networks(value)?),
        })
    }

    fn equal(value: &Value) -> Self {
        match value {
            Value::Null => Self::Absent,
            Value::Number(number) => number.as_f64().map_or(Self::Never, Self::EqualNumber),
            Value::String(text) => Self::Equal(to_bytes(text)),
            Value::Bool(value) => Self::EqualBool(*value),
            other => Self::Equal(to_bytes(&other.to_string())),
        }
    }

    fn order(wanted: Ordering, or_equal: bool, value: &Value) -> Self {
        let number = value
            .as_f64()
            .or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
        let bound = match (number, value) {
            (Some(number), _) => Bound::Number(number),
            (None, Value::String(text)) => Bound::Text(to_bytes(text)),
            (None, _) => return Self::Never,
        };
        Self::Order {
            wanted,
            or_equal,
            bound,
        }
    }

    /// Whether the test holds for this value.
    fn holds(&self, value: Option<&VariableValue<'_>>) -> bool {
        match (self, value) {
            (Self::NotEqual(inner), value) => !inner.holds(value),
            (Self::Absent, None) => true,
            (_, None) => false,
            (_, Some(VariableValue::Text(text))) => self.holds_for_text(text),
            (_, Some(VariableValue::Json(Value::String(text)))) => self.holds_for_text(text.as_bytes()),
            (_, Some(VariableValue::Json(Value::Array(items)))) => self.holds_for_list(items.iter()),
            (_, Some(VariableValue::Json(value))) => self.holds_for_json(value),
            (_, Some(VariableValue::List(items))) => self.holds_for_list(items.iter().copied()),
        }
    }

    fn holds_for_list<'v>(&self, mut items: impl Iterator<Item = &'v Value>) -> bool {
        match self {
            Self::Has(wanted) => items.any(|item| is_same(item, wanted)),
            _ => false,
        }
    }

    /// For what is neither a text nor a list. Numbers are compared as such, and are equal to no text.
    fn holds_for_json(&self, value: &Value) -> bool {
        match self {
            Self::EqualNumber(number) => value.as_f64() == Some(*number),
            Self::EqualBool(wanted) => value.as_bool() == Some(*wanted),
            Self::In(wanted) => wanted.iter().any(|wanted| is_same(value, wanted)),
            Self::Order { .. } | Self::Matches(_) if value.is_number() => {
                scalar_text(value).is_some_and(|text| self.holds_for_text(&text))
            }
            _ => false,
        }
    }

    fn holds_for_text(&self, value: &[u8]) -> bool {
        match self {
            Self::Equal(text) => value == text,
            Self::EqualNumber(number) => parse_number(value) == Some(*number),
            Self::EqualBool(wanted) => value == if *wanted { &b"true"[..] } else { b"false" },
            Self::Absent | Self::Never | Self::Has(_) => false,
            Self::NotEqual(inner) => !inner.holds_for_text(value),
            Self::Order {
                wanted,
                or_equal,
                bound,
            } => {
                let order = match bound {
                    Bound::Number(bound) => parse_number(value).and_then(|value| value.partial_cmp(bound)),
                    Bound::Text(bound) => Some(value.cmp(bound)),
                };
                order.is_some_and(|order| order == *wanted || (*or_equal && order == Ordering::Equal))
            }
            Self::Matches(regex) => regex.is_match(value),
            Self::In(wanted) => wanted
                .iter()
                .filter_map(Value::as_str)
                .any(|text| text.as_bytes() == value),
            Self::IpIn(networks) => parse_text::<IpAddr>(value)
                .is_some_and(|address| networks.iter().any(|network| network.contains(&address))),
        }
    }
}

/// Whether two scalars are equal. Lists and objects are equal to nothing.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => one == other,
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Bool(one), Value::Bool(other)) => one == other,
        _ => false,
    }
}

fn to_bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn parse_text<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

fn parse_number(value: &[u8]) -> Option<f64> {
    parse_text(value)
}

fn regex(value: &Value, ignore_case: bool) -> Result<Regex, String> {
    let pattern = value
        .as_str()
        .ok_or_else(|| format!("expected a regular expression, found {value}"))?;
    RegexBuilder::new(&newline_tolerant(pattern))
        .case_insensitive(ignore_case)
        .unicode(false)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| format!("not a regular expression: {error}"))
}

fn networks(value: &Value) -> Result<Vec<IpNet>, String> {
    let items = value
        .as_array()
        .ok_or_else(|| format!("expected a list of networks, found {value}"))?;
    items
        .iter()
        .map(|item| {
            let text = item.as_str().unwrap_or_default();
            text.parse::<IpNet>()
                .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
                .map_err(|_| format!("expected an address or a network, found {item}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_clock;
    use serde_json::json;

    #[test]
    fn operators_hold_as_documented() {
        let mut exchange = Exchange::new(system_clock, 1);
        exchange.request.query = Some(b"n=10&s=abc&neg=-5".to_vec());
        exchange.request.client = "10.1.2.3".parse().expect("valid");
        for (condition, holds) in [
            (json!(["arg_s", "==", "abc"]), true),
            (json!(["arg_n", "==", 10]), true),
            (json!(["arg_n", "==", "10"]), true),
            (json!(["arg_x", "==", null]), true),
            (json!(["arg_x", "==", ""]), false),
            (json!(["arg_x", "~=", "a"]), true),
            (json!(["arg_s", "~=", "abc"]), false),
            (json!(["arg_n", ">", 9]), true),
            (json!(["arg_n", ">=", "10"]), true),
            (json!(["arg_neg", "<", 0]), true),
            (json!(["arg_s", ">", 9]), false),
            (json!(["arg_x", "<", 9]), false),
            (json!(["arg_s", "~~", "^[a-z]+$"]), true),
            (json!(["arg_s", "~~", "^[A-Z]+$"]), false),
            (json!(["arg_s", "~*", "^[A-Z]+$"]), true),
            (json!(["arg_s", "!", "~~", "x"]), true),
            (json!(["arg_s", "in", ["x", "abc"]]), true),
            (json!(["arg_n", "in", [10]]), false),
            (json!(["remote_addr", "ipmatch", ["10.0.0.0/8", "::1"]]), true),
            (json!(["!OR", ["arg_s", "==", "x"], ["arg_n", "==", 11]]), true),
        ] {
            let predicate = Predicate::parse(&condition).expect("valid");
            assert_eq!(
                Condition::compile(&predicate).expect("valid").holds(&exchange),
                holds,
                "{condition}"
            );
        }
    }

    #[test]
    fn unreadable_operands_are_refused() {
        for condition in [
            json!(["a", "~~", "("]),
            json!(["a", "ipmatch", ["x"]]),
            json!(["a", "in", 3]),
        ] {
            assert!(Condition::compile(&Predicate::parse(&condition).expect("valid")).is_err());
        }
    }
}
