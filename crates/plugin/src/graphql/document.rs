//! What a whole document holds: which kinds of operations, and how deep they go.

use super::{Reader, Token};
use std::collections::HashMap;

/// Levels of selection sets at most.
const MAX_LEVELS: usize = 256;
/// Fragments of a document at most.
const MAX_FRAGMENTS: usize = 1000;

/// An executable document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// How many operations there are; never 0.
    pub operations: usize,
    /// Whether one of them is a mutation.
    pub has_mutation: bool,
    /// Levels of selection sets in the deepest operation; those of a fragment count at every place that uses it.
    pub depth: usize,
}

/// What is wrong with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The text is not a GraphQL document.
    #[error("failed to parse graphql query")]
    Malformed,
    /// It has no operation.
    #[error("empty graphql query")]
    Empty,
    /// A fragment is spread within itself.
    #[error("fragment spreads must not form cycles")]
    Cycle,
}

/// The selection set of a definition.
#[derive(Default)]
struct Set<'d> {
    /// Levels below its own.
    levels: usize,
    /// Fragments that are spread, each with the level on which.
    spreads: Vec<(usize, &'d str)>,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// See [`DocumentError`].
    pub fn read(text: &str) -> Result<Self, DocumentError> {
        let mut reader = Reader(text);
        let mut operations = Vec::new();
        let mut fragments = HashMap::new();
        let mut has_mutation = false;
        loop {
            match reader.next().ok_or(DocumentError::Malformed)? {
                Token::End => break,
                Token::Mark('{') => operations.push(reader.set().ok_or(DocumentError::Malformed)?),
                Token::Name("fragment") => {
                    let name = reader.optional_name().ok_or(DocumentError::Malformed)?;
                    reader.skip_to_selection().ok_or(DocumentError::Malformed)?;
                    fragments.insert(name, reader.set().ok_or(DocumentError::Malformed)?);
                    if fragments.len() > MAX_FRAGMENTS {
                        return Err(DocumentError::Malformed);
                    }
                }
                Token::Name(kind @ ("query" | "mutation" | "subscription")) => {
                    has_mutation |= kind == "mutation";
                    reader.optional_name();
                    reader.skip_to_selection().ok_or(DocumentError::Malformed)?;
                    operations.push(reader.set().ok_or(DocumentError::Malformed)?);
                }
                _ => return Err(DocumentError::Malformed),
            }
        }
        if operations.is_empty() {
            return Err(DocumentError::Empty);
        }
        let mut depths = FragmentDepths {
            fragments: &fragments,
            known: HashMap::new(),
            path: Vec::new(),
        };
        let mut depth = 0;
        for operation in &operations {
            depth = depth.max(1 + depths.below(operation)?);
        }
        Ok(Self {
            operations: operations.len(),
            has_mutation,
            depth,
        })
    }
}

/// Depths of fragments, each found once.
struct FragmentDepths<'f, 'd> {
    fragments: &'f HashMap<&'d str, Set<'d>>,
    known: HashMap<&'d str, usize>,
    /// The fragments within which the current one is spread.
    path: Vec<&'d str>,
}

impl<'d> FragmentDepths<'_, 'd> {
    /// Levels below a set's own.
    fn below(&mut self, set: &Set<'d>) -> Result<usize, DocumentError> {
        let mut depth = set.levels;
        for (level, name) in &set.spreads {
            depth = depth.max(level + self.fragment(name)?);
        }
        Ok(depth)
    }

    fn fragment(&mut self, name: &'d str) -> Result<usize, DocumentError> {
        if let Some(depth) = self.known.get(name) {
            return Ok(*depth);
        }
        // A fragment that there is not has no levels. Before the path is searched, as such names may be many.
        let Some(set) = self.fragments.get(name) else {
            return Ok(0);
        };
        if self.path.contains(&name) {
            return Err(DocumentError::Cycle);
        }
        if self.path.len() > MAX_LEVELS {
            return Err(DocumentError::Malformed);
        }
        self.path.push(name);
        let depth = self.below(set)?;
        self.path.pop();
        self.known.insert(name, depth);
        Ok(depth)
    }
}

