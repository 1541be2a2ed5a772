//! Parts of values: what is at a path, and values with another part there, or without it.

use super::budget::{Budget, Stop, described, fail, number};
use super::texts;
use super::value::{MAX_DEPTH, Members, Value};
use std::rc::Rc;

type Made = Result<Value, Stop>;

/// The key of a slice.
pub fn slice_key(from: Value, to: Value) -> Made {
    let mut members = Members::default();
    members.insert("start".into(), from);
    members.insert("end".into(), to);
    Ok(Value::object(members)?)
}

/// The places that a slice is of, in something of this length.
fn slice_bounds(key: &Members, length: usize) -> Result<(usize, usize), Stop> {
    let bound = |name: &str, otherwise: usize, up: bool| -> Result<usize, Stop> {
        let Some(value) = key.get(name).filter(|value| !matches!(value, Value::Null)) else {
            return Ok(otherwise);
        };
        let place = number(value)?;
        let place = if place < 0.0 { place + length as f64 } else { place };
        let place = if up { place.ceil() } else { place.floor() };
        Ok((place.max(0.0) as usize).min(length))
    };
    let (start, end) = (bound("start", 0, false)?, bound("end", length, true)?);
    Ok((start, end.max(start)))
}

/// A part of a value.
pub fn index(value: &Value, key: &Value) -> Made {
    match (value, key) {
        (Value::Object(object), Value::Text(name)) => {
            Ok(object.members.get(name).cloned().unwrap_or(Value::Null))
        }
        (Value::List(list), Value::Number(_)) => {
            let place = number(key)?.floor();
            let place = if place < 0.0 {
                place + list.items.len() as f64
            } else {
                place
            };
            Ok(match place >= 0.0 {
                true => list.items.get(place as usize).cloned().unwrap_or(Value::Null),
                false => Value::Null,
            })
        }
        (Value::Null, Value::Text(_) | Value::Number(_) | Value::Object(_) | Value::Null) => Ok(Value::Null),
        (Value::List(list), Value::Object(key)) => {
            let (start, end) = slice_bounds(&key.members, list.items.len())?;
            Ok(Value::list(list.items[start..end].to_vec())?)
        }
        (Value::Text(text), Value::Object(key)) => {
            let (start, end) = slice_bounds(&key.members, text.chars().count())?;
            Ok(Value::text(
                text.chars().skip(start).take(end - start).collect::<String>(),
            ))
        }
        (Value::List(list), Value::List(part)) => {
            let places = texts::places(&list.items, &part.items);
            Ok(Value::list(places.into_iter().map(Value::count).collect())?)
        }
        (value, Value::Text(name)) => fail(format!("Cannot index {} with \"{name}\"", value.kind())),
        (value, key) => fail(format!("Cannot index {} with {}", value.kind(), key.kind())),
    }
}

/// The part at a path.
pub fn get_path(budget: &Budget, value: &Value, path: &[Value]) -> Made {
    budget.spend(1 + path.len())?;
    let mut value = value.clone();
    for step in path {
        if matches!(value, Value::Null) {
            return Ok(Value::Null);
        }
        value = index(&value, step)?;
    }
    Ok(value)
}

pub fn set_path_value(budget: &Budget, value: &Value, path: &Value, new: Value) -> Made {
    match path {
        Value::List(path) => set_path(budget, value, &path.items, new),
        _ => fail("Path must be specified as an array"),
    }
}

