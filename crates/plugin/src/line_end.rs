//! The end of a text in regular expressions: to the engine of both originals (PCRE) `$` also holds before a newline
//! that is the last byte.

use std::borrow::Cow;

/// The expression with each `$` holding before a final newline, too. It then may find that newline as well, so this is
/// for callers that only ask whether anything is found. An expression with flags of its own for lines or comments stays.
pub fn newline_tolerant(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains('$') || has_own_lines(pattern) {
        return Cow::Borrowed(pattern);
    }
    let mut out = String::with_capacity(pattern.len() + 12);
    let mut brackets = 0;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                out.push(character);
                out.extend(characters.next());
                continue;
            }
            '[' => {
                brackets += 1;
                out.push(character);
                out.extend(characters.next_if_eq(&'^'));
                // The first of a class stands for itself.
                out.extend(characters.next_if_eq(&']'));
                continue;
            }
            ']' if brackets > 0 => brackets -= 1,
            '$' if brackets == 0 => {
                out.push_str(r"(?:\n?\z)");
                continue;
            }
            _ => {}
        }
        out.push(character);
    }
    Cow::Owned(out)
}

/// Whether the flags `m` (lines end inside of the text, too) or `x` (comments may hold anything) are set somewhere.
fn has_own_lines(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|behind| {
        let flags = behind.split([')', ':', '-']).next().unwrap_or_default();
        flags.bytes().all(|flag| flag.is_ascii_alphabetic()) && flags.contains(['m', 'x'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::bytes::Regex;

    #[test]
    fn a_dollar_holds_before_a_final_newline() {
        for (pattern, text, is_found) in [
            ("^/a$", "/a", true),
            ("^/a$", "/a\n", true),
            ("^/a$", "/a\n\n", false),
            ("^/a$", "/a\nb", false),
            ("(a|b$)c?", "xb\n", true),
            (r"\.php$", "/root.php\n", true),
            (r"^a\$", "a$", true),
            (r"^a\$$", "a$\n", true),
            ("^[$]$", "$\n", true),
            ("^a[^$]$", "ab\n", true),
            ("^[]$]$", "$\n", true),
            ("^[^]$]b$", "ab\n", true),
            ("^[[:alpha:]$]+$", "a$\n", true),
            ("(?m)^a$", "a\nb", true),
            ("(?i)^A$", "a\n", true),
            ("^a", "ab", true),
        ] {
            let regex = Regex::new(&newline_tolerant(pattern)).expect("an expression");
            assert_eq!(regex.is_match(text.as_bytes()), is_found, "{pattern} {text:?}");
        }
    }
}
