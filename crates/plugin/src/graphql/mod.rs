//! GraphQL documents: what the first operation is, and how deep all of them go.
//!
//! **What it is not**: a validator. It reads the lexical structure of the whole document (October 2021
//! specification, section 2.1) and the shape of the first operation's outermost selection set.

mod document;
mod tree;

pub use document::{Document, DocumentError};
pub use tree::{Argument, FragmentTree, OperationTree, Selection, Tree, Variable};

use serde_json::Value;

/// Brackets nest at most this deep.
const MAX_DEPTH: usize = 256;

/// The first operation of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Operation {
    /// `query`, `mutation` or `subscription`.
    pub(crate) kind: &'static str,
    /// Its name; empty if it has none.
    pub(crate) name: String,
    /// The names of the fields that it selects, as a list of strings; not their aliases, and not what fragments
    /// select.
    pub(crate) root_fields: Value,
    /// Whether it selects further fields by fragments.
    pub(crate) has_fragments: bool,
    /// Whether the document holds nothing else but fragments.
    pub(crate) is_alone: bool,
}

impl Operation {
    /// Reads the first operation; `None` if there is none or the document is invalid.
    pub(crate) fn read(document: &str) -> Option<Self> {
        let mut reader = Reader(document);
        let mut operation = loop {
            match reader.next()? {
                // A description.
                Token::Value => {}
                Token::Mark('{') => break reader.selection("query", "")?,
                Token::Name("fragment") => {
                    reader.skip_to_selection()?;
                    reader.skip_brackets('{')?;
                }
                Token::Name(word) => {
                    let kind = ["query", "mutation", "subscription"]
                        .into_iter()
                        .find(|kind| *kind == word)?;
                    let name = reader.optional_name().unwrap_or_default();
                    reader.skip_to_selection()?;
                    break reader.selection(kind, name)?;
                }
                _ => return None,
            }
        };
        operation.is_alone = reader.check_rest()?;
        Some(operation)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'d> {
    Mark(char),
    /// `...`
    Spread,
    Name(&'d str),
    /// A number or a text.
    Value,
    End,
}

/// Reads tokens off the front of a document.
struct Reader<'d>(&'d str);

impl<'d> Reader<'d> {
    fn next(&mut self) -> Option<Token<'d>> {
        loop {
            self.0 = self
                .0
                .trim_start_matches([' ', '\t', '\r', '\n', ',', '\u{feff}']);
            match self.0.strip_prefix('#') {
                Some(comment) => self.0 = &comment[comment.find(['\n', '\r']).unwrap_or(comment.len())..],
                None => break,
            }
        }
        let Some(first) = self.0.chars().next() else {
            return Some(Token::End);
        };
        let (token, length) = match first {
            '!' | '$' | '&' | '(' | ')' | ':' | '=' | '@' | '[' | ']' | '{' | '|' | '}' => {
                (Token::Mark(first), 1)
            }
            '.' if self.0.starts_with("...") => (Token::Spread, 3),
            '"' => (Token::Value, text_length(self.0)?),
            '-' | '0'..='9' => {
                let digits = |it: char| !matches!(it, '0'..='9' | '.' | 'e' | 'E' | '+' | '-');
                (Token::Value, self.0.find(digits).unwrap_or(self.0.len()))
            }
            '_' | 'a'..='z' | 'A'..='Z' => {
                let end = self
                    .0
                    .find(|it: char| it != '_' && !it.is_ascii_alphanumeric())
                    .unwrap_or(self.0.len());
                (Token::Name(&self.0[..end]), end)
            }
            _ => return None,
        };
        self.0 = &self.0[length..];
        Some(token)
    }

    fn peek(&self) -> Option<Token<'d>> {
        Reader(self.0).next()
    }

    fn optional_name(&mut self) -> Option<&'d str> {
        let Some(Token::Name(name)) = self.peek() else {
            return None;
        };
        self.next()?;
        Some(name)
    }

    /// Passes over what stands between an operation's name and its selection set.
    fn skip_to_selection(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                Token::Mark('{') => return Some(()),
                Token::Mark('(') => self.skip_brackets('(')?,
                Token::Mark('@') | Token::Name(_) => {}
                _ => return None,
            }
        }
    }

    /// Passes over what follows an opening bracket, up to the one that closes it.
    fn skip_brackets(&mut self, opening: char) -> Option<()> {
        let mut open = vec![closing(opening)?];
        while let Some(wanted) = open.last().copied() {
            match self.next()? {
                Token::End => return None,
                Token::Mark(mark) if mark == wanted => {
                    open.pop();
                }
                Token::Mark(')' | ']' | '}') => return None,
                Token::Mark(mark) => open.extend(closing(mark)),
                _ => {}
            }
            if open.len() > MAX_DEPTH {
                return None;
            }
        }
        Some(())
    }

    /// The fields of the selection set whose `{` has been read.
    fn selection(&mut self, kind: &'static str, name: &str) -> Option<Operation> {
        let (mut root_fields, mut has_fragments) = (Vec::new(), false);
        loop {
            match self.next()? {
                Token::Mark('}') => break,
                Token::Name(mut field) => {
                    if self.peek()? == Token::Mark(':') {
                        self.next()?;
                        field = self.optional_name()?;
                    }
                    root_fields.push(Value::from(field));
                }
                Token::Spread => {
                    has_fragments = true;
                    if self.optional_name() == Some("on") {
                        self.optional_name()?;
                    }
                }
                Token::Mark('@') => drop(self.optional_name()?),
                Token::Mark(bracket @ ('(' | '{')) => self.skip_brackets(bracket)?,
                _ => return None,
            }
        }
        Some(Operation {
            kind,
            name: name.to_owned(),
            root_fields: root_fields.into(),
            has_fragments,
            is_alone: true,
        })
    }

    /// Checks that what follows is made of tokens, with brackets that match. Says whether it is all fragments.
    fn check_rest(&mut self) -> Option<bool> {
        let mut is_all_fragments = true;
        loop {
            match self.next()? {
                Token::End => return Some(is_all_fragments),
                Token::Name("fragment") if is_all_fragments => {
                    self.skip_to_selection()?;
                    self.skip_brackets('{')?;
                    continue;
                }
                // A description.
                Token::Value => continue,
                Token::Mark(')' | ']' | '}') => return None,
                Token::Mark(bracket @ ('(' | '[' | '{')) => self.skip_brackets(bracket)?,
                _ => {}
            }
            is_all_fragments = false;
        }
    }
}

