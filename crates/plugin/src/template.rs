//! Texts with `$variables` in them, made ready once and filled in for a call. They compute nothing.

use crate::exchange::Exchange;
use crate::variable::Variable;

/// A text with the variables `$name` and `${name}`; `${name ?? default}` gives a default for calls that have no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Segment>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Text(Vec<u8>),
    Variable(Variable),
    VariableOr(Variable, Vec<u8>),
}

impl Template {
    /// Reads a template. A `$` that no name follows, or that stands behind a `\`, stands for itself.
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut plain = String::new();
        while let Some(dollar) = rest.find('$') {
            plain.push_str(&rest[..dollar]);
            let after = &rest[dollar + 1..];
            let (name, behind) = match after.strip_prefix('{') {
                Some(braced) => braced.split_once('}').unwrap_or(("", after)),
                None => {
                    // Of all names without braces, only these hold dots.
                    let dotted = after.starts_with("post_arg.");
                    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || (dotted && it == '.');
                    after.split_at(after.find(|it| !is_name(it)).unwrap_or(after.len()))
                }
            };
            if name.is_empty() || plain.ends_with('\\') {
                plain.push('$');
                rest = after;
                continue;
            }
            if !plain.is_empty() {
                parts.push(Segment::Text(std::mem::take(&mut plain).into_bytes()));
            }
            parts.push(match name.split_once("??") {
                Some((name, default)) => {
                    Segment::VariableOr(Variable::parse(name.trim()), default.trim().as_bytes().to_vec())
                }
                None => Segment::Variable(Variable::parse(name.trim())),
            });
            rest = behind;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Segment::Text(plain.into_bytes()));
        }
        Self(parts)
    }

    /// Whether the text is the same for every call.
    pub fn is_constant(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Segment::Text(_)))
    }

    /// Whether any of its variables is in the request's body.
    pub fn needs_body(&self) -> bool {
        self.variables().any(Variable::needs_body)
    }

    /// The variables, in order.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.0.iter().filter_map(|part| match part {
            Segment::Text(_) => None,
            Segment::Variable(variable) | Segment::VariableOr(variable, _) => Some(variable),
        })
    }

    /// Writes the text for this call behind what `out` holds. Variables without a value are left out.
    /// Says how many variables had a value or a default.
    pub fn render(&self, exchange: &Exchange, out: &mut Vec<u8>) -> usize {
        let mut found = 0;
        for part in &self.0 {
            match part {
                Segment::Text(text) => out.extend_from_slice(text),
                Segment::Variable(variable) => {
                    if let Some(value) = variable.read(exchange)
                        && exchange.request.work.spend_bytes(value.len()).is_ok()
                    {
                        out.extend_from_slice(&value);
                        found += 1;
                    }
                }
                Segment::VariableOr(variable, default) => {
                    out.extend_from_slice(&variable.read(exchange).unwrap_or(default.into()));
                    found += 1;
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_clock;

    #[test]
    fn variables_are_filled_in() {
        let mut exchange = Exchange::new(system_clock, 1);
        exchange.request.method = b"GET".to_vec();
        exchange.request.query = Some(b"a=1%202&b".to_vec());
        exchange
            .request
            .headers
            .append(b"Content-Type", b"application/json");
        exchange.request.body = Some(br#"{"a": {"b": "t"}}"#.to_vec());
        for (template, text) in [
            ("plain", "plain"),
            ("$request_method-${arg_a}.", "GET-1 2."),
            ("$", "$"),
            ("$$arg_a", "$1 2"),
            ("a$nothing", "a"),
            (r"\$arg_a $arg_a", r"\$arg_a 1 2"),
            ("${arg_a", "${arg_a"),
            ("${arg_a ?? 9}/${arg_x ?? 9}", "1 2/9"),
            ("$post_arg.a.b-${post_arg.c[0] ?? 9}-$request_method.", "t-9-GET."),
        ] {
            let mut out = Vec::new();
            Template::parse(template).render(&exchange, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text, "{template}");
        }
    }
}
