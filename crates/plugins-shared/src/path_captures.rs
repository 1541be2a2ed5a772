//! Texts with variables and with `$1` for what the groups of a regular expression have found.

use std::ops::Range;
use weir_plugin::{Exchange, Template};

/// The groups of a pattern that matched a text: group 0 is the whole match. Empty if no pattern matched.
#[derive(Debug, Default)]
pub struct RegexMatch {
    /// The text that was searched.
    pub text: Vec<u8>,
    /// Where each group matched.
    pub groups: Vec<Option<Range<usize>>>,
}

impl RegexMatch {
    fn group(&self, number: usize) -> &[u8] {
        let range = self.groups.get(number).cloned().flatten();
        range.and_then(|range| self.text.get(range)).unwrap_or_default()
    }
}

/// A text in which `$1` and `${1}` stand for groups and other `$name`s for variables; behind a `\`, for themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureTemplate(Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Rest(Template),
    Group(usize),
}

impl CaptureTemplate {
    /// Reads a template. Every text is one.
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let (mut plain, mut rest) = (0, 0);
        while let Some(dollar) = text[rest..].find('$').map(|at| rest + at) {
            rest = dollar + 1;
            let is_escaped = text[..dollar].ends_with('\\');
            if let Some((number, length)) = group_number(&text[rest..]).filter(|_| !is_escaped) {
                push_rest(&mut parts, &text[plain..dollar]);
                parts.push(Segment::Group(number));
                rest += length;
                plain = rest;
            }
        }
        push_rest(&mut parts, &text[plain..]);
        Self(parts)
    }

    /// Whether any of its variables is in the request's body.
    pub fn needs_body(&self) -> bool {
        self.0
            .iter()
            .any(|part| matches!(part, Segment::Rest(rest) if rest.needs_body()))
    }

    /// How many bytes of the match its groups take.
    pub fn group_bytes(&self, found: &RegexMatch) -> usize {
        let groups = self.0.iter().map(|part| match part {
            Segment::Rest(_) => 0,
            Segment::Group(number) => found.group(*number).len(),
        });
        groups.fold(0, usize::saturating_add)
    }

    /// Writes the text for this call behind what `out` holds.
    pub fn render(&self, exchange: &Exchange, found: &RegexMatch, out: &mut Vec<u8>) {
        for part in &self.0 {
            match part {
                Segment::Rest(rest) => {
                    rest.render(exchange, out);
                }
                Segment::Group(number) => out.extend_from_slice(found.group(*number)),
            }
        }
    }
}

fn push_rest(parts: &mut Vec<Segment>, text: &str) {
    if !text.is_empty() {
        parts.push(Segment::Rest(Template::parse(text)));
    }
}

/// The number of a group behind a `$`, and how many bytes it takes.
fn group_number(text: &str) -> Option<(usize, usize)> {
    let (digits, around) = match text.strip_prefix('{') {
        Some(braced) => (braced.split_once('}')?.0, 2),
        None => {
            let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
            (&text[..end], 0)
        }
    };
    let is_number = !digits.is_empty() && digits.len() <= 2 && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| Some((digits.parse().ok()?, digits.len() + around)))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugin::system_clock;

    #[test]
    fn groups_and_variables_are_filled_in() {
        let mut exchange = Exchange::new(system_clock, 1);
        exchange.request.query = Some(b"a=v".to_vec());
        let found = RegexMatch {
            text: b"/x/y".to_vec(),
            groups: vec![Some(0..4), Some(1..2), None, Some(3..4)],
        };
        for (template, text) in [
            ("", ""),
            ("plain", "plain"),
            ("$1", "x"),
            ("${3}1-$arg_a-$0", "y1-v-/x/y"),
            ("$2|$9|$99", "||"),
            ("$", "$"),
            ("$$1", "$x"),
            (r"\$1$1\${3}", r"\$1x\${3}"),
            ("é$1é", "éxé"),
            ("${1", "${1"),
        ] {
            let mut out = Vec::new();
            CaptureTemplate::parse(template).render(&exchange, &found, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text, "{template}");
        }
    }
}
