//! Ordered changes of named values: arguments of queries, fields of forms, members of JSON objects.

mod forms;

pub use forms::{Multipart, Pairs};

use crate::expression::EvaluationError;
use crate::path_captures::RegexMatch;
use crate::text_template::{TemplateSyntax, TextTemplate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::Exchange;

/// One step. Steps run in their order, each on the result of the steps before it; within a step, names are processed in
/// alphabetical order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FieldEdit {
    /// Removes all values of these names.
    Remove(Vec<String>),
    /// Removes all values of other names than these.
    Keep(Vec<String>),
    /// Renames values: old name to new. Values that already had the new name are removed.
    Rename(BTreeMap<String, String>),
    /// Sets values if there is already one of the same name.
    Replace(BTreeMap<String, Value>),
    /// Adds values if there is none of the same name.
    Add(BTreeMap<String, Value>),
    /// Adds values to those of the same name; in JSON they form a list.
    Append(BTreeMap<String, Value>),
}

/// Named values that steps change.
pub trait Fields {
    /// Whether there is a value of this name (in JSON: another one than `false`).
    fn has(&self, name: &str) -> bool;
    /// Takes all values of this name out.
    fn remove(&mut self, name: &str);
    /// Takes out the values of all names but these.
    fn keep(&mut self, names: &[String]);
    /// Gives the values of a name another one; without any, those of the other name go.
    fn rename(&mut self, old: &str, new: &str);
    /// Replaces all values of a name by one value.
    fn set(&mut self, name: &str, value: &Value);
    /// Puts a value beside those of the same name. Says whether it can.
    fn append(&mut self, name: &str, value: &Value) -> bool;
}

/// Steps made ready for many calls.
#[derive(Debug, Default)]
pub struct FieldEdits(Vec<Step>);

#[derive(Debug)]
enum Step {
    Remove(String),
    Keep(Vec<String>),
    Rename(String, String),
    Replace(String, FieldValue),
    Add(String, FieldValue),
    Append(String, FieldValue),
}

#[derive(Debug)]
enum FieldValue {
    Fixed(Value),
    Text(TextTemplate),
}

impl FieldValue {
    fn of(&self, exchange: &Exchange) -> Result<Value, EvaluationError> {
        match self {
            Self::Fixed(value) => Ok(value.clone()),
            Self::Text(text) => {
                let mut memory = Vec::new();
                let text = text.value(exchange, &RegexMatch::default(), &mut memory)?;
                Ok(Value::String(String::from_utf8_lossy(text).into_owned()))
            }
        }
    }
}

impl FieldEdits {
    /// Makes steps ready; `dialect` says what stands for something else in texts.
    ///
    /// # Errors
    /// Expressions that cannot be read, with their place below `path`.
    pub fn compile(
        steps: &[FieldEdit],
        dialect: TemplateSyntax,
        path: &DocPath,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut made = Vec::new();
        let mut faults = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let mut values =
                |values: &BTreeMap<String, Value>, field: &str, make: fn(String, FieldValue) -> Step| {
                    for (name, value) in values {
                        let text = value
                            .as_str()
                            .map(|text| TextTemplate::parse(text, dialect))
                            .transpose();
                        match text {
                            Ok(None | Some(TextTemplate::Plain(_))) => {
                                made.push(make(name.clone(), FieldValue::Fixed(value.clone())))
                            }
                            Ok(Some(text)) => made.push(make(name.clone(), FieldValue::Text(text))),
                            Err(message) => {
                                let place = path.index(index).field(field).field(name);
                                faults.push(Diagnostic::error(place, message));
                            }
                        }
                    }
                };
            match step {
                FieldEdit::Keep(names) => made.push(Step::Keep(names.clone())),
                FieldEdit::Remove(names) => made.extend(names.iter().cloned().map(Step::Remove)),
                FieldEdit::Rename(names) => {
                    made.extend(
                        names
                            .iter()
                            .map(|(old, new)| Step::Rename(old.clone(), new.clone())),
                    );
                }
                FieldEdit::Replace(map) => values(map, "replace", Step::Replace),
                FieldEdit::Add(map) => values(map, "add", Step::Add),
                FieldEdit::Append(map) => values(map, "append", Step::Append),
            }
        }
        match faults.is_empty() {
            true => Ok(Self(made)),
            false => Err(faults),
        }
    }

    /// Whether there is nothing to do.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any text has a variable that is in the request's body.
    #[inline]
    pub fn need_body(&self) -> bool {
        self.0.iter().any(|step| match step {
            Step::Replace(_, value) | Step::Add(_, value) | Step::Append(_, value) => {
                matches!(value, FieldValue::Text(text) if text.needs_body())
            }
            Step::Remove(_) | Step::Keep(_) | Step::Rename(..) => false,
        })
    }

    /// Changes named values. Says whether anything may be another than it was.
    ///
    /// # Errors
    /// When an expression cannot be evaluated.
    pub fn apply(&self, fields: &mut dyn Fields, exchange: &Exchange) -> Result<bool, EvaluationError> {
        let mut changed = false;
        for step in &self.0 {
            changed |= match step {
                Step::Remove(name) => {
                    fields.remove(name);
                    true
                }
                Step::Keep(names) => {
                    fields.keep(names);
                    true
                }
                Step::Rename(old, new) => {
                    fields.rename(old, new);
                    true
                }
                Step::Replace(name, value) if fields.has(name) => {
                    fields.set(name, &value.of(exchange)?);
                    true
                }
                Step::Add(name, value) if !fields.has(name) => {
                    fields.set(name, &value.of(exchange)?);
                    true
                }
                Step::Append(name, value) => fields.append(name, &value.of(exchange)?),
                Step::Replace(..) | Step::Add(..) => false,
            };
        }
        Ok(changed)
    }
}

impl Fields for Map<String, Value> {
    fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| *value != Value::Bool(false))
    }

    fn remove(&mut self, name: &str) {
        self.shift_remove(name);
    }

    fn keep(&mut self, names: &[String]) {
        self.retain(|name, _| names.contains(name));
    }

    fn rename(&mut self, old: &str, new: &str) {
        match self.shift_remove(old) {
            Some(value) if old != new => drop(self.insert(new.to_owned(), value)),
            _ => drop(self.shift_remove(new)),
        }
    }

    fn set(&mut self, name: &str, value: &Value) {
        self.insert(name.to_owned(), value.clone());
    }

    fn append(&mut self, name: &str, value: &Value) -> bool {
        match self.get_mut(name) {
            Some(Value::Array(items)) => items.push(value.clone()),
            Some(first @ Value::String(_)) => *first = Value::Array(vec![first.take(), value.clone()]),
            Some(Value::Object(_)) => return false,
            _ => drop(self.insert(name.to_owned(), Value::Array(vec![value.clone()]))),
        }
        true
    }
}

/// A value as a text, for queries and forms.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
