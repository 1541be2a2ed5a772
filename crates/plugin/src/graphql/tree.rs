//! The selections of a whole document, with the arguments that can be numbers: what an estimate of a query's cost needs.

use super::{Reader, Token};
use std::collections::HashMap;

/// Selections, arguments and variables of a document at most.
const MAX_NODES: usize = 20_000;
/// Levels of selection sets, or of values, at most.
const MAX_LEVELS: usize = 256;
/// Fragments of a document at most.
const MAX_FRAGMENTS: usize = 1_000;

/// A document with its operations and fragments.
#[derive(Debug, Default, PartialEq)]
pub struct Tree<'d> {
    /// The operations; never none.
    pub operations: Vec<OperationTree<'d>>,
    /// The fragments by name.
    pub fragments: HashMap<&'d str, FragmentTree<'d>>,
}

/// An operation.
#[derive(Debug, PartialEq)]
pub struct OperationTree<'d> {
    /// `query`, `mutation` or `subscription`.
    pub kind: &'static str,
    /// Its name.
    pub name: Option<&'d str>,
    /// Its variables.
    pub variables: Vec<Variable<'d>>,
    /// What it selects.
    pub selections: Vec<Selection<'d>>,
}

/// A variable of an operation.
#[derive(Debug, PartialEq)]
pub struct Variable<'d> {
    /// Its name, without `$`.
    pub name: &'d str,
    /// The type's own name, without what is around it.
    pub type_name: &'d str,
    /// Whether it is a list.
    pub is_list: bool,
    /// What it is if a call does not say.
    pub default: Option<Argument<'d>>,
}

/// A fragment.
#[derive(Debug, PartialEq)]
pub struct FragmentTree<'d> {
    /// The type that it is on.
    pub on: &'d str,
    /// What it selects.
    pub selections: Vec<Selection<'d>>,
}

/// A selection.
#[derive(Debug, PartialEq)]
pub enum Selection<'d> {
    /// A field.
    Field {
        /// Its name, not its alias.
        name: &'d str,
        /// Its arguments that are variables, or could be numbers.
        arguments: Vec<(&'d str, Argument<'d>)>,
        /// What is selected below it.
        selections: Vec<Selection<'d>>,
    },
    /// A fragment of this name.
    Spread(&'d str),
    /// A fragment in place.
    Inline {
        /// The type that it is on.
        on: Option<&'d str>,
        /// What it selects.
        selections: Vec<Selection<'d>>,
    },
}

/// A value that could be a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Argument<'d> {
    /// A number, perhaps in quotes.
    Number(f64),
    /// The variable of this name.
    Variable(&'d str),
}

impl<'d> Tree<'d> {
    /// Reads a document; `None` if it is invalid or too large.
    pub fn read(text: &'d str) -> Option<Self> {
        let mut builder = Builder {
            reader: Reader(text),
            nodes: 0,
        };
        let mut tree = Self::default();
        loop {
            match builder.reader.next()? {
                Token::End => break,
                Token::Mark('{') => tree.operations.push(OperationTree {
                    kind: "query",
                    name: None,
                    variables: Vec::new(),
                    selections: builder.selections(0)?,
                }),
                Token::Name("fragment") => {
                    let name = builder.name()?;
                    (builder.name()? == "on").then_some(())?;
                    let on = builder.name()?;
                    builder.directives()?;
                    (builder.reader.next()? == Token::Mark('{')).then_some(())?;
                    let selections = builder.selections(0)?;
                    // Of two with one name, servers refuse both.
                    let is_new = tree
                        .fragments
                        .insert(name, FragmentTree { on, selections })
                        .is_none();
                    (is_new && tree.fragments.len() <= MAX_FRAGMENTS).then_some(())?;
                }
                Token::Name(word) => {
                    let kinds = ["query", "mutation", "subscription"];
                    let kind = kinds.into_iter().find(|kind| *kind == word)?;
                    tree.operations.push(builder.operation(kind)?);
                }
                _ => return None,
            }
        }
        (!tree.operations.is_empty()).then_some(tree)
    }
}

struct Builder<'d> {
    reader: Reader<'d>,
    nodes: usize,
}

