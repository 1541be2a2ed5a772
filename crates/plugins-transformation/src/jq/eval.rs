//! Running a program. Every step is taken from a budget, and every value that is made has a bounded depth, so that any
//! program ends soon, whatever it and its input are.

use super::budget::{Budget, Interrupt, abridged, described, fail};
use super::builtin;
use super::env::{Binding, Env, label, variable, with};
use super::paths;
use super::texts::Patterns;
use super::tree::{Definition, Node, Pattern};
use super::value::Value;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// A value, and its path in the input if paths are needed.
#[derive(Clone)]
pub struct Item {
    pub value: Value,
    pub path: Option<Rc<Vec<Value>>>,
}

impl Item {
    pub fn plain(value: Value) -> Self {
        Self { value, path: None }
    }

    fn root(value: Value) -> Self {
        Self {
            value,
            path: Some(Rc::default()),
        }
    }

    /// A part of the value. The step to it is made only if paths are needed.
    pub(super) fn part(&self, step: impl FnOnce() -> Value, value: Value) -> Self {
        let path = self.path.as_ref().map(|path| {
            let mut longer = (**path).clone();
            longer.push(step());
            Rc::new(longer)
        });
        Self { value, path }
    }
}

/// Outputs, and how many are wanted.
pub struct Sink {
    pub items: Vec<Item>,
    most: usize,
}

impl Sink {
    pub fn all() -> Self {
        Self::first(usize::MAX)
    }

    pub fn first(most: usize) -> Self {
        Self {
            items: Vec::new(),
            most,
        }
    }

    pub fn push(&mut self, item: Item) -> Result<(), Interrupt> {
        self.items.push(item);
        match self.items.len() >= self.most {
            true => Err(Interrupt::Enough),
            false => Ok(()),
        }
    }
}

/// Runs programs of one call.
pub struct Machine<'p> {
    pub(super) prelude: &'p [Arc<Definition>],
    pub(super) budget: Budget,
    pub(super) patterns: Patterns,
    labels: Cell<usize>,
}

/// The result of a part that gives its outputs elsewhere.
pub type RunResult = Result<(), Interrupt>;

impl<'p> Machine<'p> {
    /// A machine that takes no more than this.
    pub fn new(prelude: &'p [Arc<Definition>], budget: Budget) -> Self {
        Self {
            prelude,
            budget,
            patterns: Patterns::default(),
            labels: Cell::new(0),
        }
    }

    /// Takes steps from the budget.
    pub fn spend(&self, steps: usize) -> RunResult {
        self.budget.spend(steps)
    }

    /// All outputs of a program.
    pub fn run(&self, node: &'p Node, input: Value) -> Result<Vec<Value>, Interrupt> {
        let mut sink = Sink::all();
        self.eval(node, &None, &Item::plain(input), &mut sink)?;
        Ok(sink.items.into_iter().map(|item| item.value).collect())
    }

    /// The outputs for an input.
    pub fn outputs(&self, node: &'p Node, env: &Env<'p>, input: &Item) -> Result<Vec<Item>, Interrupt> {
        let mut sink = Sink::all();
        self.eval(node, env, input, &mut sink)?;
        Ok(sink.items)
    }

    /// The same without paths.
    pub fn values(&self, node: &'p Node, env: &Env<'p>, input: &Item) -> Result<Vec<Value>, Interrupt> {
        let input = Item::plain(input.value.clone());
        let items = self.outputs(node, env, &input)?;
        Ok(items.into_iter().map(|item| item.value).collect())
    }

    /// Where the outputs are in the input, with their values.
    pub fn paths(&self, node: &'p Node, env: &Env<'p>, input: &Value) -> Result<Vec<Item>, Interrupt> {
        let items = self.outputs(node, env, &Item::root(input.clone()))?;
        for item in &items {
            match &item.path {
                Some(path) => self.spend(1 + path.len() / 8)?,
                None => {
                    let shown = abridged(&item.value);
                    return fail(format!("Invalid path expression with result {shown}"));
                }
            }
        }
        Ok(items)
    }

    /// A computed value, which has no path.
    pub fn emit(&self, input: &Item, value: Value, out: &mut Sink) -> RunResult {
        if input.path.is_some() {
            return fail(format!(
                "Invalid path expression with result {}",
                abridged(&value)
            ));
        }
        self.spend(value.weight())?;
        self.budget.hold(value.bytes())?;
        out.push(Item::plain(value))
    }

