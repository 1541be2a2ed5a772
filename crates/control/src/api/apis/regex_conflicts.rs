//! Whether a regular expression that somebody wrote as a path loses calls to a publication. Expressions stand behind paths, so one for
//! all paths below its beginning is there for what no other route takes. Any other one is for calls that its owner knows.
//!
//! **What it is not**: complete. An expression has more texts than one, and a path with parameters has more than one call.

use crate::explain::examples;
use regex::Regex;
use weir_model::{PathPattern, RouteMatch};

/// A regular expression that does not take all paths below its beginning.
pub struct SelectiveRegex {
    regex: Regex,
    /// Paths that it takes.
    examples: Vec<RouteMatch>,
}

impl SelectiveRegex {
    /// `None`: the path is another one, takes whatever begins as it does, or cannot be read.
    pub fn of(path: &PathPattern) -> Option<Self> {
        let PathPattern::Regex(text) = path else {
            return None;
        };
        let regex = Regex::new(&format!(r"\A(?:{text})")).ok()?;
        let examples = examples::paths(path);
        let takes_all = |begin: &str| regex.is_match(&format!("{begin}weir-a/weir-b/weir-c"));
        let folder = |path: &String| path[..path.rfind('/').map_or(0, |at| at + 1)].to_owned();
        if takes_all(&path.begin()) || examples.iter().any(|it| takes_all(&folder(it))) {
            return None;
        }
        let exact = |path: String| RouteMatch {
            path: PathPattern::Exact(path),
            ..RouteMatch::default()
        };
        Some(Self {
            examples: examples.into_iter().map(exact).collect(),
            regex,
        })
    }

    /// Whether a call is known that it and another path take.
    pub fn meets(&self, other: &RouteMatch) -> bool {
        let path = RouteMatch {
            path: other.path.clone(),
            ..RouteMatch::default()
        };
        examples::paths(&other.path)
            .iter()
            .any(|it| self.regex.is_match(it))
            || self.examples.iter().any(|it| it.may_overlap(&path, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_for_some_paths_lose_calls() {
        for (regex, path, expected) in [
            (r"~/v9/p/\d+", "/v9/p/{id}", true),
            (r"~^/v9/p/[0-9]+$", "/v9/p/{id}", true),
            (r"~/v9/p/[a-f]{4}$", "/v9/p/{id}", true),
            (r"~/v9/o\d", "=/v9/o7", true),
            (r"~/v9/o\d$", "=/v9/mine", false),
            (r"~/v9/(p|q)/\d+", "/v9/p/{id}", true),
            (r"~/v9/(r|q)/\d+", "/v9/p/{id}", false),
            (r"~/v9/f/.*", "/v9/f/{n}.json", false),
            (r"~/v9", "=/v9/o7", false),
            (r"~/.*", "=/v9/o7", false),
            (r"~/v9/.*\.json$", "/v9/f/{n}.json", true),
            (r"~/v9/.*\.json$", "/v9/f/{n}.xml", false),
            ("=/v9/o7", "=/v9/o7", false),
        ] {
            let parse = |text: &str| PathPattern::parse(text).expect("a pattern");
            let other = RouteMatch {
                path: parse(path),
                ..RouteMatch::default()
            };
            let meets = SelectiveRegex::of(&parse(regex)).is_some_and(|it| it.meets(&other));
            assert_eq!(meets, expected, "{regex} {path}");
        }
    }
}
