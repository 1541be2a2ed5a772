//! What the names in a program stand for while it runs.

use super::tree::{Definition, Node};
use super::value::Value;
use std::rc::Rc;

/// What names stand for, the innermost first.
pub type Env<'p> = Option<Rc<Frame<'p>>>;

/// One name more than outside.
pub struct Frame<'p> {
    pub(super) entry: Binding<'p>,
    pub(super) outer: Env<'p>,
}

/// A name, and what it stands for.
pub(super) enum Binding<'p> {
    Variable(&'p str, Value),
    Function(&'p Definition),
    /// A parameter that is a program, with what its names stand for.
    Closure(&'p str, &'p Node, Env<'p>),
    Label(&'p str, usize),
}

/// The same with one name more.
pub(super) fn with<'p>(env: &Env<'p>, entry: Binding<'p>) -> Env<'p> {
    Some(Rc::new(Frame {
        entry,
        outer: env.clone(),
    }))
}

/// What a variable stands for.
pub(super) fn variable(env: &Env<'_>, name: &str) -> Value {
    let mut frame = env.as_ref();
    while let Some(found) = frame {
        match &found.entry {
            Binding::Variable(known, value) if *known == name => return value.clone(),
            _ => frame = found.outer.as_ref(),
        }
    }
    Value::Null
}

/// The number of a label.
pub(super) fn label(env: &Env<'_>, name: &str) -> usize {
    let mut frame = env.as_ref();
    while let Some(found) = frame {
        match &found.entry {
            Binding::Label(known, number) if *known == name => return *number,
            _ => frame = found.outer.as_ref(),
        }
    }
    0
}
