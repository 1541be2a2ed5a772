//! Parts of values: what is at a path, and values with another part there, or without it.

use super::budget::{Budget, Interrupt, described, fail, number};
use super::texts;
use super::value::{MAX_DEPTH, Members, Value};
use std::collections::HashSet;
use std::sync::Arc;

type ValueResult = Result<Value, Interrupt>;

/// The key of a slice.
pub fn slice_key(from: Value, to: Value) -> ValueResult {
    let mut members = Members::default();
    members.insert("start".into(), from);
    members.insert("end".into(), to);
    Ok(Value::object(members)?)
}

/// The places that a slice is of, in something of this length.
fn slice_bounds(key: &Members, length: usize) -> Result<(usize, usize), Interrupt> {
    let bound = |name: &str, otherwise: usize, up: bool| -> Result<usize, Interrupt> {
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
pub fn index(budget: &Budget, value: &Value, key: &Value) -> ValueResult {
    match (value, key) {
        (Value::Object(object), Value::Text(name)) => {
            Ok(object.members.get(name).cloned().unwrap_or(Value::Null))
        }
        (Value::List(list), Value::Number(_)) => {
            let place = place_of(key, list.items.len())?;
            let item = place.and_then(|place| list.items.get(place));
            Ok(item.cloned().unwrap_or(Value::Null))
        }
        (Value::Null, Value::Text(_) | Value::Number(_) | Value::Object(_) | Value::Null) => Ok(Value::Null),
        (Value::List(list), Value::Object(key)) => {
            let (start, end) = slice_bounds(&key.members, list.items.len())?;
            Ok(Value::list(list.items[start..end].to_vec())?)
        }
        (Value::Text(text), Value::Object(key)) => {
            budget.spend(text.len() / 64)?;
            let (start, end) = slice_bounds(&key.members, text.chars().count())?;
            Ok(Value::text(
                text.chars().skip(start).take(end - start).collect::<String>(),
            ))
        }
        (Value::List(list), Value::List(part)) => {
            let places = texts::places(budget, &list.items, &part.items)?;
            Ok(Value::list(places.into_iter().map(Value::count).collect())?)
        }
        (value, Value::Text(name)) => fail(format!("Cannot index {} with \"{name}\"", value.kind())),
        (value, key) => fail(format!("Cannot index {} with {}", value.kind(), key.kind())),
    }
}

/// The part at a path.
pub fn get_path(budget: &Budget, value: &Value, path: &[Value]) -> ValueResult {
    budget.spend(1 + path.len())?;
    let mut value = value.clone();
    for step in path {
        if matches!(value, Value::Null) {
            return Ok(Value::Null);
        }
        value = index(budget, &value, step)?;
    }
    Ok(value)
}

pub fn set_path_value(budget: &Budget, value: &Value, path: &Value, new: Value) -> ValueResult {
    match path {
        Value::List(path) => set_path(budget, value.clone(), &path.items, new),
        _ => fail("Path must be specified as an array"),
    }
}

/// The value with another part at a path.
pub fn set_path(budget: &Budget, value: Value, path: &[Value], new: Value) -> ValueResult {
    let mut new = Some(new);
    replace(budget, value, path, &mut |_| {
        Ok(new.take().unwrap_or(Value::Null))
    })
}

/// The value with what `make` makes of the part at a path. What is not shared is changed in place.
pub fn replace(
    budget: &Budget,
    value: Value,
    path: &[Value],
    make: &mut dyn FnMut(Value) -> ValueResult,
) -> ValueResult {
    let Some((step, rest)) = path.split_first() else {
        return make(value);
    };
    if path.len() > usize::from(MAX_DEPTH) {
        return Err(Interrupt::Exhausted);
    }
    match (value, step) {
        (value @ (Value::Object(_) | Value::Null), Value::Text(name)) => {
            let mut object = match value {
                Value::Object(object) => object,
                _ => Arc::default(),
            };
            pay_for_copy(budget, Arc::strong_count(&object), object.members.len())?;
            let members = Arc::make_mut(&mut object);
            let old = members.take(name);
            members.put(name, replace(budget, old, rest, make)?)?;
            Ok(Value::Object(object))
        }
        (value @ (Value::List(_) | Value::Null), Value::Number(_)) => {
            let mut list = match value {
                Value::List(list) => list,
                _ => Arc::default(),
            };
            let Some(place) = place_of(step, list.items.len())? else {
                return fail("Out of bounds negative array index");
            };
            pay_for_copy(budget, Arc::strong_count(&list), list.items.len())?;
            // The items between are made, too.
            let gap = place.saturating_sub(list.items.len());
            budget.spend(gap)?;
            budget.hold(gap.saturating_mul(32))?;
            let items = Arc::make_mut(&mut list);
            let old = items.take(place);
            items.put(place, replace(budget, old, rest, make)?)?;
            Ok(Value::List(list))
        }
        (value @ (Value::List(_) | Value::Null), Value::Object(key)) => {
            let items = match &value {
                Value::List(list) => list.items.as_slice(),
                _ => &[],
            };
            pay_for_copy(budget, usize::MAX, items.len())?;
            let (start, end) = slice_bounds(&key.members, items.len())?;
            let old = Value::list(items[start..end].to_vec())?;
            let Value::List(part) = replace(budget, old, rest, make)? else {
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

/// Takes from the budget what a change of something with so many parts costs: if others share it, it is copied.
fn pay_for_copy(budget: &Budget, shared_by: usize, parts: usize) -> Result<(), Interrupt> {
    budget.spend(match shared_by {
        1 => 1,
        _ => 1 + parts / 2,
    })
}

/// The place that a number stands for in a list of this length; `None`: before its beginning.
fn place_of(step: &Value, length: usize) -> Result<Option<usize>, Interrupt> {
    let place = number(step)?.floor();
    let place = if place < 0.0 { place + length as f64 } else { place };
    Ok((place >= 0.0).then_some(place as usize))
}

/// The value without the parts at some paths.
pub fn delete_paths(budget: &Budget, value: &Value, paths: Vec<Vec<Value>>) -> ValueResult {
    let mut steps = 0;
    let mut keyed = Vec::with_capacity(paths.len());
    for path in paths {
        budget.spend(1 + path.len())?;
        keyed.push(Value::list(path)?);
    }
    keyed.sort_by(|one, other| one.order(other, &mut steps));
    budget.spend(steps / 16)?;
    let paths: Vec<&[Value]> = keyed
        .iter()
        .map(|path| match path {
            Value::List(path) => path.items.as_slice(),
            _ => &[],
        })
        .collect();
    delete(budget, value.clone(), &paths, 0)
}

/// Deletes what is at sorted paths that have their first steps in common. All steps mean the value as it is before.
fn delete(budget: &Budget, value: Value, paths: &[&[Value]], depth: usize) -> ValueResult {
    if paths.iter().any(|path| path.len() == depth) {
        return Ok(Value::Null);
    }
    if matches!(value, Value::Null) || paths.is_empty() {
        return Ok(value);
    }
    let mut value = value;
    let mut gone = Vec::new();
    let mut from = 0;
    while let Some(step) = paths.get(from).map(|path| &path[depth]) {
        let mut to = from + 1;
        while let Some(path) = paths.get(to)
            && budget.order(&path[depth], step)?.is_eq()
        {
            to += 1;
        }
        budget.spend(to - from)?;
        let group = &paths[from..to];
        from = to;
        if group.iter().any(|path| path.len() == depth + 1) {
            gone.push(step);
            continue;
        }
        if !matches!(index(budget, &value, step)?, Value::Null) {
            let below = std::slice::from_ref(step);
            value = replace(budget, value, below, &mut |old| {
                delete(budget, old, group, depth + 1)
            })?;
        }
    }
    without(budget, value, &gone)
}

/// A value without its parts at these steps.
fn without(budget: &Budget, value: Value, steps: &[&Value]) -> ValueResult {
    if steps.is_empty() {
        return Ok(value);
    }
    budget.spend(value.weight())?;
    let misfit = |value: &Value, step: &Value| {
        fail(format!(
            "Cannot delete field at {} of {}",
            described(step),
            value.kind()
        ))
    };
    match &value {
        Value::Object(object) => {
            let mut names = HashSet::new();
            for step in steps {
                match step {
                    Value::Text(name) => names.insert(&**name),
                    step => return misfit(&value, step),
                };
            }
            let mut members = object.members.clone();
            members.retain(|name| !names.contains(name));
            Ok(Value::object(members)?)
        }
        Value::List(list) => {
            let length = list.items.len();
            let mut keeps = vec![true; length];
            for step in steps {
                let range = match step {
                    Value::Number(_) => match place_of(step, length)? {
                        Some(place) if place < length => place..place + 1,
                        _ => 0..0,
                    },
                    Value::Object(key) => {
                        let (start, end) = slice_bounds(&key.members, length)?;
                        start..end
                    }
                    step => return misfit(&value, step),
                };
                budget.spend(range.len() / 16)?;
                keeps[range].fill(false);
            }
            let kept = list.items.iter().zip(keeps).filter(|(_, keeps)| *keeps);
            Ok(Value::list(kept.map(|(item, _)| item.clone()).collect())?)
        }
        Value::Null => Ok(value),
        other => misfit(other, steps[0]),
    }
}
