//! The faults of regular expressions, in the words of APISIX's engine (PCRE2).

use regex_syntax::ast::ErrorKind;

/// Whether a regular expression can be used. `Err(None)`: it is wrong in any dialect; `Err(Some(what))`: it uses
/// what only APISIX's dialect has.
pub fn check_regex(pattern: &str) -> Result<(), Option<&'static str>> {
    match regex::Regex::new(pattern) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            if text.contains("look-around") {
                Err(Some("look-around in a regular expression"))
            } else if text.contains("backreference") {
                Err(Some("a backreference in a regular expression"))
            } else {
                Err(None)
            }
        }
    }
}

/// Checks expressions that a plugin searches for, as the original does. One that is right and that Weir cannot serve is
/// no fault: see [`unserved`].
///
/// # Errors
/// The first that is wrong.
pub fn check_all<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<(), String> {
    let mut patterns = patterns.into_iter();
    match patterns.find(|pattern| check_regex(pattern) == Err(None)) {
        Some(wrong) => Err(pcre_message(wrong)),
        None => Ok(()),
    }
}

/// What the first of the expressions that Weir cannot serve uses; `None`: it can serve all of them.
pub fn unserved<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Option<&'static str> {
    let mut patterns = patterns.into_iter();
    patterns.find_map(|pattern| check_regex(pattern).err().flatten())
}

fn pcre_message(pattern: &str) -> String {
    let Err(error) = regex_syntax::ast::parse::Parser::new().parse(pattern) else {
        return format!("pcre2_compile() failed: regular expression is too large in \"{pattern}\"");
    };
    let (what, at) = match error.kind() {
        ErrorKind::GroupUnclosed => ("missing closing parenthesis", None),
        ErrorKind::GroupUnopened => ("unmatched closing parenthesis", Some(error.span().start.offset)),
        ErrorKind::ClassUnclosed => ("missing terminating ] for character class", None),
        ErrorKind::RepetitionMissing => (
            "quantifier does not follow a repeatable item",
            Some(error.span().start.offset),
        ),
        ErrorKind::EscapeUnexpectedEof => ("\\ at end of pattern", None),
        ErrorKind::ClassRangeInvalid => (
            "range out of order in character class",
            Some(error.span().end.offset),
        ),
        _ => ("the regular expression cannot be read", None),
    };
    match at.and_then(|at| pattern.get(at..)) {
        Some(rest) if !rest.is_empty() => {
            format!("pcre2_compile() failed: {what} in \"{pattern}\" at \"{rest}\"")
        }
        _ => format!("pcre2_compile() failed: {what} in \"{pattern}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_reported_in_the_words_of_pcre() {
        for (pattern, words) in [
            ("a(b)", None),
            (
                "(",
                Some("pcre2_compile() failed: missing closing parenthesis in \"(\""),
            ),
            (
                "a)",
                Some("pcre2_compile() failed: unmatched closing parenthesis in \"a)\" at \")\""),
            ),
            (
                "[a",
                Some("pcre2_compile() failed: missing terminating ] for character class in \"[a\""),
            ),
            ("(?=a)", None),
        ] {
            assert_eq!(check_all([pattern]).err().as_deref(), words, "{pattern}");
        }
    }

    #[test]
    fn what_cannot_be_served_is_no_fault() {
        for (patterns, what) in [
            (["a", "(?!b)"], Some("look-around in a regular expression")),
            ([r"(a)\1", "b"], Some("a backreference in a regular expression")),
            (["a", "("], None),
        ] {
            assert_eq!(unserved(patterns), what, "{patterns:?}");
        }
    }
}
