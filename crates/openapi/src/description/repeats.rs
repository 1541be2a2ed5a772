//! Names that stand twice in one map of a text. Readers keep the last and say nothing (RFC 8259, section 4: what becomes of
//! them "is unpredictable"), so what the first says would be lost without a word.

use super::json_text::Scanner;
use super::locate::{MAX_DEPTH, is_json, position_of};
use crate::finding::Position;
use saphyr_parser::{Event, Parser, StrInput};
use std::collections::HashMap;
use weir_model::DocPath;
use weir_model::diagnostic::PathStep;

/// A name that is there again.
#[derive(Debug, PartialEq, Eq)]
pub struct RepeatedKey {
    /// The field.
    pub path: DocPath,
    /// Where its name stands again.
    pub position: Position,
    /// The line of the one that does not count.
    pub before: usize,
}

/// The names that stand in a map more than once, at most `limit`, in the order of the text. It has to be one that can be read.
pub fn repeated_keys(text: &str, limit: usize) -> Vec<RepeatedKey> {
    let mut found = RepeatCollector {
        limit,
        path: DocPath::root(),
        repeats: Vec::new(),
    };
    match is_json(text) {
        true => of_json(&mut Scanner::new(text), &mut found),
        false => {
            let mut walk = YamlWalk {
                parser: Parser::new_from_str(text),
                found: &mut found,
            };
            let _ended = walk.document();
        }
    }
    found.repeats
}

struct RepeatCollector {
    limit: usize,
    /// The place of the map that is being read.
    path: DocPath,
    repeats: Vec<RepeatedKey>,
}

impl RepeatCollector {
    fn is_full(&self) -> bool {
        self.repeats.len() >= self.limit
    }

    /// Notes a name of the map that is being read. `lines` holds those before it.
    fn note(&mut self, lines: &mut HashMap<String, usize>, name: &str, position: Position) {
        if let Some(before) = lines.insert(name.to_owned(), position.line)
            && !self.is_full()
        {
            self.repeats.push(RepeatedKey {
                path: self.path.field(name),
                position,
                before,
            });
        }
    }
}

/// The text is JSON no deeper than its parser allows.
fn of_json(scanner: &mut Scanner<'_>, found: &mut RepeatCollector) {
    scanner.skip_spaces();
    match scanner.peek() {
        Some(b'{') => {
            scanner.skip(b'{');
            let mut lines = HashMap::new();
            while scanner.peek() == Some(b'"') && !found.is_full() {
                let position = scanner.position();
                let name = scanner.text().unwrap_or_default();
                found.note(&mut lines, &name, position);
                scanner.skip(b':');
                found.path.0.push(PathStep::Field(name));
                of_json(scanner, found);
                found.path.0.pop();
                scanner.skip(b',');
            }
            scanner.skip(b'}');
        }
        Some(b'[') => {
            scanner.skip(b'[');
            let mut index = 0;
            while !matches!(scanner.peek(), None | Some(b']')) && !found.is_full() {
                found.path.0.push(PathStep::Index(index));
                of_json(scanner, found);
                found.path.0.pop();
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

struct YamlWalk<'t, 'f> {
    parser: Parser<'t, StrInput<'t>>,
    found: &'f mut RepeatCollector,
}

impl YamlWalk<'_, '_> {
    fn document(&mut self) -> Option<()> {
        loop {
            match self.parser.next()?.ok()? {
                (Event::StreamStart | Event::DocumentStart(_), _) => {}
                (event, _) => return self.visit(&event, 0),
            }
        }
    }

    /// Walks over a value. Returns nothing where the walk ends early.
    fn visit(&mut self, event: &Event<'_>, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH || self.found.is_full() {
            return None;
        }
        match event {
            Event::SequenceStart(..) => {
                for index in 0.. {
                    let (event, _) = self.parser.next()?.ok()?;
                    if matches!(event, Event::SequenceEnd) {
                        break;
                    }
                    self.below(PathStep::Index(index), &event, depth)?;
                }
            }
            Event::MappingStart(..) => {
                let mut lines = HashMap::new();
                loop {
                    let (key, span) = self.parser.next()?.ok()?;
                    let name = match &key {
                        Event::MappingEnd => break,
                        // Several maps may be merged into one.
                        Event::Scalar(name, ..) if name != "<<" => {
                            self.found.note(&mut lines, name, position_of(span));
                            name.clone().into_owned()
                        }
                        _ => {
                            self.visit(&key, depth + 1)?;
                            "<<".to_owned()
                        }
                    };
                    let (event, _) = self.parser.next()?.ok()?;
                    self.below(PathStep::Field(name), &event, depth)?;
                }
            }
            _ => {}
        }
        Some(())
    }

    fn below(&mut self, step: PathStep, event: &Event<'_>, depth: usize) -> Option<()> {
        self.found.path.0.push(step);
        let ended = self.visit(event, depth + 1);
        self.found.path.0.pop();
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repetitions(text: &str) -> Vec<String> {
        let found = repeated_keys(text, 3);
        let one = |it: &RepeatedKey| {
            let Position { line, column } = it.position;
            format!("{line}:{column} {} after {}", it.path, it.before)
        };
        found.iter().map(one).collect()
    }

    #[test]
    fn names_that_stand_twice_are_found_with_their_place() {
        for (text, expected) in [
            ("{\"a\": {\"b\": 1}, \"c\": [{\"a\": 1}, {\"a\": 2}]}", &[][..]),
            ("{\"a\": 1,\n \"b\": 2, \"a\": 3}", &["2:10 a after 1"]),
            (
                "{\"a\": 1, \"\\u0061\": [{\"x\": \"}\", \"x\": 2}]}",
                &["1:10 a after 1", "1:32 a[0].x after 1"],
            ),
            ("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", &["5:3 b.c after 3"]),
            (
                "a: {x: 1, x: 2}\n'a': 1\n",
                &["1:11 a.x after 1", "2:1 a after 1"],
            ),
            ("a: &m {x: 1}\nb: &n {y: 1}\nc:\n  <<: *m\n  <<: *n\n", &[]),
            ("- a: 1\n- a: 1\n  a: 2\n", &["3:3 [1].a after 2"]),
            ("{a: 1, a: 2}", &["1:8 a after 1"]),
        ] {
            assert_eq!(repetitions(text), expected, "{text}");
        }
    }

    #[test]
    fn no_more_than_the_limit_is_noted() {
        let many: Vec<String> = (0..1000).map(|_| "\"a\": 1".to_owned()).collect();
        assert_eq!(repetitions(&format!("{{{}}}", many.join(","))).len(), 3);
        assert_eq!(repetitions(&"a: 1\n".repeat(1000)).len(), 3);
    }
}
