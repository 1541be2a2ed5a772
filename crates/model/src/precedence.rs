//! The precedence of matches for which a document gives none, as native documents never need to.

use crate::{HostPattern, PathPattern, RouteMatch, TemplatePart};

impl RouteMatch {
    /// The precedence for one of this match's hosts ([`HostPattern::Any`] if it has none) if [`RouteMatch::precedence`]
    /// is absent.
    ///
    /// More specific hosts win (exact, then the longer wildcard, then with a port), then exact paths, then those
    /// with more text before the first parameter, then those that leave less open (whole template, regular
    /// expression, subtree, prefix), then those with more text in all, then those with more further conditions.
    pub fn default_precedence(&self, host: &HostPattern) -> u64 {
        let (host_class, host_length, port) = match host {
            HostPattern::Any => (0, 0, None),
            HostPattern::Suffix { suffix: text, port } | HostPattern::Prefix { prefix: text, port } => {
                (1, text.len(), *port)
            }
            HostPattern::Exact { port, .. } => (2, 0, *port),
        };
        let path = PathRank::of(&self.path);
        let conditions = self.headers.len()
            + usize::from(!self.methods.is_empty())
            + usize::from(!self.remote_addrs.is_empty())
            + usize::from(!self.snis.is_empty())
            + usize::from(self.when.is_some());
        [
            (host_class, 2),
            (host_length, 8),
            (usize::from(port.is_some()), 1),
            (usize::from(path.is_exact), 1),
            (path.leading, 16),
            (path.closed, 2),
            (path.literal, 16),
            (conditions, 8),
        ]
        .into_iter()
        .fold(0, |precedence, (value, bits)| {
            precedence << bits | (value as u64).min((1 << bits) - 1)
        })
    }
}

/// How specific a path pattern is.
struct PathRank {
    is_exact: bool,
    /// Bytes before the first parameter.
    leading: usize,
    /// 3: nothing beyond the pattern is taken; 0: whatever begins with it.
    closed: usize,
    /// Bytes that are no parameters.
    literal: usize,
}

impl PathRank {
    fn of(pattern: &PathPattern) -> Self {
        let text = |text: &str, closed| Self {
            is_exact: false,
            leading: text.len(),
            closed,
            literal: text.len(),
        };
        match pattern {
            PathPattern::Any => text("", 0),
            PathPattern::Exact(path) => Self {
                is_exact: true,
                ..text(path, 3)
            },
            PathPattern::Prefix(prefix) => text(prefix, 0),
            PathPattern::Segments(path) => text(path, 1),
            PathPattern::Regex(regex) => text(literal_start(regex), 2),
            PathPattern::Template(parts) => {
                let literal = |part: &TemplatePart| match part {
                    TemplatePart::Literal(text) => text.len(),
                    _ => 0,
                };
                let takes_rest = matches!(parts.last(), Some(TemplatePart::Rest(_)));
                Self {
                    is_exact: false,
                    leading: parts.first().map_or(0, literal),
                    closed: if takes_rest { 1 } else { 3 },
                    literal: parts.iter().map(literal).sum(),
                }
            }
        }
    }
}

/// The text with which all that a regular expression matches begins, as far as it is plain to see.
fn literal_start(regex: &str) -> &str {
    if regex.contains('|') {
        return "";
    }
    let end = regex
        .find(|it| r"\.+*?()[]{}^$".contains(it))
        .unwrap_or(regex.len());
    match regex[end..].chars().next() {
        // The quantifier belongs to the last character.
        Some('*' | '?' | '{') => {
            let mut kept = regex[..end].chars();
            kept.next_back();
            kept.as_str()
        }
        _ => &regex[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each of these goes before the next, for a call that all of them take.
    #[test]
    fn more_specific_matches_go_first() {
        let ordered = [
            ("api.a.com:80", json!({"path": "*"})),
            ("api.a.com", json!({"path": "/users"})),
            ("api.a.com", json!({"path": "*"})),
            ("*.a.com:80", json!({})),
            ("*.a.com", json!({})),
            ("*.com", json!({"path": "=/users/me/x"})),
            ("api.*", json!({"path": "*"})),
            ("*", json!({"path": "=/users/me/x"})),
            ("*", json!({"path": "/users/me/x"})),
            ("*", json!({"path": "/users/me"})),
            ("*", json!({"path": "/users/{id}/x", "methods": ["GET"]})),
            ("*", json!({"path": "/users/{id}/x"})),
            ("*", json!({"path": "/users/{id}/{x}"})),
            ("*", json!({"path": "~/users/\\w+/x"})),
            ("*", json!({"path": "/users/{rest*}"})),
            ("*", json!({"path": "/users/*"})),
            (
                "*",
                json!({"path": "/users", "methods": ["GET"], "headers": [{"name": "a"}]}),
            ),
            ("*", json!({"path": "/users", "methods": ["GET"]})),
            ("*", json!({"path": "/users"})),
            ("*", json!({"path": "/users*"})),
            ("*", json!({"path": "~/users?/me"})),
            ("*", json!({"path": "~/(users|teams)/me"})),
            ("*", json!({"methods": ["GET"]})),
            ("*", json!({})),
        ];
        let precedences = ordered.map(|(host, text)| {
            let route_match: RouteMatch = serde_json::from_value(text.clone()).expect("valid");
            let host = HostPattern::parse(host).expect("valid");
            (route_match.default_precedence(&host), format!("{host} {text}"))
        });
        for pair in precedences.windows(2) {
            assert!(pair[0].0 > pair[1].0, "{} before {}", pair[0].1, pair[1].1);
        }
    }
}