impl<'d> Reader<'d> {
    /// The selection set whose `{` has been read.
    fn set(&mut self) -> Option<Set<'d>> {
        let mut set = Set::default();
        // For each set that is open: whether it is that of an inline fragment, which is no level of its own.
        let mut open = vec![false];
        // How many of them are levels below the first.
        let mut level = 0usize;
        let mut is_inline = false;
        while !open.is_empty() {
            match self.next()? {
                Token::Mark('}') => {
                    let is_level = open.pop() == Some(false);
                    level = level.saturating_sub(usize::from(is_level));
                }
                Token::Mark('{') => {
                    open.push(is_inline);
                    level += usize::from(!is_inline);
                    set.levels = set.levels.max(level);
                    is_inline = false;
                    if open.len() > MAX_LEVELS {
                        return None;
                    }
                }
                Token::Mark('(') => self.arguments(')', 0)?,
                Token::Mark('@') => drop(self.optional_name()?),
                Token::Spread => match self.peek()? {
                    Token::Name("on") => {
                        self.next()?;
                        self.optional_name()?;
                        is_inline = true;
                    }
                    Token::Name(name) => {
                        self.next()?;
                        set.spreads.push((level, name));
                    }
                    _ => is_inline = true,
                },
                Token::Name(_) => {
                    is_inline = false;
                    if self.peek()? == Token::Mark(':') {
                        self.next()?;
                        self.optional_name()?;
                    }
                }
                _ => return None,
            }
        }
        Some(set)
    }
}

impl Reader<'_> {
    /// Passes over arguments, or the fields of an object, up to the bracket that closes them. There is at least one
    /// argument.
    fn arguments(&mut self, closing: char, level: usize) -> Option<()> {
        let mut is_empty = closing == ')';
        loop {
            match self.next()? {
                Token::Mark(mark) if mark == closing => return (!is_empty).then_some(()),
                Token::Name(_) if self.next()? == Token::Mark(':') => {
                    let first = self.next()?;
                    self.value(first, level)?;
                }
                _ => return None,
            }
            is_empty = false;
        }
    }

    /// Passes over a value that begins with this token.
    fn value(&mut self, first: Token<'_>, level: usize) -> Option<()> {
        if level > MAX_LEVELS {
            return None;
        }
        match first {
            Token::Value | Token::Name(_) => Some(()),
            Token::Mark('$') => self.optional_name().map(drop),
            Token::Mark('{') => self.arguments('}', level + 1),
            Token::Mark('[') => loop {
                match self.next()? {
                    Token::Mark(']') => return Some(()),
                    item => self.value(item, level + 1)?,
                }
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_measured() {
        for (document, expected) in [
            ("{ a }", Ok((1, false, 1))),
            ("query { a { b } }", Ok((1, false, 2))),
            ("query { a { b { c } } d }", Ok((1, false, 3))),
            (
                "query A { a } mutation B($x: I = {y: 1}) @d { b(i: {j: 1}) { c } }",
                Ok((2, true, 2)),
            ),
            (
                "{ a { ... on T { b { c } } ... @include(if: $x) { d } } }",
                Ok((1, false, 3)),
            ),
            ("{ a { ...F } } fragment F on T { b { c } d }", Ok((1, false, 3))),
            (
                "{ ...F ...F } fragment F on T { x: a { ...G } } fragment G on T { b }",
                Ok((1, false, 2)),
            ),
            ("{ ...None }", Ok((1, false, 1))),
            (
                "{ a { b { c } ... on T { d } } ...F } fragment F on T { e { f } }",
                Ok((1, false, 3)),
            ),
            (
                "{ a { ... on T { b { c } ...F } } } fragment F on T { d { e { f } } }",
                Ok((1, false, 4)),
            ),
            (
                "{ ...F } fragment F on T { a { ...F } }",
                Err(DocumentError::Cycle),
            ),
            ("fragment F on T { a }", Err(DocumentError::Empty)),
            ("", Err(DocumentError::Empty)),
            ("not graphql", Err(DocumentError::Malformed)),
            ("{ a ", Err(DocumentError::Malformed)),
            ("{ a } }", Err(DocumentError::Malformed)),
            (
                "{ a(i: {j: [1, $x, \"t\"], k: {}}, l: E) { b(m: []) } }",
                Ok((1, false, 2)),
            ),
            ("{ a(b) { c } }", Err(DocumentError::Malformed)),
            ("{ a() }", Err(DocumentError::Malformed)),
            ("{ a(b: ) }", Err(DocumentError::Malformed)),
            ("{ a(b: [1) }", Err(DocumentError::Malformed)),
            ("{ a(b: {c}) }", Err(DocumentError::Malformed)),
        ] {
            let found = Document::read(document).map(|it| (it.operations, it.has_mutation, it.depth));
            assert_eq!(found, expected, "{document}");
        }
        let deep = format!("{}a{}", "{ a ".repeat(100_000), "}".repeat(100_000));
        assert_eq!(Document::read(&deep), Err(DocumentError::Malformed));
        let deep = format!("{{ a(b: {}1{}) }}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Document::read(&deep), Err(DocumentError::Malformed));
        let chain: String = (0..900)
            .map(|it| format!("fragment F{it} on T {{ a {{ ...F{} }} }} ", it + 1))
            .collect();
        assert_eq!(
            Document::read(&format!("{{ ...F0 }} {chain}")),
            Err(DocumentError::Malformed)
        );
    }
}
