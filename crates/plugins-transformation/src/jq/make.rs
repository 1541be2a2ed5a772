//! Running the parts of a program that make values: lists, objects, texts and assignments.

use super::budget::{Interrupt, fail};
use super::builtin::arithmetic;
use super::env::Env;
use super::eval::{Item, Machine, RunResult, Sink};
use super::paths::{delete_paths, get_path, index, replace, set_path};
use super::texts;
use super::tree::{Node, TextPart};
use super::value::{Members, Value};
use std::sync::Arc;

impl<'p> Machine<'p> {
    pub(super) fn construct(&self, node: &'p Node, env: &Env<'p>, input: &Item, out: &mut Sink) -> RunResult {
        match node {
            Node::List(None) => self.emit(input, Value::list(Vec::new())?, out),
            Node::List(Some(inner)) => {
                let items = self.values(inner, env, input)?;
                self.spend(items.len() / 8)?;
                self.emit(input, Value::list(items)?, out)
            }
            Node::Format(name) => {
                let text = texts::format(&self.budget, name, &input.value)?;
                self.emit(input, Value::text(text), out)
            }
            Node::Text(format, parts) => {
                let name = format.as_deref().unwrap_or("text");
                let mut texts = vec![String::new()];
                for part in parts {
                    texts = self.extended(texts, part, name, env, input)?;
                }
                for text in texts {
                    self.emit(input, Value::text(text), out)?;
                }
                Ok(())
            }
            Node::Object(members) => self.object(members, Members::default(), env, input, out),
            _ => Ok(()),
        }
    }

    /// Texts, each with all that a part stands for behind it.
    fn extended(
        &self,
        texts: Vec<String>,
        part: &'p TextPart,
        format: &str,
        env: &Env<'p>,
        input: &Item,
    ) -> Result<Vec<String>, Interrupt> {
        let program = match part {
            TextPart::Plain(plain) => {
                self.budget.hold(texts.len().saturating_mul(plain.len()))?;
                return Ok(texts.into_iter().map(|text| text + plain).collect());
            }
            TextPart::Program(program) => program,
        };
        let mut longer = Vec::new();
        for value in self.values(program, env, input)? {
            let shown = texts::format(&self.budget, format, &value)?;
            for text in &texts {
                self.spend(1 + (text.len() + shown.len()) / 64)?;
                self.budget.hold(32 + text.len() + shown.len())?;
                longer.push(format!("{text}{shown}"));
            }
        }
        Ok(longer)
    }

    fn object(
        &self,
        members: &'p [(Node, Option<Node>)],
        made: Members,
        env: &Env<'p>,
        input: &Item,
        out: &mut Sink,
    ) -> RunResult {
        let Some(((name, value), rest)) = members.split_first() else {
            return self.emit(input, Value::object(made)?, out);
        };
        for name in self.values(name, env, input)? {
            let Value::Text(name) = name else {
                return fail(format!("Object keys must be strings, not {}", name.kind()));
            };
            let values = match value {
                Some(value) => self.values(value, env, input)?,
                None => vec![index(
                    &self.budget,
                    &input.value,
                    &Value::Text(Arc::clone(&name)),
                )?],
            };
            for value in values {
                let mut longer = made.clone();
                self.spend(1 + longer.len() / 4)?;
                longer.insert(Arc::clone(&name), value);
                self.object(rest, longer, env, input, out)?;
            }
        }
        Ok(())
    }

    pub(super) fn assign(&self, node: &'p Node, env: &Env<'p>, input: &Item, out: &mut Sink) -> RunResult {
        let whole = &input.value;
        match node {
            Node::Update(left, right) => {
                let (mut value, mut gone) = (whole.clone(), Vec::new());
                for place in self.paths(left, env, whole)? {
                    let path = place.path.unwrap_or_default();
                    let old = get_path(&self.budget, &value, &path)?;
                    let mut first = Sink::first(1);
                    match self.eval(right, env, &Item::plain(old), &mut first) {
                        Ok(()) | Err(Interrupt::Enough) => {}
                        stop => return stop,
                    }
                    match first.items.pop() {
                        Some(new) => value = set_path(&self.budget, value, &path, new.value)?,
                        // Later places are those of the value with all its parts.
                        None => gone.push((*path).clone()),
                    }
                }
                if !gone.is_empty() {
                    value = delete_paths(&self.budget, &value, gone)?;
                }
                self.emit(input, value, out)
            }
            Node::Assign(left, right) => {
                for new in self.values(right, env, input)? {
                    let mut value = whole.clone();
                    for place in self.paths(left, env, whole)? {
                        let path = place.path.unwrap_or_default();
                        value = set_path(&self.budget, value, &path, new.clone())?;
                    }
                    self.emit(input, value, out)?;
                }
                Ok(())
            }
            Node::ArithmeticUpdate(sign, left, right) => {
                for operand in self.values(right, env, input)? {
                    let mut value = whole.clone();
                    for place in self.paths(left, env, whole)? {
                        let path = place.path.unwrap_or_default();
                        value = replace(&self.budget, value, &path, &mut |old| match *sign {
                            "//=" if old.is_true() => Ok(old),
                            "//=" => Ok(operand.clone()),
                            sign => {
                                let sign = sign.chars().next().unwrap_or('+');
                                let new = arithmetic(&self.budget, sign, &old, &operand)?;
                                self.budget.hold(new.bytes())?;
                                Ok(new)
                            }
                        })?;
                    }
                    self.emit(input, value, out)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