impl<'d> Builder<'d> {
    fn name(&mut self) -> Option<&'d str> {
        match self.reader.next()? {
            Token::Name(name) => Some(name),
            _ => None,
        }
    }

    fn node(&mut self) -> Option<()> {
        self.nodes += 1;
        (self.nodes <= MAX_NODES).then_some(())
    }

    fn operation(&mut self, kind: &'static str) -> Option<OperationTree<'d>> {
        let name = self.reader.optional_name();
        let variables = match self.reader.peek()? {
            Token::Mark('(') => self.variables()?,
            _ => Vec::new(),
        };
        self.directives()?;
        (self.reader.next()? == Token::Mark('{')).then_some(())?;
        Some(OperationTree {
            kind,
            name,
            variables,
            selections: self.selections(0)?,
        })
    }

    fn variables(&mut self) -> Option<Vec<Variable<'d>>> {
        self.reader.next()?;
        let mut variables = Vec::new();
        loop {
            match self.reader.next()? {
                Token::Mark(')') => return Some(variables),
                Token::Mark('$') => {}
                _ => return None,
            }
            self.node()?;
            let name = self.name()?;
            (self.reader.next()? == Token::Mark(':')).then_some(())?;
            let (type_name, is_list) = self.variable_type()?;
            let default = match self.reader.peek()? {
                Token::Mark('=') => {
                    self.reader.next()?;
                    self.value(0)?
                }
                _ => None,
            };
            self.directives()?;
            variables.push(Variable {
                name,
                type_name,
                is_list,
                default,
            });
        }
    }

    /// A type such as `[Int!]!`.
    fn variable_type(&mut self) -> Option<(&'d str, bool)> {
        let mut lists = 0;
        while self.reader.peek()? == Token::Mark('[') {
            self.reader.next()?;
            lists += 1;
            (lists <= MAX_LEVELS).then_some(())?;
        }
        let name = self.name()?;
        let mut open = lists;
        loop {
            match self.reader.peek()? {
                Token::Mark('!') => drop(self.reader.next()?),
                Token::Mark(']') if open > 0 => {
                    self.reader.next()?;
                    open -= 1;
                }
                _ => return (open == 0).then_some((name, lists > 0)),
            }
        }
    }

    fn directives(&mut self) -> Option<()> {
        while self.reader.peek()? == Token::Mark('@') {
            self.reader.next()?;
            self.name()?;
            if self.reader.peek()? == Token::Mark('(') {
                self.reader.next()?;
                self.arguments()?;
            }
        }
        Some(())
    }

    /// The selection set whose `{` has been read.
    fn selections(&mut self, level: usize) -> Option<Vec<Selection<'d>>> {
        (level < MAX_LEVELS).then_some(())?;
        let mut selections = Vec::new();
        loop {
            let selection = match self.reader.next()? {
                Token::Mark('}') => return Some(selections),
                Token::Name(name) => self.field(name, level)?,
                Token::Spread => self.spread(level)?,
                _ => return None,
            };
            self.node()?;
            selections.push(selection);
        }
    }

    fn field(&mut self, mut name: &'d str, level: usize) -> Option<Selection<'d>> {
        if self.reader.peek()? == Token::Mark(':') {
            self.reader.next()?;
            name = self.name()?;
        }
        let arguments = match self.reader.peek()? {
            Token::Mark('(') => {
                self.reader.next()?;
                self.arguments()?
            }
            _ => Vec::new(),
        };
        self.directives()?;
        Some(Selection::Field {
            name,
            arguments,
            selections: self.below(level)?,
        })
    }

    fn spread(&mut self, level: usize) -> Option<Selection<'d>> {
        let on = match self.reader.peek()? {
            Token::Name("on") => {
                self.reader.next()?;
                Some(self.name()?)
            }
            Token::Name(name) => {
                self.reader.next()?;
                self.directives()?;
                return Some(Selection::Spread(name));
            }
            _ => None,
        };
        self.directives()?;
        (self.reader.peek()? == Token::Mark('{')).then_some(())?;
        Some(Selection::Inline {
            on,
            selections: self.below(level)?,
        })
    }

    fn below(&mut self, level: usize) -> Option<Vec<Selection<'d>>> {
        match self.reader.peek()? {
            Token::Mark('{') => {
                self.reader.next()?;
                self.selections(level + 1)
            }
            _ => Some(Vec::new()),
        }
    }

    /// The arguments whose `(` has been read.
    fn arguments(&mut self) -> Option<Vec<(&'d str, Argument<'d>)>> {
        let mut arguments = Vec::new();
        loop {
            let name = match self.reader.next()? {
                Token::Mark(')') => return Some(arguments),
                Token::Name(name) => name,
                _ => return None,
            };
            self.node()?;
            (self.reader.next()? == Token::Mark(':')).then_some(())?;
            if let Some(value) = self.value(0)? {
                arguments.push((name, value));
            }
        }
    }

    /// Reads a value. `Some(None)`: it can be no number.
    fn value(&mut self, level: usize) -> Option<Option<Argument<'d>>> {
        (level < MAX_LEVELS).then_some(())?;
        // The token itself does not say what it holds.
        let _before_it = self.reader.peek()?;
        let before = self.reader.0;
        Some(match self.reader.next()? {
            Token::Value => {
                let text = &before[..before.len() - self.reader.0.len()];
                number(text).map(Argument::Number)
            }
            Token::Name(_) => None,
            Token::Mark('$') => Some(Argument::Variable(self.name()?)),
            Token::Mark('[') => {
                while self.reader.peek()? != Token::Mark(']') {
                    self.node()?;
                    self.value(level + 1)?;
                }
                self.reader.next()?;
                None
            }
            Token::Mark('{') => {
                while self.reader.peek()? != Token::Mark('}') {
                    self.node()?;
                    self.name()?;
                    (self.reader.next()? == Token::Mark(':')).then_some(())?;
                    self.value(level + 1)?;
                }
                self.reader.next()?;
                None
            }
            _ => return None,
        })
    }
}