fn closing(opening: char) -> Option<char> {
    match opening {
        '(' => Some(')'),
        '[' => Some(']'),
        '{' => Some('}'),
        _ => None,
    }
}

/// How many bytes the text at the front takes, with its quotes.
fn text_length(document: &str) -> Option<usize> {
    if let Some(block) = document.strip_prefix("\"\"\"") {
        let ends = block.match_indices("\"\"\"").map(|(at, _)| at);
        let end = ends.into_iter().find(|at| !block[..*at].ends_with('\\'))?;
        return Some(end + 6);
    }
    let mut is_escaped = false;
    for (at, character) in document.char_indices().skip(1) {
        match character {
            '\n' | '\r' => return None,
            '"' if !is_escaped => return Some(at + 1),
            _ => is_escaped = character == '\\' && !is_escaped,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_a_document_holds_is_seen() {
        for (document, has_fragments, is_alone) in [
            ("{ a }", false, true),
            (
                "{ a } fragment query on T @d { b } \"x\" fragment f on T { c }",
                false,
                true,
            ),
            ("fragment f on T { x } mutation { ...f }", true, true),
            ("{ ... on T { x } }", true, true),
            ("{ a { ...f } }", false, true),
            ("{ a } { b }", false, false),
            ("query { a } mutation m { b }", false, false),
            ("{ a } fragment f on T { x } subscription { b }", false, false),
            ("\"x\" query { a } \"\"\"y\"\"\" mutation { b }", false, false),
        ] {
            let read = Operation::read(document).expect(document);
            assert_eq!(
                (read.has_fragments, read.is_alone),
                (has_fragments, is_alone),
                "{document}"
            );
        }
    }

    #[test]
    fn operations_are_read() {
        for (document, wanted) in [
            ("{ a b }", Some(("query", "", vec!["a", "b"]))),
            ("query { a }", Some(("query", "", vec!["a"]))),
            (
                "mutation m { repo { id } }",
                Some(("mutation", "m", vec!["repo"])),
            ),
            ("subscription s{a}", Some(("subscription", "s", vec!["a"]))),
            (
                "\u{feff}# c\n query q # { x }\r\n{ a,b }",
                Some(("query", "q", vec!["a", "b"])),
            ),
            (
                "query q($a: [Int!]! = [1, -2.5e3], $o: O = {k: \"}\"}) @d(x: 1) { x: a(i: {j: \")\"}) @e { b } c @f(g: 1) }",
                Some(("query", "q", vec!["a", "c"])),
            ),
            (
                "{ ...f ... on T { x } ... @include(if: $y) { z } b }",
                Some(("query", "", vec!["b"])),
            ),
            (
                "fragment f on T { x } query q { a } query r { b }",
                Some(("query", "q", vec!["a"])),
            ),
            (
                r#"{ a(t: """ " } \""" """) b }"#,
                Some(("query", "", vec!["a", "b"])),
            ),
            ("{ query }", Some(("query", "", vec!["query"]))),
            ("{}", Some(("query", "", vec![]))),
            ("", None),
            ("hello world", None),
            ("{\"query\": \"{ a }\"}", None),
            ("query q { a ", None),
            ("query q { a } }", None),
            ("query q { a } { b(", None),
            ("{ a(b: ]) }", None),
            ("{ a(b: \"x) }", None),
            ("{ a: }", None),
            ("{ a é }", None),
            ("type T { a: Int }", None),
            ("fragment f on T { x }", None),
        ] {
            let seen = Operation::read(document);
            let wanted = wanted.map(|(kind, name, fields)| Operation {
                kind,
                name: name.to_owned(),
                root_fields: fields.into(),
                has_fragments: document.contains("{ ...f "),
                is_alone: !document.contains("query r"),
            });
            assert_eq!(seen, wanted, "{document}");
        }
        let deep = format!("{{ a {} {} }}", "{ a ".repeat(100_000), "}".repeat(100_000));
        assert_eq!(Operation::read(&deep), None);
    }
}
