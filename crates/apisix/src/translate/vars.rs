//! Conditions over variables (`vars`, `_meta.filter`): APISIX's rules of writing them, and what they mean.

use crate::plugins::check_regex;
use ipnet::IpNet;
use serde_json::Value;
use std::net::IpAddr;
use weir_model::{Comparison, Operator, Predicate};
use weir_plugin::Variable;

/// Why a condition cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// It is wrong; APISIX's words.
    #[error("{0}")]
    Invalid(String),
    /// It is right, but Weir cannot serve it yet.
    #[error("{0} is not available in this version of Weir")]
    NotAvailable(String),
}

fn invalid<T>(words: impl Into<String>) -> Result<T, ConditionError> {
    Err(ConditionError::Invalid(words.into()))
}

/// Checks a condition as APISIX does when it takes it over.
///
/// # Errors
/// In APISIX's words.
pub fn check(rules: &[Value]) -> Result<(), String> {
    match compile(rules) {
        Err(ConditionError::Invalid(words)) => Err(words),
        Ok(_) | Err(ConditionError::NotAvailable(_)) => Ok(()),
    }
}

/// The condition; `None`: it always holds.
///
/// # Errors
/// See [`ConditionError`].
pub fn compile(rules: &[Value]) -> Result<Option<Predicate>, ConditionError> {
    let Some(first) = rules.first() else {
        return Ok(None);
    };
    match first {
        Value::Array(_) => {}
        Value::String(word) if is_connective(word) => {}
        // To the original, an empty map and an empty list are one.
        Value::Object(rule) if rule.is_empty() => return invalid("rule too short"),
        _ => return invalid("rule should be wrapped inside brackets"),
    }
    group(rules).map(Some)
}

/// As [`compile`], for the condition of a route: while routes are matched, captures of the path do not exist yet.
///
/// # Errors
/// See [`ConditionError`].
pub fn compile_for_matching(rules: &[Value]) -> Result<Option<Predicate>, ConditionError> {
    Ok(compile(rules)?.map(without_captures))
}

fn without_captures(condition: Predicate) -> Predicate {
    let list = |list: Vec<Predicate>| list.into_iter().map(without_captures).collect();
    match condition {
        Predicate::All(conditions) => Predicate::All(list(conditions)),
        Predicate::Any(conditions) => Predicate::Any(list(conditions)),
        Predicate::Not(inner) => Predicate::Not(Box::new(without_captures(*inner))),
        Predicate::Compare(it) if it.variable.starts_with("uri_param_") => match it.operator {
            Operator::NotEqual if !it.value.is_null() => always(),
            Operator::Equal if it.value.is_null() => always(),
            _ => never(),
        },
        Predicate::Compare(_) => condition,
    }
}

fn always() -> Predicate {
    Predicate::All(Vec::new())
}

fn never() -> Predicate {
    Predicate::Any(Vec::new())
}

fn is_connective(word: &str) -> bool {
    ["AND", "OR", "!AND", "!OR"]
        .iter()
        .any(|connective| word.eq_ignore_ascii_case(connective))
}

/// A list of conditions, or a connective with its conditions, or a comparison.
fn group(rules: &[Value]) -> Result<Predicate, ConditionError> {
    let conditions = |rules: &[Value]| -> Result<Vec<Predicate>, ConditionError> {
        rules
            .iter()
            .map(|rule| match rule {
                Value::Array(rule) if !rule.is_empty() => group(rule),
                _ => invalid("rule too short"),
            })
            .collect()
    };
    let word = match rules.first() {
        Some(Value::Array(_)) => return conditions(rules).map(Predicate::All),
        Some(Value::String(word)) => word,
        _ => return invalid("invalid expression"),
    };
    if !is_connective(word) {
        return comparison(word, &rules[1..]);
    }
    if rules.len() <= 2 {
        return invalid("rule too short");
    }
    let conditions = conditions(&rules[1..])?;
    Ok(match word.to_ascii_uppercase().as_str() {
        "AND" => Predicate::All(conditions),
        "OR" => Predicate::Any(conditions),
        "!AND" => Predicate::Not(Box::new(Predicate::All(conditions))),
        _ => Predicate::Not(Box::new(Predicate::Any(conditions))),
    })
}

