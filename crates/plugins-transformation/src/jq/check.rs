//! Whether all names of a program stand for something. A program that passes cannot fail for a name.

use super::builtin::is_native;
use super::texts::FORMATS;
use super::tree::{Definition, Node, Pattern, TextPart};
use std::sync::Arc;

/// A name that is known.
#[derive(Clone)]
enum ScopeName {
    Function(String, usize),
    Variable(String),
    Label(String),
}

/// Checks a program.
///
/// # Errors
/// Which name stands for nothing.
pub fn check(node: &Node, prelude: &[Arc<Definition>]) -> Result<(), String> {
    let functions = prelude.iter();
    let mut known: Vec<ScopeName> = functions
        .map(|it| ScopeName::Function(it.name.clone(), it.parameters.len()))
        .collect();
    visit(node, &mut known)
}

/// Checks a definition among others.
///
/// # Errors
/// Which name stands for nothing.
#[cfg(test)]
pub fn check_definition(definition: &Definition, prelude: &[Arc<Definition>]) -> Result<(), String> {
    let functions = prelude.iter();
    let mut known: Vec<ScopeName> = functions
        .map(|it| ScopeName::Function(it.name.clone(), it.parameters.len()))
        .collect();
    define(definition, &mut known)
}

fn define(definition: &Definition, known: &mut Vec<ScopeName>) -> Result<(), String> {
    known.push(ScopeName::Function(
        definition.name.clone(),
        definition.parameters.len(),
    ));
    let length = known.len();
    for parameter in &definition.parameters {
        let name = parameter.trim_start_matches('$');
        known.push(ScopeName::Function(name.to_owned(), 0));
        if parameter.starts_with('$') {
            known.push(ScopeName::Variable(name.to_owned()));
        }
    }
    let found = visit(&definition.body, known);
    known.truncate(length);
    found
}

fn within(known: &mut Vec<ScopeName>, names: Vec<ScopeName>, nodes: &[Option<&Node>]) -> Result<(), String> {
    let length = known.len();
    known.extend(names);
    let found = nodes.iter().flatten().try_for_each(|node| visit(node, known));
    known.truncate(length);
    found
}

fn variables(
    pattern: &Pattern,
    known: &mut Vec<ScopeName>,
    found: &mut Vec<ScopeName>,
) -> Result<(), String> {
    match pattern {
        Pattern::Variable(name) => found.push(ScopeName::Variable(name.clone())),
        Pattern::List(items) => {
            for item in items {
                variables(item, known, found)?;
            }
        }
        Pattern::Object(members) => {
            for (own, name, inner) in members {
                visit(name, known)?;
                found.extend(own.clone().map(ScopeName::Variable));
                if let Some(inner) = inner {
                    variables(inner, known, found)?;
                }
            }
        }
    }
    Ok(())
}

fn visit(node: &Node, known: &mut Vec<ScopeName>) -> Result<(), String> {
    match node {
        Node::Identity | Node::Recurse | Node::Literal(_) => Ok(()),
        Node::Format(name) => format_of(Some(name)),
        Node::Text(format, parts) => {
            format_of(format.as_ref())?;
            parts.iter().try_for_each(|part| match part {
                TextPart::Plain(_) => Ok(()),
                TextPart::Program(node) => visit(node, known),
            })
        }
        Node::Iterate(one) | Node::Negate(one) | Node::Try(one, None) => visit(one, known),
        Node::List(one) => one.iter().try_for_each(|node| visit(node, known)),
        Node::Index(one, other)
        | Node::Pipe(one, other)
        | Node::Comma(one, other)
        | Node::Arithmetic(_, one, other)
        | Node::Compare(_, one, other)
        | Node::And(one, other)
        | Node::Or(one, other)
        | Node::Alternative(one, other)
        | Node::Assign(one, other)
        | Node::Update(one, other)
        | Node::ArithmeticUpdate(_, one, other)
        | Node::Try(one, Some(other)) => visit(one, known).and_then(|()| visit(other, known)),
        Node::Slice(target, from, to) => {
            visit(target, known)?;
            from.iter().chain(to).try_for_each(|node| visit(node, known))
        }
        Node::If(condition, then, other) => {
            visit(condition, known)?;
            visit(then, known)?;
            other.iter().try_for_each(|node| visit(node, known))
        }
        Node::Object(members) => members.iter().try_for_each(|(name, value)| {
            visit(name, known)?;
            value.iter().try_for_each(|value| visit(value, known))
        }),
        Node::Reduce(source, pattern, first, update) => {
            visit(source, known)?;
            visit(first, known)?;
            let mut names = Vec::new();
            variables(pattern, known, &mut names)?;
            within(known, names, &[Some(update)])
        }
        Node::Foreach(source, pattern, first, update, extract) => {
            visit(source, known)?;
            visit(first, known)?;
            let mut names = Vec::new();
            variables(pattern, known, &mut names)?;
            within(known, names, &[Some(update), extract.as_deref()])
        }
        Node::Bind(source, pattern, body) => {
            visit(source, known)?;
            let mut names = Vec::new();
            variables(pattern, known, &mut names)?;
            within(known, names, &[Some(body)])
        }
        Node::Label(name, body) => within(known, vec![ScopeName::Label(name.clone())], &[Some(body)]),
        Node::Define(definition, rest) => {
            let length = known.len();
            define(definition, known)?;
            let found = visit(rest, known);
            known.truncate(length);
            found
        }
        Node::Break(name) => {
            let is_known = known
                .iter()
                .any(|it| matches!(it, ScopeName::Label(label) if label == name));
            is_known
                .then_some(())
                .ok_or_else(|| format!("$*label-{name} is not defined"))
        }
        Node::Variable(name) => {
            let is_known = known
                .iter()
                .any(|it| matches!(it, ScopeName::Variable(known) if known == name));
            is_known
                .then_some(())
                .ok_or_else(|| format!("${name} is not defined"))
        }
        Node::Call(name, arguments) => {
            let count = arguments.len();
            let is_it = |it: &ScopeName| matches!(it, ScopeName::Function(known, of) if known == name && *of == count);
            if !is_native(name, count) && !known.iter().any(is_it) {
                return Err(format!("{name}/{count} is not defined"));
            }
            arguments.iter().try_for_each(|node| visit(node, known))
        }
    }
}

fn format_of(name: Option<&String>) -> Result<(), String> {
    match name {
        Some(name) if !FORMATS.contains(&name.as_str()) => Err(format!("{name} is not a valid format")),
        _ => Ok(()),
    }
}