    /// Evaluates a part of a program.
    pub fn eval(&self, node: &'p Node, env: &Env<'p>, input: &Item, out: &mut Sink) -> RunResult {
        self.spend(1)?;
        self.budget.check_stack()?;
        match node {
            Node::Identity => out.push(input.clone()),
            // It is not made: it stands in the program.
            Node::Literal(value) if input.path.is_none() => out.push(Item::plain(value.clone())),
            Node::Literal(value) => self.emit(input, value.clone(), out),
            Node::Pipe(left, right) => {
                for item in self.partial(left, env, input, out, right)? {
                    self.eval(right, env, &item, out)?;
                }
                Ok(())
            }
            Node::Comma(left, right) => {
                self.eval(left, env, input, out)?;
                self.eval(right, env, input, out)
            }
            Node::Index(..) | Node::Slice(..) | Node::Iterate(_) | Node::Recurse => {
                self.access(node, env, input, out)
            }
            Node::Arithmetic(..) | Node::Compare(..) | Node::Negate(_) => self.compute(node, env, input, out),
            Node::And(..) | Node::Or(..) => self.logic(node, env, input, out),
            Node::Text(..) | Node::Format(_) | Node::List(_) | Node::Object(_) => {
                self.construct(node, env, input, out)
            }
            Node::If(condition, then, other) => self.condition((condition, then, other), env, input, out),
            Node::Try(body, handler) => self.attempt(body, handler.as_deref(), env, input, out),
            Node::Alternative(left, right) => self.alternative(left, right, env, input, out),
            Node::Assign(..) | Node::Update(..) | Node::ArithmeticUpdate(..) => {
                self.assign(node, env, input, out)
            }
            Node::Reduce(..) | Node::Foreach(..) => self.fold(node, env, input, out),
            Node::Define(definition, rest) => {
                let env = with(env, Binding::Function(definition));
                self.eval(rest, &env, input, out)
            }
            Node::Bind(source, pattern, body) => {
                for value in self.values(source, env, input)? {
                    for env in self.bound(pattern, value, env, input)? {
                        self.eval(body, &env, input, out)?;
                    }
                }
                Ok(())
            }
            Node::Label(name, body) => {
                let number = self.labels.get() + 1;
                self.labels.set(number);
                let env = with(env, Binding::Label(name, number));
                match self.eval(body, &env, input, out) {
                    Err(Interrupt::Break(found)) if found == number => Ok(()),
                    done => done,
                }
            }
            Node::Break(name) => Err(Interrupt::Break(label(env, name))),
            Node::Variable(name) => self.emit(input, variable(env, name), out),
            Node::Call(name, arguments) => self.call(name, arguments, env, input, out),
        }
    }

    /// The outputs of the left side of a pipe. If it fails behind some of them, these go on first.
    fn partial(
        &self,
        left: &'p Node,
        env: &Env<'p>,
        input: &Item,
        out: &mut Sink,
        right: &'p Node,
    ) -> Result<Vec<Item>, Interrupt> {
        let mut sink = Sink::all();
        let done = self.eval(left, env, input, &mut sink);
        if let Err(stop) = done {
            for item in sink.items {
                self.eval(right, env, &item, out)?;
            }
            return Err(stop);
        }
        Ok(sink.items)
    }

