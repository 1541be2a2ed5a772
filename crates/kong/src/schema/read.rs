//! Reading values by their description: defaults are filled in, and all that is wrong is reported.

use super::{Default, Field, Fields, Kind, Location, Problems, Record, record_by_type};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The most unknown fields of an object that are reported: an answer with all of them would be many times as long as the
/// object.
pub const MOST_UNKNOWN: usize = 1_000;

impl Record {
    /// Reads `given`. The result has every field that has a value, given or by default; if something is reported,
    /// it is not to be used.
    pub fn read<'g>(
        &self,
        given: impl Iterator<Item = (&'g str, &'g Value)>,
        place: &Location<'_>,
        problems: &mut Problems,
    ) -> Fields {
        let mut failed: Vec<&str> = Vec::new();
        let mut values: Vec<Option<&Value>> = vec![None; self.fields.len()];
        let mut unknown = 0;
        for (name, value) in given {
            match self.fields.iter().position(|field| field.name == name) {
                Some(position) => values[position] = Some(value),
                None if unknown < MOST_UNKNOWN => {
                    unknown += 1;
                    problems.error(&place.field(name), "unknown field");
                }
                None => {}
            }
        }
        let has_value = |(field, value): &(&Field, &Option<&Value>)| value.is_some() || field.fills_in();
        let count = self.fields.iter().zip(&values).filter(has_value).count();
        // One more for the id, which entities get in any case.
        let mut entity = Fields::with_capacity(count + 1);
        for (field, value) in self.fields.iter().zip(values) {
            let value = match field.read(value, &place.field(field.name), problems) {
                Some(value) => value,
                None => {
                    failed.push(field.name);
                    value.cloned().unwrap_or_default()
                }
            };
            if !value.is_null() {
                entity.add(field.name, value);
            }
        }
        for check in self.checks {
            check.verify(&entity, &failed, place, problems);
        }
        entity
    }
}

impl Field {
    /// Whether it may have a value if a document gives none.
    fn fills_in(&self) -> bool {
        self.required || !matches!(self.default, Default::None)
    }

    /// Reads the field's value or finds its default; `None` once something was reported.
    pub fn read(
        &self,
        given: Option<&Value>,
        place: &Location<'_>,
        problems: &mut Problems,
    ) -> Option<Value> {
        let before = problems.0.len();
        let value = match given {
            Some(Value::Null) if self.required && !self.auto => {
                problems.error(place, "required field missing");
                return None;
            }
            None | Some(Value::Null) => return self.absent(place, problems),
            Some(value) => self.read_given(value, place, problems)?,
        };
        for check in self.checks {
            if let Err(message) = check.verify(&value) {
                problems.error(place, message);
                break;
            }
        }
        (problems.0.len() == before).then_some(value)
    }

    fn absent(&self, place: &Location<'_>, problems: &mut Problems) -> Option<Value> {
        let default = self.default.value();
        match (self.kind, default) {
            (Kind::Record(record), Value::Object(part)) => {
                return Some(record.read(entries(&part), place, problems).into());
            }
            (_, default) if !default.is_null() || !self.required || self.auto => return Some(default),
            (Kind::Record(record), _) => {
                return Some(record.read(std::iter::empty(), place, problems).into());
            }
            _ => {}
        }
        problems.error(place, "required field missing");
        None
    }

    fn read_given(&self, value: &Value, place: &Location<'_>, problems: &mut Problems) -> Option<Value> {
        let message = match (self.kind, value) {
            (Kind::Any, value) => return Some(value.clone()),
            (Kind::String, Value::String(text)) if text.is_empty() => "length must be at least 1",
            (Kind::String | Kind::Text, Value::String(_)) => return Some(value.clone()),
            (Kind::String | Kind::Text, _) => "expected a string",
            (Kind::Boolean, Value::Bool(_)) => return Some(value.clone()),
            (Kind::Boolean, _) => "expected a boolean",
            (Kind::Number, Value::Number(_)) => return Some(value.clone()),
            (Kind::Number, _) => "expected a number",
            (Kind::Integer, value) => match whole_number(value) {
                Some(number) => return Some(number),
                None => "expected an integer",
            },
            (Kind::Uuid, Value::String(text)) if uuid::Uuid::try_parse(text).is_ok() => {
                return Some(Value::String(text.to_ascii_lowercase()));
            }
            (Kind::Uuid, Value::String(_)) => "expected a valid UUID",
            (Kind::Uuid, _) => "expected a string",
            (Kind::Foreign(_), value) => return read_foreign(value, place, problems),
            (Kind::Array(element) | Kind::Set(element), value) => {
                if let Some(items) = as_list(value) {
                    let read = element.read_list(items, place, problems);
                    return match self.kind {
                        Kind::Set(_) => read.map(without_repeats),
                        _ => read,
                    };
                }
                match self.kind {
                    Kind::Set(_) => "expected a set",
                    _ => "expected an array",
                }
            }
            (Kind::Map { keys, values }, value) => match as_map(value) {
                Some(map) => return read_map(keys, values, &map, place, problems),
                None => "expected a map",
            },
            (Kind::Record(record), value) => match as_map(value) {
                Some(map) => return Some(record.read(entries(&map), place, problems).into()),
                None => "expected a record",
            },
            (Kind::ByType(records), Value::Object(map)) => {
                return match record_by_type(records, value) {
                    Some(record) => Some(record.read(entries(map), place, problems).into()),
                    None => {
                        let names: Vec<&str> = records.iter().map(|(name, _)| *name).collect();
                        let message = match map.get("type") {
                            None | Some(Value::Null) => "required field missing".to_owned(),
                            Some(_) => format!("expected one of: {}", names.join(", ")),
                        };
                        problems.error(&place.field("type"), message);
                        None
                    }
                };
            }
            (Kind::ByType(_), _) => "expected a record",
            (Kind::OpenRecord, value) => match as_map(value) {
                Some(_) => return Some(Value::Object(Map::new())),
                None => "expected a record",
            },
        };
        problems.error(place, message);
        None
    }

