//! Expressions that match more origins than probably intended.

use super::Config;
use regex_syntax::hir::{Hir, HirKind, Look};
use weir_model::{Diagnostic, DocPath};

/// What is worth a look in the expressions of a configuration.
pub fn warnings(config: &Config) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (field, patterns) in [
        ("origin_patterns", &config.origin_patterns),
        ("host_patterns", &config.host_patterns),
        ("timing_origin_patterns", &config.timing_origin_patterns),
    ] {
        for pattern in patterns {
            if let Some(reason) = looseness(pattern, field == "host_patterns") {
                let message = format!("the expression \"{pattern}\" {reason}");
                found.push(Diagnostic::warning(DocPath::root().field(field), message));
            }
        }
    }
    found
}

/// Why an expression finds more than it seems to; `None`: it is anchored, or finds every origin and says so.
fn looseness(pattern: &str, is_host: bool) -> Option<&'static str> {
    let hir = regex_syntax::parse(pattern).ok()?;
    if hir.properties().minimum_len() == Some(0) {
        return None;
    }
    let ends = hir.properties().look_set_suffix();
    if !ends.contains(Look::End) && !ends_with_anything(&hir) {
        return Some(
            "has no `$` at its end: it finds https://app.example.evil.test where it is to find https://app.example",
        );
    }
    let starts = hir.properties().look_set_prefix();
    let is_free = !starts.contains(Look::Start) && !starts_with_anything(&hir);
    if is_free && (is_host || !begins_with_scheme(pattern)) {
        return Some(
            "has no `^` at its start: it finds https://evilapp.example where it is to find app.example",
        );
    }
    has_wild_dot(pattern)
        .then_some("has a `.` after a wildcard, which matches any character: write `\\.` for a full stop")
}

fn is_anything(hir: &Hir) -> bool {
    matches!(hir.kind(), HirKind::Repetition(it) if it.max.is_none() && matches!(it.sub.kind(), HirKind::Class(class) if is_any(class)))
}

/// Whether the class is that of `.`: all but perhaps line feeds.
fn is_any(class: &regex_syntax::hir::Class) -> bool {
    match class {
        regex_syntax::hir::Class::Unicode(class) => {
            class.ranges().iter().any(|range| range.end() == char::MAX)
        }
        regex_syntax::hir::Class::Bytes(class) => class.ranges().iter().any(|range| range.end() == u8::MAX),
    }
}

fn ends_with_anything(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Concat(parts) => parts.last().is_some_and(is_anything),
        _ => is_anything(hir),
    }
}

fn starts_with_anything(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Concat(parts) => parts.first().is_some_and(is_anything),
        _ => is_anything(hir),
    }
}

/// Origins have one scheme, at their start.
fn begins_with_scheme(pattern: &str) -> bool {
    pattern.trim_start_matches('(').starts_with("http") && !pattern.contains('|')
}

/// Whether `.*.` or `.+.` stands before a letter, as in `https://.*.example.com`.
fn has_wild_dot(pattern: &str) -> bool {
    [".*.", ".+."].into_iter().any(|wild| {
        pattern.match_indices(wild).any(|(at, _)| {
            let is_escaped = pattern[..at].ends_with('\\');
            let behind = pattern[at + wild.len()..].chars().next();
            !is_escaped && behind.is_some_and(|character| character.is_ascii_alphanumeric())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loose_expressions_are_distinguished_from_tight_ones() {
        for (pattern, part) in [
            (r"https://app\.example\.com", Some("no `$`")),
            (r"^https://app\.example\.com", Some("no `$`")),
            (r"^https://a\.example$|https://b\.example", Some("no `$`")),
            (r"example\.com$", Some("no `^`")),
            (r"(app|www)\.example\.com$", Some("no `^`")),
            (r"^https://.*.example\.com$", Some("a `.` after")),
            (r"^(?:https://.+.example\.com)$", Some("a `.` after")),
            (r"^https://[a-z]+\.example\.com$", None),
            (r"^(?:https?://(app|www)\.example\.com)$", None),
            (r"https://.*\.example\.com$", None),
            (r".*\.example\.com$", None),
            (r"^https://.*", None),
            (".*", None),
            ("", None),
            ("(", None),
        ] {
            let reason = looseness(pattern, false);
            match part {
                Some(part) => assert!(
                    reason.is_some_and(|reason| reason.contains(part)),
                    "{pattern}: {reason:?}"
                ),
                None => assert_eq!(reason, None, "{pattern}"),
            }
        }
        assert!(looseness(r"^app\.example$", true).is_none());
        assert!(looseness(r"http.example$", true).is_some());
    }
}
