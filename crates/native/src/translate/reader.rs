//! Reading parts of a document with what is wrong collected on the way.

use crate::messages::{reword, unknown_field};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use weir_model::{Diagnostic, DocPath, Severity};

/// The most findings of a document that are collected: an answer with all of them would be many times as long as the document.
const MOST: usize = 1_000;

/// Collects findings while a document is read, so that one run names them all.
#[derive(Default)]
pub(super) struct Reader {
    found: Vec<Diagnostic>,
    /// Whether one of them refuses the document.
    is_refused: bool,
    /// The maps with unknown fields.
    mistyped: HashSet<DocPath>,
}

impl Reader {
    pub fn error(&mut self, place: DocPath, message: impl Into<String>) {
        self.push(Diagnostic::error(place, message));
    }

    pub fn warning(&mut self, place: DocPath, message: impl Into<String>) {
        self.push(Diagnostic::warning(place, message));
    }

    fn push(&mut self, found: Diagnostic) {
        // What a map lacks may be what the unknown field in it is meant for.
        if self.mistyped.contains(&found.path) {
            return;
        }
        let refuses = found.severity != Severity::Warning;
        // The first that refuses the document counts, however many warnings there are.
        if self.found.len() < MOST || (refuses && !self.is_refused) {
            self.found.push(found);
        }
        self.is_refused |= refuses;
    }

    /// The map at `place`; anything else is an error.
    pub fn map<'v>(&mut self, value: &'v Value, place: &DocPath) -> Option<&'v Map<String, Value>> {
        let map = value.as_object();
        if map.is_none() {
            self.error(place.clone(), format!("expected a map, found {}", kind(value)));
        }
        map
    }

    /// The list in field `name`; nothing (or no field) is an empty list, anything else is an error.
    pub fn list<'v>(&mut self, map: &'v Map<String, Value>, name: &str, place: &DocPath) -> &'v [Value] {
        match map.get(name) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.error(
                    place.field(name),
                    format!("expected a list, found {}", kind(other)),
                );
                &[]
            }
        }
    }

    /// The text in field `name`, if it is a text.
    pub fn text<'v>(&mut self, map: &'v Map<String, Value>, name: &str, place: &DocPath) -> Option<&'v str> {
        let value = map.get(name)?;
        let text = value.as_str();
        if text.is_none() {
            self.error(
                place.field(name),
                format!("expected a text, found {}", kind(value)),
            );
        }
        text
    }

    /// A value of type `T` as its own fields say.
    pub fn typed<T: DeserializeOwned>(&mut self, value: &Value, place: &DocPath) -> Option<T> {
        match weir_plugin::parse_config(value) {
            Ok(value) => Some(value),
            Err(diagnostics) => {
                for found in diagnostics.into_iter().map(reword) {
                    let mut path = place.clone();
                    path.0.extend(found.path.0);
                    self.push(Diagnostic { path, ..found });
                }
                None
            }
        }
    }

    /// Whether all fields of the map are expected ones; each that is not is an error.
    pub fn check_fields(&mut self, map: &Map<String, Value>, place: &DocPath, expected: &[String]) -> bool {
        let mut is_good = true;
        for key in map.keys().filter(|key| !expected.contains(key)).take(MOST) {
            let names: Vec<&str> = expected.iter().map(String::as_str).collect();
            self.error(place.field(key.as_str()), unknown_field(key, &names));
            is_good = false;
        }
        if !is_good {
            self.mistyped.insert(place.clone());
        }
        is_good
    }

    /// The map with the expected fields only; each other one is an error.
    pub fn known<'v>(
        &mut self,
        map: &'v Map<String, Value>,
        place: &DocPath,
        expected: &[String],
    ) -> Cow<'v, Map<String, Value>> {
        match self.check_fields(map, place, expected) {
            true => Cow::Borrowed(map),
            false => Cow::Owned(only(map, |key| expected.iter().any(|name| name == key))),
        }
    }

    /// The findings so far.
    pub fn into_findings(self) -> Vec<Diagnostic> {
        self.found
    }

    /// Whether nothing refuses the document so far.
    pub fn is_good(&self) -> bool {
        !self.is_refused
    }
}

/// What a value is, in a document's words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// A copy of the map with only the fields that `keep` wants.
pub(super) fn only(map: &Map<String, Value>, keep: impl Fn(&str) -> bool) -> Map<String, Value> {
    map.iter()
        .filter(|(key, _)| keep(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
