//! Functions that are not written in the language itself, and the operators.

use super::budget::{Budget, Interrupt, described, fail, number};
use super::paths::{delete_paths, index};
use super::texts;
use super::value::{Members, Value};
use std::sync::Arc;

type ValueResult = Result<Value, Interrupt>;

/// Functions of the input alone.
const PLAIN: [&str; 50] = [
    "not",
    "length",
    "utf8bytelength",
    "keys",
    "keys_unsorted",
    "type",
    "tostring",
    "tonumber",
    "tojson",
    "fromjson",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sqrt",
    "fabs",
    "log",
    "log2",
    "log10",
    "exp",
    "exp2",
    "exp10",
    "infinite",
    "nan",
    "isinfinite",
    "isnan",
    "isnormal",
    "add",
    "sort",
    "reverse",
    "explode",
    "implode",
    "ascii_downcase",
    "ascii_upcase",
    "trim",
    "ltrim",
    "rtrim",
    "transpose",
    "flatten",
    "unique",
    "min",
    "max",
    "any",
    "all",
    "first",
    "last",
    "ascii",
    "toarray",
    "_joined",
    "_object",
];
/// Functions of the input and one value.
const OF_ONE: [&str; 20] = [
    "has",
    "contains",
    "startswith",
    "endswith",
    "ltrimstr",
    "rtrimstr",
    "split",
    "join",
    "index",
    "rindex",
    "indices",
    "flatten",
    "getpath",
    "delpaths",
    "error",
    "nth",
    "_sort_by",
    "_group_by",
    "_min_by",
    "_max_by",
];
/// Functions of the input and several values.
const OF_MORE: [(&str, usize); 5] = [
    ("setpath", 2),
    ("pow", 2),
    ("_match", 3),
    ("_split", 2),
    ("_pieces", 2),
];
/// Functions of programs.
pub const OF_PROGRAMS: [(&str, usize); 11] = [
    ("empty", 0),
    ("error", 0),
    ("path", 1),
    ("first", 1),
    ("isempty", 1),
    ("limit", 2),
    ("skip", 2),
    ("range", 1),
    ("range", 2),
    ("range", 3),
    ("until", 2),
];

/// Whether there is such a function.
pub fn is_native(name: &str, count: usize) -> bool {
    (count == 0 && PLAIN.contains(&name))
        || (count == 1 && OF_ONE.contains(&name))
        || OF_MORE.contains(&(name, count))
        || OF_PROGRAMS.contains(&(name, count))
}

fn length(value: &Value) -> ValueResult {
    Ok(match value {
        Value::Null => Value::count(0),
        Value::Bool(_) => return fail(format!("{} has no length", described(value))),
        Value::Number(_) => Value::number(number(value)?.abs()),
        Value::Text(text) => Value::count(text.chars().count()),
        Value::List(list) => Value::count(list.items.len()),
        Value::Object(object) => Value::count(object.members.len()),
    })
}

/// What a function makes of the input alone.
pub fn plain(budget: &Budget, name: &str, value: &Value) -> ValueResult {
    budget.spend(value.weight())?;
    let math = |make: fn(f64) -> f64| number(value).map(|number| Value::number(make(number)));
    match name {
        "not" => Ok(Value::Bool(!value.is_true())),
        "length" => length(value),
        "type" => Ok(Value::text(value.kind())),
        "floor" => math(f64::floor),
        "ceil" => math(f64::ceil),
        "round" => math(f64::round),
        "trunc" => math(f64::trunc),
        "sqrt" => math(f64::sqrt),
        "fabs" => math(f64::abs),
        "log" => math(f64::ln),
        "log2" => math(f64::log2),
        "log10" => math(f64::log10),
        "exp" => math(f64::exp),
        "exp2" => math(f64::exp2),
        "exp10" => math(|number| 10f64.powf(number)),
        "infinite" => Ok(Value::number(f64::MAX)),
        "nan" => Ok(Value::Null),
        "isinfinite" => Ok(Value::Bool(number(value)?.abs() >= f64::MAX)),
        "isnan" => Ok(Value::Bool(matches!(value, Value::Null))),
        "isnormal" => Ok(Value::Bool(number(value)?.is_normal())),
        "toarray" => match value {
            Value::List(_) => Ok(value.clone()),
            other => Ok(Value::list(vec![other.clone()])?),
        },
        "first" => index(budget, value, &Value::count(0)),
        "last" => index(budget, value, &Value::number(-1.0)),
        "_object" => object_of(budget, value),
        "keys" | "keys_unsorted" => keys(value, name == "keys"),
        "add" | "sort" | "reverse" | "transpose" | "flatten" | "unique" | "min" | "max" | "any" | "all" => {
            of_list(budget, name, value)
        }
        _ => texts::plain(budget, name, value),
    }
}

