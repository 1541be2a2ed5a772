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
    /// Items, or the names of fields, are in order; those of maps by one of their fields.
    Alphabetical(Option<String>),
    /// Exactly one of these fields is there, or at least one.
    OneOfFields(Vec<String>, bool),
    /// Characters, items or fields, or the number itself.
    Length(Option<f64>, Option<f64>),
    /// One of these.
    Enumeration(Vec<Value>),
    /// It keeps to a schema.
    Schema(Value),
}

const CASINGS: [(&str, &str); 7] = [
    ("flat", "[a-z][a-z0-9]*"),
    ("camel", "[a-z][a-z0-9]*(?:[A-Z0-9](?:[a-z0-9]+|$))*"),
    ("pascal", "[A-Z][a-z0-9]*(?:[A-Z0-9](?:[a-z0-9]+|$))*"),
    ("kebab", "[a-z][a-z0-9]*(?:-[a-z0-9]+)*"),
    ("cobol", "[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*"),
    ("snake", "[a-z][a-z0-9]*(?:_[a-z0-9]+)*"),
    ("macro", "[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*"),
];

/// A casing as a regular expression: of words without digits, and of several with a separator between them.
fn casing(name: &str, options: &Value) -> Result<Function, String> {
    let found = CASINGS.iter().find(|(known, _)| *known == name);
    let (name, word) = found.ok_or_else(|| {
        let names: Vec<&str> = CASINGS.iter().map(|(name, _)| *name).collect();
        format!("'casing' expects in 'type' one of {}", names.join(", "))
    })?;
    let mut word = (*word).to_owned();
    if options.get("disallowDigits") == Some(&Value::Bool(true)) {
        word = word.replace("0-9", "");
    }
    let separator = options.get("separator");
    let between = separator.and_then(|it| it.get("char")).and_then(Value::as_str);
    let whole = match between.map(::regex::escape) {
        None => word,
        Some(between) => {
            // The end of a word is not the end of the text.
            let word = word.replace("+|$)", "+|)");
            let may_lead = separator.and_then(|it| it.get("allowLeading")) == Some(&Value::Bool(true));
            let lead = if may_lead {
                format!("(?:{between})?")
            } else {
                String::new()
            };
            format!("{lead}{word}(?:{between}{word})*")
        }
    };
    let pattern = regex(&format!("^(?:{whole})$")).ok_or("'casing' is too large")?;
    Ok(Function::Casing(name, pattern))
}

/// `/pattern/flags`, as JavaScript writes it, or a pattern alone.
fn compiled(written: &str) -> Result<Regex, String> {
    let flagged = written.strip_prefix('/').and_then(|it| it.rsplit_once('/'));
    let is_flags = |it: &str| it.chars().all(|it| "gimsuy".contains(it));
    let found = match flagged.filter(|(_, flags)| is_flags(flags)) {
        Some((pattern, flags)) => {
            // The others say where to begin, or what is the case here anyway.
            let known: String = flags.chars().filter(|it| "ims".contains(*it)).collect();
            match known.is_empty() {
                true => regex(pattern),
                false => regex(&format!("(?{known}){pattern}")),
            }
        }
        None => regex(written),
    };
    found.ok_or_else(|| format!("'{written}' is not a valid regular expression"))
}

impl Function {
    /// Finds a function by its name.
    ///
    /// # Errors
    /// What is wrong with the name or the options.
    pub fn parse(name: &str, options: &Value) -> Result<Self, String> {
        let text = |field: &str| options.get(field).and_then(Value::as_str);
        let compiled = |field: &str| text(field).map(compiled).transpose();
        let names = || -> Vec<String> {
            let list = options.get("properties").and_then(Value::as_array);
            let names = list.into_iter().flatten().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
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
            "casing" => casing(text("type").unwrap_or_default(), options),
            "alphabetical" => Ok(Self::Alphabetical(text("keyedBy").map(str::to_owned))),
            "xor" | "or" => match names() {
                names if names.len() < 2 => Err(format!(
                    "'{name}' expects two names or more in 'properties' of its options"
                )),
                names => Ok(Self::OneOfFields(names, name == "xor")),
            },
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
                "no function is named '{name}': expected truthy, falsy, defined, undefined, pattern, casing, length, alphabetical, or, xor, enumeration or schema"
            )),
        }
    }

    /// The fault of a value; `None`: it has none.
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
            (Self::Alphabetical(field), value) => {
                let names: Vec<String> = match value {
                    Value::Object(map) => map.keys().cloned().collect(),
                    Value::Array(items) => items
                        .iter()
                        .map(|it| match field {
                            Some(field) => it.get(field).unwrap_or(&Value::Null),
                            None => it,
                        })
                        .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
                        .collect(),
                    _ => return None,
                };
                let pair = names.windows(2).find(|pair| pair[0] > pair[1])?;
                Some(format!(
                    "must be in order: \"{}\" comes before \"{}\"",
                    pair[1], pair[0]
                ))
            }
            (Self::OneOfFields(names, is_single), Value::Object(map)) => {
                let count = names.iter().filter(|name| map.contains_key(*name)).count();
                let list = names.join("\", \"");
                match (count, *is_single) {
                    (1, _) => None,
                    (0, false) => Some(format!("must have one of \"{list}\"")),
                    (_, false) => None,
                    (_, true) => Some(format!("must have exactly one of \"{list}\"")),
                }
            }
            (Self::Enumeration(values), value) => (!values.contains(value))
                .then(|| format!("must be equal to one of {}", Value::Array(values.clone()))),
            (Self::Schema(schema), value) => check(&Map::new(), schema, value).err(),
            _ => None,
        }
    }
}