/// The value with another part at a path.
pub fn set_path(budget: &Budget, value: &Value, path: &[Value], new: Value) -> Made {
    let Some((step, rest)) = path.split_first() else {
        return Ok(new);
    };
    if path.len() > usize::from(MAX_DEPTH) {
        return Err(Stop::Exhausted);
    }
    budget.spend(value.weight())?;
    match (value, step) {
        (Value::Object(_) | Value::Null, Value::Text(name)) => {
            let mut members = match value {
                Value::Object(object) => object.members.clone(),
                _ => Members::default(),
            };
            let old = members.get(name).cloned().unwrap_or(Value::Null);
            members.insert(Rc::clone(name), set_path(budget, &old, rest, new)?);
            Ok(Value::object(members)?)
        }
        (Value::List(_) | Value::Null, Value::Number(_)) => {
            let mut items = match value {
                Value::List(list) => list.items.clone(),
                _ => Vec::new(),
            };
            let place = number(step)?.floor();
            let place = if place < 0.0 {
                place + items.len() as f64
            } else {
                place
            };
            if place < 0.0 {
                return fail("Out of bounds negative array index");
            }
            let place = place as usize;
            if place >= items.len() {
                budget.spend(place.saturating_sub(items.len()))?;
                items.resize(place + 1, Value::Null);
            }
            let old = std::mem::replace(&mut items[place], Value::Null);
            items[place] = set_path(budget, &old, rest, new)?;
            Ok(Value::list(items)?)
        }
        (Value::List(_) | Value::Null, Value::Object(key)) => {
            let items = match value {
                Value::List(list) => list.items.clone(),
                _ => Vec::new(),
            };
            let (start, end) = slice_bounds(&key.members, items.len())?;
            let old = Value::list(items[start..end].to_vec())?;
            let Value::List(part) = set_path(budget, &old, rest, new)? else {
                return fail("A slice of an array can only be assigned another array");
            };
            let (before, after) = (&items[..start], &items[end..]);
            Ok(Value::list(
                before.iter().chain(&part.items).chain(after).cloned().collect(),
            )?)
        }
        (value, step) => fail(format!("Cannot index {} with {}", value.kind(), described(step))),
    }
}

/// The value without the parts at some paths.
pub fn delete_paths(budget: &Budget, value: &Value, mut paths: Vec<Vec<Value>>) -> Made {
    // The last first, so that the places of the others stay as they are.
    let mut steps = 0;
    let as_list = |path: &Vec<Value>| Value::list(path.clone());
    let mut keyed = Vec::with_capacity(paths.len());
    for path in paths.drain(..) {
        budget.spend(1 + path.len())?;
        keyed.push((as_list(&path)?, path));
    }
    keyed.sort_by(|one, other| other.0.order(&one.0, &mut steps));
    budget.spend(steps)?;
    let mut value = value.clone();
    for (_, path) in keyed {
        value = delete(budget, &value, &path)?;
    }
    Ok(value)
}

fn delete(budget: &Budget, value: &Value, path: &[Value]) -> Made {
    let Some((step, rest)) = path.split_first() else {
        return Ok(Value::Null);
    };
    budget.spend(value.weight())?;
    if matches!(value, Value::Null) {
        return Ok(Value::Null);
    }
    if !rest.is_empty() {
        let old = index(value, step)?;
        return match old {
            Value::Null => Ok(value.clone()),
            old => {
                let new = delete(budget, &old, rest)?;
                set_path(budget, value, std::slice::from_ref(step), new)
            }
        };
    }
    match (value, step) {
        (Value::Object(object), Value::Text(name)) => {
            let mut members = object.members.clone();
            members.remove(name);
            Ok(Value::object(members)?)
        }
        (Value::List(list), Value::Number(_)) => {
            let mut items = list.items.clone();
            let place = number(step)?.floor();
            let place = if place < 0.0 {
                place + items.len() as f64
            } else {
                place
            };
            if place >= 0.0 && (place as usize) < items.len() {
                items.remove(place as usize);
            }
            Ok(Value::list(items)?)
        }
        (Value::List(list), Value::Object(key)) => {
            let (start, end) = slice_bounds(&key.members, list.items.len())?;
            let (before, after) = (&list.items[..start], &list.items[end..]);
            Ok(Value::list(before.iter().chain(after).cloned().collect())?)
        }
        (value, step) => fail(format!(
            "Cannot delete field at {} of {}",
            described(step),
            value.kind()
        )),
    }
}