fn keys(value: &Value, is_sorted: bool) -> ValueResult {
    match value {
        Value::List(list) => Ok(Value::list((0..list.items.len()).map(Value::count).collect())?),
        Value::Object(object) => {
            let names: Vec<Value> = match is_sorted {
                true => object
                    .members
                    .sorted()
                    .into_iter()
                    .map(|it| Value::Text(Arc::clone(&it.0)))
                    .collect(),
                false => object
                    .members
                    .iter()
                    .map(|it| Value::Text(Arc::clone(&it.0)))
                    .collect(),
            };
            Ok(Value::list(names)?)
        }
        other => fail(format!("{} has no keys", described(other))),
    }
}

/// The items of a list, or the values of an object.
fn items(value: &Value) -> Result<Vec<Value>, Interrupt> {
    match value {
        Value::List(list) => Ok(list.items.clone()),
        Value::Object(object) => Ok(object.members.iter().map(|(_, value)| value.clone()).collect()),
        other => fail(format!("Cannot iterate over {}", described(other))),
    }
}

fn of_list(budget: &Budget, name: &str, value: &Value) -> ValueResult {
    if name == "reverse" {
        return match value {
            Value::Text(text) => Ok(Value::text(text.chars().rev().collect::<String>())),
            Value::Null => Ok(Value::list(Vec::new())?),
            other => Ok(Value::list(items(other)?.into_iter().rev().collect())?),
        };
    }
    let all = items(value)?;
    match name {
        "add" => sum(budget, &all),
        "any" => Ok(Value::Bool(all.iter().any(Value::is_true))),
        "all" => Ok(Value::Bool(all.iter().all(Value::is_true))),
        "flatten" => flatten(budget, all, f64::MAX),
        "transpose" => {
            let rows: Vec<Vec<Value>> = all.iter().map(items).collect::<Result<_, _>>()?;
            let width = rows.iter().map(Vec::len).max().unwrap_or(0);
            budget.spend(width * rows.len())?;
            let column = |at: usize| {
                rows.iter()
                    .map(|row| row.get(at).cloned().unwrap_or(Value::Null))
                    .collect()
            };
            let columns = (0..width).map(|at| Value::list(column(at)));
            Ok(Value::list(columns.collect::<Result<_, _>>()?)?)
        }
        _ => {
            let keyed = all.into_iter().map(|item| (item.clone(), item)).collect();
            of_keyed(budget, name, keyed)
        }
    }
}

/// All items in one. What they have in common is copied once.
fn sum(budget: &Budget, all: &[Value]) -> ValueResult {
    let rest: Vec<&Value> = all.iter().filter(|item| !matches!(item, Value::Null)).collect();
    for item in &rest {
        budget.spend(item.weight())?;
    }
    let Some(first) = rest.first() else {
        return Ok(Value::Null);
    };
    let rank = |item: &Value| std::mem::discriminant(item);
    let are_alike = rest.iter().all(|item| rank(item) == rank(first));
    match first {
        Value::Text(_) if are_alike => texts::joined(budget, rest.into_iter()),
        Value::List(_) if are_alike => {
            let lists = rest.into_iter().flat_map(|item| match item {
                Value::List(list) => list.items.as_slice(),
                _ => &[],
            });
            Ok(Value::list(lists.cloned().collect())?)
        }
        Value::Object(_) if are_alike => {
            let mut members = Members::default();
            for item in rest {
                if let Value::Object(object) = item {
                    for (name, value) in object.members.iter() {
                        members.insert(Arc::clone(name), value.clone());
                    }
                }
            }
            Ok(Value::object(members)?)
        }
        _ => rest
            .into_iter()
            .try_fold(Value::Null, |sum, item| arithmetic(budget, '+', &sum, item)),
    }
}

