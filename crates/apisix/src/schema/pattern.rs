//! Regular expressions of shapes. They stand as the original writes them, as refusals show them to users.

use regex::Regex;
use std::sync::OnceLock;

/// A regular expression of a shape, compiled when it is first needed.
#[derive(Debug)]
pub(super) struct Pattern {
    pub text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

/// Patterns of the original that the language of Weir's expressions lacks, and how it says the same.
const SAME: [(&str, &str); 3] = [
    (r"^[ -!#-[\]-~]+$", r"^[ -!#-\[\]-~]+$"),
    (r"^[0-9a-zA-Z-.]+(:\d{1,5})?$", r"^[0-9a-zA-Z.-]+(:\d{1,5})?$"),
    (
        r"^[\p{L}][\p{L}\p{N}_.:/-]*(?<!:)$",
        r"^\p{L}([\p{L}\p{N}_.:/-]*[\p{L}\p{N}_./-])?$",
    ),
];
/// Patterns that the plugin checks itself: no expression of that language says the same.
#[cfg(test)]
pub(crate) const CHECKED_ELSEWHERE: [&str; 1] = [r"^(?!tag=)[ -~]*"];

/// A pattern of the original, compiled; `None`: it cannot be.
pub(crate) fn compiled(text: &str) -> Option<Regex> {
    let same = SAME.iter().find(|(original, _)| *original == text);
    Regex::new(same.map_or(text, |(_, same)| same)).ok()
}

impl Pattern {
    pub fn new(text: &'static str) -> Self {
        Self {
            text,
            compiled: OnceLock::new(),
        }
    }

    pub fn matches(&self, value: &str) -> bool {
        // What only the original's dialect has is checked by the plugin.
        let compiled = self.compiled.get_or_init(|| compiled(self.text));
        compiled.as_ref().is_none_or(|regex| regex.is_match(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_the_original_are_checked() {
        for (pattern, good, bad) in [
            (r"^[ -!#-[\]-~]+$", "a [b] 'c'", "a\"b"),
            (r"^[ -!#-[\]-~]+$", "~", "a\\b"),
            (r"^[0-9a-zA-Z-.]+(:\d{1,5})?$", "a-b.c:80", "a b"),
            (r"^[\p{L}][\p{L}\p{N}_.:/-]*(?<!:)$", "ä:b", "a:"),
            (r"^[\p{L}][\p{L}\p{N}_.:/-]*(?<!:)$", "a", "1"),
        ] {
            let pattern = Pattern::new(pattern);
            assert!(pattern.matches(good), "{pattern:?} {good}");
            assert!(!pattern.matches(bad), "{pattern:?} {bad}");
        }
    }
}
