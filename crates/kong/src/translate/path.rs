//! Paths of routes as patterns over the form of paths in which Weir matches.
//!
//! Kong compares paths in which only reserved characters are still escaped; Weir's tables hold them with every
//! character escaped that needs it. What is different in one form is different in the other, so patterns are moved.

use crate::schema::text::is_reserved;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use weir_model::PathPattern;

/// Whether Kong takes this path for a regular expression.
pub fn is_regex(path: &str) -> bool {
    path.starts_with('~')
}

/// The pattern for a path of a route.
pub fn pattern(path: &str) -> PathPattern {
    match path.strip_prefix('~') {
        Some(regex) => PathPattern::Regex(escape_regex(regex)),
        None => PathPattern::Prefix(escape(path)),
    }
}

/// The characters that cannot stand in a path. `%` can: escapes that are there already are of reserved characters, and
/// stay.
const IN_PATHS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Escapes what cannot stand in a path.
fn escape(path: &str) -> String {
    utf8_percent_encode(path, IN_PATHS).to_string()
}

/// A text that no path has, in any form.
const NEVER: &str = r"[^\s\S]";

/// Moves a regular expression: characters that are escaped in a path are so in the expression, and an escape of
/// a character that Kong would have decoded matches nothing. Classes (`[…]`) stay as they are.
fn escape_regex(regex: &str) -> String {
    let mut out = String::with_capacity(regex.len());
    let mut rest = regex.char_indices().peekable();
    let mut in_class = false;
    while let Some((position, character)) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some((_, escaped)) if !in_class && is_escaped_in_paths(escaped) => {
                    push_literal(escaped, &mut out);
                }
                escaped => {
                    out.push('\\');
                    out.extend(escaped.map(|(_, escaped)| escaped));
                }
            },
            '[' => {
                in_class = true;
                out.push('[');
                // A `]` that comes first (perhaps behind `^`) is a member.
                if rest.peek().is_some_and(|(_, next)| *next == '^') {
                    out.push('^');
                    rest.next();
                }
                if rest.peek().is_some_and(|(_, next)| *next == ']') {
                    out.push_str("\\]");
                    rest.next();
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            '%' if !in_class && is_decoded_escape(&regex[position..]) => {
                out.push_str(NEVER);
                rest.next();
                rest.next();
            }
            character if !in_class && is_escaped_in_paths(character) => push_literal(character, &mut out),
            character => out.push(character),
        }
    }
    out
}

/// Whether a path holds this character only as an escape. Those that mean something in expressions are not asked
/// about.
fn is_escaped_in_paths(character: char) -> bool {
    matches!(character, ' ' | '"' | '`') || !character.is_ascii()
}

/// Writes a character as it stands in paths, as one group, so that a quantifier after it counts for all of it.
fn push_literal(character: char, out: &mut String) {
    out.push_str("(?:");
    out.extend(utf8_percent_encode(character.encode_utf8(&mut [0; 4]), IN_PATHS));
    out.push(')');
}

/// Whether this begins with an escape that Kong would have decoded before it matches.
fn is_decoded_escape(text: &str) -> bool {
    let byte = text.get(1..3).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    byte.is_some_and(|byte| !is_reserved(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_move_from_one_form_to_the_other() {
        for (path, moved) in [
            ("/", "/*"),
            ("/a/\\d+$", "/a/%5Cd+$*"),
            ("/sp ace", "/sp%20ace*"),
            ("/café", "/caf%C3%A9*"),
            ("/enc%2Foded", "/enc%2Foded*"),
            ("/~user/pl+us", "/~user/pl+us*"),
            ("~/num/\\d+$", "~/num/\\d+$"),
            ("~/s pc/\\w+$", "~/s(?:%20)pc/\\w+$"),
            ("~/e%20nc/\\w+$", "~/e[^\\s\\S]nc/\\w+$"),
            ("~/e%2Fnc", "~/e%2Fnc"),
            ("~/u/[^/ ]+/end$", "~/u/[^/ ]+/end$"),
            ("~/\\d+\"", "~/\\d+(?:%22)"),
            ("~/\\d+\\\"", "~/\\d+(?:%22)"),
            ("~/[]a]/é+", "~/[\\]a]/(?:%C3%A9)+"),
        ] {
            assert_eq!(pattern(path).to_string(), moved, "{path}");
        }
    }
}
