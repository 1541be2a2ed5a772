//! Checking a value against a [`Schema`], and filling in what the value leaves out.

use super::violation::Violation;
use super::{Kind, Schema, is_secret_reference};
use ipnet::IpNet;
use serde_json::{Map, Number, Value};
use std::net::IpAddr;

impl Schema {
    /// Checks `value` and fills in defaults.
    ///
    /// As in APISIX's scripting language, an empty list and an empty map are the same thing; it becomes what the
    /// shape asks for.
    ///
    /// # Errors
    /// The first violation, in the words of APISIX's checker.
    pub fn check(&self, value: &mut Value) -> Result<(), String> {
        self.verify(value).map_err(|violation| violation.to_string())
    }

    fn verify(&self, value: &mut Value) -> Result<(), Violation<'_>> {
        // What a reference stands for is known only at the place that uses it.
        let may_be_text = self.kind.is_none_or(|kind| kind == Kind::Text);
        if may_be_text && value.as_str().is_some_and(is_secret_reference) {
            return Ok(());
        }
        self.check_kind(value)?;
        match value {
            Value::Object(map) => self.check_fields(map)?,
            Value::Array(items) => self.check_items(items)?,
            Value::String(text) => self.check_text(text)?,
            Value::Number(number) => self.check_number(number)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.check_required(value)?;
        if !self.options.is_empty() && !self.options.iter().any(|option| same(option, value)) {
            return Err(Violation::Fixed("matches none of the enum values"));
        }
        self.check_compounds(value)
    }

    fn check_kind(&self, value: &mut Value) -> Result<(), Violation<'_>> {
        let Some(kind) = self.kind else { return Ok(()) };
        let fits = match (kind, &*value) {
            (Kind::Object, Value::Object(_))
            | (Kind::Array, Value::Array(_))
            | (Kind::Text, Value::String(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::Boolean, Value::Bool(_)) => true,
            (Kind::Integer, Value::Number(number)) => match whole(number) {
                Some(whole) => {
                    *value = Value::Number(whole);
                    true
                }
                None => false,
            },
            (Kind::Object, Value::Array(items)) if items.is_empty() => {
                *value = Value::Object(Map::new());
                true
            }
            (Kind::Array, Value::Object(map)) if map.is_empty() => {
                *value = Value::Array(Vec::new());
                true
            }
            _ => false,
        };
        if fits {
            Ok(())
        } else {
            Err(Violation::Type(kind, kind_of(value)))
        }
    }

