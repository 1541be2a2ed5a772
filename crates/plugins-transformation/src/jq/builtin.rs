//! Functions that are not written in the language itself, and the operators.

use super::eval::{Env, Item, Machine, Sink, Stop, described, fail};
use super::parse::Node;
use super::paths::{delete_paths, get_path, index, set_path_value};
use super::texts;
use super::value::Value;
use std::rc::Rc;

type Made = Result<Value, Stop>;

/// Functions of the input alone.
const PLAIN: [&str; 48] = [
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
const OF_MORE: [(&str, usize); 4] = [("setpath", 2), ("pow", 2), ("_match", 3), ("_split", 2)];
/// Functions of programs.
const OF_PROGRAMS: [(&str, usize); 11] = [
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

/// Calls one.
pub fn call<'p>(
    machine: &Machine<'p>,
    (name, arguments): (&str, &'p [Node]),
    env: &Env<'p>,
    input: &Item,
    out: &mut Sink,
) -> Result<(), Stop> {
    if OF_PROGRAMS.contains(&(name, arguments.len())) {
        return of_programs(machine, name, arguments, env, input, out);
    }
    let values = |node: &'p Node| machine.values(node, env, input);
    match arguments {
        [] => machine.made(input, plain(machine, name, &input.value)?, out),
        [path] if name == "getpath" => {
            for path in values(path)? {
                let Value::List(steps) = &path else {
                    return fail("Path must be specified as an array");
                };
                let value = get_path(machine, &input.value, &steps.items)?;
                let whole = input
                    .path
                    .as_ref()
                    .map(|before| Rc::new(before.iter().chain(&steps.items).cloned().collect::<Vec<_>>()));
                out.push(Item { value, path: whole })?;
            }
            Ok(())
        }
        [one] => {
            for one in values(one)? {
                machine.made(input, of_one(machine, name, &input.value, &one)?, out)?;
            }
            Ok(())
        }
        [one, other] => {
            for other in values(other)? {
                for one in values(one)? {
                    let value = match name {
                        "setpath" => set_path_value(machine, &input.value, &one, other.clone())?,
                        "pow" => Value::number(number(&one)?.powf(number(&other)?)),
                        _ => texts::split(machine, &input.value, &one, &other)?,
                    };
                    machine.made(input, value, out)?;
                }
            }
            Ok(())
        }
        [pattern, flags, tests, ..] => {
            for tests in values(tests)? {
                for flags in values(flags)? {
                    for pattern in values(pattern)? {
                        let found = texts::matches(machine, &input.value, &pattern, &flags, tests.is_true())?;
                        machine.made(input, found, out)?;
                    }
                }
            }
            Ok(())
        }
    }
}

fn of_programs<'p>(
    machine: &Machine<'p>,
    name: &str,
    arguments: &'p [Node],
    env: &Env<'p>,
    input: &Item,
    out: &mut Sink,
) -> Result<(), Stop> {
    let first_of = |node: &'p Node, count: usize| {
        let mut sink = Sink::first(count);
        match machine.eval(node, env, input, &mut sink) {
            Ok(()) | Err(Stop::Enough) => Ok(sink.items),
            Err(stop) => Err(stop),
        }
    };
    match (name, arguments) {
        ("error", _) => Err(Stop::Error(input.value.clone())),
        ("path", [node]) => {
            for item in machine.paths(node, env, &input.value)? {
                let path = item.path.map(|path| (*path).clone()).unwrap_or_default();
                machine.made(input, Value::list(path)?, out)?;
            }
            Ok(())
        }
        ("first", [node]) => first_of(node, 1)?.into_iter().try_for_each(|item| out.push(item)),
        ("isempty", [node]) => {
            let is_empty = first_of(node, 1)?.is_empty();
            machine.made(input, Value::Bool(is_empty), out)
        }
        ("limit" | "skip", [count, node]) => {
            for count in machine.values(count, env, input)? {
                let count = number(&count)?.max(0.0) as usize;
                let items = match name {
                    "limit" if count == 0 => Vec::new(),
                    "limit" => first_of(node, count)?,
                    _ => machine
                        .outputs(node, env, input)?
                        .into_iter()
                        .skip(count)
                        .collect(),
                };
                items.into_iter().try_for_each(|item| out.push(item))?;
            }
            Ok(())
        }
        ("range", bounds) => range(machine, bounds, env, input, out),
        ("until", [condition, update]) => {
            let mut item = Item::plain(input.value.clone());
            while !machine
                .values(condition, env, &item)?
                .first()
                .is_some_and(Value::is_true)
            {
                machine.spend(1)?;
                match machine.values(update, env, &item)?.into_iter().next() {
                    Some(value) => item = Item::plain(value),
                    None => return Ok(()),
                }
            }
            machine.made(input, item.value, out)
        }
        _ => Ok(()),
    }
}