    fn compute(&self, node: &'p Node, env: &Env<'p>, input: &Item, out: &mut Sink) -> RunResult {
        match node {
            Node::Negate(inner) => {
                for value in self.values(inner, env, input)? {
                    let Some(number) = value.as_f64() else {
                        return fail(format!("{} cannot be negated", described(&value)));
                    };
                    self.emit(input, Value::number(-number), out)?;
                }
            }
            Node::Arithmetic(sign, left, right) => {
                for right in self.values(right, env, input)? {
                    for left in self.values(left, env, input)? {
                        let value = builtin::arithmetic(&self.budget, *sign, &left, &right)?;
                        self.emit(input, value, out)?;
                    }
                }
            }
            Node::Compare(sign, left, right) => {
                for right in self.values(right, env, input)? {
                    for left in self.values(left, env, input)? {
                        let order = self.budget.order(&left, &right)?;
                        let holds = match *sign {
                            "==" => order.is_eq(),
                            "!=" => order.is_ne(),
                            "<" => order.is_lt(),
                            "<=" => order.is_le(),
                            ">" => order.is_gt(),
                            _ => order.is_ge(),
                        };
                        self.emit(input, Value::Bool(holds), out)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn logic(&self, node: &'p Node, env: &Env<'p>, input: &Item, out: &mut Sink) -> RunResult {
        let (left, right, decides) = match node {
            Node::And(left, right) => (left, right, false),
            Node::Or(left, right) => (left, right, true),
            _ => return Ok(()),
        };
        for left in self.values(left, env, input)? {
            if left.is_true() == decides {
                self.emit(input, Value::Bool(decides), out)?;
                continue;
            }
            for right in self.values(right, env, input)? {
                self.emit(input, Value::Bool(right.is_true()), out)?;
            }
        }
        Ok(())
    }

    fn condition(
        &self,
        (condition, then, other): (&'p Node, &'p Node, &'p Option<Box<Node>>),
        env: &Env<'p>,
        input: &Item,
        out: &mut Sink,
    ) -> RunResult {
        for value in self.values(condition, env, input)? {
            match (value.is_true(), other) {
                (true, _) => self.eval(then, env, input, out)?,
                (false, Some(other)) => self.eval(other, env, input, out)?,
                (false, None) => out.push(input.clone())?,
            }
        }
        Ok(())
    }

    fn attempt(
        &self,
        body: &'p Node,
        handler: Option<&'p Node>,
        env: &Env<'p>,
        input: &Item,
        out: &mut Sink,
    ) -> RunResult {
        match self.eval(body, env, input, out) {
            Err(Interrupt::Error(error)) => match handler {
                None => Ok(()),
                Some(handler) => self.eval(handler, env, &Item::plain(error), out),
            },
            done => done,
        }
    }

    fn alternative(
        &self,
        left: &'p Node,
        right: &'p Node,
        env: &Env<'p>,
        input: &Item,
        out: &mut Sink,
    ) -> RunResult {
        let mut sink = Sink::all();
        match self.eval(left, env, input, &mut sink) {
            Ok(()) | Err(Interrupt::Error(_)) => {}
            stop => return stop,
        }
        let mut found = sink
            .items
            .into_iter()
            .filter(|item| item.value.is_true())
            .peekable();
        if found.peek().is_none() {
            return self.eval(right, env, input, out);
        }
        found.try_for_each(|item| out.push(item))
    }

    fn fold(&self, node: &'p Node, env: &Env<'p>, input: &Item, out: &mut Sink) -> RunResult {
        let (source, pattern, first, update) = match node {
            Node::Reduce(source, pattern, first, update)
            | Node::Foreach(source, pattern, first, update, _) => (source, pattern, first, update),
            _ => return Ok(()),
        };
        for first in self.values(first, env, input)? {
            let mut state = Some(first);
            for value in self.values(source, env, input)? {
                for env in self.bound(pattern, value, env, input)? {
                    let before = Item::plain(state.take().unwrap_or(Value::Null));
                    let values = self.values(update, &env, &before)?;
                    if let Node::Foreach(_, _, _, _, extract) = node {
                        for value in &values {
                            match extract {
                                None => self.emit(input, value.clone(), out)?,
                                Some(extract) => {
                                    self.eval(extract, &env, &Item::plain(value.clone()), out)?;
                                }
                            }
                        }
                        state = values.into_iter().last().or(Some(before.value));
                    } else {
                        state = values.into_iter().last();
                    }
                }
            }
            if let Node::Reduce(..) = node {
                self.emit(input, state.unwrap_or(Value::Null), out)?;
            }
        }
        Ok(())
    }

    /// The bindings after a pattern has matched a value; several, if a member's name has several values.
    fn bound(
        &self,
        pattern: &'p Pattern,
        value: Value,
        env: &Env<'p>,
        input: &Item,
    ) -> Result<Vec<Env<'p>>, Interrupt> {
        self.spend(1)?;
        match pattern {
            Pattern::Variable(name) => Ok(vec![with(env, Binding::Variable(name, value))]),
            Pattern::List(items) => {
                let mut envs = vec![env.clone()];
                for (place, item) in items.iter().enumerate() {
                    let part = paths::index(&self.budget, &value, &Value::count(place))?;
                    let mut next = Vec::new();
                    for env in &envs {
                        next.extend(self.bound(item, part.clone(), env, input)?);
                    }
                    envs = next;
                }
                Ok(envs)
            }
            Pattern::Object(members) => {
                let mut envs = vec![env.clone()];
                for (own, name, inner) in members {
                    let mut next = Vec::new();
                    for env in &envs {
                        for name in self.values(name, env, input)? {
                            let part = paths::index(&self.budget, &value, &name)?;
                            let env = match own {
                                Some(own) => with(env, Binding::Variable(own, part.clone())),
                                None => env.clone(),
                            };
                            match inner {
                                Some(inner) => next.extend(self.bound(inner, part, &env, input)?),
                                None => next.push(env),
                            }
                        }
                    }
                    envs = next;
                }
                Ok(envs)
            }
        }
    }
}