/// An object of pairs of a name and a value.
fn object_of(budget: &Budget, value: &Value) -> ValueResult {
    let mut members = Members::default();
    for pair in items(value)? {
        budget.spend(1)?;
        match items(&pair)?.as_slice() {
            [Value::Text(name), value] => members.insert(Arc::clone(name), value.clone()),
            _ => return fail("expected a name and a value"),
        }
    }
    Ok(Value::object(members)?)
}

/// `sort`, `group`, `unique`, `min` and `max` of values by their keys.
fn of_keyed(budget: &Budget, name: &str, mut keyed: Vec<(Value, Value)>) -> ValueResult {
    // Sorting cannot be stopped, so that its cost is known before it begins.
    let sizes: usize = keyed.iter().map(|(key, _)| key.size()).sum();
    let rounds = keyed.len().max(2).ilog2() as usize;
    budget.spend(sizes.saturating_mul(rounds) / 16)?;
    let mut steps = 0;
    keyed.sort_by(|one, other| one.0.order(&other.0, &mut steps));
    budget.spend(steps / 16)?;
    let edge = |found: Option<(Value, Value)>| found.map_or(Value::Null, |(_, value)| value);
    match name {
        "min" => Ok(edge(keyed.into_iter().next())),
        "max" => Ok(edge(keyed.into_iter().last())),
        "sort" => Ok(Value::list(keyed.into_iter().map(|(_, value)| value).collect())?),
        _ => {
            let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
            for (key, value) in keyed {
                match groups.last_mut() {
                    Some((known, group)) if budget.order(known, &key)?.is_eq() => group.push(value),
                    _ => groups.push((key, vec![value])),
                }
            }
            let made: Vec<Value> = match name {
                "unique" => groups
                    .into_iter()
                    .filter_map(|(_, group)| group.into_iter().next())
                    .collect(),
                _ => groups
                    .into_iter()
                    .map(|(_, group)| Value::list(group))
                    .collect::<Result<_, _>>()?,
            };
            Ok(Value::list(made)?)
        }
    }
}

fn flatten(budget: &Budget, all: Vec<Value>, depth: f64) -> ValueResult {
    fn add(budget: &Budget, item: Value, depth: f64, flat: &mut Vec<Value>) -> Result<(), Interrupt> {
        budget.spend(1)?;
        match item {
            Value::List(list) if depth >= 1.0 => list
                .items
                .iter()
                .try_for_each(|item| add(budget, item.clone(), depth - 1.0, flat)),
            item => {
                flat.push(item);
                Ok(())
            }
        }
    }
    let mut flat = Vec::new();
    for item in all {
        add(budget, item, depth, &mut flat)?;
    }
    Ok(Value::list(flat)?)
}

/// What a function makes of the input and one value.
pub fn of_one(budget: &Budget, name: &str, value: &Value, one: &Value) -> ValueResult {
    budget.spend(value.weight() + one.weight())?;
    match name {
        "error" => Err(Interrupt::Error(one.clone())),
        "nth" => index(budget, value, one),
        "has" => match (value, one) {
            (Value::Object(object), Value::Text(name)) => Ok(Value::Bool(object.members.get(name).is_some())),
            (Value::List(list), Value::Number(_)) => {
                let place = number(one)?;
                Ok(Value::Bool(place >= 0.0 && place < list.items.len() as f64))
            }
            _ => fail(format!(
                "Cannot check whether {} has a {} key",
                value.kind(),
                one.kind()
            )),
        },
        "contains" => contains(budget, value, one).map(Value::Bool),
        "flatten" => match number(one)? {
            depth if depth < 0.0 => fail("flatten depth must not be negative"),
            depth => flatten(budget, items(value)?, depth),
        },
        "delpaths" => {
            let paths = items(one)?;
            let paths = paths.iter().map(items).collect::<Result<_, _>>()?;
            delete_paths(budget, value, paths)
        }
        "_sort_by" | "_group_by" | "_min_by" | "_max_by" => {
            let keyed = items(one)?.into_iter().zip(items(value)?).collect();
            let name = name.trim_start_matches('_').trim_end_matches("_by");
            of_keyed(budget, name, keyed)
        }
        _ => texts::of_one(budget, name, value, one),
    }
}