fn range<'p>(
    machine: &Machine<'p>,
    bounds: &'p [Node],
    env: &Env<'p>,
    input: &Item,
    out: &mut Sink,
) -> Result<(), Stop> {
    let values = |node: Option<&'p Node>, otherwise: f64| match node {
        None => Ok(vec![Value::number(otherwise)]),
        Some(node) => machine.values(node, env, input),
    };
    let (from, to, by) = match bounds {
        [to] => (None, Some(to), None),
        [from, to] => (Some(from), Some(to), None),
        [from, to, by, ..] => (Some(from), Some(to), Some(by)),
        [] => (None, None, None),
    };
    for from in values(from, 0.0)? {
        for to in values(to, 0.0)? {
            for by in values(by, 1.0)? {
                let (mut at, end, step) = (number(&from)?, number(&to)?, number(&by)?);
                while (step > 0.0 && at < end) || (step < 0.0 && at > end) {
                    machine.spend(1)?;
                    machine.made(input, Value::number(at), out)?;
                    at += step;
                }
            }
        }
    }
    Ok(())
}

/// The number of a value.
pub fn number(value: &Value) -> Result<f64, Stop> {
    match value.as_f64() {
        Some(number) => Ok(number),
        None => fail(format!("{} is not a number", described(value))),
    }
}

fn length(value: &Value) -> Made {
    Ok(match value {
        Value::Null => Value::count(0),
        Value::Bool(_) => return fail(format!("{} has no length", described(value))),
        Value::Number(_) => Value::number(number(value)?.abs()),
        Value::Text(text) => Value::count(text.chars().count()),
        Value::List(list) => Value::count(list.items.len()),
        Value::Object(object) => Value::count(object.members.len()),
    })
}

fn plain(machine: &Machine<'_>, name: &str, value: &Value) -> Made {
    machine.spend(value.weight())?;
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
        "first" => index(value, &Value::count(0)),
        "last" => index(value, &Value::number(-1.0)),
        "keys" | "keys_unsorted" => keys(value, name == "keys"),
        "add" | "sort" | "reverse" | "transpose" | "flatten" | "unique" | "min" | "max" | "any" | "all" => {
            of_list(machine, name, value)
        }
        _ => texts::plain(machine, name, value),
    }
}

fn keys(value: &Value, is_sorted: bool) -> Made {
    match value {
        Value::List(list) => Ok(Value::list((0..list.items.len()).map(Value::count).collect())?),
        Value::Object(object) => {
            let names: Vec<Value> = match is_sorted {
                true => object
                    .members
                    .sorted()
                    .into_iter()
                    .map(|it| Value::Text(Rc::clone(&it.0)))
                    .collect(),
                false => object
                    .members
                    .iter()
                    .map(|it| Value::Text(Rc::clone(&it.0)))
                    .collect(),
            };
            Ok(Value::list(names)?)
        }
        other => fail(format!("{} has no keys", described(other))),
    }
}

/// The items of a list, or the values of an object.
fn items(value: &Value) -> Result<Vec<Value>, Stop> {
    match value {
        Value::List(list) => Ok(list.items.clone()),
        Value::Object(object) => Ok(object.members.iter().map(|(_, value)| value.clone()).collect()),
        other => fail(format!("Cannot iterate over {}", described(other))),
    }
}

fn of_list(machine: &Machine<'_>, name: &str, value: &Value) -> Made {
    if name == "reverse" {
        return match value {
            Value::Text(text) => Ok(Value::text(text.chars().rev().collect::<String>())),
            Value::Null => Ok(Value::list(Vec::new())?),
            other => Ok(Value::list(items(other)?.into_iter().rev().collect())?),
        };
    }
    let all = items(value)?;
    match name {
        "add" => all
            .iter()
            .try_fold(Value::Null, |sum, item| arithmetic(machine, '+', &sum, item)),
        "any" => Ok(Value::Bool(all.iter().any(Value::is_true))),
        "all" => Ok(Value::Bool(all.iter().all(Value::is_true))),
        "flatten" => flatten(machine, all, f64::MAX),
        "transpose" => {
            let rows: Vec<Vec<Value>> = all.iter().map(items).collect::<Result<_, _>>()?;
            let width = rows.iter().map(Vec::len).max().unwrap_or(0);
            machine.spend(width * rows.len())?;
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
            of_keyed(machine, name, keyed)
        }
    }
}

