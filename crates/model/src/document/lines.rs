//! Finding a place in a document's text again.

use crate::diagnostic::{DocPath, PathStep};
use saphyr_parser::{Event, Parser, Span};

/// The line (from 1) on which the value at `path` begins, or the nearest of its parents that exists. `None` if the text
/// cannot be parsed or the path is the root.
pub fn line_of(text: &str, path: &DocPath) -> Option<usize> {
    if path.0.is_empty() {
        return None;
    }
    let mut walk = Walk {
        parser: Parser::new_from_str(text),
        found: None,
    };
    loop {
        match walk.parser.next()?.ok()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (event, span) => {
                walk.visit(&event, span, Some(&path.0))?;
                return walk.found;
            }
        }
    }
}

struct Walk<'t> {
    parser: Parser<'t, saphyr_parser::StrInput<'t>>,
    found: Option<usize>,
}

impl Walk<'_> {
    /// Walks one value; `wanted` is what is left of the path, `None` when this value is not on it.
    fn visit(&mut self, event: &Event<'_>, _span: Span, wanted: Option<&[PathStep]>) -> Option<()> {
        match event {
            Event::SequenceStart(..) => {
                let mut index = 0;
                loop {
                    let (event, span) = self.parser.next()?.ok()?;
                    if matches!(event, Event::SequenceEnd) {
                        return Some(());
                    }
                    let below = match wanted {
                        Some([PathStep::Index(wanted), rest @ ..]) if *wanted == index => Some(rest),
                        _ => None,
                    };
                    self.reached(below, span);
                    self.visit(&event, span, below)?;
                    index += 1;
                }
            }
            Event::MappingStart(..) => loop {
                let (key, key_span) = self.parser.next()?.ok()?;
                let below = match (&key, wanted) {
                    (Event::MappingEnd, _) => return Some(()),
                    (Event::Scalar(text, ..), Some([PathStep::Field(wanted), rest @ ..]))
                        if text == wanted =>
                    {
                        Some(rest)
                    }
                    (Event::Scalar(..), _) => None,
                    _ => {
                        self.visit(&key, key_span, None)?;
                        None
                    }
                };
                self.reached(below, key_span);
                let (event, span) = self.parser.next()?.ok()?;
                self.visit(&event, span, below)?;
            },
            _ => Some(()),
        }
    }

    fn reached(&mut self, below: Option<&[PathStep]>, span: Span) {
        if below.is_some() {
            self.found = Some(span.start.line());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_again() {
        let text = "services:\n- name: a\n  routes:\n  - paths:\n    - /x\n    - /y\n- name: b\n";
        let place = |steps: &[PathStep]| line_of(text, &DocPath(steps.to_vec()));
        let field = |name: &str| PathStep::Field(name.to_owned());
        for (steps, line) in [
            (
                vec![field("services"), PathStep::Index(1), field("name")],
                Some(7),
            ),
            (
                vec![
                    field("services"),
                    PathStep::Index(0),
                    field("routes"),
                    PathStep::Index(0),
                    field("paths"),
                    PathStep::Index(1),
                ],
                Some(6),
            ),
            (
                vec![field("services"), PathStep::Index(1), field("absent")],
                Some(7),
            ),
            (vec![field("absent")], None),
        ] {
            assert_eq!(place(&steps), line, "{steps:?}");
        }
    }
}