/// Reads what follows a variable: an operator and a value, with `!` before them to negate, or a value alone to be equal
/// to. Null values have been taken for absent by the time this is called only within maps, so they stand here.
fn comparison(variable: &str, rest: &[Value]) -> Result<Predicate, ConditionError> {
    let (negated, word, value) = match rest {
        [Value::String(not), word, value] if not == "!" => (true, word, Some(value)),
        [_, _, _] => return invalid("bad 'not' expression"),
        [word, value, ..] => (false, word, Some(value)),
        [word] => (false, word, None),
        [] => return invalid("invalid expression"),
    };
    let word = match word {
        Value::String(word) => word.to_ascii_lowercase(),
        Value::Number(number) => number.to_string(),
        _ => return invalid("invalid expression"),
    };
    let condition = match (Operator::parse(&word), value) {
        (Some(operator), Some(value)) => compare(variable, operator, value)?,
        (Some(operator), None) => compare(variable, operator, &Value::Null)?,
        (None, None) => compare(variable, Operator::Equal, &Value::from(word))?,
        (None, Some(_)) => return invalid(format!("invalid operator '{word}'")),
    };
    Ok(if negated {
        Predicate::Not(Box::new(condition))
    } else {
        condition
    })
}

fn compare(variable: &str, operator: Operator, value: &Value) -> Result<Predicate, ConditionError> {
    let found = Variable::parse(variable);
    if variable.starts_with("post_arg.") && found == Variable::Unknown {
        return Err(ConditionError::NotAvailable(format!(
            "the path in the variable \"{variable}\""
        )));
    }
    let value = match operator {
        Operator::IpIn => networks(value)?,
        _ => value.clone(),
    };
    let is_text = !matches!(found, Variable::PostArg(_) | Variable::GraphqlRootFields);
    if let Some(constant) = constant(operator, &value, is_text)? {
        return Ok(constant);
    }
    Ok(Predicate::Compare(Comparison {
        variable: variable.to_owned(),
        operator,
        value,
    }))
}

/// The outcome of a comparison that does not depend on the variable: nothing is equal to a list, and if the
/// variable's value is a text, nothing but texts and numbers.
fn constant(operator: Operator, value: &Value, is_text: bool) -> Result<Option<Predicate>, ConditionError> {
    let is_number = |value: &Value| {
        value.is_number()
            || value
                .as_str()
                .is_some_and(|text| text.trim().parse::<f64>().is_ok())
    };
    Ok(match (operator, value) {
        (Operator::Equal, Value::Array(_) | Value::Object(_)) => Some(never()),
        (Operator::NotEqual, Value::Array(_) | Value::Object(_)) => Some(always()),
        (Operator::Equal, Value::Bool(_)) if is_text => Some(never()),
        (Operator::NotEqual, Value::Bool(_)) if is_text => Some(always()),
        (Operator::Matches | Operator::MatchesIgnoreCase, Value::String(pattern)) => {
            match check_regex(pattern) {
                Ok(()) => None,
                // A pattern that cannot be read finds nothing.
                Err(None) => Some(never()),
                Err(Some(what)) => return Err(ConditionError::NotAvailable(what.to_owned())),
            }
        }
        (Operator::Matches | Operator::MatchesIgnoreCase, Value::Number(_)) => None,
        (Operator::Matches | Operator::MatchesIgnoreCase, _) => Some(never()),
        (Operator::Has, _) if is_text => Some(never()),
        (Operator::In, Value::Array(_)) => None,
        (Operator::In, _) => Some(never()),
        (Operator::Greater | Operator::GreaterOrEqual | Operator::Less | Operator::LessOrEqual, value)
            if !is_number(value) =>
        {
            Some(never())
        }
        _ => None,
    })
}

