//! Parts of values: members, items, slices, and all that is in them.

use super::budget::{described, fail};
use super::env::Env;
use super::eval::{Item, Machine, RunResult, Sink};
use super::paths;
use super::tree::Node;
use super::value::Value;
use std::sync::Arc;

impl<'p> Machine<'p> {
    pub(super) fn access(&self, node: &'p Node, env: &Env<'p>, input: &Item, out: &mut Sink) -> RunResult {
        match node {
            Node::Recurse => self.recurse(input, out),
            Node::Iterate(target) => {
                for item in self.outputs(target, env, input)? {
                    self.each(&item, out)?;
                }
                Ok(())
            }
            Node::Index(target, key) => {
                for item in self.outputs(target, env, input)? {
                    if let Node::Literal(key) = &**key {
                        let value = paths::index(&self.budget, &item.value, key)?;
                        self.spend(1)?;
                        out.push(item.part(|| key.clone(), value))?;
                        continue;
                    }
                    for key in self.values(key, env, input)? {
                        let value = paths::index(&self.budget, &item.value, &key)?;
                        self.spend(1)?;
                        out.push(item.part(|| key, value))?;
                    }
                }
                Ok(())
            }
            Node::Slice(target, from, to) => {
                let bound = |bound: &'p Option<Box<Node>>| match bound {
                    None => Ok(vec![Value::Null]),
                    Some(node) => self.values(node, env, input),
                };
                for item in self.outputs(target, env, input)? {
                    for to in bound(to)? {
                        for from in bound(from)? {
                            let key = paths::slice_key(from, to.clone())?;
                            let value = paths::index(&self.budget, &item.value, &key)?;
                            self.spend(value.weight())?;
                            self.budget.hold(value.bytes())?;
                            out.push(item.part(|| key, value))?;
                        }
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn each(&self, item: &Item, out: &mut Sink) -> RunResult {
        match &item.value {
            Value::List(list) => {
                for (place, value) in list.items.iter().enumerate() {
                    self.spend(1)?;
                    out.push(item.part(|| Value::count(place), value.clone()))?;
                }
            }
            Value::Object(object) => {
                for (name, value) in object.members.iter() {
                    self.spend(1)?;
                    out.push(item.part(|| Value::Text(Arc::clone(name)), value.clone()))?;
                }
            }
            Value::Null if item.path.is_some() => {}
            other => return fail(format!("Cannot iterate over {}", described(other))),
        }
        Ok(())
    }

    fn recurse(&self, item: &Item, out: &mut Sink) -> RunResult {
        self.spend(1)?;
        out.push(item.clone())?;
        if matches!(item.value, Value::List(_) | Value::Object(_)) {
            let mut parts = Sink::all();
            self.each(item, &mut parts)?;
            for part in parts.items {
                self.recurse(&part, out)?;
            }
        }
        Ok(())
    }
}