/// `sort`, `group`, `unique`, `min` and `max` of values by their keys.
fn of_keyed(machine: &Machine<'_>, name: &str, mut keyed: Vec<(Value, Value)>) -> Made {
    // Sorting cannot be stopped, so that its cost is known before it begins.
    let sizes: usize = keyed.iter().map(|(key, _)| key.size()).sum();
    let rounds = keyed.len().max(2).ilog2() as usize;
    machine.spend(sizes.saturating_mul(rounds) / 16)?;
    let mut steps = 0;
    keyed.sort_by(|one, other| one.0.order(&other.0, &mut steps));
    machine.spend(steps / 16)?;
    let edge = |found: Option<(Value, Value)>| found.map_or(Value::Null, |(_, value)| value);
    match name {
        "min" => Ok(edge(keyed.into_iter().next())),
        "max" => Ok(edge(keyed.into_iter().last())),
        "sort" => Ok(Value::list(keyed.into_iter().map(|(_, value)| value).collect())?),
        _ => {
            let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
            for (key, value) in keyed {
                match groups.last_mut() {
                    Some((known, group)) if machine.order(known, &key)?.is_eq() => group.push(value),
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

fn flatten(machine: &Machine<'_>, all: Vec<Value>, depth: f64) -> Made {
    fn add(machine: &Machine<'_>, item: Value, depth: f64, flat: &mut Vec<Value>) -> Result<(), Stop> {
        machine.spend(1)?;
        match item {
            Value::List(list) if depth >= 1.0 => list
                .items
                .iter()
                .try_for_each(|item| add(machine, item.clone(), depth - 1.0, flat)),
            item => {
                flat.push(item);
                Ok(())
            }
        }
    }
    let mut flat = Vec::new();
    for item in all {
        add(machine, item, depth, &mut flat)?;
    }
    Ok(Value::list(flat)?)
}

fn of_one(machine: &Machine<'_>, name: &str, value: &Value, one: &Value) -> Made {
    machine.spend(value.weight() + one.weight())?;
    match name {
        "error" => Err(Stop::Error(one.clone())),
        "nth" => index(value, one),
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
        "contains" => contains(machine, value, one).map(Value::Bool),
        "flatten" => match number(one)? {
            depth if depth < 0.0 => fail("flatten depth must not be negative"),
            depth => flatten(machine, items(value)?, depth),
        },
        "delpaths" => {
            let paths = items(one)?;
            let paths = paths.iter().map(items).collect::<Result<_, _>>()?;
            delete_paths(machine, value, paths)
        }
        "_sort_by" | "_group_by" | "_min_by" | "_max_by" => {
            let keyed = items(one)?.into_iter().zip(items(value)?).collect();
            let name = name.trim_start_matches('_').trim_end_matches("_by");
            of_keyed(machine, name, keyed)
        }
        _ => texts::of_one(machine, name, value, one),
    }
}

fn contains(machine: &Machine<'_>, whole: &Value, part: &Value) -> Result<bool, Stop> {
    machine.spend(1)?;
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (name, part) in part.members.iter() {
                match whole.members.get(name) {
                    Some(whole) if contains(machine, whole, part)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Value::List(whole), Value::List(part)) => {
            for part in &part.items {
                let mut is_in = false;
                for whole in &whole.items {
                    is_in = is_in || (whole.kind() == part.kind() && contains(machine, whole, part)?);
                }
                if !is_in {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Text(whole), Value::Text(part)) => {
            machine.spend(whole.len() / 64)?;
            Ok(whole.contains(&**part))
        }
        _ if whole.kind() == part.kind() => Ok(machine.order(whole, part)?.is_eq()),
        _ => fail(format!(
            "{} and {} cannot have their containment checked",
            described(whole),
            described(part)
        )),
    }
}

/// `+`, `-`, `*`, `/` and `%`.
pub fn arithmetic(machine: &Machine<'_>, sign: char, left: &Value, right: &Value) -> Made {
    machine.spend(left.weight() + right.weight())?;
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
                members.insert(Rc::clone(name), value.clone());
            }
            Ok(Value::object(members)?)
        }
        ('-', Value::List(one), Value::List(other)) => {
            let mut kept = Vec::new();
            for item in &one.items {
                let mut is_out = false;
                for out in &other.items {
                    is_out = is_out || machine.order(item, out)?.is_eq();
                }
                if !is_out {
                    kept.push(item.clone());
                }
            }
            Ok(Value::list(kept)?)
        }
        ('*', Value::Object(_), Value::Object(_)) => merge(machine, left, right),
        ('*', Value::Text(text), count) | ('*', count, Value::Text(text)) if count.as_f64().is_some() => {
            let count = number(count)?;
            if count <= 0.0 {
                return Ok(Value::Null);
            }
            let count = count.max(1.0) as usize;
            machine.spend(text.len().saturating_mul(count) / 64)?;
            Ok(Value::text(text.repeat(count)))
        }
        ('/', Value::Text(_), Value::Text(_)) => texts::of_one(machine, "split", left, right),
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

fn of_numbers(sign: char, one: f64, other: f64, left: &Value, right: &Value) -> Made {
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
fn merge(machine: &Machine<'_>, left: &Value, right: &Value) -> Made {
    machine.spend(left.weight() + right.weight())?;
    match (left, right) {
        (Value::Object(one), Value::Object(other)) => {
            let mut members = one.members.clone();
            for (name, value) in other.members.iter() {
                let merged = match members.get(name) {
                    Some(known) => merge(machine, known, value)?,
                    None => value.clone(),
                };
                members.insert(Rc::clone(name), merged);
            }
            Ok(Value::object(members)?)
        }
        (_, right) => Ok(right.clone()),
    }
}

pub use texts::format;
