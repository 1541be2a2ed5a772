//! Calls of functions: of the program's own, of the language's own, and of those that are written in it.

use super::budget::fail;
use super::builtin;
use super::env::{Binding, Env, with};
use super::eval::{Item, Machine, RunResult, Sink};
use super::tree::{Definition, Node};
use std::rc::Rc;

impl<'p> Machine<'p> {
    pub(super) fn call(
        &self,
        name: &'p str,
        arguments: &'p [Node],
        env: &Env<'p>,
        input: &Item,
        out: &mut Sink,
    ) -> RunResult {
        let mut frame = env.as_ref();
        while let Some(found) = frame {
            self.spend(1)?;
            match &found.entry {
                Binding::Closure(known, body, own) if *known == name && arguments.is_empty() => {
                    return self.eval(body, own, input, out);
                }
                Binding::Function(known)
                    if known.name == name && known.parameters.len() == arguments.len() =>
                {
                    // The function's scope has the function itself, and everything known at its definition.
                    let own = Some(Rc::clone(found));
                    return self.apply(known, arguments, own, env, input, out);
                }
                _ => {}
            }
            frame = found.outer.as_ref();
        }
        if builtin::is_native(name, arguments.len()) {
            return self.native((name, arguments), env, input, out);
        }
        let mut prelude = self.prelude.iter();
        match prelude.find(|it| it.name == name && it.parameters.len() == arguments.len()) {
            Some(known) => self.apply(known, arguments, None, env, input, out),
            None => fail(format!("{name}/{} is not defined", arguments.len())),
        }
    }

    /// Calls a function. `own` is the scope of its definition.
    fn apply(
        &self,
        function: &'p Definition,
        arguments: &'p [Node],
        own: Env<'p>,
        env: &Env<'p>,
        input: &Item,
        out: &mut Sink,
    ) -> RunResult {
        let mut envs = vec![own];
        for (parameter, argument) in function.parameters.iter().zip(arguments) {
            let mut next = Vec::new();
            for own in &envs {
                match parameter.strip_prefix('$') {
                    None => next.push(with(own, Binding::Closure(parameter, argument, env.clone()))),
                    Some(name) => {
                        for value in self.values(argument, env, input)? {
                            let with_value = with(own, Binding::Variable(name, value));
                            // Such a parameter can also be called.
                            next.push(with(&with_value, Binding::Closure(name, argument, env.clone())));
                        }
                    }
                }
            }
            envs = next;
        }
        for own in envs {
            self.eval(&function.body, &own, input, out)?;
        }
        Ok(())
    }
}