    fn check_fields(&self, map: &mut Map<String, Value>) -> Result<(), Violation<'_>> {
        for (name, shape) in &self.fields {
            if let Some(value) = find(map, name) {
                shape.verify(value).map_err(|error| {
                    Violation::Message(format!("property \"{name}\" validation failed: {error}"))
                })?;
                self.check_dependents(name, map)?;
            } else if self.required.contains(name) {
                return Err(Violation::Missing(name));
            } else if let Some(default) = &shape.default {
                map.insert((*name).to_owned(), default.clone());
            }
        }
        if let Some(missing) = self.required.iter().find(|name| find(map, name).is_none()) {
            return Err(Violation::Missing(missing));
        }
        for (name, _) in &self.needed {
            if find(map, name).is_some() {
                self.check_needed(name, map)?;
            }
        }
        for (name, value) in map.iter_mut() {
            self.check_other_field(name, value)?;
        }
        match self.field_count {
            (Some(least), _) if map.len() < least => Err(Violation::Message(format!(
                "expect object to have at least {least} properties"
            ))),
            (_, Some(most)) if map.len() > most => Err(Violation::Message(format!(
                "expect object to have at most {most} properties"
            ))),
            _ => Ok(()),
        }
    }

    fn check_other_field(&self, name: &str, value: &mut Value) -> Result<(), Violation<'_>> {
        let listed = self.fields.iter().any(|(field, _)| field == &name);
        let mut matched = false;
        for (names, shape) in self
            .other_fields
            .iter()
            .filter(|(names, _)| !names.text.is_empty())
        {
            if names.matches(name) {
                matched = true;
                shape.verify(value).map_err(|error| {
                    Violation::Message(format!(
                        "failed to validate {name} (matching \"{}\"): {error}",
                        names.text
                    ))
                })?;
            }
        }
        if listed || matched {
            return Ok(());
        }
        if self.closed {
            let words = format!("additional properties forbidden, found {name}");
            return Err(Violation::Message(words));
        }
        match self.other_fields.iter().find(|(names, _)| names.text.is_empty()) {
            Some((_, shape)) => shape.verify(value).map_err(|error| {
                Violation::Message(format!("failed to validate additional property {name}: {error}"))
            }),
            None => Ok(()),
        }
    }

    fn check_dependents(&self, name: &str, map: &mut Map<String, Value>) -> Result<(), Violation<'_>> {
        for (_, shape) in self.dependents.iter().filter(|(field, _)| *field == name) {
            let mut whole = Value::Object(std::mem::take(map));
            let checked = shape.verify(&mut whole);
            if let Value::Object(whole) = whole {
                *map = whole;
            }
            checked.map_err(|error| {
                Violation::Message(format!(
                    "failed to validate dependent schema for \"{name}\": {error}"
                ))
            })?;
        }
        Ok(())
    }

    fn check_needed(&self, name: &str, map: &Map<String, Value>) -> Result<(), Violation<'_>> {
        let (_, fields) = match self.needed.iter().find(|(field, _)| *field == name) {
            Some(needed) => needed,
            None => return Ok(()),
        };
        match fields.iter().find(|field| !map.contains_key(**field)) {
            Some(missing) => Err(Violation::Message(format!(
                "property \"{missing}\" is required when \"{name}\" is set"
            ))),
            None => Ok(()),
        }
    }

    /// A value that is no map has no fields, so it satisfies a list of required ones (JSON Schema); but if the
    /// shape says nothing else, an empty list stands for an empty map.
    fn check_required(&self, value: &Value) -> Result<(), Violation<'_>> {
        match (value, self.required.first()) {
            (Value::Array(items), Some(name)) if items.is_empty() => Err(Violation::Missing(name)),
            _ => Ok(()),
        }
    }

    fn check_items(&self, items: &mut [Value]) -> Result<(), Violation<'_>> {
        if let Some(least) = self.min_items
            && items.len() < least
        {
            return Err(Violation::Message(format!(
                "expect array to have at least {least} items"
            )));
        }
        if let Some(most) = self.max_items
            && items.len() > most
        {
            return Err(Violation::Message(format!(
                "expect array to have at most {most} items"
            )));
        }
        if let Some(shape) = &self.item {
            for (index, item) in items.iter_mut().enumerate() {
                shape.verify(item).map_err(|error| {
                    Violation::Message(format!("failed to validate item {}: {error}", index + 1))
                })?;
            }
        }
        if self.unique {
            for (index, item) in items.iter().enumerate() {
                if let Some(earlier) = items[..index].iter().position(|other| other == item) {
                    return Err(Violation::Message(format!(
                        "expected unique items but items {} and {} are equal",
                        earlier + 1,
                        index + 1
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_text(&self, text: &str) -> Result<(), Violation<'_>> {
        let length = text.chars().count();
        match self.length {
            (Some(least), _) if length < least => {
                return Err(Violation::Message(format!(
                    "string too short, expected at least {least}, got {length}"
                )));
            }
            (_, Some(most)) if length > most => {
                return Err(Violation::Message(format!(
                    "string too long, expected at most {most}, got {length}"
                )));
            }
            _ => {}
        }
        match &self.pattern {
            Some(pattern) if !pattern.matches(text) => {
                return Err(Violation::Message(format!(
                    "failed to match pattern {:?} with {text:?}",
                    pattern.text
                )));
            }
            _ => {}
        }
        let is_address = || text.parse::<IpAddr>().is_ok() || text.parse::<IpNet>().is_ok();
        if self.is_address && !is_address() {
            return Err(Violation::Fixed("object matches none of the required"));
        }
        Ok(())
    }

    fn check_number(&self, number: &Number) -> Result<(), Violation<'_>> {
        let value = number.as_f64().unwrap_or(f64::NAN);
        match (self.minimum, self.above, self.maximum) {
            (Some(least), ..) if value < least => Err(Violation::Message(format!(
                "expected {number} to be at least {}",
                short(least)
            ))),
            (_, Some(bound), _) if value <= bound => Err(Violation::Message(format!(
                "expected {number} to be greater than {bound}"
            ))),
            (.., Some(most)) if value > most => Err(Violation::Message(format!(
                "expected {number} to be at most {most}"
            ))),
            _ => Ok(()),
        }
    }

    fn check_compounds(&self, value: &mut Value) -> Result<(), Violation<'_>> {
        for (index, shape) in self.all_of.iter().enumerate() {
            shape
                .verify(value)
                .map_err(|error| Violation::Message(format!("allOf {} failed: {error}", index + 1)))?;
        }
        if !self.any_of.is_empty() && !self.any_of.iter().any(|shape| shape.verify(value).is_ok()) {
            return Err(Violation::NoneOf(&self.any_of));
        }
        if !self.one_of.is_empty() {
            let mut matched = None;
            for (index, shape) in self.one_of.iter().enumerate() {
                match (shape.verify(value), matched) {
                    (Ok(()), Some(earlier)) => {
                        return Err(Violation::Message(format!(
                            "value should match only one schema, but matches both schemas {} and {}",
                            earlier + 1,
                            index + 1
                        )));
                    }
                    (Ok(()), None) => matched = Some(index),
                    (Err(_), _) => {}
                }
            }
            if matched.is_none() {
                return Err(Violation::Fixed(
                    "value should match only one schema, but matches none",
                ));
            }
        }
        if let Some((condition, then, otherwise)) = self.condition.as_deref() {
            if condition.verify(value).is_ok() {
                then.verify(value)
                    .map_err(|_| Violation::Fixed("then clause did not match"))?;
            } else {
                otherwise
                    .verify(value)
                    .map_err(|_| Violation::Fixed("else clause did not match"))?;
            }
        }
        match &self.not {
            Some(shape) if shape.verify(value).is_ok() => {
                Err(Violation::Fixed("value wasn't supposed to match schema"))
            }
            _ => self.check_exact(value),
        }
    }

    fn check_exact(&self, value: &mut Value) -> Result<(), Violation<'_>> {
        if self.exactly.as_ref().is_some_and(|exactly| !same(exactly, value)) {
            return Err(Violation::Fixed("failed to check const value"));
        }
        let (Some(shape), Value::Array(items)) = (&self.contains, value) else {
            return Ok(());
        };
        if items.is_empty() {
            return Err(Violation::Fixed("check contains: empty array is invalid"));
        }
        match items.iter_mut().any(|item| shape.verify(item).is_ok()) {
            true => Ok(()),
            false => Err(Violation::Fixed("failed to check contains")),
        }
    }
}

/// A field of a map. Most maps are so small that looking at every name is faster than hashing one.
fn find<'m>(map: &'m mut Map<String, Value>, name: &str) -> Option<&'m mut Value> {
    const SMALL: usize = 8;
    if map.len() > SMALL {
        return map.get_mut(name);
    }
    map.iter_mut()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// The number without a fraction of zero (`1.0` is a whole number too), `None` if it has another fraction.
fn whole(number: &Number) -> Option<Number> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let value = number.as_f64().filter(|value| value.fract() == 0.0)?;
    // Beyond this a float does not distinguish neighbouring whole numbers anyway.
    (value.abs() <= (1_u64 << 53) as f64).then(|| Number::from(value as i64))
}

fn same(option: &Value, value: &Value) -> bool {
    match (option, value) {
        (Value::Number(option), Value::Number(value)) => option.as_f64() == value.as_f64(),
        _ => option == value,
    }
}

/// Lua's name for a value's type.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "userdata",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) | Value::Object(_) => "table",
    }
}

/// A bound as the original writes it: a very small one with an exponent of two digits.
fn short(bound: f64) -> String {
    match bound != 0.0 && bound.abs() < 1e-4 {
        true => format!("{bound:e}").replace("e-", "e-0"),
        false => bound.to_string(),
    }
}

#[cfg(test)]
mod tests;
