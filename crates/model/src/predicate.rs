//! Conditions over a call's variables, as values. Evaluating them is the work of `weir-plugin`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use std::borrow::Cow;

/// A condition. Its text form is a list: `[variable, operator, value]`, with a `"!"` before the operator to
/// negate it, or `[CONNECTIVE, condition, …]` with `AND`, `OR`, `!AND` or `!OR`. A list of conditions alone
/// means `AND`.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate {
    /// Every one holds; an empty list holds.
    All(Vec<Predicate>),
    /// At least one holds.
    Any(Vec<Predicate>),
    /// It does not hold.
    Not(Box<Predicate>),
    /// One variable is compared with a value.
    Compare(Comparison),
}

/// A variable compared with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The variable's name, such as `arg_page`, `http_x_tenant`, `remote_addr`.
    pub variable: String,
    /// How it is compared.
    pub operator: Operator,
    /// What it is compared with.
    pub value: Value,
}

/// How a variable is compared with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `==`: equal as texts, or as numbers if the value is a number.
    Equal,
    /// `~=`: not equal; an absent variable is not equal to anything.
    NotEqual,
    /// `>`, as numbers if both are numbers.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `~~`: a regular expression finds something.
    Matches,
    /// `~*`: the same, ignoring case.
    MatchesIgnoreCase,
    /// `in`: one of a list.
    In,
    /// `has`: a list that the variable holds has the value.
    Has,
    /// `ipmatch`: the address is in one of a list of networks.
    IpIn,
}

impl Operator {
    const WORDS: [(&'static str, Operator); 11] = [
        ("==", Self::Equal),
        ("~=", Self::NotEqual),
        (">", Self::Greater),
        (">=", Self::GreaterOrEqual),
        ("<", Self::Less),
        ("<=", Self::LessOrEqual),
        ("~~", Self::Matches),
        ("~*", Self::MatchesIgnoreCase),
        ("in", Self::In),
        ("has", Self::Has),
        ("ipmatch", Self::IpIn),
    ];

    /// Reads the operator's word in any case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(text, _)| text.eq_ignore_ascii_case(word))
            .map(|(_, operator)| *operator)
    }

    /// The operator's word.
    pub fn as_str(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, operator)| *operator == self)
            .map_or("==", |(text, _)| text)
    }
}

/// Conditions nest at most this deep.
const MAX_DEPTH: usize = 16;

impl Predicate {
    /// Reads the text form.
    ///
    /// # Errors
    /// Says in a sentence what was expected.
    pub fn parse(value: &Value) -> Result<Self, String> {
        Self::parse_at(value, 0)
    }

    fn parse_at(value: &Value, depth: usize) -> Result<Self, String> {
        if depth > MAX_DEPTH {
            return Err(format!("conditions nest deeper than {MAX_DEPTH}"));
        }
        let items = value
            .as_array()
            .ok_or_else(|| format!("expected a condition (a list), found {value}"))?;
        match items.first() {
            None => Ok(Self::All(Vec::new())),
            Some(Value::Array(_)) => Self::parse_list(items, depth).map(Self::All),
            Some(Value::String(word)) => match word.as_str() {
                "AND" => Self::parse_list(&items[1..], depth).map(Self::All),
                "OR" => Self::parse_list(&items[1..], depth).map(Self::Any),
                "!AND" => {
                    Self::parse_list(&items[1..], depth).map(|list| Self::Not(Box::new(Self::All(list))))
                }
                "!OR" => {
                    Self::parse_list(&items[1..], depth).map(|list| Self::Not(Box::new(Self::Any(list))))
                }
                variable => Self::parse_comparison(variable, &items[1..]),
            },
            Some(other) => Err(format!(
                "expected a variable's name or a condition, found {other}"
            )),
        }
    }

    fn parse_list(items: &[Value], depth: usize) -> Result<Vec<Self>, String> {
        items.iter().map(|item| Self::parse_at(item, depth + 1)).collect()
    }

    fn parse_comparison(variable: &str, rest: &[Value]) -> Result<Self, String> {
        let (negated, rest) = match rest.first() {
            Some(Value::String(word)) if word == "!" => (true, &rest[1..]),
            _ => (false, rest),
        };
        let [word, value] = rest else {
            return Err(format!("expected [variable, operator, value] for '{variable}'"));
        };
        let word = word
            .as_str()
            .ok_or_else(|| format!("expected an operator after '{variable}', found {word}"))?;
        let (negated, word) = match word.strip_prefix('!') {
            Some(word) => (!negated, word),
            None => (negated, word),
        };
        let operator = Operator::parse(word).ok_or_else(|| format!("invalid operator '{word}'"))?;
        let comparison = Self::Compare(Comparison {
            variable: variable.to_owned(),
            operator,
            value: value.clone(),
        });
        Ok(if negated {
            Self::Not(Box::new(comparison))
        } else {
            comparison
        })
    }

    /// The text form.
    pub fn to_value(&self) -> Value {
        match self {
            Self::All(list) => connective("AND", list),
            Self::Any(list) => connective("OR", list),
            Self::Not(inner) => match inner.as_ref() {
                Self::All(list) => connective("!AND", list),
                Self::Any(list) => connective("!OR", list),
                Self::Not(_) => connective("!AND", std::slice::from_ref(inner)),
                Self::Compare(it) => {
                    serde_json::json!([it.variable, "!", it.operator.as_str(), it.value])
                }
            },
            Self::Compare(it) => serde_json::json!([it.variable, it.operator.as_str(), it.value]),
        }
    }
}

fn connective(word: &str, list: &[Predicate]) -> Value {
    std::iter::once(Value::from(word))
        .chain(list.iter().map(Predicate::to_value))
        .collect()
}

impl Serialize for Predicate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Predicate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&Value::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl JsonSchema for Predicate {
    fn schema_name() -> Cow<'static, str> {
        "Predicate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "description": "[variable, operator, value], or [\"AND\" | \"OR\" | \"!AND\" | \"!OR\", condition, …]"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_forms_survive_a_round_trip() {
        for value in [
            json!([
                "AND",
                ["arg_a", "==", "1"],
                ["OR", ["http_x", "in", ["a"]], ["uri", "!", "~~", "^/x"]]
            ]),
            json!(["!OR", ["remote_addr", "ipmatch", ["10.0.0.0/8"]]]),
            json!(["AND"]),
        ] {
            assert_eq!(Predicate::parse(&value).expect("valid").to_value(), value);
        }
        assert_eq!(
            Predicate::parse(&json!([["a", "==", 1], ["b", "!", "in", [1]]]))
                .expect("valid")
                .to_value(),
            json!(["AND", ["a", "==", 1], ["b", "!", "in", [1]]])
        );
    }

    #[test]
    fn wrong_forms_are_refused() {
        for value in [
            json!("x"),
            json!([1]),
            json!(["a", "??", 1]),
            json!(["a", "=="]),
            json!(["AND", 3]),
        ] {
            assert!(Predicate::parse(&value).is_err(), "{value}");
        }
    }
}
