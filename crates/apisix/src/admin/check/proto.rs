//! Whether a Protocol Buffers definition can be one: what a reader of it trips over first.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::HashSet;

/// What a statement at the top of a file begins with.
const TOP: [&str; 8] = [
    "syntax", "edition", "package", "import", "option", "message", "enum", "service",
];

/// Checks a definition, as text, or compiled and in Base64.
///
/// # Errors
/// What is wrong, with the line.
pub fn check(content: &str) -> Result<(), String> {
    let is_compiled = || {
        STANDARD
            .decode(content.trim())
            .is_ok_and(|bytes| !bytes.is_empty())
    };
    text(content).or_else(|error| if is_compiled() { Ok(()) } else { Err(error) })
}

fn text(content: &str) -> Result<(), String> {
    // Of each open block: whether its fields have numbers of their own, and those seen.
    let mut blocks: Vec<(bool, HashSet<String>)> = Vec::new();
    let mut statement: Vec<String> = Vec::new();
    let mut line = 1;
    for token in tokens(content, &mut line) {
        let (token, line) = token?;
        let is_first = |word: &str| statement.first().is_some_and(|first| first == word);
        match token.as_str() {
            "{" => {
                let is_option = statement.iter().any(|word| word == "=");
                // The fields of a choice are the message's around it.
                let has_numbers = !is_option && (is_first("message") || is_first("group"));
                blocks.push((has_numbers, HashSet::new()));
                statement.clear();
            }
            "}" => {
                blocks
                    .pop()
                    .ok_or_else(|| format!("line {line}: unexpected symbol near '}}'"))?;
                statement.clear();
            }
            ";" => {
                if let Some(number) = field_number(&statement)
                    && let Some((_, seen)) = blocks.iter_mut().rev().find(|(has_numbers, _)| *has_numbers)
                    && !seen.insert(number.clone())
                {
                    return Err(format!("line {line}: the number {number} is given twice"));
                }
                statement.clear();
            }
            _ => {
                if statement.is_empty()
                    && blocks.is_empty()
                    && !TOP.contains(&token.as_str())
                    && token != "extend"
                {
                    return Err(format!("line {line}: unknown statement '{token}'"));
                }
                statement.push(token);
            }
        }
    }
    match blocks.is_empty() && statement.is_empty() {
        true => Ok(()),
        false => Err(format!("line {line}: unexpected end of the definition")),
    }
}

/// The number of a field: `TYPE NAME = NUMBER`.
fn field_number(statement: &[String]) -> Option<&String> {
    let is_statement = ["option", "reserved", "extensions", "import", "package"]
        .iter()
        .any(|word| statement.first().is_some_and(|first| first == word));
    let at = statement.iter().position(|word| word == "=")?;
    let number = statement.get(at + 1)?;
    let is_number = number.starts_with(|first: char| first.is_ascii_digit());
    (!is_statement && at >= 2 && is_number).then_some(number)
}

/// The tokens, each with its line; texts are one token.
fn tokens<'c>(
    content: &'c str,
    line: &'c mut usize,
) -> impl Iterator<Item = Result<(String, usize), String>> + 'c {
    let mut rest = content;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let length = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |at| at + 2)
            } else if first.is_whitespace() {
                first.len_utf8()
            } else if first == '"' || first == '\'' {
                match rest[1..].find(first) {
                    Some(at) => at + 2,
                    None => return Some(Err(format!("line {line}: unfinished string"))),
                }
            } else {
                let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == '.';
                match rest.find(|it| !is_part(it)).unwrap_or(rest.len()) {
                    0 => first.len_utf8(),
                    length => length,
                }
            };
            let (token, after) = rest.split_at(length);
            rest = after;
            let at = *line;
            *line += token.matches('\n').count();
            let is_skipped = token.starts_with("//") || token.starts_with("/*") || token.trim().is_empty();
            if !is_skipped {
                return Some(Ok((token.to_owned(), at)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_checked() {
        let good = "syntax = \"proto3\"; // a;\npackage p.q; import \"x.proto\";\n\
                    message M { string name = 1; oneof k { int32 a = 2; } repeated N n = 4 [packed = true];\n\
                    message N { map<string, int32> m = 1; } reserved 9; }\n\
                    enum E { A = 0; B = 1; } service S { rpc Do (M) returns (M) {} }";
        for (content, wanted) in [
            (good, None),
            ("CgZhLnByb3Rv", None),
            (
                "message M { int32 a = 1;\nstring b = 1; }",
                Some("line 2: the number 1 is given twice"),
            ),
            ("message M {", Some("line 1: unexpected end of the definition")),
            (
                "message M { oneof k { int32 a = 2; } int32 b = 2; }",
                Some("line 1: the number 2 is given twice"),
            ),
            ("!!", Some("line 1: unknown statement '!'")),
            ("}", Some("line 1: unexpected symbol near '}'")),
            ("syntax = \"proto3", Some("line 1: unfinished string")),
        ] {
            assert_eq!(check(content).err().as_deref(), wanted, "{content}");
        }
    }
}