fn networks(value: &Value) -> Result<Value, ConditionError> {
    let items = match value {
        Value::Array(items) if !items.is_empty() => items.clone(),
        Value::String(text) if !text.is_empty() => vec![value.clone()],
        _ => return invalid("invalid ip address"),
    };
    for item in &items {
        let text = item.as_str().unwrap_or_default();
        if text.parse::<IpAddr>().is_err() && text.parse::<IpNet>().is_err() {
            return invalid(format!("invalid ip address: {text}"));
        }
    }
    Ok(Value::Array(items))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compiled(rules: &Value) -> Result<Option<Value>, ConditionError> {
        let rules = rules.as_array().expect("a list");
        compile(rules).map(|condition| condition.map(|condition| condition.to_value()))
    }

    #[test]
    fn conditions_compile() {
        for (rules, wanted) in [
            (json!([]), None),
            (
                json!([["arg_a", "==", "1"]]),
                Some(json!(["AND", ["arg_a", "==", "1"]])),
            ),
            (
                json!([["arg_a", "1"]]),
                Some(json!(["AND", ["arg_a", "==", "1"]])),
            ),
            (
                json!(["or", ["a", "!", "IN", ["x"]], [["b", ">", 1], ["c", "<", "2"]]]),
                Some(json!([
                    "OR",
                    ["a", "!", "in", ["x"]],
                    ["AND", ["b", ">", 1], ["c", "<", "2"]]
                ])),
            ),
            (
                json!([["remote_addr", "ipmatch", "10.0.0.0/8"]]),
                Some(json!(["AND", ["remote_addr", "ipmatch", ["10.0.0.0/8"]]])),
            ),
            (json!([["a", "~~", "("]]), Some(json!(["AND", ["OR"]]))),
            (json!([["a", "in", "x"]]), Some(json!(["AND", ["OR"]]))),
            (json!([["a", ">", "x"]]), Some(json!(["AND", ["OR"]]))),
            (
                json!([["a", "==", null]]),
                Some(json!(["AND", ["a", "==", null]])),
            ),
            (json!([["a", "==", true]]), Some(json!(["AND", ["OR"]]))),
            (json!([["a", "has", "x"]]), Some(json!(["AND", ["OR"]]))),
            (
                json!([["post_arg.a", "==", true], ["post_arg.a[*].b", "has", "x"]]),
                Some(json!([
                    "AND",
                    ["post_arg.a", "==", true],
                    ["post_arg.a[*].b", "has", "x"]
                ])),
            ),
            (
                json!([["graphql_root_fields", "HAS", "x"]]),
                Some(json!(["AND", ["graphql_root_fields", "has", "x"]])),
            ),
        ] {
            assert_eq!(compiled(&rules), Ok(wanted), "{rules}");
        }
    }

    #[test]
    fn wrong_conditions_are_reported() {
        let invalid = |words: &str| ConditionError::Invalid(words.to_owned());
        for (rules, fault) in [
            (json!([["a", "===", "1"]]), invalid("invalid operator '==='")),
            (json!([["a"]]), invalid("invalid expression")),
            (json!([["a", "x", "==", "1"]]), invalid("bad 'not' expression")),
            (
                json!(["a", "==", "1"]),
                invalid("rule should be wrapped inside brackets"),
            ),
            (json!(["AND", ["a", "==", "1"]]), invalid("rule too short")),
            (json!([["a", "ipmatch", []]]), invalid("invalid ip address")),
            (json!([["a", "ipmatch", ["x"]]]), invalid("invalid ip address: x")),
            (
                json!([["post_arg.x[?(@.y)]", "has", "1"]]),
                ConditionError::NotAvailable("the path in the variable \"post_arg.x[?(@.y)]\"".to_owned()),
            ),
            (
                json!([["a", "~~", "(?=x)"]]),
                ConditionError::NotAvailable("look-around in a regular expression".to_owned()),
            ),
        ] {
            assert_eq!(compiled(&rules), Err(fault), "{rules}");
        }
    }

    #[test]
    fn captures_do_not_exist_while_routes_are_matched() {
        for (rules, wanted) in [
            (json!([["uri_param_id", "==", "7"]]), json!(["AND", ["OR"]])),
            (json!([["uri_param_id", "!", "==", "7"]]), json!(["AND", ["!OR"]])),
            (json!([["uri_param_id", "~=", "7"]]), json!(["AND", ["AND"]])),
        ] {
            let condition = compile_for_matching(rules.as_array().expect("a list"));
            assert_eq!(condition.expect("valid").expect("some").to_value(), wanted);
        }
    }
}