/// The number that ends a piece of a document, perhaps in quotes.
fn number(text: &str) -> Option<f64> {
    let last = text.rsplit([' ', '\t', '\r', '\n', ',', '\u{feff}']).next()?;
    last.trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A selection as a text: names, arguments and what is below.
    fn text(selections: &[Selection<'_>]) -> String {
        let one = |selection: &Selection<'_>| match selection {
            Selection::Field {
                name,
                arguments,
                selections,
            } => {
                let arguments = arguments.iter().map(|(name, value)| match value {
                    Argument::Number(number) => format!("{name}={number}"),
                    Argument::Variable(variable) => format!("{name}=${variable}"),
                });
                let arguments = arguments.collect::<Vec<_>>().join(",");
                let below = match selections.is_empty() {
                    true => String::new(),
                    false => format!("{{{}}}", text(selections)),
                };
                match arguments.is_empty() {
                    true => format!("{name}{below}"),
                    false => format!("{name}({arguments}){below}"),
                }
            }
            Selection::Spread(name) => format!("...{name}"),
            Selection::Inline { on, selections } => {
                format!("...on {}{{{}}}", on.unwrap_or("-"), text(selections))
            }
        };
        selections.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn documents_are_read_with_their_arguments() {
        for (document, expected) in [
            ("{ a b }", "query -: a b"),
            (
                "query Q($n: [Int!]! = 7 @d, $m: In = {a: [1]}) @e(x: 1) { x: a(first: 10, n: $n, k: E, \
                 l: [1 {a: 2}], s: \"12\", t: \"a b\", f: 1.5e1) @g(h: 2) { b } }",
                "query Q(n:Int[]=7 m:In): a(first=10,n=$n,s=12,f=15){b}",
            ),
            (
                "mutation { a { ...F ... on T @d { b } ... { c } ... @include(if: true) { d } } } \
                 fragment F on T { e(last:\u{feff}3) }",
                "mutation -: a{...F ...on T{b} ...on -{c} ...on -{d}}",
            ),
        ] {
            let tree = Tree::read(document).expect(document);
            let operation = &tree.operations[0];
            let variables = operation.variables.iter().map(|it| {
                let list = if it.is_list { "[]" } else { "" };
                let default = match it.default {
                    Some(Argument::Number(number)) => format!("={number}"),
                    _ => String::new(),
                };
                format!("{}:{}{list}{default}", it.name, it.type_name)
            });
            let variables = variables.collect::<Vec<_>>().join(" ");
            let variables = match variables.is_empty() {
                true => variables,
                false => format!("({variables})"),
            };
            let found = format!(
                "{} {}{variables}: {}",
                operation.kind,
                operation.name.unwrap_or("-"),
                text(&operation.selections)
            );
            assert_eq!(found, expected, "{document}");
            if let Some(fragment) = tree.fragments.get("F") {
                assert_eq!(
                    (fragment.on, text(&fragment.selections)),
                    ("T", "e(last=3)".to_owned())
                );
            }
        }
    }

    #[test]
    fn what_is_broken_or_too_large_is_refused() {
        let wide = format!("{{ {} }}", "a ".repeat(MAX_NODES + 1));
        let deep = format!("{}a{}", "{ a ".repeat(300), "}".repeat(300));
        let nested = format!("{{ a(b: {}1{}) }}", "[".repeat(300), "]".repeat(300));
        let lists = format!("query($a: {}Int{}) {{ a }}", "[".repeat(300), "]".repeat(300));
        for document in [
            "",
            "{",
            "{ a(",
            "{ a(b) }",
            "{ a: }",
            "{ ... }",
            "type T { a: Int }",
            "fragment F on T { a }",
            "{ a } fragment F on T { a } fragment F on T { b }",
            "query($a: [Int) { a }",
            "query($a: Int]) { a }",
            "query(a: Int) { a }",
            wide.as_str(),
            deep.as_str(),
            nested.as_str(),
            lists.as_str(),
        ] {
            let begin: String = document.chars().take(60).collect();
            assert_eq!(Tree::read(document), None, "{begin}");
        }
    }
}
