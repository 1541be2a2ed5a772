//! Finding places of a document in its text. Values carry no positions: when there is something to report, the text is
//! walked once for all places together.

use super::json_text::Scanner;
use crate::finding::Position;
use saphyr_parser::{Event, Parser, Span, StrInput};
use std::collections::HashMap;
use weir_model::DocPath;
use weir_model::diagnostic::PathStep;

/// Deeper texts are no documents that can be read.
pub(super) const MAX_DEPTH: usize = 130;

/// The positions at which the values at `paths` begin: of a field its key, of an item of a list the item. A place that
/// does not exist has that of its nearest parent.
pub fn positions(text: &str, paths: &[&DocPath]) -> Vec<Position> {
    let mut wanted = NodeTargets::new(paths);
    if !paths.is_empty() {
        match is_json(text) {
            true => walk_json(&mut Scanner::new(text), &mut wanted, Some(0)),
            false => {
                let mut walk = YamlWalk {
                    parser: Parser::new_from_str(text),
                    wanted: &mut wanted,
                    depth: 0,
                };
                let _ended = walk.document();
            }
        }
    }
    paths.iter().map(|path| wanted.position(path)).collect()
}

/// Whether a text is read as JSON, and not as YAML.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// The places that are looked for, as a tree.
struct NodeTargets {
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    fields: HashMap<String, usize>,
    items: HashMap<usize, usize>,
    position: Option<Position>,
}

impl NodeTargets {
    fn new(paths: &[&DocPath]) -> Self {
        let mut wanted = Self {
            nodes: vec![Node::default()],
        };
        for path in paths {
            let mut node = 0;
            for step in &path.0 {
                let fresh = wanted.nodes.len();
                let next = match step {
                    PathStep::Field(name) => *wanted.nodes[node].fields.entry(name.clone()).or_insert(fresh),
                    PathStep::Index(index) => *wanted.nodes[node].items.entry(*index).or_insert(fresh),
                };
                if next == fresh {
                    wanted.nodes.push(Node::default());
                }
                node = next;
            }
        }
        wanted
    }

    fn field(&self, node: Option<usize>, name: &str) -> Option<usize> {
        self.nodes[node?].fields.get(name).copied()
    }

    fn item(&self, node: Option<usize>, index: usize) -> Option<usize> {
        self.nodes[node?].items.get(&index).copied()
    }

    fn reached(&mut self, node: Option<usize>, position: impl FnOnce() -> Position) {
        if let Some(node) = node {
            self.nodes[node].position = Some(position());
        }
    }

    fn position(&self, path: &DocPath) -> Position {
        let (mut node, mut found) = (Some(0), Position::START);
        for step in &path.0 {
            node = match step {
                PathStep::Field(name) => self.field(node, name),
                PathStep::Index(index) => self.item(node, *index),
            };
            match node.and_then(|node| self.nodes[node].position) {
                Some(position) => found = position,
                None => break,
            }
        }
        found
    }
}

/// The text is JSON no deeper than its parser allows.
fn walk_json(scanner: &mut Scanner<'_>, wanted: &mut NodeTargets, node: Option<usize>) {
    scanner.skip_spaces();
    match scanner.peek() {
        Some(b'{') => {
            scanner.skip(b'{');
            while scanner.peek() == Some(b'"') {
                let start = scanner.at;
                let below = match node {
                    None => {
                        scanner.skip_text();
                        None
                    }
                    Some(_) => {
                        let name = scanner.text();
                        wanted.field(node, &name.unwrap_or_default())
                    }
                };
                let end = std::mem::replace(&mut scanner.at, start);
                wanted.reached(below, || scanner.position());
                scanner.at = end;
                scanner.skip(b':');
                walk_json(scanner, wanted, below);
                scanner.skip(b',');
            }
            scanner.skip(b'}');
        }
        Some(b'[') => {
            scanner.skip(b'[');
            let mut index = 0;
            while !matches!(scanner.peek(), None | Some(b']')) {
                let below = wanted.item(node, index);
                wanted.reached(below, || scanner.position());
                walk_json(scanner, wanted, below);
                scanner.skip(b',');
                index += 1;
            }
            scanner.skip(b']');
        }
        Some(b'"') => scanner.skip_text(),
        Some(_) => scanner.skip_word(),
        None => {}
    }
}

struct YamlWalk<'t, 'w> {
    parser: Parser<'t, StrInput<'t>>,
    wanted: &'w mut NodeTargets,
    depth: usize,
}

impl YamlWalk<'_, '_> {
    fn document(&mut self) -> Option<()> {
        loop {
            match self.parser.next()?.ok()? {
                (Event::StreamStart | Event::DocumentStart(_), _) => {}
                (event, _) => return self.visit(&event, Some(0)),
            }
        }
    }

    fn visit(&mut self, event: &Event<'_>, node: Option<usize>) -> Option<()> {
        self.depth += 1;
        let is_whole = (self.depth <= MAX_DEPTH)
            .then(|| self.visit_value(event, node))
            .flatten();
        self.depth -= 1;
        is_whole
    }

    fn visit_value(&mut self, event: &Event<'_>, node: Option<usize>) -> Option<()> {
        match event {
            Event::SequenceStart(..) => {
                let mut index = 0;
                loop {
                    let (event, span) = self.parser.next()?.ok()?;
                    if matches!(event, Event::SequenceEnd) {
                        return Some(());
                    }
                    let below = self.wanted.item(node, index);
                    self.wanted.reached(below, || position_of(span));
                    self.visit(&event, below)?;
                    index += 1;
                }
            }
            Event::MappingStart(..) => loop {
                let (key, span) = self.parser.next()?.ok()?;
                let below = match &key {
                    Event::MappingEnd => return Some(()),
                    Event::Scalar(text, ..) => self.wanted.field(node, text),
                    _ => {
                        self.visit(&key, None)?;
                        None
                    }
                };
                self.wanted.reached(below, || position_of(span));
                let (event, _) = self.parser.next()?.ok()?;
                self.visit(&event, below)?;
            },
            _ => Some(()),
        }
    }
}

pub(super) fn position_of(span: Span) -> Position {
    Position {
        line: span.start.line().max(1),
        column: span.start.col() + 1,
    }
}
