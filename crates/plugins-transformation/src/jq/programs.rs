//! Functions that are not written in the language: how they get their arguments, and those whose arguments are programs.
//! What the others make is elsewhere.

use super::budget::{Interrupt, fail, number};
use super::builtin::{OF_PROGRAMS, of_one, plain};
use super::env::Env;
use super::eval::{Item, Machine, Sink};
use super::paths::{get_path, set_path_value};
use super::texts;
use super::tree::Node;
use super::value::Value;
use std::rc::Rc;

impl<'p> Machine<'p> {
    /// Calls a function that is not written in the language.
    pub(super) fn native(
        &self,
        called: (&str, &'p [Node]),
        env: &Env<'p>,
        input: &Item,
        out: &mut Sink,
    ) -> Result<(), Interrupt> {
        call(self, called, env, input, out)
    }
}

/// Calls a function that is not written in the language.
fn call<'p>(
    machine: &Machine<'p>,
    (name, arguments): (&str, &'p [Node]),
    env: &Env<'p>,
    input: &Item,
    out: &mut Sink,
) -> Result<(), Interrupt> {
    if OF_PROGRAMS.contains(&(name, arguments.len())) {
        return of_programs(machine, name, arguments, env, input, out);
    }
    let values = |node: &'p Node| machine.values(node, env, input);
    match arguments {
        [] => machine.emit(input, plain(&machine.budget, name, &input.value)?, out),
        [path] if name == "getpath" => {
            for path in values(path)? {
                let Value::List(steps) = &path else {
                    return fail("Path must be specified as an array");
                };
                let value = get_path(&machine.budget, &input.value, &steps.items)?;
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
                machine.emit(input, of_one(&machine.budget, name, &input.value, &one)?, out)?;
            }
            Ok(())
        }
        [one, other] => {
            for other in values(other)? {
                for one in values(one)? {
                    let value = match name {
                        "setpath" => set_path_value(&machine.budget, &input.value, &one, other.clone())?,
                        "pow" => Value::number(number(&one)?.powf(number(&other)?)),
                        "_split" => {
                            let regex = machine.patterns.get(&machine.budget, &one, &other)?;
                            texts::split(&machine.budget, &input.value, &regex)?
                        }
                        _ => {
                            let regex = machine.patterns.get(&machine.budget, &one, &other)?;
                            texts::pieces(&machine.budget, &input.value, &regex)?
                        }
                    };
                    machine.emit(input, value, out)?;
                }
            }
            Ok(())
        }
        [pattern, flags, tests, ..] => {
            for tests in values(tests)? {
                for flags in values(flags)? {
                    for pattern in values(pattern)? {
                        let regex = machine.patterns.get(&machine.budget, &pattern, &flags)?;
                        let found = texts::matches(&machine.budget, &input.value, &regex, tests.is_true())?;
                        machine.emit(input, found, out)?;
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
) -> Result<(), Interrupt> {
    let first_of = |node: &'p Node, count: usize| {
        let mut sink = Sink::first(count);
        match machine.eval(node, env, input, &mut sink) {
            Ok(()) | Err(Interrupt::Enough) => Ok(sink.items),
            Err(stop) => Err(stop),
        }
    };
    match (name, arguments) {
        ("error", _) => Err(Interrupt::Error(input.value.clone())),
        ("path", [node]) => {
            for item in machine.paths(node, env, &input.value)? {
                let path = item.path.map(|path| (*path).clone()).unwrap_or_default();
                machine.emit(input, Value::list(path)?, out)?;
            }
            Ok(())
        }
        ("first", [node]) => first_of(node, 1)?.into_iter().try_for_each(|item| out.push(item)),
        ("isempty", [node]) => {
            let is_empty = first_of(node, 1)?.is_empty();
            machine.emit(input, Value::Bool(is_empty), out)
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
            machine.emit(input, item.value, out)
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
) -> Result<(), Interrupt> {
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
                    machine.emit(input, Value::number(at), out)?;
                    at += step;
                }
            }
        }
    }
    Ok(())
}
