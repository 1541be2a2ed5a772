//! The functions of severities files: what a custom rule demands of a value.

use super::check_schema::{check, regex};
use regex::Regex;
use serde_json::{Map, Value};

/// A function with its options, checked.
#[derive(Debug, Clone)]
pub enum Function {
    /// It is there, and not empty, 0 or false.
    Truthy,
    /// The opposite.
    Falsy,
    /// It is there.
    Defined,
    /// It is not there.
    Undefined,
    /// A text matches the first and does not match the second.
    Pattern(Option<Regex>, Option<Regex>),
    /// A text is written so.
    Casing(&'static str, Regex),
    /// Characters, items or fields, or the number itself.
    Length(Option<f64>, Option<f64>),
    /// One of these.
    Enumeration(Vec<Value>),
    /// It keeps to a schema.
    Schema(Value),
}

const CASINGS: [(&str, &str); 7] = [
    ("flat", "^[a-z][a-z0-9]*$"),
    ("camel", "^[a-z][a-z0-9]*(?:[A-Z0-9](?:[a-z0-9]+|$))*$"),
    ("pascal", "^[A-Z][a-z0-9]*(?:[A-Z0-9](?:[a-z0-9]+|$))*$"),
    ("kebab", "^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$"),
    ("cobol", "^[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*$"),
    ("snake", "^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$"),
    ("macro", "^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$"),
];

impl Function {
    /// Finds a function by its name.
    ///
    /// # Errors
    /// What is wrong with the name or the options.
    pub fn parse(name: &str, options: &Value) -> Result<Self, String> {
        let text = |field: &str| options.get(field).and_then(Value::as_str);
        let compiled = |field: &str| match text(field) {
            None => Ok(None),
            Some(written) => {
                let plain = written
                    .strip_prefix('/')
                    .and_then(|it| it.strip_suffix('/'))
                    .unwrap_or(written);
                regex(plain)
                    .map(Some)
                    .ok_or_else(|| format!("'{written}' is not a valid regular expression"))
            }
        };
        match name {
            "truthy" => Ok(Self::Truthy),
            "falsy" => Ok(Self::Falsy),
            "defined" => Ok(Self::Defined),
            "undefined" => Ok(Self::Undefined),
            "pattern" => match (compiled("match")?, compiled("notMatch")?) {
                (None, None) => Err("'pattern' expects 'match' or 'notMatch' in its options".to_owned()),
                (wanted, unwanted) => Ok(Self::Pattern(wanted, unwanted)),
            },
            "casing" => {
                let wanted = text("type").unwrap_or_default();
                let found = CASINGS.iter().find(|(name, _)| *name == wanted);
                let (name, pattern) = found.ok_or_else(|| {
                    let names: Vec<&str> = CASINGS.iter().map(|(name, _)| *name).collect();
                    format!("'casing' expects in 'type' one of {}", names.join(", "))
                })?;
                let pattern = regex(pattern).ok_or("'casing' is too large")?;
                Ok(Self::Casing(name, pattern))
            }
            "length" => {
                let bound = |field: &str| options.get(field).and_then(Value::as_f64);
                match (bound("min"), bound("max")) {
                    (None, None) => Err("'length' expects 'min' or 'max' in its options".to_owned()),
                    (min, max) => Ok(Self::Length(min, max)),
                }
            }
            "enumeration" => match options.get("values") {
                Some(Value::Array(values)) => Ok(Self::Enumeration(values.clone())),
                _ => Err("'enumeration' expects a list in 'values' of its options".to_owned()),
            },
            "schema" => match options.get("schema") {
                Some(schema) => Ok(Self::Schema(schema.clone())),
                None => Err("'schema' expects a schema in 'schema' of its options".to_owned()),
            },
            _ => Err(format!(
                "no function is named '{name}': expected truthy, falsy, defined, undefined, pattern, casing, length, enumeration or schema"
            )),
        }
    }

    /// What is wrong with a value; `None`: nothing.
    pub fn fault(&self, value: Option<&Value>) -> Option<String> {
        let is_truthy = match value {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Number(number)) => number.as_f64() != Some(0.0),
            Some(_) => true,
        };
        match self {
            Self::Truthy => (!is_truthy).then(|| "must be truthy".to_owned()),
            Self::Falsy => is_truthy.then(|| "must be falsy".to_owned()),
            Self::Defined => value.is_none().then(|| "must be defined".to_owned()),
            Self::Undefined => value.is_some().then(|| "must be undefined".to_owned()),
            _ => self.fault_of(value?),
        }
    }

    fn fault_of(&self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::Pattern(wanted, unwanted), Value::String(text)) => {
                if let Some(pattern) = wanted.as_ref().filter(|it| !it.is_match(text)) {
                    return Some(format!("must match the pattern \"{pattern}\""));
                }
                let pattern = unwanted.as_ref().filter(|it| it.is_match(text))?;
                Some(format!("must not match the pattern \"{pattern}\""))
            }
            (Self::Casing(name, pattern), Value::String(text)) => {
                (!text.is_empty() && !pattern.is_match(text)).then(|| format!("must be {name} case"))
            }
            (Self::Length(min, max), value) => {
                let length = match value {
                    Value::String(text) => text.chars().count() as f64,
                    Value::Array(items) => items.len() as f64,
                    Value::Object(map) => map.len() as f64,
                    Value::Number(number) => number.as_f64()?,
                    _ => return None,
                };
                if min.is_some_and(|min| length < min) {
                    return Some(format!("must be longer than {}", min.unwrap_or_default()));
                }
                max.filter(|max| length > *max)
                    .map(|max| format!("must be shorter than {max}"))
            }
            (Self::Enumeration(values), value) => (!values.contains(value))
                .then(|| format!("must be equal to one of {}", Value::Array(values.clone()))),
            (Self::Schema(schema), value) => check(&Map::new(), schema, value).err(),
            _ => None,
        }
    }
}
