//! The path templates of a document as a tree of segments: fixed segments go before those with parameters.

use std::collections::HashMap;
use weir_plugin::{Exhausted, WorkBudget};

/// The parts of a path by the names of their parameters, as they are written.
pub type Captures<'a, 'p> = Vec<(&'a str, &'p [u8])>;

/// All templates of a document.
#[derive(Debug, Default)]
pub struct Paths {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    fixed: HashMap<Vec<u8>, usize>,
    /// Segments with parameters, and what comes behind them.
    open: Vec<(Pattern, usize)>,
    /// The operations of a template that ends here, by method, each with the names of its parameters.
    ends: Vec<TemplateEnd>,
}

#[derive(Debug)]
struct TemplateEnd {
    method: String,
    names: Vec<String>,
    operation: usize,
}

/// A segment with parameters: texts around them. `{a}.{b}` is `["", ".", ""]`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(Vec<Vec<u8>>);

impl Pattern {
    /// Reads a segment; `None`: it is fixed. The names of the parameters are put into `names`.
    fn read(segment: &str, names: &mut Vec<String>) -> Option<Self> {
        let mut texts = Vec::new();
        let mut rest = segment;
        while let Some((before, behind)) = rest.split_once('{') {
            let Some((name, behind)) = behind.split_once('}') else {
                break;
            };
            texts.push(before.as_bytes().to_vec());
            names.push(name.to_owned());
            rest = behind;
        }
        if texts.is_empty() {
            return None;
        }
        texts.push(rest.as_bytes().to_vec());
        Some(Self(texts))
    }

    /// The parts of a segment that its parameters stand for. None of them is empty.
    fn matches<'p>(&self, segment: &'p [u8]) -> Option<Vec<&'p [u8]>> {
        let (first, rest) = self.0.split_first()?;
        let mut text = segment.strip_prefix(first.as_slice())?;
        let mut parts = Vec::with_capacity(rest.len());
        for (index, end) in rest.iter().enumerate() {
            let is_last = index + 1 == rest.len();
            let length = match (is_last, end.is_empty()) {
                (true, _) => text
                    .len()
                    .checked_sub(end.len())
                    .filter(|length| text[*length..] == **end)?,
                (false, true) => 1.min(text.len()),
                (false, false) => memchr::memmem::find(text.get(1..)?, end)? + 1,
            };
            if length == 0 {
                return None;
            }
            parts.push(&text[..length]);
            text = &text[length + end.len()..];
        }
        Some(parts)
    }
}

/// What is found: the operation, unless the template has none for the method.
type PathMatch<'a, 'p> = (Option<usize>, Captures<'a, 'p>);

impl Paths {
    /// Adds the template of an operation.
    pub fn add(&mut self, method: &str, template: &str, operation: usize) {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let (mut at, mut names) = (0, Vec::new());
        for segment in segments(template.as_bytes()) {
            let segment = String::from_utf8_lossy(segment).into_owned();
            let next = self.nodes.len();
            let node = &mut self.nodes[at];
            at = match Pattern::read(&segment, &mut names) {
                None => *node.fixed.entry(segment.into_bytes()).or_insert(next),
                Some(pattern) => match node.open.iter().find(|(known, _)| *known == pattern) {
                    Some((_, place)) => *place,
                    None => {
                        node.open.push((pattern, next));
                        // The longer its fixed text, the earlier a segment is tried.
                        node.open
                            .sort_by_key(|(it, _)| std::cmp::Reverse(it.0.concat().len()));
                        next
                    }
                },
            };
            if at == next {
                self.nodes.push(Node::default());
            }
        }
        self.nodes[at].ends.push(TemplateEnd {
            method: method.to_owned(),
            names,
            operation,
        });
    }

    /// Finds a path.
    ///
    /// # Errors
    /// Finding it takes more work than one call may cause.
    pub fn find<'a, 'p>(
        &'a self,
        method: &[u8],
        path: &'p [u8],
        work: &WorkBudget,
    ) -> Result<Option<PathMatch<'a, 'p>>, Exhausted> {
        let segments: Vec<&[u8]> = segments(path).collect();
        let mut search = Search {
            paths: self,
            method,
            work,
            parts: Vec::new(),
            other_method: false,
        };
        if !self.nodes.is_empty()
            && let Some(found) = search.at(0, &segments)?
        {
            return Ok(Some(found));
        }
        Ok(search.other_method.then_some((None, Vec::new())))
    }
}

/// Those behind each slash. The path `/` has one, which is empty.
fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.strip_prefix(b"/")
        .unwrap_or(path)
        .split(|byte| *byte == b'/')
}

struct Search<'a, 'p, 's> {
    paths: &'a Paths,
    method: &'s [u8],
    work: &'s WorkBudget,
    parts: Vec<&'p [u8]>,
    /// A template was found that has other methods.
    other_method: bool,
}

impl<'a, 'p> Search<'a, 'p, '_> {
    fn at(&mut self, place: usize, segments: &[&'p [u8]]) -> Result<Option<PathMatch<'a, 'p>>, Exhausted> {
        let node = &self.paths.nodes[place];
        self.work.spend(1 + node.open.len())?;
        let Some((segment, rest)) = segments.split_first() else {
            return Ok(self.end(node));
        };
        if let Some(next) = node.fixed.get(*segment)
            && let Some(found) = self.at(*next, rest)?
        {
            return Ok(Some(found));
        }
        for (pattern, next) in &node.open {
            let Some(parts) = pattern.matches(segment) else {
                continue;
            };
            let length = self.parts.len();
            self.parts.extend(parts);
            if let Some(found) = self.at(*next, rest)? {
                return Ok(Some(found));
            }
            self.parts.truncate(length);
        }
        Ok(None)
    }

    fn end(&mut self, node: &'a Node) -> Option<PathMatch<'a, 'p>> {
        let own = node.ends.iter().find(|end| end.method.as_bytes() == self.method);
        self.other_method |= own.is_none() && !node.ends.is_empty();
        let own = own?;
        let names = own.names.iter().map(String::as_str);
        Some((
            Some(own.operation),
            names.zip(self.parts.iter().copied()).collect(),
        ))
    }
}