    fn read_list(&self, items: &[Value], place: &Location<'_>, problems: &mut Problems) -> Option<Value> {
        let before = problems.0.len();
        let items: Vec<Value> = items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| self.read(Some(item), &place.index(index), problems))
            .collect();
        (problems.0.len() == before).then_some(Value::Array(items))
    }
}

/// Kong complains about a map as a whole, with the first complaint about any of its parts.
fn read_map(
    keys: &Field,
    values: &Field,
    map: &Map<String, Value>,
    place: &Location<'_>,
    problems: &mut Problems,
) -> Option<Value> {
    let mut read = Map::with_capacity(map.len());
    for (name, value) in map {
        let mut inner = Problems::default();
        keys.read(Some(&Value::String(name.clone())), place, &mut inner);
        let value = values.read(Some(value), place, &mut inner);
        if let Some(first) = inner.0.into_iter().next() {
            problems.error(place, first.message);
            return None;
        }
        read.insert(name.clone(), value.unwrap_or_default());
    }
    Some(Value::Object(read))
}

/// Of equal members of a set the first stays. Records are never equal, as Lua's tables are not.
fn without_repeats(set: Value) -> Value {
    let Value::Array(mut members) = set else {
        return set;
    };
    if members.len() > 1 {
        let mut known = HashSet::with_capacity(members.len());
        members.retain(|it| it.is_object() || known.insert(it.to_string()));
    }
    Value::Array(members)
}

fn read_foreign(value: &Value, place: &Location<'_>, problems: &mut Problems) -> Option<Value> {
    match value {
        Value::String(_) => Some(value.clone()),
        Value::Object(fields) => match fields.get("id") {
            Some(Value::String(id)) if uuid::Uuid::try_parse(id).is_ok() => Some(value.clone()),
            Some(Value::String(_)) => {
                problems.error(&place.field("id"), "expected a valid UUID");
                None
            }
            _ => {
                problems.error(&place.field("id"), "missing primary key");
                None
            }
        },
        _ => {
            problems.error(place, "expected a string");
            None
        }
    }
}

fn entries(map: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    map.iter().map(|(name, value)| (name.as_str(), value))
}

/// In Lua `{}` and `[]` are the same value.
fn as_list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(items) => Some(items),
        Value::Object(fields) if fields.is_empty() => Some(&[]),
        _ => None,
    }
}

fn as_map(value: &Value) -> Option<std::borrow::Cow<'_, Map<String, Value>>> {
    match value {
        Value::Object(fields) => Some(std::borrow::Cow::Borrowed(fields)),
        Value::Array(items) if items.is_empty() => Some(std::borrow::Cow::Owned(Map::new())),
        _ => None,
    }
}

/// Lua has one kind of number: `80.0` is whole.
fn whole_number(value: &Value) -> Option<Value> {
    if value.is_i64() || value.is_u64() {
        return Some(value.clone());
    }
    let number = value.as_f64()?;
    (number.fract() == 0.0 && number.abs() < 9e15).then(|| Value::from(number as i64))
}

impl Default {
    /// The default as a value.
    pub fn value(self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Boolean(truth) => truth.into(),
            Self::Integer(number) => number.into(),
            Self::Text(text) => text.into(),
            Self::Texts(texts) => texts.iter().copied().collect(),
            Self::Integers(numbers) => numbers.iter().copied().collect(),
            Self::Json(text) => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}