fn contains(budget: &Budget, whole: &Value, part: &Value) -> Result<bool, Interrupt> {
    budget.spend(1)?;
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (name, part) in part.members.iter() {
                match whole.members.get(name) {
                    Some(whole) if contains(budget, whole, part)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Value::List(whole), Value::List(part)) => {
            for part in &part.items {
                let mut is_in = false;
                for whole in &whole.items {
                    is_in = is_in || (whole.kind() == part.kind() && contains(budget, whole, part)?);
                }
                if !is_in {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Text(whole), Value::Text(part)) => {
            budget.spend(whole.len() / 64)?;
            Ok(whole.contains(&**part))
        }
        _ if whole.kind() == part.kind() => Ok(budget.order(whole, part)?.is_eq()),
        _ => fail(format!(
            "{} and {} cannot have their containment checked",
            described(whole),
            described(part)
        )),
    }
}

/// `+`, `-`, `*`, `/` and `%`.
pub fn arithmetic(budget: &Budget, sign: char, left: &Value, right: &Value) -> ValueResult {
    budget.spend(left.weight() + right.weight())?;
    if let (Some(one), Some(other)) = (left.as_f64(), right.as_f64()) {
        return of_numbers(sign, one, other, left, right);
    }
    match (sign, left, right) {
        ('+', Value::Null, other) | ('+', other, Value::Null) => Ok(other.clone()),
        ('+', Value::Text(one), Value::Text(other)) => Ok(Value::text(format!("{one}{other}"))),
        ('+', Value::List(one), Value::List(other)) => Ok(Value::list(
            one.items.iter().chain(&other.items).cloned().collect(),
        )?),
        ('+', Value::Object(one), Value::Object(other)) => {
            let mut members = one.members.clone();
            for (name, value) in other.members.iter() {
                members.insert(Arc::clone(name), value.clone());
            }
            Ok(Value::object(members)?)
        }
        ('-', Value::List(one), Value::List(other)) => {
            let mut kept = Vec::new();
            for item in &one.items {
                let mut is_out = false;
                for out in &other.items {
                    is_out = is_out || budget.order(item, out)?.is_eq();
                }
                if !is_out {
                    kept.push(item.clone());
                }
            }
            Ok(Value::list(kept)?)
        }
        ('*', Value::Object(_), Value::Object(_)) => merge(budget, left, right),
        ('*', Value::Text(text), count) | ('*', count, Value::Text(text)) if count.as_f64().is_some() => {
            let count = number(count)?;
            if count <= 0.0 {
                return Ok(Value::Null);
            }
            let count = count.max(1.0) as usize;
            let bytes = text.len().saturating_mul(count);
            budget.spend(bytes / 64)?;
            budget.hold(bytes)?;
            Ok(Value::text(text.repeat(count)))
        }
        ('/', Value::Text(_), Value::Text(_)) => texts::of_one(budget, "split", left, right),
        _ => {
            let what = match sign {
                '+' => "added",
                '-' => "subtracted",
                '*' => "multiplied",
                _ => "divided",
            };
            fail(format!(
                "{} and {} cannot be {what}",
                described(left),
                described(right)
            ))
        }
    }
}

fn of_numbers(sign: char, one: f64, other: f64, left: &Value, right: &Value) -> ValueResult {
    let by_zero = || {
        let message = "cannot be divided because the divisor is zero";
        fail(format!("{} and {} {message}", described(left), described(right)))
    };
    match sign {
        '+' => Ok(Value::number(one + other)),
        '-' => Ok(Value::number(one - other)),
        '*' => Ok(Value::number(one * other)),
        '/' if other == 0.0 => by_zero(),
        '/' => Ok(Value::number(one / other)),
        _ => {
            let (one, other) = (one as i64, (other as i64).checked_abs().unwrap_or(i64::MAX));
            match other {
                0 => by_zero(),
                other => Ok(Value::number((one % other) as f64)),
            }
        }
    }
}

/// Objects, one within the other.
fn merge(budget: &Budget, left: &Value, right: &Value) -> ValueResult {
    budget.spend(left.weight() + right.weight())?;
    match (left, right) {
        (Value::Object(one), Value::Object(other)) => {
            let mut members = one.members.clone();
            for (name, value) in other.members.iter() {
                let merged = match members.get(name) {
                    Some(known) => merge(budget, known, value)?,
                    None => value.clone(),
                };
                members.insert(Arc::clone(name), merged);
            }
            Ok(Value::object(members)?)
        }
        (_, right) => Ok(right.clone()),
    }
}
